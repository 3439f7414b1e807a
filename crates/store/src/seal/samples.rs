//! Encodes the samples of one group in a sealed generation. Columns with the same times share a chunk.

use std::ops::Range;

use tacho_chunk::{Encoding, GroupColumn, ValueColumn, Values, encode_group};
use tacho_model::{Kind, TimeRange, Timestamp};

use super::{Sealed, Sealer, cuts};
use crate::generation::Generation;
use crate::group::home::Share;
use crate::keys::Span;
use crate::memtable::Column;

/// Columns with the same times.
struct Class {
    at: Vec<Timestamp>,
    columns: Vec<(u16, ValueColumn)>,
}

/// The chunks of a group in one generation. Each has at most `chunk_values` times.
pub fn seal(share: &Share, generation: &Generation, chunk_values: usize) -> Sealed {
    let mut classes: Vec<Class> = Vec::new();
    let mut replaced = 0;
    for (member, number) in &share.members {
        let Some(open) = generation.samples.get(*number) else { continue };
        let (columns, dropped) = open.columns(TimeRange::ALL);
        replaced += dropped as u64;
        for Column { at, values } in columns {
            // The comparison is usually fast: there is only one class, or the slices differ in length or
            // in the first times.
            match classes.iter_mut().find(|class| class.at == at) {
                Some(class) => class.columns.push((*member, values)),
                None => classes.push(Class { at, columns: vec![(*member, values)] }),
            }
        }
    }
    let mut sealer = Sealer::new(Kind::Sample, share.group, generation.number);
    for class in classes {
        for cut in cuts(&class.at, chunk_values, |_| 0) {
            let Some(at @ [first, ..]) = class.at.get(cut.clone()) else { continue };
            let columns: Vec<GroupColumn<'_>> = class
                .columns
                .iter()
                .map(|(member, all)| GroupColumn {
                    member: *member,
                    values: part(all, cut.clone()),
                    loss: None,
                })
                .collect();
            let bytes = encode_group(at, 0, &columns, &Encoding::default());
            sealer.put(Span::Short, *first, at.len() * columns.len(), bytes);
        }
    }
    let mut sealed = sealer.finish();
    sealed.replaced = replaced;
    sealed
}

fn part(values: &ValueColumn, places: Range<usize>) -> Values<'_> {
    match values {
        ValueColumn::F64(v) => Values::F64(v.get(places).unwrap_or_default()),
        ValueColumn::I64(v) => Values::I64(v.get(places).unwrap_or_default()),
        ValueColumn::U64(v) => Values::U64(v.get(places).unwrap_or_default()),
    }
}
