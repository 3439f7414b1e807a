//! Which operations call each other, and which services call each other and their databases?
//!
//! The call that caused a segment is known in two ways. A flush stores it with the segment, if both arrived at about the same
//! time. Otherwise, the segments are joined with the calls of all blocks (`causes.rs`). An exact graph uses only the joins. A
//! graph from summaries uses the stored callers, and joins only segments of the blocks that it reads.

use std::collections::HashSet;
use std::sync::Arc;

use tacho_chunk::{CallSummary, Caller, Link, LinkSource, RowRef, part_gap};
use tacho_model::{Labels, Operation, OperationKind, Timestamp};

use super::calls::{Visit, Walker};
use super::causes::Causes;
use super::fold::{Fold, Scope};
use super::limits::{Incomplete, Limits};
use super::parts::{Met, Parts};
use super::source::{Filter, LabelsOf, Source, Table, service};

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
    /// Number of completed calls of the nodes whose segment has a parent that was not found. They are in no edge.
    pub unknown_callers: u64,
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
    /// Number of completed calls whose segment has a parent that was not found.
    unknown_callers: u64,
}

impl Figures {
    fn add(&mut self, visit: &Visit<'_>) {
        if let Some(duration) = visit.duration() {
            self.add_calls(1, visit.call.failed.into(), duration);
        }
    }

    fn add_calls(&mut self, count: u64, errors: u64, total_ns: u64) {
        self.count = self.count.saturating_add(count);
        self.errors = self.errors.saturating_add(errors);
        self.total_ns = self.total_ns.saturating_add(total_ns);
    }

    const fn add_self(&mut self, self_ns: u64) {
        self.self_ns = self.self_ns.saturating_add(self_ns);
    }

