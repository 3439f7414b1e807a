//! `tacho check`: looks for damage in a data directory and changes nothing. A server may use the directory at the same time.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;
use tacho_api::units;
use tacho_server::check::{Amounts, Report, Source};
use tacho_store::check::{Depth, Severity};

use super::{ask, findings};
use crate::failure::Failure;

/// Check a data directory for damage: every file, row, chunk, checksum and reference
///
/// The command only reads: it changes no file and takes no lock. A server may use the directory at the same time. Records
/// that were not acknowledged yet are not checked. Exit code: 0 no damage, 1 damage, 2 not a readable data directory.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho check ./tacho-data
  tacho check /var/lib/tacho --quick
  tacho check /var/lib/tacho --json | jq 'select(.severity == \"damage\")'")]
pub struct Check {
    /// Data directory
    dir: PathBuf,
    /// Compare checksums, keys and references, without decoding the chunks
    #[arg(long)]
    quick: bool,
    /// Print one JSON object for each finding, at most 100,000, and one with the totals
    #[arg(long)]
    json: bool,
}

impl Check {
    pub fn run(self) -> Result<(), Failure> {
        ask::check_damaged_directory(&self.dir).map_err(Failure::into_usage)?;
        let unreadable = |e: tacho_store::Error| ask::unreadable(&self.dir, &e).into_usage();
        let depth = if self.quick { Depth::Quick } else { Depth::Whole };
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let begun = Instant::now();
        let mut source = runtime.block_on(Source::open(&self.dir, depth)).map_err(unreadable)?;
        let report = findings::with_progress("check", |progress| source.run(progress)).map_err(unreadable)?;
        let seconds = begun.elapsed().as_secs_f64();
        if self.json {
            print_json(&report, seconds)
        } else {
            print(&report, seconds)
        }
        let damage = report.findings.count(Severity::Damage);
        if damage == 0 {
            return Ok(());
        }
        let files = Source::damaged_files(&report) as u64;
        let message = format!(
            "{} of damage in {}",
            units::counted(damage, "finding", "findings"),
            units::counted(files, "file", "files")
        );
        Err(Failure::new(message)
            .hint("docs/guide/operating.md explains each finding; tacho repair copies the readable records"))
    }
}

fn megabytes_per_second(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 / 1e6 / seconds.max(1e-9)
}

fn print(report: &Report, seconds: f64) {
    print!("{}", findings::text(&report.findings.kept, report.findings.omitted(), findings::JSON));
    let Amounts { files, bytes, rows, chunks, records, batches, .. } = report.amounts;
    let [samples, entries, calls] = records;
    println!(
        "{}: {} in {}, {} ({}, {}, {}), {} in the journal; {:.0} MB/s",
        findings::counted(&report.findings),
        units::bytes(bytes),
        units::counted(files, "file", "files"),
        format_args!(
            "{}, {}",
            units::counted(rows, "row", "rows"),
            units::counted(chunks, "chunk", "chunks")
        ),
        units::counted(samples, "sample", "samples"),
        units::counted(entries, "entry", "entries"),
        units::counted(calls, "call", "calls"),
        units::counted(batches, "batch", "batches"),
        megabytes_per_second(bytes, seconds),
    );
    if let Some(lost) = findings::lost(&report.findings) {
        println!("cannot be read: {lost}");
    }
}

fn print_json(report: &Report, seconds: f64) {
    for finding in &report.findings.kept {
        println!("{}", findings::json(finding));
    }
    let Amounts { files, bytes, rows, chunks, records, batches, journal_records } = report.amounts;
    let summary = json!({
        "findings": findings::counts(&report.findings),
        "files": files,
        "bytes": bytes,
        "rows": rows,
        "chunks": chunks,
        "records": findings::kinds(records),
        "journal": {"batches": batches, "records": findings::kinds(journal_records)},
        "seconds": seconds,
        "megabytes_per_second": megabytes_per_second(bytes, seconds),
    });
    println!("{}", json!({ "summary": summary }));
}
