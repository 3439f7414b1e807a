//! Plans a read of groups: which chunks must be decoded, and which are answered by the statistics in their headers.
//!
//! ```text
//!   headers + open samples -> candidates of each series -> sets of candidates that overlap in time
//!     a single chunk inside one window     answered by its statistics, if it has them and no mask covers a part of it
//!     all other sets                       decoded, then merged (`piece.rs`)
//! ```
//!
//! This folder and `upkeep/` use each other. A plan excludes samples that a `Mask` of `upkeep/tombstones.rs` covers.
//! Merges use the rows and the resent samples of this folder (`row.rs`, `resent.rs`).

use std::sync::Arc;

use bytes::Bytes;
use tacho_chunk::{Aggregation, Chunk, Header, Role, Summary};
use tacho_model::{TimeRange, Timestamp, Windows};

use super::piece::{Part, merge, within};
use super::resent::Place;
use super::resent::{Moved, Overhang};
use crate::answer::{Exactness, Piece, ReadReport, longest};
use crate::upkeep::Mask;

/// A chunk in the driver that may have samples of some of the series.
#[derive(Debug)]
pub struct Stored {
    pub place: Place,
    /// How far original times may be outside of the chunk, if a merge moved its first or last time (`resent.rs`).
    pub overhang: Overhang,
    /// The chunk without the prefix of its row, or the parts of the chunk that the question needs.
    pub chunk: Bytes,
    pub whole: usize,
    /// The wanted members of the chunk's group: the member number, and the index of its series among the wanted series.
    /// Ordered by member.
    pub members: Arc<[(u16, usize)]>,
}

#[derive(Debug, Default)]
pub struct Asked {
    pub masks: Vec<Mask>,
    /// The samples of the series in memory, cut to [`Question::reach`].
    pub open: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub range: TimeRange,
    /// The requested range, extended at both ends by twice the limit on moves of times. A sample in an extension may have been
    /// moved out of the range, or may be a copy of such a sample.
    pub reach: TimeRange,
    pub windows: Option<Windows>,
}

#[derive(Debug)]
struct Candidate {
    /// Time range of the whole chunk, or of the samples in memory.
    range: TimeRange,
    /// Range in which samples that arrive later may be copies of this chunk's samples; `range` for samples in memory.
    reach: TimeRange,
    source: Source,
}

impl Candidate {
    fn open(part: Part) -> Self {
        let range = TimeRange::new(part.first(), part.last());
        Self { range, reach: range, source: Source::Open(part) }
    }
}

#[derive(Debug)]
enum Source {
    Open(Part),
    Chunk { row: usize, column: Column },
}

#[derive(Clone, Copy, Debug)]
struct Column {
    member: u16,
    /// Estimated number of samples in [`Question::reach`].
    count: usize,
    /// `None` if statistics cannot replace the samples.
    summary: Option<Summary>,
    value_error_max: f64,
    aggregation: Option<Aggregation>,
}

impl Column {
    const fn exactness(&self, time_error_max: u64) -> Exactness {
        let Self { value_error_max, aggregation: thinned, .. } = *self;
        Exactness { time_error_max, value_error_max, thinned }
    }
}

/// A part of the answer for one series. The steps of a series are ordered by time.
#[derive(Debug)]
enum Step {
    Summary(Summary),
    /// One part, or several parts that overlap in time.
    Parts(Vec<Slot>),
}

#[derive(Debug)]
enum Slot {
    Open(Part),
    Decoded(usize),
}

impl Stored {
    fn open(&self, range: TimeRange) -> Result<Chunk<'_>, tacho_chunk::Error> {
        if self.chunk.len() == self.whole {
            return Chunk::open(&self.chunk);
        }
        Chunk::open_parts(&self.chunk, self.whole, range, |member| is_wanted(&self.members, member))
    }
}

/// Whether a member is in this list, which is sorted by member.
pub fn is_wanted(members: &[(u16, usize)], member: u16) -> bool {
    members.binary_search_by_key(&member, |(member, _)| *member).is_ok()
}

/// One chunk to decode, with the wanted members. The slot of a member is the index of its decoded part in [`Plan::finish`].
#[derive(Debug)]
pub struct Job {
    /// Index of the stored chunk.
    row: usize,
    place: Place,
    overhang: Overhang,
    chunk: Bytes,
    header: Header,
    columns: Vec<(u16, usize)>,
}

