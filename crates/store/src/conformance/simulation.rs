//! Does a store on this driver keep its promises through faults, full disks and crashes?
//!
//! A seed decides everything but the moments at which threads run: batches of four senders, repetitions, flushes,
//! faults of the driver, a journal disk without space, crashes with garbage behind the last record. A model in plain
//! maps says what must be read: every acknowledged record exactly once, of equal times the last one.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tacho_model::{
    Batch, Body, Entry, EntrySeries, Event, EventKind, ExecutionSeries, Labels, ManualClock, NAME, Operation,
    OperationKind, Sample, SampleSeries, Segment, TimeRange, TraceId, Value,
};

use super::{Bench, Opener};
use crate::disk::FaultyDisk;
use crate::driver::Driver;
use crate::layer::faults::{Faults, Faulty};
use crate::random::Random;
use crate::{Appended, Error, ErrorKind, Options, Origin, Store};

const SENDERS: u128 = 4;
const STEPS: usize = 100;
const SEEDS: std::ops::Range<u64> = 0..4;

type Checked = Result<(), String>;

pub async fn a_store_on_it_survives_faults_and_crashes(bench: Bench) -> Checked {
    for seed in SEEDS {
        let directory = bench.directory.join(format!("seed-{seed}"));
        let run = run(seed, bench.opener.clone(), &directory).await;
        run.map_err(|error| format!("seed {seed}: {error}"))?;
    }
    Ok(())
}

async fn run(seed: u64, opener: Opener, directory: &Path) -> Checked {
    let mut world = World::new(seed, opener, directory).await?;
    for step in 0..STEPS {
        world.step().await.map_err(|error| format!("step {step}: {error}"))?;
    }
    world.mend();
    // A fault from before may still be under way.
    let _ = world.store()?.close().await;
    world.store()?.close().await.map_err(say)?;
    world.check().await?;
    world.crash().await?;
    world.check().await
}

fn say(error: Error) -> String {
    error.to_string()
}

/// What one sender's batches add up to.
#[derive(Default)]
struct Model {
    seq: u64,
    last: Arc<Batch>,
    samples: BTreeMap<i64, Value>,
    /// In order of arrival.
    entries: Vec<Entry>,
    traces: Vec<u128>,
}

impl Model {
    fn apply(&mut self, batch: &Batch) {
        let samples = batch.samples.iter().flat_map(|s| &s.samples);
        self.samples.extend(samples.map(|s| (s.at, s.value)));
        self.entries.extend(batch.entries.iter().flat_map(|s| s.entries.iter().cloned()));
        self.traces.extend(batch.executions.iter().flat_map(|s| &s.segments).map(|s| s.trace.0));
    }
}

struct World {
    random: Random,
    opener: Opener,
    directory: PathBuf,
    disk: FaultyDisk,
    bare: Arc<dyn Driver>,
    faulty: Arc<Faulty<Arc<dyn Driver>>>,
    store: Option<Arc<Store>>,
    senders: Vec<Model>,
    next_trace: u128,
}

impl World {
    async fn new(seed: u64, opener: Opener, directory: &Path) -> Result<Self, String> {
        let mut random = Random::new(seed);
        let bare = opener(directory.join("driver")).await.map_err(say)?;
        let mut world = Self {
            faulty: faulty(bare.clone(), random.next()),
            random,
            opener,
            directory: directory.to_owned(),
            disk: FaultyDisk::default(),
            bare,
            store: None,
            senders: (0..SENDERS).map(|_| Model::default()).collect(),
            next_trace: 1,
        };
        world.open().await?;
        Ok(world)
    }

    fn store(&self) -> Result<Arc<Store>, String> {
        self.store.clone().ok_or_else(|| "store is not open".into())
    }

    async fn step(&mut self) -> Checked {
        match self.random.below(100) {
            0..55 => self.append().await,
            55..65 => self.repeat().await,
            65..75 => {
                // A failing driver fails the flush; the records must be there all the same.
                let _ = self.store()?.flush().await;
                Ok(())
            }
            75..80 => {
                self.disk.set_space(self.random.below(2_000));
                Ok(())
            }
            80..85 => {
                self.faulty.set_broken(Some(ErrorKind::StorageFull));
                Ok(())
            }
            85..92 => self.crash().await,
            _ => self.check().await,
        }
    }

