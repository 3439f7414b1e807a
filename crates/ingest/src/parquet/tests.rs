//! Tests with files of other programs, files of Tachograph, and damaged files.

use std::sync::Arc;

use proptest::prelude::*;
use tacho_model::{Body, Entry, Kind, Labels, NAME, Sample, Value};

use super::{Parquet, Place, Writer};
use crate::csv::Given;
use crate::json_lines;
use crate::rows::Block;
use crate::time_text::TimeZone;
use bytes::Bytes;

// These files were written by pyarrow 26.0.1 with `testdata/parquet/make.py`.
const LONG: &[u8] = include_bytes!("../../../../testdata/parquet/long.parquet");
const WIDE: &[u8] = include_bytes!("../../../../testdata/parquet/wide.parquet");
const TYPES: &[u8] = include_bytes!("../../../../testdata/parquet/types.parquet");

fn open(file: &[u8], given: &Given) -> Result<Parquet<Bytes>, String> {
    Parquet::open(Bytes::copy_from_slice(file), given, TimeZone::UTC, vec![])
}

/// The content of a whole file: its merged blocks, and the text of its broken rows.
fn all(mut parquet: Parquet<Bytes>) -> (Block, String) {
    let (mut sum, mut text) = (Block::default(), String::new());
    while let Some(rows) = parquet.next_rows() {
        sum.rows += rows.block.rows;
        sum.lost += rows.block.lost;
        sum.broken.extend(rows.block.broken);
        sum.batch.samples.extend(rows.block.batch.samples);
        sum.batch.entries.extend(rows.block.batch.entries);
        text.push_str(&rows.text);
    }
    (sum, text)
}

