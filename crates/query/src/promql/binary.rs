//! What is the result of `a op b`?
//!
//! Step before: `evaluate.rs`, which provides both operands. `matching.rs` groups the series of both sides.

use std::cell::LazyCell;
use std::sync::Arc;

use tacho_model::{Labels, NAME};

use crate::Error;

use super::STALE;
use super::grid::Grid;
use super::label_memory::LabelRoom;
use super::labels::{rebuilt, with, without_name};
use super::matching::{Group, groups};
use super::node::{Binary, BinaryOp, Cardinality, LabelChoice};
use super::rows::{Canvas, Row, Twins, Value, presence, settle};

pub fn compute<'d>(
    node: &Binary,
    left: Value<'d>,
    right: Value<'d>,
    canvas: &Canvas<'_>,
) -> Result<Value<'d>, Error> {
    match (left, right) {
        (Value::Scalar(left), Value::Scalar(right)) => {
            let points = left.iter().zip(&right).map(|(a, b)| of_scalars(node.op, *a, *b));
            Ok(Value::Scalar(points.collect()))
        }
        (Value::Scalar(scalar), other) => {
            with_scalar(node, other.into_rows()?, canvas.labels, |step, value| {
                // A filter returns the value of the vector element, even if the scalar is the left operand.
                element(node, scalar[step], value).map(|result| if filters(node) { value } else { result })
            })
        }
        (other, Value::Scalar(scalar)) => {
            with_scalar(node, other.into_rows()?, canvas.labels, |step, value| {
                element(node, value, scalar[step])
            })
        }
        (left, right) => {
            let (left, right) = (left.into_rows()?, right.into_rows()?);
            let rows = match node.op {
                BinaryOp::And | BinaryOp::Or | BinaryOp::Unless => of_sets(node, left, right, canvas)?,
                _ => of_vectors(node, &left, &right, canvas)?,
            };
            settle(rows, Twins::Join).map(Value::Vector)
        }
    }
}

/// Whether the operation is a filter. At steps where the comparison is true, a filter returns the value of the left operand,
/// or, if one operand is a scalar, the value of the vector. At other steps it returns no value.
fn filters(node: &Binary) -> bool {
    node.op.is_comparison() && !node.yields_bool
}

/// Whether the result is no longer a value of the metric, so the name is dropped.
fn loses_name(node: &Binary) -> bool {
    !filters(node)
}

fn arithmetic(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide => a / b,
        BinaryOp::Modulo => a % b,
        BinaryOp::Power => a.powf(b),
        BinaryOp::Atan2 => a.atan2(b),
        _ => f64::NAN,
    }
}

#[expect(clippy::float_cmp, reason = "exact comparison as PromQL defines it")]
fn compares(op: BinaryOp, a: f64, b: f64) -> bool {
    match op {
        BinaryOp::Equal => a == b,
        BinaryOp::NotEqual => a != b,
        BinaryOp::Greater => a > b,
        BinaryOp::Less => a < b,
        BinaryOp::GreaterEqual => a >= b,
        BinaryOp::LessEqual => a <= b,
        _ => false,
    }
}

fn of_scalars(op: BinaryOp, a: f64, b: f64) -> f64 {
    if op.is_comparison() { f64::from(compares(op, a, b)) } else { arithmetic(op, a, b) }
}

/// The result for one pair of values; `None` if a comparison filters it out.
fn element(node: &Binary, a: f64, b: f64) -> Option<f64> {
    match (node.op.is_comparison(), node.yields_bool) {
        (false, _) => Some(arithmetic(node.op, a, b)),
        (true, true) => Some(f64::from(compares(node.op, a, b))),
        (true, false) => compares(node.op, a, b).then_some(a),
    }
}

fn with_scalar<'d>(
    node: &Binary,
    mut rows: Vec<Row>,
    room: &LabelRoom,
    result: impl Fn(usize, f64) -> Option<f64>,
) -> Result<Value<'d>, Error> {
    for row in &mut rows {
        if loses_name(node) {
            row.labels = without_name(&row.labels, room)?;
        }
        row.filter_map(&result);
    }
    settle(rows, Twins::Join).map(Value::Vector)
}

/// Computes `and`, `or`, `unless`. The result at a step depends on whether the other side's group has a value at that step.
fn of_sets(node: &Binary, left: Vec<Row>, right: Vec<Row>, canvas: &Canvas<'_>) -> Result<Vec<Row>, Error> {
    let grid = &canvas.grid;
    let groups = groups(&left, &right, &node.matching.on, canvas.labels)?;
    let (mut left, mut right) = (left, right);
    for group in &groups {
        let on_left = presence(group.left.iter().map(|index| &left[*index]), grid);
        let on_right = presence(group.right.iter().map(|index| &right[*index]), grid);
        let keep = |rows: &mut [Row], members: &[usize], at: &dyn Fn(usize) -> bool| {
            for index in members {
                rows[*index].filter_map(|step, value| at(step).then_some(value));
            }
        };
        match node.op {
            BinaryOp::And => keep(&mut left, &group.left, &|step| on_right[step]),
            BinaryOp::Unless => keep(&mut left, &group.left, &|step| !on_right[step]),
            _ => keep(&mut right, &group.right, &|step| !on_left[step]),
        }
    }
    if node.op == BinaryOp::Or {
        left.append(&mut right);
    }
    Ok(left)
}

