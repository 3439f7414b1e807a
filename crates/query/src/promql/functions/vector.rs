//! Which functions need a whole vector? Absence, conversion to a scalar, sorting.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use tacho_model::{Labels, MatchOp, NAME};

use crate::Error;
use crate::promql::functions::call::Call;
use crate::promql::labels::with;
use crate::promql::node::{Node, Selector};
use crate::promql::quantile::by_value;
use crate::promql::rows::{Row, Twins, Value, presence, row_where, settle};
use crate::promql::window::presence_of_ranges;

pub fn pi<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    Ok(Value::Scalar(vec![std::f64::consts::PI; call.grid.count]))
}

pub fn vector<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    let [scalar] = call.take()?;
    Ok(Value::Vector(vec![Row { labels: Arc::new(Labels::empty()), points: scalar.into_scalar()? }]))
}

pub fn scalar<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    let steps = call.grid.count;
    let [rows] = call.take()?;
    let rows = rows.into_rows()?;
    let only = |step: usize| {
        let mut values = rows.iter().filter_map(|row| row.at(step));
        match (values.next(), values.next()) {
            (Some(value), None) => value,
            _ => f64::NAN,
        }
    };
    Ok(Value::Scalar((0..steps).map(only).collect()))
}

pub fn absent<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    let (grid, labels) = (call.grid, labels_of_absent(&call.nodes)?);
    let [rows] = call.take()?;
    let present = presence(&rows.into_rows()?, &grid);
    let row = row_where(labels, &grid, 1.0, |step| !present[step]);
    Ok(Value::Vector(settle(vec![row], Twins::Join)?))
}

pub fn absent_over_time<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    let (grid, labels, mut visits) = (call.grid, labels_of_absent(&call.nodes)?, call.visits());
    let [ranges] = call.take()?;
    let present = presence_of_ranges(&ranges.into_ranges()?, &grid, &mut visits)?;
    let row = row_where(labels, &grid, 1.0, |step| !present[step]);
    Ok(Value::Vector(settle(vec![row], Twins::Join)?))
}

/// The labels that the missing series must have, without the name. As in Prometheus, these are labels with a matcher for
/// equality, unless another matcher of the same label follows.
fn labels_of_absent(nodes: &[&Node]) -> Result<Arc<Labels>, Error> {
    let [Node::Instant { selector, .. } | Node::Range { selector, .. }] = nodes else {
        return Ok(Arc::new(Labels::empty()));
    };
    let Selector { matchers, .. } = selector;
    let mut seen = HashSet::new();
    let mut certain: Vec<(&str, &str)> = Vec::new();
    for matcher in matchers.iter().filter(|matcher| matcher.label() != NAME) {
        if matcher.op() == MatchOp::Equal && seen.insert(matcher.label()) {
            certain.push((matcher.label(), matcher.value()));
        } else {
            certain.retain(|(name, _)| *name != matcher.label());
        }
    }
    with(&Labels::empty(), &certain)
}

pub fn sort<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    sorted(call, |a, b| nan_last(a, b, by_value))
}

pub fn sort_desc<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    sorted(call, |a, b| nan_last(a, b, |a, b| by_value(b, a)))
}

/// Sorts by value if there is only one step, as in an instant query. The answer of a range query is sorted by labels
/// (`output.rs`).
fn sorted<'d>(call: Call<'_, 'd>, order: impl Fn(&f64, &f64) -> Ordering) -> Result<Value<'d>, Error> {
    let steps = call.grid.count;
    let [rows] = call.take()?;
    let mut rows = rows.into_rows()?;
    if steps == 1 {
        rows.sort_by(|a, b| order(&a.points[0], &b.points[0]));
    }
    Ok(Value::Vector(rows))
}

fn nan_last(a: &f64, b: &f64, order: impl Fn(&f64, &f64) -> Ordering) -> Ordering {
    a.is_nan().cmp(&b.is_nan()).then_with(|| order(a, b))
}

pub fn sort_by_label<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    sorted_by_label(call, |ordering| ordering)
}

pub fn sort_by_label_desc<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    sorted_by_label(call, Ordering::reverse)
}

fn sorted_by_label<'d>(call: Call<'_, 'd>, direction: fn(Ordering) -> Ordering) -> Result<Value<'d>, Error> {
    let mut arguments = call.arguments.into_iter();
    let mut rows = arguments.next().map_or(Ok(Vec::new()), Value::into_rows)?;
    let names = arguments.map(Value::into_text).collect::<Result<Vec<_>, _>>()?;
    let names = known(names, &rows);
    rows.sort_by(|a, b| {
        let mut by_names = names.iter().map(|name| natural(value(a, name), value(b, name)));
        let first = by_names.find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal);
        direction(first.then_with(|| a.labels.cmp(&b.labels)))
    });
    Ok(Value::Vector(rows))
}

fn value<'r>(row: &'r Row, name: &str) -> &'r str {
    row.labels.get(name).unwrap_or("")
}

/// The names that occur in any row, without duplicates. A query may list thousands of names, and each comparison
/// iterates over all of them.
fn known(names: Vec<Arc<str>>, rows: &[Row]) -> Vec<Arc<str>> {
    let mut passed: HashSet<Arc<str>> = names.iter().cloned().collect();
    for row in rows {
        if passed.is_empty() {
            break;
        }
        for (name, _) in row.labels.iter() {
            passed.remove(name);
        }
    }
    names.into_iter().filter(|name| passed.insert(Arc::clone(name))).collect()
}

/// Compares runs of digits as numbers: `cpu2` before `cpu10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    while !a.is_empty() && !b.is_empty() {
        let ((part_a, rest_a), (part_b, rest_b)) = (split_run(a), split_run(b));
        let ordering = if starts_with_digit(part_a) && starts_with_digit(part_b) {
            let (digits_a, digits_b) = (part_a.trim_start_matches('0'), part_b.trim_start_matches('0'));
            digits_a.len().cmp(&digits_b.len()).then_with(|| digits_a.cmp(digits_b))
        } else {
            part_a.cmp(part_b)
        };
        if ordering != Ordering::Equal {
            return ordering;
        }
        (a, b) = (rest_a, rest_b);
    }
    a.len().cmp(&b.len())
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Splits off the leading run of digits, or the leading run of other characters.
fn split_run(text: &str) -> (&str, &str) {
    let digits = starts_with_digit(text);
    text.split_at(text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_and_unknown_names_are_ignored() {
        let row = |name| Row { labels: Arc::new(Labels::new([(name, "x")]).unwrap()), points: Vec::new() };
        let names = ["c", "b", "a", "b", "d"].map(Arc::from).to_vec();
        let found = known(names.clone(), &[row("a"), row("b"), row("e")]);
        assert_eq!(found, ["b", "a"].map(Arc::from));
        assert!(known(names, &[]).is_empty());
    }

    #[test]
    fn digits_are_compared_as_numbers() {
        let mut names = ["cpu10", "cpu2", "cpu", "cpu02x", "b"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["b", "cpu", "cpu2", "cpu02x", "cpu10"]);
    }
}
