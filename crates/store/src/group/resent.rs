//! Times of samples were moved, and some samples came later: which of these are the moved ones, sent again?
//!
//! A sender that gets no answer sends a batch again. The later write replaces the earlier one, which has the same times; but a
//! rule may have moved them. A moved time is nearer to its own original than to any other of its row
//! (`tacho_chunk::semantic::compact_times`) and no further than the row's error. So a later sample is the moved one that is
//! nearest to it, if that is no further than the error: it takes that one's place, at its time. First and last of a row were not
//! moved, so what lies outside of it is new.
//!
//! What was not recognised once stays what it is: a merge writes it into a row of its own (without an error of times) whose
//! generation is that of the moved row, and only what is of a later generation is compared.
//!
//! What cannot be told is a new sample that is no further from a moved one than its error: it counts as that one. The error is at
//! most the rule's bound and a quarter of the usual distance of samples.

use std::collections::BTreeSet;

use tacho_chunk::Times;
use tacho_model::{TimeRange, Timestamp};

use super::piece::Place;

/// A row whose times were moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// From its first time to its last.
    pub range: TimeRange,
    /// By how much its times may have been moved, ns; above 0.
    pub error: u64,
}

impl Moved {
    /// `None` for a row of exact times.
    pub fn new(start: Timestamp, end: Timestamp, error: u64) -> Option<Self> {
        (error > 0).then_some(Self { range: TimeRange::new(start, end), error })
    }

    /// Where there is something between its samples.
    const fn inside(&self) -> TimeRange {
        TimeRange::new(self.range.start.saturating_add(1), self.range.end.saturating_sub(1))
    }

    /// Does this time lie among its times without being one of them?
    pub fn parts(&self, times: &Times, at: Timestamp) -> bool {
        self.inside().contains(at) && times.slice(TimeRange::new(at, at)).is_empty()
    }
}

/// Times of one series in one row, or in memory.
#[derive(Clone, Copy, Debug)]
pub struct Timed<'a> {
    pub place: Place,
    pub times: &'a Times,
    pub moved: Option<Moved>,
}

