//! Is each row consistent with the rest of the store? The check of a row uses no result of another
//! check, so several threads can check rows.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tacho_model::{Families, Kind, SeriesId, TimeRange};

use super::finding::{Finding, FindingKind, Loss, Lost, Place, PlacedRow, SERIES_NAMED_MAX};
use super::known::{Known, highest, misnamed};
use crate::damage::time;
use crate::driver::{Damaged, Row, Table};
use crate::group::row::{decode_series, series_key};
use crate::kept::{self, KeptKey, Level, UNTIL, decode_until};
use crate::keys::{
    CLOCK, FLUSHED, IDENTITY, JOURNALS, SEQUENCE, SESSIONS, STORE, STORED, decode_session, decode_store_fact,
};
use crate::kinds::plural;
use crate::rollup::{Rollup, series_of, summary};
use crate::upkeep::{LIVES, TOMBSTONES, Tombstone, decode_life};
use crate::{Error, ErrorKind, Result};

/// The effect of a damaged roll-up.
const UNROLLED: &str =
    "nothing is lost: the summaries of its chunks are read until the server writes it again";

/// The effect of a damaged kept summary, and what is lost.
fn unsummed(clustering: &[u8]) -> (Loss, &'static str) {
    match KeptKey::decode(clustering) {
        Ok(KeptKey { level: Level::Day, .. }) => {
            (Loss::Derivable, "nothing is lost: the summaries of the hours of this day are read")
        }
        _ => (Loss::Fact, "the summary of the expired calls of this hour is lost"),
    }
}

/// The effect of a damaged row with the end of the summed days of a series.
const UNENDED: &str = "nothing is lost: the last kept summary of the series shows the end";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Checks checksums, keys and references.
    Quick,
    /// Also decodes the chunks, and compares their records with their headers, filters and summaries.
    Whole,
}

#[derive(Debug, Default)]
pub struct Verdict {
    pub findings: Vec<Finding>,
    /// The row as a repair copies it, without damaged columns. `None` if no part of the row can be used, or if the row is
    /// not needed.
    pub kept: Option<Row>,
    pub records: Option<(Kind, u64)>,
}

impl Verdict {
    pub(super) fn found(finding: Finding) -> Self {
        Self { findings: vec![finding], ..Self::default() }
    }
}

pub struct Checker {
    pub(super) known: Known,
    pub(super) depth: Depth,
    /// The highest generation that can have chunks.
    pub(super) highest: u64,
    pub(super) nameless: Mutex<BTreeMap<(Kind, SeriesId), Nameless>>,
    /// The chunks with a sequence number above the last one in the facts about the store (rows of the Meta table); `None` if
    /// there are none.
    pub(super) unrecorded: Mutex<Option<Unrecorded>>,
    /// Groups and series without a readable series row. Another row or a journal has their labels.
    pub(super) derived: Vec<(Kind, SeriesId)>,
}

pub(super) struct Nameless {
    pub place: Place,
    pub chunks: u64,
    pub records: Option<u64>,
    pub range: TimeRange,
}

pub(super) struct Unrecorded {
    pub place: Place,
    pub chunks: u64,
    pub highest: u64,
}

impl Checker {
    /// `journals` are all generations that the journals name ([`super::Journals::generations`]).
    pub fn new(known: Known, journals: impl IntoIterator<Item = u64>, depth: Depth) -> Self {
        let highest = highest(&known, journals);
        Self {
            known,
            depth,
            highest,
            nameless: Mutex::default(),
            unrecorded: Mutex::default(),
            derived: Vec::new(),
        }
    }

    pub const fn known(&self) -> &Known {
        &self.known
    }

