//! Recognises resent copies of samples with moved times.
//!
//! A sender that gets no answer sends its batch again. Normally the later write replaces the earlier one, because the
//! times are equal. But a merge may have moved the earlier times, within the limit of a rule (`Policies::semantic`). A moved
//! time is nearer to its own original than to any other original of its row (`tacho_chunk::semantic::compact_times`). Its
//! distance is at most the row's error. A later sample therefore counts as a copy of the nearest moved sample if their
//! distance is at most the error. The copy replaces that sample and gets its time.
//!
//! The first and the last time of a row are not moved, so samples outside of the row are new. There are two exceptions: a
//! merge may cut the row in two, and the samples at the ends of the row may be deleted. The first or last time of the new row
//! may then have been moved, and its original may be outside of the new row. The row states the largest such distance
//! ([`Overhang`]). The distance is less than half of the distance to the next sample on that side. A resent copy of that sample
//! is therefore not confused with the remaining sample.
//!
//! A sample that was found to be new stays new. A merge writes it into a separate row with exact times. The generation
//! of that row is not above the generation of the moved row, and only samples of later generations are compared.
//!
//! A new sample within the error of a moved one cannot be distinguished from a copy. It counts as a copy. The error is at
//! most the limit of the rule, and at most a quarter of the usual distance of samples.

use std::collections::{BTreeMap, BTreeSet};

use tacho_chunk::Times;
use tacho_model::{TimeRange, Timestamp};

/// Generation and number of the chunk of a part. Of samples with equal times, the one with the highest place is kept.
pub type Place = (u64, u32);

/// Largest distance of the original of the first or last time from the row, ns. 0 if the time was not moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhang {
    pub before: u64,
    pub after: u64,
}

impl Overhang {
    /// Overhang of a time that was moved by up to `error` and has become the first or last one. `next` was its neighbour
    /// on that side.
    pub const fn beside(at: Timestamp, next: Timestamp, error: u64) -> u64 {
        let half = at.abs_diff(next).saturating_sub(1) / 2;
        if error < half { error } else { half }
    }

    /// Range that contains the originals of all times in `range`.
    pub const fn around(self, range: TimeRange) -> TimeRange {
        let Self { before, after } = self;
        TimeRange::new(range.start.saturating_sub_unsigned(before), range.end.saturating_add_unsigned(after))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// From the first to the last time of the row.
    pub range: TimeRange,
    /// The largest change of a time in the row, ns; above 0.
    pub error: u64,
    pub overhang: Overhang,
}

impl Moved {
    /// `None` for a row with exact times.
    pub fn new(range: TimeRange, error: u64, overhang: Overhang) -> Option<Self> {
        (error > 0).then_some(Self { range, error, overhang })
    }

    /// Range that contains the originals of the row's times.
    const fn reach(&self) -> TimeRange {
        self.overhang.around(self.range)
    }

    /// Whether a sample at this time must be kept in another row. True if the time is between two times of the row.
    /// Also true if the time is so near to an end of the row that it could be mistaken for the original of that end.
    pub fn parts(&self, times: &Times, at: Timestamp) -> bool {
        let Overhang { before, after } = self.overhang;
        let twice = Overhang { before: before.saturating_mul(2), after: after.saturating_mul(2) };
        twice.around(self.range).contains(at) && times.slice(TimeRange::new(at, at)).is_empty()
    }
}

/// Times of one series, in one row or in memory.
#[derive(Clone, Copy, Debug)]
pub struct Timed<'a> {
    pub place: Place,
    pub times: &'a Times,
    pub moved: Option<Moved>,
}

/// The time of a moved sample, and the distance of a later sample from it.
type Slot = (Timestamp, u64);

