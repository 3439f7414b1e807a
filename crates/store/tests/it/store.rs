//! Guarantees of the store: accepted records are durable, readable after a crash, and read exactly once. Bad records are
//! refused with a clear error.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tacho_chunk::ExecutionBlock;
use tacho_model::{Batch, Kind, Matcher, TimeRange, TraceId, Value};
use tacho_store::disk::{Disk, DiskFile, FaultyDisk, SyncPoint};
use tacho_store::layer::faults::{Faults, Faulty};
use tacho_store::threads::Threads;
use tacho_store::{Appended, ErrorKind, MemoryDriver, Needed, Options};

use crate::common::{self, Bench, batch, entries, executions, id, origin, samples, values};

const ALL: TimeRange = TimeRange::ALL;

#[tokio::test]
async fn appended_records_are_readable_immediately_and_after_a_flush() {
    let bench = Bench::new();
    let store = bench.open().await;
    let kept = batch([
        samples("m", &[(3, 1.0), (1, 2.0), (2, 3.0)]),
        entries("log", &[(5, "b"), (4, "a")]),
        executions("svc", 1, 10),
    ]);
    assert_eq!(store.append(kept, None).await.unwrap(), Appended::Stored);
    for flushed in [false, true] {
        if flushed {
            store.flush().await.unwrap();
        }
        assert_eq!(values(&store, "m", ALL).await, [(1, 2.0), (2, 3.0), (3, 1.0)]);
        assert_eq!(values(&store, "m", TimeRange::new(2, 2)).await, [(2, 3.0)]);
        assert_eq!(common::texts(&store, "log").await, [(4, "a".to_owned()), (5, "b".to_owned())]);
        assert_eq!(common::traces(&store, "svc").await, [1]);
        assert_eq!(store.stats().open_bytes == 0, flushed);
    }
    let stats = store.stats();
    assert_eq!((stats.records, stats.chunks_written, stats.journal_bytes), ([3, 2, 2], 3, 0));
    let id = common::id("m");
    let chunks = store.chunks(Kind::Sample, id).await.unwrap();
    assert_eq!((chunks.len(), chunks[0].start, chunks[0].end, chunks[0].header.count), (1, 1, 3, 3));
}

#[tokio::test]
async fn acknowledged_records_are_read_once_after_a_crash() {
    let bench = Bench::new();
    for round in 0..4u64 {
        let store = bench.open().await;
        let expect: Vec<u128> = (1..=u128::from(round)).collect();
        assert_eq!(common::traces(&store, "svc").await, expect, "round {round}");
        assert_eq!(store.session_acked(9), round);
        let next = round + 1;
        let kept = batch([executions("svc", next.into(), 10), entries("log", &[(1, "x")])]);
        assert_eq!(store.append(kept.clone(), origin(9, next)).await.unwrap(), Appended::Stored);
        assert_eq!(store.append(kept, origin(9, next)).await.unwrap(), Appended::Repeated);
        assert_eq!(common::texts(&store, "log").await.len() as u64, next);
        if round % 2 == 1 {
            store.flush().await.unwrap();
        }
    }
}

#[tokio::test]
async fn of_samples_with_equal_times_the_last_written_is_read_across_types_and_generations() {
    let bench = Bench::new();
    let store = bench.open().await;
    let big = Value::U64(u64::MAX);
    let points = [Value::F64(1.0), big, Value::I64(-3)].map(|v| (7, v));
    store.append(common::typed("m", &points), None).await.unwrap();
    let read = |store: Arc<tacho_store::Store>| async move {
        let found = store.samples(common::id("m"), ALL).await.unwrap();
        found.into_iter().map(|s| s.value).collect::<Vec<_>>()
    };
    assert_eq!(read(store.clone()).await, [Value::I64(-3)]);
    store.flush().await.unwrap();
    assert_eq!(read(store.clone()).await, [Value::I64(-3)]);
    store.append(common::typed("m", &[(7, big)]), None).await.unwrap();
    assert_eq!(read(store.clone()).await, [big]);
    store.flush().await.unwrap();
    assert_eq!(read(store.clone()).await, [big]);
}

