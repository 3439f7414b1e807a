//! The one task that keeps the store in shape: fresh chunks first, then a slow sweep, orders before both.
//!
//! Works through jobs in batches. A batch looks at some partitions side by side and carries out what it has found in one `put`;
//! between two batches it rests as the pace says, and hears orders.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};
use tacho_model::{TimeRange, Timestamp};

use super::choice::Mode;
use super::forget::forget;
use super::fresh::Tail;
use super::look::{Job, Seen, look};
use super::orders::{Order, Waiting};
use super::pace::Pace;
use super::replace::{backoff, replace, report};
use super::replacement::RowReplacement;
use super::sweep;
use super::verify::verify;
use super::window::{Partition, Stretch};
use super::{Inbox, Upkeep};
use crate::keys::ChunkKey;
use crate::options::Options;
use crate::{Error, Result};

/// Bytes of new chunks, and jobs, of one batch: one `put` and one sync for many small partitions.
const BATCH_BYTES: u64 = 8 << 20;
const BATCH_JOBS: usize = 256;
/// How long a batch goes on looking: a deletion waits for its end.
const BATCH_TIME: Duration = Duration::from_millis(500);
/// Jobs side by side where somebody waits for the end.
const EAGER_JOBS: usize = 4;

/// What a merge of everything has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeReport {
    pub partitions: u64,
    pub merges: u64,
    pub chunks_in: u64,
    pub chunks_out: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub records_in: u64,
    pub records_out: u64,
    pub samples_replaced: u64,
    /// Time that processors were busy.
    pub busy: Duration,
    pub elapsed: Duration,
}

impl MergeReport {
    fn add(&mut self, replacement: &RowReplacement) {
        self.merges += 1;
        self.chunks_in += replacement.before.chunks;
        self.chunks_out += replacement.after.chunks;
        self.bytes_written += replacement.after.bytes;
        self.records_in += replacement.before.records;
        self.records_out += replacement.after.records;
        self.samples_replaced += replacement.samples_replaced;
    }
}

/// How a list of jobs ended.
#[derive(Debug, Default)]
pub struct Tended {
    pub report: MergeReport,
    /// The first failure; its job was not done.
    pub failure: Option<Error>,
    /// Where rows were met that cannot be read or changed, and where their records lie at most.
    pub walled: HashMap<Partition, TimeRange>,
}

/// Works until the store is dropped.
pub async fn run(upkeep: Arc<Upkeep>) {
    let _open = CloseOrders(upkeep.clone());
    Keeper::new(upkeep).run().await;
}

/// Whoever waits hears that the task has ended, also when it was aborted.
struct CloseOrders(Arc<Upkeep>);

impl Drop for CloseOrders {
    fn drop(&mut self) {
        self.0.orders.close();
    }
}

struct Keeper {
    upkeep: Arc<Upkeep>,
    backlog: VecDeque<Job>,
    next_sweep: tokio::time::Instant,
    /// When stored bytes are read again, or read on.
    next_verify: tokio::time::Instant,
    /// All partitions were looked at since the start.
    swept: bool,
    /// Up to where each partition was thinned out.
    thinned: HashMap<Partition, Timestamp>,
    /// Deletions that were tried since the last sweep and are not done.
    tried: HashSet<u64>,
}

impl Keeper {
    fn new(upkeep: Arc<Upkeep>) -> Self {
        let now = tokio::time::Instant::now();
        let (next_sweep, next_verify) =
            (now + upkeep.store.options.sweep_first, now + upkeep.store.options.verify_first);
        let (backlog, thinned, tried) = (VecDeque::new(), HashMap::new(), HashSet::new());
        Self { upkeep, backlog, next_sweep, next_verify, swept: false, thinned, tried }
    }

