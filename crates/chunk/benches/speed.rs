//! How fast are chunks written and read? `cargo bench -p tacho-chunk` prints the best of several runs.

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::Instant;

use common::rng::Rng;
use common::web;
use tacho_chunk::pack::PackedSamples;
use tacho_chunk::{Chunk, Values, encode_executions};

const RUNS: usize = 20;
const SAMPLES: usize = 8_192;

fn main() {
    let mut rng = Rng(2);
    let at: Vec<i64> = (0..SAMPLES as i64).map(|n| n * 5_000_000_000 + rng.below(1_000_000) as i64).collect();
    let gauge: Vec<f64> = (0..SAMPLES).map(|n| (n as f64 / 50.0).sin() * 40.0 + rng.normal()).collect();
    let cents: Vec<f64> = gauge.iter().map(|value| (value * 100.0).round() / 100.0).collect();
    samples("full precision", &at, &gauge);
    samples("two decimals", &at, &cents);

    open_chunks(&mut rng);

    let (segments, operations) = (web::requests(7_500, 7), web::operations());
    let block = common::block(&segments, &operations);
    let calls = block.calls();
    best("push calls", calls, || common::block(&segments, &operations));
    let bytes = encode_executions(&block);
    println!("{:.3} bytes a call", bytes.len() as f64 / calls as f64);
    best("encode calls", calls, || encode_executions(&block));
    best("decode calls", calls, || Chunk::open(&bytes).and_then(|chunk| chunk.executions()));
}

/// Samples every ten seconds into packed columns, and out again.
fn open_chunks(rng: &mut Rng) {
    let mut level = 50.0;
    let walk = (0..SAMPLES).map(|_| {
        level = (level + rng.normal()).clamp(0.0, 100.0);
        level
    });
    let walk: Vec<f64> = walk.collect();
    let words = |word: fn(f64) -> u64| walk.iter().map(|value| word(*value)).collect();
    open_samples("whole", words(|value| value.round().to_bits()));
    open_samples("two decimals", words(|value| ((value * 100.0).round() / 100.0).to_bits()));
    open_samples("full precision", words(f64::to_bits));
    open_samples("integers", words(|value| value as u64));
}

fn open_samples(name: &str, words: Vec<u64>) {
    let push = || {
        let mut packed = PackedSamples::default();
        (0..).zip(&words).for_each(|(n, word)| packed.push(n * 10_000_000_000, *word));
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

fn samples(name: &str, at: &[i64], values: &[f64]) {
    let bytes = common::series(at, Values::F64(values));
    best(&format!("encode samples, {name}"), SAMPLES, || common::series(at, Values::F64(values)));
    let decode = || Chunk::open(&bytes).and_then(|chunk| chunk.samples());
    best(&format!("decode samples, {name}"), SAMPLES, decode);
}

/// Prints how many records a second the fastest run handled.
fn best<T>(name: &str, records: usize, mut run: impl FnMut() -> T) {
    let time = |_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed().as_secs_f64()
    };
    let seconds = (0..RUNS).map(time).fold(f64::INFINITY, f64::min);
    println!("{name:<32} {:>8.2} million a second", records as f64 / seconds / 1e6);
}
