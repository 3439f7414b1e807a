//! How is a segment stored in a block? As its own numbers, and references to tables.
//!
//! This file and `block.rs` use each other: a block is a list of rows, and a row is read with the tables of its block.

use std::sync::Arc;

use tacho_model::{
    Attribute, Carried, Event, Operation, OperationIndex, Segment, SegmentError, SpanId, TimeRange,
    Timestamp, TraceId, mix64,
};

use super::attributes::{AttributeData, AttributeRef, Layout};
use super::block::ExecutionBlock;
use super::caller::Caller;
use super::shape::{Call, Shape};

/// The part of a segment that is not stored in tables.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) trace: TraceId,
    pub(super) base: u64,
    pub(super) parent: Option<SpanId>,
    pub(super) start: Timestamp,
    pub(super) part: u32,
    pub(super) thread: u32,
    pub(super) shape: u32,
    pub(super) layout: u32,
    /// [`Row::NOT_SEARCHED`], [`Row::NOT_FOUND`], or index of the caller + [`Row::FIRST_CALLER`]. On disk.
    pub(super) caller: u32,
    pub(super) first_call: u32,
    /// Positions of the row's times, ages and values.
    pub(super) deltas_at: usize,
    pub(super) ages_at: usize,
    pub(super) values_at: usize,
}

impl Row {
    /// The segment has no parent, or its caller was never searched.
    pub(super) const NOT_SEARCHED: u32 = 0;
    /// The caller was searched, but not found.
    pub(super) const NOT_FOUND: u32 = 1;
    pub(super) const FIRST_CALLER: u32 = 2;
}

/// One segment of a block.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    block: &'a ExecutionBlock,
    row: &'a Row,
}

/// The indexes of a row were checked when it was created, by `push` or by the decoder.
#[expect(clippy::indexing_slicing, reason = "a row is created with indexes of its block")]
impl<'a> RowRef<'a> {
    pub(super) const fn new(block: &'a ExecutionBlock, row: &'a Row) -> Self {
        Self { block, row }
    }

    /// The operations of the block.
    pub(super) fn operations(&self) -> &'a [Operation] {
        self.block.operations.items()
    }

    /// The call that caused the segment, if the segment was stored with it. The call with the span id [`RowRef::parent`].
    pub fn caller(&self) -> Option<&'a Caller> {
        self.caller_index().and_then(|caller| self.block.callers.get(caller))
    }

    pub fn thread(&self) -> &'a Arc<str> {
        &self.block.threads.items()[self.row.thread as usize]
    }

    pub fn shape(&self) -> &'a Arc<Shape> {
        &self.block.shapes.items()[self.row.shape as usize]
    }

    pub(super) fn layout(&self) -> &'a Layout {
        &self.block.layouts.items()[self.row.layout as usize]
    }

    /// The calls that the row enters, in order. The first one has the number [`RowRef::first_call`].
    pub fn entered(&self) -> &'a [Call] {
        &self.shape().calls()[self.shape().carried().len()..]
    }

    /// For each event of the shape: the time since the previous event, ns.
    pub fn deltas(&self) -> &'a [u64] {
        &self.block.deltas[self.row.deltas_at..][..self.shape().events().len()]
    }

    /// For each carried call of the shape: the time from its enter to [`Self::start`], ns.
    pub fn ages(&self) -> &'a [u64] {
        &self.block.ages[self.row.ages_at..][..self.shape().carried().len()]
    }

    pub(super) fn values(&self) -> &'a [AttributeData] {
        &self.block.values[self.row.values_at..][..self.layout().0.len()]
    }

    /// Attributes in the order in which they were recorded.
    pub fn attributes(&self) -> impl ExactSizeIterator<Item = AttributeRef<'a>> + use<'a> {
        let keys = self.block.keys.items();
        self.layout().0.iter().zip(self.values()).map(|(slot, value)| AttributeRef {
            call: slot.call,
            key: &keys[slot.key as usize],
            value,
        })
    }
}

