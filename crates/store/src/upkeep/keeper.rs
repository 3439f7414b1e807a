//! The upkeep task. Its priorities: orders, then deletions, fresh chunks, a slow sweep, and the verification of stored bytes.
//!
//! Runs jobs in batches. A batch checks some partitions and applies the results in one `put`. Between two batches of the
//! backlog, the task rests according to its pace, and accepts orders. For an order, it checks several partitions concurrently
//! and does not rest.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tacho_model::{Kind, SeriesId, Timestamp};
use tokio::time::Instant;

use super::Upkeep;
use super::batch::{JobResults, batch, give_back, run_jobs};
use super::choice::Mode;
use super::fresh::Tail;
use super::job::Job;
use super::keep::{self, keep_next};
use super::orders::{Order, Waiting};
use super::pace::Pace;
use super::replace::{backoff, report};
use super::report::MergeReport;
use super::rollups::roll_up;
use super::sweep::{self, Tried};
use super::verify::verify;
use super::window::Partition;
use crate::layer::retry::Backoff;
use crate::options::Options;
use crate::{Error, Result};

const EAGER_JOBS: usize = 4;

/// Limit on the time from a failure to the next sweep. It is short, because the cause may be over soon. For example, a full disk
/// may have space again.
const SWEEP_AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Runs until the store is dropped.
pub async fn run(upkeep: Arc<Upkeep>) {
    let _open = CloseOrders(upkeep.clone());
    Keeper::new(upkeep).run().await;
}

/// Closes the orders when the task ends, including an end by abort.
struct CloseOrders(Arc<Upkeep>);

impl Drop for CloseOrders {
    fn drop(&mut self) {
        self.0.orders.close();
    }
}

struct Keeper {
    upkeep: Arc<Upkeep>,
    backlog: VecDeque<Job>,
    next_sweep: Instant,
    next_verify: Instant,
    /// Whether a sweep has queued all partitions since the start.
    swept: bool,
    /// Whether the days that an earlier process left without roll-ups are noted.
    knows_days: bool,
    thinned: HashMap<Partition, Timestamp>,
    /// Series with days whose summaries may be due to be kept.
    ending: VecDeque<SeriesId>,
    /// Days that were summed up since the last line in the log.
    summed_up: u64,
    /// Deletions that were tried since the last sweep and are not completed.
    tried: Tried,
    /// The waits after failed batches. `None` after a batch without a failure.
    failing: Option<Backoff>,
}

impl Keeper {
    fn new(upkeep: Arc<Upkeep>) -> Self {
        let now = Instant::now();
        let (next_sweep, next_verify) =
            (now + upkeep.store.options.sweep_first, now + upkeep.store.options.verify_first);
        let (backlog, thinned, tried) = (VecDeque::new(), HashMap::new(), Tried::default());
        let (swept, knows_days, failing, ending) = (false, false, None, VecDeque::new());
        Self {
            upkeep,
            backlog,
            next_sweep,
            next_verify,
            swept,
            knows_days,
            thinned,
            ending,
            summed_up: 0,
            tried,
            failing,
        }
    }

