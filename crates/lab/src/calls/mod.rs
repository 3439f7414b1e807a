//! Which calls does a fleet of web services make? Traces by seed, for measurements with many calls.
//!
//! Thirty services in three layers serve requests (`fleet.rs`). A trace begins at a service of the first layer, and has 5 to 200
//! calls, usually of several services: methods, statements, and requests to services of the next layer (`trace.rs`). Some calls
//! fail, and some requests are refused. Some trace ids and parents come from tracers outside of the fleet. [`Sender`] sends the
//! traces as agents do, over the native protocol; [`rows`] writes the same calls as CSV, for the peers in `bench/scale`. The seed
//! and [`When`] determine all calls and times. The system that receives the calls has no influence on them.

mod fleet;
mod rows;
mod send;
mod trace;

pub use fleet::{Fleet, Service};
pub use rows::{HEADER, rows};
pub use send::{SendError, Sender};
pub use trace::{AttributeKey, AttributeText, Segment, Trace, Traces, When};
