use proptest::prelude::*;

use super::*;

fn decode(text: &str) -> Block {
    JsonLines::new(TimeZone::UTC).decode(text.as_bytes(), 0)
}

/// Expects these records, as `labels time value`, and no broken row.
fn check(line: &str, expect: &[&str]) {
    let block = decode(line);
    assert_eq!(block.broken, vec![], "{line}");
    let samples = block.batch.samples.iter().flat_map(|s| {
        s.samples.iter().map(|sample| format!("{} {} {:?}", s.labels, sample.at, sample.value))
    });
    let entries =
        block.batch.entries.iter().flat_map(|s| {
            s.entries.iter().map(|entry| format!("{} {} {:?}", s.labels, entry.at, entry.body))
        });
    assert_eq!(samples.chain(entries).collect::<Vec<_>>(), expect, "{line}");
}

fn fails(line: &str, expect: &str) {
    let block = decode(&format!("{line}\n{{\"__name__\":\"good\",\"time\":1,\"value\":1}}\n"));
    let [broken] = &*block.broken else { panic!("{line}: {:?}", block.broken) };
    assert_eq!(broken.to_string(), format!("line 1, {expect}"), "{line}");
    assert_eq!(broken.bytes, 0..line.len() + 1);
    assert_eq!((block.rows, block.batch.counts()), (2, [1, 0, 0]), "the next row must be kept");
}

#[test]
fn lines_of_both_shapes_are_read() {
    check(
        r#"{"metric":{"__name__":"up","job":"a"},"values":[1, 0.5,null,"-Infinity"],"timestamps":[1700000000000,1,2,-3]}"#,
        &[
            "up{job=\"a\"} 1700000000000000000 F64(1.0)",
            "up{job=\"a\"} 1000000 F64(0.5)",
            "up{job=\"a\"} 2000000 F64(NaN)",
            "up{job=\"a\"} -3000000 F64(-inf)",
        ],
    );
    check(
        r#"{"timestamps":[0],"nanoseconds":[7],"values":[18446744073709551615],"type":"u64","metric":{"__name__":"n"}}"#,
        &["n 7 U64(18446744073709551615)"],
    );
    check(
        r#"{"__name__":"up","time":"1970-01-01T00:00:01Z","value":-0.0,"host":"\u00e4\ud83d\ude00","gone":null}"#,
        &["up{host=\"ä😀\"} 1000000000 F64(-0.0)"],
    );
    check(
        r#"{"labels":{"__name__":"up"},"time":1700000000.25,"value":1e3}"#,
        &["up 1700000000250000000 F64(1000.0)"],
    );
    check(
        r#"{"__name__":"log","time":1700000000000,"value":"a\nb"}"#,
        &["log 1700000000000000000 Text(\"a\\nb\")"],
    );
    check(
        r#"{"__name__":"lsof","time":1,"value":{"pid": 7,"files":["a"]}}"#,
        &["lsof 1000000000 Text(\"{\\\"pid\\\": 7,\\\"files\\\":[\\\"a\\\"]}\")"],
    );
    check("\n  \n", &[]);
}

