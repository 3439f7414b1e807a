//! What is the aggregate of the samples in a window?

use crate::promql::digest::{Area, Ends};
use crate::promql::fold::{Count, Fold, Max, Mean, Min, One, Sum};
use crate::promql::grid::seconds;
use crate::promql::quantile;
use crate::promql::variance::{Deviation, Variance};
use crate::promql::window::{Bounds, Window};

pub fn avg(mean: &Mean, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(mean.end())
}

pub fn min(min: &Min, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(min.end())
}

pub fn max(max: &Max, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(max.end())
}

pub fn sum(sum: &Sum, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(sum.end())
}

pub fn count(count: &Count, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(count.end())
}

pub fn stddev(deviation: &Deviation, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(deviation.end())
}

pub fn stdvar(variance: &Variance, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(variance.end())
}

/// Divides by the count minus one; `None` for a single sample.
pub fn stddev_sample(variance: &Variance, _: &Bounds, _: &[f64]) -> Option<f64> {
    variance.deviation_of_sample()
}

pub fn present(one: &One, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(one.end())
}

pub fn first(ends: &Ends, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(ends.first.1)
}

pub fn last(ends: &Ends, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(ends.last.1)
}

pub fn time_of_first(ends: &Ends, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(seconds(ends.first.0))
}

pub fn time_of_last(ends: &Ends, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(seconds(ends.last.0))
}

/// Largest minus smallest value. NaN is treated as in `max` and `min`.
pub fn range(extremes: &(Min, Max), _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(extremes.1.end() - extremes.0.end())
}

pub fn sdiff(ends: &Ends, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some(ends.last.1 - ends.first.1)
}

pub fn diff(ends: &Ends, _: &Bounds, _: &[f64]) -> Option<f64> {
    Some((ends.last.1 - ends.first.1).abs())
}

/// The area under the samples. `None` for a single sample, because there is no interval to integrate over.
pub fn integral(area: &Area, _: &Bounds, _: &[f64]) -> Option<f64> {
    (area.ends.count > 1).then(|| area.area.total())
}

pub fn quantile(values: &mut [f64], parameters: &[f64]) -> Option<f64> {
    Some(quantile::quantile(parameters[0], values))
}

pub fn mad(values: &mut [f64], _: &[f64]) -> Option<f64> {
    let median = quantile::quantile(0.5, values);
    values.iter_mut().for_each(|value| *value = (*value - median).abs());
    Some(quantile::quantile(0.5, values))
}

pub fn time_of_min(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    time_of_best(window, |value, best| value <= best)
}

pub fn time_of_max(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    time_of_best(window, |value, best| value >= best)
}

fn time_of_best(window: &Window<'_>, better: fn(f64, f64) -> bool) -> Option<f64> {
    let mut samples = window.at.iter().zip(window.values);
    let mut best = samples.next()?;
    for (at, value) in samples {
        if better(*value, *best.1) || best.1.is_nan() {
            best = (at, value);
        }
    }
    Some(seconds(*best.0))
}
