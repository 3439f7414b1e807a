//! Reads files, decodes and counts their records, and cuts the records into pieces. An import does this on a separate thread.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tacho_api::tally::Tally;
use tacho_model::Batch;
use tokio::sync::mpsc::Sender;

use super::Reading;
use super::blocks::{Blocks, Part};
use super::checkpoint::{self, Checkpoint, Pace, Start};
use super::findings::Findings;
use super::formats::{Formats, Learned, Opened};
use super::ledger::Ledger;
use super::state::State;
use crate::command::import::frames;
use crate::failure::Failure;

/// A part of a file that is sent as one request.
pub struct Piece {
    /// Number of the piece, from 1, over all files.
    pub seq: u64,
    pub batch: Batch,
    pub file: PathBuf,
    /// Position after the piece's block, as [`Blocks::offset`] counts it.
    pub offset: u64,
    /// Tally (count and checksum) of all pieces up to the end of the piece's block.
    pub samples: Tally,
    pub entries: Tally,
    /// The checkpoint to save when this piece is stored.
    pub checkpoint: Option<Vec<u8>>,
}

pub struct Feed {
    pub files: Vec<PathBuf>,
    pub formats: Formats,
    pub rejects: Option<PathBuf>,
    /// Bytes read or skipped in the files, before decompression, for the progress bar.
    pub read: Arc<AtomicU64>,
    /// Set to end the feed early.
    pub stop: Arc<AtomicBool>,
    pub checkpoint_every: Duration,
}

#[derive(Default)]
pub struct Outcome {
    pub ledger: Ledger,
    pub findings: Findings,
    /// Whether reading ended early, because of `stop` or because the receiver closed the channel.
    pub stopped: bool,
}

/// A block, and the reading position after it.
pub struct Step<'a> {
    pub batch: Batch,
    pub file: &'a Path,
    number: usize,
    blocks: &'a dyn Blocks,
    /// Settings detected before this file.
    learned: &'a Learned,
    findings: &'a Findings,
    rejects: Option<(&'a Path, u64)>,
}

impl Step<'_> {
    fn start(&self) -> Option<Start> {
        let mark = self.blocks.mark()?;
        let rejects = self.rejects.map(|(path, bytes)| (path.to_owned(), bytes));
        Some(Start { file: self.number, mark, learned: self.learned.clone(), rejects })
    }
}

impl Feed {
    /// A feed that detects the format of each file and does not keep broken rows. Records without a time get the time 0 (1970).
    pub fn of(files: Vec<PathBuf>, reading: Reading) -> Self {
        let formats = Formats { format: None, reading, now: 0 };
        let (rejects, read, stop) = (None, Arc::default(), Arc::default());
        Self { files, formats, rejects, read, stop, checkpoint_every: checkpoint::EVERY }
    }

