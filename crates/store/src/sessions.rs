//! Remembers the frame numbers of each sender, so that a repeated batch is not stored twice.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::arrival::Origin;

/// Limit on remembered gaps per session. A sender that keeps skipping numbers would otherwise create an unlimited number
/// of gaps.
const GAPS_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The highest accepted frame number. Its frame is on disk.
    pub seq: u64,
    /// The generation of the batch with this number.
    pub generation: u64,
    /// When this number was accepted, or read at start. Monotonic, so that a jump of the clock does not expire a session.
    pub seen: Instant,
    /// Missing numbers before `seq`, as first and last. A late frame in a gap is accepted. Gaps are only in memory; a
    /// start restores those that the remaining journals show.
    pub gaps: Vec<(u64, u64)>,
}

impl Session {
    pub fn new(seq: u64, generation: u64) -> Self {
        Self { seq, generation, seen: Instant::now(), gaps: Vec::new() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    New,
    Repeated,
    /// Some frames of the batch were accepted before, and some were not.
    Torn,
}

#[derive(Debug, Default)]
pub struct Sessions(HashMap<u128, Session>);

impl Sessions {
    /// The highest accepted number; 0 if there is none.
    pub fn acked(&self, session: u128) -> u64 {
        self.0.get(&session).map_or(0, |s| s.seq)
    }

    pub fn standing(&self, origin: Origin) -> Standing {
        let Some(session) = self.0.get(&origin.session) else {
            return if origin.seq == 0 { Standing::Repeated } else { Standing::New };
        };
        if origin.seq > session.seq {
            // `first` is 0 in records of older journals, which do not state the number of the first frame.
            let is_taken = origin.first > 0 && origin.first <= session.seq;
            return if is_taken { Standing::Torn } else { Standing::New };
        }
        let Some((first, last)) = session.gaps.iter().find(|(f, l)| *f <= origin.seq && origin.first <= *l)
        else {
            return Standing::Repeated;
        };
        if *first <= origin.first && origin.seq <= *last { Standing::New } else { Standing::Torn }
    }

    pub fn is_repeated(&self, origin: Origin) -> bool {
        self.standing(origin) == Standing::Repeated
    }

    /// Marks the numbers of a batch as accepted. Returns the number of forgotten gaps. Late frames in a forgotten gap
    /// count as repetitions.
    pub fn take(&mut self, origin: Origin, generation: u64) -> usize {
        let Origin { first, seq, .. } = origin;
        let session = self.0.entry(origin.session).or_insert_with(|| Session::new(0, generation));
        let gaps = std::mem::take(&mut session.gaps);
        let around = |(f, l): (u64, u64)| {
            // The parts of a gap before and after the batch.
            [(f, l.min(first.saturating_sub(1))), (f.max(seq.saturating_add(1)), l)]
        };
        session.gaps = gaps.into_iter().flat_map(around).filter(|(f, l)| f <= l).collect();
        session.gaps.dedup();
        if first > session.seq.saturating_add(1) {
            session.gaps.push((session.seq + 1, first - 1));
        }
        let surplus = session.gaps.len().saturating_sub(GAPS_MAX);
        session.gaps.drain(..surplus);
        if seq > session.seq {
            (session.seq, session.generation, session.seen) = (seq, generation, Instant::now());
        }
        surplus
    }

    pub fn restore(&mut self, id: u128, session: Session) {
        self.0.insert(id, session);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets sessions without a batch for `age`. Above `count` sessions, also forgets those with the oldest last batch.
    /// Keeps sessions with a batch in a generation after `flushed`. Batches of late frames are not considered. Returns the
    /// forgotten sessions.
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
    fn session_numbers_never_fall_and_inactive_sessions_are_forgotten() {
        let mut sessions = Sessions::default();
        for (session, seq, generation) in [(1, 5, 1), (2, 1, 1), (3, 1, 2), (1, 4, 2)] {
            sessions.take(Origin { session, first: 0, seq }, generation);
        }
        assert_eq!(sessions.acked(1), 5);
        assert!(sessions.is_repeated(Origin::one(1, 5)));
        assert!(!sessions.is_repeated(Origin::one(9, 1)));

        let week = Duration::from_secs(7 * 86_400);
        assert_eq!(sessions.expire(0, week, 0), Vec::<u128>::new());
        assert_eq!(sessions.expire(2, week, 2), vec![1]);
        let mut rest = sessions.expire(1, Duration::ZERO, 10);
        rest.sort_unstable();
        assert_eq!(rest, vec![2]);
        assert_eq!(sessions.len(), 1);
    }

    #[test]
    fn a_late_frame_is_not_a_repetition() {
        let mut sessions = Sessions::default();
        let origin = |first, seq| Origin { session: 1, first, seq };
        sessions.take(origin(4, 6), 1);
        let standings = |sessions: &Sessions, all: &[(u64, u64)]| -> Vec<Standing> {
            all.iter().map(|(first, seq)| sessions.standing(origin(*first, *seq))).collect()
        };
        use Standing::{New, Repeated, Torn};
        let asked = [(1, 1), (2, 3), (3, 4), (4, 4), (5, 6), (6, 7), (7, 7)];
        assert_eq!(standings(&sessions, &asked), [New, New, Torn, Repeated, Repeated, Torn, New]);
        sessions.take(origin(2, 2), 1);
        assert_eq!(standings(&sessions, &asked[..3]), [New, Torn, Torn]);
        assert_eq!(sessions.acked(1), 6);
        sessions.take(origin(1, 1), 1);
        sessions.take(origin(3, 3), 1);
        assert_eq!(standings(&sessions, &asked[..5]), [Repeated; 5]);
        // A batch of an older journal includes all numbers up to its own.
        sessions.take(origin(0, 9), 1);
        assert_eq!(standings(&sessions, &[(8, 8)]), [Repeated]);
        let forgotten: usize = (6..60).map(|n| sessions.take(origin(2 * n, 2 * n), 1)).sum();
        assert_eq!(sessions.0[&1].gaps.len(), GAPS_MAX);
        assert_eq!(forgotten + GAPS_MAX, 54);
        assert_eq!(standings(&sessions, &[(117, 117), (13, 13)]), [New, Repeated]);
    }
}
