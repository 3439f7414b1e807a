//! A scratch store, and helpers that create and read records.

use std::sync::Arc;
use std::time::Duration;

use tacho_model::{
    Batch, Body, Entry, EntrySeries, Event, EventKind, ExecutionSeries, Kind, Labels, ManualClock, NAME,
    Operation, OperationKind, Sample, SampleSeries, Segment, SeriesId, TimeRange, TraceId, Value,
};
use tacho_store::{Driver, MemoryDriver, Options, Origin, Result, Store};

/// A directory and a driver that exist longer than the stores opened on them.
pub struct Bench {
    pub directory: tempfile::TempDir,
    pub driver: Arc<dyn Driver>,
    pub options: Options,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(Arc::new(MemoryDriver::new()), Options::default())
    }

    pub fn with(driver: Arc<dyn Driver>, options: Options) -> Self {
        let flush_wait_first = Duration::from_millis(1);
        let flush_wait_max = Duration::from_millis(20);
        let options = Options { flush_wait_first, flush_wait_max, ..options };
        Self { directory: tempfile::tempdir().unwrap(), driver, options }
    }

    pub async fn try_open(&self) -> Result<Arc<Store>> {
        let clock = Arc::new(ManualClock::new(1_000));
        Store::open(self.driver.clone(), self.directory.path(), self.options.clone(), clock).await
    }

    pub async fn open(&self) -> Arc<Store> {
        self.try_open().await.unwrap()
    }

    pub fn journals(&self) -> Vec<std::path::PathBuf> {
        let files = std::fs::read_dir(self.directory.path()).unwrap().map(|f| f.unwrap().path());
        let mut files: Vec<_> = files.filter(|f| f.extension().is_some_and(|e| e == "journal")).collect();
        files.sort();
        files
    }
}

pub fn origin(session: u128, seq: u64) -> Option<Origin> {
    Some(Origin::one(session, seq))
}

pub fn labels(name: &str) -> Arc<Labels> {
    Arc::new(Labels::new([(NAME, name), ("host", "h")]).unwrap())
}

pub fn id(name: &str) -> SeriesId {
    labels(name).id()
}

pub fn batch<const N: usize>(parts: [Batch; N]) -> Batch {
    parts.into_iter().fold(Batch::default(), |mut all, part| {
        all.samples.extend(part.samples);
        all.entries.extend(part.entries);
        all.executions.extend(part.executions);
        all
    })
}

pub fn samples(name: &str, points: &[(i64, f64)]) -> Batch {
    typed(name, &points.iter().map(|(at, v)| (*at, Value::F64(*v))).collect::<Vec<_>>())
}

pub fn typed(name: &str, points: &[(i64, Value)]) -> Batch {
    let samples = points.iter().map(|(at, value)| Sample { at: *at, value: *value }).collect();
    Batch { samples: vec![SampleSeries { labels: labels(name), samples }], ..Batch::default() }
}

pub fn entries(name: &str, points: &[(i64, &str)]) -> Batch {
    let entries =
        points.iter().map(|(at, text)| Entry { at: *at, body: Body::Text((*text).into()) }).collect();
    Batch { entries: vec![EntrySeries { labels: labels(name), entries }], ..Batch::default() }
}

/// One call of `a`, in which `a` calls `b`. The call of `a` starts `start` ns after the epoch.
pub fn executions(name: &str, trace: u128, start: i64) -> Batch {
    let operation = |name: &str| Operation { kind: OperationKind::Method, name: name.into() };
    let event = |delta, kind| Event { delta, kind };
    let segment = Segment {
        trace: TraceId(trace),
        base: 7,
        part: 0,
        parent: None,
        thread: "main".into(),
        start,
        carried: Vec::new(),
        first_call: 0,
        events: vec![
            event(0, EventKind::Enter(1)),
            event(10, EventKind::Enter(0)),
            event(20, EventKind::ExitFailed),
            event(5, EventKind::Exit),
        ],
        attributes: Vec::new(),
    };
    let operations = vec![operation("b"), operation("a")];
    let series = ExecutionSeries { labels: labels(name), operations, segments: vec![segment] };
    Batch { executions: vec![series], ..Batch::default() }
}

pub async fn values(store: &Store, name: &str, range: TimeRange) -> Vec<(i64, f64)> {
    let samples = store.samples(id(name), range).await.unwrap();
    samples.into_iter().map(|s| (s.at, s.value.as_f64())).collect()
}

pub async fn texts(store: &Store, name: &str) -> Vec<(i64, String)> {
    let entries = store.entries(id(name), TimeRange::ALL).await.unwrap();
    let text = |body: &Body| String::from_utf8(body.as_bytes().to_vec()).unwrap();
    entries.iter().map(|e| (e.at, text(&e.body))).collect()
}

/// Sorted trace ids of all segments of a series.
pub async fn traces(store: &Store, name: &str) -> Vec<u128> {
    let blocks = store.executions(id(name), TimeRange::ALL).await.unwrap();
    let mut traces: Vec<u128> =
        blocks.iter().flat_map(|block| (0..block.len()).map(|i| block.segment(i).trace.0)).collect();
    traces.sort_unstable();
    traces
}

pub fn found(store: &Store, kind: Kind) -> usize {
    store.find(kind, &[]).len()
}
