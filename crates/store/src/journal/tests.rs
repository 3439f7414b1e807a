//! Golden files are read as specified. Any batch round-trips. Any bytes are read or refused without a panic.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use tacho_model::{
    Attribute, AttributeValue, Batch, Body, Carried, Entry, EntrySeries, Event, EventKind, ExecutionSeries,
    Labels, NAME, Operation, OperationKind, Sample, SampleSeries, Segment, SpanId, TraceId, Value,
};

use super::decode::Decoder;
use super::format::{HEADER_BYTES, Header, Older, RECORD_BYTES_MAX, RECORD_HEAD_BYTES, VERSION, take_record};
use super::reader::{Contents, read};
use super::{Encoder, Writer};
use crate::arrival::{Arrival, Origin};
use crate::coding::{put_string, put_varint};
use crate::disk::{Disk, RealDisk, SyncPoint};

fn header() -> Header {
    let store = 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f;
    Header { generation: 7, store, created: 1_000, older: Vec::new() }
}

/// The header of `testdata/journal/v3.journal`.
fn header_v3() -> Header {
    let older = [(5, 400), (6, 0)].map(|(generation, length)| Older { generation, length });
    Header { older: older.into(), ..header() }
}

fn labels(name: &str) -> Arc<Labels> {
    Arc::new(Labels::new([(NAME, name), ("host", "ö")]).unwrap())
}

fn operation(kind: OperationKind, name: &str) -> Operation {
    Operation { kind, name: name.into() }
}

/// The second part of a segment; it uses every feature of segments.
fn segment() -> Segment {
    let event = |delta, kind| Event { delta, kind };
    Segment {
        trace: TraceId(0x11),
        base: 0x22,
        part: 1,
        parent: Some(SpanId(0x33)),
        thread: "main".into(),
        start: 5_000,
        carried: vec![Carried { operation: 0, call: 0, age: 70 }],
        first_call: 1,
        events: vec![
            event(0, EventKind::Enter(1)),
            event(300, EventKind::ExitFailed),
            event(4, EventKind::Exit),
        ],
        attributes: vec![
            Attribute { call: 1, key: "k".into(), value: AttributeValue::Text("v".into()) },
            Attribute { call: 0, key: "k".into(), value: AttributeValue::Integer(-2) },
        ],
    }
}

/// Content of `testdata/journal/v1.journal`. The second record uses definitions of the first.
fn golden() -> [Arrival; 2] {
    let sample = |at, value| Sample { at, value };
    let samples =
        vec![sample(1_000, Value::F64(1.5)), sample(990, Value::U64(u64::MAX)), sample(1, Value::I64(-1))];
    let entry = |at, body| Entry { at, body };
    let entries = vec![entry(2_000, Body::Text("漢".into())), entry(-1, Body::Bytes(Box::new([0, 255])))];
    let operations =
        vec![operation(OperationKind::Method, "a.B.c()"), operation(OperationKind::Database, "SELECT 1")];
    let executions = ExecutionSeries { labels: labels("executions"), operations, segments: vec![segment()] };
    let first = Batch {
        samples: vec![SampleSeries { labels: labels("m"), samples }],
        entries: vec![EntrySeries { labels: labels("log"), entries }],
        executions: vec![executions.clone()],
    };
    let second = Batch { executions: vec![executions], ..Batch::default() };
    let session = 0xa0a1_a2a3_a4a5_a6a7_a8a9_aaab_acad_aeaf;
    [Arrival::new(Arc::new(first), Some(Origin::one(session, 3))), Arrival::new(Arc::new(second), None)]
}

/// Content of `testdata/journal/v2.journal`: the records of v1, and between them a record of series with shared times.
fn golden_v2() -> [Arrival; 3] {
    let [first, last] = golden();
    let series = |host: &str, name: &str, at: &[i64], value: fn(i64) -> Value| SampleSeries {
        labels: Arc::new(Labels::new([(NAME, name), ("host", host), ("zone", "z")]).unwrap()),
        samples: at.iter().map(|at| Sample { at: *at, value: value(*at) }).collect(),
    };
    let regular: &[i64] = &[1_000, 1_010, 1_020];
    let samples = vec![
        series("a", "cpu", regular, |at| Value::I64(at - 1_100)),
        series("a", "mem", regular, |at| Value::F64((at * at) as f64)),
        series("b", "cpu", regular, |at| Value::U64(u64::MAX - 70_000 * at as u64)),
        series("b", "mem", regular, |at| Value::F64(at as f64 / 7.0)),
        series("b", "net", &[5, 4, 9], |at| Value::I64(i64::MIN + at)),
        series("b", "up", &[5, 4, 9], |_| Value::F64(-0.0)),
    ];
    [first, Arrival::new(Arc::new(Batch { samples, ..Batch::default() }), None), last]
}

