//! Reads one segment file completely. Returns each row with its place, and each damaged place.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use tacho_store::check::{Finding, FindingKind, Loss, Place, PlacedRow};
use tacho_store::driver::{Damaged, Row};
use tacho_store::sectors::{ReadAt, Readable, is_damage, read_sectors};
use tacho_store::size::in_memory;
use tacho_store::{Error, Result, Table};

use super::super::format::{
    Action, BATCH_HEAD_BYTES, Entry, HEADER_BYTES, ROW_HEAD_BYTES, RowRef, TRAILER_BYTES, Taken, Trailer,
    encode_header, row_bytes, take_head, take_row, take_unproven,
};
use super::super::load::{Expected, Loaded, load_from};
use super::super::manifest::State;
use super::super::scan::{Damage, Offset, Scanned, scan};
use super::Image;
use super::stream::{Extent, Walked, walk};

pub struct Opened {
    name: Arc<str>,
    path: PathBuf,
    expected: Expected,
    file: Arc<File>,
    extent: Extent,
    /// The damaged places that the load found.
    places: Vec<(Offset, Offset)>,
}

#[derive(Debug, Default)]
pub struct FileChecked {
    pub rows: u64,
    pub bytes: u64,
    pub findings: Vec<Finding>,
}

/// A row that an index describes, but that is not intact at its place.
struct Wrong {
    offset: usize,
    bytes: usize,
    row: Damaged,
}

impl Opened {
    pub fn new(name: Arc<str>, path: PathBuf, expected: Expected, file: Arc<File>) -> Self {
        let extent = Extent { number: expected.number, rows_end: expected.length, end: expected.length };
        Self { name, path, expected, file, extent, places: Vec::new() }
    }

    pub const fn number(&self) -> u32 {
        self.expected.number
    }

    pub const fn length(&self) -> u64 {
        self.expected.length
    }

    /// Loads the file in the same way as a server start, but reads bad sectors as zeros. Returns the result and some findings:
    /// about the file as a whole, about its header, index and end, and about bad sectors after the rows and the index.
    pub fn load(&mut self, each: impl FnMut(Entry<'_>)) -> Result<(Loaded, Vec<Finding>)> {
        let file = self.file.clone();
        self.load_from(&|bytes, at| file.read_at(bytes, at), each)
    }

    fn load_from(&mut self, read: ReadAt<'_>, each: impl FnMut(Entry<'_>)) -> Result<(Loaded, Vec<Finding>)> {
        let seen = RefCell::new(Vec::new());
        let read = |bytes: &mut [u8], at: u64| {
            seen.borrow_mut().push(read_sectors(read, bytes, at)?);
            Ok(())
        };
        let loaded = load_from(&self.path, &read, self.expected, each)?;
        let mut findings = self.loaded(&loaded);
        // `check_file` reads the rows and the index again. Bad sectors after them are reported only here.
        for readable in seen.into_inner() {
            let behind = readable.bad.iter().filter(|place| place.start >= self.extent.end);
            findings.extend(behind.map(|place| unreadable(&self.name, place, &readable)));
        }
        Ok((loaded, findings))
    }

