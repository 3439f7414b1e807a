//! Checks one window of one partition: reads it, deletes rows that are no longer needed, and computes the replacements. Does not
//! apply the replacements.

use std::sync::Arc;
use std::time::Duration;

use tacho_chunk::semantic::Movement;
use tacho_model::{Kind, SeriesId, Timestamp};
use tokio::time::Instant;

use super::Upkeep;
use super::choice::{self, Aim, Merge, Mode};
use super::facts::{Facts, Next, State};
use super::fresh::Tail;
use super::merge::{Cutting, Merged, Source, Treatment, Unreadable, end_of_step, merge};
use super::replace::wait_for_readers;
use super::replacement::{RowBuilder, RowReplacement};
use super::snapshots::Place;
use super::window::{self, Known, Partition, Scope, Stretch, UnreadableRow, Window};
use crate::driver::{Delete, Driver, Table};
use crate::keys::{CHUNK_SPAN_MAX_NS, CHUNK_WIDE_SPAN_MAX_NS, ChunkKey};
use crate::memtable::CHUNK_CALLS_MAX;
use crate::policy::Policy;
use crate::{Error, ErrorKind, Result};

/// A job: a part of a partition to read and merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    pub partition: Partition,
    pub stretch: Stretch,
    /// Rows that start after this time are ignored.
    pub end: Timestamp,
    pub mode: Mode,
    pub tail: Option<Tail>,
    /// The last flushed generation at the first check of the job; `None` before that check. Later generations are ignored in
    /// all checks, because a row that arrives later may reach over a boundary that was clean.
    pub through: Option<u64>,
    /// Whether an earlier check of this job skipped rows of generations that are not completely flushed.
    pub young: bool,
}

impl Job {
    pub const fn all(partition: Partition, mode: Mode) -> Self {
        Self {
            partition,
            stretch: Stretch::From(Timestamp::MIN),
            end: Timestamp::MAX,
            mode,
            tail: None,
            through: None,
            young: false,
        }
    }
}

#[derive(Debug)]
pub struct Seen {
    pub job: Job,
    pub replacements: Vec<RowReplacement>,
    /// The stretch to continue with after the replacements.
    pub rest: Option<Stretch>,
    /// The part of the window that later merges will read.
    pub tail: Option<Tail>,
    /// Whether no living, unreadable or skipped row is left from the start of the stretch on.
    pub empty: bool,
    pub undecodable: Vec<ChunkKey>,
    /// Whether a due row could not be rewritten.
    pub undone: bool,
    /// Whether rows of generations that are not completely flushed were skipped.
    pub young: bool,
    pub bytes_read: u64,
    pub rows_dead: u64,
    /// CPU time.
    pub busy: Duration,
}

struct Rules {
    treatments: Vec<Treatment>,
    series: Vec<SeriesId>,
    /// The known changes and descents of the values of each series (`lives.rs`). Used only for samples.
    lives: Vec<Movement>,
    /// Samples or entries of one series per chunk.
    values: usize,
}

/// The rules for a partition at the time `now`. `None` if its group or series is not in the index.
fn rules(upkeep: &Upkeep, partition: &Partition, now: Timestamp) -> Option<Rules> {
    let index = upkeep.store.index.read();
    let labels: Vec<_> = match partition.kind {
        Kind::Sample => {
            let group = index.group(index.group_number(partition.id)?);
            group.members.iter().map(|member| index.labels_of(*member)).collect()
        }
        Kind::Entry | Kind::Execution => vec![index.labels(partition.id)?],
    };
    drop(index);
    let tombstones = upkeep.store.tombstones.read();
    let policies = &upkeep.store.options.policies;
    let summed_until = upkeep.summed_until(partition);
    let of = labels
        .iter()
        .map(|labels| (Policy { summed_until, ..policies.of(labels) }, tombstones.masks(labels)));
    let values = policies.chunk_values(&labels).unwrap_or(upkeep.store.options.chunk_values);
    let treatments = of.map(|(policy, masks)| Treatment::new(&policy, masks, now)).collect();
    let series: Vec<SeriesId> = labels.iter().map(|labels| labels.id()).collect();
    let lives = series.iter().map(|id| upkeep.lives.of(*id)).collect();
    Some(Rules { treatments, series, lives, values })
}

