//! Where is it going? A line through the samples of a window by least squares, and how sure it is.
//!
//! Slopes are per second. N. R. Draper, H. Smith, "Applied Regression Analysis" (1998), chapter 1: with `n` samples the
//! slope divided by its standard error has a t distribution with `n - 2` degrees of freedom, where errors are normal,
//! of one size, and independent. Samples of a process that remembers are not independent: then a trend looks surer
//! than it is.

use crate::promql::digest::Moments;
use crate::promql::grid::seconds;
use crate::promql::student;
use crate::promql::window::Bounds;

/// None for less than two samples.
pub fn slope(moments: &Moments, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(Line::of(moments)?.slope)
}

/// The line's value so many seconds from now.
pub fn predict_linear(moments: &Moments, window: &Bounds, parameters: &[f64]) -> Option<f64> {
    let line = Line::of(moments)?;
    Some(line.at(window.now) + line.slope * parameters[0])
}

/// The line's value at the start of the window.
pub fn intercept(moments: &Moments, window: &Bounds, _: &[f64]) -> Option<f64> {
    Some(Line::of(moments)?.at(window.start))
}

/// How probable a slope at least as steep is where there is no trend; two-sided. None for less than three samples.
pub fn p_value(moments: &Moments, _: &Bounds, _: &[f64]) -> Option<f64> {
    let (line, error) = (Line::of(moments)?, slope_error(moments)?);
    // Without any scatter: 0/0 where there is no slope either.
    let t = if line.slope == 0.0 { 0.0 } else { line.slope / error };
    Some(student::two_sided(t, moments.count - 2.0))
}

/// Half the width of the slope's confidence interval. None for less than three samples.
pub fn margin(moments: &Moments, _: &Bounds, parameters: &[f64]) -> Option<f64> {
    let error = slope_error(moments)?;
    Some(student::quantile_two_sided(parameters[0], moments.count - 2.0) * error)
}

struct Line {
    slope: f64,
    /// A point on it.
    time: f64,
    value: f64,
    origin: i64,
}

impl Line {
    fn of(moments: &Moments) -> Option<Self> {
        let Moments { count, origin, mean_time, mean_value, times, both, .. } = *moments;
        (count > 1.0).then(|| Self { slope: both / times, time: mean_time, value: mean_value, origin })
    }

    fn at(&self, time: i64) -> f64 {
        self.value + self.slope * (seconds(time.saturating_sub(self.origin)) - self.time)
    }
}

/// Standard error of the slope.
fn slope_error(moments: &Moments) -> Option<f64> {
    let Moments { count, times, values, both, .. } = *moments;
    if count < 3.0 {
        return None;
    }
    // Rounding may leave a little less than nothing of a perfect line.
    let scatter = values - both * both / times;
    let scatter = if scatter < 0.0 { 0.0 } else { scatter };
    Some((scatter / (count - 2.0) / times).sqrt())
}
