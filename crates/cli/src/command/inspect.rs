//! `tacho inspect`: shows the content of a data directory or of a running server.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tacho_api::printable::printable;
use tacho_api::units;
use tacho_server::clock::SystemClock;
use tacho_server::data_directory;
use tacho_server::inspect::inspect;

use super::ask;
use crate::client;
use crate::failure::Failure;
use crate::terminal::table::{Align, Table};

/// Show the content of a data directory: series, chunks, codecs, bytes per record
///
/// The command opens the directory read-only. If a server uses the directory, ask the server with --server instead. For
/// records that are in the journal but not yet in chunks, only their bytes are shown.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho inspect ./tacho-data
  tacho inspect --server http://127.0.0.1:7070 --json")]
pub struct Inspect {
    /// Data directory; with it, TACHO_URL is not used
    dir: Option<PathBuf>,
    /// Ask this running server instead [env: TACHO_URL]
    #[arg(long, value_name = "URL", conflicts_with = "dir")]
    server: Option<String>,
    #[command(flatten)]
    token: ask::Token,
    /// Series to show, the largest first
    #[arg(long, default_value_t = 20, value_name = "N")]
    series: usize,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub fn run(self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let report = match (&self.dir, &self.server) {
            (Some(dir), _) => runtime.block_on(offline(dir.clone(), self.series))?,
            (None, server) => {
                if server.is_none() && ask::server_of_environment().is_none() {
                    return Err(Failure::usage("give a data directory or a server to inspect")
                        .hint("name DIR, or a server with --server or TACHO_URL"));
                }
                let limit = self.series.to_string();
                let path = client::path("/api/inspect", [("limit", Some(limit.as_str()))]);
                runtime.block_on(ask::client(server.as_deref(), &self.token)?.get(&path))?
            }
        };
        ask::warn(&report);
        if self.json {
            ask::print_json(&report)
        } else {
            print(&report)
        }
        Ok(())
    }
}

async fn offline(dir: PathBuf, series: usize) -> Result<Value, Failure> {
    ask::check_data_directory(&dir)?;
    let (store, _lock) = data_directory::open_read_only(&dir, Arc::new(SystemClock))
        .await
        .map_err(|e| ask::unreadable(&dir, &e))?;
    // `inspect` alone finds only a part of the damage. `verify` reads all rows, so that all damage is reported.
    store.verify().await.map_err(Failure::new)?;
    let report = inspect(&store, series).await.map_err(Failure::new)?;
    serde_json::to_value(report).map_err(Failure::new)
}

fn print(report: &Value) {
    let damage = &report["damage"];
    for (what, names) in [
        ("damaged, its other parts are read", "damaged"),
        ("unreadable", "quarantined"),
        ("copy of bytes that were cut off the end of a segment, and may have been acknowledged", "torn_ends"),
    ] {
        for name in ask::list(damage, names).iter().filter_map(Value::as_str) {
            println!("{}: {what}", printable(name));
        }
    }
    let kinds = report["kinds"].as_object();
    print!("{}", totals(kinds.into_iter().flatten()));
    let journal_bytes = ask::number(report, "journal_bytes");
    if journal_bytes > 0 {
        let bytes = units::bytes(journal_bytes);
        println!("\n{bytes} are in the journal: the newest records, kept and readable, not in chunks yet");
    }
    for (kind, figures) in kinds.into_iter().flatten().filter(|(_, f)| ask::number(f, "chunks") > 0) {
        print!("\n{}", columns(kind, figures));
    }
    print!("\n{}", series(ask::list(report, "series")));
}

fn totals<'a>(kinds: impl Iterator<Item = (&'a String, &'a Value)>) -> Table<6> {
    let right = Align::Right;
    let mut table = Table::new([
        ("KIND", Align::Left),
        ("SERIES", right),
        ("CHUNKS", right),
        ("RECORDS", right),
        ("BYTES", right),
        ("BYTES/RECORD", right),
    ]);
    for (kind, figures) in kinds {
        let count = |name| units::count(ask::number(figures, name));
        let bytes = units::bytes(ask::number(figures, "bytes"));
        let each = per_record(ask::number(figures, "bytes"), figures);
        table.row([kind.clone(), count("series"), count("chunks"), count("records"), bytes, each]);
    }
    table
}

fn columns(kind: &str, figures: &Value) -> Table<6> {
    let (left, right) = (Align::Left, Align::Right);
    let mut table = Table::new([
        ("KIND", left),
        ("COLUMN", left),
        ("CODEC", left),
        ("COLUMNS", right),
        ("BYTES", right),
        ("BYTES/RECORD", right),
    ]);
    for column in ask::list(figures, "columns") {
        let bytes = ask::number(column, "bytes");
        table.row([
            kind.to_owned(),
            ask::text(column, "role").to_owned(),
            ask::text(column, "codec").to_owned(),
            units::count(ask::number(column, "columns")),
            units::bytes(bytes),
            per_record(bytes, figures),
        ]);
    }
    table
}

fn series(list: &[Value]) -> Table<6> {
    let (left, right) = (Align::Left, Align::Right);
    let mut table = Table::new([
        ("KIND", left),
        ("CHUNKS", right),
        ("RECORDS", right),
        ("BYTES", right),
        ("BYTES/RECORD", right),
        ("SERIES", left),
    ]);
    for one in list {
        table.row([
            ask::text(one, "kind").to_owned(),
            units::count(ask::number(one, "chunks")),
            units::count(ask::number(one, "records")),
            units::bytes(ask::number(one, "bytes")),
            per_record(ask::number(one, "bytes"), one),
            ask::text(one, "series").to_owned(),
        ]);
    }
    table
}

fn per_record(bytes: u64, of: &Value) -> String {
    match ask::number(of, "records") {
        0 => "-".into(),
        records => format!("{:.2}", bytes as f64 / records as f64),
    }
}
