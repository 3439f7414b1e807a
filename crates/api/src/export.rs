//! Totals of an export: the number of its records, their checksums, and how exact they are.

use tacho_chunk::{Aggregate, Aggregation};

use crate::json::float;
use crate::tally::Tally;
use crate::units;

/// Name of the parameter that makes a request skip unreadable records instead of failing.
pub const ALLOW_DAMAGED: &str = "allow_damaged";

/// Largest differences that lossy encoding made between its input and the stored samples. The input is recorded samples, or
/// samples that downsampling computed. Zero if all samples are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Bounds {
    /// In the unit of the values. Infinite if a relative error may be 100 % or more.
    #[serde(with = "float")]
    pub value: f64,
    pub time_ns: u64,
    /// The longest time step of downsampled values, and its aggregate. `None` if no value is downsampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinned: Option<Thinned>,
}

impl Bounds {
    pub fn are_exact(&self) -> bool {
        *self == Self::default()
    }

    pub fn widen(&mut self, other: Self) {
        self.value = self.value.max(other.value);
        self.time_ns = self.time_ns.max(other.time_ns);
        let both = [self.thinned, other.thinned].into_iter().flatten();
        self.thinned = both.max_by_key(|thinned| thinned.step_ns);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Totals {
    /// Number of series with at least one record.
    pub series: u64,
    /// Number of these series with inexact values or times, or with downsampled values.
    pub lossy: u64,
    pub bounds: Bounds,
    pub samples: Tally,
    pub entries: Tally,
}

/// The time step of downsampled values, and the aggregate that is kept of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Thinned {
    #[serde(with = "name")]
    pub how: Aggregate,
    pub step_ns: u64,
}

impl Thinned {
    pub const fn of(aggregation: Aggregation) -> Self {
        Self { how: aggregation.how, step_ns: aggregation.step.unsigned_abs() }
    }
}

/// For example `averages of 1 h`.
impl std::fmt::Display for Thinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.how {
            Aggregate::Avg => "averages",
            Aggregate::Min => "minima",
            Aggregate::Max => "maxima",
            Aggregate::Sum => "sums",
            Aggregate::Last => "last values",
            Aggregate::First => "first values",
            Aggregate::Count => "numbers of values",
        };
        write!(f, "{how} of {}", step(self.step_ns))
    }
}

fn step(ns: u64) -> String {
    const MINUTE_NS: u64 = 60_000_000_000;
    match ns {
        ns if ns > 0 && ns < 60 * MINUTE_NS && ns.is_multiple_of(MINUTE_NS) => {
            format!("{} min", ns / MINUTE_NS)
        }
        ns => units::days(ns),
    }
}

/// (De)serializes an aggregate by its name in settings.
mod name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use tacho_chunk::Aggregate;

    pub fn serialize<S: Serializer>(how: &Aggregate, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(how.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Aggregate, D::Error> {
        let text = String::deserialize(from)?;
        Aggregate::from_name(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is not an aggregate")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_values_are_described_in_words() {
        for (how, step, said) in [
            (Aggregate::Avg, 3_600_000_000_000, "averages of 1 h"),
            (Aggregate::Max, 300_000_000_000, "maxima of 5 min"),
            (Aggregate::Last, 86_400_000_000_000, "last values of 1 d"),
            (Aggregate::Sum, 10_000_000_000, "sums of 10.0 s"),
        ] {
            let thinned = Thinned::of(Aggregation { step, how });
            assert_eq!(thinned.to_string(), said);
            let json = serde_json::to_string(&thinned).unwrap();
            assert_eq!(json, format!("{{\"how\":\"{}\",\"step_ns\":{step}}}", how.name()));
            assert_eq!(serde_json::from_str::<Thinned>(&json).unwrap(), thinned);
        }
        assert!(serde_json::from_str::<Thinned>(r#"{"how":"most","step_ns":1}"#).is_err());
    }
}
