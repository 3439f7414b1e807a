//! `tacho import`: imports files of records into a server or a data directory. An import can be resumed, and it is verified at
//! the end.
//!
//! ```text
//!   source.rs, table.rs ── blocks.rs ──▶ ledger.rs ── pieces ──▶ target.rs ──▶ server or directory
//!        formats.rs: the format              │      state.rs, checkpoint.rs:       │
//!                                            │            the progress             │
//!                                            └────────────── verify.rs ◀───────────┘
//! ```
//! `feed.rs` runs all steps before `target.rs` on its own thread. `frames.rs` cuts and encodes the pieces. `run.rs` sends
//! them. `findings.rs` collects findings about the files, `early.rs` detects times read in the wrong unit, and `report.rs`
//! prints the outcome.

mod blocks;
mod checkpoint;
mod early;
mod feed;
mod findings;
mod formats;
mod frames;
mod ledger;
mod report;
mod run;
mod source;
mod state;
#[cfg(feature = "parquet")]
mod table;
mod target;
mod verify;

use std::path::PathBuf;

use jiff::tz::TimeZone;
use tacho_ingest::line_protocol::Precision;
use tacho_ingest::time_text::TimeFormat;

use crate::command::ask;
use crate::failure::Failure;
pub(in crate::command) use feed::Feed;
pub(in crate::command) use findings::Findings;
use formats::Format;

/// Import files of records into a server or a data directory
///
/// The format of a file is detected by its name and first bytes, and gzip by its first bytes. Before it reads a file,
/// the command prints how it interprets the file, once for files that it interprets alike. With --dry-run it stores nothing.
/// Broken rows are reported and skipped.
///
/// A state file next to the first file records the progress. After Ctrl-C or a crash the same command resumes the import and
/// stores nothing twice. At the end the command compares count and checksum of the sent records with those of the store.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho import metrics.csv --dry-run
  tacho import *.csv.gz --name-fields host,process,group --time-zone Europe/Berlin --decimal .
  tacho import bare.csv --columns time,cpu,memory
  tacho import dump.jsonl.gz --server http://127.0.0.1:7070 --rejects broken.jsonl
  tacho import access.csv --text --value-column message --name access_log
  zcat lines.gz | tacho import - --format line --precision s
  tacho import metrics.prom --data ./tacho-data
  tacho import frame.parquet --name cpu --label job=trial

Exit codes:
  0  everything is stored and verified
  1  failed: the message says why; after Ctrl-C or an outage of the server the same command resumes
  2  arguments are wrong; nothing is sent
  3  partly done: rows are broken, texts are skipped, the store refused records, or records are older than the
     retention; with --dry-run: rows are broken, or texts are skipped")]
pub struct Import {
    /// Files, - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Format of the files [default: detected by name and first bytes]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// The server to send to [env: TACHO_URL] [default: http://127.0.0.1:7070]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    token: ask::Token,
    /// Import into this data directory; no server may be using it
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    data: Option<PathBuf>,
    /// State file, for resuming [default: next to the first file]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Ignore the state file and start from the beginning
    #[arg(long)]
    again: bool,
    /// Write broken rows to this file, unchanged; those of Parquet files as JSON lines
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Read and check all files, send nothing
    #[arg(long)]
    dry_run: bool,
    /// Skip the comparison of counts and checksums at the end
    #[arg(long)]
    no_verify: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

/// Options for reading files, shared with `tacho tune`.
#[derive(Clone, Debug, clap::Args)]
pub struct Reading {
    /// CSV: delimiter, one character or tab
    #[arg(long, value_name = "CHAR", value_parser = delimiter, help_heading = "CSV and Parquet")]
    delimiter: Option<u8>,
    /// Format of the times: iso, epoch, epoch-ms, epoch-us, epoch-ns, or a pattern such as '%d.%m.%Y %H:%M:%S%.f'
    #[arg(long, value_name = "FORMAT", help_heading = "CSV and Parquet")]
    time_format: Option<TimeFormat>,
    /// Time zone of times without one, for example Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = zone, help_heading = "CSV and Parquet")]
    time_zone: TimeZone,
    /// CSV: the decimal separator
    #[arg(long, value_name = "CHAR", help_heading = "CSV and Parquet")]
    decimal: Option<char>,
    /// CSV: thousands separator
    #[arg(long, value_name = "CHAR", help_heading = "CSV and Parquet")]
    thousands: Option<char>,
    /// Time column, by name or number from 1
    #[arg(long, value_name = "COLUMN", help_heading = "CSV and Parquet")]
    time_column: Option<String>,
    /// Value column of a file with one value per row; the other columns are labels
    #[arg(long, value_name = "COLUMN", help_heading = "CSV and Parquet")]
    value_column: Option<String>,
    /// CSV: names of the columns of a file without a header line, for example time,cpu,memory
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = "CSV and Parquet")]
    columns: Vec<String>,
    /// Each column is a series, except the time column and, in Parquet, text columns
    #[arg(long, conflicts_with = "value_column", help_heading = "CSV and Parquet")]
    wide: bool,
    /// Import values as text entries, not as samples
    #[arg(long, help_heading = "CSV and Parquet")]
    text: bool,
    /// Name of the series if the file does not name it: a file with one value per row, or with a single column named value
    #[arg(
        long,
        value_name = "NAME",
        value_parser = clap::builder::NonEmptyStringValueParser::new(),
        help_heading = "CSV and Parquet"
    )]
    name: Option<String>,
    /// A label for every series; repeatable
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label, help_heading = "CSV and Parquet")]
    labels: Vec<(String, String)>,
    /// Names of labels for the fields of the file name, which are separated by _ and end at --
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = "CSV and Parquet")]
    name_fields: Vec<String>,
    /// Line protocol: unit of the times: ns, us, ms, s, m or h
    #[arg(long, value_name = "UNIT", default_value = "ns")]
    precision: Precision,
}

impl Import {
    pub fn run(self) -> Result<(), Failure> {
        if self.dry_run {
            return run::dry(&self);
        }
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        runtime.block_on(run::import(&self))
    }
}

/// The failure of a build without the feature `parquet`.
pub(in crate::command) fn without_parquet(what: &str) -> Failure {
    Failure::usage(format!("{what}: this tacho was built without Parquet"))
        .hint("build tacho with Parquet: cargo build --release -p tacho-cli --features parquet")
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [byte] if byte.is_ascii() && *byte != b'"' && *byte != b'\n' => Ok(*byte),
            _ => Err("give one ASCII character, or tab".into()),
        },
    }
}

fn zone(text: &str) -> Result<TimeZone, String> {
    TimeZone::get(text).map_err(|e| format!("{e}; give a name such as UTC or Europe/Berlin"))
}

fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("give name=value")?;
    Ok((name.to_owned(), value.to_owned()))
}
