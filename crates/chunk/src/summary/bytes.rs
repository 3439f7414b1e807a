//! How is a summary stored, and how is it read from untrusted bytes? As columns of numbers, each with its codec and its length
//! (`docs/format/chunk.md`, *Summary*).
//!
//! This file and `header.rs` use each other: the header has the sizes of the summary, and a summary is valid only
//! if it agrees with the header.

use std::sync::Arc;

use tacho_model::{Operation, Timestamp, TraceId};

use super::build::{Form, summary_in_form};
use super::columns::{Taker, Writer, stated, sum};
use super::{
    Buckets, CallSummary, Cell, Edge, LoosePart, PartKey, Point, RequestClass, RequestSlot, SECOND_NS,
    SLOTS_S, bucket_count, links, minutes, statuses,
};
use crate::bytes::{Reader, low_word, put_varint, unzigzag, zigzag};
use crate::header::Header;
use crate::limits::{
    CHUNK_EVENTS_MAX, SUMMARY_CELLS_MAX, SUMMARY_LINKS_MAX, SUMMARY_LOOSE_MAX, SUMMARY_POINTS_MAX,
    SUMMARY_STATUSES_MAX,
};
use crate::{Caller, Encoding, Error, ExecutionBlock};

/// Version of summaries without links.
const UNLINKED_VERSION: u8 = 1;
/// Version of summaries without durations of points.
const TIMELESS_VERSION: u8 = 2;
/// Version of summaries with links and durations of points, but without statuses.
const STATUSLESS_VERSION: u8 = 3;
/// Version of summaries with links and statuses. They may have durations of points.
const VERSION: u8 = 4;

/// The description of the summary in the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SummaryInfo {
    /// 0: the chunk has no summary.
    pub bytes: usize,
    /// CRC-32C of the summary and of the columns of names, which follow it; 0 without a summary.
    pub(crate) checksum: u32,
}

impl SummaryInfo {
    /// `names` are the bytes of the columns of names.
    pub(crate) fn of(summary: &[u8], names: &[u8]) -> Self {
        if summary.is_empty() {
            return Self::default();
        }
        Self { bytes: summary.len(), checksum: crc32c::crc32c_append(crc32c::crc32c(summary), names) }
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.bytes as u64);
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }

    pub(crate) fn take(reader: &mut Reader<'_>, bytes_max: usize) -> Result<Self, Error> {
        let bytes = reader.size("bytes of the summary", bytes_max)?;
        Ok(Self { bytes, checksum: u32::from_le_bytes(reader.array("checksum of the summary")?) })
    }

    /// `bytes` contains the summary and the columns of names.
    pub(crate) fn verify(&self, bytes: &[u8]) -> Result<(), Error> {
        let got = crc32c::crc32c(bytes);
        if got == self.checksum {
            return Ok(());
        }
        Err(Error::SummaryChecksum { expected: self.checksum, got })
    }
}

struct Counts {
    cells: usize,
    points: usize,
    requests: usize,
    buckets: usize,
    loose: usize,
    /// `None` in version 1.
    links: Option<usize>,
    /// `None` in versions 1 and 2, and if the number in version 4 is 0.
    durations: Option<usize>,
    /// `None` in versions 1 to 3.
    statuses: Option<usize>,
}

