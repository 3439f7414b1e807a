//! What must be kept of samples so that a function of a window can be told from it?
//!
//! A digest of samples joins with that of those after them: so windows that overlap share work (`slide.rs`), and whole
//! chunks are taken from their headers ([`Summary`]). The functions that read digests are in `functions/`.

use tacho_chunk::Summary;
use tacho_model::Timestamp;

use super::fold::{Fold, LANES, Mean, Neumaier};
use super::grid::seconds;
use super::series::{At, Run};

pub trait Digest: Clone + Send {
    /// Whether summaries will do; then [`Digest::of_summary`] always knows.
    const FROM_SUMMARIES: bool = false;

    fn of(run: &Run<'_>) -> Self;

    fn of_summary(_: &Summary) -> Option<Self> {
        None
    }

    /// Takes in what follows in time.
    fn join(&mut self, later: &Self);
}

/// A fold of values, whatever their times.
impl<F: Fold + Send> Digest for F {
    const FROM_SUMMARIES: bool = F::FROM_SUMMARIES;

    fn of(run: &Run<'_>) -> Self {
        F::of(run.values)
    }

    fn of_summary(summary: &Summary) -> Option<Self> {
        F::of_summary(summary)
    }

    fn join(&mut self, later: &Self) {
        F::join(self, later);
    }
}

/// First and last sample, and how many there are.
#[derive(Clone, Debug)]
pub struct Ends {
    pub first: (Timestamp, f64),
    pub last: (Timestamp, f64),
    pub count: usize,
}

impl Digest for Ends {
    const FROM_SUMMARIES: bool = true;

    fn of(run: &Run<'_>) -> Self {
        let (first, last) = run.ends();
        Self { first, last, count: run.values.len() }
    }

    fn of_summary(summary: &Summary) -> Option<Self> {
        let (first, last) = ((summary.start, summary.first), (summary.end, summary.last));
        Some(Self { first, last, count: summary.count })
    }

    fn join(&mut self, later: &Self) {
        self.last = later.last;
        self.count += later.count;
    }
}

/// Two digests of the same samples.
impl<A: Digest, B: Digest> Digest for (A, B) {
    const FROM_SUMMARIES: bool = A::FROM_SUMMARIES && B::FROM_SUMMARIES;

    fn of(run: &Run<'_>) -> Self {
        (A::of(run), B::of(run))
    }

    fn of_summary(summary: &Summary) -> Option<Self> {
        A::of_summary(summary).zip(B::of_summary(summary))
    }

    fn join(&mut self, later: &Self) {
        self.0.join(&later.0);
        self.1.join(&later.1);
    }
}

/// A counter, with what it had reached at each of its resets.
#[derive(Clone, Debug)]
pub struct Counter {
    pub ends: Ends,
    /// Sum of the values before resets.
    pub lost: f64,
    pub resets: usize,
}

impl Digest for Counter {
    fn of(run: &Run<'_>) -> Self {
        let (before, after) = (&run.values[..run.values.len() - 1], &run.values[1..]);
        // Most counters never fall: the question alone is answered for several pairs at a time.
        let resets = before.iter().zip(after).map(|(before, after)| usize::from(after < before)).sum();
        let mut counter = Self { ends: Ends::of(run), lost: 0.0, resets };
        if resets > 0 {
            counter.lost =
                before.iter().zip(after).filter(|(before, after)| after < before).map(|(b, _)| b).sum();
        }
        counter
    }

    fn join(&mut self, later: &Self) {
        if later.ends.first.1 < self.ends.last.1 {
            self.lost += self.ends.last.1;
            self.resets += 1;
        }
        self.lost += later.lost;
        self.resets += later.resets;
        self.ends.join(&later.ends);
    }
}

/// Area under the lines from sample to sample, value * seconds.
#[derive(Clone, Debug)]
pub struct Area {
    pub ends: Ends,
    pub area: f64,
}

impl Area {
    fn between(before: (Timestamp, f64), after: (Timestamp, f64)) -> f64 {
        // Halved before they are added: the sum of two large values must not overflow.
        seconds(after.0.saturating_sub(before.0)) * (before.1 / 2.0 + after.1 / 2.0)
    }
}

impl Digest for Area {
    fn of(run: &Run<'_>) -> Self {
        let mut area = Neumaier::default();
        run.iter().zip(run.iter().skip(1)).for_each(|(before, after)| area.add(Self::between(before, after)));
        Self { ends: Ends::of(run), area: area.total() }
    }

