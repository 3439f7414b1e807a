//! Which call caused this segment, and for how long did a recorded server work for this HTTP client call?
//!
//! The first pass (*gather*) collects the segments with a parent. Each holds the span id of its cause. The inverse of `mix64`
//! turns a span id into the span base of a segment plus the number of a call. The second pass (*resolve*) finds the rows that
//! entered these calls.

use tacho_chunk::{Call, RowRef};
use tacho_model::{OperationKind, SpanId, TraceId, unmix64};

use super::calls::Visit;
use super::fold::Rounds;
use super::limits::{Incomplete, Limits};
use super::source::Source;

/// A row of a segment with a parent. This type has only 24 bytes, because an analysis may hold millions of rows.
#[derive(Clone, Copy)]
struct Cause {
    /// Span base plus call number of the causing call.
    counter: u64,
    /// Total duration of the outermost calls of kind http-server that end in the row, ns.
    served_ns: u64,
    trace: TraceTag,
    /// Number of the causing call's operation, or [`UNKNOWN`].
    caller: u32,
}

const UNKNOWN: u32 = u32::MAX;

/// The lowest 32 bits of a trace's hash; [`Rounds`] uses at most eight of them. The tag distinguishes traces with the same span
/// id, which are rare because span ids are random.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TraceTag(u32);

impl TraceTag {
    const fn of(trace: TraceId) -> Self {
        Self(trace.hash64() as u32)
    }
}

/// The rows of one round whose segments have a parent; after [`Causes::sort`], sorted by their causes.
pub(super) struct Causes {
    all: Vec<Cause>,
    pub(super) rounds: Rounds,
    /// Whether a row was collected, in any round.
    pub(super) is_used: bool,
    max: usize,
    max_of_round: usize,
    /// Number of rows that count as if their segments had no parent, because a limit was reached.
    omitted: u64,
}

impl Causes {
    pub(super) fn new(limits: &Limits) -> Self {
        let (max, max_of_round) = (limits.causes, limits.causes_of_round);
        Self { all: vec![], rounds: Rounds::default(), is_used: false, max, max_of_round, omitted: 0 }
    }

    pub(super) fn incomplete(&self) -> Option<Incomplete> {
        let Self { omitted, max_of_round: limit, .. } = *self;
        (omitted > 0).then_some(Incomplete::Causes { omitted, limit })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Starts the next round. Returns whether there is one.
    pub(super) fn next_round(&mut self) -> bool {
        self.all.clear();
        self.rounds.next()
    }

    /// Collects the rows of the round whose segments have a parent. `served`: only rows in which an outermost http-server call
    /// ends. Only rows that `takes` accepts.
    pub(super) fn gather(&mut self, source: Source<'_>, served: bool, takes: impl Fn(RowRef<'_>) -> bool) {
        for row in source.block.rows().filter(|row| takes(*row)) {
            let Some(parent) = row.parent().filter(|_| self.rounds.takes(row.trace())) else { continue };
            let served_ns = served_ns(source, row);
            if served_ns > 0 || !served {
                let (counter, trace) = (unmix64(parent.0), TraceTag::of(row.trace()));
                self.push(row.trace(), Cause { counter, served_ns, trace, caller: UNKNOWN });
            }
        }
    }

    fn push(&mut self, trace: TraceId, cause: Cause) {
        self.is_used = true;
        while self.all.len() >= self.max && self.rounds.split() {
            let rounds = self.rounds;
            self.all.retain(|cause| rounds.takes_hash(u64::from(cause.trace.0)));
        }
        // A round that cannot be split may keep more than `max` rows, at most `max_of_round`.
        match self.rounds.takes(trace) {
            true if self.all.len() < self.max_of_round => self.all.push(cause),
            is_taken => self.omitted += u64::from(is_taken),
        }
    }

    /// Must be called after the last call of `gather`, and before `resolve`, `caller` and `served`.
    pub(super) fn sort(&mut self) {
        self.all.sort_unstable_by_key(|cause| (cause.counter, cause.trace));
    }

    /// Finds the causes that are calls of this block. `numbers` has a number for each operation of the block.
    pub(super) fn resolve(&mut self, source: Source<'_>, numbers: &[u32]) {
        for row in source.block.rows().filter(|row| self.rounds.takes(row.trace())) {
            let Some(first) = row.base().checked_add(u64::from(row.first_call())) else { continue };
            let entered = row.entered();
            let trace = TraceTag::of(row.trace());
            let after = self.all.partition_point(|cause| cause.counter < first);
            for cause in self.all.iter_mut().skip(after) {
                let call = usize::try_from(cause.counter - first).ok().and_then(|at| entered.get(at));
                let Some(call) = call else { break };
                if cause.trace == trace {
                    cause.caller = numbers[call.operation as usize];
                }
            }
        }
    }

    fn of(&self, trace: TraceId, counter: u64) -> impl Iterator<Item = &Cause> {
        let trace = TraceTag::of(trace);
        let at = self.all.partition_point(|cause| (cause.counter, cause.trace) < (counter, trace));
        self.all.iter().skip(at).take_while(move |cause| (cause.counter, cause.trace) == (counter, trace))
    }

    /// Number of the operation of the call with this span id, if the call is known. Span ids of other tracers are not found;
    /// a segment with such a parent counts as a segment without a cause.
    pub(super) fn caller(&self, trace: TraceId, span: SpanId) -> Option<u32> {
        self.of(trace, unmix64(span.0)).next().map(|cause| cause.caller).filter(|caller| *caller != UNKNOWN)
    }

    /// The part of a call's self time during which a recorded server worked, ns. 0 unless the call is an ended HTTP client call.
    pub(super) fn served(&self, source: Source<'_>, row: RowRef<'_>, visit: &Visit<'_>) -> u64 {
        let kind = source.block.operations()[visit.call.operation as usize].kind;
        let (OperationKind::HttpClient, Some(duration), false) =
            (kind, visit.duration(), self.all.is_empty())
        else {
            return 0;
        };
        let counter = row.base().wrapping_add(u64::from(row.call_number(visit.position)));
        let served = self.of(row.trace(), counter).fold(0u64, |sum, c| sum.saturating_add(c.served_ns));
        // The row has only a part of the self time of a call that it carries, so the duration is the limit for such a call.
        served.min(if visit.call.enter.is_some() { visit.self_ns } else { duration })
    }
}

/// Total duration of the outermost calls of kind http-server that end in the row, ns.
fn served_ns(source: Source<'_>, row: RowRef<'_>) -> u64 {
    let operations = source.block.operations();
    let is_server = |call: &&Call| operations[call.operation as usize].kind == OperationKind::HttpServer;
    let outermost = row.shape().calls().iter().enumerate().filter(|(_, call)| call.parent.is_none());
    let ended = outermost.filter(|(_, call)| is_server(call));
    let duration = |(position, call): (usize, &Call)| {
        let exit = call.exit? as usize;
        let (first, age) = match call.enter {
            Some(enter) => (enter as usize + 1, 0),
            None => (0, *row.ages().get(position)?),
        };
        let passed = row.deltas().get(first..=exit)?;
        Some(passed.iter().fold(age, |sum, delta| sum.saturating_add(*delta)))
    };
    ended.filter_map(duration).fold(0, u64::saturating_add)
}
