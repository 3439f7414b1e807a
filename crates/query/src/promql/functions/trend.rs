//! Where is it going? A line through the samples of a window by least squares, and how sure it is.
//!
//! Slopes are per second. N. R. Draper, H. Smith, "Applied Regression Analysis" (1998), chapter 1: with `n` samples the
//! slope divided by its standard error has a t distribution with `n - 2` degrees of freedom, where errors are normal,
//! of one size, and independent. Samples of a process that remembers are not independent: then a trend looks surer
//! than it is.

use crate::promql::line::{Fit, Moments};
use crate::promql::student;
use crate::promql::window::Bounds;

/// None for less than two samples.
pub fn slope(moments: &Moments, _: &Bounds, _: &[f64]) -> Option<f64> {
    is_line(moments).then(|| moments.slope())
}

/// The line's value so many seconds from now.
pub fn predict_linear(moments: &Moments, window: &Bounds, parameters: &[f64]) -> Option<f64> {
    is_line(moments).then(|| ahead_of(moments, window.now, parameters[0]))
}

/// The line's value at the start of the window.
pub fn intercept(moments: &Moments, window: &Bounds, _: &[f64]) -> Option<f64> {
    is_line(moments).then(|| moments.value_at(window.start, 0.0))
}

fn ahead_of(moments: &Moments, now: i64, seconds: f64) -> f64 {
    if seconds.is_finite() { moments.value_at(now, seconds) } else { moments.slope() * seconds }
}

fn is_line(moments: &Moments) -> bool {
    moments.count > 1.0
}

/// How probable a slope at least as steep is where there is no trend; two-sided. None for less than three samples.
pub fn p_value(fit: &Fit, _: &Bounds, _: &[f64]) -> Option<f64> {
    let (slope, error) = (fit.slope(), fit.slope_error()?);
    // Without any scatter: 0/0 where there is no slope either.
    let t = if slope == 0.0 { 0.0 } else { slope / error };
    Some(student::two_sided(t, fit.count() - 2.0))
}

/// Half the width of the slope's confidence interval. None for less than three samples.
pub fn margin(fit: &Fit, _: &Bounds, parameters: &[f64]) -> Option<f64> {
    let error = fit.slope_error()?;
    Some(student::quantile_two_sided(parameters[0], fit.count() - 2.0) * error)
}
