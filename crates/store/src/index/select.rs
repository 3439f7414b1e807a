//! Selects series by matchers, and lists their labels and values.
//!
//! A selection starts with the `=` matcher that has the fewest series. It checks series one by one as soon as these checks
//! are cheaper than the postings of the next matcher. Until then, a pattern is tried once on each value of its label, not on each
//! series. A pattern with a literal prefix is tried only on values with that prefix, a choice of literals only on these literals.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use tacho_model::{Candidates, Kind, Labels, MatchOp, Matcher, SeriesId};
use tokio::time::Instant;

use super::bitmap::Bitmap;
use super::postings::Postings;
use super::{Index, Label, SeriesNumber, labels_of_all};
use crate::guarded::Guarded;
use crate::kinds::of_kind;

/// At most this many series are checked one by one. For more series, postings are used. 256 checks take as long as one pass over
/// a million bits. For a pattern, the limit is half of the pattern's cost ([`Index::cost`]), if that is more than 256.
const SINGLE_MAX: usize = 256;

/// The remaining series while the matchers are applied.
enum Found {
    Set(Bitmap),
    /// Numbers of series, ascending.
    Few(Vec<SeriesNumber>),
}

impl Index {
    fn postings(&self, label: &str, value: &str) -> Option<&Postings> {
        self.labels.get(label)?.values.get(value).map(|valued| &valued.postings)
    }

    /// Estimated cost of a matcher: the number of series in its postings, or of values on which its pattern may be tried.
    fn cost(&self, matcher: &Matcher) -> usize {
        let Some(label) = self.labels.get(matcher.label()) else { return 0 };
        match (matcher.op(), matcher.candidates()) {
            (MatchOp::Equal, _) => {
                label.values.get(matcher.value()).map_or(0, |valued| valued.postings.len())
            }
            (MatchOp::NotEqual, _) | (_, Candidates::Everything | Candidates::Something) => 0,
            (_, Candidates::Values(values)) => values.len(),
            (_, Candidates::Prefix(_)) => label.values.len(),
        }
    }

    /// Series that a choice of literal values accepts, ascending. `None` for other matchers, for a matcher that also accepts
    /// series without the label, and if more than `most` series are selected.
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

