//! A store of random calls on the embedded driver. Reads of chosen calls, and reads with summaries, are compared with reads of
//! everything.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tacho_chunk::{AttributeData, ExecutionBlock, REQUEST_ID, SummarizedChunk};
use tacho_drivers::embedded::Embedded;
use tacho_model::{
    Attribute, AttributeValue, Batch, Event, EventKind, ExecutionSeries, Labels, ManualClock, Operation,
    OperationKind, Segment, TimeRange, TraceId,
};
use tacho_store::driver::{
    Capabilities, Cut, Delete, EachClustering, EachKey, Info, Parts, RowStream, Scan, Scanned, Table,
};
use tacho_store::{Driver, Error, ErrorKind, Having, Needed, Options, Result, Row, Store, Summed, SummedOf};

/// With this number of segments, a chunk is long enough that the driver reads only parts of it.
pub const SEGMENTS: u64 = 1_200;

pub fn labels(service: usize) -> Arc<Labels> {
    Arc::new(Labels::new([("service", ["a", "b", "c"][service])]).unwrap())
}

/// The request id with this number: an integer, a text, or a UUID.
pub fn request(number: u64) -> AttributeValue {
    match number % 3 {
        0 => AttributeValue::Integer(number.cast_signed()),
        1 => AttributeValue::Text(format!("request {number}").into()),
        _ => AttributeValue::Text(format!("00000000-0000-4000-8000-{number:012x}").into()),
    }
}

/// Ids that no codec makes shorter, so that rows are long.
pub fn noise(number: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    number.hash(&mut hasher);
    hasher.finish()
}

/// A segment with one call. If `number` is a multiple of 4, the call has a request id.
pub fn segment(number: u64, start: i64) -> Segment {
    let id = || Attribute { call: 0, key: REQUEST_ID.into(), value: request(number) };
    Segment {
        trace: TraceId(u128::from(noise(number)) << 64 | u128::from(noise(!number))),
        base: noise(number << 20),
        part: 0,
        parent: None,
        thread: "main".into(),
        start,
        carried: Vec::new(),
        first_call: 0,
        events: vec![
            Event { delta: 0, kind: EventKind::Enter(0) },
            Event { delta: number % 977, kind: EventKind::Exit },
        ],
        attributes: number.is_multiple_of(4).then(id).into_iter().collect(),
    }
}

pub fn batch(service: usize, segments: Vec<Segment>) -> Batch {
    let operations = vec![Operation { kind: OperationKind::Method, name: "m".into() }];
    let series = ExecutionSeries { labels: labels(service), operations, segments };
    Batch { executions: vec![series], ..Batch::default() }
}

/// The embedded driver. Counts the bytes of values that are read.
struct Counting {
    driver: Embedded,
    bytes: AtomicUsize,
    /// Rows that a read of parts returns instead of those of the driver.
    older: Mutex<Vec<Row>>,
    /// A put with a row of this partition of the Meta table fails.
    refused: Arc<Mutex<Vec<u8>>>,
}

