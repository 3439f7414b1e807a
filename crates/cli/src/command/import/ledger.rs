//! Counts and checksums of the sent records per series, which are compared with the store at the end of the import.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tacho_model::{Batch, Kind, Labels, SeriesId, TimeRange, Timestamp};

use tacho_api::tally::{Tally, sample_hash};

#[derive(Clone, Debug)]
pub struct Account {
    pub labels: Arc<Labels>,
    pub tally: Tally,
    pub range: TimeRange,
    /// Number of samples whose time is at most the latest time that was sent earlier for the series. Such a sample may replace
    /// another sample, because the store keeps only the last sample of each time.
    pub late: u64,
}

#[derive(Default)]
pub struct Ledger {
    pub accounts: HashMap<(Kind, SeriesId), Account>,
    pub samples: Tally,
    pub entries: Tally,
}

/// An account in serialized form. It is not an entry of a series.
#[derive(Serialize, Deserialize)]
pub struct Entry {
    labels: Vec<(String, String)>,
    /// The [`Kind`] as a number.
    kind: u8,
    tally: Tally,
    start: Timestamp,
    end: Timestamp,
    late: u64,
}

impl Ledger {
    pub fn entries(&self) -> Vec<Entry> {
        let entry = |((kind, _), account): (&(Kind, SeriesId), &Account)| Entry {
            labels: account.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            kind: *kind as u8,
            tally: account.tally,
            start: account.range.start,
            end: account.range.end,
            late: account.late,
        };
        self.accounts.iter().map(entry).collect()
    }

    /// Restores a ledger. Accounts with invalid labels or kinds are skipped.
    pub fn of(entries: &[Entry]) -> Self {
        let mut out = Self::default();
        for entry in entries {
            let pairs = entry.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let (Ok(labels), Some(kind)) = (Labels::new(pairs), Kind::from_byte(entry.kind)) else {
                continue;
            };
            let sum = if kind == Kind::Entry { &mut out.entries } else { &mut out.samples };
            sum.add(entry.tally);
            let (tally, late) = (entry.tally, entry.late);
            let range = TimeRange::new(entry.start, entry.end);
            let labels = Arc::new(labels);
            out.accounts.insert((kind, labels.id()), Account { labels, tally, range, late });
        }
        out
    }

    pub fn take(&mut self, batch: &Batch) {
        for series in &batch.samples {
            let id = series.labels.id();
            let Some(first) = series.samples.first() else { continue };
            let account = self.account(Kind::Sample, id, &series.labels, first.at);
            let before = account.tally;
            for sample in &series.samples {
                account.late += u64::from(account.tally.count > 0 && sample.at <= account.range.end);
                account.see(sample.at);
                account.tally.take(sample_hash(id, sample));
            }
            let added = account.tally.since(before);
            self.samples.add(added);
        }
        for series in &batch.entries {
            let id = series.labels.id();
            let Some(first) = series.entries.first() else { continue };
            let account = self.account(Kind::Entry, id, &series.labels, first.at);
            let before = account.tally;
            for entry in &series.entries {
                account.see(entry.at);
                account.tally.entry(id, entry);
            }
            let added = account.tally.since(before);
            self.entries.add(added);
        }
    }

    fn account(&mut self, kind: Kind, id: SeriesId, labels: &Arc<Labels>, at: Timestamp) -> &mut Account {
        self.accounts.entry((kind, id)).or_insert_with(|| Account {
            labels: Arc::clone(labels),
            tally: Tally::default(),
            range: TimeRange::new(at, at),
            late: 0,
        })
    }
}

impl Account {
    fn see(&mut self, at: Timestamp) {
        self.range = TimeRange::new(self.range.start.min(at), self.range.end.max(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_model::{NAME, Sample, SampleSeries, Value};

    #[test]
    fn ranges_and_late_samples_are_counted() {
        let labels = Arc::new(Labels::new([(NAME, "a")]).unwrap());
        let batch = |times: &[i64]| {
            let samples = times.iter().map(|at| Sample { at: *at, value: Value::F64(1.0) }).collect();
            Batch { samples: vec![SampleSeries { labels: labels.clone(), samples }], ..Batch::default() }
        };
        let mut ledger = Ledger::default();
        ledger.take(&batch(&[5, 7, 7]));
        ledger.take(&batch(&[3, 9]));
        let account = &ledger.accounts[&(Kind::Sample, labels.id())];
        assert_eq!((account.tally.count, account.late, account.range), (5, 2, TimeRange::new(3, 9)));
        assert_eq!(ledger.samples, account.tally);
        let again = Ledger::of(&ledger.entries());
        assert_eq!(again.samples, ledger.samples);
        assert_eq!(format!("{:?}", again.accounts), format!("{:?}", ledger.accounts));
    }
}
