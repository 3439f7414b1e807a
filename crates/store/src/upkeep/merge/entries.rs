//! Merges rows of entries. Entries are sorted by time; entries with the same time stay in their order of arrival.

use std::ops::Range;

use tacho_chunk::{Chunk, Encoding, encode_entries};
use tacho_model::{Entry, Timestamp};

use super::rows::{Cutting, Made, Merged, Source, Treatment, Unreadable, failed, generation, span_of};
use crate::group::resent::Overhang;
use crate::keys::CHUNK_WIDE_SPAN_MAX_NS;
use crate::seal::CHUNK_BODIES_BYTES_MAX;

pub fn merge(
    sources: &[Source],
    treatment: &Treatment,
    until: Timestamp,
    cutting: &Cutting,
) -> Result<Merged, Unreadable> {
    let mut merged = Merged::default();
    let mut order: Vec<(usize, &Source)> = sources.iter().enumerate().collect();
    order.sort_by_key(|(_, source)| (source.key.generation, source.key.number, source.key.start));
    let (mut kept, mut rests) = (Vec::new(), Vec::new());
    for (number, source) in order {
        let chunk = Chunk::open(&source.chunk).map_err(failed(number))?;
        let mut entries = chunk.entries().map_err(failed(number))?;
        merged.records += entries.len() as u64;
        entries.retain(|entry| !treatment.drops(source.key.generation, entry.at));
        let (now, rest): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|entry| entry.at <= until);
        kept.extend(now);
        rests.push((source.key, rest));
    }
    // The sort is stable, so the order of arrival is kept.
    kept.sort_by_key(|entry| entry.at);
    let generation = generation(sources);
    merged.rows.extend(encode(&kept, cutting).map(|row| Made { generation, ..row }));
    for (key, rest) in rests {
        let (generation, rest_of) = (key.generation, Some(key));
        // The rest must be one row, because it keeps the number of its source row.
        let whole = Cutting { records: usize::MAX, ..*cutting };
        merged.rows.extend(encode(&rest, &whole).map(|row| Made { generation, rest_of, ..row }));
    }
    Ok(merged)
}

fn encode<'a>(entries: &'a [Entry], cutting: &Cutting) -> impl Iterator<Item = Made> + use<'a> {
    cuts(entries, cutting.records).into_iter().filter_map(move |cut| {
        let entries = entries.get(cut)?;
        let (start, end) = (entries.first()?.at, entries.last()?.at);
        let chunk = encode_entries(entries, &Encoding::thorough()).into();
        let records = entries.len() as u64;
        let (span, overhang) = (span_of(start, end), Overhang::default());
        Some(Made { span, start, overhang, generation: 0, rest_of: None, records, chunk })
    })
}

/// Cuts entries by number, bytes of bodies, and time.
fn cuts(entries: &[Entry], records: usize) -> Vec<Range<usize>> {
    let mut cuts: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (at, entry) in entries.iter().enumerate() {
        let weight = entry.body.as_bytes().len();
        bytes += weight;
        let fits = |cut: &&mut Range<usize>| {
            let first = entries.get(cut.start).unwrap_or(entry);
            let long = entry.at.abs_diff(first.at) > CHUNK_WIDE_SPAN_MAX_NS;
            cut.len() < records.max(1) && bytes <= CHUNK_BODIES_BYTES_MAX && !long
        };
        match cuts.last_mut().filter(fits) {
            Some(cut) => cut.end = at + 1,
            None => {
                cuts.push(at..at + 1);
                bytes = weight;
            }
        }
    }
    cuts
}
