//! The conformance suite: one set of cases for all drivers.
//!
//! The test file of a driver turns [`CASES`] into tests and supplies an [`Opener`]. Each case opens the driver on a new
//! scratch directory. A case about a capability that the driver does not claim passes without a check.

pub mod simulation;

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use futures_util::TryStreamExt;

use crate::driver::{Delete, Driver, Order, Parts, Row, Scan, Scanned, Table};
use crate::size::in_memory;
use crate::{Error, Result};
use tacho_model::Random;

use simulation::a_store_survives_faults_and_crashes;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// Opens the driver under test on a directory. A case that reopens the driver calls the opener again with the same directory.
pub type Opener = Arc<dyn Fn(PathBuf) -> Boxed<Result<Arc<dyn Driver>>> + Send + Sync>;

/// Checks one guarantee of the trait.
pub struct Case {
    pub name: &'static str,
    check: fn(Bench) -> Boxed<Result<(), String>>,
}

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub const CASES: &[Case] =
            &[$(Case { name: stringify!($name), check: |bench| Box::pin($name(bench)) }),*];
    };
}

cases![
    rows_come_in_order_of_clustering,
    every_kind_of_bound_is_respected,
    limits_are_respected,
    rows_are_scanned_in_reverse_order,
    empty_values_and_keys_are_kept,
    binary_keys_are_kept,
    a_put_replaces_older_rows,
    rows_are_deleted,
    ranges_are_deleted,
    large_values_are_kept,
    tables_and_partitions_are_separate,
    many_partitions_are_separate,
    many_ranges_are_read_at_once,
    values_are_whole_or_reduced_to_the_selected_parts,
    all_rows_of_a_large_put_exist,
    a_scan_during_writes_returns_older_rows_once,
    rows_of_parallel_writers_are_kept,
    rows_survive_reopening,
    a_damaged_row_is_reported,
    random_operations_match_a_map,
    a_store_survives_faults_and_crashes,
];

impl Case {
    /// Runs the case with a new driver in a scratch directory. Removes the directory afterwards.
    pub fn run(&self, opener: &Opener) -> Result<(), String> {
        let scratch = Scratch::new().map_err(|e| format!("cannot make a scratch directory: {e}"))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|e| format!("cannot start a runtime: {e}"))?;
        let bench = Bench { opener: opener.clone(), directory: scratch.0.clone() };
        runtime.block_on((self.check)(bench))
    }
}

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tacho-conformance-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub struct Bench {
    opener: Opener,
    directory: PathBuf,
}

impl Bench {
    async fn open(&self) -> Result<Arc<dyn Driver>, String> {
        (self.opener)(Path::new(&self.directory).join("driver")).await.map_err(say)
    }
}

fn say(error: Error) -> String {
    format!("driver failed: {error}")
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, expect: &T) -> Result<(), String> {
    if got == expect { Ok(()) } else { Err(format!("{what}: expected {expect:?}, got {got:?}")) }
}

fn row(partition: &[u8], clustering: &[u8], value: &[u8]) -> Row {
    Row {
        table: Table::Chunks,
        partition: partition.to_vec(),
        clustering: clustering.to_vec(),
        value: Bytes::copy_from_slice(value),
    }
}

/// Clustering keys of a scan, in the order of the scan. If the driver lists keys, it must list these.
async fn keys(driver: &dyn Driver, scan: Scan) -> Result<Vec<Vec<u8>>, String> {
    let is_whole = scan.limit.is_none() && scan.order == Order::Ascending;
    let mut listed = Vec::new();
    let is_listed = driver.keys_of(&scan, &mut |key| listed.push(key.to_vec())).await.map_err(say)?;
    let scanned: Vec<_> = rows(driver, scan.clone()).await?.into_iter().map(|r| r.clustering).collect();
    if is_listed && is_whole && listed != scanned {
        return Err(format!("{scan:?} has the keys {scanned:?}, but {listed:?} are listed"));
    }
    Ok(scanned)
}

async fn rows(driver: &dyn Driver, scan: Scan) -> Result<Vec<Row>, String> {
    let stream = driver.scan(scan).await.map_err(say)?;
    let rows: Vec<Scanned> = stream.try_collect().await.map_err(say)?;
    sound(rows)
}

