//! What is the trend of a window? A least squares line through its samples, with a confidence interval.
//!
//! Slopes are per second. Source: N. R. Draper, H. Smith, "Applied Regression Analysis" (1998), chapter 1. With `n`
//! samples, the difference between slope and true slope, divided by the standard error, has a t distribution with `n - 2`
//! degrees of freedom, if errors are normal, independent and of constant variance. Autocorrelated samples are not
//! independent; their trend looks more significant than it is.

use crate::promql::line::{Fit, Moments};
use crate::promql::student;
use crate::promql::window::Bounds;

/// `None` for fewer than two samples.
pub fn slope(moments: &Moments, _: &Bounds, _: &[f64]) -> Option<f64> {
    is_line(moments).then(|| moments.slope())
}

/// Value of the line `parameters[0]` seconds after the evaluation time.
pub fn predict_linear(moments: &Moments, window: &Bounds, parameters: &[f64]) -> Option<f64> {
    is_line(moments).then(|| ahead_of(moments, window.now, parameters[0]))
}

/// Value of the line at the start of the window.
pub fn intercept(moments: &Moments, window: &Bounds, _: &[f64]) -> Option<f64> {
    is_line(moments).then(|| moments.value_at(window.start, 0.0))
}

fn ahead_of(moments: &Moments, now: i64, seconds: f64) -> f64 {
    if seconds.is_finite() { moments.value_at(now, seconds) } else { moments.slope() * seconds }
}

fn is_line(moments: &Moments) -> bool {
    moments.count > 1.0
}

/// Two-sided probability of a slope that is at least as steep, if the values have no trend. `None` for fewer than three
/// samples.
pub fn p_value(fit: &Fit, _: &Bounds, _: &[f64]) -> Option<f64> {
    let (slope, error) = (fit.slope(), fit.slope_error()?);
    // Without scatter the error is 0, and a slope of 0 would give 0/0.
    let t = if slope == 0.0 { 0.0 } else { slope / error };
    Some(student::two_sided(t, fit.count() - 2.0))
}

/// Half the width of the confidence interval of the slope. `None` for fewer than three samples.
pub fn margin(fit: &Fit, _: &Bounds, parameters: &[f64]) -> Option<f64> {
    let error = fit.slope_error()?;
    Some(student::quantile_two_sided(parameters[0], fit.count() - 2.0) * error)
}
