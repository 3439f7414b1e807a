//! Simulates a store on a driver with faults, full disks and crashes, and compares its answers with a model.
//!
//! The seed determines everything except the scheduling of threads and timers. It draws batches of four senders, repetitions,
//! flushes, merges, deletions, expired records, driver faults, a full journal disk, and crashes. A crash may happen at any
//! driver call and may leave garbage at the end of the journal. The model (`model.rs`) defines the expected result with plain
//! maps: every acknowledged record exactly once, unless it was deleted, expired or removed by downsampling. Of samples with
//! equal times, the last one counts.
//!
//! This file and `conformance/mod.rs` use each other: the simulation is one case of that suite, and it opens drivers with
//! the suite's types.

pub mod model;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tacho_model::{Batch, ManualClock, Matcher, NAME, Random, Sample, TimeRange, Value};

use super::{Bench, Opener};
use crate::disk::FaultyDisk;
use crate::driver::Driver;
use crate::layer::faults::{Faults, Faulty};
use crate::size::in_memory;
use crate::{Appended, Error, ErrorKind, Options, Origin, Store};
use model::{BRIEF, BRIEF_NS, COARSE, Model, OWN, SENDER, SHARED, Seen, batch, labels, policies};

const SENDERS: u64 = 4;
const STEPS: usize = 100;
/// Default number of seeds. `TACHO_SIMULATION_SEEDS=100` runs 100 seeds; `TACHO_SIMULATION_FIRST=100` starts with seed
/// 100.
const SEEDS: u64 = 4;

type Checked = Result<(), String>;

/// Waits for the end of the tasks of a dropped store: 60 s in all.
const ENDS_MAX: u32 = 6_000;
const END_WAIT: Duration = Duration::from_millis(10);

pub async fn a_store_survives_faults_and_crashes(bench: Bench) -> Checked {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let first = number("TACHO_SIMULATION_FIRST").unwrap_or(0);
    let seeds = number("TACHO_SIMULATION_SEEDS").unwrap_or(SEEDS);
    let mut seen = Seen::default();
    let mut merges = true;
    for seed in first..first + seeds {
        let directory = bench.directory.join(format!("seed-{seed}"));
        let run = run(seed, bench.opener.clone(), &directory, &mut seen).await;
        merges &= run.map_err(|error| format!("seed {seed}: {error}"))?;
    }
    let did_all =
        seen.merges > 20 && seen.deletions > 5 && seen.deletions_done > 0 && seen.chunks_expired > 0;
    if merges && !did_all { Err(format!("too little was merged and deleted: {seen:?}")) } else { Ok(()) }
}

/// Runs one seed. Returns whether the driver permits merges.
async fn run(seed: u64, opener: Opener, directory: &Path, seen: &mut Seen) -> Result<bool, String> {
    let mut world = World::new(seed, opener, directory).await?;
    for step in 0..STEPS {
        world.step().await.map_err(|error| format!("step {step}: {error}"))?;
    }
    world.remove_faults();
    // The first close may fail, because an operation that an earlier fault interrupted may still be
    // running.
    let _ = world.store()?.close().await;
    world.store()?.close().await.map_err(say)?;
    world.check().await?;
    world.crash().await?;
    world.check().await?;
    world.merge_whole().await?;
    world.leave();
    seen.merges += world.seen.merges;
    seen.deletions += world.seen.deletions;
    seen.deletions_done += world.seen.deletions_done;
    seen.chunks_expired += world.seen.chunks_expired;
    seen.rows_dead += world.seen.rows_dead;
    Ok(world.faulty.capabilities().atomic_put)
}

