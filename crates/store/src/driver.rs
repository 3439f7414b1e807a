//! The operations of a back end.
//!
//! A driver stores rows `(table, partition, clustering) -> value`. Partition, clustering and value are byte strings. The rows of
//! a partition are ordered by clustering. A driver never sees a label or a sample. Features that a back end lacks are
//! implemented above this trait.
//!
//! Path of one record: `flush.rs` puts encoded chunks into the driver; `read/` scans them.

use std::fmt;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;

use crate::{Error, Result};

/// The tables. The discriminants are on disk (`docs/format/keys.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Table {
    /// Encoded chunks; one partition for each kind and group or series.
    Chunks = 1,
    /// Labels of every series.
    Series = 2,
    Meta = 3,
}

impl Table {
    pub const ALL: [Self; 3] = [Self::Chunks, Self::Series, Self::Meta];

    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Chunks),
            2 => Some(Self::Series),
            3 => Some(Self::Meta),
            _ => None,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Chunks => "chunks",
            Self::Series => "series",
            Self::Meta => "meta",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub table: Table,
    pub partition: Vec<u8>,
    pub clustering: Vec<u8>,
    pub value: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    Ascending,
    /// Needs [`Capabilities::reverse`].
    Descending,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    pub table: Table,
    pub partition: Vec<u8>,
    pub from: Bound<Vec<u8>>,
    pub to: Bound<Vec<u8>>,
    pub order: Order,
    pub limit: Option<usize>,
}

impl Scan {
    pub fn all(table: Table, partition: impl Into<Vec<u8>>) -> Self {
        let (from, to) = (Bound::Unbounded, Bound::Unbounded);
        Self { table, partition: partition.into(), from, to, order: Order::Ascending, limit: None }
    }

    /// Whether the bounds exclude every key. `BTreeMap::range` panics on some of these bounds.
    pub fn is_empty(&self) -> bool {
        range_is_empty(&self.from, &self.to)
    }
}

fn range_is_empty(from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
            from >= to
        }
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}

/// Rows to delete: one row (both bounds are this row) or a range of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    pub table: Table,
    pub partition: Vec<u8>,
    pub from: Bound<Vec<u8>>,
    pub to: Bound<Vec<u8>>,
}

impl Delete {
    pub fn row(table: Table, partition: impl Into<Vec<u8>>, clustering: impl Into<Vec<u8>>) -> Self {
        let clustering = clustering.into();
        let (from, to) = (Bound::Included(clustering.clone()), Bound::Included(clustering));
        Self { table, partition: partition.into(), from, to }
    }

    pub fn partition(table: Table, partition: impl Into<Vec<u8>>) -> Self {
        Self { table, partition: partition.into(), from: Bound::Unbounded, to: Bound::Unbounded }
    }

    pub fn is_empty(&self) -> bool {
        range_is_empty(&self.from, &self.to)
    }
}

/// Describes a driver in logs and on the status page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    pub name: &'static str,
    /// Version of the format, or of the server that stores the data.
    pub version: String,
    /// Directory or address, without secrets.
    pub location: String,
}

/// A hard link to a file of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedFile {
    /// Path relative to the directory of the links.
    pub name: String,
    /// Number of bytes, from the start of the file, that were valid when the link was made. The file may be longer.
    pub bytes: u64,
}

