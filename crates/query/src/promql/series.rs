//! Which data was read for a series? Columns of samples, and summaries where summaries are sufficient.
//!
//! Step before: `server`, which read the data from the store. Step after: `select.rs` and `slide.rs`, which iterate
//! over it.

use std::sync::Arc;

use tacho_chunk::{Summary, Times};
use tacho_model::{Labels, Timestamp};

use super::is_stale;

/// Staleness markers are searched in blocks of this number of values.
const BLOCK: usize = 256;

/// One series of a [`super::Selection`]. Its pieces are sorted by time and do not overlap.
#[derive(Clone, Debug)]
pub struct SeriesData {
    pub labels: Arc<Labels>,
    pub pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
pub enum Piece {
    /// Two columns of equal length; values may be staleness markers.
    Samples { at: Times, values: Vec<f64> },
    /// Allowed only if the selection has windows and no window cuts the summary.
    Summary(Summary),
}

impl SeriesData {
    /// Creates a series of one piece from two columns of equal length, sorted by time.
    pub fn new(labels: Arc<Labels>, at: Vec<Timestamp>, values: Vec<f64>) -> Self {
        debug_assert_eq!(at.len(), values.len());
        Self { labels, pieces: vec![Piece::Samples { at: Times::Explicit(at.into()), values }] }
    }

    /// Number of samples in memory. Samples of summaries are not counted.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Piece::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Samples { values, .. } if values.is_empty()))
    }
}

impl Piece {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Samples { values, .. } => values.len(),
            Self::Summary(_) => 0,
        }
    }

    pub(super) fn first(&self) -> Option<Timestamp> {
        match self {
            Self::Samples { at, .. } => at.first(),
            Self::Summary(summary) => Some(summary.start),
        }
    }

    pub(super) fn has_stale(&self) -> bool {
        match self {
            // Whole blocks are scanned, so that the loop has no branch per value.
            Self::Samples { values, .. } => {
                let any = |block: &[f64]| block.iter().fold(false, |any, value| any | is_stale(*value));
                values.chunks(BLOCK).any(any)
            }
            Self::Summary(_) => false,
        }
    }

    /// The same piece without its staleness markers.
    pub(super) fn without_stale(&self) -> Self {
        match self {
            Self::Samples { at, values } => {
                let kept = at.iter().zip(values).filter(|(_, value)| !is_stale(**value));
                let (at, values): (Vec<Timestamp>, Vec<f64>) = kept.map(|(at, value)| (at, *value)).unzip();
                Self::Samples { at: Times::Explicit(at.into()), values }
            }
            Self::Summary(summary) => Self::Summary(*summary),
        }
    }
}

/// Consecutive samples that a cursor has advanced over; at least one.
#[derive(Clone, Copy, Debug)]
pub struct Run<'s> {
    pub at: At<'s>,
    pub values: &'s [f64],
}

/// The times of a [`Run`].
#[derive(Clone, Copy, Debug)]
pub enum At<'s> {
    Regular { start: Timestamp, step: i64 },
    Explicit(&'s [Timestamp]),
}

impl Run<'_> {
    pub fn time(&self, index: usize) -> Timestamp {
        match self.at {
            At::Regular { start, step } => regular(start, step, index),
            At::Explicit(at) => at[index],
        }
    }

    /// First and last sample.
    pub fn ends(&self) -> ((Timestamp, f64), (Timestamp, f64)) {
        let last = self.values.len() - 1;
        ((self.time(0), self.values[0]), (self.time(last), self.values[last]))
    }

    pub fn iter(&self) -> impl Iterator<Item = (Timestamp, f64)> {
        self.values.iter().enumerate().map(|(index, value)| (self.time(index), *value))
    }
}

/// An item that a cursor advances over: samples or a summary.
pub enum Passed<'s> {
    Run(Run<'s>),
    Summary(&'s Summary),
}

/// Iterates forwards over the pieces of a series.
#[derive(Clone, Debug)]
pub struct Cursor<'s> {
    pieces: &'s [Piece],
    /// The current piece, and the number of samples of this piece that are before the cursor.
    piece: usize,
    index: usize,
}

/// The error if a window needs only a part of a summary.
#[derive(Debug)]
pub struct Cut;

