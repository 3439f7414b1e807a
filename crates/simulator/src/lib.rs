//! Does every acknowledged record survive crashes and disk errors? The same seed gives the same run.
//!
//! ```text
//!   run.rs        many seeds, one after the other; counts and the first failure
//!   world.rs      one seed: agents, a recorder with its store, crashes
//!   scenario.rs   which step comes next
//!   sending.rs    how agents send frames             network.rs   connections to the recorder, cut after any byte
//!   check.rs      what is in the store, compared with the model of `tacho_store::conformance`
//!   damage.rs     damage of synced bytes: each loss must be reported
//!   survive.rs    more damage while the store works: all other records must survive
//!   directed.rs   short sequences of events that random steps rarely reach
//!   mutations.rs  deliberate faults, each of which must be found
//!   disk/         the disk: unsynced bytes and names may be lost, operations fail
//! ```
//! One thread does everything (`tacho_store::threads::Threads::One`), on a paused clock. Seed and program therefore
//! determine each operation of the disk. `cargo xtask simulate` starts the simulation (docs/simulation.md).

pub mod disk;

mod agent;
mod check;
mod damage;
mod directed;
#[cfg(feature = "mutations")]
pub mod mutations;
mod network;
mod run;
mod scenario;
mod sending;
mod survive;
mod world;

pub use run::{Failure, Plan, Totals, one, run};
