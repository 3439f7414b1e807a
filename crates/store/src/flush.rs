//! Puts sealed generations into the driver, in order. Retries until the driver has accepted them.
//!
//! ```text
//!   cut a broken journal -> put series -> put groups -> find callers -> put chunks -> put sessions -> put "flushed"
//!     -> put "journals" -> drop from memory -> delete journal
//! ```
//! After a crash before "flushed" is put, all steps are repeated. That is safe because keys depend only on the records and
//! their generation. After a later crash, the next start deletes the journal. A failed step up to "journals" is retried with
//! exponential backoff, without a limit on attempts.
//!
//! Path of one record. Before: `seal/` encoded its chunk. After: `Driver::put` stored the chunk, and `read/` finds it.

use std::path::PathBuf;
use std::sync::Arc;

use tacho_model::{Kind, SeriesId};
use tokio::sync::watch;

use crate::budget::Budget;
use crate::changes::{Change, Changes};
use crate::commit::closed;
use crate::damage::Unreadable;
use crate::disk::SyncPoint;
use crate::driver::{Driver, Row, Table};
use crate::generation::{Generation, Generations};
use crate::group::home::{self, Share};
use crate::group::row::series_row;
use crate::guarded::Guarded;
use crate::index::Index;
use crate::journal::{self, format::Older};
use crate::keys::{ChunkKey, Journals, clock_row, flushed_row, session_delete, session_row, stored_row};
use crate::kinds::of_kind_mut;
use crate::layer::retry::Backoff;
use crate::mutation::Mutation;
use crate::options::Options;
use crate::seal::series::Callers;
use crate::seal::{self, CHUNK_VALUES_LIMIT};
use crate::sessions::Sessions;
use crate::shared::{FlushSignals, Metadata, Progress};
use crate::stats::{Counters, Stored};
use crate::threads::{Started, Threads};
use crate::upkeep::{Inbox, Sequence, TrustedClock};
use crate::{Error, ErrorKind, Result};

/// Bytes of chunks per `put`. The last partition of a `put` may exceed this limit. Bounds memory, and shares one sync among many
/// chunks.
const PUT_BYTES: usize = 4 << 20;
const SERIES_ROWS: usize = 10_000;
/// Number of groups that are added to the index under one lock, so that writers do not wait long.
const GROUPS_AT_ONCE: usize = 256;

pub struct Flusher {
    pub driver: Arc<dyn Driver>,
    pub options: Arc<Options>,
    /// The directory of the journal.
    pub directory: PathBuf,
    pub id: u128,
    pub clock: Arc<TrustedClock>,
    pub generations: Arc<Guarded<Generations>>,
    pub index: Arc<Guarded<Index>>,
    pub sessions: Arc<Guarded<Sessions>>,
    pub metadata: Arc<Metadata>,
    pub unreadable: Arc<Unreadable>,
    pub budget: Arc<Budget>,
    pub chunks: Arc<Budget>,
    pub counters: Arc<Counters>,
    pub signals: Arc<FlushSignals>,
    pub changes: Arc<Changes>,
    pub progress: watch::Sender<Progress>,
    pub inbox: Arc<Inbox>,
    pub sequence: Arc<Sequence>,
}

/// Runs until the store is dropped.
pub async fn run(flusher: Arc<Flusher>) {
    let _ended = Ended(flusher.clone());
    let mut sealed: watch::Receiver<u64> = flusher.signals.sealed.subscribe();
    let mut known = 0;
    loop {
        sealed.borrow_and_update();
        while let Some(generation) = oldest_sealed(&flusher) {
            // The list names a generation before its chunks exist. So a repair without the journal knows that they belong to the
            // store.
            if known < generation.number {
                let flushed = flusher.progress.borrow().flushed;
                put_journal_list(&flusher, flushed).await;
            }
            known = flush(&flusher, &generation).await;
        }
        tokio::select! {
            biased;
            changed = sealed.changed() => if changed.is_err() { return },
            () = flusher.signals.started.notified() => known = store_journal_list(&flusher, known).await,
        }
    }
}

/// Stores the list of required journals in the driver if a journal after `known` exists. No caller waits for this step.
/// If it fails, the next new journal or the end of the next flush repeats it. Returns the last journal on the stored list.
async fn store_journal_list(flusher: &Flusher, known: u64) -> u64 {
    let flushed = flusher.progress.borrow().flushed;
    let journals = journals(flusher, flushed);
    if journals.last() <= known {
        return known;
    }
    match flusher.driver.put(vec![journals.row(), clock_row(flusher.clock.latest())]).await {
        Ok(()) => journals.last(),
        Err(error) => {
            tracing::warn!(%error, "cannot store the list of required journals");
            known
        }
    }
}

