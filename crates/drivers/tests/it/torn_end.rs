//! A start that cuts off a torn end is stopped by a power failure, once at each of its operations. The next starts read the
//! same rows and report the same damage as a start without a stop. They accept rows.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tacho_drivers::embedded::Embedded;
use tacho_store::disk::FaultyDisk;
use tacho_store::driver::Driver;

use crate::common::{Bench, damaged, keys, noise, row};

const HEADER_BYTES: usize = 24;
const MARK_BYTES: usize = 16;
/// Limit on the operations of a start and a put.
const OPERATIONS_MAX: u64 = 200;

/// A directory before a start.
struct Case {
    name: &'static str,
    /// Changes the bytes of the growing segment. `ends` has the length of the file after its creation and after each batch,
    /// including the mark that the driver writes after it (a batch without rows).
    change: fn(bytes: &mut Vec<u8>, ends: &[usize]),
    keys: &'static [u32],
    /// Names of the damaged files.
    damaged: &'static [&'static str],
    /// Number of copies of torn ends in the quarantine.
    copies: usize,
}

const CASES: [Case; 8] = [
    Case {
        name: "nothing is torn",
        change: |_, _| (),
        keys: &[1, 2, 3, 11, 12, 13],
        damaged: &[],
        copies: 0,
    },
    Case {
        name: "the last batch is cut short",
        change: |bytes, ends| bytes.truncate(ends[3] - MARK_BYTES - 100),
        keys: &[1, 2, 11, 12],
        damaged: &[],
        copies: 0,
    },
    Case {
        name: "zeros at the end",
        change: |bytes, _| bytes.extend([0; 700]),
        keys: &[1, 2, 3, 11, 12, 13],
        damaged: &[],
        copies: 0,
    },
    Case {
        name: "the last batch is damaged, and without a mark",
        change: |bytes, ends| {
            bytes.truncate(ends[3] - MARK_BYTES);
            bytes[ends[2] + 100] ^= 1;
        },
        keys: &[1, 2, 11, 12],
        damaged: &[],
        copies: 1,
    },
    Case {
        name: "a damaged row and a damaged mark before a batch that is cut short",
        change: |bytes, ends| {
            bytes.truncate(ends[3] - MARK_BYTES - 100);
            bytes[ends[1] + 100] ^= 1;
            bytes[ends[2] - MARK_BYTES..ends[2]].fill(0);
        },
        keys: &[1, 3, 11, 12],
        damaged: &["00000001.segment"],
        copies: 0,
    },
    Case {
        name: "a damaged row before a batch that is cut short",
        change: |bytes, ends| {
            bytes.truncate(ends[2] + 40);
            bytes[ends[1] + 100] ^= 1;
            bytes.drain(ends[2] - MARK_BYTES..ends[2]);
        },
        keys: &[1, 11, 12],
        damaged: &["00000001.segment"],
        copies: 0,
    },
    Case {
        name: "the mark of a file without rows is damaged",
        change: |bytes, ends| {
            bytes.truncate(ends[0]);
            bytes[HEADER_BYTES + 5] ^= 1;
        },
        keys: &[],
        damaged: &[],
        copies: 0,
    },
    Case {
        name: "the header of a file without rows is damaged",
        change: |bytes, ends| {
            bytes.truncate(ends[0]);
            bytes[5] ^= 1;
        },
        keys: &[],
        damaged: &[],
        copies: 0,
    },
];

/// The files of a directory with three batches, and the lengths of the segment as in [`Case::change`].
async fn three_batches(bench: &Bench) -> (BTreeMap<PathBuf, Vec<u8>>, Vec<usize>) {
    let driver = bench.open().await;
    let mut ends = vec![HEADER_BYTES + MARK_BYTES];
    for key in 1..=3 {
        driver.put(vec![row(key, &noise(key, 200)), row(10 + key, &noise(key, 300))]).await.unwrap();
        ends.push(bench.bytes() as usize);
    }
    drop(driver);
    bench.forget_end();
    let mut files = bench.snapshot();
    files.retain(|path, _| !path.ends_with("LOCK") && !path.ends_with("RESERVE"));
    (files, ends)
}

impl Case {
    fn prepare(&self, bench: &mut Bench, files: &BTreeMap<PathBuf, Vec<u8>>, ends: &[usize]) {
        bench.disk = FaultyDisk::default();
        bench.disk.set_sync_skipped(true);
        bench.restore(files);
        let path = &bench.segments()[0];
        let mut bytes = std::fs::read(path).unwrap();
        (self.change)(&mut bytes, ends);
        std::fs::write(path, bytes).unwrap();
    }

    async fn check(&self, driver: &Embedded, when: &str) {
        let (name, health) = (self.name, driver.health());
        assert_eq!(keys(driver).await, self.keys, "{name}, {when}");
        assert_eq!(damaged(driver).await, [] as [(u32, String); 0], "{name}, {when}");
        assert_eq!(health.damaged, self.damaged, "{name}, {when}");
        assert_eq!(health.set_aside, [] as [&str; 0], "{name}, {when}");
        assert_eq!(health.torn_ends.len(), self.copies, "{name}, {when}: {:?}", health.torn_ends);
    }
}

#[tokio::test]
async fn a_start_that_cuts_a_torn_end_may_stop_at_each_operation() {
    let mut bench = Bench::quick();
    let (files, ends) = three_batches(&bench).await;
    for case in CASES {
        let mut stop = 0;
        loop {
            case.prepare(&mut bench, &files, &ends);
            if bench.starts_within(stop).await {
                break;
            }
            for start in ["first", "second"] {
                let when = format!("{start} start after a stop at operation {stop}");
                let driver = bench.try_open().await.unwrap_or_else(|e| panic!("{}, {when}: {e}", case.name));
                case.check(&driver, &when).await;
            }
            let driver = bench.open().await;
            driver.put(vec![row(60, b"after")]).await.unwrap();
            drop(driver);
            assert_eq!(keys(&bench.open().await).await, [case.keys, &[60][..]].concat(), "{}", case.name);
            stop += 1;
            assert!(stop < OPERATIONS_MAX, "{}: the start never ends", case.name);
        }
    }
}

/// A supervisor starts the server again and again.
#[tokio::test]
async fn a_start_that_cannot_cut_keeps_one_copy_of_the_torn_end() {
    let mut bench = Bench::quick();
    let (files, ends) = three_batches(&bench).await;
    let case = &CASES[3];
    case.prepare(&mut bench, &files, &ends);
    bench.disk.set_cut_fails(true);
    for _ in 0..3 {
        let error = bench.try_open().await.err().unwrap();
        assert!(error.to_string().contains("cut torn segment"), "{error}");
        let copies = std::fs::read_dir(bench.directory.path().join("quarantine")).unwrap().count();
        assert_eq!(copies, 1);
    }
    bench.disk.set_cut_fails(false);
    case.check(&bench.open().await, "after the disk works again").await;
}

#[tokio::test]
async fn a_start_reads_each_case_as_stated() {
    let mut bench = Bench::quick();
    let (files, ends) = three_batches(&bench).await;
    for case in CASES {
        case.prepare(&mut bench, &files, &ends);
        case.check(&bench.open().await, "without a stop").await;
    }
}
