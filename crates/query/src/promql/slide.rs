//! How are the digests of many overlapping windows computed, without reading a sample again for each window?
//!
//! A window is digested alone if it has few samples, or if a sample is in about two windows at most. Otherwise the edges of all
//! windows cut a series into panes, and a window is a sequence of panes. Some of these edges divide the panes into blocks: the
//! first edge at or after each multiple of the length of a window. Each window contains exactly one edge of a block:
//!
//! ```text
//!   time     ──┬──┬──┬──┬──║──┬──┬──┬──┬──║──   │ edge of a window   ║ edge of a block
//!   window         (──────────────]
//!                  front    back
//! ```
//! In the front, before the edge of the block, each pane is joined with all later panes of its block. In the back, the panes are
//! joined one by one. So each pane is joined at most twice, each window needs one more join, and nothing is subtracted (J. Gil,
//! M. Werman, "Computing 2-D Min, Median, and Max Filters", IEEE PAMI 15 (1993), section II).
//!
//! The edges do not depend on the first and the last window of the query, and adjacent samples are digested as one run. So the
//! bits of a result depend only on the samples of its window, the times and the length of the windows, and on the summaries that
//! were read. The cache of results needs this (`docs/adr/0019-result-cache.md`).
//!
//! Step before: `window.rs`, which provides the windows. Step after: a function, which reads the digest at each step.
//!
//! This file and `window.rs` use each other. `window.rs` calls functions of digests, which this file computes for sliding
//! windows. This file uses the bounds of the windows and the counter of samples from `window.rs`.

use tacho_model::Timestamp;

use crate::Error;

use super::STALE;
use super::digest::Digest;
use super::joined::Joined;
use super::series::{Cursor, Passed, Piece};
use super::window::{Bounds, Frame, Visits};

/// The panes of the current window, each with its end. A pane is removed when the window starts at or after the end of
/// the pane.
pub struct Panes<D> {
    /// The panes before the edge of a block. The oldest pane is last. Each pane is joined with the front panes after it in time.
    front: Vec<(Timestamp, D)>,
    /// The panes after the edge of the block. The newest pane is last.
    back: Vec<(Timestamp, D)>,
    /// The join of all panes of the back.
    joined: Option<D>,
}

impl<D: Digest> Panes<D> {
    pub fn new() -> Self {
        Self { front: Vec::new(), back: Vec::new(), joined: None }
    }

    fn clear(&mut self) {
        self.front.clear();
        self.back.clear();
        self.joined = None;
    }

    pub fn push(&mut self, end: Timestamp, digest: D) {
        match &mut self.joined {
            Some(joined) => joined.join(&digest),
            None => self.joined = Some(digest.clone()),
        }
        self.back.push((end, digest));
    }

    /// Removes panes that end at or before the start of a window. If the front then has no pane, the back becomes the front.
    pub fn leave(&mut self, start: Timestamp) {
        if self.back.last().is_some_and(|(end, _)| *end <= start) {
            return self.clear();
        }
        self.leave_front(start);
        if self.front.is_empty() {
            self.turn_over();
            self.leave_front(start);
        }
    }

    fn leave_front(&mut self, start: Timestamp) {
        while self.front.pop_if(|(end, _)| *end <= start).is_some() {}
    }

    fn turn_over(&mut self) {
        self.joined = None;
        self.front.clear();
        for (end, mut digest) in self.back.drain(..).rev() {
            if let Some((_, later)) = self.front.last() {
                digest.join(later);
            }
            self.front.push((end, digest));
        }
    }

    pub fn all(&self) -> Option<D> {
        match (self.front.last(), &self.joined) {
            (Some((_, front)), Some(back)) => {
                let mut all = front.clone();
                all.join(back);
                Some(all)
            }
            (Some((_, front)), None) => Some(front.clone()),
            (None, back) => back.clone(),
        }
    }
}

/// A window with at most this number of samples is digested alone: reading so few samples again costs no more than panes.
const WINDOW_SAMPLES_MAX: usize = 64;

/// The result of `read` for the digest of each window. It is [`STALE`] if the window is empty or `read` returns `None`.
pub fn slide<D: Digest>(
    pieces: &[Piece],
    frame: &Frame<'_>,
    visits: &mut Visits<'_>,
    read: fn(&D, &Bounds, &[f64]) -> Option<f64>,
) -> Result<Vec<f64>, Error> {
    let (range, step) = (frame.ranges.range, frame.grid.step);
    let alone_max = if range / 2 <= step { usize::MAX } else { WINDOW_SAMPLES_MAX };
    digest_windows(pieces, frame, visits, read, alone_max)
}

