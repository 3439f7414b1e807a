//! The server as a library: configuration, HTTP API, listeners, the embedded page; and the commands of `tacho`.
//!
//! Only this crate knows HTTP and JSON. `serve.rs` puts the parts together.

// First: the others write with its macros.
#[macro_use]
mod terminal;

pub mod client;
pub mod clock;
pub mod command;
pub mod config;
pub mod control;
pub mod decoding;
pub mod http;
pub mod inspect;
mod jvm;
pub mod listen;
pub mod metrics;
mod notices;
pub mod record_types;
mod replace;
mod room;
pub mod selfwatch;
pub mod serve;
pub mod shutdown;
mod svg;
pub mod transfer;
mod versioned;
