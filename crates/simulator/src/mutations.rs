//! Switches one deliberate fault on, and counts the seeds until it is found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tacho_store::disk::{Need, SyncPoint};
use tacho_store::mutation::Mutation;

use crate::run::{Totals, one};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Mutation(Mutation),
    /// A sync that is not done.
    Omitted(SyncPoint),
}

impl Fault {
    pub fn all() -> impl Iterator<Item = Self> {
        let mutations = Mutation::ALL.iter().copied().map(Self::Mutation);
        mutations.chain(SyncPoint::ALL.iter().copied().map(Self::Omitted))
    }

    pub fn name(self) -> String {
        match self {
            Self::Mutation(mutation) => format!("{mutation:?}"),
            Self::Omitted(point) => format!("{point:?}"),
        }
    }

    pub const fn need(self) -> Need {
        match self {
            Self::Mutation(_) => Need::Found,
            Self::Omitted(point) => point.need(),
        }
    }
}

pub struct Search {
    /// Number of seeds that were run until one found the fault; `None` if no seed found it.
    pub seeds: Option<u64>,
    /// The failure of the seed that found the fault; empty if no seed found it.
    pub failure: String,
}

/// Runs the simulation with one fault, for at most `seeds_max` seeds from `first` on, until a run fails.
pub fn search(fault: Fault, first: u64, seeds_max: u64) -> Search {
    let omitted = match fault {
        Fault::Mutation(mutation) => {
            Mutation::set(Some(mutation));
            None
        }
        Fault::Omitted(point) => Some(point),
    };
    let mut search = Search { seeds: None, failure: String::new() };
    for tried in 0..seeds_max {
        // A fault may also break an assertion of the store, which then panics.
        let run =
            catch_unwind(AssertUnwindSafe(|| one(first + tried, false, omitted, &mut Totals::default())));
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
