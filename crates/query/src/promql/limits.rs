//! What one query may cost. Over a limit is an error that names value and limit; nothing is cut silently.

/// Limits as data, so that a server's configuration can set them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a query's text. Dashboards stay below 4 KiB.
    pub query_bytes_max: usize,
    /// Brackets open at once: bounds the stack that the parser needs.
    pub nesting_max: usize,
    /// Operators in one query, which nest too: `a+a+a` is a tree of depth 2.
    pub operators_max: usize,
    /// Regular expressions in one query: each may take milliseconds to compile.
    pub patterns_max: usize,
    /// Steps of a range query; as Prometheus, so that a week at minutes passes and a typing error does not.
    pub steps_max: usize,
    /// Steps of one subquery over its whole range.
    pub subquery_steps_max: usize,
    /// Series that all selections of a query find together.
    pub series_max: usize,
    /// Samples handed in for one query, 16 bytes each; as Prometheus' `--query.max-samples`.
    pub samples_max: usize,
    /// Values of all intermediate results that live at once, 8 bytes each.
    pub points_max: usize,
    /// Memory of the labels that a query makes and that live at once, bytes: half a million series of 300 bytes each that lose
    /// their name.
    pub label_bytes_max: usize,
    /// Samples that sliding windows pass over: some seconds of one core.
    pub visits_max: usize,
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
        }
    }
}
