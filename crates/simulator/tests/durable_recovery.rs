//! A frame that counts as acknowledged after a restart survives the next power failure, even if the previous process
//! failed to sync it. The same is true for a row of the driver that can be read after a restart.

use std::path::Path;
use std::sync::Arc;

use tacho_drivers::embedded::Embedded;
use tacho_model::{Batch, Labels, ManualClock, Sample, SampleSeries, TimeRange, Value};
use tacho_simulator::disk::{Faults, SimulatedDisk};
use tacho_store::driver::{Driver, Row, Scan, Table};
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

#[tokio::test(start_paused = true)]
async fn a_row_that_was_read_after_a_failed_sync_survives_a_power_failure() {
    let row = |key: u8| Row {
        table: Table::Meta,
        partition: b"p".to_vec(),
        clustering: vec![key],
        value: (0..3_000u32).map(|n| (n * 7) as u8).collect::<Vec<u8>>().into(),
    };
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