/// For each, the times that it has when those of samples that were sent again are where these stand. `None`: those that it has.
pub fn recognise(rows: &[Timed<'_>]) -> Vec<Option<Times>> {
    let mut known: Vec<Option<Times>> = vec![None; rows.len()];
    for (row, moved) in rows.iter().filter_map(|row| Some((row, row.moved?))) {
        let is_later = |at: &usize| rows[*at].moved.is_none() && rows[*at].place.0 > row.place.0;
        let mut later: Vec<usize> = (0..rows.len()).filter(is_later).collect();
        if later.is_empty() {
            continue;
        }
        later.sort_by_key(|at| rows[*at].place);
        // Samples that stand between the moved ones, and are not among them.
        let earlier = rows.iter().filter(|other| other.moved.is_none() && other.place.0 <= row.place.0);
        let times = earlier.flat_map(|other| other.times.part(other.times.slice(moved.inside())).to_vec());
        let mut apart: BTreeSet<Timestamp> = times.collect();
        for at in later {
            let times = known[at].as_ref().unwrap_or(rows[at].times);
            if let Some(times) = settled(times, row.times, &moved, &mut apart) {
                known[at] = Some(times);
            }
        }
    }
    known
}

/// `None` where nothing changes. What is new is added to `apart`.
fn settled(late: &Times, slots: &Times, moved: &Moved, apart: &mut BTreeSet<Timestamp>) -> Option<Times> {
    let places = late.slice(moved.inside());
    let inside = late.part(places.clone()).to_vec();
    let wanted: Vec<Option<(usize, u64)>> = inside
        .iter()
        .map(|at| nearest(slots, *at).filter(|(_, distance)| *distance <= moved.error && !apart.contains(at)))
        .collect();
    let mut all: Option<Vec<Timestamp>> = None;
    for (n, (at, slot)) in inside.iter().zip(nearest_each(&wanted)).enumerate() {
        match slot.and_then(|slot| slots.get(slot)).filter(|slot| passes_none(&inside, n, *slot)) {
            Some(slot) if slot == *at => {}
            Some(slot) => all.get_or_insert_with(|| late.to_vec())[places.start + n] = slot,
            None => {
                apart.insert(*at);
            }
        }
    }
    Times::new(&all?)
}

/// For each sample its slot, if of all that want this slot it is the nearest, the first of two. Slots are in order.
fn nearest_each(wanted: &[Option<(usize, u64)>]) -> Vec<Option<usize>> {
    let mut found = vec![None; wanted.len()];
    let mut best: Option<(usize, u64, usize)> = None;
    for (n, (slot, distance)) in wanted.iter().enumerate().filter_map(|(n, wanted)| Some((n, (*wanted)?))) {
        if let Some((best_slot, best_distance, best_n)) = best
            && best_slot == slot
        {
            if best_distance <= distance {
                continue;
            }
            found[best_n] = None;
        }
        found[n] = Some(slot);
        best = Some((slot, distance, n));
    }
    found
}

/// Does a sample keep its place among the others that came with it when it goes to `slot`?
fn passes_none(all: &[Timestamp], n: usize, slot: Timestamp) -> bool {
    let before = n.checked_sub(1).and_then(|n| all.get(n));
    before.is_none_or(|before| *before < slot) && all.get(n + 1).is_none_or(|after| slot < *after)
}

/// Place of the time that is nearest, the earlier of two, and how far it is.
fn nearest(times: &Times, at: Timestamp) -> Option<(usize, u64)> {
    let after = times.slice(TimeRange::new(Timestamp::MIN, at)).end;
    let distance = |place: usize| Some((place, times.get(place)?.abs_diff(at)));
    let candidates = [after.checked_sub(1).and_then(distance), distance(after)];
    candidates.into_iter().flatten().min_by_key(|(_, distance)| *distance)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tacho_chunk::semantic::compact_times;

    use super::*;

    fn times(at: &[i64]) -> Times {
        Times::new(at).unwrap()
    }

    /// Later rows, after a row at 0, 100, .. 500 whose times may be off by 20, and exact ones at 110 beside it.
    fn check(later: &[&[i64]], expect: &[&[i64]]) {
        let (slots, beside) = (times(&[0, 100, 200, 300, 400, 500]), times(&[110]));
        let later: Vec<Times> = later.iter().map(|at| times(at)).collect();
        let row = |generation, times| Timed { place: (generation, 0), times, moved: None };
        let mut rows = vec![
            Timed { moved: Moved::new(0, 500, 20), ..row(1, &slots) },
            Timed { place: (1, 1), ..row(1, &beside) },
        ];
        rows.extend(later.iter().zip(2..).map(|(times, generation)| row(generation, times)));
        let known = recognise(&rows);
        assert_eq!(known[..2], [None, None]);
        let got: Vec<Vec<i64>> = rows
            .iter()
            .zip(&known)
            .skip(2)
            .map(|(row, known)| known.as_ref().unwrap_or(row.times).to_vec())
            .collect();
        assert_eq!(got, expect);
    }

    #[test]
    fn what_is_near_is_the_same_and_what_is_known_to_stand_apart_is_not() {
        check(&[&[-5, 5, 95, 221, 280, 400, 505]], &[&[-5, 0, 100, 221, 300, 400, 505]]);
        check(&[&[190, 205]], &[&[190, 200]]);
        check(&[&[190, 205], &[190], &[195]], &[&[190, 200], &[190], &[200]]);
        check(&[&[105, 110]], &[&[100, 110]]);
        check(&[&[110, 115]], &[&[110, 115]]);
        check(&[&[110], &[120]], &[&[110], &[100]]);
        check(&[&[600, 700]], &[&[600, 700]]);
    }

    proptest! {
        /// Any part of what was moved finds its own places, and what is new stays.
        #[test]
        fn what_was_moved_is_found_again(
            steps in prop::collection::vec(1i64..400, 3..200),
            bound in 1u64..300,
            sent in any::<u64>(),
        ) {
            let at: Vec<i64> = steps.iter().scan(0, |at, step| { *at += step; Some(*at) }).collect();
            let (moved, error) = compact_times(&at, bound);
            prop_assume!(error > 0);
            let is_sent = |n: &usize| !tacho_model::mix64(sent ^ *n as u64).is_multiple_of(3);
            let again: Vec<usize> = (0..at.len()).filter(is_sent).collect();
            let late = times(&again.iter().map(|n| at[*n]).collect::<Vec<_>>());
            let slots = times(&moved);
            let rows = [
                Timed { place: (1, 0), times: &slots, moved: Moved::new(at[0], at[at.len() - 1], error) },
                Timed { place: (2, 0), times: &late, moved: None },
            ];
            let found = recognise(&rows)[1].clone().unwrap_or(late.clone());
            prop_assert_eq!(found.to_vec(), again.iter().map(|n| moved[*n]).collect::<Vec<_>>());
        }
    }
}
