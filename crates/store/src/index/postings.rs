//! The series of one label, or of one value of a label, in a compact form. Labels with many values have few series per
//! value. Labels with few values have many series per value.
//!
//! The crate roaring 0.12 was measured as a replacement of this file and `bitmap.rs`, with the bench `index`. It needs
//! 3 % less memory (420 bytes per series instead of 432). Selections by a pattern take 1.5 to 3 times as long (0.50
//! ms instead of 0.20 ms for `hostname=~"host_1.*"`). Other selections take up to 1.5 times as long.

use super::bitmap::Bitmap;
use super::numbers::as_number;

/// Ascending numbers of series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Postings {
    One(u32),
    List(Vec<u32>),
    /// A bitmap and the number of its set bits. Smaller than a list if more than one of 32 series is set.
    Bits(Bitmap, u32),
}

/// Minimum length of a list that is converted to a bitmap. For a shorter list, a bitmap would save
/// almost nothing.
const LIST_MIN: usize = 64;
/// A list takes 32 bits per number, and a bitmap takes one bit per series. A list is larger than a bitmap if it
/// contains more than 1/`LIST_SHARE` of all series.
const LIST_SHARE: usize = 32;
/// A bitmap becomes a list again only when the list is at most a quarter as large. This prevents repeated conversions.
const BITS_SHARE: usize = 4 * LIST_SHARE;

impl Postings {
    /// `number` must be larger than all others.
    pub fn push(&mut self, number: u32) {
        let series = number as usize + 1;
        match self {
            Self::One(one) => *self = Self::List(vec![*one, number]),
            Self::List(list) => {
                list.push(number);
                if list.len() >= LIST_MIN && list.len() * LIST_SHARE > series {
                    *self = Self::Bits(list.iter().copied().collect(), as_number(list.len()));
                }
            }
            Self::Bits(bits, count) if *count as usize * BITS_SHARE < series => {
                *self = Self::List(bits.iter().chain([number]).collect());
            }
            Self::Bits(bits, count) => {
                bits.insert(number);
                *count += 1;
            }
        }
    }

    /// Removes a number that is in the postings. Returns `None` if no number remains.
    pub fn without(self, number: u32) -> Option<Self> {
        match self {
            Self::One(_) => None,
            Self::List(mut list) => {
                list.retain(|other| *other != number);
                (!list.is_empty()).then_some(Self::List(list))
            }
            Self::Bits(mut bits, count) => {
                bits.take(number);
                // The bitmap keeps its length, so it would stay large after most of its series have ended.
                let is_sparse = (count as usize).saturating_sub(1) * BITS_SHARE < bits.bytes() * 8;
                match count {
                    0 | 1 => None,
                    _ if is_sparse => Some(Self::List(bits.iter().collect())),
                    _ => Some(Self::Bits(bits, count - 1)),
                }
            }
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::List(list) => list.len(),
            Self::Bits(_, count) => *count as usize,
        }
    }

    pub fn add_to(&self, all: &mut Bitmap) {
        match self {
            Self::One(one) => all.insert(*one),
            Self::List(list) => list.iter().for_each(|number| all.insert(*number)),
            Self::Bits(bits, _) => all.unite(bits),
        }
    }

    pub fn to_bitmap(&self) -> Bitmap {
        let mut all = Bitmap::default();
        self.add_to(&mut all);
        all
    }

    pub fn to_vec(&self) -> Vec<u32> {
        match self {
            Self::One(one) => vec![*one],
            Self::List(list) => list.clone(),
            Self::Bits(bits, _) => bits.iter().collect(),
        }
    }

    pub fn meets(&self, other: &Bitmap) -> bool {
        match self {
            Self::One(one) => other.contains(*one),
            Self::List(list) => list.iter().any(|number| other.contains(*number)),
            Self::Bits(bits, _) => bits.meets(other),
        }
    }

    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::List(list) => list.capacity() * size_of::<u32>(),
            Self::Bits(bits, _) => bits.bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_kept_when_the_form_changes(
            gaps in proptest::collection::vec(prop_oneof![8 => 1u32..4, 1 => 1u32..100_000], 1..400),
        ) {
            let numbers: Vec<u32> =
                gaps.iter().scan(0u32, |at, gap| { *at += gap; Some(*at) }).collect();
            let mut postings = Postings::One(numbers[0]);
            numbers[1..].iter().for_each(|number| postings.push(*number));
            prop_assert_eq!(postings.len(), numbers.len());
            prop_assert_eq!(&postings.to_vec(), &numbers);
            let mut all = Bitmap::default();
            postings.add_to(&mut all);
            prop_assert_eq!(&all.iter().collect::<Vec<_>>(), &numbers);
            prop_assert!(postings.meets(&all));
            let left = numbers.iter().try_fold(postings.clone(), |postings, number| postings.without(*number));
            prop_assert_eq!(left, None);
            if let Some(left) = postings.clone().without(numbers[numbers.len() / 2]) {
                prop_assert!(!left.to_vec().contains(&numbers[numbers.len() / 2]));
                prop_assert_eq!((left.len(), left.to_vec().len()), (numbers.len() - 1, numbers.len() - 1));
            }
            // If most numbers are removed, the memory follows the rest.
            let few = &numbers[numbers.len() - numbers.len().min(3)..];
            let gone = &numbers[..numbers.len() - few.len()];
            let left = gone.iter().try_fold(postings.clone(), |postings, number| postings.without(*number)).unwrap();
            prop_assert_eq!((left.len(), left.to_vec()), (few.len(), few.to_vec()));
            prop_assert!(left.heap_bytes() <= 512.max(few.len() * BITS_SHARE / 8).max(numbers.len() * 4));
            let series = *numbers.last().unwrap() as usize + 1;
            // The memory is never much larger than that of the smaller form.
            prop_assert!(postings.heap_bytes() <= 512.max(2 * series.div_ceil(8)).min(512 + 32 * numbers.len()));
        }
    }
}
