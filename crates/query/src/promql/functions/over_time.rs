//! What do the samples in a window amount to?

use crate::promql::fold::{Count, Deviation, Fold, Max, Mean, Min, One, Sum, Variance, fold};
use crate::promql::grid::seconds;
use crate::promql::quantile;
use crate::promql::window::Window;

pub fn avg(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    folded::<Mean>(window)
}

pub fn min(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    folded::<Min>(window)
}

pub fn max(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    folded::<Max>(window)
}

pub fn sum(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    folded::<Sum>(window)
}

pub fn count(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    folded::<Count>(window)
}

pub fn stddev(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    folded::<Deviation>(window)
}

pub fn stdvar(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    folded::<Variance>(window)
}

pub fn present(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    folded::<One>(window)
}

fn folded<F: Fold>(window: &Window<'_>) -> Option<f64> {
    fold::<F>(window.values.iter().copied())
}

pub fn first(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    window.values.first().copied()
}

pub fn last(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    window.values.last().copied()
}

pub fn quantile(window: &Window<'_>, parameters: &[f64]) -> Option<f64> {
    Some(quantile::quantile(parameters[0], &mut window.values.to_vec()))
}

pub fn mad(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    let mut values = window.values.to_vec();
    let median = quantile::quantile(0.5, &mut values);
    values.iter_mut().for_each(|value| *value = (*value - median).abs());
    Some(quantile::quantile(0.5, &mut values))
}

pub fn time_of_first(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    window.at.first().map(|at| seconds(*at))
}

pub fn time_of_last(window: &Window<'_>, _: &[f64]) -> Option<f64> {
    window.at.last().map(|at| seconds(*at))
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