    /// Sets the extent to the result of a load, and returns the findings of this load.
    fn loaded(&mut self, loaded: &Loaded) -> Vec<Finding> {
        let whole = || Place::range(&self.name, 0, self.expected.length);
        let mut findings = Vec::new();
        match loaded {
            Loaded::Unfinished => {
                let why = "unfinished segment: it is too short for a row";
                return vec![Finding::new(FindingKind::Leftover, whole(), why)];
            }
            Loaded::Unknown => {
                let why = "it has neither the header of a segment nor a row";
                return vec![
                    Finding::new(FindingKind::FileUnreadable, whole(), why)
                        .effect("all its records are lost; the next start moves it to quarantine/"),
                ];
            }
            Loaded::Sealed(Damage { excess, .. }) => self.extent.end -= excess,
            Loaded::Scanned(Scanned { length, torn, doubtful, damage, places, .. }) => {
                self.places.clone_from(places);
                self.extent.end = if damage.index { self.extent.end - damage.excess } else { *length };
                self.extent.rows_end = self.extent.end;
                if *torn > 0 {
                    let (kind, why) = if *doubtful {
                        (
                            FindingKind::EndDoubtful,
                            "the end cannot be read, and nothing shows that it was acknowledged",
                        )
                    } else {
                        (FindingKind::Unacknowledged, "bytes of an append that has not ended")
                    };
                    findings.push(Finding::new(kind, Place::range(&self.name, *length, *torn), why));
                }
            }
        }
        let (Loaded::Sealed(damage) | Loaded::Scanned(Scanned { damage, .. })) = loaded else {
            return findings;
        };
        if damage.header {
            findings.push(self.header());
        }
        if damage.index {
            let at = self.expected.length - damage.excess;
            let at = Place { offset: Some(at), ..Place::file(self.name.clone()) };
            let why = "the index or the trailer before this offset is damaged";
            findings.push(Finding::new(FindingKind::IndexDamaged, at, why));
        }
        // Another finding reports that an ended file is shorter than the manifest states.
        let is_growing = self.expected.known.is_some_and(|known| known.state == State::Growing);
        if damage.missing > 0 && is_growing {
            let place = Place::range(&self.name, self.expected.length, damage.missing);
            let end = self.expected.length + damage.missing;
            let why = format!("it has {} bytes, and {end} bytes were acknowledged", self.expected.length);
            findings.push(
                Finding::new(FindingKind::FileShort, place, why)
                    .effect(
                        "unless another finding prevents it, the server starts, and every answer warns that records may be \
                         missing",
                    ),
            );
        }
        if damage.excess > 0 {
            let place = Place::range(&self.name, self.expected.length - damage.excess, damage.excess);
            let why = "bytes after the end that the manifest states; they are ignored";
            findings.push(Finding::new(FindingKind::FileChanged, place, why));
        }
        findings
    }

