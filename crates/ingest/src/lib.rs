//! Decodes the bytes of a protocol into a [`tacho_model::Batch`]. No sockets, no clock, no async.
//!
//! There is one module per protocol. Each answers "which records are in these bytes, and which of them are refused?". If
//! a record, line or row is refused, the others are kept. A malformed message is refused as a whole (`error.rs`). Path of
//! one record: `server/src/listen/` and `server/src/http/` pass the bytes; `store` takes the batch.

#![deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation))]

pub mod budget;
pub mod csv;
mod error;
pub mod json_lines;
mod json_text;
mod known;
pub mod line_protocol;
pub mod line_rows;
#[cfg(test)]
mod listed;
pub mod open_metrics;
#[cfg(feature = "parquet")]
pub mod parquet;
mod reader;
mod reject;
pub mod remote_write;
pub mod rows;
pub mod time_text;
pub mod wire;

pub use error::Error;
pub use reader::Flaw;
pub use reject::{REJECTS_NAMED_MAX, Rejects};
