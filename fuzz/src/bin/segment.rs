//! Opening a directory with a damaged segment file never panics. An intact row can be read, or its bytes are in the quarantine.
//! Rows with the key of a damaged row, and rows that may seem to be a part of damage, are not checked. Further starts read the
//! same rows, unless bytes were appended after the index of the file.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tacho_drivers::embedded::Embedded;
use tacho_drivers::embedded::fuzzing::{
    Action, BATCH_HEAD_BYTES, Entry, Expected, IndexBuilder, Known, Loaded, Manifest, ROW_HEAD_BYTES, RowRef,
    Scanned, State, Taken, encode_header, file_name, load_from, mark, put_batch, take_batch_head, take_row,
};
use tacho_fuzz::{Script, bounded, content, directory, runtime};
use tacho_store::disk::FaultyDisk;
use tacho_store::driver::{Driver, EachKey, Health, Scan};
use tacho_store::{ErrorKind, Table};

const TABLES: [Table; 3] = [Table::Chunks, Table::Series, Table::Meta];
/// Limits on an assembled file, so that one input takes little time.
const FILE_BYTES_MAX: usize = 16 << 10;
const STEPS_MAX: usize = 64;
/// Damage other than flipped bits counts as this number of flipped bits.
const MANY: usize = 100;
/// Memory of an open directory without its rows.
const MEMORY_BYTES: usize = 4 << 20;

fuzz_target!(|bytes: &[u8]| {
    let memory = MEMORY_BYTES + 64 * bytes.len();
    bounded(memory, || read(bytes, 0, false));
    bounded(memory, || read(bytes, bytes.len() / 2, true));
    let mut script = Script(bytes);
    let manifest = script.byte();
    let file = File::assemble(&mut script);
    bounded(MEMORY_BYTES + 64 * file.bytes.len(), || {
        let length = file.bytes.len();
        read(&file.bytes, length, false);
        start(&file, manifest);
    });
});

/// Key of a row: table, partition, clustering.
type Key = (u8, Vec<u8>, Vec<u8>);

/// A row that was put into a file.
struct Put {
    action: Action,
    key: Key,
    value: Vec<u8>,
    /// The bytes of the row, which begin at offset `at` of the file.
    encoded: Vec<u8>,
    at: usize,
    batch_end: usize,
}

/// A segment file with damage, and its rows.
#[derive(Default)]
struct File {
    bytes: Vec<u8>,
    puts: Vec<Put>,
    /// Whether some values contain rows. If the row around such a value is damaged, the rows in the value may be read as rows of
    /// the file.
    nested: bool,
    /// Whether the file has an index of its rows, and whether bytes were appended after it. The driver never writes after an
    /// index. A start may cut off such bytes as a torn end, and the next start then trusts the index.
    sealed: bool,
    grown_after_seal: bool,
    /// Number of flipped bits. Other damage counts as [`MANY`].
    flips: usize,
}

impl File {
    fn assemble(script: &mut Script<'_>) -> Self {
        let mut file = Self { bytes: encode_header(1), ..Self::default() };
        let mut last = 0..0;
        for _ in 0..STEPS_MAX {
            if script.0.is_empty() || file.bytes.len() > FILE_BYTES_MAX {
                break;
            }
            let (sealed, before) = (file.sealed, file.bytes.len());
            match script.byte() % 8 {
                0..=2 => {
                    let begin = file.bytes.len();
                    file.batch(script);
                    last = begin..file.bytes.len();
                }
                3 => file.bytes.extend(mark()),
                4 => {
                    let count = script.byte().into();
                    file.bytes.extend_from_slice(script.bytes(count));
                    file.flips += MANY;
                }
                5 => {
                    let at = script.below(file.bytes.len());
                    let mask = script.byte();
                    file.bytes[at] ^= mask;
                    file.flips += mask.count_ones() as usize;
                }
                6 => {
                    let cut = script.below(file.bytes.len().min(64));
                    file.bytes.truncate(file.bytes.len() - cut);
                    file.flips += MANY;
                    last.end = last.end.min(file.bytes.len());
                }
                7 if script.byte() % 2 == 0 => file.seal(),
                _ => {
                    let value = file.bytes.get(last.clone()).unwrap_or_default().to_vec();
                    file.nested = true;
                    file.put(&[(Action::Put, (1, vec![9], vec![9]), value)]);
                }
            }
            file.grown_after_seal |= sealed && file.bytes.len() > before;
        }
        file
    }

