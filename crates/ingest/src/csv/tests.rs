use proptest::prelude::*;

use super::*;
use crate::time_text::TimeFormat;

/// The detected dialect of a file, its records as `labels time value`, and its broken rows.
fn read(
    file: &str,
    given: &Given,
    base: &[(&str, &str)],
) -> Result<(Dialect, Vec<String>, Vec<String>), String> {
    let detected = detect(file.as_bytes(), given)?;
    let base = base.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let mut csv = Csv::new(detected.header, detected.dialect.clone(), TimeZone::UTC, base)?;
    let block = csv.decode(&file.as_bytes()[detected.header_bytes..], 1);
    let samples = block.batch.samples.iter().flat_map(|s| {
        s.samples.iter().map(|sample| format!("{} {} {:?}", s.labels, sample.at, sample.value))
    });
    let entries =
        block.batch.entries.iter().flat_map(|s| {
            s.entries.iter().map(|entry| format!("{} {} {:?}", s.labels, entry.at, entry.body))
        });
    let broken = block.broken.iter().map(ToString::to_string).collect();
    Ok((detected.dialect, samples.chain(entries).collect(), broken))
}

#[test]
fn published_data_of_chronix_is_read() {
    let file = "Date;java.lang:name=Code Cache,type=MemoryPool/PeakUsage/init\n\
                12.08.2015 17:25:41.389;2,555,904\n12.08.2015 17:25:42.520;-1\n12.08.2015 17:25:43.598;3.49\n";
    let (dialect, records, broken) = read(file, &Given::default(), &[("host", "pre-int")]).unwrap();
    assert_eq!(
        dialect,
        Dialect {
            delimiter: b';',
            time: TimeFormat::Pattern("%d.%m.%Y %H:%M:%S%.f".into()),
            numbers: Numbers { decimal: '.', thousands: Some(',') },
            time_column: 0,
            shape: Shape::Wide,
            texts: false,
            text_columns: vec![],
            doubtful: None,
        }
    );
    let series = "java.lang:name=Code Cache,type=MemoryPool/PeakUsage/init{host=\"pre-int\"}";
    assert_eq!(
        records,
        [
            format!("{series} 1439400341389000000 F64(2555904.0)"),
            format!("{series} 1439400342520000000 F64(-1.0)"),
            format!("{series} 1439400343598000000 F64(3.49)"),
        ]
    );
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn wide_and_long_files_are_read() {
    let check = |file: &str, given: Given, base: &[(&str, &str)], expect: &[&str]| {
        let (_, records, broken) = read(file, &given, base).unwrap();
        assert_eq!((records, broken), (expect.iter().map(|s| (*s).to_owned()).collect(), vec![]), "{file}");
    };
    let given = Given::default();
    check("t,a,b\n1,2,\n2,,NaN\n", given.clone(), &[], &["a 1000000000 F64(2.0)", "b 2000000000 F64(NaN)"]);
    check(
        "time,host,name,value\n1700000000000,x,up,1\n1700000000001,y,up,9007199254740993\n",
        given.clone(),
        &[("env", "e")],
        &[
            "up{env=\"e\", host=\"x\"} 1700000000000000000 F64(1.0)",
            "up{env=\"e\", host=\"y\"} 1700000000001000000 I64(9007199254740993)",
        ],
    );
    check(
        "host\tvalue\tts\n\"a\tb\"\t1,5\t2015-01-01T00:00:00Z\n",
        given.clone(),
        &[(NAME, "up")],
        &["up{host=\"a\\tb\"} 1420070400000000000 F64(1.5)"],
    );
    let texts = Given { texts: true, value_column: Some("message".into()), ..given };
    check(
        "time,level,message\n1,info,\" a, b\"\n",
        texts,
        &[(NAME, "log")],
        &["log{level=\"info\"} 1000000000 Text(\" a, b\")"],
    );
}

#[test]
fn valid_rows_next_to_broken_rows_are_kept() {
    let file = "time,a,b\n1,1,2\nsoon,1,2\n3,x,2\n4,1,y\n5,1,2,3\n\n7,1\n";
    let (_, records, broken) = read(file, &Given::default(), &[]).unwrap();
    assert_eq!(records.iter().filter(|r| r.starts_with('a')).count(), 4, "{records:?}");
    assert_eq!(records.iter().filter(|r| r.starts_with('b')).count(), 3, "{records:?}");
    assert_eq!(
        broken,
        [
            "row 3, column \"time\": \"soon\" is not a number of s since 1970",
            "row 4, column \"a\": \"x\" is not a number",
            "row 5, column \"b\": \"y\" is not a number",
            "row 6, column 4: row has 4 columns, the header 3",
        ]
    );
    let (_, _, broken) = read("time,a,b\n1,1,2\n3,x,y\n", &Given::default(), &[]).unwrap();
    assert_eq!(broken, ["row 3, column \"a\": \"x\" is not a number (and 1 more in this row)"]);
}

#[test]
fn times_are_detected_and_undetectable_settings_are_errors() {
    let fails = |file: &str, given: &Given, expect: &str| {
        let error = read(file, given, &[]).unwrap_err();
        assert!(error.contains(expect), "{expect} in {error}");
    };
    let given = Given::default();
    fails("", &given, "file has no header");
    fails("a,b\n", &given, "file has a header and no rows");
    fails("when,a\nyesterday,1\n", &given, "unknown time format in \"yesterday\"");
    for (time, day) in [("10:00:00", "%d/%m/%Y %H:%M:%S%.f"), ("10:00", "%d/%m/%Y %H:%M"), ("", "%d/%m/%Y")] {
        let expect =
            format!("ambiguous day and month in \"01/02/2020{}", if time.is_empty() { "" } else { " " });
        fails(&format!("t,a\n01/02/2020 {time},1\n"), &given, &expect);
        fails(&format!("t,a\n01/02/2020 {time},1\n"), &given, &format!("give --time-format '{day}' or"));
    }
    fails("time,host,value\n1,a,2\n", &given, "no column names the series");
    fails(
        "t,a\n1,2\n",
        &Given { time_column: Some("x".into()), ..given.clone() },
        "no column \"x\", there are \"t, a\"",
    );
    let day = 1_581_552_000;
    for (time, expect) in [
        ("13/02/2020 10:00:00", day + 36_000),
        ("13/02/2020 10:00", day + 36_000),
        ("02/13/2020 10:00", day + 36_000),
        ("02/13/2020 10:00 PM", day + 79_200),
        ("13/02/2020", day),
        ("2020/02/13 10:00", day + 36_000),
        ("2020/02/13", day),
        ("13.02.2020 10:00", day + 36_000),
        ("2020-02-13 10:00", day + 36_000),
        ("2020-02-13T10:00Z", day + 36_000),
    ] {
        let (_, records, _) = read(&format!("t,a\n{time},1\n"), &given, &[]).unwrap();
        assert_eq!(records, [format!("a {expect}000000000 F64(1.0)")], "{time}");
    }
}

#[test]
fn without_any_delimiter_the_comma_is_assumed() {
    let delimiter = |file: &str| detect(file.as_bytes(), &Given::default()).unwrap().dialect.delimiter;
    assert_eq!(delimiter("time\n1581552000\n"), b',');
    assert_eq!(delimiter("time;a,b\n1581552000;1\n"), b';');
    assert_eq!(
        delimiter("time;a,b\n1581552000;1,5\n"),
        b';',
        "of delimiters with equal counts, the first of `DELIMITERS` is chosen"
    );
}

#[test]
fn files_that_would_be_misread_are_refused() {
    let fails = |file: &[u8], given: &Given, expect: &str| {
        let error = match detect(file, given) {
            Ok(found) => Csv::new(found.header, found.dialect, TimeZone::UTC, vec![]).err(),
            Err(error) => Some(error),
        };
        let error = error.unwrap_or_default();
        assert!(error.contains(expect), "{expect:?} in {error:?} of {}", String::from_utf8_lossy(file));
    };
    let given = Given::default();
    let utf16 = |text: &str, little: bool| -> Vec<u8> {
        let bytes = |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
        text.encode_utf16().flat_map(bytes).collect()
    };
    for (file, expect) in [
        (
            &b"time,Temp\xe9rature\n1,2\n"[..],
            "row 1 is not UTF-8: byte 0xE9 at character 10: convert the file",
        ),
        (b"\n\ntime,\xc3\xa9\xff\n1,2\n", "row 3 is not UTF-8: byte 0xFF at character 7"),
        (&utf16("\u{feff}time,a\n1,2\n", true), "file is UTF-16, as its first two bytes say"),
        (&utf16("\u{feff}time,a\n1,2\n", false), "`iconv -f utf-16 -t utf-8`"),
        (
            &utf16("time,a\n1,2\n", true),
            "row 1 has a zero byte at byte 2, probably UTF-16: convert the file, for example with `iconv -f utf-16le",
        ),
        (
            &utf16("time,a\n1,2\n", false),
            "row 1 has a zero byte at byte 1, probably UTF-16: convert the file, for example with `iconv -f utf-16be",
        ),
        (
            b"2026-01-01T00:00:00Z,1\n2026-01-01T00:01:00Z,2\n",
            "no header: the first row has \"2026-01-01T00:00:00Z\", a time",
        ),
        (b"1,2\n3,4\n5,6\n", "or give them with --columns time,value"),
        (b"02.01.2026 10:00:00;a;2\n03.01.2026 10:00:00;a;2\n", "--columns time,NAME,... (there are 3)"),
        (b"time,,b\n1,2,3\n", "column 2 has no name and holds \"2\": name it in the header"),
        (b"1767225600,0,0\n1767225601,0,0\n", "no header: the first row has \"1767225600\", a time"),
        (b"time,cpu,mem,cpu\n1,2,3,4\n", "columns 2 and 4 are both called \"cpu\""),
        (b"time,host,host,value\n1,2,3,4\n", "columns 2 and 3 are both called \"host\""),
    ] {
        fails(file, &given, expect);
    }
    let columns =
        |names: &[&str]| Given { columns: names.iter().map(|s| (*s).to_owned()).collect(), ..given.clone() };
    fails(b"1,2,3\n", &columns(&["time", "value"]), "--columns names 2 columns, the first row has 3");
    let (_, records, broken) = read("5,2\n6,3\n", &columns(&["time", "cpu"]), &[]).unwrap();
    assert_eq!(
        (&*records, broken.len()),
        (&["cpu 5000000000 F64(2.0)".to_owned(), "cpu 6000000000 F64(3.0)".into()][..], 0)
    );
    // A column whose name is a number, and the header that pandas writes for a data frame without column names.
    let named = Given { time_column: Some("0".into()), ..given.clone() };
    assert_eq!(read("0,1\n5,2\n", &named, &[]).unwrap().1, ["1 5000000000 F64(2.0)"]);
    assert_eq!(read(",0,1\n5,2,3\n", &given, &[]).unwrap().1.len(), 2);
}

#[test]
fn a_given_name_applies_only_to_values_without_a_name() {
    let base = [(NAME, "temp"), ("job", "j")];
    for (file, expect) in [
        ("time,value\n1,2\n", Ok(&["temp{job=\"j\"} 1000000000 F64(2.0)"][..])),
        ("time,host,value\n1,a,2\n", Ok(&["temp{host=\"a\", job=\"j\"} 1000000000 F64(2.0)"])),
        (
            "time,name,value\n1,up,2\n2,,3\n",
            Ok(&["up{job=\"j\"} 1000000000 F64(2.0)", "temp{job=\"j\"} 2000000000 F64(3.0)"]),
        ),
        (
            "time,cpu\n1,2\n",
            Err("--name \"temp\" applies to values without a name, but column \"cpu\" names its series"),
        ),
        ("time,cpu,mem\n1,2,3\n", Err("--name \"temp\" applies to one series, but 2 columns are series")),
    ] {
        match (read(file, &Given::default(), &base), expect) {
            (Ok((_, records, broken)), Ok(expect)) => assert_eq!(
                (&*records, broken),
                (&expect.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..], vec![])
            ),
            (Err(error), Err(expect)) => assert!(error.contains(expect), "{expect} in {error}"),
            (got, expect) => panic!("{file:?}: {got:?}, expected {expect:?}"),
        }
    }
}