/// Reads a window, deletes its dead and emptied rows if all rows are readable, and computes the merges.
pub async fn look(upkeep: &Arc<Upkeep>, job: Job) -> Result<Seen> {
    let now = upkeep.store.clock.now();
    let through = job.through.unwrap_or(0);
    if job.partition.kind == Kind::Sample && upkeep.store.options.policies.moves_values() {
        upkeep.lives.load(&*upkeep.store.driver).await?;
    }
    let Some(rules) = rules(upkeep, &job.partition, now) else {
        return Ok(Seen { tail: None, ..nothing(job) });
    };
    let (driver, notes) = (&*upkeep.store.driver, &upkeep.notes);
    // Twice the limit of one merge, because the end of a merge is chosen among several rows.
    let values = upkeep.store.options.merge_values.max(1).saturating_mul(2);
    let scope = Scope { partition: job.partition, stretch: job.stretch, end: job.end, through, values };
    let window = window::read(driver, scope, &rules.treatments, notes).await?;
    // If a row is unreadable, the dead rows are kept: that row may be their replacement, and they may
    // be the only readable copy.
    if window.undecodable.is_empty() {
        delete(driver, &window.dead).await?;
    }
    if window.undecodable.is_empty() && !window.emptied.is_empty() {
        wait_for_readers(&upkeep.store.snapshots).await;
        delete(driver, &window.emptied).await?;
    }
    let aim = aim(upkeep, &job, &rules);
    let cutting =
        Cutting { records: aim.records, settled_before: now.saturating_sub_unsigned(CHUNK_SPAN_MAX_NS) };
    let (threads, upkeep) = (upkeep.store.options.threads, upkeep.clone());
    let work = move || work(&upkeep, job, window, &rules, &aim, &cutting);
    let ended = |e| Error::new(ErrorKind::Closed, "merge did not end").caused_by(e);
    threads.start(work).join().await.map_err(ended)
}

fn nothing(job: Job) -> Seen {
    Seen {
        job,
        replacements: Vec::new(),
        rest: None,
        tail: None,
        empty: true,
        undecodable: Vec::new(),
        undone: false,
        young: false,
        bytes_read: 0,
        rows_dead: 0,
        busy: Duration::ZERO,
    }
}

fn aim(upkeep: &Upkeep, job: &Job, rules: &Rules) -> Aim {
    let kind = job.partition.kind;
    Aim {
        mode: job.mode,
        records: if kind == Kind::Execution { CHUNK_CALLS_MAX } else { rules.values },
        span_max: if kind == Kind::Execution { u64::MAX } else { CHUNK_WIDE_SPAN_MAX_NS },
        fan_in: upkeep.store.options.merge_rows,
        values_max: upkeep.store.options.merge_values.max(1),
        ordered: kind != Kind::Execution,
    }
}

async fn delete(driver: &dyn Driver, places: &[Place]) -> Result<()> {
    // One call for each row, because the order of the rows matters. There are few rows.
    for (partition, clustering) in places {
        let delete = Delete::row(Table::Chunks, partition.clone(), clustering.clone());
        driver.delete(vec![delete]).await?;
    }
    Ok(())
}

