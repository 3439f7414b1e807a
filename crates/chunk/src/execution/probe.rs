//! Which segments of a chunk have an attribute with an accepted value? Decodes only the keys, the layouts, the layout of each
//! segment, and the columns with values of the key. If the table of keys lacks the key, decodes only that table.

use super::attributes::{AttributeData, Layout, Slot};
use super::block::ExecutionBlock;
use super::decode::{KeyColumns, count_values, take_layouts, total};
use super::selected::skip;
use crate::columns::Columns;
use crate::{Error, Header, Role};

/// For each segment, whether it has an attribute with this key and a value that `is_value` accepts. Empty if no segment has the
/// key.
pub(crate) fn with_value(
    header: &Header,
    mut columns: Columns<'_>,
    key: &str,
    is_value: &dyn Fn(&AttributeData) -> bool,
) -> Result<Vec<bool>, Error> {
    let Some(tables) = header.tables else { return Err(Error::value("tables", 0u64)) };
    columns.skip_to(Role::AttributeKey)?;
    let keys = columns.texts(Role::AttributeKey, tables.keys)?;
    // This encoder writes each key once; another encoder may repeat a key.
    let is_key: Vec<bool> = keys.iter().map(|name| name == key.as_bytes()).collect();
    if !is_key.contains(&true) {
        return Ok(vec![]);
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
    find(&layouts, &mut columns, &is_key, is_value)
}

/// `layouts`: of each segment. `columns` is at the first column of values.
fn find(
    layouts: &[&Layout],
    columns: &mut Columns<'_>,
    is_key: &[bool],
    is_value: &dyn Fn(&AttributeData) -> bool,
) -> Result<Vec<bool>, Error> {
    total(layouts.iter().map(|layout| layout.0.len()), "attributes")?;
    let slots =
        || layouts.iter().enumerate().flat_map(|(row, layout)| layout.0.iter().map(move |slot| (row, slot)));
    let is_wanted = |slot: &Slot| is_key.get(slot.key as usize) == Some(&true);
    let counts = count_values(slots().map(|(_, slot)| slot));
    let mut is_needed = vec![false; counts.len()];
    for (_, slot) in slots().filter(|(_, slot)| is_wanted(slot)) {
        is_needed.get_mut(slot.column()).into_iter().for_each(|needed| *needed = true);
    }
    let mut found = vec![false; layouts.len()];
    for (column, (forms, is_needed)) in counts.into_iter().zip(is_needed).enumerate() {
        if !is_needed {
            skip(columns, forms)?;
            continue;
        }
        let mut values = KeyColumns::take(columns, forms)?;
        for (row, slot) in slots().filter(|(_, slot)| slot.column() == column) {
            let Some(value) = values.next(slot.form) else { break };
            if is_wanted(slot) && is_value(&value) {
                found.get_mut(row).into_iter().for_each(|found| *found = true);
            }
        }
    }
    Ok(found)
}
