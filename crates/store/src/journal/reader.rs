//! What does a journal file hold, and where does its good part end?
//!
//! Path after a crash: `recover.rs` reads each file with this and adds the batches to open chunks again.

use std::path::{Path, PathBuf};

use super::decode::{Decoder, synced};
use super::format::{
    HEADER_BYTES, Header, RECORD_HEAD_BYTES, RECORD_MAGIC, file_generation, take_record, version,
};
use crate::arrival::Arrival;
use crate::{Error, Result};

/// A journal file by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub generation: u64,
    pub path: PathBuf,
}

/// What reading a file found out about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// None: the process died while it made the file.
    pub header: Option<Header>,
    pub records: u64,
    /// Offsets of records that were on disk once and are not sound any more, and why.
    pub damaged: Vec<(u64, String)>,
    /// Where the good part ends, bytes.
    pub length: u64,
    /// Bytes behind it: what was being written when the process died.
    pub torn: u64,
}

/// Journal files of a directory in order of generation.
pub fn list(directory: &Path) -> Result<Vec<Found>> {
    let failed = |e| Error::io("list journal", directory, e);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if let Some(generation) = entry.file_name().to_str().and_then(file_generation) {
            found.push(Found { generation, path: entry.path() });
        }
    }
    found.sort_unstable_by_key(|f| f.generation);
    Ok(found)
}

/// Reads a whole file and hands out its batches in order.
pub fn read(path: &Path, each: impl FnMut(Arrival)) -> Result<Contents> {
    let bytes = std::fs::read(path).map_err(|e| Error::io("read journal", path, e))?;
    read_bytes(&bytes, path, each)
}

/// Reads what the file at `path` holds, and hands out its batches in order.
pub fn read_bytes(bytes: &[u8], path: &Path, mut each: impl FnMut(Arrival)) -> Result<Contents> {
    let header = Header::decode(bytes, path)?;
    let mut contents =
        Contents { header, records: 0, damaged: Vec::new(), length: 0, torn: bytes.len() as u64 };
    if header.is_none() {
        return Ok(contents);
    }
    let mut decoder = Decoder::new(version(bytes));
    let mut at = HEADER_BYTES;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        match take_record(rest) {
            Some(payload) => {
                match decoder.decode(payload) {
                    Ok(arrival) => each(arrival),
                    Err(malformed) => {
                        contents.damaged.push((at as u64, malformed.to_string()));
                        decoder.lost(payload.len());
                    }
                }
                contents.records += 1;
                at += RECORD_HEAD_BYTES + payload.len();
            }
            None => match next_proof(bytes, at) {
                Some(next) => {
                    contents.damaged.push((at as u64, format!("{} bytes with a wrong checksum", next - at)));
                    decoder.lost(next - at);
                    at = next;
                }
                None => break,
            },
        }
    }
    contents.length = at as u64;
    contents.torn = (bytes.len() - at) as u64;
    Ok(contents)
}

/// The next sound record behind `bad` that was written after `bad` was on disk. A sound one that was not belongs to
/// the same torn write: its batch was never answered, and taking it could hide the ones before it.
fn next_proof(bytes: &[u8], bad: usize) -> Option<usize> {
    let mut from = bad + 1;
    loop {
        let next = from + bytes.get(from..)?.windows(RECORD_MAGIC.len()).position(|w| w == RECORD_MAGIC)?;
        let payload = bytes.get(next..).and_then(take_record);
        if payload.is_some_and(|p| synced(p).is_ok_and(|synced| synced > bad as u64)) {
            return Some(next);
        }
        from = next + 1;
    }
}
