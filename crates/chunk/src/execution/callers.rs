//! Which call caused a segment? The span id of a call is `mix64` of a number: the span base of its segment plus the number of the
//! call. The inverse of `mix64` turns the parent of a segment into this number, and an index of the rows finds the row with this
//! call.

use std::collections::HashMap;

use tacho_model::{SeriesId, unmix64};

use super::block::ExecutionBlock;
use super::caller::Caller;
use super::row::RowRef;

/// The callers of the segments of one block.
#[derive(Clone, Debug, Default)]
pub struct BlockCallers {
    callers: Vec<Caller>,
    /// For each row with a parent, in order: index of its caller in `callers`; `None` if the caller was not found.
    rows: Vec<Option<u32>>,
}

impl BlockCallers {
    /// Whether the block has no row with a parent.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl ExecutionBlock {
    /// Stores the callers that were found for the rows of this block.
    pub fn set_callers(&mut self, found: &BlockCallers) {
        let mut callers = found.rows.iter();
        for row in 0..self.len() {
            if self.row(row).parent().is_some()
                && let Some(caller) = callers.next()
            {
                let caller = caller.and_then(|caller| found.callers.get(caller as usize));
                self.set_caller(row, caller);
            }
        }
    }
}

/// Finds the callers of all segments in these blocks, each with the id of its series, among the calls of these blocks. Returns
/// the callers for each block, in the order of the blocks. The time is proportional to `n log n` for `n` rows with any ids. The
/// index takes 24 bytes for each row if a row has a parent, and the result 8 bytes for each row with a parent.
pub fn find_callers(blocks: &[(SeriesId, &ExecutionBlock)]) -> Vec<BlockCallers> {
    let has_parent = |block: &ExecutionBlock| block.rows().any(|row| row.parent().is_some());
    let is_needed = blocks.iter().any(|(_, block)| has_parent(block));
    let index = if is_needed { Index::of(blocks) } else { Index::default() };
    blocks.iter().map(|(_, block)| index.callers_of(block, blocks)).collect()
}

/// Where the calls are.
#[derive(Default)]
struct Index {
    /// The rows that enter calls, sorted, each with its first entered call. Rows without an enter are omitted, because they have
    /// the same first call as the next part of their segment.
    entered: Vec<Key>,
    /// The carried calls, which an earlier part has entered. Each has an item of its own; sorted.
    carried: Vec<Key>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Hash of the trace id. A match is compared with the whole id.
    trace: u64,
    /// Span base plus the number of the call.
    call: u64,
    block: u32,
    row: u32,
}

impl Index {
    fn of(blocks: &[(SeriesId, &ExecutionBlock)]) -> Self {
        let rows = blocks.iter().map(|(_, block)| block.len()).sum();
        let mut index = Self { entered: Vec::with_capacity(rows), carried: vec![] };
        for (block, (_, source)) in (0u32..).zip(blocks) {
            for (row, found) in (0u32..).zip(source.rows()) {
                let key = |call: u32| {
                    let call = found.base().wrapping_add(call.into());
                    Key { trace: found.trace().hash64(), call, block, row }
                };
                if !found.entered().is_empty() {
                    index.entered.push(key(found.first_call()));
                }
                index.carried.extend(found.shape().carried().iter().map(|(_, call)| key(*call)));
            }
        }
        index.entered.sort_unstable();
        index.carried.sort_unstable();
        index
    }

    fn callers_of(&self, block: &ExecutionBlock, blocks: &[(SeriesId, &ExecutionBlock)]) -> BlockCallers {
        let mut found = BlockCallers::default();
        // Block and operation of each caller, with its index in the result.
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        for row in block.rows().filter(|row| row.parent().is_some()) {
            let caller = self.find(row, blocks).and_then(|(caller, operation)| {
                let (series, source) = blocks.get(caller as usize)?;
                let named = source.operations().get(operation as usize)?;
                Some(*known.entry((caller, operation)).or_insert_with(|| {
                    found.callers.push(Caller { series: *series, operation: named.clone() });
                    u32::try_from(found.callers.len() - 1).unwrap_or(u32::MAX)
                }))
            });
            found.rows.push(caller);
        }
        found
    }

    /// The block and the operation of the call that caused the segment of a row.
    fn find(&self, row: RowRef<'_>, blocks: &[(SeriesId, &ExecutionBlock)]) -> Option<(u32, u32)> {
        let (trace, call) = (row.trace().hash64(), unmix64(row.parent()?.0));
        // The last key that is not after the call.
        let last = |keys: &[Key]| -> Option<Key> {
            let after = keys.partition_point(|key| (key.trace, key.call) <= (trace, call));
            keys.get(after.checked_sub(1)?).copied()
        };
        let found = |key: &Key| -> Option<RowRef<'_>> {
            let (_, source) = blocks.get(key.block as usize)?;
            let found = source.row(key.row as usize);
            (found.trace() == row.trace()).then_some(found)
        };
        let entered = last(&self.entered).and_then(|key| {
            let number = usize::try_from(call.checked_sub(key.call)?).ok()?;
            Some((key.block, found(&key)?.entered().get(number)?.operation))
        });
        let carried = || {
            let key = last(&self.carried).filter(|key| key.call == call)?;
            let found = found(&key)?;
            let mut carried = found.shape().carried().iter();
            let is_call = |(_, number): &&(u32, u32)| found.base().wrapping_add((*number).into()) == call;
            carried.find(is_call).map(|(operation, _)| (key.block, *operation))
        };
        entered.or_else(carried)
    }
}

#[cfg(test)]
mod tests {
    use tacho_model::{Carried, Event, EventKind, Operation, OperationKind, Segment, SpanId, TraceId, mix64};

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
        // Later parts of a segment without an enter: one whose first part is known, and one whose first part is not.
        let exit = Event { delta: 1, kind: EventKind::Exit };
        for base in [100, 800] {
            let carried = vec![Carried { operation: 1, call: 1, age: 1 }];
            let part = Segment {
                part: 1,
                first_call: 1,
                carried,
                events: vec![exit],
                ..segment(1, base, None, &[])
            };
            called.push(&part, &operations());
        }
        called.push(&segment(1, 900, Some(801), &[0]), &operations());
        called.push(&segment(1, 910, Some(800), &[0]), &operations());
        let (of_callers, of_called) = (SeriesId(7), SeriesId(8));
        let found = find_callers(&[(of_callers, &callers), (of_called, &called)]);
        assert!(found[0].is_empty() && !found[1].is_empty());
        called.set_callers(&found[1]);
        assert_eq!(
            told(&called),
            ["7 b", "7 a", "7 b", "-", "-", "-", "-", "7 b", "8 a", "-", "-", "8 b", "-"]
        );
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
