//! Tests of the open samples of series: their forms, their order, their memory.

use super::*;

/// Series 1 to `count`, with one sample each.
fn crowd(count: usize) -> OpenSeries {
    let mut open = OpenSeries::default();
    for number in 1..=count {
        open.push(number as u32, &[Sample { at: 0, value: Value::I64(0) }]);
    }
    open
}

fn check(
    samples: &[(Timestamp, Value)],
    range: TimeRange,
    expect: &[&[(Timestamp, Value)]],
    replaced: usize,
) {
    let samples: Vec<Sample> = samples.iter().map(|(at, value)| Sample { at: *at, value: *value }).collect();
    let mut open = OpenSeries::default();
    for sample in &samples {
        open.push(7, std::slice::from_ref(sample));
    }
    let (columns, dropped) = open.get(7).unwrap().columns(range);
    let columns: Vec<Vec<(Timestamp, Value)>> =
        columns.iter().map(|c| c.at.iter().copied().zip(c.values.iter()).collect()).collect();
    assert_eq!(columns, expect);
    assert_eq!(dropped, replaced);
}

#[test]
fn columns_are_sorted_and_keep_the_last_of_equal_times() {
    let (f, i, u) = (|v| Value::F64(v), |v| Value::I64(v), |v| Value::U64(v));
    let all = TimeRange::ALL;
    check(&[(1, i(1)), (2, i(2))], all, &[&[(1, i(1)), (2, i(2))]], 0);
    check(
        &[(2, i(1)), (1, i(2)), (2, i(3)), (1, i(4)), (3, i(5))],
        all,
        &[&[(1, i(4)), (2, i(3)), (3, i(5))]],
        2,
    );
    check(
        &[(5, u(u64::MAX)), (7, f(-0.0)), (6, i(-1)), (6, u(1))],
        all,
        &[&[(7, f(-0.0))], &[(5, u(u64::MAX)), (6, u(1))]],
        1,
    );
    check(&[(5, u(1)), (7, f(1.0)), (6, u(2))], TimeRange::new(6, 6), &[&[(6, u(2))]], 0);
    check(&[(5, u(1))], TimeRange::new(8, 2), &[], 0);
    check(&[(7, f(f64::NAN)), (7, f(f64::NAN))], all, &[&[(7, f(f64::NAN))]], 1);
}

#[test]
fn samples_are_equal_in_all_forms() {
    let value = |n: i64| if n == 23 { Value::U64(7) } else { Value::I64(n) };
    // The times of the samples 2k and 2k + 1 are equal or descend. Later samples repeat times of earlier ones.
    let at = |n: i64| (n ^ 1) / 3 * 3;
    let all: Vec<Sample> = (0..300).map(|n| Sample { at: at(n), value: value(n) }).collect();
    let mut of_one_type = all.clone();
    of_one_type[23].value = Value::I64(23);
    let lengths = [
        (1, 1),
        (1, 2),
        (3, FEW_MAX),
        (FEW_MAX, FEW_MAX + 1),
        (2, 23),
        (2, 24),
        (1, 40),
        (256, 257),
        (1, 300),
    ];
    let cases = [&all, &of_one_type].into_iter().flat_map(|all| lengths.map(|length| (all, length)));
    let forms = [(true, PACKED_SERIES_MAX), (true, 0), (false, 0)];
    let cases = cases.flat_map(|case| forms.map(|form| (case, form)));
    for ((all, (before, through)), (shared, others)) in cases {
        let mut open = crowd(others);
        if !shared {
            (0..200_000).for_each(|at| _ = open.times.follow(ROOT, -1 - at));
        }
        open.push(0, &all[..before]);
        open.push(0, &all[before..through]);
        let expect = latest(all[..through].to_vec());
        let (columns, replaced) = open.get(0).unwrap().columns(TimeRange::ALL);
        let mut found: Vec<(Timestamp, Value)> =
            columns.iter().flat_map(|c| c.at.iter().copied().zip(c.values.iter())).collect();
        found.sort_by_key(|(at, _)| *at);
        assert_eq!(found, expect.iter().map(|s| (s.at, s.value)).collect::<Vec<_>>(), "{through} samples");
        assert_eq!((open.get(0).unwrap().len(), replaced), (through, through - expect.len()));
        assert_eq!(open.get(0).unwrap().last(), at(through as i64 - 1));
        let mut times = Vec::new();
        open.get(0).unwrap().times(&mut times);
        assert_eq!(times, all[..through].iter().map(|s| s.at).collect::<Vec<_>>());
    }
}

