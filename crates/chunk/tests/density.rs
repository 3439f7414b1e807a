//! How many bytes does a value or a call take? Prints the sizes and compares them with a maximum.
//! `cargo test -p tacho-chunk --test density -- --nocapture`

mod common;

use std::collections::BTreeMap;

use common::rng::Rng;
use common::{columns, logs, web};
use tacho_chunk::{
    Chunk, Compression, Encoding, GroupColumn, Values, encode_entries, encode_executions, encode_group,
};
use tacho_model::Segment;

const COUNT: usize = 8_192;

/// Encodes samples with a period of five seconds. Fails if a sample takes more than `bytes_max` bytes.
fn check(name: &str, values: Values<'_>, jitter_ns: u64, bytes_max: f64) {
    let mut rng = Rng(1);
    let time = |n: i64| 1_750_000_000_000_000_000 + n * 5_000_000_000 + rng.below(jitter_ns + 1) as i64;
    let at: Vec<i64> = (0..values.len() as i64).map(time).collect();
    let bytes = common::series(&at, values);
    let each = bytes.len() as f64 / values.len() as f64;
    let chunk = Chunk::open(&bytes).unwrap();
    let codecs: Vec<&str> = chunk.header().columns().map(|column| column.codec).collect();
    println!("{name:<40} {each:>8.3} bytes a sample   {}", codecs.join(", "));
    assert!(each <= bytes_max, "{name}: {each} bytes a sample, at most {bytes_max} are allowed");
}

#[test]
fn samples_take_few_bytes() {
    for column in columns::all(COUNT) {
        check(column.name, column.values.as_values(), 0, column.bytes_max);
    }
    check("constant, ms of jitter in ns", Values::F64(&[1.5; COUNT]), 1_000_000, 2.7);
}

/// Ten percentages of a host, every ten seconds for a day, a load that is often used to compare time series databases. The limit
/// includes 0.004 bytes per value for the marks of the codec `ans`.
#[test]
fn a_day_of_walks_takes_little_more_than_its_entropy() {
    const SAMPLES: usize = 8_640;
    let mut rng = Rng(3);
    let at: Vec<i64> = (0..SAMPLES as i64).map(|n| n * 10_000_000_000).collect();
    let walks: Vec<Vec<f64>> = (0..10).map(|_| columns::whole(&columns::walk(&mut rng, SAMPLES))).collect();
    let column = |(member, values)| GroupColumn { member, values: Values::F64(values), loss: None };
    let columns: Vec<GroupColumn<'_>> = (0..).zip(walks.iter().map(Vec::as_slice)).map(column).collect();
    for encoding in [Encoding::default(), Encoding::thorough()] {
        let bytes = encode_group(&at, 0, &columns, &encoding);
        let each = bytes.len() as f64 / (SAMPLES * walks.len()) as f64;
        println!("ten walks, whole numbers, {:?}: {each:.4} bytes a value", encoding.effort);
        assert!(each <= 0.278, "{each} bytes a value, at most 0.278 are allowed");
    }
}

/// The floats have a regularity that the encoder's sample of 512 values does not show. The automatic choice may take 3 % more
/// bytes than the best requested compression.
#[test]
fn automatic_compression_matches_the_best_requested_one() {
    let mut rng = Rng(5);
    let levels: Vec<f64> = (0..700).map(|_| rng.unit() * 100.0).collect();
    let mut at = 20_000.0;
    let column = |name, bytes_max, mut value: Box<dyn FnMut(usize) -> f64 + '_>| {
        (name, bytes_max, (0..4_032).map(&mut value).collect::<Vec<f64>>())
    };
    let mut steps = Rng(6);
    let mut mixed = Rng(7);
    let mut places = Rng(8);
    let columns = [
        // Multiples of 0.002, as a monitoring program computes means. Half of them are computed with an additional sum, so
        // equal means may differ in the last bits of the float.
        column(
            "means of thousandths",
            1.5,
            Box::new(|_| {
                at += steps.below(41) as f64 - 20.0;
                if steps.below(2) == 0 { at * 0.002 } else { (at - 1.0) * 0.002 + 0.002 }
            }),
        ),
        column(
            "halves and thirds",
            1.9,
            Box::new(|_| mixed.below(900) as f64 / (2.0 + mixed.below(2) as f64)),
        ),
        column("recurring levels", 3.0, Box::new(|_| levels[places.below(700) as usize])),
        column("a pattern of 700", 1.7, Box::new(|n| levels[n % 700])),
    ];
    let times: Vec<i64> = (0..4_032).collect();
    for (name, bytes_max, values) in &columns {
        let each = Compression::ALL.map(|compression| {
            let encoding = Encoding { compression, ..Encoding::thorough() };
            let column = GroupColumn { member: 0, values: Values::F64(values), loss: None };
            encode_group(&times, 0, &[column], &encoding).len() as f64 / values.len() as f64
        });
        println!("{name}: {each:.3?} bytes a value with {:?}", Compression::ALL);
        let least = each.into_iter().fold(f64::INFINITY, f64::min);
        assert!(each[0] <= least * 1.03, "{name}: {} bytes a value, the best form takes {least}", each[0]);
        assert!(each[0] <= *bytes_max, "{name}: {} bytes a value, at most {bytes_max} are allowed", each[0]);
    }
}

/// Encodes segments and prints the size of each role with more than 300 bytes. Fails if a call takes more than `bytes_max` bytes.
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
fn a_call_takes_at_most_six_bytes_with_tasks_on_other_threads() {
    check_calls("with tasks on other threads", &web::with_tasks(&web::requests(6_000, 8), 9), 6.0);
}

#[test]
fn a_call_of_a_unique_call_tree_takes_at_most_six_bytes() {
    check_calls("no shape twice", &web::with_loops(&web::requests(1_000, 10), 11), 6.0);
}

/// Log lines in small chunks, as they are sealed, and in full merged chunks.
#[test]
fn a_log_line_takes_a_small_share_of_its_text() {
    for log in &logs::ALL {
        let check = |count, encoding: Encoding, share_max: f64| {
            let lines = log.lines(1, count);
            let text: usize = lines.iter().map(String::len).sum();
            let bytes = encode_entries(&logs::entries(&lines), &encoding);
            let chunk = Chunk::open(&bytes).unwrap();
            let codec = chunk.header().columns().last().map(|column| column.codec);
            let share = bytes.len() as f64 / text as f64;
            println!("{:<20} {count:>5} lines {:>4.1} % of {text} bytes, {codec:?}", log.name, share * 100.0);
            assert!(
                share <= share_max,
                "{}, {count} lines: {share} of the text, limit {share_max}",
                log.name
            );
            assert_eq!(chunk.entries().unwrap(), logs::entries(&lines));
        };
        let [sealed, merged] = log.shares_max;
        check(180, Encoding::default(), sealed);
        check(COUNT, Encoding::thorough(), merged);
    }
}
