//! Runs many seeds, and counts what happens in them: crashes, records, damages, failures.

use std::fmt;
use std::time::{Duration, Instant};

use tacho_store::disk::SyncPoint;

use crate::directed;
use crate::disk::OPERATIONS_MAX;
use crate::world::World;

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub first: u64,
    pub seeds: u64,
    /// No seed starts after this time.
    pub time: Duration,
    /// Whether each operation of the disk is logged.
    pub trace: bool,
    /// The sync that is not done.
    pub omitted: Option<SyncPoint>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub seeds: u64,
    pub power_failures: u64,
    pub ended_processes: u64,
    /// Crashes while a store was opened.
    pub during_open: u64,
    /// Orderly stops of the process.
    pub stops: u64,
    pub acknowledged_frames: u64,
    pub acknowledged_records: u64,
    /// Connections of agents to the recorder.
    pub connections: u64,
    /// Connections that ended before all frames were acknowledged.
    pub cut_connections: u64,
    /// Frames that were stored, but whose ACK did not reach the agent.
    pub found_frames: u64,
    pub checks: u64,
    pub operations: u64,
    pub merges: u64,
    pub deletions: u64,
    /// Starts after bytes were damaged.
    pub damaged_starts: u64,
    /// Damaged places.
    pub damages: u64,
    /// Seeds with damage that was reported.
    pub reported: u64,
    pub lost: u64,
    pub doubled: u64,
    /// Time by the paused clock.
    pub simulated: Duration,
}

impl Totals {
    pub const fn crashes(&self) -> u64 {
        self.power_failures + self.ended_processes
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} seeds, {} crashes ({} power failures, {} ends of the process; {} of the crashes while opening), {} stops, \
             {} acknowledged records in {} frames, {} connections ({} cut), {} merges, {} deletions, \
             {} damages (reported in {} seeds), {} lost, {} doubled, {:.2} simulated hours",
            self.seeds,
            self.crashes(),
            self.power_failures,
            self.ended_processes,
            self.during_open,
            self.stops,
            self.acknowledged_records,
            self.acknowledged_frames,
            self.connections,
            self.cut_connections,
            self.merges,
            self.deletions,
            self.damages,
            self.reported,
            self.lost,
            self.doubled,
            self.simulated.as_secs_f64() / 3_600.0,
        )
    }
}

/// A guarantee that the store did not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    Lost {
        records: u64,
        text: String,
    },
    Doubled {
        records: u64,
        text: String,
    },
    /// The store has a record that was deleted or never sent.
    Invented {
        text: String,
    },
    /// The store reports damage of bytes that nothing damaged.
    Reported(String),
    /// The store does not open.
    Refused(String),
    /// An operation fails without a cause, or does not end.
    Stuck(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { text, .. } => write!(f, "lost: {text}"),
            Self::Doubled { text, .. } => write!(f, "doubled: {text}"),
            Self::Invented { text } => write!(f, "invented: {text}"),
            Self::Reported(text) => write!(f, "false report of damage: {text}"),
            Self::Refused(text) => write!(f, "store does not open: {text}"),
            Self::Stuck(text) => write!(f, "stuck: {text}"),
        }
    }
}

/// Limit on the time of one seed, by the paused clock. A seed takes a few simulated seconds.
const SIMULATED_TIME_MAX: Duration = Duration::from_secs(86_400);

/// Runs one seed, without the sync `omitted`. Returns the number of disk operations and a hash of them.
pub fn one(
    seed: u64,
    trace: bool,
    omitted: Option<SyncPoint>,
    totals: &mut Totals,
) -> Result<(u64, u64), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| Failure::Stuck(error.to_string()))?;
    totals.seeds += 1;
    let (result, digest) = runtime.block_on(async {
        let mut world = World::new(seed, trace);
        world.disk.omit(omitted);
        let begun = tokio::time::Instant::now();
        let seed_run = async {
            world.run(totals).await?;
            directed::run(seed, trace, omitted).await
        };
        let run = tokio::time::timeout(SIMULATED_TIME_MAX, seed_run).await;
        let stuck = |_| Err(Failure::Stuck("the seed does not end within a simulated day".to_owned()));
        let mut result = run.unwrap_or_else(stuck);
        if world.disk.is_exhausted() {
            result = Err(Failure::Stuck(format!("more than {OPERATIONS_MAX} operations of the disk")));
        }
        totals.simulated += begun.elapsed();
        (result, world.disk.digest())
    });
    let (operations, hash) = *result.as_ref().unwrap_or(&(0, 0));
    let digest = (digest.0 + operations, digest.1 ^ hash);
    totals.operations += digest.0;
    if let Err(Failure::Lost { records, .. }) = &result {
        totals.lost += records.max(&1);
    }
    if let Err(Failure::Doubled { records, .. }) = &result {
        totals.doubled += records.max(&1);
    }
    result.map(|_| digest)
}

/// Runs seeds until the plan ends or a seed fails. `progress` is called after each seed that did not fail.
pub fn run(plan: Plan, mut progress: impl FnMut(&Totals)) -> (Totals, Option<(u64, Failure)>) {
    let (begun, mut totals) = (Instant::now(), Totals::default());
    for seed in plan.first..plan.first.saturating_add(plan.seeds) {
        if begun.elapsed() >= plan.time {
            break;
        }
        if let Err(failure) = one(seed, plan.trace, plan.omitted, &mut totals) {
            return (totals, Some((seed, failure)));
        }
        progress(&totals);
    }
    (totals, None)
}
