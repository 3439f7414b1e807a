//! One seed: agents send frames to a store, and the machine crashes again and again.
//!
//! This file and `run.rs`, `damage.rs`, `survive.rs` use each other: a run creates worlds, and a world returns its failure or its
//! counts. `damage.rs` and `survive.rs` damage the disk of a world.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tacho_drivers::embedded::Embedded;
use tacho_model::{ManualClock, Matcher, NAME, Random};
use tacho_store::conformance::simulation::model::{SENDER, policies};
use tacho_store::driver::Health;
use tacho_store::layer::faults::Faulty;
use tacho_store::threads::Threads;
use tacho_store::{Appended, Error, ErrorKind, Options, Store};

use crate::agent::Agent;
use crate::check::check;
use crate::disk::{Faults, SimulatedDisk, Slowness};
use crate::network::Network;
use crate::run::{Failure, Totals};
use crate::scenario::{Life, Step, deletion, driver_faults};

const AGENTS: u128 = 3;
/// Number of lives of one seed before the three processes of `World::end`. A life is one process, or several if the disk fails
/// while the store is opened. It ends with a crash.
const LIVES: u64 = 12;
const JOURNAL: &str = "/data/journal";
/// The name of the directories with damaged files, below `JOURNAL` and [`CHUNKS`].
const QUARANTINE: &str = "quarantine";
pub const CHUNKS: &str = "/data/chunks";
/// Size of a segment of the driver, bytes: small, so that segments are sealed and rewritten.
const SMALL_SEGMENT_BYTES: u64 = 12_000;
/// Limits on the attempts to open the store, and to delete records. If the last attempt fails, the store is stuck. The disk has
/// no faults after the first few attempts.
const OPENINGS_MAX: usize = 20;
const DELETIONS_MAX: usize = 200;

pub struct Open {
    pub store: Arc<Store>,
    pub driver: Arc<Faulty<Embedded>>,
}

/// The reason why a life ends.
pub enum End {
    Crash,
    Broken(Failure),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Broken(failure)
    }
}

pub struct World {
    pub disk: SimulatedDisk,
    pub random: Random,
    pub agents: Vec<Agent>,
    pub now: i64,
    pub network: Network,
    pub next_trace: u128,
    clock: Arc<ManualClock>,
    trace: bool,
    /// Whether no operation of the disk fails in this seed. Then the store must not report damage, and files in a quarantine must
    /// survive all crashes. In other seeds, a failed operation may cause a report of damage or the loss of such a file.
    is_healthy: bool,
    /// The files in the quarantines at the last check.
    quarantined: BTreeMap<PathBuf, Vec<u8>>,
    /// For each agent, the number of its last frame that the store had at the last orderly stop. `check_stopped` takes these
    /// numbers.
    stopped: Option<Vec<u64>>,
}

impl World {
    pub fn new(seed: u64, trace: bool) -> Self {
        let mut random = Random::new(seed);
        let world = Self {
            disk: SimulatedDisk::new(random.next(), trace),
            agents: (1..=AGENTS).map(|session| Agent::new(session, random.one_in(2))).collect(),
            is_healthy: random.one_in(3),
            quarantined: BTreeMap::new(),
            random,
            now: 1_000,
            network: Network::default(),
            next_trace: 1,
            clock: Arc::default(),
            trace,
            stopped: None,
        };
        world.clock.set(world.now);
        world
    }

    pub async fn run(&mut self, totals: &mut Totals) -> Result<(), Failure> {
        for _ in 0..LIVES {
            let life = Life::draw(&mut self.random, self.is_healthy);
            self.say(|| format!("life {life:?}"));
            let ended = self.live(life, totals).await;
            self.network.end().await;
            match ended {
                // The limit on operations is reached, so `run::one` fails the seed.
                _ if self.disk.is_exhausted() => return Ok(()),
                Ok(()) | Err(End::Crash) => self.crash(totals),
                Err(End::Broken(failure)) => return Err(failure),
            }
        }
        self.remove_faults();
        self.end(totals).await.map_err(|end| match end {
            End::Broken(failure) => failure,
            End::Crash => Failure::Stuck("the machine stopped without a fault".to_owned()),
        })?;
        let is_told = crate::damage::run(self, totals).await?;
        crate::survive::run(self, is_told, totals).await
    }

