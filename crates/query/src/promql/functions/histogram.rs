//! What is the distribution of a histogram with buckets by `le`?

use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::Labels;

use crate::Error;
use crate::promql::functions::call::Call;
use crate::promql::label_memory::LabelRoom;
use crate::promql::labels::{rebuilt, without_name};
use crate::promql::quantile::by_value;
use crate::promql::rows::{Canvas, Row, Twins, Value, settle};

const BOUND_LABEL: &str = "le";

/// Cumulative bucket: number of observations at or below an upper bound.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bucket {
    bound: f64,
    count: f64,
}

pub fn quantile<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    let canvas = call.canvas;
    let [q, rows] = call.take()?;
    let q = q.into_scalar()?;
    distribution(rows.into_rows()?, &canvas, |step, buckets| quantile_of(q[step], buckets))
}

pub fn fraction<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    let canvas = call.canvas;
    let [lower, upper, rows] = call.take()?;
    let (lower, upper) = (lower.into_scalar()?, upper.into_scalar()?);
    distribution(rows.into_rows()?, &canvas, |step, buckets| fraction_of(lower[step], upper[step], buckets))
}

/// Applies `function` to the buckets of each histogram at each step. `function` gets at least one bucket; the buckets
/// are sorted by bound, and bounds are unique. Series without a usable `le` are skipped.
fn distribution<'d>(
    rows: Vec<Row>,
    canvas: &Canvas<'_>,
    function: impl Fn(usize, &mut Vec<Bucket>) -> f64,
) -> Result<Value<'d>, Error> {
    let mut results = Vec::new();
    for (labels, mut members) in histograms(rows, canvas.labels)? {
        members.sort_by(|(a, one), (b, other)| by_value(a, b).then_with(|| one.labels.cmp(&other.labels)));
        let mut buckets: Vec<Bucket> = Vec::with_capacity(members.len());
        let points = (0..canvas.grid.count).map(|step| {
            buckets.clear();
            for (bound, row) in &members {
                match (row.at(step), buckets.last_mut()) {
                    (Some(count), Some(last)) if last.bound == *bound => last.count += count,
                    (Some(count), _) => buckets.push(Bucket { bound: *bound, count }),
                    (None, _) => {}
                }
            }
            if buckets.is_empty() { crate::promql::STALE } else { function(step, &mut buckets) }
        });
        results.push(Row { labels: without_name(&labels, canvas.labels)?, points: points.collect() });
    }
    Ok(Value::Vector(settle(results, Twins::Join)?))
}

type Members = Vec<(f64, Row)>;

/// Buckets grouped by the labels that identify a histogram, in order of first appearance.
fn histograms(rows: Vec<Row>, room: &LabelRoom) -> Result<Vec<(Arc<Labels>, Members)>, Error> {
    let mut groups: Vec<(Arc<Labels>, Members)> = Vec::new();
    let mut positions: HashMap<Arc<Labels>, usize> = HashMap::new();
    for row in rows {
        let Some(bound) = row.labels.get(BOUND_LABEL).and_then(|le| le.parse::<f64>().ok()) else { continue };
        let labels = rebuilt(&row.labels, |name| name != BOUND_LABEL);
        let position = match positions.get(&labels) {
            Some(position) => *position,
            None => {
                let labels = room.keep(labels)?;
                positions.insert(labels.clone(), groups.len());
                groups.push((labels, Vec::new()));
                groups.len() - 1
            }
        };
        groups[position].1.push((bound, row));
    }
    Ok(groups)
}

