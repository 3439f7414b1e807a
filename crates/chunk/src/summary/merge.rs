//! How are the summaries of several chunks of one series added? The result has the figures of a summary of all their calls.
//!
//! Each list becomes pairs of a key and figures. The pairs are sorted by key, and the figures of equal keys are added.

use std::collections::HashMap;
use std::hash::Hash;

use tacho_model::Operation;

use super::statuses::Statuses;
use super::{
    CallSummary, Cell, Edge, Link, LinkSource, LoosePart, Point, PointDurations, RequestClass, RequestSlot,
    SLOTS_S, minutes,
};
use crate::Caller;
use crate::execution::{Interner, part_gap};
use crate::limits::{SUMMARY_CELLS_MAX, SUMMARY_LINKS_MAX, SUMMARY_LOOSE_MAX, SUMMARY_POINTS_MAX};

/// Shortest slots of a sum by its span, from the first to the last slot, in seconds: the sum has slots of the second length if
/// its span is above the first. A chart has at most 120 steps of known lengths (`query/src/executions/timeline.rs`). A reader
/// uses a sum only for ranges that are at least as long. The steps of these ranges are multiples of the slots.
const SLOTS_BY_SPAN_S: [(i64, i64); 4] = [(-1, 60), (119 * 120, 300), (119 * 600, 900), (119 * 1_800, 3_600)];

impl CallSummary {
    /// Adds the summaries of chunks of one series. No two of the chunks have a call in common. `None` without summaries, and if
    /// a limit `SUMMARY_*_MAX` is exceeded.
    ///
    /// The slots are at least as long as those of each part, and longer if the sum covers a long time. If the two parts of a
    /// segment are in two of the chunks, the time between them is added to the self time of the operation that was open. Sums
    /// above the largest number saturate.
    pub fn merged(parts: &[&Self]) -> Option<Self> {
        let shortest = parts.iter().map(|part| part.slot_s).max()?;
        let mut merging =
            Merging { links: Some(vec![]), durations: Some(Durations::default()), ..Merging::default() };
        parts.iter().for_each(|part| merging.add(part));
        merging.finish(shortest)
    }
}

/// The index of each item of a list. Adds missing items.
fn indexes<T: Clone + Eq + Hash>(interner: &mut Interner<T>, list: &[T]) -> Vec<u32> {
    let index = |item: &T| interner.intern(item, |known| known == item, || item.clone());
    list.iter().map(index).collect()
}

/// The place of a cell: operation, and whether its calls have no caller. Cells are ordered by their places.
type CellPlace = (u32, bool);

/// Start of a slot in seconds, class and bucket; count.
type RequestCount = ((i64, u8, u16), [u64; 1]);

/// Source and called operation; count, errors and sum of durations.
type LinkFigures = ((LinkSource, u32), [u64; 3]);

/// The durations of points. Start of the slot in seconds, and cell.
#[derive(Default)]
struct Durations {
    totals: Vec<((i64, CellPlace), [u64; 1])>,
    /// With the bucket of the durations.
    counts: Vec<((i64, CellPlace, u8), [u64; 1])>,
}

#[derive(Default)]
struct Merging {
    operations: Interner<Operation>,
    callers: Interner<Caller>,
    /// Count, errors, refused calls, sum of durations and self time.
    cells: Vec<(CellPlace, [u64; 5])>,
    /// Shortest and longest duration of each cell with completed calls.
    bounds: HashMap<CellPlace, (u64, u64)>,
    buckets: Vec<((CellPlace, u16), [u64; 1])>,
    /// Start of the slot in seconds and cell; count and errors.
    points: Vec<((i64, CellPlace), [u64; 2])>,
    /// `None` if a part has no durations of points.
    durations: Option<Durations>,
    requests: Vec<RequestCount>,
    loose: Vec<LoosePart>,
    /// `None` if a part has no links.
    links: Option<Vec<LinkFigures>>,
    statuses: Statuses,
}

/// Adds the figures of equal keys. The result is in the order of the keys.
fn summed<K: Ord, const N: usize>(mut items: Vec<(K, [u64; N])>) -> Vec<(K, [u64; N])> {
    items.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    items.dedup_by(|(key, figures), (kept, sums)| {
        if key == kept {
            sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum = sum.saturating_add(*figure));
        }
        key == kept
    });
    items
}

