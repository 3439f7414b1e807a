//! Serializes loading agents: a JVM loads a second agent without an error.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::{Fault, Process};

/// Timeout for the previous loader: a little more than the timeouts of listening and loading together.
const TURN_TIME_MAX: Duration = Duration::from_secs(100);
const PAUSE: Duration = Duration::from_millis(20);

/// The right to load an agent into a process. Released when dropped, and when this program ends.
pub struct Turn(#[expect(dead_code, reason = "the lock is held as long as the file is open")] OwnedFd);

impl Turn {
    /// Waits for the present holder. Facts read about the process before may have changed in the meantime.
    ///
    /// # Errors
    /// When the process does not exist, or the present holder does not finish in time.
    pub fn take(process: &Process) -> Result<Self, Fault> {
        Self::take_within(process, TURN_TIME_MAX, || std::thread::sleep(PAUSE))
    }

    /// Uses a lock on the process' /proc entry: it leaves nothing behind and ends with the process.
    fn take_within(process: &Process, time_max: Duration, mut pause: impl FnMut()) -> Result<Self, Fault> {
        let pid = process.pid;
        let path = format!("/proc/{pid}");
        let failed = |error: Errno| match error {
            Errno::NOENT | Errno::SRCH => Fault::NoProcess { pid },
            error => Fault::Io { doing: "lock", path: path.clone().into(), source: error.into() },
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&path, flags, Mode::empty()).map_err(failed)?;
        let begun = Instant::now();
        loop {
            match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(folder)),
                Err(Errno::WOULDBLOCK) if begun.elapsed() < time_max => pause(),
                Err(Errno::WOULDBLOCK) => return Err(Fault::Busy { pid }),
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_holds_the_turn() {
        let this = Process::find(std::process::id()).expect("it is there");
        let parent = Process::find(std::os::unix::process::parent_id()).expect("it is there");
        let turn = Turn::take(&this).unwrap();
        let hasty = Turn::take_within(&this, Duration::ZERO, || panic!("there is no time for a pause"));
        assert!(matches!(hasty, Err(Fault::Busy { .. })));
        drop(Turn::take(&parent).unwrap());
        // Released only after the next one was refused.
        let mut turn = Some(turn);
        let next = Turn::take_within(&this, TURN_TIME_MAX, || turn = None).unwrap();
        assert!(turn.is_none(), "there were two turns at once");
        drop(next);
        drop(Turn::take(&this).unwrap());
        let gone = Process { pid: u32::MAX, ..this };
        assert!(matches!(Turn::take(&gone), Err(Fault::NoProcess { .. })));
    }
}
