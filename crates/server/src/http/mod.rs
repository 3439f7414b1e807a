//! The HTTP API: maps paths to handlers. `docs/api.md` describes it.
//!
//! Every request passes `guard.rs` (origin, credentials, limits, time, counts, headers). `error.rs` formats every error.

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
mod door;
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
mod queries;
mod records;
pub mod route;
mod running;
mod session;
mod snapshots;
mod status;
mod turn;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;

pub use app::App;
pub use listener::serve;
#[cfg(fuzzing)]
pub use listener::serve_stream;
use route::Route;

pub fn routes() -> Vec<Route> {
    let modules = [
        status::routes(),
        session::routes(),
        prometheus::routes(),
        executions::routes(),
        queries::routes(),
        write::routes(),
        import::routes(),
        export::routes(),
        entries::routes(),
        cardinality::routes(),
        matched::routes(),
        admin::routes(),
        snapshots::routes(),
        agents::routes(),
        probes::routes(),
        records::routes(),
        page::routes(),
    ];
    modules.into_iter().flatten().collect()
}

pub fn router(app: Arc<App>) -> Router {
    route::merge(routes())
        .fallback(page::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        // Bodies are read, and limited, in `admission.rs`.
        .layer(DefaultBodyLimit::disable())
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}

#[cfg(test)]
mod known_tests;
#[cfg(test)]
mod tests;
