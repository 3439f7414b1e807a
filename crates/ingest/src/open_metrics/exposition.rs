//! Which of the two formats is read? They differ in names, times and the end of the file.

/// The two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    OpenMetrics,
    Prometheus,
}
