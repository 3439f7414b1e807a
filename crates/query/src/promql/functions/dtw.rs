//! How similar are two series if one series may temporarily run faster or slower than the other? Dynamic time warping
//! with a fast approximation: S. Salvador, P. Chan, "Toward Accurate Dynamic Time Warping in Linear Time and Space"
//! (Intelligent Data Analysis 11, 2007). A warp path pairs the values of both series; each pair is a cell of a matrix. The path
//! is first found for both series at half the resolution. At full resolution, only cells within a radius of this path are
//! computed. The result is exact if the radius is at least as long as the series.

use std::ops::Range;

use crate::Error;
use crate::promql::functions::call::{Call, SAMPLES_MAX, whole};
use crate::promql::rows::{Row, Twins, Value, settle};
use crate::promql::window::{Visits, Walk};
use crate::promql::{STALE, labels};

/// A larger radius costs more time and usually gives a smaller error.
const RADIUS_DEFAULT: usize = 1;

/// Limit on the matrix cells computed for one pair of windows at one resolution, 8 bytes each.
const CELLS_MAX: usize = 50_000_000;

/// Mean distance along the warp path. At each step, compares each series of the first range vector with the only series of the
/// second range vector that has samples.
pub fn dtw_over_time<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    let (grid, canvas, mut visits) = (call.grid, call.canvas, call.visits());
    let mut arguments = call.arguments.into_iter();
    let mut next = || arguments.next().ok_or_else(|| Error::execution("internal: argument is missing"));
    let (ranges, reference) = (next()?.into_ranges()?, next()?.into_ranges()?);
    let radius = next().ok().map(Value::into_scalar).transpose()?;
    let mut others: Vec<Walk<'_>> = reference.series.iter().map(|s| Walk::new(s, &reference)).collect();
    let mut walks: Vec<Walk<'_>> = ranges.series.iter().map(|s| Walk::new(s, &ranges)).collect();
    canvas.check_rows(walks.len())?;
    let mut rows: Vec<Row> = Vec::with_capacity(walks.len());
    for series in &ranges.series {
        let labels = labels::without_name(&series.labels, canvas.labels)?;
        rows.push(Row { labels, points: vec![STALE; grid.count] });
    }
    for (step, now) in grid.times().enumerate() {
        let radius = match &radius {
            Some(radius) => whole(radius[step], "radius", &(0..=SAMPLES_MAX))?,
            None => RADIUS_DEFAULT,
        };
        let Some(other) = only(&mut others, now, step, &mut visits)? else { continue };
        for (walk, row) in walks.iter_mut().zip(&mut rows) {
            let samples = finite(&walk.window(now, step, &mut visits)?.values);
            if !samples.is_empty() {
                row.points[step] = distance(&samples, &other, radius, &mut visits)?;
            }
        }
    }
    settle(rows, Twins::Refuse).map(Value::Vector)
}

/// The finite samples of the only series that has any. Returns an error if several series have finite samples.
fn only(
    walks: &mut [Walk<'_>],
    now: i64,
    step: usize,
    visits: &mut Visits<'_>,
) -> Result<Option<Vec<f64>>, Error> {
    let mut found = None;
    for walk in walks {
        let samples = finite(&walk.window(now, step, visits)?.values);
        if samples.is_empty() {
            continue;
        }
        if found.replace(samples).is_some() {
            let message = "the second argument of dtw_over_time must be one series, got several";
            return Err(Error::execution(message));
        }
    }
    Ok(found)
}

fn finite(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|value| value.is_finite()).collect()
}

/// Cost of the warp path divided by its length. Both series have at least one value.
#[expect(clippy::cast_precision_loss, reason = "a path in memory has fewer than 2^53 pairs")]
fn distance(a: &[f64], b: &[f64], radius: usize, visits: &mut Visits<'_>) -> Result<f64, Error> {
    let mut halves = vec![(a.to_vec(), b.to_vec())];
    while let Some((a, b)) = halves.last()
        && a.len().min(b.len()) > radius.saturating_add(2)
    {
        halves.push((halved(a), halved(b)));
    }
    let mut path: Option<Vec<Range<usize>>> = None;
    let mut cost = f64::NAN;
    while let Some((a, b)) = halves.pop() {
        let band = match &path {
            None => vec![0..b.len(); a.len()],
            Some(path) => widened(path, a.len(), b.len(), radius),
        };
        let warped = warp(&a, &b, &band, visits)?;
        cost = warped.cost / warped.length as f64;
        path = Some(warped.path);
    }
    Ok(cost)
}

/// Means of pairs of neighbours. If the number of values is odd, the last value is kept.
fn halved(values: &[f64]) -> Vec<f64> {
    values.chunks(2).map(|pair| pair.iter().map(|value| value / pair.len() as f64).sum()).collect()
}

/// For each row of the matrix, the columns that are computed: those of the path found at half resolution, converted to full
/// resolution and widened by `radius`.
fn widened(path: &[Range<usize>], rows: usize, columns: usize, radius: usize) -> Vec<Range<usize>> {
    let fine = |row: usize| {
        let Range { start, end } = path[(row / 2).min(path.len() - 1)];
        2 * start..(2 * end).min(columns)
    };
    // A path never goes back, so the rows around `row` use only columns from the start of the first of these rows to the
    // end of the last.
    let around = |row: usize| {
        let (first, last) = (row.saturating_sub(radius), row.saturating_add(radius).min(rows - 1));
        fine(first).start.saturating_sub(radius)..fine(last).end.saturating_add(radius).min(columns)
    };
    (0..rows).map(around).collect()
}

