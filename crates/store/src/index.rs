//! Which series are there, and which of them do these matchers mean?
//!
//! Postings in memory: label name -> value -> numbers of series, ascending. Loaded from the Series table when a
//! store is opened (`recover.rs`), extended when a batch brings a new series (`commit.rs`).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tacho_model::{Kind, Labels, MatchOp, Matcher, SeriesId};

type Postings = Vec<u32>;

/// A set of kinds of record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kinds(u8);

impl Kinds {
    const fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    fn add(&mut self, kind: Kind) {
        self.0 |= 1 << kind as u8;
    }
}

#[derive(Debug)]
struct Series {
    id: SeriesId,
    labels: Arc<Labels>,
    kinds: Kinds,
    /// Kinds whose row is in the Series table.
    persisted: Kinds,
}

#[derive(Debug, Default)]
pub struct Index {
    series: Vec<Series>,
    numbers: HashMap<SeriesId, u32>,
    postings: HashMap<Box<str>, BTreeMap<Box<str>, Postings>>,
    counts: [usize; 3],
}

const fn place(kind: Kind) -> usize {
    kind as usize - 1
}

impl Index {
    /// Number of series of all kinds; one with samples and entries counts once.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Series by kind, as [`Kind::ALL`] orders them.
    pub const fn counts(&self) -> [usize; 3] {
        self.counts
    }

    pub fn contains(&self, id: SeriesId) -> bool {
        self.numbers.contains_key(&id)
    }

    pub fn has(&self, kind: Kind, id: SeriesId) -> bool {
        self.get(id).is_some_and(|s| s.kinds.has(kind))
    }

    pub fn labels(&self, id: SeriesId) -> Option<&Arc<Labels>> {
        self.get(id).map(|s| &s.labels)
    }

    fn get(&self, id: SeriesId) -> Option<&Series> {
        self.series.get(*self.numbers.get(&id)? as usize)
    }

    pub fn add(&mut self, kind: Kind, id: SeriesId, labels: &Arc<Labels>) {
        let number = match self.numbers.entry(id) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                let Ok(number) = u32::try_from(self.series.len()) else { return };
                unknown.insert(number);
                let (kinds, persisted) = (Kinds::default(), Kinds::default());
                self.series.push(Series { id, labels: labels.clone(), kinds, persisted });
                for (name, value) in labels.iter() {
                    post(&mut self.postings, name, value, number);
                }
                number
            }
        };
        let series = &mut self.series[number as usize];
        if !series.kinds.has(kind) {
            series.kinds.add(kind);
            self.counts[place(kind)] += 1;
        }
    }

    pub fn is_persisted(&self, kind: Kind, id: SeriesId) -> bool {
        self.get(id).is_some_and(|s| s.persisted.has(kind))
    }

    pub fn set_persisted(&mut self, kind: Kind, id: SeriesId) {
        if let Some(number) = self.numbers.get(&id) {
            self.series[*number as usize].persisted.add(kind);
        }
    }

    /// Series of a kind that all matchers accept, in the order in which they came.
    pub fn find(&self, kind: Kind, matchers: &[Matcher]) -> Vec<(SeriesId, Arc<Labels>)> {
        // A matcher that accepts the empty value accepts series without the label: postings cannot narrow it.
        let (open, narrow): (Vec<&Matcher>, Vec<&Matcher>) =
            matchers.iter().partition(|m| m.matches_value(""));
        let mut lists: Vec<Postings> = narrow.iter().map(|m| self.postings_of(m)).collect();
        lists.sort_unstable_by_key(Vec::len);
        let mut lists = lists.into_iter();
        let candidates: Box<dyn Iterator<Item = &Series>> = match lists.next() {
            None => Box::new(self.series.iter()),
            Some(first) => {
                let common = lists.fold(first, |common, list| intersect(&common, &list));
                Box::new(common.into_iter().filter_map(|number| self.series.get(number as usize)))
            }
        };
        candidates
            .filter(|s| s.kinds.has(kind) && open.iter().all(|m| m.matches(&s.labels)))
            .map(|s| (s.id, s.labels.clone()))
            .collect()
    }

    fn postings_of(&self, matcher: &Matcher) -> Postings {
        let Some(values) = self.postings.get(matcher.label()) else { return Postings::new() };
        if matcher.op() == MatchOp::Equal {
            return values.get(matcher.value()).cloned().unwrap_or_default();
        }
        let mut all: Postings = values
            .iter()
            .filter(|(value, _)| matcher.matches_value(value))
            .flat_map(|(_, numbers)| numbers.iter().copied())
            .collect();
        all.sort_unstable();
        all
    }

    /// Names of labels, sorted.
    pub fn label_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.postings.keys().map(|n| n.to_string()).collect();
        names.sort_unstable();
        names
    }

    /// Values of one label, sorted.
    pub fn label_values(&self, name: &str) -> Vec<String> {
        self.postings.get(name).map_or(Vec::new(), |values| values.keys().map(|v| v.to_string()).collect())
    }
}