    pub fn say(&self, line: impl FnOnce() -> String) {
        if self.trace {
            tracing::info!("       {}", line());
        }
    }

    pub fn remove_faults(&self) {
        self.disk.set_faults(Faults::default());
        self.disk.set_slowness(Slowness::default());
        self.disk.set_capacity(u64::MAX);
        self.disk.stop_after(None);
    }

    /// The power fails, or only the process ends.
    pub fn crash(&mut self, totals: &mut Totals) {
        if self.random.one_in(3) {
            totals.ended_processes += 1;
            self.disk.end_process();
        } else {
            totals.power_failures += 1;
            self.disk.cut_power();
        }
        self.disk.set_faults(Faults::default());
        self.disk.set_capacity(u64::MAX);
    }

    pub async fn open_driver(&self) -> tacho_store::Result<Embedded> {
        let disk = Arc::new(self.disk.clone());
        Embedded::open_on(Path::new(CHUNKS), disk, SMALL_SEGMENT_BYTES, Threads::One).await
    }

    /// Opens the store once.
    pub async fn try_open(&mut self) -> tacho_store::Result<(Arc<Store>, Arc<Faulty<Embedded>>)> {
        let disk = Arc::new(self.disk.clone());
        let driver = self.open_driver().await?;
        let driver = Arc::new(Faulty::new(driver, driver_faults(&mut self.random)));
        driver.set_quiet(true);
        let options = Options {
            seal_bytes: [4_000, 8_000, 30_000][self.random.below(3) as usize],
            open_bytes_max: 200_000,
            seal_age: Duration::from_millis(500),
            stop_journal_bytes: [0, 3_000, 64 << 20][self.random.below(3) as usize],
            flush_wait_first: Duration::from_millis(1),
            flush_wait_max: Duration::from_millis(20),
            disk,
            threads: Threads::One,
            draw_id: || 0x5eed,
            since_boot: || Duration::ZERO,
            // Small chunks, so that full chunks occur. Two chunks are enough for a merge, so that merges are frequent.
            chunk_values: 64,
            merge_rows: 2,
            merge_values: [50, 500, 4 << 20][self.random.below(3) as usize],
            // The upkeep rests a little after each batch, because the paused clock advances only while all tasks rest.
            merge_bytes_per_second: 100 << 20,
            merge_cpu_percent: 100,
            sweep_first: Duration::from_millis(self.random.below(200)),
            sweep_every: Duration::from_millis(800),
            verify_first: Duration::from_millis(self.random.below(2_000)),
            verify_every: Duration::from_secs(2),
            policies: Arc::new(policies()),
            ..Options::default()
        };
        let store = Store::open(driver.clone(), Path::new(JOURNAL), options, self.clock.clone()).await?;
        driver.set_quiet(false);
        Ok((store, driver))
    }

    /// Opens the store. If the disk fails, ends the process and opens the store again.
    pub async fn open(&mut self, totals: &mut Totals) -> Result<Open, End> {
        let mut last = String::new();
        for attempt in 0..OPENINGS_MAX {
            let error = match self.try_open().await {
                Ok((store, driver)) => {
                    self.network.open(store.clone(), self.clock.clone());
                    return Ok(Open { store, driver });
                }
                Err(error) => error,
            };
            self.say(|| format!("not opened: {error}"));
            if self.disk.has_stopped() {
                totals.during_open += 1;
                return Err(End::Crash);
            }
            match error.kind() {
                ErrorKind::Io | ErrorKind::Unavailable | ErrorKind::StorageFull => {
                    self.disk.end_process();
                    totals.ended_processes += 1;
                    if attempt > 3 {
                        self.remove_faults();
                    }
                }
                _ => return Err(Failure::Refused(error.to_string()).into()),
            }
            last = error.to_string();
        }
        Err(Failure::Stuck(format!("store does not open in {OPENINGS_MAX} attempts: {last}")).into())
    }

