//! What time is it, as far as history may be deleted by it?
//!
//! A wall clock that is set wrong, years ahead, would make everything older than any rule keeps. So time is believed as long
//! as it goes on as a clock that cannot be set does, and after a start as long as the store was not away for longer than is
//! likely. Otherwise rules go by the time that was expected, until the wall clock is near it again or somebody confirms it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tacho_model::{Clock, Timestamp};

/// How far the wall clock may be ahead of what is expected while the store is open, and after a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockBounds {
    pub ahead_max: Duration,
    pub away_max: Duration,
}

impl Default for ClockBounds {
    /// A day: far above what daylight saving, a leap second or a slow clock can do. A week: a machine that was off.
    fn default() -> Self {
        Self { ahead_max: Duration::from_secs(86_400), away_max: Duration::from_secs(7 * 86_400) }
    }
}

/// A jump that is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// What the clock says, and what was expected.
    pub found: Timestamp,
    pub expected: Timestamp,
}

#[derive(Debug)]
pub struct Trusted {
    bounds: Option<ClockBounds>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last time that was believed, and when that was by a clock that cannot be set; in the first process none.
    last: Option<(Timestamp, Instant)>,
    /// `last` is of an earlier process.
    away: bool,
    jump: Option<Jump>,
}

impl Trusted {
    /// `last`: the latest moment that an earlier process has known. Without bounds everything is believed.
    pub fn new(bounds: Option<ClockBounds>, last: Option<Timestamp>) -> Self {
        let state = State { last: last.map(|last| (last, Instant::now())), away: true, jump: None };
        Self { bounds, state: Mutex::new(state) }
    }

    /// The time by which history may be deleted.
    pub fn now(&self, clock: &dyn Clock) -> Timestamp {
        self.look(clock.now(), Instant::now())
    }

    /// The jump that is not believed now.
    pub fn jump(&self, clock: &dyn Clock) -> Option<Jump> {
        self.now(clock);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).jump
    }

    /// From now on the clock is right. Returns what it says.
    pub fn confirm(&self, clock: &dyn Clock) -> Timestamp {
        let found = clock.now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { last: Some((found, Instant::now())), away: false, jump: None };
        found
    }

    fn look(&self, found: Timestamp, at: Instant) -> Timestamp {
        let Some(bounds) = self.bounds else { return found };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, since)) = state.last {
            let expected = last.saturating_add_unsigned(ns(at.saturating_duration_since(since)));
            let ahead_max = if state.away { bounds.away_max } else { bounds.ahead_max };
            if found > expected.saturating_add_unsigned(ns(ahead_max)) {
                if state.jump.is_none() {
                    tracing::error!(
                        found,
                        expected,
                        ahead_seconds = found.abs_diff(expected) / 1_000_000_000,
                        "the clock is far ahead of what is expected: nothing is deleted by it until it is set right, or \
                         confirmed with POST /api/v1/admin/clock/confirm"
                    );
                }
                state.jump = Some(Jump { found, expected });
                return expected;
            }
        }
        if state.jump.take().is_some() {
            tracing::info!(found, "the clock is near what is expected again");
        }
        *state = State { last: Some((found, at)), away: false, jump: None };
        found
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000_000;

    #[test]
    fn a_jump_ahead_is_not_believed_until_it_is_confirmed_or_over() {
        let begun = Instant::now();
        let after = |days: u64| begun + Duration::from_secs(days * 86_400);
        let trusted = Trusted::new(Some(ClockBounds::default()), None);
        assert_eq!(trusted.look(100 * DAY, begun), 100 * DAY);
        assert_eq!(trusted.look(110 * DAY, after(10)), 110 * DAY, "as long as the other clock went on, too");
        assert_eq!(trusted.look(9_000 * DAY, after(11)), 111 * DAY);
        assert_eq!(trusted.look(9_001 * DAY, after(12)), 112 * DAY, "however often it says so");
        assert_eq!(trusted.look(113 * DAY, after(13)), 113 * DAY);
        assert_eq!(trusted.look(50 * DAY, after(13)), 50 * DAY, "an earlier time deletes less");
        let clock = tacho_model::ManualClock::new(9_002 * DAY);
        assert_eq!(trusted.confirm(&clock), 9_002 * DAY);
        assert_eq!((trusted.now(&clock), trusted.jump(&clock)), (9_002 * DAY, None));
    }

    #[test]
    fn after_a_start_the_store_may_have_been_away_for_a_while() {
        let begun = Instant::now();
        let check = |found: i64, believed: i64| {
            let trusted = Trusted::new(Some(ClockBounds::default()), Some(100 * DAY));
            assert_eq!(trusted.look(found * DAY, begun), believed * DAY, "{found}");
        };
        check(107, 107);
        check(109, 100);
        check(20, 20);
        let all = Trusted::new(None, Some(100 * DAY));
        assert_eq!(all.look(9_000 * DAY, begun), 9_000 * DAY);
    }
}
