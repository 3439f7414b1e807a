//! Tests which journals a start requires and refuses: missing and truncated ones, journals of another store, and journals under
//! the name of another generation.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tacho_model::{Kind, TimeRange};
use tacho_store::driver::Row;
use tacho_store::layer::faults::{Faults, Faulty};
use tacho_store::{Driver, ErrorKind, MemoryDriver, Options};

use crate::common::{Bench, samples, values};

const ALL: TimeRange = TimeRange::ALL;

/// Two generations that are only in the journal, because the driver accepted neither.
async fn two_journals() -> (Bench, Vec<PathBuf>) {
    two_journals_of("m").await
}

async fn two_journals_of(name: &str) -> (Bench, Vec<PathBuf>) {
    let driver = Arc::new(Faulty::new(MemoryDriver::new(), Faults::default()));
    let bench = Bench::with(driver.clone(), Options::default());
    let store = bench.open().await;
    driver.set_broken(Some(ErrorKind::Unavailable));
    for at in 1..=2 {
        store.append(samples(name, &[(at, at as f64)]), None).await.unwrap();
        store.flush().await.unwrap_err();
    }
    drop(store);
    driver.set_broken(None);
    let journals = bench.journals();
    assert_eq!(journals.len(), 2);
    (bench, journals)
}

#[tokio::test]
async fn a_missing_or_truncated_journal_is_detected() {
    for short in [false, true] {
        let (bench, journals) = two_journals().await;
        let path = &journals[0];
        if short {
            let whole = std::fs::read(path).unwrap();
            std::fs::write(path, &whole[..whole.len() - 40]).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
        let error = bench.try_open().await.err().unwrap_or_else(|| panic!("opened, short: {short}"));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let accept = path.with_extension("lost");
        for says in [path, &accept] {
            assert!(error.to_string().contains(&says.display().to_string()), "{error}");
        }
        std::fs::write(accept, "").unwrap();
        let store = bench.open().await;
        assert_eq!(values(&store, "m", ALL).await, [(2, 2.0)]);
        store.close().await.unwrap();
        drop(store);
        assert_eq!(values(&*bench.open().await, "m", ALL).await, [(2, 2.0)]);
    }
}

#[tokio::test]
async fn a_missing_active_journal_is_detected() {
    let driver = Arc::new(MemoryDriver::new());
    let bench = Bench::with(driver.clone(), Options::default());
    let store = bench.open().await;
    store.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    // The store puts the list of journals into the driver only after it has answered the first append.
    let knows = |row: &Row| row.clustering == b"journals" && row.value.len() > 40;
    let known = async {
        while !driver.dump().iter().any(knows) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    // Only a store that hangs exceeds the limit.
    tokio::time::timeout(Duration::from_secs(300), known).await.expect("the driver has the list of journals");
    drop(store);
    std::fs::remove_file(&bench.journals()[0]).unwrap();
    let error = bench.try_open().await.err().unwrap();
    assert!(error.to_string().contains("00000000000000000001.lost"), "{error}");
}

#[tokio::test]
async fn journals_of_another_store_are_refused() {
    let driver = Arc::new(MemoryDriver::new());
    let bench = Bench::with(driver.clone(), Options::default());
    let store = bench.open().await;
    store.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    drop(store);
    let other = Bench::new();
    drop(other.open().await);
    for path in bench.journals() {
        std::fs::copy(&path, other.directory.path().join(path.file_name().unwrap())).unwrap();
    }
    let error = other.try_open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(Driver::capabilities(&*other.driver).atomic_put);
}

/// A flushed generation, and the journal of a second generation that was not flushed.
async fn flushed_and_not() -> (Bench, PathBuf) {
    let bench = Bench::new();
    let store = bench.open().await;
    store.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    store.flush().await.unwrap();
    store.append(samples("m", &[(2, 2.0)]), None).await.unwrap();
    drop(store);
    let mut journals = bench.journals();
    assert_eq!(journals.len(), 1, "{journals:?}");
    (bench, journals.remove(0))
}

/// The name of the journal of the first generation.
fn first(path: &Path) -> PathBuf {
    path.with_file_name("00000000000000000001.journal")
}

/// The second journal of the other store states in its header that generation 1 has more bytes than the journal of this store
/// has. A start that used this header as evidence would report that journal as truncated.
#[tokio::test]
async fn a_journal_of_another_store_is_refused_under_any_number_and_not_used_as_evidence() {
    let (_other, others) = two_journals_of("a_name_of_many_letters").await;
    let unflushed = Bench::new();
    unflushed.open().await.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    let (flushed, _) = flushed_and_not().await;
    for (name, bench, other) in
        [("a later number", unflushed, &others[1]), ("a flushed number", flushed, &others[0])]
    {
        let copied = bench.directory.path().join(other.file_name().unwrap());
        std::fs::copy(other, &copied).unwrap();
        let before = bench.journals();
        let error = bench.try_open().await.err().unwrap_or_else(|| panic!("opened with {name}"));
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}: {error}");
        let expect = format!("journal belongs to another store (path {}", copied.display());
        assert!(error.to_string().starts_with(&expect), "{name}: {error}");
        assert_eq!(bench.journals(), before, "{name}");
    }
}

#[tokio::test]
async fn a_journal_under_the_name_of_a_flushed_generation_is_refused_and_can_be_renamed() {
    let (bench, path) = flushed_and_not().await;
    let older = first(&path);
    std::fs::rename(&path, &older).unwrap();
    let whole = std::fs::read(&older).unwrap();
    // The permission to start without the journal that is missing does not permit to remove this one.
    for permission in [None, Some(path.with_extension("lost"))] {
        if let Some(permission) = permission {
            std::fs::write(permission, "").unwrap();
        }
        let error = bench.try_open().await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(&format!("rename it to {}.", path.display())), "{error}");
        assert_eq!(std::fs::read(&older).unwrap(), whole);
    }
    std::fs::rename(&older, &path).unwrap();
    assert_eq!(values(&*bench.open().await, "m", ALL).await, [(1, 1.0), (2, 2.0)]);
}

