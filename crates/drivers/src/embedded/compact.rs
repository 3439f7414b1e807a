//! Rewrites segments that consist mostly of dead rows, which were replaced or deleted. This compaction copies rows unchanged; it
//! is not the merge of chunks (`tacho_store`). Every write does a small part of the compaction, so it needs no extra thread and
//! causes no long pauses. To reclaim space immediately, call [`Inner::settle`].
//!
//! This file and `mod.rs` use each other. `mod.rs` defines `Inner`, which has the state of the compaction. This file adds
//! methods to `Inner`.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use tacho_store::disk::ReadFile;
use tacho_store::mutation::Mutation;
use tacho_store::{Error, ErrorKind, Result, Table};

use super::format::{Action, Entry, ROW_HEAD_BYTES, RowRef, Taken, file_path, take_row};
use super::index::{Index, Place, Usage};
use super::load::{Expected, Loaded, load};
use super::scan::{Damage, Scanned};
use super::segments::Purpose;
use super::{Files, Inner};

/// A write copies rows for the compaction until they have this many bytes. The heads of skipped rows count, too.
const STEP_BYTES: usize = 4 << 20;
/// Only ended segments are rewritten. A write ends the growing segment for this purpose only if its rows have at least this many
/// bytes.
const GROWING_BYTES_MIN: u64 = 8 << 20;
/// During writes, a segment is rewritten if more than 1/`DEAD_OF_BYTES` of its bytes are dead.
const DEAD_OF_BYTES: u64 = 2;
/// When a caller requests space, a segment is rewritten if more than 1/`DEAD_OF_BYTES_ASKED` of its bytes are dead.
const DEAD_OF_BYTES_ASKED: u64 = 8;

pub struct Compaction {
    segment: u32,
    /// Rows that must still be checked, in reverse order.
    rest: Vec<Rest>,
    /// Whether deletes must be copied, because an older segment may still contain the deleted rows.
    keep_deletes: bool,
    purpose: Purpose,
}

/// A row in the index of the segment.
struct Rest {
    action: Action,
    table: Table,
    partition: Arc<[u8]>,
    clustering: Box<[u8]>,
    offset: u32,
    value_bytes: u32,
}

struct Candidate {
    segment: u32,
    file: Arc<dyn ReadFile>,
    keep_deletes: bool,
    purpose: Purpose,
}

fn is_worth_rewriting(usage: Usage, dead_of: u64) -> bool {
    (usage.total - usage.live) * dead_of > usage.total
}

/// The reason why a segment cannot be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The index refers to damaged rows in the segment until they are replaced or deleted.
    Needed,
    /// Some rows of the segment are unknown, or an attempt to rewrite it failed.
    Unknown,
}

/// Selects the oldest segment with enough dead bytes. With `fewest`, on a full disk, selects the segment with enough dead bytes
/// that has the fewest needed bytes. Excludes the growing segment and the segments in `kept`. A segment that was kept only for
/// damaged rows can be selected again when these rows are no longer needed. `stuck` is the oldest file that cannot be removed.
/// Because of that file, deletes in later files are needed.
fn choose(
    index: &Index,
    growing: Option<u32>,
    kept: &BTreeMap<u32, Kept>,
    stuck: Option<u32>,
    (dead_of, fewest): (u64, bool),
) -> Option<u32> {
    let is_kept = |segment: u32, live: u64| match kept.get(&segment) {
        Some(Kept::Needed) => live > 0,
        Some(Kept::Unknown) => true,
        None => false,
    };
    let sealed =
        index.usage().filter(|(segment, usage)| Some(*segment) != growing && !is_kept(*segment, usage.live));
    let usage = sealed.map(|(segment, mut usage)| {
        if stuck.is_some_and(|stuck| stuck < segment) {
            usage.live += usage.deletes;
        }
        (segment, usage)
    });
    let mut worth = usage.filter(|(_, usage)| is_worth_rewriting(*usage, dead_of));
    let chosen = if fewest { worth.min_by_key(|(_, usage)| usage.live) } else { worth.next() };
    chosen.map(|(segment, _)| segment)
}

impl Inner {
    /// Does one step of the compaction, during a write.
    pub(super) fn compact(&self, files: &mut Files) {
        self.end_growing(files, GROWING_BYTES_MIN, DEAD_OF_BYTES);
        self.one_step(files, DEAD_OF_BYTES, u32::MAX);
    }

    /// Frees the space of replaced and deleted rows. Other writes may run between the steps.
    pub(super) fn settle(&self) -> Result<()> {
        let newest = {
            let mut files = self.files()?;
            self.end_growing(&mut files, 0, DEAD_OF_BYTES_ASKED);
            files.segments.newest()
        };
        // Only segments that exist now are rewritten, each at most once, so the loop ends.
        while self.one_step(&mut *self.files()?, DEAD_OF_BYTES_ASKED, newest) {}
        Ok(())
    }

