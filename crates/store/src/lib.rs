//! The store keeps batches of records and returns the records of a time range: journal, memtable, drivers.
//!
//! ```text
//!            append                                      read
//!              |                                          |
//!     intake.rs, arrival.rs      checks                 read/
//!              |                                        /   \
//!         commit.rs -- journal/  durable               /     \
//!              |                                      /       \
//!        generation.rs -- memtable/  readable  <-----+         |
//!              |                                               |
//!          flush.rs -- seal/     encoded                       |
//!              |                                               |
//!    layer/* -- driver.rs        Driver::put           Driver::scan
//! ```
//!
//! At a start, `recover.rs` reads the journal, and puts the batches that were not flushed into memtables. `index/` maps labels
//! to series. `keys.rs` defines the keys of rows. `shared.rs` lists the parts and the lock order. Path of one record. Before:
//! `tacho_ingest` decoded its batch. After: `tacho_drivers` keeps its chunk.

#![deny(clippy::unwrap_used, clippy::indexing_slicing)]
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss
    )
)]

mod answer;
mod arrival;
mod assemble;
mod budget;
mod changes;
pub mod check;
mod coding;
mod commit;
pub mod conformance;
mod counters;
mod damage;
pub mod disk;
pub mod driver;
mod error;
mod evidence;
mod flush;
mod generation;
#[cfg(fuzzing)]
pub mod group;
#[cfg(not(fuzzing))]
mod group;
mod guarded;
mod in_flight;
mod index;
mod intake;
// Public for the fuzz targets only.
#[cfg(fuzzing)]
pub mod journal;
#[cfg(not(fuzzing))]
mod journal;
mod kept;
mod keys;
mod kinds;
pub mod layer;
pub mod lock;
pub mod memory;
mod memtable;
pub mod mutation;
mod options;
mod pages;
mod parts;
pub mod pin;
pub mod policy;
mod read;
mod recover;
mod refusal;
mod rollup;
mod scatter;
mod seal;
pub mod sectors;
mod sessions;
mod shared;
pub mod size;
mod spans;
mod stats;
mod store;
pub mod threads;
mod turns;
mod upkeep;
mod waiting;

/// The codec of keys and of rows of the Meta table, for the fuzz targets only.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::kept::{KeptKey, decode_until, summary as kept_summary};
    pub use crate::keys::{
        ChunkKey, StoreFact, clock_row, decode_session, decode_store_fact, flushed_row, identity_row,
        sequence_row, session_row, stored_row,
    };
    pub use crate::rollup::{Rollup, RollupKey, summary as rollup_summary};
    pub use crate::upkeep::fuzzing::{Lives, Tombstone, decode_life};
}

pub use answer::{Exactness, Piece, ReadReport, SampleAnswer, longest};
pub use arrival::{Appended, Origin, REFUSED_NAMED_MAX, Refused, RefusedSeries};
pub use changes::{Change, Changes};
pub use damage::{DAMAGES_NAMED_MAX, Damage, Damages, Read};
pub use driver::{Driver, PinnedFile, Row, Table};
pub use error::{Error, ErrorKind, Result};
pub use evidence::emptied;
pub use index::{Cardinality, Finder, LabelCost, Learned, Spellings, Unfound};
pub use journal::{format::file_generation, refuse_newer as refuse_newer_journals};
pub use keys::{CHUNK_SPAN_MAX_NS, STORE_VERSION};
pub use kinds::plural;
pub use memory::MemoryDriver;
pub use memtable::CHUNK_CALLS_MAX;
pub use options::{Options, draw_id};
pub use pin::Pinned;
pub use read::{ChunkInfo, Having, Needed, Steps, Summed, SummedOf};
pub use recover::incomplete;
pub use refusal::{Refusal, shortened};
pub use seal::CHUNK_VALUES_MAX;
pub use stats::{Stats, Stored};
pub use store::Store;
pub use upkeep::{ClockBounds, Deleted, Jump, MergeReport, UpkeepStats, since_boot};
pub use waiting::Waiter;
