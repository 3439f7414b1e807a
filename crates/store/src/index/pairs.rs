//! The labels of all series. Each pair of a name and a value is stored once, and has a number. A series stores the
//! numbers of its pairs, four bytes each.

use std::sync::Arc;

use super::numbers::as_number;

/// Number of a pair. It is reused after the last series with the pair was removed.
pub type PairNumber = u32;

#[derive(Debug)]
struct Pair {
    name: Arc<str>,
    value: Arc<str>,
}

#[derive(Debug, Default)]
pub struct Pairs {
    /// `None` for an unused number.
    pairs: Vec<Option<Pair>>,
    unused: Vec<PairNumber>,
}

impl Pairs {
    /// Adds a pair that is not here. The texts are shared with the caller.
    pub fn add(&mut self, name: &Arc<str>, value: &Arc<str>) -> PairNumber {
        let pair = Some(Pair { name: name.clone(), value: value.clone() });
        match self.unused.pop().and_then(|number| Some((number, self.pairs.get_mut(number as usize)?))) {
            Some((number, place)) => {
                *place = pair;
                number
            }
            None => {
                self.pairs.push(pair);
                as_number(self.pairs.len() - 1)
            }
        }
    }

    /// Name and value. Empty for an unused number.
    pub fn get(&self, number: PairNumber) -> (&str, &str) {
        let pair = self.pairs.get(number as usize).and_then(Option::as_ref);
        pair.map_or(("", ""), |pair| (&pair.name, &pair.value))
    }

    /// Like [`Pairs::get`], but shares the texts, so that the caller can keep them without a copy.
    pub fn shared(&self, number: PairNumber) -> (Arc<str>, Arc<str>) {
        let pair = self.pairs.get(number as usize).and_then(Option::as_ref);
        pair.map_or_else(|| ("".into(), "".into()), |pair| (pair.name.clone(), pair.value.clone()))
    }

    pub fn remove(&mut self, number: PairNumber) {
        if let Some(place) = self.pairs.get_mut(number as usize).filter(|place| place.is_some()) {
            *place = None;
            self.unused.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reused_after_a_pair_was_removed() {
        let mut pairs = Pairs::default();
        let add = |pairs: &mut Pairs, value: &str| pairs.add(&"host".into(), &value.into());
        assert_eq!([add(&mut pairs, "a"), add(&mut pairs, "b")], [0, 1]);
        pairs.remove(0);
        pairs.remove(0);
        pairs.remove(7);
        assert_eq!([pairs.get(0), pairs.get(1), pairs.get(2)], [("", ""), ("host", "b"), ("", "")]);
        assert_eq!([add(&mut pairs, "c"), add(&mut pairs, "d")], [0, 2]);
        assert_eq!([pairs.get(0), pairs.get(2)], [("host", "c"), ("host", "d")]);
    }
}
