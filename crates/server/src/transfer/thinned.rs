//! Values that stand for many: of what, and over which step of time? In words for answers, in JSON for exports.

use tacho_chunk::{Aggregate, Aggregation};

use crate::terminal::units;

/// What each value is of all that were recorded in its step: their average, most often.
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

/// `averages of 1 h`
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

/// `1 h`, `5 min`.
fn step(ns: u64) -> String {
    const MINUTE_NS: u64 = 60_000_000_000;
    match ns {
        ns if ns > 0 && ns < 60 * MINUTE_NS && ns.is_multiple_of(MINUTE_NS) => {
            format!("{} min", ns / MINUTE_NS)
        }
        ns => units::days(ns),
    }
}

/// As in settings.
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
    fn a_step_is_told_as_a_person_says_it() {
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
