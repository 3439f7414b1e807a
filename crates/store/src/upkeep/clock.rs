//! The clock by which records are deleted.
//!
//! A wall clock that is set years ahead would expire all records. Its time is therefore trusted only while it is not far
//! ahead of the expected time, which advances with a clock that cannot be set. After a start, it is trusted only if the
//! store was not closed for an implausibly long time. Otherwise rules use the expected time until the wall clock is no
//! longer far ahead of it or an operator confirms the wall clock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tacho_model::{Clock, Timestamp};

/// Limits on how far the wall clock may be ahead of the expected time, while the store is open and after a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockBounds {
    pub ahead_max: Duration,
    pub away_max: Duration,
}

impl Default for ClockBounds {
    /// One day is far above the effects of daylight saving time, a leap second or a slow clock. One week allows for a
    /// machine that was off.
    fn default() -> Self {
        Self { ahead_max: Duration::from_secs(86_400), away_max: Duration::from_secs(7 * 86_400) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// Time of the wall clock, and the expected time.
    pub found: Timestamp,
    pub expected: Timestamp,
}

pub struct TrustedClock {
    wall: Arc<dyn Clock>,
    trusted: Trusted,
}

impl TrustedClock {
    /// `latest` is the latest time that an earlier process trusted. Without bounds, every time is trusted.
    /// `since_boot` is a clock that cannot be set.
    pub fn new(
        wall: Arc<dyn Clock>,
        since_boot: fn() -> Duration,
        bounds: Option<ClockBounds>,
        latest: Option<Timestamp>,
    ) -> Self {
        Self { wall, trusted: Trusted::new(since_boot, bounds, latest) }
    }

    pub fn wall(&self) -> Timestamp {
        self.wall.now()
    }

    /// The time by which records are masked and deleted.
    pub fn now(&self) -> Timestamp {
        self.trusted.now(&*self.wall)
    }

    /// The latest trusted time, which the next process may rely on.
    pub fn latest(&self) -> Timestamp {
        self.trusted.latest(&*self.wall)
    }

    pub fn jump(&self) -> Option<Jump> {
        self.trusted.jump(&*self.wall)
    }

    /// Confirms the wall clock, so that it is trusted from now on. Returns its time.
    pub fn confirm(&self) -> Timestamp {
        self.trusted.confirm(&*self.wall)
    }
}

#[derive(Debug)]
struct Trusted {
    since_boot: fn() -> Duration,
    bounds: Option<ClockBounds>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The latest trusted time, and the value of [`since_boot`] when it was noted. `None` in the first process until the clock
    /// is read.
    latest: Option<(Timestamp, Duration)>,
    /// Whether the time during which the store was closed is still unknown, so that `away_max` applies.
    away: bool,
    jump: Option<Jump>,
}

impl Trusted {
    fn new(since_boot: fn() -> Duration, bounds: Option<ClockBounds>, latest: Option<Timestamp>) -> Self {
        let state = State { latest: latest.map(|latest| (latest, since_boot())), away: true, jump: None };
        Self { since_boot, bounds, state: Mutex::new(state) }
    }

    pub fn now(&self, clock: &dyn Clock) -> Timestamp {
        self.look(clock.now(), (self.since_boot)())
    }

    /// The latest trusted time, advanced by the time since then. The next process compares its clock with it. A clock
    /// that is set back, or starts in 1970 until the network is up, does not lower this time.
    pub fn latest(&self, clock: &dyn Clock) -> Timestamp {
        let now = self.now(clock);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.latest.map_or(now, |latest| now.max(expected(latest, (self.since_boot)())))
    }

    pub fn jump(&self, clock: &dyn Clock) -> Option<Jump> {
        self.now(clock);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).jump
    }

    /// Confirms the wall clock, so that it is trusted from now on. Returns its time.
    pub fn confirm(&self, clock: &dyn Clock) -> Timestamp {
        let found = clock.now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { latest: Some((found, (self.since_boot)())), away: false, jump: None };
        found
    }

    /// Returns the trusted time for the wall clock time `found`. `at` is the value of [`since_boot`].
    fn look(&self, found: Timestamp, at: Duration) -> Timestamp {
        let Some(bounds) = self.bounds else { return found };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut latest = found;
        if let Some(before) = state.latest {
            let expected = expected(before, at);
            let ahead_max = if state.away { bounds.away_max } else { bounds.ahead_max };
            if found > expected.saturating_add_unsigned(ns(ahead_max)) {
                if state.jump.is_none() {
                    tracing::error!(
                        found,
                        expected,
                        ahead_seconds = found.abs_diff(expected) / 1_000_000_000,
                        "the clock is far ahead of the expected time: it is not used to delete history until it is set right, or \
                         confirmed with POST /api/v1/admin/clock/confirm"
                    );
                }
                state.jump = Some(Jump { found, expected });
                return expected;
            }
            // A clock that is behind deletes less, so it is trusted. Later jumps are still measured from the expected
            // time.
            latest = latest.max(expected);
        }
        if state.jump.take().is_some() {
            tracing::info!(found, "the clock is no longer far ahead of the expected time");
        }
        // If the clock was behind at the start, the time during which the store was closed is still unknown.
        let away = state.away && latest > found;
        *state = State { latest: Some((latest, at)), away, jump: None };
        found
    }
}

/// A trusted time, advanced to `at`.
fn expected((latest, since): (Timestamp, Duration), at: Duration) -> Timestamp {
    latest.saturating_add_unsigned(ns(at.saturating_sub(since)))
}

/// Time since the machine started, by a clock that cannot be set. On Linux, it includes the sleep of the machine, unlike
/// [`std::time::Instant`].
pub fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(CLOCK);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000_000;

