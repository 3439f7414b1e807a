//! The server as a library: configuration, HTTP API, listeners, the embedded page.
//!
//! Only this crate knows HTTP as a server. `serve.rs` puts the parts together; `crates/cli` runs it, and uses `data_directory`,
//! `read`, `inspect` and `cardinality` where a command opens a data directory itself.

pub mod cardinality;
pub mod check;
pub mod clock;
pub mod config;
pub mod control;
pub mod data_directory;
pub mod decoding;
pub mod http;
pub mod inspect;
pub mod listen;
pub mod metrics;
mod notices;
pub mod read;
pub mod record_types;
pub mod repair;
mod room;
pub mod selfwatch;
pub mod serve;
pub mod shutdown;
pub mod tls;
mod versioned;
