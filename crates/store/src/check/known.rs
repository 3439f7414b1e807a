//! Which facts, labels and keys does the store have? They are read first, because the checks of single rows need them. Unreadable
//! rows are ignored here. The later check of each row reports them.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use tacho_model::{Families, Kind, Labels, SeriesId};

use crate::Result;
use crate::driver::{Driver, Row, Table};
use crate::evidence::Keys;
use crate::group::row::{SeriesRow, decode_series, group_id, series_scan};
use crate::index::Index;
use crate::kept;
use crate::keys::{
    IDENTITY, JOURNALS, STORE, StoreFact, chunk_place, decode_session, decode_store_fact, sessions_scan,
    store_scan,
};
use crate::kinds::of_kind;
use crate::recover::{Facts, each_row};
use crate::upkeep::tombstones_scan;
use crate::{Error, ErrorKind};

/// The facts, sessions, series and keys that checks of single rows need.
pub struct Known {
    pub facts: Facts,
    /// The highest generation in the rows of sessions.
    pub last_session: u64,
    pub index: Index,
    /// The generations of the chunks, and the highest sequence number of a row.
    pub keys: Keys,
    has_tombstones: bool,
    pub partitions: HashSet<(Kind, SeriesId)>,
}

impl Known {
    /// Reads the facts, the sessions, the series and the keys of a store. Skips unreadable rows.
    ///
    /// # Errors
    /// `Version` for a row of a newer version, and errors of the driver.
    pub async fn read(driver: &dyn Driver) -> Result<Self> {
        let mut facts = Facts::default();
        each_row(driver, store_scan(), |row| {
            let Ok(row) = row else { return Ok(()) };
            readable(decode_store_fact(&row))?.into_iter().for_each(|fact| facts.add(fact));
            Ok(())
        })
        .await?;
        let mut last_session = 0;
        each_row(driver, sessions_scan(), |row| {
            let Ok(row) = row else { return Ok(()) };
            if let Some((_, session)) = readable(decode_session(&row))? {
                last_session = session.generation.max(last_session);
            }
            Ok(())
        })
        .await?;
        let mut has_tombstones = false;
        each_row(driver, tombstones_scan(), |_| {
            has_tombstones = true;
            Ok(())
        })
        .await?;
        let mut partitions = HashSet::new();
        let mut each = |partition: &[u8], _: &[u8]| partitions.extend(chunk_place(partition));
        driver.keys(Table::Chunks, &mut each).await?;
        let mut each = |partition: &[u8], _: &[u8]| {
            partitions.extend(kept::series_of(partition).map(|series| (Kind::Execution, series)));
        };
        driver.keys(Table::Meta, &mut each).await?;
        let (index, keys) = (index(driver).await?, Keys::read(driver).await?);
        Ok(Self { facts, last_session, index, keys, has_tombstones, partitions })
    }

    /// The last flushed generation. All generations up to it are in the driver.
    pub fn flushed(&self) -> u64 {
        self.facts.flushed().max(self.last_session)
    }

    /// Whether the driver has neither an identity nor data, like the driver of a new store.
    pub fn is_empty(&self) -> bool {
        let has_data = !self.keys.generations.is_empty() || self.index.len() > 0 || self.has_tombstones;
        self.facts.id.is_none() && self.flushed() == 0 && !has_data
    }

    /// Number of groups and series that have a series row but no chunk.
    pub fn unused(&self) -> usize {
        let groups = self.index.groups().map(|number| (Kind::Sample, self.index.group(number).id));
        let unused = groups.filter(|group| !self.partitions.contains(group)).count();
        let others = [Kind::Entry, Kind::Execution].map(|kind| {
            let used = self.partitions.iter().filter(|(of, id)| *of == kind && self.index.has(kind, *id));
            of_kind(&self.index.counts(), kind).saturating_sub(used.count())
        });
        unused + others.iter().sum::<usize>()
    }
}

/// The decoded row; `None` for a malformed row. A row of a newer version stays an error.
fn readable<T>(decoded: Result<T>) -> Result<Option<T>> {
    match decoded {
        Ok(decoded) => Ok(Some(decoded)),
        Err(error) if error.kind() == ErrorKind::Version => Err(error),
        Err(Error { .. }) => Ok(None),
    }
}

/// The reason why the labels in a series row do not match its key; `None` if they match.
pub fn misnamed(row: &Row, SeriesRow { kind, group, members }: &SeriesRow) -> Option<String> {
    let ids: Vec<SeriesId> = members.iter().map(Labels::id).collect();
    let expected = if *kind == Kind::Sample { group_id(&ids) } else { *ids.first().unwrap_or(group) };
    if expected != *group || (*kind != Kind::Sample && ids.len() > 1) {
        return Some(format!("its labels have the id {expected}, its key has {group}"));
    }
    (row.partition != [group.to_bytes()[0]]).then(|| format!("it is in shard {:02x?}", row.partition))
}

async fn index(driver: &dyn Driver) -> Result<Index> {
    let (mut index, mut families) = (Index::default(), Families::default());
    for shard in 0..=u8::MAX {
        each_row(driver, series_scan(shard), |row| {
            let Ok(row) = row else { return Ok(()) };
            let decoded = readable(decode_series(&row, &mut families))?;
            // Labels that do not match the key would assign the chunks of this key to the wrong series.
            let Some(SeriesRow { kind, group, members }) = decoded.filter(|of| misnamed(&row, of).is_none())
            else {
                return Ok(());
            };
            let add = |labels: Labels| index.add(kind, labels.id(), &Arc::new(labels));
            let numbers: Vec<u32> = members.into_iter().map(add).collect();
            if kind == Kind::Sample {
                index.add_group(group, &numbers);
            }
            Ok(())
        })
        .await?;
    }
    Ok(index)
}

/// Whether a row with this key names the store to which it belongs.
pub fn is_store_key(table: Table, partition: &[u8], clustering: &[u8]) -> bool {
    table == Table::Meta && partition == STORE && (clustering == IDENTITY || clustering == JOURNALS)
}

/// The identity of the store that a row names; `None` for another or malformed row.
pub fn store_of(row: &Row) -> Option<u128> {
    match decode_store_fact(row).ok()? {
        StoreFact::Identity { id, .. } => Some(id),
        StoreFact::Journals(journals) => Some(journals.store),
        _ => None,
    }
}

/// The highest generation that may have chunks: the last flushed generation or a generation of a journal.
pub fn highest(known: &Known, journals: impl IntoIterator<Item = u64>) -> u64 {
    let live = known.facts.journals.iter().flat_map(|journals| &journals.live).map(|older| older.generation);
    let all: BTreeSet<u64> = live.chain(journals).chain([known.flushed()]).collect();
    all.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::row::series_row;
    use crate::memory::MemoryDriver;
    use tacho_model::NAME;

    #[test]
    fn labels_with_an_id_that_does_not_match_the_key_are_not_indexed() {
        let labels = |name: &str| Labels::new([(NAME, name)]).unwrap();
        let (sound, key, other) = (labels("sound"), labels("key").id(), labels("other"));
        let rows = [Kind::Sample, Kind::Entry].map(|kind| series_row(kind, key, &[&other]));
        let rows = [rows.to_vec(), vec![series_row(Kind::Sample, sound.id(), &[&sound])]].concat();
        let driver = MemoryDriver::restore(rows);
        let known = tokio::runtime::Runtime::new().unwrap().block_on(Known::read(&driver)).unwrap();
        assert_eq!(known.index.len(), 1);
        assert!(known.index.number(sound.id()).is_some() && known.index.group_number(key).is_none());
    }
}