/// Known damage and loss of the data of a back end, also from before it was opened. The names are file names of the back end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Damaged files that stay in use, because their other parts are readable.
    pub damaged: Vec<String>,
    /// Number and bytes of the damaged and missing places in these files. If an index is intact, a damaged row is found only
    /// when that row is read.
    pub damaged_places: u64,
    pub damaged_bytes: u64,
    /// The damaged files that contain these places.
    pub places_in: Vec<String>,
    /// Unreadable files that were moved aside, by this process or an earlier one, and not deleted.
    pub set_aside: Vec<String>,
    /// Copies of bytes that were cut off the ends of files. These bytes may have been acknowledged.
    pub torn_ends: Vec<String>,
    /// Bytes cut off the ends of files when the back end was opened. Those that may have been acknowledged are also in
    /// `torn_ends`. If the back end was opened read-only, these bytes stay in the files and are ignored.
    pub torn_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// A row is on disk when `put` returns, and survives a restart.
    pub durable: bool,
    /// After a failure or a crash, either all rows of a `put` exist or none.
    pub atomic_put: bool,
    pub reverse: bool,
    /// Longest value, bytes.
    pub value_bytes_max: usize,
    /// Suitable number of rows per `put` for this back end. More are allowed.
    pub put_rows_hint: usize,
}

/// An existing row with a known key and an unreadable value: the stored bytes differ from the bytes that were put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    pub table: Table,
    pub partition: Vec<u8>,
    pub clustering: Vec<u8>,
    /// The bytes stored in place of the value, in full length. A reader with its own checksums can use the intact parts.
    /// Empty if these bytes cannot be read or belong to another row.
    pub value: Bytes,
    /// The reason, with the position in the back end.
    pub reason: Box<str>,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row cannot be read: {}", self.reason)
    }
}

impl std::error::Error for Damaged {}

impl From<Damaged> for Error {
    fn from(damaged: Damaged) -> Self {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Self::corrupt(damaged.to_string())
            .with("table", damaged.table.name())
            .with("partition", hex(&damaged.partition))
            .with("clustering", hex(&damaged.clustering))
    }
}

/// A row, or a damaged row. Damaged rows are always reported, so that the reader can decide how to continue.
pub type Scanned<T = Row> = Result<T, Damaged>;

pub type RowStream = BoxStream<'static, Result<Scanned>>;

/// Selects parts of a row's value, in ascending order. The arguments are the index of the scan in the list of scans, and the
/// first bytes of the value. `None` selects the whole value.
pub type Parts = Arc<dyn Fn(usize, &[u8]) -> Option<Vec<Range<usize>>> + Send + Sync>;

/// Receives partition and clustering of each row.
pub type EachKey<'a> = &'a mut (dyn FnMut(&[u8], &[u8]) + Send);

/// Receives the clustering of each row of a scan.
pub type EachClustering<'a> = &'a mut (dyn FnMut(&[u8]) + Send);

/// A row. Its value may be reduced to the selected parts, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub row: Row,
    pub whole: usize,
}

impl From<Row> for Cut {
    fn from(row: Row) -> Self {
        Self { whole: row.value.len(), row }
    }
}

/// Result of verifying a part of the stored bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    pub bytes: u64,
    /// Unreadable rows, without their values. If there are very many, a driver may return only the first ones.
    pub damaged: Vec<Damaged>,
    /// Whether all data has been read. The next call then starts from the beginning.
    pub done: bool,
}