    /// Ends the growing segment if it should be rewritten, because only ended segments are rewritten.
    fn end_growing(&self, files: &mut Files, bytes_min: u64, dead_of: u64) {
        let Some(growing) = files.segments.growing().filter(|_| files.compaction.is_none()) else { return };
        let usage = {
            let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
            directory.index.usage().find(|(segment, _)| *segment == growing).map(|(_, usage)| usage)
        };
        let due = usage.is_some_and(|usage| usage.total >= bytes_min && is_worth_rewriting(usage, dead_of));
        if due && let Err(error) = files.segments.seal(Purpose::Freeing) {
            tracing::warn!(%error, segment = growing, "segment not sealed");
        }
    }

    /// Returns whether a step was done. After a failure the segment is kept, so a failure costs only space.
    fn one_step(&self, files: &mut Files, dead_of: u64, newest: u32) -> bool {
        let (segment, result) = match files.compaction.take() {
            Some(compaction) => (compaction.segment, self.step(files, compaction)),
            None => match self.fitting(files, dead_of).filter(|candidate| candidate.segment <= newest) {
                Some(candidate) => (candidate.segment, self.begin(files, &candidate).map(Some)),
                None => return false,
            },
        };
        match result {
            Ok(next) => {
                files.is_full &= next.is_some();
                files.compaction = next;
                true
            }
            Err(error) => {
                tracing::warn!(%error, segment, "segment was not compacted");
                // A full disk may get space again, so the segment is retried. An unreadable segment stays unreadable, so
                // the compaction skips it.
                files.is_full = error.kind() == ErrorKind::StorageFull;
                if !error.retryable() {
                    files.kept.insert(segment, Kept::Unknown);
                }
                false
            }
        }
    }

    /// The next segment to rewrite, if the copy of its needed rows fits. Without enough space for the first choice, chooses the
    /// segment with the fewest needed bytes.
    fn fitting(&self, files: &mut Files, dead_of: u64) -> Option<Candidate> {
        let candidate = self.candidate(files, dead_of)?;
        if candidate.is_some() || files.is_full {
            return candidate;
        }
        files.is_full = true;
        self.candidate(files, dead_of)?
    }

    /// The chosen segment: `None` if there is none, and `Some(None)` if its copy does not fit.
    fn candidate(&self, files: &Files, dead_of: u64) -> Option<Option<Candidate>> {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let segments = &files.segments;
        let stuck = segments.oldest_stuck().into_iter().chain(files.kept.keys().next().copied()).min();
        let segment =
            choose(&directory.index, segments.growing(), &files.kept, stuck, (dead_of, files.is_full))?;
        let keep_deletes = segments.has_older(segment) && !Mutation::DeletesForgotten.is_on();
        let file = directory.handles.get(&segment).cloned()?;
        let usage = directory.index.usage().find(|(number, _)| *number == segment);
        let needed = usage.map_or(0, |(_, usage)| usage.live + usage.deletes);
        drop(directory);
        // The reserve (the file `RESERVE`, disk space for writes that free space) is used only if all needed rows of the segment
        // fit into it. Otherwise it would be used up without freeing space.
        let purpose = match segments.fits_reserve(needed) {
            true => Purpose::Freeing,
            false if segments.fits(needed) => Purpose::Copy,
            false => return Some(None),
        };
        Some(Some(Candidate { segment, file, keep_deletes, purpose }))
    }

    /// Finds the rows of a segment from its index. If the index is damaged or was never written, reads the whole
    /// segment. Notes damage that is new since the start. The segment is then kept, because the lost rows may be deletes that
    /// hide rows of older segments.
    fn begin(&self, files: &mut Files, candidate: &Candidate) -> Result<Compaction> {
        let Candidate { segment, file, keep_deletes, purpose } = candidate;
        let path = file_path(&self.path, *segment);
        let mut rest: Vec<Rest> = Vec::new();
        let length = file.length().map_err(|e| Error::io("read segment", &path, e))?;
        let expected = Expected { number: *segment, known: None, length, ended: true };
        let loaded = load(&path, &**file, expected, |entry| {
            let same = rest.last().filter(|last| *last.partition == *entry.partition);
            let partition = same.map_or_else(|| entry.partition.into(), |last| last.partition.clone());
            let Entry { action, table, clustering, offset, value_bytes, .. } = entry;
            rest.push(Rest { action, table, partition, clustering: clustering.into(), offset, value_bytes });
        })?;
        let damage = match loaded {
            Loaded::Sealed(damage) | Loaded::Scanned(Scanned { damage, .. }) => damage,
            Loaded::Unfinished | Loaded::Unknown => {
                Damage { header: true, places: 1, bytes: length, ..Damage::default() }
            }
        };
        if damage.places > 0 && files.segments.note_damage(*segment, damage) {
            self.publish_health(files);
        }
        rest.reverse();
        Ok(Compaction { segment: *segment, rest, keep_deletes: *keep_deletes, purpose: *purpose })
    }