    const fn add_served(&mut self, served_ns: u64) {
        self.served_ns = self.served_ns.saturating_add(served_ns);
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
    /// Collects the segments that have a parent. In a graph from summaries, it collects only those without a stored caller, and
    /// counts the summaries ([`Graphing::reread`] discards these counts). In an exact graph, it counts all calls until it finds
    /// the first such segment. If it finds none, no other pass is needed. Otherwise it discards the counts.
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
    /// Set if the graph is computed from summaries. Gets the labels of the series of stored callers.
    labels_of: Option<LabelsOf>,
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
            labels_of: None,
        }
    }

    /// Accepts summaries of chunks and stored callers. A segment that arrived much earlier or later than its caller then counts
    /// as a segment with an unknown caller. All times of recorded servers are subtracted from the self times of the HTTP client
    /// calls, even if a client did not wait for the server.
    #[must_use]
    pub fn from_summaries(mut self, labels_of: LabelsOf) -> Self {
        self.labels_of = Some(labels_of);
        self
    }

    fn numbers(&mut self, service: &str, operations: &[Operation]) -> Vec<u32> {
        let service: Arc<str> = service.into();
        let Self { level, nodes, .. } = self;
        let number = |operation| nodes.position(key(&service, operation, *level), Figures::default);
        operations.iter().map(number).collect()
    }

    /// The nodes of the stored callers. `None` for a caller whose series does not exist or must not be read, and for all
    /// callers of an exact graph.
    fn callers(&mut self, callers: &[Caller]) -> Vec<Option<u32>> {
        let Self { level, nodes, labels_of, .. } = self;
        let number = |caller: &Caller| {
            let labels = labels_of.as_ref()?(caller.series)?;
            let key = key(&service(&labels).into(), &caller.operation, *level);
            Some(nodes.position(key, Figures::default))
        };
        callers.iter().map(number).collect()
    }

    fn count(&mut self, source: Source<'_>, numbers: Vec<u32>) {
        let mut targets = Targets { numbers, shapes: vec![None; source.block.shapes().len()] };
        let is_taken = self.filter.takes_service(source.service());
        let rounds = self.causes.rounds;
        let callers = self.callers(source.block.callers());
        for row in source.block.rows().filter(|row| rounds.takes(row.trace())) {
            let stored = stored_caller(row, &callers);
            let joined = || row.parent().and_then(|parent| self.causes.caller(row.trace(), parent));
            let cause = stored.or_else(joined);
            let near =
                cause.is_some_and(|node| self.filter.takes_service(&self.nodes.rows[node as usize].0.0));
            if near || is_taken {
                let client = stored.filter(|_| row.caller().is_some_and(is_client));
                self.add_row(source, row, (cause, client), &mut targets);
            }
        }
    }

    /// Adds the calls of a row. `cause` is the node of the call that caused the segment. `client` is the same node if the call is
    /// a stored caller and an HTTP client call.
    fn add_row(
        &mut self,
        source: Source<'_>,
        row: RowRef<'_>,
        (cause, client): (Option<u32>, Option<u32>),
        all: &mut Targets,
    ) {
        let Self { filter, level, causes, nodes, edges, walker, parts, .. } = self;
        let targets = all.of(source, row.shape_index(), *level, edges);
        let is_unknown = row.parent().is_some() && cause.is_none();
        let last = walker.walk(row, |visit| {
            if !filter.range.contains(visit.start) {
                return;
            }
            let target = targets[visit.position];
            let figures = nodes.value(target.node);
            figures.add_self(visit.self_ns);
            figures.add_served(causes.served(source, row, &visit));
            let caller = target.caller.or(cause);
            figures.unknown_callers += u64::from(is_unknown && caller.is_none() && visit.end.is_some());
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
            let operation = source.block.operations().get(visit.call.operation as usize);
            let is_served = target.caller.is_none() && operation.is_some_and(is_server);
            if let (Some(client), Some(duration)) = (client.filter(|_| is_served), visit.duration()) {
                nodes.value(client).add_served(duration);
            }
        });
        let mut wait = |(end, (node, start)): (Timestamp, (Option<u32>, Timestamp))| {
            if let Some(node) = node {
                nodes.value(node).add_self(part_gap(end, start));
            }
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

    /// Adds the figures of a chunk whose calls all count.
    fn add_chunk(&mut self, service: &str, summary: &CallSummary, links: &[Link], callers: &[Option<u32>]) {
        let numbers = self.numbers(service, &summary.operations);
        let number = |operation: u32| numbers[operation as usize];
        let Self { level, nodes, edges, parts, .. } = self;
        for cell in &summary.cells {
            let figures = nodes.value(number(cell.operation));
            figures.add_self(cell.self_ns);
            // The calls with a caller are in the links. At service level, not all of them count.
            if cell.is_uncalled {
                figures.add_calls(cell.count, cell.errors, cell.total_ns);
            }
        }
        for link in links {
            let node = number(link.operation);
            let (caller, is_client) = match link.source {
                LinkSource::Unknown => (None, false),
                LinkSource::Operation(operation) => (Some(number(operation)), false),
                LinkSource::Caller(caller) => {
                    (callers[caller as usize], is_client(&summary.callers[caller as usize]))
                }
            };
            if caller.is_none() {
                let unknown = &mut nodes.value(node).unknown_callers;
                *unknown = unknown.saturating_add(link.count);
            }
            if counts(*level, caller, node) {
                nodes.value(node).add_calls(link.count, link.errors, link.total_ns);
                let edge = caller.map(|caller| edges.position((caller, node), Figures::default));
                edge.into_iter().for_each(|edge| {
                    edges.value(edge).add_calls(link.count, link.errors, link.total_ns);
                });
            }
            let is_served = is_client && is_server(&summary.operations[link.operation as usize]);
            if let Some(client) = caller.filter(|_| is_served) {
                nodes.value(client).add_served(link.total_ns);
            }
        }
        for part in &summary.loose {
            if let Some((node, gap_ns)) = parts.add_loose(part, |operation| Some(number(operation))) {
                nodes.value(node).add_self(gap_ns);
            }
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
            Pass::Gather if !self.causes.is_used && self.labels_of.is_none() => Pass::End,
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

    /// Counts the summaries again, with the blocks.
    fn reread(&mut self) {
        if self.pass == Pass::Count && self.causes.rounds.is_first() {
            // The joins refer to the indexes of the nodes.
            self.nodes.rows.iter_mut().for_each(|(_, figures)| *figures = Figures::default());
            self.edges.rows.iter_mut().for_each(|(_, figures)| *figures = Figures::default());
            self.parts = Parts::new(self.waiting_max);
        }
    }

    fn add_source(&mut self, source: Source<'_>) {
        if self.pass == Pass::Gather {
            let was_used = self.causes.is_used;
            let callers = self.callers(source.block.callers());
            self.causes.gather(source, false, |row| stored_caller(row, &callers).is_none());
            if was_used || self.labels_of.is_some() {
                return;
            }
            if self.causes.is_used {
                (self.nodes, self.edges) = (Table::new(), Table::new());
                self.parts = Parts::new(self.waiting_max);
                return;
            }
        }
        let numbers = self.numbers(source.service(), source.block.operations());
        match self.pass {
            Pass::Resolve => self.causes.resolve(source, &numbers),
            _ => self.count(source, numbers),
        }
    }

    /// Not if there are several rounds: each round counts the calls of a share of the traces, and a summary has no traces.
    fn takes_summaries(&self) -> bool {
        self.labels_of.is_some() && !self.causes.rounds.is_split()
    }

    fn add_summary(&mut self, labels: &Labels, summary: &CallSummary, _is_only: bool) -> bool {
        let Some(links) = &summary.links else { return false };
        let callers = self.callers(&summary.callers);
        if !self.filter.takes_service(service(labels)) {
            // All calls of a segment that the service caused count, and a summary has only the outermost ones apart.
            let service = |caller: &u32| self.filter.takes_service(&self.nodes.rows[*caller as usize].0.0);
            return !callers.iter().flatten().any(service);
        }
        if matches!(self.pass, Pass::Gather | Pass::Count) {
            self.add_chunk(service(labels), summary, links, &callers);
        }
        true
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
        let all = self.nodes.rows.iter().filter(|((_, operation, _), _)| filter.takes_operation(operation));
        let unknown_callers = all.fold(0u64, |sum, (_, figures)| sum.saturating_add(figures.unknown_callers));
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
        Graph { nodes, edges, unknown_callers }
    }
}

/// The node of the stored caller of a row. `callers` are the nodes of the callers of its block.
fn stored_caller(row: RowRef<'_>, callers: &[Option<u32>]) -> Option<u32> {
    callers.get(row.caller_index()? as usize).copied().flatten()
}

fn is_client(caller: &Caller) -> bool {
    caller.operation.kind == OperationKind::HttpClient
}

fn is_server(operation: &Operation) -> bool {
    operation.kind == OperationKind::HttpServer
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
    let Figures { count, errors, total_ns, self_ns, served_ns, .. } = figures;
    let self_ns = self_ns.saturating_sub(served_ns);
    GraphNode { id, service, operation, kind, count, errors, total_ns, self_ns }
}