fn digest_windows<D: Digest>(
    pieces: &[Piece],
    frame: &Frame<'_>,
    visits: &mut Visits<'_>,
    read: fn(&D, &Bounds, &[f64]) -> Option<f64>,
    alone_max: usize,
) -> Result<Vec<f64>, Error> {
    let mut window = Counted::new(pieces);
    let are_apart = frame.ranges.reference.fixed.is_none() && frame.ranges.range <= frame.grid.step;
    let mut slide: Slide<'_, D> = Slide::new(frame);
    let mut parameters = vec![0.0; frame.parameters.len()];
    let mut points = Vec::with_capacity(frame.grid.count);
    for step in 0..frame.grid.count {
        let bounds = frame.bounds(step);
        let digest = if alone_max == usize::MAX && are_apart {
            // The samples of this window are in no later window.
            window.start.pass(bounds.start, |_| ()).map_err(|_| cut())?;
            digest_until::<D>(&mut window.start, bounds.end, visits)?
        } else if window.has_at_most(alone_max, &bounds)? {
            slide.is_current = false;
            digest_until::<D>(&mut window.start.clone(), bounds.end, visits)?
        } else {
            slide.window(&window.start, &bounds, visits)?
        };
        frame.parameters_at(step, &mut parameters);
        let value = digest.and_then(|digest| read(&digest, &bounds, &parameters));
        points.push(value.unwrap_or(STALE));
    }
    Ok(points)
}

/// Counts the samples of each window.
struct Counted<'s> {
    start: Cursor<'s>,
    end: Cursor<'s>,
    before_start: usize,
    before_end: usize,
}

impl<'s> Counted<'s> {
    fn new(pieces: &'s [Piece]) -> Self {
        Self { start: Cursor::new(pieces), end: Cursor::new(pieces), before_start: 0, before_end: 0 }
    }

    /// Moves to the next window. Returns whether it has at most `max` samples. Samples of summaries do not count.
    fn has_at_most(&mut self, max: usize, bounds: &Bounds) -> Result<bool, Error> {
        let count = |cursor: &mut Cursor<'s>, until, sum: &mut usize| {
            let add = |passed: Passed<'_>| {
                if let Passed::Run(run) = passed {
                    *sum += run.values.len();
                }
            };
            cursor.pass(until, add).map_err(|_| cut())
        };
        count(&mut self.start, bounds.start, &mut self.before_start)?;
        if max == usize::MAX {
            return Ok(true);
        }
        count(&mut self.end, bounds.end, &mut self.before_end)?;
        Ok(self.before_end.saturating_sub(self.before_start) <= max)
    }
}

struct Slide<'s, D> {
    panes: Panes<D>,
    cursor: Cursor<'s>,
    edges: Edges,
    /// The edge between front and back.
    middle: Timestamp,
    /// Whether the panes are those of the previous window.
    is_current: bool,
}

impl<'s, D: Digest> Slide<'s, D> {
    fn new(frame: &Frame<'_>) -> Self {
        let edges = Edges::of(frame);
        Self {
            panes: Panes::new(),
            cursor: Cursor::new(&[]),
            edges,
            middle: Timestamp::MIN,
            is_current: false,
        }
    }

    /// Moves to a window and returns its digest. The samples of the window begin at `start`.
    fn window(
        &mut self,
        start: &Cursor<'s>,
        bounds: &Bounds,
        visits: &mut Visits<'_>,
    ) -> Result<Option<D>, Error> {
        if !self.is_current {
            self.panes.clear();
            self.cursor = start.clone();
            self.middle = Timestamp::MIN;
            self.is_current = true;
        }
        let middle = self.edges.middle(bounds);
        if self.middle != middle {
            self.fill(middle, visits)?;
            self.panes.turn_over();
            self.middle = middle;
        }
        self.panes.leave_front(bounds.start);
        self.fill(bounds.end, visits)?;
        Ok(self.panes.all())
    }

    fn fill(&mut self, until: Timestamp, visits: &mut Visits<'_>) -> Result<(), Error> {
        while let Some(next) = self.cursor.next().filter(|next| *next <= until) {
            let end = self.edges.after(next).min(until);
            if let Some(pane) = digest_until(&mut self.cursor, end, visits)? {
                self.panes.push(end, pane);
            }
        }
        Ok(())
    }
}

