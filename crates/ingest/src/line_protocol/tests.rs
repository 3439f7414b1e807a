//! Lines, and the expected records or errors.

use proptest::prelude::*;
use tacho_model::limits::{ENTRY_BYTES_MAX, LABEL_VALUE_BYTES_MAX};
use tacho_model::{Body, Value};

use super::*;

const NOW: Timestamp = 99;

/// Each record as `series @ time = value`, samples first; and each refused line.
fn read(input: &[u8], precision: Precision) -> (Vec<String>, Vec<String>) {
    let decoded = decode(input, precision, NOW);
    let samples = decoded.batch.samples.iter().flat_map(|series| {
        series.samples.iter().map(|sample| {
            let value = match sample.value {
                Value::F64(value) => format!("{value}"),
                Value::I64(value) => format!("{value}i"),
                Value::U64(value) => format!("{value}u"),
            };
            format!("{} @ {} = {value}", series.labels, sample.at)
        })
    });
    let entries = decoded.batch.entries.iter().flat_map(|series| {
        series.entries.iter().map(|entry| {
            let Body::Text(text) = &entry.body else { panic!("an entry of bytes instead of a text") };
            format!("{} @ {} = {text:?}", series.labels, entry.at)
        })
    });
    (samples.chain(entries).collect(), decoded.rejects.named.iter().map(Refused::to_string).collect())
}

