//! Connections to requests: accepts, bounds their number, and lets them finish at the end.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::metrics::Metrics;
use crate::metrics::registry::Gauge;
use crate::shutdown::Shutdown;

/// How long a peer may take over a request's head, and how long a connection may idle.
const HEAD_TIME_MAX: Duration = Duration::from_secs(60);
/// How long requests that are running at shutdown may go on.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// Memory for one connection's unread bytes.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Pause after accept failed (no file descriptors are left), so that the failure is not repeated in a tight loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown`, then waits for running requests.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    connections_max: usize,
    metrics: Arc<Metrics>,
    mut shutdown: Shutdown,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX).max_buf_size(BUFFER_BYTES_MAX);
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(connections_max));
    loop {
        // The permit comes first: past the bound, connections wait in the kernel's queue.
        let accepted = tokio::select! {
            () = shutdown.wait() => break,
            accepted = async { (room.clone().acquire_owned().await, listener.accept().await) } => accepted,
        };
        let (Ok(permit), Ok((stream, _))) = accepted else {
            tracing::warn!(listener = "http", "accept failed");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Answers are small and wanted at once.
        let _ = stream.set_nodelay(true);
        let connection =
            http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        let connection = graceful.watch(connection);
        let open = Open::new(metrics.connections.with(["http"]));
        tokio::spawn(async move {
            // What goes wrong on one connection is that peer's affair.
            if let Err(error) = connection.await {
                tracing::debug!(listener = "http", %error, "connection ended");
            }
            drop((permit, open));
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIME_MAX, graceful.shutdown()).await.is_err() {
        tracing::warn!(seconds = DRAIN_TIME_MAX.as_secs(), "requests still running are cut off");
    }
}

/// Counts a connection for as long as it lives.
struct Open(Gauge);

impl Open {
    fn new(gauge: Gauge) -> Self {
        gauge.add(1);
        Self(gauge)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}
