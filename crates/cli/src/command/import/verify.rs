//! Compares the store with the sent records: number and checksum of each series.
//!
//! Of the samples of a series with the same time, the store keeps only the last one. It keeps no records older than the
//! retention. So a series may differ because its times are not ascending, or because some are too old. For such series the files
//! are read a second time, to compute the expected content of the store.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde_json::{Value, json};
use tacho_api::tally::{Held, Retention, Tally, entry_hash, sample_hash};
use tacho_api::units;
use tacho_model::{Kind, SeriesId, Timestamp};

use super::feed::Feed;
use super::findings::{Findings, records};
use super::ledger::{Account, Ledger};
use super::target::{Question, Target};
use crate::failure::Failure;

/// Limit on the records of which a second reading keeps time and hash in memory, 16 bytes each.
const SECOND_SAMPLES_MAX: usize = 32_000_000;
/// Limit on the series that differ and are named.
const NAMED_MAX: usize = 10;

#[derive(Debug, Default)]
pub struct Verdict {
    /// Number of sent records of all series.
    pub sent: u64,
    /// Tally (count and checksum) of the stored samples of the sent series.
    pub samples: Tally,
    /// Tally of the stored entries of the sent series.
    pub entries: Tally,
    /// Number of sent samples that were replaced by a sample that was sent later and has the same time.
    pub replaced: u64,
    /// For each series that differs: its name, the tally of the sent records that the store must keep, and the tally of the
    /// stored records.
    pub differing: Vec<(String, Tally, Tally)>,
    /// Number of records older than the retention, by retention in ns.
    pub expired: BTreeMap<u64, u64>,
    /// Number of series that could not be compared. Some of their times are too old or not in ascending order, so the files must
    /// be read a second time. This is not possible, or the files have [`SECOND_SAMPLES_MAX`] or more records of such series.
    pub unknown: u64,
}

/// A series for which the files must be read again.
struct Open {
    stored: Tally,
    series: String,
    retention: Option<Retention>,
}

impl Verdict {
    pub fn is_good(&self) -> bool {
        self.differing.is_empty()
    }

    /// For example `12 of 300 records are older than the retention of 30 d: the store does not keep them`.
    pub fn too_old(&self, records: u64, keep_ns: u64) -> String {
        let (are, them) = if records == 1 { ("is", "it") } else { ("are", "them") };
        let sent = units::counted(self.sent, "record", "records");
        let (records, keep) = (units::count(records), units::days(keep_ns));
        format!(
            "{records} of {sent} {are} older than the retention of {keep}: the store does not keep {them}"
        )
    }

    /// Ignores the series that are missing in the store, if the number of all their sent records equals the number of
    /// refused records.
    pub fn ignore_refused(&mut self, refused: u64) {
        let missing = |(_, _, stored): &&(String, Tally, Tally)| stored.count == 0;
        let records: u64 = self.differing.iter().filter(missing).map(|(_, sent, _)| sent.count).sum();
        if refused > 0 && records == refused {
            self.differing.retain(|(_, _, stored)| stored.count > 0);
        }
    }

