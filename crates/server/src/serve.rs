//! From settings to a running server, and back to rest.
//!
//! Order matters: the store first (it recovers and locks the directory), then the listeners, then the line that says
//! where they are; at the end listeners first, then the store.

use std::net::SocketAddr;
use std::sync::Arc;

use tacho_model::Clock;
use tokio::net::TcpListener;

use crate::clock::SystemClock;
use crate::config::{Address, Config};
use crate::http::{self, App};
use crate::metrics::Metrics;
use crate::shutdown;

/// Why the server did not start, or how it ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {key} {address}: {source}")]
    Listen { key: &'static str, address: Address, source: std::io::Error },
    #[error("cannot watch for signals: {0}")]
    Signal(std::io::Error),
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(config: Config) -> Result<(), ServeError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let metrics = Arc::new(Metrics::default());
    let (http_listener, http_address) = listen("http", config.http).await?;
    let (_records_listener, records_address) = listen("records", config.records).await?;
    let (trigger, shutdown) = shutdown::channel();
    let connections_max = config.connections_max;
    let app = App::new(config, metrics.clone(), clock);
    let http =
        tokio::spawn(http::serve(http_listener, http::router(app), connections_max, metrics, shutdown));
    println!("listening http={http_address} records={records_address}");
    shutdown::signal().await.map_err(ServeError::Signal)?;
    tracing::info!("stopping");
    trigger.stop();
    let _ = http.await;
    Ok(())
}

async fn listen(key: &'static str, address: Address) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |source| ServeError::Listen { key, address, source };
    let listener = TcpListener::bind(address.0).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}