pub(crate) fn encode(summary: &CallSummary, encoding: &Encoding) -> Vec<u8> {
    let CallSummary { cells, points, requests, loose, links, .. } = summary;
    // A summary without links has no durations of points and no statuses.
    let durations = summary.durations.as_ref().filter(|_| links.is_some());
    let statuses = summary.statuses.as_ref().filter(|_| links.is_some());
    let lists = || cells.iter().map(|cell| &cell.buckets).chain(requests.iter().map(|slot| &slot.buckets));
    let slots = points.iter().map(|point| point.slot).chain(requests.iter().map(|slot| slot.slot));
    let first = slots.min().unwrap_or_default();
    let version = match (links, durations, statuses) {
        (None, ..) => UNLINKED_VERSION,
        (Some(_), None, None) => TIMELESS_VERSION,
        (Some(_), Some(_), None) => STATUSLESS_VERSION,
        (Some(_), _, Some(_)) => VERSION,
    };
    let mut writer = Writer { encoding, out: vec![version] };
    put_varint(&mut writer.out, summary.slot_s.cast_unsigned());
    put_varint(&mut writer.out, zigzag(first));
    let buckets = lists().map(Vec::len).sum();
    for count in [cells.len(), points.len(), requests.len(), buckets, loose.len()] {
        put_varint(&mut writer.out, count as u64);
    }
    links.iter().for_each(|links| put_varint(&mut writer.out, links.len() as u64));
    let of_points = durations.map(|durations| minutes::count(durations) as u64);
    match statuses {
        None => of_points.iter().for_each(|count| put_varint(&mut writer.out, *count)),
        Some(statuses) => {
            put_varint(&mut writer.out, of_points.map_or(0, |count| count + 1));
            put_varint(&mut writer.out, statuses.len() as u64);
        }
    }
    writer.column(cells.iter().map(|cell| u64::from(cell.operation) * 2 + u64::from(cell.is_uncalled)));
    let figures: [fn(&Cell) -> u64; 7] = [
        |cell| cell.count,
        |cell| cell.errors,
        |cell| cell.refused,
        |cell| cell.total_ns,
        |cell| cell.self_ns,
        |cell| cell.min_ns,
        |cell| cell.max_ns,
    ];
    figures.into_iter().for_each(|figure| writer.column(cells.iter().map(figure)));
    let slot = |slot: i64| slot.wrapping_sub(first).cast_unsigned();
    writer.column(points.iter().map(|point| slot(point.slot)));
    writer.column(points.iter().map(|point| point.cell.into()));
    writer.column(points.iter().map(|point| point.count));
    writer.column(points.iter().map(|point| point.errors));
    writer.column(requests.iter().map(|requests| slot(requests.slot) * 3 + requests.class as u64));
    writer.column(lists().map(|buckets| buckets.len() as u64));
    writer.column(lists().flat_map(|buckets| gaps(buckets)));
    writer.column(lists().flatten().map(|(_, count)| *count));
    put_loose(&mut writer, loose);
    links.iter().for_each(|links| links::put(&mut writer, links, summary.callers.len()));
    durations.iter().for_each(|durations| minutes::put(&mut writer, durations));
    statuses.iter().for_each(|list| statuses::put(&mut writer, list));
    writer.out
}

/// The first bucket, and the difference of each other bucket from the previous bucket.
fn gaps(buckets: &[(u16, u64)]) -> impl Iterator<Item = u64> {
    let mut before = 0;
    buckets.iter().map(move |(bucket, _)| u64::from(bucket - std::mem::replace(&mut before, *bucket)))
}

fn put_loose(writer: &mut Writer<'_>, loose: &[LoosePart]) {
    let trace = |shift: u32| loose.iter().map(move |part| low_word(part.key.trace.0 >> shift));
    writer.column(trace(64));
    writer.column(trace(0));
    writer.column(loose.iter().map(|part| part.key.base));
    writer.column(loose.iter().map(|part| part.key.part.into()));
    let edge = |part: &LoosePart| match part.edge {
        Edge::End(at) => (0, at),
        Edge::Start(operation, at) => (u64::from(operation) + 1, at),
    };
    writer.column(loose.iter().map(|part| edge(part).0));
    writer.column(loose.iter().map(|part| edge(part).1.cast_unsigned()));
}

fn take_counts(reader: &mut Reader<'_>, version: u8) -> Result<Counts, Error> {
    Ok(Counts {
        cells: reader.size("cells of the summary", SUMMARY_CELLS_MAX)?,
        points: reader.size("points of the summary", SUMMARY_POINTS_MAX)?,
        requests: reader.size("slots with requests", SUMMARY_POINTS_MAX)?,
        buckets: reader.size("buckets of the summary", SUMMARY_POINTS_MAX)?,
        loose: reader.size("loose parts of the summary", SUMMARY_LOOSE_MAX)?,
        links: (version > UNLINKED_VERSION)
            .then(|| reader.size("links of the summary", SUMMARY_LINKS_MAX))
            .transpose()?,
        durations: match version {
            ..=TIMELESS_VERSION => None,
            STATUSLESS_VERSION => Some(reader.size("buckets of points of the summary", SUMMARY_POINTS_MAX)?),
            _ => reader.size("1 + buckets of points of the summary", SUMMARY_POINTS_MAX + 1)?.checked_sub(1),
        },
        statuses: (version > STATUSLESS_VERSION)
            .then(|| reader.size("statuses of the summary", SUMMARY_STATUSES_MAX))
            .transpose()?,
    })
}

