//! Is the memory for decoding a body limited by the size of the body? Tests the worst body that a search finds.
//!
//! This is the only test in its process. The entry points of the server are tested in `server/tests/peak.rs`, Parquet
//! in `peak_parquet.rs`.

#[path = "support/climb.rs"]
mod climb;

use std::fmt::Write;

use climb::{Shape, Taken};
use tacho_ingest::budget::{Budget, memory_bytes_max};
use tacho_ingest::json_lines::JsonLines;
use tacho_ingest::line_protocol::{Decoder, Precision};
use tacho_ingest::open_metrics::{Exposition, OpenMetrics};
use tacho_ingest::rows::{self, Rows};
use tacho_ingest::wire::{ClientFrame, DICT_IDS_MAX, FrameDecoder, Hello, Session};
use tacho_ingest::{csv, remote_write};

/// Number of shapes (the numbers that define a body) that the search tries for each decoder in addition to the given shapes.
const TRIES: usize = 12;
/// Approximate length of the bodies in the search. The fixed part of the budget dominates for small bodies.
const BODY_BYTES: usize = 200_000;

/// A decoder of bodies, with its limit of memory.
struct Door {
    name: &'static str,
    body: fn(&Shape) -> Vec<u8>,
    decode: fn(&[u8]),
    bound: fn(usize) -> usize,
    /// Shapes with which the search starts.
    worst: &'static [Shape],
}

#[test]
fn no_body_takes_more_memory_than_its_bytes_allow() {
    for door in DOORS {
        climb::climb(door.name, door.worst, TRIES, |shape| {
            let body = (door.body)(shape);
            let peak = climb::peak(|| (door.decode)(&body));
            Taken { peak, bound: (door.bound)(body.len()), body: body.len() }
        });
    }
    new_series_stay_within_the_budget_of_their_body();
}

/// Bodies whose lines all create a series. They are larger than the bodies of the search, because the fixed part of the budget
/// hides the memory of small bodies. A list doubles at powers of two; 66,000 and 132,000 are slightly above such powers.
fn new_series_stay_within_the_budget_of_their_body() {
    let mut highest = 0.0f64;
    for lines in [30_000, 60_000, 66_000, 100_000, 132_000] {
        let line = |tag: &str, number: usize, time: &str| format!("m,host={tag}{number} v=1{time}\n");
        let time = " 1763758800000000000";
        let short: String = (0..lines).map(|number| format!("{} v=1\n", name(number))).collect();
        let usual: String = (0..lines).map(|number| line("", number, time)).collect();
        let long: String = (0..lines).map(|number| line(&"h".repeat(60), number, time)).collect();
        for (body, all) in [(short, false), (usual, true), (long, true)] {
            let mut refused = 0;
            let peak = climb::peak(|| {
                let decoded = Decoder::default().decode(body.as_bytes(), Precision::Nanoseconds, 0);
                refused = decoded.rejects.count;
            });
            let bound = memory_bytes_max(body.len());
            println!(
                "{lines} lines, {} bytes: peak {peak}, {} each, {refused} refused",
                body.len(),
                peak / lines
            );
            assert!(
                peak <= bound,
                "{lines} new series: {peak} bytes for a body of {}, {bound} allowed",
                body.len()
            );
            assert!(!all || refused == 0, "{refused} of {lines} new series were refused");
            highest = highest.max(peak as f64 / bound as f64);
        }
    }
    println!("new series: {highest:.2} of their bound");
}

