//! Accepts HTTP connections, limits their number and time, and drains them at shutdown.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use super::door::Peer;
use super::held::hold;
use super::paced::Paced;
use crate::connection_limit::{Entered, Room, Seat};
use crate::metrics::Metrics;
use crate::metrics::registry::Gauge;
use crate::shutdown::Shutdown;
use crate::tls::{self, Opened, Tls};

/// Timeout for the head of a request, and for an idle connection.
const HEAD_TIME_MAX: Duration = Duration::from_secs(60);
/// Timeout for requests that are running at shutdown.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Number of reserved connections. They are accepted above the limit while all others are busy, and serve only health checks
/// and `/metrics`. Other requests get 503.
const RESERVE_MAX: usize = 32;

#[derive(Clone, Copy, Debug)]
pub struct Reserve;

/// Serves until `shutdown`, then waits for running requests. `write_time_max` is `time_max` of `paced.rs`.
pub async fn serve(
    (listener, tls): (TcpListener, Option<Arc<Tls>>),
    router: Router,
    (connections_max, write_time_max): (usize, Duration),
    metrics: Arc<Metrics>,
    mut shutdown: Shutdown,
) {
    let http = protocol();
    let graceful = GracefulShutdown::new();
    let room = Room::new(connections_max, RESERVE_MAX);
    let ended = |reason| metrics.connections_refused.with(["http", reason]);
    loop {
        let accepted = tokio::select! {
            () = shutdown.wait() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            room.relieve("http").await;
            continue;
        };
        let Some(Entered { seat, evicted }) = room.enter() else {
            ended("too-many").add(1);
            continue;
        };
        if evicted {
            ended("idle").add(1);
        }
        // Small responses must not be delayed.
        let _ = stream.set_nodelay(true);
        let slow = ended("slow-reader");
        let paced = move |stream| Paced::new(stream, write_time_max, move || slow.add(1));
        let seat = Arc::new(seat);
        let service = seated(router.clone(), seat.clone(), Peer(peer.ip()));
        let open = Open::new(metrics.connections.with(["http"]));
        let (http, watcher) = (http.clone(), graceful.watcher());
        let (tls, handshakes, mut shutdown) = (tls.clone(), ended("handshake"), shutdown.clone());
        let connection = async move {
            match tls::open(("http", tls.as_deref()), stream, paced, &handshakes, &mut shutdown).await {
                None => Ok(()),
                Some(Opened::Plain(stream)) => {
                    tls::refuse(stream, NEEDS_TLS.as_bytes()).await;
                    Ok(())
                }
                Some(Opened::Ready(stream)) => {
                    watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await
                }
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                ended = connection => if let Err(error) = ended {
                    tracing::debug!(listener = "http", %error, "connection ended");
                },
                () = seat.evicted() => tracing::debug!(listener = "http", "idle connection closed for a new one"),
            }
            drop(open);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIME_MAX, graceful.shutdown()).await.is_err() {
        tracing::warn!(seconds = DRAIN_TIME_MAX.as_secs(), "running requests were cut off");
    }
}

fn protocol() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX).max_buf_size(BUFFER_BYTES_MAX);
    http
}

/// Serves one open connection. For the fuzz targets only.
#[cfg(fuzzing)]
pub async fn serve_stream(router: Router, stream: tls::Socket, write_time_max: Duration) {
    if let Some(Entered { seat, .. }) = Room::new(1, 0).enter() {
        let stream = TokioIo::new(Paced::new(stream, write_time_max, || ()));
        // An error of the connection is expected for most inputs.
        let peer = Peer(std::net::Ipv4Addr::LOCALHOST.into());
        let _ = protocol().serve_connection(stream, seated(router, Arc::new(seat), peer)).await;
    }
}

/// The answer to a request without TLS on a port with TLS.
const NEEDS_TLS: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 37\r\n\
     Connection: close\r\n\r\nthis port requires TLS: use https://\n";

/// The connection counts as busy from the head of a request to the end of its response.
fn seated(
    router: Router,
    seat: Arc<Seat>,
    peer: Peer,
) -> impl HttpService<Incoming, ResBody = Body, Error = Infallible, Future: Send> {
    let router = TowerToHyperService::new(router);
    service_fn(move |mut request: Request<Incoming>| {
        let busy = seat.begin();
        request.extensions_mut().insert(peer);
        if seat.is_reserve() {
            request.extensions_mut().insert(Reserve);
        }
        let answer = router.call(request);
        async move { answer.await.map(|response| hold(response, busy)) }
    })
}

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
