//! How is a block encoded? Its columns have the order of `docs/format/chunk.md`.

use tacho_model::{EventKind, Kind, unmix64};

use super::attributes::AttributeData;
use super::block::ExecutionBlock;
use super::caller::Caller;
use super::row::Row;
use super::times::{Contexts, Size, group};
use crate::builder::Builder;
use crate::bytes::low_word;
use crate::header::Tables;
use crate::{Encoding, Role, codec, filter, summary, verify};

/// Encodes the segments of a block in order.
///
/// # Panics
/// If the block is empty or exceeds the limits of the format. See [`ExecutionBlock::is_full`].
pub fn encode_executions(block: &ExecutionBlock) -> Vec<u8> {
    encode_executions_with(block, &Encoding::default())
}

/// Like [`encode_executions`], with any encoding.
///
/// # Panics
/// Like [`encode_executions`].
pub fn encode_executions_with(block: &ExecutionBlock, encoding: &Encoding) -> Vec<u8> {
    assert!(!block.is_empty(), "a chunk must have at least one record");
    assert!(block.fits(), "{} segments with {} events in one chunk", block.len(), block.deltas.len());
    let mut builder = Builder::new(encoding);
    put_names(&mut builder, block);
    put_shapes(&mut builder, block);
    put_layouts(&mut builder, block);
    put_ids(&mut builder, block);
    put_rows(&mut builder, block);
    put_times(&mut builder, block);
    put_values(&mut builder, block);
    builder.filters(filter::build(block));
    if let Some(summary) = summary::summary(block) {
        builder.summary(summary::encode(&summary, encoding));
    }
    let tables = Tables {
        segments: block.len(),
        operations: block.operations.items().len(),
        threads: block.threads.items().len(),
        keys: block.keys.items().len(),
        shapes: block.shapes.items().len(),
        layouts: block.layouts.items().len(),
        callers: block.callers.items().len(),
    };
    let bytes = builder.finish(Kind::Execution, block.calls(), block.range(), Some(tables));
    verify::executions(&bytes, block);
    bytes
}

fn put_names(builder: &mut Builder<'_>, block: &ExecutionBlock) {
    let operations = block.operations.items();
    let kinds: Vec<u64> = operations.iter().map(|operation| operation.kind as u64).collect();
    let names: Vec<&[u8]> = operations.iter().map(|operation| operation.name.as_bytes()).collect();
    let threads: Vec<&[u8]> = block.threads.items().iter().map(|name| name.as_bytes()).collect();
    let keys: Vec<&[u8]> = block.keys.items().iter().map(|key| key.as_bytes()).collect();
    builder.u64(Role::OperationKind, &kinds);
    builder.strings(Role::OperationName, &names);
    put_callers(builder, block.callers.items());
    builder.strings(Role::ThreadName, &threads);
    builder.strings(Role::AttributeKey, &keys);
}

fn put_callers(builder: &mut Builder<'_>, callers: &[Caller]) {
    if callers.is_empty() {
        return;
    }
    let [highs, lows] =
        [64, 0].map(|shift| column(callers.iter(), |caller| low_word(caller.series.0 >> shift)));
    let names: Vec<&[u8]> = callers.iter().map(|caller| caller.operation.name.as_bytes()).collect();
    builder.u64(Role::CallerSeriesHigh, &highs);
    builder.u64(Role::CallerSeriesLow, &lows);
    builder.u64(Role::CallerKind, &column(callers.iter(), |caller| caller.operation.kind as u64));
    builder.strings(Role::CallerName, &names);
}

/// The number of an event: 0 for an exit, 1 for a failed exit, 2 + operation for an enter.
fn event(kind: EventKind) -> u64 {
    match kind {
        EventKind::Exit => 0,
        EventKind::ExitFailed => 1,
        EventKind::Enter(operation) => u64::from(operation) + 2,
    }
}

fn put_shapes(builder: &mut Builder<'_>, block: &ExecutionBlock) {
    let shapes = || block.shapes.items().iter();
    let carried = || shapes().flat_map(|shape| shape.carried());
    builder.u64(Role::ShapeCarried, &column(shapes(), |shape| shape.carried().len() as u64));
    builder.u64(Role::CarriedOperation, &column(carried(), |(operation, _)| (*operation).into()));
    builder.u64(Role::CarriedCall, &column(carried(), |(_, call)| (*call).into()));
    builder.u64(Role::ShapeEvents, &column(shapes(), |shape| shape.events().len() as u64));
    builder.u64(Role::Event, &column(shapes().flat_map(|shape| shape.events()), |kind| event(*kind)));
}

fn put_layouts(builder: &mut Builder<'_>, block: &ExecutionBlock) {
    let layouts = || block.layouts.items().iter();
    let slots = || layouts().flat_map(|layout| &layout.0);
    builder.u64(Role::LayoutAttributes, &column(layouts(), |layout| layout.0.len() as u64));
    builder.u64(Role::LayoutCall, &column(slots(), |slot| slot.call.into()));
    builder.u64(Role::LayoutKey, &column(slots(), |slot| slot.key.into()));
    builder.u64(Role::LayoutForm, &column(slots(), |slot| slot.form as u64));
}

