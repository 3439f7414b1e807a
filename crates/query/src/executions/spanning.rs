//! Which calls that span several parts of their segment does a search find? Attributes, name and exit of such a call may be in
//! different parts. The search notes the call when it finds the first wanted attribute, and then reads all parts of the call.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tacho_chunk::{RowRef, Visit};
use tacho_model::{Operation, Timestamp, TraceId};

use super::found::Match;
use super::limits::Incomplete;
use super::source::Outcome;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CallKey {
    trace: TraceId,
    /// Span base of the segment.
    base: u64,
    /// Number of the call in its segment.
    call: u32,
}

/// What the parts that were read say about a call.
struct Facts {
    service: Arc<str>,
    /// From the latest part.
    operation: Operation,
    /// Number of the latest part.
    part: u32,
    start: Timestamp,
    /// Exit of the call, and whether it failed.
    exit: Option<(Timestamp, bool)>,
    /// The last event of the segment while the call was open.
    last: Timestamp,
    /// The tests that the attributes of the call pass.
    passed: u64,
}

pub(super) struct Spanning {
    calls: HashMap<CallKey, Option<Facts>>,
    traces: HashSet<TraceId>,
    max: usize,
    /// Number of parts of calls that were not noted because of `max`.
    omitted: u64,
}

impl Spanning {
    pub(super) fn new(max: usize) -> Self {
        Self { calls: HashMap::new(), traces: HashSet::new(), max, omitted: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn note(&mut self, row: RowRef<'_>, call: u32) {
        let key = CallKey { trace: row.trace(), base: row.base(), call };
        if self.calls.len() < self.max {
            self.traces.insert(key.trace);
            self.calls.entry(key).or_default();
        } else if !self.calls.contains_key(&key) {
            self.omitted += 1;
        }
    }

    pub(super) fn wants(&self, trace: TraceId) -> bool {
        self.traces.contains(&trace)
    }

    pub(super) fn traces(&self) -> impl Iterator<Item = TraceId> {
        self.traces.iter().copied()
    }

    /// Adds what a row says about a call, if the call was noted.
    pub(super) fn add(
        &mut self,
        row: RowRef<'_>,
        visit: &Visit<'_>,
        passed: impl FnOnce(u32) -> u64,
        (service, operation): (&Arc<str>, &Operation),
    ) {
        let call = row.call_number(visit.position);
        let key = CallKey { trace: row.trace(), base: row.base(), call };
        let Some(known) = self.calls.get_mut(&key) else { return };
        let mut found = Facts {
            service: Arc::clone(service),
            operation: operation.clone(),
            part: row.part(),
            start: visit.start,
            exit: visit.end.map(|end| (end, visit.call.failed)),
            last: row.range().end,
            passed: passed(call),
        };
        if let Some(known) = known.take() {
            found.passed |= known.passed;
            found.start = found.start.min(known.start);
            found.last = found.last.max(known.last);
            found.exit = found.exit.or(known.exit);
            if known.part > found.part {
                found = Facts { operation: known.operation, part: known.part, ..found };
            }
        }
        *known = Some(found);
    }

    /// The calls that were found, with their trace and the tests that they pass.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (TraceId, Match, u64)> {
        self.traces.clear();
        std::mem::take(&mut self.calls).into_iter().filter_map(|(key, facts)| {
            let Facts {
                service,
                operation: Operation { kind, name: operation },
                start,
                exit,
                last,
                passed,
                ..
            } = facts?;
            let outcome = exit.map_or(Outcome::Running, |(_, failed)| Outcome::of_exit(failed));
            let end = exit.map_or(last, |(end, _)| end);
            let duration_ns = end.wrapping_sub(start).cast_unsigned();
            Some((key.trace, Match { service, operation, kind, start, duration_ns, outcome }, passed))
        })
    }

    pub(super) fn incomplete(&self) -> Option<Incomplete> {
        let Self { omitted, max, .. } = *self;
        (omitted > 0).then_some(Incomplete::Spanning { omitted, limit: max })
    }
}