fn say(error: Error) -> String {
    error.to_string()
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
    clock: Arc<ManualClock>,
    now: i64,
    seen: Seen,
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
            clock: Arc::default(),
            now: 1_000,
            seen: Seen::default(),
        };
        world.clock.set(world.now);
        world.open().await?;
        Ok(world)
    }

    fn store(&self) -> Result<Arc<Store>, String> {
        self.store.clone().ok_or_else(|| "store is not open".into())
    }

    async fn step(&mut self) -> Checked {
        match self.random.below(100) {
            0..46 => self.append().await,
            46..52 => self.repeat().await,
            52..61 => {
                // If the driver fails, the flush fails. The records must still be readable.
                let _ = self.store()?.flush().await;
                Ok(())
            }
            61..65 => {
                self.disk.set_space(self.random.below(2_000));
                Ok(())
            }
            65..69 => {
                self.faulty.set_broken(Some(ErrorKind::StorageFull));
                Ok(())
            }
            69..74 => self.merge().await,
            74..80 => self.delete().await,
            80..84 => {
                self.now += self.random.below(BRIEF_NS).cast_signed();
                self.clock.set(self.now);
                Ok(())
            }
            84..88 => self.crash().await,
            88..94 => self.crash_at_work().await,
            _ => self.check().await,
        }
    }

    /// Merges or sweeps. The store's error is ignored, because the driver may fail. Merges that
    /// ended before the error stay in the driver.
    async fn merge(&mut self) -> Checked {
        self.faulty.set_broken(None);
        let store = self.store()?;
        let _ = if self.random.one_in(2) { store.merge_all().await } else { store.sweep().await };
        Ok(())
    }

    /// Flushes without faults. If the driver permits merges, also sweeps and merges everything; then no deletion may be
    /// pending. The content must match the model.
    async fn merge_whole(&mut self) -> Checked {
        self.remove_faults();
        let store = self.store()?;
        store.flush().await.map_err(say)?;
        if self.faulty.capabilities().atomic_put {
            store.sweep().await.map_err(say)?;
            store.merge_all().await.map_err(say)?;
            self.faulty.set_quiet(true);
            super::equal("pending deletions", &store.stats().upkeep.tombstones, &0)?;
        }
        self.check().await
    }

    /// Deletes records. Retries until the deletion succeeds, because an error does not say whether
    /// the deletion is in force.
    async fn delete(&mut self) -> Checked {
        let store = self.store()?;
        let sender = self.random.below(SENDERS);
        let names = [None, Some(SHARED[0]), Some(OWN), Some(COARSE), Some("entries"), Some("executions")];
        let name = names.get(in_memory(self.random.below(names.len() as u64))).copied().flatten();
        let from = self.random.below(300).cast_signed();
        let from = if name == Some(COARSE) { self.now - 300 + from } else { from };
        let range = match self.random.below(3) {
            0 => TimeRange::new(from, from + self.random.below(50).cast_signed()),
            1 => TimeRange::new(from, self.random.below(1 << 50).cast_signed() + from),
            _ => TimeRange::ALL,
        };
        let mut matchers = vec![Matcher::equal(SENDER, &sender.to_string())];
        matchers.extend(name.map(|name| Matcher::equal(NAME, name)));
        for attempt in 0.. {
            self.faulty.set_broken(None);
            match store.delete(&matchers, range).await {
                Ok(_) => break,
                Err(error) if attempt > 1_000 => return Err(format!("still not deleted: {error}")),
                Err(_) => {}
            }
        }
        let model = self.senders.get_mut(in_memory(sender)).ok_or("no such sender")?;
        model.delete(name, range);
        Ok(())
    }

    /// Freezes the driver at one of its next calls, during a flush, a sweep or a merge. Then the process crashes.
    async fn crash_at_work(&mut self) -> Checked {
        self.faulty.set_broken(None);
        self.faulty.freeze_after(self.random.below(20));
        let (store, what) = (self.store()?, self.random.below(3));
        let work = tokio::spawn(async move {
            let _ = store.flush().await;
            let _ = match what {
                0 => store.sweep().await,
                _ => store.merge_all().await,
            };
        });
        let frozen = tokio::time::timeout(Duration::from_millis(50), self.faulty.wait_frozen());
        let _ = frozen.await;
        work.abort();
        let _ = work.await;
        self.crash().await
    }

    fn leave(&mut self) {
        if let Some(store) = self.store.take() {
            self.seen.add(&store.stats().upkeep);
        }
    }

    /// Waits until the tasks of the dropped store have ended. In a crashed process they end at once; here a thread may still
    /// remove a journal.
    async fn wait_for_end(&self) -> Checked {
        for _ in 0..ENDS_MAX {
            if Arc::strong_count(&self.faulty) == 1 {
                return Ok(());
            }
            tokio::time::sleep(END_WAIT).await;
        }
        Err("the tasks of the dropped store do not end".into())
    }

    /// All senders append at the same time. They repeat their batches, as in the protocol, until all are accepted.
    async fn append(&mut self) -> Checked {
        let store = self.store()?;
        let mut new = |sender| Arc::new(batch(&mut self.random, sender, self.now, &mut self.next_trace));
        let batches: Vec<Arc<Batch>> = (0..SENDERS).map(u128::from).map(&mut new).collect();
        for attempt in 0.. {
            let appends = self.senders.iter().zip(&batches).zip(0..).map(|((model, batch), session)| {
                store.append(batch.clone(), Some(Origin::one(session, model.seq + 1)))
            });
            let results = join_all(appends).await;
            let failed: Vec<&Error> = results.iter().filter_map(|r| r.as_ref().err()).collect();
            let Some(failed) = failed.first() else { break };
            if attempt > 2_000 {
                return Err(format!("still refused: {failed}"));
            }
            self.fix_cause(failed, attempt).await?;
        }
        for (model, batch) in self.senders.iter_mut().zip(batches) {
            model.seq += 1;
            model.apply(&batch);
            model.last = batch;
        }
        Ok(())
    }

    /// Fixes the cause of an error, as an operator would. Waits for flushes up to 50 ms per attempt, because a sync may take
    /// seconds on a busy disk.
    async fn fix_cause(&self, error: &Error, attempt: u64) -> Checked {
        match error.kind() {
            ErrorKind::StorageFull => self.disk.set_space(u64::MAX),
            ErrorKind::Full { .. } => {
                self.faulty.set_broken(None);
                tokio::time::sleep(Duration::from_millis(attempt.clamp(1, 50))).await;
            }
            _ => return Err(format!("unexpected: {error}")),
        }
        Ok(())
    }

    async fn repeat(&mut self) -> Checked {
        let session = self.random.below(SENDERS);
        let model = self.senders.get(in_memory(session)).ok_or("no such sender")?;
        if model.seq == 0 {
            return Ok(());
        }
        let origin = Origin::one(session.into(), model.seq);
        let appended = self.store()?.append(model.last.clone(), Some(origin)).await.map_err(say)?;
        super::equal("repetition", &appended, &Appended::Repeated)
    }

    fn remove_faults(&self) {
        self.disk.set_space(u64::MAX);
        self.faulty.set_broken(None);
        self.faulty.set_quiet(true);
    }

    /// Drops the store without closing it, appends garbage to the last journal in half of the cases, and opens the store again.
    async fn crash(&mut self) -> Checked {
        self.faulty.set_broken(Some(ErrorKind::Unavailable));
        self.leave();
        self.wait_for_end().await?;
        self.disk.set_space(u64::MAX);
        let journals = crate::journal::list(&self.disk, &self.journal()).map_err(say)?;
        if let Some(last) = journals.last()
            && self.random.one_in(2)
        {
            let garbage: Vec<u8> =
                (0..self.random.below(40)).map(|_| self.random.next().to_le_bytes()[0]).collect();
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
            // The old driver locks its directory, so it is dropped first.
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
            // Small chunks, so that full chunks occur, and merges of two chunks, so that merges occur.
            chunk_values: 64,
            merge_rows: 2,
            // Sometimes the limit is so low that a merge must be split.
            merge_values: [50, 500].get(in_memory(self.random.below(3))).copied().unwrap_or(4 << 20),
            merge_bytes_per_second: u64::MAX,
            merge_cpu_percent: 100,
            sweep_first: Duration::from_millis(self.random.below(20)),
            sweep_every: Duration::from_millis(30),
            policies: Arc::new(policies()),
            ..Options::default()
        };
        let clock = self.clock.clone();
        for attempt in 0..2 {
            // A read of all 256 shards rarely succeeds with random faults. The second attempt therefore runs without
            // faults.
            self.faulty.set_quiet(attempt > 0);
            match Store::open(self.faulty.clone(), &self.journal(), options.clone(), clock.clone()).await {
                Ok(store) => {
                    self.store = Some(store);
                    self.faulty.set_quiet(false);
                    return Ok(());
                }
                // The driver failed while the store was opened. The process would end and be started again.
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                Err(error) => return Err(format!("store does not open: {error}")),
            }
        }
        Err("store does not open without faults".into())
    }

    async fn check(&self) -> Checked {
        let store = self.store()?;
        self.faulty.set_broken(None);
        self.faulty.set_quiet(true);
        for (model, sender) in self.senders.iter().zip(0..) {
            super::equal("acknowledged", &store.session_acked(sender), &model.seq)?;
            for name in SHARED.into_iter().chain([OWN, BRIEF, COARSE]) {
                let samples = store.samples(labels(name, sender).id(), TimeRange::ALL).await.map_err(say)?;
                let samples: BTreeMap<i64, Value> = check_order(samples)?;
                let expect = model.expect(name, self.now, &samples);
                same(&samples, &expect).map_err(|e| format!("{name} of sender {sender}: {e}"))?;
            }

            let mut expect = model.entries.clone();
            expect.sort_by_key(|entry| entry.at);
            let entries = store.entries(labels("entries", sender).id(), TimeRange::ALL).await.map_err(say)?;
            super::equal("number of entries", &entries.len(), &expect.len())?;
            super::equal("entries", &entries, &expect)?;

            let id = labels("executions", sender).id();
            let blocks = store.executions(id, TimeRange::ALL).await.map_err(say)?;
            let segments = blocks.iter().flat_map(|block| (0..block.len()).map(|i| block.segment(i)));
            let mut traces: Vec<(u128, i64)> =
                segments.map(|segment| (segment.trace.0, segment.start)).collect();
            traces.sort_unstable();
            super::equal("number of segments", &traces.len(), &model.traces.len())?;
            super::equal("segments", &traces, &model.traces.clone().into_iter().collect())?;
        }
        self.faulty.set_quiet(false);
        Ok(())
    }
}

