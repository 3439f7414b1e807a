//! How are segments of a series kept in memory? In columns that can be appended to, read and encoded.

use std::sync::Arc;

use tacho_model::limits::{SEGMENT_ATTRIBUTES_MAX, SEGMENT_CARRIED_MAX, SEGMENT_EVENTS_MAX};
use tacho_model::{Attribute, EventKind, Operation, OperationIndex, Segment, SegmentError, TimeRange};

use super::attributes::{AttributeData, Layout, Slot};
use super::caller::Caller;
use super::intern::Interner;
use super::row::{Row, RowRef};
use super::shape::{Outline, Shape};
use crate::limits::{CHUNK_EVENTS_MAX, CHUNK_RECORDS_MAX};

/// Segments of one series. Equal shapes and layouts are stored once.
#[derive(Clone, Debug)]
pub struct ExecutionBlock {
    pub(super) operations: Interner<Operation>,
    pub(super) threads: Interner<Arc<str>>,
    pub(super) keys: Interner<Arc<str>>,
    pub(super) shapes: Interner<Arc<Shape>>,
    pub(super) layouts: Interner<Layout>,
    pub(super) callers: Interner<Caller>,
    pub(super) rows: Vec<Row>,
    /// Times of all rows, as ns since the previous event.
    pub(super) deltas: Vec<u64>,
    /// Ages of the carried calls of all rows, ns.
    pub(super) ages: Vec<u64>,
    /// Attribute values of all rows.
    pub(super) values: Vec<AttributeData>,
    range: TimeRange,
    calls: usize,
    /// Estimated memory on the heap of the items of tables and of the attribute values, bytes.
    heap_bytes: usize,
    scratch: Scratch,
}

#[derive(Clone, Debug, Default)]
struct Scratch {
    outline: Outline,
    layout: Layout,
    /// The last push that looked up each operation of the sender, and the operation's index in this block.
    operations: Vec<(u64, OperationIndex)>,
    pushes: u64,
}

impl Default for ExecutionBlock {
    fn default() -> Self {
        Self {
            operations: Interner::default(),
            threads: Interner::default(),
            keys: Interner::default(),
            shapes: Interner::default(),
            layouts: Interner::default(),
            callers: Interner::default(),
            rows: vec![],
            deltas: vec![],
            ages: vec![],
            values: vec![],
            range: TimeRange::EMPTY,
            calls: 0,
            heap_bytes: 0,
            scratch: Scratch::default(),
        }
    }
}

/// Equal if segments and tables are equal and in the same order.
impl PartialEq for ExecutionBlock {
    fn eq(&self, other: &Self) -> bool {
        self.operations == other.operations
            && self.threads == other.threads
            && self.keys == other.keys
            && self.shapes == other.shapes
            && self.layouts == other.layouts
            && self.callers == other.callers
            && self.rows == other.rows
            && (&self.deltas, &self.ages, &self.values) == (&other.deltas, &other.ages, &other.values)
    }
}

impl ExecutionBlock {
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty block with capacity for the rows, times, ages and values of `filled`, which avoids reallocations.
    #[must_use]
    pub fn as_large_as(filled: &Self) -> Self {
        Self {
            rows: Vec::with_capacity(filled.rows.len()),
            deltas: Vec::with_capacity(filled.deltas.len()),
            ages: Vec::with_capacity(filled.ages.len()),
            values: Vec::with_capacity(filled.values.len()),
            ..Self::default()
        }
    }

    /// Appends a segment, which must pass [`Segment::check`]. Its operations are indexes into `operations`. Drops a segment
    /// with invalid events or operations.
    pub fn push(&mut self, segment: &Segment, operations: &[Operation]) {
        debug_assert_eq!(segment.check(operations.len()), Ok(()), "only valid segments may be pushed");
        let Some(shape) = self.intern_shape(segment, operations) else { return };
        let layout = self.intern_layout(&segment.attributes);
        let thread = intern_text(&mut self.threads, &mut self.heap_bytes, &segment.thread);
        let row = Row {
            trace: segment.trace,
            base: segment.base,
            parent: segment.parent,
            start: segment.start,
            part: segment.part,
            thread,
            shape,
            layout,
            caller: Row::NOT_SEARCHED,
            first_call: segment.first_call,
            deltas_at: self.deltas.len(),
            ages_at: self.ages.len(),
            values_at: self.values.len(),
        };
        self.deltas.extend(segment.events.iter().map(|event| event.delta));
        self.ages.extend(segment.carried.iter().map(|carried| carried.age));
        self.values.extend(segment.attributes.iter().map(|attribute| AttributeData::new(&attribute.value)));
        let values = self.values.get(row.values_at..).unwrap_or_default();
        self.heap_bytes += values.iter().map(AttributeData::heap_bytes).sum::<usize>();
        self.add_row(row);
    }

