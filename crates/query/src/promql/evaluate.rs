//! What is the value of each node of a plan? The nodes are computed in order, each over all steps of its grid.
//!
//! Step before: `plan.rs`; the caller provides the data. Step after: `output.rs`.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tacho_model::Labels;

use crate::Error;

use super::functions::{Apply, Call, Function};
use super::grid::{Grid, Reference};
use super::label_memory::LabelRoom;
use super::labels::without_name;
use super::node::{AggregateOp, Node, NodeId, Yield};
use super::output::Output;
use super::plan::Plan;
use super::rows::{Canvas, Change, ChangeFn, Ranges, Row, Twins, Value, label_bytes, same_labels, settle};
use super::series::{Piece, SeriesData};
use super::window::{Frame, Sliding, Visits};
use super::{aggregate, binary, grid, parallel, repeat, select};

pub fn evaluate(plan: &Plan, data: &[Vec<SeriesData>]) -> Result<Output, Error> {
    check_data(plan, data)?;
    let mut evaluator = Evaluator {
        plan,
        data,
        values: plan.nodes.iter().map(|_| None).collect(),
        points_alive: 0,
        labels: LabelRoom::new(&plan.params),
        inherited: 0,
        visits: AtomicUsize::new(0),
    };
    for id in 0..plan.nodes.len() {
        plan.params.cancel.check()?;
        let before = evaluator.labels.taken();
        let value = evaluator.compute(id)?;
        let label_bytes = evaluator.settle_labels(before, &value);
        evaluator.points_alive += value.points();
        evaluator.check_points(0)?;
        evaluator.values[id] = Some((value, label_bytes));
    }
    let root = plan.nodes.len() - 1;
    let value = evaluator.take(root)?;
    Output::new(value, &plan.grids[root], plan.params.step.is_none(), &mut evaluator.visits())
}

fn check_data(plan: &Plan, data: &[Vec<SeriesData>]) -> Result<(), Error> {
    let limits = &plan.params.limits;
    if data.len() != plan.selectors().len() {
        let message = format!("{} lists of series for {} selections", data.len(), plan.selectors().len());
        return Err(Error::execution(message));
    }
    let series: usize = data.iter().map(Vec::len).sum();
    if series > limits.series_max {
        return Err(Error::limit("series", series as u128, limits.series_max));
    }
    let samples: usize = data.iter().flatten().map(SeriesData::len).sum();
    if samples > limits.samples_max {
        return Err(Error::limit("samples", samples as u128, limits.samples_max));
    }
    for (series, selection) in data.iter().zip(plan.selectors()) {
        let summary = |piece: &Piece| matches!(piece, Piece::Summary(_));
        if selection.windows.is_none() && series.iter().flat_map(|series| &series.pieces).any(summary) {
            return Err(Error::execution("got a summary, but the query needs samples"));
        }
    }
    Ok(())
}

struct Evaluator<'p> {
    plan: &'p Plan,
    data: &'p [Vec<SeriesData>],
    /// Values that are not used yet, with the number of bytes of the labels created for each.
    values: Vec<Option<(Value<'p>, usize)>>,
    points_alive: usize,
    /// Bytes of the labels that were created for the values.
    labels: LabelRoom,
    /// The part of the bytes in `labels` that belongs to the operands of the current node.
    inherited: usize,
    /// Number of samples read by windows.
    visits: AtomicUsize,
}