/// The rows, or an error if any row is damaged.
fn sound<T>(rows: Vec<Scanned<T>>) -> Result<Vec<T>, String> {
    rows.into_iter().collect::<Result<_, _>>().map_err(|damaged| say(damaged.into()))
}

fn all() -> Scan {
    Scan::all(Table::Chunks, *b"p")
}

async fn with_letters(bench: &Bench, letters: &[u8]) -> Result<Arc<dyn Driver>, String> {
    let driver = bench.open().await?;
    driver.put(letters.iter().map(|l| row(b"p", &[*l], &[*l, *l])).collect()).await.map_err(say)?;
    Ok(driver)
}

fn letters(text: &str) -> Vec<Vec<u8>> {
    text.bytes().map(|l| vec![l]).collect()
}

async fn rows_come_in_order_of_clustering(bench: Bench) -> Result<(), String> {
    let driver = with_letters(&bench, b"dbeac").await?;
    equal("keys", &keys(&*driver, all()).await?, &letters("abcde"))?;
    let first = rows(&*driver, all()).await?.into_iter().next();
    equal("first row", &first, &Some(row(b"p", b"a", b"aa")))
}

async fn every_kind_of_bound_is_respected(bench: Bench) -> Result<(), String> {
    use Bound::{Excluded, Included, Unbounded};
    let driver = with_letters(&bench, b"bdfh").await?;
    let at = |l: &str| l.as_bytes().to_vec();
    let cases = [
        (Unbounded, Unbounded, "bdfh"),
        (Included(at("d")), Unbounded, "dfh"),
        (Excluded(at("d")), Unbounded, "fh"),
        (Unbounded, Included(at("f")), "bdf"),
        (Unbounded, Excluded(at("f")), "bd"),
        (Included(at("d")), Included(at("f")), "df"),
        (Excluded(at("b")), Excluded(at("h")), "df"),
        (Included(at("c")), Included(at("g")), "df"),
        (Included(at("d")), Included(at("d")), "d"),
        (Excluded(at("d")), Excluded(at("d")), ""),
        (Included(at("d")), Excluded(at("d")), ""),
        (Included(at("h")), Included(at("b")), ""),
        (Included(at("d\0")), Included(at("f")), "f"),
        (Included(at("x")), Unbounded, ""),
        (Unbounded, Excluded(at("a")), ""),
    ];
    for (from, to, expect) in cases {
        let what = format!("{from:?} to {to:?}");
        let scan = Scan { from, to, ..all() };
        equal(&what, &keys(&*driver, scan).await?, &letters(expect))?;
    }
    Ok(())
}

async fn limits_are_respected(bench: Bench) -> Result<(), String> {
    let driver = with_letters(&bench, b"abcd").await?;
    for (limit, expect) in [(0, ""), (1, "a"), (3, "abc"), (4, "abcd"), (9, "abcd")] {
        let scan = Scan { limit: Some(limit), ..all() };
        equal(&format!("limit {limit}"), &keys(&*driver, scan).await?, &letters(expect))?;
    }
    Ok(())
}

async fn rows_are_scanned_in_reverse_order(bench: Bench) -> Result<(), String> {
    let driver = with_letters(&bench, b"abcd").await?;
    if !driver.capabilities().reverse {
        return Ok(());
    }
    let back = Scan { order: Order::Descending, ..all() };
    equal("all", &keys(&*driver, back.clone()).await?, &letters("dcba"))?;
    let some = Scan { limit: Some(2), to: Bound::Excluded(b"d".to_vec()), ..back };
    equal("limited", &keys(&*driver, some).await?, &letters("cb"))
}

async fn empty_values_and_keys_are_kept(bench: Bench) -> Result<(), String> {
    let driver = bench.open().await?;
    let put = [row(b"p", b"", b"x"), row(b"p", b"a", b""), row(b"", b"", b"")];
    driver.put(put.to_vec()).await.map_err(say)?;
    driver.put(Vec::new()).await.map_err(say)?;
    equal("partition p", &rows(&*driver, all()).await?, &put[..2].to_vec())?;
    let nameless = Scan::all(Table::Chunks, *b"");
    equal("partition of no bytes", &rows(&*driver, nameless).await?, &put[2..].to_vec())
}

