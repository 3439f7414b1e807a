//! Roll-ups: sums of the summaries of many chunks of calls of one series.
//!
//! A question about a day of a busy service would read thousands of summaries. So the upkeep adds the summaries of 16 chunks and
//! stores the sum as a roll-up, and adds 16 such roll-ups again. When a day has ended, one roll-up sums up the whole day. A
//! reader uses the largest roll-ups that are within its range, and the summaries of the other chunks.
//!
//! ```text
//!   row.rs     the row of a roll-up, as bytes
//!   survey.rs  which chunks of a series are alive, and which roll-ups are valid
//!   plan.rs    which roll-ups to write next
//! ```
//! Path of one record. Before: `upkeep/rollups.rs` adds the summary of its chunk to a roll-up. After: `read/rolled.rs` reads it.
//!
//! **Validity.** A roll-up lists its chunks. It is valid if the reader sees each of these chunks, and no row replaces one of
//! them. So no change of a chunk must change a roll-up at the same time, and a crash cannot leave a roll-up with wrong figures: a
//! merge, an expiry or a repair gives the chunks other keys or removes them. The upkeep deletes invalid roll-ups later.

mod plan;
mod row;
mod survey;

pub use plan::{DAY_ITEMS_MIN, FAN, Item, Plan, plan};
#[cfg(test)]
pub use row::block_of_one_call;
pub use row::{
    DAY_LEVEL, RolledChunk, Rollup, RollupKey, day_of, delete_row, partition, range_of, row, row_scan,
    series_of, summary,
};
pub use survey::{Survey, heads, survey};
