//! Switches one deliberate fault on, and counts the seeds until it is found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tacho_store::mutation::Mutation;

use crate::run::{Totals, one};

pub struct Search {
    pub mutation: Mutation,
    /// Number of seeds that were run until one found the fault; `None` if no seed found it.
    pub seeds: Option<u64>,
    /// The failure of the seed that found the fault; empty if no seed found it.
    pub failure: String,
}

/// Runs the simulation with one fault, for at most `seeds_max` seeds from `first` on, until a run fails.
pub fn search(mutation: Mutation, first: u64, seeds_max: u64) -> Search {
    Mutation::set(Some(mutation));
    let mut search = Search { mutation, seeds: None, failure: String::new() };
    for tried in 0..seeds_max {
        // A fault may also break an assertion of the store, which then panics.
        let run = catch_unwind(AssertUnwindSafe(|| one(first + tried, false, &mut Totals::default())));
        search.failure = match run {
            Ok(Ok(_)) => continue,
            Ok(Err(failure)) => failure.to_string(),
            Err(_) => "panic".to_owned(),
        };
        search.seeds = Some(tried + 1);
        break;
    }
    Mutation::set(None);
    search
}
