//! Samples of known series have the number of their series instead of labels. The limits on chunks and memory apply to them in
//! every order.

use std::sync::Arc;

use tacho_model::{Batch, KnownSamples, KnownSeries, Sample, TimeRange, Value};
use tacho_store::{Appended, MemoryDriver, Options, Refused, Store};

use crate::common::{Bench, batch, samples, values};

const DAY: i64 = 86_400_000_000_000;
const NAMES: [&str; 3] = ["a", "b", "c"];

async fn open(options: Options) -> (Bench, Arc<Store>) {
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    // The series get the numbers 0, 1 and 2.
    store.append(batch(NAMES.map(|name| samples(name, &[(0, 0.0)]))), None).await.unwrap();
    (bench, store)
}

/// Samples of all series, series by series or time by time.
fn points(times: &[i64], by_time: bool) -> Vec<(usize, i64)> {
    let series = 0..NAMES.len();
    if by_time {
        times.iter().flat_map(|at| series.clone().map(move |series| (series, *at))).collect()
    } else {
        series.flat_map(|series| times.iter().map(move |at| (series, *at))).collect()
    }
}

fn known(points: &[(usize, i64)]) -> KnownSamples {
    let mut known = KnownSamples::default();
    for (number, at) in points {
        let series = KnownSeries { number: u32::try_from(*number).unwrap(), note: 5, labels_bytes: 30 };
        known.push(series, Sample { at: *at, value: Value::F64((*at as f64).sqrt()) });
    }
    known
}

/// One list per sample, as in a body that is ordered by time.
fn labelled(points: &[(usize, i64)]) -> Batch {
    let all = points.iter().map(|(series, at)| samples(NAMES[*series], &[(*at, (*at as f64).sqrt())]));
    Batch { samples: all.flat_map(|batch| batch.samples).collect(), ..Batch::default() }
}

#[tokio::test]
async fn the_limit_on_chunks_is_the_same_in_every_order() {
    for (windows, refused_at_limit) in [(10, false), (12, true)] {
        let times: Vec<i64> = (0..windows).map(|n| n * 3 * DAY).collect();
        // 3 series with 9 changes of the window each are below the limit, and 11 changes are above it.
        let options = || Options { chunks_max: 30, merge_in_background: false, ..Options::default() };
        for by_time in [false, true] {
            let points = points(&times, by_time);
            let (_bench, store) = open(options()).await;
            let of_known = store.append_known(Batch::default(), known(&points), None).await.unwrap();
            let (_bench, store) = open(options()).await;
            let of_labelled = store.append(labelled(&points), None).await.unwrap();
            // The first time of each series is the time of the clock, so only the samples at the other times are far from it.
            let far = 3 * (times.len() - 1);
            for (appended, is_known) in [(of_known, true), (of_labelled, false)] {
                let Appended::Partly(Refused { records, of_notes, .. }) = appended else {
                    assert!(!refused_at_limit, "known: {is_known}, by time: {by_time}");
                    continue;
                };
                assert!(refused_at_limit && records == [far, 0, 0], "known: {is_known}, by time: {by_time}");
                assert_eq!(of_notes, if is_known { [(5, far)].into() } else { [].into() });
            }
        }
    }
}

#[tokio::test]
async fn known_samples_larger_than_the_memory_budget_are_kept_in_parts() {
    let times: Vec<i64> = (1..3_000).collect();
    for by_time in [false, true] {
        let options = Options { seal_bytes: 20_000, open_bytes_max: 60_000, ..Options::default() };
        let (bench, store) = open(options).await;
        let points = points(&times, by_time);
        let appended = store.append_known(samples("log", &[(1, 1.0)]), known(&points), None).await.unwrap();
        assert_eq!(appended, Appended::Stored);
        assert!(store.stats().batches > 10, "{}", store.stats().batches);
        drop(store);
        let store = bench.open().await;
        for name in NAMES {
            let values = values(&store, name, TimeRange::ALL).await;
            assert!(values.len() == 3_000 && values.iter().all(|(at, value)| *value == (*at as f64).sqrt()));
        }
        assert_eq!(values(&store, "log", TimeRange::ALL).await.len(), 1);
    }
}