/// Interpolates linearly within the bucket that contains the rank. The lowest bucket starts at 0 if its bound is positive;
/// otherwise its bound is the result.
fn quantile_of(q: f64, buckets: &mut [Bucket]) -> f64 {
    if q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    let last = buckets.len() - 1;
    if buckets[last].bound != f64::INFINITY || last == 0 {
        return f64::NAN;
    }
    make_monotonic(buckets);
    let observations = buckets[last].count;
    if observations == 0.0 {
        return f64::NAN;
    }
    let rank = q * observations;
    let found = buckets[..last].iter().position(|bucket| bucket.count >= rank).unwrap_or(last);
    if found == last {
        return buckets[last - 1].bound;
    }
    let bucket = buckets[found];
    match found.checked_sub(1).map(|before| buckets[before]) {
        None if bucket.bound <= 0.0 => bucket.bound,
        None => bucket.bound * (rank / bucket.count),
        Some(before) => {
            let share = (rank - before.count) / (bucket.count - before.count);
            before.bound + (bucket.bound - before.bound) * share
        }
    }
}

/// Makes the counts non-decreasing. Rounding causes tiny changes in both directions; rates of buckets that were scraped
/// at different times cause larger decreases. In both cases the count is replaced by the highest previous count.
fn make_monotonic(buckets: &mut [Bucket]) {
    let mut highest = buckets[0].count;
    for bucket in &mut buckets[1..] {
        if bucket.count < highest || nearly_equal(bucket.count, highest) {
            bucket.count = highest;
        } else {
            highest = bucket.count;
        }
    }
}

/// Whether two counts are equal except for rounding: if neither is 0, their difference is less than 10^-12 times their sum.
fn nearly_equal(a: f64, b: f64) -> bool {
    const TOLERANCE: f64 = 1e-12;
    let sum = a.abs() + b.abs();
    if a == 0.0 || b == 0.0 || sum < f64::MIN_POSITIVE {
        return (a - b).abs() < TOLERANCE * f64::MIN_POSITIVE;
    }
    (a - b).abs() / sum.min(f64::MAX) < TOLERANCE
}

/// Fraction of observations above `lower` and at or below `upper`.
fn fraction_of(lower: f64, upper: f64, buckets: &mut [Bucket]) -> f64 {
    let last = buckets.len() - 1;
    let count = buckets[last].count;
    if buckets[last].bound != f64::INFINITY || count == 0.0 || lower.is_nan() || upper.is_nan() {
        return f64::NAN;
    }
    if lower >= upper {
        return 0.0;
    }
    let rank = |value| {
        let rank = rank_of(value, buckets);
        if rank > count { count } else { rank }
    };
    (rank(upper) - rank(lower)) / count
}

/// Number of observations at or below `value`, by linear interpolation.
fn rank_of(value: f64, buckets: &[Bucket]) -> f64 {
    let mut before = Bucket { bound: f64::NEG_INFINITY, count: 0.0 };
    for bucket in buckets {
        if before.bound >= value {
            return before.count;
        }
        if before.bound < value && bucket.bound > value {
            let share = (value - before.bound) / (bucket.bound - before.bound);
            return before.count + (bucket.count - before.count) * share;
        }
        before = *bucket;
    }
    before.count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(q: f64, buckets: &[(f64, f64)], expect: f64) {
        let mut buckets: Vec<Bucket> =
            buckets.iter().map(|(bound, count)| Bucket { bound: *bound, count: *count }).collect();
        let got = quantile_of(q, &mut buckets);
        assert!(got == expect || got.is_nan() && expect.is_nan(), "{q}: {got}, expected {expect}");
    }

    #[test]
    fn quantiles_interpolate_within_buckets() {
        const INF: f64 = f64::INFINITY;
        check(0.5, &[(1.0, 0.0), (2.0, 10.0), (INF, 10.0)], 1.5);
        check(0.5, &[(2.0, 10.0), (INF, 10.0)], 1.0);
        check(0.5, &[(-2.0, 10.0), (INF, 10.0)], -2.0);
        check(0.99, &[(2.0, 1.0), (INF, 10.0)], 2.0);
        check(0.5, &[(2.0, 10.0)], f64::NAN);
        check(0.5, &[(INF, 10.0)], f64::NAN);
        check(0.5, &[(1.0, 0.0), (INF, 0.0)], f64::NAN);
        // The decrease from 10 to 5 is corrected.
        check(0.75, &[(1.0, 10.0), (2.0, 5.0), (3.0, 20.0), (INF, 20.0)], 2.5);
    }
}