#[tokio::test]
async fn if_a_permission_exists_a_journal_under_another_name_is_set_aside_and_reported() {
    let (bench, path) = flushed_and_not().await;
    let older = first(&path);
    std::fs::rename(&path, &older).unwrap();
    let whole = std::fs::read(&older).unwrap();
    for permission in [&older, &path] {
        std::fs::write(permission.with_extension("lost"), "").unwrap();
    }
    // The second start reads the losses from the file `.lack` next to the quarantined journal.
    for start in 1..=2 {
        let store = bench.open().await;
        assert_eq!(values(&store, "m", ALL).await, [(1, 1.0)], "start {start}");
        let lacks = store.lacks(Kind::Sample);
        let reason = &lacks.named()[0].reason;
        assert!(reason.contains("journal 00000000000000000002.journal (generation 2"), "{reason}");
        let kept = path.parent().unwrap().join("quarantine").join(path.file_name().unwrap());
        assert_eq!(std::fs::read(kept).unwrap(), whole, "start {start}");
        assert!(!older.exists());
    }
}

#[tokio::test]
async fn a_copy_of_a_journal_under_an_older_name_is_refused_and_not_removed() {
    let (bench, path) = flushed_and_not().await;
    let older = first(&path);
    std::fs::copy(&path, &older).unwrap();
    let error = bench.try_open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let expect = format!("{} is of the same generation: keep the larger one", path.display());
    assert!(error.to_string().contains(&expect), "{error}");
    assert_eq!(bench.journals(), [older.clone(), path]);
    std::fs::remove_file(older).unwrap();
    assert_eq!(values(&*bench.open().await, "m", ALL).await, [(1, 1.0), (2, 2.0)]);
}

#[tokio::test]
async fn journals_with_swapped_names_are_refused() {
    let (bench, journals) = two_journals().await;
    let swap = || {
        let aside = journals[0].with_extension("aside");
        std::fs::rename(&journals[0], &aside).unwrap();
        std::fs::rename(&journals[1], &journals[0]).unwrap();
        std::fs::rename(&aside, &journals[1]).unwrap();
    };
    swap();
    let error = bench.try_open().await.err().unwrap();
    let right = journals[1].display();
    let expect = format!("rename it to {right}, after that file has got the name of its own generation, 1");
    assert!(error.to_string().contains(&expect), "{error}");
    swap();
    assert_eq!(values(&*bench.open().await, "m", ALL).await, [(1, 1.0), (2, 2.0)]);
}
