//! What do windows that slide over a series amount to, without reading what they share again?
//!
//! The starts and ends of all windows cut a series into panes; a window is a row of panes. Panes are digested once and
//! kept in two stacks: the back takes new ones and knows their join; the front has each joined with all that came
//! after it, so that the oldest leaves by a `pop`. When the front is empty the back is turned over into it, so each
//! pane is joined three times, however many windows see it, and nothing is ever subtracted (K. Tangwongsan, M. Hirzel,
//! S. Schneider, "Low-Latency Sliding-Window Aggregation in Worst-Case Constant Time", DEBS 2017, section 2).
//!
//! Step before: `window.rs`, which knows the windows. Step after: a function reads the digest at each step.

use tacho_model::Timestamp;

use crate::Error;

use super::STALE;
use super::digest::Digest;
use super::series::{Cursor, Passed, Piece};
use super::window::{Bounds, Frame, Visits};

/// The panes that the current window sees, each with the time at which it leaves: that of its end.
pub struct Panes<D> {
    /// The oldest is the last; each joined with those after it in time, as far as they are here.
    front: Vec<(Timestamp, D)>,
    back: Vec<(Timestamp, D)>,
    /// All of the back.
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

    /// Lets go of panes that end at or before the start of a window.
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

/// What `read` makes of each window's digest; [`STALE`] where a window is empty or `read` has nothing to say.
pub fn slide<D: Digest>(
    pieces: &[Piece],
    frame: &Frame<'_>,
    visits: &mut Visits<'_>,
    read: fn(&D, &Bounds, &[f64]) -> Option<f64>,
) -> Result<Vec<f64>, Error> {
    let mut cursor = Cursor::new(pieces);
    let mut panes = Panes::new();
    // Window whose start cuts next.
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
            take(&mut cursor, start, &mut panes, visits)?;
            cutter += 1;
        }
        take(&mut cursor, bounds.end, &mut panes, visits)?;
        frame.parameters_at(step, &mut parameters);
        let value = panes.all().and_then(|digest| read(&digest, &bounds, &parameters));
        points.push(value.unwrap_or(STALE));
    }
    Ok(points)
}

/// Digests what comes next, up to and with the time `end`, as one pane.
fn take<D: Digest>(
    cursor: &mut Cursor<'_>,
    end: Timestamp,
    panes: &mut Panes<D>,
    visits: &mut Visits<'_>,
) -> Result<(), Error> {
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
    if let Some(pane) = pane {
        panes.push(end, pane);
    }
    Ok(())
}

pub fn cut() -> Error {
    Error::execution("internal: a window cuts a summary")
}
