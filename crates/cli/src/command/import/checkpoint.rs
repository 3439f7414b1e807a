//! A checkpoint: a position in the files, with all counts and findings up to this position. An import that resumes from a
//! checkpoint does not decode the records before this position again. Only a compressed file is decompressed up to it.
//!
//! The state (`state.rs`) is small and has the number of the last stored piece (the records of one request). A checkpoint grows
//! with the number of series, so a large checkpoint is written less often than the state. A checkpoint is never ahead of the
//! state. Without a checkpoint, the files are read again from the beginning.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::blocks::Mark;
use super::findings::Findings;
use super::formats::Learned;
use super::ledger::{Entry, Ledger};
use super::state::State;

/// The beginning of the first line of the file. The rest of this line is the checksum of the other lines.
const MAGIC: &str = "tacho-import-checkpoint 1 ";
/// Limit on the series of a checkpoint. Each takes about 200 bytes. With more series, no checkpoint is written.
const SERIES_MAX: usize = 200_000;
/// Minimum interval between checkpoints.
pub const EVERY: Duration = Duration::from_millis(250);
/// Minimum interval between checkpoints, as a multiple of the time that the last checkpoint took.
const COST: u32 = 50;

#[derive(Serialize, Deserialize)]
pub struct Checkpoint {
    /// Identifies the import to which the checkpoint belongs ([`State::job`]).
    pub job: String,
    pub session: String,
    /// Number of the last piece before the checkpoint.
    pub seq: u64,
    pub start: Start,
    pub findings: Findings,
    ledger: Vec<Entry>,
}

/// The position at which reading resumes.
#[derive(Clone, Serialize, Deserialize)]
pub struct Start {
    /// Index of the file, from 0.
    pub file: usize,
    pub mark: Mark,
    /// Settings that were detected in earlier files.
    pub learned: Learned,
    /// The file of broken rows, and its length at the checkpoint.
    pub rejects: Option<(PathBuf, u64)>,
}

impl Checkpoint {
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

    /// `None` if the checkpoint is damaged, belongs to another import, or is ahead of the state, or if the file of broken rows
    /// does not match. Then all files are read again.
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

    pub fn ledger(&self) -> Ledger {
        Ledger::of(&self.ledger)
    }
}

impl Start {
    /// Whether the requested file of broken rows, if any, has at least the length that it had at the checkpoint.
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

/// Decides when a checkpoint is due.
pub struct Pace {
    every: Duration,
    made: Instant,
    cost: Duration,
}

impl Pace {
    /// `every` is the minimum interval. If it is zero, a checkpoint is always due.
    pub fn new(every: Duration) -> Self {
        Self { every, made: Instant::now(), cost: Duration::ZERO }
    }

    /// Makes a checkpoint if it is due.
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
