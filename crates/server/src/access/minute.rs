//! How many events were there in the current minute?

use tacho_model::Timestamp;

const MINUTE_NS: i64 = 60_000_000_000;

/// The minute that began with its first event. It has not begun while `count` is 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Minute {
    begun: Timestamp,
    count: u32,
}

impl Minute {
    /// A clock that was set back ends the minute, too.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.count == 0 || !(0..MINUTE_NS).contains(&now.saturating_sub(self.begun))
    }

    /// Counts an event, and returns the number of events of its minute.
    pub fn count(&mut self, now: Timestamp) -> u32 {
        if self.is_over(now) {
            *self = Self { begun: now, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count
    }

    /// The time until the minute ends, ns.
    pub const fn left_ns(&self, now: Timestamp) -> i64 {
        MINUTE_NS - now.saturating_sub(self.begun)
    }
}