/// Like [`store_journal_list`], but retries until it is done.
async fn put_journal_list(flusher: &Flusher, flushed: u64) -> u64 {
    let journals = journals(flusher, flushed);
    put(flusher, vec![journals.row(), clock_row(flusher.clock.latest())]).await;
    journals.last()
}

/// The journals of generations after `flushed`.
fn journals(flusher: &Flusher, flushed: u64) -> Journals {
    let generations = flusher.generations.read();
    let sealed = generations.sealed.iter().map(|sealed| (sealed.number, sealed.journal.length));
    let active = generations.active.iter().map(|active| (active.number, 0));
    let live = sealed.chain(active).filter(|(generation, _)| *generation > flushed);
    let live = live.map(|(generation, length)| Older { generation, length }).collect();
    Journals { store: flusher.id, flushed, sequence: flusher.sequence.last(), live }
}

/// Reports the end of the task to waiting callers, including an end by panic.
struct Ended(Arc<Flusher>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.progress.send_modify(|progress| progress.ended = true);
    }
}

fn oldest_sealed(flusher: &Flusher) -> Option<Arc<Generation>> {
    flusher.generations.read().sealed.front().cloned()
}

/// Flushes a generation. Returns the last generation on the list of journals in the driver.
async fn flush(flusher: &Arc<Flusher>, generation: &Arc<Generation>) -> u64 {
    retry_until_done(flusher, || cut_journal(flusher, generation)).await;
    if Mutation::JournalRemovedFirst.is_on() {
        remove_journal(flusher, generation);
    }
    if Mutation::FlushedBeforeChunks.is_on() {
        put(flusher, vec![flushed_row(generation.number)]).await;
    }
    // Each attempt takes the metadata lock again. The upkeep needs the lock to free space while the disk is full.
    retry_until_done(flusher, || put_series(flusher, generation)).await;
    retry_until_done(flusher, || put_groups(flusher, generation)).await;
    let added = put_chunks(flusher, generation).await;
    let number = generation.number;
    let mut sessions: Vec<(u128, u64)> = generation.sessions.iter().map(|(id, seq)| (*id, *seq)).collect();
    sessions.sort_unstable();
    if Mutation::SessionsNotFlushed.is_on() {
        sessions.clear();
    }
    put(flusher, sessions.into_iter().map(|(id, seq)| session_row(id, seq, number)).collect()).await;
    retry_until_done(flusher, || put_flushed(flusher, number, added)).await;
    let known = put_journal_list(flusher, number).await;
    // Upkeep jobs skip chunks until their generation is flushed. A job that sees this generation as flushed must also get its
    // chunks, so the inbox releases them before `forget` publishes the progress. A job that took the chunks before
    // `forget` published the progress has skipped them and given them back. So the inbox releases them once more.
    flusher.inbox.flushed();
    forget(flusher, generation).await;
    flusher.inbox.flushed();
    flusher.inbox.wake();
    known
}

/// Returns the counts of the chunks, by kind.
async fn put_chunks(flusher: &Flusher, generation: &Arc<Generation>) -> [Stored; 3] {
    let groups = home::shares(generation, || flusher.index.read()).into_iter().map(Work::Group);
    let others = generation.series().into_iter().map(|(kind, id)| Work::Series(kind, id));
    let mut added = [Stored::default(); 3];
    let chunk_values = flusher.options.chunk_values.clamp(1, CHUNK_VALUES_LIMIT);
    let open = generation.clone();
    let callers = Arc::new(join(flusher.options.threads.start(move || seal::series::callers(&open))).await);
    let encode = |left: Vec<Work>| {
        let sources = (generation.clone(), callers.clone());
        encode_some(flusher.options.threads, sources, left, chunk_values)
    };
    let mut next = Some(encode(groups.chain(others).collect()));
    while let Some(encoding) = next {
        let some = join(encoding).await;
        // The next chunks are encoded while the current ones are written.
        next = (!some.left.is_empty()).then(|| encode(some.left));
        for (sum, new) in added.iter_mut().zip(some.stored) {
            *sum += new;
            flusher.counters.chunks_written.add(new.chunks);
            flusher.counters.chunk_bytes_written.add(new.bytes);
        }
        flusher.counters.samples_replaced.add(some.replaced);
        put(flusher, some.rows.clone()).await;
        flusher.inbox.note(&some.rows);
    }
    added
}

enum Work {
    Group(Share),
    /// Entries or executions.
    Series(Kind, SeriesId),
}

