//! Which series do these matchers mean, and which labels and values do those have?
//!
//! Begins with what narrows most, and looks at single series as soon as that is cheaper than the next matcher's
//! postings. A pattern is tried on each value of its label once, not on each series; where it begins with a literal,
//! on the values that begin so, and where it is a choice of literals, on those.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use tacho_model::{Candidates, Kind, Labels, MatchOp, Matcher, SeriesId};

use super::bitmap::Bitmap;
use super::postings::Postings;
use super::{Index, Label, SeriesNumber, place};

/// So few series are looked at one by one rather than by postings: about as long as one pass over a million bits.
const SINGLE_MAX: usize = 256;

/// What is left of the series while the matchers are applied.
enum Found {
    Set(Bitmap),
    /// Ascending.
    Few(Vec<SeriesNumber>),
}

impl Index {
    /// Series of a kind that all matchers accept, in the order in which they came.
    pub fn find(&self, kind: Kind, matchers: &[Matcher]) -> Vec<(SeriesId, Arc<Labels>)> {
        let numbers = self.select(kind, matchers).into_iter();
        numbers.map(|number| self.labels_of(number)).map(|labels| (labels.id(), labels.clone())).collect()
    }

    /// As [`Index::find`], as numbers.
    pub fn select(&self, kind: Kind, matchers: &[Matcher]) -> Vec<SeriesNumber> {
        let mut order: Vec<(usize, &Matcher)> = matchers.iter().map(|m| (self.cost(m), m)).collect();
        order.sort_by_key(|(cost, matcher)| {
            (matcher.op() != MatchOp::Equal || matcher.value().is_empty(), *cost)
        });
        let all = &self.kinds[place(kind)];
        let mut found = Found::Set(all.clone());
        let mut order = order.into_iter().peekable();
        if let Some((_, first)) = order.next_if(|(_, m)| m.op() == MatchOp::Equal && !m.value().is_empty()) {
            found = match self.postings(first.label(), first.value()) {
                None => return Vec::new(),
                Some(Postings::Bits(bits, _)) => {
                    let mut bits = bits.clone();
                    bits.keep(all);
                    Found::Set(bits)
                }
                Some(few) => Found::Few(few.to_vec().into_iter().filter(|n| all.contains(*n)).collect()),
            };
        }
        for (cost, matcher) in order {
            found = self.narrow(found, cost, matcher);
        }
        match found {
            Found::Set(set) => set.iter().collect(),
            Found::Few(few) => few,
        }
    }

    fn postings(&self, label: &str, value: &str) -> Option<&Postings> {
        self.labels.get(label)?.values.get(value)
    }

    /// Series that a matcher's postings name, or values that its pattern must be tried on.
    fn cost(&self, matcher: &Matcher) -> usize {
        let Some(label) = self.labels.get(matcher.label()) else { return 0 };
        match (matcher.op(), matcher.candidates()) {
            (MatchOp::Equal, _) => label.values.get(matcher.value()).map_or(0, Postings::len),
            (MatchOp::NotEqual, _) | (_, Candidates::Everything | Candidates::Something) => 0,
            (_, Candidates::Values(values)) => values.len(),
            (_, Candidates::Prefix(_)) => label.values.len(),
        }
    }

    fn narrow(&self, found: Found, cost: usize, matcher: &Matcher) -> Found {
        let pattern = matches!(matcher.op(), MatchOp::Regex | MatchOp::NotRegex);
        let single_max = if pattern { SINGLE_MAX.max(cost / 2) } else { SINGLE_MAX };
        let single = |n: &SeriesNumber| matcher.matches(self.labels_of(*n));
        match found {
            Found::Few(few) => Found::Few(match self.named(matcher, few.len()) {
                Some(named) => named.into_iter().filter(|n| few.binary_search(n).is_ok()).collect(),
                None if few.len() <= single_max => few.into_iter().filter(single).collect(),
                None => {
                    let accepted = self.accepted(matcher);
                    few.into_iter().filter(|n| accepted.contains(*n)).collect()
                }
            }),
            Found::Set(set) if set.len() <= single_max => Found::Few(set.iter().filter(single).collect()),
            Found::Set(mut set) => {
                set.keep(&self.accepted(matcher));
                Found::Set(set)
            }
        }
    }

