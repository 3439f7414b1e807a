//! Encodes DICT and DATA frames from the keys of a case (a test vector in `testdata/wire`), and compares decoded DATA frames with
//! these keys.

use std::collections::HashMap;

use tacho_ingest::wire::{
    AttributeForm, Continued, Data, DataFrame, DictFrame, Hello, RecordType, SegmentRecord, TraceForm,
};
use tacho_model::{
    AttributeValue, Body, Entry, Event, EventKind, Operation, OperationKind, Sample, Segment, SpanId,
    TraceId, Value,
};

use super::control::pair;
use super::declared;
use super::vector::{Case, hex, number, unhex};

/// The session that HELLO names.
const SESSION: u128 = 0x0f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0;

pub fn hello() -> Hello {
    Hello { version_min: 1, version_max: 1, session: SESSION, pairs: vec![], secret: None, token: None }
}

pub type Keys<'a> = &'a [(String, String)];

pub fn encode(case: &Case) -> Vec<u8> {
    match case.text("frame") {
        "DICT" => encode_dict(case),
        "DATA" => {
            let mut frame = DataFrame::new(case.number("seq"), case.number("base"));
            for keys in records(case) {
                encode_record(&mut frame, case.number("base"), keys);
            }
            frame.finish()
        }
        other => panic!("{}: frame {other}", case.name),
    }
}

/// The keys of each record. Each list starts with the key `record`.
fn records(case: &Case) -> impl Iterator<Item = Keys<'_>> {
    let begin = case.keys.iter().position(|(key, _)| key == "record").unwrap_or(case.keys.len());
    case.keys[begin..].chunk_by(|_, (key, _)| key != "record")
}

pub fn one<'a>(keys: Keys<'a>, key: &str) -> Option<&'a str> {
    keys.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
}

pub fn get<T: std::str::FromStr>(keys: Keys<'_>, key: &str) -> T {
    number(one(keys, key).unwrap_or_else(|| panic!("no {key} in {keys:?}")))
}

pub fn all<'a>(keys: Keys<'a>, key: &str) -> impl Iterator<Item = &'a str> {
    keys.iter().filter(move |(k, _)| k == key).map(|(_, value)| value.as_str())
}

