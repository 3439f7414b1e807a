//! How is the digest of each of many sliding windows computed, with each sample read only once?
//!
//! If windows are short or share few samples, each window is digested separately. Otherwise the starts and ends of all
//! windows cut a series into panes, and a window is a sequence of panes. Each pane is digested once and kept in one of
//! two stacks. The back receives new panes and holds the join of all its panes. In the front, the oldest pane is last,
//! and each entry is the join of its pane and all later panes of the front. Therefore a `pop` removes the oldest pane.
//! When the front is empty, the back is moved into it in reverse order. Each pane is joined at most twice, even if it
//! belongs to many windows; each window needs one more join; and nothing is subtracted (K. Tangwongsan, M. Hirzel,
//! S. Schneider, "Low-Latency Sliding-Window Aggregation in Worst-Case Constant Time", DEBS 2017, section 2).
//!
//! Step before: `window.rs`, which provides the windows. Step after: a function, which reads the digest at each step.
//!
//! This file and `window.rs` use each other. `window.rs` calls functions of digests; this file computes them for
//! sliding windows. This file uses the bounds of the windows and the counter of samples from `window.rs`.

use tacho_model::Timestamp;

use crate::Error;

use super::STALE;
use super::digest::Digest;
use super::series::{Cursor, Passed, Piece};
use super::window::{Bounds, Frame, Visits};

/// The panes of the current window, each with its end. A pane is removed when the window starts at or after the end of
/// the pane.
pub struct Panes<D> {
    /// The oldest pane is last. Each pane is joined with the front panes after it in time.
    front: Vec<(Timestamp, D)>,
    back: Vec<(Timestamp, D)>,
    /// The join of all panes of the back.
    joined: Option<D>,
}

impl<D: Digest> Panes<D> {
    pub fn new() -> Self {
        Self { front: Vec::new(), back: Vec::new(), joined: None }
    }

    pub fn push(&mut self, end: Timestamp, digest: D) {
        match &mut self.joined {
            Some(joined) => joined.join(&digest),
            None => self.joined = Some(digest.clone()),
        }
        self.back.push((end, digest));
    }

    /// Removes panes that end at or before the start of a window.
    pub fn leave(&mut self, start: Timestamp) {
        if self.back.last().is_some_and(|(end, _)| *end <= start) {
            self.front.clear();
            self.back.clear();
            self.joined = None;
            return;
        }
        let left = |front: &mut Vec<(Timestamp, D)>| {
            while front.pop_if(|(end, _)| *end <= start).is_some() {}
        };
        left(&mut self.front);
        if self.front.is_empty() {
            self.turn_over();
            left(&mut self.front);
        }
    }

