//! Checks the files, rows, chunks and journals of a data directory without changing it. A server may run at the same time.
//!
//! ```text
//!   Source::open   opens the journals, then chunks/, then journals made since    result: the state of one moment
//!   Source::run    one thread reads the files in order; workers check the rows   result: findings
//! ```
//! `crate::repair` runs the same pass and copies the intact rows.

mod side_files;

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use tacho_drivers::embedded::check::Image;
use tacho_store::check::{
    Checker, Depth, Finding, FindingKind, Findings, Journals, Known, Place, PlacedRow, Severity, Verdict,
};
use tacho_store::{Error, ErrorKind, Result, Row};

use crate::upgrade;

pub use side_files::{INCOMPLETE, refuse_incomplete};

/// A batch of rows is sent to a worker when it has `BATCH_ROWS` rows, or `BATCH_BYTES` bytes.
const BATCH_ROWS: usize = 256;
const BATCH_BYTES: u64 = 1 << 20;
/// Number of queued batches for each worker, to limit the memory.
const BATCHES_WAITING: usize = 2;
/// Limit on attempts to open journals and chunks in a consistent state while a server flushes.
const ATTEMPTS_MAX: usize = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    pub files: u64,
    pub bytes: u64,
    pub rows: u64,
    pub chunks: u64,
    /// Samples, entries and completed calls in chunks.
    pub records: [u64; 3],
    /// Number of batches in the journals. `journal_records` counts the records of these batches.
    pub batches: u64,
    pub journal_records: [u64; 3],
}

impl Amounts {
    fn add(&mut self, verdict: &Verdict) {
        if let Some((kind, records)) = verdict.records {
            self.chunks += 1;
            self.records[kind as usize - 1] += records;
        }
    }
}

#[derive(Debug, Default)]
pub struct Report {
    pub findings: Findings,
    pub amounts: Amounts,
}

/// A function that receives the number of bytes read so far and the total number of bytes.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

pub struct Source {
    pub(crate) journals: Journals,
    pub(crate) image: Image,
    pub(crate) checker: Checker,
    /// Series rows that the directory lacks, with labels from other rows or journals.
    pub(crate) derived: Vec<Row>,
    /// Findings that were made without reading rows.
    findings: Vec<Finding>,
}

impl Source {
    /// Opens the journals and the files of a data directory as they are at one moment.
    ///
    /// # Errors
    /// `Version` when a newer version wrote the directory. `Invalid` when it is the unfinished result of a repair. `Corrupt`
    /// when it changes too fast. `Io` when a file cannot be read.
    pub async fn open(data: &Path, depth: Depth) -> Result<Self> {
        Self::open_accepting(data, depth, &BTreeSet::new()).await
    }

    /// The same as [`Source::open`], and also reads the files in `accepted` if they seem to be of another store. Their names are
    /// relative to the data directory.
    ///
    /// # Errors
    /// Like [`Source::open`].
    pub async fn open_accepting(data: &Path, depth: Depth, accepted: &BTreeSet<String>) -> Result<Self> {
        refuse_incomplete(data)?;
        upgrade::refuse_newer_side_files(data)?;
        let mut journals = Journals::hold(&data.join("journal"), "journal/")?;
        let mut last = None;
        for _ in 0..ATTEMPTS_MAX {
            let (at, names) = (data.join("chunks"), accepted.clone());
            let stores: BTreeSet<u128> = journals.store().into_iter().collect();
            let image = tokio::task::spawn_blocking(move || Image::open(&at, "chunks/", &stores, &names));
            let image = image.await;
            let image = image.map_err(|e| Error::corrupt("check did not end").caused_by(e))??;
            journals.renew()?;
            let known = Known::read(&*image.driver()).await?;
            journals.identify(&known, accepted);
            // If the server flushes a journal after the image is opened, the journal seems to be missing. The next attempt sees
            // its chunks.
            let gaps = journals.gaps(&known).into_iter().map(|gap| journals.gap(gap));
            let missing: Vec<Finding> = gaps.chain(journals.emptied(&known)).collect();
            let seen = (missing, known.facts.clone());
            if seen.0.is_empty() || last.as_ref() == Some(&seen) {
                return Self::new(data, journals, image, known, depth, seen.0);
            }
            last = Some(seen);
        }
        Err(Error::corrupt("directory changes too fast to be read at one moment")
            .with("path", data.display()))
    }

    fn new(
        data: &Path,
        journals: Journals,
        mut image: Image,
        known: Known,
        depth: Depth,
        missing: Vec<Finding>,
    ) -> Result<Self> {
        let mut findings = side_files::findings(data)?;
        findings.extend(image.take_findings());
        findings.extend(journals.names(known.flushed())?);
        findings.extend(missing);
        let mut checker = Checker::new(known, journals.generations(), depth);
        let derived = checker.derive_series(&journals)?;
        Ok(Self { journals, image, checker, derived, findings })
    }

    /// # Errors
    /// `Version` when a newer version wrote a file or a row.
    pub fn run(&mut self, progress: Progress<'_>) -> Result<Report> {
        self.run_with(progress, &|_| Ok(()))
    }

