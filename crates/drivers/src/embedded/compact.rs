//! Rewriting segments that are mostly dead, a little with every write: no thread of its own, no sudden pause. Who wants the space
//! back at once asks for it ([`Inner::settle`]).

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError};

use tacho_store::{Error, Result};

use super::format::{Action, ROW_HEAD_BYTES, RowRef, Taken, file_path, take_row};
use super::index::{Index, Usage};
use super::load::load;
use super::{Files, Inner};

/// Bytes of rows that one write carries over on the way.
const STEP_BYTES: usize = 4 << 20;
/// Rows of a growing segment, bytes, before it is ended only to be rewritten.
const GROWING_BYTES_MIN: u64 = 8 << 20;
/// A segment is worth rewriting when more than one of so many bytes is dead: with writes, and when space is asked for.
const DEAD_OF_BYTES: u64 = 2;
const DEAD_OF_BYTES_ASKED: u64 = 8;

/// A segment that is being emptied.
pub struct Compaction {
    segment: u32,
    /// Offset and length of the rows still to be looked at, last first.
    rest: Vec<(u32, usize)>,
    /// Deletes must be carried over while an older segment may hold what they deleted.
    keep_deletes: bool,
}

/// A segment that is worth rewriting.
struct Candidate {
    segment: u32,
    file: Arc<File>,
    keep_deletes: bool,
}

fn worth_it(usage: Usage, dead_of: u64) -> bool {
    (usage.total - usage.live) * dead_of > usage.total
}

/// The oldest segment worth rewriting; the growing one and those that cannot be read are left out.
fn choose(index: &Index, growing: Option<u32>, unreadable: &BTreeSet<u32>, dead_of: u64) -> Option<u32> {
    let mut sealed =
        index.usage().filter(|(segment, _)| Some(*segment) != growing && !unreadable.contains(segment));
    sealed.find(|(_, usage)| worth_it(*usage, dead_of)).map(|(segment, _)| segment)
}

impl Inner {
    /// One step, beside a write.
    pub(super) fn compact(&self, files: &mut Files) {
        self.end_growing(files, GROWING_BYTES_MIN, DEAD_OF_BYTES);
        self.one_step(files, DEAD_OF_BYTES, u32::MAX);
    }

    /// Gives back the space of rows that were replaced or deleted. Others write between its steps.
    pub(super) fn settle(&self) {
        let lock = || self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = {
            let mut files = lock();
            self.end_growing(&mut files, 0, DEAD_OF_BYTES_ASKED);
            files.segments.newest()
        };
        // What is carried over goes to younger segments. Those are not looked at: each is rewritten once at most.
        while self.one_step(&mut lock(), DEAD_OF_BYTES_ASKED, newest) {}
    }

    /// Ends the growing segment when it is worth rewriting: only what has ended is rewritten.
    fn end_growing(&self, files: &mut Files, bytes_min: u64, dead_of: u64) {
        let Some(growing) = files.segments.growing().filter(|_| files.compaction.is_none()) else { return };
        let usage = {
            let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
            directory.index.usage().find(|(segment, _)| *segment == growing).map(|(_, usage)| usage)
        };
        let due = usage.is_some_and(|usage| usage.total >= bytes_min && worth_it(usage, dead_of));
        if due && let Err(error) = files.segments.seal() {
            tracing::warn!(%error, segment = growing, "segment not sealed");
        }
    }

    /// Whether there was anything to do that could be done. A failure costs nothing but the space: the segment stays.
    fn one_step(&self, files: &mut Files, dead_of: u64, newest: u32) -> bool {
        let (segment, result) = match files.compaction.take() {
            Some(compaction) => (compaction.segment, self.step(files, compaction)),
            None => match self.candidate(files, dead_of).filter(|candidate| candidate.segment <= newest) {
                Some(candidate) => (candidate.segment, self.begin(&candidate).map(Some)),
                None => return false,
            },
        };
        match result {
            Ok(next) => {
                files.compaction = next;
                true
            }
            Err(error) => {
                tracing::warn!(%error, segment, "compaction of a segment put off");
                // A full disk gets room again, a segment that cannot be read does not get better: others go on without it.
                if !error.retryable() {
                    files.unreadable.insert(segment);
                }
                false
            }
        }
    }

    fn candidate(&self, files: &Files, dead_of: u64) -> Option<Candidate> {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let segment = choose(&directory.index, files.segments.growing(), &files.unreadable, dead_of)?;
        let keep_deletes = directory.index.usage().any(|(other, _)| other < segment);
        let file = directory.handles.get(&segment).cloned()?;
        Some(Candidate { segment, file, keep_deletes })
    }

    /// Finds its rows: by its index, or, where that is damaged or was never written, by reading it.
    fn begin(&self, candidate: &Candidate) -> Result<Compaction> {
        let Candidate { segment, file, keep_deletes } = candidate;
        let mut rest = Vec::new();
        load(&file_path(&self.path, *segment), file, |e| {
            let length = ROW_HEAD_BYTES + e.partition.len() + e.clustering.len() + e.value_bytes as usize;
            rest.push((e.offset, length));
        })?;
        rest.reverse();
        Ok(Compaction { segment: *segment, rest, keep_deletes: *keep_deletes })
    }

    /// Carries over the next rows; removes the segment when none is left.
    fn step(&self, files: &mut Files, mut compaction: Compaction) -> Result<Option<Compaction>> {
        let segment = compaction.segment;
        let file =
            self.directory.read().unwrap_or_else(PoisonError::into_inner).handles.get(&segment).cloned();
        let Some(file) = file else { return Ok(None) };
        let rows = self.needed(&file, &mut compaction)?;
        let rows: Vec<RowRef<'_>> = rows.iter().filter_map(|bytes| as_row(bytes)).collect();
        self.write(&mut files.segments, &rows)?;
        if !compaction.rest.is_empty() {
            return Ok(Some(compaction));
        }
        let mut directory = self.directory.write().unwrap_or_else(PoisonError::into_inner);
        directory.handles.remove(&segment);
        directory.index.forget(segment);
        drop(directory);
        files.segments.remove(segment)?;
        tracing::info!(path = %self.path.display(), segment, "mostly dead segment removed");
        Ok(None)
    }

    /// Bytes of the next rows that must not be lost.
    fn needed(&self, file: &Arc<File>, compaction: &mut Compaction) -> Result<Vec<Vec<u8>>> {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while bytes < STEP_BYTES
            && let Some((offset, length)) = compaction.rest.pop()
        {
            let mut row = vec![0; length];
            let failed = |e| Error::io("read row", &self.path, e).with("segment", compaction.segment);
            file.read_exact_at(&mut row, offset.into()).map_err(failed)?;
            bytes += length;
            let Some(found) = as_row(&row) else {
                tracing::error!(path = %self.path.display(), offset, "damaged row lost in compaction");
                continue;
            };
            let place = directory.index.get(found.table, found.partition, found.clustering);
            let here = place.is_some_and(|p| (p.segment, p.offset) == (compaction.segment, offset));
            let needed = match found.action {
                Action::Put => here,
                // A row that was put again later needs no delete before it.
                Action::Delete => compaction.keep_deletes && place.is_none(),
            };
            if needed {
                rows.push(row);
            }
        }
        Ok(rows)
    }
}

fn as_row(bytes: &[u8]) -> Option<RowRef<'_>> {
    match take_row(bytes) {
        Taken::Row(row) => Some(row),
        Taken::Damaged(_) | Taken::Nothing => None,
    }
}
