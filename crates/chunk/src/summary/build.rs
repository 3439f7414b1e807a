//! Which figures does the summary of a block have? One walk over all rows writes one number for each fact about a call, such as
//! its cell and the bucket of its duration, or its cell and its minute. The numbers are then sorted. The length of each run of
//! equal numbers is a count. The memory is proportional to the number of calls.

use std::collections::HashMap;

use tacho_model::{OperationKind, Timestamp};

use super::links::Links;
use super::minutes::{self, Minutes};
use super::statuses::Statuses;
use super::{
    Buckets, CallSummary, Cell, Edge, LoosePart, PartKey, Point, RequestClass, RequestSlot, SECOND_NS,
    SLOT_MAX_S, SLOTS_S, bucket_of,
};
use crate::execution::{ExecutionBlock, RowRef, Visit, Walker, part_gap};
use crate::limits::{SUMMARY_CELLS_MAX, SUMMARY_LOOSE_MAX, SUMMARY_POINTS_MAX};

/// A block with fewer calls has no summary, because its calls are read almost as fast as a summary.
const CALLS_MIN: usize = 256;
/// Minimum mean number of calls per point, except with the longest slots. At two calls per point, slots of one minute take 0.2
/// bytes per call more than slots of 15 minutes. This difference is 5 % of a chunk. PromQL needs slots of one minute.
const CALLS_PER_POINT: usize = 2;

const MINUTE_NS: i64 = SLOTS_S[0] * SECOND_NS;
const BUCKET_BITS: u32 = 16;
const CLASS_BITS: u32 = 2;
/// Bits of a cell and the flag of a failed call. The minutes in the range of timestamps take 29 more bits.
const CELL_BITS: u32 = 24;

/// The summary of a block. `None` if the block has fewer than `CALLS_MIN` calls, or if a limit `SUMMARY_*_MAX` is exceeded.
pub(crate) fn summary(block: &ExecutionBlock) -> Option<CallSummary> {
    if block.calls() < CALLS_MIN { None } else { summary_in_form(block, None) }
}

/// The choices of the encoder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub slot_s: i64,
    /// Whether the points have durations. Only with slots of one minute.
    pub has_durations: bool,
}

/// Limit on the product of minutes and cells for which the durations of each minute are counted, some 20 MB.
const MINUTE_CELLS_MAX: usize = 1 << 17;

/// Whether the memory for the durations of each minute is bounded.
pub(super) fn may_be_by_minute(block: &ExecutionBlock) -> bool {
    minutes(block).saturating_mul(block.operations().len() * 2) <= MINUTE_CELLS_MAX
}

/// From the minute of the first time of a block to that of the last one.
fn minutes(block: &ExecutionBlock) -> usize {
    let minute = |at: Timestamp| at.div_euclid(MINUTE_NS);
    let minutes = minute(block.range().end).abs_diff(minute(block.range().start)).saturating_add(1);
    usize::try_from(minutes).unwrap_or(usize::MAX)
}

/// Like [`summary`], for any number of calls. `None` chooses the form.
pub(super) fn summary_in_form(block: &ExecutionBlock, form: Option<Form>) -> Option<CallSummary> {
    if block.operations().len() * 2 > SUMMARY_CELLS_MAX {
        return None;
    }
    let minutes = minutes(block);
    let has_durations = form.map_or_else(|| Minutes::are_worth_it(block, minutes), |form| form.has_durations);
    let mut gathered = Gathered::new(block, has_durations.then_some(minutes));
    block.rows().for_each(|row| gathered.add(row));
    gathered.finish(form.map(|form| form.slot_s))
}

