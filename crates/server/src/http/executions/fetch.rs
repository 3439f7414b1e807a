//! Reads the execution blocks that a query needs.
//!
//! Step before: `crates/store/src/read/series.rs` returns the blocks. Step after: `crates/query/src/executions/` computes with
//! them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tacho_chunk::{AttributeData, ExecutionBlock, SummarizedChunk};
use tacho_model::{Kind, Labels, Matcher, SeriesId, TimeRange, Timestamp, TraceId};
use tacho_query::executions::{Fold, Incomplete, Scope, SourceBlock, Trace};
use tacho_store::{Damages, Error, ErrorKind, Having, Needed, Read, Summed, SummedOf};

use crate::access::View;
use crate::http::error::ApiError;
use crate::http::running::Progress;
use crate::tls::expiry::utc;

/// Memory limit for the blocks of a trace or a call tree, bytes: some 30 million calls. The analysis may take five times as much
/// memory in addition to the blocks. All other analyses add the blocks to a [`Fold`] one by one, and need no such limit.
const BLOCK_BYTES_MAX: usize = 1 << 30;
/// The blocks of one query take at most the usable memory divided by this number, but may always take [`LIGHT_BLOCK_BYTES_MAX`].
const BLOCK_MEMORY_SHARE: usize = 16;
/// Memory limit for the blocks of a query that runs at the same time as a heavy query, bytes.
pub const LIGHT_BLOCK_BYTES_MAX: usize = 64 << 20;
const READS_AT_ONCE: usize = 4;

const HOUR_NS: i64 = 3_600_000_000_000;

pub fn block_bytes_max(usable_bytes: Option<usize>) -> usize {
    let share = usable_bytes.map_or(BLOCK_BYTES_MAX, |all| all / BLOCK_MEMORY_SHARE);
    share.clamp(LIGHT_BLOCK_BYTES_MAX, BLOCK_BYTES_MAX)
}

#[derive(Clone, Copy)]
pub enum Wanted<'a> {
    /// Blocks of one service. `None`: of all services.
    Service(Option<&'a str>),
    /// Blocks of all services that may have a part of this trace.
    Trace(TraceId),
    All,
}

impl Wanted<'_> {
    fn matchers(self) -> Vec<Matcher> {
        match self {
            Self::Service(Some(service)) => vec![Matcher::equal("service", service)],
            Self::Service(None) | Self::Trace(_) | Self::All => Vec::new(),
        }
    }

    const fn trace(self) -> Option<TraceId> {
        match self {
            Self::Trace(id) => Some(id),
            Self::Service(_) | Self::All => None,
        }
    }
}

/// # Errors
/// `Limit` when the blocks have more than `bytes_max` bytes. Other errors of the store.
pub async fn blocks(
    context: (&View, &Progress),
    wanted: Wanted<'_>,
    range: TimeRange,
    bytes_max: usize,
) -> Result<Read<Vec<SourceBlock>>, Error> {
    let is_wanted = |trace| wanted.trace() == Some(trace);
    let known = wanted.trace().map(|id| [id]);
    let needed = match &known {
        Some(known) => Needed::Traces { accepts: &is_wanted, only: true, known: Some(known) },
        None => Needed::All,
    };
    kept(context, (wanted, needed, range), &AtomicUsize::new(bytes_max), Summaries::Unused, &|_, _| true)
        .await
}

