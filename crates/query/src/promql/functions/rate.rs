//! How fast does it change? Functions of the samples in a window.

use crate::promql::fold::Neumaier;
use crate::promql::grid::seconds;
use crate::promql::window::Window;

pub fn rate(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    let (increase, factor) = counter(window)?;
    Some(increase * (factor / seconds(window.end.saturating_sub(window.start))))
}

pub fn increase(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    let (increase, factor) = counter(window)?;
    Some(increase * factor)
}

pub fn delta(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    let ((_, first), (_, last)) = window.ends();
    Some((last - first) * Span::of(window)?.factor())
}

/// Increase of a counter from the first to the last sample, and the factor that extrapolates it to the window.
fn counter(window: &Window<'_>) -> Option<(f64, f64)> {
    let mut span = Span::of(window)?;
    let ((_, first), (_, last)) = window.ends();
    let resets = window.pairs().filter(|(before, after)| after < before);
    // In order of time, as a sum of floats depends on it.
    let increase = resets.fold(last - first, |sum, (before, _)| sum + before);
    if increase > 0.0 && first >= 0.0 {
        // A counter does not start below zero: no extrapolation past the moment when it was zero.
        span.before = span.before.min(span.sampled * (first / increase));
    }
    Some((increase, span.factor()))
}

/// How much of the window the samples cover, seconds.
struct Span {
    sampled: f64,
    /// By how much to extrapolate at each end.
    before: f64,
    after: f64,
}

impl Span {
    /// Samples nearer to a boundary than 1.1 times their mean distance are taken to reach it; else the series
    /// is taken to begin or end half a distance beyond its outermost sample. None with less than two samples.
    #[expect(clippy::cast_precision_loss, reason = "a window holds less than 2^53 samples")]
    fn of(window: &Window<'_>) -> Option<Self> {
        let gaps = window.at.len().checked_sub(1).filter(|gaps| *gaps > 0)?;
        let ((first, _), (last, _)) = window.ends();
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

/// Seconds between the last two samples, and their values.
fn last_two(window: &Window<'_>) -> Option<(f64, f64, f64)> {
    let (&[.., earlier, later], &[.., before, after]) = (window.at, window.values) else { return None };
    if later == earlier { None } else { Some((seconds(later.saturating_sub(earlier)), before, after)) }
}

pub fn deriv(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    Some(regression(window, window.at[0])?.0)
}

pub fn predict_linear(window: &Window<'_>, parameters: &[f64]) -> Option<f64> {
    let (slope, intercept) = regression(window, window.now)?;
    Some(slope * parameters[0] + intercept)
}

/// Least squares: slope per second, and value at the time `origin`.
fn regression(window: &Window<'_>, origin: i64) -> Option<(f64, f64)> {
    if window.at.len() < 2 {
        return None;
    }
    let constant = window.values[0];
    if window.values.iter().all(|value| *value == constant) {
        return Some(if constant.is_infinite() { (f64::NAN, f64::NAN) } else { (0.0, constant) });
    }
    let mut n = 0.0;
    let [mut x, mut y, mut xy, mut xx] = [Neumaier::default(); 4];
    for (at, value) in window.at.iter().zip(window.values) {
        let after = seconds(at.saturating_sub(origin));
        n += 1.0;
        x.add(after);
        y.add(*value);
        xy.add(after * value);
        xx.add(after * after);
    }
    let covariance = xy.total() - x.total() * y.total() / n;
    let variance = xx.total() - x.total() * x.total() / n;
    let slope = covariance / variance;
    Some((slope, y.total() / n - slope * x.total() / n))
}

#[expect(clippy::cast_precision_loss, reason = "a window holds less than 2^53 samples")]
pub fn resets(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    Some(window.pairs().filter(|(before, after)| after < before).count() as f64)
}

#[expect(clippy::cast_precision_loss, reason = "a window holds less than 2^53 samples")]
pub fn changes(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    let changed = |(before, after): &(f64, f64)| before != after && !(before.is_nan() && after.is_nan());
    Some(window.pairs().filter(changed).count() as f64)
}
