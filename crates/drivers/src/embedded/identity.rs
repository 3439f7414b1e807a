//! Is a segment file the one that the manifest describes, and to which store does it belong?
//!
//! A file has no identity of its own. The manifest and `END` state where it ends, and most files have rows that name their store.
//! Each of these two facts can show that a file is from another directory, although the manifest lists a file of this name.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

use bytes::Bytes;
use tacho_store::Row;
use tacho_store::check::{is_store_key, store_of};
use tacho_store::size::in_memory;

use super::format::{
    Action, BATCH_HEAD_BYTES, Entry, HEADER_BYTES, ROW_HEAD_BYTES, TRAILER_BYTES, Taken, Trailer,
    encode_header, take_batch_head, take_row,
};
use super::load::ReadExactAt;
use super::manifest::{Known, State};

/// Bytes of a file that are read at a time.
const PART_BYTES: u64 = 64 << 10;
/// Bytes after the stated end of a file that are searched for a batch.
const SEARCHED_BYTES_MAX: u64 = 1 << 20;

/// Result of comparing a file with the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// The file ends, or continues, where the manifest and `END` state.
    Proven,
    /// The file may be damaged, or the manifest states too little.
    Open,
    /// The file is sound in itself, and not the file that the manifest describes.
    Refuted(String),
}

/// Compares a file of `length` bytes with the facts about segment `number`.
pub fn match_manifest(
    read: ReadExactAt<'_>,
    length: u64,
    number: u32,
    known: Option<Known>,
) -> io::Result<Match> {
    if let Some(other) = other_number(read, length, number)? {
        return Ok(Match::Refuted(format!("its header says that it is segment {other}")));
    }
    let Some(known) = known else { return Ok(Match::Open) };
    if known.state == State::Growing {
        return growing(read, length, known.bytes);
    }
    let is_other = length != known.bytes
        && (is_sealed(read, length)?
            || (known.state == State::Sealed && continues(read, known.bytes..length)?));
    if is_other && !has_checksum(read, length, known)? {
        let stated = known.bytes;
        let why =
            format!("it is a sound segment of {length} bytes, the manifest names one of {stated} bytes");
        return Ok(Match::Refuted(why));
    }
    Ok(if length == known.bytes { Match::Proven } else { Match::Open })
}

/// The segment number in the header, if the header is sound and states another number than `number`.
fn other_number(read: ReadExactAt<'_>, length: u64, number: u32) -> io::Result<Option<u32>> {
    let mut header = [0; HEADER_BYTES];
    if length < HEADER_BYTES as u64 {
        return Ok(None);
    }
    read(&mut header, 0)?;
    let [.., n0, n1, n2, n3, 0, 0, 0, 0, _, _, _, _] = header else { return Ok(None) };
    let found = u32::from_le_bytes([n0, n1, n2, n3]);
    Ok((found != number && header[..] == *encode_header(found)).then_some(found))
}

/// Follows the heads of batches up to the stated end. In the file that the manifest describes, a batch ends at the stated end.
fn growing(read: ReadExactAt<'_>, length: u64, stated: u64) -> io::Result<Match> {
    let begun = (HEADER_BYTES + BATCH_HEAD_BYTES) as u64;
    if stated <= begun || length < stated {
        return Ok(Match::Open);
    }
    let (mut at, mut part, mut from) = (HEADER_BYTES as u64, Vec::new(), 0);
    while at < stated {
        let is_in_part = at >= from && at + BATCH_HEAD_BYTES as u64 <= from + part.len() as u64;
        if !is_in_part {
            let bytes = PART_BYTES.min(length - at);
            part.resize(in_memory(bytes), 0);
            read(&mut part, at)?;
            from = at;
        }
        let head = part.get(in_memory(at - from)..).and_then(take_batch_head);
        let Some(rows) = head else { return Ok(Match::Open) };
        at += (BATCH_HEAD_BYTES + rows) as u64;
    }
    Ok(if at == stated {
        Match::Proven
    } else {
        Match::Refuted(format!("no batch of it ends at byte {stated}, where the manifest or END states one"))
    })
}