#[test]
fn errors_name_position_and_value() {
    fails(r#"{"__name__":"up","time":"soon","value":1}"#, "byte 25: \"soon\" is not a time in ISO 8601");
    fails(r#"{"__name__":"up","time":1}"#, "byte 27: member \"value\" is missing");
    fails(r#"{"time":1,"value":1}"#, "byte 21: no labels: give \"__name__\" at least");
    fails(r#"{"__name__":"up","time":1,"value":1"#, "byte 36: '}' is missing");
    fails(r#"{"__name__":"up","time":1,"value":1}x"#, "byte 37: bytes after the object");
    fails(r#"{"__name__":7,"time":1,"value":1}"#, "byte 13: label \"__name__\" is not a text");
    fails(r#"{"__name__":"a\q"}"#, "byte 17: 'q' cannot be escaped");
    fails(r#"{"__name__":"\ud800"}"#, "byte 20: unpaired surrogate");
    let values = r#"{"metric":{"__name__":"n"},"values":[1,2],"timestamps":[1]}"#;
    fails(values, "byte 37: 2 values, but 1 times");
    let value = r#"{"metric":{"__name__":"n"},"type":"i64","values":[1.5],"timestamps":[1]}"#;
    fails(value, "byte 51: \"1.5\" is not a whole number of 64 bits");
    let time = r#"{"metric":{"__name__":"n"},"values":[1],"timestamps":[9999999999999999]}"#;
    fails(time, "byte 55: time is not a whole number of milliseconds in the years 1677 to 2262");
    for (values, nanoseconds) in [("1,2", "5"), ("1,2", "5,6,7"), ("1,2", "")] {
        let line = format!(
            r#"{{"metric":{{"__name__":"n"}},"values":[{values}],"timestamps":[1,2],"nanoseconds":[{nanoseconds}]}}"#
        );
        // The error is at the end of the array, or at its third number.
        let at = 78 + nanoseconds.len().min(3);
        fails(&line, &format!("byte {at}: nanoseconds do not fit the times"));
    }
    for entry in [r#"{"foo":"00ff"}"#, r#"{"hex":"00","hex":"ff"}"#, r#"{"hex":"0"}"#, "{}"] {
        let line = format!(r#"{{"metric":{{"__name__":"n"}},"entries":[{entry}],"timestamps":[1]}}"#);
        fails(&line, "byte 39: bytes of an entry are not {\"hex\":\"00ff\"}, or are over 1 MiB");
    }
    fails(&format!("{{\"a\":{}", "[".repeat(100)), "byte 6: label \"a\" is not a text");
    fails(&format!("{{\"values\":{}", "[".repeat(100)), "byte 44: more than 32 levels");
}

#[test]
fn a_row_that_is_not_utf8_is_one_broken_row() {
    let block = JsonLines::new(TimeZone::UTC).decode(b"{\"a\":\"\xff\"}\n", 4);
    assert_eq!(block.broken[0].to_string(), "line 5, byte 7: the line is not UTF-8");
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u64>().prop_map(|bits| Value::F64(f64::from_bits(bits))),
        prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 5e-324])
            .prop_map(Value::F64),
        (-1000i32..1000).prop_map(|n| Value::F64(f64::from(n) / 8.0)),
        any::<i64>().prop_map(Value::I64),
        any::<u64>().prop_map(Value::U64),
    ]
}

fn any_time() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), (0i64..1 << 40).prop_map(|ms| ms * 1_000_000), Just(i64::MIN), Just(i64::MAX)]
}

proptest! {
    #[test]
    fn written_lines_read_back_bit_for_bit(
        labels in prop::collection::btree_map(".{1,12}", ".{1,12}", 1..5),
        samples in prop::collection::vec((any_time(), any_value()), 1..40),
        entries in prop::collection::vec((any_time(), prop_oneof![
            ".{0,30}".prop_map(|text| Body::Text(text.into())),
            prop::collection::vec(any::<u8>(), 0..30).prop_map(|bytes| Body::Bytes(bytes.into())),
        ]), 1..20),
    ) {
        let labels = Arc::new(Labels::new(labels).unwrap());
        let samples: Vec<Sample> = samples.into_iter().map(|(at, value)| Sample { at, value }).collect();
        let entries: Vec<Entry> = entries.into_iter().map(|(at, body)| Entry { at, body }).collect();
        let mut text = String::new();
        write_samples(&mut text, &labels, &samples);
        write_entries(&mut text, &labels, &entries);
        let block = decode(&text);
        prop_assert_eq!(block.broken, vec![]);
        prop_assert!(block.batch.samples.iter().all(|series| series.labels == labels));
        let back: Vec<Sample> = block.batch.samples.into_iter().flat_map(|series| series.samples).collect();
        prop_assert_eq!(back, samples);
        prop_assert_eq!(block.batch.entries, vec![EntrySeries { labels, entries }]);
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let block = JsonLines::new(TimeZone::UTC).decode(&bytes, 0);
        prop_assert_eq!(block.rows as usize, bytes.split_inclusive(|byte| *byte == b'\n').count());
        prop_assert!(block.broken.len() as u64 <= block.rows);
    }
}

#[test]
fn samples_that_are_aggregates_are_counted() {
    let line = |within: &str| {
        format!(r#"{{"metric":{{"__name__":"a"}},"values":[1,2],"timestamps":[1,2]{within}}}"#) + "\n"
    };
    for (within, thinned) in [
        ("", 0),
        (r#","within":{"value":0.5,"time_ns":7}"#, 0),
        (r#","within":{"value":0,"time_ns":0,"thinned":{"how":"avg","step_ns":3600000000000}}"#, 2),
        (r#","within":7"#, 0),
    ] {
        let block = decode(&line(within));
        assert_eq!((block.broken.len(), block.thinned), (0, thinned), "{within}");
        assert_eq!(block.batch.samples[0].samples.len(), 2);
    }
}
