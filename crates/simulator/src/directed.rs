//! Short sequences of events that the random steps of a world reach in few seeds only. Each seed runs all of them, with its own
//! random details, on a disk of its own.
//!
//! This file and `run.rs` use each other: a run starts the sequences, which return its failures.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tacho_model::{Batch, Labels, ManualClock, NAME, Random, Sample, SampleSeries, TimeRange, Value};
use tacho_store::disk::SyncPoint;
use tacho_store::layer::faults::{Faults as DriverFaults, Faulty};
use tacho_store::threads::Threads;
use tacho_store::{ErrorKind, MemoryDriver, Options, Origin, Store};

use crate::disk::{Faults, SimulatedDisk};
use crate::run::Failure;
use crate::world::{quarantined, until_stop};

const JOURNAL: &str = "/journal";
/// Size of the mark that follows each frame.
const MARK_BYTES: u64 = 16;
const SESSION: u128 = 1;
/// Samples of a frame.
const SAMPLES: u64 = 20;

/// A store whose records stay in journals, because its driver refuses all rows. One agent sends frames of equal length.
struct Scene {
    disk: SimulatedDisk,
    driver: Arc<Faulty<MemoryDriver>>,
    random: Random,
    /// A journal is sealed when its records take this many bytes of memory.
    seal_bytes: usize,
    /// Number of the last frame that was sent. A frame that was refused is not sent again.
    sent: u64,
    /// Numbers of the acknowledged frames.
    acknowledged: Vec<u64>,
}

/// Runs all sequences, without the sync `omitted`.
pub async fn run(seed: u64, omitted: Option<SyncPoint>) -> Result<(), Failure> {
    failing_writes(Scene::new(seed, omitted, usize::MAX)).await?;
    torn_header(Scene::new(seed, omitted, 1)).await
}

/// Writes of one journal fail in turn: marks that the disk has no space for, and records. The remains of a failed write stay in
/// the journal only if they cannot be cut off, and no acknowledged frame may then be lost.
async fn failing_writes(mut scene: Scene) -> Result<(), Failure> {
    let store = scene.open().await?;
    // The first frame defines the series, so it is longer than all others.
    scene.send(&store).await?;
    let before = scene.disk.used();
    scene.send(&store).await?;
    let frame_bytes = scene.disk.used() - before;
    for _ in 0..8 {
        match scene.random.below(3) {
            // The end of the frame is its mark. Any part of the mark may fit.
            0 => {
                scene.disk.set_capacity(scene.disk.used() + frame_bytes - 1 - scene.random.below(MARK_BYTES))
            }
            1 => scene.disk.set_faults(Faults { write: 2, ..Faults::default() }),
            _ => {}
        }
        scene.send(&store).await?;
        scene.disk.set_capacity(u64::MAX);
        scene.disk.set_faults(Faults::default());
    }
    scene.drop(store).await;
    if scene.random.one_in(2) {
        scene.disk.end_process()
    } else {
        scene.disk.cut_power()
    }
    let store = scene.open().await?;
    scene.check(&store).await
}

/// A process ends while it writes the header of a journal, and the next start quarantines the file. Then the power fails.
async fn torn_header(mut scene: Scene) -> Result<(), Failure> {
    let store = scene.open().await?;
    scene.disk.stop_after(Some(20 + scene.random.below(60)));
    while !scene.disk.has_stopped() {
        scene.send(&store).await?;
    }
    scene.drop(store).await;
    scene.disk.end_process();
    let store = scene.open().await?;
    scene.check(&store).await?;
    scene.drop(store).await;
    let files = quarantined(&scene.disk);
    scene.disk.cut_power();
    if quarantined(&scene.disk) != files {
        let text = "files of the quarantine do not survive a power failure".to_owned();
        return Err(Failure::Lost { records: 0, text });
    }
    let store = scene.open().await?;
    scene.check(&store).await
}

impl Scene {
    fn new(seed: u64, omitted: Option<SyncPoint>, seal_bytes: usize) -> Self {
        let mut random = Random::new(seed);
        let disk = SimulatedDisk::new(random.next(), false);
        disk.omit(omitted);
        let driver = Arc::new(Faulty::new(MemoryDriver::new(), DriverFaults::default()));
        Self { disk, driver, random, seal_bytes, sent: 0, acknowledged: Vec::new() }
    }

    async fn open(&self) -> Result<Arc<Store>, Failure> {
        self.driver.set_broken(None);
        let options = Options {
            disk: Arc::new(self.disk.clone()),
            threads: Threads::One,
            seal_bytes: self.seal_bytes,
            ..Options::default()
        };
        let clock = Arc::new(ManualClock::new(0));
        let store = Store::open(self.driver.clone(), Path::new(JOURNAL), options, clock).await;
        self.driver.set_broken(Some(ErrorKind::Unavailable));
        store.map_err(|error| Failure::Refused(error.to_string()))
    }

    /// Sends the next frame once. It may be refused.
    async fn send(&mut self, store: &Store) -> Result<(), Failure> {
        self.sent += 1;
        let samples = times(self.sent).map(|at| Sample { at, value: Value::I64(at) });
        let series = SampleSeries { labels: labels(), samples: samples.collect() };
        let batch = Batch { samples: vec![series], ..Batch::default() };
        let append = store.append(batch, Some(Origin::one(SESSION, self.sent)));
        match until_stop(&self.disk, append).await {
            Ok(Ok(_)) => self.acknowledged.push(self.sent),
            Ok(Err(error)) if !matches!(error.kind(), ErrorKind::Io | ErrorKind::StorageFull) => {
                return Err(Failure::Stuck(format!("unexpected: {error}")));
            }
            Ok(Err(_)) | Err(_) => {}
        }
        Ok(())
    }

    /// Drops the store, and waits until its tasks have ended.
    async fn drop(&self, store: Arc<Store>) {
        drop(store);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    /// Checks that the store has all acknowledged frames.
    async fn check(&self, store: &Store) -> Result<(), Failure> {
        self.driver.set_broken(None);
        let found = store.samples(labels().id(), TimeRange::ALL).await;
        self.driver.set_broken(Some(ErrorKind::Unavailable));
        let found = found.map_err(|error| Failure::Reported(error.to_string()))?;
        let found: BTreeSet<i64> = found.into_iter().map(|sample| sample.at).collect();
        let missing: Vec<u64> = self
            .acknowledged
            .iter()
            .copied()
            .filter(|seq| times(*seq).any(|at| !found.contains(&at)))
            .collect();
        if !missing.is_empty() {
            let text = format!("acknowledged frames {missing:?} are missing");
            return Err(Failure::Lost { records: missing.len() as u64 * SAMPLES, text });
        }
        let (last, stored) = (self.acknowledged.last().copied().unwrap_or(0), store.session_acked(SESSION));
        if stored < last {
            let text = format!("frame {last} is acknowledged, the store has {stored}");
            return Err(Failure::Lost { records: 0, text });
        }
        Ok(())
    }
}

fn labels() -> Arc<Labels> {
    Arc::new(Labels::new([(NAME, "m")]).expect("the name is valid"))
}

/// The times of the samples of a frame.
fn times(frame: u64) -> impl Iterator<Item = i64> {
    (0..SAMPLES).map(move |n| (frame * SAMPLES + n) as i64)
}
