//! Tests damage of the journal and of the facts about generations. One flipped bit loses at most one batch. Acknowledged
//! batches are never lost without a report. No generation number is used twice.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tacho_model::{Batch, Kind, TimeRange};
use tacho_store::disk::{Disk, FaultyDisk};
use tacho_store::driver::{Row, Table};
use tacho_store::{ErrorKind, MemoryDriver, Options, Store};

use crate::common::{self, Bench, batch, entries, executions, id, origin, samples, values};

const ALL: TimeRange = TimeRange::ALL;
const BATCHES: i64 = 5;

/// The remains of a killed process: the bytes of the journal and the content of the driver.
struct Died {
    name: PathBuf,
    journal: Vec<u8>,
    rows: Vec<Row>,
}

fn nth(n: i64) -> Batch {
    batch([
        samples("common", &[(n, n as f64)]),
        samples(&format!("own{n}"), &[(n, 1.0)]),
        entries("log", &[(n, "text")]),
        executions("svc", n as u128 + 1, n),
    ])
}

async fn died() -> Died {
    let driver = Arc::new(MemoryDriver::new());
    let bench = Bench::with(driver.clone(), Options::default());
    let store = bench.open().await;
    for n in 0..BATCHES {
        store.append(nth(n), origin(1, n as u64 + 1)).await.unwrap();
    }
    drop(store);
    let path = bench.journals().remove(0);
    let name = path.file_name().unwrap().into();
    Died { name, journal: std::fs::read(path).unwrap(), rows: driver.dump() }
}

impl Died {
    fn bench(&self, journal: &[u8]) -> Bench {
        let bench = Bench::with(Arc::new(MemoryDriver::restore(self.rows.clone())), Options::default());
        std::fs::write(bench.directory.path().join(&self.name), journal).unwrap();
        bench
    }
}

