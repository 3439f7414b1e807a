//! Counts how often the values of a series change and fall (`Movement`). The values of a series that may be a counter must
//! stay exact, and one chunk does not show whether a series is a counter.
//!
//! Only series with values that a rule permits to change are counted. A sample is counted at most once, by the first merge
//! that reads it. The sums are in the Meta table (`docs/format/keys.md`) and are put with the rows of the merge. A series
//! without a row may be a counter.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::TryStreamExt;
use tacho_chunk::semantic::Movement;
use tacho_model::SeriesId;
use tokio::sync::OnceCell;

use crate::Result;
use crate::coding::{Cursor, put_varint};
use crate::driver::{Damaged, Delete, Driver, Row, Scan, Table};
use crate::keys::{malformed, newer, shown};

pub const LIVES: &[u8] = b"lives";
const VERSION: u8 = 1;

#[derive(Debug, Default)]
pub struct Lives {
    /// Takes about 50 bytes per series with values that may be changed.
    known: Mutex<HashMap<SeriesId, Movement>>,
    loaded: OnceCell<()>,
}

impl Lives {
    fn lock(&self) -> MutexGuard<'_, HashMap<SeriesId, Movement>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the rows of earlier processes, once per process.
    pub async fn load(&self, driver: &dyn Driver) -> Result<()> {
        let load = async || {
            let mut rows = driver.scan(Scan::all(Table::Meta, LIVES)).await?;
            while let Some(row) = rows.try_next().await? {
                // Without this row, the series has no history and may be a counter.
                let told = |damaged: &Damaged| tracing::error!(%damaged, "row of a series' life skipped");
                let Ok(row) = row.inspect_err(told) else { continue };
                let (id, life) = decode(&row)?;
                self.lock().insert(id, life);
            }
            Ok(())
        };
        self.loaded.get_or_try_init(load).await.copied()
    }

    /// The counts of one series; zeros when unknown.
    pub fn of(&self, id: SeriesId) -> Movement {
        self.lock().get(&id).copied().unwrap_or_default()
    }

    /// The rows of these series with the new counts added.
    pub fn rows<'a>(&self, new: impl Iterator<Item = &'a (SeriesId, Movement)>) -> Vec<Row> {
        let known = self.lock();
        let mut sums: BTreeMap<SeriesId, Movement> = BTreeMap::new();
        for (id, movement) in new {
            let sum = sums.entry(*id).or_insert_with(|| known.get(id).copied().unwrap_or_default());
            *sum = sum.and(*movement);
        }
        sums.iter().map(|(id, sum)| row(*id, *sum)).collect()
    }

    pub fn add<'a>(&self, new: impl Iterator<Item = &'a (SeriesId, Movement)>) {
        let mut known = self.lock();
        for (id, movement) in new {
            let sum = known.entry(*id).or_default();
            *sum = sum.and(*movement);
        }
    }

    /// Removes series that have left the store, and returns the deletes of their rows. Before the rows were loaded, any
    /// series may have a row.
    pub fn forget(&self, series: &[SeriesId]) -> Vec<Delete> {
        let is_loaded = self.loaded.initialized();
        let mut known = self.lock();
        let gone = series.iter().filter(|id| known.remove(id).is_some() || !is_loaded);
        gone.map(|id| Delete::row(Table::Meta, LIVES, id.to_bytes())).collect()
    }
}

fn row(id: SeriesId, life: Movement) -> Row {
    let mut value = vec![VERSION];
    put_varint(&mut value, life.changes);
    put_varint(&mut value, life.descents);
    let (partition, clustering) = (LIVES.to_vec(), id.to_bytes().to_vec());
    Row { table: Table::Meta, partition, clustering, value: Bytes::from(value) }
}

pub fn decode(row: &Row) -> Result<(SeriesId, Movement)> {
    let malformed = || malformed("row of a series' life", row);
    let id = row.clustering.as_slice().try_into().map_err(|_| malformed())?;
    let (version, rest) = row.value.split_first().ok_or_else(malformed)?;
    if *version > VERSION {
        let error = newer("row of a series' life", (*version).into(), VERSION.into());
        return Err(error.with("key", shown(&row.clustering)));
    }
    let mut cursor = Cursor::new(rest);
    let mut number = |what| cursor.varint(what).map_err(|e| malformed().caused_by(e));
    let life = Movement { changes: number("changes")?, descents: number("descents")? };
    if *version == VERSION && cursor.is_empty() {
        Ok((SeriesId(u128::from_be_bytes(id)), life))
    } else {
        Err(malformed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDriver;

    #[tokio::test]
    async fn counts_of_changes_add_up_and_are_loaded() {
        let driver = MemoryDriver::new();
        let (one, other) = (SeriesId(1), SeriesId(2));
        let movement = |changes, descents| Movement { changes, descents };
        let lives = Lives::default();
        lives.load(&driver).await.unwrap();
        for _ in 0..2 {
            let new = [(one, movement(200, 3)), (other, movement(1, 0)), (one, movement(1, 1))];
            driver.put(lives.rows(new.iter())).await.unwrap();
            lives.add(new.iter());
        }
        let again = Lives::default();
        again.load(&driver).await.unwrap();
        for lives in [&lives, &again] {
            let known = [one, other, SeriesId(3)].map(|id| lives.of(id));
            assert_eq!(known, [movement(402, 8), movement(2, 0), movement(0, 0)]);
        }
        let unread = Lives::default().forget(&[one, SeriesId(3)]);
        assert_eq!(unread.len(), 2, "before loading, each series must count as having a row");
        let gone = again.forget(&[one, SeriesId(3)]);
        assert_eq!((gone.len(), again.of(one)), (1, movement(0, 0)));
        driver.delete(gone).await.unwrap();
        let last = Lives::default();
        last.load(&driver).await.unwrap();
        assert_eq!([one, other].map(|id| last.of(id)), [movement(0, 0), movement(2, 0)]);
    }

    #[test]
    fn rows_match_the_format_and_bad_ones_are_refused() {
        let drawn = row(SeriesId(7), Movement { changes: 300, descents: 64 });
        assert_eq!((drawn.partition.as_slice(), &*drawn.value), (&b"lives"[..], &[1, 0xac, 2, 64][..]));
        for (value, expect) in [
            (&[][..], "row of a series' life is malformed"),
            (&[1, 0xac], "row of a series' life is malformed"),
            (&[1, 1, 2, 3], "row of a series' life is malformed"),
            (&[2, 1, 2], "row of a series' life has version 2, this program reads up to 1"),
        ] {
            let error = decode(&Row { value: Bytes::copy_from_slice(value), ..drawn.clone() }).unwrap_err();
            assert!(error.to_string().starts_with(expect), "{error}");
            assert!(error.to_string().contains("(key 00000000000000000000000000000007"), "{error}");
        }
    }
}