/// The changed times of each row: each resent copy gets the moved time of the sample that it repeats. `None` if no time changes.
pub fn recognise(rows: &[Timed<'_>]) -> Vec<Option<Times>> {
    let mut known: Vec<Option<Times>> = vec![None; rows.len()];
    let (moved, mut exact): (Vec<_>, Vec<_>) =
        rows.iter().zip(&mut known).partition(|(row, _)| row.moved.is_some());
    if moved.is_empty() {
        return known;
    }
    exact.sort_by_key(|(row, _)| row.place);
    // Times of new samples within the reach of moved rows.
    let mut apart: BTreeSet<Timestamp> = BTreeSet::new();
    for (late, changed) in exact {
        let slots = slots(late, moved.iter().map(|(row, _)| *row), &apart);
        *changed = settled(late.times, &slots, &mut apart);
    }
    known
}

/// For each sample of `late` within the reach of a moved row, by index: the nearest moved sample that it may be a copy
/// of.
fn slots<'a>(
    late: &Timed<'_>,
    moved: impl Iterator<Item = &'a Timed<'a>>,
    apart: &BTreeSet<Timestamp>,
) -> BTreeMap<usize, Option<Slot>> {
    let mut slots: BTreeMap<usize, Option<Slot>> = BTreeMap::new();
    for (row, moved) in moved.filter_map(|row| Some((row, row.moved?))) {
        let is_later = late.place.0 > row.place.0;
        for place in late.times.slice(moved.reach()) {
            let Some(at) = late.times.get(place) else { continue };
            let best = slots.entry(place).or_default();
            let near = |(_, distance): &Slot| *distance <= moved.error && !apart.contains(&at);
            let Some(slot) = nearest(row.times, at).filter(|slot| is_later && near(slot)) else { continue };
            if best.is_none_or(|(_, distance)| slot.1 < distance) {
                *best = Some(slot);
            }
        }
    }
    slots
}

/// The changed times of a row; `None` if no time changes. Times of new samples are added to `apart`.
fn settled(
    late: &Times,
    slots: &BTreeMap<usize, Option<Slot>>,
    apart: &mut BTreeSet<Timestamp>,
) -> Option<Times> {
    let mut all: Option<Vec<Timestamp>> = None;
    let wanted: Vec<Option<Slot>> = slots.values().copied().collect();
    for (place, slot) in slots.keys().copied().zip(nearest_each(&wanted)) {
        let Some(at) = late.get(place) else { continue };
        let time = |place: usize| all.as_ref().map_or_else(|| late.get(place), |all| all.get(place).copied());
        // The sample must keep its position among the samples of its row.
        let follows =
            |slot: &Timestamp| place.checked_sub(1).and_then(time).is_none_or(|before| before < *slot);
        let precedes = |slot: &Timestamp| time(place + 1).is_none_or(|after| *slot < after);
        match slot.filter(follows).filter(precedes) {
            Some(slot) if slot == at => {}
            Some(slot) => {
                if let Some(time) = all.get_or_insert_with(|| late.to_vec()).get_mut(place) {
                    *time = slot;
                }
            }
            None => {
                apart.insert(at);
            }
        }
    }
    Times::new(&all?)
}

/// For each sample its slot, if no other sample is nearer to the slot. Of two equally near samples, the first gets it.
fn nearest_each(wanted: &[Option<Slot>]) -> Vec<Option<Timestamp>> {
    let mut found = vec![None; wanted.len()];
    let mut best: Option<(Slot, &mut Option<Timestamp>)> = None;
    for (wanted, found) in wanted.iter().zip(&mut found) {
        let Some((slot, distance)) = *wanted else { continue };
        if let Some(((best_slot, best_distance), best_found)) = &mut best
            && *best_slot == slot
        {
            if *best_distance <= distance {
                continue;
            }
            **best_found = None;
        }
        *found = Some(slot);
        best = Some(((slot, distance), found));
    }
    found
}

