//! The server as a library: configuration, HTTP API, listeners, the embedded page.
//!
//! This is the only crate that serves HTTP. `serve.rs` starts all parts. The commands of `crates/cli` that need no server use
//! `data_directory`, `read`, `inspect`, `cardinality`, `check` and `repair`.

pub mod access;
pub mod cardinality;
pub mod check;
pub mod clock;
pub mod config;
mod connection_limit;
pub mod control;
pub mod data_directory;
pub mod decoding;
pub mod http;
pub mod inspect;
pub mod listen;
pub mod metrics;
mod notices;
mod port;
pub mod read;
mod received;
pub mod record_types;
pub mod repair;
mod seldom;
pub mod selfwatch;
pub mod serve;
pub mod shutdown;
pub mod snapshots;
pub mod tls;
mod upgrade;
mod versioned;
mod watched;

/// The readers of the files `tokens`, `probes.json` and `record_types.json`, for the fuzz targets only.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::access::file::read_again as tokens;
    pub use crate::control::file::read_again as rules;
    pub use crate::record_types::file::read_again as record_types;
}