    fn batch(&mut self, script: &mut Script<'_>) {
        let row = |script: &mut Script<'_>| {
            let kind = script.byte();
            let action = if kind & 3 == 0 { Action::Delete } else { Action::Put };
            let partition = script.bytes((kind >> 2 & 3).into()).to_vec();
            let clustering = script.bytes((kind >> 4 & 3).into()).to_vec();
            let count = if action == Action::Put { script.byte() } else { 0 };
            let value = script.bytes(count.into()).to_vec();
            (action, ((kind >> 6) % 3 + 1, partition, clustering), value)
        };
        let rows: Vec<_> = (0..script.byte() % 4).map(|_| row(script)).collect();
        self.put(&rows);
    }

    fn put(&mut self, rows: &[(Action, Key, Vec<u8>)]) {
        let refs = rows.iter().map(|(action, (table, partition, clustering), value)| RowRef {
            action: *action,
            table: Table::from_byte(*table).expect("a table"),
            partition,
            clustering,
            value,
        });
        let begin = self.bytes.len();
        let mut places = vec![];
        put_batch(&mut self.bytes, refs, |row, offset| places.push((begin + offset, row.bytes())));
        let batch_end = self.bytes.len();
        for ((action, key, value), (at, bytes)) in rows.iter().zip(places) {
            let encoded = self.bytes[at..at + bytes].to_vec();
            let (key, value) = (key.clone(), value.clone());
            self.puts.push(Put { action: *action, key, value, encoded, at, batch_end });
        }
    }

    /// Appends the index of all rows, and the trailer.
    fn seal(&mut self) {
        let mut index = IndexBuilder::default();
        for put in &self.puts {
            let Taken::Row(row) = take_row(&put.encoded) else { continue };
            index.push(&Entry {
                action: row.action,
                table: row.table,
                partition: row.partition,
                clustering: row.clustering,
                offset: put.at as u32,
                value_bytes: row.value.len() as u32,
            });
        }
        let bytes = index.finish(self.bytes.len() as u32);
        self.bytes.extend(bytes);
        self.sealed = true;
    }

    fn is_intact(&self, put: &Put) -> bool {
        self.bytes.get(put.at..).is_some_and(|rest| rest.starts_with(&put.encoded))
    }

    /// Whether the row begins within bytes that look like a damaged row. A reader may then continue after them, inside the row.
    fn is_within_damaged(&self, put: &Put) -> bool {
        (0..put.at)
            .any(|at| matches!(take_row(&self.bytes[at..]), Taken::Damaged(bytes) if at + bytes > put.at))
    }

    /// The start of a batch whose head states more bytes than the file has, if the batch was not acknowledged. Such a batch was
    /// never synced, so none of its rows counts. Rows that were put after it was cut short count as a part of it, too.
    fn cut_short(&self, acknowledged: usize) -> Option<usize> {
        let exceeds = |at: &usize| {
            let rows = take_batch_head(&self.bytes[*at..]);
            rows.is_some_and(|rows| *at + BATCH_HEAD_BYTES + rows > self.bytes.len())
        };
        let unproven = (acknowledged + 1).saturating_sub(BATCH_HEAD_BYTES + ROW_HEAD_BYTES);
        (unproven..self.bytes.len()).find(exceeds)
    }

    /// The rows that must not be lost, if the first `acknowledged` bytes of the file are known to have been on disk. If one row
    /// of a key is damaged, nothing is expected of this key: an earlier row may be read, or the damage is reported.
    fn expected(&self, acknowledged: usize) -> BTreeMap<&Key, &Put> {
        let mut expected = BTreeMap::new();
        let cut_short = self.cut_short(acknowledged).unwrap_or(usize::MAX);
        let is_cut_short = |put: &Put| put.batch_end > self.bytes.len() || put.at > cut_short;
        let damaged: BTreeSet<&Key> = self
            .puts
            .iter()
            .filter(|put| !self.is_intact(put) || is_cut_short(put))
            .map(|put| &put.key)
            .collect();
        for put in self.puts.iter().filter(|put| !damaged.contains(&put.key)) {
            match put.action {
                Action::Put => expected.insert(&put.key, put),
                Action::Delete => expected.remove(&put.key),
            };
        }
        expected
    }
}

/// Loads a file as the driver does. If the rows were scanned, asserts that each reported entry has the place of a row in the
/// file, and that these rows and the damaged places do not overlap.
fn read(bytes: &[u8], acknowledged: usize, ended: bool) {
    let known = (acknowledged > 0).then_some(Known {
        state: if ended { State::Ended } else { State::Growing },
        bytes: acknowledged as u64,
        crc: None,
    });
    let length = bytes.len() as u64;
    let expected = Expected { number: 1, known, length, ended };
    let read_at = |into: &mut [u8], at: u64| {
        let part = bytes.get(at as usize..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    };
    let mut rows = vec![];
    let loaded = load_from(Path::new("fuzz"), &read_at, expected, |entry| {
        rows.push(entry.offset as usize);
    });
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Version, "{error}");
            assert!(error.to_string().contains("(path fuzz)"), "{error}");
            return;
        }
    };
    let Loaded::Scanned(Scanned { length: valid, torn, places, damage, .. }) = loaded else { return };
    assert!(valid + torn <= length);
    let of_row = |at: &usize| match take_row(&bytes[*at..]) {
        Taken::Row(row) => (*at, at + row.bytes()),
        other => panic!("{other:?} at {at} is reported as a row"),
    };
    let mut all: Vec<(usize, usize)> = rows.iter().map(of_row).chain(places.iter().copied()).collect();
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].0), "rows and damaged places overlap: {all:?}");
    assert!(all.last().is_none_or(|(_, end)| *end as u64 <= valid));
    assert_eq!(damage.places, places.len() as u64);
    assert_eq!(damage.bytes, places.iter().map(|(from, to)| (to - from) as u64).sum::<u64>());
}