/// Figures of one cell, without the counts by bucket.
#[derive(Clone, Default)]
struct Totals {
    count: u64,
    errors: u64,
    refused: u64,
    total_ns: u64,
    self_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

struct Gathered<'a> {
    block: &'a ExecutionBlock,
    walker: Walker,
    /// Two for each operation: calls with a caller, calls without a caller.
    totals: Vec<Totals>,
    /// The minute of the first time of the block.
    first: i64,
    /// Cell and bucket of each completed call.
    durations: Vec<u64>,
    /// Minute of the enter, cell and outcome of each completed call.
    minutes: Vec<u64>,
    /// Minute of the enter, class and bucket of each completed call that may be a request.
    requests: Vec<u64>,
    by_minute: Option<Minutes>,
    /// `None` if the caller of a segment was never searched.
    links: Option<Links>,
    statuses: Statuses,
    /// Parts whose next part is missing so far, with the time of their last event.
    ends: HashMap<PartKey, Timestamp>,
    /// Parts that are missing so far, although their next part was found. With two facts about the next part: the cell of its
    /// innermost carried call, and the time of its first event.
    starts: HashMap<PartKey, (u64, Timestamp)>,
}

/// A number of two parts. The lower part has `bits` bits.
const fn joined(high: u64, low: u64, bits: u32) -> u64 {
    high << bits | low
}

