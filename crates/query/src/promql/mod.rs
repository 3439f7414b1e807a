//! What is the answer of a PromQL query over the selected series?
//!
//! ```text
//! text --parse--> Query --plan(times)--> Plan --evaluate(data)--> Output
//!      parse/     lower.rs      plan.rs       evaluate.rs         output.rs
//!                 node.rs       series.rs     select.rs, window.rs, functions.rs, aggregate.rs, binary.rs
//! ```
//!
//! A query is a list of nodes, operands before operators. The plan gives each node its own grid of times and collects
//! the series and times to read. Evaluation iterates over the list once and computes each node for *all* its times: a
//! matrix of rows (series) by steps.
//!
//! The semantics are the same as in Prometheus 3: windows are open at the left, staleness markers end a series, metric
//! names are dropped immediately. `tests/cases/answers_of_prometheus.qtest` tests this. Intentional differences:
//! - times are nanoseconds;
//! - dates of NaN and infinities are NaN (Prometheus: depends on the conversion of the processor);
//! - parameters of aggregations are evaluated at each step, even if the vector has `@` (Prometheus: once);
//! - ties in `topk` and `bottomk` keep the order of the series (Prometheus: unspecified);
//! - `absent((x))` ignores the parentheses;
//! - if the selector has no `__name__="..."`, `max by (__name__) (rate({__name__=~".."}[5m]))` groups by the names that
//!   `rate` otherwise drops (Prometheus: only with the feature `promql-delayed-name-removal`). So one selector can cover
//!   many metrics.
//!
//! Native histograms, `fill`, `or` between label matchers, `info`, `histogram_quantiles`, `limit_ratio` and
//! `double_exponential_smoothing` are unsupported; the error names the unsupported part. `anchored`, `smoothed` and arithmetic
//! with durations (`[5m + 1m]`) are unsupported, too. Prometheus' annotations (warnings and infos about the query) are not given.
//!
//! # Functions of windows
//! Most functions of ranges read a *digest* of a window (`digest.rs`). Digests of adjacent parts can be joined, so overlapping
//! windows share work (`slide.rs`). Some digests, such as that of `sum_over_time`, can be computed from the summary in the header
//! of a chunk, if no window contains only a part of the chunk. The `windows` of a [`Selection`] show the reader where a
//! [`Piece::Summary`] is sufficient. Some functions need all samples of a window (`quantile_over_time`).
//!
//! Functions such as `derivative`, `moving_avg` and `keep_outliers_iqr` return a *range vector*. They replace the samples in
//! each window when the window is read; the bounds of the window do not change. Such a range vector can be the argument of
//! another function of ranges, as in `max_over_time(derivative(x[1h]))`. It can also be the answer of an instant query (a
//! matrix). A range query refuses such an answer, as it refuses `x[1h]`.
//!
//! To add a function: one line in `functions.rs` and one small `fn` in the file of its family. `docs/guide/functions.md`
//! describes the functions that Prometheus does not have.

mod aggregate;
mod aggregations;
mod binary;
mod digest;
mod double_double;
mod evaluate;
mod even_sums;
mod fold;
mod format;
mod functions;
mod grid;
mod joined;
mod label_memory;
mod labels;
mod limits;
mod line;
mod lower;
mod matching;
mod node;
mod output;
mod parallel;
mod params;
mod parse;
mod plan;
mod quantile;
mod repeat;
mod rows;
mod select;
mod series;
mod similar;
mod slide;
mod student;
mod variance;
mod window;

pub use aggregations::aggregations;
pub use format::{ValueWriter, format_value, write_milliseconds};
pub use functions::{Function, Parameter, functions};
pub use grid::Grid;
pub use limits::Limits;
pub use lower::{Query, parse, parse_selector, parse_selector_within, parse_with};
pub use node::Type;
pub use output::{Output, Point, Series};
pub use parallel::each_of;
pub use params::Params;
pub use parse::is_blank;
pub use plan::{Plan, Selection};
pub use repeat::Reach;
pub use series::{Piece, SeriesData};
pub use similar::{one_of, similar, similar_among};

/// The staleness marker: the series has no value until its next sample. Prometheus writes it when a target vanishes. It is
/// a NaN that no arithmetic operation returns, so rows also use it for "no value at this step".
pub const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// Whether `value` is the staleness marker, bit for bit.
pub const fn is_stale(value: f64) -> bool {
    value.to_bits() == 0x7ff0_0000_0000_0002
}
