//! The HTTP API: maps paths to handlers. Described in `docs/api.md`.
//!
//! Every request passes `guard.rs` (limits, time, counts, headers). `error.rs` formats every error.

mod admin;
mod admission;
mod affected;
mod agents;
mod answers;
mod app;
mod body;
mod cardinality;
mod compress;
mod damage;
mod decoders;
mod entries;
mod error;
mod executions;
mod export;
mod guard;
mod held;
mod import;
mod listener;
mod matched;
mod origin;
mod paced;
mod page;
mod params;
mod probes;
mod prometheus;
mod records;
mod snapshots;
mod status;
mod turn;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;

pub use app::App;
pub use listener::serve;

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
        .merge(matched::routes())
        .merge(admin::routes())
        .merge(snapshots::routes())
        .merge(agents::routes())
        .merge(probes::routes())
        .merge(records::routes())
        .merge(page::routes())
        .fallback(page::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        // Bodies are read, and limited, in `admission.rs`.
        .layer(DefaultBodyLimit::disable())
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}

#[cfg(test)]
mod tests;