const fn split(number: u64, bits: u32) -> (u64, u64) {
    (number >> bits, number & ((1 << bits) - 1))
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl<'a> Gathered<'a> {
    /// With a number of minutes, the durations of each minute are counted.
    fn new(block: &'a ExecutionBlock, minutes: Option<usize>) -> Self {
        let cells = block.operations().len() * 2;
        Self {
            block,
            walker: Walker::default(),
            totals: vec![Totals::default(); cells],
            first: block.range().start.div_euclid(MINUTE_NS),
            durations: Vec::with_capacity(block.calls()),
            minutes: Vec::with_capacity(block.calls()),
            requests: vec![],
            by_minute: minutes.map(|minutes| Minutes::new(minutes, cells)),
            links: (!block.has_unsearched()).then(|| Links::of(block)),
            statuses: Statuses::default(),
            ends: HashMap::new(),
            starts: HashMap::new(),
        }
    }

    fn add(&mut self, row: RowRef<'_>) {
        let Self { block, walker, totals, first, durations, minutes, requests, .. } = self;
        let Self { by_minute, links, statuses, .. } = self;
        statuses.prepare(row);
        if let Some(links) = links {
            links.prepare(row);
        }
        let cell_of = |operation: u32, is_outermost: bool| {
            u64::from(operation) * 2 + u64::from(is_outermost && row.parent().is_none())
        };
        let last = walker.walk(row, 0, |visit: Visit<'_>| {
            let cell = cell_of(visit.call.operation, visit.call.parent.is_none());
            let Some(totals) = totals.get_mut(index(cell)) else { return };
            totals.self_ns = totals.self_ns.saturating_add(visit.self_ns);
            statuses.add(&visit);
            let Some(duration) = visit.duration() else { return };
            totals.add(duration, visit.call.failed);
            if let Some(links) = links {
                links.add(row, &visit, duration);
            }
            let minute = visit.start.div_euclid(MINUTE_NS).wrapping_sub(*first).cast_unsigned();
            if let Some(by_minute) = by_minute {
                by_minute.add(index(minute), index(cell), duration);
            }
            let bucket = bucket_of(duration).into();
            durations.push(joined(cell, bucket, BUCKET_BITS));
            minutes.push(joined(minute, cell << 1 | u64::from(visit.call.failed), CELL_BITS));
            let operation = block.operations().get(visit.call.operation as usize);
            let is_http = operation.is_some_and(|operation| operation.kind == OperationKind::HttpServer);
            if let Some(class) = RequestClass::of(is_http, cell % 2 == 1) {
                requests.push(joined(joined(minute, class as u64, CLASS_BITS), bucket, BUCKET_BITS));
            }
        });
        for call in self.statuses.refused().filter_map(|position| row.shape().calls().get(position)) {
            if let Some(totals) = self.totals.get_mut(index(cell_of(call.operation, call.parent.is_none()))) {
                totals.refused += 1;
            }
        }
        self.join(row, last);
    }

    /// Joins the row with the previous and the next part of its segment.
    fn join(&mut self, row: RowRef<'_>, last: Timestamp) {
        let key = PartKey { trace: row.trace(), base: row.base(), part: row.part() };
        if let (Some((operation, _)), Some(part)) = (row.shape().carried().last(), row.part().checked_sub(1))
        {
            let before = PartKey { part, ..key };
            let is_uncalled = row.shape().carried().len() == 1 && row.parent().is_none();
            let start = (u64::from(*operation) * 2 + u64::from(is_uncalled), row.start());
            match self.ends.remove(&before) {
                Some(end) => self.wait(end, start),
                None => drop(self.starts.insert(before, start)),
            }
        }
        if row.is_open() {
            match self.starts.remove(&key) {
                Some(start) => self.wait(last, start),
                None => drop(self.ends.insert(key, last)),
            }
        }
    }

    /// Adds the time between two parts to the self time of the innermost call.
    fn wait(&mut self, end: Timestamp, (cell, start): (u64, Timestamp)) {
        if let Some(totals) = self.totals.get_mut(index(cell)) {
            totals.self_ns = totals.self_ns.saturating_add(part_gap(end, start));
        }
    }

    fn finish(mut self, slot_s: Option<i64>) -> Option<CallSummary> {
        if self.ends.len() + self.starts.len() > SUMMARY_LOOSE_MAX {
            return None;
        }
        self.durations.sort_unstable();
        self.minutes.sort_unstable();
        let mut numbers: Vec<Option<u32>> = vec![None; self.totals.len()];
        let cells = self.cells(&mut numbers);
        let points = self.points(&numbers);
        let enough = |slot_s: &i64| {
            let merged = merged(&points, slot_s / SLOTS_S[0]);
            (merged.len() * CALLS_PER_POINT <= self.durations.len()).then_some((*slot_s, merged))
        };
        let last = || {
            let slot_s = slot_s.unwrap_or(SLOT_MAX_S);
            (slot_s, merged(&points, slot_s / SLOTS_S[0]))
        };
        let chosen = if slot_s.is_some() { None } else { SLOTS_S.iter().find_map(enough) };
        let (slot_s, points) = chosen.unwrap_or_else(last);
        let requests = self.requests(slot_s);
        let all = cells.iter().map(|cell| &cell.buckets).chain(requests.iter().map(|slot| &slot.buckets));
        let buckets = all.map(Vec::len).sum::<usize>();
        if points.len().max(requests.len()).max(buckets) > SUMMARY_POINTS_MAX {
            return None;
        }
        let (operations, callers) = (self.block.operations().into(), self.block.callers().into());
        let loose = self.loose();
        let durations = self.by_minute.as_ref().filter(|_| slot_s == SLOTS_S[0]).map(|by_minute| {
            let of_point = |point: &Point| {
                let minute = index(point.slot.wrapping_sub(self.first).cast_unsigned());
                let cell = cells.get(point.cell as usize).map_or(usize::MAX, Cell::place);
                by_minute.of(minute, cell)
            };
            points.iter().map(of_point).collect::<Vec<_>>()
        });
        let durations = durations.filter(|durations| minutes::fits(durations));
        let links = match self.links {
            Some(links) => Some(links.finish()?),
            None => None,
        };
        let statuses = self.statuses.finish();
        Some(CallSummary {
            operations,
            callers,
            slot_s,
            cells,
            points,
            durations,
            requests,
            loose,
            links,
            statuses,
        })
    }

    /// The cells that have figures. For each of them, sets its item of `numbers` to its index in the result.
    fn cells(&self, numbers: &mut [Option<u32>]) -> Vec<Cell> {
        let mut cells: Vec<Cell> = vec![];
        let mut counts = counted(&self.durations).peekable();
        for ((place, totals), number) in (0u32..).zip(&self.totals).zip(numbers) {
            if totals.count == 0 && totals.self_ns == 0 && totals.refused == 0 {
                continue;
            }
            let mut buckets = Buckets::new();
            while let Some((key, count)) =
                counts.next_if(|(key, _)| split(*key, BUCKET_BITS).0 == u64::from(place))
            {
                buckets.push((bucket(key), count));
            }
            *number = u32::try_from(cells.len()).ok();
            cells.push(totals.cell(place, buckets));
        }
        cells
    }

    /// The points with slots of one minute.
    fn points(&self, numbers: &[Option<u32>]) -> Vec<Point> {
        let mut points: Vec<Point> = vec![];
        for (key, count) in counted(&self.minutes) {
            let (minute, call) = split(key, CELL_BITS);
            let (cell, failed) = split(call, 1);
            let Some(cell) = numbers.get(index(cell)).copied().flatten() else { continue };
            let (slot, errors) = (self.first.wrapping_add_unsigned(minute), failed * count);
            add_point(&mut points, Point { slot, cell, count, errors });
        }
        points
    }

    fn requests(&self, slot_s: i64) -> Vec<RequestSlot> {
        let slot = |key: u64| {
            let (place, bucket) = split(key, BUCKET_BITS);
            let (minute, class) = split(place, CLASS_BITS);
            let minute = self.first.wrapping_add_unsigned(minute);
            (minute.div_euclid(slot_s / SLOTS_S[0]), class, bucket)
        };
        let mut all: Vec<(i64, u64, u64)> = self.requests.iter().map(|key| slot(*key)).collect();
        all.sort_unstable();
        let mut requests: Vec<RequestSlot> = vec![];
        for same in all.chunk_by(|a, b| a == b) {
            let Some((slot, class, key)) = same.first().copied() else { continue };
            let class = RequestClass::ALL.get(index(class)).copied().unwrap_or(RequestClass::Uncalled);
            if requests.last().is_none_or(|last| (last.slot, last.class) != (slot, class)) {
                requests.push(RequestSlot { slot, class, buckets: vec![] });
            }
            if let Some(last) = requests.last_mut() {
                last.buckets.push((bucket(key), same.len() as u64));
            }
        }
        requests
    }

    fn loose(&self) -> Vec<LoosePart> {
        let ends = self.ends.iter().map(|(key, end)| LoosePart { key: *key, edge: Edge::End(*end) });
        let start = |(cell, start): (u64, Timestamp)| Edge::Start(narrow(cell / 2), start);
        let starts = self.starts.iter().map(|(key, at)| LoosePart { key: *key, edge: start(*at) });
        let mut loose: Vec<LoosePart> = ends.chain(starts).collect();
        // A key has at most one end and one start.
        loose.sort_unstable_by_key(|part| (part.key, matches!(part.edge, Edge::Start(..))));
        loose
    }
}

