//! Which format is read, OpenMetrics or the text format of Prometheus? They differ in names, times and the end of the
//! file.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    OpenMetrics,
    Prometheus,
}