fn check(input: &str, expect: &[&str], refused: &[&str]) {
    let (kept, rejects) = read(input.as_bytes(), Precision::Nanoseconds);
    assert_eq!((kept, rejects), (strings(expect), strings(refused)), "{input}");
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn values_of_every_type_are_read() {
    check("cpu value=1.5 7", &["cpu @ 7 = 1.5"], &[]);
    check(
        "m a=-1e3,b=9007199254740993i,c=18446744073709551615u,d=t,e=False,f=\"x\",g=+.5,h=-9223372036854775808i",
        &[
            "m_a @ 99 = -1000",
            "m_b @ 99 = 9007199254740993i",
            "m_c @ 99 = 18446744073709551615u",
            "m_d @ 99 = 1u",
            "m_e @ 99 = 0u",
            "m_g @ 99 = 0.5",
            "m_h @ 99 = -9223372036854775808i",
            "m_f @ 99 = \"x\"",
        ],
        &[],
    );
}

#[test]
fn times_without_a_stated_unit_are_not_read_as_nanoseconds_if_another_unit_is_plausible() {
    for (time, remedy) in [
        ("1700000000", Some("on 1970-01-01 as ns, and on 2023-11-14 as s: give the parameter precision=s,")),
        ("315532800", Some("precision=s")),
        ("4102444799", Some("precision=s")),
        (
            "1700000000123",
            Some("on 2023-11-14 as ms: give the parameter precision=ms, or precision=ns if 1970-01-01"),
        ),
        ("315532800000", Some("precision=ms")),
        ("4102444799999", Some("precision=ms")),
        (
            "1700000000123456",
            Some("on 1970-01-20 as ns, and on 2023-11-14 as us: give the parameter precision=us"),
        ),
        ("4102444799999999", Some("precision=us")),
        ("0", None),
        ("1", None),
        ("-1700000000", None),
        ("315532799", None),
        ("4102444800", None),
        ("315532799999", None),
        ("4102444800000", None),
        ("315532799999999", None),
        ("4102444800000000", None),
        ("1700000000000000000", None),
    ] {
        let line = format!("m v=1 {time}\nn v=1\n");
        let kept = |decoded: &Decoded| {
            decoded.batch.samples.iter().map(|series| series.samples.len()).sum::<usize>()
        };
        let decoded = decode(line.as_bytes(), Precision::Assumed, NOW);
        let refused: Vec<String> = decoded.rejects.named.iter().map(Refused::to_string).collect();
        assert_eq!(
            (kept(&decoded), refused.len()),
            (2 - refused.len(), usize::from(remedy.is_some())),
            "{time}"
        );
        for (refused, remedy) in refused.iter().zip(remedy) {
            assert!(refused.starts_with(&format!("line 1, column 7: time {time} is on ")), "{refused}");
            assert!(refused.contains(remedy), "{remedy:?} in {refused}");
        }
        // A stated unit is the sender's decision.
        assert_eq!(kept(&decode(line.as_bytes(), Precision::Nanoseconds, NOW)), 2, "{time}");
    }
}

#[test]
fn heads_and_fields_find_their_series() {
    check(
        "m,t=1 a=1,b=2 1\nm,t=1 b=3,a=4 2\nm,t=2 a=5 3\nm,t=1 a=6,b=7 4\n",
        &[
            "m_a{t=\"1\"} @ 1 = 1",
            "m_a{t=\"1\"} @ 2 = 4",
            "m_a{t=\"1\"} @ 4 = 6",
            "m_b{t=\"1\"} @ 1 = 2",
            "m_b{t=\"1\"} @ 2 = 3",
            "m_b{t=\"1\"} @ 4 = 7",
            "m_a{t=\"2\"} @ 3 = 5",
        ],
        &[],
    );
}

#[test]
fn escapes_comments_and_blanks_are_read() {
    check(
        "# a comment\n\n  \r\nweather\\,\\ today,straße=größe\\ 1\\,\\=漢 value=\"say \\\"🚀\\\" \\\\ \\n\" 1\r\n",
        &["weather, today{straße=\"größe 1,=漢\"} @ 1 = \"say \\\"🚀\\\" \\\\ \\\\n\""],
        &[],
    );
    check("m f\\ g=1", &["m_f g @ 99 = 1"], &[]);
    check("m,a=b\\c value=1", &["m{a=\"b\\\\c\"} @ 99 = 1"], &[]);
    check("m value=\"two\nlines\" 5\nm value=1 6", &["m @ 6 = 1", "m @ 5 = \"two\\nlines\""], &[]);
    check("m value=\"\" 5", &["m @ 5 = \"\""], &[]);
}

#[test]
fn valid_lines_next_to_invalid_lines_are_kept() {
    check(
        "m value=1 1\nm value=x 2\nm value=3 3",
        &["m @ 1 = 1", "m @ 3 = 3"],
        &["line 2, column 9: \"x\" is not a finite number, a boolean or a quoted string"],
    );
    check(
        "m value=\"open 1\nm value=2 2",
        &["m @ 2 = 2"],
        &["line 1, column 9: string without a closing quote"],
    );
    check(
        "m value=\"a\nb\"c\nm value=1",
        &["m @ 99 = 1"],
        &["line 2, column 3: unexpected \"c\" after a field"],
    );
    check("m a=1,b=", &[], &["line 1, column 9: \"\" is not a finite number, a boolean or a quoted string"]);
}

#[test]
fn every_error_names_its_position() {
    let fault = |input: &str, expect: &str| check(input, &[], &[&format!("line 1, column {expect}")]);
    fault("m", "2: line has no fields");
    fault("m ", "3: line has no fields");
    fault(",t=1 value=1", "1: measurement has no name");
    fault("m,t value=1", "3: tag \"t\" has no value");
    fault("m,t= value=1", "3: tag \"t\" has no value");
    fault("m,=1 value=1", "3: tag has no name");
    fault("m, value=1", "3: tag has no name");
    fault("m,a=1,a=2 value=1", "11: label \"a\" is given twice");
    fault("m =1", "3: field has no name");
    fault("m value", "3: field \"value\" has no value");
    fault("m value=1,", "11: field has no name");
    fault("m value=1 x", "11: \"x\" is not a time");
    fault("m value=1 1.5", "11: \"1.5\" is not a time");
    fault("m value=1 1 2", "13: unexpected \"2\" after the time");
    fault("m value=inf", "9: \"inf\" is not a finite number, a boolean or a quoted string");
    fault("m value=NaN", "9: \"NaN\" is not a finite number, a boolean or a quoted string");
    fault("m value=1e400", "9: \"1e400\" is not a finite number, a boolean or a quoted string");
    fault(
        "m value=9223372036854775808i",
        "9: \"9223372036854775808i\" is not a finite number, a boolean or a quoted string",
    );
}

#[test]
fn invalid_utf8_is_refused_with_its_position() {
    let (kept, refused) =
        read(b"m,a=\xff value=1\nm value=\"\xff\"\nm \xff=1\nm value=2", Precision::Nanoseconds);
    assert_eq!(kept, ["m @ 99 = 2"]);
    assert_eq!(
        refused,
        [
            "line 1, column 5: name that is not UTF-8",
            "line 2, column 10: string that is not UTF-8",
            "line 3, column 3: name that is not UTF-8"
        ]
    );
}

#[test]
fn times_are_counted_in_the_given_unit() {
    let at = |precision: &str, input: &str| read(input.as_bytes(), precision.parse().unwrap());
    assert_eq!(at("ms", "m value=1 -5").0, ["m @ -5000000 = 1"]);
    assert_eq!(at("s", "m value=1 5").0, ["m @ 5000000000 = 1"]);
    assert_eq!(at("h", "m value=1").0, ["m @ 99 = 1"], "now is in ns");
    assert_eq!(
        at("s", "m value=1 9223372037").1,
        ["line 1, column 11: time 9223372037 is outside the years 1677 to 2262"]
    );
    assert!("d".parse::<Precision>().unwrap_err().starts_with("unknown precision \"d\""));
}

#[test]
fn the_limit_is_accepted_and_one_past_it_is_refused() {
    let tag = |bytes: usize| format!("m,t={} value=1", "x".repeat(bytes));
    assert_eq!(read(tag(LABEL_VALUE_BYTES_MAX).as_bytes(), Precision::Nanoseconds).1, strings(&[]));
    assert_eq!(
        read(tag(LABEL_VALUE_BYTES_MAX + 1).as_bytes(), Precision::Nanoseconds).1,
        ["line 1, column 4103: value of label \"t\" has 4097 bytes, at most 4096 are allowed"]
    );
    let string = |bytes: usize| format!("m value=\"\\\"{}\"", "x".repeat(bytes - 1));
    assert_eq!(read(string(ENTRY_BYTES_MAX).as_bytes(), Precision::Nanoseconds).1, strings(&[]));
    assert_eq!(
        read(string(ENTRY_BYTES_MAX + 1).as_bytes(), Precision::Nanoseconds).1,
        ["line 1, column 10: string of 1048577 bytes, at most 1048576 are allowed"]
    );
}

#[test]
fn all_invalid_lines_are_counted_and_some_are_named() {
    let decoded = decode(&b"bad\n".repeat(1000), Precision::Nanoseconds, NOW);
    assert_eq!((decoded.rejects.count, decoded.rejects.named.len()), (1000, crate::REJECTS_NAMED_MAX));
}

#[test]
fn a_decoder_discards_its_table_above_the_limit() {
    let mut decoder = Decoder::default();
    let tag = "x".repeat(4_000);
    for body in 0..3 {
        let lines: String =
            (0..1_500).map(|i| format!("m,t={tag}{},u={body} value={i} 1\n", i % 90)).collect();
        let decoded = decoder.decode(lines.as_bytes(), Precision::Nanoseconds, NOW);
        assert_eq!((decoded.batch.samples.len(), decoded.batch.counts()[0]), (90, 1_500));
    }
    assert_eq!(decoder.resets(), 0);
    let lines: String = (0..1_500).map(|i| format!("m,t={i}{tag} value={i} 1\n")).collect();
    assert_eq!(decoder.decode(lines.as_bytes(), Precision::Nanoseconds, NOW).batch.samples.len(), 1_500);
    assert_eq!(decoder.resets(), 1);
    assert_eq!(decoder.decode(b"m,t=1 value=1 1", Precision::Nanoseconds, NOW).batch.samples.len(), 1);
}

/// Lines with few different heads and keys. Some lines are invalid.
fn any_line() -> impl Strategy<Value = String> {
    let head =
        prop_oneof![Just("m"), Just("m,t=1"), Just("m,t=2"), Just("n,t=1"), Just("m,t=1,t=1"), Just("m,t")];
    let value = prop_oneof![
        6 => any::<i16>().prop_map(|n| n.to_string()),
        4 => any::<i64>().prop_map(|n| format!("{n}i")),
        4 => any::<f32>().prop_map(|n| n.to_string()),
        1 => Just("t".to_owned()),
        1 => Just("\"x y\"".to_owned()),
        1 => Just("x".to_owned()),
    ];
    let field = (prop_oneof![Just("a"), Just("b"), Just("c"), Just("value"), Just("")], value);
    let end = prop_oneof![4 => any::<i64>().prop_map(|at| format!(" {at}")), 1 => Just(String::new()), 1 => Just(" x".into())];
    (head, proptest::collection::vec(field, 0..5), end).prop_map(|(head, fields, end)| {
        let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        format!("{head} {}{end}\n", fields.join(","))
    })
}

/// Each record as its series and its debug form, samples first.
fn records(batch: &Batch) -> Vec<String> {
    let samples = batch.samples.iter().flat_map(|s| s.samples.iter().map(|v| format!("{} {v:?}", s.labels)));
    let entries = batch.entries.iter().flat_map(|s| s.entries.iter().map(|v| format!("{} {v:?}", s.labels)));
    samples.chain(entries).collect()
}

proptest! {
    #[test]
    fn any_names_and_values_are_read_back(
        measurement in "[a-zö漢 ,]{1,9}x",
        tag in "[a-zö= ,]{1,9}x",
        value in "[a-zö漢= ,\"]{1,9}x",
        text in ".{0,30}",
        number in any::<i64>(),
        at in any::<i64>(),
    ) {
        let escape = |text: &str, set: &[char]| -> String {
            text.chars().flat_map(|c| set.contains(&c).then_some('\\').into_iter().chain([c])).collect()
        };
        let line = format!(
            "{},{}={} i={number}i,s=\"{}\" {at}",
            escape(&measurement, &[',', ' ']),
            escape(&tag, &[',', '=', ' ']),
            escape(&value, &[',', '=', ' ']),
            escape(&text, &['"', '\\']),
        );
        // Blanks before a line are not part of the line.
        prop_assume!(!measurement.starts_with(' '));
        let decoded = decode(line.as_bytes(), Precision::Nanoseconds, NOW);
        prop_assert!(decoded.rejects.is_empty(), "{line}: {:?}", decoded.rejects);
        let samples = &decoded.batch.samples[0];
        prop_assert_eq!(samples.labels.name(), format!("{measurement}_i"));
        prop_assert_eq!(samples.labels.get(&tag), Some(value.as_str()));
        prop_assert_eq!(samples.samples[0], tacho_model::Sample { at, value: Value::I64(number) });
        let entry = &decoded.batch.entries[0].entries[0];
        prop_assert_eq!(entry.body.as_bytes(), text.as_bytes());
    }

    #[test]
    fn remembered_series_do_not_change_results(
        bodies in proptest::collection::vec(proptest::collection::vec(any_line(), 0..12), 1..5),
    ) {
        let mut decoder = Decoder::default();
        for lines in bodies {
            let body = lines.concat();
            let fresh = lines.iter().map(|line| decode(line.as_bytes(), Precision::Nanoseconds, NOW).batch);
            let mut expect: Vec<String> = fresh.flat_map(|batch| records(&batch)).collect();
            let decoded = decoder.decode(body.as_bytes(), Precision::Nanoseconds, NOW);
            prop_assert_eq!(&decoded, &decode(body.as_bytes(), Precision::Nanoseconds, NOW));
            let mut got = records(&decoded.batch);
            got.sort_unstable();
            expect.sort_unstable();
            prop_assert_eq!(got, expect, "{}", body);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read(input in proptest::collection::vec(any::<u8>(), 0..200)) {
        decode(&input, Precision::Seconds, NOW);
    }

    #[test]
    fn any_line_like_text_is_refused_or_read(input in "[a,= \"\\\\\n\r#1iu.e-]{0,80}") {
        decode(input.as_bytes(), Precision::Hours, NOW);
    }
}
