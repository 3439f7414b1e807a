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
/// Size of the mark that follows each frame in a journal, and states that the frame is on disk.
const MARK_BYTES: u64 = 16;
const SESSION: u128 = 1;
/// Samples of a frame.
const SAMPLES: u64 = 20;
/// Limits on the frames of one process, and on the processes that are started until one ends in the write of a header.
const FRAMES_MAX: u64 = 1_000;
const HEADERS_MAX: u64 = 60;

/// A store whose records stay in journals: its driver works only while the store is opened or checked. One agent sends
/// frames of equal length. Only the loss of acknowledged frames is a failure: a refused frame may or may not be stored.
struct Scene {
    name: &'static str,
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

/// Runs all sequences, without the sync `omitted`. Returns the number of disk operations and a hash of them.
pub async fn run(seed: u64, trace: bool, omitted: Option<SyncPoint>) -> Result<(u64, u64), Failure> {
    let mut random = Random::new(seed ^ 0x6469_7265_6374);
    let mut scene = |name, seal_bytes| Scene::new(name, random.next(), seal_bytes, (trace, omitted));
    let (mut operations, mut hash) = failing_writes(scene("failing writes", usize::MAX)).await?;
    for _ in 0..HEADERS_MAX {
        let (is_quarantined, digest) = torn_header(scene("torn header", 1)).await?;
        operations += digest.0;
        hash = hash.rotate_left(1) ^ digest.1;
        if is_quarantined {
            break;
        }
    }
    Ok((operations, hash))
}

/// Writes of one journal fail one after the other: marks that the disk has no space for, and records. Returns the digest of the
/// disk.
async fn failing_writes(mut scene: Scene) -> Result<(u64, u64), Failure> {
    let store = scene.open().await?;
    // The first frame defines the series, and the second one repeats the definition, so both are longer than the others.
    scene.send(&store).await?;
    scene.send(&store).await?;
    let before = scene.disk.used();
    scene.send(&store).await?;
    let frame_bytes = scene.disk.used() - before;
    for _ in 0..8 {
        match scene.random.below(3) {
            0 => scene.send_without_mark(&store, frame_bytes).await?,
            1 => {
                scene.disk.set_faults(Faults { write: 2, ..Faults::default() });
                scene.send(&store).await?;
                scene.disk.set_faults(Faults::default());
            }
            _ => scene.send(&store).await?,
        }
    }
    scene.end(store).await;
    if scene.random.one_in(2) {
        scene.disk.end_process()
    } else {
        scene.disk.cut_power()
    }
    let store = scene.open().await?;
    scene.check(&store).await?;
    scene.digest()
}

/// A process ends at any operation of the disk. In some runs, this is the write of the header of a journal, and the next start
/// quarantines the file. Then the power fails. Returns whether a file was quarantined, and the digest of the disk.
async fn torn_header(mut scene: Scene) -> Result<(bool, (u64, u64)), Failure> {
    let store = scene.open().await?;
    scene.disk.stop_after(Some(20 + scene.random.below(60)));
    while !scene.disk.has_stopped() && scene.sent < FRAMES_MAX {
        scene.send(&store).await?;
    }
    scene.end(store).await;
    scene.disk.end_process();
    let store = scene.open().await?;
    scene.check(&store).await?;
    scene.end(store).await;
    let files = quarantined(&scene.disk);
    scene.disk.cut_power();
    if quarantined(&scene.disk) != files {
        let text = "files of the quarantine do not survive a power failure";
        return Err(Failure::Lost { records: 0, text: scene.text(text) });
    }
    let store = scene.open().await?;
    scene.check(&store).await?;
    Ok((!files.is_empty(), scene.digest()?))
}

impl Scene {
    fn new(
        name: &'static str,
        seed: u64,
        seal_bytes: usize,
        (trace, omitted): (bool, Option<SyncPoint>),
    ) -> Self {
        if trace {
            tracing::info!("       sequence: {name}");
        }
        let mut random = Random::new(seed);
        let disk = SimulatedDisk::new(random.next(), trace);
        disk.omit(omitted);
        let driver = Arc::new(Faulty::new(MemoryDriver::new(), DriverFaults::default()));
        Self { name, disk, driver, random, seal_bytes, sent: 0, acknowledged: Vec::new() }
    }

