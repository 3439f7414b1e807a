//! Which series of the two sides of a binary operation belong together?

use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::Labels;

use super::labels::chosen;
use super::node::LabelChoice;
use super::rows::Row;

/// Series of both sides that agree in the labels of `on` or `ignoring`; positions in the lists of rows.
pub struct Group {
    pub labels: Arc<Labels>,
    pub left: Vec<usize>,
    pub right: Vec<usize>,
}

/// Groups in order of appearance, left side first.
pub fn groups(left: &[Row], right: &[Row], on: &LabelChoice) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut positions: HashMap<Arc<Labels>, usize> = HashMap::new();
    let mut find = |row: &Row, groups: &mut Vec<Group>| {
        let labels = chosen(&row.labels, on);
        *positions.entry(labels.clone()).or_insert_with(|| {
            groups.push(Group { labels, left: Vec::new(), right: Vec::new() });
            groups.len() - 1
        })
    };
    for (index, row) in left.iter().enumerate() {
        let group = find(row, &mut groups);
        groups[group].left.push(index);
    }
    for (index, row) in right.iter().enumerate() {
        let group = find(row, &mut groups);
        groups[group].right.push(index);
    }
    groups
}
