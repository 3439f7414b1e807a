//! How are columns decoded into a block? Counts, indexes, texts and times are checked, so that every decoded block is valid.

use std::sync::Arc;

use tacho_model::limits::SEGMENT_ATTRIBUTES_MAX;
use tacho_model::{EventKind, Operation, OperationKind, SeriesId, SpanId, TraceId, mix64};

use super::attributes::{AttributeData, Form, Layout, Slot};
use super::block::ExecutionBlock;
use super::caller::Caller;
use super::row::Row;
use super::shape::{Outline, Shape};
use super::times::Contexts;
use crate::columns::Columns;
use crate::header::Tables;
use crate::limits::{CHUNK_EVENTS_MAX, CHUNK_TIME_GROUPS_MAX};
use crate::{Error, Header, Role};

/// Decodes the output of `encode_executions`.
pub(crate) fn decode(header: &Header, mut columns: Columns<'_>) -> Result<ExecutionBlock, Error> {
    let Some(tables) = header.tables else { return Err(Error::value("tables", 0u64)) };
    let (mut block, rows, counts) = take_rows_without_times(&mut columns, &tables)?;
    block.deltas = take_times(&block, &rows, counts.deltas, &mut columns)?;
    block.values = take_values(&block, &rows, counts.values, &mut columns)?;
    columns.end()?;
    add_rows(&mut block, rows.into_iter().enumerate())?;
    Ok(block)
}

/// Tables, ages, and rows that are not in the block yet.
pub(super) fn take_rows_without_times(
    columns: &mut Columns<'_>,
    tables: &Tables,
) -> Result<(ExecutionBlock, Vec<Row>, Counts), Error> {
    let mut block = ExecutionBlock::new();
    take_names(&mut block, columns, tables)?;
    take_shapes(&mut block, columns, tables)?;
    take_layouts(&mut block, columns, tables)?;
    let mut rows = take_ids(columns, tables)?;
    take_rows(&mut rows, columns, tables)?;
    let counts = place(&mut rows, &block)?;
    block.ages = columns.u64(Role::Age, counts.ages)?;
    Ok((block, rows, counts))
}

/// `rows`: with their numbers in the chunk.
pub(super) fn add_rows(
    block: &mut ExecutionBlock,
    rows: impl Iterator<Item = (usize, Row)>,
) -> Result<(), Error> {
    for (number, row) in rows {
        block.add_checked_row(row).map_err(|source| Error::Segment { row: number, source })?;
    }
    Ok(())
}

/// Trace ids of all segments. Decodes only the columns of trace ids and span bases.
pub(crate) fn traces(header: &Header, mut columns: Columns<'_>) -> Result<Vec<TraceId>, Error> {
    let Some(tables) = header.tables else { return Err(Error::value("tables", 0u64)) };
    columns.skip_to(Role::Base)?;
    let bases = columns.u64(Role::Base, tables.segments)?;
    take_traces(&bases, &mut columns)
}

fn take_traces(bases: &[u64], columns: &mut Columns<'_>) -> Result<Vec<TraceId>, Error> {
    let highs = columns.u64(Role::TraceHigh, bases.len())?;
    let lows = take_related(columns, [Role::TraceLow, Role::TraceLowFromBase], bases)?;
    let id = |(high, low)| TraceId(wide(high, low));
    Ok(highs.into_iter().zip(lows).map(id).collect())
}

fn utf8<'a>(text: &'a [u8], what: &'static str) -> Result<&'a str, Error> {
    std::str::from_utf8(text).map_err(|_| Error::Utf8 { what })
}

/// The operations: the first two columns.
pub(crate) fn operations(columns: &mut Columns<'_>, tables: &Tables) -> Result<Vec<Operation>, Error> {
    take_operations(columns, [Role::OperationKind, Role::OperationName], tables.operations)
}

fn take_operations(
    columns: &mut Columns<'_>,
    [kind, name]: [Role; 2],
    count: usize,
) -> Result<Vec<Operation>, Error> {
    let kinds = columns.u64(kind, count)?;
    let names = columns.texts(name, count)?;
    kinds.into_iter().zip(names.iter()).map(|(kind, name)| operation(kind, name)).collect()
}

pub(crate) fn operation(kind: u64, name: &[u8]) -> Result<Operation, Error> {
    let known = u8::try_from(kind).ok().and_then(OperationKind::from_byte);
    let kind = known.ok_or_else(|| Error::value("kind of operation", kind))?;
    Ok(Operation { kind, name: utf8(name, "name of an operation")?.into() })
}