    async fn run(mut self) {
        // Without merges there are no sweeps, and the time of the next sweep stays in the past. That time must not wake
        // the task.
        let merges = self.upkeep.store.options.merge_in_background && self.can_replace().is_ok();
        loop {
            while let Some(order) = self.upkeep.orders.take() {
                self.serve(order).await;
            }
            let mut has_rolled = false;
            if merges {
                self.fill().await;
                let has_merged = !self.backlog.is_empty();
                if has_merged {
                    self.work().await;
                }
                // Not only after the last merge, because a busy store may always have merges to do.
                let has_kept = self.keep().await;
                has_rolled = self.roll_up().await || has_kept;
                if has_merged {
                    continue;
                }
            }
            if Instant::now() >= self.next_verify {
                self.verify().await;
            }
            if has_rolled {
                continue;
            }
            let next = if merges { self.next_sweep.min(self.next_verify) } else { self.next_verify };
            let upkeep = self.upkeep.clone();
            tokio::select! {
                biased;
                order = upkeep.orders.next() => self.serve(order).await,
                () = upkeep.store.inbox.woken.notified() => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// Without an atomic `put`, a crash could leave a merge half done.
    fn can_replace(&self) -> Result<()> {
        if self.upkeep.store.driver.capabilities().atomic_put {
            return Ok(());
        }
        let name = self.upkeep.store.driver.info().name;
        Err(Error::invalid(format!("driver {name} has no atomic put of several rows: nothing is merged")))
    }

    async fn serve(&mut self, waiting: Waiting) {
        let mode = match waiting.order {
            Order::MergeAll => Mode::All,
            Order::Sweep => Mode::Tiered,
        };
        // The backlog is discarded, because all partitions are checked now.
        self.backlog.drain(..).for_each(|job| give_back(&self.upkeep.store.inbox, &job));
        let result = match self.can_replace() {
            Ok(()) => self.merge_everything(mode).await,
            Err(error) => Err(error),
        };
        waiting.answer(&result);
    }

    async fn merge_everything(&mut self, mode: Mode) -> Result<MergeReport> {
        let begun = Instant::now();
        if mode == Mode::All {
            self.make_room().await?;
        }
        // The jobs take the fresh chunks with them. If a job skips rows of a generation that is not completely flushed, its
        // chunks count as fresh again.
        let failed_to_keep = self.keep_all().await.err();
        let fresh: HashMap<Partition, Tail> = self.upkeep.store.inbox.fresh.take(0).into_iter().collect();
        let job = |partition| Job { tail: fresh.get(&partition).copied(), ..Job::all(partition, mode) };
        let jobs = sweep::partitions(&self.upkeep.store.index).into_iter().map(job);
        let results = run_jobs(&self.upkeep, jobs.collect(), EAGER_JOBS).await;
        self.tried.clear();
        sweep::finish_deletions(&self.upkeep, None, &mut self.tried).await;
        self.note_days().await;
        // Days that become ready in the meantime wait, so that the order ends.
        for _ in 0..self.upkeep.store.inbox.days.ready() {
            self.roll_up_one().await;
        }
        self.upkeep.store.driver.settle().await?;
        match failed_to_keep.or(results.failure) {
            Some(error) => Err(error),
            None => Ok(MergeReport { elapsed: begun.elapsed(), ..results.report }),
        }
    }

    /// Merges write before they free space. So on a full disk, first completes deletions, which may use the reserved space.
    ///
    /// # Errors
    /// `StorageFull` if the disk is still full; the error of the driver.
    async fn make_room(&mut self) -> Result<()> {
        if self.upkeep.store.space.check().is_ok() {
            return Ok(());
        }
        self.tried.clear();
        sweep::finish_deletions(&self.upkeep, None, &mut self.tried).await;
        let settled = self.upkeep.store.driver.settle().await;
        self.upkeep.store.space.check()?;
        settled
    }

    /// If the backlog is empty, completes deletions and fills the backlog.
    async fn fill(&mut self) {
        let (upkeep, options) = (&self.upkeep, &self.upkeep.store.options);
        if !self.backlog.is_empty() {
            return;
        }
        let is_due = Instant::now() >= self.next_sweep;
        if is_due {
            self.tried.clear();
        }
        if !sweep::finish_deletions(upkeep, Some(pace(options)), &mut self.tried).await {
            self.next_sweep = self.next_sweep.min(Instant::now() + SWEEP_AFTER_FAILURE);
        }
        // Merges write before they free space. On a full disk, only deletions, expiry and downsampling continue.
        let room = upkeep.store.space.check().is_ok();
        let enough = u32::try_from(options.merge_rows).unwrap_or(u32::MAX).max(1);
        let fresh = |mode| move |(partition, tail)| job(partition, tail, mode);
        if room {
            self.backlog.extend(upkeep.store.inbox.fresh.take(enough).into_iter().map(fresh(Mode::Tiered)));
        }
        if !is_due {
            return;
        }
        self.next_sweep = Instant::now() + options.sweep_every;
        self.find_ending().await;
        let upkeep = &self.upkeep;
        upkeep.store.inbox.days.close(upkeep.store.clock.now());
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

    /// Finds the series that may have calls to sum up, and deletes their expired kept summaries.
    async fn find_ending(&mut self) {
        let found = match keep::series(&self.upkeep).await {
            Ok(found) => found,
            Err(error) => return report(&self.upkeep, &error, "series with expired calls were not found"),
        };
        for series in &found {
            if let Err(error) = keep::expire(&self.upkeep, *series).await {
                report(&self.upkeep, &error, "expired summaries of calls were not deleted");
            }
        }
        self.ending = found.into();
    }

    /// Keeps the summaries of one day of one series, and then rests. Returns whether there was such a day. After a failure, the
    /// next sweep tries again.
    async fn keep(&mut self) -> bool {
        let begun = Instant::now();
        let bytes = match self.keep_one().await {
            Ok(None) => return false,
            Ok(Some(bytes)) => bytes,
            Err(_) => {
                self.next_sweep = self.next_sweep.min(Instant::now() + SWEEP_AFTER_FAILURE);
                return true;
            }
        };
        let elapsed = begun.elapsed();
        self.rest(pace(&self.upkeep.store.options).rest(bytes, elapsed, elapsed)).await;
        true
    }

    /// Keeps the summaries of all due days.
    ///
    /// # Errors
    /// The first failure.
    async fn keep_all(&mut self) -> Result<()> {
        self.find_ending().await;
        let mut result = Ok(());
        loop {
            match self.keep_one().await {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => result = result.and(Err(error)),
            }
        }
        // The caller checks all partitions.
        self.backlog.drain(..).for_each(|job| give_back(&self.upkeep.store.inbox, &job));
        result
    }

    /// Returns the bytes that were written. `None` if there is no day to keep.
    ///
    /// # Errors
    /// The calls of a series stay until the next sweep.
    async fn keep_one(&mut self) -> Result<Option<u64>> {
        while let Some(series) = self.ending.pop_front() {
            let kept = keep_next(&self.upkeep, series).await;
            match kept.inspect_err(|error| {
                report(
                    &self.upkeep,
                    error,
                    "summaries of calls were not stored, so these calls do not expire yet",
                );
            })? {
                Some(bytes) => {
                    self.ending.push_back(series);
                    self.summed_up += u64::from(bytes > 0);
                    return Ok(Some(bytes));
                }
                // All of its days are done, so the calls can be deleted.
                None => {
                    let partition = Partition { kind: Kind::Execution, id: series };
                    let end = self.upkeep.summed_until(&partition).unwrap_or(Timestamp::MIN);
                    if end > Timestamp::MIN {
                        self.backlog.push_back(Job { end, ..Job::all(partition, Mode::Tiered) });
                    }
                }
            }
        }
        if self.summed_up > 0 {
            tracing::info!(days_of_series = self.summed_up, "calls have expired, their summaries are kept");
            self.summed_up = 0;
        }
        Ok(None)
    }

    /// Writes the roll-ups of one day of one series, and then rests. Returns whether there was such a day.
    async fn roll_up(&mut self) -> bool {
        self.note_days().await;
        let begun = Instant::now();
        let Some(bytes) = self.roll_up_one().await else { return false };
        let elapsed = begun.elapsed();
        self.rest(pace(&self.upkeep.store.options).rest(bytes, elapsed, elapsed)).await;
        true
    }

    /// Returns the bytes that were read and written. `None` if there is no day to roll up, or no space.
    async fn roll_up_one(&self) -> Option<u64> {
        self.upkeep.store.space.check().ok()?;
        let rolled = roll_up(&self.upkeep).await?;
        Some(rolled.unwrap_or_else(|error| {
            report(&self.upkeep, &error, "roll-ups were not written");
            0
        }))
    }

    /// Notes the days that an earlier process may have left without roll-ups, once.
    async fn note_days(&mut self) {
        if !std::mem::replace(&mut self.knows_days, true)
            && let Err(error) = self.note_all_days().await
        {
            report(&self.upkeep, &error, "days without roll-ups were not found");
        }
    }

    async fn note_all_days(&self) -> Result<()> {
        let store = &self.upkeep.store;
        let all = {
            let index = store.index.read();
            index.of_kind(Kind::Execution).map(|number| index.id(number)).collect()
        };
        store.inbox.days.note_all(&*store.driver, all).await
    }

    /// Verifies some stored bytes. Other work has priority.
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
        self.next_verify = Instant::now() + rest;
    }

    /// Runs one batch of the backlog and then rests.
    async fn work(&mut self) {
        let begun = Instant::now();
        let mut results = JobResults::default();
        let before = self.backlog.len();
        batch(&self.upkeep, &mut self.backlog, 1, &mut results).await;
        let MergeReport { bytes_read, bytes_written, busy, .. } = results.report;
        let mut rest =
            pace(&self.upkeep.store.options).rest(bytes_read + bytes_written, busy, begun.elapsed());
        match results.failure {
            // The chunks of a failed job are fresh again, so a later batch reads them. The waits double, because a full disk or
            // a broken back end may stay so for hours.
            Some(_) => {
                // The next sweep repeats the failed jobs for rules.
                self.thinned.retain(|partition, _| !results.failed.contains(partition));
                self.next_sweep = self.next_sweep.min(Instant::now() + SWEEP_AFTER_FAILURE);
                rest = rest.max(self.failing.get_or_insert_with(|| backoff(&self.upkeep)).next_wait());
            }
            None => self.failing = None,
        }
        tracing::debug!(
            jobs = before,
            merges = results.report.merges,
            bytes_read,
            bytes_written,
            "upkeep worked"
        );
        self.rest(rest).await;
    }

    /// An order ends the rest.
    async fn rest(&mut self, rest: Duration) {
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

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use tacho_model::ManualClock;

    use super::*;
    use crate::layer::faults::{Faults, Faulty};
    use crate::{Driver, MemoryDriver, Store};

    /// Limit on counted wakes; above the number of any day in these tests.
    const WAKES_MAX: usize = 1_000;

    /// Number of times that the task wakes in a day without work. The count stops at [`WAKES_MAX`].
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
        // The paused clock advances only when all tasks wait. A task that never rests would stop the
        // clock.
        let _ = tokio::time::timeout(24 * hour, counted).await;
        wakes
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_sleeps_until_there_is_work() {
        let memory = || Arc::new(MemoryDriver::new());
        // A fault in one of `u64::MAX` calls never occurs. But a driver with such faults does not report the capability
        // of an atomic `put`, so no merges run.
        let torn = Faults { torn: u64::MAX, ..Faults::default() };
        let torn = Arc::new(Faulty::new(memory(), torn));
        // In addition to the first and the last wake of the day: four sweeps if merges run, and three rounds of
        // verification.
        assert_eq!(wakes_a_day(memory(), true).await, 9, "merging");
        assert_eq!(wakes_a_day(memory(), false).await, 5, "not merging");
        assert_eq!(wakes_a_day(torn, true).await, 5, "without atomic puts");
    }
}
