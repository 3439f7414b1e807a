//! How fast does a value change? Functions of the samples in a window.

use crate::promql::digest::{Changes, Counter, Ends};
use crate::promql::grid::seconds;
use crate::promql::window::{Bounds, Window};

pub fn rate(counter: &Counter, window: &Bounds, _: &[f64]) -> Option<f64> {
    let (increase, factor) = extrapolated(counter, window)?;
    Some(increase * (factor / seconds(window.end.saturating_sub(window.start))))
}

pub fn increase(counter: &Counter, window: &Bounds, _: &[f64]) -> Option<f64> {
    let (increase, factor) = extrapolated(counter, window)?;
    Some(increase * factor)
}

pub fn delta(ends: &Ends, window: &Bounds, _: &[f64]) -> Option<f64> {
    Some((ends.last.1 - ends.first.1) * Span::of(ends, window)?.factor())
}

/// Increase of a counter from the first to the last sample, and the factor that extrapolates it to the window.
fn extrapolated(counter: &Counter, window: &Bounds) -> Option<(f64, f64)> {
    let mut span = Span::of(&counter.ends, window)?;
    let ((_, first), (_, last)) = (counter.ends.first, counter.ends.last);
    let mut increase = counter.lost;
    increase.add(last - first);
    let increase = increase.total();
    if increase > 0.0 && first >= 0.0 {
        // A counter does not start below zero, so the extrapolation into the past stops where the counter would be zero.
        span.before = span.before.min(span.sampled * (first / increase));
    }
    Some((increase, span.factor()))
}

/// Durations that determine the extrapolation, in seconds.
struct Span {
    sampled: f64,
    /// Duration to extrapolate before the first sample.
    before: f64,
    /// Duration to extrapolate after the last sample.
    after: f64,
}

impl Span {
    /// Extends the series to a boundary if the gap between the boundary and the nearest sample is less than 1.1 times the
    /// mean distance of samples, otherwise by half the mean distance. `None` for fewer than two samples.
    #[expect(clippy::cast_precision_loss, reason = "a window holds fewer than 2^53 samples")]
    fn of(ends: &Ends, window: &Bounds) -> Option<Self> {
        let gaps = ends.count.checked_sub(1).filter(|gaps| *gaps > 0)?;
        let ((first, _), (last, _)) = (ends.first, ends.last);
        let sampled = seconds(last.saturating_sub(first));
        let distance = sampled / gaps as f64;
        let reach = |gap: f64| if gap >= distance * 1.1 { distance / 2.0 } else { gap };
        let before = reach(seconds(first.saturating_sub(window.start)));
        let after = reach(seconds(window.end.saturating_sub(last)));
        Some(Self { sampled, before, after })
    }

    fn factor(&self) -> f64 {
        (self.sampled + self.before + self.after) / self.sampled
    }
}

pub fn irate(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    let (elapsed, before, after) = last_two(window)?;
    let increase = if after < before { after } else { after - before };
    Some(increase / elapsed)
}

pub fn idelta(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    let (_, before, after) = last_two(window)?;
    Some(after - before)
}

/// Seconds between the last two samples, and both values.
fn last_two(window: &Window<'_>) -> Option<(f64, f64, f64)> {
    let (&[.., earlier, later], &[.., before, after]) = (window.at, window.values) else { return None };
    if later == earlier { None } else { Some((seconds(later.saturating_sub(earlier)), before, after)) }
}

#[expect(clippy::cast_precision_loss, reason = "a window holds fewer than 2^53 samples")]
pub fn resets(counter: &Counter, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(counter.resets as f64)
}

#[expect(clippy::cast_precision_loss, reason = "a window holds fewer than 2^53 samples")]
pub fn changes(changes: &Changes, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(changes.count as f64)
}
