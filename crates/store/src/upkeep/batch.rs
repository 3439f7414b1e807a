//! Runs one batch of jobs: checks some partitions concurrently, replaces rows in one `put`, and queues follow-up jobs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tacho_model::{TimeRange, Timestamp};
use tokio::time::Instant;

use super::forget::forget;
use super::fresh::Tail;
use super::job::{Job, Seen, look};
use super::replace::{replace, report};
use super::replacement::RowReplacement;
use super::report::MergeReport;
use super::window::{Partition, Stretch};
use super::{Inbox, Upkeep};
use crate::Error;
use crate::keys::ChunkKey;

/// Limits on one batch: bytes of new chunks, and jobs. With these limits, many small partitions share one `put` and one
/// sync.
const BATCH_BYTES: u64 = 8 << 20;
const BATCH_JOBS: usize = 256;
/// Time during which a batch starts new jobs. A deletion waits for the end of the batch.
const BATCH_TIME: Duration = Duration::from_millis(500);

/// Result of a list of jobs.
#[derive(Debug, Default)]
pub struct JobResults {
    pub report: MergeReport,
    /// The first failure. Its job was not completed.
    pub failure: Option<Error>,
    /// Partitions of the failed jobs.
    pub failed: HashSet<Partition>,
    /// Partitions with rows that could not be read or changed, each with the time range of all such rows.
    pub walled: HashMap<Partition, TimeRange>,
}

/// Runs all jobs and their follow-up jobs. At most `width` jobs run at the same time.
pub async fn run_jobs(upkeep: &Arc<Upkeep>, jobs: VecDeque<Job>, width: usize) -> JobResults {
    let (mut jobs, mut results) = (jobs, JobResults::default());
    results.report.partitions = jobs.len() as u64;
    while !jobs.is_empty() {
        batch(upkeep, &mut jobs, width, &mut results).await;
    }
    results
}

/// Checks some partitions and applies the replacements. Follow-up jobs are added to `jobs`.
pub async fn batch(upkeep: &Arc<Upkeep>, jobs: &mut VecDeque<Job>, width: usize, results: &mut JobResults) {
    let gate = upkeep.gate.read().await;
    let tombstone = upkeep.store.tombstones.read().last_id();
    let (begun, mut bytes) = (Instant::now(), 0);
    // Each partition is checked once per batch, because a second job would see rows that are about to be replaced.
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
                report(upkeep, &error, "partition was not checked");
                fail(upkeep, &job, error, results);
            }
        }
    }
    drop(looks);
    let replacements: Vec<RowReplacement> =
        seen.iter_mut().flat_map(|seen| std::mem::take(&mut seen.replacements)).collect();
    let done = replace(upkeep, &replacements, tombstone, gate).await;
    if done.is_ok() {
        replacements.iter().for_each(|replacement| results.report.add(replacement));
    }
    for seen in seen {
        account(upkeep, &seen, results);
        match &done {
            Ok(()) => follow(upkeep, seen, jobs).await,
            Err(error) => fail(upkeep, &seen.job, error.clone(), results),
        }
    }
}

/// Extends the job to everything flushed so far. Chunks that arrived after the job was created may reach over a
/// boundary that was clean (no earlier row reached over it).
fn current(upkeep: &Upkeep, job: Job) -> Job {
    if job.through.is_some() {
        return job;
    }
    // The progress is read first: chunks are noted before their generation counts as flushed, so no
    // flushed chunk is missed.
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

/// Counts the job's chunks as fresh (not read by a merge) again. Boundaries that were clean are no longer trusted.
pub fn give_back(inbox: &Inbox, job: &Job) {
    if let Some(tail) = job.tail {
        inbox.fresh.give_back(&job.partition, Tail { clean: false, ..tail });
    }
}

/// Counts the job's chunks as fresh again, but only when the flush whose rows the job skipped has ended. A job before that
/// would skip the same rows, and would repeat without a pause while the flush fails.
fn hold(upkeep: &Upkeep, job: &Job) {
    let Some(tail) = job.tail else { return };
    let inbox = &upkeep.store.inbox;
    inbox.fresh.hold(&job.partition, Tail { clean: false, ..tail });
    // If the flush has ended since the job read the progress, the chunks are released now, because the next flush may end
    // much later.
    if upkeep.store.progress.borrow().flushed > job.through.unwrap_or(0) {
        inbox.flushed();
    }
}

/// Records the failure of a job. The job is not repeated now, and its chunks count as fresh again.
fn fail(upkeep: &Upkeep, job: &Job, error: Error, results: &mut JobResults) {
    give_back(&upkeep.store.inbox, job);
    results.failed.insert(job.partition);
    results.failure.get_or_insert(error);
}

fn account(upkeep: &Upkeep, seen: &Seen, results: &mut JobResults) {
    let counts = &upkeep.counts;
    counts.bytes_read.add(seen.bytes_read);
    counts.rows_dead.add(seen.rows_dead);
    counts.busy_ns.add(u64::try_from(seen.busy.as_nanos()).unwrap_or(u64::MAX));
    results.report.bytes_read += seen.bytes_read;
    results.report.busy += seen.busy;
    let reach =
        |key: &ChunkKey| TimeRange::new(key.start, key.start.saturating_add_unsigned(key.span.span_max_ns()));
    let undecodable = seen.undecodable.iter().map(reach).chain(seen.undone.then_some(TimeRange::ALL));
    let joined = undecodable.reduce(|a, b| TimeRange::new(a.start.min(b.start), a.end.max(b.end)));
    if let Some(range) = joined {
        let known = results.walled.entry(seen.job.partition).or_insert(range);
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
    // Rows that were skipped, because their generation is not completely flushed, were counted as fresh chunks but
    // not read. They may reach over any boundary, so all chunks of the job count as fresh again.
    if seen.young {
        hold(upkeep, &seen.job);
    } else if seen.job.end < Timestamp::MAX {
        give_back(&upkeep.store.inbox, &seen.job);
    }
    if seen.empty && seen.job.stretch == Stretch::From(Timestamp::MIN) {
        forget(upkeep, partition).await;
    }
}
