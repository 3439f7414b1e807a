//! A flush stores each segment with the call that caused it. Merges, deletions of other segments and restarts keep the caller.

use std::sync::Arc;

use tacho_model::{Batch, Kind, Matcher, NAME, SpanId, TimeRange, mix64};
use tacho_store::{MemoryDriver, Options, Store};

use crate::common::{self, Bench, batch, executions};

const ALL: TimeRange = TimeRange::ALL;

/// The span base of all segments of [`executions`].
const BASE: u64 = 7;

/// A segment of `name` that was caused by the second call (of operation `b`) of another segment of the trace.
fn caused(name: &str, trace: u128, start: i64) -> Batch {
    let mut caused = executions(name, trace, start);
    for segment in caused.executions.iter_mut().flat_map(|series| &mut series.segments) {
        segment.parent = Some(SpanId(mix64(BASE + 1)));
        segment.base = 1_000;
    }
    caused
}

/// Trace and caller of each segment of a series, sorted: `b of shop` for the operation `b` of the series `shop`.
async fn callers(store: &Store, name: &str) -> Vec<(u128, String)> {
    let blocks = store.executions(common::id(name), ALL).await.unwrap();
    let series = ["shop", "mail"];
    let mut all = vec![];
    for row in blocks.iter().flat_map(|block| block.rows()) {
        let named = |caller: &tacho_chunk::Caller| {
            let of = series.iter().find(|series| common::id(series) == caller.series);
            format!("{} of {}", caller.operation.name, of.copied().unwrap_or_default())
        };
        all.push((row.trace().0, row.caller().map_or("-".into(), named)));
    }
    all.sort();
    all
}

fn expect(all: &[(u128, &str)]) -> Vec<(u128, String)> {
    all.iter().map(|(trace, caller)| (*trace, (*caller).to_owned())).collect()
}

#[tokio::test]
async fn callers_of_the_same_generation_are_stored_and_kept() {
    let options = Options { merge_in_background: false, ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let mut store = bench.open().await;
    // The called segment arrives before and after its caller.
    let both =
        [caused("mail", 1, 50), executions("shop", 1, 40), executions("shop", 2, 40), caused("mail", 2, 50)];
    store.append(batch(both), None).await.unwrap();
    assert_eq!(callers(&store, "mail").await, expect(&[(1, "-"), (2, "-")]), "nothing is stored yet");
    store.flush().await.unwrap();
    assert_eq!(callers(&store, "mail").await, expect(&[(1, "b of shop"), (2, "b of shop")]));
    assert_eq!(callers(&store, "shop").await, expect(&[(1, "-"), (2, "-")]));

    // The caller of trace 3 is in another generation. That of trace 4 is in the same series.
    store.append(caused("mail", 3, 60), None).await.unwrap();
    store.append(batch([executions("mail", 4, 60), caused("mail", 4, 70)]), None).await.unwrap();
    store.flush().await.unwrap();
    store.append(executions("shop", 3, 50), None).await.unwrap();
    store.flush().await.unwrap();
    let all = [(1, "b of shop"), (2, "b of shop"), (3, "-"), (4, "-"), (4, "b of mail")];
    assert_eq!(callers(&store, "mail").await, expect(&all));

    store.merge_all().await.unwrap();
    let chunks = store.chunks(Kind::Execution, common::id("mail")).await.unwrap();
    assert_eq!(chunks.len(), 1);
    drop(store);
    store = bench.open().await;
    assert_eq!(callers(&store, "mail").await, expect(&all));

    // The caller of trace 1 is deleted, and the called segment of trace 2.
    store.delete(&[Matcher::equal(NAME, "shop")], TimeRange::new(0, 45)).await.unwrap();
    store.delete(&[Matcher::equal(NAME, "mail")], TimeRange::new(60, 61)).await.unwrap();
    let left = [(1, "b of shop"), (2, "b of shop"), (4, "b of mail")];
    assert_eq!(callers(&store, "mail").await, expect(&left), "masked by tombstones");
    store.sweep().await.unwrap();
    assert_eq!(callers(&store, "mail").await, expect(&left), "rewritten");
}

#[tokio::test]
async fn a_flush_that_is_repeated_after_a_crash_stores_the_same_callers() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.append(batch([caused("mail", 1, 50), executions("shop", 1, 40)]), None).await.unwrap();
    drop(store);
    let store = bench.open().await;
    store.flush().await.unwrap();
    assert_eq!(callers(&store, "mail").await, expect(&[(1, "b of shop")]));
}
