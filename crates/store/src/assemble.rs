//! Builds the parts of a store from the recovered state (`recover.rs`). `shared.rs` lists the parts and the state that
//! they share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tacho_model::Clock;
use tokio::sync::watch;

use crate::budget::Budget;
use crate::changes::Changes;
use crate::commit;
use crate::damage::Unreadable;
use crate::disk::Space;
use crate::driver::Driver;
use crate::flush::Flusher;
use crate::generation::Generations;
use crate::guarded::Guarded;
use crate::in_flight::InFlight;
use crate::index::Index;
use crate::intake::Intake;
use crate::kept::SummedDays;
use crate::options::Options;
use crate::read::Reader;
use crate::recover::Recovered;
use crate::sessions::Sessions;
use crate::shared::{FlushSignals, Metadata, Progress, RecordSpace};
use crate::stats::Counters;
use crate::upkeep::{self, Inbox, Masks, Sequence, Snapshots, Tombstones, TrustedClock, Upkeep};

/// The parts of a store before its tasks run.
pub struct Parts {
    pub driver: Arc<dyn Driver>,
    pub clock: Arc<TrustedClock>,
    pub intake: Intake,
    pub reader: Reader,
    pub metadata: Arc<Metadata>,
    pub committing: commit::StoreParts,
    pub flusher: Flusher,
    pub upkeep: Arc<Upkeep>,
    pub changes: Arc<Changes>,
    pub progress: watch::Receiver<Progress>,
}

pub fn assemble(
    driver: Arc<dyn Driver>,
    journal_dir: &Path,
    (options, wall): (Options, Arc<dyn Clock>),
    recovered: Recovered,
) -> Parts {
    let (progress_sender, progress) =
        watch::channel(Progress { flushed: recovered.flushed, ..Progress::default() });
    let state = State::new(driver, journal_dir, (options, wall), recovered);
    Parts {
        driver: state.driver.clone(),
        clock: state.clock.clone(),
        intake: state.intake(),
        reader: state.reader(),
        metadata: state.metadata.clone(),
        committing: state.committing(),
        flusher: state.flusher(progress_sender),
        upkeep: Arc::new(Upkeep::new(state.upkeep(progress.clone()))),
        changes: state.changes.clone(),
        progress,
    }
}

/// All state that two or more parts share. Each part takes the fields that it uses.
struct State {
    driver: Arc<dyn Driver>,
    directory: PathBuf,
    options: Arc<Options>,
    id: u128,
    wall: Arc<dyn Clock>,
    clock: Arc<TrustedClock>,
    space: Arc<RecordSpace>,
    generations: Arc<Guarded<Generations>>,
    index: Arc<Guarded<Index>>,
    in_flight: Arc<InFlight>,
    sessions: Arc<Guarded<Sessions>>,
    metadata: Arc<Metadata>,
    tombstones: Arc<Guarded<Tombstones>>,
    summed: Arc<Guarded<SummedDays>>,
    unreadable: Arc<Unreadable>,
    snapshots: Arc<Snapshots>,
    inbox: Arc<Inbox>,
    sequence: Arc<Sequence>,
    budget: Arc<Budget>,
    chunks: Arc<Budget>,
    counters: Arc<Counters>,
    signals: Arc<FlushSignals>,
    changes: Arc<Changes>,
}

impl State {
    fn new(
        driver: Arc<dyn Driver>,
        journal_dir: &Path,
        (mut options, wall): (Options, Arc<dyn Clock>),
        recovered: Recovered,
    ) -> Self {
        // Without an atomic `put`, the upkeep writes no summaries of a day. Readers then mask the calls by their age.
        if !driver.capabilities().atomic_put && Arc::make_mut(&mut options.policies).forget_summaries() {
            tracing::warn!(driver = driver.info().name, "this driver cannot keep summaries of expired calls");
        }
        let budget = Arc::new(Budget::new(options.open_bytes_max.max(options.seal_bytes.saturating_mul(2))));
        budget.add(recovered.generations.sealed.iter().map(|g| g.bytes).sum());
        let chunks = Arc::new(Budget::new(options.chunks_max));
        chunks.add(recovered.generations.sealed.iter().map(|g| g.window_changes).sum());
        let journal_bytes = AtomicU64::new(recovered.generations.journal_bytes());
        let generations = Arc::new(Guarded::new(recovered.generations));
        let changes = Arc::new(Changes::new(&options.policies));
        let space = Space::new(options.disk.clone(), journal_dir, options.disk_reserve_bytes);
        let reserve_bytes = options.disk_reserve_bytes;
        let of_space = generations.clone();
        let space = Arc::new(RecordSpace { space, generations: of_space, reserve_bytes, journal_bytes });
        let clock =
            TrustedClock::new(wall.clone(), options.since_boot, options.clock_bounds, recovered.clock_last);
        Self {
            driver,
            directory: journal_dir.to_owned(),
            options: Arc::new(options),
            id: recovered.id,
            wall,
            clock: Arc::new(clock),
            space,
            generations,
            index: recovered.index,
            in_flight: Arc::default(),
            sessions: Arc::new(Guarded::new(recovered.sessions)),
            metadata: Arc::new(Metadata::new(recovered.stored)),
            tombstones: Arc::new(Guarded::new(recovered.tombstones)),
            summed: Arc::new(Guarded::new(recovered.summed)),
            unreadable: Arc::new(recovered.unreadable),
            snapshots: Arc::default(),
            inbox: Arc::default(),
            sequence: Arc::new(Sequence::new(recovered.last_sequence)),
            budget,
            chunks,
            counters: Arc::new(recovered.counters),
            signals: Arc::new(FlushSignals::new()),
            changes,
        }
    }

