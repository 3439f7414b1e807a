//! What is the aggregate of the series of each group at each step?
//!
//! Step before: `evaluate.rs`, which provides the rows. `functions/over_time.rs` uses the same folds (`fold.rs`).

use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::Labels;

use crate::Error;

use super::fold::{Count, Fold, Max, Mean, Min, One, Sum};
use super::grid::Grid;
use super::label_memory::LabelRoom;
use super::labels::{chosen, with};
use super::node::{Aggregate, AggregateOp, LabelChoice};
use super::quantile::{by_value, quantile};
use super::rows::{Canvas, Row, Twins, Value, settle};
use super::variance::{Deviation, Variance};
use super::{STALE, is_stale};

pub fn compute(
    node: &Aggregate,
    parameter: Option<Value<'_>>,
    rows: Vec<Row>,
    canvas: &Canvas<'_>,
) -> Result<Vec<Row>, Error> {
    let grid = &canvas.grid;
    let groups = |rows| groups(rows, &node.grouping, canvas.labels);
    let scalar = |parameter: Option<Value<'_>>| match parameter {
        Some(value) => value.into_scalar(),
        None => Err(Error::execution("internal: aggregation without its parameter")),
    };
    let rows = match node.op {
        AggregateOp::Sum => folded::<Sum>(groups(rows)?, grid),
        AggregateOp::Avg => folded::<Mean>(groups(rows)?, grid),
        AggregateOp::Min => folded::<Min>(groups(rows)?, grid),
        AggregateOp::Max => folded::<Max>(groups(rows)?, grid),
        AggregateOp::Count => folded::<Count>(groups(rows)?, grid),
        AggregateOp::Group => folded::<One>(groups(rows)?, grid),
        AggregateOp::Stddev => folded::<Deviation>(groups(rows)?, grid),
        AggregateOp::Stdvar => folded::<Variance>(groups(rows)?, grid),
        AggregateOp::Quantile => quantiles(groups(rows)?, &scalar(parameter)?),
        AggregateOp::Topk | AggregateOp::Bottomk | AggregateOp::Limitk => {
            selected(node.op, groups(rows)?, &counts(&scalar(parameter)?)?)
        }
        AggregateOp::CountValues => match parameter {
            Some(label) => counted_values(&rows, &label.into_text()?, &node.grouping, canvas)?,
            None => return Err(Error::execution("internal: count_values without its label")),
        },
    };
    settle(rows, Twins::Join)
}

struct Group {
    labels: Arc<Labels>,
    members: Vec<Row>,
}

/// Groups in order of first appearance.
fn groups(rows: Vec<Row>, grouping: &LabelChoice, room: &LabelRoom) -> Result<Vec<Group>, Error> {
    let mut groups: Vec<Group> = Vec::new();
    let mut positions: HashMap<Arc<Labels>, usize> = HashMap::new();
    for row in rows {
        room.check_cancel()?;
        let labels = chosen(&row.labels, grouping);
        let position = match positions.get(&labels) {
            Some(position) => *position,
            None => {
                let labels = room.keep(labels)?;
                positions.insert(labels.clone(), groups.len());
                groups.push(Group { labels, members: Vec::new() });
                groups.len() - 1
            }
        };
        groups[position].members.push(row);
    }
    Ok(groups)
}

fn folded<F: Fold>(groups: Vec<Group>, grid: &Grid) -> Vec<Row> {
    let mut states: Vec<Option<F>> = Vec::new();
    let fold = |group: Group| {
        states.clear();
        states.resize_with(grid.count, || None);
        for member in &group.members {
            for (state, value) in states.iter_mut().zip(&member.points) {
                match state {
                    _ if is_stale(*value) => {}
                    Some(state) => state.add(*value),
                    None => *state = Some(F::new(*value)),
                }
            }
        }
        let points = states.iter().map(|state| state.as_ref().map_or(STALE, F::end)).collect();
        Row { labels: group.labels, points }
    };
    groups.into_iter().map(fold).collect()
}

