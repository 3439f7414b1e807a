//! Which functions exist? The table has one line for each; the `fn` is in the file of its family.
//!
//! Step before: `evaluate.rs`, which computes the arguments. Step after: `rows.rs`, which merges or refuses rows with
//! equal labels in the result.

mod call;
mod change;
mod dtw;
mod histogram;
mod label;
mod math;
mod outliers;
mod over_time;
mod rate;
mod sax;
mod time;
mod trend;
mod vector;

use std::sync::LazyLock;

use crate::Error;

use super::node::Type;
use super::rows::{ChangeFn, Value};
use super::similar::similar;
use super::window::Sliding;
pub use call::Call;

/// A function of PromQL, for the evaluator and for the completion on the page.
#[derive(Debug)]
pub struct Function {
    pub name: &'static str,
    pub parameters: &'static [Parameter],
    pub returns: Type,
    /// One sentence.
    pub doc: &'static str,
    apply: Apply,
}

#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub wants: Type,
    pub needed: Needed,
}

/// How many arguments a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    Once,
    /// Allowed only for the last parameter.
    AtMostOnce,
    /// Allowed only for the last parameter.
    AnyNumber,
}

pub enum Apply {
    /// Computed for each element. A call without an argument is computed for the evaluation time.
    Each(fn(f64) -> f64),
    /// Computed for each element, with the scalar arguments at that step. `None` removes the element.
    EachWith(fn(f64, &[f64]) -> Option<f64>),
    /// Computed for the window of each series and step, with the scalar arguments at that step. Drops the metric name, unless
    /// `keeps_name` of the call is true.
    Window(Sliding),
    /// As `Window`, for functions that return a value of the metric. Keeps the metric name.
    WindowNamed(Sliding),
    /// Computes new samples from the samples in each window and the scalar arguments at that step. Drops the metric name.
    Change(ChangeFn),
    /// As `Change`, for functions that select some of the samples. Keeps the metric name.
    ChangeNamed(ChangeFn),
    /// Computed from all arguments together.
    Whole(for<'d> fn(Call<'_, 'd>) -> Result<Value<'d>, Error>),
}

impl std::fmt::Debug for Apply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Apply")
    }
}

impl Function {
    pub(super) fn apply(&self) -> &Apply {
        &self.apply
    }

    /// Whether the summaries of chunks are sufficient.
    pub(super) fn does_with_summaries(&self) -> bool {
        matches!(&self.apply, Apply::Window(sliding) | Apply::WindowNamed(sliding) if sliding.from_summaries)
    }

    /// The name, and the names and types of the parameters: `rate(v range-vector)`.
    pub fn signature(&self) -> String {
        let parameter = |p: &Parameter| {
            let wants = p.wants.to_string().replace(' ', "-");
            match p.needed {
                Needed::Once => format!("{} {wants}", p.name),
                Needed::AtMostOnce => format!("[{} {wants}]", p.name),
                Needed::AnyNumber => format!("{} {wants}, ...", p.name),
            }
        };
        format!("{}({})", self.name, self.parameters.iter().map(parameter).collect::<Vec<_>>().join(", "))
    }

    /// Type of the `index`-th argument.
    pub(super) fn parameter_type(&self, index: usize) -> Type {
        self.parameters
            .get(index)
            .or(self.parameters.last())
            .map_or(Type::Vector, |parameter| parameter.wants)
    }

    pub(super) fn check_count(&self, count: usize) -> Result<(), Error> {
        let least = self.parameters.iter().filter(|p| p.needed == Needed::Once).count();
        let any = self.parameters.last().is_some_and(|p| p.needed == Needed::AnyNumber);
        if count >= least && (any || count <= self.parameters.len()) {
            return Ok(());
        }
        Err(Error::bad_data(format!("wrong number of arguments: got {count} for {}", self.signature())))
    }
}

/// All functions, sorted by name: completion data for the page.
pub fn functions() -> &'static [Function] {
    &TABLE
}

