//! The labels of series, made of their pairs when a caller needs them.

use std::sync::Arc;

use tacho_model::{Labels, NAME, SeriesId};

use super::pairs::PairNumber;
use super::{Index, SeriesNumber};
use crate::guarded::Guarded;

/// Number of series that are read under one lock of the index. The lock is held for at most about 0.2 ms.
pub const SERIES_AT_ONCE: usize = 1_024;
/// Labels that adjacent series have in common are shared from this number of bytes on. Below it, copies take less time.
const COMMON_BYTES_MIN: usize = 1_024;

impl Index {
    pub fn labels_of(&self, number: SeriesNumber) -> Arc<Labels> {
        let pairs = self.pairs_of(number).iter().map(|pair| self.pairs.get(*pair));
        Arc::new(Labels::from_sorted(pairs))
    }

    pub fn shared_pair(&self, pair: PairNumber) -> (Arc<str>, Arc<str>) {
        self.pairs.shared(pair)
    }

    pub fn labels(&self, id: SeriesId) -> Option<Arc<Labels>> {
        Some(self.labels_of(self.number(id)?))
    }

    /// The value of one label of a series; `None` if the series has no such label.
    pub fn value_of(&self, number: SeriesNumber, name: &str) -> Option<&str> {
        let mut pairs = self.pairs_of(number).iter().map(|pair| self.pairs.get(*pair));
        pairs.find(|(other, _)| *other == name).map(|(_, value)| value)
    }
}

/// The labels of the series that `wanted` accepts. The lock is released after every `SERIES_AT_ONCE` numbers, so that writers of
/// new series do not wait long. `None` when `waits` returns false.
pub fn labels_of_all(
    index: &Guarded<Index>,
    numbers: &[SeriesNumber],
    wanted: impl Fn(&Index, SeriesNumber) -> bool,
    waits: &dyn Fn() -> bool,
) -> Option<Vec<(SeriesNumber, Arc<Labels>)>> {
    let mut all = Vec::with_capacity(numbers.len());
    for some in numbers.chunks(SERIES_AT_ONCE) {
        if !waits() {
            return None;
        }
        let index = index.read();
        let mut common = Common::default();
        let wanted = some.iter().filter(|number| wanted(&index, **number));
        all.extend(wanted.map(|number| (*number, common.labels_of(&index, *number))));
    }
    Some(all)
}

/// The labels that adjacent series share if the series differ only in `__name__`. The fields of a line in line protocol are such
/// series.
#[derive(Default)]
struct Common<'i> {
    /// The pairs of the last series, by number: those before its name, and those after its name.
    pairs: (&'i [PairNumber], &'i [PairNumber]),
    /// The labels of `pairs`, if two adjacent series have them and their texts have at least [`COMMON_BYTES_MIN`] bytes.
    base: Option<Arc<Labels>>,
    scratch: Vec<u8>,
}

impl<'i> Common<'i> {
    fn labels_of(&mut self, index: &'i Index, number: SeriesNumber) -> Arc<Labels> {
        let pairs = index.pairs_of(number);
        let text = |pair: &PairNumber| index.pairs.get(*pair);
        let Some(place) = pairs.iter().position(|pair| text(pair).0 == NAME) else {
            return index.labels_of(number);
        };
        let Some((before, [name, after @ ..])) = pairs.split_at_checked(place) else {
            return index.labels_of(number);
        };
        if self.pairs != (before, after) {
            (self.pairs, self.base) = ((before, after), None);
            return index.labels_of(number);
        }
        let base = self.base.take().or_else(|| {
            let texts = before.iter().chain(after).map(text);
            let bytes: usize = texts.clone().map(|(name, value)| name.len() + value.len()).sum();
            (bytes >= COMMON_BYTES_MIN).then(|| Arc::new(Labels::from_sorted(texts)))
        });
        let Some(base) = base else { return index.labels_of(number) };
        let labels = Labels::sharing(&base, NAME, text(name).1, &mut self.scratch);
        self.base = Some(base);
        labels.map_or_else(|_| index.labels_of(number), Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use tacho_model::Kind;

    use super::*;

    #[test]
    fn adjacent_series_share_long_labels() {
        let (long, other) = ("x".repeat(COMMON_BYTES_MIN), "y".repeat(COMMON_BYTES_MIN));
        let of =
            |name: &str, tag: &str| Arc::new(Labels::new([("A", "1"), (NAME, name), ("tag", tag)]).unwrap());
        let unnamed = Arc::new(Labels::new([("tag", &*long)]).unwrap());
        let all = [
            of("a", &long),
            of("b", &long),
            of("c", &long),
            of("a", &other),
            unnamed,
            of("a", "z"),
            of("b", "z"),
        ];
        let mut index = Index::default();
        let numbers: Vec<SeriesNumber> =
            all.iter().map(|labels| index.add(Kind::Sample, labels.id(), labels)).collect();
        let index = Guarded::new(index);
        let found = labels_of_all(&index, &numbers, |_, _| true, &|| true).unwrap();
        let labels: Vec<&Arc<Labels>> = found.iter().map(|(_, labels)| labels).collect();
        assert_eq!(labels, all.iter().collect::<Vec<_>>());
        assert!(labels.iter().zip(&all).all(|(labels, expected)| labels.id() == expected.id()));
        let shares: Vec<bool> = labels.iter().map(|labels| labels.base().is_some()).collect();
        assert_eq!(shares, [false, true, true, false, false, false, false]);
        assert!(labels[1].base().zip(labels[2].base()).is_some_and(|(one, other)| Arc::ptr_eq(one, other)));
    }
}
