//! Measures how a service performs under load.
//!
//! [`run`] sends requests to a service over a fixed number of connections, for a duration or a number of requests. Each
//! connection sends its next request after the response to the previous one (a *closed* loop).
//! Every request has a unique id in `X-Request-Id`. The same 128 bits are the trace id in `traceparent`, so that records
//! of the client and of the server can be joined.
//!
//! [`calls`] generates the calls of a fleet of services.

pub mod calls;
mod closed;
mod ids;
mod mix;
mod report;

pub use closed::{Progress, Settings, Stop, run};
pub use ids::{RequestId, RequestIds};
pub use mix::{Mix, MixError, Template};
pub use report::{Failures, Report, TemplateReport};

/// The reason why a run could not start. Failures of single requests are counted in the [`Report`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot connect to {target}: {source}")]
    Connect { target: String, source: std::io::Error },
    #[error("target {0:?} is not HOST:PORT")]
    Target(String),
    #[error("{connections} connections: must be from 1 to {max}")]
    Connections { connections: usize, max: usize },
}