/// The records as JSON lines, sorted by their text.
fn lines(block: &Block) -> String {
    let mut out = String::new();
    for series in &block.batch.samples {
        json_lines::write_samples(&mut out, &series.labels, &series.samples);
    }
    for series in &block.batch.entries {
        json_lines::write_entries(&mut out, &series.labels, &series.entries);
    }
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

fn check(file: &[u8], given: &Given, expect: &str, broken: &[&str]) {
    let (block, _) = all(open(file, given).unwrap());
    let said: Vec<String> = block.broken.iter().map(ToString::to_string).collect();
    assert_eq!(said, broken);
    assert_eq!(lines(&block), expect.trim());
}

fn given(time: &str, value: &str) -> Given {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Given { time_column: some(time), value_column: some(value), ..Given::default() }
}

#[test]
fn files_of_data_frames_are_read() {
    check(
        LONG,
        &Given::default(),
        r#"{"metric":{"__name__":"cpu","host":"a"},"values":[0.25],"timestamps":[1767225602000]}
{"metric":{"__name__":"cpu","host":"a"},"values":[0.5],"timestamps":[1767225600000]}
{"metric":{"__name__":"cpu","host":"b"},"values":[1.5],"timestamps":[1767225600000]}
{"metric":{"__name__":"memory"},"values":[7],"timestamps":[1767225603000]}"#,
        &["row 5, column \"time\" of row group 1: time is null"],
    );
    let at = r#""timestamps":[1767225600123],"nanoseconds":[456789]}"#;
    let wide = [
        format!(r#"{{"metric":{{"__name__":"cpu","host":"a"}},"values":[0.5],{at}"#),
        r#"{"metric":{"__name__":"cpu","host":"b"},"values":[-1.5],"timestamps":[1767225601000]}"#.into(),
        format!(r#"{{"metric":{{"__name__":"up","host":"a"}},"type":"i64","values":[1],{at}"#),
        r#"{"metric":{"__name__":"up","host":"b"},"type":"i64","values":[0],"timestamps":[1767225601000]}"#
            .into(),
        format!(
            r#"{{"metric":{{"__name__":"used","host":"a"}},"type":"i64","values":[9007199254740993],{at}"#
        ),
    ];
    check(WIDE, &Given::default(), &wide.join("\n"), &[]);
}

#[test]
fn columns_of_every_supported_type_are_read() {
    let wide = |time: &str| {
        let given = Given { wide: true, ..given(time, "") };
        all(open(TYPES, &given).unwrap()).0
    };
    for time in ["ms", "local", "s", "text", "day"] {
        let block = wide(time);
        let name = |labels: &Labels| labels.name() == "i8";
        let series = block.batch.samples.iter().filter(|series| name(&series.labels));
        let times: Vec<i64> = series.flat_map(|series| &series.samples).map(|sample| sample.at).collect();
        let second = if time == "day" { -86_400 } else { -1 };
        assert_eq!(times, [1_767_225_600_000_000_000, second * 1_000_000_000], "{time}");
        assert_eq!(block.broken, vec![]);
    }
    let first = wide("float").batch.samples[0].samples[0].at;
    assert_eq!(first, 1_767_225_600_500_000_000);
    let labels = "\"text\":\"2026-01-01T00:00:00Z\"";
    let block = wide("ms");
    let said = lines(&block);
    for (name, values) in [
        ("i8", "\"type\":\"i64\",\"values\":[-128]"),
        ("u32", "\"type\":\"u64\",\"values\":[4294967295]"),
        ("u64", "\"type\":\"u64\",\"values\":[18446744073709551615]"),
        ("f32", "\"values\":[0.10000000149011612]"),
        ("flag", "\"type\":\"i64\",\"values\":[1]"),
        ("decimal", "\"values\":[-1.1]"),
    ] {
        let metric = format!("\"__name__\":\"{name}\"");
        let line = said.lines().find(|line| line.contains(&metric) && line.contains(labels));
        assert!(line.is_some_and(|line| line.contains(values)), "{name}: {said}");
    }
}

#[test]
fn errors_name_column_and_option() {
    let check = |file: &[u8], given: Given, expect: &str| {
        let said = open(file, &given).err().unwrap_or_default();
        assert!(said.contains(expect), "{said:?}, expected {expect:?}");
    };
    check(LONG, given("when", ""), "no column \"when\", there are \"metric, time, host, value\"");
    check(LONG, given("", "host"), "column \"host\" does not hold numbers: give --text");
    check(TYPES, given("clock", ""), "column \"clock\" does not hold times");
    check(TYPES, given("ms", "i8"), "no column names the series, and no name is given");
    check(b"", Given::default(), "not a whole Parquet file: ");
    check(b"time,value\n1,2\n", Given::default(), "not a whole Parquet file: ");
    check(&LONG[..LONG.len() - 9], Given::default(), "not a whole Parquet file: ");
}

#[test]
fn a_given_name_applies_only_to_values_without_a_name() {
    let names = |file: &[u8], given: &Given| {
        let base = vec![(NAME.to_owned(), "temp".to_owned())];
        let open = Parquet::open(Bytes::copy_from_slice(file), given, TimeZone::UTC, base);
        open.map(|parquet| {
            let doubts = parquet.doubts().join(" ");
            let samples = all(parquet).0.batch.samples;
            let mut names: Vec<String> =
                samples.iter().map(|series| series.labels.name().to_owned()).collect();
            names.dedup();
            (names.join(" "), doubts)
        })
    };
    let wide = Given { wide: true, ..given("time", "") };
    assert_eq!(names(LONG, &wide).unwrap(), ("temp".to_owned(), String::new()), "one column, called value");
    let doubt = "--name \"temp\" is used only in rows where column \"metric\" is empty";
    assert_eq!(names(LONG, &Given::default()).unwrap(), ("cpu memory".to_owned(), doubt.to_owned()));
    let refused = names(WIDE, &Given::default()).unwrap_err();
    assert!(refused.contains("--name \"temp\" applies to one series, but 3 columns are series"), "{refused}");
}

fn labels(pairs: &[(&str, &str)]) -> Arc<Labels> {
    Arc::new(Labels::new(pairs.iter().copied()).unwrap())
}

/// Writes series and reads them again. Returns the content of the file and its number of row groups.
fn through(series: &[(Arc<Labels>, Vec<Sample>)], entries: &[(Arc<Labels>, Vec<Entry>)]) -> (Block, usize) {
    let all_labels = series.iter().map(|(l, _)| l).chain(entries.iter().map(|(l, _)| l));
    let names: std::collections::BTreeSet<String> =
        all_labels.flat_map(|labels| labels.iter().map(|(name, _)| name.to_owned())).collect();
    let kind = if entries.is_empty() { Kind::Sample } else { Kind::Entry };
    let mut writer = Writer::new(Vec::new(), names, kind).unwrap();
    series.iter().for_each(|(labels, samples)| writer.samples(labels, samples).unwrap());
    entries.iter().for_each(|(labels, entries)| writer.entries(labels, entries).unwrap());
    let file = writer.finish().unwrap();
    // Options that agree with the layout of the file change nothing.
    let said = match kind {
        Kind::Entry => Given { texts: true, ..given("time", "text") },
        _ => given("", "value"),
    };
    assert_eq!(
        format!("{:?}", all(open(&file, &said).unwrap())),
        format!("{:?}", all(open(&file, &Given::default()).unwrap()))
    );
    let texts = open(&file, &Given { texts: true, ..Given::default() }).err();
    assert_eq!(texts.is_some_and(|e| e.contains("holds samples, not texts")), kind == Kind::Sample);
    let read = open(&file, &Given::default()).unwrap();
    let groups = super::FileReader::num_row_groups(&read.file);
    (all(read).0, groups)
}

#[test]
fn written_files_read_back_bit_for_bit() {
    let odd = labels(&[("time", "a"), ("value", "b"), ("label_x", "c"), ("x", "d"), ("n\u{f6}\n", "\"")]);
    let plain = labels(&[(NAME, "cpu"), ("host", "a")]);
    let nan = f64::from_bits(0x7ff0_0000_0000_0002);
    let values = [
        Value::F64(nan),
        Value::F64(-0.0),
        Value::F64(f64::NEG_INFINITY),
        Value::F64(5e-324),
        Value::I64(i64::MIN),
        Value::I64((1 << 53) + 1),
        Value::U64(u64::MAX),
        Value::U64(3),
    ];
    let times = [i64::MIN, -1, 0, 1, 1, 7, 1 << 60, i64::MAX];
    let samples: Vec<Sample> =
        times.into_iter().zip(values).map(|(at, value)| Sample { at, value }).collect();
    let series = [(odd.clone(), samples.clone()), (plain.clone(), samples)];
    let (block, _) = through(&series, &[]);
    assert_eq!(block.broken, vec![]);
    for ((labels, samples), read) in series.iter().zip(&block.batch.samples) {
        assert_eq!(labels, &read.labels);
        // The first sample is a NaN. Its text does not show its bits, so the bits are compared, too.
        assert_eq!(format!("{samples:?}"), format!("{:?}", read.samples));
        let bits = |list: &[Sample]| list.first().map(|sample| sample.value.as_f64().to_bits());
        assert_eq!(bits(samples), bits(&read.samples));
    }
    let entry = |at, body| Entry { at, body };
    let entries = vec![
        entry(1, Body::Text("zwei\n".into())),
        entry(1, Body::Text("".into())),
        entry(2, Body::Bytes(b"plain"[..].into())),
        entry(3, Body::Bytes(b"\x00\xff"[..].into())),
    ];
    let (block, _) = through(&[], &[(odd, entries.clone()), (plain, entries.clone())]);
    assert_eq!(block.broken, vec![]);
    assert_eq!(block.batch.entries.len(), 2);
    assert!(block.batch.entries.iter().all(|series| series.entries == entries));
}

#[test]
fn row_groups_are_bounded_and_reading_resumes_anywhere() {
    let series: Vec<_> = (0..3)
        .map(|nth| {
            let samples =
                (0..100_000).map(|at| Sample { at, value: Value::I64(at * nth) }).collect::<Vec<_>>();
            (labels(&[(NAME, "n"), ("nth", &nth.to_string())]), samples)
        })
        .collect();
    let (block, groups) = through(&series, &[]);
    assert_eq!((block.rows, block.batch.counts()[0], groups), (300_000, 300_000, 3));

    let mut writer = Writer::new(Vec::new(), ["nth".to_owned()], Kind::Sample).unwrap();
    series.iter().for_each(|(labels, samples)| writer.samples(labels, samples).unwrap());
    let file = writer.finish().unwrap();
    let mut first = open(&file, &Given::default()).unwrap();
    let mut places = vec![Place::default()];
    let (mut blocks, mut rows_read) = (Vec::new(), 0);
    while let Some(rows) = first.next_rows() {
        rows_read += rows.block.rows;
        assert_eq!(first.rows_read(), rows_read);
        blocks.push(rows.block);
        places.push(first.place());
    }
    assert!(places.len() > 5 && places.is_sorted());
    for (nth, place) in places.iter().enumerate() {
        let mut again = open(&file, &Given::default()).unwrap();
        again.seek(*place);
        assert_eq!(again.rows_read(), blocks.iter().take(nth).map(|block| block.rows).sum::<u64>());
        let mut rest = Vec::new();
        while let Some(rows) = again.next_rows() {
            rest.push(rows.block);
        }
        assert_eq!(rest, blocks[nth..], "{place:?}");
    }
}

/// Reads a damaged file. The result may be errors, but never a panic.
fn read_anyway(file: &[u8]) {
    if let Ok(parquet) = open(file, &Given::default()) {
        let (block, _) = all(parquet);
        assert!(block.batch.counts()[0] <= 1_000_000);
    }
}

#[test]
fn damaged_files_return_errors() {
    for file in [LONG, WIDE, TYPES] {
        (0..file.len()).for_each(|end| read_anyway(&file[..end]));
        for at in 0..file.len() {
            let mut damaged = file.to_vec();
            damaged[at] ^= [0x01, 0x80, 0xff][at % 3];
            read_anyway(&damaged);
        }
    }
}

#[test]
fn a_damaged_row_group_does_not_affect_others() {
    let series =
        [(labels(&[(NAME, "n")]), (0..300_000).map(|at| Sample { at, value: Value::I64(at) }).collect())];
    let mut writer = Writer::new(Vec::new(), [], Kind::Sample).unwrap();
    series.iter().for_each(|(labels, samples): &(_, Vec<Sample>)| writer.samples(labels, samples).unwrap());
    let mut file = writer.finish().unwrap();
    let middle = {
        let read = open(&file, &Given::default()).unwrap();
        let column = super::FileReader::metadata(&read.file).row_group(1).column(0).byte_range();
        usize::try_from(column.0 + column.1 / 2).unwrap()
    };
    file[middle] ^= 0xff;
    let (block, _) = all(open(&file, &Given::default()).unwrap());
    assert_eq!((block.rows, block.broken.len()), (300_000, 1));
    let said = block.broken[0].to_string();
    assert!(said.contains("row group 1 cannot be read from here on, "), "{said}");
    assert_eq!(block.batch.counts()[0] as u64 + block.lost + 1, 300_000);
    assert!(block.batch.counts()[0] >= 300_000 - (1 << 17));
}

proptest! {
    #[test]
    fn damage_at_many_positions_returns_errors(
        which in 0usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut file = [LONG, WIDE, TYPES][which].to_vec();
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        read_anyway(&file);
    }
}
