//! Which format is read, OpenMetrics or the text format of Prometheus? They differ in names, times and the end of the
//! file.

/// Format of an exposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    OpenMetrics,
    Prometheus,
}