pub(super) fn find(name: &str) -> Option<&'static Function> {
    let at = TABLE.binary_search_by(|function| function.name.cmp(name)).ok()?;
    TABLE.get(at)
}

/// Functions of Prometheus that are not in the table.
const NOT_AVAILABLE: [&str; 9] = [
    "double_exponential_smoothing",
    "histogram_avg",
    "histogram_count",
    "histogram_quantiles",
    "histogram_stddev",
    "histogram_stdvar",
    "histogram_sum",
    "holt_winters",
    "info",
];

/// As [`find`], but an unknown name is an error with a message for the user.
pub(super) fn lookup(name: &str) -> Result<&'static Function, String> {
    find(name).ok_or_else(|| {
        if NOT_AVAILABLE.contains(&name) {
            return format!("function {name} is not available yet");
        }
        let meant = similar(name).map_or_else(String::new, |names| format!("; did you mean {names}?"));
        format!("unknown function with name {name:?}{meant}")
    })
}

/// Syntax of a line: `name(parameter: Type, ...) -> Type: How(function), "doc";`. A parameter takes one argument,
/// unless `= AtMostOnce` or `= AnyNumber` follows.
macro_rules! table {
    ($($name:ident($($parameter:ident: $wants:ident $(= $needed:ident)?),*)
        -> $returns:ident: $how:ident($function:expr), $doc:literal;)*) => {
        vec![$(Function {
            name: stringify!($name),
            parameters: const {
                &[$(Parameter { name: stringify!($parameter), wants: Type::$wants, needed: needed!($($needed)?) }),*]
            },
            returns: Type::$returns,
            doc: $doc,
            apply: Apply::$how($function),
        }),*]
    };
}

macro_rules! needed {
    () => {
        Needed::Once
    };
    ($needed:ident) => {
        Needed::$needed
    };
}

