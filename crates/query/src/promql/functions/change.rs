//! Which functions replace the samples of a window? They select some samples, or compute new ones.
//!
//! These functions return range vectors, which are valid answers of instant queries and valid arguments of functions
//! `*_over_time`, as in `max_over_time(derivative(x[1h]))`. `outliers.rs` has more functions of this kind.

use std::collections::HashSet;

use crate::Error;
use crate::promql::fold::{Fold, Mean};
use crate::promql::functions::call::{SAMPLES_MAX, whole};
use crate::promql::grid::seconds;
use crate::promql::quantile::by_value;
use crate::promql::rows::Columns;
use crate::promql::slide::Panes;
use crate::promql::window::{Visits, Window};

type Changed = Result<Columns<'static>, Error>;

/// Slope per second from each sample to the next, at the time of the later sample.
pub fn derivative(window: &Window<'_>, _: &[f64], _: &mut Visits<'_>) -> Changed {
    Ok(slopes(window).collect())
}

pub fn derivative_nonnegative(window: &Window<'_>, _: &[f64], _: &mut Visits<'_>) -> Changed {
    Ok(slopes(window).filter(|(_, slope)| *slope >= 0.0 || slope.is_nan()).collect())
}

fn slopes(window: &Window<'_>) -> impl Iterator<Item = (i64, f64)> {
    let pairs = window.at.windows(2).zip(window.values.windows(2));
    pairs.map(|(at, values)| (at[1], (values[1] - values[0]) / seconds(at[1].saturating_sub(at[0]))))
}

/// At each sample, the mean of those samples of the window that are in the `seconds` seconds up to this sample. This interval is
/// open at the left.
pub fn moving_avg(window: &Window<'_>, parameters: &[f64], visits: &mut Visits<'_>) -> Changed {
    let Some(width) = nanoseconds(parameters[0]) else { return Ok(Columns::default()) };
    visits.count(window.at.len())?;
    let mut panes = Panes::new();
    let means = window.at.iter().zip(window.values).map(|(at, value)| {
        panes.leave(at.saturating_sub(width));
        panes.push(*at, Mean::new(*value));
        (*at, panes.all().map_or(f64::NAN, |mean: Mean| mean.end()))
    });
    Ok(means.collect())
}

/// At each sample from the n-th on, the mean of the last n samples.
pub fn moving_avg_samples(window: &Window<'_>, parameters: &[f64], visits: &mut Visits<'_>) -> Changed {
    let n = i64::try_from(whole(parameters[0], "number of samples", &(1..=SAMPLES_MAX))?).unwrap_or(i64::MAX);
    visits.count(window.at.len())?;
    let mut panes = Panes::new();
    let samples = (1_i64..).zip(window.at.iter().zip(window.values));
    let means = samples.filter_map(|(number, (at, value))| {
        panes.leave(number.saturating_sub(n));
        panes.push(number, Mean::new(*value));
        if number < n { None } else { panes.all().map(|mean: Mean| (*at, mean.end())) }
    });
    Ok(means.collect())
}

/// The first sample of each distinct value. All NaN count as one value.
pub fn keep_distinct(window: &Window<'_>, _: &[f64], _: &mut Visits<'_>) -> Changed {
    let mut seen = HashSet::new();
    Ok(kept(window, |_, value| {
        // Adding 0 makes -0 equal to 0.
        seen.insert(if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() })
    }))
}

pub fn keep_top(window: &Window<'_>, parameters: &[f64], _: &mut Visits<'_>) -> Changed {
    Ok(best(window, count(parameters[0]), |a, b| by_value(b, a)))
}

pub fn keep_bottom(window: &Window<'_>, parameters: &[f64], _: &mut Visits<'_>) -> Changed {
    Ok(best(window, count(parameters[0]), by_value))
}

