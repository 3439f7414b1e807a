//! The default back end: append-only segment files and an index in memory (`docs/format/segment.md`, ADR 0001).
//!
//! A `put` appends one batch and syncs. A scan reads rows at their positions in the index. Replaced and deleted rows take
//! space until they are more than half of their segment. The segment is then rewritten, a little with every write
//! (`compact.rs`).
//!
//! Path of one record. Before: the flush of `tacho_store` puts its chunk. After: a scan of `tacho_store` reads the chunk.

pub mod check;
mod compact;
mod end;
mod format;
mod health;
mod identity;
mod index;
mod load;
mod manifest;
mod opening;
mod patience;
mod pin;
mod quarantine;
mod row_read;
mod scan;
mod segments;
mod survey;
mod surveyed;
mod verify;

pub use surveyed::Surveyed;

/// The codec of the files, for the fuzz targets only.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use super::format::{
        Action, BATCH_HEAD_BYTES, Entry, IndexBuilder, ROW_HEAD_BYTES, RowRef, Taken, encode_header,
        file_name, mark, put_batch, take_batch_head, take_row,
    };
    pub use super::load::{Expected, Loaded, load_from};
    pub use super::manifest::{Known, Manifest, State};
    pub use super::scan::{Damage, Scanned};
}

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tacho_store::disk::{Disk, RealDisk};
use tacho_store::driver::{
    Capabilities, Cut, Damaged, Delete, Driver, EachClustering, EachKey, Health, Info, Order, Parts, Row,
    RowStream, Scan, Scanned, Verified,
};
use tacho_store::lock::DirectoryLock;
use tacho_store::threads::Threads;
use tacho_store::{Error, ErrorKind, PinnedFile, Result, Table};

use compact::{Compaction, Kept};
use format::{Action, RowRef, VALUE_BYTES_MAX};
use index::{Found, Index, Place};
use manifest::Known;
use patience::Patience;
use row_read::{Choice, Damage, Spot, WHOLE_BYTES_MAX};
use segments::{Handles, Purpose, Segments, entries};
use survey::Survey;

/// Size of a segment, bytes. It is large enough that all files can stay open, and small enough that a segment is rewritten in
/// little time.
const SEGMENT_BYTES: u64 = 256 << 20;
/// Limits on rows and bytes per page of a scan.
const PAGE_ROWS: usize = 256;
const PAGE_BYTES: usize = 4 << 20;
/// Limit on bytes in the page cache that are read on the calling thread. Copying them takes about 200 us.
const INLINE_BYTES_MAX: usize = 2 << 20;

/// State used by readers. A thread that needs both locks takes the lock of `Files` first.
#[derive(Default)]
struct Directory {
    index: Index,
    handles: Handles,
    /// Segment and offset of each row that the verification of its segment found damaged (`verify.rs`).
    doubted: BTreeSet<(u32, u32)>,
}

/// State of the single writer.
struct Files {
    segments: Segments,
    compaction: Option<Compaction>,
    /// Segments that compaction cannot remove, because they are damaged or unreadable.
    kept: BTreeMap<u32, Kept>,
    /// Whether the disk was full in the last compaction. The next compaction then starts with the segment that needs the least
    /// space.
    is_full: bool,
}

struct Inner {
    path: PathBuf,
    capabilities: Capabilities,
    directory: RwLock<Directory>,
    /// `None` if the driver only reads.
    files: Option<Mutex<Files>>,
    /// Health after the last change. Stored separately, so that a caller does not wait for a write.
    health: Mutex<Health>,
    /// The segments of a directory that was opened read-only.
    surveyed: BTreeMap<u32, Known>,
    verifying: Mutex<verify::Progress>,
    threads: Threads,
    _lock: Option<DirectoryLock>,
}

pub struct Embedded(Arc<Inner>);

