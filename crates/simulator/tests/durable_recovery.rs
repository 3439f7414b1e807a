//! A frame that counts as acknowledged after a restart survives the next power failure, even if the previous process
//! failed to sync it. The same is true for a row of the driver that can be read after a restart. The driver also opens after a
//! power failure during a start that follows a kill.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tacho_drivers::embedded::Embedded;
use tacho_model::{Batch, Labels, ManualClock, Sample, SampleSeries, TimeRange, Value};
use tacho_simulator::disk::{Faults, SimulatedDisk};
use tacho_store::driver::{Delete, Driver, Row, Scan, Table};
use tacho_store::threads::Threads;
use tacho_store::{MemoryDriver, Options, Origin, Store};

/// Number of seeds. Each seed decides which bytes of a failed sync are on disk.
const SEEDS: u64 = 40;

async fn open(disk: &SimulatedDisk) -> Arc<Store> {
    let options = Options { disk: Arc::new(disk.clone()), threads: Threads::One, ..Options::default() };
    let (driver, clock) = (Arc::new(MemoryDriver::new()), Arc::new(ManualClock::new(0)));
    Store::open(driver, Path::new("/journal"), options, clock).await.unwrap()
}

async fn append(store: &Store, seq: u64) -> tacho_store::Result<()> {
    let labels = Arc::new(Labels::new([("name", "m")]).unwrap());
    // The samples fill several sectors of the journal.
    let samples =
        (0..200).map(|n| Sample { at: seq as i64 * 1_000 + n, value: Value::U64(n as u64 * 77_777) });
    let batch =
        Batch { samples: vec![SampleSeries { labels, samples: samples.collect() }], ..Batch::default() };
    store.append(batch, Some(Origin::one(1, seq))).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn a_repeated_frame_after_a_failed_sync_survives_a_power_failure() {
    for seed in 0..SEEDS {
        let disk = SimulatedDisk::new(seed, false);
        let store = open(&disk).await;
        append(&store, 1).await.unwrap();
        disk.set_faults(Faults { sync: 1, cut: 1, ..Faults::default() });
        append(&store, 2).await.unwrap_err();
        drop(store);
        disk.end_process();
        disk.set_faults(Faults::default());
        let store = open(&disk).await;
        append(&store, 2).await.unwrap();
        drop(store);
        disk.cut_power();
        let store = open(&disk).await;
        assert_eq!(store.session_acked(1), 2, "seed {seed}");
        let id = Labels::new([("name", "m")]).unwrap().id();
        assert_eq!(store.samples(id, TimeRange::ALL).await.unwrap().len(), 400, "seed {seed}");
    }
}

fn meta_row(key: u8, value: Vec<u8>) -> Row {
    Row { table: Table::Meta, partition: b"p".to_vec(), clustering: vec![key], value: value.into() }
}

#[tokio::test(start_paused = true)]
async fn a_row_that_was_read_after_a_failed_sync_survives_a_power_failure() {
    let row = |key| meta_row(key, (0..3_000u32).map(|n| (n * 7) as u8).collect());
    for seed in 0..SEEDS {
        let disk = SimulatedDisk::new(seed, false);
        let open = async || {
            Embedded::open_on(Path::new("/chunks"), Arc::new(disk.clone()), 1 << 20, Threads::One).await
        };
        let rows = async |driver: &Embedded| driver.read(vec![Scan::all(Table::Meta, *b"p")]).await.unwrap();
        let driver = open().await.unwrap();
        driver.put(vec![row(1)]).await.unwrap();
        disk.set_faults(Faults { sync: 1, cut: 1, ..Faults::default() });
        driver.put(vec![row(2)]).await.unwrap_err();
        drop(driver);
        disk.end_process();
        disk.set_faults(Faults::default());
        let driver = open().await.unwrap();
        let seen = rows(&driver).await;
        drop(driver);
        disk.cut_power();
        assert_eq!(rows(&open().await.unwrap()).await, seen, "seed {seed}");
    }
}

/// What the driver may return for the keys: `None` for no row, otherwise the round in which the row was put.
type Expected = [BTreeSet<Option<u8>>; 4];

/// Puts four rows in each round, and deletes one of them in some rounds, so that segments are sealed, compacted and removed.
/// Stops at the first error.
async fn work(driver: &Embedded, expected: &mut Expected) {
    for round in 0..12 {
        let keys = 0..4u8;
        keys.clone().for_each(|key| {
            expected[usize::from(key)].insert(Some(round));
        });
        let rows = keys.map(|key| meta_row(key, vec![round; 700])).collect();
        if driver.put(rows).await.is_err() {
            return;
        }
        expected.iter_mut().for_each(|states| *states = BTreeSet::from([Some(round)]));
        if round % 3 == 0 {
            let key = round / 3;
            expected[usize::from(key)].insert(None);
            let delete = Delete::row(Table::Meta, *b"p", [key]);
            if driver.delete(vec![delete]).await.is_err() {
                return;
            }
            expected[usize::from(key)] = BTreeSet::from([None]);
        }
    }
}

/// Ends a process after `kill` operations of the disk, and cuts the power after `cut` operations of the next start. Then the
/// directory must open with the expected rows. Returns whether the process ended its work, and whether the start ended.
async fn kill_and_cut(kill: u64, cut: u64) -> [bool; 2] {
    let disk = SimulatedDisk::new(kill * 1_000 + cut, false);
    let open =
        async || Embedded::open_on(Path::new("/chunks"), Arc::new(disk.clone()), 4_096, Threads::One).await;
    let mut expected = Expected::default().map(|_| BTreeSet::from([None]));
    disk.stop_after(Some(kill));
    if let Ok(driver) = open().await {
        work(&driver, &mut expected).await;
    }
    let has_worked = !disk.has_stopped();
    let is_first_removed = !disk.files_in("chunks").contains_key(Path::new("/chunks/00000001.segment"));
    assert!(!has_worked || is_first_removed, "the work removes segments");
    disk.end_process();
    disk.stop_after(Some(cut));
    let driver = open().await;
    let is_open = !disk.has_stopped();
    assert!(!is_open || driver.is_ok(), "kill {kill}: {:?}", driver.err());
    drop(driver);
    disk.cut_power();
    disk.stop_after(None);
    let driver = open().await.unwrap_or_else(|error| panic!("kill {kill}, cut {cut}: {error}"));
    let rows = driver.read(vec![Scan::all(Table::Meta, *b"p")]).await.unwrap().remove(0);
    let rows: Vec<Row> = rows.into_iter().map(Result::unwrap).collect();
    for (key, states) in (0u8..).zip(&expected) {
        let state = rows.iter().find(|row| row.clustering == [key]).map(|row| row.value[0]);
        assert!(states.contains(&state), "kill {kill}, cut {cut}, key {key}: {state:?}, not {states:?}");
    }
    [has_worked, is_open]
}

#[tokio::test(start_paused = true)]
async fn a_start_after_a_kill_survives_a_power_failure_at_each_of_its_operations() {
    let (mut has_worked, mut kill) = (false, 0);
    while !has_worked {
        let (mut is_open, mut cut) = (false, 0);
        while !is_open {
            [has_worked, is_open] = kill_and_cut(kill, cut).await;
            cut += 1;
        }
        kill += 1;
    }
}
