//! Which operations call each other, and which services call each other and their databases?

use std::collections::HashSet;
use std::sync::Arc;

use tacho_chunk::{RowRef, part_gap};
use tacho_model::{Operation, OperationKind, Timestamp};

use super::calls::{Visit, Walker};
use super::causes::Causes;
use super::fold::{Fold, Scope};
use super::limits::{Incomplete, Limits};
use super::parts::{Met, Parts};
use super::source::{Filter, Source, Table};

/// What a node of the graph represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// An operation of a service. Count and times include all calls of the operation.
    Operation,
    /// A service, or the databases of a service. Count, errors and total time include only the calls that enter the node from
    /// outside. Self time includes all calls.
    Service,
}

/// Nodes sorted by id, edges sorted by the ids of their ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    pub id: String,
    pub service: Arc<str>,
    /// Name of the operation; empty for a service.
    pub operation: Arc<str>,
    /// Kind of the operation; `service` or `database` at service level.
    pub kind: &'static str,
    pub count: u64,
    pub errors: u64,
    pub total_ns: u64,
    pub self_ns: u64,
}

/// Calls from one node to another, or of an operation from itself. Both ends are node ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEdge {
    pub from: String,
    pub to: String,
    pub count: u64,
    pub errors: u64,
    pub total_ns: u64,
}