#[test]
fn texts_in_a_wide_file_exclude_only_their_column() {
    let file = "time,cpu,status,mem,note\n1,1,ok,2,\n2,3,ok,x,\n3,5,fine,6,\n";
    let found = detect(file.as_bytes(), &Given::default()).unwrap();
    assert_eq!(found.dialect.text_columns, [2]);
    let mut csv = Csv::new(found.header, found.dialect, TimeZone::UTC, vec![]).unwrap();
    let rest = &file.as_bytes()[found.header_bytes..];
    for _ in 0..2 {
        let block = csv.decode(rest, 1);
        assert_eq!(block.texts_skipped, [("status".to_owned(), 3)].into());
        assert_eq!(block.batch.samples.iter().map(|series| series.samples.len()).sum::<usize>(), 5);
        let broken: Vec<String> = block.broken.iter().map(ToString::to_string).collect();
        assert_eq!(broken, ["row 3, column \"mem\": \"x\" is not a number"]);
    }
    // If such a column has a number in a later block, the number is kept.
    let block = csv.decode(b"4,1,7,2,\n", 4);
    assert_eq!((block.texts_skipped.len(), block.batch.samples.len()), (0, 3));
}

#[test]
fn an_ambiguous_comma_is_refused_cell_by_cell() {
    let said = |decimal: char| Given { decimal: Some(decimal), ..Given::default() };
    let doubt = "row 2, column \"a\": \"1,234\" is ambiguous, 1234 or 1.234: \
                 give --decimal . or --decimal ,";
    for (file, given, values, expect) in [
        ("t;a\n1;1,234\n2;5\n", Given::default(), &[5.0][..], &[doubt][..]),
        ("t\ta\n1\t1,234\n2\t5\n", Given::default(), &[5.0], &[doubt]),
        ("t;a\n1;1,234\n2;1,5\n", Given::default(), &[1.234, 1.5], &[]),
        ("t;a\n1;1,234\n2;1.234,5\n", Given::default(), &[1.234, 1234.5], &[]),
        ("t;a\n1;1,234\n2;1.5\n", Given::default(), &[1234.0, 1.5], &[]),
        ("t;a\n1;1,5\n2;1.234\n", Given::default(), &[1.5, 1234.0], &[]),
        ("t;a\n1;1,234\n", said(','), &[1.234], &[]),
        ("t;a\n1;1,234\n", said('.'), &[1234.0], &[]),
        ("t,a\n1,\"1,234\"\n", Given::default(), &[1234.0], &[]),
    ] {
        let (_, records, broken) = read(file, &given, &[]).unwrap();
        let got: Vec<&str> = records
            .iter()
            .filter_map(|record| record.split_once("F64("))
            .map(|(_, v)| v.trim_end_matches(')'))
            .collect();
        let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        assert_eq!(
            (got, broken),
            (values.iter().map(String::as_str).collect(), expect.iter().map(|s| (*s).to_owned()).collect()),
            "{file:?}"
        );
    }
}

