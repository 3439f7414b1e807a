//! What is the maximum cost of one query? A query above a limit fails with an error that names the value and the limit.

/// Limits of a query as plain data, so that the server can lower them, for example for a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the query text. Queries of dashboards stay below 4 KiB.
    pub query_bytes_max: usize,
    /// Depth of nested brackets. Together with `operators_max` it bounds the stack of the parser.
    pub nesting_max: usize,
    /// Operators, signs and subqueries in one query. They also make the tree deeper: `a+a+a` is a tree of depth 2.
    pub operators_max: usize,
    /// Regular expressions in one query. Compiling a regular expression may take milliseconds.
    pub patterns_max: usize,
    /// Steps of a range query; the same limit as in Prometheus. It allows a week at one-minute steps.
    pub steps_max: usize,
    /// Steps of one subquery over its whole range.
    pub subquery_steps_max: usize,
    /// Series found by all selectors of a query in total.
    pub series_max: usize,
    /// Samples read for one query, 16 bytes each; the default of Prometheus' `--query.max-samples`.
    pub samples_max: usize,
    /// Values of all intermediate results that exist at the same time, 8 bytes each.
    pub points_max: usize,
    /// Bytes of the labels that a query creates and that exist at the same time. The limit is enough for half a million
    /// series that lose their name, at 300 bytes each.
    pub label_bytes_max: usize,
    /// Samples read by sliding windows; a sample counts each time it is read. The limit allows some seconds of one core.
    pub visits_max: usize,
    /// Threads of one query. The result does not depend on them. Only tests set this limit, to compare results.
    pub threads_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            query_bytes_max: 32 * 1024,
            nesting_max: 64,
            operators_max: 256,
            patterns_max: 64,
            steps_max: 11_000,
            subquery_steps_max: 1_000_000,
            series_max: 500_000,
            samples_max: 50_000_000,
            points_max: 50_000_000,
            label_bytes_max: 256 << 20,
            visits_max: 10_000_000_000,
            threads_max: usize::MAX,
        }
    }
}
