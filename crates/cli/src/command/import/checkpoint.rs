//! Where an import can be taken up without reading the part before it again: a place in a file, and all that was found
//! out and counted up to there.
//!
//! The state (`state.rs`) is small and says what the store has; a checkpoint is as large as the import has series, is
//! written less often, and is never ahead of the state. Without one, files are read again from their beginning.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::blocks::Mark;
use super::findings::Findings;
use super::formats::Learned;
use super::ledger::{Entry, Ledger};
use super::state::State;

/// The first line of the file, and behind it the checksum of the rest.
const MAGIC: &str = "tacho-import-checkpoint 1 ";
/// Series of a ledger that is still written, of about 200 bytes each.
const SERIES_MAX: usize = 200_000;
/// How often one is made, at most.
pub const EVERY: Duration = Duration::from_millis(250);
/// One is made when what the last one took is so small a part of the time since.
const COST: u32 = 50;

/// What reading goes on from.
#[derive(Serialize, Deserialize)]
pub struct Checkpoint {
    /// Of the state that it belongs to.
    pub job: String,
    pub session: String,
    /// The last piece before it.
    pub seq: u64,
    pub start: Start,
    pub findings: Findings,
    ledger: Vec<Entry>,
}

/// A place among the files.
#[derive(Clone, Serialize, Deserialize)]
pub struct Start {
    /// Which of the files, from 0.
    pub file: usize,
    pub mark: Mark,
    /// What files before this one had taught.
    pub learned: Learned,
    /// The file of broken rows, and its length.
    pub rejects: Option<(PathBuf, u64)>,
}

impl Checkpoint {
    /// As bytes of a file.
    pub fn encode(
        state: (&str, &str, u64),
        start: Start,
        findings: &Findings,
        ledger: &Ledger,
    ) -> Option<Vec<u8>> {
        let (job, session, seq) = state;
        let (job, session) = (job.to_owned(), session.to_owned());
        let (findings, ledger) = (findings.clone(), ledger.entries());
        let text = serde_json::to_string(&Self { job, session, seq, start, findings, ledger }).ok()?;
        Some(format!("{MAGIC}{:016x}\n{text}", xxh3_64(text.as_bytes())).into_bytes())
    }

    /// `None` where it is damaged or of another import: then everything is read again.
    pub fn decode(bytes: &[u8], state: &State, rejects: Option<&Path>) -> Option<Self> {
        let (head, text) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
        let sum = u64::from_str_radix(head.strip_prefix(MAGIC)?, 16).ok()?;
        if sum != xxh3_64(text.as_bytes()) {
            return None;
        }
        let read: Self = serde_json::from_str(text).ok()?;
        let fits = read.job == state.job && read.session == state.session && read.seq <= state.seq;
        (fits && read.start.has_rejects(rejects)).then_some(read)
    }

    /// What was counted up to it.
    pub fn ledger(&self) -> Ledger {
        Ledger::of(&self.ledger)
    }
}

impl Start {
    /// The broken rows of what lies before have to be where they are to be now.
    fn has_rejects(&self, wanted: Option<&Path>) -> bool {
        match (wanted, &self.rejects) {
            (None, _) => true,
            (Some(wanted), Some((path, bytes))) => {
                wanted == path && std::fs::metadata(path).is_ok_and(|file| file.len() >= *bytes)
            }
            (Some(_), None) => false,
        }
    }
}

/// Says when one is due.
pub struct Pace {
    every: Duration,
    made: Instant,
    cost: Duration,
}

impl Pace {
    /// Nought makes one whenever there may be one.
    pub fn new(every: Duration) -> Self {
        Self { every, made: Instant::now(), cost: Duration::ZERO }
    }

    /// Makes one if it is due.
    pub fn make<T>(&mut self, series: usize, make: impl FnOnce() -> Option<T>) -> Option<T> {
        let wait = if self.every.is_zero() { self.every } else { self.every.max(self.cost * COST) };
        if series > SERIES_MAX || self.made.elapsed() < wait {
            return None;
        }
        let begun = Instant::now();
        let made = make();
        (self.made, self.cost) = (Instant::now(), begun.elapsed());
        made
    }
}
