//! Which operations fail or take time, and how bytes are damaged.

use std::io;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tacho_model::Random;

/// Frequency of failing operations: one in this many on average; 0 means never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    pub write: u64,
    pub sync: u64,
    pub cut: u64,
    /// Operations on names: creating, reserving, renaming and removing files, making and syncing directories.
    pub names: u64,
}

impl Faults {
    pub fn fails(self, what: &str, random: &mut Random) -> bool {
        random.one_in(match what {
            "write" => self.write,
            "sync" => self.sync,
            "cut" => self.cut,
            _ => self.names,
        })
    }
}

/// Time that operations of the disk take, reads included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slowness {
    /// One in this many operations takes time; 0 means that none does.
    pub one_in: u64,
    /// Limit on the time of one operation.
    pub max: Duration,
}

impl Slowness {
    pub fn draw(self, random: &mut Random) -> Option<Duration> {
        let micros = u64::try_from(self.max.as_micros()).unwrap_or(u64::MAX);
        random.one_in(self.one_in).then(|| Duration::from_micros(random.below(micros.max(1))))
    }
}

/// Advances the paused clock by the time of an operation of the disk. Timers that expire during the operation are due at its end.
pub fn pass(time: Duration) {
    // The first poll advances the clock. After it, the future only waits until the other tasks have run. An operation of the disk
    // is synchronous, so it cannot wait for them.
    let _ = pin!(tokio::time::advance(time)).poll(&mut Context::from_waker(Waker::noop()));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Failed,
    /// The machine stops during the operation.
    Stopping,
    /// The machine has stopped before.
    Stopped,
}

impl Outcome {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "",
            Self::Failed => ": fails",
            Self::Stopping => ": the machine stops",
            Self::Stopped => ": the machine has stopped",
        }
    }
}

/// `EIO`.
pub fn broken() -> io::Error {
    io::Error::from_raw_os_error(5)
}

/// Damage of synced bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    Bit,
    /// A sector has zeros, as if it was never written.
    Zeros,
    /// A sector has the bytes of another sector.
    Misdirected,
    /// A sector cannot be read.
    Unreadable,
}

impl Harm {
    pub const fn draw(random: &mut Random) -> Self {
        match random.below(4) {
            0 => Self::Bit,
            1 => Self::Zeros,
            2 => Self::Misdirected,
            _ => Self::Unreadable,
        }
    }
}

/// FNV-1a.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
