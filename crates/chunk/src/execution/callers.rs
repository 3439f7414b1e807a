//! Which call caused a segment? The span id of a call is `mix64` of a number: the span base of its segment plus the number of the
//! call. The inverse of `mix64` turns the parent of a segment into this number, and an index of the rows finds the row with this
//! call.

use std::collections::HashMap;

use tacho_model::{SeriesId, TraceId, mix64, unmix64};

use super::block::ExecutionBlock;
use super::caller::Caller;
use super::row::RowRef;
use crate::bytes::low_word;

/// The callers of the segments of one block.
#[derive(Clone, Debug, Default)]
pub struct BlockCallers {
    callers: Vec<Caller>,
    /// Index of each row with a known caller, and index of its caller in `callers`.
    rows: Vec<(usize, usize)>,
}

impl BlockCallers {
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl ExecutionBlock {
    /// Stores the callers that were found for the rows of this block.
    pub fn set_callers(&mut self, found: &BlockCallers) {
        for (row, caller) in &found.rows {
            found.callers.get(*caller).into_iter().for_each(|caller| self.set_caller(*row, caller));
        }
    }
}

/// Finds the callers of all segments in these blocks, each with the id of its series, among the calls of these blocks. Returns
/// the callers for each block, in the order of the blocks. The time is proportional to `n log n` for `n` rows, for any ids.
pub fn find_callers(blocks: &[(SeriesId, &ExecutionBlock)]) -> Vec<BlockCallers> {
    let has_parent = |block: &ExecutionBlock| block.rows().any(|row| row.parent().is_some());
    let is_needed = blocks.iter().any(|(_, block)| has_parent(block));
    let index = if is_needed { Index::of(blocks) } else { Index::default() };
    blocks.iter().map(|(_, block)| index.callers_of(block, blocks)).collect()
}

/// The rows that enter calls, sorted by [`Key`]. Other rows are omitted: a part without an enter has the same `first` as the next
/// part.
#[derive(Default)]
struct Index {
    rows: Vec<Key>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Hash of the trace id. A match is compared with the whole id.
    trace: u64,
    /// Span base plus the number of the first call that the row enters.
    first: u64,
    block: u32,
    row: u32,
}

const fn hash(trace: TraceId) -> u64 {
    mix64(low_word(trace.0 >> 64) ^ mix64(low_word(trace.0)))
}

impl Index {
    fn of(blocks: &[(SeriesId, &ExecutionBlock)]) -> Self {
        let mut rows = Vec::with_capacity(blocks.iter().map(|(_, block)| block.len()).sum());
        for (block, (_, source)) in (0u32..).zip(blocks) {
            let key = |(row, found): (u32, RowRef<'_>)| {
                let first = found.base().wrapping_add(found.first_call().into());
                let enters = found.shape().calls().len() > found.shape().carried().len();
                enters.then_some(Key { trace: hash(found.trace()), first, block, row })
            };
            rows.extend((0u32..).zip(source.rows()).filter_map(key));
        }
        rows.sort_unstable();
        Self { rows }
    }

    fn callers_of(&self, block: &ExecutionBlock, blocks: &[(SeriesId, &ExecutionBlock)]) -> BlockCallers {
        let mut found = BlockCallers::default();
        // Block and operation of each caller, with its index in the result.
        let mut known: HashMap<(u32, u32), usize> = HashMap::new();
        for (place, row) in block.rows().enumerate() {
            let Some((caller, operation)) = self.find(row, blocks) else { continue };
            let Some((series, source)) = blocks.get(caller as usize) else { continue };
            let Some(named) = source.operations().get(operation as usize) else { continue };
            let index = *known.entry((caller, operation)).or_insert_with(|| {
                found.callers.push(Caller { series: *series, operation: named.clone() });
                found.callers.len() - 1
            });
            found.rows.push((place, index));
        }
        found
    }

    /// The block and the operation of the call that caused the segment of a row.
    fn find(&self, row: RowRef<'_>, blocks: &[(SeriesId, &ExecutionBlock)]) -> Option<(u32, u32)> {
        let (counter, trace) = (unmix64(row.parent()?.0), hash(row.trace()));
        let after = self.rows.partition_point(|key| (key.trace, key.first) <= (trace, counter));
        let key = self.rows.get(after.checked_sub(1)?)?;
        let (_, source) = blocks.get(key.block as usize)?;
        let found = source.rows().nth(key.row as usize).filter(|found| found.trace() == row.trace())?;
        let entered = found.shape().calls().get(found.shape().carried().len()..)?;
        let call = entered.get(usize::try_from(counter.checked_sub(key.first)?).ok()?)?;
        Some((key.block, call.operation))
    }
}

#[cfg(test)]
mod tests {
    use tacho_model::{Carried, Event, EventKind, Operation, OperationKind, Segment, SpanId};