async fn binary_keys_are_kept(bench: Bench) -> Result<(), String> {
    let driver = bench.open().await?;
    let parts: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"\0\xff", b"\xff", b"\xff\xff"];
    let mut put = Vec::new();
    for partition in parts {
        put.extend(parts.iter().rev().map(|clustering| row(partition, clustering, clustering)));
    }
    driver.put(put).await.map_err(say)?;
    for partition in parts {
        let found = keys(&*driver, Scan::all(Table::Chunks, partition)).await?;
        equal(&format!("partition {partition:?}"), &found, &parts.map(<[u8]>::to_vec).to_vec())?;
    }
    Ok(())
}

async fn a_put_replaces_older_rows(bench: Bench) -> Result<(), String> {
    let driver = with_letters(&bench, b"ab").await?;
    driver.put(vec![row(b"p", b"a", b"new")]).await.map_err(say)?;
    let twice = vec![row(b"p", b"b", b"first"), row(b"p", b"b", b"last")];
    driver.put(twice).await.map_err(say)?;
    let expect = vec![row(b"p", b"a", b"new"), row(b"p", b"b", b"last")];
    equal("rows", &rows(&*driver, all()).await?, &expect)
}

async fn many_ranges_are_read_at_once(bench: Bench) -> Result<(), String> {
    let driver = with_letters(&bench, b"abcd").await?;
    driver.put(vec![row(b"q", b"c", b"")]).await.map_err(say)?;
    let from_c = Scan { from: Bound::Included(b"c".to_vec()), ..all() };
    let scans =
        vec![all(), Scan::all(Table::Chunks, *b"nobody"), from_c, Scan::all(Table::Chunks, *b"q"), all()];
    let mut expect = Vec::new();
    for scan in &scans {
        expect.push(rows(&*driver, scan.clone()).await?);
    }
    let read = driver.read(scans).await.map_err(say)?;
    equal("ranges", &read.into_iter().map(sound).collect::<Result<Vec<_>, _>>()?, &expect)?;
    equal("none", &driver.read(Vec::new()).await.map_err(say)?, &Vec::new())
}

async fn values_are_whole_or_reduced_to_the_selected_parts(bench: Bench) -> Result<(), String> {
    let driver = bench.open().await?;
    let value = |length: usize| (0..length).map(|at| (at * at / 251).to_le_bytes()[0]).collect::<Vec<u8>>();
    let lengths = [0, 10, 5_000, 40_000, 300_000];
    let of = |partition: &[u8]| -> Vec<Row> {
        (0..).zip(lengths).map(|(key, length)| row(partition, &[key], &value(length))).collect()
    };
    for partition in [b"p", b"q"] {
        driver.put(of(partition)).await.map_err(say)?;
    }
    // The parts for the second partition are out of range, descending or overlapping. The driver ignores such parts and returns
    // the whole value.
    let parts = [
        vec![0..30, 30..31, 5_000..9_000, 39_000..40_000],
        vec![0..30, 200_000..400_000],
        vec![5..6, 0..4],
        vec![0..30, 20..40],
    ];
    for (number, other) in parts.iter().skip(1).enumerate() {
        let chosen = [parts[0].clone(), other.clone()];
        let wanted: Parts =
            Arc::new(move |scan, front| chosen.get(scan).filter(|_| front.len() >= 30).cloned());
        let scans = vec![all(), Scan::all(Table::Chunks, *b"q"), Scan::all(Table::Chunks, *b"nobody")];
        let read = driver.read_parts(scans, wanted).await.map_err(say)?;
        let read = read.into_iter().map(sound).collect::<Result<Vec<_>, _>>()?;
        equal("scans", &read.len(), &3)?;
        for (partition, read) in [b"p", b"q"].into_iter().zip(&read) {
            for (cut, whole) in read.iter().zip(of(partition)) {
                let pieces = parts[0].iter().filter_map(|part| whole.value.get(part.clone()));
                let cut_down = Bytes::from(pieces.flatten().copied().collect::<Vec<u8>>());
                let short = Row { value: cut_down, ..whole.clone() };
                let may_be_cut = partition == b"p" && whole.value.len() >= 40_000;
                equal("whole length", &cut.whole, &whole.value.len())?;
                let is_one = cut.row == whole || may_be_cut && cut.row == short;
                equal(&format!("parts {number} of {:?}", whole.clustering), &is_one, &true)?;
            }
        }
        equal("rows", &read.iter().map(Vec::len).collect::<Vec<_>>(), &vec![5, 5, 0])?;
    }
    Ok(())
}