    /// Appends a segment of another block, with its caller.
    pub fn push_row(&mut self, row: RowRef<'_>) {
        let before = self.len();
        self.push(&row.to_segment(), row.operations());
        if self.len() > before && row.is_caller_searched() {
            self.set_caller(before, row.caller());
        }
    }

    /// Sets the caller of a row, or that it was not found. Does nothing if the row does not exist or has no parent.
    pub(super) fn set_caller(&mut self, row: usize, caller: Option<&Caller>) {
        let Self { rows, callers, heap_bytes, .. } = self;
        let Some(row) = rows.get_mut(row).filter(|row| row.parent.is_some()) else { return };
        let mut index = |caller: &Caller| {
            let make = || {
                *heap_bytes += caller.operation.name.len() + 16;
                caller.clone()
            };
            callers.intern(caller, |known| known == caller, make) + Row::FIRST_CALLER
        };
        row.caller = caller.map_or(Row::NOT_FOUND, &mut index);
    }

    /// Whether the caller of a segment with a parent was never searched.
    pub(crate) fn has_unsearched(&self) -> bool {
        self.rows.iter().any(|row| row.parent.is_some() && row.caller == Row::NOT_SEARCHED)
    }

    /// Appends a row. Its times, ages and values must already be stored.
    pub(super) fn add_row(&mut self, row: Row) {
        self.rows.push(row);
        let Some(row) = self.last() else { return };
        let (range, completed) = (row.range(), row.shape().completed());
        self.range = TimeRange::new(self.range.start.min(range.start), self.range.end.max(range.end));
        self.calls += completed;
    }

    /// Like [`Self::add_row`], for a decoded row. Refuses times that overflow and a trace id of zero.
    pub(super) fn add_checked_row(&mut self, row: Row) -> Result<(), SegmentError> {
        RowRef::new(self, &row).check()?;
        let values = RowRef::new(self, &row).values();
        self.heap_bytes += values.iter().map(AttributeData::heap_bytes).sum::<usize>();
        self.add_row(row);
        Ok(())
    }

    /// Appends a decoded shape with the next free index.
    pub(super) fn add_shape_as_read(&mut self, shape: Arc<Shape>) {
        self.heap_bytes += shape.bytes();
        self.shapes.add(&*shape, Arc::clone(&shape));
    }