/// The rows that a start of the driver reads, and its health.
fn open(path: &Path) -> Result<(BTreeMap<Key, Vec<u8>>, Health), tacho_store::Error> {
    let disk = FaultyDisk::default();
    disk.set_sync_skipped(true);
    runtime().block_on(async {
        let driver = Embedded::open_with(path, Arc::new(disk), 1 << 20).await?;
        let mut found = BTreeMap::new();
        for table in TABLES {
            let mut partitions = BTreeSet::new();
            let keys: EachKey<'_> = &mut (|partition: &[u8], _: &[u8]| {
                partitions.insert(partition.to_vec());
            });
            driver.keys(table, keys).await?;
            for partition in partitions {
                let rows = driver.read(vec![Scan::all(table, partition.clone())]).await?;
                for row in rows.into_iter().flatten() {
                    let key = |clustering| (table as u8, partition.clone(), clustering);
                    match row {
                        Ok(row) => drop(found.insert(key(row.clustering), row.value.to_vec())),
                        Err(damaged) => assert!(damaged.reason.contains("segment 1, offset "), "{damaged}"),
                    }
                }
            }
        }
        Ok((found, driver.health()))
    })
}

/// Starts the driver with the file three times.
fn start(file: &File, manifest: u8) {
    let folder = directory();
    let path = folder.path();
    let name = file_name(1);
    std::fs::write(path.join(&name), &file.bytes).expect("the file is written");
    let expected = file.expected(write_manifest(path, file, manifest));
    let mut last = None;
    for start in 1..=3 {
        let (found, health) = match open(path) {
            Ok(opened) => opened,
            Err(error) => {
                assert!(start == 1 && matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Version));
                assert!(error.to_string().contains(&path.display().to_string()), "{error}");
                assert_eq!(content(&path.join(&name)), file.bytes, "a refused directory is changed");
                return;
            }
        };
        let kept = kept(path);
        for (key, put) in expected.iter().filter(|_| !file.nested) {
            // With several flipped bits, the lengths of a damaged row may cover other rows.
            if file.flips > 1 && file.is_within_damaged(put) {
                continue;
            }
            let is_kept = || kept.windows(put.encoded.len()).any(|window| window == put.encoded);
            let is_read = found.get(key) == Some(&put.value);
            assert!(is_read || is_kept(), "start {start}: row {key:?} at {} is lost, {health:?}", put.at);
        }
        if let Some(before) = last.as_ref().filter(|_| !file.grown_after_seal) {
            assert_eq!(&found, before, "start {start} reads other rows");
        }
        last = Some(found);
    }
}

/// Depending on `kind`, writes a manifest that names the file, or `MANIFEST.lost`, or nothing. `MANIFEST.lost` permits a start
/// without a manifest. Returns the number of bytes at the start of the file that the manifest states.
fn write_manifest(path: &Path, file: &File, kind: u8) -> usize {
    let length = file.bytes.len() as u64;
    let known = match kind % 8 {
        0 | 1 => {
            std::fs::write(path.join("MANIFEST.lost"), "").expect("the file is written");
            return 0;
        }
        2 => return 0,
        3 => Known { state: State::Growing, bytes: 24.min(length), crc: None },
        4 => Known { state: State::Growing, bytes: length / 2, crc: None },
        5 => Known { state: State::Growing, bytes: length, crc: None },
        6 => Known { state: State::Ended, bytes: length, crc: None },
        _ => Known { state: State::Sealed, bytes: length, crc: Some(crc32c::crc32c(&file.bytes)) },
    };
    let manifest = Manifest { sequence: 3, next: 2, files: BTreeMap::from([(1, known)]) };
    for name in ["MANIFEST", "MANIFEST.backup"] {
        std::fs::write(path.join(name), manifest.encode()).expect("the file is written");
    }
    known.bytes as usize
}

/// The bytes of all files of the quarantine.
fn kept(path: &Path) -> Vec<u8> {
    let Ok(entries) = std::fs::read_dir(path.join("quarantine")) else { return vec![] };
    entries.flat_map(|entry| content(&entry.expect("an entry").path())).collect()
}
