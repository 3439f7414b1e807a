//! How many bytes does a value or a call take? Printed (`cargo test -p tacho-chunk --test density -- --nocapture`), and held.

mod common;

use std::collections::BTreeMap;

use common::rng::Rng;
use common::web;
use tacho_chunk::{Chunk, Values, encode_executions};
use tacho_model::Segment;

const COUNT: usize = 8_192;

/// Encodes 8,192 samples every five seconds and fails when one takes more than `bytes_max` bytes.
fn check(name: &str, values: Values<'_>, jitter_ns: u64, bytes_max: f64) {
    let mut rng = Rng(1);
    let time = |n: i64| 1_750_000_000_000_000_000 + n * 5_000_000_000 + rng.below(jitter_ns + 1) as i64;
    let at: Vec<i64> = (0..COUNT as i64).map(time).collect();
    let bytes = common::series(&at, values);
    let each = bytes.len() as f64 / COUNT as f64;
    let chunk = Chunk::open(&bytes).unwrap();
    let codecs: Vec<&str> = chunk.header().columns().map(|column| column.codec).collect();
    println!("{name:<40} {each:>8.3} bytes a sample   {}", codecs.join(", "));
    assert!(each <= bytes_max, "{name}: {each} bytes a sample, at most {bytes_max} are allowed");
}

#[test]
fn samples_take_few_bytes() {
    let mut rng = Rng(2);
    let ms = 1_000_000;
    check("constant, regular", Values::F64(&[1.5; COUNT]), 0, 0.02);
    let steps: Vec<u64> = (0..COUNT as u64).map(|n| n * 17).collect();
    check("counter in steps, regular", Values::U64(&steps), 0, 0.02);
    check("constant, ms of jitter in ns", Values::F64(&[1.5; COUNT]), ms, 2.7);
    let gauge: Vec<f64> = (0..COUNT).map(|n| (n as f64 / 50.0).sin() * 40.0 + rng.normal()).collect();
    check("sine with noise, full precision", Values::F64(&gauge), 0, 7.5);
    let cents: Vec<f64> = gauge.iter().map(|v| (v * 100.0).round() / 100.0).collect();
    check("sine with noise, two decimals", Values::F64(&cents), 0, 1.4);
    let whole: Vec<f64> = gauge.iter().map(|v| v.round() + 1000.0).collect();
    check("sine with noise, whole", Values::F64(&whole), 0, 0.5);
    let counter: Vec<f64> = gauge
        .iter()
        .scan(0.0, |sum, v| {
            *sum += (v.abs() * 100.0).round();
            Some(*sum)
        })
        .collect();
    check("counter, f64", Values::F64(&counter), 0, 1.7);
    let big: Vec<u64> = counter.iter().map(|v| (1 << 60) + 1 + *v as u64).collect();
    check("counter above 2^60, u64", Values::U64(&big), 0, 1.7);
    let states: Vec<i64> = (0..COUNT).map(|_| i64::from(rng.below(50) == 0)).collect();
    check("state, mostly 0", Values::I64(&states), 0, 0.05);
    let noise: Vec<u64> = (0..COUNT).map(|_| rng.next()).collect();
    check("random words", Values::U64(&noise), 0, 8.05);
}

/// Encodes segments, prints what takes how much, and fails when a call takes more than `bytes_max` bytes.
fn check_calls(name: &str, segments: &[Segment], bytes_max: f64) {
    let block = common::block(segments, &web::operations());
    let bytes = encode_executions(&block);
    let each = bytes.len() as f64 / block.calls() as f64;
    println!("{name}: {} calls in {} segments, {each:.3} bytes a call", block.calls(), block.len());
    let chunk = Chunk::open(&bytes).unwrap();
    let mut shares = BTreeMap::new();
    for column in chunk.header().columns() {
        *shares.entry(column.role).or_insert(0) += column.bytes;
    }
    for (role, bytes) in shares.into_iter().filter(|(_, bytes)| *bytes > 300) {
        println!("    {:<22} {bytes:>8} bytes", role.name());
    }
    assert!(each <= bytes_max, "{name}: {each} bytes a call, at most {bytes_max} are allowed");
    assert_eq!(chunk.executions().unwrap(), block);
}

#[test]
fn a_call_of_a_web_application_takes_at_most_six_bytes() {
    check_calls("web application", &web::requests(6_000, 7), 6.0);
}

#[test]
fn work_on_other_threads_costs_little_more() {
    check_calls("with tasks on other threads", &web::with_tasks(&web::requests(6_000, 8), 9), 6.0);
}

#[test]
fn trees_that_never_repeat_cost_little_more() {
    check_calls("no shape twice", &web::with_loops(&web::requests(1_000, 10), 11), 6.0);
}
