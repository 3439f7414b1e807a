//! How lossy is a column?

use crate::Error;
use crate::bytes::{Reader, put_varint};

/// Limit on the difference between a decoded value and the recorded (or aggregated) value. The limit is finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A difference in the unit of the values.
    Absolute(f64),
    /// A fraction of the recorded value: 0.01 is one percent.
    Relative(f64),
}

/// Method by which values were simplified. The discriminants are on disk (`docs/format/chunk.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Method {
    /// Straight lines near the samples.
    Linear = 1,
    /// Steps: small wavelet coefficients are dropped.
    Wavelet = 2,
    /// Fewer digits.
    Rounding = 3,
}

/// Function that aggregates all values of one time step. The discriminants are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Aggregate {
    Avg = 1,
    Min = 2,
    Max = 3,
    Sum = 4,
    Last = 5,
    First = 6,
    Count = 7,
}

/// Aggregation to one value per time step, with the time of the last sample of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregation {
    /// Length of a step, ns; above 0.
    pub step: i64,
    pub how: Aggregate,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// The aggregation, which is applied before the method.
    pub aggregation: Option<Aggregation>,
    pub method: Option<Method>,
    pub bound: Tolerance,
    /// Largest actual difference, measured during encoding. Absolute or relative like the bound.
    pub achieved: f64,
}

impl Tolerance {
    pub const fn amount(self) -> f64 {
        match self {
            Self::Absolute(amount) | Self::Relative(amount) => amount,
        }
    }
}

impl Method {
    pub const ALL: [Self; 3] = [Self::Linear, Self::Wavelet, Self::Rounding];

    /// Name in settings and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Wavelet => "wavelet",
            Self::Rounding => "rounding",
        }
    }

    /// The inverse of [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

impl Aggregate {
    pub const ALL: [Self; 7] =
        [Self::Avg, Self::Min, Self::Max, Self::Sum, Self::Last, Self::First, Self::Count];

    /// Name in settings and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Sum => "sum",
            Self::Last => "last",
            Self::First => "first",
            Self::Count => "count",
        }
    }

    /// The inverse of [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|how| how.name() == name)
    }
}

const METHOD_MASK: u8 = 0x0f;
const RELATIVE: u8 = 0x10;
const AGGREGATED: u8 = 0x20;

impl Loss {
    /// A loss whose bound holds for values with the loss `self` and for values with the loss `other`. `None` if one bound is
    /// relative and the other absolute, or if the aggregations differ.
    #[must_use]
    pub fn cover(self, other: Self) -> Option<Self> {
        let larger = |a: f64, b: f64| if a < b { b } else { a };
        let bound = match (self.bound, other.bound) {
            (Tolerance::Absolute(a), Tolerance::Absolute(b)) => Tolerance::Absolute(larger(a, b)),
            (Tolerance::Relative(a), Tolerance::Relative(b)) => Tolerance::Relative(larger(a, b)),
            (_, Tolerance::Absolute(_) | Tolerance::Relative(_)) => return None,
        };
        let achieved = larger(self.achieved, other.achieved);
        let method = if other.achieved > self.achieved { other.method } else { self.method };
        let covered = Self { bound, achieved, method: method.or(self.method).or(other.method), ..self };
        (self.aggregation == other.aggregation).then_some(covered)
    }

    /// The loss of values that were aggregated, but not changed by a method. `None` without an aggregation.
    #[must_use]
    pub fn of_aggregation(self) -> Option<Self> {
        let exact = Self { method: None, bound: Tolerance::Absolute(0.0), achieved: 0.0, ..self };
        self.aggregation.map(|_| exact)
    }

