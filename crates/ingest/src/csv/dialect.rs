//! In which ways can a CSV file be written?

use super::number::Numbers;
use crate::time_text::TimeFormat;

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub delimiter: u8,
    pub time: TimeFormat,
    pub numbers: Numbers,
    /// Position of the times' column.
    pub time_column: usize,
    pub shape: Shape,
    /// Values are texts: entries, not samples.
    pub texts: bool,
    /// Columns of a wide file whose head has texts and no number.
    pub text_columns: Vec<usize>,
    /// Another reading of a comma that fits equally well and gives other numbers: such cells are refused.
    pub doubtful: Option<Numbers>,
}

/// Content of the other columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    Wide,
    Long { value_column: usize, name_column: Option<usize> },
}
