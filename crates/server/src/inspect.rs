//! Reports the content of a store: series, chunks, columns and their codecs, bytes, records.
//!
//! Reads the rows of all chunks, but decodes no column.

use std::collections::BTreeMap;

use serde::Serialize;
use tacho_chunk::{ColumnInfo, Role};
use tacho_model::{Kind, SeriesId, Timestamp};
use tacho_store::driver::Health;
use tacho_store::{ChunkInfo, Damages, Read, Result, Store};

use crate::read::damage::sentences;

/// If several series share a chunk, each series counts its share of the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    pub chunks: u64,
    pub bytes: u64,
    /// Number of samples, entries, or completed calls.
    pub records: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct KindReport {
    /// Number of series, with or without chunks.
    pub series: u64,
    #[serde(flatten)]
    pub amount: Amount,
    pub columns: Vec<ColumnReport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ColumnReport {
    pub role: &'static str,
    pub codec: &'static str,
    pub columns: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct SeriesReport {
    pub kind: &'static str,
    pub series: String,
    #[serde(flatten)]
    pub amount: Amount,
    /// Times of the first and the last record in ns, as text. `None` if the series has no chunks.
    pub start: Option<String>,
    pub end: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub kinds: BTreeMap<&'static str, KindReport>,
    /// The largest series first. Series without a chunk are only counted.
    pub series: Vec<SeriesReport>,
    pub damage: Damage,
    /// Bytes of the journal, whose records are not in chunks yet.
    pub journal_bytes: u64,
    /// Warnings about unreadable records. The figures do not include these records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Names of damaged files that stay in use.
    pub damaged: Vec<String>,
    /// Number of damaged places in the rows of these files.
    pub places: u64,
    /// Total size of these places, bytes.
    pub bytes: u64,
    /// Names of unreadable files. The server moves such files to a directory `quarantine/`.
    pub quarantined: Vec<String>,
    /// Names of the files with copies of bytes that were cut off the ends of files, although these bytes may have been
    /// acknowledged.
    pub torn_ends: Vec<String>,
    /// Bytes that were cut off the ends of files at the last start.
    pub torn_bytes: u64,
}

impl From<Health> for Damage {
    fn from(health: Health) -> Self {
        let Health { damaged, damaged_places, damaged_bytes, set_aside, torn_ends, torn_bytes, .. } = health;
        let (places, bytes, quarantined) = (damaged_places, damaged_bytes, set_aside);
        Self { damaged, places, bytes, quarantined, torn_ends, torn_bytes }
    }
}

impl Amount {
    pub fn add(&mut self, chunk: &ChunkInfo) {
        self.chunks += 1;
        self.bytes += chunk.bytes as u64;
        self.records += chunk.header.count as u64;
    }
}

/// Lists the `series_max` largest series.
pub async fn inspect(store: &Store, series_max: usize) -> Result<Report> {
    let journal_bytes = store.stats().journal_bytes;
    let (kinds, series, warnings) = (BTreeMap::new(), Vec::new(), Vec::new());
    let damage = store.driver_health().into();
    let mut report = Report { kinds, series, damage, journal_bytes, warnings };
    let mut damages = Damages::default();
    for kind in Kind::ALL {
        damages.extend(store.lacks(kind));
        let mut of_kind = KindReport::default();
        let mut columns = Columns::default();
        for (id, labels) in store.find(kind, &[]) {
            let series = one(store, kind, id, labels.to_string(), &mut of_kind.amount, &mut columns).await?;
            let Read { records: series, damages: more } = series;
            damages.extend(more);
            of_kind.series += 1;
            report.series.extend((series.amount.chunks > 0).then_some(series));
        }
        of_kind.columns = columns.report();
        report.kinds.insert(kind.name(), of_kind);
    }
    report.series.sort_by(|a, b| b.amount.bytes.cmp(&a.amount.bytes).then_with(|| a.series.cmp(&b.series)));
    report.series.truncate(series_max);
    report.warnings = sentences(&damages);
    Ok(report)
}

async fn one(
    store: &Store,
    kind: Kind,
    id: SeriesId,
    series: String,
    total: &mut Amount,
    columns: &mut Columns,
) -> Result<Read<SeriesReport>> {
    let mut amount = Amount::default();
    let mut span: Option<(Timestamp, Timestamp)> = None;
    let Read { records: chunks, damages } = store.read_chunks(kind, id).await?;
    for chunk in chunks {
        amount.add(&chunk);
        total.add(&chunk);
        total.chunks -= u64::from(!is_first(&chunk));
        columns.add(&chunk);
        let (start, end) = span.unwrap_or((chunk.start, chunk.end));
        span = Some((start.min(chunk.start), end.max(chunk.end)));
    }
    let (start, end) = span.unzip();
    let text = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let records = SeriesReport { kind: kind.name(), series, amount, start: text(start), end: text(end) };
    Ok(Read { records, damages })
}

/// Whether this series is the first of the series that share the chunk. The chunk and its common columns are counted once, for
/// the first series.
fn is_first(chunk: &ChunkInfo) -> bool {
    chunk.header.members.first().is_none_or(|first| first.member == chunk.member)
}

#[derive(Default)]
struct Columns(BTreeMap<(&'static str, &'static str), (u64, u64)>);

impl Columns {
    fn add(&mut self, chunk: &ChunkInfo) {
        let in_common = |column: &ColumnInfo| column.role != Role::Value || chunk.header.members.is_empty();
        for column in chunk.header.columns().filter(in_common).filter(|_| is_first(chunk)) {
            self.count((column.role.name(), column.codec), column.bytes);
        }
        if let Some(member) = chunk.header.member(chunk.member) {
            self.count((Role::Value.name(), member.codec), member.bytes);
        }
    }

    fn count(&mut self, of: (&'static str, &'static str), column_bytes: usize) {
        let (count, bytes) = self.0.entry(of).or_default();
        *count += 1;
        *bytes += column_bytes as u64;
    }

    /// The largest columns first.
    fn report(self) -> Vec<ColumnReport> {
        let report = |((role, codec), (columns, bytes))| ColumnReport { role, codec, columns, bytes };
        let mut list: Vec<ColumnReport> = self.0.into_iter().map(report).collect();
        list.sort_by_key(|column| std::cmp::Reverse(column.bytes));
        list
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use tacho_model::{Batch, Labels, ManualClock, NAME, Sample, SampleSeries, Value};
    use tacho_store::{MemoryDriver, Options};

    #[tokio::test]
    async fn a_chunk_that_series_share_is_counted_once() {
        let directory = tempfile::tempdir().unwrap();
        let (driver, clock) = (Arc::new(MemoryDriver::new()), Arc::new(ManualClock::new(0)));
        let store = Store::open(driver, directory.path(), Options::default(), clock).await.unwrap();
        let series = |name: &str| SampleSeries {
            labels: Arc::new(Labels::new([(NAME, name), ("host", "a")]).unwrap()),
            samples: (0..1_000)
                .map(|at| Sample { at: at * at, value: Value::F64((at % 7) as f64) })
                .collect(),
        };
        let samples = ["x", "y", "z"].map(series).to_vec();
        store.append(Batch { samples, ..Batch::default() }, None).await.unwrap();
        store.flush().await.unwrap();
        let report = inspect(&store, 2).await.unwrap();
        let samples = &report.kinds["sample"];
        assert_eq!((samples.series, samples.amount.chunks, samples.amount.records), (3, 1, 3_000));
        let columns =
            |role| samples.columns.iter().filter(|c| c.role == role).map(|c| c.columns).sum::<u64>();
        assert_eq!((columns(Role::At.name()), columns(Role::Value.name())), (1, 3));
        assert_eq!(report.series.len(), 2);
        assert!(report.series.iter().all(|one| one.amount.chunks == 1 && one.amount.records == 1_000));
        let shares: u64 = samples.amount.bytes;
        let of_columns: u64 = samples.columns.iter().map(|column| column.bytes).sum();
        assert!(shares > of_columns, "{shares} bytes with keys and header, {of_columns} of columns");
    }
}
