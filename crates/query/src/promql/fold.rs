//! Which folds over values exist? Aggregations (over series) and `*_over_time` (over samples) share them.
//!
//! A fold takes values one by one, or takes a whole slice in lanes that the processor adds in parallel. Folds of
//! adjacent parts can be joined, so a sliding window is not read again at each step (`slide.rs`).

use tacho_chunk::Summary;

/// Number of values that are folded in parallel: two registers of two values, or one register of four.
pub const LANES: usize = 4;

/// Compensated summation, which keeps the rounding error of each addition: A. Neumaier, "Rundungsfehleranalyse einiger
/// Verfahren zur Summation endlicher Summen", ZAMM 54 (1974).
#[derive(Clone, Copy, Debug, Default)]
pub struct Neumaier {
    sum: f64,
    lost: f64,
}

impl Neumaier {
    pub fn new(first: f64) -> Self {
        Self { sum: first, lost: 0.0 }
    }

    pub fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        if sum.is_infinite() {
            self.lost = 0.0;
        } else if self.sum.abs() >= value.abs() {
            self.lost += (self.sum - sum) + value;
        } else {
            self.lost += (value - sum) + self.sum;
        }
        self.sum = sum;
    }

    pub fn total(&self) -> f64 {
        if self.sum.is_infinite() { self.sum } else { self.sum + self.lost }
    }

    pub fn join(&mut self, other: &Self) {
        self.add(other.sum);
        if self.sum.is_finite() {
            self.lost += other.lost;
        }
    }

    /// Sum of a slice. Each lane computes the rounding error of an addition without comparing the operands: D. E. Knuth,
    /// "The Art of Computer Programming" 2, section 4.2.2, theorem B.
    pub fn of(values: &[f64]) -> Self {
        let (blocks, rest) = values.as_chunks::<LANES>();
        let (mut sums, mut lost) = ([0.0; LANES], [0.0; LANES]);
        for block in blocks {
            for lane in 0..LANES {
                let (old, value) = (sums[lane], block[lane]);
                let sum = old + value;
                let added = sum - old;
                lost[lane] += (old - (sum - added)) + (value - added);
                sums[lane] = sum;
            }
        }
        let mut total = Self::default();
        for (sum, lost) in sums.iter().zip(lost) {
            total.join(&Self { sum: *sum, lost });
        }
        rest.iter().for_each(|value| total.add(*value));
        if total.sum.is_finite() && total.lost.is_finite() { total } else { Self::one_by_one(values) }
    }

    /// As [`Neumaier::of`], but processes infinities and overflows in the order of the values.
    fn one_by_one(values: &[f64]) -> Self {
        let mut total = Self::default();
        values.iter().for_each(|value| total.add(*value));
        total
    }

    pub fn scale(&mut self, factor: f64) {
        self.sum *= factor;
        self.lost *= factor;
    }
}

/// An accumulator of values, created from the first value.
pub trait Fold: Clone {
    /// Whether the summaries of chunks are sufficient. If true, [`Fold::of_summary`] always returns a fold.
    const FROM_SUMMARIES: bool = false;

    fn new(first: f64) -> Self;
    fn add(&mut self, value: f64);
    fn end(&self) -> f64;

    fn join(&mut self, later: &Self);

    /// Fold of a slice with at least one value.
    fn of(values: &[f64]) -> Self {
        let mut state = Self::new(values[0]);
        values[1..].iter().for_each(|value| state.add(*value));
        state
    }

    /// Fold of samples that are known only by their summary.
    fn of_summary(_: &Summary) -> Option<Self> {
        None
    }
}

#[derive(Clone)]
pub struct Sum(Neumaier);

impl Fold for Sum {
    const FROM_SUMMARIES: bool = true;

    fn new(first: f64) -> Self {
        Self(Neumaier::new(first))
    }

    fn add(&mut self, value: f64) {
        self.0.add(value);
    }

    fn end(&self) -> f64 {
        self.0.total()
    }

    fn join(&mut self, later: &Self) {
        self.0.join(&later.0);
    }

    fn of(values: &[f64]) -> Self {
        Self(Neumaier::of(values))
    }

    fn of_summary(summary: &Summary) -> Option<Self> {
        Some(Self(Neumaier::new(summary.sum)))
    }
}

/// Sum divided by count. A sum that would overflow is stored divided by a power of two, which loses no digit.
#[derive(Clone)]
pub struct Mean {
    carried: Neumaier,
    count: f64,
    carries_part: bool,
}

/// Factor for a sum that would overflow. It is small enough for the sum of 2^64 values that all equal the largest
/// double.
const PART: f64 = 1.0 / (1_u128 << 64) as f64;

impl Mean {
    /// The sum; with `part`, scaled by [`PART`].
    fn carried(&self, part: bool) -> Neumaier {
        let mut carried = self.carried;
        if part && !self.carries_part {
            carried.scale(PART);
        }
        carried
    }
}

impl Fold for Mean {
    const FROM_SUMMARIES: bool = true;

    fn new(first: f64) -> Self {
        Self { carried: Neumaier::new(first), count: 1.0, carries_part: false }
    }

    fn add(&mut self, value: f64) {
        let mut next = self.carried;
        next.add(value);
        if self.carries_part || !next.sum.is_finite() {
            return self.join(&Self::new(value));
        }
        (self.carried, self.count) = (next, self.count + 1.0);
    }

    fn end(&self) -> f64 {
        let Neumaier { sum, lost } = self.carried;
        let mean = sum / self.count + lost / self.count;
        if self.carries_part { mean / PART } else { mean }
    }

