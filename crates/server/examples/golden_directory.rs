//! Sends the records of a golden data directory to a running server: `golden_directory HTTP RECORDS PART`. HTTP and RECORDS are
//! addresses of the server, PART is 1 or 2. Part 1 also deletes some samples, adds a rule for probes, and
//! requests a merge. In part 1, a second agent sends a declared record, and so many calls that their merged chunk has a summary.
//! Some of its segments have callers.
//! Part 2 also deletes the samples of a series by a pattern. `scripts/golden-directory.sh` makes such a directory.

#[path = "../tests/support/agent.rs"]
mod agent;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use agent::{Agent, content};
use tacho_ingest::wire::{
    DataFrame, DeclaredRecord, DictFrame, FieldType, FieldValue, RecordField, RecordType, SegmentRecord,
    TraceForm,
};
use tacho_model::{SpanId, mix64};

const FRAMES: [std::ops::RangeInclusive<u64>; 2] = [1..=40, 41..=60];
const SESSION: u128 = 77;
/// The session of the second agent, of the service `web`. It sends 10 frames with 64 calls each.
const WEB_SESSION: u128 = 78;
const WEB_FRAMES: u64 = 10;
const WEB_SEGMENTS: u64 = 32;
/// As in `crates/ingest/src/wire/segment.rs`: a span base is `session + (number << CALL_BITS)`.
const CALL_BITS: u32 = 24;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [http, records, part] = &args[..] else { panic!("usage: golden_directory HTTP RECORDS PART") };
    let (http, records): (SocketAddr, SocketAddr) = (http.parse().unwrap(), records.parse().unwrap());
    let frames = match &**part {
        "1" => FRAMES[0].clone(),
        _ => FRAMES[1].clone(),
    };
    let last = *frames.end();
    let mut agent = Agent::connect(records, &agent::hello(SESSION)).expect("server greets");
    agent.send(&agent::dictionary(SESSION));
    agent.send_frames(frames.clone());
    agent.wait_ack(last);
    let lines: String = frames
        .map(|n| format!("line,host=a value={n}.5 {}\n", 1_700_000_000_000_000_000 + n * 1_000_000_000))
        .collect();
    post(http, "/write", &lines);
    if part == "1" {
        send_web(records);
        post(http, "/api/v1/admin/tsdb/delete_series?match[]=line&end=1700000010", "");
        post(http, "/api/v1/probes?state=aggregate&pattern=com.shop..*&keep=1", "");
        post(http, "/api/v1/admin/merge", "");
    } else {
        post(http, "/write", "gone value=1 1700000000000000000");
        post(http, "/api/v1/admin/tsdb/delete_series?match[]=%7B__name__%3D~%22gon.%22%7D", "");
    }
}

fn send_web(records: SocketAddr) {
    let mut hello = agent::hello(WEB_SESSION);
    hello
        .pairs
        .iter_mut()
        .filter(|(key, _)| key == "service")
        .for_each(|(_, service)| *service = "web".into());
    let mut agent = Agent::connect(records, &hello).expect("server greets");
    agent.send(&agent::dictionary(WEB_SESSION));
    let field =
        |field_type, name: &str, unit: &str| RecordField { field_type, name: name.into(), unit: unit.into() };
    let fields = [field(FieldType::Text, "customer", ""), field(FieldType::F64, "total", "EUR")];
    let mut declared = DictFrame::new();
    declared.series(20, [("__name__", "order_placed"), ("service", "web")].into_iter());
    declared.record_type(1, &RecordType { name: "order_placed".into(), fields: fields.into() });
    agent.send(&declared.finish());
    for seq in 1..=WEB_FRAMES {
        let base = content::base(seq);
        let mut frame = DataFrame::new(seq, base);
        let first = seq * WEB_SEGMENTS;
        for n in 0..WEB_SEGMENTS {
            // The inner call of the first segment caused the others.
            let caused = (n > 0).then(|| SpanId(mix64(WEB_SESSION as u64 + (first << CALL_BITS) + 1)));
            frame.segment(&SegmentRecord {
                number: first + n,
                trace: if n > 0 { TraceForm::OfSegment(first) } else { TraceForm::Own },
                parent: caused,
                thread: 1,
                start: base + 1_000 * n as i64,
                continued: None,
                events: &content::events(first + n),
                attributes: &[],
            });
        }
        if seq == 1 {
            let values = [FieldValue::Text("ada"), FieldValue::F64(9.5)];
            frame.declared(&DeclaredRecord {
                record_type: 1,
                series: 20,
                at: base,
                call: None,
                values: &values,
            });
        }
        agent.send(&frame.finish());
    }
    agent.wait_ack(WEB_FRAMES);
}

fn post(at: SocketAddr, path: &str, body: &str) {
    let mut stream = TcpStream::connect(at).unwrap();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close");
    write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 20"), "{path}: {answer}");
}
