//! Reads a journal file: its batches, the end of its valid part, and its damage.
//!
//! At a start, `recover.rs` reads each file with this module and adds the batches to memtables again.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::decode::{Decoder, repeats};
use super::define::{Define, Labelled, Numbered};
use super::format::{
    HEADERS_BYTES_MAX, Header, MARK_BYTES, RECORD_HEAD_BYTES, RECORD_MAGIC, VERSION_SINGLE, claimed_bytes,
    decode_one, file_generation, mark, take_mark, take_record,
};
use super::front::Front;
use super::search::{Search, Sound};
use crate::arrival::Arrival;
use crate::disk::{Disk, RealDisk, irregular, list_in, open_regular};
use crate::size::in_memory;
use crate::{Error, Result};

/// A journal file, identified by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub generation: u64,
    pub path: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The header. `None` if all copies are damaged, or if the process died while it created the file.
    pub header: Option<Header>,
    pub never_begun: bool,
    pub records: u64,
    /// Offsets and reasons of damaged places that had been synced.
    pub damaged: Vec<(u64, String)>,
    /// Offsets and descriptions of damage that loses no record.
    pub harmless: Vec<(u64, &'static str)>,
    pub lost: Lost,
    /// Length of the valid part, bytes.
    pub length: u64,
    /// Position of the last mark of the valid part. All bytes before it were synced.
    pub proven: u64,
    /// Bytes after the valid part: an unfinished write of the process that died, unless the end is `doubtful`.
    pub torn: u64,
    /// Whether the torn bytes may be a whole damaged record. The file does not show whether such a record was acknowledged.
    pub doubtful: bool,
}

impl Contents {
    fn begin(front: &Front, bytes: &[u8]) -> Self {
        Self {
            header: front.header().cloned(),
            never_begun: false,
            records: 0,
            damaged: Vec::new(),
            harmless: Vec::new(),
            lost: Lost::default(),
            length: 0,
            proven: 0,
            torn: bytes.len() as u64,
            doubtful: false,
        }
    }

    /// Whether the damaged place at this offset is one of the two headers. The other header is intact and has the same
    /// content.
    pub const fn is_one_header(&self, offset: u64) -> bool {
        offset == 0 && self.header.is_some()
    }
}

/// Acknowledged but unreadable ranges of a file. Their content is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    pub places: u64,
    pub bytes: u64,
}

impl Lost {
    const fn add(&mut self, bytes: usize) {
        self.places += 1;
        self.bytes += bytes as u64;
    }
}

/// Journal files of a directory, ordered by generation.
pub fn list(disk: &dyn Disk, directory: &Path) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for name in list_in(disk, "list journal", directory)? {
        if let Some(generation) = name.to_str().and_then(file_generation) {
            found.push(Found { generation, path: directory.join(name) });
        }
    }
    found.sort_unstable_by_key(|f| f.generation);
    Ok(found)
}

/// Refuses a directory with a journal of a newer version. Examines only the first header of each file.
///
/// # Errors
/// `Version` for a journal of a newer version; `Io` when a journal cannot be read.
pub fn refuse_newer(directory: &Path) -> Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    for Found { path, .. } in list(&RealDisk, directory)? {
        // `evidence.rs` reports it.
        if irregular(&path).is_some() {
            continue;
        }
        let mut bytes = Vec::new();
        let file = open_regular(&path).map_err(|e| Error::io("read journal", &path, e))?;
        let read = file.take(HEADERS_BYTES_MAX as u64).read_to_end(&mut bytes);
        read.map_err(|e| Error::io("read journal", &path, e))?;
        // A damaged header is left to the recovery.
        let _ = decode_one(&bytes, &path)?;
    }
    Ok(())
}

pub fn read_front(disk: &dyn Disk, path: &Path) -> Result<(Front, u64)> {
    let failed = |e| Error::io("read journal", path, e);
    let file = disk.open_to_read(path).map_err(failed)?;
    let length = file.length().map_err(failed)?;
    let mut bytes = vec![0; HEADERS_BYTES_MAX.min(in_memory(length))];
    file.read_exact_at(&mut bytes, 0).map_err(failed)?;
    match Front::decode(&bytes, path) {
        Ok(front @ Front::Sound { .. }) => Ok((front, length)),
        // Reads the whole file, because the result depends on whether a record follows the damaged header.
        _ => {
            let bytes = disk.read(path).map_err(failed)?;
            Ok((Front::decode(&bytes, path)?, length))
        }
    }
}

