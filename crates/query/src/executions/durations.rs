//! What are the percentiles of a set of durations? They are exact for small sets and have three significant digits for large
//! sets. Sets that accept summaries differ: if such a set is large or has durations from a summary, its percentiles are within
//! 1 %.

use hdrhistogram::Histogram;
use tacho_chunk::Sketch;

/// Number of durations above which a histogram replaces the list. A list of this length is as large as the smallest histogram.
const FEW: usize = 1_024;
/// Three significant digits: an error of at most 0.1 percent.
const DIGITS: u8 = 3;
/// The same error as a fraction.
pub const QUANTILE_ERROR: f64 = 0.001;

/// Durations in ns, in bounded memory.
#[derive(Default)]
pub(super) struct Durations {
    /// Whether a sketch, and not a histogram, replaces the list. Only a sketch accepts the durations of summaries.
    is_sketched: bool,
    few: Vec<u64>,
    many: Many,
    min: Option<u64>,
    max: u64,
}

/// Replaces the list when there are many durations.
#[derive(Default)]
enum Many {
    #[default]
    No,
    Histogram(Histogram<u32>),
    Sketch(Sketch),
}

impl Durations {
    /// `is_sketched`: the durations of summaries can be added.
    pub(super) fn sketched(is_sketched: bool) -> Self {
        Self { is_sketched, ..Self::default() }
    }

    pub(super) fn record(&mut self, duration: u64) {
        self.widen(duration, duration);
        match &mut self.many {
            Many::Histogram(histogram) => record(histogram, duration),
            Many::Sketch(sketch) => sketch.record(duration),
            Many::No if self.few.len() < FEW => self.few.push(duration),
            Many::No => {
                self.many = if self.is_sketched { Many::Sketch(self.sketch()) } else { self.histogram() };
                self.few = vec![];
                self.record(duration);
            }
        }
    }

    /// Adds the durations of a summary. `min` and `max` are the shortest and the longest.
    pub(super) fn add(&mut self, buckets: &[(u16, u64)], (min, max): (u64, u64)) {
        debug_assert!(self.is_sketched, "only a sketch accepts the durations of a summary");
        if buckets.is_empty() {
            return;
        }
        self.widen(min, max);
        if let Many::No = self.many {
            self.many = Many::Sketch(self.sketch());
            self.few = vec![];
        }
        if let Many::Sketch(sketch) = &mut self.many {
            buckets.iter().for_each(|(bucket, count)| sketch.add(*bucket, *count));
        }
    }

    fn widen(&mut self, min: u64, max: u64) {
        self.min = Some(self.min.map_or(min, |known| known.min(min)));
        self.max = self.max.max(max);
    }

    fn sketch(&self) -> Sketch {
        let mut sketch = Sketch::default();
        self.few.iter().for_each(|duration| sketch.record(*duration));
        sketch
    }

    fn histogram(&self) -> Many {
        // The number of digits is valid, so there is a histogram.
        let Ok(mut histogram) = Histogram::new(DIGITS) else { return Many::Sketch(self.sketch()) };
        self.few.iter().for_each(|duration| record(&mut histogram, *duration));
        Many::Histogram(histogram)
    }

    /// The shortest duration. Like all statistics of this type, it is 0 if there are no durations.
    pub(super) fn min(&self) -> u64 {
        self.min.unwrap_or_default()
    }

    pub(super) const fn max(&self) -> u64 {
        self.max
    }

    /// p50, p95 and p99. For example, p95 is the smallest duration that at least 95 % of all durations do not exceed.
    pub(super) fn percentiles(&mut self) -> [u64; 3] {
        [0.50, 0.95, 0.99].map(|quantile| self.quantile(quantile))
    }

    pub(super) fn quantile(&mut self, quantile: f64) -> u64 {
        match &self.many {
            Many::Histogram(histogram) => histogram.value_at_quantile(quantile).clamp(self.min(), self.max),
            Many::Sketch(sketch) => sketch.quantile(quantile).unwrap_or_default().clamp(self.min(), self.max),
            Many::No => {
                self.few.sort_unstable();
                let rank = (quantile * self.few.len() as f64).ceil() as usize;
                self.few.get(rank.saturating_sub(1)).copied().unwrap_or_default()
            }
        }
    }
}

/// Counts one duration. The histogram resizes itself and accepts every value below 2^63.
fn record(histogram: &mut Histogram<u32>, duration: u64) {
    let _ = histogram.record(duration.min(u64::MAX >> 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `expected`: p50, p95 and p99, in ns, of the durations 1 µs, 2 µs, ... `count` µs.
    fn check(count: u64, expected: [u64; 3]) {
        let mut durations = Durations::default();
        (1..=count).rev().for_each(|n| durations.record(n * 1_000));
        let close = |(got, wanted): (u64, u64)| got.abs_diff(wanted) <= wanted / 1_000;
        let got = durations.percentiles();
        assert!(got.into_iter().zip(expected).all(close), "{count}: {got:?}");
        assert_eq!((durations.min(), durations.max()), (1_000.min(count * 1_000), count * 1_000));
    }

    #[test]
    fn lists_and_histograms_give_the_same_percentiles() {
        check(0, [0, 0, 0]);
        check(1, [1_000, 1_000, 1_000]);
        check(100, [50_000, 95_000, 99_000]);
        check(1_024, [512_000, 973_000, 1_014_000]);
        check(100_000, [50_000_000, 95_000_000, 99_000_000]);
    }

    #[test]
    fn durations_of_summaries_are_added_within_one_per_cent() {
        let mut durations = Durations::sketched(true);
        (1..=500).for_each(|n| durations.record(n * 1_000));
        let mut sketch = Sketch::default();
        (501..=100_000).for_each(|n| sketch.record(n * 1_000));
        durations.add(&sketch.buckets().collect::<Vec<_>>(), (501_000, 100_000_000));
        (100_001..=200_000).for_each(|n| durations.record(n * 1_000));
        assert_eq!((durations.min(), durations.max()), (1_000, 200_000_000));
        for (got, exact) in durations.percentiles().into_iter().zip([100_000_000, 190_000_000, 198_000_000]) {
            assert!(got.abs_diff(exact) * 100 <= exact, "{got} for {exact}");
        }
    }

    #[test]
    fn the_longest_duration_is_exact() {
        let mut durations = Durations::default();
        (0..2_000).for_each(|_| durations.record(u64::MAX));
        assert_eq!(durations.max(), u64::MAX);
        assert!(durations.quantile(0.5) > u64::MAX / 4);
    }
}