#[derive(Default)]
struct Encoded {
    rows: Vec<Row>,
    stored: [Stored; 3],
    replaced: u64,
    left: Vec<Work>,
}

/// Starts to encode chunks, until there are enough for one `put`. That takes long, so it runs on `threads`.
fn encode_some(
    threads: Threads,
    (generation, callers): (Arc<Generation>, Arc<Callers>),
    left: Vec<Work>,
    chunk_values: usize,
) -> Started<Encoded> {
    threads.start(move || {
        let (mut some, mut bytes) = (Encoded { left, ..Encoded::default() }, 0);
        while bytes < PUT_BYTES
            && let Some(work) = some.left.pop()
        {
            let (kind, sealed) = match work {
                Work::Group(share) => (Kind::Sample, seal::samples::seal(&share, &generation, chunk_values)),
                Work::Series(kind, id) => (kind, seal::series::seal(&generation, &callers, kind, id)),
            };
            let chunk_bytes: usize = sealed.rows.iter().map(|row| row.value.len()).sum();
            let chunks = sealed.rows.len() as u64;
            *of_kind_mut(&mut some.stored, kind) +=
                Stored { chunks, bytes: chunk_bytes as u64, records: sealed.records };
            some.replaced += sealed.replaced;
            bytes += chunk_bytes + sealed.rows.iter().map(|row| row.clustering.len()).sum::<usize>();
            some.rows.extend(sealed.rows);
        }
        some
    })
}