/// The times that separate panes: the starts and ends of all windows, including windows before the first step and after the
/// last step of the query.
struct Edges {
    step: i64,
    range: i64,
    /// The end of one of the windows; `None` if all windows are the same.
    end: Option<Timestamp>,
}

impl Edges {
    fn of(frame: &Frame<'_>) -> Self {
        let end = frame.ranges.reference.fixed.is_none().then(|| frame.bounds(0).end);
        Self { step: frame.grid.step.max(1), range: frame.ranges.range.max(1), end }
    }

    /// The only edge of a block that is in a window (after the window's start, at the latest at its end): the first edge of any
    /// window at or after a multiple of the range. The multiple itself may be inside of a summary. An edge of a window never is.
    fn middle(&self, bounds: &Bounds) -> Timestamp {
        let into = bounds.end.rem_euclid(self.range).min(bounds.end.abs_diff(bounds.start).cast_signed());
        self.after(bounds.end - into).min(bounds.end)
    }

    /// The first edge at or after a time.
    fn after(&self, at: Timestamp) -> Timestamp {
        let Some(end) = self.end else { return Timestamp::MAX };
        let until = |edge: i64| {
            let distance = match edge.checked_sub(at) {
                Some(distance) => distance.rem_euclid(self.step),
                // The distance exceeds 292 years.
                None => {
                    edge.rem_euclid(self.step).saturating_sub(at.rem_euclid(self.step)).rem_euclid(self.step)
                }
            };
            at.saturating_add(distance)
        };
        until(end).min(until(end.saturating_sub(self.range)))
    }
}

/// Digests the samples up to and including the time `end`. Adjacent samples are one run, so that the boundaries of chunks do not
/// matter.
#[inline]
fn digest_until<'s, D: Digest>(
    cursor: &mut Cursor<'s>,
    end: Timestamp,
    visits: &mut Visits<'_>,
) -> Result<Option<D>, Error> {
    if let Some(run) = cursor.pass_inside(end) {
        visits.count(1 + run.values.len())?;
        return Ok(Joined::One(run).digest());
    }
    let mut all: Option<D> = None;
    let mut run = Joined::None;
    let (mut unknown, mut seen) = (false, 1);
    let add = |passed: Passed<'s>| match passed {
        Passed::Run(next) => {
            seen += next.values.len();
            run.add(next);
        }
        Passed::Summary(summary) => {
            let digests = [std::mem::replace(&mut run, Joined::None).digest(), D::of_summary(summary)];
            unknown |= digests[1].is_none();
            digests.into_iter().flatten().for_each(|digest| join(&mut all, digest));
        }
    };
    cursor.pass(end, add).map_err(|_| cut())?;
    visits.count(seen)?;
    if unknown {
        return Err(Error::execution("internal: a summary where samples are needed"));
    }
    if let Some(digest) = run.digest() {
        join(&mut all, digest);
    }
    Ok(all)
}

fn join<D: Digest>(all: &mut Option<D>, later: D) {
    match all {
        Some(all) => all.join(&later),
        None => *all = Some(later),
    }
}