#[test]
fn ambiguous_choices_are_reported() {
    let doubts = |file: &str| detect(file.as_bytes(), &Given::default()).unwrap().doubts;
    assert_eq!(
        doubts("t,a\n1,\"1,234\"\n"),
        ["\"1,234\" is read as 1234; another number format fits as well"]
    );
    assert_eq!(doubts("t;a\n1;1.234\n").len(), 1);
    assert_eq!(doubts("t;a\n1;1,234\n").len(), 0, "an ambiguous cell must be refused, not reported");
    assert_eq!(doubts("t;a\n1;1,234\n2;1,234,567\n"), Vec::<String>::new());
    assert_eq!(doubts("t;a\n1;1.5\n2;100\n"), Vec::<String>::new());
}

#[test]
fn number_format_of_other_files_decides_ambiguities() {
    let numbers = |file: &str, like: Option<Numbers>| {
        let found = detect(file.as_bytes(), &Given { like, ..Given::default() }).unwrap();
        (
            found.dialect.numbers.thousands,
            found.dialect.numbers.decimal,
            found.doubts.len(),
            found.numbers_certain,
        )
    };
    let german = Some(Numbers { decimal: ',', thousands: Some('.') });
    assert_eq!(numbers("t;a\n1;-1\n", None), (None, '.', 0, false));
    assert_eq!(numbers("t;a\n1;-1\n", german), (Some('.'), ',', 0, false));
    assert_eq!(numbers("t;a\n1;1,234\n", german), (Some('.'), ',', 0, false));
    assert_eq!(numbers("t;a\n1;1,234.5\n", german), (Some(','), '.', 0, true));
    // The format of other files also decides the decimal point when that format has no thousands separator.
    assert_eq!(numbers("t;a\n1;1,5\n", None), (None, ',', 0, true));
    let [comma, point] = [',', '.'].map(|decimal| Some(Numbers { decimal, thousands: None }));
    assert_eq!(numbers("t;a\n1;1,234\n", comma), (None, ',', 0, false));
    assert_eq!(numbers("t;a\n1;1,234\n", point), (Some(','), '.', 0, false));
    let late = format!("t;a\n{}1;1,234,567\n", "1;-1\n".repeat(5_000));
    assert_eq!(numbers(&late, None).0, Some(','));
}

