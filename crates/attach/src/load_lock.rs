//! Serializes the loading of agents, because a JVM would load a second agent without an error.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::load::TOTAL_TIME_MAX;
use crate::{Fault, Process};

/// Limit on the time to wait for the lock: a little more than the holder may need to load its agent.
const TURN_TIME_MAX: Duration = TOTAL_TIME_MAX.saturating_add(Duration::from_secs(10));
const PAUSE: Duration = Duration::from_millis(20);

/// An exclusive lock for loading an agent into a process. It is released when this value is dropped or this program ends.
pub struct Turn(#[expect(dead_code, reason = "the lock is held as long as the file is open")] OwnedFd);

impl Turn {
    /// Waits until no other program holds the lock. In the meantime, properties of the process may change.
    ///
    /// # Errors
    /// When the process does not exist, its /proc entry cannot be opened or locked, or another program does not release the
    /// lock in time.
    pub fn take(process: &Process) -> Result<Self, Fault> {
        Self::take_within(process, TURN_TIME_MAX, || std::thread::sleep(PAUSE))
    }

    /// Locks the /proc entry of the process. Such a lock needs no file and ends with the process.
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
    fn the_lock_of_a_process_has_one_holder() {
        let this = Process::find(std::process::id()).expect("the process exists");
        let parent = Process::find(std::os::unix::process::parent_id()).expect("the process exists");
        let turn = Turn::take(&this).unwrap();
        let hasty = Turn::take_within(&this, Duration::ZERO, || panic!("a take with a limit of zero waited"));
        assert!(matches!(hasty, Err(Fault::Busy { .. })));
        drop(Turn::take(&parent).unwrap());
        // The second `take_within` finds the lock held. Its first pause releases the lock.
        let mut turn = Some(turn);
        let next = Turn::take_within(&this, TURN_TIME_MAX, || turn = None).unwrap();
        assert!(turn.is_none(), "the lock had two holders");
        drop(next);
        drop(Turn::take(&this).unwrap());
        let gone = Process { pid: u32::MAX, ..this };
        assert!(matches!(Turn::take(&gone), Err(Fault::NoProcess { .. })));
    }
}
