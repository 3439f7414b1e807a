//! What goes in comes out, bit for bit: every type, every awkward value, any valid segment.

mod common;

use common::{block, column, operations, segment, word};
use proptest::prelude::*;
use tacho_chunk::{Chunk, Sum, ValueColumn, Values, encode_entries, encode_executions, encode_samples};
use tacho_model::{Body, Entry, Kind, Value};

/// Encodes samples and decodes them again; returns the header of the chunk.
fn samples(at: &[i64], values: &ValueColumn) -> tacho_chunk::Header {
    let bytes = encode_samples(at, values.as_values());
    let chunk = Chunk::open(&bytes).unwrap();
    let read = chunk.samples().unwrap();
    assert_eq!((read.at.as_slice(), &read.values), (at, values));
    let header = chunk.header();
    assert_eq!((header.kind, header.count, header.bytes), (Kind::Sample, at.len(), bytes.len()));
    assert_eq!(Some(&header.start), at.iter().min());
    assert_eq!(Some(&header.end), at.iter().max());
    header.clone()
}

fn typed(words: &[u64]) -> [ValueColumn; 3] {
    [
        ValueColumn::F64(words.iter().map(|w| f64::from_bits(*w)).collect()),
        ValueColumn::I64(words.iter().map(|w| w.cast_signed()).collect()),
        ValueColumn::U64(words.to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn samples_of_every_type(words in column(), first in any::<i64>(), steps in column()) {
        let times = std::iter::successors(Some((first, 0)), |(at, n)| {
            Some((at.wrapping_add(steps[n % steps.len()].cast_signed() % 1_000_000_007), n + 1))
        });
        let at: Vec<i64> = times.map(|(at, _)| at).take(words.len()).collect();
        for values in typed(&words) {
            let header = samples(&at, &values);
            let stats = header.stats.unwrap();
            prop_assert_eq!(Some(stats.first), values.get(0));
            prop_assert_eq!(Some(stats.last), values.get(values.len() - 1));
        }
    }

    #[test]
    fn entries_of_both_forms(entries in prop::collection::vec((any::<i64>(), any::<bool>(), ".{0,30}"), 1..80)) {
        let entry = |(at, text, body): (i64, bool, String)| Entry {
            at,
            body: if text { Body::Text(body.into()) } else { Body::Bytes(body.into_bytes().into()) },
        };
        let mut entries: Vec<Entry> = entries.into_iter().map(entry).collect();
        entries.push(Entry { at: 0, body: Body::Bytes(vec![0xff, 0, 0xfe].into()) });
        let bytes = encode_entries(&entries);
        prop_assert_eq!(Chunk::open(&bytes).unwrap().entries().unwrap(), entries);
    }

    #[test]
    fn any_valid_segment(segments in prop::collection::vec(segment(5), 1..30)) {
        let operations = operations(5);
        let block = block(&segments, &operations);
        let bytes = encode_executions(&block);
        let chunk = Chunk::open(&bytes).unwrap();
        let read = chunk.executions().unwrap();
        prop_assert_eq!(&read, &block);
        let header = chunk.header();
        prop_assert_eq!((header.start, header.end), (block.range().start, block.range().end));
        prop_assert_eq!(header.count, segments.iter().map(|s| s.calls_completed()).sum::<usize>());
        for (number, segment) in segments.iter().enumerate() {
            let mut own = read.segment(number);
            prop_assert_eq!(own.check(read.operations().len()), Ok(()));
            // The block has its own numbers for operations; their names must be the same.
            for (a, b) in own.events.iter_mut().zip(&segment.events) {
                if let (tacho_model::EventKind::Enter(x), tacho_model::EventKind::Enter(y)) = (a.kind, b.kind) {
                    prop_assert_eq!(&read.operations()[x as usize], &operations[y as usize]);
                }
                a.kind = b.kind;
            }
            for (a, b) in own.carried.iter_mut().zip(&segment.carried) {
                prop_assert_eq!(&read.operations()[a.operation as usize], &operations[b.operation as usize]);
                a.operation = b.operation;
            }
            prop_assert_eq!(&own, segment);
        }
    }

    #[test]
    fn one_sample(at in any::<i64>(), word in word()) {
        for values in typed(&[word]) {
            samples(&[at], &values);
        }
    }
}

#[test]
fn awkward_floats_survive() {
    let values = vec![f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001), -0.0, 0.0, f64::INFINITY];
    let header = samples(&[5, 5, 4, i64::MIN, i64::MAX, 0], &ValueColumn::F64(values));
    assert_eq!((header.start, header.end), (i64::MIN, i64::MAX));
    let stats = header.stats.unwrap();
    assert_eq!((stats.count, stats.min, stats.max), (3, Value::F64(-0.0), Value::F64(f64::INFINITY)));
    assert_eq!(stats.sum, Sum::F64(f64::INFINITY));
    assert_eq!((stats.first, stats.last), (Value::F64(f64::NAN), Value::F64(f64::INFINITY)));
}

#[test]
fn nothing_but_nan_has_no_extremes() {
    let stats = samples(&[1, 2], &ValueColumn::F64(vec![f64::NAN; 2])).stats.unwrap();
    assert_eq!((stats.count, stats.sum), (0, Sum::F64(0.0)));
    assert_eq!((stats.min, stats.max), (Value::F64(f64::NAN), Value::F64(f64::NAN)));
}

#[test]
fn integers_are_exact() {
    let odd = (1 << 53) + 1;
    let stats = samples(&[1, 2, 3], &ValueColumn::U64(vec![u64::MAX, odd, u64::MAX])).stats.unwrap();
    assert_eq!((stats.min, stats.max), (Value::U64(odd), Value::U64(u64::MAX)));
    assert_eq!(stats.sum, Sum::Integer(i128::from(u64::MAX) * 2 + i128::from(odd)));
    let stats = samples(&[1, 2], &ValueColumn::I64(vec![i64::MIN; 2])).stats.unwrap();
    assert_eq!(stats.sum, Sum::Integer(i128::from(i64::MIN) * 2));
}

#[test]
fn a_reader_of_the_wrong_kind_is_told() {
    let bytes = encode_samples(&[1], Values::U64(&[1]));
    let error = Chunk::open(&bytes).unwrap().entries().unwrap_err();
    assert_eq!(error.to_string(), "chunk holds sample records, entry were asked for");
}

#[test]
fn the_largest_segment_fits() {
    use tacho_model::{Carried, Event, EventKind, Segment, TraceId, limits};
    let half = limits::SEGMENT_EVENTS_MAX / 2;
    let enters = (0..half).map(|n| Event { delta: n as u64, kind: EventKind::Enter(n as u32 % 3) });
    let exits = (0..half).map(|n| Event { delta: n as u64 % 7, kind: EventKind::Exit });
    let carried = |n: usize| Carried { operation: 1, call: n as u32, age: n as u64 };
    let segment = Segment {
        trace: TraceId(9),
        base: 1,
        part: 1,
        parent: None,
        thread: "".into(),
        start: 0,
        carried: (0..limits::SEGMENT_CARRIED_MAX).map(carried).collect(),
        first_call: limits::SEGMENT_CARRIED_MAX as u32,
        events: enters.chain(exits).collect(),
        attributes: vec![],
    };
    let block = block(&[segment.clone(), segment], &operations(3));
    let bytes = encode_executions(&block);
    assert_eq!(Chunk::open(&bytes).unwrap().executions().unwrap(), block);
}

#[test]
fn any_number_of_attribute_keys_fits() {
    use tacho_model::{Attribute, AttributeValue, limits};
    let value = |n: usize| match n % 3 {
        0 => AttributeValue::Integer(n as i64),
        1 => AttributeValue::Text(format!("value {n}").into()),
        _ => AttributeValue::Text(common::web::uuid_text(n as u128).into()),
    };
    let attribute = |n: usize| Attribute { call: 0, key: format!("key{n}").into(), value: value(n) };
    let mut segment = common::web::requests(1, 1).remove(0);
    segment.attributes = (0..limits::SEGMENT_ATTRIBUTES_MAX).map(attribute).collect();
    let block = block(&[segment.clone(), segment], &common::web::operations());
    let bytes = encode_executions(&block);
    let chunk = Chunk::open(&bytes).unwrap();
    assert_eq!(chunk.executions().unwrap(), block);
    assert!(chunk.header().columns.len() < 2_000, "{} columns", chunk.header().columns.len());
}
