//! Losses stay within the permitted bound, are recorded, and save space. Values that must stay exact are not changed.

mod common;

use common::rng::Rng;
use proptest::prelude::*;
use tacho_chunk::semantic::{Kept, Movement, Reduced, Semantic, apply, simplify};
use tacho_chunk::{
    Aggregate, Aggregation, Chunk, Encoding, GroupColumn, Method, Tolerance, ValueColumn, Values,
    encode_group,
};

const COUNT: usize = 4_096;

/// The movement of a known gauge.
const GAUGE: Movement = Movement { changes: 1_000, descents: 500 };

/// Simplifies samples, encodes and decodes them, and compares them with the original unless they are aggregated. Returns the
/// result and its encoded size.
fn check(at: &[i64], values: &ValueColumn, semantic: &Semantic) -> (Reduced, usize) {
    check_of(at, values, semantic, GAUGE)
}

fn check_of(at: &[i64], values: &ValueColumn, semantic: &Semantic, life: Movement) -> (Reduced, usize) {
    let reduced = apply(at, values.as_values(), semantic, &life).unwrap();
    let column = GroupColumn { member: 0, values: reduced.values.as_values(), loss: reduced.loss };
    let bytes = encode_group(&reduced.at, reduced.time_error_max, &[column], &Encoding::thorough());
    let chunk = Chunk::open(&bytes).unwrap();
    let header = chunk.header();
    assert_eq!((header.time_error_max, header.members[0].loss), (reduced.time_error_max, reduced.loss));
    assert!(header.time_error_max <= semantic.time);
    assert_eq!(chunk.times().unwrap().to_vec(), reduced.at);
    let read = chunk.values(0).unwrap().unwrap();
    assert_eq!(read, reduced.values);
    if semantic.aggregation.is_none() {
        compare(at, values, &reduced, semantic);
    }
    (reduced, bytes.len())
}

fn compare(at: &[i64], values: &ValueColumn, reduced: &Reduced, semantic: &Semantic) {
    let time_error = at.iter().zip(&reduced.at).map(|(a, b)| a.abs_diff(*b)).max();
    assert_eq!(time_error, Some(reduced.time_error_max));
    let achieved = reduced.loss.map_or(0.0, |loss| loss.achieved);
    let mut largest = 0.0f64;
    for (before, after) in values.iter().zip(reduced.values.iter()) {
        let (before, after) = (before.as_f64(), after.as_f64());
        if !before.is_finite() {
            assert_eq!(before.to_bits(), after.to_bits());
            continue;
        }
        let difference = (before - after).abs();
        let error = match semantic.value {
            Some(Tolerance::Relative(_)) if difference > 0.0 => difference / before.abs(),
            _ => difference,
        };
        largest = largest.max(error);
    }
    assert_eq!(largest, achieved);
    let bound = semantic.value.map_or(0.0, Tolerance::amount);
    assert!(achieved <= bound, "{achieved} > {bound}");
}

fn with(method: Method, tolerance: Tolerance) -> Semantic {
    Semantic { value: Some(tolerance), method, ..Semantic::default() }
}

fn regular() -> Vec<i64> {
    (0..COUNT as i64).map(|n| n * 10_000_000_000).collect()
}

/// A slowly oscillating signal with normally distributed noise. `noise` is the standard deviation.
fn swinging(noise: f64) -> Vec<f64> {
    let mut rng = Rng(3);
    (0..COUNT).map(|n| 50.0 + (n as f64 / 200.0).sin() * 40.0 + rng.normal() * noise).collect()
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -1e4..1e4,
        2 => (-100i32..100).prop_map(f64::from),
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e300, 1e-300, f64::MIN_POSITIVE]),
        1 => any::<f64>(),
    ]
}