impl Merging {
    fn add(&mut self, part: &CallSummary) {
        let operations = indexes(&mut self.operations, &part.operations);
        let callers = indexes(&mut self.callers, &part.callers);
        // A decoded summary has only indexes that exist.
        let operation = |index: u32| operations.get(index as usize).copied().unwrap_or_default();
        let caller = |index: u32| callers.get(index as usize).copied().unwrap_or_default();
        let place = |cell: &Cell| (operation(cell.operation), cell.is_uncalled);
        for cell in &part.cells {
            let Cell { count, errors, refused, total_ns, self_ns, min_ns, max_ns, .. } = *cell;
            let place = place(cell);
            self.cells.push((place, [count, errors, refused, total_ns, self_ns]));
            if count > 0 {
                let bounds = self.bounds.entry(place).or_insert((min_ns, max_ns));
                *bounds = (bounds.0.min(min_ns), bounds.1.max(max_ns));
            }
            self.buckets.extend(cell.buckets.iter().map(|(bucket, count)| ((place, *bucket), [*count])));
        }
        for point in &part.points {
            let Some(cell) = part.cells.get(point.cell as usize) else { continue };
            let key = (part.slot_start_s(point.slot), place(cell));
            self.points.push((key, [point.count, point.errors]));
        }
        match (&mut self.durations, &part.durations) {
            (Some(all), Some(durations)) => {
                for (point, of_point) in part.points.iter().zip(durations) {
                    let Some(cell) = part.cells.get(point.cell as usize) else { continue };
                    let (start, place) = (part.slot_start_s(point.slot), place(cell));
                    all.totals.push(((start, place), [of_point.total_ns]));
                    let count = |(bucket, count): &(u8, u64)| ((start, place, *bucket), [*count]);
                    all.counts.extend(of_point.counts.iter().map(count));
                }
            }
            (all, _) => *all = None,
        }
        for RequestSlot { slot, class, buckets } in &part.requests {
            let (start, class) = (part.slot_start_s(*slot), *class as u8);
            self.requests.extend(buckets.iter().map(|(bucket, count)| ((start, class, *bucket), [*count])));
        }
        self.loose.extend(part.loose.iter().map(|part| match part.edge {
            Edge::End(_) => *part,
            Edge::Start(at, start) => LoosePart { edge: Edge::Start(operation(at), start), ..*part },
        }));
        let source = |source: LinkSource| match source {
            LinkSource::Unknown => source,
            LinkSource::Caller(index) => LinkSource::Caller(caller(index)),
            LinkSource::Operation(index) => LinkSource::Operation(operation(index)),
        };
        let link = |link: &Link| {
            let key = (source(link.source), operation(link.operation));
            (key, [link.count, link.errors, link.total_ns])
        };
        self.statuses.merge(part.statuses.as_deref());
        match (&mut self.links, &part.links) {
            (Some(all), Some(links)) => all.extend(links.iter().map(link)),
            (all, _) => *all = None,
        }
    }

    fn finish(mut self, shortest: i64) -> Option<CallSummary> {
        let loose = self.join();
        let mut cells: Vec<Cell> = summed(self.cells).into_iter().map(|of| cell(of, &self.bounds)).collect();
        let places: HashMap<CellPlace, u32> =
            (0u32..).zip(&cells).map(|(index, cell)| ((cell.operation, cell.is_uncalled), index)).collect();
        for ((place, bucket), [count]) in summed(self.buckets) {
            let cell = places.get(&place).and_then(|index| cells.get_mut(*index as usize));
            cell.into_iter().for_each(|cell| cell.buckets.push((bucket, count)));
        }
        let (mut points, mut requests) = (summed(self.points), summed(self.requests));
        let first = points.first().map_or(0, |((start, _), _)| *start);
        let span = points.last().map_or(0, |((start, _), _)| start.saturating_sub(first));
        let by_span =
            SLOTS_BY_SPAN_S.into_iter().filter(|(above, _)| span > *above).map(|(_, length)| length);
        let shortest = by_span.fold(shortest, i64::max);
        let mut lengths = SLOTS_S.into_iter().filter(|length| *length >= shortest).peekable();
        let slot_s = loop {
            let length = lengths.next()?;
            points =
                longer(points, |(start, place)| (start.div_euclid(length).saturating_mul(length), place));
            requests = longer(requests, |(start, class, bucket)| {
                (start.div_euclid(length).saturating_mul(length), class, bucket)
            });
            if lengths.peek().is_none() || points.len().max(requests.len()) <= SUMMARY_POINTS_MAX {
                break length;
            }
        };
        let durations = self.durations.filter(|_| slot_s == SLOTS_S[0]).map(Durations::of_points);
        let point = |((start, place), [count, errors]): ((i64, CellPlace), [u64; 2])| {
            let slot = start.div_euclid(slot_s);
            Some(Point { slot, cell: *places.get(&place)?, count, errors })
        };
        let points: Vec<Point> = points.into_iter().filter_map(point).collect();
        let links = self.links.map(|links| summed(links).into_iter().map(link).collect::<Vec<_>>());
        let merged = CallSummary {
            operations: self.operations.items().into(),
            callers: self.callers.items().into(),
            slot_s,
            cells,
            points,
            durations: durations.filter(|durations| minutes::fits(durations)),
            requests: slots(requests, slot_s),
            loose,
            links,
            statuses: self.statuses.finish(),
        };
        merged.fits().then_some(merged)
    }