    fn join(&mut self, later: &Self) {
        let join = |part: bool| {
            let mut carried = self.carried(part);
            carried.join(&later.carried(part));
            carried
        };
        let mut part = self.carries_part || later.carries_part;
        let mut carried = join(part);
        let finite = self.carried.sum.is_finite() && later.carried.sum.is_finite();
        if !part && finite && !carried.sum.is_finite() {
            part = true;
            carried = join(part);
        }
        *self = Self { carried, count: self.count + later.count, carries_part: part };
    }

    fn of(values: &[f64]) -> Self {
        let carried = Neumaier::of(values);
        if carried.sum.is_finite() {
            return Self { carried, count: count_of(values), carries_part: false };
        }
        let mut state = Self::new(values[0]);
        values[1..].iter().for_each(|value| state.add(*value));
        state
    }

    fn of_summary(summary: &Summary) -> Option<Self> {
        let count = as_number(summary.count);
        Some(Self { carried: Neumaier::new(summary.sum), count, carries_part: false })
    }
}

pub fn count_of(values: &[f64]) -> f64 {
    as_number(values.len())
}

#[expect(clippy::cast_precision_loss, reason = "memory holds fewer than 2^53 samples")]
pub fn as_number(count: usize) -> f64 {
    count as f64
}

/// The best value of a slice. `worst` must not be better than any value. Ignores NaN.
fn best_of(values: &[f64], worst: f64, better: impl Fn(f64, f64) -> bool) -> f64 {
    let pick = |value: f64, best: f64| if better(value, best) { value } else { best };
    let (blocks, rest) = values.as_chunks::<LANES>();
    let mut best = [worst; LANES];
    for block in blocks {
        for lane in 0..LANES {
            best[lane] = pick(block[lane], best[lane]);
        }
    }
    best.iter().chain(rest).fold(worst, |best, value| pick(*value, best))
}

/// The smallest value. NaN only if all values are NaN.
#[derive(Clone)]
pub struct Min(f64);

impl Fold for Min {
    const FROM_SUMMARIES: bool = true;

    fn new(first: f64) -> Self {
        Self(first)
    }

    fn add(&mut self, value: f64) {
        if value < self.0 || self.0.is_nan() {
            self.0 = value;
        }
    }

    fn end(&self) -> f64 {
        self.0
    }

    fn join(&mut self, later: &Self) {
        self.add(later.0);
    }

    fn of(values: &[f64]) -> Self {
        let best = best_of(values, f64::INFINITY, |value, best| value < best);
        if best.is_finite() { Self(best) } else { Self(values.iter().copied().fold(values[0], f64::min)) }
    }

    fn of_summary(summary: &Summary) -> Option<Self> {
        Some(Self(summary.min))
    }
}

/// The largest value. NaN only if all values are NaN.
#[derive(Clone)]
pub struct Max(f64);

impl Fold for Max {
    const FROM_SUMMARIES: bool = true;

    fn new(first: f64) -> Self {
        Self(first)
    }

    fn add(&mut self, value: f64) {
        if value > self.0 || self.0.is_nan() {
            self.0 = value;
        }
    }

    fn end(&self) -> f64 {
        self.0
    }

    fn join(&mut self, later: &Self) {
        self.add(later.0);
    }

    fn of(values: &[f64]) -> Self {
        let best = best_of(values, f64::NEG_INFINITY, |value, best| value > best);
        if best.is_finite() { Self(best) } else { Self(values.iter().copied().fold(values[0], f64::max)) }
    }

    fn of_summary(summary: &Summary) -> Option<Self> {
        Some(Self(summary.max))
    }
}

#[derive(Clone)]
pub struct Count(f64);

impl Fold for Count {
    const FROM_SUMMARIES: bool = true;

    fn new(_: f64) -> Self {
        Self(1.0)
    }

    fn add(&mut self, _: f64) {
        self.0 += 1.0;
    }

    fn end(&self) -> f64 {
        self.0
    }

    fn join(&mut self, later: &Self) {
        self.0 += later.0;
    }

    fn of(values: &[f64]) -> Self {
        Self(count_of(values))
    }

    fn of_summary(summary: &Summary) -> Option<Self> {
        Some(Self(as_number(summary.count)))
    }
}

#[derive(Clone)]
pub struct One;

impl Fold for One {
    const FROM_SUMMARIES: bool = true;

    fn new(_: f64) -> Self {
        Self
    }

    fn add(&mut self, _: f64) {}

    fn end(&self) -> f64 {
        1.0
    }

    fn join(&mut self, _: &Self) {}

    fn of(_: &[f64]) -> Self {
        Self
    }

    fn of_summary(_: &Summary) -> Option<Self> {
        Some(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold<F: Fold>(values: impl IntoIterator<Item = f64>) -> Option<f64> {
        let values: Vec<f64> = values.into_iter().collect();
        (!values.is_empty()).then(|| F::of(&values).end())
    }

    #[test]
    fn sums_keep_digits_that_floats_lose() {
        assert_eq!(fold::<Sum>([1.0, 1e100, 1.0, -1e100]), Some(2.0));
        assert_eq!(fold::<Sum>([f64::INFINITY, 1.0]), Some(f64::INFINITY));
        assert_eq!(fold::<Sum>([]), None);
    }

    #[test]
    fn the_mean_of_large_values_does_not_overflow() {
        assert_eq!(fold::<Mean>([f64::MAX, f64::MAX]), Some(f64::MAX));
        assert_eq!(fold::<Mean>([1.0, 2.0, 6.0]), Some(3.0));
    }

    #[test]
    fn numbers_take_precedence_over_nan() {
        assert_eq!(fold::<Min>([f64::NAN, 2.0, f64::NAN, 1.0]), Some(1.0));
        assert_eq!(fold::<Max>([f64::NAN, 2.0, f64::NAN, 1.0]), Some(2.0));
    }
}
