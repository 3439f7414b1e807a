//! `tacho cardinality`: the cost of each label, in a running server or a data directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tacho_api::units;
use tacho_server::cardinality::report_json;
use tacho_server::clock::SystemClock;
use tacho_server::data_directory;

use super::ask;
use crate::client;
use crate::failure::Failure;
use crate::terminal::table::{Align, Table};

/// Show the series of each metric name, and the series and memory of each label
///
/// Labels with almost as many values as series, such as ids, times and addresses, make the index large.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho cardinality
  tacho cardinality --limit 3 --json
  tacho cardinality --data ./tacho-data")]
pub struct Cardinality {
    #[command(flatten)]
    server: ask::Server,
    /// Read this data directory; no server may be using it
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    data: Option<PathBuf>,
    /// Number of metric names and labels to show: the names with the most series, the labels with the most memory. With --json
    /// all labels are shown; the number limits the metric names, and the values of each label. A server accepts at most 1000
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Cardinality {
    pub fn run(self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let report = match &self.data {
            Some(data) => runtime.block_on(offline(data, self.limit))?,
            None => {
                let limit = self.limit.to_string();
                let path = client::path("/api/v1/status/cardinality", [("limit", Some(limit.as_str()))]);
                runtime.block_on(self.server.client()?.get(&path))?["data"].take()
            }
        };
        match self.json {
            true => ask::print_json(&report),
            false => print(&report, self.limit),
        }
        Ok(())
    }
}

async fn offline(data: &Path, limit: usize) -> Result<Value, Failure> {
    ask::check_data_directory(data)?;
    let (store, _lock) = data_directory::open_read_only(data, Arc::new(SystemClock))
        .await
        .map_err(|e| ask::unreadable(data, &e))?;
    Ok(report_json(&store.cardinality(limit)))
}

fn print(report: &Value, limit: usize) {
    let count = |name| units::count(ask::number(report, name));
    println!(
        "{} series of at most {}; the index takes {} of memory\n",
        count("series_total"),
        count("series_max"),
        units::bytes(ask::number(report, "bytes"))
    );
    let right = Align::Right;
    let mut names = Table::new([("NAME", Align::Left), ("SERIES", right)]);
    for name in ask::list(report, "names") {
        names.row([ask::text(name, "value").to_owned(), units::count(ask::number(name, "series"))]);
    }
    let mut labels = Table::new([
        ("LABEL", Align::Left),
        ("VALUES", right),
        ("SERIES", right),
        ("MEMORY", right),
        ("MOST SERIES", Align::Left),
    ]);
    for label in ask::list(report, "labels").iter().take(limit.max(1)) {
        let top = ask::list(label, "top").iter().take(3).map(|value| {
            format!("{} ({})", ask::text(value, "value"), units::count(ask::number(value, "series")))
        });
        labels.row([
            ask::text(label, "name").to_owned(),
            units::count(ask::number(label, "values")),
            units::count(ask::number(label, "series")),
            units::bytes(ask::number(label, "bytes")),
            top.collect::<Vec<_>>().join(", "),
        ]);
    }
    print!("{names}\n{labels}");
}