fn golden_path(version: u16) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../testdata/journal/v{version}.journal"))
}

fn read_all(path: &Path) -> (Vec<Arrival>, Contents) {
    let mut arrivals = Vec::new();
    let contents = read(&RealDisk, path, |arrival| arrivals.push(arrival)).unwrap();
    (arrivals, contents)
}

#[test]
fn the_golden_files_are_read() {
    let check = |version, expect: &[Arrival]| {
        let (arrivals, contents) = read_all(&golden_path(version));
        assert_eq!(contents.header, Some(if version < 3 { header() } else { header_v3() }));
        // In version 3, two additional records repeat the definitions of the first two records.
        let records = expect.len() as u64 + if version < 3 { 0 } else { 2 };
        assert_eq!((contents.records, contents.torn, contents.damaged.len()), (records, 0, 0));
        // Before version 3, an origin covered all frames up to its number.
        let first = |origin: Origin| Origin { first: if version < 3 { 0 } else { origin.first }, ..origin };
        let mut expect = expect.to_vec();
        expect.iter_mut().for_each(|arrival| arrival.origin = arrival.origin.map(first));
        assert_eq!(arrivals, expect);
    };
    check(1, &golden());
    check(2, &golden_v2());
    check(3, &golden_v2());
}

#[test]
fn the_golden_bytes_are_still_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&RealDisk, directory.path(), &header_v3()).unwrap();
    let mut encoder = Encoder::default();
    for arrival in golden_v2() {
        let mut records = Vec::new();
        encoder.encode(&arrival, writer.length(), &mut records).unwrap();
        encoder.end_group(writer.length(), &mut records);
        writer.commit(&RealDisk, &records).unwrap();
        encoder.committed();
    }
    let expect = std::fs::read(golden_path(3)).unwrap();
    assert_eq!(std::fs::read(writer.path()).unwrap(), expect);
}

#[test]
fn complete_records_of_a_truncated_golden_file_are_read() {
    let bytes = std::fs::read(golden_path(1)).unwrap();
    let first_end = HEADER_BYTES + 12 + take_record(&bytes[HEADER_BYTES..]).unwrap().len();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut");
    for cut in 0..bytes.len() {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let (arrivals, contents) = read_all(&path);
        assert_eq!(arrivals.len(), usize::from(cut >= first_end), "cut at {cut}");
        assert_eq!(contents.length + contents.torn, cut as u64);
    }
}

#[test]
fn records_of_one_torn_write_are_dropped_together() {
    // Both records are in one write, so the second does not prove that the first was synced.
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&RealDisk, directory.path(), &header()).unwrap();
    let (mut encoder, mut records) = (Encoder::default(), Vec::new());
    for arrival in golden() {
        encoder.encode(&arrival, writer.length(), &mut records).unwrap();
    }
    records[20] ^= 1;
    writer.commit(&RealDisk, &records).unwrap();
    // The mark of the commit proves that both records were synced. The first is damaged, and the second needs its definitions.
    // Without the mark, the write counts as unfinished.
    let (arrivals, contents) = read_all(writer.path());
    assert_eq!((arrivals.len(), contents.damaged.len(), contents.torn), (0, 2, 0), "{contents:?}");
    RealDisk.cut(writer.path(), writer.length(), SyncPoint::JournalFailedMark).unwrap();
    let (arrivals, contents) = read_all(writer.path());
    assert_eq!((arrivals.len(), contents.damaged.len()), (0, 0));
    assert_eq!((contents.torn, contents.doubtful), (records.len() as u64, true));
}

#[test]
fn a_wrong_bit_in_a_length_that_points_past_the_end_loses_no_record() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&RealDisk, directory.path(), &header_v3()).unwrap();
    let (mut encoder, mut records) = (Encoder::default(), Vec::new());
    let begin = writer.length() as usize;
    for arrival in golden() {
        encoder.encode(&arrival, writer.length(), &mut records).unwrap();
    }
    encoder.end_group(writer.length(), &mut records);
    writer.commit(&RealDisk, &records).unwrap();
    let whole = std::fs::read(writer.path()).unwrap();
    let mut past_end = 0;
    for bit in 0..32 {
        let mut bytes = whole.clone();
        bytes[begin + 4 + bit / 8] ^= 1 << (bit % 8);
        std::fs::write(writer.path(), &bytes).unwrap();
        let (arrivals, contents) = read_all(writer.path());
        assert_eq!(contents.torn, 0, "bit {bit}");
        let length = u32::from_le_bytes(*bytes[begin + 4..].first_chunk().unwrap()) as usize;
        if (bytes.len() - begin..RECORD_BYTES_MAX).contains(&length) {
            past_end += 1;
            assert!(arrivals == golden(), "bit {bit}");
        }
    }
    assert!(past_end > 10, "{past_end}");
}

