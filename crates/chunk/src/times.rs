//! At which time was each sample taken?

use std::ops::Range;
use std::sync::Arc;

use tacho_model::{TimeRange, Timestamp};

/// Times of samples, ns since the Unix epoch, strictly ascending.
#[derive(Clone, Debug)]
pub enum Times {
    /// `start, start + step, ...`: `count` times within the range of `i64`. `step` is above 0.
    Regular {
        start: Timestamp,
        step: i64,
        count: usize,
    },
    Explicit(Arc<[Timestamp]>),
}

impl Times {
    /// `None` if the times are not strictly ascending.
    pub fn new(at: &[Timestamp]) -> Option<Self> {
        if !at.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let regular = regular_step(at).zip(at.first());
        Some(match regular {
            Some((step, start)) => Self::Regular { start: *start, step, count: at.len() },
            None => Self::Explicit(at.into()),
        })
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Regular { count, .. } => *count,
            Self::Explicit(at) => at.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, place: usize) -> Option<Timestamp> {
        match self {
            Self::Regular { start, step, count } if place < *count => Some(moment(*start, *step, place)),
            Self::Regular { .. } => None,
            Self::Explicit(at) => at.get(place).copied(),
        }
    }

    pub fn first(&self) -> Option<Timestamp> {
        self.get(0)
    }

    pub fn last(&self) -> Option<Timestamp> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Indexes of the times in `range`, both ends inclusive.
    pub fn slice(&self, range: TimeRange) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        match self {
            Self::Regular { start, step, count } => {
                let places = |n: u64| usize::try_from(n).map_or(*count, |n| n.min(*count));
                let (step, distance) = (step.unsigned_abs().max(1), |at: Timestamp| at.abs_diff(*start));
                let from =
                    if range.start <= *start { 0 } else { places(distance(range.start).div_ceil(step)) };
                let to = if range.end < *start {
                    0
                } else {
                    places((distance(range.end) / step).saturating_add(1))
                };
                from..to
            }
            Self::Explicit(at) => {
                at.partition_point(|at| *at < range.start)..at.partition_point(|at| *at <= range.end)
            }
        }
    }

    /// The times at `places`, clipped to the end.
    #[must_use]
    pub fn part(&self, places: Range<usize>) -> Self {
        let end = places.end.min(self.len());
        let places = places.start.min(end)..end;
        match self {
            _ if places == (0..self.len()) => self.clone(),
            Self::Regular { start, step, .. } => {
                let count = places.len();
                Self::Regular { start: moment(*start, *step, places.start), step: *step, count }
            }
            Self::Explicit(at) => Self::Explicit(at.get(places).unwrap_or_default().into()),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Timestamp> + '_ {
        let (start, step, count, at) = match self {
            Self::Regular { start, step, count } => (*start, *step, *count, [].as_slice()),
            Self::Explicit(at) => (0, 0, 0, &**at),
        };
        (0..count).map(move |place| moment(start, step, place)).chain(at.iter().copied())
    }

    pub fn to_vec(&self) -> Vec<Timestamp> {
        match self {
            Self::Regular { start, step, count } => {
                (0..*count).map(|place| moment(*start, *step, place)).collect()
            }
            Self::Explicit(at) => at.to_vec(),
        }
    }
}

/// Equal if the times are equal, in either representation.
impl PartialEq for Times {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Explicit(a), Self::Explicit(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => self.len() == other.len() && self.iter().eq(other.iter()),
        }
    }
}

impl Eq for Times {}

/// The product may wrap, but the sum is exact for the index of each time, because all times are within `i64`.
const fn moment(start: Timestamp, step: i64, place: usize) -> Timestamp {
    start.wrapping_add(step.wrapping_mul(place as i64))
}

/// The common difference of neighbours; 1 for a single time. `None` if differences vary, if there are no times, or if the
/// difference exceeds `i64`.
pub(crate) fn regular_step(at: &[Timestamp]) -> Option<i64> {
    let [first, rest @ ..] = at else { return None };
    let Some(second) = rest.first() else { return Some(1) };
    let step = second.checked_sub(*first)?;
    let same = |(a, b): (&Timestamp, &Timestamp)| b.wrapping_sub(*a) == step;
    at.iter().zip(rest).all(same).then_some(step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ascending() -> impl Strategy<Value = Vec<Timestamp>> {
        let regular = (-50i64..50, 1i64..9, 0usize..20);
        prop_oneof![
            prop::collection::btree_set(-50i64..50, 0..20).prop_map(|at| at.into_iter().collect()),
            regular.prop_map(|(start, step, count)| (0..count as i64).map(|n| start + n * step).collect()),
        ]
    }

    proptest! {
        #[test]
        fn both_forms_equal_a_list_of_times(at in ascending(), start in -60i64..60, end in -60i64..60) {
            let range = TimeRange::new(start, end);
            let inside: Vec<Timestamp> = at.iter().copied().filter(|at| range.contains(*at)).collect();
            for times in [Times::new(&at).unwrap(), Times::Explicit(at.as_slice().into())] {
                prop_assert_eq!(times.to_vec(), at.clone());
                prop_assert_eq!(times.iter().collect::<Vec<_>>(), at.clone());
                prop_assert_eq!((times.first(), times.last()), (at.first().copied(), at.last().copied()));
                prop_assert_eq!(times.get(at.len()), None);
                let places = times.slice(range);
                prop_assert_eq!(at.get(places.clone()).unwrap_or_default(), &inside[..]);
                prop_assert_eq!(times.part(places).to_vec(), inside.clone());
                prop_assert_eq!(&times, &Times::Explicit(at.as_slice().into()));
            }
        }
    }

    #[test]
    fn the_smallest_and_largest_timestamps_are_supported() {
        let step = i64::MAX;
        let times = Times::Regular { start: i64::MIN, step, count: 3 };
        assert_eq!(times.to_vec(), [i64::MIN, -1, i64::MAX - 1]);
        assert_eq!(times.slice(TimeRange::ALL), 0..3);
        assert_eq!(times.slice(TimeRange::new(i64::MIN + 1, -1)), 1..2);
        assert_eq!(times.slice(TimeRange::new(i64::MAX, i64::MAX)), 3..3);
        assert_eq!(Times::new(&[i64::MIN, i64::MAX]), Some(Times::Explicit([i64::MIN, i64::MAX].into())));
        assert_eq!(Times::new(&[3, 3]), None);
    }
}