/// Sorted by name.
static TABLE: LazyLock<Vec<Function>> = LazyLock::new(|| {
    use Sliding as S;
    let mut table = table! {
        // Rates: windows of a counter or gauge.
        rate(v: Range) -> Vector: Window(S::digest(rate::rate)),
            "Increase of a counter per second, corrected for resets and extrapolated to the whole range.";
        increase(v: Range) -> Vector: Window(S::digest(rate::increase)),
            "Increase of a counter over the range, corrected for resets and extrapolated.";
        delta(v: Range) -> Vector: Window(S::digest(rate::delta)),
            "Difference of a gauge between the ends of the range, extrapolated.";
        irate(v: Range) -> Vector: Window(S::window(rate::irate)),
            "Increase of a counter per second between the last two samples.";
        idelta(v: Range) -> Vector: Window(S::window(rate::idelta)), "Difference between the last two samples.";
        deriv(v: Range) -> Vector: Window(S::digest(trend::slope)), "Slope per second of a gauge by linear regression.";
        predict_linear(v: Range, t: Scalar) -> Vector: Window(S::digest(trend::predict_linear).using_now()),
            "Value of a gauge t seconds from now by linear regression.";
        resets(v: Range) -> Vector: Window(S::digest(rate::resets)), "Number of resets of a counter.";
        changes(v: Range) -> Vector: Window(S::digest(rate::changes)), "Number of changes of the value.";

        // Statistics over time.
        avg_over_time(v: Range) -> Vector: Window(S::digest(over_time::avg)), "Mean of the samples in the range.";
        min_over_time(v: Range) -> Vector: Window(S::digest(over_time::min)), "Smallest sample in the range.";
        max_over_time(v: Range) -> Vector: Window(S::digest(over_time::max)), "Largest sample in the range.";
        sum_over_time(v: Range) -> Vector: Window(S::digest(over_time::sum)), "Sum of the samples in the range.";
        count_over_time(v: Range) -> Vector: Window(S::digest(over_time::count)), "Number of samples in the range.";
        stddev_over_time(v: Range) -> Vector: Window(S::digest(over_time::stddev)),
            "Population standard deviation of the samples in the range.";
        stdvar_over_time(v: Range) -> Vector: Window(S::digest(over_time::stdvar)),
            "Population variance of the samples in the range.";
        mad_over_time(v: Range) -> Vector: Window(S::values(over_time::mad)),
            "Median absolute deviation of the samples in the range.";
        first_over_time(v: Range) -> Vector: WindowNamed(S::digest(over_time::first)), "Oldest sample in the range.";
        last_over_time(v: Range) -> Vector: WindowNamed(S::digest(over_time::last)), "Newest sample in the range.";
        present_over_time(v: Range) -> Vector: Window(S::digest(over_time::present)), "1 if the range has a sample.";
        absent_over_time(v: Range) -> Vector: Whole(vector::absent_over_time),
            "1 if no series has a sample in the range.";
        quantile_over_time(q: Scalar, v: Range) -> Vector: Window(S::values(over_time::quantile)),
            "Quantile q, 0 to 1, of the samples in the range.";
        ts_of_first_over_time(v: Range) -> Vector: Window(S::digest(over_time::time_of_first)),
            "Time of the oldest sample in the range.";
        ts_of_last_over_time(v: Range) -> Vector: Window(S::digest(over_time::time_of_last)),
            "Time of the newest sample in the range.";
        ts_of_min_over_time(v: Range) -> Vector: Window(S::window(over_time::time_of_min)),
            "Time of the smallest sample in the range; if several are equal, of the last one.";
        ts_of_max_over_time(v: Range) -> Vector: Window(S::window(over_time::time_of_max)),
            "Time of the largest sample in the range; if several are equal, of the last one.";

        // Analyses over time that Prometheus does not have: docs/guide/functions.md.
        range_over_time(v: Range) -> Vector: Window(S::digest(over_time::range)),
            "Largest minus smallest sample in the range.";
        diff_over_time(v: Range) -> Vector: Window(S::digest(over_time::diff)),
            "Absolute difference between the oldest and the newest sample in the range.";
        sdiff_over_time(v: Range) -> Vector: Window(S::digest(over_time::sdiff)),
            "Newest minus oldest sample in the range, not extrapolated.";
        stddev_sample_over_time(v: Range) -> Vector: Window(S::digest(over_time::stddev_sample)),
            "Sample standard deviation of the samples in the range (divisor n - 1).";
        integral_over_time(v: Range) -> Vector: Window(S::digest(over_time::integral)),
            "Area under the line segments between the samples in the range, in value * seconds.";
        trend_over_time(v: Range) -> Vector: Window(S::digest(trend::slope)),
            "Slope per second of a least squares line through the samples, like deriv.";
        trend_intercept_over_time(v: Range) -> Vector: Window(S::digest(trend::intercept)),
            "Value of the trend line at the start of the range.";
        trend_margin_over_time(v: Range, confidence: Scalar) -> Vector: Window(S::digest(trend::margin)),
            "Half the width of the confidence interval of the trend, for a confidence such as 0.95.";
        trend_p_over_time(v: Range) -> Vector: Window(S::digest(trend::p_value)),
            "P-value of the trend: the probability of a slope at least as steep if there is no trend (two-sided t-test).";
        dtw_over_time(v: Range, reference: Range, radius: Scalar = AtMostOnce) -> Vector: Whole(dtw::dtw_over_time),
            "Mean distance to the only reference series under dynamic time warping; radius (default 1) limits the search.";
        sax_over_time(v: Range, pattern: String, segments: Scalar, letters: Scalar, flat: Scalar = AtMostOnce)
            -> Vector: Whole(sax::sax_over_time),
            "Number of occurrences of a letter pattern in a word; the word describes the shape of the samples (SAX).";

        // Functions that replace the samples in the range.
        derivative(v: Range) -> Range: Change(change::derivative),
            "Slope per second between neighbouring samples, at the time of the later one.";
        derivative_nonnegative(v: Range) -> Range: Change(change::derivative_nonnegative),
            "Like derivative, but without negative values.";
        moving_avg(v: Range, seconds: Scalar) -> Range: Change(change::moving_avg),
            "At each sample, the mean over the given number of seconds up to this sample.";
        moving_avg_samples(v: Range, n: Scalar) -> Range: Change(change::moving_avg_samples),
            "At each sample from the n-th on, the mean of the last n samples.";
        bursts(v: Range, seconds: Scalar, n: Scalar) -> Range: Change(change::bursts),
            "Increase of the number of samples from one window of the given seconds to the next, if it is at least n.";
        keep_distinct(v: Range) -> Range: ChangeNamed(change::keep_distinct), "The first sample of each distinct value.";
        keep_top(v: Range, n: Scalar) -> Range: ChangeNamed(change::keep_top), "The n largest samples.";
        keep_bottom(v: Range, n: Scalar) -> Range: ChangeNamed(change::keep_bottom), "The n smallest samples.";
        keep_outliers_iqr(v: Range, k: Scalar = AtMostOnce) -> Range: ChangeNamed(outliers::iqr),
            "Samples that are more than k (default 1.5) interquartile ranges outside the quartiles.";
        keep_outliers_mad(v: Range, score: Scalar = AtMostOnce) -> Range: ChangeNamed(outliers::mad),
            "Samples whose modified z-score, based on the median absolute deviation, is above score (default 3.5).";
        simplify(v: Range, tolerance: Scalar) -> Range: ChangeNamed(change::simplify),
            "Few of the samples, so that the lines between them are within the tolerance of all other samples.";

        // Functions of single elements.
        abs(v: Vector) -> Vector: Each(f64::abs), "Absolute value.";
        ceil(v: Vector) -> Vector: Each(f64::ceil), "Value rounded up to an integer.";
        floor(v: Vector) -> Vector: Each(f64::floor), "Value rounded down to an integer.";
        exp(v: Vector) -> Vector: Each(f64::exp), "e to the power of the value.";
        ln(v: Vector) -> Vector: Each(f64::ln), "Natural logarithm.";
        log2(v: Vector) -> Vector: Each(f64::log2), "Logarithm to base 2.";
        log10(v: Vector) -> Vector: Each(f64::log10), "Logarithm to base 10.";
        sqrt(v: Vector) -> Vector: Each(f64::sqrt), "Square root.";
        sgn(v: Vector) -> Vector: Each(math::sgn), "Sign: -1, 0 or 1.";
        sin(v: Vector) -> Vector: Each(f64::sin), "Sine of radians.";
        cos(v: Vector) -> Vector: Each(f64::cos), "Cosine of radians.";
        tan(v: Vector) -> Vector: Each(f64::tan), "Tangent of radians.";
        asin(v: Vector) -> Vector: Each(f64::asin), "Arc sine in radians.";
        acos(v: Vector) -> Vector: Each(f64::acos), "Arc cosine in radians.";
        atan(v: Vector) -> Vector: Each(f64::atan), "Arc tangent in radians.";
        sinh(v: Vector) -> Vector: Each(f64::sinh), "Hyperbolic sine.";
        cosh(v: Vector) -> Vector: Each(f64::cosh), "Hyperbolic cosine.";
        tanh(v: Vector) -> Vector: Each(f64::tanh), "Hyperbolic tangent.";
        asinh(v: Vector) -> Vector: Each(f64::asinh), "Inverse hyperbolic sine.";
        acosh(v: Vector) -> Vector: Each(f64::acosh), "Inverse hyperbolic cosine.";
        atanh(v: Vector) -> Vector: Each(f64::atanh), "Inverse hyperbolic tangent.";
        rad(v: Vector) -> Vector: Each(math::rad), "Converts degrees to radians.";
        deg(v: Vector) -> Vector: Each(math::deg), "Converts radians to degrees.";
        clamp(v: Vector, min: Scalar, max: Scalar) -> Vector: EachWith(math::clamp),
            "Value limited to the range from min to max; no result if min is above max.";
        clamp_min(v: Vector, min: Scalar) -> Vector: EachWith(math::clamp_min),
            "The value, or min if the value is smaller.";
        clamp_max(v: Vector, max: Scalar) -> Vector: EachWith(math::clamp_max),
            "The value, or max if the value is larger.";
        round(v: Vector, to_nearest: Scalar = AtMostOnce) -> Vector: EachWith(math::round),
            "Value rounded to the nearest multiple of to_nearest (default 1); a half is rounded up.";

        // Dates, UTC.
        year(v: Vector = AtMostOnce) -> Vector: Each(time::year),
            "Year of a time in Unix seconds, UTC; without an argument, of the evaluation time.";
        month(v: Vector = AtMostOnce) -> Vector: Each(time::month), "Month, 1 to 12.";
        day_of_month(v: Vector = AtMostOnce) -> Vector: Each(time::day_of_month),
            "Day of the month, 1 to 31.";
        day_of_week(v: Vector = AtMostOnce) -> Vector: Each(time::day_of_week),
            "Day of the week, from 0 (Sunday) to 6.";
        day_of_year(v: Vector = AtMostOnce) -> Vector: Each(time::day_of_year), "Day of the year, 1 to 366.";
        days_in_month(v: Vector = AtMostOnce) -> Vector: Each(time::days_in_month),
            "Number of days in the month, 28 to 31.";
        hour(v: Vector = AtMostOnce) -> Vector: Each(time::hour), "Hour, 0 to 23.";
        minute(v: Vector = AtMostOnce) -> Vector: Each(time::minute), "Minute, 0 to 59.";
        time() -> Scalar: Whole(time::time), "Evaluation time in Unix seconds.";
        timestamp(v: Vector) -> Vector: Whole(time::timestamp), "Time of each sample in Unix seconds.";

        // Histograms with buckets by the label le.
        histogram_quantile(q: Scalar, buckets: Vector) -> Vector: Whole(histogram::quantile),
            "Quantile q, 0 to 1, from a histogram with buckets by le.";
        histogram_fraction(lower: Scalar, upper: Scalar, buckets: Vector) -> Vector: Whole(histogram::fraction),
            "Fraction of observations between lower and upper, from a histogram with buckets by le.";

        // Labels.
        label_replace(v: Vector, destination: String, replacement: String, source: String, pattern: String)
            -> Vector: Whole(label::replace),
            "Sets the label destination to replacement if the label source matches pattern; $1, $2, ... are its groups.";
        label_join(v: Vector, destination: String, separator: String, source: String = AnyNumber)
            -> Vector: Whole(label::join),
            "Sets the label destination to the values of the source labels, joined with separator.";

        // Vectors as a whole.
        absent(v: Vector) -> Vector: Whole(vector::absent), "1 if the vector is empty, otherwise no result.";
        pi() -> Scalar: Whole(vector::pi), "3.141592653589793.";
        scalar(v: Vector) -> Scalar: Whole(vector::scalar),
            "The value of the only element; NaN if there is no element or more than one.";
        sort(v: Vector) -> Vector: Whole(vector::sort), "Sorted by value in ascending order (instant queries).";
        sort_desc(v: Vector) -> Vector: Whole(vector::sort_desc), "Sorted by value in descending order (instant queries).";
        sort_by_label(v: Vector, label: String = AnyNumber) -> Vector: Whole(vector::sort_by_label),
            "Sorted by labels in ascending order; digits in a label are compared as a number (instant queries).";
        sort_by_label_desc(v: Vector, label: String = AnyNumber) -> Vector: Whole(vector::sort_by_label_desc),
            "Sorted by labels in descending order (instant queries).";
        vector(s: Scalar) -> Vector: Whole(vector::vector),
            "The scalar as a vector of one element without labels.";
    };
    table.sort_by_key(|function| function.name);
    table
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        assert!(TABLE.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert_eq!(find("rate").map(Function::signature).as_deref(), Some("rate(v range-vector)"));
        assert_eq!(
            find("round").map(Function::signature).as_deref(),
            Some("round(v instant-vector, [to_nearest scalar])")
        );
        assert!(find("double_exponential_smoothing").is_none());
    }
}