    /// Joins the loose parts of equal segments: adds the time between two parts to the self time of the call that was open.
    /// Returns the parts whose other part is missing.
    fn join(&mut self) -> Vec<LoosePart> {
        let is_start = |part: &LoosePart| matches!(part.edge, Edge::Start(..));
        self.loose.sort_unstable_by_key(|part| (part.key, is_start(part)));
        let mut left: Vec<LoosePart> = vec![];
        for part in std::mem::take(&mut self.loose) {
            let before = left.last().filter(|before: &&LoosePart| before.key == part.key);
            match (before.map(|before| before.edge), part.edge) {
                (Some(Edge::End(end)), Edge::Start(operation, start)) => {
                    left.pop();
                    // It is not known whether the open call has a caller. Readers add the cells of an operation.
                    self.cells.push(((operation, false), [0, 0, 0, 0, part_gap(end, start)]));
                }
                _ => left.push(part),
            }
        }
        left
    }
}

impl Durations {
    /// One item for each point, in the order of the points.
    fn of_points(self) -> Vec<PointDurations> {
        let mut counts = summed(self.counts).into_iter().peekable();
        let mut of_point = |(at, [total_ns]): ((i64, CellPlace), [u64; 1])| {
            let mut own = vec![];
            while let Some(((.., bucket), [count])) =
                counts.next_if(|((start, place, _), _)| (*start, *place) == at)
            {
                own.push((bucket, count));
            }
            PointDurations { total_ns, counts: own }
        };
        summed(self.totals).into_iter().map(&mut of_point).collect()
    }
}

fn longer<K: Ord, const N: usize>(items: Vec<(K, [u64; N])>, key: impl Fn(K) -> K) -> Vec<(K, [u64; N])> {
    summed(items.into_iter().map(|(old, figures)| (key(old), figures)).collect())
}

fn cell((place, figures): (CellPlace, [u64; 5]), bounds: &HashMap<CellPlace, (u64, u64)>) -> Cell {
    let ((operation, is_uncalled), [count, errors, refused, total_ns, self_ns]) = (place, figures);
    let (min_ns, max_ns) = bounds.get(&place).copied().unwrap_or_default();
    Cell {
        operation,
        is_uncalled,
        count,
        errors,
        refused,
        total_ns,
        self_ns,
        min_ns,
        max_ns,
        buckets: vec![],
    }
}

fn link(((source, operation), [count, errors, total_ns]): LinkFigures) -> Link {
    Link { source, operation, count, errors, total_ns }
}

fn slots(counts: Vec<RequestCount>, slot_s: i64) -> Vec<RequestSlot> {
    let mut slots: Vec<RequestSlot> = vec![];
    for ((start, class, bucket), [count]) in counts {
        let Some(class) = RequestClass::ALL.get(usize::from(class)).copied() else { continue };
        let slot = start.div_euclid(slot_s);
        match slots.last_mut().filter(|last| (last.slot, last.class) == (slot, class)) {
            Some(last) => last.buckets.push((bucket, count)),
            None => slots.push(RequestSlot { slot, class, buckets: vec![(bucket, count)] }),
        }
    }
    slots
}