impl Embedded {
    /// Opens a directory, or creates one.
    ///
    /// # Errors
    /// `Locked` when another process uses the directory; `Version` when a newer version wrote it; `Corrupt` when files are
    /// missing, too short, not in the manifest, or of another store, or when no copy of the manifest can be read and the
    /// directory is not of a version without a manifest; `Io` when a file cannot be read or written.
    pub async fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, Arc::new(RealDisk), SEGMENT_BYTES).await
    }

    /// Whether a directory may have rows: its manifest names a segment that is part of the store, or one of its segment files is
    /// long enough for a row. No file is created, changed or removed.
    ///
    /// # Errors
    /// `Version` when a newer version wrote the directory; `Io` when a file cannot be read.
    pub fn has_rows(path: &Path) -> Result<bool> {
        survey::has_segments(&RealDisk, path)
    }

    /// Opens a directory read-only. No file is created, changed or removed.
    ///
    /// # Errors
    /// Like [`Embedded::open`].
    pub async fn open_read_only(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        Ok(Self(Arc::new(blocking(Threads::Many, move || Inner::read_only(&path)).await?)))
    }

    /// Like [`Embedded::open`], with another disk, which may fail, and another size of segments.
    ///
    /// # Errors
    /// Like [`Embedded::open`].
    pub async fn open_with(path: &Path, disk: Arc<dyn Disk>, segment_bytes: u64) -> Result<Self> {
        Self::open_on(path, disk, segment_bytes, Threads::Many).await
    }

    /// Like [`Embedded::open_with`], with a choice of the threads for disk operations.
    ///
    /// # Errors
    /// Like [`Embedded::open`].
    pub async fn open_on(
        path: &Path,
        disk: Arc<dyn Disk>,
        segment_bytes: u64,
        threads: Threads,
    ) -> Result<Self> {
        Surveyed::read_on(path, disk, segment_bytes, threads).await?.open().await
    }
}

/// Runs disk operations on the chosen threads and waits for the result.
async fn blocking<T: Send + 'static>(
    threads: Threads,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match threads.start(work).join().await {
        Ok(result) => result,
        Err(error) => {
            Err(Error::new(ErrorKind::Closed, "driver's task was cancelled or panicked").caused_by(error))
        }
    }
}

impl Inner {
    /// Locks and reads a directory for [`Self::open`].
    fn survey(path: &Path, disk: &dyn Disk) -> Result<(Self, Survey)> {
        let lock = disk.lock(path)?;
        let mut directory = Directory::default();
        let survey = Survey::read(disk, path, &mut directory.index, &mut directory.handles)?;
        Ok((Self::new(path, directory, Health::default(), lock), survey))
    }

    /// Opens the directory for writing.
    fn open(self, survey: Survey, disk: Arc<dyn Disk>, segment_bytes: u64) -> Result<Self> {
        let directory = self.directory.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Directory { index, handles, .. } = &directory;
        let segments = Segments::open(&self.path, disk, segment_bytes, survey, handles)?;
        tracing::info!(path = %self.path.display(), rows = index.rows(), segments = handles.len(), "segments opened");
        let health = Mutex::new(segments.health());
        let files = Files { segments, compaction: None, kept: BTreeMap::new(), is_full: false };
        let files = Some(Mutex::new(files));
        Ok(Self { directory: RwLock::new(directory), files, health, ..self })
    }

    fn read_only(path: &Path) -> Result<Self> {
        let lock = DirectoryLock::share(path)?;
        let mut directory = Directory::default();
        let survey = Survey::read(&RealDisk, path, &mut directory.index, &mut directory.handles)?;
        survey.refusal.check(path)?;
        let mut inner = Self::new(path, directory, survey.health(&RealDisk, path), lock);
        inner.surveyed = survey.manifest.files;
        Ok(inner)
    }