async fn rows_are_deleted(bench: Bench) -> Result<(), String> {
    let driver = with_letters(&bench, b"abc").await?;
    let delete = |key: &[u8]| Delete::row(Table::Chunks, *b"p", key);
    driver.delete(vec![delete(b"b"), delete(b"not there")]).await.map_err(say)?;
    equal("one row is deleted", &keys(&*driver, all()).await?, &letters("ac"))?;
    driver.put(vec![row(b"p", b"b", b"again")]).await.map_err(say)?;
    equal("the deleted row is put again", &keys(&*driver, all()).await?, &letters("abc"))
}

async fn ranges_are_deleted(bench: Bench) -> Result<(), String> {
    let driver = with_letters(&bench, b"abcdef").await?;
    driver.put(vec![row(b"q", b"c", b"")]).await.map_err(say)?;
    let (from, to) = (Bound::Included(b"b".to_vec()), Bound::Excluded(b"d".to_vec()));
    let range = Delete { from, to, ..Delete::partition(Table::Chunks, *b"p") };
    let nothing = Delete { to: Bound::Excluded(b"a".to_vec()), ..range.clone() };
    driver.delete(vec![range, nothing]).await.map_err(say)?;
    equal("range", &keys(&*driver, all()).await?, &letters("adef"))?;
    driver.delete(vec![Delete::partition(Table::Chunks, *b"p")]).await.map_err(say)?;
    equal("partition", &keys(&*driver, all()).await?, &Vec::new())?;
    equal(
        "the other partition keeps its row",
        &keys(&*driver, Scan::all(Table::Chunks, *b"q")).await?,
        &letters("c"),
    )
}

async fn large_values_are_kept(bench: Bench) -> Result<(), String> {
    let driver = bench.open().await?;
    let bytes = driver.capabilities().value_bytes_max.min(3 << 20);
    let mut random = Random::new(1);
    let value: Vec<u8> = (0..bytes).map(|_| random.next().to_le_bytes()[0]).collect();
    let big = row(b"p", b"k", &value);
    driver.put(vec![big.clone(), row(b"p", b"l", b"small")]).await.map_err(say)?;
    let found = rows(&*driver, Scan { limit: Some(1), ..all() }).await?;
    if found == [big] {
        Ok(())
    } else {
        Err(format!("a value of {bytes} bytes was returned with other bytes"))
    }
}

async fn tables_and_partitions_are_separate(bench: Bench) -> Result<(), String> {
    let driver = bench.open().await?;
    // Without lengths or separators, all of these keys would have the same bytes.
    let names: [(&[u8], &[u8]); 4] = [(b"ab", b"c"), (b"a", b"bc"), (b"abc", b""), (b"", b"abc")];
    let mut put = Vec::new();
    for table in Table::ALL {
        put.extend(names.iter().map(|(p, c)| Row { table, ..row(p, c, table.name().as_bytes()) }));
    }
    driver.put(put).await.map_err(say)?;
    for table in Table::ALL {
        for (partition, clustering) in names {
            let found = rows(&*driver, Scan::all(table, partition)).await?;
            let expect = Row { table, ..row(partition, clustering, table.name().as_bytes()) };
            equal("rows", &found, &vec![expect])?;
        }
    }
    Ok(())
}

async fn many_partitions_are_separate(bench: Bench) -> Result<(), String> {
    let driver = bench.open().await?;
    let number = |n: u32| n.to_be_bytes();
    for group in 0..10u32 {
        let put = (0..500).map(|i| row(&number(group * 500 + i), &number(i), &number(group)));
        driver.put(put.collect()).await.map_err(say)?;
    }
    for n in [0, 499, 500, 2_777, 4_999] {
        let found = rows(&*driver, Scan::all(Table::Chunks, number(n))).await?;
        equal("rows", &found, &vec![row(&number(n), &number(n % 500), &number(n / 500))])?;
    }
    equal(
        "rows of a partition that does not exist",
        &keys(&*driver, Scan::all(Table::Chunks, number(5_000))).await?,
        &Vec::new(),
    )
}