/// The first `n` samples by `order`, returned in order of time. Of equal values, the earlier sample is first. NaN is last.
fn best(window: &Window<'_>, n: usize, order: impl Fn(&f64, &f64) -> std::cmp::Ordering) -> Columns<'static> {
    let mut places: Vec<usize> = (0..window.values.len()).collect();
    let value = |place: usize| &window.values[place];
    if n < places.len() {
        places.select_nth_unstable_by(n, |a, b| {
            let by_nan = value(*a).is_nan().cmp(&value(*b).is_nan());
            by_nan.then_with(|| order(value(*a), value(*b))).then_with(|| a.cmp(b))
        });
        places.truncate(n);
        places.sort_unstable();
    }
    places.into_iter().map(|place| (window.at[place], window.values[place])).collect()
}

/// A small set of samples. The line segments between the samples of the set pass all remaining samples within a tolerance, in the
/// unit of the value. Starts with the first and last sample, and adds the sample that is furthest from the current segment
/// until no sample is further away than the tolerance. Distances are vertical (at the time of the sample), because times have
/// another unit. U. Ramer, "An Iterative Procedure for the Polygonal Approximation of Plane Curves" (1972);
/// D. Douglas, T. Peucker, "Algorithms for the Reduction of the Number of Points Required to Represent a Digitized Line or
/// its Caricature" (1973).
///
/// Samples that are not finite are kept, because no line goes through them. Their neighbours are kept as well.
pub fn simplify(window: &Window<'_>, parameters: &[f64], visits: &mut Visits<'_>) -> Changed {
    let tolerance = if parameters[0] > 0.0 { parameters[0] } else { 0.0 };
    let finite = |place: &usize| window.values.get(*place).is_some_and(|value| value.is_finite());
    let mut keep: Vec<bool> = (0..window.values.len()).map(|place| !finite(&place)).collect();
    let mut stretches = Vec::new();
    let mut from = 0;
    for to in 0..=window.values.len() {
        if !finite(&to) {
            if from < to {
                stretches.push((from, to - 1));
            }
            from = to + 1;
        }
    }
    while let Some((from, to)) = stretches.pop() {
        (keep[from], keep[to]) = (true, true);
        visits.count(to - from)?;
        if let Some((furthest, distance)) = furthest(window, from, to)
            && distance > tolerance
        {
            stretches.extend([(from, furthest), (furthest, to)]);
        }
    }
    let mut keep = keep.into_iter();
    Ok(kept(window, |_, _| keep.next().unwrap_or(true)))
}

/// The sample that is furthest from the line between the samples `from` and `to`, and its distance.
fn furthest(window: &Window<'_>, from: usize, to: usize) -> Option<(usize, f64)> {
    let after = |place: usize| seconds(window.at[place].saturating_sub(window.at[from]));
    // Halves of the values, because the difference of two large values overflows.
    let slope = (window.values[to] / 2.0 - window.values[from] / 2.0) / after(to);
    let distance = |place: usize| {
        let half = window.values[place] / 2.0 - window.values[from] / 2.0 - slope * after(place);
        (place, 2.0 * half.abs())
    };
    (from + 1..to).map(distance).reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// Counts samples in windows of `seconds` seconds, from the end of the range backwards. A window that has at least `n` (and at
/// least 1) more samples than the next older window yields a sample at its end. The value is the difference. The oldest
/// complete window yields no sample, because there is no older window.
#[expect(clippy::cast_precision_loss, reason = "a window holds fewer than 2^53 samples")]
pub fn bursts(window: &Window<'_>, parameters: &[f64], visits: &mut Visits<'_>) -> Changed {
    let Some(width) = nanoseconds(parameters[0]) else { return Ok(Columns::default()) };
    visits.count(window.at.len())?;
    let (end, width) = (i128::from(window.bounds.end), i128::from(width));
    let windows = (end - i128::from(window.bounds.start)) / width;
    // Newest window first; windows without samples are missing.
    let mut counts: Vec<(i128, usize)> = Vec::new();
    for at in window.at.iter().rev() {
        let number = (end - i128::from(*at)) / width;
        match counts.last_mut() {
            Some((last, count)) if *last == number => *count += 1,
            _ if number < windows => counts.push((number, 1)),
            _ => break,
        }
    }
    let more = counts.iter().enumerate().filter_map(|(place, (number, count))| {
        let before = counts.get(place + 1).filter(|(other, _)| *other == number + 1).map_or(0, |(_, n)| *n);
        let more = count.checked_sub(before).filter(|more| *more > 0 && *more as f64 >= parameters[1])?;
        let at = i64::try_from(end - number * width).ok()?;
        (number + 1 < windows).then_some((at, more as f64))
    });
    let mut bursts: Vec<(i64, f64)> = more.collect();
    bursts.reverse();
    Ok(bursts.into_iter().collect())
}

/// The samples for which `keep` returns true, called in order of time.
pub fn kept(window: &Window<'_>, mut keep: impl FnMut(i64, f64) -> bool) -> Columns<'static> {
    let samples = window.at.iter().copied().zip(window.values.iter().copied());
    samples.filter(|(at, value)| keep(*at, *value)).collect()
}

/// Converts a positive number of seconds into nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "checked before; at least 1 ns")]
fn nanoseconds(seconds: f64) -> Option<i64> {
    if seconds > 0.0 { Some(((seconds * 1e9) as i64).max(1)) } else { None }
}

/// A number of samples; 0 for NaN and values below 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn count(number: f64) -> usize {
    number as usize
}
