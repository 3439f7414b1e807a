//! How long did the calls of each point take? For chunks with many calls per minute, a summary has the sum of their durations,
//! and their number by bound. So PromQL answers questions about durations without reading the calls.

use super::columns::{Taker, Writer, stated, sum};
use super::{Cell, Point, PointDurations};
use crate::limits::SUMMARY_POINTS_MAX;
use crate::{Error, ExecutionBlock};

/// Upper bounds of the buckets of `call_duration_seconds`, ns. The last bucket has no bound. Part of the format.
pub const DURATION_BOUNDS_NS: [u64; 17] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    60_000_000_000,
];
const BUCKETS: usize = DURATION_BOUNDS_NS.len() + 1;

/// A block with fewer calls per minute and operation has no durations of points. At 64 calls, they take up to 0.2 bytes per call.
const CALLS_PER_MINUTE: usize = 64;

/// The first bucket whose bound a duration does not exceed.
pub fn duration_bucket(duration_ns: u64) -> usize {
    DURATION_BOUNDS_NS.partition_point(|bound| *bound < duration_ns)
}

/// The durations of a block, while its calls are counted. A table of all minutes and cells is fast to fill. It is small, because
/// there are many calls per minute and operation.
pub(super) struct Minutes {
    cells: usize,
    /// For each minute and cell: the sum of the durations, and the number of calls in each bucket.
    figures: Vec<[u64; 1 + BUCKETS]>,
}

impl Minutes {
    /// Whether a block with calls of this many minutes has enough calls.
    pub(super) fn are_worth_it(block: &ExecutionBlock, minutes: usize) -> bool {
        let points = minutes.saturating_mul(block.operations().len());
        points.saturating_mul(CALLS_PER_MINUTE) <= block.calls()
    }

    pub(super) fn new(minutes: usize, cells: usize) -> Self {
        Self { cells, figures: vec![[0; 1 + BUCKETS]; minutes.saturating_mul(cells)] }
    }

    const fn place(&self, minute: usize, cell: usize) -> usize {
        minute.saturating_mul(self.cells).saturating_add(cell)
    }

    /// Counts a call of a minute since the first one.
    pub(super) fn add(&mut self, minute: usize, cell: usize, duration_ns: u64) {
        let place = self.place(minute, cell);
        let Some(figures) = self.figures.get_mut(place) else { return };
        let [total, counts @ ..] = figures;
        *total = total.saturating_add(duration_ns);
        counts.get_mut(duration_bucket(duration_ns)).into_iter().for_each(|count| *count += 1);
    }

    /// The durations of a minute since the first one.
    pub(super) fn of(&self, minute: usize, cell: usize) -> PointDurations {
        let [total_ns, counts @ ..] =
            self.figures.get(self.place(minute, cell)).copied().unwrap_or([0; 1 + BUCKETS]);
        let counts = (0u8..).zip(counts).filter(|(_, count)| *count > 0).collect();
        PointDurations { total_ns, counts }
    }
}

pub(super) fn count(durations: &[PointDurations]) -> usize {
    durations.iter().map(|of| of.counts.len()).sum()
}

pub(super) fn put(writer: &mut Writer<'_>, durations: &[PointDurations]) {
    writer.column(durations.iter().map(|of| of.total_ns));
    writer.column(durations.iter().map(|of| of.counts.len() as u64));
    let counts = || durations.iter().flat_map(|of| &of.counts);
    writer.column(counts().map(|(bucket, _)| (*bucket).into()));
    writer.column(counts().map(|(_, count)| *count));
}

/// Reads the durations of points, and checks them against the points and the cells.
pub(super) fn take(
    taker: &mut Taker<'_>,
    count: usize,
    points: &[Point],
    cells: &[Cell],
) -> Result<Vec<PointDurations>, Error> {
    let totals = taker.column("sum of durations of a point", points.len())?;
    let lengths = taker.within("number of buckets of a point", points.len(), BUCKETS as u64)?;
    let buckets = taker.within("bucket of a point", count, BUCKETS as u64 - 1)?;
    let counts = taker.column("count of a bucket of a point", count)?;
    stated("buckets of points", count as u64, sum("number of buckets of a point", lengths.iter().copied())?)?;
    let mut listed = buckets.into_iter().map(|bucket| u8::try_from(bucket).unwrap_or(u8::MAX)).zip(counts);
    let mut all = Vec::with_capacity(points.len());
    let mut of_cells = vec![0u64; cells.len()];
    for ((point, total_ns), length) in points.iter().zip(totals).zip(lengths) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let counts: Vec<(u8, u64)> = listed.by_ref().take(length).collect();
        if !counts.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(Error::SummaryDisordered { what: "buckets of points" });
        }
        let calls = sum("count of a bucket of a point", counts.iter().map(|(_, count)| *count))?;
        stated("calls in buckets of a point", point.count, calls)?;
        if let Some(of_cell) = of_cells.get_mut(point.cell as usize) {
            *of_cell = of_cell.saturating_add(total_ns);
        }
        all.push(PointDurations { total_ns, counts });
    }
    for (cell, of_points) in cells.iter().zip(of_cells) {
        stated("sum of durations in points", cell.total_ns, of_points)?;
    }
    Ok(all)
}

