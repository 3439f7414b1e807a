//! Merges several columns of times. Several columns may have the same time. Selects the samples that are kept, ordered by
//! time.

use std::ops::Range;
use std::sync::Arc;

use tacho_chunk::Times;
use tacho_model::{TimeRange, Timestamp};

use super::rows::Treatment;

/// Times of one source, and its rank. Of samples with equal times, the one with the highest rank is kept.
#[derive(Clone, Debug)]
pub struct Ranked {
    pub rank: (u64, u32),
    pub times: Times,
}

/// Adjacent samples of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub source: usize,
    pub places: Range<usize>,
}

/// The kept samples and their sources. The runs, concatenated, have the strictly ascending times `at`.
#[derive(Clone, Debug)]
pub struct Picks {
    pub at: Arc<[Timestamp]>,
    pub runs: Vec<Run>,
    /// Samples replaced by later samples with the same time.
    pub replaced: u64,
}

impl Picks {
    /// Moves the samples that `is_apart` accepts to a second part, which is `None` if it has no samples.
    pub fn split(self, is_apart: impl Fn(usize, Timestamp) -> bool) -> (Self, Option<Self>) {
        let mut parts = [(Vec::new(), Vec::<Run>::new()), (Vec::new(), Vec::new())];
        let sources = self.runs.iter().flat_map(|run| run.places.clone().map(|place| (run.source, place)));
        for (at, (source, place)) in self.at.iter().zip(sources) {
            let [main, apart] = &mut parts;
            let (times, runs) = if is_apart(source, *at) { apart } else { main };
            times.push(*at);
            match runs.last_mut().filter(|run| run.source == source && run.places.end == place) {
                Some(run) => run.places.end += 1,
                None => runs.push(Run { source, places: place..place + 1 }),
            }
        }
        let [(at, runs), (apart_at, apart_runs)] = parts;
        if apart_at.is_empty() {
            return (self, None);
        }
        let apart = Self { at: apart_at.into(), runs: apart_runs, replaced: 0 };
        (Self { at: at.into(), runs, replaced: self.replaced }, Some(apart))
    }
}

/// Selects the samples within `part` that are not dropped, from the sources with an index in `chosen`.
pub fn pick(sources: &[Ranked], chosen: &[usize], part: TimeRange, treatment: &Treatment) -> Picks {
    let mut runs: Vec<Run> = Vec::new();
    for source in chosen {
        let Some(ranked) = sources.get(*source) else { continue };
        let kept = kept(ranked, part, treatment);
        runs.extend(kept.into_iter().map(|places| Run { source: *source, places }));
    }
    let time = |run: &Run, place: usize| sources.get(run.source).and_then(|s| s.times.get(place));
    let first = |run: &Run| time(run, run.places.start);
    let last = |run: &Run| time(run, run.places.end.saturating_sub(1));
    runs.sort_by_key(first);
    let apart = runs.is_sorted_by(|a, b| last(a) < first(b));
    let (runs, replaced) = if apart { (runs, 0) } else { interleave(sources, &runs) };
    let times = |run: &Run| sources.get(run.source).map(|s| s.times.part(run.places.clone()).to_vec());
    let at: Vec<Timestamp> = runs.iter().filter_map(times).flatten().collect();
    Picks { at: at.into(), runs, replaced }
}

/// Index ranges of the samples of one source within `part` that are not dropped.
fn kept(ranked: &Ranked, part: TimeRange, treatment: &Treatment) -> Vec<Range<usize>> {
    let part = TimeRange::new(part.start.max(treatment.expired_before), part.end);
    let whole = ranked.times.slice(part);
    let mut kept = if whole.is_empty() { vec![] } else { vec![whole] };
    for mask in treatment.masks.iter().filter(|mask| ranked.rank.0 <= mask.through) {
        let masked = ranked.times.slice(mask.range);
        let without = |places: Range<usize>| {
            let before = places.start..places.end.min(masked.start);
            [before, places.start.max(masked.end)..places.end]
        };
        if !masked.is_empty() {
            kept = kept.into_iter().flat_map(without).filter(|places| !places.is_empty()).collect();
        }
    }
    kept
}