fn quantiles(groups: Vec<Group>, q: &[f64]) -> Vec<Row> {
    let mut values = Vec::new();
    let of_group = |group: Group| {
        let points = q.iter().enumerate().map(|(step, q)| {
            values.clear();
            values.extend(group.members.iter().filter_map(|member| member.at(step)));
            if values.is_empty() { STALE } else { quantile(*q, &mut values) }
        });
        Row { points: points.collect(), labels: group.labels }
    };
    groups.into_iter().map(of_group).collect()
}

/// `k` as a count for each step; a value below 1 selects no series.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked against the range before"
)]
fn counts(k: &[f64]) -> Result<Vec<usize>, Error> {
    let count = |k: &f64| {
        if k.is_nan() || k.abs() >= 9.2e18 {
            return Err(Error::execution(format!("scalar value {k} overflows int64")));
        }
        Ok(if *k < 1.0 { 0 } else { *k as usize })
    };
    k.iter().map(count).collect()
}

/// The `k` best members of each group at each step. With a single step, the rows of a group are sorted, the best first.
fn selected(op: AggregateOp, groups: Vec<Group>, k: &[usize]) -> Vec<Row> {
    let mut rows = Vec::new();
    for mut group in groups {
        let mut order = Vec::new();
        let mut kept = vec![vec![STALE; k.len()]; group.members.len()];
        for (step, k) in k.iter().enumerate() {
            let mut there: Vec<(usize, f64)> = Vec::new();
            there.extend(
                group.members.iter().enumerate().filter_map(|(index, row)| Some((index, row.at(step)?))),
            );
            rank(op, &mut there);
            for (index, value) in there.into_iter().take(*k) {
                kept[index][step] = value;
                order.push(index);
            }
        }
        for index in order {
            // At a later occurrence of the same member, its points are already taken.
            let points = std::mem::take(&mut kept[index]);
            if !points.is_empty() {
                group.members[index].points = points;
                rows.push(group.members[index].clone());
            }
        }
    }
    rows
}

/// Sorts the best values first and NaN last. Equal values keep the given order, as do all values for `limitk`.
fn rank(op: AggregateOp, there: &mut [(usize, f64)]) {
    let by_nan = |a: f64, b: f64| a.is_nan().cmp(&b.is_nan());
    match op {
        AggregateOp::Topk => there.sort_by(|(_, a), (_, b)| by_nan(*a, *b).then_with(|| by_value(b, a))),
        AggregateOp::Bottomk => there.sort_by(|(_, a), (_, b)| by_nan(*a, *b).then_with(|| by_value(a, b))),
        _ => {}
    }
}

fn counted_values(
    rows: &[Row],
    label: &str,
    grouping: &LabelChoice,
    canvas: &Canvas<'_>,
) -> Result<Vec<Row>, Error> {
    if label.is_empty() {
        return Err(Error::execution("invalid label name \"\""));
    }
    // The label with the value also identifies the group, even if `by` does not name it.
    let grouping = match grouping {
        LabelChoice::Only(names) => {
            LabelChoice::Only(names.iter().cloned().chain([label.to_owned()]).collect())
        }
        without => without.clone(),
    };
    let mut groups: Vec<Row> = Vec::new();
    let mut positions: HashMap<Arc<Labels>, usize> = HashMap::new();
    for row in rows {
        canvas.labels.check_cancel()?;
        for (step, value) in row.points.iter().enumerate().filter(|(_, value)| !is_stale(**value)) {
            let labels = chosen(&*with(&row.labels, &[(label, &plain(*value))])?, &grouping);
            let position = match positions.get(&labels) {
                Some(position) => *position,
                // One row per distinct value of a group.
                None => {
                    canvas.check_rows(groups.len() + 1)?;
                    let labels = canvas.labels.keep(labels)?;
                    positions.insert(labels.clone(), groups.len());
                    groups.push(Row { labels, points: vec![STALE; canvas.grid.count] });
                    groups.len() - 1
                }
            };
            let count = &mut groups[position].points[step];
            *count = if is_stale(*count) { 1.0 } else { *count + 1.0 };
        }
    }
    Ok(groups)
}

/// The value without an exponent.
fn plain(value: f64) -> String {
    if value.is_infinite() {
        if value > 0.0 { "+Inf".into() } else { "-Inf".into() }
    } else {
        value.to_string()
    }
}