    async fn run(mut self) {
        // Without merges nothing is swept: then the time of the next sweep must wake nobody, for it stays in the past.
        let merges = self.upkeep.store.options.merge_in_background && self.can_replace().is_ok();
        loop {
            while let Some(order) = self.upkeep.orders.take() {
                self.serve(order).await;
            }
            if merges {
                self.fill().await;
                if !self.backlog.is_empty() {
                    self.work().await;
                    continue;
                }
            }
            if tokio::time::Instant::now() >= self.next_verify {
                self.verify().await;
            }
            let next = if merges { self.next_sweep.min(self.next_verify) } else { self.next_verify };
            let upkeep = self.upkeep.clone();
            tokio::select! {
                order = upkeep.orders.next() => self.serve(order).await,
                () = upkeep.store.inbox.woken.notified() => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// Without an atomic `put` a crash could leave a merge half done.
    fn can_replace(&self) -> Result<()> {
        if self.upkeep.store.driver.capabilities().atomic_put {
            return Ok(());
        }
        let name = self.upkeep.store.driver.info().name;
        Err(Error::invalid(format!("driver {name} cannot put rows all at once, nothing is merged")))
    }

    async fn serve(&mut self, waiting: Waiting) {
        let mode = match waiting.order {
            Order::MergeAll => Mode::All,
            Order::Sweep => Mode::Tiered,
        };
        // What was begun there is overtaken: everything is looked at now.
        self.backlog.drain(..).for_each(|job| give_back(&self.upkeep.store.inbox, &job));
        let result = match self.can_replace() {
            Ok(()) => self.tend_everything(mode).await,
            Err(error) => Err(error),
        };
        waiting.answer(&result);
    }

    async fn tend_everything(&mut self, mode: Mode) -> Result<MergeReport> {
        let begun = Instant::now();
        // What is fresh is part of all; what is not wholly flushed is given back.
        let fresh: HashMap<Partition, Tail> = self.upkeep.store.inbox.fresh.take(0).into_iter().collect();
        let job = |partition| Job { tail: fresh.get(&partition).copied(), ..Job::all(partition, mode) };
        let jobs = sweep::partitions(&self.upkeep.store.index).into_iter().map(job);
        let tended = tend(&self.upkeep, jobs.collect(), EAGER_JOBS).await;
        self.tried.clear();
        sweep::finish_deletions(&self.upkeep, None, &mut self.tried).await;
        self.upkeep.store.driver.settle().await?;
        match tended.failure {
            Some(error) => Err(error),
            None => Ok(MergeReport { elapsed: begun.elapsed(), ..tended.report }),
        }
    }

    /// Looks for work when there is none.
    async fn fill(&mut self) {
        let (upkeep, options) = (&self.upkeep, &self.upkeep.store.options);
        if !self.backlog.is_empty() {
            return;
        }
        let is_due = tokio::time::Instant::now() >= self.next_sweep;
        if is_due {
            self.tried.clear();
        }
        sweep::finish_deletions(upkeep, Some(pace(options)), &mut self.tried).await;
        // Merges write before they free: on a full disk only what frees goes on.
        let room = upkeep.store.space.check().is_ok();
        let enough = u32::try_from(options.merge_rows).unwrap_or(u32::MAX).max(1);
        let fresh = |mode| move |(partition, tail)| job(partition, tail, mode);
        if room {
            self.backlog.extend(upkeep.store.inbox.fresh.take(enough).into_iter().map(fresh(Mode::Tiered)));
        }
        if !is_due {
            return;
        }
        self.next_sweep = tokio::time::Instant::now() + options.sweep_every;
        if !room {
            self.backlog.extend(sweep::aged(upkeep, &mut self.thinned));
        } else if self.swept {
            self.backlog.extend(upkeep.store.inbox.fresh.take(1).into_iter().map(fresh(Mode::Finish)));
            self.backlog.extend(sweep::aged(upkeep, &mut self.thinned));
        } else {
            let all = sweep::partitions(&upkeep.store.index).into_iter();
            self.backlog.extend(all.map(|partition| Job::all(partition, Mode::Finish)));
            self.swept = true;
        }
    }

    /// Reads some stored bytes again. Other work comes first.
    async fn verify(&mut self) {
        let begun = Instant::now();
        let rest = match verify(&self.upkeep).await {
            Ok((_, true)) => self.upkeep.store.options.verify_every,
            Ok((bytes, false)) => {
                pace(&self.upkeep.store.options).rest(bytes, Duration::ZERO, begun.elapsed())
            }
            Err(error) => {
                report(&self.upkeep, &error, "stored bytes were not verified");
                let Options { sweep_every, verify_every, .. } = *self.upkeep.store.options;
                if error.retryable() { sweep_every.min(verify_every) } else { verify_every }
            }
        };
        self.next_verify = tokio::time::Instant::now() + rest;
    }

    /// One batch of the backlog, and a rest, which an order ends.
    async fn work(&mut self) {
        let begun = Instant::now();
        let mut tended = Tended::default();
        let before = self.backlog.len();
        batch(&self.upkeep, &mut self.backlog, 1, &mut tended).await;
        let MergeReport { bytes_read, bytes_written, busy, .. } = tended.report;
        let mut rest =
            pace(&self.upkeep.store.options).rest(bytes_read + bytes_written, busy, begun.elapsed());
        if tended.failure.is_some() {
            rest = rest.max(backoff(&self.upkeep).next_wait());
        }
        tracing::debug!(
            jobs = before,
            merges = tended.report.merges,
            bytes_read,
            bytes_written,
            "upkeep worked"
        );
        let upkeep = self.upkeep.clone();
        if let Ok(order) = tokio::time::timeout(rest, upkeep.orders.next()).await {
            self.serve(order).await;
        }
    }
}

fn pace(options: &Options) -> Pace {
    Pace { bytes_per_second: options.merge_bytes_per_second, cpu_percent: options.merge_cpu_percent }
}

const fn job(partition: Partition, tail: Tail, mode: Mode) -> Job {
    Job {
        partition,
        stretch: tail.stretch(),
        end: Timestamp::MAX,
        mode,
        tail: Some(tail),
        through: None,
        young: false,
    }
}

/// Does all jobs and what follows from them, `width` side by side.
pub async fn tend(upkeep: &Arc<Upkeep>, jobs: VecDeque<Job>, width: usize) -> Tended {
    let (mut jobs, mut tended) = (jobs, Tended::default());
    tended.report.partitions = jobs.len() as u64;
    while !jobs.is_empty() {
        batch(upkeep, &mut jobs, width, &mut tended).await;
    }
    tended
}

/// Looks at some partitions and carries out what is to be done there; what follows from it goes back to `jobs`.
pub async fn batch(upkeep: &Arc<Upkeep>, jobs: &mut VecDeque<Job>, width: usize, tended: &mut Tended) {
    let gate = upkeep.gate.read().await;
    let tombstone = upkeep.store.tombstones.read().last_id();
    let (begun, mut bytes) = (Instant::now(), 0);
    // Each partition once: what a second look saw would be replaced already.
    let mut looked: HashSet<Partition> = HashSet::new();
    let mut seen: Vec<Seen> = Vec::new();
    let mut looks = FuturesUnordered::new();
    loop {
        let early = looked.is_empty() || begun.elapsed() < BATCH_TIME;
        let room = bytes < BATCH_BYTES && looked.len() < BATCH_JOBS && early;
        while room
            && looks.len() < width
            && jobs.front().is_some_and(|job| looked.insert(job.partition))
            && let Some(job) = jobs.pop_front()
        {
            let job = current(upkeep, job);
            looks.push(async move { (job, look(upkeep, job).await) });
        }
        let Some((job, result)) = looks.next().await else { break };
        match result {
            Ok(new) => {
                bytes += new.replacements.iter().map(|replacement| replacement.after.bytes).sum::<u64>();
                seen.push(new);
            }
            Err(error) => {
                report(upkeep, &error, "partition was not looked at");
                fail(upkeep, &job, error, tended);
            }
        }
    }
    drop(looks);
    let replacements: Vec<RowReplacement> =
        seen.iter_mut().flat_map(|seen| std::mem::take(&mut seen.replacements)).collect();
    let done = replace(upkeep, &replacements, tombstone, gate).await;
    if done.is_ok() {
        replacements.iter().for_each(|replacement| tended.report.add(replacement));
    }
    for seen in seen {
        account(upkeep, &seen, tended);
        match &done {
            Ok(()) => follow(upkeep, seen, jobs).await,
            Err(error) => fail(upkeep, &seen.job, error.clone(), tended),
        }
    }
}

/// The job with all that is flushed by now, and with what is known of it by now: chunks that came since the job was made
/// may reach over what was a clean boundary then.
fn current(upkeep: &Upkeep, job: Job) -> Job {
    if job.through.is_some() {
        return job;
    }
    // In this order: what is flushed was noted before.
    let through = Some(upkeep.store.progress.borrow().flushed);
    let Some(noted) = upkeep.store.inbox.fresh.take_one(&job.partition) else {
        return Job { through, ..job };
    };
    let tail = job.tail.map_or(noted, |tail| tail.and(noted));
    let stretch = match job.stretch {
        Stretch::From(from) if from > Timestamp::MIN => tail.stretch(),
        Stretch::Around(from) if tail.from < from => tail.stretch(),
        stretch => stretch,
    };
    Job { through, stretch, tail: Some(tail), ..job }
}

/// What was taken for the job counts as fresh again. No boundary that was clean before is known to be so still.
fn give_back(inbox: &Inbox, job: &Job) {
    if let Some(tail) = job.tail {
        inbox.fresh.give_back(&job.partition, Tail { clean: false, ..tail });
    }
}

/// The job is not repeated now; its chunks count as fresh again.
fn fail(upkeep: &Upkeep, job: &Job, error: Error, tended: &mut Tended) {
    give_back(&upkeep.store.inbox, job);
    tended.failure.get_or_insert(error);
}

fn account(upkeep: &Upkeep, seen: &Seen, tended: &mut Tended) {
    let counts = &upkeep.counts;
    counts.bytes_read.add(seen.bytes_read);
    counts.rows_dead.add(seen.rows_dead);
    counts.busy_ns.add(u64::try_from(seen.busy.as_nanos()).unwrap_or(u64::MAX));
    tended.report.bytes_read += seen.bytes_read;
    tended.report.busy += seen.busy;
    let reach =
        |key: &ChunkKey| TimeRange::new(key.start, key.start.saturating_add_unsigned(key.span.span_max_ns()));
    let walls = seen.walls.iter().map(reach).chain(seen.undone.then_some(TimeRange::ALL));
    let joined = walls.reduce(|a, b| TimeRange::new(a.start.min(b.start), a.end.max(b.end)));
    if let Some(range) = joined {
        let known = tended.walled.entry(seen.job.partition).or_insert(range);
        *known = TimeRange::new(known.start.min(range.start), known.end.max(range.end));
    }
}

async fn follow(upkeep: &Arc<Upkeep>, seen: Seen, jobs: &mut VecDeque<Job>) {
    let Job { partition, .. } = seen.job;
    if let Some(rest) = seen.rest {
        let job = Job { stretch: rest, young: seen.young, ..seen.job };
        return jobs.push_front(job);
    }
    if let Some(tail) = seen.tail {
        upkeep.store.inbox.fresh.give_back(&partition, tail);
    }
    // Rows that are not wholly flushed were counted, and not looked at: they may reach over any boundary.
    if seen.young || seen.job.end < Timestamp::MAX {
        give_back(&upkeep.store.inbox, &seen.job);
    }
    if seen.empty && seen.job.stretch == Stretch::From(Timestamp::MIN) {
        forget(upkeep, partition).await;
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use tacho_model::ManualClock;

    use super::*;
    use crate::layer::faults::{Faults, Faulty};
    use crate::{Driver, MemoryDriver, Store};

    /// More wakes than any of these days has.
    const WAKES_MAX: usize = 1_000;

    /// How often the task wakes in a day without work; the count ends at [`WAKES_MAX`].
    async fn wakes_a_day(driver: Arc<dyn Driver>, merge_in_background: bool) -> usize {
        let directory = tempfile::tempdir().unwrap();
        let hour = Duration::from_secs(3_600);
        let options = Options {
            merge_in_background,
            sweep_first: hour,
            sweep_every: 6 * hour,
            verify_first: 2 * hour,
            verify_every: 8 * hour,
            ..Options::default()
        };
        let clock = Arc::new(ManualClock::new(0));
        let store = Store::open(driver, directory.path(), options, clock).await.unwrap();
        let mut keeper = std::pin::pin!(Keeper::new(store.upkeep().clone()).run());
        let mut wakes = 0;
        let counted = std::future::poll_fn(|context| {
            wakes += 1;
            if wakes == WAKES_MAX { Poll::Ready(()) } else { keeper.as_mut().poll(context) }
        });
        // The clock goes on when nobody has anything to do: a task that never rests stops it.
        let _ = tokio::time::timeout(24 * hour, counted).await;
        wakes
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_sleeps_until_there_is_something_to_do() {
        let memory = || Arc::new(MemoryDriver::new());
        // Once in so many calls: that it may happen is what counts.
        let torn = Faults { torn: u64::MAX, ..Faults::default() };
        let torn = Arc::new(Faulty::new(memory(), torn));
        // Beside the first and the last of the day: four sweeps where there are merges, and three rounds of verification.
        assert_eq!(wakes_a_day(memory(), true).await, 9, "merging");
        assert_eq!(wakes_a_day(memory(), false).await, 5, "not merging");
        assert_eq!(wakes_a_day(torn, true).await, 5, "without whole puts");
    }
}