    /// Copies the next rows. Removes the segment after the last row.
    fn step(&self, files: &mut Files, mut compaction: Compaction) -> Result<Option<Compaction>> {
        let segment = compaction.segment;
        let file =
            self.directory.read().unwrap_or_else(PoisonError::into_inner).handles.get(&segment).cloned();
        let Some(file) = file else { return Ok(None) };
        let purpose = compaction.purpose;
        let needed = self.needed(&*file, &mut compaction)?;
        let rows: Vec<RowRef<'_>> = needed.iter().filter_map(Needed::as_row).collect();
        self.write(&mut files.segments, &rows, purpose)?;
        if !compaction.rest.is_empty() {
            return Ok(Some(compaction));
        }
        self.finish(files, segment)?;
        Ok(None)
    }

    /// Removes a segment after its intact rows were copied. The segment is kept if some of its damaged rows are still needed or
    /// some of its rows are unknown. No other file has bytes of these rows. Damaged rows that are needed stay in the index, so
    /// that reads report them.
    fn finish(&self, files: &mut Files, segment: u32) -> Result<()> {
        let live = {
            let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
            directory.index.usage().find(|(number, _)| *number == segment).map_or(0, |(_, usage)| usage.live)
        };
        let is_accounted_for = files.segments.is_accounted_for(segment);
        if live > 0 || !is_accounted_for {
            files.kept.insert(segment, if is_accounted_for { Kept::Needed } else { Kept::Unknown });
            tracing::error!(
                path = %file_path(&self.path, segment).display(), bytes = live,
                "segment is damaged: its sound rows were copied, the file is kept"
            );
            return Ok(());
        }
        // After this call the manifest lists the segment as removed, so no start reads the segment, even after a crash.
        files.segments.retire(segment)?;
        files.kept.remove(&segment);
        let mut directory = self.directory.write().unwrap_or_else(PoisonError::into_inner);
        directory.handles.remove(&segment);
        directory.index.forget(segment);
        directory.doubted.retain(|(of, _)| *of != segment);
        drop(directory);
        files.segments.remove(segment);
        self.publish_health(files);
        tracing::info!(path = %self.path.display(), segment, "mostly dead segment removed");
        Ok(())
    }

    fn publish_health(&self, files: &Files) {
        *self.health.lock().unwrap_or_else(PoisonError::into_inner) = files.segments.health();
    }

    /// Takes the next rows from the rest of the compaction, and returns those that must be copied.
    fn needed(&self, file: &dyn ReadFile, compaction: &mut Compaction) -> Result<Vec<Needed>> {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while bytes < STEP_BYTES
            && let Some(row) = compaction.rest.pop()
        {
            let place = directory.index.get(row.table, &row.partition, &row.clustering);
            match row.action {
                Action::Put if place.is_some_and(|place| row.is_at(place, compaction.segment)) => {
                    let value = row.read(file).map_err(|e| {
                        Error::io("read row", &self.path, e).with("segment", compaction.segment)
                    })?;
                    bytes += value.len();
                    rows.push(Needed::Put(value));
                }
                // If the row was put again later, the earlier delete is not needed.
                Action::Delete if compaction.keep_deletes && place.is_none() => {
                    bytes += row.bytes();
                    rows.push(Needed::Delete(row));
                }
                Action::Put | Action::Delete => bytes += ROW_HEAD_BYTES,
            }
        }
        Ok(rows)
    }
}

enum Needed {
    Put(Vec<u8>),
    Delete(Rest),
}

impl Needed {
    /// The row; `None` if it is damaged.
    fn as_row(&self) -> Option<RowRef<'_>> {
        match self {
            Self::Put(bytes) => as_row(bytes),
            Self::Delete(Rest { action, table, partition, clustering, .. }) => {
                Some(RowRef { action: *action, table: *table, partition, clustering, value: &[] })
            }
        }
    }
}

impl Rest {
    fn is_at(&self, place: Place, segment: u32) -> bool {
        (place.segment, place.offset) == (segment, self.offset)
    }

    fn bytes(&self) -> usize {
        ROW_HEAD_BYTES + self.partition.len() + self.clustering.len() + self.value_bytes as usize
    }

    fn read(&self, file: &dyn ReadFile) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.bytes()];
        file.read_exact_at(&mut bytes, self.offset.into())?;
        Ok(bytes)
    }
}

fn as_row(bytes: &[u8]) -> Option<RowRef<'_>> {
    match take_row(bytes) {
        Taken::Row(row) => Some(row),
        Taken::Damaged(_) | Taken::Nothing => None,
    }
}