#[test]
fn definitions_of_a_lost_write_are_removed() {
    let [first, second] = golden();
    let (mut encoder, mut records, mut lost) = (Encoder::default(), Vec::new(), Vec::new());
    encoder.encode(&first, 48, &mut lost).unwrap();
    encoder.rollback();
    encoder.encode(&second, 48, &mut records).unwrap();
    assert_eq!(Decoder::new(VERSION).decode(take_record(&records).unwrap()).unwrap(), second);
}

#[test]
fn texts_that_do_not_fit_into_the_table_are_written_where_they_are_used() {
    let long = "t".repeat(300);
    let threads = (0..70_000u32).map(|i| if i == 5 { long.clone() } else { format!("thread-{i}") });
    let segments: Vec<Segment> =
        threads.map(|t| Segment { thread: t.as_str().into(), attributes: Vec::new(), ..segment() }).collect();
    let operations = vec![operation(OperationKind::Task, "a"), operation(OperationKind::Task, "b")];
    let executions = vec![ExecutionSeries { labels: labels("executions"), operations, segments }];
    let arrival = Arrival::new(Arc::new(Batch { executions, ..Batch::default() }), None);
    let (mut encoder, mut records) = (Encoder::default(), Vec::new());
    encoder.encode(&arrival, 48, &mut records).unwrap();
    assert!(Decoder::new(VERSION).decode(take_record(&records).unwrap()).unwrap() == arrival);
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u64>().prop_map(|bits| Value::F64(f64::from_bits(bits))),
        any::<i64>().prop_map(Value::I64),
        any::<u64>().prop_map(Value::U64),
    ]
}

/// Values of one type, close together or far apart, at times that other columns may share.
fn column() -> impl Strategy<Value = Vec<Sample>> {
    let at = prop_oneof![Just((0, 10)), Just((7, 10)), (any::<i64>(), any::<i64>())];
    let spread =
        prop_oneof![Just(0), Just(0x7f), Just(0x100), Just(0x8000), Just(0x8000_0000), Just(i64::MAX)];
    let values = proptest::collection::vec(any::<i64>(), 1..40);
    (at, 0..4, any::<i64>(), spread, values).prop_map(|((start, step), form, base, spread, values)| {
        let value = |word: i64| match form {
            0 => Value::I64(word),
            1 => Value::U64(word.cast_unsigned()),
            2 => Value::F64((word % (1 << 54)) as f64),
            _ => Value::F64((word % 1_000_000) as f64 / 100.0),
        };
        let near = values.iter().map(|word| base.wrapping_add(word.checked_rem(spread).unwrap_or(0)));
        let at = (0..).map(|i: i64| step.wrapping_mul(i).wrapping_add(start));
        near.zip(at).map(|(word, at)| Sample { at, value: value(word) }).collect()
    })
}

fn batch() -> impl Strategy<Value = Batch> {
    let name = prop_oneof!["[a-c]", "[a-zä漢]{1,8}"].prop_map(|name| labels(&name));
    let sample = (any::<i64>(), value()).prop_map(|(at, value)| Sample { at, value });
    let mixed = proptest::collection::vec(sample, 1..40);
    let samples = (name.clone(), prop_oneof![1 => mixed, 3 => column()])
        .prop_map(|(labels, samples)| SampleSeries { labels, samples });
    let body = prop_oneof![
        ".{0,20}".prop_map(|text| Body::Text(text.into())),
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Body::Bytes(bytes.into())),
    ];
    let entry = (any::<i64>(), body).prop_map(|(at, body)| Entry { at, body });
    let entries = (name, proptest::collection::vec(entry, 1..10))
        .prop_map(|(labels, entries)| EntrySeries { labels, entries });
    (proptest::collection::vec(samples, 0..5), proptest::collection::vec(entries, 0..5))
        .prop_map(|(samples, entries)| Batch { samples, entries, executions: Vec::new() })
}