impl CallSummary {
    fn fits(&self) -> bool {
        let lists =
            self.cells.iter().map(|cell| &cell.buckets).chain(self.requests.iter().map(|slot| &slot.buckets));
        let points = self.points.len().max(self.requests.len()).max(lists.map(Vec::len).sum());
        (self.operations.len() * 2).max(self.callers.len()) <= SUMMARY_CELLS_MAX
            && points <= SUMMARY_POINTS_MAX
            && self.loose.len() <= SUMMARY_LOOSE_MAX
            && self.links.as_ref().is_none_or(|links| links.len() <= SUMMARY_LINKS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tacho_model::{
        Attribute, AttributeValue, Event, EventKind, Operation, OperationKind, Segment, SpanId, TraceId,
    };

    use super::*;
    use crate::ExecutionBlock;
    use crate::execution::HTTP_STATUS;
    use crate::summary::build::{Form, summary_in_form};

    const MINUTE_NS: i64 = 60_000_000_000;

    fn operations(names: &[usize]) -> Vec<Operation> {
        let kinds = [OperationKind::Method, OperationKind::HttpServer];
        let operation = |n: &usize| Operation { kind: kinds[n % 2], name: n.to_string().into() };
        names.iter().map(operation).collect()
    }

    /// Two parts of a segment: operation 0 calls operation `n`, and the second part ends operation 0.
    fn parts(number: u64, minute: i64, called: u32, duration: u64) -> [Segment; 2] {
        let whole = Segment {
            trace: TraceId(u128::from(number) + 1),
            base: number << 8,
            part: 0,
            parent: number.is_multiple_of(3).then_some(SpanId(number + 1)),
            thread: "t".into(),
            start: minute * MINUTE_NS,
            carried: vec![],
            first_call: 0,
            events: vec![],
            // The status of operation 0, which ends in the second part, or of the called operation.
            attributes: vec![Attribute {
                call: (number % 2) as u32,
                key: HTTP_STATUS.into(),
                value: AttributeValue::Integer(200 + (number % 5).cast_signed()),
            }],
        };
        let events = |events: &[(u64, EventKind)]| -> Vec<Event> {
            events.iter().map(|(delta, kind)| Event { delta: *delta, kind: *kind }).collect()
        };
        let inner =
            [(0, EventKind::Enter(0)), (5, EventKind::Enter(called)), (duration, EventKind::ExitFailed)];
        let first = Segment { events: events(&inner), ..whole.clone() };
        let carried = vec![tacho_model::Carried { operation: 0, call: 0, age: duration + 1_000 }];
        let (part, start) = (1, whole.start + duration.cast_signed() + 1_000);
        let events = events(&[(0, EventKind::Exit)]);
        [first, Segment { part, start, carried, first_call: 2, events, attributes: vec![], ..whole }]
    }

    /// A summary with slots of one minute and durations.
    fn in_minutes(block: &ExecutionBlock) -> CallSummary {
        summary_in_form(block, Some(Form { slot_s: 60, has_durations: true })).unwrap()
    }

    /// The figures of a summary without its indexes: sums of the cells and points of each operation, and links with names.
    fn figures(summary: &CallSummary) -> impl PartialEq + std::fmt::Debug {
        let name = |operation: u32| summary.operations[operation as usize].name.to_string();
        let mut cells: Vec<_> = vec![];
        for cell in &summary.cells {
            let mut buckets = cell.buckets.clone();
            buckets.sort_unstable();
            let of_points = summary.points.iter().filter(|point| {
                summary.cells[point.cell as usize].operation == cell.operation
                    && summary.cells[point.cell as usize].is_uncalled == cell.is_uncalled
            });
            let points: Vec<_> = of_points.map(|point| (point.slot, point.count, point.errors)).collect();
            let durations = summary.points.iter().zip(summary.durations.iter().flatten());
            let durations =
                durations.filter(|(point, _)| summary.cells[point.cell as usize].place() == cell.place());
            let durations: Vec<_> = durations.map(|(_, of)| (of.total_ns, of.counts.clone())).collect();
            let Cell { count, errors, total_ns, min_ns, max_ns, is_uncalled, .. } = *cell;
            let is_empty = count == 0;
            if !is_empty {
                cells.push((
                    name(cell.operation),
                    is_uncalled,
                    [count, errors, total_ns, min_ns, max_ns],
                    buckets,
                    points,
                    durations,
                ));
            }
        }
        cells.sort();
        let mut selves = std::collections::BTreeMap::new();
        for cell in &summary.cells {
            *selves.entry(name(cell.operation)).or_insert(0) += cell.self_ns;
        }
        selves.retain(|_, self_ns| *self_ns > 0);
        let link = |link: &Link| {
            let source = match link.source {
                LinkSource::Operation(operation) => name(operation),
                other => format!("{other:?}"),
            };
            (source, name(link.operation), link.count, link.errors, link.total_ns)
        };
        let mut links: Vec<_> = summary.links.iter().flatten().map(link).collect();
        links.sort();
        let requests: Vec<_> =
            summary.requests.iter().map(|slot| (slot.slot, slot.class as u8, slot.buckets.clone())).collect();
        (cells, selves, links, requests, summary.loose.len(), summary.statuses.clone())
    }

    proptest! {
        #[test]
        fn the_sum_of_summaries_is_the_summary_of_all_calls(
            seeds in prop::collection::vec((0i64..300, 1u32..4, 0u64..1 << 40, 0usize..3, 0usize..3), 1..40),
        ) {
            // Each block has its own order of operations.
            let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]];
            let mut blocks = vec![ExecutionBlock::new(); 3];
            let mut all = ExecutionBlock::new();
            for (number, (minute, called, duration, first, second)) in (0u64..).zip(&seeds) {
                for (part, block) in parts(number, *minute, *called, *duration).into_iter().zip([first, second]) {
                    all.push(&part, &operations(&orders[0]));
                    let order = &orders[*block];
                    let renamed = |operation: u32| {
                        order.iter().position(|n| *n as u32 == operation).unwrap() as u32
                    };
                    let mut own = part.clone();
                    own.carried.iter_mut().for_each(|call| call.operation = renamed(call.operation));
                    for event in &mut own.events {
                        if let EventKind::Enter(operation) = &mut event.kind {
                            *operation = renamed(*operation);
                        }
                    }
                    blocks[*block].push(&own, &operations(order));
                }
            }
            all.set_callers(&crate::find_callers(&[(tacho_model::SeriesId(1), &all)]).remove(0));
            for block in &mut blocks {
                block.set_callers(&crate::find_callers(&[(tacho_model::SeriesId(1), &*block)]).remove(0));
            }
            let summaries: Vec<CallSummary> =
                blocks.iter().filter(|block| !block.is_empty()).map(in_minutes).collect();
            let merged = CallSummary::merged(&summaries.iter().collect::<Vec<_>>()).unwrap();
            let form = Form { slot_s: merged.slot_s, has_durations: merged.durations.is_some() };
            let whole = summary_in_form(&all, Some(form)).unwrap();
            prop_assert_eq!(figures(&merged), figures(&whole));
            prop_assert_eq!(CallSummary::decode_with_names(&merged.encode_with_names()).unwrap(), merged);
            // Summaries are added in any grouping.
            let (last, rest) = summaries.split_last().unwrap();
            let rest = CallSummary::merged(&rest.iter().collect::<Vec<_>>());
            let again = CallSummary::merged(&rest.iter().chain([last]).collect::<Vec<_>>()).unwrap();
            prop_assert_eq!(figures(&again), figures(&whole));
        }
    }

