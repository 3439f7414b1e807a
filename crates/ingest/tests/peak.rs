//! Is what decoding takes bounded by the body's bytes, for the worst body that can be found?
//!
//! Each door has bodies that were bad once, and a climber that changes the shape of a body as long as it takes more memory for
//! its bytes. One test, alone in its process: the allocator counts for all threads.

use std::fmt::Write;

use peak_alloc::PeakAlloc;
use tacho_ingest::json_lines::JsonLines;
use tacho_ingest::line_protocol::{Decoder, Precision};
use tacho_ingest::open_metrics::{Exposition, OpenMetrics};
use tacho_ingest::room::{Room, memory_bytes_max};
use tacho_ingest::rows::{self, Rows};
use tacho_ingest::wire::{ClientFrame, DICT_IDS_MAX, FrameDecoder, Hello, Session};
use tacho_ingest::{csv, remote_write};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Shapes that the climber tries for each door.
const TRIES: usize = 12;
/// Bodies of the climber are about this long: what small ones take for their bytes is in the bound's fixed part.
const BODY_BYTES: usize = 200_000;

/// A body is made of these numbers; what they mean is the door's own.
type Shape = [usize; 6];

struct Door {
    name: &'static str,
    body: fn(&Shape) -> Vec<u8>,
    decode: fn(&[u8]),
    bound: fn(usize) -> usize,
    /// Shapes that begin the search.
    worst: &'static [Shape],
}

#[test]
fn no_body_takes_more_memory_than_its_bytes_allow() {
    for door in DOORS {
        let mut best = (0.0, [0; 6]);
        for shape in door.worst {
            best = better(door, best, *shape);
        }
        let mut random = Numbers(7);
        for _ in 0..TRIES {
            let mut shape = best.1;
            for _ in 0..=random.below(2) {
                let at = random.below(shape.len());
                shape[at] = match random.below(4) {
                    0 => shape[at] * 2,
                    1 => shape[at] / 2,
                    2 => shape[at] + 1,
                    _ => random.below(70),
                };
            }
            best = better(door, best, shape);
        }
        println!("{}: {:.2} of its bound, shape {:?}", door.name, best.0, best.1);
    }
}

fn better(door: &Door, best: (f64, Shape), shape: Shape) -> (f64, Shape) {
    let body = (door.body)(&shape);
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    (door.decode)(&body);
    let peak = MEMORY.peak_usage().saturating_sub(before);
    let bound = (door.bound)(body.len());
    let (name, bytes) = (door.name, body.len());
    assert!(
        peak <= bound,
        "{name}: {peak} bytes for a body of {bytes}, at most {bound} are allowed: shape {shape:?}"
    );
    let share = peak as f64 / bound as f64;
    if share > best.0 { (share, shape) } else { best }
}

/// A generator of numbers that look random (Numerical Recipes' constants), the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
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
        // Tags, bytes of each, fields, bytes of a measurement, form of a value, lines with one head.
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
        bound: |bytes| memory_bytes_max(22 * bytes).min(memory_bytes_max(BODY_BYTES + (1 << 20))),
        // Labels, bytes of a value, samples, form of a sample, empty fields, distinct series.
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
        // Kind of record, records of a frame, bytes of a text, numbers of a record, ids, frames.
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
        ],
    },
    Door {
        name: "JSON lines",
        body: json,
        decode: |body| drop(JsonLines::new(jiff::tz::TimeZone::UTC).decode(body, 0)),
        bound: rows::memory_bytes_max,
        // Shape of a line, labels, bytes of a value, values.
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
        // Form of a line, labels, bytes of a value.
        worst: &[[0, 0, 0, 0, 0, 0], [0, 60, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0]],
    },
    Door {
        name: "CSV",
        body: table,
        decode: read_table,
        bound: rows::memory_bytes_max,
        // Long or wide, columns, bytes of a name, bytes of a cell, broken cells.
        worst: &[
            [0, 62, 250, 1, 0, 0],
            [0, 2, 1, 1, 0, 0],
            [1, 2_000, 4, 1, 0, 0],
            [1, 2, 1, 1, 1, 0],
            [0, 1, 1, 0, 1, 0],
        ],
    },
];

/// Numbers as short names that differ.
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