/// Whether a file has a sound trailer and index at its end.
fn is_sealed(read: ReadExactAt<'_>, length: u64) -> io::Result<bool> {
    let Some(at) = length.checked_sub(TRAILER_BYTES as u64) else { return Ok(false) };
    let mut last = [0; TRAILER_BYTES];
    read(&mut last, at)?;
    let Some(trailer) = Trailer::decode(&last, length) else { return Ok(false) };
    let mut index = vec![0; in_memory(trailer.index_bytes)];
    read(&mut index, trailer.offset.into())?;
    Ok(trailer.fits(&index, &last))
}

/// Whether there is an intact head of a batch in a part of a file.
fn continues(read: ReadExactAt<'_>, part: Range<u64>) -> io::Result<bool> {
    let bytes = part.end.saturating_sub(part.start).min(SEARCHED_BYTES_MAX);
    let mut found = vec![0; in_memory(bytes)];
    read(&mut found, part.start)?;
    Ok((0..found.len()).any(|at| found.get(at..).and_then(take_batch_head).is_some()))
}

/// Whether the part of a file that the manifest describes has the stated checksum.
fn has_checksum(read: ReadExactAt<'_>, length: u64, known: Known) -> io::Result<bool> {
    let Some(expected) = known.crc.filter(|_| length >= known.bytes) else { return Ok(false) };
    let (mut crc, mut at) = (0, 0);
    let mut part = Vec::new();
    while at < known.bytes {
        let bytes = PART_BYTES.min(known.bytes - at);
        part.resize(in_memory(bytes), 0);
        read(&mut part, at)?;
        crc = crc32c::crc32c_append(crc, &part);
        at += bytes;
    }
    Ok(crc == expected)
}

/// The last row of a file that names its store.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamedBy(Option<(u64, usize)>);

impl NamedBy {
    pub fn note(&mut self, entry: &Entry<'_>) {
        if entry.action == Action::Put && is_store_key(entry.table, entry.partition, entry.clustering) {
            let bytes = entry.partition.len() + entry.clustering.len() + entry.value_bytes as usize;
            self.0 = Some((entry.offset.into(), ROW_HEAD_BYTES + bytes));
        }
    }

    /// The identity of the store; `None` if no row names it, or the row is damaged.
    pub fn store(self, read: ReadExactAt<'_>) -> Option<u128> {
        let (offset, length) = self.0?;
        let mut bytes = vec![0; length];
        read(&mut bytes, offset).ok()?;
        let Taken::Row(row) = take_row(&bytes) else { return None };
        let (partition, clustering) = (row.partition.to_vec(), row.clustering.to_vec());
        let value = Bytes::copy_from_slice(row.value);
        store_of(&Row { table: row.table, partition, clustering, value })
    }
}

/// The identity of each file: whether the manifest proves it, and the store that its rows name.
#[derive(Debug, Default)]
pub struct Identities(Vec<(u32, bool, Option<u128>)>);

impl Identities {
    pub fn add(&mut self, number: u32, is_proven: bool, store: Option<u128>) {
        self.0.push((number, is_proven, store));
    }

    /// Files that are not proven and belong to another store, each with the store that its rows name. The own store is the one
    /// that the proven files name. If none of them names a store, `others` applies: the own store according to other files.
    pub fn foreign(&self, others: &BTreeSet<u128>) -> Vec<(u32, u128)> {
        let proven = self.0.iter().filter(|(_, is_proven, _)| *is_proven).filter_map(|(_, _, store)| *store);
        let mut own: BTreeSet<u128> = proven.collect();
        if own.is_empty() {
            own.clone_from(others);
        }
        let is_foreign = |store: &u128| !own.is_empty() && !own.contains(store);
        let unproven = self.0.iter().filter(|(_, is_proven, _)| !is_proven);
        unproven.filter_map(|(number, _, store)| Some((*number, store.filter(is_foreign)?))).collect()
    }
}