    fn join(&mut self, later: &Self) {
        self.area += Self::between(self.ends.last, later.ends.first) + later.area;
        self.ends.join(&later.ends);
    }
}

/// Moments of times and values about their means, for a line through them: joined as P. Pebay, "Formulas for Robust,
/// One-Pass Parallel Computation of Covariances and Arbitrary-Order Statistical Moments", SAND2008-6212 (2008).
#[derive(Clone, Debug)]
pub struct Moments {
    pub count: f64,
    /// Times are seconds after this one.
    pub origin: Timestamp,
    pub mean_time: f64,
    pub mean_value: f64,
    /// Sums over squares and products of what is off the means.
    pub times: f64,
    pub values: f64,
    pub both: f64,
}

impl Moments {
    /// Sums of the squares of times, of values, and of their products, all less their means, in lanes.
    #[expect(clippy::cast_precision_loss, reason = "a run holds less than 2^53 samples")]
    fn regular(values: &[f64], step: f64, mean_time: f64, mean_value: f64) -> [f64; 3] {
        let (blocks, rest) = values.as_chunks::<LANES>();
        let (mut squares, mut products) = ([0.0; LANES], [0.0; LANES]);
        let mut add = |lane: usize, index: f64, value: f64| {
            let value = value - mean_value;
            squares[lane] += value * value;
            products[lane] += (index * step - mean_time) * value;
        };
        for (first, block) in (0..).step_by(LANES).zip(blocks) {
            for (lane, value) in block.iter().enumerate() {
                add(lane, (first + lane) as f64, *value);
            }
        }
        for (lane, value) in rest.iter().enumerate() {
            add(lane, (blocks.len() * LANES + lane) as f64, *value);
        }
        let count = values.len() as f64;
        let times = step * step * count * (count * count - 1.0) / 12.0;
        [times, squares.iter().sum(), products.iter().sum()]
    }
}

impl Digest for Moments {
    #[expect(clippy::cast_precision_loss, reason = "a run holds less than 2^53 samples")]
    fn of(run: &Run<'_>) -> Self {
        let origin = run.time(0);
        let count = run.values.len() as f64;
        let after = |at: Timestamp| seconds(at.saturating_sub(origin));
        let mean_time = match run.at {
            At::Regular { step, .. } => seconds(step) * ((count - 1.0) / 2.0),
            At::Explicit(_) => run.iter().map(|(at, _)| after(at)).sum::<f64>() / count,
        };
        let constant = run.values.iter().all(|value| *value == run.values[0]);
        let mean_value = if constant { run.values[0] } else { <Mean as Fold>::of(run.values).end() };
        let [times, values, both] = match run.at {
            At::Regular { step, .. } => Self::regular(run.values, seconds(step), mean_time, mean_value),
            At::Explicit(_) => run.iter().fold([0.0; 3], |[times, values, both], (at, value)| {
                let (time, value) = (after(at) - mean_time, value - mean_value);
                [times + time * time, values + value * value, both + time * value]
            }),
        };
        Self { count, origin, mean_time, mean_value, times, values, both }
    }

    fn join(&mut self, later: &Self) {
        let count = self.count + later.count;
        let later_time = later.mean_time + seconds(later.origin.saturating_sub(self.origin));
        let (time, value) = (later_time - self.mean_time, later.mean_value - self.mean_value);
        let share = later.count / count;
        let weight = self.count * share;
        self.times += later.times + time * time * weight;
        self.values += later.values + value * value * weight;
        self.both += later.both + time * value * weight;
        self.mean_time += time * share;
        self.mean_value += value * share;
        self.count = count;
    }
}

/// How often the value changed.
#[derive(Clone, Debug)]
pub struct Changes {
    first: f64,
    last: f64,
    pub count: usize,
}

impl Changes {
    fn differ(before: f64, after: f64) -> bool {
        before != after && !(before.is_nan() && after.is_nan())
    }
}

impl Digest for Changes {
    fn of(run: &Run<'_>) -> Self {
        let pairs = run.values.iter().zip(&run.values[1..]);
        let count = pairs.filter(|(before, after)| Self::differ(**before, **after)).count();
        Self { first: run.values[0], last: run.values[run.values.len() - 1], count }
    }

    fn join(&mut self, later: &Self) {
        self.count += later.count + usize::from(Self::differ(self.last, later.first));
        self.last = later.last;
    }
}