impl Totals {
    fn add(&mut self, duration: u64, failed: bool) {
        self.min_ns = if self.count == 0 { duration } else { self.min_ns.min(duration) };
        self.max_ns = self.max_ns.max(duration);
        self.count += 1;
        self.errors += u64::from(failed);
        self.total_ns = self.total_ns.saturating_add(duration);
    }

    fn cell(&self, place: u32, buckets: Buckets) -> Cell {
        let Self { count, errors, refused, total_ns, self_ns, min_ns, max_ns } = *self;
        let (operation, is_uncalled) = (place / 2, place % 2 == 1);
        Cell { operation, is_uncalled, count, errors, refused, total_ns, self_ns, min_ns, max_ns, buckets }
    }
}

fn bucket(key: u64) -> u16 {
    u16::try_from(split(key, BUCKET_BITS).1).unwrap_or(u16::MAX)
}

/// The distinct numbers of a sorted list, each with its number of occurrences.
fn counted(sorted: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    sorted.chunk_by(|a, b| a == b).filter_map(|same| Some((*same.first()?, same.len() as u64)))
}

/// Appends a point, or adds its counts to the last point if slot and cell are equal.
fn add_point(points: &mut Vec<Point>, point: Point) {
    match points.last_mut().filter(|last| (last.slot, last.cell) == (point.slot, point.cell)) {
        Some(last) => {
            last.count += point.count;
            last.errors += point.errors;
        }
        None => points.push(point),
    }
}

/// The points with slots that are `factor` times as long.
fn merged(points: &[Point], factor: i64) -> Vec<Point> {
    let mut longer: Vec<Point> =
        points.iter().map(|point| Point { slot: point.slot.div_euclid(factor), ..*point }).collect();
    longer.sort_unstable_by_key(|point| (point.slot, point.cell));
    let mut merged = vec![];
    longer.into_iter().for_each(|point| add_point(&mut merged, point));
    merged
}