    /// One life: opens the store, and takes steps until the machine stops or all steps are done.
    async fn live(&mut self, life: Life, totals: &mut Totals) -> Result<(), End> {
        self.disk.set_faults(life.faults);
        self.disk.set_slowness(life.slowness);
        self.disk.stop_after(life.operations);
        let open = self.open(totals).await?;
        self.check_stopped(&open)?;
        self.reconnect(&open, totals)?;
        self.finish_deletions(&open).await?;
        self.check(&open, totals).await?;
        for _ in 0..life.steps {
            let step = Step::draw(&mut self.random);
            self.say(|| format!("step {step:?}"));
            self.step(step, &open, totals).await?;
            if self.disk.has_stopped() {
                return Err(End::Crash);
            }
        }
        if self.random.one_in(2) {
            self.stop(&open, totals).await?;
        }
        let upkeep = open.store.stats().upkeep;
        totals.merges += upkeep.merges;
        Ok(())
    }

    /// Stops the process in an orderly way. The process may leave journals to the next process. If the seed has failing
    /// operations, in half of the cases the agents first send frames while either all syncs and all cuts of files fail, or all
    /// writes fail.
    async fn stop(&mut self, open: &Open, totals: &mut Totals) -> Result<(), End> {
        if !self.is_healthy && self.random.one_in(2) {
            self.disconnect(open, totals).await?;
            self.disk.set_faults(match self.random.one_in(2) {
                true => Faults { sync: 1, cut: 1, ..Faults::default() },
                false => Faults { write: 1, ..Faults::default() },
            });
            let sent = self.send(open, totals).await;
            self.disk.set_faults(Faults::default());
            sent?;
        }
        self.disconnect(open, totals).await?;
        let flushes = self.random.one_in(3);
        let work = async { if flushes { open.store.close().await } else { open.store.stop().await } };
        match until_stop(&self.disk, work).await? {
            Ok(()) => {
                totals.stops += 1;
                let acked = |agent: &Agent| open.store.session_acked(agent.session);
                self.stopped = Some(self.agents.iter().map(acked).collect());
            }
            Err(error) => self.accept(&error)?,
        }
        Ok(())
    }

    /// Checks that frames that were refused before an orderly stop do not come back.
    fn check_stopped(&mut self, open: &Open) -> Result<(), Failure> {
        for (agent, before) in self.agents.iter().zip(self.stopped.take().unwrap_or_default()) {
            let (session, stored) = (agent.session, open.store.session_acked(agent.session));
            if stored > before {
                let text = format!("session {session}: frame {before} before the stop, {stored} after it");
                return Err(Failure::Invented { text });
            }
        }
        Ok(())
    }

    /// Three processes on a disk without faults, after all lives: everything is flushed and merged, and must survive two more
    /// crashes.
    async fn end(&mut self, totals: &mut Totals) -> Result<(), End> {
        for round in 0..3 {
            let open = self.open(totals).await?;
            self.check_stopped(&open)?;
            self.reconnect(&open, totals)?;
            self.finish_deletions(&open).await?;
            open.driver.set_quiet(true);
            if round < 2 {
                // A job that began before the faults of the driver were switched off may still fail.
                let mut settled = settle(&open.store).await;
                if settled.is_err() {
                    settled = settle(&open.store).await;
                }
                settled.map_err(|e| {
                    Failure::Stuck(format!("flush or upkeep fails on a disk without faults: {e}"))
                })?;
            }
            self.check(&open, totals).await?;
            totals.merges += open.store.stats().upkeep.merges;
            drop(open);
            self.network.end().await;
            if round == 0 {
                self.disk.end_process();
            } else {
                self.disk.cut_power();
            }
        }
        Ok(())
    }

