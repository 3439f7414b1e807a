//! What is the result of one step of reading, and where does the step begin?

use crate::rows::Block;

/// Position in a file where a block begins or ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Row group, counted from 0.
    pub group: usize,
    /// Index of the part, i.e. of the value columns that are read together, counted from 0.
    pub part: usize,
    /// Number of rows of the row group before this position.
    pub row: u64,
}

/// The content of some rows, or of some columns of these rows.
pub struct Rows {
    pub block: Block,
    /// Number of rows that this step examined, including broken ones.
    pub(super) rows: usize,
    /// Broken rows as JSON lines; [`Broken::bytes`](crate::rows::Broken::bytes) refers to this text.
    pub text: String,
}