/// Decodes a summary, and checks that its lists are in order and agree with each other.
pub(crate) fn decode(
    bytes: &[u8],
    operations: Arc<[Operation]>,
    callers: Arc<[Caller]>,
) -> Result<CallSummary, Error> {
    let mut taker = Taker { reader: Reader::new(bytes) };
    let version = taker.reader.byte("version of the summary")?;
    if version > VERSION {
        return Err(Error::SummaryVersion { got: version, known: VERSION });
    }
    if version == 0 {
        return Err(Error::value("version of the summary", version));
    }
    let seconds = taker.reader.varint("length of a slot")?;
    let known = SLOTS_S.into_iter().find(|known| known.cast_unsigned() == seconds);
    let slot_s = known.ok_or(Error::value("length of a slot", seconds))?;
    let first = unzigzag(taker.reader.varint("first slot")?);
    let counts = take_counts(&mut taker.reader, version)?;
    let mut cells = take_cells(&mut taker, counts.cells, operations.len())?;
    let points = take_points(&mut taker, counts.points, first, &cells)?;
    let mut requests = take_requests(&mut taker, counts.requests, first)?;
    let lists = cells.iter_mut().map(|cell| &mut cell.buckets);
    let lists = lists.chain(requests.iter_mut().map(|slot| &mut slot.buckets)).collect();
    take_buckets(&mut taker, counts.buckets, lists)?;
    check_counts(&cells, &points, &requests)?;
    let loose = take_loose(&mut taker, counts.loose, operations.len())?;
    let links = |count| links::take(&mut taker, count, callers.len(), operations.len());
    let links = counts.links.map(links).transpose()?;
    links.iter().try_for_each(|links| links::check_counts(links, &cells, operations.len()))?;
    let durations = |count| minutes::take(&mut taker, count, &points, &cells);
    let durations = counts.durations.map(durations).transpose()?;
    if durations.is_some() && slot_s != SLOTS_S[0] {
        return Err(Error::value("length of a slot with durations", seconds));
    }
    let statuses = counts.statuses.map(|count| statuses::take(&mut taker, count)).transpose()?;
    taker.reader.end("summary")?;
    Ok(CallSummary {
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

fn take_cells(taker: &mut Taker<'_>, count: usize, operations: usize) -> Result<Vec<Cell>, Error> {
    let places = taker.indexes("cell", count, operations.saturating_mul(2))?;
    if !places.is_sorted_by(|a, b| a < b) {
        return Err(Error::SummaryDisordered { what: "cells" });
    }
    let mut figure = |what| taker.column(what, count).map(Vec::into_iter);
    let (mut counts, mut errors, mut refused) =
        (figure("count")?, figure("errors")?, figure("refused calls")?);
    let (mut totals, mut selves) = (figure("sum of durations")?, figure("self time")?);
    let (mut mins, mut maxs) = (figure("shortest duration")?, figure("longest duration")?);
    let next = |figures: &mut std::vec::IntoIter<u64>| figures.next().unwrap_or_default();
    let cell = |place: u64| Cell {
        operation: u32::try_from(place / 2).unwrap_or(u32::MAX),
        is_uncalled: place % 2 == 1,
        count: next(&mut counts),
        errors: next(&mut errors),
        refused: next(&mut refused),
        total_ns: next(&mut totals),
        self_ns: next(&mut selves),
        min_ns: next(&mut mins),
        max_ns: next(&mut maxs),
        buckets: vec![],
    };
    Ok(places.into_iter().map(cell).collect())
}

fn take_points(taker: &mut Taker<'_>, count: usize, first: i64, cells: &[Cell]) -> Result<Vec<Point>, Error> {
    let slots = taker.column("slot of a point", count)?;
    let of_cells = taker.indexes("cell of a point", count, cells.len())?;
    let (counts, errors) =
        (taker.column("count of a point", count)?, taker.column("errors of a point", count)?);
    let point = |(((slot, cell), count), errors): (((u64, u64), u64), u64)| -> Result<Point, Error> {
        let slot = first.checked_add_unsigned(slot).ok_or(Error::value("slot of a point", slot))?;
        Ok(Point { slot, cell: u32::try_from(cell).unwrap_or(u32::MAX), count, errors })
    };
    let points: Vec<Point> =
        slots.into_iter().zip(of_cells).zip(counts).zip(errors).map(point).collect::<Result<_, _>>()?;
    if !points.is_sorted_by(|a, b| (a.slot, a.cell) < (b.slot, b.cell)) {
        return Err(Error::SummaryDisordered { what: "points" });
    }
    Ok(points)
}

fn take_requests(taker: &mut Taker<'_>, count: usize, first: i64) -> Result<Vec<RequestSlot>, Error> {
    let places = taker.column("slot with requests", count)?;
    if !places.is_sorted_by(|a, b| a < b) {
        return Err(Error::SummaryDisordered { what: "slots with requests" });
    }
    let requests = |place: u64| -> Result<RequestSlot, Error> {
        let wrong = || Error::value("slot with requests", place);
        let slot = first.checked_add_unsigned(place / 3).ok_or_else(wrong)?;
        let class = usize::try_from(place % 3).ok().and_then(|class| RequestClass::ALL.get(class));
        Ok(RequestSlot { slot, class: *class.ok_or_else(wrong)?, buckets: vec![] })
    };
    places.into_iter().map(requests).collect()
}

fn take_buckets(taker: &mut Taker<'_>, count: usize, lists: Vec<&mut Buckets>) -> Result<(), Error> {
    let lengths = taker.within("number of buckets", lists.len(), count as u64)?;
    let gaps = taker.within("bucket", count, bucket_count() as u64 - 1)?;
    let counts = taker.column("count of a bucket", count)?;
    let sum = lengths.iter().fold(0u64, |sum, length| sum.saturating_add(*length));
    stated("number of buckets", count as u64, sum)?;
    let mut buckets = gaps.into_iter().zip(counts);
    for (list, length) in lists.into_iter().zip(lengths) {
        let mut last = 0u64;
        for (place, (gap, count)) in (0..length).zip(&mut buckets) {
            last += gap;
            let bucket = u16::try_from(last).ok().filter(|bucket| usize::from(*bucket) < bucket_count());
            let is_new = place == 0 || gap > 0;
            match bucket.filter(|_| is_new && count > 0) {
                Some(bucket) => list.push((bucket, count)),
                None => return Err(Error::value("bucket", last)),
            }
        }
    }
    Ok(())
}

fn take_loose(taker: &mut Taker<'_>, count: usize, operations: usize) -> Result<Vec<LoosePart>, Error> {
    let (highs, lows) =
        (taker.column("trace of a loose part", count)?, taker.column("trace of a loose part", count)?);
    let bases = taker.column("base of a loose part", count)?;
    let parts = taker.within("number of a loose part", count, u32::MAX.into())?;
    let edges = taker.within("operation of a loose part", count, operations as u64)?;
    let times = taker.column("time of a loose part", count)?;
    let traces =
        highs.into_iter().zip(lows).map(|(high, low)| TraceId(u128::from(high) << 64 | u128::from(low)));
    let keys = traces.zip(bases).zip(parts).map(|((trace, base), part)| {
        let part = u32::try_from(part).unwrap_or(u32::MAX);
        PartKey { trace, base, part }
    });
    let loose = |(key, (edge, at)): (PartKey, (u64, u64))| {
        let (operation, at) = (edge.checked_sub(1), at.cast_signed());
        let operation = operation.map(|operation| u32::try_from(operation).unwrap_or(u32::MAX));
        LoosePart { key, edge: operation.map_or(Edge::End(at), |operation| Edge::Start(operation, at)) }
    };
    Ok(keys.zip(edges.into_iter().zip(times)).map(loose).collect())
}

/// Checks that the counts of each cell, of its buckets and of its points agree. Checks upper limits of errors, shortest
/// durations, requests and refused calls.
fn check_counts(cells: &[Cell], points: &[Point], requests: &[RequestSlot]) -> Result<(), Error> {
    let mut of_points = vec![(0u64, 0u64); cells.len()];
    for point in points {
        at_most("errors of a point", point.errors, point.count)?;
        if let Some((count, errors)) = of_points.get_mut(point.cell as usize) {
            *count = sum("count of a point", [*count, point.count])?;
            *errors = sum("errors of a point", [*errors, point.errors])?;
        }
    }
    for (cell, of_points) in cells.iter().zip(of_points) {
        let of_buckets = sum("count of a bucket", cell.buckets.iter().map(|(_, count)| *count))?;
        for (what, found) in [("calls in points", of_points.0), ("calls in buckets", of_buckets)] {
            stated(what, cell.count, found)?;
        }
        stated("errors in points", cell.errors, of_points.1)?;
        at_most("shortest duration", cell.min_ns, cell.max_ns)?;
    }
    let calls = sum("count", cells.iter().map(|cell| cell.count))?;
    let buckets = requests.iter().flat_map(|slot| &slot.buckets);
    at_most(
        "calls in slots with requests",
        sum("count of a bucket", buckets.map(|(_, count)| *count))?,
        calls,
    )
}

/// Compares a summary with the header of its chunk.
pub(crate) fn check_header(summary: &CallSummary, header: &Header) -> Result<(), Error> {
    let calls = sum("count", summary.cells.iter().map(|cell| cell.count))?;
    stated("calls of the summary", header.count as u64, calls)?;
    // A refused call may end in another chunk, so the number of calls is no limit. Its status is an attribute of this chunk. A
    // chunk has at most `CHUNK_EVENTS_MAX` attributes.
    let refused = sum("refused calls", summary.cells.iter().map(|cell| cell.refused))?;
    at_most("refused calls", refused, CHUNK_EVENTS_MAX as u64)?;
    let slot_of = |at: Timestamp| at.div_euclid(SECOND_NS).div_euclid(summary.slot_s);
    let known = slot_of(header.start)..=slot_of(header.end);
    let slots = summary.points.iter().map(|point| point.slot);
    let mut slots = slots.chain(summary.requests.iter().map(|requests| requests.slot));
    let outside = slots.find(|slot| !known.contains(slot));
    outside.map_or(Ok(()), |slot| Err(Error::SummarySlot { slot, first: *known.start(), last: *known.end() }))
}

fn at_most(what: &'static str, value: u64, max: u64) -> Result<(), Error> {
    if value <= max { Ok(()) } else { Err(Error::Limit { what, value, max }) }
}

/// Compares a summary with the calls of its chunk.
pub(crate) fn check(summary: &CallSummary, block: &ExecutionBlock) -> Result<(), Error> {
    let form = Form { slot_s: summary.slot_s, has_durations: summary.durations.is_some() };
    let found = summary_in_form(block, Some(form));
    let found = found
        .ok_or(Error::SummaryDiffers { what: "numbers of cells, points, buckets, links or loose parts" })?;
    let differs = [
        ("operations", summary.operations != found.operations),
        ("callers", summary.callers != found.callers),
        ("cells", summary.cells != found.cells),
        ("points", summary.points != found.points),
        ("durations of points", summary.durations != found.durations),
        ("slots with requests", summary.requests != found.requests),
        ("loose parts", summary.loose != found.loose),
        ("links", summary.links.is_some() && summary.links != found.links),
        ("statuses", summary.statuses.is_some() && summary.statuses != found.statuses),
    ];
    let first = differs.into_iter().find(|(_, differs)| *differs);
    first.map_or(Ok(()), |(what, _)| Err(Error::SummaryDiffers { what }))
}

#[cfg(test)]
mod tests {
    use tacho_model::{OperationKind, SeriesId};

    use super::*;
    use crate::summary::{Link, LinkSource, PointDurations, StatusDurations, one_call};
    use crate::{Chunk, encode_executions};

    fn operations(count: usize) -> Arc<[Operation]> {
        let operation = |n: usize| Operation { kind: OperationKind::HttpServer, name: n.to_string().into() };
        (0..count).map(operation).collect()
    }

    fn callers() -> Arc<[Caller]> {
        let called = |series| Caller { series: SeriesId(series), operation: operations(1)[0].clone() };
        Arc::new([called(1), called(2)])
    }

    fn link(source: LinkSource, count: u64) -> Link {
        Link { source, operation: 0, count, errors: 1, total_ns: 16 }
    }

    /// Two calls of 7 and 9 ns in slot 10, with a caller.
    fn two_calls() -> CallSummary {
        let buckets: Buckets = vec![(7, 1), (9, 1)];
        let cell = Cell {
            operation: 0,
            is_uncalled: false,
            count: 2,
            errors: 1,
            refused: 1,
            total_ns: 16,
            self_ns: 16,
            min_ns: 7,
            max_ns: 9,
            buckets: buckets.clone(),
        };
        let points = vec![Point { slot: 10, cell: 0, count: 2, errors: 1 }];
        let requests = vec![RequestSlot { slot: 10, class: RequestClass::Served, buckets }];
        CallSummary {
            operations: operations(1),
            callers: callers(),
            slot_s: 60,
            cells: vec![cell],
            points,
            durations: Some(vec![PointDurations { total_ns: 16, counts: vec![(0, 2)] }]),
            requests,
            loose: vec![],
            links: Some(vec![link(LinkSource::Unknown, 2)]),
            statuses: Some(vec![status(404, 7, 9)]),
        }
    }

    fn status(status: i64, min_ns: u64, max_ns: u64) -> StatusDurations {
        StatusDurations { status, min_ns, max_ns }
    }

    #[test]
    fn statuses_and_durations_of_points_are_independent() {
        for (durations, statuses, version) in
            [(false, false, 2), (true, false, 3), (false, true, 4), (true, true, 4)]
        {
            let mut summary = two_calls();
            summary.durations = summary.durations.filter(|_| durations);
            summary.statuses = summary.statuses.filter(|_| statuses);
            let bytes = summary.encode();
            assert_eq!(bytes[0], version);
            assert_eq!(decode(&bytes, operations(1), callers()).unwrap(), summary);
        }
    }

    #[test]
    fn statuses_that_contradict_each_other_are_refused() {
        let set =
            |statuses: &[StatusDurations]| refused(1, |summary| summary.statuses = Some(statuses.to_vec()));
        assert_eq!(set(&[]), "");
        assert_eq!(set(&[status(i64::MIN, 0, 0), status(-1, 3, 3), status(i64::MAX, 0, u64::MAX)]), "");
        let disordered = "statuses of the summary are not in order";
        assert_eq!(set(&[status(200, 0, 0), status(200, 0, 0)]), disordered);
        assert_eq!(set(&[status(500, 0, 0), status(200, 0, 0)]), disordered);
        assert_eq!(set(&[status(200, 8, 7)]), "shortest duration of a status is 8, at most 7 is allowed");
        let many: Vec<_> = (0..=SUMMARY_STATUSES_MAX as i64).map(|n| status(n, 0, 0)).collect();
        assert_eq!(set(&many), "statuses of the summary is 65, at most 64 is allowed");
    }

    /// Changes a summary and decodes it with this number of operations. Returns the error, or an empty text.
    fn refused(operations_count: usize, change: impl Fn(&mut CallSummary)) -> String {
        let mut summary = two_calls();
        change(&mut summary);
        let decoded = decode(&summary.encode(), operations(operations_count), callers());
        decoded.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn indexes_without_a_target_are_refused() {
        assert_eq!(refused(1, |_| ()), "");
        let no_operation = "cell of the summary: the index 0 is invalid: 0 values exist";
        assert_eq!(refused(0, |_| ()), no_operation);
        let next_operation = "cell of the summary: the index 2 is invalid: 2 values exist";
        assert_eq!(refused(1, |summary| summary.cells[0].operation = 1), next_operation);
        let no_cell = "cell of a point of the summary: the index 0 is invalid: 0 values exist";
        assert_eq!(refused(1, |summary| summary.cells.clear()), no_cell);
        let next_cell = "cell of a point of the summary: the index 1 is invalid: 1 values exist";
        assert_eq!(refused(1, |summary| summary.points[0].cell = 1), next_cell);
    }

    #[test]
    fn figures_that_contradict_each_other_are_refused() {
        let limit = |what: &str, value: u64, max: u64| format!("{what} is {value}, at most {max} is allowed");
        assert_eq!(refused(1, |summary| summary.cells[0].min_ns = 10), limit("shortest duration", 10, 9));
        assert_eq!(refused(1, |summary| summary.points[0].errors = 3), limit("errors of a point", 3, 2));
        let requests = |summary: &mut CallSummary| summary.requests[0].buckets[1].1 = 2;
        assert_eq!(refused(1, requests), limit("calls in slots with requests", 3, 2));
    }

    #[test]
    fn sums_above_the_largest_number_are_refused() {
        let above = |what: &str| format!("the sum of {what} in the summary is above 2^64 - 1");
        // Saturating sums of these figures would agree.
        let most = |summary: &mut CallSummary| {
            summary.cells[0].count = u64::MAX;
            summary.points[0].count = u64::MAX;
            summary.cells[0].buckets[1].1 = u64::MAX;
        };
        assert_eq!(refused(1, most), above("count of a bucket"));
        let points = |summary: &mut CallSummary| {
            most(summary);
            summary.points.push(Point { slot: 11, cell: 0, count: 5, errors: 0 });
        };
        assert_eq!(refused(1, points), above("count of a point"));
        let cells = |summary: &mut CallSummary| {
            most(summary);
            summary.cells[0].buckets[1].1 -= 1;
            summary.cells.push(Cell { is_uncalled: true, ..two_calls().cells[0].clone() });
            summary.points.push(Point { slot: 10, cell: 1, count: 2, errors: 1 });
        };
        assert_eq!(refused(1, cells), above("count"));
    }

    #[test]
    fn links_that_contradict_the_cells_are_refused() {
        let set = |links: Vec<Link>| refused(1, |summary| summary.links = Some(links.clone()));
        let all = [LinkSource::Unknown, LinkSource::Caller(1), LinkSource::Operation(0)];
        all.into_iter().for_each(|source| assert_eq!(set(vec![link(source, 2)]), "", "{source:?}"));
        let one = |source, errors| Link { errors, ..link(source, 1) };
        assert_eq!(set(vec![one(all[0], 1), one(all[1], 0)]), "");
        assert_eq!(set(vec![]), "calls in links is 0, the header states 2");
        assert_eq!(set(vec![link(all[0], 3)]), "calls in links is 3, the header states 2");
        assert_eq!(
            set(vec![Link { errors: 0, ..link(all[0], 2) }]),
            "errors in links is 0, the header states 1"
        );
        let disordered = "links of the summary are not in order";
        assert_eq!(set(vec![one(all[1], 0), one(all[0], 1)]), disordered);
        assert_eq!(set(vec![one(all[1], 0), one(all[1], 1)]), disordered);
        let absent = |index: u64| {
            format!("source of a link of the summary: the index {index} is invalid: 4 values exist")
        };
        assert_eq!(set(vec![link(LinkSource::Operation(1), 2)]), absent(4));
        let called = set(vec![Link { operation: 1, ..link(all[0], 2) }]);
        assert_eq!(called, "operation of a link of the summary: the index 1 is invalid: 1 values exist");
        // A summary of version 1 has no links.
        assert_eq!(refused(1, |summary| summary.links = None), "");
    }

    #[test]
    fn a_summary_that_contradicts_the_header_is_refused() {
        let mut block = ExecutionBlock::new();
        block.push(&one_call(0, 7), &operations(1));
        let bytes = encode_executions(&block);
        let mut header = Chunk::open_header(&bytes, bytes.len()).unwrap();
        let mut check_summary = |summary: &CallSummary, count: usize, start_s: i64, end_s: i64| {
            (header.count, header.start, header.end) = (count, start_s * SECOND_NS, end_s * SECOND_NS);
            check_header(summary, &header).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let max = CHUNK_EVENTS_MAX as u64;
        let mut refused = two_calls();
        refused.cells[0].refused = max + 1;
        let limit = format!("refused calls is {}, at most {max} is allowed", max + 1);
        assert_eq!(check_summary(&refused, 2, 659, 700), limit);
        let mut check = |count, start_s, end_s| check_summary(&two_calls(), count, start_s, end_s);
        assert_eq!(check(2, 659, 700), "");
        assert_eq!(check(2, 0, 600), "");
        assert_eq!(check(3, 600, 700), "calls of the summary is 2, the header states 3");
        let outside = |first, last| {
            format!("slot 10 of the summary is outside of the chunk, which has slots {first} to {last}")
        };
        assert_eq!(check(2, 660, 700), outside(11, 11));
        assert_eq!(check(2, -60, 599), outside(-1, 9));
    }
}