/// Reads a whole file. Passes its batches to `each`, in order.
pub fn read(disk: &dyn Disk, path: &Path, each: impl FnMut(Arrival)) -> Result<Contents> {
    let bytes = disk.read(path).map_err(|e| Error::io("read journal", path, e))?;
    read_bytes(&bytes, path, each)
}

/// Like [`read`], for a start of the store. Adds the series to the index, and passes on samples with the numbers of their series.
pub fn read_numbered(
    disk: &dyn Disk,
    path: &Path,
    numbered: Numbered,
    each: impl FnMut(Arrival),
) -> Result<Contents> {
    let bytes = disk.read(path).map_err(|e| Error::io("read journal", path, e))?;
    let (contents, numbered) = read_with(&bytes, path, numbered, each)?;
    numbered.remove_unused();
    Ok(contents)
}

/// Reads the content of the file at `path`. Passes its batches to `each`, in order.
pub fn read_bytes(bytes: &[u8], path: &Path, each: impl FnMut(Arrival)) -> Result<Contents> {
    read_with(bytes, path, Labelled::default(), each).map(|(contents, _)| contents)
}

fn read_with<D: Define>(
    bytes: &[u8],
    path: &Path,
    defines: D,
    mut each: impl FnMut(Arrival),
) -> Result<(Contents, D)> {
    let front = Front::decode(bytes, path)?;
    let mut contents = Contents::begin(&front, bytes);
    let (version, from) = match front {
        Front::Unborn => {
            contents.never_begun = true;
            return Ok((contents, defines));
        }
        Front::Sound { version, bytes, .. } => (version, bytes),
        Front::Damaged { version, bytes, why, .. } => {
            contents.damaged.push((0, why));
            (version, bytes)
        }
    };
    let mut decoder = Decoder::with(version, defines);
    if contents.header.is_none() {
        contents.lost.add(from);
        decoder.lost(from);
    }
    let mut search = Search::new(bytes);
    let (steps, end) = walk(&mut search, bytes, from, version);
    learn(&mut decoder, bytes, &steps);
    for step in steps {
        match step {
            Step::Record(place) => {
                let payload = bytes.get(place.clone()).unwrap_or_default();
                contents.records += 1;
                if repeats(payload) {
                    continue;
                }
                match decoder.decode(payload) {
                    Ok(arrival) => each(arrival),
                    Err(malformed) => {
                        let at = place.start - RECORD_HEAD_BYTES;
                        contents.damaged.push((at as u64, malformed.to_string()));
                        contents.lost.add(payload.len());
                        decoder.lost(payload.len());
                    }
                }
            }
            Step::Damaged(place) => {
                let why = format!("{} bytes with a wrong checksum", place.len());
                contents.damaged.push((place.start as u64, why));
                contents.lost.add(place.len());
            }
            Step::Harmless(at, why) => contents.harmless.push((at as u64, why)),
            Step::Mark(at) => contents.proven = at as u64,
        }
    }
    if search.has_given_up() {
        let why = "too many possible records behind a damaged place: not all of them were tried";
        contents.damaged.push((end as u64, why.to_owned()));
    }
    contents.length = end as u64;
    contents.torn = (bytes.len() - end) as u64;
    contents.doubtful = is_doubtful(bytes.get(end..).unwrap_or_default());
    Ok((contents, decoder.into_defines()))
}

