//! DATA frames record by record: which records are refused for which reason, and which records are kept. Arbitrary
//! records are encoded and decoded without a change.

use proptest::prelude::*;
use tacho_ingest::Error;
use tacho_ingest::wire::{
    AttributeForm, ClientFrame, Continued, Data, DataFrame, DeclaredRecord, DictFrame, ErrorCode, FieldType,
    FieldValue, Frame, FrameDecoder, Hello, Numbering, RECORD_FIELDS_MAX, RECORD_UNIT_BYTES_MAX, RecordField,
    RecordType, SEQ_FIRST_MAX, SEQ_JUMP_MAX, SegmentRecord, Sequence, Session, TraceForm,
};
use tacho_model::limits::{
    ATTRIBUTE_BYTES_MAX, ENTRY_BYTES_MAX, LABEL_NAME_BYTES_MAX, OPERATION_BYTES_MAX, SEGMENT_ATTRIBUTES_MAX,
    SEGMENT_EVENTS_MAX,
};
use tacho_model::{
    AttributeValue, Body, Entry, Event, EventKind, OperationKind, Sample, SpanId, TraceId, Value,
};

const BASE: i64 = 1_700_000_000_000_000_000;

/// A session whose dictionary has valid and invalid definitions of every kind.
fn session() -> Session {
    let pairs = vec![("service".into(), "shop".into()), ("host".into(), String::new())];
    let hello =
        Hello { version_min: 1, version_max: 1, session: 5 << 64 | 9, pairs, secret: None, token: None };
    let mut session = Session::new(&hello).unwrap();
    let mut frame = DictFrame::new();
    frame.text(1, "main");
    frame.text(2, &"x".repeat(ATTRIBUTE_BYTES_MAX + 1));
    frame.text(3, "key");
    frame.text(4, &"\u{1}".repeat(ATTRIBUTE_BYTES_MAX));
    frame.operation(1, OperationKind::Method, "f()");
    frame.operation(2, OperationKind::Method, &"x".repeat(OPERATION_BYTES_MAX + 1));
    frame.operation(3, OperationKind::Database, "SELECT 1");
    frame.series(1, [("__name__", "good")].into_iter());
    frame.series(2, [("__name__", "bad"), ("a", "1"), ("a", "2")].into_iter());
    for (id, record_type) in (1..).zip(record_types()) {
        frame.record_type(id, &record_type);
    }
    with_body(&frame.finish(), |body| session.define(body).unwrap());
    session
}

/// Record types at and above each limit, and invalid ones. The types 1, 2, 5, 8, 12 and 14 are valid, counted from 1.
fn record_types() -> Vec<RecordType> {
    let field =
        |field_type, name: &str, unit: &str| RecordField { field_type, name: name.into(), unit: unit.into() };
    let of = |name: &str, fields| RecordType { name: name.into(), fields };
    let named = |name: &str| of("t", vec![field(FieldType::Bool, name, "")]);
    let truths = |count| (0..count).map(|i| field(FieldType::Bool, &format!("f{i}"), "")).collect();
    let texts = (0..RECORD_FIELDS_MAX).map(|i| field(FieldType::TextId, &format!("f{i}"), "")).collect();
    let good = [FieldType::Bool, FieldType::I64, FieldType::Text, FieldType::TextId];
    let good = (0..).zip(good).map(|(i, field_type)| field(field_type, &format!("f{i}"), "")).collect();
    vec![
        of("good", good),
        of("at the limit", truths(RECORD_FIELDS_MAX)),
        of("long", truths(RECORD_FIELDS_MAX + 1)),
        of("", vec![]),
        of(&"n".repeat(LABEL_NAME_BYTES_MAX), vec![]),
        of(&"n".repeat(LABEL_NAME_BYTES_MAX + 1), vec![]),
        named(""),
        named(&"f".repeat(LABEL_NAME_BYTES_MAX)),
        named(&"f".repeat(LABEL_NAME_BYTES_MAX + 1)),
        of("t", vec![field(FieldType::Bool, "a", ""), field(FieldType::I64, "a", "s")]),
        named("trace_id"),
        of("t", vec![field(FieldType::Bool, "a", &"u".repeat(RECORD_UNIT_BYTES_MAX))]),
        of("t", vec![field(FieldType::Bool, "a", &"u".repeat(RECORD_UNIT_BYTES_MAX + 1))]),
        of("texts", texts),
    ]
}

