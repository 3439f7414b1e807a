//! How does a service behave under load?
//!
//! [`run`] drives a service with a fixed number of connections, each with one request in flight, a new one on each
//! answer (a *closed* loop; mode B of the scaling study), for a time or for a number of requests. Every request has
//! an id of its own in `X-Request-Id` and the same 128 bits as trace id in `traceparent`, so that the client's and
//! the server's view of the same request can be joined.

mod closed;
mod ids;
mod mix;
mod report;

pub use closed::{Progress, Settings, Stop, run};
pub use ids::{RequestId, RequestIds};
pub use mix::{Mix, MixError, Template};
pub use report::{Failures, Report, TemplateReport};

/// Why a load run could not be done at all. What goes wrong with single requests is counted in the [`Report`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot connect to {target}: {source}")]
    Connect { target: String, source: std::io::Error },
    #[error("target {0:?} is not HOST:PORT")]
    Target(String),
    #[error("{connections} connections: between 1 and {max} are possible")]
    Connections { connections: usize, max: usize },
}