/// An agent derives trace and span ids from one counter. So the counter of an id is often near the span base, which is a value of
/// the same counter, and their difference takes less space than the id.
fn put_ids(builder: &mut Builder<'_>, block: &ExecutionBlock) {
    let rows = || block.rows.iter();
    let bases = column(rows(), |row| row.base);
    let [highs, lows] = [64, 0].map(|shift| column(rows(), |row| low_word(row.trace.0 >> shift)));
    let with_parent = || rows().filter_map(|row| Some((row.parent?.0, row.base)));
    let parents = column(with_parent(), |(parent, _)| parent);
    let parents_bases = column(with_parent(), |(_, base)| base);

    builder.u64(Role::Base, &bases);
    builder.u64(Role::TraceHigh, &highs);
    put_related(builder, [Role::TraceLow, Role::TraceLowFromBase], &lows, &bases);
    builder.u64(Role::Part, &column(rows(), |row| row.part.into()));
    builder.u64(Role::ParentThere, &column(rows(), |row| row.parent.is_some().into()));
    put_related(builder, [Role::Parent, Role::ParentFromBase], &parents, &parents_bases);
}

/// Writes ids unchanged or as counters relative to the span bases, whichever form is more ordered.
fn put_related(builder: &mut Builder<'_>, [as_is, from_base]: [Role; 2], ids: &[u64], bases: &[u64]) {
    let related: Vec<u64> =
        ids.iter().zip(bases).map(|(id, base)| unmix64(*id).wrapping_sub(*base)).collect();
    let unmixed = ids.iter().map(|id| unmix64(*id));
    let alone = codec::disorder(ids.iter().copied()).min(codec::disorder(unmixed));
    if codec::disorder(related.iter().copied()) < alone {
        builder.u64(from_base, &related);
    } else {
        builder.u64(as_is, ids);
    }
}

fn put_rows(builder: &mut Builder<'_>, block: &ExecutionBlock) {
    let rows = || block.rows.iter();
    let starts: Vec<i64> = rows().map(|row| row.start).collect();
    let of = |field: fn(&Row) -> u32| column(rows(), |row| field(row).into());
    builder.u64(Role::Thread, &of(|row| row.thread));
    builder.i64(Role::Start, &starts);
    builder.u64(Role::FirstCall, &of(|row| row.first_call));
    builder.u64(Role::Shape, &of(|row| row.shape));
    builder.u64(Role::Layout, &of(|row| row.layout));
    if rows().any(|row| row.caller != Row::NOT_SEARCHED) {
        let with_parent = rows().filter(|row| row.parent.is_some());
        builder.u64(Role::Caller, &column(with_parent, |row| row.caller.into()));
    }
}

fn put_times(builder: &mut Builder<'_>, block: &ExecutionBlock) {
    let contexts = Contexts::new(block.shapes.items());
    let times = || block.rows().flat_map(|row| contexts.of(row.shape_index()).iter().zip(row.deltas()));
    let mut sizes = vec![Size::default(); contexts.len];
    for (context, time) in times() {
        if let Some(size) = sizes.get_mut(*context as usize) {
            size.add(*time);
        }
    }
    let (groups, len) = group(&sizes);
    let mut grouped = vec![vec![]; len];
    for (context, time) in times() {
        let group = groups.get(*context as usize).and_then(|group| usize::try_from(*group).ok());
        if let Some(group) = group.and_then(|group| grouped.get_mut(group)) {
            group.push(*time);
        }
    }
    builder.u64(Role::Age, &block.ages);
    builder.u64(Role::TimeGroup, &groups);
    for group in grouped {
        builder.u64(Role::Time, &group);
    }
}

/// Values of one key, by form.
#[derive(Default)]
struct KeyColumns<'a> {
    integers: Vec<i64>,
    texts: Vec<&'a [u8]>,
    ids: [Vec<u64>; 2],
}

fn put_values(builder: &mut Builder<'_>, block: &ExecutionBlock) {
    let mut keys: Vec<KeyColumns<'_>> = vec![];
    for row in block.rows() {
        for (slot, value) in row.layout().0.iter().zip(row.values()) {
            if keys.len() <= slot.column() {
                keys.resize_with(slot.column() + 1, KeyColumns::default);
            }
            if let Some(key) = keys.get_mut(slot.column()) {
                key.push(value);
            }
        }
    }
    for key in keys {
        if !key.integers.is_empty() {
            builder.i64(Role::Integer, &key.integers);
        }
        if !key.texts.is_empty() {
            builder.strings(Role::Text, &key.texts);
        }
        let [high, low] = &key.ids;
        if !high.is_empty() {
            builder.u64(Role::IdHigh, high);
            builder.u64(Role::IdLow, low);
        }
    }
}

impl<'a> KeyColumns<'a> {
    fn push(&mut self, value: &'a AttributeData) {
        match value {
            AttributeData::Integer(number) => self.integers.push(*number),
            AttributeData::Text(text) => self.texts.push(text.as_bytes()),
            AttributeData::Id([high, low]) => {
                let [highs, lows] = &mut self.ids;
                highs.push(*high);
                lows.push(*low);
            }
        }
    }
}

fn column<T>(items: impl Iterator<Item = T>, word: impl Fn(T) -> u64) -> Vec<u64> {
    items.map(word).collect()
}