    /// The same as [`Source::run`]. Also calls `each` with the verdict on each row, on any thread, and fails with its errors.
    pub(crate) fn run_with(
        &mut self,
        progress: Progress<'_>,
        each: &(dyn Fn(Verdict) -> Result<()> + Sync),
    ) -> Result<Report> {
        let mut report = Report::default();
        report.findings.extend(std::mem::take(&mut self.findings));
        let total = self.image.files().map(|(_, bytes)| bytes).sum::<u64>()
            + self.journals.files().map(|(_, bytes)| bytes).sum::<u64>();
        let mut read = 0;
        let mut advance = |bytes: u64| {
            read += bytes;
            progress(read.min(total), total);
        };
        self.rows(&mut report, &mut advance, each)?;
        let generations: Vec<u64> = self.journals.files().map(|(generation, _)| generation).collect();
        for generation in generations {
            let checked = self.journals.check(generation, self.checker.known(), |_| ())?;
            advance(checked.bytes);
            let amounts = &mut report.amounts;
            amounts.files += 1;
            amounts.bytes += checked.bytes;
            amounts.batches += checked.batches;
            amounts.journal_records.iter_mut().zip(checked.records).for_each(|(sum, more)| *sum += more);
            report.findings.extend(checked.findings);
        }
        report.findings.extend(self.checker.finish());
        report.findings.sort();
        Ok(report)
    }

    fn rows(
        &self,
        report: &mut Report,
        advance: &mut dyn FnMut(u64),
        each: &(dyn Fn(Verdict) -> Result<()> + Sync),
    ) -> Result<()> {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let (batches, waiting) = sync_channel::<Vec<PlacedRow>>(workers * BATCHES_WAITING);
        let work = Work {
            checker: &self.checker,
            waiting: Mutex::new(waiting),
            report: Mutex::default(),
            failed: AtomicBool::new(false),
            error: Mutex::default(),
        };
        let read = std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| work.run(each));
            }
            // `read_files` drops the sender when it returns. This ends the workers.
            let sender = Sender { batches, batch: Vec::new(), bytes: 0 };
            self.read_files(sender, report, advance, &work.failed)
        });
        let Work { report: found, error, .. } = work;
        if let Some(error) = error.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        read?;
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.findings.merge(found.findings);
        report.amounts.chunks += found.amounts.chunks;
        report.amounts.records.iter_mut().zip(found.amounts.records).for_each(|(sum, more)| *sum += more);
        Ok(())
    }

    fn read_files(
        &self,
        mut sender: Sender,
        report: &mut Report,
        advance: &mut dyn FnMut(u64),
        failed: &AtomicBool,
    ) -> Result<()> {
        let files: Vec<(u32, u64)> = self.image.files().collect();
        for (number, length) in files {
            let mut told = 0;
            let checked = self.image.check_file(number, &mut |row| {
                let end = row.place.offset.unwrap_or(0) + row.place.bytes.unwrap_or(0);
                if sender.push(row) && end > told {
                    advance(end - told);
                    told = end;
                }
            });
            let checked = match checked {
                Ok(checked) => checked,
                Err(error) if error.kind() == ErrorKind::Version => return Err(error),
                Err(error) => {
                    let place = Place::file(format!("chunks/{number:08}.segment"));
                    report.findings.add(Finding::new(FindingKind::FileUnreadable, place, error));
                    continue;
                }
            };
            advance(length.saturating_sub(told));
            report.amounts.files += 1;
            report.amounts.rows += checked.rows;
            report.amounts.bytes += checked.bytes;
            report.findings.extend(checked.findings);
            if failed.load(Ordering::Relaxed) {
                break;
            }
        }
        sender.flush();
        Ok(())
    }

    /// Number of files with findings of damage, among the findings that were kept.
    pub fn damaged_files(report: &Report) -> usize {
        let damaged = report.findings.kept.iter().filter(|finding| finding.severity() == Severity::Damage);
        damaged.map(|finding| &finding.place.file).collect::<HashSet<_>>().len()
    }
}

struct Sender {
    batches: SyncSender<Vec<PlacedRow>>,
    batch: Vec<PlacedRow>,
    bytes: u64,
}

impl Sender {
    /// Returns whether the batch was full and was sent.
    fn push(&mut self, row: PlacedRow) -> bool {
        self.bytes += row.place.bytes.unwrap_or(0);
        self.batch.push(row);
        let is_full = self.batch.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES;
        if is_full {
            self.flush();
        }
        is_full
    }

    fn flush(&mut self) {
        self.bytes = 0;
        // Sending cannot fail: `Work` keeps the receiver until all workers have ended.
        let _ = self.batches.send(std::mem::take(&mut self.batch));
    }
}

struct Work<'a> {
    checker: &'a Checker,
    waiting: Mutex<Receiver<Vec<PlacedRow>>>,
    report: Mutex<Report>,
    failed: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl Work<'_> {
    fn run(&self, each: &(dyn Fn(Verdict) -> Result<()> + Sync)) {
        let mut report = Report::default();
        loop {
            let batch = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(batch) = batch else { break };
            // After an error, workers still receive batches and ignore them. Otherwise the reading thread
            // would block on the full queue.
            for row in batch {
                if self.failed.load(Ordering::Relaxed) {
                    break;
                }
                let done = self.checker.row(row).and_then(|mut verdict| {
                    report.findings.extend(std::mem::take(&mut verdict.findings));
                    report.amounts.add(&verdict);
                    each(verdict)
                });
                if let Err(error) = done {
                    self.failed.store(true, Ordering::Relaxed);
                    self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        }
        let mut all = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        all.findings.merge(report.findings);
        all.amounts.chunks += report.amounts.chunks;
        all.amounts.records.iter_mut().zip(report.amounts.records).for_each(|(sum, more)| *sum += more);
    }
}