/// Passes the body of a whole frame to `take`.
fn with_body<T>(bytes: &[u8], take: impl FnOnce(&[u8]) -> T) -> T {
    let mut decoder = FrameDecoder::new();
    decoder.push(bytes);
    let frame: Frame<'_> = decoder.pull().unwrap().unwrap();
    take(frame.body)
}

fn decode(session: &mut Session, frame: &DataFrame) -> Data {
    with_body(&frame.finish(), |body| session.data(body).unwrap())
}

fn sample(at: i64) -> Sample {
    Sample { at, value: Value::I64(at) }
}

/// Checks a frame with three records. `build` writes the second record, which is refused. The others are valid.
fn check_refused(reason: &str, build: impl FnOnce(&mut DataFrame)) {
    let mut frame = DataFrame::new(1, BASE);
    frame.samples(1, &[sample(BASE)]);
    build(&mut frame);
    frame.samples(1, &[sample(BASE + 1)]);
    let data = decode(&mut session(), &frame);
    let refused: Vec<_> = data.rejects.named.iter().map(|r| (r.record, r.reason.as_str())).collect();
    assert_eq!(refused, [(1, reason)]);
    assert_eq!(data.batch.counts(), [2, 0, 0], "{reason}");
    assert_eq!(data.batch.samples[0].samples, [sample(BASE), sample(BASE + 1)], "{reason}");
}

/// Checks that a record of these bytes is refused. `record` has the bytes after its tag and length.
fn check_raw(reason: &str, tag: u8, record: &[u8]) {
    check_refused(reason, |frame| frame.raw(tag, record));
}