#[test]
fn labels_with_reserved_names_get_a_prefix() {
    let names = ["Date", "label_x", "name", "value", "zone"].map(str::to_owned);
    let mut header = String::new();
    write_header(&mut header, &names);
    assert_eq!(header, "time,name,label_Date,label_label_x,label_name,label_value,zone,value\n");
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(detected) = detect(&bytes, &Given::default())
            && let Ok(mut csv) = Csv::new(detected.header, detected.dialect, TimeZone::UTC, vec![])
        {
            let block = csv.decode(&bytes, 0);
            prop_assert!(block.broken.len() as u64 <= block.rows);
            let whole = csv.whole(&bytes);
            prop_assert!(whole <= bytes.len());
            // The number of rows is the same if the block is cut at the length that `whole` returns.
            let (front, back) = bytes.split_at(whole);
            let parts = csv.decode(front, 0).rows + csv.decode(back, 0).rows;
            prop_assert_eq!(parts, block.rows);
        }
    }
}

proptest! {
    #[test]
    fn written_rows_read_back(
        pairs in prop::collection::btree_map("[a-z]{2,6}", "[^\u{0}]{1,9}", 1..4),
        name in "[^\u{0}]{1,13}",
        samples in prop::collection::vec((any::<i64>(), any::<f64>()), 1..20),
    ) {
        let names: Vec<String> = pairs.keys().cloned().collect();
        let labels = Labels::new(pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).chain([(NAME, name.as_str())]));
        let labels = labels.unwrap();
        let samples: Vec<Sample> =
            samples.into_iter().map(|(at, value)| Sample { at, value: Value::F64(value) }).collect();
        let mut text = String::new();
        write_header(&mut text, &names);
        write_samples(&mut text, &names, &labels, &samples);
        let given = Given { delimiter: Some(b','), time: Some(TimeFormat::Iso), decimal: Some('.'), ..Given::default() };
        let detected = detect(text.as_bytes(), &given).unwrap();
        let dialect = Dialect { numbers: Numbers::default(), ..detected.dialect };
        let mut csv = Csv::new(detected.header, dialect, TimeZone::UTC, vec![]).unwrap();
        let block = csv.decode(&text.as_bytes()[detected.header_bytes..], 1);
        prop_assert_eq!(block.broken, vec![]);
        let columns: Vec<(String, &String)> = pairs.iter().map(|(n, v)| (write::column(n), v)).collect();
        let labels = Labels::new(columns.iter().map(|(n, v)| (n.as_str(), v.as_str())).chain([(NAME, name.as_str())]));
        let expect = SampleSeries { labels: Arc::new(labels.unwrap()), samples };
        prop_assert_eq!(block.batch.samples, vec![expect]);
    }
}
