//! How often does a shape occur in a window? Symbolic Aggregate approXimation: J. Lin, E. Keogh, S. Lonardi, B. Chiu, "A
//! Symbolic Representation of Time Series, with Implications for Streaming Algorithms" (DMKD 2003).
//!
//! The values are normalised to mean 0 and deviation 1 and averaged over segments of equal length. Each mean becomes a
//! letter: the index of the interval that contains the mean. The intervals have equal probability under the normal
//! distribution; `a` is the lowest interval.

use crate::Error;
use crate::promql::fold::{Fold, Mean};
use crate::promql::functions::call::{Call, whole};
use crate::promql::rows::{Row, Twins, Value, settle};
use crate::promql::variance::Deviation;
use crate::promql::window::Walk;
use crate::promql::{STALE, labels};

/// Permitted sizes of the alphabet. With a single letter, all words would be equal.
const LETTERS: std::ops::RangeInclusive<usize> = 2..=26;

/// Limit on the segments of a window; the paper uses dozens.
const SEGMENTS_MAX: usize = 65_536;

/// Default of `flat`, in the unit of the value. A window with a smaller deviation counts as flat, so that noise does not become a
/// shape.
const FLAT_DEFAULT: f64 = 0.01;

/// Number of occurrences of the pattern in the word of each window; occurrences may overlap.
pub fn sax_over_time<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    let (grid, canvas, mut visits) = (call.grid, call.canvas, call.visits());
    let mut arguments = call.arguments.into_iter();
    let mut next = || arguments.next().ok_or_else(|| Error::execution("internal: argument is missing"));
    let (ranges, pattern) = (next()?.into_ranges()?, next()?.into_text()?);
    let (segments, letters) = (next()?.into_scalar()?, next()?.into_scalar()?);
    let flat = next().ok().map(Value::into_scalar).transpose()?;
    canvas.check_rows(ranges.series.len())?;
    let mut rows = Vec::with_capacity(ranges.series.len());
    for series in &ranges.series {
        let mut walk = Walk::new(series, &ranges);
        let mut points = Vec::with_capacity(grid.count);
        for (step, now) in grid.times().enumerate() {
            let samples = walk.window(now, step, &mut visits)?;
            let word = Word {
                segments: whole(segments[step], "number of segments", &(1..=SEGMENTS_MAX))?,
                letters: whole(letters[step], "number of letters", &LETTERS)?,
                flat: flat.as_ref().map_or(FLAT_DEFAULT, |flat| flat[step]),
            };
            let pattern = word.check(&pattern)?;
            points.push(word.of(&samples.values).map_or(STALE, |word| occurrences(&word, pattern)));
        }
        rows.push(Row { labels: labels::without_name(&series.labels, canvas.labels)?, points });
    }
    settle(rows, Twins::Refuse).map(Value::Vector)
}

/// Parameters for the conversion of a window into a word.
struct Word {
    segments: usize,
    letters: usize,
    flat: f64,
}

impl Word {
    /// A pattern consists of letters of the alphabet, and `.` for any letter.
    fn check<'p>(&self, pattern: &'p str) -> Result<&'p [u8], Error> {
        let last = b'a' + u8::try_from(self.letters - 1).unwrap_or(25);
        match pattern.chars().find(|letter| *letter != '.' && !('a'..=char::from(last)).contains(letter)) {
            _ if pattern.is_empty() => Err(Error::bad_data("pattern is empty")),
            Some(letter) => Err(Error::bad_data(format!(
                "pattern {pattern:?} contains {letter:?}; letters are a to {}, and . matches any letter",
                char::from(last)
            ))),
            None => Ok(pattern.as_bytes()),
        }
    }

    /// The word of a window: one letter per segment. Values that are not finite are ignored. `None` if there are fewer finite
    /// values than segments.
    fn of(&self, values: &[f64]) -> Option<Vec<u8>> {
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        if values.len() < self.segments {
            return None;
        }
        let (mean, deviation) = (Mean::of(&values).end(), Deviation::of(&values).end());
        let normal = |value: f64| if deviation < self.flat { 0.0 } else { (value - mean) / deviation };
        let breakpoints = breakpoints(self.letters);
        let letter = |mean: f64| {
            // A mean that equals a breakpoint becomes the letter above the breakpoint.
            let above = breakpoints.partition_point(|breakpoint| *breakpoint <= mean);
            b'a' + u8::try_from(above).unwrap_or(25)
        };
        Some(segment_means(&values, self.segments).map(|mean| letter(normal(mean))).collect())
    }
}

