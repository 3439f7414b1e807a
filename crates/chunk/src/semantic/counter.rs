//! Is this series a counter? Rates are computed from differences of counters, and an error that is small relative to the values
//! may be as large as their difference.
//!
//! No test proves that a series is a counter: a slow counter is constant in most chunks, and a short part of a counter that often
//! restarts looks like any other series. But some series are provably gauges: their values fall many times, by amounts similar to
//! their rises ([`Movement`]). The restart of a counter differs from such a fall in one of two ways:
//!
//! - The value after the restart is 0 or almost 0, at most half of the usual rise (the mean of all rises).
//! - The value after the restart is larger. Then the step down is larger than the steps up, because a restart undoes many
//!   rises.
//!
//! Restarts are also rare, because a counter that restarts at every eighth change would be useless.
//!
//! A series that falls rarely and by much, such as a heap at each garbage collection, remains undecided and is kept exact.

use crate::values::Values;

/// Suffixes of counter names, by the conventions of OpenMetrics.
const ENDINGS: [&str; 4] = ["_total", "_count", "_sum", "_bucket"];
/// Number of descents that show that a series is a gauge. Fewer descents may be chance, or may come from a counter that
/// was restored to a slightly earlier value.
pub const DESCENTS_MIN: u64 = 64;
/// Limit on the changes per descent of a gauge. A random walk has about two changes per descent, noise two to three.
const CHANGES_A_DESCENT: u64 = 8;
/// Maximum size of a descent, in multiples of the usual rise.
const DESCENT_RISES: f64 = 2.0;
/// Maximum of the first value after a restart at 0, in multiples of the usual rise: the rise in half of an interval.
const RESTART_RISES: f64 = 0.5;

/// Whether a series with this name is a counter by convention.
pub fn is_counter_name(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// How often the values of a series change and fall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Movement {
    /// Number of values that differ from the previous value.
    pub changes: u64,
    /// Number of falls that are not restarts: at most twice as large as the usual rise, and not to a value at which a counter
    /// starts.
    pub descents: u64,
}

impl Movement {
    /// The movement of consecutive values. Ignores values that are not finite.
    pub fn of(values: Values<'_>) -> Self {
        Self::among(values, |_| true)
    }

    /// Like [`Self::of`], but counts only changes at the indexes for which `counts` returns true.
    pub fn among(values: Values<'_>, counts: impl Fn(usize) -> bool) -> Self {
        match values {
            Values::F64(v) => movement(v.iter().copied(), counts),
            Values::I64(v) => movement(v.iter().map(|v| tacho_model::Value::I64(*v).as_f64()), counts),
            Values::U64(v) => movement(v.iter().map(|v| tacho_model::Value::U64(*v).as_f64()), counts),
        }
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            changes: self.changes.saturating_add(other.changes),
            descents: self.descents.saturating_add(other.descents),
        }
    }

    /// Whether the series is known not to be a counter. False if undecided.
    pub const fn is_gauge(&self) -> bool {
        self.descents >= DESCENTS_MIN && self.descents.saturating_mul(CHANGES_A_DESCENT) >= self.changes
    }
}