    pub fn json(&self) -> Value {
        let named: Vec<Value> = self
            .differing
            .iter()
            .take(NAMED_MAX)
            .map(|(series, sent, stored)| json!({ "series": series, "sent": sent, "stored": stored }))
            .collect();
        json!({
            "good": self.is_good(),
            "samples": self.samples,
            "entries": self.entries,
            "replaced": self.replaced,
            "differing": self.differing.len(),
            "differing_named": named,
            "expired": self.expired.values().sum::<u64>(),
            "unknown": self.unknown,
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = records(self.samples.count, self.entries.count);
        let sum = self.samples.sum.wrapping_add(self.entries.sum);
        if self.is_good() {
            writeln!(f, "verified: the store holds {said}, checksum {sum:016x}")?;
        } else {
            writeln!(
                f,
                "NOT VERIFIED: {} series differ in the store",
                units::count(self.differing.len() as u64)
            )?;
        }
        if self.replaced > 0 {
            let replaced = units::counted(self.replaced, "sample", "samples");
            writeln!(f, "replaced: {replaced} with the same time as a sample in a later row")?;
        }
        for (keep_ns, records) in &self.expired {
            writeln!(f, "{}", self.too_old(*records, *keep_ns))?;
        }
        if self.unknown > 0 {
            writeln!(
                f,
                "{} series could not be compared: some of their times are older than the retention or not ascending, so the \
                 input must be read a second time, but it includes standard input, or is too large",
                units::count(self.unknown)
            )?;
        }
        for (series, sent, stored) in self.differing.iter().take(NAMED_MAX) {
            let (sent_count, stored_count) = (units::count(sent.count), units::count(stored.count));
            writeln!(
                f,
                "  {series}: expected {sent_count} ({:016x}), stored {stored_count} ({:016x})",
                sent.sum, stored.sum
            )?;
        }
        Ok(())
    }
}

/// `again` is the feed for a second reading, if the files can be read again.
pub async fn verify(target: &mut Target, ledger: &Ledger, again: Option<&Feed>) -> Result<Verdict, Failure> {
    let accounts: Vec<(&(Kind, SeriesId), &Account)> = ledger.accounts.iter().collect();
    let questions: Vec<Question> = accounts
        .iter()
        .map(|((kind, _), account)| Question {
            kind: *kind,
            labels: account.labels.clone(),
            range: account.range,
        })
        .collect();
    let stored = target.tallies(&questions).await?;
    let mut verdict = Verdict { sent: ledger.samples.count + ledger.entries.count, ..Verdict::default() };
    let mut open: HashMap<(Kind, SeriesId), Open> = HashMap::new();
    for ((id, account), Held { tally: stored, retention }) in accounts.into_iter().zip(stored) {
        let (kind, series) = (id.0, account.labels.to_string());
        let retention = retention.filter(|retention| account.range.start < retention.before);
        match kind {
            Kind::Entry => verdict.entries.add(stored),
            _ => verdict.samples.add(stored),
        }
        if account.tally == stored {
            continue;
        }
        match retention {
            Some(retention) if account.range.end < retention.before && stored.count == 0 => {
                *verdict.expired.entry(retention.keep_ns).or_default() += account.tally.count;
            }
            None if account.late == 0 => verdict.differing.push((series, account.tally, stored)),
            retention => {
                open.insert(*id, Open { stored, series, retention });
            }
        }
    }
    if !open.is_empty() {
        compare_again(&mut verdict, open, again)?;
    }
    verdict.differing.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(verdict)
}

/// Reads the files again, for series with times that are too old or not in ascending order.
fn compare_again(
    verdict: &mut Verdict,
    open: HashMap<(Kind, SeriesId), Open>,
    again: Option<&Feed>,
) -> Result<(), Failure> {
    let mut sent: HashMap<(Kind, SeriesId), Vec<(Timestamp, u64)>> =
        open.keys().map(|id| (*id, Vec::new())).collect();
    let mut room = SECOND_SAMPLES_MAX;
    let whole = match again {
        Some(feed) => feed.each(&mut Findings::quiet(), |step| {
            for series in &step.batch.samples {
                let id = series.labels.id();
                let Some(list) = sent.get_mut(&(Kind::Sample, id)) else { continue };
                list.extend(series.samples.iter().map(|sample| (sample.at, sample_hash(id, sample))));
                room = room.saturating_sub(series.samples.len());
            }
            for series in &step.batch.entries {
                let id = series.labels.id();
                let Some(list) = sent.get_mut(&(Kind::Entry, id)) else { continue };
                list.extend(series.entries.iter().map(|entry| (entry.at, entry_hash(id, entry))));
                room = room.saturating_sub(series.entries.len());
            }
            room > 0
        })?,
        None => false,
    };
    if !whole {
        verdict.unknown = open.len() as u64;
        return Ok(());
    }
    for (id, mut list) in sent {
        let Some(Open { stored, series, retention }) = open.get(&id) else { continue };
        // The sort is stable, so the last of several samples with equal times remains the last.
        list.sort_by_key(|(at, _)| *at);
        let mut expect = Tally::default();
        for (nth, (at, hash)) in list.iter().enumerate() {
            let is_last = id.0 == Kind::Entry || list.get(nth + 1).is_none_or(|(next, _)| next != at);
            match retention.filter(|retention| *at < retention.before) {
                Some(retention) => *verdict.expired.entry(retention.keep_ns).or_default() += 1,
                None if is_last => expect.take(*hash),
                None => verdict.replaced += 1,
            }
        }
        if expect != *stored {
            verdict.differing.push((series.clone(), expect, *stored));
        }
    }
    Ok(())
}
