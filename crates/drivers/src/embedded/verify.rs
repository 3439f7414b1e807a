//! Verifies that the bytes of ended segments match their checksums in the manifest.
//!
//! Every call verifies a small part, in order of the segments, so that the caller determines the rate. If a segment
//! is damaged, the call checks each row of it that the index still names. So unreadable rows are reported although no query
//! has read them.
//!
//! This file and `mod.rs` use each other. `mod.rs` defines `Inner`, which has the progress of the verification. This
//! file adds methods to `Inner`.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use tacho_store::disk::ReadFile;
use tacho_store::driver::{Damaged, Verified};
use tacho_store::sectors::is_damage;
use tacho_store::size::in_memory;
use tacho_store::{Error, Result};

use super::format::{Action, Entry, ROW_HEAD_BYTES, Taken, file_name, file_path, take_row};
use super::index::Place;
use super::load::{Expected, load};
use super::manifest::Known;
use super::{Files, Inner};

/// Size of a part, bytes. The last part of a segment may be smaller.
const PART_BYTES: u64 = 4 << 20;
/// Limit on damaged rows of one segment that are reported with their keys. The number of rows in the log line has no limit.
const ROWS_TOLD_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub struct Progress {
    /// All segments up to and including this number were read or skipped.
    through: u32,
    current: Option<Current>,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    number: u32,
    bytes: u64,
    expect: u32,
    at: u64,
    crc: u32,
}

enum Read {
    Sound,
    Wrong(String),
}

impl Inner {
    /// Reads and verifies the next part.
    pub(super) fn verify(&self) -> Result<Verified> {
        let mut progress = self.verifying.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut current) = progress.current.take().or_else(|| self.next_segment(progress.through))
        else {
            *progress = Progress::default();
            return Ok(Verified { done: true, ..Verified::default() });
        };
        let Some(file) = self.handle(current.number) else {
            // The segment was removed in the meantime, or nothing in its file can be read.
            progress.through = current.number;
            return Ok(Verified::default());
        };
        let before = current.at;
        let read = self.read_on(&mut current, &*file)?;
        let mut verified = Verified { bytes: current.at - before, ..Verified::default() };
        match read {
            None => progress.current = Some(current),
            Some(Read::Sound) => progress.through = current.number,
            Some(Read::Wrong(why)) => {
                progress.through = current.number;
                drop(progress);
                verified.damaged = self.wrong(current.number, &file, &why)?;
            }
        }
        Ok(verified)
    }

    fn next_segment(&self, through: u32) -> Option<Current> {
        let next = |segments: &BTreeMap<u32, Known>| {
            let mut later = segments.range(through.checked_add(1)?..);
            later.find_map(|(number, known)| {
                let expect = known.crc.filter(|_| known.state.is_live())?;
                Some(Current { number: *number, bytes: known.bytes, expect, at: 0, crc: 0 })
            })
        };
        match self.opened() {
            Some(files) => next(files.segments.known()),
            None => next(&self.surveyed),
        }
    }

    fn opened(&self) -> Option<MutexGuard<'_, Files>> {
        self.files.as_ref().map(|files| files.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn handle(&self, number: u32) -> Option<Arc<dyn ReadFile>> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner).handles.get(&number).cloned()
    }

    /// Reads the next part of the segment. Returns `None` if the segment has more bytes to read.
    fn read_on(&self, current: &mut Current, file: &dyn ReadFile) -> Result<Option<Read>> {
        let Current { number, bytes, expect, at, crc } = current;
        let mut part = vec![0; in_memory(PART_BYTES.min(*bytes - *at))];
        match file.read_exact_at(&mut part, *at) {
            Err(error) if is_damage(&error) => {
                return Ok(Some(Read::Wrong(format!("{error}, in the bytes from {at} on"))));
            }
            read => read.map_err(|e| Error::io("verify segment", &file_path(&self.path, *number), e))?,
        }
        *crc = crc32c::crc32c_append(*crc, &part);
        *at += part.len() as u64;
        if at < bytes {
            return Ok(None);
        }
        let mismatch = || Read::Wrong(format!("checksum mismatch: expected 0x{expect:08x}, got 0x{crc:08x}"));
        Ok(Some(if crc == expect { Read::Sound } else { mismatch() }))
    }

    /// Finds the unreadable rows of a damaged segment that the index still names, and adds them to `doubted`. Logs the segment
    /// only if it was not counted as damaged before.
    fn wrong(&self, number: u32, file: &Arc<dyn ReadFile>, why: &str) -> Result<Vec<Damaged>> {
        let path = file_path(&self.path, number);
        let is_new = self.note_wrong(number);
        let mut needed = Vec::new();
        let length = file.length().map_err(|e| Error::io("read segment", &path, e))?;
        let expected = Expected { number, known: None, length, ended: true };
        load(&path, &**file, expected, |entry| {
            needed.extend(self.place(number, &entry).map(|p| (p, key(&entry))))
        })?;
        let (mut rows, mut damaged) = (0u64, Vec::new());
        for (place, key) in needed {
            let fault = fault(place, &key, &**file).map_err(|e| Error::io("read row", &path, e))?;
            let Some(reason) = fault else { continue };
            rows += 1;
            self.directory
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .doubted
                .insert((place.segment, place.offset));
            if damaged.len() < ROWS_TOLD_MAX {
                let reason = format!("{reason} (segment {number}, offset {})", place.offset);
                damaged.push(Damaged { reason: reason.into(), ..key });
            }
        }
        if is_new {
            tracing::error!(
                path = %path.display(), why, rows,
                "segment differs from the written bytes: its sound rows are read, the file is kept"
            );
        }
        Ok(damaged)
    }

    /// The position of the row of `entry`, if the entry is a put and the index still names this row.
    fn place(&self, number: u32, entry: &Entry<'_>) -> Option<Place> {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let place = directory.index.get(entry.table, entry.partition, entry.clustering)?;
        (entry.action == Action::Put && (place.segment, place.offset) == (number, entry.offset))
            .then_some(place)
    }

    /// Counts the segment as damaged. Returns `false` if it was counted already.
    fn note_wrong(&self, number: u32) -> bool {
        let mut health = match self.opened() {
            Some(mut files) => {
                files.segments.note_wrong(number);
                files.segments.health()
            }
            None => self.health.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        let name = file_name(number);
        if !health.damaged.contains(&name) {
            health.damaged.push(name.clone());
        }
        let before =
            std::mem::replace(&mut *self.health.lock().unwrap_or_else(PoisonError::into_inner), health);
        !before.damaged.contains(&name)
    }
}

fn key(entry: &Entry<'_>) -> Damaged {
    Damaged {
        table: entry.table,
        partition: entry.partition.to_vec(),
        clustering: entry.clustering.to_vec(),
        value: bytes::Bytes::new(),
        reason: Box::default(),
    }
}

/// The reason why a row cannot be read, if any.
fn fault(place: Place, key: &Damaged, file: &dyn ReadFile) -> std::io::Result<Option<String>> {
    let before = ROW_HEAD_BYTES + key.partition.len() + key.clustering.len();
    let mut row = vec![0; before + place.value_bytes as usize];
    match file.read_exact_at(&mut row, place.offset.into()) {
        Ok(()) => {
            let is_sound = matches!(take_row(&row), Taken::Row(_));
            Ok((!is_sound).then(|| "checksum mismatch".to_owned()))
        }
        Err(error) if is_damage(&error) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}
