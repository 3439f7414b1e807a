//! The three kinds of record, and the types of two kinds: samples (numbers) and entries (texts or byte strings).

use crate::Timestamp;

/// The three kinds of record. The discriminants are stored on disk (`docs/format/keys.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    Sample = 1,
    Entry = 2,
    Execution = 3,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Sample, Self::Entry, Self::Execution];

    /// Name in label values and in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::Entry => "entry",
            Self::Execution => "execution",
        }
    }

    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Sample),
            2 => Some(Self::Entry),
            3 => Some(Self::Execution),
            _ => None,
        }
    }
}

/// A number, exact in its own type: for example, a `U64` above 2^53 is not rounded.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    F64(f64),
    I64(i64),
    U64(u64),
}

/// The type of a [`Value`]. The discriminants are sent on the wire and stored on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ValueType {
    F64 = 1,
    I64 = 2,
    U64 = 3,
}

impl ValueType {
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::F64),
            2 => Some(Self::I64),
            3 => Some(Self::U64),
            _ => None,
        }
    }
}

impl Value {
    pub const fn value_type(self) -> ValueType {
        match self {
            Self::F64(_) => ValueType::F64,
            Self::I64(_) => ValueType::I64,
            Self::U64(_) => ValueType::U64,
        }
    }

    /// The value in PromQL. Integers above 2^53 or below -2^53 are rounded to the nearest double.
    #[expect(clippy::cast_precision_loss, reason = "PromQL is defined on f64")]
    pub const fn as_f64(self) -> f64 {
        match self {
            Self::F64(v) => v,
            Self::I64(v) => v as f64,
            Self::U64(v) => v as f64,
        }
    }
}

/// Bit-for-bit equality within a type: NaN equals the same NaN, and -0.0 differs from 0.0.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::F64(a), Self::F64(b)) => a.to_bits() == b.to_bits(),
            (Self::I64(a), Self::I64(b)) => a == b,
            (Self::U64(a), Self::U64(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub at: Timestamp,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    Text(Box<str>),
    Bytes(Box<[u8]>),
}

impl Body {
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub at: Timestamp,
    pub body: Body,
}
