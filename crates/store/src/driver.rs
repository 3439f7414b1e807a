//! The narrow waist: the operations of a back end.
//!
//! A driver keeps rows `(table, partition, clustering) -> value`, all bytes, ordered by clustering within a partition. It
//! never sees a label or a sample. Whatever a back end lacks is implemented above this trait.
//!
//! Path of one record: `flush.rs` puts encoded chunks here; `read/` scans them.

use std::fmt;
use std::ops::{Bound, Range};
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
    /// Encoded chunks, one partition per group or series, and kind.
    Chunks = 1,
    /// Labels of every series.
    Series = 2,
    /// Metadata of the store.
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
    /// Only with [`Capabilities::reverse`].
    Descending,
}

/// A range of one partition, in order of clustering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    pub table: Table,
    pub partition: Vec<u8>,
    pub from: Bound<Vec<u8>>,
    pub to: Bound<Vec<u8>>,
    pub order: Order,
    /// Limit on rows.
    pub limit: Option<usize>,
}

impl Scan {
    /// All rows of a partition.
    pub fn all(table: Table, partition: impl Into<Vec<u8>>) -> Self {
        let (from, to) = (Bound::Unbounded, Bound::Unbounded);
        Self { table, partition: partition.into(), from, to, order: Order::Ascending, limit: None }
    }

    /// Whether no key can lie between the bounds. (`BTreeMap::range` panics on some of these.)
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

/// Rows to remove: one row (both bounds include it) or a range of one partition.
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

    /// Whether no key can lie between the bounds.
    pub fn is_empty(&self) -> bool {
        range_is_empty(&self.from, &self.to)
    }
}

/// Name of the driver, for logs and the status page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    pub name: &'static str,
    /// Version of the format or of the server behind it.
    pub version: String,
    /// Directory or address, without secrets.
    pub location: String,
}

/// Data of a back end that was found damaged or lost since it was opened. Names are those of its own files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Damaged files that stay in use: everything else in them is read.
    pub damaged: Vec<String>,
    /// Damaged places among their rows, and bytes of these. A damaged row behind a sound index is found when it is read.
    pub damaged_places: u64,
    pub damaged_bytes: u64,
    /// The damaged files that have these places.
    pub places_in: Vec<String>,
    /// Unreadable files; they were moved aside, not removed.
    pub set_aside: Vec<String>,
    /// Copies of bytes that were cut off the ends of files and may have been acknowledged.
    pub torn_ends: Vec<String>,
    /// Bytes cut off the ends of files because nothing shows that they were acknowledged.
    pub torn_bytes: u64,
}

/// Capabilities of a back end, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// A row is on disk when `put` returns, and is there after a restart.
    pub durable: bool,
    /// After a failure or a crash either all rows of a `put` are there or none.
    pub atomic_put: bool,
    /// Scans in descending order.
    pub reverse: bool,
    /// Longest value, bytes.
    pub value_bytes_max: usize,
    /// Rows per `put` that suit this back end; more are allowed.
    pub put_rows_hint: usize,
}

/// An existing row that cannot be read: its key is known, its value differs from the one put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    pub table: Table,
    pub partition: Vec<u8>,
    pub clustering: Vec<u8>,
    /// The bytes stored at the value's place, in full length, so that a reader with its own checksums can use the sound
    /// parts; empty if nothing could be read.
    pub value: Bytes,
    /// The reason, with the place in the back end.
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

/// A row, or a damaged row. Damaged rows are reported and never omitted: the reader decides what to do.
pub type Scanned<T = Row> = Result<T, Damaged>;

pub type RowStream = BoxStream<'static, Result<Scanned>>;

/// Selects parts of a row's value, in their order, by the number of its scan and the first bytes of the value. `None`: all of
/// it.
pub type Parts = Arc<dyn Fn(usize, &[u8]) -> Option<Vec<Range<usize>>> + Send + Sync>;

/// Takes partition and clustering of a row.
pub type EachKey<'a> = &'a mut (dyn FnMut(&[u8], &[u8]) + Send);

/// A row whose value may be cut down to the selected parts, one right after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub row: Row,
    /// Bytes of the whole value.
    pub whole: usize,
}

impl From<Row> for Cut {
    fn from(row: Row) -> Self {
        Self { whole: row.value.len(), row }
    }
}

/// Result of reading some stored bytes again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Bytes read.
    pub bytes: u64,
    /// Rows that cannot be read, without their values.
    pub damaged: Vec<Damaged>,
    /// Everything was read; the next call starts from the beginning.
    pub done: bool,
}

/// A back end. Every implementation passes [`crate::conformance`].
#[async_trait]
pub trait Driver: Send + Sync + 'static {
    fn info(&self) -> Info;

    fn capabilities(&self) -> &Capabilities;

    /// Known damage. Nothing from a back end that handles damage itself.
    fn health(&self) -> Health {
        Health::default()
    }

    /// Writes rows; one with the key of an older row replaces it. Durable on return if the capabilities say so. A failed
    /// `put` may be repeated: it leaves old rows, new rows, or (not atomic) a mixture.
    async fn put(&self, rows: Vec<Row>) -> Result<()>;

    /// Streams a range with bounded memory. Rows put during the scan may or may not be seen; all others are seen once,
    /// unreadable ones as [`Damaged`].
    async fn scan(&self, scan: Scan) -> Result<RowStream>;

    /// All rows of some ranges that fit into memory, in the order of the scans. The default scans one range after the other.
    async fn read(&self, scans: Vec<Scan>) -> Result<Vec<Vec<Scanned>>> {
        let mut all = Vec::with_capacity(scans.len());
        for scan in scans {
            all.push(self.scan(scan).await?.try_collect().await?);
        }
        Ok(all)
    }

    /// As [`Driver::read`], without the parts of long values that are not selected. A value is whole, or cut to its parts; a
    /// cut value was not checked, so its parts need their own checksums. A back end that cannot read parts reads everything.
    async fn read_parts(&self, scans: Vec<Scan>, _: Parts) -> Result<Vec<Vec<Scanned<Cut>>>> {
        let rows = self.read(scans).await?;
        let cut = |row: Scanned| row.map(Cut::from);
        Ok(rows.into_iter().map(|rows| rows.into_iter().map(cut).collect()).collect())
    }

    /// Hands out the keys of all rows of a table, in any order, if that needs no reads of values; a start uses it to find
    /// existing generations. `false`, and no keys, otherwise.
    async fn keys(&self, _: Table, _: EachKey<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Removes rows, damaged ones too; a missing row is no error. Durable like `put`.
    async fn delete(&self, deletes: Vec<Delete>) -> Result<()>;

    /// Reads a small part of the older data again and compares it with its checksums. Damaged files are also in
    /// [`Driver::health`]. Nothing to do for a back end that verifies its data itself.
    async fn verify(&self) -> Result<Verified> {
        Ok(Verified { done: true, ..Verified::default() })
    }

    /// Frees the space of replaced and deleted rows, as far as possible immediately. Nothing to do for a back end that does
    /// so in its own time.
    async fn settle(&self) -> Result<()> {
        Ok(())
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

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        (**self).delete(deletes).await
    }

    async fn verify(&self) -> Result<Verified> {
        (**self).verify().await
    }

    async fn settle(&self) -> Result<()> {
        (**self).settle().await
    }
}