fn post(
    postings: &mut HashMap<Box<str>, BTreeMap<Box<str>, Postings>>,
    name: &str,
    value: &str,
    number: u32,
) {
    // Looked up by `&str` first: nearly always the name and the value are known already.
    if let Some(numbers) = postings.get_mut(name).and_then(|values| values.get_mut(value)) {
        numbers.push(number);
    } else {
        postings.entry(name.into()).or_default().insert(value.into(), vec![number]);
    }
}

/// Both ascending. The shorter one leads, the longer one is searched from where the last hit was.
fn intersect(short: &[u32], long: &[u32]) -> Postings {
    let mut rest = long;
    let mut common = Postings::new();
    for number in short {
        match rest.binary_search(number) {
            Ok(at) => {
                common.push(*number);
                rest = &rest[at + 1..];
            }
            Err(at) => rest = &rest[at..],
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        let mut index = Index::default();
        let series: [&[(&str, &str)]; 4] = [
            &[("__name__", "up"), ("job", "a"), ("zone", "x")],
            &[("__name__", "up"), ("job", "b")],
            &[("__name__", "down"), ("job", "a")],
            &[("__name__", "up"), ("job", "ab")],
        ];
        for pairs in series {
            let labels = Arc::new(Labels::new(pairs.iter().copied()).unwrap());
            index.add(Kind::Sample, labels.id(), &labels);
        }
        index
    }

    fn check(matchers: &[(&str, MatchOp, &str)], expect: &[&str]) {
        let matchers: Vec<Matcher> =
            matchers.iter().map(|(label, op, value)| Matcher::new(label, *op, value).unwrap()).collect();
        let found: Vec<String> =
            index().find(Kind::Sample, &matchers).iter().map(|(_, labels)| labels.to_string()).collect();
        assert_eq!(found, expect, "{matchers:?}");
    }

    #[test]
    fn matchers_select() {
        use MatchOp::{Equal, NotEqual, NotRegex, Regex};
        let [a, b, c, ab] =
            [r#"up{job="a", zone="x"}"#, r#"up{job="b"}"#, r#"down{job="a"}"#, r#"up{job="ab"}"#];
        check(&[], &[a, b, c, ab]);
        check(&[("__name__", Equal, "up")], &[a, b, ab]);
        check(&[("__name__", Equal, "up"), ("job", Equal, "a")], &[a]);
        check(&[("job", Regex, "a.*")], &[a, c, ab]);
        check(&[("job", NotRegex, "a.*")], &[b]);
        check(&[("job", NotEqual, "a")], &[b, ab]);
        check(&[("zone", Equal, "")], &[b, c, ab]);
        check(&[("zone", NotEqual, "")], &[a]);
        check(&[("zone", Regex, "x|")], &[a, b, c, ab]);
        check(&[("zone", NotEqual, "y"), ("job", Regex, "a")], &[a, c]);
        check(&[("nowhere", Equal, "x")], &[]);
        check(&[("job", Equal, "nobody"), ("__name__", Equal, "up")], &[]);
    }

    #[test]
    fn kinds_are_apart_and_counted() {
        let mut index = index();
        let labels = Arc::new(Labels::new([("__name__", "up"), ("job", "b")]).unwrap());
        index.add(Kind::Entry, labels.id(), &labels);
        index.add(Kind::Entry, labels.id(), &labels);
        assert_eq!(index.counts(), [4, 1, 0]);
        assert_eq!(index.len(), 4);
        assert_eq!(index.find(Kind::Entry, &[]).len(), 1);
        assert!(!index.is_persisted(Kind::Entry, labels.id()));
        index.set_persisted(Kind::Entry, labels.id());
        assert!(index.is_persisted(Kind::Entry, labels.id()));
        assert!(!index.is_persisted(Kind::Sample, labels.id()));
        assert_eq!(index.label_names(), ["__name__", "job", "zone"]);
        assert_eq!(index.label_values("job"), ["a", "ab", "b"]);
        assert_eq!(index.label_values("nope"), Vec::<String>::new());
    }
}