    /// The highest sequence number in the facts, in the keys, and in the rows checked so far.
    pub fn last_sequence(&self) -> u64 {
        let unrecorded = self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner);
        let of_rows = unrecorded.as_ref().map_or(0, |unrecorded| unrecorded.highest);
        self.known.facts.last_sequence().max(self.known.keys.last_sequence).max(of_rows)
    }

    /// # Errors
    /// `Version` for a row of a newer version.
    pub fn row(&self, placed: PlacedRow) -> Result<Verdict> {
        let file = placed.place.file.clone();
        self.verdict(placed).map_err(|error| error.with("file", file))
    }

    fn verdict(&self, placed: PlacedRow) -> Result<Verdict> {
        if !placed.needed && (placed.is_key_certain || self.has_chunk_of_key(&placed.row)) {
            let unneeded = |damaged: Damaged| {
                let why = format!("{}: the row was replaced or deleted, nothing is lost", damaged.reason);
                let key = self.key(damaged.table, &damaged.partition, &damaged.clustering);
                Verdict::found(Finding::new(FindingKind::RowDamaged, placed.place, why).key(key))
            };
            return Ok(placed.row.err().map(unneeded).unwrap_or_default());
        }
        let (Ok(Row { table, .. }) | Err(Damaged { table, .. })) = &placed.row;
        match (*table, placed.row) {
            (Table::Chunks, row) => self.chunk(placed.place, placed.is_key_certain, row),
            (Table::Series, Ok(row)) => self.series(placed.place, row),
            (Table::Meta, Ok(row)) => self.meta(placed.place, row),
            (Table::Series | Table::Meta, Err(damaged)) => Ok(self.damaged_fact(placed.place, &damaged)),
        }
    }

    fn series(&self, place: Place, row: Row) -> Result<Verdict> {
        let wrong = match decode_series(&row, &mut Families::default()) {
            Ok(decoded) => misnamed(&row, &decoded),
            Err(error) if error.kind() == ErrorKind::Version => return Err(error),
            Err(error) => Some(chain(&error)),
        };
        let Some(why) = wrong else { return Ok(Verdict { kept: Some(row), ..Verdict::default() }) };
        let key = self.key(row.table, &row.partition, &row.clustering);
        let finding = Finding::new(FindingKind::SeriesWrong, place, why).key(key);
        Ok(Verdict::found(finding.effect("the server does not start")))
    }

    fn meta(&self, place: Place, row: Row) -> Result<Verdict> {
        let decoded = match &*row.partition {
            STORE => decode_store_fact(&row).map(drop),
            SESSIONS => decode_session(&row).and_then(|(_, session)| {
                let generation = session.generation;
                if generation <= self.highest {
                    return Ok(());
                }
                Err(Error::corrupt(format!(
                    "generation {generation} is above the last one, {}",
                    self.highest
                )))
            }),
            TOMBSTONES => Tombstone::decode(&row).map(drop),
            LIVES => decode_life(&row).map(drop),
            UNTIL => decode_until(&row).map(drop),
            partition if kept::series_of(partition).is_some() => {
                KeptKey::decode(&row.clustering).and_then(|_| kept::summary(&row)).map(drop)
            }
            // A repair may change the chunks of a roll-up. The server writes roll-ups again.
            partition if series_of(partition).is_some() => {
                match Rollup::decode(&row).and_then(|_| summary(&row)) {
                    Ok(_) => return Ok(Verdict::default()),
                    Err(error) => Err(error),
                }
            }
            // Newer versions may have other partitions, which this version may ignore.
            _ => Ok(()),
        };
        match decoded {
            Ok(()) => Ok(Verdict { kept: Some(row), ..Verdict::default() }),
            Err(error) if error.kind() == ErrorKind::Version => Err(error),
            Err(error) => {
                let key = self.key(row.table, &row.partition, &row.clustering);
                let no_start = "the server may not start";
                let (loss, effect) = match &*row.partition {
                    UNTIL => (Loss::Derivable, UNENDED),
                    partition if series_of(partition).is_some() => (Loss::Derivable, UNROLLED),
                    partition if kept::series_of(partition).is_some() => unsummed(&row.clustering),
                    LIVES => (Loss::Derivable, no_start),
                    _ if is_derived(&row) => (Loss::Derivable, no_start),
                    _ => (Loss::Fact, no_start),
                };
                let finding = Finding::new(FindingKind::FactWrong, place, chain(&error)).key(key).loss(loss);
                Ok(Verdict::found(finding.effect(effect)))
            }
        }
    }

    /// A damaged row of the Series or the Meta table.
    fn damaged_fact(&self, place: Place, damaged: &Damaged) -> Verdict {
        let Damaged { table, partition, clustering, reason, .. } = damaged;
        let (loss, effect) = match (&**partition, &**clustering) {
            // If neither another row nor a journal has the labels, `finish` reports the records separately.
            _ if *table == Table::Series => (
                Loss::Derivable,
                "the labels of its series are lost, unless another row or a journal has them",
            ),
            (STORE, FLUSHED | SEQUENCE | IDENTITY | JOURNALS) => {
                (Loss::Derivable, "nothing is lost: other rows have the same facts")
            }
            (STORE, STORED) => (Loss::Derivable, "the statistics of the stored records restart at 0"),
            (STORE, CLOCK) => (Loss::Derivable, "the next start trusts the clock of the machine"),
            (SESSIONS, _) => (Loss::Fact, "a frame that this session sends again may be stored twice"),
            (TOMBSTONES, _) => (Loss::Fact, "deleted records may reappear"),
            (LIVES, _) => (
                Loss::Derivable,
                "values of the series are not rounded until the series is again known not to be a counter",
            ),
            (partition, _) if series_of(partition).is_some() => (Loss::Derivable, UNROLLED),
            (partition, _) if kept::series_of(partition).is_some() => unsummed(clustering),
            (UNTIL, _) => (Loss::Derivable, UNENDED),
            _ => (Loss::Fact, ""),
        };
        let finding = Finding::new(FindingKind::RowDamaged, place, reason).loss(loss);
        Verdict::found(finding.key(self.key(*table, partition, clustering)).effect(effect))
    }

    pub(super) fn key(&self, table: Table, partition: &[u8], clustering: &[u8]) -> String {
        let text = |bytes: &[u8]| {
            let is_text = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_graphic);
            let hex = || bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            if is_text { String::from_utf8_lossy(bytes).into_owned() } else { hex() }
        };
        match table {
            Table::Chunks => self.chunk_words(partition, clustering),
            Table::Series => match series_key(clustering) {
                Ok((kind, group)) => format!("labels of {}", self.group_words(kind, group)),
                Err(_) => format!("series row {}", text(clustering)),
            },
            Table::Meta => match series_of(partition) {
                Some(series) => format!("roll-up {} of series {series}", text(clustering)),
                None => match kept::series_of(partition) {
                    Some(series) => self.kept_words(series, clustering, &text),
                    None => format!("{} {}", text(partition), text(clustering)),
                },
            },
        }
    }

    fn kept_words(&self, series: SeriesId, clustering: &[u8], text: &dyn Fn(&[u8]) -> String) -> String {
        let labels = self.known.index.labels(series);
        let of = labels.map_or_else(|| format!("series {series}"), |labels| labels.to_string());
        match KeptKey::decode(clustering) {
            Ok(key) => {
                let length = if key.level == Level::Day { "day" } else { "hour" };
                format!("kept summary of the {length} from {} on, of {of}", time(key.start))
            }
            Err(_) => format!("kept summary {} of {of}", text(clustering)),
        }
    }

    pub(super) fn group_words(&self, kind: Kind, group: SeriesId) -> String {
        let what = if kind == Kind::Sample { "group" } else { "series" };
        format!("{} of {what} {group}", plural(kind))
    }

    /// The series of a group of samples, in the order of their member numbers. For another kind, the only series of the
    /// partition.
    pub(super) fn members(&self, kind: Kind, group: SeriesId) -> Option<Vec<u32>> {
        let index = &self.known.index;
        if kind == Kind::Sample {
            return index.group_number(group).map(|number| index.group(number).members.to_vec());
        }
        index.number(group).filter(|number| index.is_of(kind, *number)).map(|number| vec![number])
    }

    /// The number of series that [`Self::members`] returns.
    pub(super) fn member_count(&self, kind: Kind, group: SeriesId) -> Option<usize> {
        let index = &self.known.index;
        if kind == Kind::Sample {
            return index.group_number(group).map(|number| index.group(number).members.len());
        }
        index.number(group).filter(|number| index.is_of(kind, *number)).map(|_| 1)
    }

    pub(super) fn lost(
        &self,
        kind: Kind,
        series: &[u32],
        range: Option<TimeRange>,
        records: Option<u64>,
    ) -> Lost {
        let labels = |number: &u32| self.known.index.labels_of(*number).to_string();
        let named: Vec<String> = series.iter().take(SERIES_NAMED_MAX).map(labels).collect();
        Lost { kind, series_more: series.len() - named.len(), series: named, range, records }
    }

    /// Returns the findings about the store as a whole. Must be called after all rows were checked.
    pub fn finish(&self) -> Vec<Finding> {
        let nameless = std::mem::take(&mut *self.nameless.lock().unwrap_or_else(PoisonError::into_inner));
        let unknown = |((kind, group), nameless): ((Kind, SeriesId), Nameless)| {
            let Nameless { place, chunks, records, range } = nameless;
            let why = format!(
                "no row has the labels of this {}: {}",
                if kind == Kind::Sample { "group" } else { "series" },
                counted_chunks(chunks)
            );
            let lost = Lost { kind, series: Vec::new(), series_more: 0, range: Some(range), records };
            Finding::new(FindingKind::SeriesUnknown, place, why).key(self.group_words(kind, group)).lost(lost)
        };
        let mut findings: Vec<Finding> = nameless.into_iter().map(unknown).collect();
        let derived = |(kind, group): &(Kind, SeriesId)| {
            let why = "its row of labels is missing or damaged, but another row or a journal has the labels";
            Finding::new(FindingKind::SeriesUnknown, Place::file("chunks"), why)
                .key(self.group_words(*kind, *group))
                .loss(Loss::Derivable)
                .effect("nothing is lost")
                .remedy("use tacho repair: it writes the labels again")
        };
        findings.extend(self.derived.iter().map(derived));
        findings.extend(self.sequence_unknown());
        let facts = &self.known.facts;
        let is_empty = self.known.partitions.is_empty() && self.known.index.len() == 0;
        if facts.id.is_none() && !is_empty {
            findings.push(
                Finding::new(FindingKind::FactMissing, Place::file("chunks"), "the store has no identity")
                    .effect("the server takes the identity from a journal; if there is no journal, it does not start"),
            );
        }
        if let (Some(id), Some(journals)) = (facts.id, &facts.journals)
            && journals.store != id
        {
            let why = format!("two identities: {id:032x} and {:032x}", journals.store);
            findings.push(Finding::new(FindingKind::FactWrong, Place::file("chunks"), why));
        }
        let unused = self.known.unused();
        if unused > 0 {
            findings.push(Finding::new(FindingKind::Unused, Place::file("chunks"), without_chunks(unused)));
        }
        findings
    }

    fn sequence_unknown(&self) -> Option<Finding> {
        let unrecorded = self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner);
        let Unrecorded { place, chunks, highest } = unrecorded.as_ref()?;
        let last = self.known.facts.last_sequence();
        let why = format!(
            "merge numbers of {}, up to {highest}, are above the recorded last number, {last}",
            counted_chunks(*chunks)
        );
        Some(Finding::new(FindingKind::SequenceUnknown, place.clone(), why))
    }
}

fn counted_chunks(chunks: u64) -> String {
    format!("{chunks} {}", if chunks == 1 { "chunk" } else { "chunks" })
}

fn without_chunks(unused: usize) -> String {
    match unused {
        1 => "1 group or series has labels and no chunks".to_owned(),
        _ => format!("{unused} groups or series have labels and no chunks"),
    }
}

/// The text of an error and its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Whether [`Salvage::rows`](super::Salvage::rows) writes the row again, so that the row must not be copied.
pub fn is_derived(row: &Row) -> bool {
    let is_fact = row.table == Table::Meta && row.partition == STORE;
    // Facts that only newer versions have are copied.
    let derived = [IDENTITY, FLUSHED, STORED, SEQUENCE, JOURNALS, CLOCK];
    is_fact && derived.contains(&&*row.clustering)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!((counted_chunks(1), counted_chunks(2)), ("1 chunk".into(), "2 chunks".into()));
        assert_eq!(without_chunks(1), "1 group or series has labels and no chunks");
        assert_eq!(without_chunks(2), "2 groups or series have labels and no chunks");
    }
}
