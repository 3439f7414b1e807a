//! How are values simplified with a Haar wavelet? Small differences between neighbouring halves of a signal are set to 0
//! (hard thresholding: Donoho and Johnstone, "Ideal Spatial Adaptation by Wavelet Shrinkage", Biometrika 1994). A
//! bisection finds the largest threshold with which every value stays within its tolerance. The result consists of steps.

use super::grid::{Grid, exponents};
use crate::loss::Tolerance;

/// Number of bisections of the threshold. The threshold is precise to a millionth of the signal's range.
const HALVINGS: usize = 20;
/// Number of finer grids that are tried, each with one decimal more.
const FINER: u8 = 1;

/// The column that results from the largest threshold with which every value stays within its tolerance, for each grid.
pub(super) fn candidates(values: &[f64], tolerance: Tolerance) -> Vec<Vec<f64>> {
    let best = |exponent: u8| {
        let grid = Grid::of(values, tolerance, exponent)?;
        let integers = largest_threshold(&grid, &differences(&filled(values)))?;
        Some(grid.floats(&integers, values))
    };
    exponents(values, tolerance, FINER).filter_map(best).collect()
}

/// The values, extended with the last value to a power of two. A value that is not finite is replaced by the previous finite
/// value, or by the first finite value if there is no previous one.
fn filled(values: &[f64]) -> Vec<f64> {
    let mut last = values.iter().copied().find(|value| value.is_finite()).unwrap_or_default();
    let carry = |value: &f64| {
        last = if value.is_finite() { *value } else { last };
        last
    };
    let mut filled: Vec<f64> = values.iter().map(carry).collect();
    filled.resize(values.len().next_power_of_two(), last);
    filled
}

/// First the overall mean. Then, for each part, half the difference between the means of its two halves. The parts are the whole,
/// its halves, its quarters, and so on to pairs of neighbours.
fn differences(values: &[f64]) -> Vec<Vec<f64>> {
    let mut levels = vec![];
    let mut means = values.to_vec();
    while means.len() > 1 {
        let pairs = means.as_chunks::<2>().0;
        levels.push(pairs.iter().map(|[a, b]| (a - b) / 2.0).collect());
        means = pairs.iter().map(|[a, b]| a.midpoint(*b)).collect();
    }
    levels.push(means);
    levels.reverse();
    levels
}

/// The inverse of [`differences`], with differences below the threshold set to 0.
fn rebuilt(levels: &[Vec<f64>], threshold: f64) -> Vec<f64> {
    let Some((means, levels)) = levels.split_first() else { return vec![] };
    levels.iter().fold(means.clone(), |means, halves| {
        let keep = |half: f64| if half.abs() < threshold { 0.0 } else { half };
        means.iter().zip(halves).flat_map(|(mean, half)| [mean + keep(*half), mean - keep(*half)]).collect()
    })
}

fn largest_threshold(grid: &Grid, levels: &[Vec<f64>]) -> Option<Vec<i64>> {
    let largest = levels.iter().skip(1).flatten().fold(0.0f64, |largest, half| largest.max(half.abs()));
    let (mut low, mut high) = (0.0, largest * 2.0);
    let mut best = None;
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        match within(grid, &rebuilt(levels, middle)) {
            Some(integers) => (low, best) = (middle, Some(integers)),
            None => high = middle,
        }
    }
    best
}

/// The nearest integers of the grid, if all of them are in their intervals.
#[expect(clippy::cast_possible_truncation, reason = "saturates, and is compared")]
fn within(grid: &Grid, values: &[f64]) -> Option<Vec<i64>> {
    let power = 10f64.powi(grid.exponent.into());
    let fits = |(interval, value): (&super::grid::Interval, &f64)| {
        let integer = (value * power).round() as i64;
        (interval.low <= integer && integer <= interval.high).then_some(integer)
    };
    grid.intervals.iter().zip(values).map(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_differences_restore_the_values() {
        let values = filled(&[3.0, 1.0, f64::NAN, -4.0, 8.0]);
        assert_eq!(values, [3.0, 1.0, 1.0, -4.0, 8.0, 8.0, 8.0, 8.0]);
        assert_eq!(rebuilt(&differences(&values), 0.0), values);
        assert_eq!(rebuilt(&differences(&values), f64::INFINITY), [4.125; 8]);
    }

    #[test]
    fn steps_with_noise_become_steps() {
        let values: Vec<f64> =
            (0..256).map(|n| if n < 128 { 1.0 } else { 5.0 } + f64::from(n % 3) / 100.0).collect();
        let columns = candidates(&values, Tolerance::Absolute(0.05));
        let steps = |column: &Vec<f64>| column.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(
            columns.iter().any(|column| steps(column) == 1),
            "{:?}",
            columns.iter().map(steps).collect::<Vec<_>>()
        );
    }
}
