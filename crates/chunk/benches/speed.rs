//! How fast are chunks encoded and decoded? `cargo bench -p tacho-chunk` prints the fastest of several runs.

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::Instant;

use common::rng::Rng;
use common::{columns, logs, web};
use tacho_chunk::pack::PackedSamples;
use tacho_chunk::{Chunk, Encoding, GroupColumn, Values, encode_entries, encode_executions, encode_group};

const RUNS: usize = 20;
const SAMPLES: usize = 8_192;

fn main() {
    let at: Vec<i64> = (0..SAMPLES as i64).map(|n| n * 10_000_000_000).collect();
    println!("{:<36} bytes a value | million a second: sealed, merged, read", "columns of a chunk");
    for column in columns::all(SAMPLES) {
        values(&at, column.name, column.values.as_values());
    }
    open_chunks();
    println!("{:<36} share of the text | MB of text a second: sealed, merged, read", "logs");
    for log in &logs::ALL {
        texts(log.name, &log.lines(1, SAMPLES));
    }

    let (segments, operations) = (web::requests(7_500, 7), web::operations());
    let block = common::block(&segments, &operations);
    let calls = block.calls();
    best("push calls", calls, || common::block(&segments, &operations));
    let bytes = encode_executions(&block);
    println!("{:.3} bytes a call", bytes.len() as f64 / calls as f64);
    best("encode calls", calls, || encode_executions(&block));
    best("decode calls", calls, || Chunk::open(&bytes).and_then(|chunk| chunk.executions()));
    best("decode trace ids", calls, || Chunk::open(&bytes).and_then(|chunk| chunk.execution_traces()));
}

/// Encodes one column of a chunk, with statistics and checksum, at both efforts, and decodes it.
fn values(at: &[i64], name: &str, values: Values<'_>) {
    let columns = [GroupColumn { member: 0, values, loss: None }];
    let write = |encoding: Encoding| encode_group(at, 0, &columns, &encoding);
    let sealed = speed(SAMPLES, || write(Encoding::default()));
    let merged = speed(SAMPLES, || write(Encoding::thorough()));
    let bytes = write(Encoding::default());
    let chunk = Chunk::open(&bytes).expect("a newly encoded chunk is valid");
    let read = speed(SAMPLES, || chunk.values(0));
    let each = bytes.len() as f64 / SAMPLES as f64;
    println!("{name:<36} {each:>13.3} | {sealed:>8.1} {merged:>8.1} {read:>8.1}");
}

/// Encodes a full chunk of log lines at both efforts, and decodes it.
fn texts(name: &str, lines: &[String]) {
    let entries = logs::entries(lines);
    let text: usize = lines.iter().map(String::len).sum();
    let sealed = speed(text, || encode_entries(&entries, &Encoding::default()));
    let merged = speed(text, || encode_entries(&entries, &Encoding::thorough()));
    let bytes = encode_entries(&entries, &Encoding::thorough());
    let read = speed(text, || Chunk::open(&bytes).and_then(|chunk| chunk.entries()));
    let share = bytes.len() as f64 / text as f64;
    println!("{name:<36} {share:>17.3} | {sealed:>8.0} {merged:>8.0} {read:>8.0}");
}

/// Packs samples with a period of ten seconds, and unpacks them.
fn open_chunks() {
    let walk = columns::walk(&mut Rng(2), SAMPLES);
    let words = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect();
    open_samples("whole", words(&columns::whole(&walk)));
    open_samples("two decimals", words(&columns::decimals(&walk, 2)));
    open_samples("full precision", words(&walk));
    open_samples("integers", walk.iter().map(|value| *value as u64).collect());
}

fn open_samples(name: &str, words: Vec<u64>) {
    let push = || {
        let mut packed = PackedSamples::default();
        for (n, word) in (0..).zip(&words) {
            packed.push(n * 10_000_000_000, *word);
        }
        packed
    };
    best(&format!("push, {name}"), SAMPLES, push);
    let packed = push();
    best(&format!("unpack, {name}"), SAMPLES, || {
        let (mut at, mut words) = (vec![], vec![]);
        packed.unpack_into(&mut at, &mut words);
        (at, words)
    });
    println!("{:.3} bytes a sample, {name}", packed.bytes() as f64 / SAMPLES as f64);
}

/// Millions of `records` per second in the fastest run. For texts, `records` is the number of bytes.
fn speed<T>(records: usize, mut run: impl FnMut() -> T) -> f64 {
    let time = |_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed().as_secs_f64()
    };
    let seconds = (0..RUNS).map(time).fold(f64::INFINITY, f64::min);
    records as f64 / seconds / 1e6
}

fn best<T>(name: &str, records: usize, run: impl FnMut() -> T) {
    println!("{name:<32} {:>8.2} million a second", speed(records, run));
}