/// Whether a summary may have so many buckets of points.
pub(super) fn fits(durations: &[PointDurations]) -> bool {
    count(durations) <= SUMMARY_POINTS_MAX
}

#[cfg(test)]
mod tests {
    use tacho_model::{Operation, OperationKind};

    use super::*;
    use crate::CallSummary;
    use crate::summary::{bytes, one_call};

    /// A block of `count` calls of one operation in one minute.
    fn block(count: u64) -> ExecutionBlock {
        let mut block = ExecutionBlock::new();
        for number in 0..count {
            let segment = one_call(number, number * 1_000_003);
            block.push(&segment, &[Operation { kind: OperationKind::Method, name: "m".into() }]);
        }
        block
    }

    #[test]
    fn points_of_many_calls_have_durations() {
        assert_eq!(CallSummary::of(&block(63)).unwrap().durations, None);
        let block = block(64);
        let summary = CallSummary::of(&block).unwrap();
        let durations = summary.durations.clone().unwrap();
        let [PointDurations { total_ns, counts }] = &durations[..] else { panic!("{durations:?}") };
        assert_eq!(*total_ns, (0..64).sum::<u64>() * 1_000_003);
        // Durations of 0, 1 and 2 ms, 3 to 4 ms, 5 to 9 ms, 10 to 24 ms, 25 to 49 ms, 50 to 63 ms; each 3 ns longer per ms.
        assert_eq!(counts, &[(0, 1), (4, 2), (5, 2), (6, 5), (7, 15), (8, 25), (9, 14)]);
        let again = CallSummary::decode(&summary.encode(), summary.operations.clone(), [].into()).unwrap();
        assert_eq!(again, summary);
        bytes::check(&summary, &block).unwrap();
        let mut wrong = summary;
        wrong.durations = Some(vec![PointDurations { total_ns: 0, counts: counts.clone() }]);
        let differs = bytes::check(&wrong, &block).unwrap_err().to_string();
        assert_eq!(differs, "the summary has other durations of points than the calls of the chunk");
    }

    #[test]
    fn durations_that_contradict_the_points_are_refused() {
        let summary = CallSummary::of(&block(64)).unwrap();
        let refused = |change: fn(&mut PointDurations)| {
            let mut changed = summary.clone();
            changed.durations.iter_mut().flatten().for_each(change);
            let decoded = CallSummary::decode(&changed.encode(), summary.operations.clone(), [].into());
            decoded.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refused(|_| ()), "");
        assert_eq!(
            refused(|point| point.counts[1].1 += 1),
            "calls in buckets of a point is 65, the header states 64"
        );
        assert_eq!(
            refused(|point| point.counts.swap(0, 1)),
            "buckets of points of the summary are not in order"
        );
        assert_eq!(refused(|point| point.counts[6].0 = 18), "bucket of a point is 18, at most 17 is allowed");
        assert!(refused(|point| point.total_ns += 1).starts_with("sum of durations in points is "));
        assert_eq!(
            refused(|point| point.counts[0].1 = u64::MAX),
            "the sum of count of a bucket of a point in the summary is above 2^64 - 1"
        );
    }

    #[test]
    fn the_bounds_equal_the_format_page() {
        let page =
            include_str!("../../../../docs/format/chunk.md").split_whitespace().collect::<Vec<_>>().join(" ");
        let bounds = DURATION_BOUNDS_NS.map(|bound| (bound / 1_000).to_string()).join(", ");
        assert!(page.contains(&format!("The bounds, in µs: {bounds}.")), "{bounds}");
        let buckets = [0, 100_000, 100_001, 60_000_000_000, 60_000_000_001, u64::MAX].map(duration_bucket);
        assert_eq!(buckets, [0, 0, 1, 16, 17, 17]);
    }
}