impl RowRef<'_> {
    pub const fn trace(&self) -> TraceId {
        self.row.trace
    }

    /// The span id of call `k` is `mix64(base + k)`.
    pub const fn base(&self) -> u64 {
        self.row.base
    }

    pub const fn part(&self) -> u32 {
        self.row.part
    }

    pub const fn parent(&self) -> Option<SpanId> {
        self.row.parent
    }

    /// Index of the caller in [`ExecutionBlock::callers`].
    pub const fn caller_index(&self) -> Option<u32> {
        self.row.caller.checked_sub(Row::FIRST_CALLER)
    }

    /// Whether the segment has a parent, and its caller was searched.
    pub const fn is_caller_searched(&self) -> bool {
        self.row.caller != Row::NOT_SEARCHED
    }

    /// Time of the first event.
    pub const fn start(&self) -> Timestamp {
        self.row.start
    }

    /// Number of the first call that this row enters. Calls are numbered over all parts of their segment.
    pub const fn first_call(&self) -> u32 {
        self.row.first_call
    }

    /// Index of the shape in the block.
    pub const fn shape_index(&self) -> usize {
        self.row.shape as usize
    }

    /// Number of a call in its segment. `position` is the index of the call in the shape.
    pub fn call_number(&self, position: usize) -> u32 {
        let carried = self.shape().carried();
        match carried.get(position) {
            Some((_, call)) => *call,
            None => u32::try_from(position - carried.len())
                .map_or(u32::MAX, |entered| self.row.first_call.wrapping_add(entered)),
        }
    }

    /// Span id of call number `call` of the segment.
    pub const fn span(&self, call: u32) -> SpanId {
        SpanId(mix64(self.row.base.wrapping_add(call as u64)))
    }

    /// Time from the first to the last event, ns.
    pub fn duration(&self) -> u64 {
        self.deltas().iter().fold(0, |sum: u64, delta| sum.saturating_add(*delta))
    }

    /// Range from the enter of the oldest carried call to the last event. Without carried calls, it starts at the first event.
    pub fn range(&self) -> TimeRange {
        let oldest = self.ages().iter().copied().max().unwrap_or(0);
        let (start, end) = (
            self.row.start.saturating_sub_unsigned(oldest),
            self.row.start.saturating_add_unsigned(self.duration()),
        );
        TimeRange::new(start, end)
    }

    /// The row as a [`Segment`]. Its operations are indexes into the operations of the block.
    pub fn to_segment(&self) -> Segment {
        let shape = self.shape();
        let carry = |((operation, call), age): (&(OperationIndex, u32), &u64)| Carried {
            operation: *operation,
            call: *call,
            age: *age,
        };
        let events = self.deltas().iter().zip(shape.events());
        Segment {
            trace: self.row.trace,
            base: self.row.base,
            part: self.row.part,
            parent: self.row.parent,
            thread: Arc::clone(self.thread()),
            start: self.row.start,
            carried: shape.carried().iter().zip(self.ages()).map(carry).collect(),
            first_call: self.row.first_call,
            events: events.map(|(delta, kind)| Event { delta: *delta, kind: *kind }).collect(),
            attributes: self.attributes().map(to_attribute).collect(),
        }
    }

    /// Two checks of [`Segment::check`]: times must not overflow, and the trace id must not be zero.
    pub(super) fn check(&self) -> Result<(), SegmentError> {
        let total = self.deltas().iter().try_fold(0u64, |sum, delta| sum.checked_add(*delta));
        let end =
            total.and_then(|total| i64::try_from(total).ok()).and_then(|t| self.row.start.checked_add(t));
        let oldest = self.ages().iter().copied().max().unwrap_or(0);
        let begin = i64::try_from(oldest).ok().and_then(|age| self.row.start.checked_sub(age));
        match (end, begin) {
            _ if self.row.trace.0 == 0 => Err(SegmentError::TraceZero),
            (Some(_), Some(_)) => Ok(()),
            _ => Err(SegmentError::TimeOverflow),
        }
    }
}

fn to_attribute(attribute: AttributeRef<'_>) -> Attribute {
    Attribute { call: attribute.call, key: Arc::clone(attribute.key), value: attribute.value.to_value() }
}