    /// Series that a choice of values accepts, ascending; `None` when it is no such choice, or they are more than `most`.
    fn named(&self, matcher: &Matcher, most: usize) -> Option<Vec<SeriesNumber>> {
        let (MatchOp::Equal | MatchOp::Regex, Candidates::Values(values)) =
            (matcher.op(), matcher.candidates())
        else {
            return None;
        };
        if matcher.matches_value("") {
            return None;
        }
        let values = values.iter().filter(|value| matcher.matches_value(value));
        let postings: Vec<&Postings> = values.filter_map(|v| self.postings(matcher.label(), v)).collect();
        if postings.iter().map(|postings| postings.len()).sum::<usize>() > most {
            return None;
        }
        let mut named: Vec<SeriesNumber> = postings.into_iter().flat_map(Postings::to_vec).collect();
        named.sort_unstable();
        named.dedup();
        Some(named)
    }

    /// All series of any kind that a matcher accepts.
    fn accepted(&self, matcher: &Matcher) -> Bitmap {
        let Some(label) = self.labels.get(matcher.label()) else {
            return if matcher.matches_value("") { self.everything() } else { Bitmap::default() };
        };
        let negative = matches!(matcher.op(), MatchOp::NotEqual | MatchOp::NotRegex);
        // Series whose value is what `=` and `=~` want.
        let wanted = match matcher.candidates() {
            Candidates::Everything => self.everything(),
            Candidates::Something => label.carriers(),
            _ => {
                let mut wanted = label.wanted(matcher, negative);
                if matcher.matches_value("") != negative {
                    let mut without = self.everything();
                    without.remove(&label.carriers());
                    wanted.unite(&without);
                }
                wanted
            }
        };
        if !negative {
            return wanted;
        }
        let mut rest = self.everything();
        rest.remove(&wanted);
        rest
    }

    /// Removed series are among them; no kind holds these.
    fn everything(&self) -> Bitmap {
        Bitmap::up_to(self.series.len() as SeriesNumber)
    }

    /// Series of a kind that any of the selectors accepts; all of the kind when there is none.
    fn any_of(&self, kind: Kind, selectors: &[Vec<Matcher>]) -> Bitmap {
        if selectors.is_empty() {
            return self.kinds[place(kind)].clone();
        }
        selectors.iter().flat_map(|matchers| self.select(kind, matchers)).collect()
    }

    /// Names of the labels of the series that any of the selectors accepts, sorted; of all when there is none.
    pub fn label_names(&self, kind: Kind, selectors: &[Vec<Matcher>]) -> Vec<String> {
        let series = self.any_of(kind, selectors);
        let found =
            self.labels.iter().filter(|(_, label)| label.carriers.as_ref().is_some_and(|c| c.meets(&series)));
        found.map(|(name, _)| name.to_string()).collect()
    }

    /// Values of one label of the series that any of the selectors accepts, sorted; of all when there is none.
    pub fn label_values(&self, kind: Kind, name: &str, selectors: &[Vec<Matcher>]) -> Vec<String> {
        let Some(label) = self.labels.get(name) else { return Vec::new() };
        let mut series = self.any_of(kind, selectors);
        series.keep(&label.carriers());
        if series.len() < label.values.len() {
            let values = series.iter().filter_map(|n| self.labels_of(n).get(name));
            return values.collect::<BTreeSet<&str>>().into_iter().map(str::to_owned).collect();
        }
        let found = label.values.iter().filter(|(_, postings)| postings.meets(&series));
        found.map(|(value, _)| value.to_string()).collect()
    }
}

impl Label {
    fn carriers(&self) -> Bitmap {
        self.carriers.as_ref().map_or_else(Bitmap::default, Postings::to_bitmap)
    }

    /// Series with a value that the matcher accepts, or refuses when it is `negative`.
    fn wanted(&self, matcher: &Matcher, negative: bool) -> Bitmap {
        let mut all = Bitmap::default();
        let is_wanted = |value: &str| matcher.matches_value(value) != negative;
        match matcher.candidates() {
            Candidates::Values(values) => {
                let values = values.iter().filter(|value| is_wanted(value));
                let known = values.filter_map(|value| self.values.get(value.as_str()));
                known.for_each(|postings| postings.add_to(&mut all));
            }
            Candidates::Prefix(prefix) => {
                let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
                let range =
                    self.values.range::<str, _>(from).take_while(|(v, _)| v.starts_with(prefix.as_str()));
                range.filter(|(v, _)| is_wanted(v)).for_each(|(_, postings)| postings.add_to(&mut all));
            }
            Candidates::Everything | Candidates::Something => all = self.carriers(),
        }
        all
    }
}
