//! Does a chunk have an attribute with an accepted value? Decodes only the keys, the layouts, the layout of each segment, and the
//! columns with values of the key. If the table of keys lacks the key, decodes only that table.

use super::attributes::{AttributeData, Form, Layout, Slot};
use super::block::ExecutionBlock;
use super::decode::{KeyColumns, take_layouts, total};
use crate::columns::Columns;
use crate::{Error, Header, Role};

/// Whether a segment has an attribute with this key and a value that `is_value` accepts.
pub(crate) fn has_value(
    header: &Header,
    mut columns: Columns<'_>,
    key: &str,
    is_value: &dyn Fn(&AttributeData) -> bool,
) -> Result<bool, Error> {
    let Some(tables) = header.tables else { return Err(Error::value("tables", 0u64)) };
    columns.skip_to(Role::AttributeKey)?;
    let keys = columns.texts(Role::AttributeKey, tables.keys)?;
    // This encoder writes each key once; another encoder may repeat a key.
    let is_key: Vec<bool> = keys.iter().map(|name| name == key.as_bytes()).collect();
    if !is_key.contains(&true) {
        return Ok(false);
    }
    columns.skip_to(Role::LayoutAttributes)?;
    let mut block = ExecutionBlock::new();
    take_layouts(&mut block, &mut columns, &tables)?;
    columns.skip_to(Role::Layout)?;
    let rows = columns.indices(Role::Layout, tables.segments, tables.layouts)?;
    while matches!(columns.role(), Some(Role::Caller | Role::Age | Role::TimeGroup | Role::Time)) {
        columns.skip()?;
    }
    let layouts: Vec<&Layout> = rows.iter().filter_map(|row| block.layouts.get(*row)).collect();
    has_in(&layouts, &mut columns, &is_key, is_value)
}

/// `columns` is at the first column of values.
fn has_in(
    layouts: &[&Layout],
    columns: &mut Columns<'_>,
    is_key: &[bool],
    is_value: &dyn Fn(&AttributeData) -> bool,
) -> Result<bool, Error> {
    total(layouts.iter().map(|layout| layout.0.len()), "attributes")?;
    let slots = || layouts.iter().flat_map(|layout| &layout.0);
    let is_wanted = |slot: &Slot| is_key.get(slot.key as usize) == Some(&true);
    // For the columns of each key: the number of values in each form, and whether one of the values has the wanted key.
    let mut counts: Vec<([usize; Form::ALL.len()], bool)> = vec![];
    for slot in slots() {
        if counts.len() <= slot.column() {
            counts.resize(slot.column() + 1, Default::default());
        }
        if let Some((forms, wanted)) = counts.get_mut(slot.column()) {
            forms.get_mut(slot.form as usize).into_iter().for_each(|count| *count += 1);
            *wanted |= is_wanted(slot);
        }
    }
    for (column, (forms, wanted)) in counts.into_iter().enumerate() {
        if !wanted {
            skip(columns, forms)?;
            continue;
        }
        let mut values = KeyColumns::take(columns, forms)?;
        let of_column = slots().filter(|slot| slot.column() == column);
        let mut values = of_column.map_while(|slot| Some((slot, values.next(slot.form)?)));
        if values.any(|(slot, value)| is_wanted(slot) && is_value(&value)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn skip(columns: &mut Columns<'_>, [texts, integers, ids]: [usize; Form::ALL.len()]) -> Result<(), Error> {
    let present = [integers > 0, texts > 0, ids > 0, ids > 0];
    present.into_iter().filter(|is_present| *is_present).try_for_each(|_| columns.skip())
}