/// Means over `segments` parts of equal length. If the border of two parts is within a sample, each part gets its share of the
/// sample.
#[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 samples")]
fn segment_means(values: &[f64], segments: usize) -> impl Iterator<Item = f64> {
    // The unit is 1 / `segments` of a sample: each sample has `segments` units, each segment has `values.len()` units.
    (0..segments).map(move |segment| {
        let (from, to) = (segment * values.len(), (segment + 1) * values.len());
        let parts = (from / segments..to.div_ceil(segments)).map(|place| {
            let (start, end) = ((place * segments).max(from), ((place + 1) * segments).min(to));
            values[place] * ((end - start) as f64 / values.len() as f64)
        });
        parts.sum()
    })
}

/// Breakpoints that divide the standard normal distribution into `letters` parts of equal probability.
#[expect(clippy::cast_precision_loss, reason = "there are at most 26 letters")]
fn breakpoints(letters: usize) -> Vec<f64> {
    let breakpoint = |below: usize| {
        let wanted = below as f64 / letters as f64;
        // All breakpoints are between these bounds: the lowest one for 26 letters is -1.77.
        let (mut low, mut high) = (-3.0, 3.0);
        if 2 * below == letters {
            return 0.0;
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if normal_below(middle) < wanted { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    };
    (1..letters).map(breakpoint).collect()
}

/// Probability of a standard normal value below `z`, for |z| up to 3, by a series of the error function
/// (<https://dlmf.nist.gov/7.6.E2>). All terms have the sign of `z`.
fn normal_below(z: f64) -> f64 {
    let mut term = z;
    let mut sum = z;
    let mut odd = 1.0;
    while term.abs() > 1e-17 * sum.abs() {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    0.5 + sum * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

#[expect(clippy::cast_precision_loss, reason = "a word has at most 65,536 letters")]
fn occurrences(word: &[u8], pattern: &[u8]) -> f64 {
    let fits =
        |part: &&[u8]| part.iter().zip(pattern).all(|(letter, wanted)| *wanted == b'.' || letter == wanted);
    word.windows(pattern.len()).filter(fits).count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper lists the breakpoints to two decimals.
    #[test]
    fn breakpoints_are_those_of_the_paper() {
        for (letters, expect) in [
            (3, &[-0.43, 0.43][..]),
            (4, &[-0.67, 0.0, 0.67]),
            (5, &[-0.84, -0.25, 0.25, 0.84]),
            (10, &[-1.28, -0.84, -0.52, -0.25, 0.0, 0.25, 0.52, 0.84, 1.28]),
        ] {
            let got = breakpoints(letters);
            assert_eq!(got.len(), expect.len());
            assert!(got.iter().zip(expect).all(|(got, expect)| (got - expect).abs() < 0.006), "{got:?}");
        }
        assert!((normal_below(1.0) - 0.841_344_746_068_542_9).abs() < 1e-15);
    }

    #[test]
    fn segments_share_samples_at_their_borders() {
        let means = |values: &[f64], segments| segment_means(values, segments).collect::<Vec<f64>>();
        assert_eq!(means(&[1.0, 3.0, 5.0, 7.0], 2), [2.0, 6.0]);
        // Each segment has 1.5 samples. The means are (1 + 3/2) / 1.5 and (3/2 + 5) / 1.5.
        let got = means(&[1.0, 3.0, 5.0], 2);
        assert!((got[0] - 5.0 / 3.0).abs() < 1e-15 && (got[1] - 13.0 / 3.0).abs() < 1e-15, "{got:?}");
    }

    #[test]
    fn a_step_has_a_low_and_a_high_letter() {
        let word = Word { segments: 4, letters: 4, flat: 0.01 };
        assert_eq!(word.of(&[0.0, 0.0, 0.0, 0.0, 10.0, 10.0, 10.0, 10.0]), Some(b"aadd".to_vec()));
        assert_eq!(word.of(&[5.0; 8]), Some(b"cccc".to_vec()));
        assert_eq!(word.of(&[5.0, f64::NAN, 5.0, 5.0]), None);
        assert_eq!(occurrences(b"aadd", b"a."), 2.0);
        assert!(word.check("ae").is_err() && word.check("").is_err() && word.check("a.d").is_ok());
    }
}