    /// All senders at once; each repeats its batch until it is taken, as the protocol does.
    async fn append(&mut self) -> Checked {
        let store = self.store()?;
        let batches: Vec<Arc<Batch>> = (0..SENDERS).map(|sender| Arc::new(self.batch(sender))).collect();
        for attempt in 0.. {
            let appends = self.senders.iter().zip(&batches).zip(0..).map(|((model, batch), session)| {
                store.append(batch.clone(), Some(Origin { session, seq: model.seq + 1 }))
            });
            let results = join_all(appends).await;
            let failed: Vec<&Error> = results.iter().filter_map(|r| r.as_ref().err()).collect();
            if failed.is_empty() {
                break;
            }
            if attempt > 2_000 {
                return Err(format!("still refused: {}", failed[0]));
            }
            self.relieve(failed[0]).await?;
        }
        for (model, batch) in self.senders.iter_mut().zip(batches) {
            model.seq += 1;
            model.apply(&batch);
            model.last = batch;
        }
        Ok(())
    }

    /// Does what an operator does.
    async fn relieve(&self, error: &Error) -> Checked {
        match error.kind() {
            ErrorKind::StorageFull => self.disk.set_space(u64::MAX),
            ErrorKind::Full { .. } => {
                self.faulty.set_broken(None);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            _ => return Err(format!("unexpected: {error}")),
        }
        Ok(())
    }

    async fn repeat(&mut self) -> Checked {
        let session = self.random.below(SENDERS as u64);
        let model = &self.senders[session as usize];
        if model.seq == 0 {
            return Ok(());
        }
        let origin = Origin { session: session.into(), seq: model.seq };
        let appended = self.store()?.append(model.last.clone(), Some(origin)).await.map_err(say)?;
        super::equal("repetition", &appended, &Appended::Repeated)
    }

    fn mend(&self) {
        self.disk.set_space(u64::MAX);
        self.faulty.set_broken(None);
        self.faulty.set_quiet(true);
    }

    /// Loses all memory, and leaves a torn record behind.
    async fn crash(&mut self) -> Checked {
        self.faulty.set_broken(Some(ErrorKind::Unavailable));
        self.store = None;
        self.disk.set_space(u64::MAX);
        let journals = crate::journal::list(&self.journal()).map_err(say)?;
        if let Some(last) = journals.last()
            && self.random.one_in(2)
        {
            let garbage: Vec<u8> = (0..self.random.below(40)).map(|_| self.random.next() as u8).collect();
            let file = std::fs::OpenOptions::new().append(true).open(&last.path);
            file.and_then(|mut f| f.write_all(&garbage)).map_err(|e| e.to_string())?;
        }
        self.open().await
    }

    fn journal(&self) -> PathBuf {
        self.directory.join("journal")
    }

    async fn open(&mut self) -> Checked {
        if self.bare.capabilities().durable {
            // Let go of the old one first: it locks its directory.
            self.bare = Arc::new(crate::MemoryDriver::new());
            self.faulty = faulty(self.bare.clone(), 0);
            self.bare = reopen(&self.opener, &self.directory.join("driver")).await?;
        }
        self.faulty = faulty(self.bare.clone(), self.random.next());
        let options = Options {
            seal_bytes: 8_000,
            open_bytes_max: 100_000,
            flush_wait_first: Duration::from_micros(100),
            flush_wait_max: Duration::from_millis(2),
            disk: Arc::new(self.disk.clone()),
            ..Options::default()
        };
        let clock = Arc::new(ManualClock::new(self.random.next() as i64));
        for attempt in 0..2 {
            // Reading 256 shards without one fault is rare: the second attempt has none.
            self.faulty.set_quiet(attempt > 0);
            match Store::open(self.faulty.clone(), &self.journal(), options.clone(), clock.clone()).await {
                Ok(store) => {
                    self.store = Some(store);
                    self.faulty.set_quiet(false);
                    return Ok(());
                }
                // The driver fails while the store is opened: the process ends and is started again.
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                Err(error) => return Err(format!("store does not open: {error}")),
            }
        }
        Err("store does not open without faults".into())
    }

    fn batch(&mut self, sender: u128) -> Batch {
        let random = &mut self.random;
        let mut batch = Batch::default();
        let samples = (0..random.below(60)).map(|_| Sample {
            // Few moments, so that many are written again; two far ones, so that chunks are cut.
            at: random.below(300) as i64 + random.below(2) as i64 * (1 << 52),
            value: match random.below(8) {
                0 => Value::F64(f64::from_bits(random.next())),
                1 => Value::I64(random.next() as i64),
                _ => Value::U64(random.next()),
            },
        });
        let samples = samples.collect();
        batch.samples.push(SampleSeries { labels: labels("samples", sender), samples });
        let entry =
            |number: u64| Entry { at: (number % 7) as i64, body: Body::Text(number.to_string().into()) };
        let entries = (0..random.below(5)).map(|_| entry(random.next())).collect();
        batch.entries.push(EntrySeries { labels: labels("entries", sender), entries });
        let first = self.next_trace;
        self.next_trace += u128::from(random.below(4));
        let name = format!("m{}", random.below(9));
        let operation = Operation { kind: OperationKind::Method, name: name.into() };
        let segments = (first..self.next_trace).map(|trace| segment(trace, random.below(1 << 50) as i64));
        batch.executions.push(ExecutionSeries {
            labels: labels("executions", sender),
            operations: vec![operation],
            segments: segments.collect(),
        });
        batch
    }

    /// What is read is what the model says.
    async fn check(&self) -> Checked {
        let store = self.store()?;
        self.faulty.set_broken(None);
        self.faulty.set_quiet(true);
        for (model, sender) in self.senders.iter().zip(0..) {
            super::equal("acknowledged", &store.session_acked(sender), &model.seq)?;
            let id = labels("samples", sender).id();
            let samples = store.samples(id, TimeRange::ALL).await.map_err(say)?;
            let samples: BTreeMap<i64, Value> = check_order(samples)?;
            super::equal("samples", &samples, &model.samples)?;

            let mut expect = model.entries.clone();
            expect.sort_by_key(|entry| entry.at);
            let entries = store.entries(labels("entries", sender).id(), TimeRange::ALL).await.map_err(say)?;
            super::equal("entries", &entries, &expect)?;

            let id = labels("executions", sender).id();
            let blocks = store.executions(id, TimeRange::ALL).await.map_err(say)?;
            let segments = blocks.iter().flat_map(|block| (0..block.len()).map(|i| block.segment(i)));
            let mut traces: Vec<u128> = segments.map(|segment| segment.trace.0).collect();
            traces.sort_unstable();
            super::equal("traces", &traces, &model.traces)?;
        }
        self.faulty.set_quiet(false);
        Ok(())
    }
}

fn check_order(samples: Vec<Sample>) -> Result<BTreeMap<i64, Value>, String> {
    let rising = samples.windows(2).all(|pair| pair[0].at < pair[1].at);
    let map = samples.into_iter().map(|s| (s.at, s.value)).collect();
    if rising { Ok(map) } else { Err("times do not rise".into()) }
}

fn faulty(driver: Arc<dyn Driver>, seed: u64) -> Arc<Faulty<Arc<dyn Driver>>> {
    let delay_max = Duration::from_millis(1);
    let (error_before, error_after, torn, duplicate, delay) = (9, 9, 9, 9, 9);
    Arc::new(Faulty::new(
        driver,
        Faults { seed, error_before, error_after, torn, duplicate, delay, delay_max },
    ))
}

/// A task of the store that died may hold the directory for a moment longer.
async fn reopen(opener: &Opener, directory: &Path) -> Result<Arc<dyn Driver>, String> {
    let mut last = String::new();
    for _ in 0..500 {
        match opener(directory.to_owned()).await {
            Ok(driver) => return Ok(driver),
            Err(error) if error.kind() == ErrorKind::Locked => last = error.to_string(),
            Err(error) => return Err(say(error)),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(last)
}

fn labels(name: &str, sender: u128) -> Arc<Labels> {
    let sender = sender.to_string();
    Arc::new(Labels::new([(NAME, name), ("sender", &sender)]).unwrap_or_else(|_| Labels::empty()))
}

fn segment(trace: u128, start: i64) -> Segment {
    let event = |delta, kind| Event { delta, kind };
    Segment {
        trace: TraceId(trace),
        base: trace as u64,
        part: 0,
        parent: None,
        thread: "main".into(),
        start,
        carried: Vec::new(),
        first_call: 0,
        events: vec![event(0, EventKind::Enter(0)), event(start as u64 % 97, EventKind::Exit)],
        attributes: Vec::new(),
    }
}