/// Compares samples. The error lists the missing, the unexpected and the different ones.
fn same(got: &BTreeMap<i64, Value>, expect: &BTreeMap<i64, Value>) -> Checked {
    if got == expect {
        return Ok(());
    }
    let missing: Vec<_> = expect.iter().filter(|(at, _)| !got.contains_key(at)).collect();
    let strange: Vec<_> = got.iter().filter(|(at, _)| !expect.contains_key(at)).collect();
    let other: Vec<_> = got.iter().filter(|(at, v)| expect.get(at).is_some_and(|e| e != *v)).collect();
    Err(format!("missing {missing:?}, unexpected {strange:?}, other values {other:?}"))
}

fn check_order(samples: Vec<Sample>) -> Result<BTreeMap<i64, Value>, String> {
    let rising = samples.is_sorted_by(|before, after| before.at < after.at);
    let map = samples.into_iter().map(|s| (s.at, s.value)).collect();
    if rising { Ok(map) } else { Err("times do not rise".into()) }
}

fn faulty(driver: Arc<dyn Driver>, seed: u64) -> Arc<Faulty<Arc<dyn Driver>>> {
    let delay_max = Duration::from_millis(1);
    let (error_before, error_after, torn, duplicate, delay) = (9, 9, 9, 9, 9);
    // A driver with atomic puts must keep them atomic, so its puts are not torn.
    let whole_puts = driver.capabilities().atomic_put;
    let faults = Faults { seed, error_before, error_after, torn, whole_puts, duplicate, delay, delay_max };
    Arc::new(Faulty::new(driver, faults))
}

/// Opens the driver again. Retries, because a task of the crashed store may hold the lock of the
/// directory a little longer.
async fn reopen(opener: &Opener, directory: &Path) -> Result<Arc<dyn Driver>, String> {
    let mut last = String::new();
    for _ in 0..6_000 {
        match opener(directory.to_owned()).await {
            Ok(driver) => return Ok(driver),
            Err(error) if error.kind() == ErrorKind::Locked => last = error.to_string(),
            Err(error) => return Err(say(error)),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(last)
}
