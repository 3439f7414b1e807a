//! Which operations called which, and how often? A call belongs to one link, except calls without a caller, which have none.
//!
//! Most links are between calls of one segment. They depend only on the shape of the segment, so they are looked up once for each
//! shape.

use std::collections::HashMap;

use super::columns::{Taker, Writer, stated, sum};
use super::{Cell, Link, LinkSource};
use crate::execution::{RowRef, Visit};
use crate::limits::SUMMARY_LINKS_MAX;
use crate::{Error, ExecutionBlock};

/// The links of a block, while its calls are counted.
#[derive(Default)]
pub(super) struct Links {
    /// Index in `figures` of each pair of source and operation.
    places: HashMap<(LinkSource, u32), usize>,
    figures: Vec<Figures>,
    /// For each shape with a counted row: the place of the link of each call; `None` for outermost calls.
    shapes: Vec<Option<Box<[Option<usize>]>>>,
}

#[derive(Clone, Copy, Default)]
struct Figures {
    count: u64,
    errors: u64,
    total_ns: u64,
}

impl Links {
    pub(super) fn of(block: &ExecutionBlock) -> Self {
        Self { shapes: vec![None; block.shapes().len()], ..Self::default() }
    }

    fn place(&mut self, source: LinkSource, operation: u32) -> usize {
        let next = self.figures.len();
        let place = *self.places.entry((source, operation)).or_insert(next);
        if place == next {
            self.figures.push(Figures::default());
        }
        place
    }

    /// Prepares the shape of a row. Must be called before [`Self::add`].
    pub(super) fn prepare(&mut self, row: RowRef<'_>) {
        if self.shapes.get(row.shape_index()).is_none_or(Option::is_some) {
            return;
        }
        let calls = row.shape().calls();
        let source =
            |parent: u32| calls.get(parent as usize).map(|call| LinkSource::Operation(call.operation));
        let places: Box<[Option<usize>]> = calls
            .iter()
            .map(|call| Some(self.place(call.parent.and_then(source)?, call.operation)))
            .collect();
        if let Some(shape) = self.shapes.get_mut(row.shape_index()) {
            *shape = Some(places);
        }
    }

    /// Counts a completed call of a prepared row.
    pub(super) fn add(&mut self, row: RowRef<'_>, visit: &Visit<'_>, duration: u64) {
        let places = self.shapes.get(row.shape_index()).and_then(Option::as_deref);
        let within = places.and_then(|places| *places.get(visit.position)?);
        let place = match (within, row.parent(), row.caller_index()) {
            (Some(place), ..) => place,
            (None, None, _) => return,
            (None, Some(_), None) => self.place(LinkSource::Unknown, visit.call.operation),
            (None, Some(_), Some(caller)) => self.place(LinkSource::Caller(caller), visit.call.operation),
        };
        if let Some(figures) = self.figures.get_mut(place) {
            figures.count += 1;
            figures.errors += u64::from(visit.call.failed);
            figures.total_ns = figures.total_ns.saturating_add(duration);
        }
    }

    /// The links with calls. `None` if there are more than [`SUMMARY_LINKS_MAX`].
    pub(super) fn finish(self) -> Option<Vec<Link>> {
        let link = |((source, operation), place): ((LinkSource, u32), usize)| {
            let Figures { count, errors, total_ns } = *self.figures.get(place)?;
            (count > 0).then_some(Link { source, operation, count, errors, total_ns })
        };
        let mut links: Vec<Link> = self.places.into_iter().filter_map(link).collect();
        links.sort_unstable_by_key(|link| (link.source, link.operation));
        (links.len() <= SUMMARY_LINKS_MAX).then_some(links)
    }
}

/// The number of a source: 0 unknown, then the callers, then the operations.
fn number(source: LinkSource, callers: usize) -> u64 {
    match source {
        LinkSource::Unknown => 0,
        LinkSource::Caller(caller) => u64::from(caller) + 1,
        LinkSource::Operation(operation) => u64::from(operation) + 1 + callers as u64,
    }
}

pub(super) fn put(writer: &mut Writer<'_>, links: &[Link], callers: usize) {
    writer.column(links.iter().map(|link| number(link.source, callers)));
    writer.column(links.iter().map(|link| link.operation.into()));
    let figures: [fn(&Link) -> u64; 3] = [|link| link.count, |link| link.errors, |link| link.total_ns];
    figures.into_iter().for_each(|figure| writer.column(links.iter().map(figure)));
}

pub(super) fn take(
    taker: &mut Taker<'_>,
    count: usize,
    callers: usize,
    operations: usize,
) -> Result<Vec<Link>, Error> {
    let sources =
        taker.indexes("source of a link", count, callers.saturating_add(operations).saturating_add(1))?;
    let called = taker.indexes("operation of a link", count, operations)?;
    let mut figure = |what| taker.column(what, count).map(Vec::into_iter);
    let (mut counts, mut errors, mut totals) =
        (figure("count of a link")?, figure("errors of a link")?, figure("sum of durations of a link")?);
    let narrow = |index: u64| u32::try_from(index).unwrap_or(u32::MAX);
    let source = |number: u64| match number.checked_sub(1) {
        None => LinkSource::Unknown,
        Some(caller) if caller < callers as u64 => LinkSource::Caller(narrow(caller)),
        Some(operation) => LinkSource::Operation(narrow(operation - callers as u64)),
    };
    let next = |figures: &mut std::vec::IntoIter<u64>| figures.next().unwrap_or_default();
    let link = |(from, operation): (u64, u64)| Link {
        source: source(from),
        operation: narrow(operation),
        count: next(&mut counts),
        errors: next(&mut errors),
        total_ns: next(&mut totals),
    };
    let links: Vec<Link> = sources.into_iter().zip(called).map(link).collect();
    if !links.is_sorted_by(|a, b| (a.source, a.operation) < (b.source, b.operation)) {
        return Err(Error::SummaryDisordered { what: "links" });
    }
    Ok(links)
}

/// Checks that the links of each operation have the calls and errors of its cell for calls with a caller.
pub(super) fn check_counts(links: &[Link], cells: &[Cell], operations: usize) -> Result<(), Error> {
    let mut of_links = vec![(0u64, 0u64); operations];
    for link in links {
        if let Some((count, errors)) = of_links.get_mut(link.operation as usize) {
            *count = sum("count of a link", [*count, link.count])?;
            *errors = sum("errors of a link", [*errors, link.errors])?;
        }
    }
    let mut of_cells = vec![(0u64, 0u64); operations];
    for cell in cells.iter().filter(|cell| !cell.is_uncalled) {
        of_cells.get_mut(cell.operation as usize).into_iter().for_each(|of| *of = (cell.count, cell.errors));
    }
    for (of_cell, of_links) in of_cells.into_iter().zip(of_links) {
        stated("calls in links", of_cell.0, of_links.0)?;
        stated("errors in links", of_cell.1, of_links.1)?;
    }
    Ok(())
}
