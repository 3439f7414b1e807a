//! How do the columns of a group become one chunk?
//!
//! This file and `chunk.rs` use each other: this file writes the prefix with the constants that `chunk.rs` checks, and
//! `chunk.rs` reads columns with `read.rs`, which uses the flag bits defined here.

use tacho_model::{Kind, Timestamp, ValueType};

use super::STEP;
use super::numbers::{RAW, decimals, put_stats, put_value};
use crate::bytes::put_varint;
use crate::chunk::{GROUP_PREFIX_BYTES, GROUP_VERSION, MAGIC};
use crate::codec::{self, Numbers};
use crate::encoding::form;
use crate::limits::{CHUNK_RECORDS_MAX, GROUP_MEMBERS_MAX};
use crate::stats::{Stats, from_word};
use crate::times::regular_step;
use crate::values::Values;
use crate::{Encoding, Loss, verify};

/// In the flags of a column: the bit of a lossy column, the bit of a column with equal values, and the position of the number of
/// decimals.
pub(super) const LOSSY: u8 = 1 << 2;
pub(super) const UNIFORM: u8 = 1 << 3;
pub(super) const DECIMALS_SHIFT: u8 = 4;

/// The values of one member, one per time.
#[derive(Clone, Copy, Debug)]
pub struct GroupColumn<'a> {
    /// Index of the series in its group, below [`GROUP_MEMBERS_MAX`].
    pub member: u16,
    pub values: Values<'a>,
    /// The loss that the values already have; `None` if they are lossless.
    pub loss: Option<Loss>,
}

/// Encodes samples that share their times. `time_error_max` is the largest difference between a time in `at` and the recorded
/// time, in ns; 0 if all times are exact.
///
/// # Panics
/// If there are no times, more than [`CHUNK_RECORDS_MAX`], or times that are not strictly ascending. If there are no
/// members, or members that are not ascending or not below [`GROUP_MEMBERS_MAX`]. If a column and the times differ in
/// length.
pub fn encode_group(
    at: &[Timestamp],
    time_error_max: u64,
    columns: &[GroupColumn<'_>],
    encoding: &Encoding,
) -> Vec<u8> {
    encode_group_by(at, time_error_max, columns, encoding, |_| *encoding)
}

/// Like [`encode_group`], with `of(n)` as the encoding of `columns[n]`, and a separate encoding for the times.
///
/// # Panics
/// Like [`encode_group`].
pub fn encode_group_by(
    at: &[Timestamp],
    time_error_max: u64,
    columns: &[GroupColumn<'_>],
    times: &Encoding,
    of: impl Fn(usize) -> Encoding,
) -> Vec<u8> {
    check(at, columns);
    let mut header = Fields::default();
    header.times(at, time_error_max, times);
    put_varint(&mut header.fields, columns.len() as u64);
    let mut next = 0;
    for (n, column) in columns.iter().enumerate() {
        put_varint(&mut header.fields, u64::from(column.member - next));
        next = column.member + 1;
        header.values(column, &of(n));
    }
    let bytes = header.finish();
    verify::group(&bytes, at, columns);
    bytes
}

fn check(at: &[Timestamp], columns: &[GroupColumn<'_>]) {
    assert!(
        (1..=CHUNK_RECORDS_MAX).contains(&at.len()),
        "a chunk must have 1 to {CHUNK_RECORDS_MAX} times, got {}",
        at.len()
    );
    assert!(at.is_sorted_by(|a, b| a < b), "times of a group must ascend strictly");
    assert!(
        (1..=GROUP_MEMBERS_MAX).contains(&columns.len()),
        "a group must have 1 to {GROUP_MEMBERS_MAX} columns, got {}",
        columns.len()
    );
    assert!(columns.is_sorted_by(|a, b| a.member < b.member), "members of a group must ascend strictly");
    for column in columns {
        assert!(
            usize::from(column.member) < GROUP_MEMBERS_MAX,
            "a member must be below {GROUP_MEMBERS_MAX}, got {}",
            column.member
        );
        assert_eq!(
            column.values.len(),
            at.len(),
            "member {} must have one value for each time",
            column.member
        );
    }
}

#[derive(Default)]
struct Fields {
    fields: Vec<u8>,
    body: Vec<u8>,
}

impl Fields {
    fn times(&mut self, at: &[Timestamp], time_error_max: u64, encoding: &Encoding) {
        let (start, end) = (at.first().copied().unwrap_or_default(), at.last().copied().unwrap_or_default());
        put_varint(&mut self.fields, at.len() as u64);
        self.fields.extend_from_slice(&start.to_le_bytes());
        put_varint(&mut self.fields, end.abs_diff(start));
        put_varint(&mut self.fields, time_error_max);
        if regular_step(at).is_some() {
            return self.fields.push(STEP);
        }
        let offsets: Vec<u64> = at.iter().map(|at| at.abs_diff(start)).collect();
        self.column(&offsets, ValueType::U64, encoding);
    }

    fn values(&mut self, column: &GroupColumn<'_>, encoding: &Encoding) {
        let (words, kind) = (column.values.words(), column.values.value_type());
        let lossy = if column.loss.is_some() { LOSSY } else { 0 };
        match words.split_first() {
            Some((first, rest))
                if encoding.codecs.has(form::UNIFORM) && rest.iter().all(|word| word == first) =>
            {
                let value = from_word(*first, kind);
                let decimals = decimals(&[value]);
                self.fields.push(kind as u8 | lossy | UNIFORM | decimals << DECIMALS_SHIFT);
                put_value(&mut self.fields, value, decimals);
            }
            _ => {
                let stats = Stats::of(column.values);
                let decimals = match kind == ValueType::F64 && !encoding.codecs.has(form::DECIMALS) {
                    true => RAW,
                    false => decimals(&[stats.min, stats.max, stats.first, stats.last]),
                };
                self.fields.push(kind as u8 | lossy | decimals << DECIMALS_SHIFT);
                self.column(&words, kind, encoding);
                put_stats(&mut self.fields, &stats, words.len(), decimals);
            }
        }
        if let Some(loss) = &column.loss {
            loss.put(&mut self.fields);
        }
    }

    /// Writes `u8 codec`, `varint bytes`, `u32 crc` to the header, and the bytes to the body.
    fn column(&mut self, words: &[u64], kind: ValueType, encoding: &Encoding) {
        let encoded = codec::encode(Numbers { words, kind }, 0, encoding);
        self.fields.push(encoded.codec);
        put_varint(&mut self.fields, encoded.bytes.len() as u64);
        self.fields.extend_from_slice(&crc32c::crc32c(&encoded.bytes).to_le_bytes());
        self.body.extend_from_slice(&encoded.bytes);
    }

    fn finish(self) -> Vec<u8> {
        let fields_bytes = u32::try_from(self.fields.len()).unwrap_or(u32::MAX);
        let mut out = Vec::with_capacity(GROUP_PREFIX_BYTES + self.fields.len() + self.body.len());
        out.extend_from_slice(MAGIC);
        out.extend([GROUP_VERSION, Kind::Sample as u8, 0, 0]);
        out.extend_from_slice(&fields_bytes.to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&out), &self.fields);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&self.fields);
        out.extend_from_slice(&self.body);
        out
    }
}