    /// A driver that only reads.
    fn new(path: &Path, directory: Directory, health: Health, lock: Option<DirectoryLock>) -> Self {
        Self {
            path: path.to_owned(),
            capabilities: Capabilities {
                durable: true,
                atomic_put: true,
                reverse: true,
                value_bytes_max: VALUE_BYTES_MAX,
                put_rows_hint: 1_000,
            },
            directory: RwLock::new(directory),
            files: None,
            health: Mutex::new(health),
            surveyed: BTreeMap::new(),
            verifying: Mutex::default(),
            threads: Threads::Many,
            _lock: lock,
        }
    }

    fn files(&self) -> Result<MutexGuard<'_, Files>> {
        match &self.files {
            Some(files) => Ok(files.lock().unwrap_or_else(PoisonError::into_inner)),
            None => {
                let error = Error::new(ErrorKind::Closed, "directory was opened read-only");
                Err(error.with("path", self.path.display()))
            }
        }
    }

    fn put(&self, rows: &[Row], is_freeing: bool) -> Result<()> {
        let rows: Vec<RowRef<'_>> = rows.iter().map(row_ref).collect();
        let mut files = self.files()?;
        let is_meta = rows.iter().all(|row| row.table == Table::Meta);
        let purpose = match (is_freeing, is_meta) {
            (true, _) => Purpose::Freeing,
            (false, true) => Purpose::Meta,
            (false, false) => Purpose::Put,
        };
        self.write(&mut files.segments, &rows, purpose)?;
        self.compact(&mut files);
        Ok(())
    }

    fn delete(&self, deletes: &[Delete]) -> Result<()> {
        let mut files = self.files()?;
        let keys: Vec<(&Delete, Box<[u8]>)> = {
            let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
            let keys = |d: &Delete| directory.index.keys(d.table, &d.partition, &d.from, &d.to);
            deletes
                .iter()
                .filter(|d| !d.is_empty())
                .flat_map(|d| keys(d).into_iter().map(move |k| (d, k)))
                .collect()
        };
        let row =
            |(delete, key): &'_ (&Delete, Box<[u8]>)| (delete.table, delete.partition.clone(), key.clone());
        let doomed: Vec<_> = keys.iter().map(row).collect();
        let rows: Vec<RowRef<'_>> = doomed
            .iter()
            .map(|(table, partition, clustering)| RowRef {
                action: Action::Delete,
                table: *table,
                partition,
                clustering,
                value: &[],
            })
            .collect();
        self.write(&mut files.segments, &rows, Purpose::Freeing)?;
        self.compact(&mut files);
        Ok(())
    }

    /// Makes rows durable and then visible.
    fn write(&self, segments: &mut Segments, rows: &[RowRef<'_>], purpose: Purpose) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut new = Handles::new();
        let written = segments.append(rows, purpose, &mut new);
        let mut directory = self.directory.write().unwrap_or_else(PoisonError::into_inner);
        directory.handles.append(&mut new);
        let written = written?;
        entries(rows, &written).for_each(|entry| directory.index.apply(written.segment, &entry));
        Ok(())
    }

    /// Whether the index shows that a scan is empty.
    fn is_nothing(&self, scan: &Scan) -> bool {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        directory.index.page(scan, 1).is_empty()
    }

    /// Bytes of the rows of the scans. Each row counts as at most `row_max` bytes. Stops early when the sum is above
    /// [`INLINE_BYTES_MAX`].
    fn bytes(&self, scans: &[Scan], row_max: usize) -> usize {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        for scan in scans {
            bytes += directory.index.bytes(scan, row_max, INLINE_BYTES_MAX + 1);
            if bytes > INLINE_BYTES_MAX {
                break;
            }
        }
        bytes
    }

    /// All rows of each scan, reduced to the selected parts.
    fn read(
        &self,
        scans: &[Scan],
        parts: Option<&Parts>,
        patience: Patience,
    ) -> Result<Vec<Vec<Scanned<Cut>>>> {
        let mut all = Vec::with_capacity(scans.len());
        for (number, scan) in scans.iter().enumerate() {
            let parts = parts.map(|parts| move |front: &[u8]| parts(number, front));
            let parts = parts.as_ref().map(|parts| parts as &Choice<'_>);
            all.push(self.rows(scan.clone(), parts, patience)?);
        }
        Ok(all)
    }

    fn rows(
        &self,
        mut scan: Scan,
        parts: Option<&Choice<'_>>,
        patience: Patience,
    ) -> Result<Vec<Scanned<Cut>>> {
        let mut rows = Vec::new();
        while scan.limit != Some(0) {
            let mut page = self.page(&scan, parts, patience)?;
            page.continue_after(&mut scan);
            rows.append(&mut page.rows);
            if !page.more {
                break;
            }
        }
        Ok(rows)
    }

    /// The next rows of a scan, and whether there may be more.
    fn page(&self, scan: &Scan, parts: Option<&Choice<'_>>, patience: Patience) -> Result<Page> {
        let count = scan.limit.unwrap_or(usize::MAX).min(PAGE_ROWS);
        let (found, handles): (Vec<Found>, Vec<_>) = {
            let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
            let found = directory.index.page(scan, count);
            let handle = |(_, place): &Found| {
                let doubted = directory.doubted.contains(&(place.segment, place.offset));
                Some((directory.handles.get(&place.segment).cloned()?, doubted))
            };
            let handles = found.iter().map(handle).collect();
            (found, handles)
        };
        let mut page = Page { rows: Vec::with_capacity(found.len()), last: None, more: found.len() == count };
        let mut bytes = 0;
        for ((clustering, place), handle) in found.into_iter().zip(handles) {
            if bytes > PAGE_BYTES {
                page.more = true;
                break;
            }
            let read = match &handle {
                Some((file, doubted)) => {
                    let doubted = *doubted;
                    let spot =
                        Spot { scan, clustering: &clustering, place, file: &**file, doubted, patience };
                    bytes += spot.before();
                    spot.read(parts).map_err(|e| Error::io("read row", &self.path, e))?
                }
                None => Err(Damage { value: Bytes::new(), reason: "its segment is missing".to_owned() }),
            };
            let (table, partition) = (scan.table, scan.partition.clone());
            page.last = Some(clustering.to_vec());
            let clustering = clustering.into_vec();
            page.rows.push(match read {
                Ok(value) => {
                    bytes += value.len();
                    let row = Row { table, partition, clustering, value };
                    Ok(Cut { row, whole: place.value_bytes as usize })
                }
                Err(Damage { value, reason }) => {
                    bytes += value.len();
                    let Place { segment, offset, .. } = place;
                    let reason = format!("{reason} (segment {segment}, offset {offset})").into();
                    Err(Damaged { table, partition, clustering, value, reason })
                }
            });
        }
        Ok(page)
    }
}

impl Inner {
    /// Reads on this thread if all rows together have at most [`INLINE_BYTES_MAX`] bytes and are in the page cache. Otherwise
    /// reads with [`blocking`]. `row_max` is an estimate of the bytes that are read of a longer row.
    async fn read_anywhere(
        self: Arc<Self>,
        scans: Vec<Scan>,
        parts: Option<Parts>,
        row_max: usize,
    ) -> Result<Vec<Vec<Scanned<Cut>>>> {
        match self.bytes(&scans, row_max) {
            0 => return Ok(scans.iter().map(|_| Vec::new()).collect()),
            bytes if bytes <= INLINE_BYTES_MAX => {
                // This read fails if some bytes are not in memory. After any failure, the read below repeats it.
                if let Ok(rows) = self.read(&scans, parts.as_ref(), Patience::Memory) {
                    // Callers read many series one after the other. Other tasks must get their turn between these reads.
                    tokio::task::consume_budget().await;
                    return Ok(rows);
                }
            }
            _ => {}
        }
        blocking(self.threads, move || self.read(&scans, parts.as_ref(), Patience::Disk)).await
    }
}

impl Page {
    fn continue_after(&self, scan: &mut Scan) {
        if let Some(last) = &self.last {
            let after = Bound::Excluded(last.clone());
            match scan.order {
                Order::Ascending => scan.from = after,
                Order::Descending => scan.to = after,
            }
        }
        scan.limit = scan.limit.map(|limit| limit.saturating_sub(self.rows.len()));
    }
}

/// Rows of a scan that were read together.
struct Page {
    rows: Vec<Scanned<Cut>>,
    /// The last key of the page, after which the next page starts.
    last: Option<Vec<u8>>,
    more: bool,
}

/// Converts a row that was not reduced.
fn whole(row: Scanned<Cut>) -> Scanned {
    row.map(|cut| cut.row)
}

fn row_ref(row: &Row) -> RowRef<'_> {
    RowRef {
        action: Action::Put,
        table: row.table,
        partition: &row.partition,
        clustering: &row.clustering,
        value: &row.value,
    }
}

