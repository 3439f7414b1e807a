//! What are the percentiles of a set of durations? Exact for small sets, to three significant digits for large ones.

use hdrhistogram::Histogram;

/// Number of durations above which a histogram replaces the list. A list of this length is as large as the smallest histogram.
const FEW: usize = 1_024;
/// Three significant digits: an error of at most 0.1 percent.
const DIGITS: u8 = 3;

/// Durations in ns, in bounded memory.
#[derive(Default)]
pub(super) struct Durations {
    few: Vec<u64>,
    many: Option<Histogram<u32>>,
    min: Option<u64>,
    max: u64,
}

impl Durations {
    pub(super) fn record(&mut self, duration: u64) {
        self.min = Some(self.min.map_or(duration, |min| min.min(duration)));
        self.max = self.max.max(duration);
        match &mut self.many {
            Some(histogram) => record(histogram, duration),
            None if self.few.len() < FEW => self.few.push(duration),
            None => {
                self.many = Histogram::new(DIGITS).ok();
                for duration in std::mem::take(&mut self.few).into_iter().chain([duration]) {
                    self.many.iter_mut().for_each(|histogram| record(histogram, duration));
                }
            }
        }
    }

    /// The shortest duration. Like all statistics of this type, it is 0 if there are no durations.
    pub(super) fn min(&self) -> u64 {
        self.min.unwrap_or_default()
    }

    pub(super) const fn max(&self) -> u64 {
        self.max
    }

    /// p50, p95 and p99. Each is the smallest duration that is at least as long as the given percentage of all
    /// durations.
    pub(super) fn percentiles(&mut self) -> [u64; 3] {
        [0.50, 0.95, 0.99].map(|quantile| self.quantile(quantile))
    }

    pub(super) fn quantile(&mut self, quantile: f64) -> u64 {
        if let Some(histogram) = &self.many {
            return histogram.value_at_quantile(quantile).clamp(self.min(), self.max);
        }
        self.few.sort_unstable();
        let rank = (quantile * self.few.len() as f64).ceil() as usize;
        self.few.get(rank.saturating_sub(1)).copied().unwrap_or_default()
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
    fn the_longest_duration_is_exact() {
        let mut durations = Durations::default();
        (0..2_000).for_each(|_| durations.record(u64::MAX));
        assert_eq!(durations.max(), u64::MAX);
        assert!(durations.quantile(0.5) > u64::MAX / 4);
    }
}
