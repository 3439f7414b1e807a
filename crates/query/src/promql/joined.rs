//! How do adjacent runs of samples become one digest that depends only on the samples, not on the pieces that store them?
//!
//! Runs are copied into one run. The times of this run stay regular if the runs continue one regular sequence, because digests of
//! regular times are cheaper (`line.rs`).
//!
//! Step before: `slide.rs`, which collects the runs of a pane. Step after: the digests.

use tacho_model::Timestamp;

use super::digest::Digest;
use super::series::{At, Run};

/// Adjacent runs of samples as one run. A single run is not copied.
pub enum Joined<'s> {
    None,
    One(Run<'s>),
    Several { at: JoinedTimes, values: Vec<f64> },
}

/// The times of several runs.
pub enum JoinedTimes {
    /// All runs so far continue one regular sequence.
    Regular {
        start: Timestamp,
        step: i64,
    },
    Explicit(Vec<Timestamp>),
}

impl<'s> Joined<'s> {
    pub fn add(&mut self, next: Run<'s>) {
        match self {
            Self::None => *self = Self::One(next),
            Self::One(first) => {
                let mut values = Vec::with_capacity(2 * (first.values.len() + next.values.len()));
                values.extend_from_slice(first.values);
                let mut at = match first.at {
                    At::Regular { start, step } => JoinedTimes::Regular { start, step },
                    At::Explicit(at) => JoinedTimes::Explicit(at.to_vec()),
                };
                at.add(values.len(), &next);
                values.extend_from_slice(next.values);
                *self = Self::Several { at, values };
            }
            Self::Several { at, values } => {
                at.add(values.len(), &next);
                values.extend_from_slice(next.values);
            }
        }
    }

    /// The digest of all samples; `None` if there are none.
    pub fn digest<D: Digest>(&self) -> Option<D> {
        let run = match self {
            Self::None => return None,
            Self::One(run) => *run,
            Self::Several { at: JoinedTimes::Regular { start, step }, values } => {
                Run { at: At::Regular { start: *start, step: *step }, values }
            }
            Self::Several { at: JoinedTimes::Explicit(at), values } => Run { at: At::Explicit(at), values },
        };
        Some(D::of(&evenly(run)))
    }
}

impl JoinedTimes {
    /// Adds the times of a run that follows the first `count` samples.
    fn add(&mut self, count: usize, next: &Run<'_>) {
        if let Self::Regular { start, step } = *self {
            let so_far = Run { at: At::Regular { start, step }, values: &[] };
            match next.at {
                At::Regular { start: after, step: another }
                    if step == another && so_far.time(count) == after =>
                {
                    return;
                }
                _ => *self = Self::Explicit((0..count).map(|index| so_far.time(index)).collect()),
            }
        }
        if let Self::Explicit(at) = self {
            at.extend(next.iter().map(|(at, _)| at));
        }
    }
}

/// The same run with regular times, if its times have a constant step. A single sample gets the step 0. A digest of regular times
/// may differ in the last bit from a digest of a list of the same times. In `run`, the form of the times depends on the pieces
/// from which the samples come. In the result, it depends only on the times.
fn evenly(run: Run<'_>) -> Run<'_> {
    let at = match run.at {
        At::Regular { start, .. } if run.values.len() == 1 => At::Regular { start, step: 0 },
        At::Explicit([start]) => At::Regular { start: *start, step: 0 },
        At::Explicit([start, second, rest @ ..]) => match second.checked_sub(*start) {
            Some(step) if follow(*second, step, rest) => At::Regular { start: *start, step },
            _ => run.at,
        },
        at => at,
    };
    Run { at, ..run }
}

/// Whether the times follow `last`, each after one step.
fn follow(last: Timestamp, step: i64, times: &[Timestamp]) -> bool {
    let mut before = last;
    times.iter().all(|at| {
        let is_next = before.checked_add(step) == Some(*at);
        before = *at;
        is_next
    })
}