#[derive(Debug, Default)]
pub struct Plan {
    pub jobs: Vec<Job>,
    pub report: ReadReport,
    /// Approximate number of samples in the answer, without those that a summary replaces.
    pub samples: usize,
    /// How exact each series is in the chunks that overlap [`Question::reach`].
    pub exactness: Vec<Exactness>,
    /// The series of each decoded part, by slot.
    slots: Vec<usize>,
    series: Vec<Vec<Step>>,
    masks: Vec<Vec<Mask>>,
}

#[derive(Debug, Default)]
pub struct Done {
    pub parts: Vec<(usize, Part)>,
    pub values: u64,
    pub failed: Vec<Failed>,
}

#[derive(Debug)]
pub struct Failed {
    /// Index of the stored chunk.
    pub row: usize,
    /// Time range of the whole chunk.
    pub range: TimeRange,
    pub slot: usize,
    pub error: tacho_chunk::Error,
}

impl Plan {
    /// Reads the headers and decides what is decoded. Calls `unreadable` with the index and the error of each chunk whose header
    /// cannot be read. If `unreadable` returns an error, this function returns the error.
    pub fn new<E>(
        asked: Vec<Asked>,
        stored: &[Stored],
        question: &Question,
        mut unreadable: impl FnMut(usize, tacho_chunk::Error) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut plan = Self { exactness: vec![Exactness::default(); asked.len()], ..Self::default() };
        let mut candidates: Vec<Vec<Candidate>> = Vec::with_capacity(asked.len());
        for Asked { masks, open } in asked {
            candidates.push(open.into_iter().map(Candidate::open).collect());
            plan.masks.push(masks);
        }
        let mut headers = Vec::with_capacity(stored.len());
        for (row, stored) in stored.iter().enumerate() {
            plan.report.chunks_seen += 1;
            plan.report.bytes_read += stored.chunk.len() as u64;
            headers.push(match stored.open(question.reach) {
                Ok(chunk) => {
                    let found = columns(&chunk, &stored.members, question);
                    let range = TimeRange::new(chunk.header().start, chunk.header().end);
                    if found.is_empty() {
                        plan.report.chunks_skipped += 1;
                    } else {
                        let error = chunk.header().time_error_max;
                        plan.report.time_error_max = plan.report.time_error_max.max(error);
                        plan.report.column_bytes += column_bytes(chunk.header(), &found);
                    }
                    for (series, column) in found {
                        if let Some(exactness) = plan.exactness.get_mut(series) {
                            exactness.widen(column.exactness(chunk.header().time_error_max));
                        }
                        let (reach, source) = (stored.overhang.around(range), Source::Chunk { row, column });
                        if let Some(candidates) = candidates.get_mut(series) {
                            candidates.push(Candidate { range, reach, source });
                        }
                    }
                    Some(chunk.into_header())
                }
                Err(error) => {
                    plan.report.chunks_skipped += 1;
                    unreadable(row, error)?;
                    None
                }
            });
        }
        plan.choose(candidates, stored, headers, question);
        Ok(plan)
    }

    fn choose(
        &mut self,
        candidates: Vec<Vec<Candidate>>,
        stored: &[Stored],
        headers: Vec<Option<Header>>,
        question: &Question,
    ) {
        // For each row, the columns to decode, and whether statistics answered for some columns.
        let mut wanted: Vec<(Vec<(u16, usize)>, bool)> = vec![Default::default(); stored.len()];
        for (series, mut candidates) in candidates.into_iter().enumerate() {
            divide_open(&mut candidates);
            candidates.sort_by_key(|candidate| candidate.reach.start);
            let mut steps = Vec::new();
            let mut rest = candidates.into_iter().peekable();
            while let Some(first) = rest.next() {
                let mut end = first.reach.end;
                let mut together = vec![first];
                while let Some(next) = rest.next_if(|next| next.reach.start <= end) {
                    end = end.max(next.reach.end);
                    together.push(next);
                }
                steps.push(self.step(series, together, stored, question, &mut wanted));
            }
            self.series.push(steps);
        }
        for (row, ((stored, header), (columns, summarised))) in
            stored.iter().zip(headers).zip(wanted).enumerate()
        {
            if let Some(header) = header.filter(|_| !columns.is_empty()) {
                self.report.chunks_decoded += 1;
                let Stored { place, overhang, ref chunk, .. } = *stored;
                self.jobs.push(Job { row, place, overhang, chunk: chunk.clone(), header, columns });
            } else if summarised {
                self.report.chunks_summarised += 1;
            }
        }
    }

