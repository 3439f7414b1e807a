//! At which times is each node evaluated, and which series and times does it need?
//!
//! Step before: `lower.rs`, which provides the nodes. Step after: the caller reads the data for [`Plan::selectors`],
//! and `evaluate.rs` computes the answer.
//!
//! This file and `evaluate.rs` use each other: `evaluate.rs` follows a [`Plan`], and [`Plan::evaluate`] starts the
//! evaluation, so that a caller needs only the plan and the data.

use tacho_model::{Matcher, TimeRange, Timestamp, Windows};

use crate::Error;

use super::evaluate;
use super::grid::{Grid, Reference};
use super::node::{At, Modifiers, Node, Selector, Type};
use super::params::Params;
use super::{Limits, Output, Query, SeriesData};

/// Describes the data to read: every matching series, with its samples within `range`.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    pub matchers: Vec<Matcher>,
    pub range: TimeRange,
    /// The windows that read the data. For a chunk that no window cuts, a summary is sufficient. `None` if all samples are
    /// needed.
    pub windows: Option<Windows>,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) nodes: Vec<Node>,
    pub(super) params: Params,
    /// One grid per node.
    pub(super) grids: Vec<Grid>,
    /// The times that each node reads, if it is a selector or a subquery.
    pub(super) references: Vec<Option<Reference>>,
    /// The index of each node in `selections`, if it is a selector.
    pub(super) sources: Vec<Option<usize>>,
    /// Whether the consumer of each node accepts summaries.
    from_summaries: Vec<bool>,
    selections: Vec<Selection>,
}

impl Plan {
    /// Describes the data that [`Plan::evaluate`] needs: one list of series for each of these selections, in this order.
    pub fn selectors(&self) -> &[Selection] {
        &self.selections
    }

    /// Sum of the steps of all nodes.
    pub fn steps(&self) -> usize {
        self.grids.iter().fold(0, |steps, grid| steps.saturating_add(grid.count))
    }

    pub const fn limits(&self) -> &Limits {
        &self.params.limits
    }

    /// Replaces the limits of the evaluation. The limits on steps have no effect: they were checked when the plan was created.
    pub fn set_limits(&mut self, limits: Limits) {
        self.params.limits = limits;
    }

    /// Computes the answer. `data[i]` is the data of `selectors()[i]`; samples are sorted by time.
    pub fn evaluate(&self, data: &[Vec<SeriesData>]) -> Result<Output, Error> {
        evaluate::evaluate(self, data)
    }
}

impl Query {
    pub fn plan(&self, params: &Params) -> Result<Plan, Error> {
        let root = root_grid(self.result, params)?;
        let nodes = self.nodes.len();
        let mut plan = Plan {
            nodes: self.nodes.clone(),
            params: params.clone(),
            grids: vec![root; nodes],
            references: vec![None; nodes],
            sources: vec![None; nodes],
            from_summaries: vec![false; nodes],
            selections: Vec::new(),
        };
        // From the root to the leaves, because the grid of an operand follows from the grid of its operator.
        for id in (0..nodes).rev() {
            plan.place(id)?;
        }
        Ok(plan)
    }
}

fn root_grid(result: Type, params: &Params) -> Result<Grid, Error> {
    let Some(step) = params.step else { return Ok(Grid::instant(params.start)) };
    if step <= 0 {
        return Err(Error::bad_data(format!("step must be greater than 0, got {step} ns")));
    }
    if params.end < params.start {
        return Err(Error::bad_data("end of the range is before its start"));
    }
    if matches!(result, Type::Range | Type::String) {
        let message =
            format!("invalid expression type \"{result}\" for range query, must be scalar or instant vector");
        return Err(Error::bad_data(message));
    }
    grid_between(params.start, params.end, step, "steps", params.limits.steps_max)
}

fn grid_between(
    start: Timestamp,
    end: Timestamp,
    step: i64,
    what: &str,
    limit: usize,
) -> Result<Grid, Error> {
    let count = Grid::count_between(start, end, step);
    match usize::try_from(count) {
        Ok(count) if count <= limit => Ok(Grid { start, step, count }),
        _ => Err(Error::limit(what, count, limit)),
    }
}

