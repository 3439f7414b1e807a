//! Which traces come first in the order of a search, or first after the traces of earlier pages? Memory is bounded by the number
//! of traces that are kept.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use tacho_model::{Timestamp, TraceId};

use super::found::Match;
use super::limits::Incomplete;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
    earlier: Option<Earlier>,
}

/// The traces of earlier pages.
struct Earlier {
    /// The key of the last one. Better keys and this one are not kept.
    last: Key,
    /// Those that were offered with such a key, if a trace counts with its best key.
    traces: Option<HashSet<TraceId>>,
    /// Limit on `traces`.
    max: usize,
    /// Whether a trace that was kept turned out to be one of them, after another trace was not kept because of it.
    has_displaced: bool,
    /// Whether the search was started again for this reason. Then `traces` has all of them, up to `max`.
    is_restarted: bool,
    /// Number of offers of traces that are not in `traces` because of `max`.
    omitted: u64,
}

impl Top {
    pub(super) fn new(max: usize) -> Self {
        Self { max, keys: BTreeSet::new(), traces: HashMap::new(), is_cut: false, earlier: None }
    }

    /// Keeps only keys that are worse than `last`. If `max` is given, also refuses a trace that is offered with a better key,
    /// now or later, for at most `max` traces.
    pub(super) fn after(self, last: Option<Key>, max: Option<usize>) -> Self {
        let earlier = |last| Earlier {
            last,
            traces: max.map(|_| HashSet::new()),
            max: max.unwrap_or(0),
            has_displaced: false,
            is_restarted: false,
            omitted: 0,
        };
        Self { earlier: last.map(earlier), ..self }
    }

    /// If a trace of an earlier page may have displaced another one: removes all traces except from the list of those of earlier
    /// pages, and returns `true`. Then all calls must be offered again.
    pub(super) fn restart(&mut self) -> bool {
        let Some(earlier) = self.earlier.as_mut() else { return false };
        let is_needed = earlier.has_displaced && !earlier.is_restarted;
        if is_needed {
            earlier.is_restarted = true;
            earlier.omitted = 0;
            self.keys.clear();
            self.traces.clear();
            self.is_cut = false;
        }
        is_needed
    }

    /// Whether the trace is one of an earlier page. Notes it if `key` shows this.
    fn is_earlier_page(&mut self, key: Key) -> bool {
        let (_, Reverse(trace)) = key;
        let Some(earlier) = self.earlier.as_mut() else { return false };
        if key < earlier.last {
            return earlier.traces.as_ref().is_some_and(|traces| traces.contains(&trace));
        }
        if let Some(traces) = earlier.traces.as_mut() {
            if traces.len() < earlier.max {
                traces.insert(trace);
            } else if !traces.contains(&trace) {
                earlier.omitted += 1;
            }
            if let Some((key, _)) = self.traces.remove(&trace) {
                self.keys.remove(&key);
                earlier.has_displaced |= self.is_cut;
            }
        }
        true
    }

    pub(super) fn incomplete(&self) -> Option<Incomplete> {
        let earlier = self.earlier.as_ref().filter(|earlier| earlier.omitted > 0)?;
        Some(Incomplete::Pages { omitted: earlier.omitted, limit: earlier.max })
    }

    pub(super) fn offer(&mut self, key: Key, found: impl FnOnce() -> Option<Match>) {
        let (_, Reverse(trace)) = key;
        if self.is_earlier_page(key) {
            return;
        }
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