/// The nearest time and its distance. Of two equally near times, the earlier one is returned.
fn nearest(times: &Times, at: Timestamp) -> Option<Slot> {
    let after = times.slice(TimeRange::new(Timestamp::MIN, at)).end;
    let slot = |place: usize| times.get(place).map(|slot| (slot, slot.abs_diff(at)));
    let candidates = [after.checked_sub(1).and_then(slot), slot(after)];
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

    /// Adds later rows to a row with times 0, 100, .. 500 that were moved by up to 20, and to a row with the exact time 110.
    fn check(later: &[&[i64]], expect: &[&[i64]]) {
        let (slots, beside) = (times(&[0, 100, 200, 300, 400, 500]), times(&[110]));
        let later: Vec<Times> = later.iter().map(|at| times(at)).collect();
        let row = |generation, times| Timed { place: (generation, 0), times, moved: None };
        let mut rows = vec![
            Timed { moved: Moved::new(TimeRange::new(0, 500), 20, Overhang::default()), ..row(1, &slots) },
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
    fn near_samples_are_copies_unless_known_to_be_new() {
        check(&[&[-5, 5, 95, 221, 280, 400, 505]], &[&[-5, 0, 100, 221, 300, 400, 505]]);
        check(&[&[190, 205]], &[&[190, 200]]);
        check(&[&[190, 205], &[190], &[195]], &[&[190, 200], &[190], &[200]]);
        check(&[&[105, 110]], &[&[100, 110]]);
        check(&[&[110, 115]], &[&[110, 115]]);
        check(&[&[110], &[120]], &[&[110], &[100]]);
        check(&[&[600, 700]], &[&[600, 700]]);
    }

    #[test]
    fn resent_copies_of_a_cut_end_are_recognised() {
        let slots = times(&[100, 200, 300]);
        let overhang = Overhang { before: 0, after: Overhang::beside(300, 331, 20) };
        assert_eq!(overhang.after, 15);
        fn row(generation: u64, times: &Times) -> Timed<'_> {
            Timed { place: (generation, 0), times, moved: None }
        }
        let found = |at: i64| {
            let moved = Moved::new(TimeRange::new(100, 300), 20, overhang);
            let late = times(&[at]);
            let known = recognise(&[Timed { moved, ..row(1, &slots) }, row(2, &late)]);
            known[1].clone().unwrap_or(late).to_vec()
        };
        assert_eq!([99, 101, 299, 315, 316].map(|at| found(at)[0]), [99, 100, 300, 300, 316]);
        let parts =
            |at| Moved::new(TimeRange::new(100, 300), 20, overhang).is_some_and(|m| m.parts(&slots, at));
        assert_eq!([99, 101, 200, 330, 331].map(parts), [false, true, false, true, false]);
    }

    #[test]
    fn a_sample_is_a_copy_in_the_row_with_the_nearest_time() {
        let [even, odd, late] = [times(&[0, 100, 200]), times(&[110, 150]), times(&[103, 108, 151])];
        let row = |generation, times| Timed { place: (generation, 0), times, moved: None };
        let moved = |start, end| Moved::new(TimeRange::new(start, end), 10, Overhang { before: 5, after: 5 });
        for turned in [false, true] {
            let mut rows = [
                Timed { moved: moved(0, 200), ..row(1, &even) },
                Timed { moved: moved(110, 150), ..row(1, &odd) },
            ];
            if turned {
                rows.reverse();
            }
            let known = recognise(&[rows[0], rows[1], row(2, &late)]);
            assert_eq!(known[2].as_ref().map(Times::to_vec), Some(vec![100, 110, 150]));
        }
    }

    proptest! {
        /// Copies of any subset of the moved samples get the times of these samples.
        #[test]
        fn copies_of_moved_samples_are_recognised(
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
            let range = TimeRange::new(at[0], at[at.len() - 1]);
            let rows = [
                Timed { place: (1, 0), times: &slots, moved: Moved::new(range, error, Overhang::default()) },
                Timed { place: (2, 0), times: &late, moved: None },
            ];
            let found = recognise(&rows)[1].clone().unwrap_or(late.clone());
            prop_assert_eq!(found.to_vec(), again.iter().map(|n| moved[*n]).collect::<Vec<_>>());
        }
    }
}
