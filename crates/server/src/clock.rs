//! The clock of the machine.

use std::time::{SystemTime, UNIX_EPOCH};

use tacho_model::{Clock, Timestamp};

pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let (elapsed, sign) = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => (after, 1),
            Err(before) => (before.duration(), -1),
        };
        i64::try_from(elapsed.as_nanos()).map_or(sign * i64::MAX, |ns| sign * ns)
    }
}