/// Both sides. `many` is the side that may have several series per group.
struct Sides<'r> {
    many: &'r [Row],
    one: &'r [Row],
    /// Whether `many` is the right operand.
    swapped: bool,
}

fn of_vectors(node: &Binary, left: &[Row], right: &[Row], canvas: &Canvas<'_>) -> Result<Vec<Row>, Error> {
    let swapped = node.matching.cardinality == Cardinality::OneToMany;
    let (many, one) = if swapped { (right, left) } else { (left, right) };
    let sides = Sides { many, one, swapped };
    let asked = LazyCell::new(|| presence(many, &canvas.grid));
    let mut rows = Vec::new();
    for group in groups(left, right, &node.matching.on, canvas.labels)? {
        let (many, one) = if swapped { (&group.right, &group.left) } else { (&group.left, &group.right) };
        if one.len() > 1 {
            check_one_side(&group, one, &sides, &asked)?;
        }
        canvas.check_rows(rows.len() + many.len() * one.len())?;
        let results = of_group(node, many, one, &sides, canvas.labels)?;
        check_results(node, &results, &canvas.grid)?;
        rows.extend(results.into_iter().filter(|row| !row.is_blank()));
    }
    Ok(rows)
}

/// One result row per pair of series. At each step at which the "many" side has any value, at most one series of the "one" side
/// has a value (`check_one_side`).
fn of_group(
    node: &Binary,
    many: &[usize],
    one: &[usize],
    sides: &Sides<'_>,
    room: &LabelRoom,
) -> Result<Vec<Row>, Error> {
    let mut results = Vec::with_capacity(many.len());
    for many in many.iter().map(|index| &sides.many[*index]) {
        room.check_cancel()?;
        for one in one.iter().map(|index| &sides.one[*index]) {
            let points = (0..many.points.len()).map(|step| {
                let (Some(many), Some(one)) = (many.at(step), one.at(step)) else { return STALE };
                let (a, b) = if sides.swapped { (one, many) } else { (many, one) };
                element(node, a, b).unwrap_or(STALE)
            });
            let labels = room.keep(result_labels(node, &many.labels, &one.labels)?)?;
            results.push(Row { labels, points: points.collect() });
        }
    }
    Ok(results)
}

/// Returns an error if two series of the "one" side have values at the same step. Checks only the steps at which the
/// "many" side has any value (`asked`).
fn check_one_side(group: &Group, one: &[usize], sides: &Sides<'_>, asked: &[bool]) -> Result<(), Error> {
    for step in (0..asked.len()).filter(|step| asked[*step]) {
        let mut there = one.iter().map(|index| &sides.one[*index]).filter(|row| row.at(step).is_some());
        if let (Some(first), Some(second)) = (there.next(), there.next()) {
            let side = if sides.swapped { "left" } else { "right" };
            return Err(Error::execution(format!(
                "found duplicate series for the match group {} on the {side} hand-side of the operation: \
                 [{}, {}]; many-to-many matching not allowed: matching labels must be unique on one side",
                group.labels, second.labels, first.labels
            )));
        }
    }
    Ok(())
}

/// One-to-one matching permits one result per group and step. Other matchings permit one result per label set and step.
fn check_results(node: &Binary, results: &[Row], grid: &Grid) -> Result<(), Error> {
    if results.len() < 2 {
        return Ok(());
    }
    if node.matching.cardinality != Cardinality::OneToOne {
        let message = "multiple matches for labels: grouping labels must ensure unique matches";
        return settle(results.to_vec(), Twins::Join).map(|_| ()).map_err(|_| Error::execution(message));
    }
    for step in 0..grid.count {
        if results.iter().filter(|row| row.at(step).is_some()).nth(1).is_some() {
            let message =
                "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)";
            return Err(Error::execution(message));
        }
    }
    Ok(())
}

fn result_labels(node: &Binary, many: &Arc<Labels>, one: &Labels) -> Result<Arc<Labels>, Error> {
    let matching = &node.matching;
    let unnamed = loses_name(node);
    let kept = |name: &str| match (&matching.on, matching.cardinality) {
        _ if unnamed && name == NAME => false,
        (LabelChoice::Only(names), Cardinality::OneToOne) => names.iter().any(|n| n == name),
        (LabelChoice::Except(names), Cardinality::OneToOne) => !names.iter().any(|n| n == name),
        _ => true,
    };
    let labels = rebuilt(many, kept);
    if matching.include.is_empty() {
        return Ok(labels);
    }
    let included: Vec<(&str, &str)> =
        matching.include.iter().map(|name| (name.as_str(), one.get(name).unwrap_or(""))).collect();
    with(&labels, &included)
}