    #[test]
    fn a_long_span_or_many_points_make_slots_longer() {
        let summary = |minutes: i64, step: i64| {
            let mut block = ExecutionBlock::new();
            for minute in (0..=minutes).step_by(usize::try_from(step).unwrap()) {
                for part in parts(minute.cast_unsigned(), minute, 1, 7) {
                    block.push(&part, &operations(&[0, 1]));
                }
            }
            in_minutes(&block)
        };
        for (minutes, slot_s) in
            [(238, 60), (239, 300), (1_190, 300), (1_191, 900), (3_570, 900), (3_571, 3_600)]
        {
            let summary = summary(minutes, 1);
            let merged = CallSummary::merged(&[&summary]).unwrap();
            assert_eq!(merged.slot_s, slot_s, "{minutes}");
            let count = |summary: &CallSummary| summary.points.iter().map(|point| point.count).sum::<u64>();
            assert_eq!(count(&merged), count(&summary));
        }
        assert_eq!(CallSummary::merged(&[]), None);
        let mut long = summary(10, 10);
        long.slot_s = 3_600;
        assert_eq!(CallSummary::merged(&[&long, &summary(10, 1)]).unwrap().slot_s, 3_600);
    }

    #[test]
    fn bytes_that_are_not_a_summary_are_refused() {
        let mut block = ExecutionBlock::new();
        parts(1, 0, 1, 7).iter().for_each(|part| block.push(part, &operations(&[0, 1])));
        let bytes = CallSummary::of(&block).unwrap().encode_with_names();
        for cut in 0..bytes.len() {
            assert!(CallSummary::decode_with_names(&bytes[..cut]).is_err(), "{cut}");
        }
        assert!(CallSummary::decode_with_names(&[&bytes[..], &[0]].concat()).is_err());
    }
}