    /// All series of any kind that a matcher accepts. `tried` contains the series with a value that its pattern matched.
    fn accepted(&self, matcher: &Matcher, tried: Bitmap) -> Bitmap {
        let Some(label) = self.labels.get(matcher.label()) else {
            return if matcher.matches_value("") { self.everything() } else { Bitmap::default() };
        };
        let negative = is_negative(matcher);
        // The series that the matcher without its negation (`=` or `=~`) selects.
        let wanted = match matcher.candidates() {
            Candidates::Everything => self.everything(),
            Candidates::Something => label.carriers(),
            candidates => {
                let mut wanted = tried;
                if let Candidates::Values(values) = candidates {
                    let values = values.iter().filter(|value| matcher.matches_value(value) != negative);
                    let known = values.filter_map(|value| label.values.get(value.as_str()));
                    known.for_each(|valued| valued.postings.add_to(&mut wanted));
                }
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

    /// All numbers, including those of removed series. Removed series have no kind.
    fn everything(&self) -> Bitmap {
        Bitmap::up_to(self.next)
    }

    /// These series, restricted to the kind; for `None`, all series of the kind.
    fn restricted(&self, kind: Kind, numbers: Option<&[SeriesNumber]>) -> Bitmap {
        let all = || of_kind(&self.kinds, kind).clone();
        numbers.map_or_else(all, |numbers| numbers.iter().copied().filter(|n| self.is_of(kind, *n)).collect())
    }

    /// Sorted label names of these series of a kind; for `None`, of all series.
    pub fn label_names(&self, kind: Kind, numbers: Option<&[SeriesNumber]>) -> Vec<String> {
        let series = self.restricted(kind, numbers);
        let found =
            self.labels.iter().filter(|(_, label)| label.carriers.as_ref().is_some_and(|c| c.meets(&series)));
        found.map(|(name, _)| name.to_string()).collect()
    }

    #[cfg(test)]
    pub fn label_values(&self, kind: Kind, name: &str, numbers: Option<&[SeriesNumber]>) -> Vec<String> {
        self.label_values_within(kind, name, numbers, usize::MAX)
    }

    /// Sorted values of one label of these series of a kind; for `None`, of all series. Stops after the value at which
    /// the total length exceeds `bytes_max`.
    pub fn label_values_within(
        &self,
        kind: Kind,
        name: &str,
        numbers: Option<&[SeriesNumber]>,
        bytes_max: usize,
    ) -> Vec<String> {
        let Some(label) = self.labels.get(name) else { return Vec::new() };
        let mut series = self.restricted(kind, numbers);
        series.keep(&label.carriers());
        if series.len() < label.values.len() {
            let values = series.iter().filter_map(|n| self.value_of(n, name));
            return within(values.collect::<BTreeSet<&str>>().into_iter().map(str::to_owned), bytes_max);
        }
        let found = label.values.iter().filter(|(_, valued)| valued.postings.meets(&series));
        within(found.map(|(value, _)| value.to_string()), bytes_max)
    }
}

/// The texts up to and including the text at which their total length exceeds `bytes_max`.
fn within(texts: impl Iterator<Item = String>, bytes_max: usize) -> Vec<String> {
    let mut bytes = 0usize;
    let fits = |text: &String| {
        let fits = bytes <= bytes_max;
        bytes = bytes.saturating_add(text.len());
        fits
    };
    texts.take_while(fits).collect()
}

impl Label {
    fn carriers(&self) -> Bitmap {
        self.carriers.as_ref().map_or_else(Bitmap::default, Postings::to_bitmap)
    }
}

fn is_negative(matcher: &Matcher) -> bool {
    matches!(matcher.op(), MatchOp::NotEqual | MatchOp::NotRegex)
}

/// Longest time that a selection holds the lock of the index. A writer with a new series waits for the lock, and all
/// later readers and writers wait for that writer.
const TURN_MAX: Duration = Duration::from_millis(1);
/// Number of values or series that are tried between two checks of the clock and of the caller.
const TRIES: u32 = 16;

/// Returns whether the caller is still waiting. Called often during a selection.
type Waits<'a> = &'a dyn Fn() -> bool;

/// A period of work under the lock of the index. It ends early when the caller stops waiting.
struct Turn<'a> {
    until: Instant,
    waits: Waits<'a>,
    tries: u32,
}

impl<'a> Turn<'a> {
    fn new(time: Duration, waits: Waits<'a>) -> Self {
        Self { until: Instant::now() + time, waits, tries: 0 }
    }

    fn is_over(&mut self) -> bool {
        self.tries += 1;
        self.tries.is_multiple_of(TRIES) && (Instant::now() >= self.until || !(self.waits)())
    }
}

#[derive(Default)]
enum Work {
    #[default]
    Nothing,
    /// The remaining series, checked one by one.
    Series { left: std::vec::IntoIter<SeriesNumber>, accepted: Vec<SeriesNumber> },
    /// The values of the matcher's label up to `last` were tried.
    Values { last: Option<Arc<str>>, wanted: Bitmap },
}

/// A selection that can be interrupted, because trying a pattern on all values may take seconds. It can continue after
/// the index has changed, because numbers are not reused.
struct Selecting<'m> {
    kind: Kind,
    /// Matchers to be applied, in reverse order, with their cost.
    rest: Vec<(usize, &'m Matcher)>,
    found: Found,
    work: Work,
}

impl<'m> Selecting<'m> {
    fn new(index: &Index, kind: Kind, matchers: &'m [Matcher]) -> Self {
        let is_equality = |matcher: &Matcher| matcher.op() == MatchOp::Equal && !matcher.value().is_empty();
        let mut rest: Vec<(usize, &Matcher)> = matchers.iter().map(|m| (index.cost(m), m)).collect();
        rest.sort_by_key(|(cost, matcher)| (!is_equality(matcher), *cost));
        rest.reverse();
        let all = of_kind(&index.kinds, kind);
        let first = rest.pop_if(|(_, matcher)| is_equality(matcher));
        let found = match first.map(|(_, first)| index.postings(first.label(), first.value())) {
            None => Found::Set(all.clone()),
            Some(None) => Found::Few(Vec::new()),
            Some(Some(Postings::Bits(bits, _))) => {
                let mut bits = bits.clone();
                bits.keep(all);
                Found::Set(bits)
            }
            Some(Some(few)) => Found::Few(few.to_vec().into_iter().filter(|n| all.contains(*n)).collect()),
        };
        Self { kind, rest, found, work: Work::Nothing }
    }

    /// Returns whether all matchers were applied before the turn ended.
    fn apply_matchers(&mut self, index: &Index, turn: &mut Turn<'_>) -> bool {
        while let Some((cost, matcher)) = self.rest.last().copied() {
            if matches!(self.work, Work::Nothing) {
                self.begin(index, cost, matcher);
            }
            match &mut self.work {
                // `begin` has already applied the matcher, which is a choice of values.
                Work::Nothing => {}
                Work::Series { left, accepted } => {
                    for number in left {
                        if matcher.matches_value(index.value_of(number, matcher.label()).unwrap_or("")) {
                            accepted.push(number);
                        }
                        if turn.is_over() {
                            return false;
                        }
                    }
                    self.found = Found::Few(std::mem::take(accepted));
                }
                Work::Values { last, wanted } => {
                    if !index.try_values(matcher, last, wanted, turn) {
                        return false;
                    }
                    let accepted = index.accepted(matcher, std::mem::take(wanted));
                    match &mut self.found {
                        Found::Set(set) => set.keep(&accepted),
                        Found::Few(few) => few.retain(|number| accepted.contains(*number)),
                    }
                }
            }
            self.work = Work::Nothing;
            self.rest.pop();
        }
        true
    }

    fn begin(&mut self, index: &Index, cost: usize, matcher: &Matcher) {
        let pattern = matches!(matcher.op(), MatchOp::Regex | MatchOp::NotRegex);
        let single_max = if pattern { SINGLE_MAX.max(cost / 2) } else { SINGLE_MAX };
        let series =
            |numbers: Vec<SeriesNumber>| Work::Series { left: numbers.into_iter(), accepted: Vec::new() };
        self.work = match &mut self.found {
            Found::Few(few) => match index.named(matcher, few.len()) {
                Some(mut named) => {
                    named.retain(|number| few.binary_search(number).is_ok());
                    *few = named;
                    Work::Nothing
                }
                None if few.len() <= single_max => series(std::mem::take(few)),
                None => Work::Values { last: None, wanted: Bitmap::default() },
            },
            Found::Set(set) if set.len() <= single_max => series(set.iter().collect()),
            Found::Set(_) => Work::Values { last: None, wanted: Bitmap::default() },
        };
    }

    /// The numbers of the selected series, without series that have left the index during the selection.
    fn into_found(self, index: &Index) -> Vec<SeriesNumber> {
        let all = match self.found {
            Found::Set(set) => set.iter().collect(),
            Found::Few(few) => few,
        };
        all.into_iter().filter(|number| index.is_of(self.kind, *number)).collect()
    }
}

impl Index {
    /// Tries a pattern on the candidate values after `last`. Returns whether all were tried before the turn ended.
    fn try_values(
        &self,
        matcher: &Matcher,
        last: &mut Option<Arc<str>>,
        wanted: &mut Bitmap,
        turn: &mut Turn<'_>,
    ) -> bool {
        let (Some(label), Candidates::Prefix(prefix)) =
            (self.labels.get(matcher.label()), matcher.candidates())
        else {
            return true;
        };
        let negative = is_negative(matcher);
        let from = last.as_deref().map_or(Bound::Included(prefix.as_str()), Bound::Excluded);
        let range = label.values.range::<str, _>((from, Bound::Unbounded));
        let mut left = None;
        for (value, valued) in range.take_while(|(value, _)| value.starts_with(prefix.as_str())) {
            if matcher.matches_value(value) != negative {
                valued.postings.add_to(wanted);
            }
            if turn.is_over() {
                left = Some(value.clone());
                break;
            }
        }
        let is_done = left.is_none();
        *last = left;
        is_done
    }
}

/// Numbers of the series of a kind that all matchers accept, ascending. `None` if the caller has stopped waiting. The lock is
/// released between turns.
pub fn select(
    index: &Guarded<Index>,
    kind: Kind,
    matchers: &[Matcher],
    waits: Waits<'_>,
) -> Option<Vec<SeriesNumber>> {
    let mut selecting = Selecting::new(&index.read(), kind, matchers);
    while waits() {
        let index = index.read();
        if selecting.apply_matchers(&index, &mut Turn::new(TURN_MAX, waits)) {
            return Some(selecting.into_found(&index));
        }
    }
    None
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfound {
    NotAwaited,
    TooMany,
}

/// Like [`select`], but returns the ids and labels of the series. Labels take much memory, so they are not made if more than
/// `series_max` series are selected.
pub fn find(
    index: &Guarded<Index>,
    kind: Kind,
    matchers: &[Matcher],
    series_max: usize,
    waits: Waits<'_>,
) -> Result<Vec<(SeriesId, Arc<Labels>)>, Unfound> {
    let numbers = select(index, kind, matchers, waits).ok_or(Unfound::NotAwaited)?;
    if numbers.len() > series_max {
        return Err(Unfound::TooMany);
    }
    let found = labels_of_all(index, &numbers, |index, number| index.is_of(kind, number), waits);
    let found = found.ok_or(Unfound::NotAwaited)?;
    Ok(found.into_iter().map(|(_, labels)| (labels.id(), labels)).collect())
}

/// The series of a kind that at least one selector accepts, or all series if there is no selector.
pub enum Selected {
    All,
    These(Vec<SeriesNumber>),
}

impl Selected {
    /// Numbers of the series; `None` means all.
    pub fn numbers(&self) -> Option<&[SeriesNumber]> {
        match self {
            Self::All => None,
            Self::These(numbers) => Some(numbers),
        }
    }
}

/// `None` if the caller has stopped waiting.
pub fn select_any(
    index: &Guarded<Index>,
    kind: Kind,
    selectors: &[Vec<Matcher>],
    waits: Waits<'_>,
) -> Option<Selected> {
    if selectors.is_empty() {
        return Some(Selected::All);
    }
    let mut found = Vec::new();
    for matchers in selectors {
        found.extend(select(index, kind, matchers, waits)?);
    }
    Some(Selected::These(found))
}

#[cfg(test)]
impl Index {
    /// Like [`find`], but with the shortest possible turns.
    pub fn find(&self, kind: Kind, matchers: &[Matcher]) -> Vec<(SeriesId, Arc<Labels>)> {
        let mut selecting = Selecting::new(self, kind, matchers);
        while !selecting.apply_matchers(self, &mut Turn::new(Duration::ZERO, &|| true)) {}
        let labels = selecting.into_found(self).into_iter().map(|number| self.labels_of(number));
        labels.map(|labels| (labels.id(), labels)).collect()
    }

    /// Series that any selector accepts.
    pub fn any_of(&self, kind: Kind, selectors: &[Vec<Matcher>]) -> Option<Vec<SeriesNumber>> {
        let found = selectors.iter().flat_map(|matchers| self.find(kind, matchers));
        (!selectors.is_empty()).then(|| found.filter_map(|(id, _)| self.number(id)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn add(index: &mut Index, host: &str) {
        let labels = Arc::new(Labels::new([("name", "m"), ("host", host)]).unwrap());
        index.add(Kind::Sample, labels.id(), &labels);
    }

    #[test]
    fn a_selection_releases_the_index_and_continues_after_changes() {
        for (op, ends) in [(MatchOp::Regex, [0, 5]), (MatchOp::NotRegex, [3, 4])] {
            let mut index = Index::default();
            (0..1_000).for_each(|n| add(&mut index, &format!("host-{n}")));
            let pattern = if op == MatchOp::Regex { ".*[05]" } else { ".*[125-90]" };
            let matchers = [Matcher::equal("name", "m"), Matcher::new("host", op, pattern).unwrap()];
            let mut selecting = Selecting::new(&index, Kind::Sample, &matchers);
            let (mut turns, mut gone) = (0, Vec::new());
            while !selecting.apply_matchers(&index, &mut Turn::new(Duration::ZERO, &|| true)) {
                add(&mut index, &format!("host-{turns}-0"));
                gone.push((7 * turns) % 1_000);
                index.remove(Kind::Sample, (7 * turns) % 1_000);
                turns += 1;
            }
            assert!(turns >= 1_000 / TRIES, "only {turns} turns");
            let expect = (0..1_000).filter(|n| ends.contains(&(n % 10)) && !gone.contains(n));
            assert_eq!(selecting.into_found(&index), expect.collect::<Vec<u32>>());
        }
    }

    #[test]
    fn a_selection_stops_when_its_caller_stops_waiting() {
        let mut index = Index::default();
        for n in 0..2 * SINGLE_MAX {
            let name = if n < 240 { "few" } else { "many" };
            let labels = Arc::new(Labels::new([("name", name), ("host", &format!("host-{n}"))]).unwrap());
            index.add(Kind::Sample, labels.id(), &labels);
        }
        let index = Guarded::new(index);
        let pattern = Matcher::new("host", MatchOp::Regex, ".*0").unwrap();
        // Selects by postings, and by checking series one by one.
        let few = Matcher::equal("name", "few");
        for matchers in [vec![pattern.clone()], vec![few, pattern.clone()]] {
            let asked = Cell::new(0);
            let waits = |most: u32| {
                asked.set(0);
                let asked = &asked;
                move || {
                    asked.set(asked.get() + 1);
                    asked.get() <= most
                }
            };
            let all = select(&index, Kind::Sample, &matchers, &waits(u32::MAX)).unwrap();
            assert!(
                !all.is_empty() && asked.get() >= 240 / TRIES,
                "nothing was found, or the caller was asked only {} times",
                asked.get()
            );
            for most in [0, 1, 5] {
                assert_eq!(select(&index, Kind::Sample, &matchers, &waits(most)), None);
                // The caller may be asked once more at the end of a turn, and once more before the next turn.
                assert!(
                    asked.get() <= most + 2,
                    "the caller stopped waiting after {most} questions, but was asked {} times",
                    asked.get()
                );
            }
            let any = select_any(&index, Kind::Sample, &[matchers.clone(), matchers.clone()], &waits(5));
            assert!(any.is_none() && asked.get() <= 7);
        }
    }
}
