//! Copies the intact records of a data directory into a new directory. The old directory is never changed.
//!
//! The code in `check/` reads and checks all rows. Rows that a reader would get are written to the new directory. If columns of
//! a chunk are damaged, the new row lacks these columns. Journals are written again, record by record. Until all data is on
//! disk, the file `INCOMPLETE` in the new directory prevents a server from opening it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tacho_store::check::{Checker, Depth, FindingKind, Findings, Salvage, Verdict, is_derived};
use tacho_store::disk::{RealDisk, irregular, make_directory, open_regular, private_file};
use tacho_store::lock::DirectoryLock;
use tacho_store::pin::SIDE_FILES;
use tacho_store::{Driver, Error, Result, Row, Stored};
use tokio::runtime::Handle;

use crate::access;
use crate::check::{INCOMPLETE, Progress, Source};

/// Rows are written when this many are collected, or when their values have this many bytes.
const PUT_ROWS: usize = 1_000;
const PUT_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub struct Repaired {
    /// The same findings as from a check.
    pub findings: Findings,
    /// Numbers of series with a row in the new directory: series of samples, of entries, of executions. Series that are only in
    /// journals are not counted.
    pub series: [usize; 3],
    pub rows: u64,
    /// Samples, entries and completed calls in chunks and journals of the new directory.
    pub records: [u64; 3],
    pub bytes: u64,
    /// Whether tokens were in use, and their file was damaged or missing. Then a server of the new directory refuses every
    /// request that needs a token.
    pub lacks_tokens: bool,
}

/// Also reads the files in `accepted` if they seem to be of another store.
///
/// # Errors
/// `Locked` when a server uses `data`. `Invalid` when `into` is not empty, or `data` is the unfinished result of a repair.
/// `Version` when a newer version wrote `data`. `Io`, and other errors of the driver. If the copy has begun, an error leaves
/// `into` marked as incomplete.
pub async fn repair(
    data: &Path,
    into: &Path,
    accepted: &BTreeSet<String>,
    progress: Progress<'_>,
) -> Result<Repaired> {
    let _shared = DirectoryLock::share(data)?;
    let mut source = Source::open_accepting(data, Depth::Whole, accepted).await?;
    begin(into)?;
    let lock = DirectoryLock::acquire(into)?;
    let url = format!("embedded:{}", into.join("chunks").display());
    let copy = Copy { driver: tacho_drivers::open(&url).await?, waiting: Mutex::default() };
    copy.driver.put(std::mem::take(&mut source.derived)).await?;
    let handle = Handle::current();
    let report =
        tokio::task::block_in_place(|| source.run_with(progress, &|verdict| copy.take(verdict, &handle)))?;
    let rest = std::mem::take(&mut *copy.lock());
    copy.driver.put(rest.rows).await?;

    let known = source.checker.known();
    let journals = into.join("journal");
    make_directory(&journals).map_err(|e| Error::io("make directory", &journals, e))?;
    let salvage = Salvage::write_journals(&source.journals, known, (&RealDisk, &journals))?;
    let is_whole = report.findings.losses() == 0;
    copy.driver.put(salvage.rows(&source.checker, rest.counted, is_whole)).await?;
    drop(copy);
    copy_side_files(data, into, &report.findings)?;
    let lacks_tokens = keep_closed(data, into)?;
    finish(into)?;
    drop(lock);
    let mut records = salvage.records;
    records.iter_mut().zip(rest.counted).for_each(|(sum, stored)| *sum += stored.records);
    let series = known.index.counts();
    let (findings, bytes) = (report.findings, report.amounts.bytes);
    Ok(Repaired { findings, series, rows: rest.count, records, bytes, lacks_tokens })
}

fn begin(into: &Path) -> Result<()> {
    let failed = |e| Error::io("make directory", into, e);
    make_directory(into).map_err(failed)?;
    if std::fs::read_dir(into).map_err(failed)?.next().is_some() {
        return Err(Error::invalid("directory is not empty").with("path", into.display()));
    }
    let path = into.join(INCOMPLETE);
    let write = || {
        let mut file = private_file().write(true).create_new(true).open(&path)?;
        file.write_all(b"tacho repair has not finished: remove this directory and run it again\n")?;
        file.sync_all()?;
        File::open(into)?.sync_all()
    };
    write().map_err(|e| Error::io("write", &path, e))
}

/// Syncs the directory, then removes the file `INCOMPLETE`.
fn finish(into: &Path) -> Result<()> {
    let path = into.join(INCOMPLETE);
    let done = || {
        File::open(into)?.sync_all()?;
        std::fs::remove_file(&path)?;
        File::open(into)?.sync_all()
    };
    done().map_err(|e: io::Error| Error::io("finish", &path, e))
}

fn copy_side_files(data: &Path, into: &Path, findings: &Findings) -> Result<()> {
    let is_damaged = |name: &str| {
        let of_file = |finding: &&tacho_store::check::Finding| &*finding.place.file == name;
        findings.kept.iter().filter(of_file).any(|finding| finding.kind == FindingKind::SideFileDamaged)
    };
    for name in SIDE_FILES.into_iter().chain([access::AUDIT_FILE]) {
        let (from, to) = (data.join(name), into.join(name));
        if !from.exists() || is_damaged(name) || irregular(&from).is_some() {
            continue;
        }
        let copy = || {
            let mut source = open_regular(&from)?;
            let mut file = private_file().write(true).create_new(true).open(&to)?;
            io::copy(&mut source, &mut file)?;
            file.sync_all()
        };
        copy().map_err(|e| Error::io("copy", &from, e))?;
    }
    Ok(())
}

/// If tokens were in use, notes this in the new directory. Without this note, and without a file of tokens, a server of the new
/// directory would admit every client. Returns whether tokens were in use and the new directory lacks them.
fn keep_closed(data: &Path, into: &Path) -> Result<bool> {
    if !access::file::is_used(data) {
        return Ok(false);
    }
    access::file::mark(into).map_err(Error::invalid)?;
    Ok(!access::file::path(into).exists())
}

struct Copy {
    driver: std::sync::Arc<dyn Driver>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    rows: Vec<Row>,
    bytes: usize,
    count: u64,
    counted: [Stored; 3],
}

impl Copy {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Collects the row of a verdict. If enough rows wait, writes them to the new directory. Must not be called on a thread of
    /// the runtime, because it blocks.
    fn take(&self, verdict: Verdict, handle: &Handle) -> Result<()> {
        let Some(row) = verdict.kept.filter(|row| !is_derived(row)) else { return Ok(()) };
        let mut waiting = self.lock();
        Checker::count(&row, verdict.records, &mut waiting.counted);
        waiting.bytes += row.value.len();
        waiting.count += 1;
        waiting.rows.push(row);
        if waiting.rows.len() < PUT_ROWS && waiting.bytes < PUT_BYTES {
            return Ok(());
        }
        waiting.bytes = 0;
        let rows = std::mem::take(&mut waiting.rows);
        // The lock is held during the write. Otherwise the other workers would collect more rows in memory.
        handle.block_on(self.driver.put(rows))
    }
}