    /// Reads all files and passes every block to `sink`, until `sink` returns false or `stop` is set. Returns whether all files
    /// were read to their ends.
    pub fn each(&self, findings: &mut Findings, sink: impl FnMut(Step<'_>) -> bool) -> Result<bool, Failure> {
        self.from(None, findings, sink)
    }

    fn from(
        &self,
        start: Option<&Start>,
        findings: &mut Findings,
        mut sink: impl FnMut(Step<'_>) -> bool,
    ) -> Result<bool, Failure> {
        let kept = start.and_then(|start| start.rejects.as_ref()).map_or(0, |(_, bytes)| *bytes);
        let mut rejects = Rejects::open(self.rejects.as_deref(), kept)?;
        let mut learned = start.map_or_else(Learned::default, |start| start.learned.clone());
        let first = start.map_or(0, |start| start.file);
        for file in self.files.iter().take(first) {
            let bytes = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
            self.read.fetch_add(bytes, Ordering::Relaxed);
        }
        for (number, file) in self.files.iter().enumerate().skip(first) {
            let before = learned.clone();
            let Opened { mut blocks, description, doubts, columns, counted } =
                self.formats.open(file, &self.read, &mut learned)?;
            match start.filter(|start| start.file == number) {
                Some(start) if !blocks.seek_to(&start.mark)? => return Err(other_files()),
                Some(_) => {}
                None => findings.file(file, description, doubts, columns),
            }
            while let Some(part) = blocks.next()? {
                rejects.write(&part)?;
                findings.block(file, &part.block, self.formats.now);
                let step = Step {
                    batch: part.block.batch,
                    file,
                    number,
                    blocks: &*blocks,
                    learned: &before,
                    findings,
                    rejects: rejects.length(),
                };
                if self.stop.load(Ordering::Relaxed) || !sink(step) {
                    return Ok(false);
                }
            }
            findings.end(file, blocks.lacks(), counted);
        }
        Ok(true)
    }

    /// Cuts all blocks into pieces and sends them to the channel. Resumes from the checkpoint if there is one.
    pub fn run(
        &self,
        to: &Sender<Piece>,
        state: &State,
        from: Option<Checkpoint>,
    ) -> Result<Outcome, Failure> {
        let (mut ledger, mut findings, mut seq, mut start) =
            (Ledger::default(), Findings::default(), 0, None);
        if let Some(checkpoint) = from {
            ledger = checkpoint.ledger();
            (findings, seq, start) = (checkpoint.findings, checkpoint.seq, Some(checkpoint.start));
        }
        let mut pace = Pace::new(self.checkpoint_every);
        let ended = self.from(start.as_ref(), &mut findings, |mut step| {
            ledger.take(&step.batch);
            let (samples, entries) = (ledger.samples, ledger.entries);
            let (file, offset) = (step.file.to_owned(), step.blocks.offset());
            let pieces = frames::pieces(std::mem::take(&mut step.batch));
            let last = seq + pieces.len() as u64;
            let mut checkpoint = pace.make(ledger.accounts.len(), || {
                let of = (&*state.job, &*state.session, last);
                Checkpoint::encode(of, step.start()?, step.findings, &ledger)
            });
            pieces.into_iter().all(|batch| {
                seq += 1;
                let (file, checkpoint) = (file.clone(), checkpoint.take_if(|_| seq == last));
                to.blocking_send(Piece { seq, batch, file, offset, samples, entries, checkpoint }).is_ok()
            })
        })?;
        Ok(Outcome { ledger, findings, stopped: !ended })
    }
}

pub fn other_files() -> Failure {
    Failure::new("the files differ from those at the start of this import").hint(
        "--again starts from the beginning: entries that are already stored are stored twice, samples once",
    )
}

struct Rejects<'a> {
    to: Option<(&'a Path, File)>,
    bytes: u64,
}

impl<'a> Rejects<'a> {
    /// Opens the file. Keeps the first `bytes` bytes of an earlier run.
    fn open(path: Option<&'a Path>, bytes: u64) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self { to: None, bytes: 0 }) };
        let failed = |e: std::io::Error| cannot_write(path, &e);
        let options = File::options().write(true).create(true).truncate(false).open(path);
        let mut file = options.map_err(failed)?;
        // Only regular files are truncated. Devices, such as a terminal, have no length.
        if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            file.set_len(bytes).and_then(|()| file.seek(SeekFrom::Start(bytes))).map_err(failed)?;
        }
        Ok(Self { to: Some((path, file)), bytes })
    }

    fn length(&self) -> Option<(&Path, u64)> {
        self.to.as_ref().map(|(path, _)| (*path, self.bytes))
    }

    fn write(&mut self, part: &Part) -> Result<(), Failure> {
        let Some((path, file)) = &mut self.to else { return Ok(()) };
        let mut out = Vec::new();
        for broken in &part.block.broken {
            let row = part.text.get(broken.bytes.clone()).unwrap_or_default();
            out.extend_from_slice(row);
            if !row.is_empty() && !row.ends_with(b"\n") {
                out.push(b'\n');
            }
        }
        self.bytes += out.len() as u64;
        file.write_all(&out).map_err(|e| cannot_write(path, &e))
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
