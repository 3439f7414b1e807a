//! The public interface of the store: append batches, find series, read records.
//!
//! Path of one record: `store/append.rs` takes a batch from its caller.

mod append;
mod submit;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use tacho_chunk::ExecutionBlock;
use tacho_model::{Clock, Entry, Kind, Labels, Matcher, Sample, SeriesId, TimeRange, Windows};
use tokio::sync::{Notify, oneshot, watch};

use crate::answer::SampleAnswer;
use crate::assemble::{assemble, warn_if_index_full};
use crate::changes::Changes;
use crate::commit::{self, Command, Committer, Sealed, closed};
use crate::damage::{Damages, Read};
use crate::driver::{Driver, Health, Info};
use crate::flush::{self, Flusher};
use crate::index::{self, Cardinality, Unfound};
use crate::intake::Intake;
use crate::lock::DirectoryLock;
use crate::options::Options;
use crate::pin::{self, Pinned};
use crate::read::{self, ChunkInfo, Needed, Reader, Steps};
use crate::recover::recover;
use crate::shared::{Metadata, Progress};
use crate::stats::Stats;
use crate::threads::Threads;
use crate::upkeep::{self, Deleted, Jump, MergeReport, Order, TrustedClock, Upkeep};
use crate::{Error, ErrorKind, Result, keys};

/// A store, for any number of callers. All acknowledged records are durable. A directory is open in one process that writes, or
/// in any number of processes that only read.
pub struct Store {
    driver: Arc<dyn Driver>,
    clock: Arc<TrustedClock>,
    intake: Intake,
    reader: Reader,
    metadata: Arc<Metadata>,
    upkeep: Arc<Upkeep>,
    changes: Arc<Changes>,
    progress: watch::Receiver<Progress>,
    directory: PathBuf,
    /// `None` while the store is dropped, and in a read-only store, which has no tasks.
    commands: Option<Sender<Command>>,
    /// Notified after each command.
    sent: Arc<Notify>,
    committer: Option<Writing>,
    flusher: Option<tokio::task::JoinHandle<()>>,
    keeper: Option<tokio::task::JoinHandle<()>>,
    closed: AtomicBool,
    /// Declared last, so that the directory is unlocked after all fields above are dropped.
    _lock: Option<DirectoryLock>,
}