const DOORS: &[Door] = &[
    Door {
        name: "line protocol",
        body: lines,
        decode: |body| {
            let mut decoder = Decoder::default();
            drop(decoder.decode(body, Precision::Nanoseconds, 0));
            drop(decoder.decode(body, Precision::Nanoseconds, 1));
        },
        bound: memory_bytes_max,
        // Number of tags, bytes of a tag's value, number of fields, bytes of a measurement, form of a value, number of
        // consecutive lines with the same measurement.
        worst: &[
            [63, 4_000, 30_000, 1, 0, 1],
            [15, 4_000, 30_000, 1, 0, 1],
            [0, 0, 100_000, 1, 0, 1],
            [0, 0, 1, 1, 0, 1],
            [60, 10, 40, 4_000, 1, 3],
            [1, 1, 1, 1, 1, 1],
            [0, 0, 1, 1, 3, 1],
        ],
    },
    Door {
        name: "remote write",
        body: write_request,
        decode: |body| drop(remote_write::decode(body, 64 << 20)),
        // Snappy decompresses a body to at most 22 times its length.
        bound: |bytes| memory_bytes_max(22 * bytes).min(memory_bytes_max(BODY_BYTES + (1 << 20))),
        // Number of labels, bytes of a value, number of samples, form of a sample, number of empty labels, whether the
        // series are distinct.
        worst: &[
            [1, 1, 1, 0, 0, 1],
            [1, 1, 100_000, 0, 0, 1],
            [64, 1, 1, 1, 0, 1],
            [200, 0, 0, 0, 9, 0],
            [1, 1, 1, 1, 0, 0],
        ],
    },
    Door {
        name: "frames",
        body: frames,
        decode: import,
        bound: memory_bytes_max,
        // Kind of record, number of records in a frame, bytes of a text, number of values in a record (kind 5: labels of a
        // series, kind 6: fields of a record type), number of ids, number of frames.
        worst: &[
            [0, 9_000, 1, 1, 1, 9],
            [0, 1, 1, 100_000, 1, 1],
            [1, 60_000, 0, 1, 1, 1],
            [2, 30_000, 0, 0, 1, 1],
            [2, 100, 4_000, 900, 1, 9],
            [3, 9_000, 4_000, 64, 1, 1],
            [3, 900, 4_000, 64, 1, 64],
            [4, 60_000, 0, 0, 1, 1],
            [4, 9, 0, 0, 60_000, 1],
            [5, 1, 0, 190_000, 1, 1],
            [6, 1, 0, 64, 1, 1],
            [6, 1, 0, 1, 1, 1],
        ],
    },
    Door {
        name: "JSON lines",
        body: json,
        decode: |body| drop(JsonLines::new(jiff::tz::TimeZone::UTC).decode(body, 0)),
        bound: rows::memory_bytes_max,
        // Form of a line, number of labels, bytes of a value, number of values.
        worst: &[
            [0, 1, 1, 1, 0, 0],
            [1, 1, 1, 100_000, 0, 0],
            [2, 1, 1, 1, 0, 0],
            [3, 0, 0, 0, 0, 0],
            [1, 1, 1, 1, 0, 0],
        ],
    },
    Door {
        name: "OpenMetrics",
        body: exposition,
        decode: |body| drop(OpenMetrics::new(Exposition::Prometheus, 0).decode(body, 0)),
        bound: rows::memory_bytes_max,
        // Form of a line, number of labels, bytes of a value.
        worst: &[[0, 0, 0, 0, 0, 0], [0, 60, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0]],
    },
    Door {
        name: "CSV",
        body: table,
        decode: read_table,
        bound: rows::memory_bytes_max,
        // Long (0) or wide (1), number of columns, bytes of a name, bytes of a cell, whether the cells are broken.
        worst: &[
            [0, 62, 250, 1, 0, 0],
            [0, 2, 1, 1, 0, 0],
            [1, 2_000, 4, 1, 0, 0],
            [1, 2, 1, 1, 1, 0],
            [0, 1, 1, 0, 1, 0],
        ],
    },
];

/// Writes a number as a short name. Different numbers have different names.
fn name(mut number: usize) -> String {
    let mut out = String::new();
    loop {
        out.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
        if number == 0 {
            return out;
        }
    }
}

/// Repeats rows until a body is full. `row` writes the row with the given number.
fn rows_of(head: String, mut row: impl FnMut(&mut String, usize)) -> Vec<u8> {
    let mut out = head;
    for number in 0.. {
        if out.len() >= BODY_BYTES {
            break;
        }
        row(&mut out, number);
        out.push('\n');
    }
    out.into_bytes()
}

/// Writes a pair of name and value for each number of `names`. All names are distinct; a value has `value_bytes` bytes, at most
/// 5,000. `before`, `between` and `behind` are written around the name and the value of each pair.
fn pairs(
    out: &mut String,
    names: std::ops::Range<usize>,
    value_bytes: usize,
    [before, between, behind]: [&str; 3],
) {
    let value = "v".repeat(value_bytes.min(5_000));
    for number in names {
        let _ = write!(out, "{before}{}{between}{value}{behind}", name(number));
    }
}

fn lines(shape: &Shape) -> Vec<u8> {
    let [tags, tag_bytes, fields, measurement_bytes, form, same] = *shape;
    let value = ["1", "t", "1i", "\"\"", "\"x\"", "x"][form % 6];
    rows_of(String::new(), |out, number| {
        out.push_str(&"m".repeat(measurement_bytes.min(5_000)));
        out.push_str(&name(number / same.max(1)));
        pairs(out, 0..tags.min(100), tag_bytes.max(1), [",", "=", ""]);
        for field in 0..fields.max(1) {
            let _ = write!(out, "{}{}={value}", if field == 0 { ' ' } else { ',' }, name(field));
        }
    })
}