pub fn cut() -> Error {
    Error::execution("internal: a window cuts a summary")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use proptest::prelude::*;
    use tacho_chunk::{Summary, Times};
    use tacho_model::Windows;

    use super::*;
    use crate::promql::Params;
    use crate::promql::digest::{Area, Changes, Counter, Ends};
    use crate::promql::fold::{Fold, Max, Mean, Min, Sum};
    use crate::promql::grid::{Grid, Reference};
    use crate::promql::line::{Fit, Moments};
    use crate::promql::rows::Ranges;
    use crate::promql::variance::Deviation;

    /// Columns of samples with small gaps, so that most windows have many samples.
    fn pieces(count_max: usize, samples_max: usize) -> impl Strategy<Value = Vec<Piece>> {
        let samples = prop::collection::vec((1..4_i64, -50..50_i32), 1..samples_max);
        let regular = prop::collection::vec((Just(1_i64), -50..50_i32), 1..samples_max);
        prop::collection::vec(prop_oneof![samples, regular], 0..count_max).prop_map(|pieces| {
            let mut now = 0;
            let piece = |samples: Vec<(i64, i32)>| {
                let at: Vec<i64> = samples
                    .iter()
                    .map(|(gap, _)| {
                        now += gap;
                        now
                    })
                    .collect();
                let values = samples.iter().map(|(_, value)| f64::from(*value)).collect();
                Piece::Samples { at: Times::new(&at).unwrap(), values }
            };
            pieces.into_iter().map(piece).collect()
        })
    }

    const START: i64 = -10;
    const STEPS: usize = 60;

    /// Converts each piece that no window cuts into a summary.
    fn summarised(pieces: &[Piece], (step, range): (i64, i64)) -> Vec<Piece> {
        let more = range / step + 1;
        let count = STEPS + 2 * usize::try_from(more).unwrap();
        let windows = Windows { first: START - more * step, step, count, range };
        let summary = |piece: &Piece| {
            let Piece::Samples { at, values } = piece else { unreachable!("no piece is a summary yet") };
            let (start, end) = (at.first().unwrap(), at.last().unwrap());
            if windows.cut(start, end) {
                return Piece::Samples { at: at.clone(), values: values.clone() };
            }
            let (min, max) =
                values.iter().fold((f64::MAX, f64::MIN), |(min, max), v| (min.min(*v), max.max(*v)));
            let (first, last) = (values[0], values[values.len() - 1]);
            let sum = values.iter().sum();
            Piece::Summary(Summary { start, end, count: values.len(), min, max, sum, first, last })
        };
        pieces.iter().map(summary).collect()
    }

    fn same<D: Digest>(
        pieces: &[Piece],
        windows: (i64, i64),
        read: fn(&D, &Bounds, &[f64]) -> Option<f64>,
    ) -> Result<(), TestCaseError> {
        same_with(pieces, pieces, windows, read)
    }

    /// Compares the results of separate windows over `pieces` with those of panes over `others`.
    fn same_with<D: Digest>(
        pieces: &[Piece],
        others: &[Piece],
        (step, range): (i64, i64),
        read: fn(&D, &Bounds, &[f64]) -> Option<f64>,
    ) -> Result<(), TestCaseError> {
        let reference = Reference { fixed: None, offset: 0 };
        let ranges = Ranges { series: Vec::new(), reference, range, changes: Vec::new() };
        let grid = Grid { start: START, step, count: STEPS };
        let frame = Frame { ranges: &ranges, grid, parameters: &[] };
        let (params, all) = (Params::instant(0), AtomicUsize::new(0));
        let mut visits = Visits::new(&params, &all);
        let alone = digest_windows(pieces, &frame, &mut visits, read, usize::MAX).unwrap();
        let in_panes = digest_windows(others, &frame, &mut visits, read, 0).unwrap();
        for (step, (alone, pane)) in alone.iter().zip(&in_panes).enumerate() {
            let close =
                alone.to_bits() == pane.to_bits() || (alone - pane).abs() <= 1e-9 * (1.0 + alone.abs());
            prop_assert!(
                close,
                "{} at step {}: {} alone, {} in panes",
                std::any::type_name::<D>(),
                step,
                alone,
                pane
            );
        }
        Ok(())
    }

    /// The bits of the results of all steps but the first `skipped` ones.
    fn bits<D: Digest>(
        pieces: &[Piece],
        (step, range): (i64, i64),
        skipped: usize,
        read: fn(&D, &Bounds, &[f64]) -> Option<f64>,
    ) -> Vec<u64> {
        let reference = Reference { fixed: None, offset: 0 };
        let ranges = Ranges { series: Vec::new(), reference, range, changes: Vec::new() };
        let start = START + step * i64::try_from(skipped).unwrap();
        let frame =
            Frame { ranges: &ranges, grid: Grid { start, step, count: STEPS - skipped }, parameters: &[] };
        let (params, all) = (Params::instant(0), AtomicUsize::new(0));
        let mut visits = Visits::new(&params, &all);
        slide(pieces, &frame, &mut visits, read).unwrap().into_iter().map(f64::to_bits).collect()
    }

    /// The same samples in columns of `length` samples. Values are divided by 7, so that the last digit of a sum depends on the
    /// order of its additions.
    fn sevenths(pieces: &[Piece], length: usize) -> Vec<Piece> {
        let of_one = |piece: &Piece| match piece {
            Piece::Samples { at, values } => at.iter().zip(values.clone()).collect::<Vec<_>>(),
            Piece::Summary(_) => Vec::new(),
        };
        let samples: Vec<(i64, f64)> = pieces.iter().flat_map(of_one).collect();
        let piece = |samples: &[(i64, f64)]| {
            let (at, values): (Vec<i64>, Vec<f64>) =
                samples.iter().map(|(at, value)| (*at, value / 7.0)).unzip();
            Piece::Samples { at: Times::new(&at).unwrap(), values }
        };
        samples.chunks(length).map(piece).collect()
    }

    /// Checks that the bits are the same for a query of later steps, and for samples in columns of another length.
    fn same_bits<D: Digest>(
        pieces: &[Piece],
        windows: (i64, i64),
        (skipped, lengths): (usize, [usize; 2]),
        read: fn(&D, &Bounds, &[f64]) -> Option<f64>,
    ) -> Result<(), TestCaseError> {
        let [one, other] = lengths.map(|length| sevenths(pieces, length));
        let expect = bits(&one, windows, 0, read);
        let name = std::any::type_name::<D>();
        prop_assert_eq!(&bits(&one, windows, skipped, read), &expect[skipped..], "{} of later steps", name);
        prop_assert_eq!(&bits(&other, windows, 0, read), &expect, "{} in other columns", name);
        Ok(())
    }

    proptest! {
        /// Windows have up to 599 samples, so some are digested alone and others in panes.
        #[test]
        fn bits_depend_neither_on_the_first_step_nor_on_the_columns(
            pieces in pieces(8, 250),
            step in 1..40_i64,
            range in 1..600_i64,
            skipped in 0..STEPS,
            lengths in [1..300_usize, 1..300_usize],
        ) {
            let (windows, changes) = ((step, range), (skipped, lengths));
            same_bits::<Sum>(&pieces, windows, changes, |sum, _, _| Some(sum.end()))?;
            same_bits::<Mean>(&pieces, windows, changes, |mean, _, _| Some(mean.end()))?;
            same_bits::<Max>(&pieces, windows, changes, |max, _, _| Some(max.end()))?;
            same_bits::<Deviation>(&pieces, windows, changes, |deviation, _, _| Some(deviation.end()))?;
            same_bits::<Counter>(&pieces, windows, changes, |counter, _, _| Some(counter.lost.total()))?;
            same_bits::<Area>(&pieces, windows, changes, |area, _, _| Some(area.area.total()))?;
            same_bits::<Moments>(&pieces, windows, changes, |line, _, _| Some(line.slope()))?;
            same_bits::<Fit>(&pieces, windows, changes, |fit, _, _| fit.slope_error())?;
        }

        #[test]
        fn no_pane_cuts_a_summary(pieces in pieces(60, 8), step in 1..60_i64, range in 1..300_i64) {
            let windows = (step, range);
            let others = summarised(&pieces, windows);
            same_with::<Sum>(&pieces, &others, windows, |sum, _, _| Some(sum.end()))?;
            same_with::<Mean>(&pieces, &others, windows, |mean, _, _| Some(mean.end()))?;
            same_with::<(Min, Max)>(&pieces, &others, windows, |(min, max), _, _| Some(max.end() * 1e3 + min.end()))?;
        }

        #[test]
        fn panes_and_separate_windows_give_the_same_results(pieces in pieces(4, 120), step in 1..40_i64, range in 1..300_i64) {
            let windows = (step, range);
            same::<Sum>(&pieces, windows, |sum, _, _| Some(sum.end()))?;
            same::<Mean>(&pieces, windows, |mean, _, _| Some(mean.end()))?;
            same::<(Min, Max)>(&pieces, windows, |(min, max), _, _| Some(max.end() * 1e3 + min.end()))?;
            same::<Deviation>(&pieces, windows, |deviation, _, _| Some(deviation.end()))?;
            same::<Ends>(&pieces, windows, |ends, _, _| Some(ends.first.1 * 1e3 + ends.last.1 + ends.count as f64))?;
            same::<Counter>(&pieces, windows, |counter, _, _| Some(counter.lost.total() * 1e3 + counter.resets as f64))?;
            same::<Changes>(&pieces, windows, |changes, _, _| Some(changes.count as f64))?;
            same::<Area>(&pieces, windows, |area, _, _| Some(area.area.total() * 1e9))?;
            same::<Moments>(&pieces, windows, |m, _, _| Some(m.slope()).filter(|_| m.count > 1.0))?;
            same::<Moments>(&pieces, windows, |m, bounds, _| Some(m.value_at(bounds.now, 0.0)).filter(|_| m.count > 1.0))?;
            same::<Fit>(&pieces, windows, |fit, _, _| fit.slope_error())?;
        }
    }
}
