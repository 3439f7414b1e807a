//! The HTTP API: which path is answered by which file. Described in `docs/api.md`.
//!
//! Every request passes `guard.rs` (bounds, times, counts, headers); every error leaves through `error.rs`.

mod body;
mod compress;
mod error;
mod executions;
mod guard;
pub mod json;
mod listener;
mod origin;
mod page;
mod params;
mod prometheus;
mod status;
mod stored;
pub mod time;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use tacho_model::{Clock, Timestamp};
use tacho_store::Store;
use tokio::sync::Semaphore;

use crate::config::Config;
use crate::metrics::Metrics;
pub use listener::serve;

/// Largest body of a query's form, bytes: far above any PromQL a person or Grafana writes.
const FORM_BYTES_MAX: usize = 1 << 20;

/// Analyses of executions at the same time: each may hold a GiB and keeps one core busy.
const ANALYSES_MAX: usize = 2;

/// What the handlers share.
pub struct App {
    pub config: Config,
    pub store: Arc<Store>,
    pub metrics: Arc<Metrics>,
    pub clock: Arc<dyn Clock>,
    pub started: Timestamp,
    stored: stored::Stored,
    /// One permit for each analysis of executions that is being computed; more wait their turn.
    analyses: Semaphore,
    /// One permit for each request that is being served.
    permits: Semaphore,
}

impl App {
    pub fn new(config: Config, store: Arc<Store>, metrics: Arc<Metrics>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let permits = Semaphore::new(config.requests_max);
        Arc::new(Self {
            started: clock.now(),
            config,
            store,
            metrics,
            clock,
            stored: stored::Stored::default(),
            analyses: Semaphore::new(ANALYSES_MAX),
            permits,
        })
    }
}

pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .merge(status::routes())
        .merge(prometheus::routes())
        .merge(executions::routes())
        .merge(write::routes())
        .merge(page::routes())
        .fallback(page::not_found)
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}
