//! The index: keys and positions of all rows, in memory, ordered within each partition.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Range};
use std::ops::Bound;

use tacho_store::Table;
use tacho_store::driver::{Order, Scan};

use super::format::{Action, Entry, ROW_HEAD_BYTES};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub segment: u32,
    /// Offset of the row's head in the file, bytes.
    pub offset: u32,
    pub value_bytes: u32,
}

/// The clustering key and the position of a row.
pub type Found = (Box<[u8]>, Place);

type Partition = BTreeMap<Box<[u8]>, Place>;

type Partitions = HashMap<Box<[u8]>, Partition>;

/// Needed and total bytes of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of rows that were neither replaced nor deleted.
    pub live: u64,
    /// Bytes of deletes.
    pub deletes: u64,
    pub total: u64,
}

#[derive(Debug, Default)]
pub struct Index {
    /// The tables in the order of `Table`.
    tables: [Partitions; 3],
    usage: BTreeMap<u32, Usage>,
}

fn row_bytes(entry: &Entry<'_>) -> u64 {
    (ROW_HEAD_BYTES + entry.partition.len() + entry.clustering.len()) as u64 + u64::from(entry.value_bytes)
}

impl Index {
    fn table(&self, table: Table) -> &Partitions {
        let [chunks, series, meta] = &self.tables;
        match table {
            Table::Chunks => chunks,
            Table::Series => series,
            Table::Meta => meta,
        }
    }

    /// Adds an entry of a segment. Entries must be added in the order in which they were written.
    pub fn apply(&mut self, segment: u32, entry: &Entry<'_>) {
        let bytes = row_bytes(entry);
        let usage = self.usage.entry(segment).or_default();
        usage.total += bytes;
        let [chunks, series, meta] = &mut self.tables;
        let partitions = match entry.table {
            Table::Chunks => chunks,
            Table::Series => series,
            Table::Meta => meta,
        };
        let old = match entry.action {
            Action::Put => {
                usage.live += bytes;
                let place = Place { segment, offset: entry.offset, value_bytes: entry.value_bytes };
                match partitions.get_mut(entry.partition) {
                    Some(rows) => rows.insert(entry.clustering.into(), place),
                    None => {
                        let rows = Partition::from([(entry.clustering.into(), place)]);
                        partitions.insert(entry.partition.into(), rows);
                        None
                    }
                }
            }
            Action::Delete => {
                usage.deletes += bytes;
                let rows = partitions.get_mut(entry.partition);
                let old = rows.and_then(|rows| rows.remove(entry.clustering));
                if partitions.get(entry.partition).is_some_and(BTreeMap::is_empty) {
                    partitions.remove(entry.partition);
                }
                old
            }
        };
        if let Some(old) = old
            && let Some(usage) = self.usage.get_mut(&old.segment)
        {
            let keys = (ROW_HEAD_BYTES + entry.partition.len() + entry.clustering.len()) as u64;
            usage.live -= keys + u64::from(old.value_bytes);
        }
    }

    pub fn get(&self, table: Table, partition: &[u8], clustering: &[u8]) -> Option<Place> {
        self.table(table).get(partition)?.get(clustering).copied()
    }

    /// The first rows of a scan, at most `count`.
    pub fn page(&self, scan: &Scan, count: usize) -> Vec<Found> {
        let Some(range) = self.range(scan) else { return Vec::new() };
        match scan.order {
            Order::Ascending => range.take(count).map(|(key, place)| (key.clone(), *place)).collect(),
            Order::Descending => range.rev().take(count).map(|(key, place)| (key.clone(), *place)).collect(),
        }
    }

    /// Bytes of the rows of a scan, regardless of the limit of the scan. Each row counts as at most `row_max` bytes.
    /// Counting stops at `most`. 0 means that the scan is empty, because each row has a head.
    pub fn bytes(&self, scan: &Scan, row_max: usize, most: usize) -> usize {
        let mut bytes = 0;
        for (key, place) in self.range(scan).into_iter().flatten() {
            let row = ROW_HEAD_BYTES + scan.partition.len() + key.len() + place.value_bytes as usize;
            bytes += row.min(row_max);
            if bytes >= most {
                break;
            }
        }
        bytes
    }

    fn range(&self, scan: &Scan) -> Option<Range<'_, Box<[u8]>, Place>> {
        let rows = self.table(scan.table).get(scan.partition.as_slice())?;
        let bounds = (borrowed(&scan.from), borrowed(&scan.to));
        (!scan.is_empty()).then(|| rows.range::<[u8], _>(bounds))
    }

    /// Clustering keys in a range, for a delete.
    pub fn keys(
        &self,
        table: Table,
        partition: &[u8],
        from: &Bound<Vec<u8>>,
        to: &Bound<Vec<u8>>,
    ) -> Vec<Box<[u8]>> {
        match self.table(table).get(partition) {
            Some(rows) => {
                rows.range::<[u8], _>((borrowed(from), borrowed(to))).map(|(key, _)| key.clone()).collect()
            }
            None => Vec::new(),
        }
    }

    /// Calls `each` with the partition and the clustering of each row of a table.
    pub fn each_key(&self, table: Table, each: &mut dyn FnMut(&[u8], &[u8])) {
        for (partition, rows) in self.table(table) {
            rows.keys().for_each(|clustering| each(partition, clustering));
        }
    }

    /// Calls `each` with the clustering of each row of a scan.
    pub fn each_key_of(&self, scan: &Scan, each: &mut dyn FnMut(&[u8])) {
        self.range(scan).into_iter().flatten().for_each(|(clustering, _)| each(clustering));
    }

    /// Segments and their usage, oldest first.
    pub fn usage(&self) -> impl Iterator<Item = (u32, Usage)> {
        self.usage.iter().map(|(segment, usage)| (*segment, *usage))
    }

    /// Removes the usage of a segment that is no longer needed.
    pub fn forget(&mut self, segment: u32) {
        self.usage.remove(&segment);
    }

    pub fn rows(&self) -> usize {
        self.tables.iter().flat_map(HashMap::values).map(BTreeMap::len).sum()
    }
}

fn borrowed(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}
