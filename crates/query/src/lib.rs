//! How is a query answered? PromQL is parsed, planned and evaluated; executions are analysed. No I/O.
//!
//! A query never fetches data. [`promql`] returns the selectors and time ranges that the query needs; the caller (`server`)
//! reads the matching series from the store and passes them in. Step before: `server` receives the query. Step after:
//! `server` writes the answer as JSON.

mod cancel;
mod error;
pub mod executions;
pub mod promql;

pub use cancel::Cancel;
pub use error::{Error, ErrorKind, Place};
