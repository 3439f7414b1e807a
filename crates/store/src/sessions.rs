//! Which batch of which sender was taken last? Makes a resent batch harmless.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::arrival::Origin;

/// What is remembered of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The last number taken; it is on disk.
    pub seq: u64,
    /// The generation that took it.
    pub generation: u64,
    /// When it was taken, or read at start. Monotonic: a clock that jumps forgets nobody.
    pub seen: Instant,
}

#[derive(Debug, Default)]
pub struct Sessions(HashMap<u128, Session>);

impl Sessions {
    /// The last number taken; 0 for none.
    pub fn acked(&self, session: u128) -> u64 {
        self.0.get(&session).map_or(0, |s| s.seq)
    }

    pub fn is_repeated(&self, origin: Origin) -> bool {
        origin.seq <= self.acked(origin.session)
    }

    /// Notes a number as taken; numbers never fall.
    pub fn take(&mut self, origin: Origin, generation: u64) {
        let now = Instant::now();
        let session = self.0.entry(origin.session).or_insert(Session { seq: 0, generation, seen: now });
        if origin.seq > session.seq {
            *session = Session { seq: origin.seq, generation, seen: now };
        }
    }

    /// Puts what was read from the driver.
    pub fn restore(&mut self, id: u128, session: Session) {
        self.0.insert(id, session);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets sessions that were silent for `age`, and of more than `count` the longest silent ones; those that
    /// were seen in a generation after `flushed` stay. Returns the forgotten.
    pub fn expire(&mut self, flushed: u64, age: Duration, count: usize) -> Vec<u128> {
        let mut silent: Vec<(u64, Instant, u128)> = self
            .0
            .iter()
            .filter(|(_, s)| s.generation <= flushed)
            .map(|(id, s)| (s.generation, s.seen, *id))
            .collect();
        silent.sort_unstable();
        let surplus = self.0.len().saturating_sub(count);
        let doomed = silent.into_iter().enumerate();
        let doomed = doomed.filter(|(at, (_, seen, _))| *at < surplus || seen.elapsed() >= age);
        let doomed: Vec<u128> = doomed.map(|(_, (_, _, id))| id).collect();
        for id in &doomed {
            self.0.remove(id);
        }
        doomed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_never_fall_and_the_longest_silent_are_forgotten() {
        let mut sessions = Sessions::default();
        for (session, seq, generation) in [(1, 5, 1), (2, 1, 1), (3, 1, 2), (1, 4, 2)] {
            sessions.take(Origin { session, seq }, generation);
        }
        assert_eq!(sessions.acked(1), 5);
        assert!(sessions.is_repeated(Origin { session: 1, seq: 5 }));
        assert!(!sessions.is_repeated(Origin { session: 9, seq: 1 }));

        let week = Duration::from_secs(7 * 86_400);
        assert_eq!(sessions.expire(0, week, 0), Vec::<u128>::new());
        assert_eq!(sessions.expire(2, week, 2), vec![1]);
        let mut rest = sessions.expire(1, Duration::ZERO, 10);
        rest.sort_unstable();
        assert_eq!(rest, vec![2]);
        assert_eq!(sessions.len(), 1);
    }
}