    const fn days(days: u64) -> Duration {
        Duration::from_secs(days * 86_400)
    }

    #[test]
    fn a_jump_ahead_is_not_trusted_until_confirmed_or_over() {
        let trusted = Trusted::new(since_boot, Some(ClockBounds::default()), None);
        assert_eq!(trusted.look(100 * DAY, days(0)), 100 * DAY);
        assert_eq!(
            trusted.look(110 * DAY, days(10)),
            110 * DAY,
            "must be trusted: the other clock advanced by the same time"
        );
        assert_eq!(trusted.look(9_000 * DAY, days(11)), 111 * DAY);
        assert_eq!(trusted.look(9_001 * DAY, days(12)), 112 * DAY, "a repeated jump must not be trusted");
        assert_eq!(trusted.look(113 * DAY, days(13)), 113 * DAY);
        let clock = tacho_model::ManualClock::new(9_002 * DAY);
        assert_eq!(trusted.confirm(&clock), 9_002 * DAY);
        assert_eq!((trusted.now(&clock), trusted.jump(&clock)), (9_002 * DAY, None));
    }

    #[test]
    fn a_clock_that_is_behind_is_trusted_and_may_be_corrected() {
        let trusted = Trusted::new(since_boot, Some(ClockBounds::default()), None);
        assert_eq!(trusted.look(113 * DAY, days(0)), 113 * DAY);
        assert_eq!(
            trusted.look(50 * DAY, days(0)),
            50 * DAY,
            "an earlier time must be trusted: it deletes less"
        );
        assert_eq!(
            trusted.look(114 * DAY, days(1)),
            114 * DAY,
            "a clock that is set to the correct time must be trusted"
        );
        assert_eq!(trusted.look(116 * DAY + 1, days(1)), 114 * DAY, "a jump beyond that must not be trusted");
    }

    #[test]
    fn after_a_start_a_clock_up_to_a_week_ahead_is_trusted() {
        let check = |found: &[i64], believed: &[i64]| {
            let trusted = Trusted::new(since_boot, Some(ClockBounds::default()), Some(100 * DAY));
            let at = since_boot();
            let got: Vec<i64> = found.iter().map(|found| trusted.look(found * DAY, at) / DAY).collect();
            assert_eq!(got, believed, "{found:?}");
        };
        check(&[107, 109], &[107, 107]);
        check(&[109], &[100]);
        // A machine without a battery for its clock starts in 1970. Its clock is set when the network is up.
        check(&[0, 0, 105], &[0, 0, 105]);
        check(&[0, 0, 109], &[0, 0, 100]);
        let all = Trusted::new(since_boot, None, Some(100 * DAY));
        assert_eq!(all.look(9_000 * DAY, days(0)), 9_000 * DAY);
    }

    #[test]
    fn the_next_process_gets_the_highest_trusted_time() {
        let trusted = Trusted::new(since_boot, Some(ClockBounds::default()), Some(100 * DAY));
        let clock = tacho_model::ManualClock::new(0);
        assert_eq!(trusted.now(&clock), 0);
        assert!((100 * DAY..101 * DAY).contains(&trusted.latest(&clock)));
    }
}
