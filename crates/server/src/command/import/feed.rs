//! Files in, pieces out: reading, decoding, counting and cutting, on a thread of its own.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tacho_model::Batch;
use tokio::sync::mpsc::Sender;

use super::Reading;
use super::formats::{Formats, Learned, Opened};
use super::ledger::Ledger;
use super::report::Findings;
use super::source::Source;
use crate::command::Failure;
use crate::transfer::frames;
use crate::transfer::tally::Tally;

/// A part of a file that is sent as one.
pub struct Piece {
    /// From 1, over all files.
    pub seq: u64,
    pub batch: Batch,
    pub file: PathBuf,
    /// Where its block ends in the unpacked file.
    pub offset: u64,
    /// Of all pieces up to the end of its block.
    pub samples: Tally,
    pub entries: Tally,
}

/// What a run of the feed needs.
pub struct Feed {
    pub files: Vec<PathBuf>,
    pub formats: Formats,
    pub rejects: Option<PathBuf>,
    /// Bytes of files read, as they lie on the disk.
    pub read: Arc<AtomicU64>,
    /// Set by whoever wants it to end early.
    pub stop: Arc<AtomicBool>,
}

/// What came of it.
#[derive(Default)]
pub struct Outcome {
    pub ledger: Ledger,
    pub findings: Findings,
    /// Not all was read, because of `stop` or because nobody takes pieces any more.
    pub stopped: bool,
}

impl Feed {
    /// For whoever only looks at files; records without a time get 1970.
    pub fn of(files: Vec<PathBuf>, reading: Reading) -> Self {
        let formats = Formats { format: None, reading, now: 0 };
        Self { files, formats, rejects: None, read: Arc::default(), stop: Arc::default() }
    }

    /// Reads all files; hands every batch to `sink` with the file and the offset behind it, until that says no.
    pub fn each(
        &self,
        findings: &mut Findings,
        mut sink: impl FnMut(Batch, &PathBuf, u64) -> bool,
    ) -> Result<bool, Failure> {
        let mut rejects = match &self.rejects {
            Some(path) => {
                Some((path, BufWriter::new(File::create(path).map_err(|e| cannot_write(path, &e))?)))
            }
            None => None,
        };
        let mut learned = Learned::default();
        for file in &self.files {
            let mut source = Source::open(file, Arc::clone(&self.read))?;
            let Opened { mut rows, description, doubts, rows_before } =
                self.formats.open(file, &mut source, &mut learned)?;
            findings.file(file, description, doubts);
            let mut before = rows_before;
            while let Some(block) = source.block(&*rows)? {
                let decoded = rows.decode(&block, before);
                before += decoded.rows;
                if let Some((path, writer)) = &mut rejects {
                    for broken in &decoded.broken {
                        let row = &block[broken.bytes.clone()];
                        let end: &[u8] = if row.ends_with(b"\n") { b"" } else { b"\n" };
                        let written = writer.write_all(row).and_then(|()| writer.write_all(end));
                        written.map_err(|e| cannot_write(path, &e))?;
                    }
                }
                findings.block(file, &decoded);
                if self.stop.load(Ordering::Relaxed) || !sink(decoded.batch, file, source.offset) {
                    return Ok(false);
                }
            }
        }
        match rejects {
            Some((path, mut writer)) => writer.flush().map(|()| true).map_err(|e| cannot_write(path, &e)),
            None => Ok(true),
        }
    }

    /// Cuts everything into pieces and sends them off.
    pub fn run(&self, to: &Sender<Piece>) -> Result<Outcome, Failure> {
        let (mut ledger, mut findings) = (Ledger::default(), Findings::default());
        let mut seq = 0;
        let ended = self.each(&mut findings, |batch, file, offset| {
            ledger.take(&batch);
            let (samples, entries) = (ledger.samples, ledger.entries);
            frames::pieces(batch).into_iter().all(|batch| {
                seq += 1;
                let file = file.clone();
                to.blocking_send(Piece { seq, batch, file, offset, samples, entries }).is_ok()
            })
        })?;
        Ok(Outcome { ledger, findings, stopped: !ended })
    }
}

fn cannot_write(path: &std::path::Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}
