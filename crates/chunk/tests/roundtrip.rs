//! Decoding returns exactly the encoded records: every type, edge cases of values, any valid segment.

mod common;

use common::{block, column, operations, word};
use proptest::prelude::*;
use tacho_chunk::{
    AttributeData, CallSummary, Checked, Chunk, Encoding, ExecutionBlock, GroupColumn, Header, REQUEST_ID,
    RowRef, Stats, Sum, ValueColumn, Values, encode_entries, encode_executions, encode_group,
};
use tacho_model::{Body, Entry, Kind, TimeRange, Value};

/// Encodes samples of these members and decodes each member separately. Returns the header of the chunk.
fn group(at: &[i64], members: &[(u16, ValueColumn)]) -> Header {
    let column = |(member, values): &'_ (u16, ValueColumn)| (*member, values.clone());
    let owned: Vec<(u16, ValueColumn)> = members.iter().map(column).collect();
    let columns: Vec<GroupColumn<'_>> = owned
        .iter()
        .map(|(member, values)| GroupColumn { member: *member, values: values.as_values(), loss: None })
        .collect();
    let bytes = encode_group(at, 0, &columns, &Encoding::default());
    let chunk = Chunk::open(&bytes).unwrap();
    let times = chunk.times().unwrap();
    assert_eq!(times.to_vec(), at);
    for (member, values) in members {
        assert_eq!(chunk.values(*member).unwrap().as_ref(), Some(values));
        let stats = chunk.header().member(*member).unwrap().stats;
        assert_eq!((Some(stats.first), Some(stats.last)), (values.get(0), values.get(values.len() - 1)));
    }
    members.iter().step_by(2).for_each(|(member, values)| parts(&bytes, at, (*member, values)));
    let header = chunk.header();
    assert_eq!((header.kind, header.count, header.bytes), (Kind::Sample, at.len(), bytes.len()));
    assert_eq!((Some(&header.start), Some(&header.end)), (at.first(), at.last()));
    assert_eq!((header.time_error_max, header.members.len()), (0, members.len()));
    header.clone()
}

/// Reads one member from the parts of a chunk that this member needs. Checks that these parts have no columns of other members.
/// Also checks that the parts for a time range without samples have no columns of values.
fn parts(bytes: &[u8], at: &[i64], (wanted, values): (u16, &ValueColumn)) {
    let gathered = |range| {
        let parts = Chunk::parts(bytes, range, |member| member == wanted).unwrap();
        assert_eq!(
            Chunk::parts(&bytes[..parts[0].start + 9], range, |_| true),
            None,
            "parts were found although the header is cut off"
        );
        let all: Vec<u8> = parts.into_iter().flat_map(|part| bytes[part].to_vec()).collect();
        let open = |all: &[u8]| {
            let chunk = Chunk::open_parts(all, bytes.len(), range, |member| member == wanted);
            chunk.map(Chunk::into_header)
        };
        assert!(open(&all[..all.len() - 1]).is_err());
        let header = open(&all).unwrap();
        let chunk = Chunk::reopen(&all, &header).unwrap();
        let others = header.members.iter().filter(|info| info.member != wanted && info.bytes > 0);
        others.for_each(|info| {
            assert!(chunk.values(info.member).is_err(), "a column that was not read has values")
        });
        (chunk.values(wanted), chunk.times().map(|times| times.to_vec()), all.len())
    };
    let (read, times, _) = gathered(TimeRange::ALL);
    assert_eq!((read.unwrap().as_ref(), times.as_deref()), (Some(values), Ok(at)));
    let last = at.last().copied().unwrap_or(0);
    if last < i64::MAX {
        let whole = Chunk::open(bytes).unwrap();
        let columns: usize = whole.header().members.iter().map(|info| info.bytes).sum();
        let (_, _, length) = gathered(TimeRange::new(last + 1, i64::MAX));
        assert!(length <= bytes.len() - columns, "columns were read although the range has no samples");
    }
}

/// Encodes and decodes a group of one member. Returns its statistics.
fn samples(at: &[i64], values: &ValueColumn) -> Stats {
    group(at, &[(0, values.clone())]).members[0].stats
}