    fn turn_over(&mut self) {
        self.joined = None;
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

/// Up to this number of samples per window, windows are digested separately. With this number, the panes cost as much
/// as reading the samples again.
const WINDOW_SAMPLES_MAX: f64 = 64.0;

/// The result of `read` for the digest of each window. It is [`STALE`] if the window is empty or `read` returns `None`.
pub fn slide<D: Digest>(
    pieces: &[Piece],
    frame: &Frame<'_>,
    visits: &mut Visits<'_>,
    read: fn(&D, &Bounds, &[f64]) -> Option<f64>,
) -> Result<Vec<f64>, Error> {
    let (range, step) = (frame.ranges.range, frame.grid.step);
    if range / 2 <= step || samples_within(pieces, range) <= WINDOW_SAMPLES_MAX {
        each_alone(pieces, frame, visits, read)
    } else {
        in_panes(pieces, frame, visits, read)
    }
}

/// Estimated number of samples in a window of `range` ns if samples are spread evenly.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn samples_within(pieces: &[Piece], range: i64) -> f64 {
    let (first, last) = (pieces.first().and_then(Piece::first), pieces.last().and_then(Piece::last));
    let (Some(first), Some(last)) = (first, last) else { return 0.0 };
    let samples: usize = pieces.iter().map(Piece::len).sum();
    samples as f64 * (range as f64 / (last.abs_diff(first) as f64).max(1.0)).min(1.0)
}

fn each_alone<D: Digest>(
    pieces: &[Piece],
    frame: &Frame<'_>,
    visits: &mut Visits<'_>,
    read: fn(&D, &Bounds, &[f64]) -> Option<f64>,
) -> Result<Vec<f64>, Error> {
    let mut cursor = Cursor::new(pieces);
    let mut parameters = vec![0.0; frame.parameters.len()];
    let mut points = Vec::with_capacity(frame.grid.count);
    for step in 0..frame.grid.count {
        let bounds = frame.bounds(step);
        cursor.pass(bounds.start, |_| {}).map_err(|_| cut())?;
        let digest = digest_until::<D>(&mut cursor.clone(), bounds.end, visits)?;
        frame.parameters_at(step, &mut parameters);
        let value = digest.and_then(|digest| read(&digest, &bounds, &parameters));
        points.push(value.unwrap_or(STALE));
    }
    Ok(points)
}

fn in_panes<D: Digest>(
    pieces: &[Piece],
    frame: &Frame<'_>,
    visits: &mut Visits<'_>,
    read: fn(&D, &Bounds, &[f64]) -> Option<f64>,
) -> Result<Vec<f64>, Error> {
    let mut cursor = Cursor::new(pieces);
    let mut panes = Panes::new();
    // The next window whose start cuts a pane.
    let mut cutter = 1;
    let mut parameters = vec![0.0; frame.parameters.len()];
    let mut points = Vec::with_capacity(frame.grid.count);
    for step in 0..frame.grid.count {
        let bounds = frame.bounds(step);
        panes.leave(bounds.start);
        cursor.pass(bounds.start, |_| {}).map_err(|_| cut())?;
        cutter = cutter.max(step + 1);
        while cutter < frame.grid.count {
            let start = frame.bounds(cutter).start;
            if start >= bounds.end {
                break;
            }
            if let Some(pane) = digest_until(&mut cursor, start, visits)? {
                panes.push(start, pane);
            }
            cutter += 1;
        }
        if let Some(pane) = digest_until(&mut cursor, bounds.end, visits)? {
            panes.push(bounds.end, pane);
        }
        frame.parameters_at(step, &mut parameters);
        let value = panes.all().and_then(|digest| read(&digest, &bounds, &parameters));
        points.push(value.unwrap_or(STALE));
    }
    Ok(points)
}

/// Digests the samples up to and including the time `end`.
fn digest_until<D: Digest>(
    cursor: &mut Cursor<'_>,
    end: Timestamp,
    visits: &mut Visits<'_>,
) -> Result<Option<D>, Error> {
    let mut pane: Option<D> = None;
    let mut unknown = false;
    let mut seen = 1;
    let add = |passed: Passed<'_>| {
        let digest = match passed {
            Passed::Run(run) => {
                seen += run.values.len();
                Some(D::of(&run))
            }
            Passed::Summary(summary) => D::of_summary(summary),
        };
        match (&mut pane, digest) {
            (Some(pane), Some(digest)) => pane.join(&digest),
            (None, Some(digest)) => pane = Some(digest),
            (_, None) => unknown = true,
        }
    };
    cursor.pass(end, add).map_err(|_| cut())?;
    visits.count(seen)?;
    if unknown {
        return Err(Error::execution("internal: a summary where samples are needed"));
    }
    Ok(pane)
}

pub fn cut() -> Error {
    Error::execution("internal: a window cuts a summary")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use proptest::prelude::*;
    use tacho_chunk::Times;

    use super::*;
    use crate::promql::Params;
    use crate::promql::digest::{Area, Changes, Counter, Ends};
    use crate::promql::fold::{Fold, Max, Mean, Min, Sum};
    use crate::promql::grid::{Grid, Reference};
    use crate::promql::line::{Fit, Moments};
    use crate::promql::rows::Ranges;
    use crate::promql::variance::Deviation;

    /// Columns of samples with small gaps, so that each window has many samples.
    fn pieces() -> impl Strategy<Value = Vec<Piece>> {
        let samples = prop::collection::vec((1..4_i64, -50..50_i32), 1..120);
        let regular = prop::collection::vec((Just(1_i64), -50..50_i32), 1..120);
        prop::collection::vec(prop_oneof![samples, regular], 0..4).prop_map(|pieces| {
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

    fn same<D: Digest>(
        pieces: &[Piece],
        (step, range): (i64, i64),
        read: fn(&D, &Bounds, &[f64]) -> Option<f64>,
    ) -> Result<(), TestCaseError> {
        let reference = Reference { fixed: None, offset: 0 };
        let ranges = Ranges { series: Vec::new(), reference, range, changes: Vec::new() };
        let grid = Grid { start: -10, step, count: 60 };
        let frame = Frame { ranges: &ranges, grid, parameters: &[] };
        let (params, all) = (Params::instant(0), AtomicUsize::new(0));
        let mut visits = Visits::new(&params, &all);
        let alone = each_alone(pieces, &frame, &mut visits, read).unwrap();
        let in_panes = in_panes(pieces, &frame, &mut visits, read).unwrap();
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

    proptest! {
        #[test]
        fn panes_and_separate_windows_give_the_same_results(pieces in pieces(), step in 1..40_i64, range in 1..300_i64) {
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