impl Counting {
    fn count(&self, rows: &[Vec<Scanned<Cut>>]) {
        let bytes: usize = rows.iter().flatten().flatten().map(|cut| cut.row.value.len()).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[async_trait]
impl Driver for Counting {
    fn info(&self) -> Info {
        self.driver.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.driver.capabilities()
    }

    async fn put(&self, rows: Vec<Row>) -> Result<()> {
        let refused = self.refused.lock().unwrap().clone();
        if rows.iter().any(|row| row.table == Table::Meta && row.partition == refused) {
            return Err(Error::new(ErrorKind::Io, "put refused by the test"));
        }
        self.driver.put(rows).await
    }

    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        self.driver.scan(scan).await
    }

    async fn read(&self, scans: Vec<Scan>) -> Result<Vec<Vec<Scanned>>> {
        let rows = self.driver.read(scans).await?;
        let cut = |row: &Scanned| row.clone().map(Cut::from);
        self.count(&rows.iter().map(|rows| rows.iter().map(cut).collect()).collect::<Vec<_>>());
        Ok(rows)
    }

    async fn read_parts(&self, scans: Vec<Scan>, parts: Parts) -> Result<Vec<Vec<Scanned<Cut>>>> {
        let mut rows = self.driver.read_parts(scans, parts).await?;
        for cut in rows.iter_mut().flatten().flatten() {
            let is_older =
                |row: &&Row| (&row.partition, &row.clustering) == (&cut.row.partition, &cut.row.clustering);
            if let Some(older) = self.older.lock().unwrap().iter().find(is_older) {
                *cut = Cut::from(older.clone());
            }
        }
        self.count(&rows);
        Ok(rows)
    }

    async fn keys(&self, table: Table, each: EachKey<'_>) -> Result<bool> {
        self.driver.keys(table, each).await
    }

    async fn keys_of(&self, scan: &Scan, each: EachClustering<'_>) -> Result<bool> {
        self.driver.keys_of(scan, each).await
    }

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        self.driver.delete(deletes).await
    }
}