async fn all_rows_of_a_large_put_exist(bench: Bench) -> Result<(), String> {
    let driver = bench.open().await?;
    let batch: Vec<Row> = (0..2_000u32).map(|i| row(b"p", &i.to_be_bytes(), &[7; 100])).collect();
    driver.put(batch.clone()).await.map_err(say)?;
    equal("rows", &rows(&*driver, all()).await?.len(), &batch.len())
}

async fn a_scan_during_writes_returns_older_rows_once(bench: Bench) -> Result<(), String> {
    let driver = bench.open().await?;
    let even = (0..2_000u32).step_by(2).map(|i| row(b"p", &i.to_be_bytes(), &[1; 64]));
    driver.put(even.collect()).await.map_err(say)?;
    let mut stream = driver.scan(all()).await.map_err(say)?;
    let mut found = Vec::new();
    let mut odd = (0..2_000u32).skip(1).step_by(2);
    while let Some(row_found) = stream.try_next().await.map_err(say)? {
        found.push(row_found.map_err(|damaged| say(damaged.into()))?.clustering);
        if found.len() % 50 == 0
            && let Some(i) = odd.next_back()
        {
            driver.put(vec![row(b"p", &i.to_be_bytes(), b"")]).await.map_err(say)?;
        }
    }
    let ordered = found.is_sorted_by(|before, after| before < after);
    let even = found.iter().filter(|key| key.last().is_some_and(|last| last % 2 == 0)).count();
    equal("ordered, each once", &ordered, &true)?;
    equal("rows that existed before the scan", &even, &1_000)
}

async fn rows_of_parallel_writers_are_kept(bench: Bench) -> Result<(), String> {
    let driver = bench.open().await?;
    let write = |writer: u8| {
        let driver = driver.clone();
        tokio::spawn(async move {
            for i in 0..20 {
                driver.put(vec![row(b"p", &[writer, i], &[i]), row(&[writer], &[i], b"")]).await?;
            }
            Ok::<(), Error>(())
        })
    };
    let writers: Vec<_> = (0..8).map(write).collect();
    for writer in writers {
        writer.await.map_err(|e| e.to_string())?.map_err(say)?;
    }
    equal("rows", &keys(&*driver, all()).await?.len(), &160)
}

async fn rows_survive_reopening(bench: Bench) -> Result<(), String> {
    let driver = with_letters(&bench, b"abcd").await?;
    if !driver.capabilities().durable {
        return Ok(());
    }
    driver.put(vec![row(b"p", b"b", b"new")]).await.map_err(say)?;
    driver.delete(vec![Delete::row(Table::Chunks, *b"p", *b"c")]).await.map_err(say)?;
    let before = rows(&*driver, all()).await?;
    drop(driver);
    let driver = bench.open().await?;
    equal("rows", &rows(&*driver, all()).await?, &before)?;
    equal("keys", &keys(&*driver, all()).await?, &letters("abd"))
}