/// A storage back end. Every implementation passes [`crate::conformance`].
#[async_trait]
pub trait Driver: Send + Sync + 'static {
    fn info(&self) -> Info;

    fn capabilities(&self) -> &Capabilities;

    /// Known damage. Empty for a back end that handles damage itself.
    fn health(&self) -> Health {
        Health::default()
    }

    /// Writes rows. A row replaces an older row with the same key. If the capabilities say `durable`, the rows are on
    /// disk on return. A failed `put` may be repeated. It leaves the old rows, the new rows, or, if the driver is not
    /// atomic, a mixture.
    async fn put(&self, rows: Vec<Row>) -> Result<()>;

    /// Like [`Driver::put`], for rows that let the caller free more space than they take. On a full disk, a back end may write
    /// them into space that it keeps for this purpose.
    async fn put_to_free(&self, rows: Vec<Row>) -> Result<()> {
        self.put(rows).await
    }

    /// Streams a range with bounded memory. Rows put during the scan are optional in the result. All other rows are
    /// returned once; unreadable rows are returned as [`Damaged`].
    async fn scan(&self, scan: Scan) -> Result<RowStream>;

    /// Reads all rows of these ranges, in the order of the scans. The rows must fit into memory together. By default, scans one
    /// range after the other.
    async fn read(&self, scans: Vec<Scan>) -> Result<Vec<Vec<Scanned>>> {
        let mut all = Vec::with_capacity(scans.len());
        for scan in scans {
            all.push(self.scan(scan).await?.try_collect().await?);
        }
        Ok(all)
    }

    /// Like [`Driver::read`], but may omit the parts of long values that are not selected. Each value is whole or
    /// reduced to its selected parts. The driver does not check the bytes of a reduced value, so the parts need their own
    /// checksums. A back end that cannot read parts reads whole values.
    async fn read_parts(&self, scans: Vec<Scan>, _: Parts) -> Result<Vec<Vec<Scanned<Cut>>>> {
        let rows = self.read(scans).await?;
        let cut = |row: Scanned| row.map(Cut::from);
        Ok(rows.into_iter().map(|rows| rows.into_iter().map(cut).collect()).collect())
    }

    /// Lists the keys of all rows of a table, in any order. If that is not possible without reading values, returns `false`
    /// and lists no key. The store uses the keys at start to find the generations and the sequence numbers in use.
    async fn keys(&self, _: Table, _: EachKey<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Passes the clustering of each row of a scan to `each`, in ascending order, without reading values. The limit and the order
    /// of the scan are ignored. If that is not possible, returns `false` and lists no key.
    async fn keys_of(&self, _: &Scan, _: EachClustering<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Deletes rows, including damaged ones. A missing row is not an error. On return the deletion is as durable as the
    /// rows of a `put`.
    async fn delete(&self, deletes: Vec<Delete>) -> Result<()>;

    /// Reads a small part of the stored data again and compares it with its checksums. [`Driver::health`] then includes
    /// damaged files. A back end that verifies its data itself does nothing.
    async fn verify(&self) -> Result<Verified> {
        Ok(Verified { done: true, ..Verified::default() })
    }

    /// Frees the space of replaced and deleted rows as far as this is possible immediately. A back end that frees
    /// space on its own schedule does nothing.
    async fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// Makes hard links in the new directory `into` to all files of the back end, as these are at one moment between two
    /// writes. A back end without files of its own has nothing to link.
    async fn pin(&self, _into: &Path) -> Result<Vec<PinnedFile>> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl<D: Driver + ?Sized> Driver for Arc<D> {
    fn info(&self) -> Info {
        (**self).info()
    }

    fn capabilities(&self) -> &Capabilities {
        (**self).capabilities()
    }

    fn health(&self) -> Health {
        (**self).health()
    }

    async fn put(&self, rows: Vec<Row>) -> Result<()> {
        (**self).put(rows).await
    }

    async fn put_to_free(&self, rows: Vec<Row>) -> Result<()> {
        (**self).put_to_free(rows).await
    }

    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        (**self).scan(scan).await
    }

    async fn read(&self, scans: Vec<Scan>) -> Result<Vec<Vec<Scanned>>> {
        (**self).read(scans).await
    }

    async fn read_parts(&self, scans: Vec<Scan>, parts: Parts) -> Result<Vec<Vec<Scanned<Cut>>>> {
        (**self).read_parts(scans, parts).await
    }

    async fn keys(&self, table: Table, each: EachKey<'_>) -> Result<bool> {
        (**self).keys(table, each).await
    }

    async fn keys_of(&self, scan: &Scan, each: EachClustering<'_>) -> Result<bool> {
        (**self).keys_of(scan, each).await
    }

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        (**self).delete(deletes).await
    }

    async fn verify(&self) -> Result<Verified> {
        (**self).verify().await
    }

    async fn settle(&self) -> Result<()> {
        (**self).settle().await
    }

    async fn pin(&self, into: &Path) -> Result<Vec<PinnedFile>> {
        (**self).pin(into).await
    }
}