#[test]
fn series_of_one_scrape_are_packed_at_different_scrapes() {
    const SERIES: u32 = PACKED_SERIES_MAX as u32 + 1;
    let mut open = OpenSeries::default();
    let packed =
        |open: &OpenSeries| open.iter().filter(|(_, open)| matches!(open.held.form, Form::Many(_))).count();
    let mut before = 0;
    for scrape in 0..=SHARED_MAX as i64 {
        for number in 0..SERIES {
            open.push(number, &[Sample { at: scrape, value: Value::I64(scrape) }]);
        }
        let now = packed(&open);
        assert!(
            now - before <= PACKED_SERIES_MAX / SHARED_LIMITS as usize + 1,
            "scrape {scrape} packed {} series",
            now - before
        );
        before = now;
    }
    assert_eq!(before, SERIES as usize, "series above the limit of shared samples must be packed");
}

#[test]
fn few_series_are_packed_soon() {
    let mut open = crowd(PACKED_SERIES_MAX);
    let add = |open: &mut OpenSeries, number, count: usize| {
        let at = open.get(number).map_or(0, |open| open.last() + 1);
        let more = (at..).take(count).map(|at| Sample { at, value: Value::I64(at) });
        open.push(number, &more.collect::<Vec<_>>());
        matches!(open.get(number).unwrap().held.form, Form::Many(_))
    };
    assert!(!add(&mut open, 1, FEW_MAX - 1));
    assert!(add(&mut open, 1, 1));
    let next = PACKED_SERIES_MAX as u32 + 1;
    assert!(!add(&mut open, next, FEW_MAX + 1));
    assert!(!add(&mut open, 2, FEW_MAX + 1));
    assert!(add(&mut open, 2, SHARED_MAX - FEW_MAX));
}

#[test]
fn series_are_counted_at_the_edges_of_blocks() {
    let mut open = OpenSeries::default();
    assert_eq!(open.len(), 0);
    for number in 0..=2 * BLOCK {
        open.push(u32::try_from(number).unwrap(), &[Sample { at: 0, value: Value::I64(0) }]);
        assert_eq!(open.len(), number + 1);
    }
}

#[test]
fn series_are_found_by_their_number_and_their_memory_is_counted() {
    const SERIES: usize = PACKED_SERIES_MAX + 808;
    let mut open = OpenSeries::default();
    let sample = Sample { at: 1, value: Value::F64(1.0) };
    let bytes: usize = (0..SERIES as u32).rev().map(|number| open.push(number * 2, &[sample])).sum();
    assert_eq!(bytes, SERIES * size_of::<Held>() + open.places.bytes());
    assert_eq!((open.len(), open.values_max()), (SERIES, 1));
    assert!(open.get(4).is_some() && open.get(5).is_none() && open.get(9_999).is_none());
    // Each series has one sample. A page of `places` has an element for each of its numbers, and only the even numbers are used
    // here.
    assert!(bytes / SERIES <= 48, "{} bytes", bytes / SERIES);
    let (mut grown, empty) = (0, open.times.bytes());
    for more in [1, 2, 12, 1, 40] {
        grown += (0..SERIES as u32).map(|number| open.push(number * 2, &vec![sample; more])).sum::<usize>();
        let of_series: usize = open.iter().map(|(_, open)| open.held.heap_bytes()).sum();
        let heap = of_series + open.times.bytes() - empty;
        assert_eq!(grown, heap);
        let samples = open.values_max();
        assert!(heap / SERIES < 16 + 2 * samples, "{heap} bytes of {samples} samples each");
    }
}
