//! Reads a journal file: its batches, the end of its good part, its damage.
//!
//! Path after a crash: `recover.rs` reads each file with this and adds the batches to memtables again.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::decode::{Decoder, repeats};
use super::format::{
    HEADERS_BYTES_MAX, Header, MARK_BYTES, RECORD_HEAD_BYTES, RECORD_MAGIC, VERSION_SINGLE, claimed_bytes,
    file_generation, mark, take_mark, take_record,
};
use super::front::Front;
use super::search::{Search, Sound};
use crate::arrival::Arrival;
use crate::{Error, Result};

/// A journal file by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub generation: u64,
    pub path: PathBuf,
}

/// Result of reading a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// None: it is damaged, or the process died while it made the file.
    pub header: Option<Header>,
    /// The process died while it made the file.
    pub never_begun: bool,
    pub records: u64,
    /// Offsets and reasons of damaged places that were synced once.
    pub damaged: Vec<(u64, String)>,
    /// Offsets and descriptions of damage that costs nothing.
    pub harmless: Vec<(u64, &'static str)>,
    /// Damaged places that may have held batches.
    pub lost: Lost,
    /// Length of the good part, bytes.
    pub length: u64,
    /// Bytes behind it: an unfinished write of the process that died.
    pub torn: u64,
    /// These bytes may be a whole damaged record; nothing shows whether it was acknowledged.
    pub doubtful: bool,
}

/// Acknowledged ranges of a file that cannot be read. Their content is unknown.
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

/// Reads the header of a file, and the length of the file.
pub fn read_front(path: &Path) -> Result<(Front, u64)> {
    let failed = |e| Error::io("read journal", path, e);
    let file = std::fs::File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    file.take(HEADERS_BYTES_MAX as u64).read_to_end(&mut bytes).map_err(failed)?;
    match Front::decode(&bytes, path) {
        Ok(front @ Front::Sound { .. }) => Ok((front, length)),
        // The cause of the error depends on the whole file.
        _ => {
            let bytes = std::fs::read(path).map_err(failed)?;
            Ok((Front::decode(&bytes, path)?, length))
        }
    }
}

/// Reads a whole file and hands out its batches in order.
pub fn read(path: &Path, each: impl FnMut(Arrival)) -> Result<Contents> {
    let bytes = std::fs::read(path).map_err(|e| Error::io("read journal", path, e))?;
    read_bytes(&bytes, path, each)
}

/// Reads the content of the file at `path`, and hands out its batches in order.
pub fn read_bytes(bytes: &[u8], path: &Path, mut each: impl FnMut(Arrival)) -> Result<Contents> {
    let front = Front::decode(bytes, path)?;
    let mut contents = Contents {
        header: front.header().cloned(),
        never_begun: false,
        records: 0,
        damaged: Vec::new(),
        harmless: Vec::new(),
        lost: Lost::default(),
        length: 0,
        torn: bytes.len() as u64,
        doubtful: false,
    };
    let (version, from) = match front {
        Front::Unborn => {
            contents.never_begun = true;
            return Ok(contents);
        }
        Front::Sound { version, bytes, .. } => (version, bytes),
        Front::Damaged { version, bytes, why, .. } => {
            contents.damaged.push((0, why));
            (version, bytes)
        }
    };
    let mut decoder = Decoder::new(version);
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
                let payload = &bytes[place.clone()];
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
        }
    }
    if search.has_given_up() {
        let why = "too many possible records behind a damaged place: not all of them were tried";
        contents.damaged.push((end as u64, why.to_owned()));
    }
    contents.length = end as u64;
    contents.torn = (bytes.len() - end) as u64;
    contents.doubtful = is_doubtful(&bytes[end..]);
    Ok(contents)
}

/// A range of a file.
enum Step {
    /// The payload of a sound record.
    Record(Range<usize>),
    /// Was synced once.
    Damaged(Range<usize>),
    /// Damage here costs nothing.
    Harmless(usize, &'static str),
}

/// The ranges from `from` on, in order, and the end of the last.
fn walk(search: &mut Search<'_>, bytes: &[u8], from: usize, version: u16) -> (Vec<Step>, usize) {
    let (mut steps, mut at) = (Vec::new(), from);
    // Computed at the first damage: nearly always there is none.
    let mut proven = None;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if let Some(payload) = take_record(rest) {
            let start = at + RECORD_HEAD_BYTES;
            at = start + payload.len();
            steps.push(Step::Record(start..at));
        } else if take_mark(rest).is_some() {
            at += MARK_BYTES;
        } else if is_nearly_mark(rest, at) {
            steps.push(Step::Harmless(at, "a mark with damaged bytes"));
            at += MARK_BYTES;
        } else if search.is_cut_short(at) && version > VERSION_SINGLE {
            // Torn in the middle, so that nothing in it counts; or only its length is damaged, and everything written with it
            // is there.
            let Some(next) = search.next_placed_mark(at) else { break };
            if let Some(payload) = search.with_another_length(at) {
                steps.push(Step::Harmless(
                    at,
                    "a record whose length has one wrong bit, which its checksum corrects",
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

/// A mark with some damaged bytes: it contains only its own place.
fn is_nearly_mark(rest: &[u8], at: usize) -> bool {
    let Some(found) = rest.first_chunk::<MARK_BYTES>() else { return false };
    let same = mark(at as u64).iter().zip(found).filter(|(expect, found)| expect == found).count();
    same + 4 >= MARK_BYTES
}

/// The synced length of the file, by all records and marks after `bad`.
fn proof(search: &mut Search<'_>, bad: usize) -> usize {
    let (mut proven, mut from) = (0, bad);
    while let Some(Sound { at, next, synced }) = search.next(from) {
        // It cannot have been synced beyond its own place when it was written.
        proven = proven.max(usize::try_from(synced).map_or(at, |synced| synced.min(at)));
        from = next;
    }
    proven
}

/// Start of the next sound record or mark after `bad`. The length in a damaged one is tried first, because its content may
/// look like a record.
fn resume(search: &mut Search<'_>, bytes: &[u8], bad: usize) -> usize {
    let end = claimed_bytes(&bytes[bad..]).map(|length| bad + RECORD_HEAD_BYTES + length);
    if let Some(end) = end
        && let Some(rest) = bytes.get(end..)
        && (rest.is_empty() || take_record(rest).is_some() || take_mark(rest).is_some())
    {
        return end;
    }
    search.next(bad + 1).map_or(bytes.len(), |sound| sound.at)
}

/// After a loss all readable definitions are read first: those of lost records are repeated later.
fn learn(decoder: &mut Decoder, bytes: &[u8], steps: &[Step]) {
    if !steps.iter().any(|step| matches!(step, Step::Damaged(_))) && !decoder.has_lost() {
        return;
    }
    for step in steps {
        match step {
            Step::Damaged(place) => decoder.lost(place.len()),
            // Errors are reported when its records are read.
            Step::Record(place) => drop(decoder.learn(&bytes[place.clone()])),
            Step::Harmless(..) => {}
        }
    }
}

/// A record cut short by the end of the process has fewer bytes than its head says, or none.
fn is_doubtful(tail: &[u8]) -> bool {
    let Some(head) = tail.first_chunk::<RECORD_HEAD_BYTES>() else { return false };
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    let short = head.starts_with(&RECORD_MAGIC) && RECORD_HEAD_BYTES.saturating_add(length) > tail.len();
    !short && tail.iter().any(|byte| *byte != 0)
}