/// At most `count` strictly ascending times; fewer if the next time would overflow. `steps` is repeated and determines the
/// differences, each from 1 to 2^52.
fn ascending(first: i64, steps: &[u64], count: usize) -> Vec<i64> {
    let step = |n: usize| (steps[n % steps.len()] % (1 << 52)) as i64 + 1;
    let next = |(at, n): (i64, usize)| Some((at.checked_add(step(n))?, n + 1));
    std::iter::successors(Some((first, 0)), |state| next(*state)).map(|(at, _)| at).take(count).collect()
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
    fn samples_of_every_type_round_trip(words in column(), first in any::<i64>(), steps in column(), regular in any::<bool>()) {
        let steps = if regular { &steps[..1] } else { &steps[..] };
        let at = ascending(first, steps, words.len());
        for values in typed(&words[..at.len()]) {
            samples(&at, &values);
        }
    }

    #[test]
    fn members_of_a_group_round_trip(
        columns in prop::collection::btree_map(0u16..64, (column(), 0usize..3), 1..12),
        steps in column(),
    ) {
        let count = columns.values().map(|(words, _)| words.len()).min().unwrap();
        let at = ascending(-5, &steps, count);
        let member = |(member, (words, kind)): (&u16, &(Vec<u64>, usize))| (*member, typed(&words[..count])[*kind].clone());
        let members: Vec<(u16, ValueColumn)> = columns.iter().map(member).collect();
        let header = group(&at, &members);
        let read: Vec<u16> = header.members.iter().map(|info| info.member).collect();
        prop_assert_eq!(read, columns.keys().copied().collect::<Vec<_>>());
    }

    #[test]
    fn entries_of_both_forms_round_trip(entries in prop::collection::vec((any::<i64>(), any::<bool>(), ".{0,30}"), 1..80)) {
        let entry = |(at, text, body): (i64, bool, String)| Entry {
            at,
            body: if text { Body::Text(body.into()) } else { Body::Bytes(body.into_bytes().into()) },
        };
        let mut entries: Vec<Entry> = entries.into_iter().map(entry).collect();
        entries.push(Entry { at: 0, body: Body::Bytes(vec![0xff, 0, 0xfe].into()) });
        let bytes = encode_entries(&entries, &Encoding::default());
        prop_assert_eq!(Chunk::open(&bytes).unwrap().entries().unwrap(), entries);
    }

    #[test]
    fn any_valid_segment_round_trips(segments in common::called(5)) {
        let operations = operations(5);
        let block = block(&segments, &operations);
        let bytes = encode_executions(&block);
        let chunk = Chunk::open(&bytes).unwrap();
        let read = chunk.executions().unwrap();
        prop_assert_eq!(&read, &block);
        let mut copied = ExecutionBlock::new();
        read.rows().for_each(|row| copied.push_row(row));
        let callers = |block: &ExecutionBlock| block.rows().map(|row| row.caller().cloned()).collect::<Vec<_>>();
        prop_assert_eq!(callers(&copied), callers(&block));
        let summary = CallSummary::of(&block).unwrap();
        let again = CallSummary::decode(&summary.encode(), summary.operations.clone(), summary.callers.clone());
        prop_assert_eq!(again, Ok(summary));
        let traces: Vec<_> = block.rows().map(|row| row.trace()).collect();
        prop_assert_eq!(&chunk.execution_traces().unwrap(), &traces);
        prop_assert_eq!(chunk.check(), Ok(Checked::default()));
        let front_bytes = Chunk::front_bytes(&bytes).unwrap();
        let front = Chunk::open_front(&bytes[..front_bytes], bytes.len()).unwrap();
        prop_assert_eq!(front.header(), chunk.header());
        let filters = front.filters().unwrap().unwrap();
        prop_assert!(traces.iter().all(|trace| filters.may_have_trace(*trace)));
        for attribute in segments.iter().flat_map(|s| &s.attributes).filter(|a| &*a.key == REQUEST_ID) {
            prop_assert!(filters.may_have_request(&AttributeData::new(&attribute.value)));
        }
        for key in segments.iter().flat_map(|s| &s.attributes).map(|a| &*a.key).chain(["", "absent"]) {
            let of_key = segments.iter().flat_map(|s| &s.attributes).filter(|a| &*a.key == key);
            let values: Vec<AttributeData> = of_key.map(|a| AttributeData::new(&a.value)).collect();
            for value in values.iter().map(Some).chain([None]) {
                let takes = |found: &AttributeData| value.is_none_or(|value| value == found);
                let has_it = |row: RowRef<'_>| row.attributes().any(|a| &**a.key == key && takes(a.value));
                let expected: Vec<bool> = block.rows().map(has_it).collect();
                let found = chunk.segments_with(key, &takes).unwrap();
                prop_assert_eq!(found.is_empty() || found == expected, true);
                prop_assert_eq!(found.contains(&true), expected.contains(&true));
                let selected = chunk.selected_executions(&expected).unwrap();
                let kept = block.rows().zip(&expected).filter(|(_, kept)| **kept).map(|(row, _)| row);
                let facts = |row: RowRef<'_>| (row.to_segment(), row.caller().cloned());
                prop_assert_eq!(selected.operations(), block.operations());
                prop_assert_eq!(selected.rows().map(facts).collect::<Vec<_>>(), kept.map(facts).collect::<Vec<_>>());
            }
            prop_assert!(!chunk.segments_with(key, &|_| false).unwrap().contains(&true));
        }
        let header = chunk.header();
        prop_assert_eq!((header.start, header.end), (block.range().start, block.range().end));
        prop_assert_eq!(header.count, segments.iter().map(|s| s.calls_completed()).sum::<usize>());
        for (number, segment) in segments.iter().enumerate() {
            let mut own = read.segment(number);
            prop_assert_eq!(own.check(read.operations().len()), Ok(()));
            // The block has its own numbers for operations, so the operations are compared instead of their numbers.
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
    fn one_sample_round_trips(at in any::<i64>(), word in word()) {
        for values in typed(&[word]) {
            samples(&[at], &values);
        }
    }
}

#[test]
fn special_floats_are_decoded_as_encoded() {
    let values = vec![f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001), -0.0, 0.0, f64::INFINITY];
    let stats = samples(&[i64::MIN, -7, 0, 1, 5, i64::MAX], &ValueColumn::F64(values));
    assert_eq!((stats.count, stats.min, stats.max), (3, Value::F64(-0.0), Value::F64(f64::INFINITY)));
    assert_eq!(stats.sum, Sum::F64(f64::INFINITY));
    assert_eq!((stats.first, stats.last), (Value::F64(f64::NAN), Value::F64(f64::INFINITY)));
}

#[test]
fn a_column_of_nan_has_no_extremes() {
    for values in [vec![f64::NAN; 2], vec![f64::NAN, -f64::NAN]] {
        let stats = samples(&[1, 2], &ValueColumn::F64(values));
        assert_eq!((stats.count, stats.sum), (0, Sum::F64(0.0)));
        assert_eq!((stats.min, stats.max), (Value::F64(f64::NAN), Value::F64(f64::NAN)));
    }
}

#[test]
fn a_group_of_64_members_is_encoded_and_an_invalid_group_panics() {
    let at = [1, 2, 4];
    let values = ValueColumn::U64(vec![1, 5, 3]);
    let members: Vec<(u16, ValueColumn)> = (0..64).map(|member| (member, values.clone())).collect();
    group(&at, &members);
    let wrong = |members: &[u16], at: &[i64]| {
        let column = |member: &u16| GroupColumn { member: *member, values: values.as_values(), loss: None };
        let columns: Vec<GroupColumn<'_>> = members.iter().map(column).collect();
        let at = at.to_vec();
        let encode = || encode_group(&at, 0, &columns, &Encoding::default());
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(encode)).is_err()
    };
    assert!(wrong(&[64], &at) && wrong(&[], &at) && wrong(&[3, 3], &at) && wrong(&[0], &[1, 2, 2]));
    assert!(wrong(&[0], &[1, 2]) && !wrong(&[63], &at));
}