    fn last(&self) -> Option<RowRef<'_>> {
        self.rows.last().map(|row| RowRef::new(self, row))
    }

    fn intern_shape(&mut self, segment: &Segment, operations: &[Operation]) -> Option<u32> {
        let mut outline = std::mem::take(&mut self.scratch.outline);
        outline.carried.clear();
        outline.events.clear();
        self.scratch.pushes += 1;
        for carried in &segment.carried {
            outline.carried.push((self.intern_operation(carried.operation, operations)?, carried.call));
        }
        for event in &segment.events {
            outline.events.push(match event.kind {
                EventKind::Enter(operation) => {
                    EventKind::Enter(self.intern_operation(operation, operations)?)
                }
                exit => exit,
            });
        }
        let shape = self.add_shape(&outline);
        self.scratch.outline = outline;
        shape
    }

    /// Index of the shape with this outline. `None` if the outline is invalid, for example if an exit has no enter.
    fn add_shape(&mut self, outline: &Outline) -> Option<u32> {
        let heap_bytes = &mut self.heap_bytes;
        let make = || {
            let shape = Shape::new(outline.clone())?;
            *heap_bytes += shape.bytes();
            Ok::<_, SegmentError>(Arc::new(shape))
        };
        self.shapes.try_intern(outline, |shape| shape.outline() == outline, make).ok()
    }

    /// Index of an operation of the sender in this block. Each operation is looked up once per push.
    fn intern_operation(
        &mut self,
        index: OperationIndex,
        operations: &[Operation],
    ) -> Option<OperationIndex> {
        let at = usize::try_from(index).ok()?;
        let operation = operations.get(at)?;
        if self.scratch.operations.len() < operations.len() {
            self.scratch.operations.resize(operations.len(), (0, 0));
        }
        let memo = self.scratch.operations.get_mut(at)?;
        if memo.0 != self.scratch.pushes {
            let heap_bytes = &mut self.heap_bytes;
            let make = || {
                *heap_bytes += operation.name.len() + 16;
                operation.clone()
            };
            *memo =
                (self.scratch.pushes, self.operations.intern(operation, |known| known == operation, make));
        }
        Some(memo.1)
    }

    fn intern_layout(&mut self, attributes: &[Attribute]) -> u32 {
        let mut layout = std::mem::take(&mut self.scratch.layout);
        layout.0.clear();
        for attribute in attributes {
            let key = intern_text(&mut self.keys, &mut self.heap_bytes, &attribute.key);
            let form = AttributeData::new(&attribute.value).form();
            layout.0.push(Slot { call: attribute.call, key, form });
        }
        let heap_bytes = &mut self.heap_bytes;
        let make = || {
            *heap_bytes += layout.0.len() * size_of::<Slot>();
            layout.clone()
        };
        let position = self.layouts.intern(&layout, |known| *known == layout, make);
        self.scratch.layout = layout;
        position
    }

    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of completed calls.
    pub const fn calls(&self) -> usize {
        self.calls
    }

    /// Whether another segment could exceed a limit of the format. The store seals blocks much earlier.
    pub fn is_full(&self) -> bool {
        let keys = self.keys.items().len() + SEGMENT_ATTRIBUTES_MAX;
        let operations = self.operations.items().len() + SEGMENT_EVENTS_MAX + SEGMENT_CARRIED_MAX;
        let events = (self.deltas.len() + SEGMENT_EVENTS_MAX).max(self.ages.len() + SEGMENT_CARRIED_MAX);
        let values = self.values.len() + SEGMENT_ATTRIBUTES_MAX;
        self.rows.len().max(keys).max(operations) >= CHUNK_RECORDS_MAX
            || events.max(values) > CHUNK_EVENTS_MAX
    }

    /// Whether all counts are within the format's limits.
    pub(super) fn fits(&self) -> bool {
        let records = self.rows.len().max(self.keys.items().len()).max(self.operations.items().len());
        let events = self.deltas.len().max(self.ages.len()).max(self.values.len());
        records <= CHUNK_RECORDS_MAX && events <= CHUNK_EVENTS_MAX
    }

    /// Estimated used memory of rows, columns, and the contents of the tables, bytes.
    pub const fn bytes(&self) -> usize {
        self.heap_bytes
            + self.rows.len() * size_of::<Row>()
            + (self.deltas.len() + self.ages.len()) * size_of::<u64>()
            + self.values.len() * size_of::<AttributeData>()
    }

    /// Like [`Self::bytes`], including allocated and unused memory of rows and columns.
    pub const fn room_bytes(&self) -> usize {
        self.heap_bytes
            + self.rows.capacity() * size_of::<Row>()
            + (self.deltas.capacity() + self.ages.capacity()) * size_of::<u64>()
            + self.values.capacity() * size_of::<AttributeData>()
    }

    /// Estimated memory of the whole block, bytes. In a block of a few segments, the tables take most of it.
    pub fn memory_bytes(&self) -> usize {
        let tables = self.operations.bytes()
            + self.threads.bytes()
            + self.keys.bytes()
            + self.shapes.bytes()
            + self.layouts.bytes()
            + self.callers.bytes();
        let lookups = self.scratch.operations.capacity() * size_of::<(u64, OperationIndex)>();
        size_of::<Self>() + tables + lookups + self.room_bytes()
    }

    /// Range from the first time, including ages of carried calls, to the last. Empty if the block is empty.
    pub const fn range(&self) -> TimeRange {
        self.range
    }

    pub fn operations(&self) -> &[Operation] {
        self.operations.items()
    }

    /// The callers of the segments whose callers are known.
    pub fn callers(&self) -> &[Caller] {
        self.callers.items()
    }

    pub fn shapes(&self) -> &[Arc<Shape>] {
        self.shapes.items()
    }

    pub fn rows(&self) -> impl ExactSizeIterator<Item = RowRef<'_>> {
        self.rows.iter().map(|row| RowRef::new(self, row))
    }

    /// Row number `i`.
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn row(&self, i: usize) -> RowRef<'_> {
        assert!(i < self.rows.len(), "row {i} of {}", self.rows.len());
        #[expect(clippy::indexing_slicing, reason = "asserted above, with a message")]
        RowRef::new(self, &self.rows[i])
    }

    /// Row number `i` as a [`Segment`]; its operations are indexes into [`Self::operations`].
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn segment(&self, i: usize) -> Segment {
        self.row(i).to_segment()
    }
}

fn intern_text(table: &mut Interner<Arc<str>>, heap_bytes: &mut usize, text: &Arc<str>) -> u32 {
    let make = || {
        *heap_bytes += text.len() + 16;
        Arc::clone(text)
    };
    table.intern(text, |known| known == text, make)
}