impl Plan {
    fn place(&mut self, id: usize) -> Result<(), Error> {
        let grid = self.grids[id];
        match &self.nodes[id] {
            Node::Number(_) | Node::Text(_) => {}
            Node::Instant { selector, .. } => {
                let selector = selector.clone();
                self.select(id, &selector, self.params.lookback, None);
            }
            Node::Range { selector, range } => {
                let (selector, range) = (selector.clone(), *range);
                let windows =
                    self.from_summaries[id].then(|| self.windows(&selector, &grid, range)).flatten();
                self.select(id, &selector, range, windows);
            }
            Node::Subquery { inner, range, step, modifiers } => {
                let (inner, step) = (*inner, step.unwrap_or(self.params.subquery_step));
                let reference = self.resolve(modifiers);
                self.grids[inner] = subquery_grid(&reference, &grid, *range, step, &self.params.limits)?;
                self.references[id] = Some(reference);
            }
            Node::Negate(inner) => self.grids[*inner] = grid,
            Node::Binary(binary) => {
                self.grids[binary.left] = grid;
                self.grids[binary.right] = grid;
            }
            Node::Aggregate(aggregate) => {
                self.grids[aggregate.inner] = grid;
                if let Some(parameter) = aggregate.parameter {
                    self.grids[parameter] = grid;
                }
            }
            Node::Call { function, arguments, .. } => {
                for argument in arguments {
                    self.grids[*argument] = grid;
                    self.from_summaries[*argument] = function.does_with_summaries();
                }
            }
        }
        Ok(())
    }

    fn select(&mut self, id: usize, selector: &Selector, window: i64, windows: Option<Windows>) {
        let reference = self.resolve(&selector.modifiers);
        let (first, last) = reference.bounds(&self.grids[id]);
        // Windows are open at the left, so the range begins 1 ns later.
        let range = TimeRange::new(first.saturating_sub(window).saturating_add(1), last);
        let same = |other: &&mut Selection| other.matchers == selector.matchers && other.range == range;
        let source = match self.selections.iter_mut().enumerate().find(|(_, other)| same(other)) {
            Some((source, other)) => {
                // Both selectors share one read. The read may use summaries only if both have the same windows.
                other.windows = other.windows.filter(|others| Some(*others) == windows);
                source
            }
            None => {
                self.selections.push(Selection { matchers: selector.matchers.clone(), range, windows });
                self.selections.len() - 1
            }
        };
        self.references[id] = Some(reference);
        self.sources[id] = Some(source);
    }

    /// The windows of `range` ns that `grid` reads; `None` if a window would exceed the range of timestamps. For a range query,
    /// the result also has the windows of earlier and later steps, as far as they overlap windows of the grid. So whether a step
    /// reads samples or a summary does not depend on the other steps of the query.
    fn windows(&self, selector: &Selector, grid: &Grid, range: i64) -> Option<Windows> {
        let reference = self.resolve(&selector.modifiers);
        let (first, last) = reference.bounds(grid);
        if reference.fixed.is_some() {
            let is_possible = first == last && first.checked_sub(range).is_some();
            return is_possible.then_some(Windows { first, step: grid.step, count: 1, range });
        }
        let steps = |count: usize| i64::try_from(count).ok()?.checked_mul(grid.step);
        if first.checked_add(steps(grid.count.checked_sub(1)?)?) != Some(last) {
            return None;
        }
        let more = if self.params.step.is_some() { usize::try_from(range / grid.step + 1).ok()? } else { 0 };
        let first = first.checked_sub(steps(more)?)?;
        let count = grid.count.checked_add(more.checked_mul(2)?)?;
        let is_possible =
            first.checked_sub(range).is_some() && first.checked_add(steps(count - 1)?).is_some();
        is_possible.then_some(Windows { first, step: grid.step, count, range })
    }

    fn resolve(&self, modifiers: &Modifiers) -> Reference {
        let at = modifiers.at.map(|at| match at {
            At::Start => self.params.start,
            At::End => self.params.end,
            At::Time(time) => time,
        });
        Reference { fixed: at.map(|at| at.saturating_sub(modifiers.offset)), offset: modifiers.offset }
    }
}

/// The multiples of `step` from the start of the first window that `grid` reads (exclusive) to the end of the last window. A
/// window is `range` ns long.
fn subquery_grid(
    reference: &Reference,
    grid: &Grid,
    range: i64,
    step: i64,
    limits: &Limits,
) -> Result<Grid, Error> {
    let (first, last) = reference.bounds(grid);
    let open = first.saturating_sub(range);
    let start = open.div_euclid(step).saturating_add(1).saturating_mul(step);
    grid_between(start, last, step, "subquery steps", limits.subquery_steps_max)
}