/// Numbers of the readable batches. Asserts that every batch is readable either completely or not at all.
async fn batches(store: &Store) -> Vec<i64> {
    let common: Vec<i64> = values(store, "common", ALL).await.into_iter().map(|(at, _)| at).collect();
    let log: Vec<i64> = common::texts(store, "log").await.into_iter().map(|(at, _)| at).collect();
    let traces = common::traces(store, "svc").await;
    assert_eq!(common, log);
    assert_eq!(traces, common.iter().map(|n| *n as u128 + 1).collect::<Vec<_>>());
    for n in 0..BATCHES {
        let own = values(store, &format!("own{n}"), ALL).await;
        assert_eq!(own.len(), usize::from(common.contains(&n)), "own{n}");
    }
    common
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The reasons of the damages that every answer lists. Asserts that they are the same for all kinds of record.
fn lacks(store: &Store) -> String {
    let said = Kind::ALL.map(|kind| {
        let damages = store.lacks(kind);
        let named = damages.named().iter().map(|d| {
            assert_eq!((d.kind, &d.labels, d.range), (kind, &None, ALL));
            d.reason.to_string()
        });
        named.collect::<Vec<_>>().join("; ")
    });
    assert!(said.iter().all(|one| *one == said[0]), "{said:?}");
    said[0].clone()
}

/// End of the report of one damaged place. The time is the start time of the bench's manual clock.
const SAYS: &str = concat!(
    " at 1 place of journal 00000000000000000001.journal",
    " (generation 1, begun 1970-01-01T00:00:00.000001Z) cannot be read"
);

#[tokio::test]
async fn a_flipped_bit_loses_at_most_its_record_and_is_reported() {
    let died = died().await;
    let mut told = 0;
    // Flips one bit of every fifth byte: bit 0 of the first such byte, bit 1 of the second, and so on.
    for at in (0..died.journal.len()).step_by(5) {
        let mut journal = died.journal.clone();
        journal[at] ^= 1 << (at / 5 % 8);
        let bench = died.bench(&journal);
        let store = bench.try_open().await.unwrap_or_else(|error| panic!("byte {at}: {error}"));
        let found = batches(&store).await;
        let lost = BATCHES as usize - found.len();
        assert!(lost <= 1, "byte {at} of {}: {lost} batches are lost, {found:?} remain", journal.len());
        let stats = store.stats();
        assert_eq!(stats.recovered_torn_bytes, 0, "byte {at}: acknowledged bytes were counted as a torn end");
        let said = lacks(&store);
        if lost > 0 {
            assert_eq!(stats.recovered_damaged, 1, "byte {at}");
            assert!(said.ends_with(SAYS), "byte {at}: {said:?}");
            told += 1;
        }
        if stats.recovered_damaged == 0 {
            assert_eq!(said, "", "byte {at}");
        }
        store.flush().await.unwrap();
        assert_eq!((batches(&store).await, lacks(&store)), (found.clone(), said.clone()));
        drop(store);
        let store = bench.open().await;
        assert_eq!(
            lacks(&store),
            said,
            "byte {at}: the damage must be reported while the file is quarantined"
        );
        assert_eq!(batches(&store).await, found);
        drop(store);
        if stats.recovered_damaged > 0 {
            let kept =
                files(bench.directory.path()).into_iter().find(|f| std::fs::read(f).unwrap() == journal);
            std::fs::remove_file(kept.expect("the damaged file must be kept")).unwrap();
            assert_eq!(lacks(&*bench.open().await), "", "byte {at}: the removed file must not be reported");
        }
    }
    assert!(
        told > died.journal.len() / 20,
        "only {told} losses in a journal of {} bytes",
        died.journal.len()
    );
}

#[tokio::test]
async fn a_damaged_header_with_an_intact_copy_is_not_counted() {
    let died = died().await;
    let mut journal = died.journal.clone();
    journal[..4].fill(b'#');
    let bench = died.bench(&journal);
    let store = bench.open().await;
    assert_eq!(batches(&store).await.len(), BATCHES as usize);
    assert_eq!((store.stats().recovered_damaged, &*lacks(&store)), (0, ""));
    store.flush().await.unwrap();
    drop(store);
    assert_eq!(bench.open().await.stats().journals_quarantined, 1, "the file must be kept");
}

#[tokio::test]
async fn a_lost_page_loses_only_its_records() {
    let died = died().await;
    for from in (0..died.journal.len()).step_by(48) {
        let mut journal = died.journal.clone();
        let to = journal.len().min(from + 64);
        journal[from..to].fill(0);
        let bench = died.bench(&journal);
        let store = bench.try_open().await.unwrap_or_else(|error| panic!("from {from}: {error}"));
        let found = batches(&store).await;
        assert!(found.len() + 2 >= BATCHES as usize, "from {from}: {found:?}");
    }
}

#[tokio::test]
async fn an_unfinished_write_at_the_end_counts_as_torn() {
    let died = died().await;
    for garbage in [&b"\xf5rec\x40\0\0\0abcdefgh"[..], &[0; 100], b"\xf5", b"garbage that is no record"] {
        let journal = [&died.journal[..], garbage].concat();
        let bench = died.bench(&journal);
        let store = bench.open().await;
        assert_eq!(batches(&store).await.len(), BATCHES as usize);
        let stats = store.stats();
        assert_eq!((stats.recovered_damaged, stats.recovered_torn_bytes), (0, garbage.len() as u64));
    }
}

/// A batch whose journal record contains these bytes unchanged.
fn holding(name: &str, bytes: &[u8]) -> Batch {
    let (words, _) = bytes.as_chunks::<8>();
    let values = words.iter().map(|word| f64::from_bits(u64::from_le_bytes(*word)));
    samples(name, &values.enumerate().map(|(at, value)| (at as i64 + 1, value)).collect::<Vec<_>>())
}

/// Offset of the first record of a file.
fn first_record(journal: &[u8]) -> usize {
    journal.windows(4).position(|window| window == b"\xf5rec").unwrap()
}

/// The first record, changed to state that all bytes before it were synced.
fn proving(journal: &[u8]) -> Vec<u8> {
    let (head, rest) = journal.split_at(12);
    let payload = &rest[..u32::from_le_bytes(head[4..8].try_into().unwrap()) as usize];
    // After the flags, the record has the number of synced bytes as a varint.
    let synced = 1 + payload[1..].iter().position(|byte| byte & 0x80 == 0).unwrap();
    let payload = [&payload[..1], &[0xff, 0xff, 0xff, 0xff, 0x7f], &payload[synced + 1..]].concat();
    let length = (payload.len() as u32).to_le_bytes();
    let crc = crc32c::crc32c_append(crc32c::crc32c(&length), &payload).to_le_bytes();
    [&b"\xf5rec"[..], &length, &crc, &payload].concat()
}

#[tokio::test]
async fn a_forged_record_inside_a_torn_one_is_not_trusted() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.append(samples("forged", &[(7, 7.0)]), origin(9, 1 << 62)).await.unwrap();
    drop(store);
    let journal = std::fs::read(&bench.journals()[0]).unwrap();
    let mut forged = proving(&journal[first_record(&journal)..]);
    forged.resize(forged.len().next_multiple_of(8), 0);
    let bench = Bench::new();
    let store = bench.open().await;
    store.append(samples("m", &[(1, 1.0)]), origin(1, 1)).await.unwrap();
    let acknowledged = std::fs::read(&bench.journals()[0]).unwrap();
    let content = [&forged[..], &[0xa5; 800]].concat();
    store.append(holding("m", &content), origin(1, 2)).await.unwrap();
    drop(store);
    let path = bench.journals().remove(0);
    let mut journal = std::fs::read(&path).unwrap();
    let at = journal
        .windows(forged.len())
        .position(|window| window == forged)
        .expect("the values must be written raw");
    // The process died in the middle of the write.
    journal.truncate(at + forged.len() + 400);
    std::fs::write(&path, &journal).unwrap();
    let store = bench.open().await;
    assert_eq!(values(&store, "forged", ALL).await, []);
    assert_eq!(values(&store, "m", ALL).await, [(1, 1.0)]);
    let stats = store.stats();
    let torn = (journal.len() - acknowledged.len()) as u64;
    assert_eq!((stats.recovered_damaged, stats.recovered_torn_bytes), (0, torn));
    store.append(samples("m", &[(2, 2.0)]), origin(9, 1)).await.unwrap();
    assert_eq!(values(&store, "m", ALL).await, [(1, 1.0), (2, 2.0)], "the forged session was recorded");
}

