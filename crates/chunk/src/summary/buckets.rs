//! Which bucket counts a duration, and which duration represents a bucket?
//!
//! The buckets are those of a DDSketch (Masson, Rim, Lee, "DDSketch: A Fast and Fully-Mergeable Quantile Sketch with
//! Relative-Error Guarantees", PVLDB 12(12), 2019) for whole numbers. Each bucket is as wide as the relative error of 1 %
//! permits, so the ratio of successive starts tends to 1.0202. All bounds are computed with integers, so all machines have the
//! same buckets.

use std::sync::LazyLock;

/// Largest relative difference between a duration and the duration that represents its bucket, per cent.
const ERROR_PERCENT: u64 = 1;
/// `ERROR_PERCENT` as a fraction.
pub const SKETCH_ERROR: f64 = 0.01;

/// Binary logarithm of the number of parts into which the numbers from a power of two to the next are divided. The search for the
/// bucket of a duration begins at the first bucket of the part with the duration.
const PART_BITS: u32 = 6;

static BUCKETS: LazyLock<Buckets> = LazyLock::new(Buckets::new);

struct Buckets {
    /// First duration of each bucket, ascending.
    starts: Vec<u64>,
    /// The bucket of the first number of each part, for each power of two ([`PART_BITS`]).
    guesses: Vec<u16>,
}

/// Last number of the bucket that begins at `start`. The number `start + d / 2` represents a bucket from `start` to `start + d`.
fn last(start: u64) -> u64 {
    let per_cent = 100 / ERROR_PERCENT;
    let half = start / per_cent;
    // One more number fits if it differs from the representing duration by at most 1 % of itself.
    let is_odd =
        half < u64::MAX / per_cent - 1 && per_cent * (half + 1) <= start.saturating_add(2 * half + 1);
    start.saturating_add(2 * half + u64::from(is_odd))
}

impl Buckets {
    fn new() -> Self {
        let mut starts = vec![0];
        while let Some(start) = starts.last().and_then(|start| last(*start).checked_add(1)) {
            starts.push(start);
        }
        let part = |number: u64| {
            let (power, part) = (number >> PART_BITS, number & ((1 << PART_BITS) - 1));
            // From a small power of two to the next, there are fewer numbers than parts. `of` does not use these guesses.
            let shift = power.saturating_sub(PART_BITS.into());
            let first = (1u64.checked_shl(u32::try_from(power).unwrap_or(0)).unwrap_or(0)) + (part << shift);
            u16::try_from(starts.partition_point(|start| *start <= first) - 1).unwrap_or(u16::MAX)
        };
        let guesses = (0..64 << PART_BITS).map(part).collect();
        Self { starts, guesses }
    }

    fn of(&self, duration: u64) -> u16 {
        let power = duration.max(1).ilog2();
        if power < PART_BITS {
            // Below 99, each number has a bucket of its own.
            return u16::try_from(duration).unwrap_or(0);
        }
        let part = (duration >> (power - PART_BITS)) & ((1 << PART_BITS) - 1);
        let place = usize::try_from(u64::from(power) << PART_BITS | part).unwrap_or(usize::MAX);
        let mut bucket = self.guesses.get(place).copied().unwrap_or(0);
        // A part is at most 1.6 % long, so it begins in the bucket of the duration or in one of the two previous buckets.
        while self.starts.get(usize::from(bucket) + 1).is_some_and(|start| *start <= duration) {
            bucket += 1;
        }
        bucket
    }
}

pub fn bucket_of(duration_ns: u64) -> u16 {
    BUCKETS.of(duration_ns)
}

/// The duration that represents a bucket. It differs by at most 1 % from each duration of the bucket.
pub fn bucket_value(bucket: u16) -> u64 {
    let (first, last) = bucket_range(bucket);
    first + (last - first) / 2
}

/// First and last duration of a bucket. `u64::MAX` for a bucket that does not exist.
pub fn bucket_range(bucket: u16) -> (u64, u64) {
    BUCKETS.starts.get(usize::from(bucket)).map_or((u64::MAX, u64::MAX), |start| (*start, last(*start)))
}

pub fn bucket_count() -> usize {
    BUCKETS.starts.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_buckets_cover_all_durations_in_order() {
        let mut next = 0;
        for bucket in 0..u16::try_from(bucket_count()).unwrap() {
            let (first, last) = bucket_range(bucket);
            assert_eq!(first, next, "bucket {bucket}");
            assert!(last >= first);
            next = last.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends at 2^64 - 1");
        assert_eq!((bucket_of(98), bucket_range(99)), (98, (99, 100)));
        assert_eq!(bucket_count(), 2_103);
    }

    #[test]
    fn the_buckets_equal_the_format_page() {
        let page = include_str!("../../../../docs/format/chunk.md");
        let bucket = |bucket: u16| {
            let (first, last) = bucket_range(bucket);
            format!("{bucket} {first} {last}")
        };
        let line = [98, 99, 200, 1_000, 2_102].map(bucket).join(" | ");
        assert!(page.lines().any(|written| written == line), "{line}");
    }

    fn check(duration: u64) {
        let bucket = bucket_of(duration);
        let (first, last) = bucket_range(bucket);
        assert!((first..=last).contains(&duration), "{duration} is not in bucket {bucket}");
        let off = bucket_value(bucket).abs_diff(duration);
        assert!(
            u128::from(off) * 100 <= u128::from(duration),
            "the value of bucket {bucket} differs by {off} from {duration}"
        );
    }

    #[test]
    fn the_ends_of_all_buckets_are_within_one_per_cent() {
        for bucket in 0..u16::try_from(bucket_count()).unwrap() {
            let (first, last) = bucket_range(bucket);
            [first, last].into_iter().for_each(check);
        }
    }

    proptest! {
        #[test]
        fn every_duration_is_within_one_per_cent_of_its_bucket(duration in any::<u64>(), shift in 0u32..64) {
            check(duration >> shift);
        }
    }
}