pub struct Bench {
    pub directory: tempfile::TempDir,
    options: Options,
    /// The time of the clock, ns.
    pub now: i64,
    clock: Arc<ManualClock>,
    refused: Arc<Mutex<Vec<u8>>>,
    driver: Option<Arc<Counting>>,
    store: Option<Arc<Store>>,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(Options { merge_in_background: false, ..Options::default() })
    }

    pub fn with(options: Options) -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Self {
            directory,
            options,
            now: 1_000,
            clock: Arc::new(ManualClock::new(0)),
            refused: Arc::default(),
            driver: None,
            store: None,
        }
    }

    /// Opens the store, and waits for the end of the previous store.
    pub async fn open(&mut self) {
        if let Some(store) = self.store.take() {
            store.close().await.unwrap();
        }
        if let Some(driver) = self.driver.take() {
            // The tasks of the store end after its last owner is gone.
            while Arc::strong_count(&driver) > 1 {
                tokio::task::yield_now().await;
            }
        }
        let driver = Embedded::open(&self.directory.path().join("chunks")).await.unwrap();
        let refused = self.refused.clone();
        let driver =
            Arc::new(Counting { driver, bytes: AtomicUsize::new(0), older: Mutex::default(), refused });
        let (journals, clock) = (self.directory.path().join("journal"), Arc::new(ManualClock::new(self.now)));
        self.clock = clock.clone();
        std::fs::create_dir_all(&journals).unwrap();
        self.store = Some(Store::open(driver.clone(), &journals, self.options.clone(), clock).await.unwrap());
        self.driver = Some(driver);
    }

    /// Sets the clock of the open store.
    pub fn set_now(&mut self, now: i64) {
        self.now = now;
        self.clock.set(now);
    }

    pub fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    /// The rows of the Meta table of one partition.
    pub async fn meta(&self, partition: Vec<u8>) -> Vec<Row> {
        let scan = Scan::all(Table::Meta, partition);
        let rows = self.driver.as_ref().unwrap().driver.read(vec![scan]).await.unwrap();
        rows.into_iter().flatten().map(|row| row.unwrap()).collect()
    }

    pub async fn delete_meta(&self, partition: &[u8]) {
        let delete = Delete::partition(Table::Meta, partition);
        self.driver.as_ref().unwrap().driver.delete(vec![delete]).await.unwrap();
    }

    /// From now on, puts of rows of this partition of the Meta table fail.
    pub fn refuse(&self, partition: &[u8]) {
        *self.refused.lock().unwrap() = partition.to_vec();
    }

    /// From now on, reads of parts return these rows. So they see a state before the last put.
    pub fn show_older(&self, rows: Vec<Row>) {
        *self.driver.as_ref().unwrap().older.lock().unwrap() = rows;
    }

    pub fn bytes_read(&self) -> usize {
        self.driver.as_ref().unwrap().bytes.swap(0, Ordering::Relaxed)
    }

    /// Traces and starts of the needed segments that `is_wanted` accepts, of all services.
    pub async fn read(
        &self,
        range: TimeRange,
        needed: Needed<'_>,
        is_wanted: impl Fn(&ExecutionBlock, usize) -> bool,
    ) -> BTreeSet<(u128, i64)> {
        let mut found = BTreeSet::new();
        for service in 0..3 {
            let room = AtomicUsize::new(usize::MAX);
            let read = self
                .store()
                .executions_of(labels(service).id(), range, &room, (needed, &|_, _| ()), |_| true)
                .await
                .unwrap();
            for block in read.whole().unwrap() {
                let wanted = (0..block.len()).filter(|row| is_wanted(&block, *row));
                found.extend(wanted.map(|row| (block.row(row).trace().0, block.row(row).start())));
            }
        }
        found
    }

    /// Counts and sums the calls that were entered in a range, with the summaries if `is_summed`. Also returns the number of used
    /// and of damaged summaries.
    pub async fn count(&self, range: TimeRange, is_summed: bool) -> ([u64; 2], usize, usize) {
        self.try_count(range, is_summed).await.unwrap()
    }

    /// Like [`Self::count`]. The error describes unreadable calls.
    pub async fn try_count(&self, range: TimeRange, is_summed: bool) -> Result<([u64; 2], usize, usize)> {
        let (sums, used, damaged) = (Mutex::new([0, 0]), AtomicUsize::new(0), AtomicUsize::new(0));
        let add = |count, total| {
            let mut sums = sums.lock().unwrap();
            *sums = [sums[0] + count, sums[1] + total];
        };
        let accept = |summary: std::result::Result<Summed<'_>, String>| {
            if let Ok(Summed { summary, of }) = summary {
                if of == SummedOf::HourBefore {
                    return true;
                }
                summary.cells.iter().for_each(|cell| add(cell.count, cell.total_ns));
                used.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            damaged.fetch_add(1, Ordering::Relaxed);
            false
        };
        for service in 0..3 {
            let room = AtomicUsize::new(usize::MAX);
            let needed = if is_summed { Needed::Unsummarized(&accept) } else { Needed::All };
            let id = labels(service).id();
            let read =
                self.store().executions_of(id, range, &room, (needed, &|_, _| ()), |_| true).await.unwrap();
            for block in read.whole()? {
                let within = block.rows().filter(|row| range.contains(row.start()));
                within.for_each(|row| add(1, row.duration()));
            }
        }
        Ok((sums.into_inner().unwrap(), used.into_inner(), damaged.into_inner()))
    }

    /// The duration of the slowest call of a service in a range, from a read by rank, and the number of blocks that it read.
    pub async fn slowest(&self, service: usize, range: TimeRange) -> (Option<u64>, usize) {
        let (best, blocks, _) = self.slowest_ranked(service, range).await;
        (best, blocks)
    }

    /// Like [`Self::slowest`], with the number of summaries of chunks and of roll-ups that the read needed.
    pub async fn slowest_ranked(&self, service: usize, range: TimeRange) -> (Option<u64>, usize, usize) {
        let (best, blocks, ranked) = (Mutex::new(None), AtomicUsize::new(0), AtomicUsize::new(0));
        let rank = |chunk: std::result::Result<SummarizedChunk<'_>, String>| {
            let Ok(chunk) = chunk else { return Some(u64::MAX) };
            ranked.fetch_add(1, Ordering::Relaxed);
            assert!(chunk.segments > 0 && chunk.range.start <= chunk.range.end);
            chunk.summary.cells.iter().map(|cell| cell.max_ns).max()
        };
        let is_needed = |rank, _| best.lock().unwrap().is_none_or(|best| best < rank);
        let keep = |block: &ExecutionBlock| {
            blocks.fetch_add(1, Ordering::Relaxed);
            let within = block.rows().filter(|row| range.contains(row.start()));
            let mut best = best.lock().unwrap();
            *best = within.map(|row| Some(row.duration())).max().unwrap_or(None).max(*best);
            false
        };
        let needed = Needed::Ranked { rank: &rank, is_needed: &is_needed, having: None };
        let (id, room) = (labels(service).id(), AtomicUsize::new(usize::MAX));
        self.store()
            .executions_of(id, range, &room, (needed, &|_, _| ()), keep)
            .await
            .unwrap()
            .whole()
            .unwrap();
        let found = *best.lock().unwrap();
        (found, blocks.into_inner(), ranked.into_inner())
    }

    pub async fn check_slowest(&self, range: TimeRange) {
        for service in 0..3 {
            let mut all = Vec::new();
            for block in self.store().executions(labels(service).id(), range).await.unwrap() {
                let within = block.rows().filter(|row| range.contains(row.start()));
                all.extend(within.map(|row| row.duration()));
            }
            assert_eq!(self.slowest(service, range).await.0, all.into_iter().max(), "{service} {range:?}");
        }
    }

    pub async fn check_counts(&self, range: TimeRange) {
        let (summed, ..) = self.count(range, true).await;
        assert_eq!(summed, self.count(range, false).await.0, "{range:?}");
    }

    pub async fn check(&self, numbers: Range<u64>, range: TimeRange) {
        for number in numbers {
            let id = segment(number, 0).trace;
            let (is_it, known) = (|trace| trace == id, [id]);
            let has_it = |block: &ExecutionBlock, row| block.row(row).trace() == id;
            let all = self.read(range, Needed::All, has_it).await;
            let traces = Needed::Traces { accepts: &is_it, only: number % 2 == 0, known: Some(&known) };
            assert_eq!(self.read(range, traces, has_it).await, all, "trace of segment {number}");

            // A client sends each id as text.
            let text = AttributeData::new(&request(number)).to_string();
            let known = [AttributeData::new(&AttributeValue::Text(text.as_str().into()))];
            let is_it = |value: &AttributeData| value.to_string() == text;
            let has_it = |block: &ExecutionBlock, row| {
                block.row(row).attributes().any(|a| &**a.key == REQUEST_ID && is_it(a.value))
            };
            let requests = Needed::Attribute { key: REQUEST_ID, accepts: &is_it, known: Some(&known) };
            let all = self.read(range, Needed::All, has_it).await;
            assert_eq!(self.read(range, requests, has_it).await, all, "request of segment {number}");
            let having =
                Having { key: REQUEST_ID, accepts: &is_it, examined: &|segments| assert!(segments > 0) };
            let rank = |_: std::result::Result<SummarizedChunk<'_>, String>| Some(0);
            let is_needed = |_, _| true;
            let ranked = Needed::Ranked { rank: &rank, is_needed: &is_needed, having: Some(having) };
            assert_eq!(self.read(range, ranked, has_it).await, all, "by rank: request of segment {number}");
        }
    }
}

/// Changes each place in the segment files of a directory where `magic` begins. `change` gets the bytes from there on. Returns
/// the number of places.
pub fn damage(directory: &Path, magic: &[u8], mut change: impl FnMut(&mut [u8])) -> usize {
    let mut damaged = 0;
    for file in std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "segment") {
            continue;
        }
        let mut bytes = std::fs::read(&file).unwrap();
        let places: Vec<usize> = (0..bytes.len())
            .filter(|at| bytes.get(*at..).is_some_and(|rest| rest.starts_with(magic)))
            .collect();
        damaged += places.len();
        places.into_iter().for_each(|at| change(&mut bytes[at..]));
        std::fs::write(&file, bytes).unwrap();
    }
    damaged
}
