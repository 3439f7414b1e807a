//! Starts and stops the server.
//!
//! The order of the start matters. The first checks concern the TLS files, the lock, the rules for probes, and the ports. They
//! change nothing but the lock file, and create the data directory if it is missing. Then the store opens and recovers the
//! directory. Then the listeners start. Until they start, connections are closed at once. Shutdown stops the listeners first,
//! then the store.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tacho_model::Clock;

use crate::access::Gate;
use crate::clock::SystemClock;
use crate::config::{Address, Config};
use crate::control::{self, Control, Unusable};
use crate::data_directory::Locked;
use crate::http::{self, App};
use crate::listen::native::{self, Native};
use crate::metrics::Metrics;
use crate::port::Port;
use crate::record_types::RecordTypes;
use crate::tls::{self, Tls, TlsError};
use crate::{access, notices, selfwatch, shutdown};

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {key} {address}: {source}")]
    Listen { key: &'static str, address: Address, source: std::io::Error },
    #[error("cannot open the data directory {data}: {source}")]
    Open { data: PathBuf, source: tacho_store::Error },
    #[error(transparent)]
    Rules(#[from] Unusable),
    #[error("cannot remove the file tokens.used of {data}: {source}")]
    Tokens { data: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("not all records could be flushed; the journal keeps them: {0}")]
    Close(tacho_store::Error),
    #[error("cannot watch for signals: {0}")]
    Signal(std::io::Error),
}

/// Open files besides connections: journals, segments, and a reserve.
const DESCRIPTORS_BESIDE: u64 = 1_024;

pub struct Listening {
    pub http: SocketAddr,
    pub records: SocketAddr,
}

/// Runs until the future returned by `signals` resolves. Calls `up` when the server listens. Calls `signals` when the store is
/// open. A signal before this call ends the process immediately.
pub async fn run<S: Future<Output = ()>>(
    config: Config,
    signals: impl FnOnce() -> std::io::Result<S>,
    up: impl FnOnce(Listening),
) -> Result<(), ServeError> {
    let tls = config.tls.clone().map(Tls::open).transpose()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let metrics = Arc::new(Metrics::default());
    let failed = |source| ServeError::Open { data: config.data.clone(), source };
    let locked = Locked::acquire(&config.data).map_err(failed)?;
    control::check(&config.data)?;
    let http_port = Port::reserve("http", config.http)?;
    let records_port = Port::reserve("records", config.records)?;
    let (store, _lock) = locked.open(config.history.options(), clock.clone()).await.map_err(failed)?;
    let gate = gate(&config, metrics.clone(), clock.clone())?;
    let control = Arc::new(Control::open(&config.data, metrics.clone())?);
    let stop = signals().map_err(ServeError::Signal)?;
    let (http_listener, http_address) = http_port.listener().await?;
    let (records_listener, records_address) = records_port.listener().await?;
    // `/api/status` shows the bound port, not 0.
    let config = Config { records: Address(records_address), ..config };
    let (trigger, shutdown) = shutdown::channel();
    let (connections_max, write_time_max) = (config.connections_max, config.request_time_max);
    raise_descriptors(connections_max);
    let record_types = Arc::new(RecordTypes::open(&config.data));
    let native = Native::new(store.clone(), metrics.clone(), clock.clone(), control.clone())
        .with_gate(gate.clone())
        .with_record_types(record_types.clone())
        .with_http(if tls.is_some() { "HTTPS" } else { "HTTP" }, http_address.port());
    let records = tokio::spawn(native::serve(
        (records_listener, tls.clone()),
        native,
        connections_max,
        shutdown.clone(),
    ));
    let of_notices = (store.clone(), record_types.clone(), clock.clone());
    let notices = tokio::spawn(notices::run(of_notices, config.history.options(), shutdown.clone()));
    let of_selfwatch = (store.clone(), metrics.clone(), clock.clone(), shutdown.clone());
    let watch = config.selfwatch.map(|interval| {
        let (store, metrics, clock, shutdown) = of_selfwatch;
        tokio::spawn(selfwatch::run(store, metrics, clock, interval, shutdown))
    });
    let doors = (tls.clone(), gate.clone());
    let app = App::new(config, store.clone(), metrics.clone(), clock.clone(), control, record_types, doors);
    let tokens = tokio::spawn(gate.watch(shutdown.clone()));
    let router = http::router(app);
    let http = tokio::spawn(http::serve(
        (http_listener, tls.clone()),
        router,
        (connections_max, write_time_max),
        metrics.clone(),
        shutdown.clone(),
    ));
    let certificates = tls.map(|tls| tokio::spawn(tls::watch(tls, metrics, clock, shutdown)));

    up(Listening { http: http_address, records: records_address });
    stop.await;
    tracing::info!("stopping");
    trigger.stop();
    // The results do not matter: a panic is already logged, and the other tasks stop anyway.
    let _ = tokio::join!(http, records, notices, tokens);
    for task in [watch, certificates].into_iter().flatten() {
        let _ = task.await;
    }
    store.stop().await.map_err(ServeError::Close)?;
    tracing::info!("stopped");
    Ok(())
}

/// Reads the tokens, and logs warnings about unsafe settings. If `without_tokens` is set, first removes the file `tokens.used`.
fn gate(config: &Config, metrics: Arc<Metrics>, clock: Arc<dyn Clock>) -> Result<Arc<Gate>, ServeError> {
    if config.without_tokens {
        let source = access::file::forget(&config.data);
        source.map_err(|source| ServeError::Tokens { data: config.data.clone(), source })?;
        tracing::warn!("without_tokens is set: if the file of tokens is missing, every client is admitted");
    }
    let gate = Gate::of(&config.data, metrics, clock);
    if config.is_exposed(gate.needs_tokens()) {
        tracing::warn!("{}", config.exposure(gate.needs_tokens()));
    }
    Ok(gate)
}

/// Raises the soft limit of open files so that all connections are possible. The soft limit is often 1,024, and the
/// hard limit is far higher.
fn raise_descriptors(connections_max: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = u64::try_from(connections_max)
        .unwrap_or(u64::MAX)
        .saturating_mul(2)
        .saturating_add(DESCRIPTORS_BESIDE);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(current) = current.filter(|current| *current < wanted) else { return };
    let raised = maximum.map_or(wanted, |most| most.min(wanted));
    let set = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum });
    if set.is_err() || raised < wanted {
        tracing::warn!(
            files_max = if set.is_ok() { raised } else { current },
            wanted,
            "the limit of open files is too low for all connections"
        );
    }
}
