//! Does the store keep its promises on a disk that forgets? The same seed gives the same run.
//!
//! ```text
//!   run.rs      many seeds, one after the other; counts and the first failure
//!   world.rs    one seed: agents, a store, crashes           scenario.rs   which step comes next
//!   check.rs    what is in the store, compared with the model of `tacho_store::conformance`
//!   mutations.rs  deliberate faults of the store, each of which must be found
//!   harm.rs     damage of synced bytes: each loss must be reported
//!   disk/       the disk: unsynced bytes and names may be lost, operations fail
//! ```
//! One thread does everything (`tacho_store::threads::Threads::One`), on a paused clock. Seed and program therefore
//! determine each operation of the disk. `cargo xtask simulate` starts it (CONTRIBUTING.md).

pub mod disk;

mod agent;
mod check;
mod harm;
#[cfg(feature = "mutations")]
pub mod mutations;
mod run;
mod scenario;
mod world;

pub use run::{Failure, Plan, Totals, one, run};