fn varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    varint(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn write_request(shape: &Shape) -> Vec<u8> {
    let [labels, value_bytes, samples, form, empty, distinct] = *shape;
    let mut message = Vec::new();
    let mut number = 0;
    while message.len() < BODY_BYTES {
        let mut series = Vec::new();
        for label in 0..labels.min(500) {
            let mut pair = Vec::new();
            field(&mut pair, 1, name(label).as_bytes());
            let own = if label == 0 && distinct % 2 == 1 { name(number) } else { String::new() };
            field(&mut pair, 2, (own + &"v".repeat(value_bytes.min(5_000))).as_bytes());
            field(&mut series, 1, &pair);
        }
        for _ in 0..samples.min(200_000) {
            let sample: &[u8] = if form % 2 == 0 { &[] } else { &[9, 0, 0, 0, 0, 0, 0, 0, 1, 16, 1] };
            field(&mut series, 2, sample);
        }
        (0..empty.min(1_000)).for_each(|_| field(&mut series, 1, &[]));
        field(&mut message, 1, &series);
        number += 1;
    }
    snap::raw::Encoder::new().compress_vec(&message).unwrap()
}

/// Writes a frame as a sender does: header, checksum, body.
fn frame(out: &mut Vec<u8>, type_byte: u8, body: &[u8]) {
    let mut header = (body.len() as u32).to_le_bytes().to_vec();
    header.extend_from_slice(&[type_byte, 0, 0, 0]);
    let sum = crc32c::crc32c_append(crc32c::crc32c(&header), body);
    out.extend_from_slice(&header);
    out.extend_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(body);
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    varint(out, text.len());
    out.extend_from_slice(text);
}

/// HELLO, a dictionary, and frames of records. What fills the body depends on the kind: records, or definitions.
fn frames(shape: &Shape) -> Vec<u8> {
    let [kind, records, text_bytes, numbers, ids, frames] = *shape;
    let mut out = Vec::new();
    let hello =
        Hello { version_min: 1, version_max: 1, session: 1, pairs: vec![], secret: None, token: None };
    ClientFrame::Hello(hello).encode(&mut out);
    let mut dictionary = Vec::new();
    dictionary.extend_from_slice(&[1, 1]);
    string(&mut dictionary, &b"\x01".repeat(text_bytes.min(5_000)));
    dictionary.extend_from_slice(&[2, 1, 1, 1, b'a', 3, 1, 1, 1, b'a', 1, b'b', 3, 2, 1, 1, b'a', 1, b'c']);
    // A record type of 64 fields; each is a text given by its dictionary id.
    dictionary.extend_from_slice(&[4, 1, 1, b'r', 64]);
    for field in 0..64 {
        dictionary.push(5);
        string(&mut dictionary, format!("{}{field}", "f".repeat(text_bytes.min(250))).as_bytes());
        dictionary.push(0);
    }
    for id in 0..ids.min(DICT_IDS_MAX as usize / 2) {
        for kind in [1, 2, 3] {
            dictionary.push(kind);
            varint(&mut dictionary, DICT_IDS_MAX as usize - 2 * id);
            dictionary.extend_from_slice(if kind == 2 { &[1, 0] } else { &[0] });
        }
    }
    // Record types with the given number of fields and the shortest possible names.
    let (mut number, fields) = (0, numbers.clamp(1, 64));
    while kind % 7 == 6 && dictionary.len() < BODY_BYTES {
        number = number % (DICT_IDS_MAX as usize - 1) + 1;
        dictionary.push(4);
        varint(&mut dictionary, number);
        string(&mut dictionary, name(number).as_bytes());
        varint(&mut dictionary, fields);
        for field in 0..fields {
            dictionary.push(5);
            string(&mut dictionary, name(field).as_bytes());
            dictionary.push(0);
        }
    }
    if kind % 7 == 5 {
        dictionary.extend_from_slice(&[3, 3]);
        varint(&mut dictionary, numbers.min(200_000));
        (0..numbers.min(200_000)).for_each(|_| dictionary.extend_from_slice(&[0, 0]));
    }
    frame(&mut out, 2, &dictionary);
    for nth in 0..frames.clamp(1, 500) {
        let mut data = vec![];
        varint(&mut data, nth + 1);
        data.extend_from_slice(&[0; 8]);
        for record in 0..records.max(1) {
            put_record(&mut data, kind % 7, record, numbers);
            if data.len() > BODY_BYTES {
                break;
            }
        }
        frame(&mut out, 3, &data);
        if out.len() > BODY_BYTES {
            break;
        }
    }
    out
}

fn put_record(data: &mut Vec<u8>, kind: usize, nth: usize, numbers: usize) {
    let mut record = Vec::new();
    let numbers = numbers.min(200_000);
    match kind {
        // Samples of two series alternately.
        0 => {
            record.extend_from_slice(&[3, 1 + (nth % 2) as u8]);
            varint(&mut record, numbers);
            (0..numbers).for_each(|_| record.extend_from_slice(&[0, 1]));
        }
        // Empty texts.
        1 => record.extend_from_slice(&[1 + (nth % 2) as u8, 0, 0, 0]),
        // A call with attributes; all attributes have the same text as value.
        2 => {
            record.extend_from_slice(&[16, 1, 1, 0, 2, 1, 1, 0]);
            varint(&mut record, numbers.min(4_096));
            (0..numbers.min(4_096)).for_each(|_| record.extend_from_slice(&[0, 1, 0, 1]));
        }
        // A declared record. All fields have the same text, or all have no value.
        3 => {
            record.extend_from_slice(&[1, 1, 0, 2]);
            let nulls = if numbers == 0 { 0xff } else { 0 };
            record.extend_from_slice(&[nulls; 8]);
            (0..if numbers == 0 { 0 } else { 64 }).for_each(|_| record.push(1));
        }
        // A segment without events, which is refused.
        _ => record.extend_from_slice(&[0, 1, 1, 0, 0]),
    }
    data.push([1, 2, 3, 4, 3, 3, 3][kind]);
    string(data, &record);
}

fn import(body: &[u8]) {
    let (mut decoder, mut budget) = (FrameDecoder::new(), Budget::of_body(body.len()));
    decoder.push(body);
    let mut session: Option<Session> = None;
    let mut kept = Vec::new();
    while let Ok(Some(frame)) = decoder.pull() {
        match (ClientFrame::decode(frame).unwrap(), &mut session) {
            (ClientFrame::Hello(hello), _) => session = Some(Session::new(&hello).unwrap()),
            (ClientFrame::Dict(body), Some(session)) => drop(session.define(body)),
            (ClientFrame::Data(body), Some(session)) => kept.extend(session.data_within(body, &mut budget)),
            _ => {}
        }
    }
}

fn json(shape: &Shape) -> Vec<u8> {
    let [form, labels, value_bytes, values, ..] = *shape;
    let list = |item: &str| vec![item; values.min(200_000)].join(",");
    let rest = match form % 4 {
        0 => r#","time":1,"value":1}"#.to_owned(),
        1 => format!(r#","values":[{}],"timestamps":[{}]}}"#, list("1"), list("1")),
        _ => format!(r#","entries":[{}],"timestamps":[{}]}}"#, list("\"\""), list("1")),
    };
    rows_of(String::new(), |out, number| {
        if form % 4 == 3 {
            return out.push('x');
        }
        let _ = write!(out, "{{\"a\":\"{}\"", name(number));
        pairs(out, 26..26 + labels.min(80), value_bytes, [",\"", "\":\"", "\""]);
        out.push_str(&rest);
    })
}

fn exposition(shape: &Shape) -> Vec<u8> {
    let [form, labels, value_bytes, ..] = *shape;
    rows_of(String::new(), |out, number| match form % 3 {
        0 => {
            out.push_str(&name(number));
            if labels > 0 {
                out.push('{');
                pairs(out, 0..labels.min(80), value_bytes, ["", "=\"", "\","]);
                out.push('}');
            }
            out.push_str(" 1");
        }
        1 => {
            let _ = write!(out, "# TYPE {} info", name(number));
        }
        _ => out.push('x'),
    })
}

fn table(shape: &Shape) -> Vec<u8> {
    let [long, columns, name_bytes, cell_bytes, broken, _] = *shape;
    let (is_long, columns) = (long % 2 == 0, columns.min(4_000));
    let names: Vec<String> =
        (0..columns).map(|c| format!("{}{}", "n".repeat(name_bytes.min(250)), name(c))).collect();
    let head = format!("time,{}{}\n", names.join(","), if is_long { ",value" } else { "" });
    let number_cell = "1".repeat(cell_bytes.clamp(1, 300));
    rows_of(head, |out, number| {
        let _ = write!(out, "{}", 1_700_000_000 + number);
        for column in 0..columns {
            out.push(',');
            match (broken % 2 == 1, is_long) {
                (true, _) => out.push('x'),
                (false, true) => out.push_str(&name(number / (1 + column))),
                (false, false) => out.push_str(&number_cell),
            }
        }
        out.push_str(if is_long { ",1" } else { "" });
    })
}

fn read_table(body: &[u8]) {
    let head = body.get(..body.len().min(1 << 20)).unwrap();
    let Ok(found) = csv::detect(head, &csv::Given::default()) else { return };
    let base = vec![("__name__".to_owned(), "n".to_owned())];
    let base = if found.dialect.shape == csv::Shape::Wide { vec![] } else { base };
    let Ok(mut csv) = csv::Csv::new(found.header, found.dialect, jiff::tz::TimeZone::UTC, base) else {
        return;
    };
    drop(csv.decode(body.get(found.header_bytes..).unwrap(), 1));
}
