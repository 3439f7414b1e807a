//! Damages: the parts that an answer lacks because they are unreadable. The first parts are listed, each with its series, time
//! range and reason. Further parts are only counted.
//!
//! An unreadable row does not fail an answer and is not omitted silently. The answer includes its damages ([`Read`]).
//! Callers that need all records get an error ([`Read::whole`]).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use tacho_model::{Kind, Labels, SeriesId, TimeRange, Timestamp};

use crate::counters::Count;
use crate::driver::{Damaged, Health};
use crate::guarded::Guarded;
use crate::keys::{ChunkKey, chunk_partition};
use crate::kinds::plural;
use crate::{Error, Result};

/// Limit on the parts listed per answer. Further parts are only counted.
pub const DAMAGES_NAMED_MAX: usize = 32;
/// Limit on remembered unreadable rows, 16 bytes each. They are remembered so that each row is counted once. Further rows
/// are not counted.
const ROWS_KNOWN_MAX: usize = 1 << 16;

/// Records that exist and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub kind: Kind,
    /// `None` where the labels cannot be read either. Any series may then be affected.
    pub labels: Option<Arc<Labels>>,
    /// All missing records are in this range.
    pub range: TimeRange,
    pub reason: Arc<str>,
}

impl Damage {
    /// The range as text, to follow a noun: `records between 2026-03-01T10:00:00Z and 2026-03-01T11:39:50Z`.
    pub fn times(&self) -> String {
        let TimeRange { start, end } = self.range;
        match (start == Timestamp::MIN, end == Timestamp::MAX) {
            (true, true) => "of any time".to_owned(),
            (true, false) => format!("up to {}", time(end)),
            (false, true) => format!("from {} on", time(start)),
            (false, false) => format!("between {} and {}", time(start), time(end)),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damages {
    named: Vec<Damage>,
    /// Number of parts that are not listed, by series. An answer has the labels of these series anyway.
    more: BTreeMap<Option<Arc<Labels>>, u64>,
}

impl Damages {
    pub fn add(&mut self, damage: Damage) {
        // Damages that touch are merged. A query may request a series several times. It may also read a
        // range in several reads, and each read reports its part of a long row.
        let touches = |known: &&mut Damage| {
            known.range.start <= damage.range.end.saturating_add(1)
                && damage.range.start <= known.range.end.saturating_add(1)
                && (known.kind, &known.labels, &known.reason) == (damage.kind, &damage.labels, &damage.reason)
        };
        if let Some(Damage { range, .. }) = self.named.iter_mut().find(touches) {
            *range = TimeRange::new(range.start.min(damage.range.start), range.end.max(damage.range.end));
            return;
        }
        if self.named.len() < DAMAGES_NAMED_MAX {
            self.named.push(damage);
        } else {
            *self.more.entry(damage.labels).or_default() += 1;
        }
    }

    pub fn extend(&mut self, other: Self) {
        other.more.into_iter().for_each(|(labels, count)| *self.more.entry(labels).or_default() += count);
        other.named.into_iter().for_each(|damage| self.add(damage));
    }

    /// Removes the damages of series that `keep` refuses. Those of unknown series stay.
    pub fn retain(&mut self, keep: impl Fn(&Labels) -> bool) {
        let is_kept = |labels: &Option<Arc<Labels>>| labels.as_ref().is_none_or(|labels| keep(labels));
        self.named.retain(|damage| is_kept(&damage.labels));
        self.more.retain(|labels, _| is_kept(labels));
    }

    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.more.is_empty()
    }

    /// At most [`DAMAGES_NAMED_MAX`].
    pub fn named(&self) -> &[Damage] {
        &self.named
    }

    pub fn more(&self) -> u64 {
        self.more.values().sum()
    }

    /// # Errors
    /// `Corrupt` when any record is missing. The message describes the first missing part.
    pub fn check(&self) -> Result<()> {
        let parts = self.named.len() as u64 + self.more();
        let Some(first) = self.named.first() else {
            return match parts {
                0 => Ok(()),
                parts => Err(Error::corrupt("stored records cannot be read").with("parts", parts)),
            };
        };
        let labels = first.labels.as_ref().map_or_else(|| "any series".to_owned(), |l| format!("series {l}"));
        let error = Error::corrupt(format!("stored records cannot be read: {}", first.reason));
        let error = error.with("of", labels).with(plural(first.kind), first.times());
        Err(if parts > 1 { error.with("parts", parts) } else { error })
    }
}

#[derive(Clone, Debug, Default)]
pub struct Read<T> {
    pub records: T,
    pub damages: Damages,
}

impl<T> Read<T> {
    /// # Errors
    /// `Corrupt` when any record is missing.
    pub fn whole(self) -> Result<T> {
        self.damages.check()?;
        Ok(self.records)
    }
}

/// Unreadable parts of the store: those that were found at start, and the rows found since.
#[derive(Debug, Default)]
pub struct Unreadable {
    rows: Mutex<HashSet<u128>>,
    /// Number of unreadable rows of the Chunks table; each is counted once.
    count: Count,
    /// Partitions with an unreadable series row. Their series are unknown.
    nameless: Guarded<BTreeSet<(Kind, SeriesId)>>,
    /// Reasons why any answer may lack records or include deleted ones: files, journals or deletions that were unreadable at
    /// start.
    everywhere: Vec<Arc<str>>,
}

impl Unreadable {
    /// Collects the damage that was found at start in the Series and Meta tables, the journals, and the files of the back
    /// end.
    pub fn new(
        nameless: BTreeSet<(Kind, SeriesId)>,
        deletions: Vec<Damaged>,
        journals: Vec<Arc<str>>,
        health: &Health,
    ) -> Self {
        let deletion = |damaged: Damaged| format!("deleted records may reappear: {damaged}").into();
        let mut everywhere: Vec<Arc<str>> = deletions.into_iter().map(deletion).chain(journals).collect();
        let Health { damaged_places, damaged_bytes, places_in, set_aside, .. } = health;
        if *damaged_places > 0 {
            let (bytes, files) = (damaged_bytes, places_in.join(", "));
            let places =
                if *damaged_places == 1 { "1 place".to_owned() } else { format!("{damaged_places} places") };
            everywhere.push(format!("{bytes} bytes at {places} of {files} cannot be read").into());
        }
        if !set_aside.is_empty() {
            let names = set_aside.join(", ");
            everywhere.push(
                format!(
                    "quarantined because its records cannot be read: {names} (to continue without it, remove it from \
                     quarantine/ and restart)"
                )
                .into(),
            );
        }
        Self { rows: Mutex::default(), count: Count::default(), nameless: Guarded::new(nameless), everywhere }
    }

    /// Counts and logs an unreadable row of the Chunks table when it is found for the first time.
    pub fn note(&self, (kind, partition): (Kind, SeriesId), key: &ChunkKey, reason: &str) {
        let mut place = chunk_partition(kind, partition);
        place.extend(key.encode());
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.len() < ROWS_KNOWN_MAX && rows.insert(xxhash_rust::xxh3::xxh3_128(&place)) {
            drop(rows);
            self.count.add(1);
            let (kind, start, generation) = (kind.name(), key.start, key.generation);
            tracing::error!(kind, %partition, start, generation, reason, "stored row cannot be read");
        }
    }

    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// Marks the series row of a partition as readable, because it was written again.
    pub fn named(&self, kind: Kind, partition: SeriesId) {
        if !self.nameless.read().is_empty() {
            self.nameless.write().remove(&(kind, partition));
        }
    }

    pub fn nameless(&self) -> Vec<(Kind, SeriesId)> {
        self.nameless.read().iter().copied().collect()
    }

    /// Damages that apply to every answer about a kind.
    pub fn of_all(&self, kind: Kind) -> Damages {
        let mut damages = Damages::default();
        let mut add =
            |reason: Arc<str>| damages.add(Damage { kind, labels: None, range: TimeRange::ALL, reason });
        let nameless = self.nameless.read();
        for (_, partition) in nameless.iter().filter(|(of, _)| *of == kind) {
            add(format!("the row with the labels of group {partition} cannot be read").into());
        }
        self.everywhere.iter().for_each(|reason| add(reason.clone()));
        damages
    }
}

/// A time as text.
pub fn time(at: Timestamp) -> String {
    jiff::Timestamp::from_nanosecond(at.into()).map_or_else(|_| format!("{at} ns"), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damage(name: &str) -> Damage {
        Damage {
            kind: Kind::Sample,
            labels: Some(Arc::new(Labels::new([(tacho_model::NAME, name)]).unwrap())),
            range: TimeRange::new(1, 2),
            reason: "checksum mismatch".into(),
        }
    }

    #[test]
    fn damaged_rows_are_reported_only_for_files_that_have_them() {
        let health = Health {
            damaged: ["MANIFEST", "00000001.segment", "00000002.segment"].map(str::to_owned).to_vec(),
            damaged_places: 1,
            damaged_bytes: 77,
            places_in: vec!["00000002.segment".to_owned()],
            ..Health::default()
        };
        let unreadable = Unreadable::new(BTreeSet::new(), Vec::new(), Vec::new(), &health);
        let damages = unreadable.of_all(Kind::Entry);
        assert_eq!(&*damages.named()[0].reason, "77 bytes at 1 place of 00000002.segment cannot be read");
    }

    #[test]
    fn listed_damages_are_limited_and_the_others_counted() {
        let mut damages = Damages::default();
        assert!(damages.check().is_ok());
        damages.add(damage("a"));
        let one = damages.check().unwrap_err();
        let of = "stored records cannot be read: checksum mismatch (of series a, samples between \
                  1970-01-01T00:00:00.000000001Z and 1970-01-01T00:00:00.000000002Z";
        assert_eq!((one.kind(), one.to_string()), (crate::ErrorKind::Corrupt, format!("{of})")));
        (0..DAMAGES_NAMED_MAX).for_each(|n| damages.add(damage(&format!("b{n}"))));
        damages.extend(damages.clone());
        assert_eq!((damages.named().len(), damages.more()), (DAMAGES_NAMED_MAX, 2));
        damages.add(Damage { range: TimeRange::new(3, 9), ..damage("a") });
        assert_eq!(damages.named()[0].range, TimeRange::new(1, 9));
        damages.add(damage("a"));
        let of = of.replace("002Z", "009Z");
        assert_eq!(damages.check().unwrap_err().to_string(), format!("{of}, parts 34)"));
    }

    #[test]
    fn refused_series_count_neither_as_listed_nor_as_further_parts() {
        let mut damages = Damages::default();
        let later = |name: &str, n: i64| Damage { range: TimeRange::new(10 * n, 10 * n + 1), ..damage(name) };
        (0..DAMAGES_NAMED_MAX as i64).for_each(|n| damages.add(later("other", n)));
        (0..5).for_each(|n| damages.add(later("other", 100 + n)));
        (0..2).for_each(|n| damages.add(later("own", n)));
        damages.add(Damage { labels: None, ..damage("") });
        assert_eq!((damages.named().len(), damages.more()), (DAMAGES_NAMED_MAX, 8));
        let is_own = |labels: &Labels| labels.to_string() == "own";
        damages.retain(is_own);
        assert_eq!((damages.named().len(), damages.more()), (0, 3));
        assert!(!damages.is_empty());
        assert_eq!(damages.check().unwrap_err().to_string(), "stored records cannot be read (parts 3)");
        let mut others = Damages::default();
        (0..2 * DAMAGES_NAMED_MAX as i64).for_each(|n| others.add(later("other", n)));
        others.retain(is_own);
        assert!(others.is_empty() && others.check().is_ok());
    }
}
