//! Which statuses do the calls of a chunk have, and how long did these calls take? A search for a status orders chunks by these
//! durations, and does not read chunks without the status.

use std::collections::BTreeMap;

use super::columns::{Taker, Writer};
use crate::bytes::{unzigzag, zigzag};
use crate::execution::{RowRef, Visit, is_refused};
use crate::limits::SUMMARY_STATUSES_MAX;
use crate::{CallSummary, Error};

/// The durations of the calls with one status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusDurations {
    /// Value of the attribute `http.status`.
    pub status: i64,
    /// Shortest and longest duration of the calls that end in the row with their status. If a call is open at the end of that
    /// row, its duration is not known, and these are 0 and `u64::MAX`.
    pub min_ns: u64,
    pub max_ns: u64,
}

impl CallSummary {
    /// Bounds of the durations of the calls with a status that `is_wanted` accepts, as far as they are known. `None` if the chunk
    /// has no such call.
    pub fn durations_of_statuses(&self, is_wanted: impl Fn(i64) -> bool) -> Option<(u64, u64)> {
        let Some(statuses) = &self.statuses else { return Some((0, u64::MAX)) };
        let wanted = statuses.iter().filter(|of_status| is_wanted(of_status.status));
        wanted
            .map(|of_status| (of_status.min_ns, of_status.max_ns))
            .reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
    }
}

/// Gathers the statuses of a block row by row.
#[derive(Default)]
pub(super) struct Statuses {
    /// One more than the limit at most.
    bounds: BTreeMap<i64, (u64, u64)>,
    /// Whether a summary without statuses was added.
    is_unknown: bool,
    /// Position and status of the calls of the current row, ascending.
    of_row: Vec<(usize, i64)>,
}

impl Statuses {
    /// Begins with the calls of a row.
    pub(super) fn prepare(&mut self, row: RowRef<'_>) {
        self.of_row.clear();
        self.of_row.extend(row.positioned_statuses());
        self.of_row.sort_unstable();
    }

    pub(super) fn add(&mut self, visit: &Visit<'_>) {
        let first = self.of_row.partition_point(|(position, _)| *position < visit.position);
        let own = self.of_row.iter().skip(first).take_while(|(position, _)| *position == visit.position);
        for (_, status) in own {
            let (min, max) = visit.duration().map_or((0, u64::MAX), |duration| (duration, duration));
            widen(&mut self.bounds, *status, (min, max));
        }
    }

    /// Adds the statuses of another summary; `None` if it has none.
    pub(super) fn merge(&mut self, statuses: Option<&[StatusDurations]>) {
        self.is_unknown |= statuses.is_none();
        for StatusDurations { status, min_ns, max_ns } in statuses.into_iter().flatten() {
            widen(&mut self.bounds, *status, (*min_ns, *max_ns));
        }
    }

    /// Positions of the refused calls of the row ([`is_refused`]).
    pub(super) fn refused(&self) -> impl Iterator<Item = usize> {
        self.of_row.iter().filter(|(_, status)| is_refused(*status)).map(|(position, _)| *position)
    }

    /// Ascending by status. `None` if there are too many, or if those of a summary are not known.
    pub(super) fn finish(self) -> Option<Vec<StatusDurations>> {
        let durations = |(status, (min_ns, max_ns))| StatusDurations { status, min_ns, max_ns };
        let is_known = !self.is_unknown && self.bounds.len() <= SUMMARY_STATUSES_MAX;
        is_known.then(|| self.bounds.into_iter().map(durations).collect())
    }
}

/// Widens the bounds of a status. Adds no further status above the limit.
fn widen(bounds: &mut BTreeMap<i64, (u64, u64)>, status: i64, (min, max): (u64, u64)) {
    if bounds.len() <= SUMMARY_STATUSES_MAX || bounds.contains_key(&status) {
        let bounds = bounds.entry(status).or_insert((min, max));
        *bounds = (bounds.0.min(min), bounds.1.max(max));
    }
}

pub(super) fn put(writer: &mut Writer<'_>, statuses: &[StatusDurations]) {
    writer.column(statuses.iter().map(|of_status| zigzag(of_status.status)));
    writer.column(statuses.iter().map(|of_status| of_status.min_ns));
    writer.column(statuses.iter().map(|of_status| of_status.max_ns));
}

pub(super) fn take(taker: &mut Taker<'_>, count: usize) -> Result<Vec<StatusDurations>, Error> {
    let statuses = taker.column("status", count)?;
    let shortest = taker.column("shortest duration of a status", count)?;
    let longest = taker.column("longest duration of a status", count)?;
    let durations = |((status, min_ns), max_ns)| StatusDurations { status: unzigzag(status), min_ns, max_ns };
    let all: Vec<_> = statuses.into_iter().zip(shortest).zip(longest).map(durations).collect();
    if !all.is_sorted_by(|a, b| a.status < b.status) {
        return Err(Error::SummaryDisordered { what: "statuses" });
    }
    match all.iter().find(|of_status| of_status.min_ns > of_status.max_ns) {
        Some(wrong) => {
            let what = "shortest duration of a status";
            Err(Error::Limit { what, value: wrong.min_ns, max: wrong.max_ns })
        }
        None => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use tacho_model::{Attribute, AttributeValue, Event, EventKind, Operation, OperationKind, Segment};

    use super::*;
    use crate::ExecutionBlock;
    use crate::execution::HTTP_STATUS;
    use crate::summary::one_call;

    /// The segment with a status on its first call.
    fn with_status(segment: Segment, status: i64) -> Segment {
        let value = AttributeValue::Integer(status);
        Segment { attributes: vec![Attribute { call: 0, key: HTTP_STATUS.into(), value }], ..segment }
    }

    fn statuses(segments: &[Segment]) -> Option<Vec<(i64, u64, u64)>> {
        let mut block = ExecutionBlock::new();
        let operation = Operation { kind: OperationKind::HttpServer, name: "GET".into() };
        segments.iter().for_each(|segment| block.push(segment, std::slice::from_ref(&operation)));
        let statuses = CallSummary::of(&block).unwrap().statuses?;
        Some(statuses.iter().map(|of| (of.status, of.min_ns, of.max_ns)).collect())
    }

    #[test]
    fn durations_are_bounded_by_status() {
        let call = |number, duration, status| with_status(one_call(number, duration), status);
        let calls = [call(1, 70, 200), call(2, 30, 503), call(3, 90, 200), one_call(4, 500)];
        assert_eq!(statuses(&calls), Some(vec![(200, 70, 90), (503, 30, 30)]));
    }

    #[test]
    fn a_call_that_is_open_after_its_status_has_no_bounds() {
        let mut open = one_call(1, 70);
        open.events = vec![Event { kind: EventKind::Enter(0), ..open.events[0] }];
        let ended = with_status(one_call(2, 30), 503);
        assert_eq!(statuses(&[with_status(open, 503), ended]), Some(vec![(503, 0, u64::MAX)]));
    }

    #[test]
    fn too_many_statuses_have_no_bounds() {
        let calls = |count: usize| -> Vec<Segment> {
            (0..count as u64).map(|n| with_status(one_call(n, n), n.cast_signed())).collect()
        };
        let most = statuses(&calls(SUMMARY_STATUSES_MAX)).unwrap();
        assert_eq!((most.len(), most[63]), (64, (63, 63, 63)));
        assert_eq!(statuses(&calls(SUMMARY_STATUSES_MAX + 1)), None);
    }
}