async fn join<T>(work: Started<T>) -> T {
    match work.join().await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Puts the series rows of new series of entries and executions. Each of these series is its own group.
async fn put_series(flusher: &Flusher, generation: &Generation) -> Result<()> {
    let _locked = flusher.metadata.lock.lock().await;
    let series = generation.series();
    let new: Vec<(Kind, SeriesId, Row)> = {
        let index = flusher.index.read();
        let unknown = series.iter().filter(|(kind, id)| !index.is_persisted(*kind, *id));
        let row = |(kind, id): &(Kind, SeriesId)| {
            index.labels(*id).map(|labels| (*kind, *id, series_row(*kind, *id, &[&*labels])))
        };
        unknown.filter_map(row).collect()
    };
    for some in new.chunks(SERIES_ROWS) {
        flusher.driver.put(some.iter().map(|(_, _, row)| row.clone()).collect()).await?;
    }
    let mut index = flusher.index.write();
    new.iter().for_each(|(kind, id, _)| index.set_persisted(*kind, *id));
    new.iter().for_each(|(kind, id, _)| flusher.unreadable.named(*kind, *id));
    Ok(())
}

/// Forms groups of the series of samples that are sealed for the first time. Puts the series rows of these groups, then adds the
/// groups to the index.
async fn put_groups(flusher: &Flusher, generation: &Arc<Generation>) -> Result<()> {
    let _locked = flusher.metadata.lock.lock().await;
    let newcomers = home::newcomers(generation, || flusher.index.read());
    if newcomers.is_empty() {
        return Ok(());
    }
    let (open, index) = (generation.clone(), flusher.index.clone());
    let form = move || home::groups(&open.samples, &newcomers, || index.read(), |times| times);
    let groups = join(flusher.options.threads.start(form)).await;
    for some in groups.chunks(SERIES_ROWS) {
        flusher.driver.put(some.iter().map(|group| group.row.clone()).collect()).await?;
    }
    for some in groups.chunks(GROUPS_AT_ONCE) {
        let mut index = flusher.index.write();
        for group in some {
            index.add_group(group.id, &group.members);
            flusher.unreadable.named(Kind::Sample, group.id);
        }
    }
    Ok(())
}

async fn put_flushed(flusher: &Flusher, number: u64, added: [Stored; 3]) -> Result<()> {
    let _locked = flusher.metadata.lock.lock().await;
    let mut stored = *flusher.metadata.stored.read();
    stored.iter_mut().zip(added).for_each(|(sum, new)| *sum += new);
    flusher.driver.put(vec![flushed_row(number), stored_row(&stored)]).await?;
    *flusher.metadata.stored.write() = stored;
    Ok(())
}

async fn put(flusher: &Flusher, rows: Vec<Row>) {
    if !rows.is_empty() {
        let mut attempts = 0;
        let put = || {
            attempts += 1;
            flusher.driver.put(rows_of_attempt(&rows, attempts))
        };
        retry_until_done(flusher, put).await;
    }
}

/// The rows that an attempt puts. All attempts put the same keys, because a failed attempt may have put its rows.
fn rows_of_attempt(rows: &[Row], attempt: u32) -> Vec<Row> {
    let mut rows = rows.to_vec();
    if Mutation::RetriedRowsRenamed.is_on() && attempt > 1 {
        for row in rows.iter_mut().filter(|row| row.table == Table::Chunks) {
            if let Ok(key) = ChunkKey::decode(&row.clustering) {
                row.clustering = ChunkKey { number: key.number + 1_000 * attempt, ..key }.encode();
            }
        }
    }
    rows
}

/// Retries a step until it succeeds. Every failure is counted, logged, and reported to callers that wait for a flush.
async fn retry_until_done<F: Future<Output = Result<()>>>(flusher: &Flusher, mut step: impl FnMut() -> F) {
    let options = &flusher.options;
    let mut backoff = Backoff::of_store(options.flush_wait_first, options.flush_wait_max, flusher.id);
    while let Err(error) = step().await {
        let wait = backoff.next_wait();
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        tracing::error!(%error, wait_ms, "flush failed, records stay in the journal");
        flusher.counters.flush_failures.add(1);
        let is_full = error.kind() == ErrorKind::StorageFull;
        flusher.progress.send_modify(|progress| {
            progress.failures += 1;
            progress.last_failure = Some(error);
        });
        if is_full {
            // The upkeep then applies deletions that wait for this flush to the records that are flushed already. This may be the
            // only way to free space.
            flusher.inbox.wake();
        }
        tokio::time::sleep(wait).await;
    }
}

/// Cuts the remains of a failed write off the journal, so that a recovery does not read them.
async fn cut_journal(flusher: &Flusher, generation: &Generation) -> Result<()> {
    let journal = &generation.journal;
    if !journal.cut {
        return Ok(());
    }
    flusher
        .options
        .disk
        .cut(&journal.path, journal.length, SyncPoint::JournalRefusedBeforeFlush)
        .map_err(|e| Error::io("cut journal", &journal.path, e).with("length", journal.length))
}

/// Removes the generation from memory, so that reads use the driver. Then removes expired sessions and the journal.
async fn forget(flusher: &Arc<Flusher>, generation: &Generation) {
    flusher.generations.write().sealed.pop_front();
    generation.times.iter().for_each(|times| flusher.changes.report(Change::Chunks, times));
    flusher.changes.report(Change::Counts, generation.times.hull());
    flusher.budget.release(generation.bytes);
    flusher.chunks.release(generation.window_changes);
    flusher.counters.flushes.add(1);
    let options = &flusher.options;
    let expired =
        flusher.sessions.write().expire(generation.number, options.session_age_max, options.sessions_max);
    if !expired.is_empty()
        && let Err(error) = flusher.driver.delete(expired.into_iter().map(session_delete).collect()).await
    {
        tracing::warn!(%error, "expired sessions stay in the driver");
    }
    remove_journal(flusher, generation);
    tracing::info!(
        generation = generation.number,
        series = generation.samples.len() + generation.entries.len() + generation.executions.len(),
        bytes = generation.bytes,
        "generation flushed"
    );
    flusher.progress.send_modify(|progress| progress.flushed = generation.number);
}

/// Removes the journal of a flushed generation, or quarantines it if it has damaged records. If that fails, the next start
/// recognises that the generation was flushed.
fn remove_journal(flusher: &Flusher, generation: &Generation) {
    let path = &generation.journal.path;
    let (disk, directory) = (&*flusher.options.disk, &flusher.directory);
    let result = if let Some(lack) = &generation.journal.damaged {
        flusher.counters.journals_quarantined.add(1);
        journal::set_aside(disk, directory, (path.as_path(), generation.number), lack).map(drop)
    } else {
        // Without a sync: if a power failure undoes the removal, the next start removes the journal again.
        disk.remove(path)
    };
    if let Err(error) = result {
        tracing::warn!(path = %path.display(), %error, "journal of a flushed generation was not removed");
    }
}

/// Waits until all generations up to `through` are flushed. Returns the error of a flush that fails during the wait, or `Closed`
/// if the flusher ends first.
pub async fn wait_for(mut progress: watch::Receiver<Progress>, through: u64) -> Result<()> {
    let failures = progress.borrow().failures;
    let moved = |p: &Progress| p.flushed >= through || p.failures > failures || p.ended;
    let seen = progress.wait_for(moved).await.map_err(|_| closed())?;
    match &seen.last_failure {
        _ if seen.flushed >= through => Ok(()),
        Some(error) if seen.failures > failures => Err(error.clone()),
        _ => Err(Error::new(ErrorKind::Closed, "flusher has ended, records stay in the journal")),
    }
}