fn tolerance() -> impl Strategy<Value = Tolerance> {
    let amount = prop_oneof![Just(0.0), 1e-6..100.0, 1e-300..1e300];
    prop_oneof![amount.prop_map(Tolerance::Absolute), (0.0..0.99).prop_map(Tolerance::Relative)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bound_is_exceeded(
        floats in prop::collection::vec(float(), 1..200),
        integers in prop::collection::vec(any::<i64>(), 200),
        step in 1u64..1 << 40,
        time in prop_oneof![Just(0), 1u64..1 << 42],
        tolerance in tolerance(),
        method in prop::sample::select(Method::ALL.to_vec()),
    ) {
        let at: Vec<i64> = (0..floats.len() as u64).map(|n| (n * step + tacho_model::mix64(n) % step) as i64).collect();
        let semantic = Semantic { time, ..with(method, tolerance) };
        check(&at, &ValueColumn::F64(floats.clone()), &semantic);
        let integers = integers[..at.len()].to_vec();
        let small: Vec<i64> = integers.iter().map(|n| n % 1_000).collect();
        check(&at, &ValueColumn::I64(small), &semantic);
        check(&at, &ValueColumn::U64(integers.iter().map(|n| n.unsigned_abs() >> 11).collect()), &semantic);
    }

    #[test]
    fn aggregates_are_written_and_read(floats in prop::collection::vec(float(), 1..200), step in 1i64..60) {
        let at: Vec<i64> = (0..floats.len() as i64).map(|n| n * 7).collect();
        for how in Aggregate::ALL {
            let aggregation = Some(Aggregation { step, how });
            let semantic = Semantic { aggregation, ..Semantic::default() };
            let (reduced, _) = check(&at, &ValueColumn::F64(floats.clone()), &semantic);
            prop_assert_eq!(reduced.loss.unwrap().aggregation, aggregation);
        }
    }
}

#[test]
fn a_tolerance_saves_space() {
    let at = regular();
    let smooth = ValueColumn::F64(swinging(0.0));
    let noisy = ValueColumn::F64(swinging(1.0));
    let mut rng = Rng(4);
    let level = |n: usize| ((n / 512 * 37) % 11) as f64 * 3.7;
    let stepped = ValueColumn::F64((0..COUNT).map(|n| level(n) + rng.unit()).collect());
    for (name, values, tolerance, method, bytes_max) in [
        ("smooth", &smooth, Tolerance::Absolute(0.1), Method::Linear, 0.08),
        ("smooth", &smooth, Tolerance::Absolute(0.1), Method::Wavelet, 0.18),
        ("smooth", &smooth, Tolerance::Relative(0.01), Method::Linear, 0.06),
        ("noisy", &noisy, Tolerance::Absolute(0.5), Method::Linear, 0.42),
        ("noisy", &noisy, Tolerance::Absolute(5.0), Method::Linear, 0.07),
        ("stepped", &stepped, Tolerance::Absolute(0.6), Method::Wavelet, 0.03),
        ("noisy", &noisy, Tolerance::Relative(0.01), Method::Rounding, 0.65),
    ] {
        let (_, exact) = check(&at, values, &Semantic::default());
        let (reduced, bytes) = check(&at, values, &with(method, tolerance));
        let [exact, each] = [exact, bytes].map(|bytes| bytes as f64 / COUNT as f64);
        let by = reduced.loss.and_then(|loss| loss.method).map_or("nothing", Method::name);
        println!(
            "{name}, {tolerance:?}, {}: {each:.3} bytes a value by {by}, {exact:.3} exact",
            method.name()
        );
        assert!(
            each <= bytes_max,
            "{name}, {tolerance:?}: {each} bytes a value, at most {bytes_max} are allowed"
        );
    }
}

#[test]
fn simplified_samples_stay_small_after_splitting_and_merging() {
    let at = regular();
    let semantic = with(Method::Linear, Tolerance::Absolute(0.1));
    let (reduced, whole) = check(&at, &ValueColumn::F64(swinging(0.0)), &semantic);
    let exact = |places: std::ops::Range<usize>| {
        let values = reduced.values.copy_of(places.clone());
        check(&at[places], &values, &Semantic::default()).1
    };
    let parts = exact(0..1_500) + exact(1_500..COUNT);
    assert!(exact(0..COUNT) <= whole && parts <= whole * 3 / 2, "{parts} bytes in two parts, {whole} in one");
}

#[test]
fn times_are_changed_within_the_bound() {
    let mut rng = Rng(5);
    let mut at = regular();
    at.iter_mut().for_each(|at| *at += rng.below(5_000_000) as i64);
    let values = ValueColumn::F64(vec![1.0; COUNT]);
    let (_, exact) = check(&at, &values, &Semantic::default());
    let (reduced, bytes) = check(&at, &values, &Semantic { time: 5_000_000, ..Semantic::default() });
    assert!(bytes < 100 && exact > 2 * COUNT, "{bytes} of {exact} bytes");
    assert!((1..=5_000_000).contains(&reduced.time_error_max));
}

#[test]
fn possible_counters_and_columns_that_would_not_take_fewer_bytes_are_not_changed() {
    let at = regular();
    let counter = ValueColumn::U64((0..COUNT as u64).map(|n| n * n % 7 + n * 5).collect());
    let life = Movement::of(counter.as_values());
    let (reduced, _) = check_of(&at, &counter, &with(Method::Linear, Tolerance::Relative(0.05)), life);
    assert_eq!((reduced.loss, reduced.kept), (None, Some(Kept::Counter)));
    let states = ValueColumn::I64((0..COUNT as i64).map(|n| n % 2).collect());
    let (reduced, _) = check(&at, &states, &with(Method::Linear, Tolerance::Absolute(0.4)));
    assert_eq!((reduced.loss, reduced.kept), (None, Some(Kept::NotSmaller)));
}

/// Values that were changed before must not change again.
#[test]
fn a_column_changed_in_parts_takes_nearly_as_few_bytes_as_one_changed_at_once() {
    for (noise, tolerance, method) in [
        (0.0, Tolerance::Absolute(0.1), Method::Linear),
        (1.0, Tolerance::Absolute(0.5), Method::Linear),
        (1.0, Tolerance::Relative(0.01), Method::Rounding),
    ] {
        let exact = ValueColumn::F64(swinging(noise));
        let bytes = |column: &ValueColumn| {
            let column = GroupColumn { member: 0, values: column.as_values(), loss: None };
            encode_group(&regular(), 0, &[column], &Encoding::thorough()).len()
        };
        let all = 0..COUNT;
        let whole = simplify(exact.as_values(), &[all], method, tolerance).unwrap().0;
        let mut column = ValueColumn::F64(vec![]);
        let mut known = 700..700;
        // Each range contains the previous range, whose values are already changed.
        for now in [700..1_400, 300..1_402, 0..1_402, 0..COUNT] {
            let mut wider = exact.clone();
            wider.put(known.start, column.as_values());
            let parts = [now.start..known.start, known.end..now.end]
                .map(|part| part.start - now.start..part.end - now.start);
            let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let wider = wider.part(now.clone());
            column = simplify(wider.as_values(), &parts, method, tolerance).unwrap().0;
            for (place, (a, b)) in wider.iter().zip(column.iter()).enumerate() {
                assert!(a == b || parts.iter().any(|part| part.contains(&place)));
            }
            known = now;
        }
        for (a, b) in exact.iter().zip(column.iter()) {
            let (a, b) = (a.as_f64(), b.as_f64());
            let amount = if matches!(tolerance, Tolerance::Relative(_)) { a.abs() } else { 1.0 };
            assert!((a - b).abs() <= tolerance.amount() * amount);
        }
        let [exact, whole, column] = [exact, whole, column].map(|column| bytes(&column) as f64);
        assert!(
            (exact - column) / (exact - whole) > 0.8,
            "{exact} bytes exact, {whole} changed at once, {column} changed in parts"
        );
    }
}

#[test]
fn invalid_settings_are_refused() {
    let refused =
        |semantic: Semantic| apply(&[1], Values::I64(&[1]), &semantic, &GAUGE).unwrap_err().to_string();
    let tolerance = |tolerance| refused(with(Method::Linear, tolerance));
    assert_eq!(tolerance(Tolerance::Absolute(-1.0)), "tolerance is -1, must be a number of at least 0");
    assert_eq!(tolerance(Tolerance::Relative(f64::NAN)), "tolerance is NaN, must be a number of at least 0");
    let all = "relative tolerance is 1, must be less than 1: with 1 every value could become 0";
    assert_eq!(tolerance(Tolerance::Relative(1.0)), all);
    let aggregation = Some(Aggregation { step: -5, how: Aggregate::Avg });
    let step = "step of an aggregation is -5 ns, must be above 0";
    assert_eq!(refused(Semantic { aggregation, ..Semantic::default() }), step);
}
