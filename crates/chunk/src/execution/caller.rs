//! What is stored about the call that caused a segment?

use tacho_model::{Operation, SeriesId};

/// The operation that caused a segment, and the series of the process that recorded this operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    pub series: SeriesId,
    pub operation: Operation,
}