    fn step(
        &mut self,
        series: usize,
        together: Vec<Candidate>,
        stored: &[Stored],
        question: &Question,
        wanted: &mut [(Vec<(u16, usize)>, bool)],
    ) -> Step {
        let errors = together.iter().map(|candidate| match &candidate.source {
            Source::Open(_) => 0.0,
            Source::Chunk { column, .. } => column.value_error_max,
        });
        self.report.value_error_max = errors.fold(self.report.value_error_max, f64::max);
        let aggregations = together.iter().map(|candidate| match &candidate.source {
            Source::Open(_) => None,
            Source::Chunk { column, .. } => column.aggregation,
        });
        self.report.thinned = aggregations.fold(self.report.thinned, longest);
        if let [Candidate { range, source: Source::Chunk { row, column }, .. }] = together.as_slice()
            && let Some(summary) = column.summary
            && question.is_answered_by(*range)
            && let Some(Stored { place, .. }) = stored.get(*row)
            && !self.masks(series).iter().any(|mask| touches(mask, *place, *range))
            && let Some((_, is_summarised)) = wanted.get_mut(*row)
        {
            *is_summarised = true;
            return Step::Summary(summary);
        }
        let slot = |candidate: Candidate| match candidate.source {
            Source::Open(part) => {
                self.samples += part.len();
                Slot::Open(part)
            }
            Source::Chunk { row, column } => {
                self.samples += column.count;
                let slot = self.slots.len();
                self.slots.push(series);
                if let Some((columns, _)) = wanted.get_mut(row) {
                    columns.push((column.member, slot));
                }
                Slot::Decoded(slot)
            }
        };
        Step::Parts(together.into_iter().map(slot).collect())
    }

    pub fn series_of(&self, slot: usize) -> usize {
        self.slots.get(slot).copied().unwrap_or_default()
    }

    pub fn masks(&self, series: usize) -> &[Mask] {
        self.masks.get(series).map_or(&[], Vec::as_slice)
    }

    pub fn finish(self, done: Vec<Done>, question: &Question) -> Vec<Vec<Piece>> {
        let mut decoded: Vec<Option<Part>> = Vec::new();
        decoded.resize_with(self.slots.len(), || None);
        for (slot, part) in done.into_iter().flat_map(|done| done.parts) {
            if let Some(place) = decoded.get_mut(slot) {
                *place = Some(part);
            }
        }
        let mut pieces = |(steps, masks): (Vec<Step>, &Vec<Mask>)| {
            let mut pieces = Vec::with_capacity(steps.len());
            for step in steps {
                match step {
                    Step::Summary(summary) => pieces.push(Piece::Summary(summary)),
                    Step::Parts(slots) => {
                        let part = |slot| match slot {
                            Slot::Open(part) => Some(part),
                            Slot::Decoded(slot) => decoded.get_mut(slot).and_then(Option::take),
                        };
                        let parts = slots.into_iter().filter_map(part).filter_map(|part| masked(part, masks));
                        pieces.extend(merge(parts.collect()));
                    }
                }
            }
            if question.reach == question.range { pieces } else { within(pieces, question.range) }
        };
        self.series.into_iter().zip(&self.masks).map(&mut pieces).collect()
    }
}

/// Divides the samples in memory at the start and the end of each chunk. Then only the samples in memory between these two
/// times, and not the range of the question, decide whether a chunk is decoded.
fn divide_open(candidates: &mut Vec<Candidate>) {
    let (open, chunks): (Vec<_>, Vec<_>) =
        candidates.iter().partition(|candidate| matches!(candidate.source, Source::Open(_)));
    let Some(first) = open.iter().map(|part| part.range.start).min() else { return };
    let last = open.iter().map(|part| part.range.end).max().unwrap_or(first);
    let ends = chunks.iter().flat_map(|chunk| [chunk.reach.start.saturating_sub(1), chunk.reach.end]);
    let mut ends: Vec<Timestamp> = ends.filter(|end| (first..last).contains(end)).collect();
    if ends.is_empty() {
        return;
    }
    ends.sort_unstable();
    for candidate in std::mem::take(candidates) {
        match candidate.source {
            Source::Open(part) => candidates.extend(part.divided(&ends).into_iter().map(Candidate::open)),
            Source::Chunk { .. } => candidates.push(candidate),
        }
    }
}

