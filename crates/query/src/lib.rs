//! Parse, plan, evaluate: PromQL, and the analyses of executions. No I/O.
//!
//! A query never fetches: [`promql`] says which series and times it needs, the caller (`server`) reads them
//! from the store and hands them in. Step before: `server`, which takes the question; step after: `server`
//! again, which writes the answer as JSON.

mod cancel;
mod error;
pub mod executions;
pub mod promql;

pub use cancel::Cancel;
pub use error::{Error, ErrorKind};
