//! How are records encoded into bytes, and bytes decoded into records? The chunk format (`docs/format/chunk.md`).
//!
//! Everything is a column of numbers or of byte strings. [`codec`] and [`text`] choose how each is encoded; the modules
//! above them define the columns of each kind of record:
//!
//! ```text
//!   semantic/ ──── group/ ────────┐
//!   entries.rs ──┬── builder.rs ──┼── codec/*.rs, text/*.rs      records -> bytes
//!   execution/ ──┘                │
//!        chunk.rs ── header.rs ───┘                              bytes -> records
//! ```
//!
//! Path of one record: before, `store/src/memtable/` collected it and `store/src/seal/` hands it over; after,
//! `Driver::put` stores the bytes.
//! Nothing here does I/O, reads a clock, or panics on bytes to decode.

#![deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation))]

mod bits;
mod builder;
mod bytes;
mod check;
mod chunk;
mod codec;
mod columns;
mod encoding;
mod entries;
mod error;
mod execution;
mod group;
mod header;
pub mod limits;
mod loss;
pub mod pack;
mod role;
mod samples;
pub mod semantic;
mod stats;
mod text;
mod times;
pub mod tune;
mod values;
mod verify;

pub use chunk::Chunk;
pub use encoding::{Choice, CodecSet, Compression, Effort, Encoding};
pub use entries::encode_entries;
pub use error::Error;
pub use execution::{
    AttributeData, AttributeRef, Call, ExecutionBlock, RowRef, Shape, encode_executions,
    encode_executions_with,
};
pub use group::{GroupColumn, encode_group, encode_group_by};
pub use header::{ColumnInfo, Header, MemberInfo, Tables};
pub use loss::{Aggregate, Aggregation, Loss, Method, Tolerance};
pub use role::Role;
pub use samples::SampleColumns;
pub use stats::{Stats, Sum, Summary};
pub use times::Times;
pub use values::{ValueColumn, Values};