fn masked(part: Part, masks: &[Mask]) -> Option<Part> {
    let (generation, _) = part.place;
    let range = TimeRange::new(part.first(), part.last());
    if !masks.iter().any(|mask| touches(mask, part.place, range)) {
        return Some(part);
    }
    part.without(|at| masks.iter().any(|mask| mask.hides(generation, at)))
}

fn touches(mask: &Mask, (generation, _): Place, range: TimeRange) -> bool {
    generation <= mask.through && mask.range.overlaps(&range)
}

impl Question {
    /// Whether the statistics of a chunk with this time range can replace its samples.
    fn is_answered_by(&self, range: TimeRange) -> bool {
        let inside = self.range.contains(range.start) && self.range.contains(range.end);
        inside && self.windows.is_some_and(|windows| !windows.cut(range.start, range.end))
    }
}

/// The requested columns of a chunk that may have samples in the range, with the positions of their series.
fn columns(chunk: &Chunk<'_>, members: &[(u16, usize)], question: &Question) -> Vec<(usize, Column)> {
    let header = chunk.header();
    let range = TimeRange::new(header.start, header.end);
    if !range.overlaps(&question.reach) {
        return Vec::new();
    }
    let count = share(range, question.reach, header.count);
    let mut infos = header.members.iter().peekable();
    let mut found = Vec::new();
    for (member, series) in members {
        while infos.next_if(|info| info.member < *member).is_some() {}
        if let Some(info) = infos.peek().filter(|info| info.member == *member) {
            let summary = info.stats.summary(range, header.count);
            let value_error_max = info.value_error_max();
            let aggregation = info.loss.and_then(|loss| loss.aggregation);
            let column = Column { member: *member, count, summary, value_error_max, aggregation };
            found.push((*series, column));
        }
    }
    found
}

/// Bytes of the times, and of the values of these columns.
fn column_bytes(header: &Header, columns: &[(usize, Column)]) -> u64 {
    let times = header.columns().find(|column| column.role == Role::At).map_or(0, |column| column.bytes);
    let values = columns.iter().filter_map(|(_, column)| header.member(column.member));
    (times + values.map(|info| info.bytes).sum::<usize>()) as u64
}

/// Estimated number of the `count` samples in `whole` that are in `part`, rounded up.
fn share(whole: TimeRange, part: TimeRange, count: usize) -> usize {
    let (start, end) = (whole.start.max(part.start), whole.end.min(part.end));
    let (common, all) =
        (u128::from(end.abs_diff(start)) + 1, u128::from(whole.end.abs_diff(whole.start)) + 1);
    usize::try_from((count as u128 * common).div_ceil(all)).unwrap_or(count)
}

impl Job {
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// The same job in parts of at most this number of columns, so that several threads can share it. Each part decodes the times
    /// again.
    pub fn parts(mut self, columns_max: usize) -> Vec<Self> {
        let mut parts = Vec::new();
        while self.columns.len() > columns_max {
            let columns = self.columns.drain(..columns_max).collect();
            parts.push(Self { columns, header: self.header.clone(), chunk: self.chunk.clone(), ..self });
        }
        parts.push(self);
        parts
    }

    /// Decodes the times once, then the wanted columns.
    pub fn run(&self, range: TimeRange, done: &mut Done) {
        if let Err(error) = self.decode(range, done) {
            let failed = |(_, slot): &(u16, usize)| self.failed(*slot, error.clone());
            done.failed.extend(self.columns.iter().map(failed));
        }
    }

    const fn failed(&self, slot: usize, error: tacho_chunk::Error) -> Failed {
        let range = TimeRange::new(self.header.start, self.header.end);
        Failed { row: self.row, range, slot, error }
    }

    fn decode(&self, range: TimeRange, done: &mut Done) -> Result<(), tacho_chunk::Error> {
        let chunk = Chunk::reopen(&self.chunk, &self.header)?;
        let times = chunk.times()?;
        let places = times.slice(range);
        if places.is_empty() {
            return Ok(());
        }
        let times = times.part(places.clone());
        let Header { start, end, time_error_max, .. } = self.header;
        let moved = Moved::new(TimeRange::new(start, end), time_error_max, self.overhang);
        for (member, slot) in &self.columns {
            // A damaged column must not hide the other columns.
            match chunk.values_in(*member, places.clone()) {
                Ok(Some(values)) => {
                    done.values += values.len() as u64;
                    done.parts.push((*slot, Part { place: self.place, times: times.clone(), values, moved }));
                }
                Ok(None) => {}
                Err(error) => done.failed.push(self.failed(*slot, error)),
            }
        }
        Ok(())
    }
}