#[tokio::test]
async fn series_are_found_before_and_after_a_restart() {
    let bench = Bench::new();
    for _ in 0..2 {
        let store = bench.open().await;
        store
            .append(
                batch([samples("a", &[(1, 1.0)]), entries("a", &[(1, "x")]), samples("b", &[(1, 1.0)])]),
                None,
            )
            .await
            .unwrap();
        assert_eq!(store.series_count(), [2, 1, 0]);
        let matchers = [Matcher::equal("__name__", "a")];
        assert_eq!(store.find(Kind::Sample, &matchers).len(), 1);
        assert_eq!(store.label_names(Kind::Sample, &[], &|| true).unwrap(), ["__name__", "host"]);
        assert_eq!(store.label_values(Kind::Sample, "__name__", &[], &|| true).unwrap(), ["a", "b"]);
        let within =
            |bytes| store.label_values_within(Kind::Sample, "__name__", &[], bytes, &|| true).unwrap();
        assert_eq!((within(0), within(1)), (vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned()]));
        store.close().await.unwrap();
        let error = store.append(samples("a", &[(1, 1.0)]), None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
}

#[tokio::test]
async fn bad_batches_are_refused_entirely() {
    let bench = Bench::with(Arc::new(MemoryDriver::new()), Options { series_max: 2, ..Options::default() });
    let store = bench.open().await;
    let check = async |batch: Batch, kind: ErrorKind, says: &str| {
        let error = store.append(batch, None).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    };
    let mut zero = executions("svc", 0, 1);
    check(zero.clone(), ErrorKind::Invalid, "trace id is zero").await;
    zero.executions[0].segments[0].trace.0 = 1;
    zero.executions[0].operations.pop();
    check(zero, ErrorKind::Invalid, "operation 1 is not in the table of 1 operations").await;
    let long = "x".repeat((1 << 20) + 1);
    check(entries("log", &[(1, &long)]), ErrorKind::Invalid, "entry of 1048577 bytes is over 1048576").await;
    store.append(entries("log", &[(1, &long[1..])]), None).await.unwrap();
    store.append(samples("two", &[(1, 1.0)]), None).await.unwrap();
}

#[tokio::test]
async fn above_the_memory_limit_senders_wait_and_then_continue() {
    let driver = Arc::new(Faulty::new(MemoryDriver::new(), Faults::default()));
    let options = Options { seal_bytes: 20_000, open_bytes_max: 60_000, ..Options::default() };
    let bench = Bench::with(driver.clone(), options);
    let store = bench.open().await;
    driver.freeze();
    let points: Vec<(i64, f64)> = (0..200).map(|i| (i, i as f64)).collect();
    let mut taken = 0;
    let error = loop {
        match store.append(samples(&format!("m{taken}"), &points), None).await {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 1_000, "never full");
    };
    assert_eq!(error.kind(), ErrorKind::Full { retry_after: Duration::from_secs(1) }, "{error}");
    assert!(store.stats().open_bytes <= 60_000 + 10_000);
    driver.thaw();
    store.flush().await.unwrap();
    store.append(samples("late", &points), None).await.unwrap();
    for series in 0..taken {
        assert_eq!(values(&store, &format!("m{series}"), ALL).await.len(), 200);
    }
    let stats = store.stats();
    assert!(stats.batches_full >= 1 && stats.seals_by_size >= 1, "{stats:?}");
}

#[tokio::test]
async fn a_failing_driver_is_retried_without_losing_records() {
    let driver = Arc::new(Faulty::new(MemoryDriver::new(), Faults::default()));
    let bench = Bench::with(driver.clone(), Options::default());
    let store = bench.open().await;
    store.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    driver.set_broken(Some(ErrorKind::StorageFull));
    assert_eq!(store.flush().await.unwrap_err().kind(), ErrorKind::StorageFull);
    store.append(samples("m", &[(2, 2.0)]), None).await.unwrap();
    driver.set_broken(None);
    store.flush().await.unwrap();
    assert_eq!(values(&store, "m", ALL).await, [(1, 1.0), (2, 2.0)]);
    assert!(store.stats().flush_failures >= 1);
    assert!(bench.journals().is_empty());
}

#[tokio::test]
async fn batches_are_refused_on_a_full_disk_and_accepted_when_there_is_space() {
    let disk = FaultyDisk::default();
    let options = Options { disk: Arc::new(disk.clone()), ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    disk.set_space(20);
    let error = store.append(samples("m", &[(1, 1.0)]), origin(1, 1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    disk.set_space(u64::MAX);
    store.append(samples("m", &[(1, 1.0)]), origin(1, 1)).await.unwrap();
    for seq in 2..6 {
        // The first append fails, so the journal record of the second append must define the series again.
        let one = batch([samples(&format!("m{seq}"), &[(1, 1.0)]), executions("svc", seq.into(), 1)]);
        disk.set_space(30);
        let error = store.append(one.clone(), origin(1, seq)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
        assert!(error.to_string().contains(".journal, offset "), "{error}");
        disk.set_space(u64::MAX);
        store.append(one, origin(1, seq)).await.unwrap();
    }
    drop(store);
    let store = bench.open().await;
    assert_eq!(store.series_count(), [5, 0, 1]);
    assert_eq!(common::traces(&store, "svc").await, [2, 3, 4, 5]);
    assert_eq!(store.stats().recovered_damaged, 0);
}

#[tokio::test]
async fn after_a_failed_sync_records_are_not_acknowledged_and_are_stored_once() {
    let disk = FaultyDisk::default();
    let options = Options { disk: Arc::new(disk.clone()), ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    for cut_fails in [false, true] {
        let store = bench.open().await;
        let first = store.session_acked(1) + 1;
        let before = common::texts(&store, "log").await.len();
        store.append(entries("log", &[(1, "kept")]), origin(1, first)).await.unwrap();
        disk.set_sync_fails(true);
        disk.set_cut_fails(cut_fails);
        let error = store.append(entries("log", &[(2, "again")]), origin(1, first + 1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        disk.set_sync_fails(false);
        if cut_fails {
            // The file may contain the refused batch. The store accepts no batch until it has cut the refused batch off.
            let error = store.append(Batch::default(), origin(1, first + 2)).await.unwrap_err();
            assert!(error.to_string().starts_with("cannot cut journal after a failed write"), "{error}");
            disk.set_cut_fails(false);
        }
        store.append(entries("log", &[(2, "again")]), origin(1, first + 1)).await.unwrap();
        assert_eq!(common::texts(&store, "log").await.len(), before + 2);
        drop(store);
        disk.set_cut_fails(false);
        let store = bench.open().await;
        store.flush().await.unwrap();
        assert_eq!(common::texts(&store, "log").await.len(), before + 2, "cut fails: {cut_fails}");
    }
}

#[tokio::test]
async fn service_resumes_after_the_journal_of_a_failed_sync_was_flushed_and_removed() {
    let disk = FaultyDisk::default();
    let options = Options { disk: Arc::new(disk.clone()), ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    store.append(entries("log", &[(1, "kept")]), origin(1, 1)).await.unwrap();
    disk.set_sync_fails(true);
    store.append(entries("log", &[(2, "again")]), origin(1, 2)).await.unwrap_err();
    disk.set_sync_fails(false);
    store.flush().await.unwrap();
    assert!(bench.journals().is_empty());
    store.append(entries("log", &[(2, "again")]), origin(1, 2)).await.unwrap();
    assert_eq!(common::texts(&store, "log").await.len(), 2);
}

/// A disk that makes the thread of the journal panic.
struct PanickingDisk;

impl Disk for PanickingDisk {
    fn open(&self, _: &Path) -> io::Result<Box<dyn DiskFile>> {
        panic!("injected: the journal's thread ends")
    }
    fn cut(&self, _: &Path, _: u64, _: SyncPoint) -> io::Result<()> {
        Ok(())
    }
    fn remove(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn sync_directory(&self, _: &Path, _: SyncPoint) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_store_without_its_journal_thread_is_not_ready() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.ready().unwrap();
    store.close().await.unwrap();
    assert_eq!(store.ready().unwrap_err().to_string(), "store is closed");

    let options = Options { disk: Arc::new(PanickingDisk), ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    store.ready().unwrap();
    store.append(samples("m", &[(1, 1.0)]), None).await.unwrap_err();
    // The append may fail before the thread has finished unwinding. Until then `ready` may succeed.
    let error = loop {
        match store.ready() {
            Ok(()) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.to_string().starts_with("journal's thread has ended"), "{error}");
}

#[tokio::test]
async fn a_read_of_executions_stops_at_its_memory_limit() {
    let bench = Bench::with(Arc::new(MemoryDriver::new()), Options::default());
    let store = bench.open().await;
    for (seq, flush) in [(1, true), (2, true), (3, false)] {
        store.append(executions("svc", seq.into(), 1), origin(1, seq)).await.unwrap();
        if flush {
            store.flush().await.unwrap();
        }
    }
    let blocks = store.executions(common::id("svc"), TimeRange::ALL).await.unwrap();
    let bytes: usize = blocks.iter().map(|block| block.memory_bytes()).sum();
    let room = AtomicUsize::new(bytes);
    let read = store.executions_within(common::id("svc"), TimeRange::ALL, &room, |_| true).await.unwrap();
    assert_eq!((read.whole().unwrap().len(), room.into_inner()), (3, 0));
    let room = AtomicUsize::new(bytes - 1);
    let error =
        store.executions_within(common::id("svc"), TimeRange::ALL, &room, |_| true).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[tokio::test]
async fn refused_blocks_do_not_count_as_memory() {
    let bench = Bench::new();
    let store = bench.open().await;
    // Trace 2 is in a chunk, between the chunks of two other traces, and in a block of the memtable.
    for (seq, trace, flush) in [(1, 1, true), (2, 2, true), (3, 3, true), (4, 2, false)] {
        store.append(executions("svc", trace, 1), origin(1, seq)).await.unwrap();
        if flush {
            store.flush().await.unwrap();
        }
    }
    let wanted = |block: &ExecutionBlock| block.rows().any(|row| row.trace() == TraceId(2));
    let read = async |bytes| {
        let room = AtomicUsize::new(bytes);
        let read = store.executions_within(common::id("svc"), TimeRange::ALL, &room, wanted).await;
        read.map(|read| (read.whole().unwrap(), room.into_inner()))
    };
    let all = store.executions(common::id("svc"), TimeRange::ALL).await.unwrap();
    assert_eq!(all.len(), 4);
    let bytes: usize = all.iter().filter(|block| wanted(block)).map(|block| block.memory_bytes()).sum();
    let (blocks, left) = read(bytes).await.unwrap();
    assert_eq!((blocks.len(), left), (2, 0));
    assert!(blocks.iter().all(|block| wanted(block)));
    assert_eq!(read(bytes - 1).await.unwrap_err().kind(), ErrorKind::Limit);

    let (room, is_second) = (AtomicUsize::new(bytes), |trace| trace == TraceId(2));
    let id = common::id("svc");
    let needed = Needed::Traces { accepts: &is_second, only: false, known: None };
    let of = store.executions_of(id, TimeRange::ALL, &room, (needed, &|_, _| ()), |_| true).await.unwrap();
    assert_eq!((of.whole().unwrap(), room.into_inner()), (blocks, 0));
}

#[tokio::test(start_paused = true)]
async fn generations_are_sealed_by_age_independent_of_the_wall_clock() {
    let seal_age = Duration::from_secs(600);
    let options = Options { threads: Threads::One, seal_age, ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let clock = Arc::new(tacho_model::ManualClock::new(i64::MAX));
    let store = tacho_store::Store::open(
        bench.driver.clone(),
        bench.directory.path(),
        bench.options.clone(),
        clock.clone(),
    )
    .await
    .unwrap();
    store.append(samples("m", &[(i64::MIN, 1.0), (i64::MAX, 2.0)]), None).await.unwrap();
    clock.set(i64::MIN);
    let counts = || (store.stats().seals_by_age, store.stats().flushes);
    tokio::time::sleep(seal_age - Duration::from_secs(1)).await;
    assert_eq!(counts(), (0, 0));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(counts(), (1, 1));
    assert_eq!(values(&store, "m", ALL).await, [(i64::MIN, 1.0), (i64::MAX, 2.0)]);
}

#[tokio::test]
async fn a_directory_in_use_or_of_another_store_or_version_is_refused() {
    let bench = Bench::new();
    let store = bench.open().await;
    let error = bench.try_open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    store.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    drop(store);

    let other = Bench::new();
    other.open().await.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    let journal = &bench.journals()[0];
    std::fs::copy(&other.journals()[0], journal).unwrap();
    let error = bench.try_open().await.err().unwrap();
    assert!(error.to_string().starts_with("journal belongs to another store (path /"), "{error}");

    let mut bytes = std::fs::read(journal).unwrap();
    bytes[8] = 9;
    let checksum = crc32c::crc32c(&bytes[..44]);
    bytes[44..48].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(journal, bytes).unwrap();
    let error = bench.try_open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Version);
    assert!(
        error.to_string().starts_with("journal has version 9, this program reads up to 3 (path /"),
        "{error}"
    );
}

#[tokio::test]
async fn intact_records_of_a_torn_or_damaged_journal_are_read() {
    let bench = Bench::new();
    let store = bench.open().await;
    for seq in 1..=4 {
        store.append(executions("svc", seq.into(), 1), origin(1, seq)).await.unwrap();
    }
    drop(store);
    let journal = bench.journals()[0].clone();
    let good = std::fs::read(&journal).unwrap();
    // Records that repeat definitions have the flag 2.
    let batch = |(at, w): &(usize, &[u8])| *w == b"\xf5rec" && good[at + 12] & 2 == 0;
    let records: Vec<usize> = good.windows(4).enumerate().filter(batch).map(|(at, _)| at).collect();
    assert_eq!(records.len(), 4);
    // The last byte belongs to a mark and not to a record, so the first cut loses no record.
    for (cut, whole) in [(good.len() - 1, 4), (records[3] + 5, 3), (records[2] + 30, 2)] {
        std::fs::write(&journal, &good[..cut]).unwrap();
        let store = Bench { directory: tempfile::tempdir().unwrap(), ..Bench::new() };
        std::fs::copy(&journal, store.directory.path().join(journal.file_name().unwrap())).unwrap();
        let store = store.open().await;
        assert_eq!(common::traces(&store, "svc").await, (1..=whole).collect::<Vec<_>>());
        assert_eq!(store.session_acked(1) as u128, whole);
        assert!(store.stats().recovered_torn_bytes > 0);
    }

    let mut bad = good.clone();
    bad[records[1] + 20] ^= 1;
    std::fs::write(&journal, &bad).unwrap();
    let store = bench.open().await;
    assert_eq!(store.stats().recovered_damaged, 1);
    assert_eq!(common::traces(&store, "svc").await, [1, 3, 4]);
    store.flush().await.unwrap();
    let kept = bench.directory.path().join("quarantine").join(journal.file_name().unwrap());
    assert_eq!(std::fs::read(kept).unwrap(), bad);
}

#[tokio::test]
async fn long_calls_are_found_at_any_time_while_they_run() {
    let day = 86_400_000_000_000;
    let bench = Bench::new();
    let store = bench.open().await;
    let mut long = executions("svc", 1, 0);
    long.executions[0].segments[0].events[1].delta = 9 * day as u64;
    store.append(batch([long, executions("svc", 2, 9 * day), executions("svc", 3, 0)]), None).await.unwrap();
    for flushed in [false, true] {
        if flushed {
            store.flush().await.unwrap();
        }
        let count = async |start, end| {
            let blocks = store.executions(common::id("svc"), TimeRange::new(start, end)).await.unwrap();
            blocks.iter().map(|b| b.len()).sum::<usize>()
        };
        assert_eq!(
            [count(0, 50).await, count(4 * day, 5 * day).await, count(9 * day, 10 * day).await],
            [2, 1, 2]
        );
    }
}

#[tokio::test]
async fn concurrent_appends_share_syncs() {
    let bench = Bench::new();
    let store = bench.open().await;
    let appends = (0..500u64).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { store.append(samples("m", &[(n as i64, 1.0)]), origin(n.into(), 1)).await })
    });
    for append in appends.collect::<Vec<_>>() {
        append.await.unwrap().unwrap();
    }
    assert_eq!(values(&store, "m", ALL).await.len(), 500);
    assert!(store.stats().journal_syncs < 400, "{}", store.stats().journal_syncs);
}

#[tokio::test]
async fn a_journal_without_a_complete_header_is_removed() {
    let bench = Bench::new();
    for bytes in [&[][..], b"tachojnl", &[0; 48]] {
        let path = bench.directory.path().join(format!("{:020}.journal", 90));
        std::fs::write(&path, bytes).unwrap();
        let store = bench.open().await;
        assert!(!path.exists());
        store.flush().await.unwrap();
        store.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
        store.flush().await.unwrap();
    }
    std::fs::write(bench.directory.path().join(format!("{:020}.journal", 99)), [7; 60]).unwrap();
    let error = bench.try_open().await.err().unwrap();
    assert!(error.to_string().starts_with("not a journal file, and no record can be read"), "{error}");
}

#[tokio::test]
async fn sessions_are_remembered_over_restarts_up_to_the_limit() {
    let options = Options { sessions_max: 3, ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    for session in 1..=5 {
        let store = bench.open().await;
        assert_eq!(store.append(Batch::default(), origin(session, 7)).await.unwrap(), Appended::Stored);
        store.close().await.unwrap();
    }
    let store = bench.open().await;
    let acked: Vec<u64> = (1..=5).map(|session| store.session_acked(session)).collect();
    assert_eq!(acked, [0, 0, 7, 7, 7]);
    assert_eq!(store.append(Batch::default(), origin(5, 7)).await.unwrap(), Appended::Repeated);
}

#[tokio::test]
async fn a_damaged_chunk_is_omitted_and_counted_and_one_of_a_newer_version_is_an_error() {
    let driver = Arc::new(MemoryDriver::new());
    let bench = Bench::with(driver.clone(), Options::default());
    let store = bench.open().await;
    for at in 1..=2 {
        store.append(samples("m", &[(at, at as f64)]), None).await.unwrap();
        store.flush().await.unwrap();
    }
    let stored = store.stats().stored[0];
    assert_eq!((stored.chunks, stored.records), (2, 2));
    let mut chunks = driver.dump();
    chunks.retain(|row| row.table == tacho_store::Table::Chunks);
    let put = async |change: &dyn Fn(&mut Vec<u8>)| {
        let mut row = chunks[0].clone();
        let mut value = row.value.to_vec();
        change(&mut value);
        row.value = value.into();
        tacho_store::Driver::put(&*driver, vec![row]).await.unwrap();
    };
    put(&|value| *value.last_mut().unwrap() ^= 1).await;
    for _ in 0..2 {
        let room = AtomicUsize::new(usize::MAX);
        let answer = store.read_samples(&[common::id("m")], ALL, None, &room).await.unwrap();
        assert_eq!(answer.samples().iter().map(|s| s.at).collect::<Vec<_>>(), [2]);
        assert_eq!(answer.damages.named().len(), 1);
        assert!(answer.damages.named()[0].reason.contains("checksum mismatch"));
    }
    assert_eq!(store.stats().chunks_unreadable, 1);
    put(&|value| value[4] = 99).await;
    let error = store.samples(common::id("m"), ALL).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Version, "{error}");
    drop(store);
    assert_eq!(bench.open().await.stats().stored[0], stored);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_every_record_once_while_generations_move_to_the_driver() {
    let faults = Faults { seed: 3, delay: 2, delay_max: Duration::from_millis(2), ..Faults::default() };
    let driver = Arc::new(Faulty::new(MemoryDriver::new(), faults));
    let bench = Bench::with(driver, Options { seal_bytes: 1_500, ..Options::default() });
    let store = bench.open().await;
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for at in 0..300i64 {
                let both = batch([entries("log", &[(at, "x")]), executions("svc", at as u128 + 1, at)]);
                store.append(both, None).await.unwrap();
            }
        }
    });
    let mut seen = 0;
    while !writer.is_finished() {
        let times: Vec<i64> = common::texts(&store, "log").await.into_iter().map(|(at, _)| at).collect();
        assert_eq!(times, (0..times.len() as i64).collect::<Vec<_>>());
        assert!(times.len() >= seen, "{} after {seen}", times.len());
        seen = times.len();
        let traces = common::traces(&store, "svc").await;
        assert_eq!(traces, (1..=traces.len() as u128).collect::<Vec<_>>());
        assert!(traces.len() >= seen);
    }
    writer.await.unwrap();
    assert_eq!(common::texts(&store, "log").await.len(), 300);
    assert!(store.stats().flushes > 5, "{}", store.stats().flushes);
}

#[tokio::test]
async fn tables_of_small_blocks_count_as_memory() {
    let bench = Bench::new();
    let store = bench.open().await;
    for n in 0..1_000u32 {
        let start = i64::from(n) * 3 * 86_400_000_000_000;
        store.append(executions("calls", u128::from(n) + 1, start), None).await.unwrap();
    }
    store.flush().await.unwrap();
    let read = async |bytes| {
        let room = AtomicUsize::new(bytes);
        let read = store.executions_within(id("calls"), TimeRange::ALL, &room, |_| true).await;
        read.map(|read| read.records.len())
    };
    // The blocks take more than a kilobyte each.
    assert_eq!(read(1_000_000).await.unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(read(3_000_000).await.unwrap(), 1_000);
}
