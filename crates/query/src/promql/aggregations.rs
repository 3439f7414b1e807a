//! Which aggregations exist? The table has one line for each; the parser, messages and completion use it.
//!
//! `aggregate.rs` computes them.

use super::node::AggregateOp;

/// `name: Operation, "doc";`
macro_rules! table {
    ($($name:ident: $op:ident, $doc:literal;)*) => {
        const OPERATIONS: &[(&str, AggregateOp)] = &[$((stringify!($name), AggregateOp::$op)),*];
        const DOCS: &[(&str, &str)] = &[$((stringify!($name), $doc)),*];
    };
}

// Sorted by name.
table! {
    avg: Avg, "Mean over series.";
    bottomk: Bottomk, "The k series with the smallest values: bottomk(k, v).";
    count: Count, "Number of series.";
    count_values: CountValues, "Number of series with each value; the value becomes a label: count_values(\"label\", v).";
    group: Group, "1 for each group.";
    limitk: Limitk, "Any k series: limitk(k, v).";
    max: Max, "Largest value over series.";
    min: Min, "Smallest value over series.";
    quantile: Quantile, "Quantile q, 0 to 1, over series: quantile(q, v).";
    stddev: Stddev, "Population standard deviation over series.";
    stdvar: Stdvar, "Population variance over series.";
    sum: Sum, "Sum over series.";
    topk: Topk, "The k series with the largest values: topk(k, v).";
}

/// All aggregations with their documentation, sorted by name: completion data for the page.
pub const fn aggregations() -> &'static [(&'static str, &'static str)] {
    DOCS
}

/// The first aggregation for whose name `accepts` returns true.
pub(super) fn find(accepts: impl Fn(&str) -> bool) -> Option<AggregateOp> {
    OPERATIONS.iter().find(|(name, _)| accepts(name)).map(|(_, op)| *op)
}

pub(super) fn name(op: AggregateOp) -> &'static str {
    OPERATIONS.iter().find(|(_, other)| *other == op).map_or("", |(name, _)| *name)
}
