//! Which step comes next, and which faults does the disk have? A seed decides.

use std::time::Duration;

use tacho_model::{Random, TimeRange};
use tacho_store::conformance::simulation::model::{BRIEF_NS, COARSE, OWN, SHARED};
use tacho_store::layer::faults::Faults as DriverFaults;

use crate::disk::{Faults, Slowness};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All agents record frames, and send the frames that are not acknowledged.
    Send,
    /// One agent sends other records with the number of its last acknowledged frame.
    Repeat,
    Flush,
    Merge,
    Sweep,
    /// Deletes records of one agent.
    Delete,
    /// The wall clock advances by this time, ns.
    Advance(i64),
    /// The tasks of the store work for this time.
    Rest(Duration),
    /// The disk is full after this many more bytes.
    Fill(u64),
    Verify,
    Check,
}

impl Step {
    pub const fn draw(random: &mut Random) -> Self {
        match random.below(100) {
            0..45 => Self::Send,
            45..50 => Self::Repeat,
            50..58 => Self::Flush,
            58..64 => Self::Merge,
            64..68 => Self::Sweep,
            68..74 => Self::Delete,
            74..79 => Self::Advance(random.below(BRIEF_NS) as i64),
            79..89 => Self::Rest(Duration::from_millis(random.below(200))),
            89..92 => Self::Fill(random.below(6_000)),
            92..94 => Self::Verify,
            _ => Self::Check,
        }
    }
}

/// The life of one process.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    pub steps: u64,
    /// Operations of the disk until the machine stops.
    pub operations: Option<u64>,
    pub faults: Faults,
    pub slowness: Slowness,
}

impl Life {
    /// If `is_healthy`, no operation of the disk fails in this seed.
    pub const fn draw(random: &mut Random, is_healthy: bool) -> Self {
        let operations = match random.below(8) {
            0 => None,
            1 | 2 => Some(random.below(30)),
            3 | 4 => Some(random.below(120)),
            _ => Some(random.below(600)),
        };
        // In the other seeds, half of the lives have a disk without failing operations.
        let faults = match random.below(6) {
            _ if is_healthy => Faults { write: 0, sync: 0, cut: 0, names: 0 },
            0 => Faults { write: 40, sync: 30, cut: 3, names: 40 },
            1 => Faults { write: 0, sync: 12, cut: 2, names: 0 },
            2 => Faults { write: 20, sync: 0, cut: 0, names: 15 },
            _ => Faults { write: 0, sync: 0, cut: 0, names: 0 },
        };
        let slowness = match random.below(6) {
            // A slow disk.
            0 => Slowness { one_in: 6, max: Duration::from_millis(5) },
            // A disk that sometimes stops for a while.
            1 => Slowness { one_in: 500, max: Duration::from_secs(2) },
            _ => Slowness { one_in: 0, max: Duration::ZERO },
        };
        Self { steps: 3 + random.below(24), operations, faults, slowness }
    }
}

/// Failing calls of the driver, and random waits, so that tasks run in a different order for each seed.
pub const fn driver_faults(random: &mut Random) -> DriverFaults {
    let errors = if random.one_in(3) { 12 } else { 0 };
    DriverFaults {
        seed: random.next(),
        error_before: errors,
        error_after: errors,
        torn: 0,
        whole_puts: true,
        duplicate: errors,
        delay: 2,
        delay_max: Duration::from_millis(3),
    }
}

/// Series and time range of a deletion at time `now`; all series for `None`.
pub fn deletion(random: &mut Random, now: i64) -> (Option<&'static str>, TimeRange) {
    let names = [None, Some(SHARED[0]), Some(OWN), Some(COARSE), Some("entries"), Some("executions")];
    let name = names[random.below(names.len() as u64) as usize];
    let from = random.below(300) as i64;
    let from = if name == Some(COARSE) { now - 300 + from } else { from };
    let range = match random.below(3) {
        0 => TimeRange::new(from, from + random.below(50) as i64),
        1 => TimeRange::new(from, random.below(1 << 50) as i64 + from),
        _ => TimeRange::ALL,
    };
    (name, range)
}