/// Gets a summary, or a text about a damaged summary of a chunk. Returns whether the summary replaces the blocks of the chunk.
type Summing<'a> = &'a (dyn Fn(&Labels, Result<Summed<'_>, String>) -> bool + Sync);

/// Gets the summary of a chunk, or a text about a damaged summary. Returns the rank of the chunk; `None` if it is not needed.
type Ranking<'a> = &'a (dyn Fn(&Labels, Result<SummarizedChunk<'_>, String>) -> Option<u64> + Sync);

/// How a pass uses the summaries of chunks.
#[derive(Clone, Copy)]
enum Summaries<'a> {
    Unused,
    Summed(Summing<'a>),
    /// The second function says whether a chunk with this rank and this number of segments is still needed. Chunks without a
    /// segment that has the attribute are not decoded.
    Ranked(Ranking<'a>, &'a (dyn Fn(u64, usize) -> bool + Sync), Option<Having<'a>>),
}

/// What a pass found out about summaries.
#[derive(Default)]
struct SummaryNotes {
    damaged: usize,
    first_damaged: Option<String>,
    /// Whether the answer has calls outside of the range, because their summary is for an hour that the range cuts.
    is_cut: bool,
    /// Kept summaries of hours that were used, those without the figures that the answer needs, and others that lack calls.
    used: usize,
    lacking: usize,
    partial: usize,
    /// The end of the expired calls, if the answer is from calls alone.
    expired: Option<Timestamp>,
}

impl SummaryNotes {
    fn damage(&mut self, said: String) {
        self.damaged += 1;
        self.first_damaged.get_or_insert(said);
    }

    /// Notes how a kept summary was used. `is_whole`: the answer counts all of its calls.
    fn kept(&mut self, of: SummedOf, is_used: bool, is_whole: bool) {
        match of {
            SummedOf::Hour { .. } if !is_used => self.lacking += 1,
            SummedOf::Hour { is_cut, lacks_calls } => {
                self.used += 1;
                self.is_cut |= is_cut && is_whole;
                self.partial += usize::from(lacks_calls);
            }
            SummedOf::Day { lacks_calls } => self.partial += usize::from(lacks_calls && is_used),
            SummedOf::Chunks(_) | SummedOf::HourBefore => {}
        }
    }

    /// Adds the notes of another pass over the same range, which may have found the same.
    fn merge(&mut self, other: Self) {
        if other.damaged > self.damaged {
            (self.damaged, self.first_damaged) = (other.damaged, other.first_damaged);
        }
        self.is_cut |= other.is_cut;
        self.used = self.used.max(other.used);
        self.lacking = self.lacking.max(other.lacking);
        self.partial = self.partial.max(other.partial);
        self.expired = self.expired.max(other.expired);
    }

    fn sentences(&self) -> impl Iterator<Item = String> {
        let damaged = self.first_damaged.as_ref().map(|first| {
            let summaries = if self.damaged == 1 { "summary of calls is" } else { "summaries of calls are" };
            let count = self.damaged;
            format!(
                "{count} {summaries} damaged, so the calls were read: {first}; tacho repair rewrites damaged summaries"
            )
        });
        let cut = self.is_cut.then(|| {
            "calls at the start or the end of the range have expired, and their summaries are for whole hours (UTC): the \
             answer includes all calls of these hours"
                .to_owned()
        });
        let lacking = (self.lacking > 0).then(|| {
            format!(
                "some calls have expired, and the answer lacks them: {} of their summaries of an hour do not have its figures",
                self.lacking
            )
        });
        let partial = (self.partial > 0).then(|| {
            format!(
                "some calls were unreadable or too many when they were summed up, so {} of the summaries of expired calls \
                 lack calls",
                self.partial
            )
        });
        let expired = self.expired.map(|until| {
            let until = utc(until.div_euclid(1_000_000_000));
            format!("calls before {until} have expired: only answers from summaries have their figures")
        });
        damaged.into_iter().chain(cut).chain(lacking).chain(partial).chain(expired)
    }
}

/// The limits that make an answer incomplete, and what is to be said about summaries.
#[derive(Default)]
pub struct Notes {
    incomplete: Vec<Incomplete>,
    summaries: SummaryNotes,
}

impl Notes {
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        self.incomplete.iter().map(Incomplete::to_string).chain(self.summaries.sentences())
    }
}

/// Reads the selected blocks and returns those that `keep` accepts. A block that `keep` refuses is freed before the next block
/// of its series is decoded. If `summaries` are used, they decide which chunks are read, and `needed` is ignored.
async fn kept(
    (store, progress): (&View, &Progress),
    (wanted, needed, range): (Wanted<'_>, Needed<'_>, TimeRange),
    room: &AtomicUsize,
    summaries: Summaries<'_>,
    keep: &(impl Fn(&Labels, &ExecutionBlock) -> bool + Sync),
) -> Result<Read<Vec<SourceBlock>>, Error> {
    let found = store.find(Kind::Execution, &wanted.matchers());
    progress.begin(found.len());
    let reads = found.into_iter().map(|(id, labels)| async move {
        let of_series = progress.series();
        let keep = |block: &ExecutionBlock| {
            progress.read(block.calls());
            keep(&labels, block)
        };
        let sum = |summary: Result<Summed<'_>, String>| match summaries {
            Summaries::Summed(sum) => sum(&labels, summary),
            Summaries::Unused | Summaries::Ranked(..) => false,
        };
        let rank = |chunk: Result<SummarizedChunk<'_>, String>| match summaries {
            Summaries::Ranked(rank, ..) => rank(&labels, chunk),
            Summaries::Unused | Summaries::Summed(_) => Some(u64::MAX),
        };
        let needed = match summaries {
            Summaries::Unused => needed,
            Summaries::Summed(_) => Needed::Unsummarized(&sum),
            Summaries::Ranked(_, is_needed, having) => Needed::Ranked { rank: &rank, is_needed, having },
        };
        let steps = |done, all| of_series.reached(done, all);
        let blocks = store.executions_of(id, range, room, (needed, &steps), keep).await?;
        of_series.finish();
        Ok::<_, Error>((labels, blocks))
    });
    let mut reads = stream::iter(reads).buffered(READS_AT_ONCE);
    let mut all = Read { records: Vec::new(), damages: store.lacks(Kind::Execution) };
    while let Some((labels, read)) = reads.try_next().await? {
        let block = |block| SourceBlock { labels: labels.clone(), block };
        all.records.extend(read.records.into_iter().map(block));
        all.damages.extend(read.damages);
    }
    Ok(all)
}

struct Cache {
    scope: Scope,
    blocks: Vec<SourceBlock>,
}

/// Computes an answer block by block. A pass over a service or over all series keeps its blocks in memory if they take at most
/// `cache_bytes_max` bytes together. A later pass over the same blocks, or over some of them, uses the kept blocks, and gets no
/// summaries. All other passes read the range from the store. The answer may be incomplete, because the memory of an analysis is
/// bounded.
pub async fn folded<F: Fold + Send>(
    (store, progress): (&View, &Progress),
    (service, range): (Option<&str>, TimeRange),
    cache_bytes_max: usize,
    mut fold: F,
) -> Result<(Read<F::Answer>, Notes), Error> {
    // Each pass may find the same damaged summaries.
    let mut summaries = SummaryNotes::default();
    let mut cache: Option<Cache> = None;
    let mut damages = Damages::default();
    let mut scanned = None;
    while let Some(scope) = fold.pass() {
        if let Some(cache) = cache.as_ref().filter(|cache| cache.scope == scope || cache.scope == Scope::All)
        {
            for SourceBlock { labels, block } in &cache.blocks {
                fold.add(labels, block);
                tokio::task::yield_now().await;
            }
            continue;
        }
        if scanned.is_some() {
            fold.reread();
        }
        // Keeps no blocks if an earlier pass over this scope could not keep them, or if the scope selects only some blocks.
        let is_tried = scanned == Some(scope) || scope.is_part();
        let room = AtomicUsize::new(if is_tried { 0 } else { cache_bytes_max });
        store.begin_pass();
        if !fold.takes_summaries() && scanned.is_none() {
            let wanted = if scope == Scope::Service { Wanted::Service(service) } else { Wanted::All };
            let series: Vec<SeriesId> =
                store.find(Kind::Execution, &wanted.matchers()).into_iter().map(|(id, _)| id).collect();
            summaries.expired = store.summed_until(&series, range.start);
        }
        if !fold.takes_summaries() && !scope.is_part() {
            // The fold begins again without summaries, because there are too many calls.
            summaries.lacking = summaries.lacking.max(summaries.used);
        }
        let mut notes = SummaryNotes::default();
        let read = pass((store, progress), (service, range), (scope, &room), &mut fold, &mut notes).await?;
        summaries.merge(notes);
        // A pass that reads only some of the blocks may find less damage.
        if scanned.is_none() || scope == Scope::All {
            damages = read.damages;
        }
        if !scope.is_part() {
            cache = read.records.map(|blocks| Cache { scope, blocks });
            scanned = Some(scope);
        }
    }
    let notes = Notes { incomplete: fold.incomplete(), summaries };
    Ok((Read { records: fold.finish(), damages }, notes))
}

/// A pass over several series, which are read concurrently. One task reads them, so no thread waits for the locks.
struct Passing<'a, F> {
    fold: Mutex<&'a mut F>,
    notes: Mutex<&'a mut SummaryNotes>,
    /// The bytes of blocks that may be kept.
    room: &'a AtomicUsize,
    /// Whether all blocks were kept, and no chunk was skipped because of its rank or its attributes.
    all_fit: AtomicBool,
}

impl<'a, F: Fold + Send> Passing<'a, F> {
    fn fold(&self) -> MutexGuard<'_, &'a mut F> {
        self.fold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> MutexGuard<'_, &'a mut SummaryNotes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fits(&self, fits: bool) -> bool {
        self.all_fit.fetch_and(fits, Ordering::Relaxed);
        fits
    }

    fn keep(&self, labels: &Labels, block: &ExecutionBlock) -> bool {
        self.fold().add(labels, block);
        let bytes = block.memory_bytes();
        let left = |left: usize| left.checked_sub(bytes).filter(|_| self.all_fit.load(Ordering::Relaxed));
        self.fits(self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok())
    }

    fn sum(&self, labels: &Labels, summary: Result<Summed<'_>, String>) -> bool {
        match summary {
            Ok(Summed { summary, of }) => {
                let mut fold = self.fold();
                let is_whole = fold.counts_whole_summaries();
                if of == SummedOf::HourBefore && is_whole {
                    return true;
                }
                let is_used = fold.add_summary(labels, summary, of.is_only());
                drop(fold);
                self.notes().kept(of, is_used, is_whole);
                is_used
            }
            Err(said) => {
                self.notes().damage(said);
                false
            }
        }
    }

    fn rank(&self, labels: &Labels, chunk: Result<SummarizedChunk<'_>, String>) -> Option<u64> {
        match chunk {
            Ok(chunk) => {
                let rank = self.fold().rank(labels, chunk);
                self.fits(rank.is_some());
                rank
            }
            Err(said) => {
                self.notes().damage(said);
                Some(u64::MAX)
            }
        }
    }

    fn is_needed(&self, rank: u64, segments: usize) -> bool {
        self.fits(self.fold().needs_rank(rank, segments))
    }

    fn examined(&self, segments: usize) {
        self.fits(false);
        self.fold().examined(segments);
    }
}

/// Reads the blocks of a scope and adds them to `fold`. Does not read a chunk whose summary is enough for `fold`, or shows that
/// `fold` does not need the chunk. Returns the blocks if `room` is enough for all, and no chunk was skipped because of its rank
/// or its attributes.
async fn pass(
    context: (&View, &Progress),
    (service, range): (Option<&str>, TimeRange),
    (scope, room): (Scope, &AtomicUsize),
    fold: &mut (impl Fold + Send),
    notes: &mut SummaryNotes,
) -> Result<Read<Option<Vec<SourceBlock>>>, Error> {
    let wanted = match scope {
        Scope::Service => Wanted::Service(service),
        Scope::Traces | Scope::Attribute(_) | Scope::All => Wanted::All,
    };
    let (mut traces, value) =
        (if scope == Scope::Traces { fold.wanted() } else { None }, fold.wanted_value());
    traces.iter_mut().for_each(|traces| traces.sort_unstable());
    let (test, only) = (fold.first_test(), fold.takes_traces_alone());
    let (is_summed, is_ranked) = (fold.takes_summaries(), fold.ranks_chunks());
    let all_fit = AtomicBool::new(true);
    let passing = Passing { fold: Mutex::new(fold), notes: Mutex::new(notes), room, all_fit };
    // The sorted traces are searched without the lock.
    let may_want =
        |trace| traces.as_ref().is_none_or(|traces: &Vec<TraceId>| traces.binary_search(&trace).is_ok());
    let wants = |trace| may_want(trace) && passing.fold().wants(trace);
    let is_value = |value: &AttributeData| passing.fold().wants_value(value);
    let value = value.map(|value| vec![value]);
    let needed = match scope {
        Scope::Traces => Needed::Traces { accepts: &wants, only, known: traces.as_deref() },
        Scope::Attribute(key) => Needed::Attribute { key, accepts: &is_value, known: value.as_deref() },
        Scope::Service | Scope::All => Needed::All,
    };
    let sum = |labels: &Labels, summary: Result<Summed<'_>, String>| passing.sum(labels, summary);
    let rank = |labels: &Labels, chunk: Result<SummarizedChunk<'_>, String>| passing.rank(labels, chunk);
    let is_needed = |rank, segments| passing.is_needed(rank, segments);
    let examined = |segments| passing.examined(segments);
    let passes = |value: &AttributeData| test.as_ref().is_some_and(|test| test.accepts(value));
    let having = test.as_ref().map(|test| Having { key: test.key(), accepts: &passes, examined: &examined });
    let summaries = match (is_summed, is_ranked) {
        (true, _) => Summaries::Summed(&sum),
        (false, true) => Summaries::Ranked(&rank, &is_needed, having),
        (false, false) => Summaries::Unused,
    };
    let keep = |labels: &Labels, block: &ExecutionBlock| passing.keep(labels, block);
    let room = AtomicUsize::new(usize::MAX);
    let Read { records, damages } = kept(context, (wanted, needed, range), &room, summaries, &keep).await?;
    let records = passing.all_fit.into_inner().then_some(records);
    Ok(Read { records, damages })
}

pub fn unreadable(error: Error, bytes_max: usize) -> ApiError {
    if error.kind() == ErrorKind::Limit {
        let message = format!("executions in this range take over {bytes_max} bytes: narrow start and end");
        return ApiError::execution(message);
    }
    error.into()
}

/// The ranges in which a trace of unknown time is searched, one after the other: the last hour, the last day, all of time.
pub fn widening(now: Timestamp) -> Vec<TimeRange> {
    let back = |hours: i64| TimeRange::new(now.saturating_sub(hours * HOUR_NS), i64::MAX);
    vec![back(1), back(24), TimeRange::ALL]
}

/// The range to read again if `found` begins less than an hour after the start of `range`, because parts of the trace may be
/// before `range`.
pub fn around(found: &Trace, range: TimeRange) -> Option<TimeRange> {
    let start = found.start.saturating_sub(HOUR_NS);
    (start < range.start).then(|| TimeRange::new(start, range.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_blocks_is_a_share_of_the_usable_memory() {
        for (usable, expect) in [
            (None, BLOCK_BYTES_MAX),
            (Some(64 << 30), BLOCK_BYTES_MAX),
            (Some(4 << 30), 256 << 20),
            (Some(256 << 20), LIGHT_BLOCK_BYTES_MAX),
        ] {
            assert_eq!(block_bytes_max(usable), expect, "{usable:?}");
        }
    }
}
