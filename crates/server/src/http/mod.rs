//! The HTTP API: which path is answered by which file. Described in `docs/api.md`.
//!
//! Every request passes `guard.rs` (bounds, times, counts, headers); every error leaves through `error.rs`.

mod admin;
mod admission;
mod affected;
mod agents;
mod body;
mod cardinality;
mod compress;
mod damage;
mod entries;
mod error;
mod executions;
mod export;
mod guard;
mod held;
mod import;
mod listener;
mod origin;
mod paced;
mod page;
mod params;
mod probes;
mod prometheus;
mod records;
mod status;
mod turn;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use tacho_model::{Clock, Timestamp};
use tacho_store::Store;
use tokio::sync::Semaphore;

use crate::config::Config;
use crate::control::Control;
use crate::decoding::Decoding;
use crate::metrics::Metrics;
use crate::record_types::RecordTypes;
pub use listener::serve;

/// Analyses of executions at the same time: each may hold a GiB and keeps one core busy.
const ANALYSES_MAX: usize = 2;

/// PromQL queries that are computed at the same time.
const QUERIES_MAX: usize = 8;

/// Merges and clean-ups that were asked for: one is carried out, one waits.
const MERGES_MAX: usize = 2;

/// What the handlers share.
pub struct App {
    pub config: Config,
    pub store: Arc<Store>,
    pub metrics: Arc<Metrics>,
    pub clock: Arc<dyn Clock>,
    pub control: Arc<Control>,
    pub record_types: Arc<RecordTypes>,
    pub started: Timestamp,
    /// One permit for each analysis of executions that is being computed; more wait their turn.
    analyses: Arc<Semaphore>,
    /// The same for PromQL.
    queries: Arc<Semaphore>,
    /// Turns and memory of writes.
    decoding: Decoding,
    /// The same for merges and clean-ups that were asked for, carried out or waiting.
    merges: Arc<Semaphore>,
    decoders: Arc<write::Decoders>,
    /// One permit for each request, from the end of its body until its answer is sent.
    permits: Arc<Semaphore>,
    names: origin::Names,
}

impl App {
    pub fn new(
        config: Config,
        store: Arc<Store>,
        metrics: Arc<Metrics>,
        clock: Arc<dyn Clock>,
        control: Arc<Control>,
        record_types: Arc<RecordTypes>,
    ) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(config.requests_max));
        let names = origin::Names::new(&config.allowed_hosts, config.http.is_loopback());
        let decoding = Decoding::new(config.decoding_bytes_max, config.body_bytes_max);
        Arc::new(Self {
            started: clock.now(),
            config,
            store,
            metrics,
            clock,
            control,
            record_types,
            analyses: Arc::new(Semaphore::new(ANALYSES_MAX)),
            queries: Arc::new(Semaphore::new(QUERIES_MAX)),
            decoding,
            merges: Arc::new(Semaphore::new(MERGES_MAX)),
            decoders: Arc::default(),
            permits,
            names,
        })
    }
}

pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .merge(status::routes())
        .merge(prometheus::routes())
        .merge(executions::routes())
        .merge(write::routes())
        .merge(import::routes())
        .merge(export::routes())
        .merge(entries::routes())
        .merge(cardinality::routes())
        .merge(admin::routes())
        .merge(agents::routes())
        .merge(probes::routes())
        .merge(records::routes())
        .merge(page::routes())
        .fallback(page::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        // Bodies are read, and bounded, in `admission.rs`.
        .layer(DefaultBodyLimit::disable())
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}