/// Computes the merges of a window. Takes seconds of CPU time in the worst case, so it must not run on async worker threads.
fn work(upkeep: &Upkeep, job: Job, mut window: Window, rules: &Rules, aim: &Aim, cutting: &Cutting) -> Seen {
    let begun = Instant::now();
    let mut seen = Seen {
        young: window.young || job.young,
        bytes_read: window.bytes,
        // If a row of the window is unreadable, no dead row was deleted.
        rows_dead: if window.undecodable.is_empty() { window.dead.len() as u64 } else { 0 },
        undecodable: window.undecodable.iter().map(|unread| unread.key).collect(),
        empty: window.rows.is_empty()
            && window.undecodable.is_empty()
            && window.next.is_none()
            && !window.young,
        ..nothing(job)
    };
    let builder = RowBuilder::new(job.partition, window.merge, &upkeep.store.sequence, &rules.series);
    let next = window.next;
    let mut rows = std::mem::take(&mut window.rows);
    for UnreadableRow { key, reason } in &window.undecodable {
        note(upkeep, &job.partition, key, reason);
    }
    // Rows with the same start as an unreadable row are not merged, because a replacement of these
    // rows would also replace the unreadable row.
    rows.retain(|row| !window.undecodable.iter().any(|unread| unread.key.start == row.facts.key.start));
    let all: Vec<_> = rows.iter().map(|row| row.facts).collect();
    let reaches_over = |from| choice::reaches_over(&all, from, aim.ordered);
    if let Some(from) = job.stretch.looks_back().and_then(reaches_over) {
        seen.rest = Some(Stretch::Around(from));
        return seen;
    }
    let mut floor = job.stretch.floor();
    let mut due = None;
    let work = Work { upkeep, job, builder, rules, aim, cutting };
    for part in rows.chunk_by(|a, b| !window.undecodable.iter().any(|unread| divides(unread.key.start, a, b)))
    {
        let is_last = part.last().map(|row| row.facts.key) == rows.last().map(|row| row.facts.key);
        let behind = if is_last { Behind::Window(next) } else { Behind::Unreadable(floor_after(part)) };
        due = due.or(work.part(part, floor, behind, &mut seen));
        floor = floor.max(floor_after(part));
    }
    // Due rows that were skipped are handled after these replacements, when the stretch is read again.
    let passed = |due: Timestamp| !matches!(seen.rest, Some(Stretch::From(from)) if from <= due);
    if due.is_some_and(passed) {
        seen.undone = seen.replacements.is_empty();
        seen.rest = (!seen.undone).then_some(job.stretch);
    }
    if seen.rest.is_none() {
        let on = |next: Next| match choice::resumes(&all, job.stretch.floor(), next, aim.ordered) {
            Some(from) => Stretch::From(from),
            // All rows of the window overlap and were not merged, usually because an unreadable row is between them. They stay
            // unchanged.
            None => Stretch::Past { from: next.start, reached: floor.saturating_sub(1) },
        };
        seen.rest = next.filter(|next| next.start <= job.end).map(on);
    }
    // The next job checks whether the partition is empty now.
    let emptied = !seen.replacements.is_empty() && seen.replacements.iter().all(|e| e.after.chunks == 0);
    if seen.rest.is_none() && emptied {
        seen.rest = Some(Stretch::From(Timestamp::MIN));
    }
    seen.busy = begun.elapsed();
    seen
}

/// The boundary after a part of the window.
#[derive(Clone, Copy)]
enum Behind {
    /// An unreadable row. All rows of the part end before this time.
    Unreadable(Timestamp),
    /// The end of the window, and the first row after it.
    Window(Option<Next>),
}

struct Work<'a> {
    upkeep: &'a Upkeep,
    job: Job,
    builder: RowBuilder<'a>,
    rules: &'a Rules,
    aim: &'a Aim,
    cutting: &'a Cutting,
}

impl Work<'_> {
    /// Chooses and computes the merges of rows that have no unreadable row between them. Returns the start of the first
    /// due row that is not in any of these merges.
    fn part(&self, part: &[Known], floor: Timestamp, behind: Behind, seen: &mut Seen) -> Option<Timestamp> {
        let facts: Vec<_> = part.iter().map(|row| row.facts).collect();
        let next = match behind {
            Behind::Unreadable(next) => Some(Next::at(next)),
            Behind::Window(next) => next,
        };
        let Some(next) = next else {
            let merges = self.merge(part, &facts, choice::choose(&facts, floor, None, self.aim), seen);
            let from = choice::unfinished(&facts, floor, &merges, self.aim);
            seen.tail = from.map(|from| Tail { chunks: 0, from, clean: true });
            return first_due(&facts, &merges);
        };
        let mut merges = choice::choose(&facts, floor, Some(next), self.aim);
        if merges.is_empty() && matches!(behind, Behind::Window(_)) && next.start <= self.job.end {
            merges.extend(choice::cut_through(&facts, floor, next, self.aim));
        }
        first_due(&facts, &self.merge(part, &facts, merges, seen))
    }

    /// Computes the merges and returns them, aligned to downsampling steps.
    fn merge(&self, part: &[Known], facts: &[Facts], merges: Vec<Merge>, seen: &mut Seen) -> Vec<Merge> {
        let treatments = &self.rules.treatments;
        let merges: Vec<Merge> = merges.iter().map(|merge| aligned(merge, facts, treatments)).collect();
        for merge in &merges {
            let Some(rows) = part.get(merge.rows.clone()) else { continue };
            match replacement(&self.builder, rows, self.rules, merge.until, self.cutting) {
                Ok(replacement) => {
                    seen.replacements
                        .extend(Some(replacement).filter(|replacement| !is_idle(replacement, rows)));
                    if merge.until < Timestamp::MAX {
                        seen.rest = merge.until.checked_add(1).map(Stretch::From);
                    }
                }
                Err(Unreadable { source, error }) => {
                    let Some(key) = rows.get(source).map(|row| row.facts.key) else { continue };
                    note(self.upkeep, &self.job.partition, &key, &error.to_string());
                    self.upkeep.mark_undecodable((self.job.partition.key(), key.encode()));
                    seen.undecodable.push(key);
                    seen.rest = Some(self.job.stretch);
                }
            }
        }
        merges
    }
}

