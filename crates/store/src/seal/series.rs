//! Encodes the entries or executions of one series in a sealed generation.

use std::collections::HashMap;

use tacho_chunk::{BlockCallers, Encoding, encode_entries, encode_executions, find_callers};
use tacho_model::{Kind, SeriesId, TimeRange, Timestamp};

use super::{CHUNK_VALUES_MAX, Sealed, Sealer, cuts};
use crate::generation::Generation;
use crate::keys::Span;
use crate::memtable::{OpenEntries, OpenExecutions};

/// The callers of the segments of a generation: for each series, those of each block in the order of
/// [`OpenExecutions::blocks`].
pub type Callers = HashMap<SeriesId, Vec<BlockCallers>>;

/// Finds the callers of all segments of a generation among the calls of this generation.
pub fn callers(generation: &Generation) -> Callers {
    let of_series = |(id, open): (&SeriesId, &'_ OpenExecutions)| (*id, open.blocks().count());
    let mut counts: Vec<(SeriesId, usize)> = generation.executions.iter().map(of_series).collect();
    counts.sort_unstable();
    let blocks = counts.iter().filter_map(|(id, _)| Some((*id, generation.executions.get(id)?)));
    let blocks: Vec<_> =
        blocks.flat_map(|(id, open)| open.blocks().map(move |(_, block)| (id, &**block))).collect();
    let mut found = find_callers(&blocks).into_iter();
    counts.into_iter().map(|(id, count)| (id, found.by_ref().take(count).collect())).collect()
}

pub fn seal(generation: &Generation, callers: &Callers, kind: Kind, id: SeriesId) -> Sealed {
    let mut sealer = Sealer::new(kind, id, generation.number);
    match kind {
        Kind::Sample => {}
        Kind::Entry => generation.entries.get(&id).into_iter().for_each(|open| entries(&mut sealer, open)),
        Kind::Execution => {
            let callers = callers.get(&id).map(Vec::as_slice).unwrap_or_default();
            generation
                .executions
                .get(&id)
                .into_iter()
                .for_each(|open| executions(&mut sealer, open, callers));
        }
    }
    sealer.finish()
}

fn entries(sealer: &mut Sealer, open: &OpenEntries) {
    let mut entries = open.read(TimeRange::ALL);
    entries.sort_by_key(|entry| entry.at);
    let at: Vec<Timestamp> = entries.iter().map(|entry| entry.at).collect();
    for cut in cuts(&at, CHUNK_VALUES_MAX, |i| entries.get(i).map_or(0, |entry| entry.body.as_bytes().len()))
    {
        let Some(chunk @ [first, ..]) = entries.get(cut) else { continue };
        sealer.put(Span::Short, first.at, chunk.len(), encode_entries(chunk, &Encoding::default()));
    }
}

fn executions(sealer: &mut Sealer, open: &OpenExecutions, callers: &[BlockCallers]) {
    for (number, (bucket, block)) in open.blocks().enumerate() {
        let bytes = match callers.get(number).filter(|callers| !callers.is_empty()) {
            Some(callers) => {
                let mut called = (**block).clone();
                called.set_callers(callers);
                encode_executions(&called)
            }
            None => encode_executions(block),
        };
        sealer.put(bucket.span, block.range().start, block.calls(), bytes);
    }
}
