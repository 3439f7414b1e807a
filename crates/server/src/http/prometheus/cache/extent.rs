//! Finds the kept results of a query (an extent) that are still correct: a new computation would give the same results.
//!
//! ```text
//!   extent     ├──────────────────────────┤
//!   asked           ├──────────────────────────────┤
//!   changed                          ▒▒▒              samples, since the extent was computed
//!   usable          ├────────────────┤                steps that do not reach a changed sample, from one end of the question
//!   missing                           ├────────────┤  computed now
//! ```

use std::sync::Arc;

use tacho_model::{Labels, TimeRange, Timestamp};
use tacho_query::promql::{Grid, Point, Reach, Series};
use tacho_store::{Change, Changes};

/// Consecutive steps, both ends included. Unlike a [`Grid`], `Steps` has the time of its last step, so that it can be
/// intersected with others. `step` is positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    pub first: Timestamp,
    pub last: Timestamp,
    pub step: i64,
}

impl Steps {
    /// The steps from `start` to at most `end`. `None` if their times overflow.
    pub fn of(start: Timestamp, end: Timestamp, step: i64) -> Option<Self> {
        let span = end.checked_sub(start)?;
        Some(Self { first: start, last: start + span - span.rem_euclid(step), step })
    }

    pub fn count(&self) -> usize {
        usize::try_from(Grid::count_between(self.first, self.last, self.step)).unwrap_or(usize::MAX)
    }
}

pub struct Extent {
    pub steps: Steps,
    /// In the order of their labels.
    pub series: Vec<Series>,
    /// The number of the last change of the store before the samples of the results were read.
    pub change: u64,
    /// Each rule of retention masks the records before its edge. For each rule, the earliest and the latest edge while the
    /// results were computed.
    pub expired: Vec<(Timestamp, Timestamp)>,
    pub reach: Reach,
}

#[derive(Debug, PartialEq)]
pub struct Usable {
    pub steps: Steps,
    /// The other steps of the question, all before or all after the usable steps.
    pub missing: Option<Steps>,
}

impl Extent {
    /// The longest sequence of asked steps that begins at the first or ends at the last asked step, and has known results that
    /// are still correct.
    pub fn usable(&self, asked: &Steps, changes: &Changes, expired: &[Timestamp]) -> Option<Usable> {
        let step = asked.step;
        let (first, last) = (asked.first.max(self.steps.first), asked.last.min(self.steps.last));
        if first > last {
            return None;
        }
        let kind = if self.reach.uses_summaries { Change::Chunks } else { Change::Samples };
        let (mut from_start, mut to_end) = (Some(last), Some(first));
        for TimeRange { start, end } in self.changed(TimeRange::new(first, last), (changes, kind), expired)? {
            // The results of the steps from `low` to before `high` depend on a changed time.
            let low = start.saturating_sub(self.reach.after).max(first);
            let high = end.saturating_add(self.reach.before);
            if low >= high || low > last {
                continue;
            }
            let before = low.saturating_sub(1 + (low - 1 - first).rem_euclid(step));
            from_start = from_start.map(|until| until.min(before)).filter(|until| *until >= first);
            let after = high.saturating_add((first.checked_sub(high)?).rem_euclid(step));
            to_end = to_end.map(|from| from.max(after)).filter(|from| *from <= last);
        }
        let front =
            from_start.filter(|_| first == asked.first).map(|until| Steps { first, last: until, step });
        let back = to_end.filter(|_| last == asked.last).map(|from| Steps { first: from, last, step });
        let steps = [front, back].into_iter().flatten().max_by_key(Steps::count)?;
        let missing = if steps == *asked {
            None
        } else if steps.first == asked.first {
            Some(Steps { first: steps.last + step, ..*asked })
        } else {
            Some(Steps { last: steps.first - step, ..*asked })
        };
        Some(Usable { steps, missing })
    }

    /// All steps of the question, if the limit on samples certainly still permits them. Samples between the windows of two
    /// steps also count toward this limit, and their number is estimated from the chunks. So kept results are used only if
    /// nothing in the range has changed, and they are not combined with newly computed results.
    pub fn usable_whole(&self, asked: &Steps, changes: &Changes, expired: &[Timestamp]) -> Option<Usable> {
        let is_within = asked.first >= self.steps.first && asked.last <= self.steps.last;
        let range = TimeRange::new(asked.first, asked.last);
        let changed = self.changed(range, (changes, Change::Counts), expired)?;
        (is_within && changed.is_empty()).then_some(Usable { steps: *asked, missing: None })
    }

    /// The times on which the results at `steps` depend, and at which samples have changed since this extent was computed.
    /// `None` if they are unknown.
    fn changed(
        &self,
        steps: TimeRange,
        (changes, kind): (&Changes, Change),
        expired: &[Timestamp],
    ) -> Option<Vec<TimeRange>> {
        let Reach { before, after, .. } = self.reach;
        let start = steps.start.checked_sub(before)?.checked_add(1)?;
        let reached = TimeRange::new(start, steps.end.checked_add(after)?);
        let mut changed = changes.since(self.change, reached, kind);
        if self.expired.len() != expired.len() {
            return None;
        }
        // Retention masks samples before its edge. The edge moves with the clock, usually forwards.
        for ((least, latest), now) in self.expired.iter().zip(expired) {
            let moved = TimeRange::new(*least.min(now), (*latest.max(now)).saturating_sub(1));
            let affected = changes.affected(moved);
            if !moved.is_empty() && affected.overlaps(&reached) {
                changed.push(affected);
            }
        }
        Some(changed)
    }

    pub fn cut(&self, steps: &Steps) -> Vec<Series> {
        let cut = |series: &Series| {
            let from = series.points.partition_point(|point| point.at < steps.first);
            let to = series.points.partition_point(|point| point.at <= steps.last);
            let points = series.points.get(from..to).filter(|points| !points.is_empty())?;
            Some(Series { labels: series.labels.clone(), points: points.to_vec() })
        };
        self.series.iter().filter_map(cut).collect()
    }
}

pub fn bytes(series: &[Series]) -> usize {
    let labels = |labels: &Arc<Labels>| 2 * labels.canonical_bytes() + 64;
    let of_one = |series: &Series| {
        size_of::<Series>() + labels(&series.labels) + series.points.capacity() * size_of::<Point>()
    };
    series.iter().map(of_one).sum()
}

/// Joins the results of earlier and of later steps. Both are in the order of their labels.
pub fn joined(earlier: Vec<Series>, later: Vec<Series>) -> Vec<Series> {
    let mut all = Vec::with_capacity(earlier.len().max(later.len()));
    let mut later = later.into_iter().peekable();
    for mut series in earlier {
        while let Some(other) = later.next_if(|other| other.labels < series.labels) {
            all.push(other);
        }
        if let Some(other) = later.next_if(|other| other.labels == series.labels) {
            series.points.extend(other.points);
        }
        all.push(series);
    }
    all.extend(later);
    all
}
