//! Orders series by their labels. Compares numbers instead of texts, because comparing the texts of a million series takes
//! seconds.
//!
//! Each pair of a label's name and value has a rank in the order of all pairs. So the ranks of a series' pairs compare like its
//! labels.

use std::ops::Deref;
use std::sync::Arc;

use tacho_model::NAME;

use crate::index::{Index, SERIES_AT_ONCE};

/// The rank of a label that a series does not have. It is below all other ranks.
const ABSENT: u32 = 0;

/// The labels of one series, as ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks<'a> {
    /// Labels other than the metric name.
    pub rest: &'a [u32],
    pub name: u32,
}

impl Ranks<'_> {
    /// Orders series by the labels other than the name, then by the name.
    pub fn key(&self) -> (u64, &[u32], u32) {
        let nth = |nth: usize| u64::from(self.rest.get(nth).copied().unwrap_or(ABSENT));
        // The first two labels decide most comparisons. They need no access to the slice.
        (nth(0) << 32 | nth(1), self.rest, self.name)
    }
}

#[derive(Debug, Default)]
pub struct Order {
    /// Ranks of the labels other than the name, of all series.
    rest: Vec<u32>,
    /// For each series, the end of its part of `rest`, and the rank of its metric name.
    series: Vec<(usize, u32)>,
}

impl Order {
    /// Ranks the labels of the series with these numbers. `index` takes the lock of the index. The lock is
    /// released between some series, so that writers of new series do not wait long. The series must stay in
    /// the index.
    pub fn of<G: Deref<Target = Index>>(numbers: &[u32], index: impl Fn() -> G) -> Self {
        let mut order = Self::default();
        let mut seen: Vec<bool> = Vec::new();
        let mut texts: Vec<(Arc<str>, Arc<str>, u32)> = Vec::new();
        for some in numbers.chunks(SERIES_AT_ONCE) {
            let index = index();
            for number in some {
                for pair in index.pairs_of(*number) {
                    let at = *pair as usize;
                    if at >= seen.len() {
                        seen.resize(at + 1, false);
                    }
                    if let Some(seen) = seen.get_mut(at).filter(|seen| !**seen) {
                        *seen = true;
                        let (name, value) = index.shared_pair(*pair);
                        texts.push((name, value, *pair));
                    }
                    order.rest.push(*pair);
                }
                order.series.push((order.rest.len(), ABSENT));
            }
        }
        texts.sort_unstable();
        let mut ranks = vec![ABSENT; seen.len()];
        // The first and the last rank of a metric name. No other label has a rank between them, because `texts` is sorted by the
        // names of labels.
        let mut names = (u32::MAX, ABSENT);
        for ((name, _, pair), rank) in texts.iter().zip(ABSENT + 1..) {
            if let Some(place) = ranks.get_mut(*pair as usize) {
                *place = rank;
            }
            if &**name == NAME {
                names = (names.0.min(rank), rank);
            }
        }
        order.rank(&ranks, |rank| (names.0..=names.1).contains(&rank));
        order
    }

    /// Replaces pairs by their ranks, and moves the metric names out of `rest`.
    fn rank(&mut self, ranks: &[u32], is_name: impl Fn(u32) -> bool) {
        let (mut from, mut to) = (0, 0);
        for (end, name) in &mut self.series {
            for at in from..*end {
                let pair = self.rest.get(at).copied().unwrap_or_default();
                let rank = ranks.get(pair as usize).copied().unwrap_or(ABSENT);
                if is_name(rank) {
                    *name = rank;
                } else if let Some(place) = self.rest.get_mut(to) {
                    *place = rank;
                    to += 1;
                }
            }
            (from, *end) = (*end, to);
        }
        self.rest.truncate(to);
    }

    /// The ranks of each series, in the order of the numbers.
    pub fn iter(&self) -> impl Iterator<Item = Ranks<'_>> {
        self.series.iter().scan(0, |from, (end, name)| {
            let rest = self.rest.get(*from..*end).unwrap_or_default();
            *from = *end;
            Some(Ranks { rest, name: *name })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tacho_model::{Kind, Labels};

    use super::*;

    proptest! {
        #[test]
        fn ranks_compare_like_labels(
            sets in proptest::collection::btree_set(
                proptest::collection::btree_map("[A-Z_a-c]{1,2}|__name__", "[ab\\x00]{1,3}", 0..4),
                1..30,
            ),
        ) {
            let mut index = Index::default();
            let sets: Vec<Labels> = sets.into_iter().map(|pairs| Labels::new(pairs).unwrap()).collect();
            let numbers: Vec<u32> =
                sets.iter().rev().map(|labels| index.add(Kind::Sample, labels.id(), labels)).collect();
            let order = Order::of(&numbers, || &index);
            let all: Vec<(Ranks<'_>, &Labels)> = order.iter().zip(sets.iter().rev()).collect();
            prop_assert_eq!(all.len(), sets.len());
            let rest = |labels: &Labels| -> Vec<(String, String)> {
                let others = labels.iter().filter(|(name, _)| *name != NAME);
                others.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
            };
            for ((one, of_one), (other, of_other)) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
                let labels = (rest(of_one), of_one.name()).cmp(&(rest(of_other), of_other.name()));
                prop_assert_eq!(one.key().cmp(&other.key()), labels);
                prop_assert_eq!(one.rest == other.rest, rest(of_one) == rest(of_other));
            }
        }
    }
}