fn encode_dict(case: &Case) -> Vec<u8> {
    let mut frame = DictFrame::new();
    for definition in definitions(case) {
        match definition {
            Definition::Text(id, text) => frame.text(id, &text),
            Definition::Operation(id, operation) => frame.operation(id, operation.kind, &operation.name),
            Definition::Series(id, pairs) => {
                frame.series(id, pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
            }
            Definition::Declared(id, record_type) => frame.record_type(id, &record_type),
        }
    }
    frame.finish()
}

enum Definition {
    Text(u64, String),
    Operation(u64, Operation),
    Series(u64, Vec<(String, String)>),
    Declared(u64, RecordType),
}

fn definitions(case: &Case) -> Vec<Definition> {
    let mut list = Vec::new();
    for (key, value) in &case.keys {
        if key == "label" {
            let Some(Definition::Series(_, pairs)) = list.last_mut() else {
                panic!("{}: no series before label {value}", case.name)
            };
            pairs.push(pair(value));
        } else if key == "field" {
            let Some(Definition::Declared(_, record_type)) = list.last_mut() else {
                panic!("{}: no record type before field {value}", case.name)
            };
            record_type.fields.push(declared::field(value));
        } else if key == "define" {
            list.push(definition(value));
        }
    }
    list
}

fn definition(text: &str) -> Definition {
    let (kind, rest) = text.split_once(' ').unwrap();
    let (id, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let id = number(id);
    match kind {
        "text" => Definition::Text(id, rest.to_owned()),
        "series" => Definition::Series(id, Vec::new()),
        "record_type" => Definition::Declared(id, declared::record_type(rest)),
        "operation" => {
            let (kind, name) = rest.split_once(' ').unwrap();
            let kind = OperationKind::from_byte(number(kind)).unwrap();
            Definition::Operation(id, Operation { kind, name: name.into() })
        }
        other => panic!("definition of {other}"),
    }
}

/// Texts, operations and series that the cases so far have defined.
#[derive(Default)]
pub struct Defined {
    texts: HashMap<u64, String>,
    operations: HashMap<u64, Operation>,
    series: HashMap<u64, tacho_model::Labels>,
}

impl Defined {
    pub fn add(&mut self, case: &Case) {
        for definition in definitions(case) {
            match definition {
                Definition::Text(id, text) => drop(self.texts.insert(id, text)),
                Definition::Operation(id, operation) => drop(self.operations.insert(id, operation)),
                Definition::Series(id, pairs) => {
                    drop(self.series.insert(id, tacho_model::Labels::new(pairs).unwrap()));
                }
                Definition::Declared(..) => {}
            }
        }
    }
}

fn encode_record(frame: &mut DataFrame, base: i64, keys: Keys<'_>) {
    match get::<String>(keys, "record").as_str() {
        "samples" => frame.samples(get(keys, "series"), &samples(base, keys)),
        "entry" => frame.entry(get(keys, "series"), &entry(base, keys)),
        "declared" => declared::encode(frame, base, keys),
        "segment" => {
            let events: Vec<Event> = all(keys, "event").map(event).collect();
            let carried: Vec<_> = all(keys, "carried").map(carried).collect();
            let attributes: Vec<_> = all(keys, "attribute").map(attribute).collect();
            let flags: u8 = get(keys, "flags");
            frame.segment(&SegmentRecord {
                number: get(keys, "number"),
                trace: trace_form(keys),
                parent: one(keys, "parent").map(|text| SpanId(u64::from_str_radix(text, 16).unwrap())),
                thread: get(keys, "thread"),
                start: base.wrapping_add(get(keys, "start")),
                continued: (flags & 1 == 1).then(|| Continued {
                    part: get(keys, "part"),
                    first_call: get(keys, "first_call"),
                    carried: &carried,
                }),
                events: &events,
                attributes: &attributes,
            });
        }
        other => panic!("record {other}"),
    }
}

fn samples(base: i64, keys: Keys<'_>) -> Vec<Sample> {
    let value = |text: &str| match get::<u8>(keys, "type") {
        1 => Value::F64(f64::from_bits(u64::from_str_radix(text, 16).unwrap())),
        2 => Value::I64(number(text)),
        _ => Value::U64(number(text)),
    };
    let mut at = base;
    all(keys, "sample")
        .map(|text| {
            let (dt, text) = text.split_once(' ').unwrap();
            at = at.wrapping_add(number(dt));
            Sample { at, value: value(text) }
        })
        .collect()
}

fn entry(base: i64, keys: Keys<'_>) -> Entry {
    let body = match one(keys, "bytes") {
        Some(text) => Body::Bytes(unhex(text).into()),
        None => Body::Text(one(keys, "text").unwrap().into()),
    };
    Entry { at: base.wrapping_add(get(keys, "dt")), body }
}

pub fn trace_form(keys: Keys<'_>) -> TraceForm {
    match (one(keys, "trace"), one(keys, "trace_of")) {
        (Some(full), _) => TraceForm::Full(TraceId(u128::from_str_radix(full, 16).unwrap())),
        (None, Some(other)) => TraceForm::OfSegment(number(other)),
        (None, None) => TraceForm::Own,
    }
}

fn event(text: &str) -> Event {
    let words: Vec<&str> = text.split(' ').collect();
    let kind = match words[0] {
        "enter" => EventKind::Enter(number(words[2])),
        "exit" => EventKind::Exit,
        "failed" => EventKind::ExitFailed,
        other => panic!("event {other}"),
    };
    Event { delta: number(words[1]), kind }
}

/// Operation id, call, age.
fn carried(text: &str) -> (u32, u32, u64) {
    let words: Vec<&str> = text.split(' ').collect();
    (number(words[0]), number(words[1]), number(words[2]))
}

fn attribute(text: &str) -> (u32, u64, AttributeForm<'_>) {
    let words: Vec<&str> = text.splitn(4, ' ').collect();
    let value = match words[2] {
        "text" => AttributeForm::TextId(number(words[3])),
        "string" => AttributeForm::Text(words[3]),
        "uuid" => AttributeForm::Uuid(unhex(&words[3].replace('-', "")).try_into().unwrap()),
        "integer" => AttributeForm::Integer(number(words[3])),
        other => panic!("form {other}"),
    };
    (number(words[0]), number(words[1]), value)
}

/// Compares a decoded frame with the keys of its case.
pub fn check(case: &Case, data: &Data, defined: &Defined) {
    assert_eq!(data.seq, case.number::<u64>("seq"), "{}", case.name);
    assert!(data.rejects.is_empty(), "{}: {:?}", case.name, data.rejects);
    let base = case.number("base");
    let mut sample_series = data.batch.samples.iter();
    let mut entries =
        data.batch.entries.iter().flat_map(|e| e.entries.iter().map(|entry| (&*e.labels, entry)));
    let mut segments =
        data.batch.executions.iter().flat_map(|e| e.segments.iter().map(|s| (&e.operations, s)));
    for keys in records(case) {
        match get::<String>(keys, "record").as_str() {
            "samples" => {
                let got = sample_series.next().unwrap();
                assert_eq!(*got.labels, defined.series[&get(keys, "series")], "{}", case.name);
                assert_eq!(got.samples, samples(base, keys), "{}", case.name);
            }
            "entry" => {
                let (labels, got) = entries.next().unwrap();
                assert_eq!(*labels, defined.series[&get(keys, "series")], "{}", case.name);
                assert_eq!(*got, entry(base, keys), "{}", case.name);
            }
            "declared" => {
                let (labels, got) = entries.next().unwrap();
                assert_eq!(*labels, defined.series[&get(keys, "series")], "{}", case.name);
                assert_eq!(*got, declared::entry(base, keys), "{}", case.name);
            }
            _ => {
                let (operations, got) = segments.next().unwrap();
                check_segment(case, keys, base, operations, got, defined);
            }
        }
    }
    assert!(sample_series.next().is_none() && entries.next().is_none() && segments.next().is_none());
}

fn check_segment(
    case: &Case,
    keys: Keys<'_>,
    base: i64,
    operations: &[Operation],
    got: &Segment,
    defined: &Defined,
) {
    let name = &case.name;
    case.expect("trace_id", &[&got.trace.to_string()]);
    for (text, call) in case.all("span").iter().map(|text| (text, text.split_once(' ').unwrap().0)) {
        assert_eq!(**text, format!("{call} {}", got.span(number(call))), "{name}: span");
    }
    assert_eq!(*got.thread, *defined.texts[&get(keys, "thread")], "{name}");
    assert_eq!(got.start, base.wrapping_add(get::<i64>(keys, "start")), "{name}");
    assert_eq!(got.parent.map(|span| hex(&span.0.to_be_bytes())).as_deref(), one(keys, "parent"), "{name}");
    assert_eq!(got.part, one(keys, "part").map_or(0, number), "{name}");
    assert_eq!(got.first_call, one(keys, "first_call").map_or(0, number), "{name}");
    let named = |id: u32| defined.operations[&u64::from(id)].clone();
    let carried: Vec<_> = all(keys, "carried").map(carried).map(|(o, c, a)| (named(o), c, a)).collect();
    let got_carried: Vec<_> =
        got.carried.iter().map(|c| (operations[c.operation as usize].clone(), c.call, c.age)).collect();
    assert_eq!(got_carried, carried, "{name}");
    let shown = |event: &Event, operation: &dyn Fn(u32) -> Operation| match event.kind {
        EventKind::Enter(id) => (event.delta, Some(operation(id)), false),
        kind => (event.delta, None, kind == EventKind::ExitFailed),
    };
    let events: Vec<_> = all(keys, "event").map(event).map(|event| shown(&event, &named)).collect();
    let got_events: Vec<_> =
        got.events.iter().map(|event| shown(event, &|id| operations[id as usize].clone())).collect();
    assert_eq!(got_events, events, "{name}");
    check_attributes(name, keys, got, defined);
}

fn check_attributes(name: &str, keys: Keys<'_>, got: &Segment, defined: &Defined) {
    let expect: Vec<_> = all(keys, "attribute")
        .map(|line| {
            let (call, key, form) = attribute(line);
            let value = match form {
                AttributeForm::TextId(id) => AttributeValue::Text(defined.texts[&id].as_str().into()),
                AttributeForm::Text(text) => AttributeValue::Text(text.into()),
                AttributeForm::Uuid(_) => AttributeValue::Text(line.rsplit(' ').next().unwrap().into()),
                AttributeForm::Integer(number) => AttributeValue::Integer(number),
            };
            (call, defined.texts[&key].clone(), value)
        })
        .collect();
    let got: Vec<_> = got.attributes.iter().map(|a| (a.call, a.key.to_string(), a.value.clone())).collect();
    assert_eq!(got, expect, "{name}");
}