#[test]
fn a_column_takes_at_most_thirty_bytes_of_the_header() {
    let at: Vec<i64> = (0..8_192).map(|n| n * 10_000_000_000).collect();
    let noise = |n: i64| tacho_model::mix64(n as u64) % 10_000;
    let prices: Vec<f64> = (0..8_192).map(|n| noise(n) as f64 / 100.0).collect();
    let bytes = |members: u16| {
        let column = |member| GroupColumn { member, values: Values::F64(&prices), loss: None };
        let columns: Vec<GroupColumn<'_>> = (0..members).map(column).collect();
        let bytes = encode_group(&at, 0, &columns, &Encoding::default());
        let header = Chunk::open(&bytes).unwrap().header().clone();
        bytes.len() - header.columns().map(|column| column.bytes).sum::<usize>()
    };
    let each = bytes(2) - bytes(1);
    assert!(each <= 30, "a column takes {each} bytes of the header, at most 30 are allowed");
}

#[test]
fn statistics_of_integers_are_exact() {
    let odd = (1 << 53) + 1;
    let stats = samples(&[1, 2, 3], &ValueColumn::U64(vec![u64::MAX, odd, u64::MAX]));
    assert_eq!((stats.min, stats.max), (Value::U64(odd), Value::U64(u64::MAX)));
    assert_eq!(stats.sum, Sum::Integer(i128::from(u64::MAX) * 2 + i128::from(odd)));
    let stats = samples(&[1, 2], &ValueColumn::I64(vec![i64::MIN; 2]));
    assert_eq!(stats.sum, Sum::Integer(i128::from(i64::MIN) * 2));
}

#[test]
fn reading_the_wrong_kind_is_an_error() {
    let column = GroupColumn { member: 0, values: Values::U64(&[1]), loss: None };
    let bytes = encode_group(&[1], 0, &[column], &Encoding::default());
    let error = Chunk::open(&bytes).unwrap().entries().unwrap_err();
    assert_eq!(error.to_string(), "chunk holds sample records, expected entry");
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
fn the_largest_number_of_attribute_keys_fits() {
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
    assert!(chunk.header().columns().count() < 2_000, "{} columns", chunk.header().columns().count());
}