#[test]
fn shared_labels_cannot_expand_a_small_record_to_a_huge_one() {
    let canonical: String = (0..60).map(|i| format!("l{i:02}\0{}\0", "v".repeat(4_096))).collect();
    let canonical: Vec<u8> = canonical.bytes().map(|byte| if byte == 0 { 0xff } else { byte }).collect();
    let mut payload = vec![0, 48, 0];
    put_varint(&mut payload, 2_000);
    payload.extend_from_slice(&[0, 0]);
    put_string(&mut payload, &canonical);
    for _ in 1..2_000 {
        put_varint(&mut payload, canonical.len() as u64);
        payload.extend_from_slice(&[0, 0]);
    }
    payload.extend_from_slice(&[0, 0, 0, 0]);
    assert!(payload.len() < 300_000);
    let error = Decoder::new(VERSION).decode(&payload).unwrap_err();
    assert!(error.to_string().contains("shared labels"), "{error}");
    let hostile = [0, 48, 0, 1, 200, 1, 0, 0, 0, 0, 0, 0];
    assert!(Decoder::new(VERSION).decode(&hostile).is_err(), "labels that share missing bytes were accepted");
}

#[test]
fn missing_definitions_are_limited_by_the_lost_bytes() {
    let check = |first: u64, lost: usize, sound: bool| {
        let mut payload = vec![0, 48, 0, 0];
        put_varint(&mut payload, first);
        payload.extend_from_slice(&[1, OperationKind::Task as u8, 1, b'a', 0, 0]);
        let mut decoder = Decoder::new(VERSION);
        decoder.lost(lost);
        assert_eq!(decoder.decode(&payload).is_ok(), sound, "{first} missing in {lost} lost bytes");
    };
    check(0, 0, true);
    check(1, 0, false);
    check(9, 9, true);
    check(10, 9, false);
    check(u64::MAX, 9, false);
}

/// The load of the devops benchmark: ten whole numbers per host that change little.
#[test]
fn values_that_change_a_little_take_few_bytes() {
    let check = |lines: i64, hosts: usize, bytes_max: f64| {
        let series = |nth: usize| SampleSeries {
            labels: Arc::new(
                Labels::new([("host", (nth / 10).to_string()), ("field", (nth % 10).to_string())]).unwrap(),
            ),
            samples: (0..lines)
                .map(|i| Sample {
                    at: 1_700_000_000_000_000_000 + i * 10_000_000_000,
                    value: Value::I64(50 + (i * 37 + nth as i64) % 13),
                })
                .collect(),
        };
        let batch = Batch { samples: (0..hosts * 10).map(series).collect(), ..Batch::default() };
        let arrival = Arrival::new(Arc::new(batch), None);
        let mut encoder = Encoder::default();
        encoder.encode(&arrival, 48, &mut Vec::new()).unwrap();
        let mut records = Vec::new();
        encoder.encode(&arrival, 48, &mut records).unwrap();
        let bytes = records.len() as f64 / arrival.counts()[0] as f64;
        assert!(bytes <= bytes_max, "{lines} lines: {bytes} bytes a value");
    };
    check(100, 100, 1.05);
    check(10, 1_000, 1.25);
    check(1, 1_000, 3.25);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_batches_round_trip(batches in proptest::collection::vec(batch(), 1..6), session in any::<u128>()) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::new(VERSION));
        for (seq, batch) in batches.into_iter().enumerate() {
            let origin = Origin { session, first: (seq / 2) as u64, seq: seq as u64 };
            let arrival = Arrival::new(Arc::new(batch), Some(origin));
            let mut records = Vec::new();
            encoder.encode(&arrival, 48, &mut records).unwrap();
            let decoded = decoder.decode(take_record(&records).unwrap()).unwrap();
            prop_assert_eq!(decoded.origin, arrival.origin);
            // Consecutive series with the same labels are decoded as one series.
            prop_assert_eq!(decoded.counts(), arrival.counts());
            let all = |a: &Arrival| {
                let samples: Vec<_> = a.samples().flat_map(|(id, s)| s.samples.iter().map(move |s| (id, *s))).collect();
                let entries: Vec<_> =
                    a.entries().flat_map(|(id, s)| s.entries.iter().map(move |e| (id, e.clone()))).collect();
                (samples, entries)
            };
            prop_assert_eq!(all(&decoded), all(&arrival));
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Decoder::new(VERSION).decode(&bytes);
    }

    #[test]
    fn a_changed_byte_is_refused_or_read(at in 0..1_000usize, byte in any::<u8>()) {
        let file = std::fs::read(golden_path(2)).unwrap();
        let first = take_record(&file[HEADER_BYTES..]).unwrap();
        let second = take_record(&file[HEADER_BYTES + RECORD_HEAD_BYTES + first.len()..]).unwrap();
        for payload in [first, second] {
            let mut payload = payload.to_vec();
            let at = at % payload.len();
            payload[at] = byte;
            let _ = Decoder::new(VERSION).decode(&payload);
        }
    }
}