    fn intake(&self) -> Intake {
        Intake {
            options: self.options.clone(),
            index: self.index.clone(),
            in_flight: self.in_flight.clone(),
            sessions: self.sessions.clone(),
            space: self.space.clone(),
            budget: self.budget.clone(),
            chunks: self.chunks.clone(),
            metadata: self.metadata.clone(),
            clock: self.wall.clone(),
            counters: self.counters.clone(),
        }
    }

    fn reader(&self) -> Reader {
        let tombstones = self.tombstones.clone();
        Reader {
            driver: self.driver.clone(),
            options: self.options.clone(),
            generations: self.generations.clone(),
            index: self.index.clone(),
            masks: Masks {
                summed: self.summed.clone(),
                tombstones,
                options: self.options.clone(),
                clock: self.clock.clone(),
            },
            snapshots: self.snapshots.clone(),
            unreadable: self.unreadable.clone(),
        }
    }

    fn committing(&self) -> commit::StoreParts {
        commit::StoreParts {
            options: self.options.clone(),
            directory: self.directory.clone(),
            id: self.id,
            clock: self.wall.clone(),
            generations: self.generations.clone(),
            index: self.index.clone(),
            sessions: self.sessions.clone(),
            budget: self.budget.clone(),
            chunks: self.chunks.clone(),
            counters: self.counters.clone(),
            signals: self.signals.clone(),
            changes: self.changes.clone(),
        }
    }

    fn flusher(&self, progress: watch::Sender<Progress>) -> Flusher {
        Flusher {
            driver: self.driver.clone(),
            options: self.options.clone(),
            directory: self.directory.clone(),
            id: self.id,
            clock: self.clock.clone(),
            generations: self.generations.clone(),
            index: self.index.clone(),
            sessions: self.sessions.clone(),
            metadata: self.metadata.clone(),
            unreadable: self.unreadable.clone(),
            budget: self.budget.clone(),
            chunks: self.chunks.clone(),
            counters: self.counters.clone(),
            signals: self.signals.clone(),
            progress,
            changes: self.changes.clone(),
            inbox: self.inbox.clone(),
            sequence: self.sequence.clone(),
        }
    }

    fn upkeep(&self, progress: watch::Receiver<Progress>) -> upkeep::StoreParts {
        upkeep::StoreParts {
            driver: self.driver.clone(),
            options: self.options.clone(),
            id: self.id,
            clock: self.clock.clone(),
            space: self.space.clone(),
            summed: self.summed.clone(),
            reader: self.reader(),
            generations: self.generations.clone(),
            index: self.index.clone(),
            in_flight: self.in_flight.clone(),
            metadata: self.metadata.clone(),
            tombstones: self.tombstones.clone(),
            unreadable: self.unreadable.clone(),
            snapshots: self.snapshots.clone(),
            inbox: self.inbox.clone(),
            sequence: self.sequence.clone(),
            changes: self.changes.clone(),
            progress,
        }
    }
}

/// Existing series stay readable above the limit. Only new series are refused.
pub fn warn_if_index_full(index_bytes: usize, options: &Options) {
    if index_bytes > options.index_bytes_max {
        tracing::warn!(
            index_bytes,
            index_bytes_max = options.index_bytes_max,
            "the index of series is over its memory limit, new series are refused: raise index_bytes_max or delete series"
        );
    }
}
