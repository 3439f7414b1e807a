//! Here is a PromQL query and the series it selects: what is the answer?
//!
//! ```text
//! text --parse--> Query --plan(times)--> Plan --evaluate(data)--> Output
//!      guard.rs   lower.rs      plan.rs       evaluate.rs         output.rs
//!                 node.rs       series.rs     select.rs, window.rs, functions.rs, aggregate.rs, binary.rs
//! ```
//!
//! A query is a list of nodes, operands before operators. The plan gives each node its own grid of times and
//! collects what must be read. Evaluation walks the list once and computes each node for *all* its times, a
//! matrix of rows (series) by steps; nothing recurses, and windows slide over sorted samples.
//!
//! Semantics are those of Prometheus 3: windows are open at the left, staleness markers end a series, metric
//! names are dropped at once. `tests/cases/answers_of_prometheus.qtest` holds us to it. Different on purpose:
//! - times are nanoseconds;
//! - dates of NaN and infinities are NaN (there, what the processor makes of the conversion);
//! - parameters of aggregations are evaluated at each step, also when the vector has `@` (there, once);
//! - equals in `topk` and `bottomk` keep the order of the series (there, any);
//! - `absent((x))` looks through the parentheses;
//! - `max by (__name__) (rate({__name__=~".."}[5m]))` groups by the names that `rate` drops, where the selector gives
//!   none (there, with the feature `promql-delayed-name-removal`): one selector for many metrics.
//!
//! Not there yet, and refused by name: native histograms, `fill`, `info`, `limit_ratio`,
//! `double_exponential_smoothing`. Answers carry no warnings.
//!
//! # Functions of windows
//! Most functions of ranges read a *digest* of a window (`digest.rs`): what joins with its neighbours, so that windows
//! that overlap share work (`slide.rs`) and whole chunks are taken from their headers: a [`Selection`] says with its
//! `windows` where a [`Summary`] will do. Some want all samples of a window (`quantile_over_time`).
//!
//! A few return a *range vector*: `derivative`, `moving_avg`, `keep_outliers_iqr`. They change the samples in each
//! window, when it is looked at; the window itself stays. So they are arguments of other functions of ranges, as in
//! `max_over_time(derivative(x[1h]))`, and alone the answer of an instant query: a matrix. A range query refuses them,
//! as it does `x[1h]`.
//!
//! A new function is one line in `functions.rs` and one small `fn` in a file of its family; `docs/guide/functions.md`
//! describes those that Prometheus does not have.

mod aggregate;
mod binary;
mod diagnose;
mod digest;
mod double_double;
mod evaluate;
mod fold;
mod format;
mod functions;
mod grid;
mod guard;
mod label_room;
mod labels;
mod limits;
mod line;
mod lower;
mod matching;
mod node;
mod output;
mod parallel;
mod patterns;
mod plan;
mod quantile;
mod rows;
mod select;
mod series;
mod similar;
mod slide;
mod student;
mod variance;
mod window;

pub use format::{ValueWriter, format_value, write_milliseconds};
pub use functions::{Function, Parameter, aggregations, functions};
pub use limits::Limits;
pub use lower::{Query, parse, parse_selector, parse_selector_within, parse_with};
pub use node::Type;
pub use output::{Output, Point, Series};
pub use plan::{Params, Plan, Selection};
pub use series::{Piece, SeriesData};
pub use similar::similar;

/// The value that ends a series: "not there from here on". Prometheus writes it when a target vanishes.
/// It is a NaN that no arithmetic yields, so rows use it for "no value at this step" as well.
pub const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// Whether `value` is the staleness marker, bit for bit.
pub const fn is_stale(value: f64) -> bool {
    value.to_bits() == 0x7ff0_0000_0000_0002
}