impl<'p> Evaluator<'p> {
    /// Removes a computed value. Each value is used only once, so it can be moved.
    fn take(&mut self, id: NodeId) -> Result<Value<'p>, Error> {
        let taken = self.values[id].take();
        let (value, label_bytes) = taken.ok_or_else(|| Error::execution("internal: operand used twice"))?;
        self.points_alive -= value.points();
        self.inherited += label_bytes;
        Ok(value)
    }

    /// Releases the bytes of those labels of the operands that `value` does not share. Returns the bytes of the labels that this
    /// node or its operands created for `value`.
    fn settle_labels(&mut self, before: usize, value: &Value<'_>) -> usize {
        let inherited = std::mem::take(&mut self.inherited);
        let made = self.labels.taken() - before;
        let bytes = label_bytes(value).min(inherited + made);
        self.labels.settle(before - inherited + bytes);
        bytes
    }

    fn check_points(&self, more: usize) -> Result<(), Error> {
        let (points, limit) = (self.points_alive.saturating_add(more), self.plan.params.limits.points_max);
        if points > limit { Err(Error::limit("intermediate points", points as u128, limit)) } else { Ok(()) }
    }

    fn canvas(&self, grid: Grid) -> Canvas<'_> {
        Canvas { grid, points_max: self.plan.params.limits.points_max, labels: &self.labels }
    }

    fn visits(&self) -> Visits<'_> {
        Visits::new(&self.plan.params, &self.visits)
    }

    fn compute(&mut self, id: NodeId) -> Result<Value<'p>, Error> {
        let plan = self.plan;
        let grid = plan.grids[id];
        match &plan.nodes[id] {
            Node::Number(number) => Ok(Value::Scalar(vec![*number; grid.count])),
            Node::Text(text) => Ok(Value::Text(text.clone())),
            Node::Instant { yields, .. } => self.instant(id, *yields),
            Node::Range { range, .. } => self.range(id, *range),
            Node::Subquery { inner, range, .. } => self.subquery(id, *inner, *range),
            Node::Negate(inner) => {
                let value = self.take(*inner)?;
                self.negate(value)
            }
            Node::Binary(node) => {
                let (left, right) = (self.take(node.left)?, self.take(node.right)?);
                binary::compute(node, left, right, &self.canvas(grid))
            }
            Node::Aggregate(node) => {
                let parameter = node.parameter.map(|id| self.take(id)).transpose()?;
                let mut rows = self.take(node.inner)?.into_rows()?;
                let counts = matches!(node.op, AggregateOp::Count | AggregateOp::Group);
                if !counts && !repeat::is_ordered(&plan.nodes, node.inner) {
                    rows.sort_by(|a, b| a.labels.cmp(&b.labels));
                }
                aggregate::compute(node, parameter, rows, &self.canvas(grid)).map(Value::Vector)
            }
            Node::Call { function, arguments, keeps_name } => {
                let named = if *keeps_name { Named::Yes } else { Named::No };
                self.call(function, arguments, &grid, named)
            }
        }
    }

    fn source(&self, id: NodeId) -> Result<(&'p [SeriesData], Reference), Error> {
        match (self.plan.sources[id], self.plan.references[id]) {
            (Some(source), Some(reference)) => Ok((&self.data[source], reference)),
            _ => Err(Error::execution("internal: selector without a selection")),
        }
    }

    fn instant(&self, id: NodeId, yields: Yield) -> Result<Value<'p>, Error> {
        let (series, reference) = self.source(id)?;
        let (grid, lookback) = (self.plan.grids[id], self.plan.params.lookback);
        self.check_points(series.len().saturating_mul(grid.count))?;
        let work =
            series.iter().map(SeriesData::len).sum::<usize>().min(series.len().saturating_mul(grid.count));
        let rows = parallel::map(
            series,
            (work, self.plan.params.limits.threads_max),
            || (),
            |(), series| {
                self.plan.params.cancel.check()?;
                select::instants(series, &grid, &reference, lookback, yields)
            },
        )?;
        Ok(Value::Vector(rows.into_iter().filter(|row| !row.is_blank()).collect()))
    }

    fn range(&self, id: NodeId, range: i64) -> Result<Value<'p>, Error> {
        let (series, reference) = self.source(id)?;
        // The search for staleness markers reads all values.
        let work = series.iter().map(SeriesData::len).sum();
        let series = parallel::map(
            series,
            (work, self.plan.params.limits.threads_max),
            || (),
            |(), series| {
                self.plan.params.cancel.check()?;
                Ok(select::samples(series))
            },
        )?;
        Ok(Value::Ranges(Ranges { series, reference, range, changes: Vec::new() }))
    }

    fn subquery(&mut self, id: NodeId, inner: NodeId, range: i64) -> Result<Value<'p>, Error> {
        let grid = self.plan.grids[inner];
        let rows = self.take(inner)?.into_rows()?;
        let series = rows.into_iter().map(|row| select::samples_of_row(row, &grid)).collect();
        let reference = self.plan.references[id].unwrap_or(Reference { fixed: None, offset: 0 });
        Ok(Value::Ranges(Ranges { series, reference, range, changes: Vec::new() }))
    }

    fn call(
        &mut self,
        function: &Function,
        arguments: &[NodeId],
        grid: &Grid,
        named: Named,
    ) -> Result<Value<'p>, Error> {
        let mut values = arguments.iter().map(|id| self.take(*id)).collect::<Result<Vec<_>, _>>()?;
        match function.apply() {
            Apply::Each(each) => {
                let rows = match values.pop() {
                    Some(rows) => rows.into_rows()?,
                    None => vec![times(grid)],
                };
                self.unnamed(rows, |row| row.map(*each))
            }
            Apply::EachWith(each) => {
                let scalars =
                    values.split_off(1).into_iter().map(Value::into_scalar).collect::<Result<Vec<_>, _>>()?;
                let at_step = |step: usize| scalars.iter().map(|scalar| scalar[step]).collect::<Vec<f64>>();
                let parameters: Vec<Vec<f64>> = (0..grid.count).map(at_step).collect();
                let [rows] = take_only(values)?;
                let change = |row: &mut Row| row.filter_map(|step, value| each(value, &parameters[step]));
                self.unnamed(rows.into_rows()?, change)
            }
            Apply::Window(sliding) => self.slide(values, grid, sliding, named),
            Apply::WindowNamed(sliding) => self.slide(values, grid, sliding, Named::Yes),
            Apply::Change(function) => self.changed(values, *function, Named::No),
            Apply::ChangeNamed(function) => self.changed(values, *function, Named::Yes),
            Apply::Whole(whole) => {
                let nodes = arguments.iter().map(|id| &self.plan.nodes[*id]).collect();
                let (canvas, visits) = (self.canvas(*grid), self.visits());
                whole(Call { arguments: values, nodes, grid: *grid, canvas, visits })
            }
        }
    }

    fn slide(
        &self,
        arguments: Vec<Value<'p>>,
        grid: &Grid,
        sliding: &Sliding,
        named: Named,
    ) -> Result<Value<'p>, Error> {
        let (ranges, parameters) = ranges_and_scalars(arguments)?;
        self.check_points(ranges.series.len().saturating_mul(grid.count))?;
        let frame = Frame { ranges: &ranges, grid: *grid, parameters: &parameters };
        let work = ranges.series.iter().flat_map(|series| &*series.pieces).map(Piece::len).sum();
        let rows = parallel::map(
            &ranges.series,
            (work, self.plan.params.limits.threads_max),
            || self.visits(),
            |visits, series| {
                self.plan.params.cancel.check()?;
                Ok(Row {
                    labels: named.labels(&series.labels, &self.labels)?,
                    points: sliding.apply(series, &frame, visits)?,
                })
            },
        )?;
        settle(rows, Twins::Refuse).map(Value::Vector)
    }

    /// Adds a change to a range vector. The change is applied when a window is read.
    fn changed(
        &self,
        arguments: Vec<Value<'p>>,
        function: ChangeFn,
        named: Named,
    ) -> Result<Value<'p>, Error> {
        let (mut ranges, parameters) = ranges_and_scalars(arguments)?;
        ranges.changes.push(Change { function, parameters });
        let mut seen = HashSet::with_capacity(ranges.series.len());
        for series in &mut ranges.series {
            series.labels = named.labels(&series.labels, &self.labels)?;
            if !seen.insert(series.labels.clone()) {
                return Err(same_labels(&series.labels));
            }
        }
        Ok(Value::Ranges(ranges))
    }

    fn negate(&self, value: Value<'p>) -> Result<Value<'p>, Error> {
        match value {
            Value::Scalar(points) => Ok(Value::Scalar(points.iter().map(|value| -value).collect())),
            other => self.unnamed(other.into_rows()?, |row| row.map(|value| -value)),
        }
    }

    /// Changes all rows and drops their metric names, because the new values are not values of the metric.
    fn unnamed(&self, mut rows: Vec<Row>, change: impl Fn(&mut Row)) -> Result<Value<'p>, Error> {
        for row in &mut rows {
            row.labels = without_name(&row.labels, &self.labels)?;
            change(row);
        }
        settle(rows, Twins::Join).map(Value::Vector)
    }
}