fn lines(shape: &Shape) -> Vec<u8> {
    let [tags, tag_bytes, fields, measurement_bytes, form, same] = *shape;
    let value = ["1", "t", "1i", "\"\"", "\"x\"", "x"][form % 6];
    let mut out = String::new();
    let mut number = 0;
    while out.len() < BODY_BYTES {
        let head = number / same.max(1);
        out.push_str(&"m".repeat(measurement_bytes.min(5_000)));
        out.push_str(&name(head));
        for tag in 0..tags.min(100) {
            let _ = write!(out, ",{}={}", name(tag), "v".repeat(tag_bytes.clamp(1, 5_000)));
        }
        for field in 0..fields.max(1) {
            let _ = write!(out, "{}{}={value}", if field == 0 { ' ' } else { ',' }, name(field));
        }
        out.push('\n');
        number += 1;
    }
    out.into_bytes()
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

/// Header and checksum as a sender makes them.
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

/// A dictionary with a text, a series and a record type, then frames of records that use them.
fn frames(shape: &Shape) -> Vec<u8> {
    let [kind, records, text_bytes, numbers, ids, frames] = *shape;
    let mut out = Vec::new();
    let hello = Hello { version_min: 1, version_max: 1, session: 1, pairs: vec![] };
    ClientFrame::Hello(hello).encode(&mut out);
    let mut dictionary = Vec::new();
    dictionary.extend_from_slice(&[1, 1]);
    string(&mut dictionary, &b"\x01".repeat(text_bytes.min(5_000)));
    dictionary.extend_from_slice(&[2, 1, 1, 1, b'a', 3, 1, 1, 1, b'a', 1, b'b', 3, 2, 1, 1, b'a', 1, b'c']);
    // A record type of 64 fields of texts by number.
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
    if kind % 6 == 5 {
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
            put_record(&mut data, kind % 6, record, numbers);
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
        // Samples of two series in turn.
        0 => {
            record.extend_from_slice(&[3, 1 + (nth % 2) as u8]);
            varint(&mut record, numbers);
            (0..numbers).for_each(|_| record.extend_from_slice(&[0, 1]));
        }
        // Empty texts.
        1 => record.extend_from_slice(&[1 + (nth % 2) as u8, 0, 0, 0]),
        // A call with attributes whose values are one text.
        2 => {
            record.extend_from_slice(&[16, 1, 1, 0, 2, 1, 1, 0]);
            varint(&mut record, numbers.min(4_096));
            (0..numbers.min(4_096)).for_each(|_| record.extend_from_slice(&[0, 1, 0, 1]));
        }
        // A declared record, its fields one text each, or none.
        3 => {
            record.extend_from_slice(&[1, 1, 0, 2]);
            let nulls = if numbers == 0 { 0xff } else { 0 };
            record.extend_from_slice(&[nulls; 8]);
            (0..if numbers == 0 { 0 } else { 64 }).for_each(|_| record.push(1));
        }
        // A segment without anything; its thread is a number.
        _ => record.extend_from_slice(&[0, 1, 1, 0, 0]),
    }
    data.push([1, 2, 3, 4, 3, 3][kind]);
    string(data, &record);
}

fn import(body: &[u8]) {
    let (mut decoder, mut room) = (FrameDecoder::new(), Room::of_body(body.len()));
    decoder.push(body);
    let mut session: Option<Session> = None;
    let mut kept = Vec::new();
    while let Ok(Some(frame)) = decoder.pull() {
        match (ClientFrame::decode(frame).unwrap(), &mut session) {
            (ClientFrame::Hello(hello), _) => session = Some(Session::new(&hello).unwrap()),
            (ClientFrame::Dict(body), Some(session)) => drop(session.define(body)),
            (ClientFrame::Data(body), Some(session)) => kept.extend(session.data_within(body, &mut room)),
            _ => {}
        }
    }
}

fn json(shape: &Shape) -> Vec<u8> {
    let [form, labels, value_bytes, values, ..] = *shape;
    let mut out = String::new();
    let mut number = 0;
    while out.len() < BODY_BYTES {
        if form % 4 == 3 {
            out.push_str("x\n");
            continue;
        }
        let _ = write!(out, "{{\"a\":\"{}\"", name(number));
        for label in 0..labels.min(80) {
            let _ = write!(out, ",\"{}\":\"{}\"", name(26 + label), "v".repeat(value_bytes.min(5_000)));
        }
        let count = values.min(200_000);
        let list = |item: &str| vec![item; count].join(",");
        let _ = match form % 4 {
            0 => writeln!(out, ",\"time\":1,\"value\":1}}"),
            1 => writeln!(out, ",\"values\":[{}],\"timestamps\":[{}]}}", list("1"), list("1")),
            _ => writeln!(out, ",\"entries\":[{}],\"timestamps\":[{}]}}", list("\"\""), list("1")),
        };
        number += 1;
    }
    out.into_bytes()
}

fn exposition(shape: &Shape) -> Vec<u8> {
    let [form, labels, value_bytes, ..] = *shape;
    let mut out = String::new();
    let mut number = 0;
    while out.len() < BODY_BYTES {
        let pairs: Vec<String> = (0..labels.min(80))
            .map(|label| format!("{}=\"{}\"", name(label), "v".repeat(value_bytes.min(5_000))))
            .collect();
        let pairs = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
        let _ = match form % 3 {
            0 => writeln!(out, "{}{pairs} 1", name(number)),
            1 => writeln!(out, "# TYPE {} info", name(number)),
            _ => writeln!(out, "x"),
        };
        number += 1;
    }
    out.into_bytes()
}

/// A header, then rows.
fn table(shape: &Shape) -> Vec<u8> {
    let [long, columns, name_bytes, cell_bytes, broken, _] = *shape;
    let columns = columns.min(4_000);
    let names: Vec<String> =
        (0..columns).map(|c| format!("{}{}", "n".repeat(name_bytes.min(250)), name(c))).collect();
    let mut out = format!("time,{}{}\n", names.join(","), if long % 2 == 0 { ",value" } else { "" });
    let mut number = 0;
    while out.len() < BODY_BYTES {
        let _ = write!(out, "{}", 1_700_000_000 + number);
        for column in 0..columns {
            let cell = if long % 2 == 0 {
                name(number / (1 + column))
            } else {
                "1".repeat(cell_bytes.clamp(1, 300))
            };
            let _ = write!(out, ",{}", if broken % 2 == 1 { "x" } else { &cell });
        }
        out.push_str(if long % 2 == 0 { ",1\n" } else { "\n" });
        number += 1;
    }
    out.into_bytes()
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