impl Store {
    /// Opens a store, or creates one. Acknowledged records of an earlier process that are not in the driver are read from
    /// the journal and flushed in the background.
    ///
    /// # Errors
    /// `Locked` when another process uses the directory; `Version` when a newer version wrote it; `Invalid` when the
    /// journal belongs to another store; `Corrupt` when a required journal or a required row of the Meta table is missing (the
    /// error names the remedy); `Corrupt` or `Io` when a file cannot be read.
    pub async fn open(
        driver: Arc<dyn Driver>,
        journal_dir: &Path,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>> {
        let read_only = options.read_only;
        // A directory opened read-only may have no lock file.
        let lock =
            if read_only { DirectoryLock::share(journal_dir) } else { options.disk.lock(journal_dir) }?;
        let recovered = recover(&*driver, journal_dir, &options).await?;
        warn_if_index_full(recovered.index.read().bytes(), &options);
        let parts = assemble(driver, journal_dir, (options, clock), recovered);
        let mut store = Self {
            driver: parts.driver,
            clock: parts.clock,
            intake: parts.intake,
            reader: parts.reader,
            metadata: parts.metadata,
            upkeep: parts.upkeep,
            changes: parts.changes,
            progress: parts.progress,
            directory: journal_dir.to_owned(),
            commands: None,
            sent: Arc::default(),
            committer: None,
            flusher: None,
            keeper: None,
            closed: AtomicBool::new(true),
            _lock: lock,
        };
        if !read_only {
            store.start(parts.committing, parts.flusher)?;
        }
        Ok(Arc::new(store))
    }

    fn start(&mut self, committing: commit::StoreParts, flusher: Flusher) -> Result<()> {
        let (commands, receiver) = channel();
        let directory = committing.directory.clone();
        let threads = committing.options.threads;
        let committer = Committer::new(committing, receiver);
        let committer = match threads {
            Threads::Many => {
                let thread = std::thread::Builder::new().name("tacho-journal".into());
                let started = thread.spawn(move || committer.run());
                Writing::Thread(started.map_err(|e| Error::io("start the journal's thread", &directory, e))?)
            }
            Threads::One => {
                let sent = self.sent.clone();
                Writing::Task(tokio::spawn(committer.run_as_task(sent)))
            }
        };
        self.flusher = Some(tokio::spawn(flush::run(Arc::new(flusher))));
        self.keeper = Some(tokio::spawn(upkeep::run(self.upkeep.clone())));
        self.commands = Some(commands);
        self.committer = Some(committer);
        self.closed = AtomicBool::new(false);
        Ok(())
    }

    /// The highest frame number of a session that is on disk; 0 if there is none. Frames before it may be missing.
    pub fn session_acked(&self, session: u128) -> u64 {
        self.intake.sessions.read().acked(session)
    }

    /// Series of a kind that all matchers accept.
    pub fn find(&self, kind: Kind, matchers: &[Matcher]) -> Vec<(SeriesId, Arc<Labels>)> {
        self.find_within(kind, matchers, usize::MAX, &|| true).unwrap_or_default()
    }

    /// Like [`Store::find`], for at most `series_max` series. Patterns may take seconds.
    ///
    /// # Errors
    /// When more series are selected, or when `waits` returns false, because the caller no longer waits.
    pub fn find_within(
        &self,
        kind: Kind,
        matchers: &[Matcher],
        series_max: usize,
        waits: &dyn Fn() -> bool,
    ) -> std::result::Result<Vec<(SeriesId, Arc<Labels>)>, Unfound> {
        index::find(&self.intake.index, kind, matchers, series_max, waits)
    }

    pub fn labels_of(&self, id: SeriesId) -> Option<Arc<Labels>> {
        self.intake.index.read().labels(id)
    }

    /// Sorted label names of the series of a kind. With selectors, only the names in series that at least one selector
    /// accepts. `None` when `waits` returns false.
    pub fn label_names(
        &self,
        kind: Kind,
        selectors: &[Vec<Matcher>],
        waits: &dyn Fn() -> bool,
    ) -> Option<Vec<String>> {
        let selected = index::select_any(&self.intake.index, kind, selectors, waits)?;
        Some(self.intake.index.read().label_names(kind, selected.numbers()))
    }

    /// Sorted values of one label of the series of a kind. With selectors, only the values of the series that at least
    /// one selector accepts. `None` when `waits` returns false.
    pub fn label_values(
        &self,
        kind: Kind,
        name: &str,
        selectors: &[Vec<Matcher>],
        waits: &dyn Fn() -> bool,
    ) -> Option<Vec<String>> {
        self.label_values_within(kind, name, selectors, usize::MAX, waits)
    }

    /// Like [`Store::label_values`], but stops after the value at which the total length exceeds `bytes_max`.
    pub fn label_values_within(
        &self,
        kind: Kind,
        name: &str,
        selectors: &[Vec<Matcher>],
        bytes_max: usize,
        waits: &dyn Fn() -> bool,
    ) -> Option<Vec<String>> {
        let selected = index::select_any(&self.intake.index, kind, selectors, waits)?;
        Some(self.intake.index.read().label_values_within(kind, name, selected.numbers(), bytes_max))
    }

    /// Statistics of labels and their series. `top` limits the lists of names and of values.
    pub fn cardinality(&self, top: usize) -> Cardinality {
        self.intake.index.read().cardinality(top, self.intake.options.series_max)
    }

    /// Number of series of each kind, in the order of `Kind::ALL`.
    pub fn series_count(&self) -> [usize; 3] {
        self.intake.index.read().counts()
    }

    /// Samples of several series, in columns. A row is read once for all series of the same group ([`crate::group`]). With
    /// `windows`, the statistics of a chunk replace its samples if the chunk is inside one window. `room` is the limit on
    /// samples; several reads may share it.
    ///
    /// # Errors
    /// `Limit` when the number of samples, estimated before they are decoded, exceeds `room`; `Version` for a chunk of a newer
    /// version. Unreadable samples are reported as damages.
    pub async fn read_samples(
        &self,
        series: &[SeriesId],
        range: TimeRange,
        windows: Option<&Windows>,
        room: &AtomicUsize,
    ) -> Result<SampleAnswer> {
        let limits = read::samples::Limits { room, rows_max: None };
        read::samples::samples(&self.reader, series, range, windows, limits).await
    }

    /// Like [`Store::read_samples`], for many series with few samples each. `None` if all series together have, by an estimate,
    /// more than `samples_max` samples, or if a group of one of them has many chunks. A read that returns `None` takes little
    /// memory.
    ///
    /// # Errors
    /// Like [`Store::read_samples`], except `Limit`.
    pub async fn read_short_samples(
        &self,
        series: &[SeriesId],
        range: TimeRange,
        samples_max: usize,
    ) -> Result<Option<SampleAnswer>> {
        read::samples::short_samples(&self.reader, series, range, samples_max).await
    }

    /// Samples of one series, ordered by time. Of samples with the same time, only the last written one is returned.
    ///
    /// # Errors
    /// Like [`Store::read_samples`], and `Corrupt` when some samples cannot be read.
    pub async fn samples(&self, id: SeriesId, range: TimeRange) -> Result<Vec<Sample>> {
        let answer = self.read_samples(&[id], range, None, &AtomicUsize::new(usize::MAX)).await?;
        answer.damages.check()?;
        Ok(answer.samples())
    }

    /// Entries ordered by time. Entries with the same time are in their order of arrival.
    ///
    /// # Errors
    /// `Version` for a chunk of a newer version. Unreadable entries are reported as damages.
    pub async fn read_entries(&self, id: SeriesId, range: TimeRange) -> Result<Read<Vec<Entry>>> {
        read::series::entries(&self.reader, id, range).await
    }

    /// Like [`Store::read_entries`], but returns all entries or none.
    ///
    /// # Errors
    /// Like [`Store::read_entries`], and `Corrupt` when some entries cannot be read.
    pub async fn entries(&self, id: SeriesId, range: TimeRange) -> Result<Vec<Entry>> {
        self.read_entries(id, range).await?.whole()
    }

    /// Blocks that overlap `range`. The range of a block is from its first event to its last. It begins earlier if a part of a
    /// segment continues calls that were already open. Some segments of a block may be outside of `range`.
    ///
    /// # Errors
    /// Like [`Store::executions_within`], and `Corrupt` when some blocks cannot be read.
    pub async fn executions(&self, id: SeriesId, range: TimeRange) -> Result<Vec<Arc<ExecutionBlock>>> {
        self.executions_within(id, range, &AtomicUsize::new(usize::MAX), |_| true).await?.whole()
    }

    /// Like [`Store::executions`], for the blocks that `keep` accepts. Their memory in bytes is subtracted from `room`,
    /// which several reads may share. The other blocks are decoded one at a time and freed.
    ///
    /// # Errors
    /// `Limit` as soon as `room` is used up; `Version` for a chunk of a newer version. Unreadable blocks are reported as damages.
    pub async fn executions_within(
        &self,
        id: SeriesId,
        range: TimeRange,
        room: &AtomicUsize,
        keep: impl Fn(&ExecutionBlock) -> bool,
    ) -> Result<Read<Vec<Arc<ExecutionBlock>>>> {
        read::series::executions(&self.reader, id, range, room, (Needed::All, &|_, _| ()), keep).await
    }

    /// Like [`Store::executions_within`], for the needed blocks. Of other stored blocks, only the filters are read, or a few
    /// columns are decoded.
    ///
    /// # Errors
    /// Like [`Store::executions_within`].
    pub async fn executions_of(
        &self,
        id: SeriesId,
        range: TimeRange,
        room: &AtomicUsize,
        needed: (Needed<'_>, Steps<'_>),
        keep: impl Fn(&ExecutionBlock) -> bool,
    ) -> Result<Read<Vec<Arc<ExecutionBlock>>>> {
        read::series::executions(&self.reader, id, range, room, needed, keep).await
    }

    /// The number of hours with summaries of expired calls that a deletion of this range removes.
    ///
    /// # Errors
    /// The error of the driver.
    pub async fn deleted_hours(&self, id: SeriesId, range: TimeRange) -> Result<u64> {
        if self.reader.masks.summed.read().has(id) {
            return read::deleted_hours(&self.reader, id, range).await;
        }
        Ok(0)
    }

    /// The end of the days whose calls have expired, for the series of these with the latest end. `None` if no calls after `from`
    /// have expired with their summaries.
    pub fn summed_until(&self, series: &[SeriesId], from: i64) -> Option<i64> {
        let summed = self.reader.masks.summed.read();
        series.iter().map(|id| summed.until(*id)).max().filter(|until| *until > from)
    }

    /// The chunks of a series in the driver.
    ///
    /// # Errors
    /// `Version` for a chunk of a newer version. Unreadable chunks are reported as damages.
    pub async fn read_chunks(&self, kind: Kind, id: SeriesId) -> Result<Read<Vec<ChunkInfo>>> {
        read::chunks(&self.reader, kind, id).await
    }

    /// Like [`Store::read_chunks`], but returns all chunks or none.
    ///
    /// # Errors
    /// Like [`Store::read_chunks`], and `Corrupt` when some chunks cannot be read.
    pub async fn chunks(&self, kind: Kind, id: SeriesId) -> Result<Vec<ChunkInfo>> {
        self.read_chunks(kind, id).await?.whole()
    }

    /// Damages that apply to every answer about a kind: series with an unreadable row of labels, unreadable deletions,
    /// and damaged parts of files.
    pub fn lacks(&self, kind: Kind) -> Damages {
        self.reader.unreadable.of_all(kind)
    }

    /// Puts all records accepted so far into the driver.
    ///
    /// # Errors
    /// The error of the driver when an attempt fails: no record is lost, and retries continue in the background. `Closed` when
    /// the journal's thread or the flusher has ended.
    pub async fn flush(&self) -> Result<()> {
        let through = self.seal().await?.through;
        flush::wait_for(self.progress.clone(), through).await
    }

    fn command(&self, command: Command) -> Result<()> {
        let commands = self.commands.as_ref().ok_or_else(closed)?;
        commands.send(command).map_err(|_| closed())?;
        self.sent.notify_one();
        Ok(())
    }

    async fn seal(&self) -> Result<Sealed> {
        let (reply, answer) = oneshot::channel();
        self.command(Command::Seal(reply))?;
        answer.await.map_err(|_| closed())
    }

    /// Deletes records of all kinds in the range, for the series that all matchers accept. Only records stored so far are
    /// deleted. On return, the deletion is durable and in force; merges free the space later. Of calls,
    /// whole parts of segments are deleted: those whose first event is in the range. A short segment is one part.
    ///
    /// # Errors
    /// `Invalid` if every matcher accepts the empty value, if there are too many matchers, or if the range is empty; `Limit` when
    /// too many deletions or patterns are pending; `Closed` when the store is closed; `Io` while the remains of a refused batch
    /// cannot be removed from the journal; the error of the driver. After an error of the driver, the deletion may still take
    /// effect after a restart.
    pub async fn delete(&self, matchers: &[Matcher], range: TimeRange) -> Result<Deleted> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(closed());
        }
        // The remains of a refused batch must not stay in the journal. A recovery would read them, and would then
        // ignore the repetition of the batch, although this repetition was accepted after the deletion. The deletion covers the
        // remains, so the accepted records would be lost.
        let seal = async { self.seal().await?.clean };
        upkeep::delete(&self.upkeep, matchers, range, seal).await
    }

    /// Merges all flushed records into full chunks without pauses, and waits for the end. On a full disk, only completes
    /// deletions, and merges if that has freed enough space.
    ///
    /// # Errors
    /// `StorageFull` when the disk is full; `Invalid` when the driver cannot put rows atomically; `Full` when too many other
    /// callers wait for the result of this function; `Closed` when the store is read-only or its task has ended; the error of the
    /// driver. Finished merges are kept.
    pub async fn merge_all(&self) -> Result<MergeReport> {
        self.order(Order::MergeAll).await
    }

    /// Applies retention and downsampling, and all deletions that cover only flushed generations. Waits for the end.
    ///
    /// # Errors
    /// Like [`Store::merge_all`].
    pub async fn sweep(&self) -> Result<MergeReport> {
        self.order(Order::Sweep).await
    }

    async fn order(&self, order: Order) -> Result<MergeReport> {
        if self.keeper.is_none() {
            return Err(closed());
        }
        self.upkeep.order(order)?.await.map_err(|_| closed())?
    }

    /// Makes hard links: to the files of the driver, in the new directory `driver`; to the journals, in the directory `journal`.
    /// Both together hold all records that were acknowledged before the call. The store still appends to the newest files. Of
    /// each linked file, only the bytes up to its length in the result are valid.
    ///
    /// # Errors
    /// `Invalid` if hard links are not possible; `Io` if one cannot be made for another reason; `Corrupt` if the journal of a
    /// generation in memory is missing; the error of the driver.
    pub async fn pin(&self, driver: &Path, journal: &Path) -> Result<Pinned> {
        let generations = &self.reader.generations;
        pin::pin(&*self.driver, &self.metadata, generations, &self.directory, [driver, journal]).await
    }

    /// Refuses further batches, then flushes all records.
    ///
    /// # Errors
    /// Like [`Store::flush`]. The journal then holds the records that the driver did not accept.
    pub async fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Relaxed);
        self.flush().await
    }

    /// Refuses further batches. The records stay in the journals if these have at most `stop_journal_bytes` together, and no
    /// remains of a refused batch. The next start then reads the journals. Otherwise flushes all records.
    ///
    /// # Errors
    /// Like [`Store::flush`]. None if the records stay in the journals.
    pub async fn stop(&self) -> Result<()> {
        self.closed.store(true, Ordering::Relaxed);
        if !self.reader.generations.read().may_stay(self.intake.options.stop_journal_bytes) {
            return self.flush().await;
        }
        // The stop succeeds even if this put fails: the driver then has the time that was stored last.
        if let Err(error) = self.driver.put(vec![keys::clock_row(self.clock.latest())]).await {
            tracing::warn!(%error, "cannot store the time of the clock, the journals keep all records");
        }
        Ok(())
    }

    /// Checks whether a batch would be accepted, except for the memory budget.
    ///
    /// # Errors
    /// `Closed` when the store is closed or its journal's thread has ended; `StorageFull` when the disk is full.
    pub fn ready(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(closed());
        }
        if self.committer.as_ref().is_none_or(Writing::has_ended) {
            return Err(Error::new(ErrorKind::Closed, "journal's thread has ended: restart the server"));
        }
        self.intake.space.check()
    }

    /// Confirms the clock. From then on, retention uses it again to delete expired records. Returns the jump that was not
    /// trusted. Durable on return.
    ///
    /// # Errors
    /// The error of the driver. The clock is then not confirmed.
    pub async fn confirm_clock(&self) -> Result<Option<Jump>> {
        let jump = self.clock.jump();
        self.driver.put(vec![keys::clock_row(self.clock.wall())]).await?;
        let now = self.clock.confirm();
        tracing::warn!(now, ?jump, "clock confirmed");
        self.upkeep.wake();
        Ok(jump)
    }

    /// A jump of the clock that is not trusted. No record is deleted because of it.
    pub fn clock_jump(&self) -> Option<Jump> {
        self.clock.jump()
    }

    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// For each rule of retention, the time before which the records of its series are masked now.
    pub fn expired_before(&self) -> Vec<i64> {
        self.reader.masks.expired_before()
    }

    pub fn stats(&self) -> Stats {
        let Intake { options, index, sessions, space, budget, counters, .. } = &self.intake;
        let mut stats = counters.snapshot();
        {
            let generations = self.reader.generations.read();
            stats.journal_bytes = generations.journal_bytes();
            stats.sealed = generations.sealed.len();
        }
        stats.disk_full = space.check().is_err();
        stats.clock_doubted = self.clock_jump().is_some();
        stats.open_bytes = budget.used();
        stats.open_bytes_max = budget.max();
        stats.stored = *self.metadata.stored.read();
        stats.sessions = sessions.read().len();
        stats.chunks_unreadable = self.reader.unreadable.count();
        stats.upkeep = self.upkeep.stats();
        let index = index.read();
        stats.series = index.counts();
        stats.series_total = index.len();
        stats.index_bytes = index.bytes();
        stats.spellings = index.spellings().known();
        stats.spellings_bytes = index.spellings().bytes();
        stats.index_bytes_max = options.index_bytes_max;
        stats.chunks_max = options.chunks_max;
        stats
    }

    /// Reads the data of the driver again, except a file that is still written, and compares it with its checksums. Afterwards,
    /// [`Store::driver_health`] includes damaged files.
    ///
    /// # Errors
    /// The error of the driver; a retry may help.
    pub async fn verify(&self) -> Result<()> {
        while !upkeep::verify(&self.upkeep).await?.1 {}
        Ok(())
    }

    pub fn driver_health(&self) -> Health {
        self.driver.health()
    }

    #[cfg(test)]
    pub(crate) const fn reader(&self) -> &Reader {
        &self.reader
    }

    #[cfg(test)]
    pub(crate) const fn upkeep(&self) -> &Arc<Upkeep> {
        &self.upkeep
    }

    pub fn driver_info(&self) -> Info {
        self.driver.info()
    }
}

enum Writing {
    Thread(JoinHandle<()>),
    Task(tokio::task::JoinHandle<()>),
}

impl Writing {
    fn has_ended(&self) -> bool {
        match self {
            Self::Thread(thread) => thread.is_finished(),
            Self::Task(task) => task.is_finished(),
        }
    }
}

/// Ends without flushing, like a crash. Acknowledged records that the driver does not have are in the journals.
impl Drop for Store {
    fn drop(&mut self) {
        for task in self.flusher.iter().chain(&self.keeper) {
            task.abort();
        }
        self.commands = None;
        match self.committer.take() {
            // The thread ends when its channel closes. A panic in it was reported already.
            Some(Writing::Thread(thread)) => drop(thread.join()),
            Some(Writing::Task(task)) => task.abort(),
            None => {}
        }
    }
}
