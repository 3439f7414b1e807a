//! In which traces does every segment have a parent? The segment that started such a trace is not known, so the earliest known
//! segment is the entry (`found.rs`).

use tacho_model::TraceId;

use super::fold::Rounds;

/// The traces with segments that have a parent, as hashes of 64 bits.
pub(super) struct Parented {
    hashes: Vec<u64>,
    rooted: Vec<bool>,
    rounds: Rounds,
    max: usize,
    /// Number of hashes at which duplicates are removed. If more than `max` are left, the share of the round is halved.
    full: usize,
}

impl Parented {
    pub(super) fn new(max: usize) -> Self {
        Self { hashes: vec![], rooted: vec![], rounds: Rounds::default(), max, full: max }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Starts the next round. Returns whether there is one.
    pub(super) fn next_round(&mut self) -> bool {
        self.hashes.clear();
        self.rooted.clear();
        self.rounds.next()
    }

    pub(super) fn insert(&mut self, trace: TraceId) {
        let hash = trace.hash64();
        if self.hashes.len() >= self.full {
            self.sort();
            while self.hashes.len() > self.max && self.rounds.split() {
                let rounds = self.rounds;
                self.hashes.retain(|hash| rounds.takes_hash(*hash));
            }
            self.full = (2 * self.hashes.len()).max(self.max);
        }
        // The segments of a trace often follow each other.
        if self.rounds.takes_hash(hash) && self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Must be called after the last insertion of a round.
    pub(super) fn seal(&mut self) {
        self.sort();
        self.rooted = vec![false; self.hashes.len()];
    }

    fn sort(&mut self) {
        self.hashes.sort_unstable();
        self.hashes.dedup();
    }

    /// Notes that the trace has a segment without a parent.
    pub(super) fn root(&mut self, trace: TraceId) {
        if let Ok(at) = self.hashes.binary_search(&trace.hash64()) {
            self.rooted[at] = true;
        }
    }

    pub(super) fn lacks_root(&self, trace: TraceId) -> bool {
        self.hashes.binary_search(&trace.hash64()).is_ok_and(|at| !self.rooted[at])
    }

    pub(super) fn all_have_roots(&self) -> bool {
        self.rooted.iter().all(|rooted| *rooted)
    }
}