    /// Each agent learns the last frame that the store has. It sends the later frames again in its next round.
    pub fn reconnect(&mut self, open: &Open, totals: &mut Totals) -> Result<(), Failure> {
        for agent in &mut self.agents {
            let stored = open.store.session_acked(agent.session);
            if stored < agent.acked {
                let (session, acked) = (agent.session, agent.acked);
                let text =
                    format!("session {session}: frame {acked} is acknowledged, the store has {stored}");
                return Err(Failure::Lost { records: 0, text });
            }
            totals.found_frames += stored - agent.acked;
            agent.take_ack(stored);
        }
        Ok(())
    }

    async fn step(&mut self, step: Step, open: &Open, totals: &mut Totals) -> Result<(), End> {
        let store = &open.store;
        let disk = self.disk.clone();
        match step {
            Step::Send => return self.send(open, totals).await,
            Step::Repeat => return self.repeat(open).await,
            Step::Delete => {
                // While agents are connected, it is unknown which frames are stored before the deletion.
                self.disconnect(open, totals).await?;
                let at = self.random.below(AGENTS as u64) as usize;
                self.agents[at].deleting = Some(deletion(&mut self.random, self.now));
                totals.deletions += 1;
                return self.finish_deletions(open).await;
            }
            Step::Check => {
                self.disconnect(open, totals).await?;
                return self.check(open, totals).await;
            }
            // If the disk fails, these calls fail, and no record may be lost.
            Step::Flush => drop(until_stop(&disk, store.flush()).await?),
            Step::Merge => drop(until_stop(&disk, store.merge_all()).await?),
            Step::Sweep => drop(until_stop(&disk, store.sweep()).await?),
            Step::Verify => drop(until_stop(&disk, store.verify()).await?),
            Step::Rest(time) => until_stop(&disk, tokio::time::sleep(time)).await?,
            Step::Advance(ns) => {
                self.now += ns;
                self.clock.set(self.now);
            }
            Step::Fill(_) if self.is_healthy => {}
            Step::Fill(bytes) => {
                disk.set_capacity(disk.used() + bytes);
            }
        }
        Ok(())
    }

    /// An agent that missed an ACK repeats its last frame. The repetition has other records, which the store must not keep.
    async fn repeat(&mut self, open: &Open) -> Result<(), End> {
        let agent = &self.agents[self.random.below(AGENTS as u64) as usize];
        if agent.acked == 0 {
            return Ok(());
        }
        let mut next_trace = u128::MAX / 2;
        let mut other = Agent::new(agent.session, agent.over_network);
        other.next = agent.acked;
        other.record(&mut self.random.clone(), self.now, &mut next_trace);
        let Some((batch, origin)) = other.group(1).map(|group| group.whole()) else { return Ok(()) };
        match until_stop(&self.disk, open.store.append(batch, Some(origin))).await? {
            Ok(Appended::Repeated) => Ok(()),
            answer => {
                let text = format!("frame {} was acknowledged, its repetition: {answer:?}", origin.seq);
                Err(Failure::Doubled { records: 1, text }.into())
            }
        }
    }

    /// Checks that an error is of a kind that the simulation causes. If the disk is full, gives it unlimited space.
    pub fn accept(&self, error: &Error) -> Result<(), Failure> {
        self.say(|| format!("refused: {error}"));
        match error.kind() {
            ErrorKind::StorageFull => self.disk.set_capacity(u64::MAX),
            ErrorKind::Io | ErrorKind::Unavailable | ErrorKind::Full { .. } => {}
            _ => return Err(Failure::Stuck(format!("unexpected: {error}"))),
        }
        Ok(())
    }