/// For a driver with files, flips a bit in each of the first three rows. Reads all rows after each flip. A row with a
/// flipped bit must be reported as damaged, or be returned intact (from memory). All other rows must be returned. Damaged
/// rows can be replaced and deleted.
async fn a_damaged_row_is_reported(bench: Bench) -> Result<(), String> {
    let driver = bench.open().await?;
    let mut random = Random::new(9);
    let mut noise =
        |bytes: usize| -> Vec<u8> { (0..bytes).map(|_| random.next().to_le_bytes()[0]).collect() };
    let values = [noise(300), noise(3_000), noise(100_000), noise(300)];
    let all_rows: Vec<Row> = (b'a'..).zip(&values).map(|(key, value)| row(b"p", &[key], value)).collect();
    driver.put(all_rows.clone()).await.map_err(say)?;
    for (flipped, value) in values.iter().take(3).enumerate() {
        flip_where(&bench.directory.join("driver"), value)?;
        let whole: Parts = Arc::new(|_, _| None);
        let streamed = driver.scan(all()).await.map_err(say)?.try_collect().await.map_err(say)?;
        let read = driver.read(vec![all()]).await.map_err(say)?.remove(0);
        let cut = driver.read_parts(vec![all()], whole).await.map_err(say)?.remove(0);
        let cut = cut.into_iter().map(|row| row.map(|cut| cut.row)).collect();
        let found: [Vec<Scanned>; 3] = [streamed, read, cut];
        for (how, found) in ["scan", "read", "read_parts"].into_iter().zip(found) {
            equal(&format!("{how}: rows"), &found.len(), &all_rows.len())?;
            for (place, (found, put)) in found.into_iter().zip(&all_rows).enumerate() {
                match found {
                    Ok(row) => equal(&format!("{how}: row {place}"), &row, put)?,
                    Err(damaged) => {
                        let key = (damaged.table, damaged.partition, damaged.clustering);
                        equal("key", &key, &(put.table, put.partition.clone(), put.clustering.clone()))?;
                        let what = format!(
                            "{how}: row {place} was reported as damaged; was one of its bits flipped"
                        );
                        equal(&what, &(place <= flipped), &true)?;
                    }
                }
            }
        }
    }
    let kept = |places: &[usize]| {
        places.iter().filter_map(|place| all_rows.get(*place).cloned()).collect::<Vec<_>>()
    };
    driver.put(kept(&[0])).await.map_err(say)?;
    let gone = [b"b", b"c"].map(|key| Delete::row(Table::Chunks, *b"p", *key));
    driver.delete(gone.to_vec()).await.map_err(say)?;
    equal("rows", &rows(&*driver, all()).await?, &kept(&[0, 3]))
}

/// Flips one bit in the middle of every copy of these bytes in the files of the directory.
fn flip_where(directory: &Path, bytes: &[u8]) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", directory.display());
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(()) };
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            flip_where(&path, bytes)?;
            continue;
        }
        let content = std::fs::read(&path).map_err(failed)?;
        // Compares only the first bytes of a long value, because some back ends split values into blocks.
        let front = bytes.get(..64).unwrap_or(bytes);
        for at in
            (0..content.len()).filter(|at| content.get(*at..).is_some_and(|rest| rest.starts_with(front)))
        {
            use std::io::{Seek, SeekFrom, Write};
            let place = at + (bytes.len() / 2).min(content.len() - at - 1);
            let Some(byte) = content.get(place) else { continue };
            let mut file = std::fs::OpenOptions::new().write(true).open(&path).map_err(failed)?;
            file.seek(SeekFrom::Start(place as u64)).map_err(failed)?;
            file.write_all(&[byte ^ 1]).map_err(failed)?;
        }
    }
    Ok(())
}

const fn low_byte(number: u64) -> u8 {
    number.to_le_bytes()[0]
}

async fn random_operations_match_a_map(bench: Bench) -> Result<(), String> {
    let mut driver = bench.open().await?;
    let mut random = Random::new(42);
    let mut model: BTreeMap<(u8, Vec<u8>), Bytes> = BTreeMap::new();
    for step in 0..300u64 {
        let (partition, key) = (low_byte(random.below(3)), vec![low_byte(random.below(20))]);
        match random.below(10) {
            0..6 => {
                let value = Bytes::from(vec![low_byte(step); in_memory(random.below(2_000))]);
                model.insert((partition, key.clone()), value.clone());
                driver.put(vec![row(&[partition], &key, &value)]).await.map_err(say)?;
            }
            6 | 7 => {
                model.remove(&(partition, key.clone()));
                driver.delete(vec![Delete::row(Table::Chunks, [partition], key)]).await.map_err(say)?;
            }
            8 if driver.capabilities().durable && step % 3 == 0 => {
                drop(driver);
                driver = bench.open().await?;
            }
            _ => {
                let scan =
                    Scan { from: Bound::Included(key.clone()), ..Scan::all(Table::Chunks, [partition]) };
                let range = (partition, key)..(partition + 1, Vec::new());
                let expect: Vec<Row> = model.range(range).map(|((p, k), v)| row(&[*p], k, v)).collect();
                equal(&format!("step {step}"), &rows(&*driver, scan).await?, &expect)?;
            }
        }
    }
    Ok(())
}
