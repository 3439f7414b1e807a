//! Which series on the two sides of a binary operation match?

use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::Labels;

use crate::Error;

use super::label_memory::LabelRoom;
use super::labels::chosen;
use super::node::LabelChoice;
use super::rows::Row;

/// Series of both sides with equal values for the labels of `on`, or for all labels except those of `ignoring` and the
/// name. `left` and `right` are indexes into the lists of rows.
pub struct Group {
    pub labels: Arc<Labels>,
    pub left: Vec<usize>,
    pub right: Vec<usize>,
}

/// Groups in order of first appearance, left side first.
pub fn groups(left: &[Row], right: &[Row], on: &LabelChoice, room: &LabelRoom) -> Result<Vec<Group>, Error> {
    let mut groups: Vec<Group> = Vec::new();
    let mut positions: HashMap<Arc<Labels>, usize> = HashMap::new();
    let mut find = |row: &Row, groups: &mut Vec<Group>| {
        room.check_cancel()?;
        let labels = chosen(&row.labels, on);
        if let Some(position) = positions.get(&labels) {
            return Ok(*position);
        }
        let labels = room.keep(labels)?;
        positions.insert(labels.clone(), groups.len());
        groups.push(Group { labels, left: Vec::new(), right: Vec::new() });
        Ok(groups.len() - 1)
    };
    for (index, row) in left.iter().enumerate() {
        let group = find(row, &mut groups)?;
        groups[group].left.push(index);
    }
    for (index, row) in right.iter().enumerate() {
        let group = find(row, &mut groups)?;
        groups[group].right.push(index);
    }
    Ok(groups)
}
