//! Decoders of rows never panic. A row that is reported as broken is always within the file. The numbers of rows,
//! broken rows and records do not depend on the boundaries of blocks. This independence is not checked for the line protocol.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacho_ingest::csv::{Csv, Given, detect};
use tacho_ingest::json_lines::JsonLines;
use tacho_ingest::line_protocol::Precision;
use tacho_ingest::line_rows::LineProtocol;
use tacho_ingest::open_metrics::{Exposition, OpenMetrics};
use tacho_ingest::rows::{Block, Rows};
use tacho_ingest::time_text::TimeZone;

fuzz_target!(|bytes: &[u8]| {
    let zone = TimeZone::UTC;
    check(JsonLines::new(zone.clone()), bytes);
    // The line protocol is not decoded in two blocks: after an error the decoder continues after the next line feed, even inside
    // a string. So it may find other ends of lines than `whole`.
    alone(LineProtocol::new(Precision::Nanoseconds, 0), bytes);
    check(OpenMetrics::new(Exposition::OpenMetrics, 0), bytes);
    check(OpenMetrics::new(Exposition::Prometheus, 0), bytes);
    if let Ok(found) = detect(bytes, &Given::default())
        && let Ok(csv) = Csv::new(found.header, found.dialect, zone, vec![])
    {
        check(csv, bytes.get(found.header_bytes..).unwrap_or_default());
    }
});

fn alone(mut rows: impl Rows, bytes: &[u8]) -> Block {
    assert!(rows.whole(bytes) <= bytes.len());
    let all = rows.decode(bytes, 0);
    assert!(all.broken.len() as u64 <= all.rows);
    for broken in &all.broken {
        assert!(broken.row >= 1 && broken.row <= all.rows && bytes.get(broken.bytes.clone()).is_some());
    }
    all
}

fn check(rows: impl Rows + Clone, bytes: &[u8]) {
    let all = alone(rows.clone(), bytes);
    let (front, back) = bytes.split_at(rows.whole(bytes));
    let mut rows = rows;
    let first = rows.decode(front, 0);
    let second = rows.decode(back, first.rows);
    assert_eq!(first.rows + second.rows, all.rows);
    assert_eq!(first.broken.len() + second.broken.len(), all.broken.len());
    let counts = |n: usize| first.batch.counts()[n] + second.batch.counts()[n];
    assert_eq!([counts(0), counts(1)], [all.batch.counts()[0], all.batch.counts()[1]]);
}