enum Step {
    Record(Range<usize>),
    /// A damaged range that had been synced.
    Damaged(Range<usize>),
    Harmless(usize, &'static str),
    Mark(usize),
}

/// Splits the part of the file that begins at `from` into ranges, in order. Also returns the end of the last range.
fn walk(search: &mut Search<'_>, bytes: &[u8], from: usize, version: u16) -> (Vec<Step>, usize) {
    let (mut steps, mut at) = (Vec::new(), from);
    // Computed at the first damage, because files are rarely damaged.
    let mut proven = None;
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        if let Some(payload) = take_record(rest) {
            let start = at + RECORD_HEAD_BYTES;
            at = start + payload.len();
            steps.push(Step::Record(start..at));
        } else if take_mark(rest).is_some() {
            steps.push(Step::Mark(at));
            at += MARK_BYTES;
        } else if is_nearly_mark(rest, at) {
            steps.push(Step::Harmless(at, "a mark with damaged bytes"));
            at += MARK_BYTES;
        } else if search.is_cut_short(at) && version > VERSION_SINGLE {
            // A later mark that states its own position shows that the write was complete. Then perhaps only the length of this
            // record is damaged. Without such a mark, the write was torn here, and none of its content counts.
            let Some(next) = search.next_placed_mark(at) else { break };
            if let Some(payload) = search.with_another_length(at) {
                steps.push(Step::Harmless(
                    at,
                    "a record with one wrong bit in its length: the checksum confirms the corrected length",
                ));
                at = payload.end;
                steps.push(Step::Record(payload));
            } else {
                steps.push(Step::Damaged(at..next));
                at = next;
            }
        } else if at < *proven.get_or_insert_with(|| proof(search, at)) {
            let next = resume(search, bytes, at);
            steps.push(Step::Damaged(at..next));
            at = next;
        } else {
            break;
        }
    }
    (steps, at)
}

/// Whether these bytes are a mark with at most four damaged bytes. A mark contains only its own position, so no record is lost.
fn is_nearly_mark(rest: &[u8], at: usize) -> bool {
    let Some(found) = rest.first_chunk::<MARK_BYTES>() else { return false };
    let same = mark(at as u64).iter().zip(found).filter(|(expect, found)| expect == found).count();
    same + 4 >= MARK_BYTES
}

/// The synced length of the file, according to all records and marks after `bad`.
fn proof(search: &mut Search<'_>, bad: usize) -> usize {
    let (mut proven, mut from) = (0, bad);
    while let Some(Sound { at, next, synced }) = search.next(from) {
        // When the record was written, the file cannot have been synced beyond the record, so a
        // larger number is reduced.
        proven = proven.max(usize::try_from(synced).map_or(at, |synced| synced.min(at)));
        from = next;
    }
    proven
}

/// Start of the next intact record or mark after `bad`, or the end of the file. The length field of the damaged record is
/// tried first, because the content of the record may look like a record.
fn resume(search: &mut Search<'_>, bytes: &[u8], bad: usize) -> usize {
    let end = bytes.get(bad..).and_then(claimed_bytes).map(|length| bad + RECORD_HEAD_BYTES + length);
    if let Some(end) = end
        && let Some(rest) = bytes.get(end..)
        && (rest.is_empty() || take_record(rest).is_some() || take_mark(rest).is_some())
    {
        return end;
    }
    search.next(bad + 1).map_or(bytes.len(), |sound| sound.at)
}

/// After a loss, reads all readable definitions first, because later records repeat the definitions of lost ones.
fn learn<D: Define>(decoder: &mut Decoder<D>, bytes: &[u8], steps: &[Step]) {
    if !steps.iter().any(|step| matches!(step, Step::Damaged(_))) && !decoder.has_lost() {
        return;
    }
    for step in steps {
        match step {
            Step::Damaged(place) => decoder.lost(place.len()),
            // Errors are reported later, when the records are decoded.
            Step::Record(place) => drop(decoder.learn(bytes.get(place.clone()).unwrap_or_default())),
            Step::Harmless(..) | Step::Mark(_) => {}
        }
    }
}

/// Whether the tail may be a whole record. A write that a crash interrupts leaves fewer bytes than the head of the record
/// states, or only zeros.
fn is_doubtful(tail: &[u8]) -> bool {
    let Some(head) = tail.first_chunk::<RECORD_HEAD_BYTES>() else { return false };
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    let short = head.starts_with(&RECORD_MAGIC) && RECORD_HEAD_BYTES.saturating_add(length) > tail.len();
    !short && tail.iter().any(|byte| *byte != 0)
}
