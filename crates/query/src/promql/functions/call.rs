//! What is the input of a function that reads all of its arguments together?

use std::ops::RangeInclusive;

use crate::Error;
use crate::promql::grid::Grid;
use crate::promql::node::Node;
use crate::promql::rows::{Canvas, Value};
use crate::promql::window::Visits;

/// The input of an [`Apply::Whole`](super::Apply::Whole) function.
pub struct Call<'p, 'd> {
    pub arguments: Vec<Value<'d>>,
    /// The nodes of the arguments.
    pub nodes: Vec<&'p Node>,
    pub grid: Grid,
    pub canvas: Canvas<'p>,
    pub visits: Visits<'p>,
}

impl<'p, 'd> Call<'p, 'd> {
    /// A new counter of samples read. It checks the limit `visits_max` of the whole query.
    pub fn visits(&self) -> Visits<'p> {
        self.visits.another()
    }

    /// `Function::check_count` guarantees that there are `N` arguments.
    pub fn take<const N: usize>(self) -> Result<[Value<'d>; N], Error> {
        self.arguments.try_into().map_err(|_| Error::execution("internal: wrong number of arguments"))
    }
}

/// Limit on an argument that is a number of samples. No window holds this many samples.
pub const SAMPLES_MAX: usize = u32::MAX as usize;

/// Converts an argument that must be an integer. `what` names the argument in the error.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and the result is checked afterwards"
)]
pub fn whole(number: f64, what: &str, within: &RangeInclusive<usize>) -> Result<usize, Error> {
    if number.fract() == 0.0 && number >= 0.0 && within.contains(&(number as usize)) {
        return Ok(number as usize);
    }
    let (least, most) = (within.start(), within.end());
    Err(Error::bad_data(format!("{what} must be an integer from {least} to {most}, got {number}")))
}