fn first_due(facts: &[Facts], merges: &[Merge]) -> Option<Timestamp> {
    let is_done = |at: usize| merges.iter().any(|merge| merge.rows.contains(&at));
    let due = facts.iter().enumerate().find(|(at, row)| row.state != State::Sound && !is_done(*at));
    due.map(|(_, row)| row.key.start)
}

/// Whether an unreadable row starts between the starts of two rows, or at one of them.
fn divides(unread: Timestamp, a: &Known, b: &Known) -> bool {
    (a.facts.key.start..=b.facts.key.start).contains(&unread)
}

/// The time after the reach of all these rows.
fn floor_after(part: &[Known]) -> Timestamp {
    part.iter().map(|row| row.facts.reach().end).max().map_or(Timestamp::MIN, |end| end.saturating_add(1))
}

/// If the merge ends at a time `until` before the end of its rows, moves `until` back to the end of a downsampling step, because
/// a step is downsampled as a whole. Omits the rows that start later than the new `until` by more than the largest change of a
/// time in these rows.
fn aligned(merge: &Merge, facts: &[Facts], treatments: &[Treatment]) -> Merge {
    let steps = treatments.iter().filter_map(|treatment| treatment.thin);
    let longest = steps.map(|(_, to)| to).max_by_key(|to| to.step).filter(|_| merge.until < Timestamp::MAX);
    let until = longest.map_or(merge.until, |to| end_of_step(merge.until, to));
    let rows = facts.get(merge.rows.clone()).unwrap_or_default();
    if rows.first().is_none_or(|row| until < row.key.start) {
        return merge.clone();
    }
    // Rows that start a little after `until` are included, because a copy of a moved sample may
    // have been resent with a slightly later time.
    let moved = rows.iter().map(|row| row.error).max().unwrap_or(0);
    let count = rows.partition_point(|row| row.key.start <= until.saturating_add_unsigned(moved));
    Merge { rows: merge.rows.start..merge.rows.start + count, until }
}

fn replacement(
    builder: &RowBuilder<'_>,
    rows: &[Known],
    rules: &Rules,
    until: Timestamp,
    cutting: &Cutting,
) -> Result<RowReplacement, Unreadable> {
    let whole = until == Timestamp::MAX;
    let merged = if whole && rows.iter().all(|row| row.facts.state == State::Expired) {
        Merged::default()
    } else {
        let sources: Vec<Source> = rows.iter().map(|row| row.source.clone()).collect();
        let kind = builder.kind();
        merge(kind, &sources, &rules.treatments, &rules.lives, until, cutting)?
    };
    Ok(builder.build(rows, merged))
}

/// Whether the replacement only rewrites one sound row of a flush without making it smaller.
fn is_idle(replacement: &RowReplacement, rows: &[Known]) -> bool {
    let ([new], [old]) = (&replacement.new[..], rows) else { return false };
    old.facts.state == State::Sound
        && old.facts.replacement.is_none()
        && new.value.len() >= old.source.chunk.len()
}

fn note(upkeep: &Upkeep, partition: &Partition, key: &ChunkKey, reason: &str) {
    upkeep.store.unreadable.note((partition.kind, partition.id), key, reason);
}