fn check_segment(reason: &str, events: &[EventKind], change: impl FnOnce(&mut SegmentRecord<'_>)) {
    let events: Vec<Event> = events.iter().map(|kind| Event { delta: 0, kind: *kind }).collect();
    let mut segment = SegmentRecord {
        number: 1,
        trace: TraceForm::Own,
        parent: None,
        thread: 1,
        start: BASE,
        continued: None,
        events: &events,
        attributes: &[],
    };
    change(&mut segment);
    check_refused(reason, |frame| frame.segment(&segment));
}

#[test]
fn malformed_records_do_not_affect_others() {
    check_raw("record of unknown tag 9", 9, &[1, 2, 3]);
    check_raw("end of input in a byte at byte 0", 1, &[]);
    check_raw("value type 4 is unknown", 1, &[4, 1, 0]);
    check_raw("series 7 is not defined", 1, &[1, 7, 0]);
    check_raw("label \"a\" is given twice", 1, &[1, 2, 0]);
    check_raw("length beyond the end of the input at byte 2", 1, &[3, 1, 100, 0, 0]);
    check_raw("end of input in a fixed-width field at byte 4", 1, &[1, 1, 1, 0]);
    check_raw("bytes left over at byte 5", 1, &[3, 1, 1, 0, 1, 0]);
    check_raw("text that is not UTF-8 at byte 3", 2, &[1, 0, 0, 1, 0xff]);
    check_raw("body type 2 is unknown", 2, &[1, 0, 2, 0]);
    check_raw("combination of flags 12 is unknown", 3, &[12, 1]);
    check_raw("combination of flags 32 is unknown", 3, &[32, 1]);
    check_raw("thread 9 is not defined", 3, &[0, 1, 9, 0, 1, 1, 1]);
    check_raw("continued segment with part 0 at byte 4", 3, &[1, 1, 1, 0, 0, 0, 0, 1, 0]);
    check_raw("first event with a difference that is not 0 at byte 5", 3, &[0, 1, 1, 0, 1, 3, 1]);
    check_raw("count beyond the end of the input at byte 4", 3, &[0, 1, 1, 0, 50]);
    check_raw("form of an attribute value 4 is unknown", 3, &[16, 1, 1, 0, 1, 1, 1, 1, 0, 3, 4, 0]);
    check_raw("number of more than 32 bits at byte 4", 3, &[1, 1, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x1f, 0]);
    check_raw("trace id is zero", 3, &[[4, 1].as_slice(), &[0; 16], &[1, 0, 1, 1, 1]].concat());
}

#[test]
fn invalid_declared_records_do_not_affect_others() {
    check_raw("record type 99 is not defined", 4, &[99, 1, 0, 0]);
    check_raw("series 7 is not defined", 4, &[1, 7, 0, 0]);
    check_raw("label \"a\" is given twice", 4, &[1, 2, 0, 0]);
    check_raw("combination of flags 16 is unknown", 4, &[1, 1, 0, 16]);
    check_raw("combination of flags 4 is unknown", 4, &[1, 1, 0, 4]);
    check_raw("combination of flags 13 is unknown", 4, &[1, 1, 0, 13]);
    check_raw("trace id is zero", 4, &[[1, 1, 0, 5, 1].as_slice(), &[0; 16], &[0]].concat());
    check_raw("number of more than 32 bits at byte 5", 4, &[1, 1, 0, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x1f]);
    check_raw("end of input in a fixed-width field at byte 4", 4, &[1, 1, 0, 2]);
    check_raw("null bit without a field at byte 4", 4, &[1, 1, 0, 2, 0x10]);
    check_raw("end of input in a byte at byte 4", 4, &[1, 1, 0, 0]);
    check_raw("truth value 2 is unknown", 4, &[1, 1, 0, 0, 2]);
    check_raw("string that is not UTF-8 at byte 6", 4, &[1, 1, 0, 0, 1, 5, 1, 0xff]);
    check_raw("value of a field 9 is not defined", 4, &[1, 1, 0, 0, 1, 5, 0, 9]);
    check_raw("value of a field of 4097 bytes, at most 4096 are allowed", 4, &[1, 1, 0, 0, 1, 5, 0, 2]);
    check_raw("bytes left over at byte 8", 4, &[1, 1, 0, 0, 1, 5, 0, 1, 0]);
    let long = "x".repeat(ATTRIBUTE_BYTES_MAX + 1);
    let values = [FieldValue::Bool(true), FieldValue::I64(0), FieldValue::Text(&long), FieldValue::Null];
    check_declared("value of a field of 4097 bytes, at most 4096 are allowed", 1, &values);
    // 64 texts of 4,096 control characters. Each character takes six bytes of JSON.
    let reason = "entry of more than 1048576 bytes";
    check_declared(reason, 14, &[FieldValue::TextId(4); RECORD_FIELDS_MAX]);
}

fn check_declared(reason: &str, record_type: u64, values: &[FieldValue<'_>]) {
    let record = DeclaredRecord { record_type, series: 1, at: BASE, call: None, values };
    check_refused(reason, |frame| frame.declared(&record));
}

#[test]
fn records_of_invalid_types_are_refused_one_by_one() {
    let keeps = |record_type, values: &[FieldValue<'_>]| {
        let mut frame = DataFrame::new(1, BASE);
        frame.declared(&DeclaredRecord { record_type, series: 1, at: BASE, call: None, values });
        let data = decode(&mut session(), &frame);
        assert!(data.rejects.is_empty(), "{:?}", data.rejects);
    };
    let truth = FieldValue::Bool(true);
    check_declared("record type \"long\" has 65 fields, at most 64 are allowed", 3, &[truth]);
    keeps(2, &[truth; RECORD_FIELDS_MAX]);
    check_declared("record type without a name", 4, &[]);
    keeps(5, &[]);
    let begins = "n".repeat(32);
    let reason =
        format!("the name of the record type has 257 bytes, at most 256 are allowed (begins \"{begins}\")");
    check_declared(&reason, 6, &[]);
    check_declared("record type \"t\": the name of field 1 is empty", 7, &[truth]);
    keeps(8, &[truth]);
    let reason = "record type \"t\": the name of field 1 has 257 bytes, at most 256 are allowed";
    check_declared(reason, 9, &[truth]);
    check_declared("record type \"t\": field \"a\" is given twice", 10, &[truth]);
    check_declared("record type \"t\": a field may not be named \"trace_id\"", 11, &[truth]);
    keeps(12, &[truth]);
    let reason = "record type \"t\": the unit of field \"a\" has 65 bytes, at most 64 are allowed";
    check_declared(reason, 13, &[truth]);
    let mut session = session();
    let names: Vec<String> =
        session.take_record_types().iter().map(|t| t.name.chars().take(9).collect()).collect();
    assert_eq!(names, ["good", "at the li", "nnnnnnnnn", "t", "t", "texts"]);
    assert!(session.take_record_types().is_empty());
    let many: Vec<u8> = [4, 1, 1, b't', 0].repeat(1_030);
    for _ in 0..2 {
        session.define(&many).unwrap();
        assert_eq!((session.take_record_types().len(), session.take_omitted_types()), (1_024, 6));
        assert_eq!((session.take_record_types().len(), session.take_omitted_types()), (0, 0));
    }
    let unknown = [4, 1, 1, b't', 1, 200, 1, b'a', 0];
    session.define(&unknown).unwrap();
    let mut frame = DataFrame::new(1, BASE);
    frame.raw(4, &[1, 1, 0, 0, 1]);
    let reason = &decode(&mut session, &frame).rejects.named[0].reason;
    assert_eq!(reason, "record type \"t\": type 200 of field \"a\" is unknown");
}

#[test]
fn invalid_segments_do_not_affect_other_records() {
    use EventKind::{Enter, Exit};
    check_segment("segment has no events", &[], |_| ());
    check_segment("operation 4 is not defined", &[Enter(4)], |_| ());
    check_segment("operation of 8193 bytes, at most 8192 are allowed", &[Enter(2)], |_| ());
    check_segment("event 2 is an exit but no call is open", &[Enter(1), Exit, Exit], |_| ());
    check_segment("thread of 4097 bytes, at most 4096 are allowed", &[Enter(1)], |s| s.thread = 2);
    check_segment("times of the segment overflow", &[Enter(1)], |s| {
        s.start = i64::MIN;
        s.continued = Some(Continued { part: 1, first_call: 1, carried: &[(1, 0, 1)] });
    });
    check_segment("attribute key 9 is not defined", &[Enter(1)], |s| {
        s.attributes = &[(0, 9, AttributeForm::Integer(1))];
    });
    check_segment("attribute value of 4097 bytes, at most 4096 are allowed", &[Enter(1)], |s| {
        s.attributes = &[(0, 3, AttributeForm::TextId(2))];
    });
}

#[test]
fn the_limit_is_accepted_and_one_past_it_is_refused() {
    use EventKind::Enter;
    let kept = |build: &dyn Fn(&mut DataFrame)| {
        let mut frame = DataFrame::new(1, BASE);
        build(&mut frame);
        let data = decode(&mut session(), &frame);
        assert!(data.rejects.is_empty(), "{:?}", data.rejects);
    };
    let entry = |bytes: usize| Entry { at: BASE, body: Body::Bytes(vec![0; bytes].into()) };
    kept(&|frame| frame.entry(1, &entry(ENTRY_BYTES_MAX)));
    check_refused("entry of 1048577 bytes, at most 1048576 are allowed", |frame| {
        frame.entry(1, &entry(ENTRY_BYTES_MAX + 1));
    });

    let attribute = (0, 3, AttributeForm::Integer(7));
    let segment = |frame: &mut DataFrame, events: usize, attributes: usize| {
        frame.segment(&SegmentRecord {
            number: 1,
            trace: TraceForm::Full(TraceId(7)),
            parent: None,
            thread: 1,
            start: BASE,
            continued: None,
            events: &vec![Event { delta: 0, kind: Enter(1) }; events],
            attributes: &vec![attribute; attributes],
        });
    };
    kept(&|frame| segment(frame, SEGMENT_EVENTS_MAX, SEGMENT_ATTRIBUTES_MAX));
    check_refused("65537 events, at most 65536 are allowed", |frame| {
        segment(frame, SEGMENT_EVENTS_MAX + 1, 0)
    });
    check_refused("4097 attributes, at most 4096 are allowed", |frame| {
        segment(frame, 1, SEGMENT_ATTRIBUTES_MAX + 1);
    });
}

/// An invalid length makes the rest of the frame one refused record. The records before it are kept.
#[test]
fn records_before_a_broken_length_are_kept() {
    let mut frame = DataFrame::new(1, BASE);
    frame.samples(1, &[sample(BASE)]);
    let body = with_body(&frame.finish(), |body| [body, &[1, 0xff, 0x7f, 1, 1]].concat());
    let data = session().data(&body).unwrap();
    assert_eq!(data.batch.counts(), [1, 0, 0]);
    assert_eq!((data.rejects.count, data.rejects.named[0].record), (1, 1));
    assert!(session().data(&body[..5]).unwrap_err().to_string().starts_with("malformed DATA: end of input"));
}

#[test]
fn a_decoded_frame_has_only_the_operations_that_it_uses() {
    let mut session = session();
    let mut frame = DataFrame::new(1, BASE);
    for operation in [3, 1, 3] {
        frame.segment(&SegmentRecord {
            number: 1,
            trace: TraceForm::Own,
            parent: None,
            thread: 1,
            start: BASE,
            continued: None,
            events: &[Event { delta: 0, kind: EventKind::Enter(operation) }],
            attributes: &[],
        });
    }
    for _ in 0..2 {
        let data = decode(&mut session, &frame);
        let [series] = &data.batch.executions[..] else { panic!("there must be exactly one series") };
        assert_eq!(series.labels.to_string(), r#"executions{host="unknown", service="shop"}"#);
        let names: Vec<&str> = series.operations.iter().map(|operation| &*operation.name).collect();
        assert_eq!(names, ["SELECT 1", "f()"]);
        let used: Vec<EventKind> = series.segments.iter().map(|segment| segment.events[0].kind).collect();
        assert_eq!(used, [EventKind::Enter(0), EventKind::Enter(1), EventKind::Enter(0)]);
    }
}

#[test]
fn a_frame_whose_number_does_not_rise_is_a_repetition() {
    let mut sequence = Sequence::new(5);
    let seqs = [5, 6, 6, 9, 8, 9 + SEQ_JUMP_MAX];
    let got: Vec<Numbering> = seqs.into_iter().map(|seq| sequence.take(seq).unwrap()).collect();
    use Numbering::{Fresh, Repeated};
    assert_eq!(got, [Repeated, Fresh, Repeated, Fresh, Repeated, Fresh]);
    assert_eq!(sequence.taken(), 9 + SEQ_JUMP_MAX);
}

#[test]
fn a_frame_number_too_far_ahead_is_refused() {
    let mut sequence = Sequence::new(4);
    assert_eq!(sequence.take(5), Ok(Numbering::Fresh));
    for seq in [6 + SEQ_JUMP_MAX, 1 << 62, u64::MAX] {
        let error = sequence.take(seq).unwrap_err();
        assert_eq!(error, Error::Number { seq, last: 5, most: 5 + SEQ_JUMP_MAX });
        assert_eq!(error.code(), ErrorCode::Malformed);
    }
    assert_eq!(sequence.take(6), Ok(Numbering::Fresh));
    // The server has lost the session (0), or an older copy of the data was restored, with an older state of the session (5).
    for acked in [0, 5] {
        let mut sequence = Sequence::new(acked);
        assert!(sequence.take(SEQ_FIRST_MAX + 1).is_err());
        assert_eq!(sequence.take(SEQ_FIRST_MAX), Ok(Numbering::Fresh));
        assert!(sequence.take(SEQ_FIRST_MAX + SEQ_JUMP_MAX + 1).is_err());
    }
    // Only the first frame of a connection may skip more than `SEQ_JUMP_MAX` numbers.
    let mut sequence = Sequence::new(5);
    assert_eq!(sequence.take(5), Ok(Numbering::Repeated));
    assert!(sequence.take(6 + SEQ_JUMP_MAX).is_err());
    assert_eq!(Sequence::new(u64::MAX - 1).take(u64::MAX), Ok(Numbering::Fresh));
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u64>().prop_map(|bits| Value::F64(f64::from_bits(bits))),
        any::<i64>().prop_map(Value::I64),
        any::<u64>().prop_map(Value::U64),
    ]
}

fn any_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        ".{0,20}".prop_map(|text| Body::Text(text.into())),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Body::Bytes(bytes.into())),
    ]
}