/// Service, operation and kind of a node.
type Key = (Arc<str>, Arc<str>, &'static str);

#[derive(Clone, Copy, Default)]
struct Figures {
    count: u64,
    errors: u64,
    total_ns: u64,
    self_ns: u64,
    /// The part of `self_ns` during which a recorded server worked.
    served_ns: u64,
}

impl Figures {
    fn add(&mut self, visit: &Visit<'_>) {
        if let Some(duration) = visit.duration() {
            self.count += 1;
            self.errors += u64::from(visit.call.failed);
            self.total_ns = self.total_ns.saturating_add(duration);
        }
    }
}

/// The node and the edge that count a call of a shape.
#[derive(Clone, Copy)]
struct Target {
    node: u32,
    /// Node of the caller; `None` for an outermost call.
    caller: Option<u32>,
    /// `None` for an outermost call, and at service level for a call that stays within the node of its caller.
    edge: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Start,
    /// Collects the segments that have a parent, and counts all calls until it finds the first such segment. If it finds none, no
    /// other pass is needed. Otherwise it discards the counts.
    Gather,
    /// Finds the calls that caused these segments.
    Resolve,
    /// Counts all calls.
    Count,
    End,
}

/// The graph of the calls that were entered in the range. If the filter has a service, the graph has the segments of the service,
/// the segments that the service caused, and the callers of the service. If the filter has an operation, the graph has only the
/// nodes of that operation, their edges, and their neighbours.
pub struct Graphing {
    filter: Filter,
    level: Level,
    pass: Pass,
    causes: Causes,
    nodes: Table<Key, Figures>,
    edges: Table<(u32, u32), Figures>,
    walker: Walker,
    waiting_max: usize,
    /// For the end of a part: the time of its last event. For the start of the next part: the node of its innermost carried call
    /// (`None` if that call is not in the range), and the time of its first event.
    parts: Parts<Timestamp, (Option<u32>, Timestamp)>,
}

/// The nodes of the operations of a block, and the targets of the calls of its shapes, computed on demand.
struct Targets {
    numbers: Vec<u32>,
    shapes: Vec<Option<Box<[Target]>>>,
}

impl Graphing {
    pub fn new(filter: Filter, level: Level) -> Self {
        Self::within(filter, level, &Limits::default())
    }

    pub(super) fn within(filter: Filter, level: Level, limits: &Limits) -> Self {
        Self {
            filter,
            level,
            pass: Pass::Start,
            causes: Causes::new(limits),
            nodes: Table::new(),
            edges: Table::new(),
            walker: Walker::default(),
            waiting_max: limits.waiting,
            parts: Parts::new(limits.waiting),
        }
    }

    fn numbers(&mut self, source: Source<'_>) -> Vec<u32> {
        let service: Arc<str> = source.service().into();
        let Self { level, nodes, .. } = self;
        let number = |operation| nodes.position(key(&service, operation, *level), Figures::default);
        source.block.operations().iter().map(number).collect()
    }

    fn count(&mut self, source: Source<'_>, numbers: Vec<u32>) {
        let mut targets = Targets { numbers, shapes: vec![None; source.block.shapes().len()] };
        let is_taken = self.filter.takes_service(source.service());
        let rounds = self.causes.rounds;
        for row in source.block.rows().filter(|row| rounds.takes(row.trace())) {
            let cause = row.parent().and_then(|parent| self.causes.caller(row.trace(), parent));
            let near =
                cause.is_some_and(|node| self.filter.takes_service(&self.nodes.rows[node as usize].0.0));
            if near || is_taken {
                self.add_row(source, row, cause, &mut targets);
            }
        }
    }

    /// Adds the calls of a row. `cause` is the node of the call that caused the segment.
    fn add_row(&mut self, source: Source<'_>, row: RowRef<'_>, cause: Option<u32>, all: &mut Targets) {
        let Self { filter, level, causes, nodes, edges, walker, parts, .. } = self;
        let targets = all.of(source, row.shape_index(), *level, edges);
        let last = walker.walk(row, |visit| {
            if !filter.range.contains(visit.start) {
                return;
            }
            let target = targets[visit.position];
            let figures = nodes.value(target.node);
            figures.self_ns = figures.self_ns.saturating_add(visit.self_ns);
            figures.served_ns = figures.served_ns.saturating_add(causes.served(source, row, &visit));
            let caller = target.caller.or(cause);
            if counts(*level, caller, target.node) {
                figures.add(&visit);
            }
            // Only the edge to an outermost call depends on the row.
            let edge = target.edge.or_else(|| {
                let from = cause.filter(|_| target.caller.is_none())?;
                counts(*level, Some(from), target.node)
                    .then(|| edges.position((from, target.node), Figures::default))
            });
            if let Some(edge) = edge {
                edges.value(edge).add(&visit);
            }
        });
        let mut wait = |(end, (node, start)): (Timestamp, (Option<u32>, Timestamp))| {
            let Some(node) = node else { return };
            let figures = nodes.value(node);
            figures.self_ns = figures.self_ns.saturating_add(part_gap(end, start));
        };
        if let Some(innermost) = row.shape().carried().len().checked_sub(1) {
            let is_counted = filter.range.contains(walker.start(innermost));
            let node = is_counted.then_some(targets[innermost].node);
            parts.start(row, (node, row.start())).into_iter().for_each(&mut wait);
        }
        if row.is_open()
            && let Met::Pair(end, start) = parts.end(row, last)
        {
            wait((end, start));
        }
    }
}

impl Targets {
    fn of(
        &mut self,
        source: Source<'_>,
        shape: usize,
        level: Level,
        edges: &mut Table<(u32, u32), Figures>,
    ) -> &[Target] {
        let Self { numbers, shapes } = self;
        shapes[shape].get_or_insert_with(|| {
            let calls = source.block.shapes()[shape].calls();
            let mut targets = Vec::with_capacity(calls.len());
            for call in calls {
                let node = numbers[call.operation as usize];
                let caller = call.parent.map(|parent| numbers[calls[parent as usize].operation as usize]);
                let from = caller.filter(|_| counts(level, caller, node));
                let edge = from.map(|from| edges.position((from, node), Figures::default));
                targets.push(Target { node, caller, edge });
            }
            targets.into()
        })
    }
}

impl Fold for Graphing {
    type Answer = Graph;

    fn pass(&mut self) -> Option<Scope> {
        self.pass = match self.pass {
            Pass::Start => Pass::Gather,
            Pass::Gather if !self.causes.is_used => Pass::End,
            Pass::Gather => {
                self.causes.sort();
                if self.causes.is_empty() { Pass::Count } else { Pass::Resolve }
            }
            Pass::Resolve => Pass::Count,
            Pass::Count if self.causes.next_round() => Pass::Gather,
            Pass::Count | Pass::End => Pass::End,
        };
        (self.pass != Pass::End).then_some(Scope::All)
    }

    fn add_source(&mut self, source: Source<'_>) {
        if self.pass == Pass::Gather {
            let was_used = self.causes.is_used;
            self.causes.gather(source, false);
            if was_used {
                return;
            }
            if self.causes.is_used {
                (self.nodes, self.edges) = (Table::new(), Table::new());
                self.parts = Parts::new(self.waiting_max);
                return;
            }
        }
        let numbers = self.numbers(source);
        match self.pass {
            Pass::Resolve => self.causes.resolve(source, &numbers),
            _ => self.count(source, numbers),
        }
    }

    fn incomplete(&self) -> Vec<Incomplete> {
        self.parts.incomplete().into_iter().chain(self.causes.incomplete()).collect()
    }

    fn finish(self) -> Graph {
        let filter = &self.filter;
        let keys: Vec<Key> = self.nodes.rows.iter().map(|(key, _)| key.clone()).collect();
        let asked = |node: u32| filter.takes_operation(&keys[node as usize].1);
        let edges: Vec<((u32, u32), Figures)> = self
            .edges
            .rows
            .into_iter()
            .filter(|((from, to), figures)| figures.count > 0 && (asked(*from) || asked(*to)))
            .collect();
        let ends: HashSet<u32> = edges.iter().flat_map(|((from, to), _)| [*from, *to]).collect();
        let mut nodes: Vec<GraphNode> = (0u32..)
            .zip(self.nodes.rows)
            .filter(|(number, (_, f))| {
                ends.contains(number) || (asked(*number) && (f.count > 0 || f.self_ns > 0))
            })
            .map(|(_, (key, figures))| node(key, figures))
            .collect();
        nodes.sort_by(|a, b| a.id.cmp(&b.id));
        let mut edges: Vec<GraphEdge> = edges
            .into_iter()
            .map(|((from, to), Figures { count, errors, total_ns, .. })| GraphEdge {
                from: id(&keys[from as usize]),
                to: id(&keys[to as usize]),
                count,
                errors,
                total_ns,
            })
            .collect();
        edges.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
        Graph { nodes, edges }
    }
}

fn key(service: &Arc<str>, operation: &Operation, level: Level) -> Key {
    match (level, operation.kind) {
        (Level::Operation, kind) => (Arc::clone(service), Arc::clone(&operation.name), kind.name()),
        (Level::Service, OperationKind::Database) => (Arc::clone(service), "".into(), "database"),
        (Level::Service, _) => (Arc::clone(service), "".into(), "service"),
    }
}

fn id((service, operation, kind): &Key) -> String {
    match *kind {
        "service" => service.to_string(),
        kind if operation.is_empty() => format!("{service} {kind}"),
        kind => format!("{service} {kind} {operation}"),
    }
}

/// Whether a call counts for its node and for the edge to that node. At service level, a call does not count if its caller
/// belongs to the same node.
fn counts(level: Level, caller: Option<u32>, node: u32) -> bool {
    level == Level::Operation || caller != Some(node)
}

fn node(key: Key, figures: Figures) -> GraphNode {
    let id = id(&key);
    let (service, operation, kind) = key;
    let Figures { count, errors, total_ns, self_ns, served_ns } = figures;
    let self_ns = self_ns.saturating_sub(served_ns);
    GraphNode { id, service, operation, kind, count, errors, total_ns, self_ns }
}