    /// Repeats deletions until they succeed, because an error does not show whether the deletion is in force.
    async fn finish_deletions(&mut self, open: &Open) -> Result<(), End> {
        for at in 0..self.agents.len() {
            let Some((name, range)) = self.agents[at].deleting else { continue };
            let session = self.agents[at].session.to_string();
            let mut matchers = vec![Matcher::equal(SENDER, &session)];
            matchers.extend(name.map(|name| Matcher::equal(NAME, name)));
            for attempt in 0.. {
                match until_stop(&self.disk, open.store.delete(&matchers, range)).await? {
                    Ok(_) => break,
                    Err(error) if attempt > DELETIONS_MAX => {
                        return Err(Failure::Stuck(format!("still not deleted: {error}")).into());
                    }
                    Err(error) => self.accept(&error)?,
                }
                if attempt > 10 {
                    self.disk.set_faults(Faults::default());
                    open.driver.set_quiet(true);
                }
            }
            open.driver.set_quiet(false);
            self.agents[at].model.delete(name, range);
            self.agents[at].deleting = None;
        }
        Ok(())
    }

    async fn check(&mut self, open: &Open, totals: &mut Totals) -> Result<(), End> {
        open.driver.set_quiet(true);
        let result = check(&open.store, &self.agents, self.now, totals).await;
        open.driver.set_quiet(false);
        result?;
        if self.is_healthy {
            check_health(&open.store)?;
            self.check_quarantines()?;
        }
        Ok(())
    }

    /// Checks that all files that were in a quarantine at the last check are still there, with the same bytes.
    pub fn check_quarantines(&mut self) -> Result<(), Failure> {
        let files = quarantined(&self.disk);
        if let Some(path) =
            self.quarantined.keys().find(|path| files.get(*path) != self.quarantined.get(*path))
        {
            let text =
                format!("{} was in the quarantine, and is not there with the same bytes", path.display());
            return Err(Failure::Lost { records: 0, text });
        }
        self.quarantined = files;
        Ok(())
    }

    /// Forgets which files were in the quarantines, because bytes of the disk are damaged now.
    pub fn forget_quarantines(&mut self) {
        self.quarantined.clear();
    }
}

/// The files of the quarantines that must survive a crash.
pub fn quarantined(disk: &SimulatedDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = disk.files_in(QUARANTINE);
    // A lack file describes the unreadable parts of a quarantined journal. It need not survive: if it is torn or missing, a start
    // reads the journal.
    files.retain(|path, _| path.extension().is_none_or(|extension| extension != "lack"));
    files
}

/// Checks that the store reports no damage. It may report torn ends. It may also report a damaged place between batches of a
/// segment: the mark after a batch is not synced, so a power failure may lose a part of it, although an intact batch follows.
fn check_health(store: &Store) -> Result<(), Failure> {
    let Health { damaged, places_in, set_aside, .. } = store.driver_health();
    let journals = store.stats().recovered_damaged;
    if set_aside.is_empty() && journals == 0 && damaged.iter().all(|name| places_in.contains(name)) {
        return Ok(());
    }
    Err(Failure::Reported(format!(
        "damaged {damaged:?}, quarantined {set_aside:?}, {journals} places of journals"
    )))
}

/// Flushes, applies all rules, merges and verifies everything.
async fn settle(store: &Store) -> tacho_store::Result<()> {
    store.flush().await?;
    store.sweep().await?;
    store.merge_all().await?;
    store.verify().await
}

/// Waits until the work is done, or until the machine stops.
pub async fn until_stop<T>(disk: &SimulatedDisk, work: impl Future<Output = T>) -> Result<T, End> {
    tokio::select! {
        biased;
        () = disk.stop() => Err(End::Crash),
        result = work => Ok(result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_store::disk::Disk;

    #[test]
    fn a_store_that_does_not_open_without_faults_is_stuck() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let mut world = World::new(1, false);
        // A directory has the name of the manifest, so every read of the manifest fails.
        world.disk.make_directory(&Path::new(CHUNKS).join("MANIFEST")).unwrap();
        let ended = runtime.unwrap().block_on(world.open(&mut Totals::default()));
        let Err(End::Broken(Failure::Stuck(text))) = ended else { panic!("the store opened") };
        assert!(text.starts_with("store does not open in 20 attempts: "), "{text}");
    }
}
