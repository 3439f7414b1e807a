//! Counts and checksums of records, to compare two sets of records.
//!
//! The checksum is the sum, modulo 2^64, of the XXH3-64 of each record with its series, time and value. It does not depend
//! on the order of records: equal sets have equal sums. It detects loss, duplicates and rounding, but not manipulation by
//! an adversary.

use serde::{Deserialize, Serialize};
use tacho_model::{Body, Entry, Sample, SeriesId, Timestamp, Value};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub count: u64,
    #[serde(with = "hexadecimal")]
    pub sum: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    #[serde(flatten)]
    pub tally: Tally,
    /// `None`: the series has no retention limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

/// Records before `before` are expired, because they are older than `keep_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    pub keep_ns: u64,
    pub before: Timestamp,
}

/// The form of a record: a prefix of its hashed bytes.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Form {
    F64 = 1,
    I64 = 2,
    U64 = 3,
    Text = 4,
    Bytes = 5,
}

impl Tally {
    pub fn sample(&mut self, id: SeriesId, sample: &Sample) {
        self.take(sample_hash(id, sample));
    }

    pub fn entry(&mut self, id: SeriesId, entry: &Entry) {
        self.take(entry_hash(id, entry));
    }

    pub fn take(&mut self, hash: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(hash);
    }

    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// The tally of the records that were added after `before` was copied.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { count: self.count - before.count, sum: self.sum.wrapping_sub(before.sum) }
    }
}

pub fn entry_hash(id: SeriesId, entry: &Entry) -> u64 {
    let form = match entry.body {
        Body::Text(_) => Form::Text,
        Body::Bytes(_) => Form::Bytes,
    };
    let place = xxh3_64(&head(id, form, entry.at, 0));
    xxh3_64_with_seed(entry.body.as_bytes(), place)
}

pub fn sample_hash(id: SeriesId, sample: &Sample) -> u64 {
    let (form, bits) = match sample.value {
        Value::F64(value) => (Form::F64, value.to_bits()),
        Value::I64(value) => (Form::I64, value.cast_unsigned()),
        Value::U64(value) => (Form::U64, value),
    };
    xxh3_64(&head(id, form, sample.at, bits))
}

fn head(id: SeriesId, form: Form, at: Timestamp, bits: u64) -> [u8; 33] {
    let mut out = [form as u8; 33];
    out[1..17].copy_from_slice(&id.to_bytes());
    out[17..25].copy_from_slice(&at.to_le_bytes());
    out[25..].copy_from_slice(&bits.to_le_bytes());
    out
}

/// (De)serializes a checksum as hexadecimal text, because not all JSON parsers read 64-bit integers exactly.
mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(sum: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{sum:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map_err(|_| D::Error::custom(format!("{text:?} is not a checksum")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_depends_on_all_fields_but_not_on_the_order() {
        let id = SeriesId(7);
        let sample = |at, value| Sample { at, value };
        let tally = |list: &[Sample]| {
            let mut tally = Tally::default();
            list.iter().for_each(|sample| tally.sample(id, sample));
            tally
        };
        let (a, b) = (sample(1, Value::F64(1.0)), sample(2, Value::F64(2.0)));
        assert_eq!(tally(&[a, b]), tally(&[b, a]));
        let others = [
            sample(2, Value::F64(1.0)),
            sample(1, Value::I64(1)),
            sample(1, Value::U64(1)),
            sample(1, Value::F64(-1.0)),
        ];
        for other in others {
            assert_ne!(tally(&[a]).sum, tally(&[other]).sum, "{other:?}");
        }
        let mut elsewhere = Tally::default();
        elsewhere.sample(SeriesId(8), &a);
        assert_ne!(tally(&[a]), elsewhere);
        let entry = |body| {
            let mut tally = Tally::default();
            tally.entry(id, &Entry { at: 1, body });
            tally.sum
        };
        assert_ne!(entry(Body::Text("a".into())), entry(Body::Bytes(b"a"[..].into())));
    }

    #[test]
    fn sums_survive_json() {
        let tally = Tally { count: 3, sum: u64::MAX - 5 };
        let text = serde_json::to_string(&tally).unwrap();
        assert_eq!(text, r#"{"count":3,"sum":"fffffffffffffffa"}"#);
        assert_eq!(serde_json::from_str::<Tally>(&text).unwrap(), tally);
    }
}
