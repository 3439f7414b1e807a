//! How are blocks of times packed? Times may be in any order.

use tacho_model::Timestamp;

use super::steps::{BLOCK, PackedSteps, Steps, put_steps, spread, steps_of, width_byte};
use crate::Error;
use crate::bytes::Reader;

/// Possible common units of the steps of a block, ns.
const UNITS: [i64; 4] = [1, 1_000, 1_000_000, 1_000_000_000];

/// The steps as multiples of the unit. `None` if a step is not a multiple.
fn divided<const UNIT: i64>(steps: &Steps) -> Option<Steps> {
    steps.iter().all(|step| step % UNIT == 0).then(|| steps.map(|step| step / UNIT))
}

pub(super) fn put(out: &mut Vec<u8>, times: &[Timestamp; BLOCK]) {
    let steps = steps_of(times.iter().copied());
    let with = |unit: u8| move |steps| (unit, steps);
    let (unit, steps) = None
        .or_else(|| divided::<{ UNITS[3] }>(&steps).map(with(3)))
        .or_else(|| divided::<{ UNITS[2] }>(&steps).map(with(2)))
        .or_else(|| divided::<{ UNITS[1] }>(&steps).map(with(1)))
        .unwrap_or((0, steps));
    let (low, width) = spread(&steps);
    out.extend_from_slice(&times[0].to_le_bytes());
    out.extend([unit, width_byte(width)]);
    put_steps(out, &steps, low, width);
}

/// A block with decoded parameters.
pub(super) struct Block<'a> {
    pub(super) first: Timestamp,
    unit: i64,
    steps: PackedSteps<'a>,
}

impl<'a> Block<'a> {
    pub(super) fn take(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let first = Timestamp::from_le_bytes(reader.array("first time")?);
        let [unit, width] = reader.array("unit and width")?;
        let unit = *UNITS.get(usize::from(unit)).ok_or(Error::value("unit of times", unit))?;
        Ok(Self { first, unit, steps: PackedSteps::take(reader, width)? })
    }

    pub(super) fn unpack(&self, out: &mut Vec<Timestamp>) {
        self.steps.add_up(self.first, self.unit, out, |at| at);
    }
}
