//! Records of every kind for tests, benchmarks and examples: arbitrary, or like those of a real program.
#![allow(dead_code, reason = "each test file uses only some of the functions")]

pub mod columns;
pub mod describe;
pub mod logs;
pub mod rng;
pub mod web;

use proptest::prelude::*;
use tacho_chunk::{Encoding, ExecutionBlock, GroupColumn, Values, encode_group, find_callers};
use tacho_model::{
    Attribute, AttributeValue, Carried, Event, EventKind, Operation, OperationKind, Segment, SeriesId,
    SpanId, TraceId, mix64,
};

/// Encodes samples of one series as a group of one member.
pub fn series(at: &[i64], values: Values<'_>) -> Vec<u8> {
    encode_group(at, 0, &[GroupColumn { member: 0, values, loss: None }], &Encoding::default())
}

/// Arbitrary words and likely edge cases of every type.
pub fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => any::<u64>(),
        4 => 0u64..300,
        1 => prop::sample::select(vec![
            0,
            1,
            u64::MAX,
            i64::MAX as u64,
            i64::MIN as u64,
            (1 << 53) + 1,
            f64::NAN.to_bits(),
            f64::NAN.to_bits() | 1,
            (-f64::NAN).to_bits(),
            (-0.0f64).to_bits(),
            f64::INFINITY.to_bits(),
            f64::NEG_INFINITY.to_bits(),
            f64::MIN_POSITIVE.to_bits(),
            9.223_372_036_854_776e18f64.to_bits(),
        ]),
        1 => (-1000i64..1000).prop_map(|n| (n as f64).to_bits()),
    ]
}

/// Arbitrary columns, and columns that suit the specialised codecs.
pub fn column() -> impl Strategy<Value = Vec<u64>> {
    let len = 1usize..400;
    prop_oneof![
        prop::collection::vec(word(), 1..200),
        (word(), len.clone()).prop_map(|(word, len)| vec![word; len]),
        (word(), word(), len.clone()).prop_map(|(first, step, len)| {
            (0..len as u64).map(|n| first.wrapping_add(step.wrapping_mul(n))).collect()
        }),
        (word(), word(), prop::collection::vec(0u64..1000, len.clone())).prop_map(|(base, times, steps)| {
            steps.iter().map(|step| base.wrapping_add(times.wrapping_mul(*step))).collect()
        }),
        (word(), len.clone()).prop_map(|(base, len)| {
            (0..len as u64).map(|n| tacho_model::mix64(base.wrapping_add(n << 24))).collect()
        }),
        prop::collection::vec(prop::sample::select(vec![0, 7, u64::MAX]), len),
    ]
}

pub fn operations(count: u32) -> Vec<Operation> {
    let name = |n| format!("com.example.Größe{n}.run()").into();
    (0..count).map(|n| Operation { kind: OperationKind::Method, name: name(n) }).collect()
}

fn attribute() -> impl Strategy<Value = Attribute> {
    let value = prop_oneof![
        any::<i64>().prop_map(AttributeValue::Integer),
        ".{0,40}".prop_map(|text| AttributeValue::Text(text.into())),
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
            .prop_map(|text| AttributeValue::Text(text.into())),
        "[0-9A-F-]{36}".prop_map(|text| AttributeValue::Text(text.into())),
    ];
    let key = prop::sample::select(vec!["http.status", "request.id", "", "ключ"]);
    (any::<u32>(), key, value).prop_map(|(call, key, value)| Attribute { call, key: key.into(), value })
}

/// Arbitrary segments that pass their check. Their operations are below `operations`.
pub fn segment(operations: u32) -> impl Strategy<Value = Segment> {
    let ids = (1..=u128::MAX, any::<u64>(), any::<u32>(), any::<Option<u64>>(), any::<u32>());
    let time = prop_oneof![0u64..100, 0u64..1 << 40];
    let carried = (0..operations, any::<u32>(), time.clone());
    let events = prop::collection::vec((0u8..5, 0..operations, time), 1..60);
    let lists = (prop::collection::vec(carried, 0..4), events, prop::collection::vec(attribute(), 0..4));
    (ids, lists, "[a-zä]{0,6}", -(1i64 << 50)..1 << 60).prop_map(|(ids, lists, thread, start)| {
        let (trace, base, part, parent, first_call) = ids;
        let (carried, events, attributes) = lists;
        let mut open = carried.len();
        let kind = |(choice, operation)| {
            let kind = match choice {
                3 if open > 0 => EventKind::Exit,
                4 if open > 0 => EventKind::ExitFailed,
                _ => EventKind::Enter(operation),
            };
            open = if matches!(kind, EventKind::Enter(_)) { open + 1 } else { open - 1 };
            kind
        };
        let kinds: Vec<EventKind> = events.iter().map(|(choice, o, _)| (*choice, *o)).map(kind).collect();
        Segment {
            trace: TraceId(trace),
            base,
            part,
            parent: parent.map(SpanId),
            thread: thread.as_str().into(),
            start,
            carried: carried
                .into_iter()
                .map(|(operation, call, age)| Carried { operation, call, age })
                .collect(),
            first_call,
            events: kinds.into_iter().zip(&events).map(|(kind, e)| Event { delta: e.2, kind }).collect(),
            attributes,
        }
    })
}

/// A block of these segments. Only calls of the block itself become callers of its segments.
pub fn block(segments: &[Segment], operations: &[Operation]) -> ExecutionBlock {
    let mut block = ExecutionBlock::new();
    for segment in segments {
        block.push(segment, operations);
    }
    find_callers(&[(SeriesId(u128::MAX - 7), &block)]).iter().for_each(|found| block.set_callers(found));
    block
}

/// Segments, of which some have a call of the first segment as their parent.
pub fn called(operations: u32) -> impl Strategy<Value = Vec<Segment>> {
    let causes = prop::collection::vec(prop::option::of(0u64..4), 30);
    (prop::collection::vec(segment(operations), 1..30), causes).prop_map(|(mut segments, causes)| {
        if let Some((first, others)) = segments.split_first_mut() {
            for (segment, call) in others.iter_mut().zip(causes) {
                let Some(call) = call else { continue };
                segment.trace = first.trace;
                segment.parent =
                    Some(SpanId(mix64(first.base.wrapping_add(first.first_call.into()).wrapping_add(call))));
            }
        }
        segments
    })
}