#[tokio::test]
async fn a_search_for_records_is_bounded_for_any_damage() {
    let bench = Bench::new();
    let store = bench.open().await;
    const WORDS: u32 = 1 << 19;
    let heads = (0..WORDS).flat_map(|n| [*b"\xf5rec", ((WORDS - n) * 4).to_le_bytes()].concat());
    store.append(holding("hostile", &heads.collect::<Vec<u8>>()), None).await.unwrap();
    store.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    drop(store);
    let path = bench.journals().remove(0);
    let mut journal = std::fs::read(&path).unwrap();
    let at = first_record(&journal);
    journal[at + 1] ^= 1;
    std::fs::write(&path, &journal).unwrap();
    let store = bench.open().await;
    assert_eq!(values(&store, "hostile", ALL).await, []);
    assert_eq!(values(&store, "m", ALL).await, [(1, 1.0)]);
    assert_eq!(
        store.stats().recovered_damaged,
        2,
        "the damaged record and the interrupted search must be reported"
    );
}

#[tokio::test]
async fn a_quarantined_journal_does_not_replace_an_earlier_one() {
    let died = died().await;
    let mut journal = died.journal.clone();
    let at = journal.len() / 2;
    journal[at] ^= 1;
    let bench = died.bench(&journal);
    let quarantine = bench.directory.path().join("quarantine");
    std::fs::create_dir(&quarantine).unwrap();
    std::fs::write(quarantine.join(&died.name), "the quarantined file of an earlier start").unwrap();
    let store = bench.open().await;
    assert_eq!(store.stats().recovered_damaged, 1);
    store.flush().await.unwrap();
    drop(store);
    let journals = files(&quarantine).into_iter().filter(|path| path.extension().unwrap() != "lack");
    let kept: Vec<Vec<u8>> = journals.map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(kept.len(), 2);
    assert_eq!(bench.open().await.stats().journals_quarantined, 2);
    assert!(kept.contains(&b"the quarantined file of an earlier start".to_vec()) && kept.contains(&journal));
    assert!(lacks(&*bench.open().await).ends_with(SAYS), "the second file must be reported as well");
}

#[tokio::test]
async fn a_start_does_not_read_quarantined_journals() {
    let died = died().await;
    let mut journal = died.journal.clone();
    let at = journal.len() / 2;
    journal[at] ^= 1;
    let bench = died.bench(&journal);
    bench.open().await.flush().await.unwrap();
    let kept = bench.directory.path().join("quarantine").join(&died.name);
    let said = lacks(&*bench.open().await);
    assert!(said.ends_with(SAYS), "{said}");
    // The journal is made unreadable, so that only the lack file (`.journal.lack`) can be used.
    std::fs::write(&kept, vec![0; journal.len()]).unwrap();
    assert_eq!(lacks(&*bench.open().await), said);
    // If the lack file is damaged or missing, the journal is read.
    std::fs::write(&kept, &journal).unwrap();
    let lack = kept.with_extension("journal.lack");
    let mut told = std::fs::read(&lack).unwrap();
    told[40] ^= 1;
    std::fs::write(&lack, told).unwrap();
    assert_eq!(lacks(&*bench.open().await), said);
    std::fs::remove_file(&lack).unwrap();
    assert_eq!(lacks(&*bench.open().await), said);
}