    /// Upper bound of the difference between a decoded and the recorded (or aggregated) value, in the unit of the values. No
    /// decoded value may have a larger absolute value than `largest`.
    pub fn error_max(&self, largest: f64) -> f64 {
        match self.bound {
            Tolerance::Absolute(_) => self.achieved,
            // For a recorded value v, its decoded value w, and r = achieved: |v - w| <= r |v|, so |v| <= |w| / (1 - r).
            Tolerance::Relative(_) if self.achieved < 1.0 => self.achieved * largest / (1.0 - self.achieved),
            Tolerance::Relative(_) => f64::INFINITY,
        }
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let relative = if matches!(self.bound, Tolerance::Relative(_)) { RELATIVE } else { 0 };
        let aggregated = if self.aggregation.is_some() { AGGREGATED } else { 0 };
        out.push(self.method.map_or(0, |method| method as u8) | relative | aggregated);
        out.extend_from_slice(&self.bound.amount().to_le_bytes());
        out.extend_from_slice(&self.achieved.to_le_bytes());
        if let Some(Aggregation { step, how }) = self.aggregation {
            put_varint(out, step.unsigned_abs());
            out.push(how as u8);
        }
    }

    pub(crate) fn take(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let byte = reader.byte("method")?;
        let method = match byte & METHOD_MASK {
            0 => None,
            tag => {
                let known = Method::ALL.into_iter().find(|method| *method as u8 == tag);
                Some(known.ok_or(Error::value("method", byte))?)
            }
        };
        if byte & !(METHOD_MASK | RELATIVE | AGGREGATED) != 0 {
            return Err(Error::value("method", byte));
        }
        let mut amount = |what| {
            let amount = f64::from_le_bytes(reader.array(what)?);
            let fits = amount.is_finite() && amount >= 0.0;
            if fits { Ok(amount) } else { Err(Error::value(what, amount.to_bits())) }
        };
        let (bound, achieved) = (amount("bound")?, amount("achieved error")?);
        let bound =
            if byte & RELATIVE == 0 { Tolerance::Absolute(bound) } else { Tolerance::Relative(bound) };
        let aggregation = (byte & AGGREGATED != 0).then(|| Aggregation::take(reader)).transpose()?;
        Ok(Self { aggregation, method, bound, achieved })
    }
}

impl Aggregation {
    fn take(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let step = reader.varint("step")?;
        let step = i64::try_from(step).ok().filter(|step| *step > 0).ok_or(Error::value("step", step))?;
        let how = reader.byte("aggregate")?;
        let known = Aggregate::ALL.into_iter().find(|known| *known as u8 == how);
        Ok(Self { step, how: known.ok_or(Error::value("aggregate", how))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINEAR: Loss = Loss {
        aggregation: None,
        method: Some(Method::Linear),
        bound: Tolerance::Absolute(0.5),
        achieved: 0.25,
    };

    #[test]
    fn a_loss_is_decoded_as_encoded() {
        let aggregation = Some(Aggregation { step: 60_000_000_000, how: Aggregate::Last });
        let relative = Loss { aggregation, method: None, bound: Tolerance::Relative(0.0), achieved: 0.0 };
        for loss in [LINEAR, relative] {
            let mut bytes = vec![];
            loss.put(&mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(Loss::take(&mut reader), Ok(loss));
            assert_eq!(reader.end("loss"), Ok(()));
        }
    }

    #[test]
    fn a_loss_covers_another_of_the_same_kind() {
        let worse = Loss {
            method: Some(Method::Rounding),
            achieved: 0.75,
            bound: Tolerance::Absolute(1.0),
            ..LINEAR
        };
        assert_eq!(LINEAR.cover(worse), Some(worse));
        assert_eq!(worse.cover(LINEAR), Some(worse));
        assert_eq!(LINEAR.cover(Loss { bound: Tolerance::Relative(1.0), ..worse }), None);
        let aggregation = Some(Aggregation { step: 1, how: Aggregate::Avg });
        assert_eq!(LINEAR.cover(Loss { aggregation, ..worse }), None);
    }

    #[test]
    fn a_relative_error_is_converted_to_an_absolute_one() {
        assert_eq!(LINEAR.error_max(1e9), 0.25);
        let percent = Loss { bound: Tolerance::Relative(0.5), achieved: 0.2, ..LINEAR };
        assert_eq!(percent.error_max(80.0), 20.0);
    }
}