fn movement(values: impl Iterator<Item = f64> + Clone, counts: impl Fn(usize) -> bool) -> Movement {
    let finite = || values.clone().enumerate().filter(|(_, value)| value.is_finite());
    let steps = || finite().zip(finite().skip(1)).map(|((_, before), (place, value))| (place, before, value));
    let (mut rises, mut risen) = (0.0, 0.0);
    for (_, before, value) in steps().filter(|(_, before, value)| value > before) {
        rises += 1.0;
        // Halved, because the difference of two large numbers can overflow.
        risen += value / 2.0 - before / 2.0;
    }
    let usual = risen / f64::max(rises, 1.0) * 2.0;
    let mut movement = Movement::default();
    for (_, before, value) in steps().filter(|(place, before, value)| counts(*place) && before != value) {
        let restart = value >= 0.0 && value <= usual * RESTART_RISES;
        let small = before / 2.0 - value / 2.0 <= usual / 2.0 * DESCENT_RISES;
        movement.changes += 1;
        movement.descents += u64::from(value < before && small && !restart);
    }
    movement
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_gauge(values: &[f64]) -> bool {
        Movement::of(Values::F64(values)).is_gauge()
    }

    /// `count` values, each computed from its index and a random number of 10 bits.
    fn values(count: u64, value: impl Fn(u64, f64) -> f64) -> Vec<f64> {
        (0..count).map(|n| value(n, (tacho_model::mix64(n) >> 54) as f64)).collect()
    }

    #[test]
    fn counters_are_recognised_by_name() {
        assert!(is_counter_name("http_requests_total") && is_counter_name("latency_seconds_bucket"));
        assert!(!is_counter_name("total_memory") && !is_counter_name("cpu"));
    }

    #[test]
    fn a_series_with_frequent_falls_of_the_size_of_its_rises_is_a_gauge() {
        assert!(is_gauge(&values(1_000, |n, _| (n as f64 / 50.0).sin())));
        assert!(is_gauge(&values(1_000, |n, _| 1e9 + (n as f64 / 50.0).sin())));
        assert!(is_gauge(&values(1_000, |_, noise| noise)));
        assert!(is_gauge(&values(1_000, |_, noise| -noise)));
        assert!(is_gauge(&values(1_000, |_, noise| 20.0 + noise / 1e3)));
        assert!(is_gauge(&values(2_000, |_, noise| -((noise + 1.0) / 1025.0).ln())));
        let mut walk = 500.0;
        assert!(is_gauge(
            &values(1_000, |_, noise| noise)
                .iter()
                .map(|noise| {
                    walk += noise % 3.0 - 1.0;
                    walk
                })
                .collect::<Vec<_>>()
        ));
        let integers: Vec<i64> = (0..1_000).map(|n| (n * n) % 17).collect();
        assert!(Movement::of(Values::I64(&integers)).is_gauge());
    }

    #[test]
    fn a_possible_counter_is_not_a_gauge() {
        let rising = |n: u64| n as f64 / 7.0;
        for (name, values) in [
            ("short", values(128, |n, _| (n % 3) as f64 + 10.0)),
            ("still", vec![1_000.0; 10_000]),
            ("slow", values(10_000, |n, _| 1_000.0 + (n / 900) as f64)),
            ("restarts to 0", values(10_000, |n, _| rising(n % 30))),
            ("restarts often", values(10_000, |n, _| (n % 3) as f64)),
            ("flag", values(10_000, |_, noise| noise % 2.0)),
            (
                "falls by 100 at each 50th value",
                values(10_000, |n, _| 1e6 + rising(n) - (n / 50) as f64 * 100.0),
            ),
            ("restored one behind", values(10_000, |n, _| (n - n / 10 * 2) as f64)),
            ("no numbers", vec![f64::NAN; 1_000]),
            ("a heap", values(10_000, |n, noise| 1e6 + (n % 100) as f64 * 1e4 + noise)),
            ("huge", values(1_000, |n, _| if n % 2 == 0 { f64::MAX } else { 1.0 })),
        ] {
            assert!(!is_gauge(&values), "{name}: {:?}", Movement::of(Values::F64(&values)));
        }
    }

    #[test]
    fn movements_add_up_and_count_only_selected_changes() {
        let wave = values(100, |n, _| (n as f64 / 5.0).sin());
        let all = Movement::of(Values::F64(&wave));
        let part = |from: usize, to: usize| Movement::among(Values::F64(&wave), |n| (from..to).contains(&n));
        assert_eq!(part(0, 40).and(part(40, 100)), all);
        assert!(!all.is_gauge() && all.and(all).is_gauge(), "{all:?}");
    }
}
