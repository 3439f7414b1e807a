//! Builds the parts of a store from what `recover.rs` read: each part gets the state that it uses (`shared.rs`).

use std::path::Path;
use std::sync::Arc;

use tacho_model::Clock;
use tokio::sync::watch;

use crate::budget::Budget;
use crate::commit;
use crate::disk::Space;
use crate::driver::Driver;
use crate::flush::Flusher;
use crate::intake::Intake;
use crate::options::Options;
use crate::read::Reader;
use crate::recover::Recovered;
use crate::shared::{FlushSignals, Guarded, Metadata, Progress, RecordSpace};
use crate::upkeep::{self, Inbox, Masks, Sequence, Snapshots, TrustedClock, Upkeep};

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
    pub progress: watch::Receiver<Progress>,
}

/// Hands each part of the store the state that it uses (`shared.rs`).
pub fn assemble(
    driver: Arc<dyn Driver>,
    journal_dir: &Path,
    (options, wall): (Options, Arc<dyn Clock>),
    recovered: Recovered,
) -> Parts {
    let Recovered { id, flushed, .. } = recovered;
    let budget = Arc::new(Budget::new(options.open_bytes_max.max(options.seal_bytes.saturating_mul(2))));
    budget.add(recovered.generations.sealed.iter().map(|g| g.bytes).sum());
    let generations = Arc::new(Guarded::new(recovered.generations));
    let disk_space = Space::new(options.disk.clone(), journal_dir, options.disk_reserve_bytes);
    let reserve_bytes = options.disk_reserve_bytes;
    let space = Arc::new(RecordSpace { space: disk_space, generations: generations.clone(), reserve_bytes });
    let clock = Arc::new(TrustedClock::new(wall.clone(), options.clock_bounds, recovered.clock_last));
    let options = Arc::new(options);
    let index = Arc::new(recovered.index);
    let sessions = Arc::new(Guarded::new(recovered.sessions));
    let tombstones = Arc::new(Guarded::new(recovered.tombstones));
    let counters = Arc::new(recovered.counters);
    let metadata = Arc::new(Metadata::new(recovered.stored));
    let unreadable = Arc::new(recovered.unreadable);
    let (snapshots, inbox) = (Arc::<Snapshots>::default(), Arc::<Inbox>::default());
    let sequence = Arc::new(Sequence::new(recovered.last_sequence));
    let signals = Arc::new(FlushSignals::new());
    let (progress_sender, progress) = watch::channel(Progress { flushed, ..Progress::default() });
    let upkeep = upkeep::StoreParts {
        driver: driver.clone(),
        options: options.clone(),
        id,
        clock: clock.clone(),
        space: space.clone(),
        generations: generations.clone(),
        index: index.clone(),
        metadata: metadata.clone(),
        tombstones: tombstones.clone(),
        unreadable: unreadable.clone(),
        snapshots: snapshots.clone(),
        inbox: inbox.clone(),
        sequence: sequence.clone(),
        progress: progress.clone(),
    };
    let flusher = Flusher {
        driver: driver.clone(),
        options: options.clone(),
        directory: journal_dir.to_owned(),
        id,
        clock: clock.clone(),
        generations: generations.clone(),
        index: index.clone(),
        sessions: sessions.clone(),
        metadata: metadata.clone(),
        unreadable: unreadable.clone(),
        budget: budget.clone(),
        counters: counters.clone(),
        signals: signals.clone(),
        progress: progress_sender,
        inbox,
        sequence,
    };
    let committing = commit::StoreParts {
        options: options.clone(),
        directory: journal_dir.to_owned(),
        id,
        clock: wall,
        generations: generations.clone(),
        index: index.clone(),
        sessions: sessions.clone(),
        budget: budget.clone(),
        counters: counters.clone(),
        signals,
    };
    let masks = Masks { tombstones, options: options.clone(), clock: clock.clone() };
    let reader = Reader {
        driver: driver.clone(),
        options: options.clone(),
        generations,
        index: index.clone(),
        masks,
        snapshots,
        unreadable,
    };
    Parts {
        driver,
        clock,
        intake: Intake { options, index, sessions, space, budget, counters },
        reader,
        metadata,
        committing,
        flusher,
        upkeep: Arc::new(Upkeep::new(upkeep)),
        progress,
    }
}
