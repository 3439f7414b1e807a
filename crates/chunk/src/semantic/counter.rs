//! Is this a counter? Rates are made of its differences, so a tolerance that is small against its value may be all of a rate.

use crate::values::Values;

/// Endings of names that say so, by the conventions of OpenMetrics.
const ENDINGS: [&str; 4] = ["_total", "_count", "_sum", "_bucket"];
/// Rises between restarts that make a column a counter. Fewer may be chance.
const RISES_MIN: usize = 16;
/// After a restart a counter is below this share of what it was.
const RESTART: f64 = 0.1;

/// Whether a series of that name is a counter by convention.
pub fn is_counter_name(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether values never fall but to start again, and rise often enough that this is no chance.
pub fn looks_like_counter(values: Values<'_>) -> bool {
    match values {
        Values::F64(v) => never_falls(v.iter().copied().filter(|v| !v.is_nan())),
        Values::I64(v) => never_falls(v.iter().map(|v| as_f64(*v))),
        Values::U64(v) => never_falls(v.iter().map(|v| tacho_model::Value::U64(*v).as_f64())),
    }
}

fn as_f64(value: i64) -> f64 {
    tacho_model::Value::I64(value).as_f64()
}

fn never_falls(mut values: impl Iterator<Item = f64>) -> bool {
    let Some(mut before) = values.next() else { return false };
    let (mut rises, mut restarts) = (0, 0);
    for value in values {
        if value < before && !(value >= 0.0 && value < before * RESTART) {
            return false;
        }
        rises += usize::from(value > before);
        restarts += usize::from(value < before);
        before = value;
    }
    rises >= RISES_MIN * (restarts + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_known_by_name_and_by_what_they_do() {
        assert!(is_counter_name("http_requests_total") && is_counter_name("latency_seconds_bucket"));
        assert!(!is_counter_name("total_memory") && !is_counter_name("cpu"));
        let rising: Vec<u64> = (0..40).map(|n| n / 2 * 7).collect();
        assert!(looks_like_counter(Values::U64(&rising)));
        let restarted: Vec<f64> = (0..60).map(|n| f64::from(n % 30 * 3)).collect();
        assert!(looks_like_counter(Values::F64(&restarted)));
        let wave: Vec<f64> = (0..60).map(|n| (f64::from(n) / 5.0).sin()).collect();
        assert!(!looks_like_counter(Values::F64(&wave)) && !looks_like_counter(Values::I64(&[1, 2, 3])));
        assert!(!looks_like_counter(Values::F64(&[f64::NAN; 40])));
    }
}