/// Converts overlapping runs to runs that do not overlap. Also returns the number of replaced samples.
fn interleave(sources: &[Ranked], runs: &[Run]) -> (Vec<Run>, u64) {
    let mut all: Vec<(Timestamp, (u64, u32), usize, usize)> = Vec::new();
    for run in runs {
        let Some(ranked) = sources.get(run.source) else { continue };
        let times = ranked.times.part(run.places.clone());
        all.extend(
            times.iter().zip(run.places.clone()).map(|(at, place)| (at, ranked.rank, run.source, place)),
        );
    }
    all.sort_unstable();
    let before = all.len();
    // Of samples with equal times, the last element has the highest rank and is kept. `dedup_by` passes (later, earlier) and
    // removes the later element, so the later one is copied over the earlier one.
    all.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            *earlier = *later;
        }
        same
    });
    let replaced = (before - all.len()) as u64;
    let mut runs: Vec<Run> = Vec::new();
    for (_, _, source, place) in all {
        match runs.last_mut().filter(|run| run.source == source && run.places.end == place) {
            Some(run) => run.places.end += 1,
            None => runs.push(Run { source, places: place..place + 1 }),
        }
    }
    (runs, replaced)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::upkeep::Mask;

    fn ranked(generation: u64, at: &[i64]) -> Ranked {
        Ranked { rank: (generation, 0), times: Times::new(at).unwrap() }
    }

    #[test]
    fn sources_that_do_not_overlap_are_kept_as_single_runs() {
        let sources = [ranked(1, &[1, 2, 3]), ranked(2, &[4, 5]), ranked(1, &[9])];
        let picks = pick(&sources, &[1, 0], TimeRange::ALL, &Treatment::default());
        assert_eq!(&*picks.at, [1, 2, 3, 4, 5]);
        assert_eq!(picks.runs, [Run { source: 0, places: 0..3 }, Run { source: 1, places: 0..2 }]);
    }

    proptest! {
        /// Compared with a simple model: all records in a map, where later generations replace earlier ones.
        #[test]
        fn the_last_written_of_equal_times_is_kept(
            sources in prop::collection::vec(prop::collection::btree_set(0i64..40, 0..20), 1..5),
            (start, end) in (0i64..40, 0i64..40),
            masks in prop::collection::vec((0i64..40, 0i64..10, 0u64..5), 0..3),
            expired_before in -5i64..10,
        ) {
            let masks = masks.iter()
                .map(|(at, length, through)| Mask { id: 1, range: TimeRange::new(*at, at + length), through: *through });
            let treatment = Treatment { masks: masks.collect(), expired_before, ..Treatment::default() };
            let sources: Vec<Vec<i64>> = sources.into_iter().map(|at| at.into_iter().collect()).collect();
            let part = TimeRange::new(start, end);
            let mut expect = std::collections::BTreeMap::new();
            let mut kept = 0;
            for (source, at) in sources.iter().enumerate() {
                for (place, at) in at.iter().enumerate() {
                    if part.contains(*at) && !treatment.drops(source as u64, *at) {
                        expect.insert(*at, (source, place));
                        kept += 1;
                    }
                }
            }
            let ranked: Vec<Ranked> = sources.iter().zip(0..).map(|(at, n)| ranked(n, at)).collect();
            let chosen: Vec<usize> = (0..ranked.len()).collect();
            let picks = pick(&ranked, &chosen, part, &treatment);
            let places = picks.runs.iter().flat_map(|run| run.places.clone().map(|place| (run.source, place)));
            let got: Vec<_> = picks.at.iter().copied().zip(places).collect();
            prop_assert_eq!(picks.replaced as usize, kept - expect.len());
            prop_assert_eq!(got, expect.into_iter().collect::<Vec<_>>());
        }
    }
}