/// The callers, which follow the operations.
pub(crate) fn callers(columns: &mut Columns<'_>, tables: &Tables) -> Result<Vec<Caller>, Error> {
    let count = tables.callers;
    if count == 0 {
        return Ok(vec![]);
    }
    let highs = columns.u64(Role::CallerSeriesHigh, count)?;
    let lows = columns.u64(Role::CallerSeriesLow, count)?;
    let operations = take_operations(columns, [Role::CallerKind, Role::CallerName], count)?;
    let series = highs.into_iter().zip(lows).map(|(high, low)| SeriesId(wide(high, low)));
    Ok(series.zip(operations).map(|(series, operation)| Caller { series, operation }).collect())
}

/// A number of 128 bits.
fn wide(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn take_names(block: &mut ExecutionBlock, columns: &mut Columns<'_>, tables: &Tables) -> Result<(), Error> {
    for operation in operations(columns, tables)? {
        block.operations.add(&operation.clone(), operation);
    }
    for caller in callers(columns, tables)? {
        block.callers.add(&caller.clone(), caller);
    }
    for name in columns.texts(Role::ThreadName, tables.threads)?.iter() {
        let name: Arc<str> = utf8(name, "name of a thread")?.into();
        block.threads.add(&name.clone(), name);
    }
    for key in columns.texts(Role::AttributeKey, tables.keys)?.iter() {
        let key: Arc<str> = utf8(key, "key of an attribute")?.into();
        block.keys.add(&key.clone(), key);
    }
    Ok(())
}

/// Sum of `counts`, at most [`CHUNK_EVENTS_MAX`].
pub(super) fn total(counts: impl IntoIterator<Item = usize>, what: &'static str) -> Result<usize, Error> {
    let sum = counts.into_iter().fold(0usize, usize::saturating_add);
    if sum > CHUNK_EVENTS_MAX { Err(Error::limit(what, sum, CHUNK_EVENTS_MAX)) } else { Ok(sum) }
}

/// Reads a column of counts, and returns the counts and their sum, which is at most [`CHUNK_EVENTS_MAX`].
fn take_counts(columns: &mut Columns<'_>, role: Role, len: usize) -> Result<(Vec<usize>, usize), Error> {
    let counts = columns.indices(role, len, CHUNK_EVENTS_MAX)?;
    let counts: Vec<usize> = counts.into_iter().map(|count| count as usize).collect();
    let sum = total(counts.iter().copied(), role.name())?;
    Ok((counts, sum))
}

fn take_shapes(block: &mut ExecutionBlock, columns: &mut Columns<'_>, tables: &Tables) -> Result<(), Error> {
    let (carried_counts, carried_sum) = take_counts(columns, Role::ShapeCarried, tables.shapes)?;
    let operations = columns.indices(Role::CarriedOperation, carried_sum, tables.operations)?;
    let calls = columns.indices(Role::CarriedCall, carried_sum, u32::MAX as usize + 1)?;
    let (event_counts, event_sum) = take_counts(columns, Role::ShapeEvents, tables.shapes)?;
    let events = columns.indices(Role::Event, event_sum, tables.operations + 2)?;

    let mut carried = operations.into_iter().zip(calls);
    let mut events = events.into_iter().map(|event| match event {
        0 => EventKind::Exit,
        1 => EventKind::ExitFailed,
        enter => EventKind::Enter(enter - 2),
    });
    for (number, (carried_count, event_count)) in carried_counts.into_iter().zip(event_counts).enumerate() {
        let outline = Outline {
            carried: carried.by_ref().take(carried_count).collect(),
            events: events.by_ref().take(event_count).collect(),
        };
        let shape = Shape::new(outline).map_err(|source| Error::Shape { shape: number, source })?;
        block.add_shape_as_read(Arc::new(shape));
    }
    Ok(())
}

pub(super) fn take_layouts(
    block: &mut ExecutionBlock,
    columns: &mut Columns<'_>,
    tables: &Tables,
) -> Result<(), Error> {
    let (counts, sum) = take_counts(columns, Role::LayoutAttributes, tables.layouts)?;
    if let Some(count) = counts.iter().find(|count| **count > SEGMENT_ATTRIBUTES_MAX) {
        return Err(Error::limit("attributes of a segment", *count, SEGMENT_ATTRIBUTES_MAX));
    }
    let calls = columns.indices(Role::LayoutCall, sum, u32::MAX as usize + 1)?;
    let keys = columns.indices(Role::LayoutKey, sum, tables.keys)?;
    let forms = columns.indices(Role::LayoutForm, sum, Form::ALL.len())?;
    let mut slots = calls.into_iter().zip(keys).zip(forms).map(|((call, key), form)| {
        let form = Form::ALL.get(form as usize).copied().unwrap_or(Form::Text);
        Slot { call, key, form }
    });
    for count in counts {
        let layout = Layout(slots.by_ref().take(count).collect());
        block.layouts.add(&layout.clone(), layout);
    }
    Ok(())
}

/// Rows with their ids only.
fn take_ids(columns: &mut Columns<'_>, tables: &Tables) -> Result<Vec<Row>, Error> {
    let count = tables.segments;
    let bases = columns.u64(Role::Base, count)?;
    let traces = take_traces(&bases, columns)?;
    let parts = columns.indices(Role::Part, count, u32::MAX as usize + 1)?;
    let parents_there = columns.indices(Role::ParentThere, count, 2)?;
    let with_parent = bases.iter().zip(&parents_there).filter(|(_, there)| **there == 1);
    let parents_bases: Vec<u64> = with_parent.map(|(base, _)| *base).collect();
    let mut parents =
        take_related(columns, [Role::Parent, Role::ParentFromBase], &parents_bases)?.into_iter();

    let ids = bases.into_iter().zip(traces).zip(parts).zip(parents_there);
    let row = |(((base, trace), part), there)| Row {
        trace,
        base,
        parent: if there == 1 { parents.next().map(SpanId) } else { None },
        part,
        start: 0,
        thread: 0,
        shape: 0,
        layout: 0,
        caller: Row::NOT_SEARCHED,
        first_call: 0,
        deltas_at: 0,
        ages_at: 0,
        values_at: 0,
    };
    Ok(ids.map(row).collect())
}

fn take_related(
    columns: &mut Columns<'_>,
    [as_is, from_base]: [Role; 2],
    bases: &[u64],
) -> Result<Vec<u64>, Error> {
    if columns.role() != Some(from_base) {
        return columns.u64(as_is, bases.len());
    }
    let related = columns.u64(from_base, bases.len())?;
    Ok(related.into_iter().zip(bases).map(|(counter, base)| mix64(counter.wrapping_add(*base))).collect())
}

fn take_rows(rows: &mut [Row], columns: &mut Columns<'_>, tables: &Tables) -> Result<(), Error> {
    let count = tables.segments;
    let threads = columns.indices(Role::Thread, count, tables.threads)?;
    let starts = columns.i64(Role::Start, count)?;
    let first_calls = columns.indices(Role::FirstCall, count, u32::MAX as usize + 1)?;
    let shapes = columns.indices(Role::Shape, count, tables.shapes)?;
    let layouts = columns.indices(Role::Layout, count, tables.layouts)?;
    let fields = threads.into_iter().zip(starts).zip(first_calls).zip(shapes).zip(layouts);
    for (row, ((((thread, start), first_call), shape), layout)) in rows.iter_mut().zip(fields) {
        *row = Row { thread, start, first_call, shape, layout, ..row.clone() };
    }
    if columns.role() == Some(Role::Caller) {
        let with_parent: Vec<&mut Row> = rows.iter_mut().filter(|row| row.parent.is_some()).collect();
        let states = tables.callers.saturating_add(Row::FIRST_CALLER as usize);
        let callers = columns.indices(Role::Caller, with_parent.len(), states)?;
        with_parent.into_iter().zip(callers).for_each(|(row, caller)| row.caller = caller);
    }
    Ok(())
}

/// Number of times, ages and values of all rows.
pub(super) struct Counts {
    deltas: usize,
    ages: usize,
    values: usize,
}

/// Sets the positions of each row's times, ages and values.
fn place(rows: &mut [Row], block: &ExecutionBlock) -> Result<Counts, Error> {
    let (mut deltas, mut ages, mut values) = (0usize, 0usize, 0usize);
    for row in rows.iter_mut() {
        (row.deltas_at, row.ages_at, row.values_at) = (deltas, ages, values);
        // All indexes exist, because they were checked when they were decoded.
        let shape = block.shapes.get(row.shape);
        deltas = total([deltas, shape.map_or(0, |shape| shape.events().len())], "events")?;
        ages = total([ages, shape.map_or(0, |shape| shape.carried().len())], "carried calls")?;
        values =
            total([values, block.layouts.get(row.layout).map_or(0, |layout| layout.0.len())], "attributes")?;
    }
    Ok(Counts { deltas, ages, values })
}

/// The contexts, and the group of each context.
pub(super) fn take_groups(
    block: &ExecutionBlock,
    columns: &mut Columns<'_>,
) -> Result<(Contexts, Vec<u32>), Error> {
    let contexts = Contexts::new(block.shapes.items());
    let groups = columns.indices(Role::TimeGroup, contexts.len, CHUNK_TIME_GROUPS_MAX)?;
    Ok((contexts, groups))
}

fn take_times(
    block: &ExecutionBlock,
    rows: &[Row],
    count: usize,
    columns: &mut Columns<'_>,
) -> Result<Vec<u64>, Error> {
    let (contexts, groups) = take_groups(block, columns)?;
    let group_of = |context: &u32| groups.get(*context as usize).map_or(0, |group| *group as usize);
    let order = || rows.iter().flat_map(|row| contexts.of(row.shape as usize)).map(group_of);

    let mut counts = vec![0usize; groups.iter().max().map_or(0, |last| *last as usize + 1)];
    for group in order() {
        if let Some(count) = counts.get_mut(group) {
            *count += 1;
        }
    }
    let mut grouped = vec![];
    for count in counts {
        grouped.push(columns.u64(Role::Time, count)?.into_iter());
    }
    let mut times = Vec::with_capacity(count);
    times.extend(order().map_while(|group| grouped.get_mut(group)?.next()));
    Ok(times)
}

/// Values of one key in order, by form.
#[derive(Default)]
pub(super) struct KeyColumns {
    integers: std::vec::IntoIter<i64>,
    texts: std::vec::IntoIter<Arc<str>>,
    ids: std::vec::IntoIter<[u64; 2]>,
}

impl KeyColumns {
    pub(super) fn take(columns: &mut Columns<'_>, counts: [usize; Form::ALL.len()]) -> Result<Self, Error> {
        let [texts, integers, ids] = counts;
        let mut key = Self::default();
        if integers > 0 {
            key.integers = columns.i64(Role::Integer, integers)?.into_iter();
        }
        if texts > 0 {
            let read = columns.texts(Role::Text, texts)?;
            let values: Result<Vec<Arc<str>>, Error> =
                read.iter().map(|text| Ok(utf8(text, "value of an attribute")?.into())).collect();
            key.texts = values.map_err(|error| columns.at(Role::Text, error))?.into_iter();
        }
        if ids > 0 {
            let high = columns.u64(Role::IdHigh, ids)?;
            let low = columns.u64(Role::IdLow, ids)?;
            key.ids =
                high.into_iter().zip(low).map(|(high, low)| [high, low]).collect::<Vec<_>>().into_iter();
        }
        Ok(key)
    }

    pub(super) fn skip(&mut self, form: Form) {
        match form {
            Form::Text => drop(self.texts.next()),
            Form::Integer => drop(self.integers.next()),
            Form::Id => drop(self.ids.next()),
        }
    }

    pub(super) fn next(&mut self, form: Form) -> Option<AttributeData> {
        match form {
            Form::Text => self.texts.next().map(AttributeData::Text),
            Form::Integer => self.integers.next().map(AttributeData::Integer),
            Form::Id => self.ids.next().map(AttributeData::Id),
        }
    }
}

/// For the columns of each key: the number of values in each form.
pub(super) fn count_values<'a>(slots: impl Iterator<Item = &'a Slot>) -> Vec<[usize; Form::ALL.len()]> {
    let mut counts: Vec<[usize; Form::ALL.len()]> = vec![];
    for slot in slots {
        if counts.len() <= slot.column() {
            counts.resize(slot.column() + 1, [0; Form::ALL.len()]);
        }
        if let Some(count) = counts.get_mut(slot.column()).and_then(|forms| forms.get_mut(slot.form as usize))
        {
            *count += 1;
        }
    }
    counts
}

fn take_values(
    block: &ExecutionBlock,
    rows: &[Row],
    count: usize,
    columns: &mut Columns<'_>,
) -> Result<Vec<AttributeData>, Error> {
    let slots = || rows.iter().filter_map(|row| block.layouts.get(row.layout)).flat_map(|layout| &layout.0);
    let mut keys = vec![];
    for forms in count_values(slots()) {
        keys.push(KeyColumns::take(columns, forms)?);
    }
    let mut values = Vec::with_capacity(count);
    values.extend(slots().map_while(|slot| keys.get_mut(slot.column())?.next(slot.form)));
    Ok(values)
}