    use super::*;
    use crate::{Chunk, encode_executions};

    const OPERATIONS: [&str; 3] = ["a", "b", "c"];

    fn operations() -> Vec<Operation> {
        let operation = |name: &str| Operation { kind: OperationKind::Method, name: name.into() };
        OPERATIONS.map(operation).into()
    }

    /// A segment that calls these operations, each within the one before.
    fn segment(trace: u128, base: u64, parent: Option<u64>, calls: &[u32]) -> Segment {
        let enters = calls.iter().map(|call| EventKind::Enter(*call));
        let exits = calls.iter().map(|_| EventKind::Exit);
        Segment {
            trace: TraceId(trace),
            base,
            part: 0,
            parent: parent.map(|counter| SpanId(mix64(counter))),
            thread: "t".into(),
            start: 0,
            carried: vec![],
            first_call: 0,
            events: enters.chain(exits).map(|kind| Event { delta: 1, kind }).collect(),
            attributes: vec![],
        }
    }

    fn block(segments: &[Segment]) -> ExecutionBlock {
        let mut block = ExecutionBlock::new();
        segments.iter().for_each(|segment| block.push(segment, &operations()));
        block
    }

    /// Series and name of the operation of the caller of each row, `-` without a caller.
    fn told(block: &ExecutionBlock) -> Vec<String> {
        let caller = |caller: &Caller| format!("{} {}", caller.series.0, caller.operation.name);
        block.rows().map(|row| row.caller().map_or("-".into(), caller)).collect()
    }

    #[test]
    fn callers_are_found_by_trace_and_span_in_all_blocks() {
        let callers = block(&[
            segment(1, 100, None, &[0, 1, 2]),
            segment(2, 100, None, &[2, 1]),
            segment(1, u64::MAX - 1, None, &[0, 1]),
        ]);
        let mut called = block(&[
            segment(1, 500, Some(101), &[0]),
            segment(1, 510, Some(100), &[0]),
            segment(2, 520, Some(101), &[0]),
            // Behind the last call of the segment, in an unknown trace, before each segment, and without a parent.
            segment(1, 530, Some(103), &[0]),
            segment(3, 540, Some(101), &[0]),
            segment(1, 550, Some(99), &[0]),
            segment(1, 560, None, &[0]),
            // The numbers of the calls of this segment are the largest.
            segment(1, 570, Some(u64::MAX), &[0]),
            // A call of the same block.
            segment(1, 580, Some(500), &[0]),
        ]);
        // A later part of a segment, without an enter.
        let exit = Event { delta: 1, kind: EventKind::Exit };
        let carried = vec![Carried { operation: 1, call: 1, age: 1 }];
        let part =
            Segment { part: 1, first_call: 1, carried, events: vec![exit], ..segment(1, 100, None, &[]) };
        called.push(&part, &operations());
        let (of_callers, of_called) = (SeriesId(7), SeriesId(8));
        let found = find_callers(&[(of_callers, &callers), (of_called, &called)]);
        assert!(found[0].is_empty() && !found[1].is_empty());
        called.set_callers(&found[1]);
        assert_eq!(told(&called), ["7 b", "7 a", "7 b", "-", "-", "-", "-", "7 b", "8 a", "-"]);
        let alone = find_callers(&[(of_callers, &callers)]);
        assert!(alone.iter().all(BlockCallers::is_empty));
    }

    #[test]
    fn callers_are_kept_by_a_chunk_and_by_a_copied_row() {
        let callers = block(&[segment(1, 100, None, &[0, 1])]);
        let mut called = block(&[
            segment(1, 500, Some(101), &[2]),
            segment(1, 600, Some(7), &[2]),
            segment(1, 700, None, &[2]),
        ]);
        let found = find_callers(&[(SeriesId(u128::MAX - 5), &callers), (SeriesId(8), &called)]);
        called.set_callers(&found[1]);
        let read = Chunk::open(&encode_executions(&called)).unwrap().executions().unwrap();
        assert_eq!(read, called);
        let mut copied = ExecutionBlock::new();
        // In another order, the caller has another index.
        (0..read.len()).rev().for_each(|row| copied.push_row(read.row(row)));
        let expected = format!("{} b", u128::MAX - 5);
        assert_eq!(
            (told(&read), told(&copied)),
            (vec![expected.clone(), "-".into(), "-".into()], vec!["-".into(), "-".into(), expected])
        );
        assert_eq!(read.callers(), called.callers());
    }
}
