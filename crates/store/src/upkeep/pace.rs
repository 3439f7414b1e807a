//! Limits the rate of the upkeep, so that reads and writes do not wait for it.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub bytes_per_second: u64,
    /// CPU time, percent of one core.
    pub cpu_percent: u32,
}

impl Pace {
    /// The pause that must follow a piece of work that took `elapsed`.
    #[expect(clippy::cast_precision_loss, reason = "the pause need not be exact")]
    pub fn rest(&self, bytes: u64, busy: Duration, elapsed: Duration) -> Duration {
        let by_bytes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second.max(1) as f64);
        let by_cpu = busy.mul_f64(100.0 / f64::from(self.cpu_percent.clamp(1, 100)));
        by_bytes.max(by_cpu).saturating_sub(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_limit_decides_the_pace() {
        let pace = Pace { bytes_per_second: 1_000, cpu_percent: 25 };
        let rest = |bytes, busy, elapsed| {
            let [busy, elapsed] = [busy, elapsed].map(Duration::from_millis);
            pace.rest(bytes, busy, elapsed).as_millis()
        };
        assert_eq!(rest(500, 0, 100), 400);
        assert_eq!(rest(0, 100, 100), 300);
        assert_eq!(rest(500, 200, 300), 500);
        assert_eq!(rest(100, 0, 300), 0);
    }
}