/// Whether the values of a result are still values of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Yes,
    No,
}

impl Named {
    fn labels(self, labels: &Arc<Labels>, room: &LabelRoom) -> Result<Arc<Labels>, Error> {
        match self {
            Self::Yes => Ok(labels.clone()),
            Self::No => without_name(labels, room),
        }
    }
}

/// The range vector among the arguments, and the scalars in order.
fn ranges_and_scalars(arguments: Vec<Value<'_>>) -> Result<(Ranges<'_>, Vec<Vec<f64>>), Error> {
    let mut parameters = Vec::new();
    let mut ranges = None;
    for argument in arguments {
        match argument {
            Value::Scalar(scalar) => parameters.push(scalar),
            other => ranges = Some(other.into_ranges()?),
        }
    }
    let ranges = ranges.ok_or_else(|| Error::execution("internal: call without a range"))?;
    Ok((ranges, parameters))
}

fn take_only<'d>(values: Vec<Value<'d>>) -> Result<[Value<'d>; 1], Error> {
    values.try_into().map_err(|_| Error::execution("internal: wrong number of arguments"))
}

/// The default argument of `hour()` and similar functions: the evaluation times.
fn times(grid: &Grid) -> Row {
    Row { labels: Arc::new(Labels::empty()), points: grid.times().map(grid::seconds).collect() }
}