struct Warped {
    cost: f64,
    /// Number of pairs on the path.
    length: usize,
    /// The columns on the path, by row.
    path: Vec<Range<usize>>,
}

/// The cheapest path within a band from the first pair to the last. Each step advances one series or both by one value.
fn warp(a: &[f64], b: &[f64], band: &[Range<usize>], visits: &mut Visits<'_>) -> Result<Warped, Error> {
    let cells = band.iter().map(ExactSizeIterator::len).sum::<usize>();
    let cells_max = CELLS_MAX.min(visits.points_max());
    if cells > cells_max {
        return Err(Error::limit("matrix cells of dynamic time warping", cells as u128, cells_max));
    }
    let mut costs: Vec<Vec<f64>> = Vec::with_capacity(a.len());
    for (row, columns) in band.iter().enumerate() {
        // Checks the limit and the cancellation for each row, because a whole matrix may take seconds.
        visits.count(columns.len())?;
        let mut of_row: Vec<f64> = Vec::with_capacity(columns.len());
        for column in columns.clone() {
            let before = [(1, 1), (1, 0), (0, 1)].map(|(up, left)| {
                let (Some(row_before), Some(column)) = (row.checked_sub(up), column.checked_sub(left)) else {
                    return f64::INFINITY;
                };
                let costs = if up == 0 { &of_row } else { &costs[row_before] };
                at(costs, &band[row_before], column)
            });
            let cheapest = before.into_iter().fold(f64::INFINITY, f64::min);
            let start = if row == 0 && column == 0 { 0.0 } else { cheapest };
            of_row.push(start + (a[row] - b[column]).abs());
        }
        costs.push(of_row);
    }
    Ok(walk_back(&costs, band))
}

/// The cost at a column of a row; infinite outside the band.
fn at(costs: &[f64], band: &Range<usize>, column: usize) -> f64 {
    let place = column.checked_sub(band.start);
    place.and_then(|place| costs.get(place)).copied().unwrap_or(f64::INFINITY)
}

/// Walks from the last pair to the first along the cheapest cells. If cells are equally cheap, chooses the step in both
/// series.
fn walk_back(costs: &[Vec<f64>], band: &[Range<usize>]) -> Warped {
    let cost = |row: usize, column: usize| at(&costs[row], &band[row], column);
    let (mut row, mut column) = (costs.len() - 1, band[costs.len() - 1].end - 1);
    let total = cost(row, column);
    let mut path = vec![0..0; costs.len()];
    path[row] = column..column + 1;
    let mut length = 1;
    while (row, column) != (0, 0) {
        let steps = [(1, 1), (1, 0), (0, 1)].map(|(up, left)| {
            match (row.checked_sub(up), column.checked_sub(left)) {
                (Some(row), Some(column)) => (cost(row, column), row, column),
                _ => (f64::INFINITY, row, column),
            }
        });
        let best = steps.into_iter().reduce(|best, step| if step.0 < best.0 { step } else { best });
        let Some((_, next_row, next_column)) = best.filter(|(cost, ..)| cost.is_finite()) else { break };
        (row, column) = (next_row, next_column);
        length += 1;
        path[row] = if path[row].is_empty() { column..column + 1 } else { column..path[row].end };
    }
    Warped { cost: total, length, path }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::promql::Params;

    fn ask(a: &[f64], b: &[f64], radius: usize) -> f64 {
        let (params, all) = (Params::instant(0), AtomicUsize::new(0));
        distance(a, b, radius, &mut Visits::new(&params, &all)).unwrap()
    }

    #[test]
    fn series_that_differ_only_in_speed_have_distance_0() {
        assert_eq!(ask(&[1.0, 2.0, 3.0], &[1.0, 1.0, 2.0, 2.0, 2.0, 3.0], 10), 0.0);
        assert_eq!(ask(&[1.0], &[3.0, 3.0], 1), 2.0);
        // The path by hand: (0,0), (1,1), (1,2), (2,3). Its cost is 0 + 0 + 1 + 0, over 4 pairs.
        assert_eq!(ask(&[0.0, 5.0, 0.0], &[0.0, 5.0, 4.0, 0.0], 10), 0.25);
    }

    /// Computes the whole matrix, according to the definition.
    fn slow(a: &[f64], b: &[f64]) -> f64 {
        let mut costs = vec![vec![f64::INFINITY; b.len() + 1]; a.len() + 1];
        costs[0][0] = 0.0;
        for i in 1..=a.len() {
            for j in 1..=b.len() {
                let before = costs[i - 1][j].min(costs[i][j - 1]).min(costs[i - 1][j - 1]);
                costs[i][j] = before + (a[i - 1] - b[j - 1]).abs();
            }
        }
        costs[a.len()][b.len()]
    }

    #[test]
    fn a_wide_radius_is_exact_and_a_narrow_radius_is_close() {
        let wave = |n: usize, speed: f64| (0..n).map(|i| (i as f64 * speed).sin()).collect::<Vec<f64>>();
        let (a, b) = (wave(101, 0.1), wave(87, 0.117));
        let (params, all) = (Params::instant(0), AtomicUsize::new(0));
        let whole = vec![0..b.len(); a.len()];
        let warped = warp(&a, &b, &whole, &mut Visits::new(&params, &all)).unwrap();
        assert_eq!(warped.cost, slow(&a, &b));
        assert_eq!(ask(&a, &b, 200), warped.cost / warped.length as f64);
        for radius in [1, 5, 20] {
            let near = ask(&a, &b, radius);
            assert!(near.is_finite() && near < 0.1, "{radius}: {near}");
        }
    }
}