#[tokio::test]
async fn recovered_batches_are_synced_before_an_acknowledgement() {
    let died = died().await;
    let disk = FaultyDisk::default();
    let bench = died.bench(&[]);
    let bench = Bench { options: Options { disk: Arc::new(disk.clone()), ..bench.options.clone() }, ..bench };
    // The process was killed after the write and before the sync.
    let (synced, written) = died.journal.split_at(died.journal.len() / 2);
    let path = bench.directory.path().join(&died.name);
    std::fs::write(&path, synced).unwrap();
    disk.open(&path).unwrap().append(written).unwrap();
    let store = bench.open().await;
    // No record is flushed yet, because no task has run since the start.
    assert_eq!(store.session_acked(1), BATCHES as u64);
    disk.lose_unsynced().unwrap();
    let left = std::fs::read(&path).unwrap();
    drop(store);
    assert!(left == died.journal, "{} of {} bytes are left", left.len(), died.journal.len());
    let store = bench.open().await;
    assert_eq!((store.session_acked(1), batches(&store).await.len()), (BATCHES as u64, BATCHES as usize));
}

fn meta(rows: &[Row]) -> Vec<Row> {
    rows.iter().filter(|row| row.table == Table::Meta).cloned().collect()
}

#[tokio::test]
async fn without_a_fact_samples_are_kept_and_generation_numbers_are_not_reused() {
    let driver = Arc::new(MemoryDriver::new());
    let bench = Bench::with(driver.clone(), Options::default());
    let store = bench.open().await;
    store.append(samples("m", &[(1, 1.0)]), origin(1, 1)).await.unwrap();
    store.flush().await.unwrap();
    let before = meta(&driver.dump());
    store.append(samples("m", &[(2, 2.0)]), None).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let rows = driver.dump();
    for lost in meta(&rows) {
        // One `put` is lost: its row is missing or has its previous value.
        let older = before
            .iter()
            .find(|row| (&row.partition, &row.clustering) == (&lost.partition, &lost.clustering));
        for left in [None, older] {
            let mut rows = rows.clone();
            rows.retain(|row| *row != lost);
            rows.extend(left.cloned());
            let what = format!("{} was {left:?}", String::from_utf8_lossy(&lost.clustering));
            let bench = Bench::with(Arc::new(MemoryDriver::restore(rows)), Options::default());
            let store = bench.try_open().await.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(values(&store, "m", ALL).await, [(1, 1.0), (2, 2.0)], "{what}");
            store.append(samples("m", &[(3, 3.0)]), None).await.unwrap();
            store.close().await.unwrap();
            drop(store);
            let store = bench.open().await;
            assert_eq!(values(&store, "m", ALL).await, [(1, 1.0), (2, 2.0), (3, 3.0)], "{what}");
            let chunks = store.chunks(Kind::Sample, id("m")).await.unwrap();
            let mut generations: Vec<u64> = chunks.iter().map(|chunk| chunk.generation).collect();
            generations.dedup();
            assert_eq!(generations.len(), 3, "{what}: a number was used twice: {generations:?}");
        }
    }
}

#[tokio::test]
async fn data_without_the_facts_about_it_is_not_opened() {
    let driver = Arc::new(MemoryDriver::new());
    let bench = Bench::with(driver.clone(), Options::default());
    let store = bench.open().await;
    store.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let identity = |row: &Row| row.clustering == b"identity";
    let check = async |keep: &dyn Fn(&Row) -> bool, says: &str, accept: &str| {
        let rows = driver.dump().into_iter().filter(|row| row.table != Table::Meta || keep(row)).collect();
        let bench = Bench::with(Arc::new(MemoryDriver::restore(rows)), Options::default());
        let error = bench.try_open().await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        let path = bench.directory.path().join(accept);
        assert!(error.to_string().contains(&path.display().to_string()), "the remedy is missing: {error}");
        // If all facts are missing, the same message also states that generation 1 is missing.
        let lost = bench.directory.path().join("00000000000000000001.lost");
        assert!(
            error.to_string().contains(&lost.display().to_string()),
            "the second remedy is missing: {error}"
        );
        std::fs::write(path, "").unwrap();
        std::fs::write(lost, "").unwrap();
        let store = bench.open().await;
        assert_eq!(values(&store, "m", ALL).await, [(1, 1.0)]);
        store.append(samples("m", &[(2, 2.0)]), None).await.unwrap();
        store.close().await.unwrap();
        drop(store);
        assert_eq!(values(&*bench.open().await, "m", ALL).await, [(1, 1.0), (2, 2.0)]);
    };
    check(&|_| false, "identity", "identity.lost").await;
    check(&identity, "generation 1", "00000000000000000001.lost").await;
}
