//! How are a few segments of a chunk decoded? The columns of times and values that these segments need are decoded, and other
//! columns of times and values are skipped. Tables and ids are decoded whole.

use std::ops::Range;

use super::attributes::{AttributeData, Form, Slot};
use super::block::ExecutionBlock;
use super::decode::{KeyColumns, add_rows, count_values, take_groups, take_rows_without_times};
use super::row::Row;
use crate::codec::Part;
use crate::columns::Columns;
use crate::{Error, Header, Role};

/// The segments for which `kept` is `true`, in order.
pub(crate) fn decode_selected(
    header: &Header,
    mut columns: Columns<'_>,
    kept: &[bool],
) -> Result<ExecutionBlock, Error> {
    let Some(tables) = header.tables else { return Err(Error::value("tables", 0u64)) };
    let (mut block, rows, _) = take_rows_without_times(&mut columns, &tables)?;
    block.deltas = take_times(&block, &rows, kept, &mut columns)?;
    block.values = take_values(&block, &rows, kept, &mut columns)?;
    columns.end()?;
    let (mut deltas, mut values) = (0usize, 0usize);
    for (number, row) in rows.into_iter().enumerate().filter(|(number, _)| is_kept(kept, *number)) {
        let events = block.shapes.get(row.shape).map_or(0, |shape| shape.events().len());
        let attributes = block.layouts.get(row.layout).map_or(0, |layout| layout.0.len());
        let row = Row { deltas_at: deltas, values_at: values, ..row };
        (deltas, values) = (deltas.saturating_add(events), values.saturating_add(attributes));
        add_rows(&mut block, std::iter::once((number, row)))?;
    }
    Ok(block)
}

fn is_kept(kept: &[bool], row: usize) -> bool {
    kept.get(row) == Some(&true)
}

/// The times of the kept rows. Of each column, decodes only the part from the first to the last of these times.
fn take_times(
    block: &ExecutionBlock,
    rows: &[Row],
    kept: &[bool],
    columns: &mut Columns<'_>,
) -> Result<Vec<u64>, Error> {
    let (contexts, groups) = take_groups(block, columns)?;
    let group_of = |context: &u32| groups.get(*context as usize).map_or(0, |group| *group as usize);
    let groups_of = |shape: u32| contexts.of(shape as usize).iter().map(group_of);
    let mut next = vec![0usize; groups.iter().max().map_or(0, |last| *last as usize + 1)];
    let mut skipped = Skipped { uses: vec![0; block.shapes.items().len()], shapes: vec![] };
    // Column and position of each time.
    let mut places: Vec<(usize, usize)> = vec![];
    for (number, row) in rows.iter().enumerate() {
        if !is_kept(kept, number) {
            skipped.add(row.shape);
            continue;
        }
        skipped.count(&mut next, groups_of);
        for group in groups_of(row.shape) {
            if let Some(next) = next.get_mut(group) {
                places.push((group, *next));
                *next += 1;
            }
        }
    }
    skipped.count(&mut next, groups_of);

    let mut parts: Vec<Range<usize>> = vec![0..0; next.len()];
    for (group, place) in &places {
        if let Some(part) = parts.get_mut(*group) {
            let start = if part.end == 0 { *place } else { part.start };
            *part = start..*place + 1;
        }
    }
    let mut times: Vec<Vec<u64>> = Vec::with_capacity(next.len());
    for (part, count) in parts.iter().zip(next) {
        times.push(if part.end == 0 {
            columns.skip_role(Role::Time)?;
            vec![]
        } else {
            columns.u64_part(Role::Time, &Part { count, places: part.clone() })?
        });
    }
    let time = |(group, place): (usize, usize)| {
        times.get(group)?.get(place.checked_sub(parts.get(group)?.start)?).copied()
    };
    Ok(places.into_iter().map_while(time).collect())
}

/// The rows since the last kept one. Rows with the same shape have the same number of times in each group.
struct Skipped {
    /// Of each shape, the number of rows.
    uses: Vec<usize>,
    /// The shapes of these rows.
    shapes: Vec<u32>,
}

impl Skipped {
    fn add(&mut self, shape: u32) {
        if let Some(uses) = self.uses.get_mut(shape as usize) {
            if *uses == 0 {
                self.shapes.push(shape);
            }
            *uses += 1;
        }
    }

    /// Adds the numbers of times of the rows to the counts of the groups, and forgets the rows.
    fn count<I: Iterator<Item = usize>>(&mut self, counts: &mut [usize], groups_of: impl Fn(u32) -> I) {
        for shape in self.shapes.drain(..) {
            let uses = self.uses.get_mut(shape as usize).map_or(0, std::mem::take);
            for group in groups_of(shape) {
                counts.get_mut(group).into_iter().for_each(|count| *count += uses);
            }
        }
    }
}

/// The values of the kept rows.
fn take_values(
    block: &ExecutionBlock,
    rows: &[Row],
    kept: &[bool],
    columns: &mut Columns<'_>,
) -> Result<Vec<AttributeData>, Error> {
    let slots_of = |row: &Row| block.layouts.get(row.layout).map_or(&[][..], |layout| &layout.0[..]);
    let all = || rows.iter().flat_map(slots_of);
    let of_kept =
        || rows.iter().enumerate().filter(|(n, _)| is_kept(kept, *n)).flat_map(|(_, row)| slots_of(row));
    let counts = count_values(all());
    let mut is_needed = vec![false; counts.len()];
    of_kept().for_each(|slot| is_needed.get_mut(slot.column()).into_iter().for_each(|needed| *needed = true));
    let mut keys = Vec::with_capacity(counts.len());
    for (forms, is_needed) in counts.into_iter().zip(is_needed) {
        if is_needed {
            keys.push(Some(KeyColumns::take(columns, forms)?));
        } else {
            skip(columns, forms)?;
            keys.push(None);
        }
    }
    let mut values = vec![];
    for (number, row) in rows.iter().enumerate() {
        let read =
            slots_of(row).iter().map_while(|slot| keys.get_mut(slot.column())?.as_mut()?.next(slot.form));
        if is_kept(kept, number) {
            values.extend(read);
        } else {
            skip_values(&mut keys, slots_of(row));
        }
    }
    Ok(values)
}

fn skip_values(keys: &mut [Option<KeyColumns>], slots: &[Slot]) {
    for slot in slots {
        keys.get_mut(slot.column()).into_iter().flatten().for_each(|values| values.skip(slot.form));
    }
}

/// Skips the columns of one key.
pub(super) fn skip(
    columns: &mut Columns<'_>,
    [texts, integers, ids]: [usize; Form::ALL.len()],
) -> Result<(), Error> {
    let present = [integers > 0, texts > 0, ids > 0, ids > 0];
    present.into_iter().filter(|is_present| *is_present).try_for_each(|_| columns.skip())
}
