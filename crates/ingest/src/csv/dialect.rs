//! In which variants can a CSV file be written?

use super::number::Numbers;
use crate::time_text::TimeFormat;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub delimiter: u8,
    pub time: TimeFormat,
    pub numbers: Numbers,
    pub time_column: usize,
    pub shape: Shape,
    /// Whether values become entries instead of samples.
    pub texts: bool,
    /// Columns of a wide file that have texts and no number in the rows that `detect.rs` examines.
    pub text_columns: Vec<usize>,
    /// Another number format that fits equally well, but reads a comma differently. A cell is refused if
    /// the two formats read different numbers from it.
    pub doubtful: Option<Numbers>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    Wide,
    Long { value_column: usize, name_column: Option<usize> },
}
