//! How are many durations counted in little memory, so that the counts of several sources can be added?

use super::buckets::{bucket_of, bucket_value};

/// Durations, counted by bucket: a DDSketch. Sketches of parts, added in any order, are equal to the sketch of the whole. A
/// sketch has at most 17 KB of counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// Bucket of the first count.
    first: usize,
    /// Counts of consecutive buckets. The first and the last count are not 0.
    counts: Vec<u64>,
    count: u64,
}

impl Sketch {
    pub fn record(&mut self, duration_ns: u64) {
        self.add(bucket_of(duration_ns), 1);
    }

    /// Counts `count` durations of a bucket.
    pub fn add(&mut self, bucket: u16, count: u64) {
        if count == 0 {
            return;
        }
        let bucket = usize::from(bucket);
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            self.counts.splice(0..0, std::iter::repeat_n(0, self.first - bucket));
            self.first = bucket;
        }
        let place = bucket - self.first;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        if let Some(slot) = self.counts.get_mut(place) {
            *slot = slot.saturating_add(count);
        }
        self.count = self.count.saturating_add(count);
    }

    pub fn merge(&mut self, other: &Self) {
        other.buckets().for_each(|(bucket, count)| self.add(bucket, count));
    }

    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The buckets that have durations, ascending, with their counts.
    pub fn buckets(&self) -> impl Iterator<Item = (u16, u64)> {
        let bucket = |place: usize| u16::try_from(self.first + place).unwrap_or(u16::MAX);
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(move |(place, count)| (bucket(place), *count))
    }

    /// The quantile `quantile` (0 to 1) of the durations, within 1 %. `None` without durations.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a rank"
    )]
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let rank = ((quantile * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut before = 0u64;
        self.buckets().find_map(|(bucket, count)| {
            before = before.saturating_add(count);
            (before >= rank).then(|| bucket_value(bucket))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sketch(durations: &[u64]) -> Sketch {
        let mut sketch = Sketch::default();
        durations.iter().for_each(|duration| sketch.record(*duration));
        sketch
    }

    fn durations() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec((any::<u64>(), 0u32..64).prop_map(|(bits, shift)| bits >> shift), 0..200)
    }

    fn merged(parts: &[&Sketch]) -> Sketch {
        let mut all = Sketch::default();
        parts.iter().for_each(|part| all.merge(part));
        all
    }

    proptest! {
        #[test]
        fn sketches_of_parts_in_any_order_and_grouping_are_the_sketch_of_the_whole(
            a in durations(), b in durations(), c in durations()
        ) {
            let whole = sketch(&[a.clone(), b.clone(), c.clone()].concat());
            let [a, b, c] = [a, b, c].map(|part| sketch(&part));
            prop_assert_eq!(&merged(&[&merged(&[&a, &b]), &c]), &whole);
            prop_assert_eq!(&merged(&[&a, &merged(&[&b, &c])]), &whole);
            prop_assert_eq!(&merged(&[&c, &a, &b]), &whole);
        }

        #[test]
        fn a_quantile_is_within_one_per_cent_of_the_duration_of_its_rank(
            mut all in durations(), quantile in 0.0..=1.0
        ) {
            let got = sketch(&all).quantile(quantile);
            all.sort_unstable();
            let rank = ((quantile * all.len() as f64).ceil() as usize).clamp(1, all.len().max(1));
            let exact = all.get(rank - 1).copied();
            prop_assert_eq!(got.is_some(), exact.is_some());
            if let (Some(got), Some(exact)) = (got, exact) {
                prop_assert!(u128::from(got.abs_diff(exact)) * 100 <= u128::from(exact), "{} for {}", got, exact);
            }
        }
    }
}
