//! Is a line about repeated events due? At most once a minute, with the number of events since the line before.

use tacho_model::Timestamp;

/// Minimum interval between two lines, ns.
pub const PAUSE_NS: i64 = 60_000_000_000;

/// Events of one kind, for example refusals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seldom {
    noted: Option<Timestamp>,
    /// Events since the last line.
    count: u64,
}

impl Seldom {
    /// Counts events. If a line is due, returns the number of events since the line before.
    pub fn count(&mut self, events: u64, now: Timestamp) -> Option<u64> {
        self.add(events);
        self.take(now)
    }

    pub const fn add(&mut self, events: u64) {
        self.count = self.count.saturating_add(events);
    }

    /// The number of events since the line before, if a line is due. A clock that was set back does not prevent the line.
    pub fn take(&mut self, now: Timestamp) -> Option<u64> {
        if self.count == 0 || self.is_recent(now) {
            return None;
        }
        self.noted = Some(now);
        Some(std::mem::take(&mut self.count))
    }

    /// Whether the last line is less than a minute old.
    pub fn is_recent(&self, now: Timestamp) -> bool {
        self.noted.is_some_and(|noted| (0..PAUSE_NS).contains(&now.saturating_sub(noted)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_get_one_line_a_minute_with_their_number() {
        let mut seldom = Seldom::default();
        let at = |seconds: i64| 1_000_000 + seconds * 1_000_000_000;
        assert_eq!(seldom.take(at(0)), None);
        assert_eq!(seldom.count(2, at(0)), Some(2));
        assert_eq!((seldom.count(3, at(1)), seldom.count(1, at(59))), (None, None));
        assert_eq!(seldom.count(1, at(60)), Some(5));
        assert_eq!(seldom.take(at(120)), None);
        // The clock was set back.
        assert_eq!(seldom.count(1, at(-9)), Some(1));
    }
}
