//! Merges rows of one partition into fewer rows with the same records. Pure functions; one file for each kind of record.
//!
//! ```text
//!   samples.rs      columns of members: selects values (picks.rs), downsamples old ones
//!   lossy.rs        cuts columns into chunks, reduces precision as rules permit
//!   entries.rs      entries sorted by time; equal times in order of arrival
//!   executions.rs   segments in larger blocks; short segments by day
//! ```
//! Masked and expired records are dropped. `rows.rs` defines the inputs and outputs of all merges.

mod columns;
mod entries;
mod executions;
mod lossy;
mod picks;
mod rows;
mod samples;

use tacho_chunk::semantic::Movement;
use tacho_model::{Kind, Timestamp};

pub use rows::{Cutting, Made, Merged, Source, Treatment, Unreadable, end_of_step};

/// Merges the records of `sources` up to and including `until`. Later records stay unchanged. Executions are merged
/// completely: no merge of them ends inside a row. `members` has one treatment for each member of the group. `lives` has
/// what earlier merges counted for each member (`lives.rs`).
pub fn merge(
    kind: Kind,
    sources: &[Source],
    members: &[Treatment],
    lives: &[Movement],
    until: Timestamp,
    cutting: &Cutting,
) -> Result<Merged, Unreadable> {
    let one = members.first().cloned().unwrap_or_default();
    match kind {
        Kind::Sample => samples::merge(sources, members, lives, until, cutting),
        Kind::Entry => entries::merge(sources, &one, until, cutting),
        Kind::Execution => executions::merge(sources, &one),
    }
}
