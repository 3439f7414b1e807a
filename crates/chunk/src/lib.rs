//! How are records encoded into bytes, and how are bytes decoded into records? The chunk format is in
//! `docs/format/chunk.md`.
//!
//! Every chunk consists of columns of numbers or byte strings. [`codec`] and [`text`] choose how each column is encoded.
//! The modules for each kind of record define its columns:
//!
//! ```text
//!   semantic/ ──── group/ ────────┐
//!   entries.rs ──┬── builder.rs ──┼── codec/*.rs, text/*.rs      records -> bytes
//!   execution/ ──┘                │
//!     filter.rs, summary/
//!        chunk.rs ── header.rs ───┘                              bytes -> records
//! ```
//!
//! Path of one record. Before: `store/src/memtable/` collected it, and `store/src/seal/` passes it to this crate. After:
//! `Driver::put` stores the bytes. This crate does no I/O, reads no clock, and does not panic on bytes that it decodes.

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
mod filter;
mod group;
mod header;
pub mod limits;
mod loss;
pub mod pack;
mod role;
mod samples;
pub mod semantic;
mod stats;
mod summary;
mod text;
mod times;
pub mod tune;
mod values;
mod verify;

pub use check::Checked;
pub use chunk::Chunk;
pub use encoding::{Choice, CodecSet, Compression, Effort, Encoding};
pub use entries::encode_entries;
pub use error::Error;
pub use execution::{
    AttributeData, AttributeRef, BlockCallers, Call, Caller, ExecutionBlock, HTTP_STATUS, RowRef, Shape,
    Visit, Walker, encode_executions, encode_executions_with, find_callers, is_refused, part_gap,
};
pub use filter::{FilterInfo, Filters, REQUEST_ID};
pub use group::{GroupColumn, encode_group, encode_group_by};
pub use header::{ColumnInfo, Header, MemberInfo, Tables};
pub use loss::{Aggregate, Aggregation, Loss, Method, Tolerance};
pub use role::Role;
pub use samples::SampleColumns;
pub use stats::{Stats, Sum, Summary};
pub use summary::{
    Buckets, CallSummary, Cell, DURATION_BOUNDS_NS, Edge, Link, LinkSource, LoosePart, PartKey, Point,
    PointDurations, RequestClass, RequestSlot, SKETCH_ERROR, Sketch, StatusDurations, SummarizedChunk,
    SummaryInfo, bucket_count, bucket_of, bucket_range, bucket_value, duration_bucket,
};
pub use times::Times;
pub use values::{ValueColumn, Values};