#[async_trait]
impl Driver for Embedded {
    fn info(&self) -> Info {
        let location = self.0.path.display().to_string();
        Info { name: "embedded", version: format::VERSION.to_string(), location }
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    fn health(&self) -> Health {
        self.0.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn put(&self, rows: Vec<Row>) -> Result<()> {
        let inner = self.0.clone();
        blocking(inner.threads, move || inner.put(&rows, false)).await
    }

    async fn put_to_free(&self, rows: Vec<Row>) -> Result<()> {
        let inner = self.0.clone();
        blocking(inner.threads, move || inner.put(&rows, true)).await
    }

    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        if self.0.is_nothing(&scan) {
            return Ok(stream::empty().boxed());
        }
        let pages = stream::try_unfold(Some((self.0.clone(), scan)), |state| async {
            let Some((inner, mut scan)) = state.filter(|(_, scan)| scan.limit != Some(0)) else {
                return Ok(None);
            };
            let (inner, scan, page) = blocking(inner.threads, move || {
                let page = inner.page(&scan, None, Patience::Disk)?;
                page.continue_after(&mut scan);
                Ok((inner, scan, page))
            })
            .await?;
            let next = page.more.then_some((inner, scan));
            Ok::<_, Error>(Some((stream::iter(page.rows.into_iter().map(|row| Ok(whole(row)))), next)))
        });
        Ok(pages.try_flatten().boxed())
    }

    async fn read(&self, scans: Vec<Scan>) -> Result<Vec<Vec<Scanned>>> {
        let rows = self.0.clone().read_anywhere(scans, None, usize::MAX).await?;
        Ok(rows.into_iter().map(|rows| rows.into_iter().map(whole).collect()).collect())
    }

    async fn read_parts(&self, scans: Vec<Scan>, parts: Parts) -> Result<Vec<Vec<Scanned<Cut>>>> {
        self.0.clone().read_anywhere(scans, Some(parts), WHOLE_BYTES_MAX).await
    }

    async fn keys(&self, table: Table, each: EachKey<'_>) -> Result<bool> {
        let directory = self.0.directory.read().unwrap_or_else(PoisonError::into_inner);
        directory.index.each_key(table, each);
        Ok(true)
    }

    async fn keys_of(&self, scan: &Scan, each: EachClustering<'_>) -> Result<bool> {
        let directory = self.0.directory.read().unwrap_or_else(PoisonError::into_inner);
        directory.index.each_key_of(scan, each);
        Ok(true)
    }

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        let inner = self.0.clone();
        blocking(inner.threads, move || inner.delete(&deletes)).await
    }

    async fn verify(&self) -> Result<Verified> {
        let inner = self.0.clone();
        blocking(inner.threads, move || inner.verify()).await
    }

    async fn settle(&self) -> Result<()> {
        let inner = self.0.clone();
        blocking(inner.threads, move || inner.settle()).await
    }

    async fn pin(&self, into: &Path) -> Result<Vec<PinnedFile>> {
        let (inner, into) = (self.0.clone(), into.to_owned());
        blocking(inner.threads, move || inner.files()?.segments.pin(&into)).await
    }
}
