//! Which line was refused, and why?

/// One line that was refused. None of its fields is kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct Refused {
    /// Counts from 1.
    pub line: u64,
    /// Counts bytes, from 1.
    pub column: usize,
    pub reason: String,
}