/// Nested calls: enters and exits with the times between them. An exit always has an open call.
fn any_events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((0u8..3, 0u64..1 << 40), 1..60).prop_map(|steps| {
        let mut open = 0;
        let mut events = Vec::new();
        for (step, delta) in steps {
            let kind = match step {
                1 if open > 0 => EventKind::Exit,
                2 if open > 0 => EventKind::ExitFailed,
                _ => EventKind::Enter(if delta % 2 == 0 { 1 } else { 3 }),
            };
            open = if matches!(kind, EventKind::Enter(_)) { open + 1 } else { open - 1 };
            events.push(Event { delta: if events.is_empty() { 0 } else { delta }, kind });
        }
        events
    })
}

proptest! {
    #[test]
    fn samples_and_entries_round_trip(
        base in any::<i64>(),
        samples in prop::collection::vec((any::<i64>(), any_value()), 0..50),
        entries in prop::collection::vec((any::<i64>(), any_body()), 0..10),
    ) {
        let samples: Vec<Sample> = samples.into_iter().map(|(at, value)| Sample { at, value }).collect();
        let entries: Vec<Entry> = entries.into_iter().map(|(at, body)| Entry { at, body }).collect();
        let mut frame = DataFrame::new(1, base);
        frame.samples(1, &samples);
        entries.iter().for_each(|entry| frame.entry(1, entry));
        let data = decode(&mut session(), &frame);
        prop_assert!(data.rejects.is_empty());
        let got: Vec<Sample> = data.batch.samples.into_iter().flat_map(|series| series.samples).collect();
        prop_assert_eq!(got, samples);
        let got: Vec<Entry> = data.batch.entries.into_iter().flat_map(|series| series.entries).collect();
        prop_assert_eq!(got, entries);
    }

    #[test]
    fn segments_round_trip(
        number in any::<u64>(),
        start in -1i64 << 60..1 << 60,
        parent in any::<Option<u64>>(),
        trace in 1u128..,
        events in any_events(),
        text in ".{0,30}",
        integer in any::<i64>(),
        uuid in any::<[u8; 16]>(),
    ) {
        let attributes = [
            (0, 3, AttributeForm::Text(&text)),
            (1, 3, AttributeForm::Integer(integer)),
            (2, 3, AttributeForm::Uuid(uuid)),
        ];
        let mut frame = DataFrame::new(1, BASE);
        frame.segment(&SegmentRecord {
            number,
            trace: TraceForm::Full(TraceId(trace)),
            parent: parent.map(SpanId),
            thread: 1,
            start,
            continued: None,
            events: &events,
            attributes: &attributes,
        });
        let data = decode(&mut session(), &frame);
        prop_assert!(data.rejects.is_empty(), "{:?}", data.rejects);
        let series = &data.batch.executions[0];
        let segment = &series.segments[0];
        prop_assert_eq!(segment.trace, TraceId(trace));
        prop_assert_eq!(segment.base, 9u64.wrapping_add(number << 24));
        prop_assert_eq!(segment.parent, parent.map(SpanId));
        prop_assert_eq!(segment.start, start);
        let ids = |kind| match kind {
            EventKind::Enter(index) => {
                EventKind::Enter(if &*series.operations[index as usize].name == "f()" { 1 } else { 3 })
            }
            other => other,
        };
        let got: Vec<Event> = segment.events.iter().map(|e| Event { delta: e.delta, kind: ids(e.kind) }).collect();
        prop_assert_eq!(got, events);
        let plain = format!("{:032x}", u128::from_be_bytes(uuid));
        let values: Vec<_> = segment.attributes.iter().map(|attribute| attribute.value.clone()).collect();
        prop_assert_eq!(&values[..2], &[AttributeValue::Text(text.into()), AttributeValue::Integer(integer)]);
        prop_assert_eq!(values[2].to_string().replace('-', ""), plain);
    }

    #[test]
    fn damaged_frames_are_refused_or_read(
        changes in prop::collection::vec((0usize..400, any::<u8>()), 1..12),
        cut in 0usize..400,
    ) {
        let mut frame = DataFrame::new(1, BASE);
        frame.samples(1, &[sample(BASE), sample(BASE - 1)]);
        frame.entry(1, &Entry { at: BASE, body: Body::Text("text".into()) });
        frame.segment(&SegmentRecord {
            number: 3,
            trace: TraceForm::OfSegment(2),
            parent: Some(SpanId(8)),
            thread: 1,
            start: BASE,
            continued: Some(Continued { part: 1, first_call: 4, carried: &[(1, 0, 99), (3, 1, 98)] }),
            events: &[Event { delta: 0, kind: EventKind::Enter(1) }, Event { delta: 300, kind: EventKind::ExitFailed }],
            attributes: &[(4, 3, AttributeForm::Uuid([7; 16])), (0, 3, AttributeForm::TextId(1))],
        });
        let mut body = with_body(&frame.finish(), <[u8]>::to_vec);
        for (at, byte) in changes {
            let at = at % body.len();
            body[at] = byte;
        }
        body.truncate(body.len() - cut % body.len());
        if let Ok(data) = session().data(&body) {
            for series in &data.batch.executions {
                for segment in &series.segments {
                    prop_assert_eq!(segment.check(series.operations.len()), Ok(()));
                }
            }
        }
    }

    #[test]
    fn any_body_of_any_type_is_refused_or_read(type_byte in any::<u8>(), body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = ClientFrame::decode(Frame { type_byte, body: &body });
        let _ = session().data(&body);
    }
}
