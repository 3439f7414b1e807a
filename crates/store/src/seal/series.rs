//! Encodes the entries or executions of one series in a sealed generation.

use tacho_chunk::{Encoding, encode_entries, encode_executions};
use tacho_model::{Kind, SeriesId, TimeRange, Timestamp};

use super::{CHUNK_VALUES_MAX, Sealed, Sealer, cuts};
use crate::generation::Generation;
use crate::keys::Span;
use crate::memtable::{OpenEntries, OpenExecutions};

pub fn seal(generation: &Generation, kind: Kind, id: SeriesId) -> Sealed {
    let mut sealer = Sealer::new(kind, id, generation.number);
    match kind {
        Kind::Sample => {}
        Kind::Entry => generation.entries.get(&id).into_iter().for_each(|open| entries(&mut sealer, open)),
        Kind::Execution => {
            generation.executions.get(&id).into_iter().for_each(|open| executions(&mut sealer, open));
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

fn executions(sealer: &mut Sealer, open: &OpenExecutions) {
    for (bucket, block) in open.blocks() {
        sealer.put(bucket.span, block.range().start, block.calls(), encode_executions(block));
    }
}
