//! Layers have exactly the documented effects.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use tacho_store::driver::{Damaged, Delete, Driver, Row, Scan, Scanned, Table};
use tacho_store::layer::faults::{Faults, Faulty, Wound};
use tacho_store::layer::metrics::{Metrics, bucket_bound_ns};
use tacho_store::layer::retry::{Backoff, Policy, Retry};
use tacho_store::{ErrorKind, MemoryDriver};

fn row(key: u8) -> Row {
    Row {
        table: Table::Chunks,
        partition: vec![1],
        clustering: vec![key],
        value: Bytes::from_static(b"value"),
    }
}

fn policy(attempts: u32) -> Policy {
    Policy { attempts, wait_first: Duration::from_micros(10), ..Policy::default() }
}

#[tokio::test]
async fn retries_are_bounded_and_only_for_temporary_errors() {
    for (kind, calls) in [(ErrorKind::Unavailable, 4), (ErrorKind::StorageFull, 4), (ErrorKind::Invalid, 1)] {
        let broken = Faulty::new(MemoryDriver::new(), Faults::default());
        broken.set_broken(Some(kind));
        let counted = Arc::new(Metrics::new(broken));
        let driver = Retry::new(counted.clone(), policy(4));
        assert_eq!(driver.put(vec![row(1)]).await.unwrap_err().kind(), kind);
        assert_eq!(driver.scan(Scan::all(Table::Chunks, [1])).await.err().unwrap().kind(), kind);
        let measured = counted.measured();
        assert_eq!((measured.put.calls, measured.put.errors), (calls, calls), "{kind:?}");
        assert_eq!(measured.scan.errors, calls, "{kind:?}");
    }
}

#[test]
fn waits_double_up_to_a_limit_and_a_seed_repeats_them() {
    let waits = |seed| {
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(100), seed);
        std::iter::repeat_with(move || backoff.next_wait()).take(8).collect::<Vec<_>>()
    };
    for (wait, full) in waits(1).iter().zip([10, 20, 40, 80, 100, 100, 100, 100]) {
        assert!((full / 2..=full).contains(&(wait.as_millis() as u64)), "{wait:?} of {full} ms");
    }
    assert_eq!(waits(1), waits(1));
    assert_ne!(waits(1), waits(2));
}

#[tokio::test]
async fn metrics_count_calls_rows_bytes_and_time() {
    let driver = Metrics::new(MemoryDriver::new());
    driver.put(vec![row(1), row(2)]).await.unwrap();
    let rows: Vec<Row> = driver
        .scan(Scan::all(Table::Chunks, [1]))
        .await
        .unwrap()
        .map_ok(Result::unwrap)
        .try_collect()
        .await
        .unwrap();
    assert_eq!(rows.len(), 2);
    let measured = driver.measured();
    for call in [&measured.put, &measured.scan] {
        assert_eq!((call.calls, call.errors, call.rows, call.bytes), (1, 0, 2, 10));
        assert_eq!(call.latency.iter().sum::<u64>(), 1);
        assert!(call.latency_ns_sum > 0);
    }
    assert_eq!((bucket_bound_ns(0), bucket_bound_ns(26)), (Some(1_024), None));
}

#[tokio::test]
async fn the_same_seed_gives_the_same_faults() {
    let run = async |seed| {
        let faults =
            Faults { seed, error_before: 3, error_after: 3, torn: 3, duplicate: 3, ..Faults::default() };
        let driver = Faulty::new(MemoryDriver::new(), faults);
        let mut outcome = Vec::new();
        for key in 0..50 {
            let put = driver.put(vec![row(key), row(100 + key)]).await;
            driver.set_quiet(true);
            let rows = driver.scan(Scan::all(Table::Chunks, [1])).await.unwrap();
            driver.set_quiet(false);
            let rows: Vec<Row> = rows.map_ok(Result::unwrap).try_collect().await.unwrap();
            outcome.push((put.is_ok(), rows.len()));
        }
        outcome
    };
    assert_eq!(run(5).await, run(5).await);
    assert_ne!(run(5).await, run(6).await);
}

/// The paused clock advances only when all tasks wait.
#[tokio::test(start_paused = true)]
async fn a_frozen_driver_waits_until_it_is_thawed() {
    let driver = Arc::new(Faulty::new(MemoryDriver::new(), Faults::default()));
    driver.freeze();
    let put = tokio::spawn({
        let driver = driver.clone();
        async move { driver.put(vec![row(1)]).await }
    });
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert!(!put.is_finished());
    driver.thaw();
    put.await.unwrap().unwrap();
}

#[tokio::test]
async fn damaged_rows_pass_through_all_layers_until_they_are_put_again_or_deleted() {
    let faults = Faults { seed: 4, torn: 3, whole_puts: true, ..Faults::default() };
    let faulty = Arc::new(Faulty::new(MemoryDriver::new(), faults));
    let counted = Arc::new(Metrics::new(faulty.clone()));
    let driver = Retry::new(counted.clone(), policy(100));
    driver.put((1..=4).map(row).collect()).await.unwrap();
    faulty.damage((Table::Chunks, &[1], &[2]), Wound::Flipped(9));
    faulty.damage((Table::Chunks, &[1], &[4]), Wound::Lost);
    let all = Scan::all(Table::Chunks, [1]);
    let found = async || -> [Vec<Scanned>; 3] {
        let parts = driver.read_parts(vec![all.clone()], Arc::new(|_, _| None)).await.unwrap().remove(0);
        [
            driver.scan(all.clone()).await.unwrap().try_collect().await.unwrap(),
            driver.read(vec![all.clone()]).await.unwrap().remove(0),
            parts.into_iter().map(|cut| cut.map(|cut| cut.row)).collect(),
        ]
    };
    for rows in found().await {
        assert_eq!(rows.iter().flatten().cloned().collect::<Vec<_>>(), [row(1), row(3)]);
        let damaged: Vec<&Damaged> = rows.iter().filter_map(|row| row.as_ref().err()).collect();
        let values: Vec<(&[u8], &[u8])> = damaged.iter().map(|row| (&*row.clustering, &*row.value)).collect();
        assert_eq!(values, [(&[2][..], &b"vclue"[..]), (&[4], b"")]);
    }
    assert!(counted.measured().scan.damaged >= 6, "{:?}", counted.measured().scan);
    let error = tacho_store::Error::from(found().await[0][1].clone().unwrap_err());
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (
            ErrorKind::Corrupt,
            "row cannot be read: injected damage (table chunks, partition 01, clustering 02)"
        )
    );
    driver.put(vec![row(2)]).await.unwrap();
    driver.delete(vec![Delete::row(Table::Chunks, [1], [4])]).await.unwrap();
    for rows in found().await {
        assert_eq!(rows, [Ok(row(1)), Ok(row(2)), Ok(row(3))]);
    }
}

#[tokio::test]
async fn a_memory_driver_is_dumped_and_restored() {
    let driver = MemoryDriver::new();
    driver.put(vec![row(2), row(1), Row { table: Table::Meta, ..row(3) }]).await.unwrap();
    let dump = driver.dump();
    assert_eq!(dump, [row(1), row(2), Row { table: Table::Meta, ..row(3) }]);
    assert_eq!(MemoryDriver::restore(dump.clone()).dump(), dump);
}
