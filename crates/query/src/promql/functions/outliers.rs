//! Which samples of a window are outliers? NaN is never an outlier and is ignored in the statistics.

use crate::Error;
use crate::promql::quantile::neighbours;
use crate::promql::rows::Columns;
use crate::promql::window::{Visits, Window};

use super::change::kept;

/// Default number of interquartile ranges. An outlier is mild above 1.5 and severe above 3: J. W. Tukey, "Exploratory
/// Data Analysis" (1977), section 2C.
const FENCE_DEFAULT: f64 = 1.5;

/// Default score, 3.5: B. Iglewicz, D. C. Hoaglin, "How to Detect and Handle Outliers" (1993), chapter 3.
const SCORE_DEFAULT: f64 = 3.5;

/// The third quartile of the standard normal distribution. For normal values, the median absolute deviation is the
/// standard deviation multiplied by this number.
const MEDIAN_OF_NORMAL: f64 = 0.674_489_750_196_081_7;

/// The mean of the absolute value of a standard normal variable: sqrt(2 / pi).
const MEAN_OF_NORMAL: f64 = 0.797_884_560_802_865_4;

/// Samples that are more than `k` interquartile ranges below the first quartile or above the third.
pub fn iqr(
    window: &Window<'_>,
    parameters: &[f64],
    visits: &mut Visits<'_>,
) -> Result<Columns<'static>, Error> {
    let k = parameters.first().copied().unwrap_or(FENCE_DEFAULT);
    visits.count(window.values.len())?;
    let mut numbers = numbers(window);
    let (first, third) = (quarter(&mut numbers, 1), quarter(&mut numbers, 3));
    let reach = k * (third - first);
    Ok(kept(window, |_, value| value < first - reach || value > third + reach))
}

/// Samples whose modified z-score, 0.6745 |x - median| / MAD, is above a threshold. If more than half of the samples
/// are equal, the MAD is 0. In this case the score is 0.7979 |x - median| / (mean of |x - median|).
pub fn mad(
    window: &Window<'_>,
    parameters: &[f64],
    visits: &mut Visits<'_>,
) -> Result<Columns<'static>, Error> {
    let threshold = parameters.first().copied().unwrap_or(SCORE_DEFAULT);
    visits.count(window.values.len())?;
    let mut deviations = numbers(window);
    let median = quarter(&mut deviations, 2);
    deviations.iter_mut().for_each(|value| *value = (*value - median).abs());
    let (mad, normal) = (quarter(&mut deviations, 2), MEDIAN_OF_NORMAL);
    let (scale, normal) = if mad == 0.0 { (mean(&deviations), MEAN_OF_NORMAL) } else { (mad, normal) };
    // If all values are equal, the score is 0 / 0 (NaN), which exceeds no threshold.
    Ok(kept(window, |_, value| normal * (value - median).abs() / scale > threshold))
}

fn numbers(window: &Window<'_>) -> Vec<f64> {
    window.values.iter().copied().filter(|value| !value.is_nan()).collect()
}

/// The first, second or third quartile, by linear interpolation between ranks. An infinite neighbour with weight 0 is
/// ignored. NaN for an empty slice.
#[expect(clippy::cast_precision_loss, reason = "the remainder is below 4")]
fn quarter(values: &mut [f64], number: usize) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let (below, weight) = (number * last / 4, (number * last % 4) as f64 / 4.0);
    let (lower, upper) = neighbours(values, below);
    if weight == 0.0 { lower } else { lower * (1.0 - weight) + upper * weight }
}

fn mean(values: &[f64]) -> f64 {
    use crate::promql::fold::{Fold, Mean};
    if values.is_empty() { f64::NAN } else { Mean::of(values).end() }
}
