//! Folds over values, shared by aggregations (over series) and `*_over_time` (over samples).

/// Compensated summation: A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher
/// Summen", ZAMM 54 (1974). Keeps what is lost in each addition.
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

    fn scale(&mut self, factor: f64) {
        self.sum *= factor;
        self.lost *= factor;
    }
}

/// Takes one value after the other; there is always a first one.
pub trait Fold: Clone {
    fn new(first: f64) -> Self;
    fn add(&mut self, value: f64);
    fn end(&self) -> f64;
}

/// Folds a window or any other list; none when it is empty.
pub fn fold<F: Fold>(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values = values.into_iter();
    let mut state = F::new(values.next()?);
    for value in values {
        state.add(value);
    }
    Some(state.end())
}

#[derive(Clone)]
pub struct Sum(Neumaier);

impl Fold for Sum {
    fn new(first: f64) -> Self {
        Self(Neumaier::new(first))
    }

    fn add(&mut self, value: f64) {
        self.0.add(value);
    }

    fn end(&self) -> f64 {
        self.0.total()
    }
}

/// Sum by count; once the sum would overflow, the mean is carried instead of the sum.
#[derive(Clone)]
pub struct Mean {
    carried: Neumaier,
    count: f64,
    carries_mean: bool,
}

impl Fold for Mean {
    fn new(first: f64) -> Self {
        Self { carried: Neumaier::new(first), count: 1.0, carries_mean: false }
    }

    fn add(&mut self, value: f64) {
        self.count += 1.0;
        if !self.carries_mean {
            let mut next = self.carried;
            next.add(value);
            if next.sum.is_finite() || next.sum.is_nan() {
                self.carried = next;
                return;
            }
            self.carries_mean = true;
            self.carried.sum /= self.count - 1.0;
            self.carried.lost /= self.count - 1.0;
        }
        self.carried.scale((self.count - 1.0) / self.count);
        self.carried.add(value / self.count);
    }

    fn end(&self) -> f64 {
        let Neumaier { sum, lost } = self.carried;
        if self.carries_mean { sum + lost } else { sum / self.count + lost / self.count }
    }
}

/// The smallest value; NaN only when there is nothing else.
#[derive(Clone)]
pub struct Min(f64);

impl Fold for Min {
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
}

/// The largest value; NaN only when there is nothing else.
#[derive(Clone)]
pub struct Max(f64);

impl Fold for Max {
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
}

#[derive(Clone)]
pub struct Count(f64);

impl Fold for Count {
    fn new(_: f64) -> Self {
        Self(1.0)
    }

    fn add(&mut self, _: f64) {
        self.0 += 1.0;
    }

    fn end(&self) -> f64 {
        self.0
    }
}

/// 1 for anything.
#[derive(Clone)]
pub struct One;

impl Fold for One {
    fn new(_: f64) -> Self {
        Self
    }

    fn add(&mut self, _: f64) {}

    fn end(&self) -> f64 {
        1.0
    }
}

/// Population variance in one pass: B. P. Welford, "Note on a Method for Calculating Corrected Sums of Squares
/// and Products", Technometrics 4 (1962), with compensated sums.
#[derive(Clone)]
pub struct Variance {
    count: f64,
    mean: Neumaier,
    squares: Neumaier,
}

impl Fold for Variance {
    fn new(first: f64) -> Self {
        let mut new = Self { count: 0.0, mean: Neumaier::default(), squares: Neumaier::default() };
        new.add(first);
        new
    }

    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let delta = value - self.mean.total();
        self.mean.add(delta / self.count);
        self.squares.add(delta * (value - self.mean.total()));
    }

    fn end(&self) -> f64 {
        self.squares.total() / self.count
    }
}

/// Population standard deviation.
#[derive(Clone)]
pub struct Deviation(Variance);

impl Fold for Deviation {
    fn new(first: f64) -> Self {
        Self(Variance::new(first))
    }

    fn add(&mut self, value: f64) {
        self.0.add(value);
    }

    fn end(&self) -> f64 {
        self.0.end().sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_what_floats_lose() {
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
    fn nan_loses_against_numbers() {
        assert_eq!(fold::<Min>([f64::NAN, 2.0, f64::NAN, 1.0]), Some(1.0));
        assert_eq!(fold::<Max>([f64::NAN, 2.0, f64::NAN, 1.0]), Some(2.0));
        assert!(fold::<Variance>([1.0, f64::INFINITY]).is_some_and(f64::is_nan));
    }
}