    /// Finds damaged rows among the damaged places of the load: a place that begins with the head of a row that is no deletion,
    /// and is as long as this head states. Calls `each` with the offset and the row. The keys of these rows may be damaged. A
    /// second call finds no rows.
    pub fn each_damaged_row(&mut self, mut each: impl FnMut(Offset, &RowRef<'_>)) {
        for (from, to) in std::mem::take(&mut self.places) {
            let mut head = [0; ROW_HEAD_BYTES];
            let is_read = self.file.read_exact_at(&mut head, from as u64).is_ok();
            if !is_read || row_bytes(&head) != Some(to - from) {
                continue;
            }
            let mut bytes = vec![0; to - from];
            if self.file.read_exact_at(&mut bytes, from as u64).is_ok()
                && let Some(row) = take_unproven(&bytes).filter(|row| row.action == Action::Put)
            {
                each(from, &row);
            }
        }
    }

    /// Passes the entries of the file to `each`: those of the index, or without an intact index those of all intact rows.
    pub fn each_entry(&self, each: impl FnMut(Entry<'_>)) -> Result<()> {
        let read = |bytes: &mut [u8], at: u64| {
            read_sectors(&|bytes, at| self.file.read_at(bytes, at), bytes, at).map(drop)
        };
        load_from(&self.path, &read, self.expected, each).map(drop)
    }

    fn header(&self) -> Finding {
        let mut header = [0; HEADER_BYTES];
        let is_read = self.file.read_exact_at(&mut header, 0).is_ok();
        let number = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
        let place = Place::range(&self.name, 0, HEADER_BYTES as u64);
        if is_read && header[..] == *encode_header(number) {
            let why = format!("its header says that it is segment {number}");
            return Finding::new(FindingKind::FileForeign, place, why)
                .effect("its rows may replace rows of other files, or be replaced by them");
        }
        Finding::new(FindingKind::HeaderDamaged, place, "the header of the file does not match its checksum")
    }
}

impl Image {
    /// Reads a file completely.
    ///
    /// # Errors
    /// `Io` when the file cannot be read for a reason that is not damage, so a retry may help; `Version` when a newer version
    /// wrote it.
    pub fn check_file(&self, number: u32, each: &mut dyn FnMut(PlacedRow)) -> Result<FileChecked> {
        let Some(opened) = self.files.iter().find(|opened| opened.number() == number) else {
            return Ok(FileChecked::default());
        };
        let failed = |e| Error::io("read segment", &opened.path, e);
        let mut extent = opened.extent;
        if let Some(trailer) = trailer(opened).map_err(failed)? {
            extent.rows_end = trailer.offset.into();
        }
        let (mut rows, mut through) = (0, 0);
        let walked = walk(&opened.file, extent, |offset, row| {
            rows += 1;
            through = offset + row.bytes() as u64;
            self.hand_out(opened, offset, &row, each);
        });
        let stopped = match walked {
            Ok(Walked::Sound(crc)) => {
                let mut checked = FileChecked { rows, bytes: extent.end, findings: Vec::new() };
                checked.findings.extend(changed(opened, crc));
                return Ok(checked);
            }
            Ok(Walked::Stopped { at }) => format!("byte {at} is damaged"),
            Err(error) if is_damage(&error) => error.to_string(),
            Err(error) => return Err(failed(error)),
        };
        let mut checked =
            self.search(opened, through, each).map_err(|error| error.with("because", stopped))?;
        checked.rows += rows;
        checked.bytes = opened.length();
        Ok(checked)
    }

    fn hand_out(&self, opened: &Opened, offset: u64, row: &RowRef<'_>, each: &mut dyn FnMut(PlacedRow)) {
        if row.action == Action::Delete {
            return;
        }
        let needed = self.is_needed(opened, (row.table, row.partition, row.clustering), offset);
        // A sound row that no reader gets needs no further check. It is handed out without bytes, to report the progress.
        let bytes = |bytes: &[u8]| if needed { bytes.to_vec() } else { Vec::new() };
        each(PlacedRow {
            place: Place::range(&opened.name, offset, row.bytes() as u64),
            needed,
            is_key_certain: true,
            row: Ok(Row {
                table: row.table,
                partition: bytes(row.partition),
                clustering: bytes(row.clustering),
                value: bytes(row.value).into(),
            }),
        });
    }

    /// Whether readers get this row: the index of the driver refers to this place.
    fn is_needed(&self, opened: &Opened, (table, partition, clustering): Key<'_>, offset: u64) -> bool {
        let directory = self.driver.0.directory.read().unwrap_or_else(PoisonError::into_inner);
        let place = directory.index.get(table, partition, clustering);
        place.is_some_and(|place| (place.segment, u64::from(place.offset)) == (opened.number(), offset))
    }

    /// Reads a damaged file with the code of a server start, but reads the rows even if the index is intact. Hands out the rows
    /// and reports each damaged place. `through` is the end of the intact rows that were handed out already.
    fn search(&self, opened: &Opened, through: u64, each: &mut dyn FnMut(PlacedRow)) -> Result<FileChecked> {
        let (mut indexed, mut checked) = (Vec::new(), FileChecked::default());
        let mut all = vec![0; in_memory(opened.expected.length)];
        let readable = read_sectors(&|bytes, at| opened.file.read_at(bytes, at), &mut all, 0)
            .map_err(|e| Error::io("read segment", &opened.path, e))?;
        let bytes = all.get(..in_memory(opened.extent.end)).unwrap_or(&all);
        let rows_and_index = |place: &Range<u64>| place.start < opened.extent.end;
        let bad = readable.bad.iter().filter(|place| rows_and_index(place));
        // These findings report no loss, because the findings about the rows in the bad sectors report it.
        let of_disk = bad.map(|place| unreadable(&opened.name, place, &readable).loss(Loss::Nothing));
        checked.findings.extend(of_disk);
        let mut sound: BTreeSet<usize> = BTreeSet::new();
        let mut sound_at = |offset: usize| {
            sound.insert(offset);
            if offset as u64 >= through
                && let Some(Taken::Row(row)) = bytes.get(offset..).map(take_row)
            {
                checked.rows += 1;
                self.hand_out(opened, offset as u64, &row, each);
            }
        };
        let from_memory = |out: &mut [u8], at: u64| {
            let found = all.get(in_memory(at)..).and_then(|rest| rest.get(..out.len()));
            out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        };
        let loaded = load_from(&opened.path, &from_memory, opened.expected, |entry| {
            indexed.push(OwnedEntry::of(&entry));
        })?;
        let is_indexed = matches!(loaded, Loaded::Sealed(_));
        let places = match loaded {
            Loaded::Scanned(Scanned { places, .. }) => {
                indexed.drain(..).for_each(|entry| sound_at(entry.offset));
                places
            }
            Loaded::Sealed(_) => {
                let end =
                    indexed.iter().map(|entry| entry.offset + entry.bytes).max().unwrap_or(HEADER_BYTES);
                let rows_end = trailer(opened).ok().flatten().map_or(end, |trailer| trailer.offset as usize);
                let rows = bytes.get(..rows_end).unwrap_or(bytes);
                let mut each = |entry: Entry<'_>| sound_at(entry.offset as usize);
                scan(rows, usize::MAX, Damage::default(), &mut each).places
            }
            Loaded::Unfinished | Loaded::Unknown => Vec::new(),
        };
        let wrong: Vec<Wrong> = indexed
            .into_iter()
            .filter(|entry| entry.action == Action::Put && !sound.contains(&entry.offset))
            .map(|entry| entry.wrong(bytes))
            .collect();
        for (from, to) in places {
            let is_told = wrong.iter().any(|wrong| wrong.offset < to && from < wrong.offset + wrong.bytes);
            if !is_told {
                match self.place(opened, bytes, (from, to), is_indexed) {
                    Ok(row) => each(row),
                    Err(finding) => checked.findings.push(*finding),
                }
            }
        }
        for Wrong { offset, bytes, row } in wrong {
            let place = Place::range(&opened.name, offset as u64, bytes as u64);
            let needed = self.is_needed(opened, (row.table, &row.partition, &row.clustering), offset as u64);
            each(PlacedRow { place, needed, is_key_certain: true, row: Err(row) });
        }
        Ok(checked)
    }

    /// Examines a damaged place at which no index states a row with a value. Returns a damaged row if its key can be read and the
    /// row is not a deletion. Otherwise returns a finding.
    fn place(
        &self,
        opened: &Opened,
        bytes: &[u8],
        (from, to): (Offset, Offset),
        is_indexed: bool,
    ) -> Result<PlacedRow, Box<Finding>> {
        let place = Place::range(&opened.name, from as u64, (to - from) as u64);
        // Every row of a store is longer than the head of a batch, because of its key. So this place is not a row.
        if to - from <= BATCH_HEAD_BYTES {
            let why = "the head of a batch or a mark does not match its checksum";
            return Err(Box::new(Finding::new(FindingKind::FrameDamaged, place, why)));
        }
        let row = bytes.get(from..to).and_then(take_unproven).filter(|row| row.bytes() == to - from);
        let Some(row) = row else {
            let why = format!("{} bytes match no checksum, and their keys are unknown", to - from);
            let finding = Finding::new(FindingKind::PlaceDamaged, place, why);
            return Err(Box::new(finding.effect("every answer warns that records may be missing")));
        };
        if row.action == Action::Delete {
            let why = "checksum mismatch in the deletion of a row";
            let (loss, effect) =
                if is_indexed { (Loss::Nothing, "") } else { (Loss::Fact, "the row may reappear") };
            let finding = Finding::new(FindingKind::RowDamaged, place, why);
            return Err(Box::new(finding.loss(loss).effect(effect)));
        }
        let damaged = Damaged {
            table: row.table,
            partition: row.partition.to_vec(),
            clustering: row.clustering.to_vec(),
            value: Bytes::copy_from_slice(row.value),
            reason: "checksum mismatch".into(),
        };
        // No index confirms the key, so the key may be damaged, too. The row counts as needed unless a later deletion has its
        // key.
        let needed = !self.removed.contains(opened.number(), from);
        Ok(PlacedRow { place, needed, is_key_certain: false, row: Err(damaged) })
    }
}

type Key<'a> = (Table, &'a [u8], &'a [u8]);

/// A finding if the checksum of a sound file differs from the checksum in the manifest.
fn changed(opened: &Opened, crc: u32) -> Option<Finding> {
    let known = opened.expected.known.filter(|known| known.state != State::Growing)?;
    let expect = known.crc.filter(|expect| *expect != crc)?;
    let why = format!(
        "checksum mismatch: the manifest states 0x{expect:08x}, the file has 0x{crc:08x}, and all its rows are sound"
    );
    let place = Place::range(&opened.name, 0, opened.extent.end);
    Some(
        Finding::new(FindingKind::FileChanged, place, why)
            .effect("the file is from another time or directory"),
    )
}

fn trailer(opened: &Opened) -> io::Result<Option<Trailer>> {
    let Some(at) = opened.extent.end.checked_sub(TRAILER_BYTES as u64) else { return Ok(None) };
    let mut last = [0; TRAILER_BYTES];
    match opened.file.read_exact_at(&mut last, at) {
        Err(error) if is_damage(&error) => Ok(None),
        read => read.map(|()| Trailer::decode(&last, opened.extent.end)),
    }
}

fn unreadable(name: &Arc<str>, place: &Range<u64>, readable: &Readable) -> Finding {
    let why = readable.error.as_ref().map_or_else(String::new, ToString::to_string);
    let place = Place::range(name, place.start, place.end - place.start);
    Finding::new(FindingKind::FileUnreadable, place, why)
}

/// An index entry that owns its bytes.
struct OwnedEntry {
    action: Action,
    table: Table,
    partition: Box<[u8]>,
    clustering: Box<[u8]>,
    offset: usize,
    bytes: usize,
}

impl OwnedEntry {
    fn of(entry: &Entry<'_>) -> Self {
        let Entry { action, table, partition, clustering, offset, value_bytes } = *entry;
        let bytes = ROW_HEAD_BYTES + partition.len() + clustering.len() + value_bytes as usize;
        let (partition, clustering) = (partition.into(), clustering.into());
        Self { action, table, partition, clustering, offset: offset as usize, bytes }
    }

    /// The row with its place, as a read through the driver reports it.
    fn wrong(self, bytes: &[u8]) -> Wrong {
        let Self { table, offset, .. } = self;
        let found = bytes.get(offset..).unwrap_or_default();
        let found = found.get(..self.bytes).unwrap_or(found);
        let before = ROW_HEAD_BYTES + self.partition.len() + self.clustering.len();
        let row = RowRef {
            action: Action::Put,
            table,
            partition: &self.partition,
            clustering: &self.clustering,
            value: &[],
        };
        let value = take_head(found, (row, self.bytes - before)).unwrap_or_default();
        let reason = if value.is_empty() { "its place holds other bytes" } else { "checksum mismatch" };
        let row = Damaged {
            table,
            partition: self.partition.to_vec(),
            clustering: self.clustering.to_vec(),
            value: Bytes::copy_from_slice(value),
            reason: reason.into(),
        };
        Wrong { offset, bytes: self.bytes, row }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::format::{mark, put_batch};
    use super::*;

    /// A segment with rows of 3,000 bytes, read from a disk with a bad sector in the middle of the file.
    #[test]
    fn a_bad_sector_costs_only_the_rows_in_it() {
        let mut bytes = encode_header(1);
        for n in 0..20u8 {
            let value = [n; 3_000];
            let (table, clustering) = (Table::Chunks, &[n][..]);
            let row = RowRef { action: Action::Put, table, partition: b"p", clustering, value: &value };
            put_batch(&mut bytes, [row].into_iter(), |_, _| ());
            bytes.extend(mark());
        }
        let length = bytes.len() as u64;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let read = |file: &File| {
            let file = file.try_clone().unwrap();
            move |out: &mut [u8], at: u64| {
                let bad = 24_576..28_672;
                if at < bad.end && at + out.len() as u64 > bad.start {
                    return Err(io::Error::from_raw_os_error(5));
                }
                file.read_at(out, at)
            }
        };
        for (length, ended) in [(length, true), (length, false), (26_000, true)] {
            let expected = Expected { number: 1, known: None, length, ended };
            let handle = Arc::new(File::open(file.path()).unwrap());
            let (name, path) = ("chunks/00000001.segment".into(), file.path().to_owned());
            let mut opened = Opened::new(name, path, expected, handle.clone());
            let mut rows = Vec::new();
            let each = |entry: Entry<'_>| rows.push(entry.clustering[0]);
            let (loaded, findings) = opened.load_from(&read(&handle), each).unwrap();
            assert!(matches!(loaded, Loaded::Scanned(_)));
            let whole = length > 26_000;
            let expected: Vec<u8> =
                (0..20).filter(|n| if whole { !(8..=9).contains(n) } else { *n < 8 }).collect();
            assert_eq!(rows, expected, "{findings:?}");
        }
    }
}