    /// The text of a failure, with the name of the sequence.
    fn text(&self, text: impl std::fmt::Display) -> String {
        format!("{}: {text}", self.name)
    }

    fn digest(&self) -> Result<(u64, u64), Failure> {
        match self.disk.is_exhausted() {
            true => Err(Failure::Stuck(self.text("too many operations of the disk"))),
            false => Ok(self.disk.digest()),
        }
    }

    async fn open(&self) -> Result<Arc<Store>, Failure> {
        self.driver.set_broken(None);
        let options = Options {
            disk: Arc::new(self.disk.clone()),
            threads: Threads::One,
            draw_id: || 0x5eed,
            since_boot: || Duration::ZERO,
            seal_bytes: self.seal_bytes,
            ..Options::default()
        };
        let clock = Arc::new(ManualClock::new(0));
        let store = Store::open(self.driver.clone(), Path::new(JOURNAL), options, clock).await;
        self.driver.set_broken(Some(ErrorKind::Unavailable));
        store.map_err(|error| Failure::Refused(self.text(error)))
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
                return Err(Failure::Stuck(self.text(format!("unexpected: {error}"))));
            }
            Ok(Err(_)) | Err(_) => {}
        }
        Ok(())
    }

    /// Sends the next frame while the disk has space for the frame, but only for a part of its mark.
    async fn send_without_mark(&mut self, store: &Store, frame_bytes: u64) -> Result<(), Failure> {
        let before = self.disk.used();
        self.disk.set_capacity(before + frame_bytes - 1 - self.random.below(MARK_BYTES));
        self.send(store).await?;
        self.disk.set_capacity(u64::MAX);
        let written = self.disk.used() - before;
        if self.acknowledged.last() == Some(&self.sent) && written < frame_bytes - MARK_BYTES {
            let text = format!("a frame has {written} bytes, so the disk had space for its mark");
            return Err(Failure::Stuck(self.text(text)));
        }
        Ok(())
    }

    /// Drops the store, and waits until its tasks have ended.
    async fn end(&self, store: Arc<Store>) {
        drop(store);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    /// Checks that the store has all acknowledged frames.
    async fn check(&self, store: &Store) -> Result<(), Failure> {
        self.driver.set_broken(None);
        let found = store.samples(labels().id(), TimeRange::ALL).await;
        self.driver.set_broken(Some(ErrorKind::Unavailable));
        let found = found.map_err(|error| Failure::Reported(self.text(error)))?;
        let found: BTreeSet<i64> = found.into_iter().map(|sample| sample.at).collect();
        let is_missing = |frame: &u64| times(*frame).any(|at| !found.contains(&at));
        let missing: Vec<u64> = self.acknowledged.iter().copied().filter(is_missing).collect();
        if !missing.is_empty() {
            let text = self.text(format!("acknowledged frames {missing:?} are missing"));
            return Err(Failure::Lost { records: missing.len() as u64 * SAMPLES, text });
        }
        let (last, stored) = (self.acknowledged.last().copied().unwrap_or(0), store.session_acked(SESSION));
        if stored < last {
            let text = self.text(format!("frame {last} is acknowledged, the store has {stored}"));
            return Err(Failure::Lost { records: 0, text });
        }
        Ok(())
    }
}

fn labels() -> Arc<Labels> {
    Arc::new(Labels::new([(NAME, "m")]).expect("the name is valid"))
}

/// The times of the samples of a frame. They are so large that their encodings have equal lengths.
fn times(frame: u64) -> impl Iterator<Item = i64> {
    (0..SAMPLES).map(move |n| (1 << 40) + (frame * SAMPLES + n) as i64)
}
