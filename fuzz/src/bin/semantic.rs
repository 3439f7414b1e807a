//! Semantic compression without aggregation never exceeds its error bounds, for any samples and settings. With and without
//! aggregation, a chunk of the reduced samples decodes to the same times and values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacho_chunk::semantic::{Movement, Reduced, Semantic, apply};
use tacho_chunk::{
    Aggregate, Aggregation, Chunk, Encoding, GroupColumn, Method, Tolerance, ValueColumn, encode_group,
};
use tacho_model::{Value, ValueType};

/// Number of bytes for the settings.
const SETTINGS: usize = 28;
/// Limit on samples. More samples would only slow down one run.
const RECORDS_MAX: usize = 400;

fuzz_target!(|bytes: &[u8]| {
    let Some((settings, records)) = bytes.split_first_chunk::<SETTINGS>() else { return };
    let (kind, semantic) = semantic(settings);
    let (at, words) = samples(records);
    if at.is_empty() {
        return;
    }
    let values = ValueColumn::from_words(words, kind);
    // In three of four inputs the earlier values of the series were those of a gauge, so `apply` may change its values.
    let is_gauge = settings[2] & 0xc0 != 0;
    let life =
        if is_gauge { Movement { changes: 64, descents: 64 } } else { Movement::of(values.as_values()) };
    let Ok(reduced) = apply(&at, values.as_values(), &semantic, &life) else { return };
    if semantic.aggregation.is_none() {
        compare(&at, &values, &reduced, &semantic);
    }
    let column = GroupColumn { member: 0, values: reduced.values.as_values(), loss: reduced.loss };
    let bytes = encode_group(&reduced.at, reduced.time_error_max, &[column], &Encoding::thorough());
    let chunk = Chunk::open(&bytes).unwrap();
    assert_eq!(chunk.times().unwrap().to_vec(), reduced.at);
    assert_eq!(chunk.values(0).unwrap(), Some(reduced.values));
    assert_eq!(chunk.header().members[0].loss, reduced.loss);
});

fn semantic(bytes: &[u8; SETTINGS]) -> (ValueType, Semantic) {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let bound = f64::from_bits(word(4));
    let value = match bytes[0] % 3 {
        0 => None,
        1 => Some(Tolerance::Absolute(bound)),
        _ => Some(Tolerance::Relative(bound)),
    };
    let how = Aggregate::ALL[usize::from(bytes[1]) % Aggregate::ALL.len()];
    let step = word(12).cast_signed();
    let aggregation = (bytes[1] & 0x80 != 0).then_some(Aggregation { step, how });
    let method = Method::ALL[usize::from(bytes[2]) % Method::ALL.len()];
    let kind = [ValueType::F64, ValueType::I64, ValueType::U64][usize::from(bytes[3]) % 3];
    (kind, Semantic { time: word(20), value, method, aggregation })
}

/// Each record of 12 bytes is a time difference and a value. The difference is the number in bytes 1 and 2, shifted left by
/// byte 0 (modulo 40), plus 1. Byte 3 is not used.
fn samples(mut records: &[u8]) -> (Vec<i64>, Vec<u64>) {
    let (mut at, mut words, mut now) = (vec![], vec![], 0i64);
    while let Some((record, rest)) = records.split_first_chunk::<12>().filter(|_| at.len() < RECORDS_MAX) {
        let shift = u32::from(record[0] % 40);
        let step = (u64::from(record[1]) << 8 | u64::from(record[2])) << shift;
        let Some(next) = now.checked_add_unsigned(step + 1) else { break };
        now = next;
        at.push(now);
        words.push(u64::from_le_bytes(record[4..].try_into().unwrap()));
        records = rest;
    }
    (at, words)
}

/// Error of a value in its unit: 0 if both are equal bit for bit, infinite if they differ and one of them is not finite.
fn difference(before: Value, after: Value) -> f64 {
    match (before, after) {
        (Value::F64(a), Value::F64(b)) if a.to_bits() == b.to_bits() => 0.0,
        (Value::F64(a), Value::F64(b)) if a.is_finite() && b.is_finite() => (a - b).abs(),
        (Value::I64(a), Value::I64(b)) => a.abs_diff(b) as f64,
        (Value::U64(a), Value::U64(b)) => a.abs_diff(b) as f64,
        _ => f64::INFINITY,
    }
}

fn compare(at: &[i64], values: &ValueColumn, reduced: &Reduced, semantic: &Semantic) {
    assert!(reduced.at.is_sorted_by(|a, b| a < b) && reduced.at.len() == at.len());
    let error = at.iter().zip(&reduced.at).map(|(a, b)| a.abs_diff(*b)).max();
    assert_eq!(error, Some(reduced.time_error_max));
    assert!(reduced.time_error_max <= semantic.time);
    assert!(reduced.at.first() == at.first() && reduced.at.last() <= at.last());
    for (before, after) in values.iter().zip(reduced.values.iter()) {
        let difference = difference(before, after);
        let allowed = match semantic.value {
            None => 0.0,
            Some(Tolerance::Absolute(bound)) => bound,
            Some(Tolerance::Relative(share)) => share * before.as_f64().abs(),
        };
        assert!(
            difference == 0.0 || difference <= allowed,
            "{before:?} became {after:?}, a difference of {allowed} is allowed"
        );
    }
    assert!(reduced.loss.is_none_or(|loss| loss.achieved <= loss.bound.amount()));
}