impl<'s> Cursor<'s> {
    pub fn new(pieces: &'s [Piece]) -> Self {
        Self { pieces, piece: 0, index: 0 }
    }

    /// Advances to the time `until`, inclusive. Calls `visit` for each item passed.
    #[inline]
    pub fn pass(&mut self, until: Timestamp, mut visit: impl FnMut(Passed<'s>)) -> Result<(), Cut> {
        while let Some(piece) = self.pieces.get(self.piece) {
            match piece {
                Piece::Samples { at, values } => {
                    let from = self.index;
                    self.index = first_after(at, from, until);
                    if self.index > from {
                        let values = &values[from..self.index];
                        visit(Passed::Run(Run { at: part(at, from, self.index), values }));
                    }
                    if self.index < values.len() {
                        return Ok(());
                    }
                }
                Piece::Summary(summary) if summary.end <= until => visit(Passed::Summary(summary)),
                Piece::Summary(summary) if summary.start <= until => return Err(Cut),
                Piece::Summary(_) => return Ok(()),
            }
            self.piece += 1;
            self.index = 0;
        }
        Ok(())
    }

    /// Like [`Cursor::pass`], with less work, for the most frequent case: the only item passed is a run that ends before the end
    /// of its piece. In other cases returns `None` and does not move.
    #[inline]
    pub fn pass_inside(&mut self, until: Timestamp) -> Option<Run<'s>> {
        let Some(Piece::Samples { at, values }) = self.pieces.get(self.piece) else { return None };
        let (from, to) = (self.index, first_after(at, self.index, until));
        if to == from || to == values.len() {
            return None;
        }
        self.index = to;
        Some(Run { at: part(at, from, to), values: &values[from..to] })
    }

    /// The time of the first sample after the cursor.
    pub fn next(&self) -> Option<Timestamp> {
        match self.pieces.get(self.piece)? {
            Piece::Samples { at, .. } if self.index > 0 => at.get(self.index),
            piece => {
                piece.first().or_else(|| self.pieces.get(self.piece + 1..)?.iter().find_map(Piece::first))
            }
        }
    }

    /// The last sample before the cursor; `None` if there is none. Summaries are ignored.
    pub fn behind(&self) -> Option<(Timestamp, f64)> {
        let before = |piece: usize, index: usize| match self.pieces.get(piece)? {
            Piece::Samples { at, values } => Some((at.get(index.checked_sub(1)?)?, *values.get(index - 1)?)),
            Piece::Summary(_) => None,
        };
        if self.index > 0 {
            return before(self.piece, self.index);
        }
        let earlier = self.pieces[..self.piece].iter().rposition(|piece| piece.len() > 0)?;
        before(earlier, self.pieces[earlier].len())
    }
}

fn part(at: &Times, from: usize, to: usize) -> At<'_> {
    match at {
        Times::Regular { start, step, .. } => {
            At::Regular { start: regular(*start, *step, from), step: *step }
        }
        Times::Explicit(at) => At::Explicit(&at[from..to]),
    }
}

/// All times of a chunk fit into 64 bits, so the result is right for an index within the chunk even if the product wraps.
fn regular(start: Timestamp, step: i64, index: usize) -> Timestamp {
    start.wrapping_add(step.wrapping_mul(index.cast_signed() as i64))
}

/// Index of the first time after `until`. The search starts at `from`.
#[inline]
fn first_after(at: &Times, from: usize, until: Timestamp) -> usize {
    match at {
        Times::Regular { start, step, count } => {
            let next = regular(*start, *step, from);
            if from >= *count || until < next {
                return from;
            }
            let more = until.abs_diff(next) / step.unsigned_abs().max(1);
            usize::try_from(more)
                .map_or(*count, |more| from.saturating_add(more).saturating_add(1).min(*count))
        }
        Times::Explicit(at) => {
            // Windows are short compared to a series, so the search starts near the cursor and doubles its step.
            let (mut low, mut step) = (from, 1);
            while low + step <= at.len() && at[low + step - 1] <= until {
                low += step;
                step *= 2;
            }
            low + at[low..at.len().min(low + step)].partition_point(|time| *time <= until)
        }
    }
}
