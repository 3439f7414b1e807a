//! Which traces come first in the order of a search? Memory is bounded by the number of traces that are kept.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use tacho_model::{Timestamp, TraceId};

use super::found::Match;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Newest,
    Oldest,
    Slowest,
    Fastest,
}

impl Order {
    pub const ALL: [Self; 4] = [Self::Newest, Self::Oldest, Self::Slowest, Self::Fastest];

    /// Name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
            Self::Slowest => "slowest",
            Self::Fastest => "fastest",
        }
    }

    /// The trace with the larger key comes first. Of traces with equal times or durations, the smaller id has the larger key.
    pub(super) fn key(self, start: Timestamp, duration_ns: u64, trace: TraceId) -> Key {
        (self.rank(start, duration_ns), Reverse(trace))
    }

    /// The first part of a key. The call with the higher rank comes first.
    pub(super) const fn rank(self, start: Timestamp, duration_ns: u64) -> u64 {
        // Flipping the sign bit keeps the order of times.
        let start = start.cast_unsigned() ^ (1 << 63);
        match self {
            Self::Newest => start,
            Self::Oldest => !start,
            Self::Slowest => duration_ns,
            Self::Fastest => !duration_ns,
        }
    }
}

pub(super) type Key = (u64, Reverse<TraceId>);

/// The best traces that were offered. A trace counts with its best key. Of its calls with this key, the earliest is kept, so that
/// the result does not depend on the order of the offers.
pub(super) struct Top {
    max: usize,
    keys: BTreeSet<Key>,
    traces: HashMap<TraceId, (Key, Option<Match>)>,
    /// Whether a trace is missing: it was offered but not kept, or it may exist but was not offered.
    is_cut: bool,
}

impl Top {
    pub(super) fn new(max: usize) -> Self {
        Self { max, keys: BTreeSet::new(), traces: HashMap::new(), is_cut: false }
    }

    pub(super) fn offer(&mut self, key: Key, found: impl FnOnce() -> Option<Match>) {
        let (_, Reverse(trace)) = key;
        match self.traces.get(&trace) {
            Some((known, _)) if *known > key => return,
            Some((known, matched)) if *known == key => {
                let found = found();
                if is_earlier(found.as_ref(), matched.as_ref()) {
                    self.traces.insert(trace, (key, found));
                }
                return;
            }
            Some((known, _)) => {
                self.keys.remove(known);
            }
            None if self.traces.len() < self.max => {}
            None => {
                self.is_cut = true;
                match self.keys.first().copied().filter(|worst| *worst < key) {
                    Some(worst) => {
                        self.keys.remove(&worst);
                        self.traces.remove(&worst.1.0);
                    }
                    None => return,
                }
            }
        }
        self.keys.insert(key);
        self.traces.insert(trace, (key, found()));
    }

    /// Whether calls may be kept if their highest rank is `rank`.
    pub(super) fn may_take(&self, rank: u64) -> bool {
        self.traces.len() < self.max || self.keys.first().is_none_or(|(worst, _)| *worst <= rank)
    }

    /// Notes that some calls were not offered, because their keys are worse than all kept keys.
    pub(super) const fn cut(&mut self) {
        self.is_cut = true;
    }

    pub(super) fn traces(&self) -> impl Iterator<Item = TraceId> {
        self.traces.keys().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.traces.is_empty()
    }

    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The worst key that is kept, if a trace is missing. No missing trace has a better key.
    pub(super) fn threshold(&self) -> Option<Key> {
        self.keys.first().copied().filter(|_| self.is_cut)
    }

    /// The best key with which a trace was offered, and the call that was offered with this key.
    pub(super) fn found(&self, trace: TraceId) -> Option<&(Key, Option<Match>)> {
        self.traces.get(&trace)
    }
}

/// Whether `new` comes before `old` by its start, and then by its names.
fn is_earlier(new: Option<&Match>, old: Option<&Match>) -> bool {
    new.zip(old).is_some_and(|(new, old)| {
        (new.start, &new.service, &new.operation) < (old.start, &old.service, &old.operation)
    })
}
