//! Which operations call each other, and which services call each other and their databases?

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tacho_chunk::RowRef;
use tacho_model::{Operation, OperationKind};

use super::awaited;
use super::calls::{Visit, Walker};
use super::parents::{Parents, Place};
use super::source::{Filter, SourceBlock, Table};
use crate::{Cancel, Error};

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

/// Calls from one node to another. Both ends are node ids.
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
    /// `None` for an outermost call, or when the call stays within the node of its caller.
    edge: Option<u32>,
}

struct Builder<'a> {
    blocks: &'a [SourceBlock],
    level: Level,
    nodes: Table<Key, Figures>,
    edges: Table<(u32, u32), Figures>,
    /// For each block: the node of each operation of the block.
    numbers: Vec<Vec<u32>>,
    targets: HashMap<(u32, usize), Arc<[Target]>>,
}

/// The graph of the calls that were entered in the range. If the filter has a service or operation, the graph has the
/// nodes of that service or operation, and their neighbours.
pub fn graph(blocks: &[SourceBlock], filter: &Filter, level: Level, cancel: &Cancel) -> Result<Graph, Error> {
    let parents = Parents::new(blocks, cancel)?;
    let mut builder = Builder::new(blocks, level);
    let mut walker = Walker::over(blocks, cancel)?;
    for source in awaited(blocks, cancel) {
        let (block, source) = source?;
        for r in source.block.rows() {
            let cause = r.parent().and_then(|parent| parents.find(blocks, r.trace(), parent));
            let near = cause.is_some_and(|(place, _)| filter.takes_service(&blocks[place.block as usize]));
            if near || filter.takes_service(source) {
                let caller = cause.map(|(place, position)| builder.node_of(place, position));
                builder.add(block, r, caller, filter, &mut walker);
            }
        }
    }
    Ok(builder.finish(filter))
}

impl<'a> Builder<'a> {
    fn new(blocks: &'a [SourceBlock], level: Level) -> Self {
        let mut nodes = Table::new();
        let number = |source: &SourceBlock| {
            let service: Arc<str> = source.service().into();
            let all = source.block.operations().iter();
            all.map(|operation| nodes.position(key(&service, operation, level), Figures::default)).collect()
        };
        let numbers = blocks.iter().map(number).collect();
        Self { blocks, level, nodes, edges: Table::new(), numbers, targets: HashMap::new() }
    }

    fn node_of(&self, place: Place, position: usize) -> u32 {
        let operation = place.row(self.blocks).shape().calls()[position].operation;
        self.numbers[place.block as usize][operation as usize]
    }

    /// Adds the calls of a row. `cause` is the node of the call that caused the segment.
    fn add(&mut self, block: u32, row: RowRef<'_>, cause: Option<u32>, filter: &Filter, walker: &mut Walker) {
        let targets = self.targets(block, row.shape_index());
        let level = self.level;
        walker.walk(row, |visit| {
            if !filter.range.contains(visit.start) {
                return;
            }
            let target = targets[visit.position];
            let figures = self.nodes.value(target.node);
            figures.self_ns = figures.self_ns.saturating_add(visit.self_ns);
            let caller = target.caller.or(cause);
            if counts(level, caller, target.node) {
                figures.add(&visit);
            }
            // Only the edge to an outermost call depends on the row.
            let edge = target.edge.or_else(|| {
                let from = cause.filter(|_| target.caller.is_none())?;
                counts(level, Some(from), target.node)
                    .then(|| self.edges.position((from, target.node), Figures::default))
            });
            if let Some(edge) = edge {
                self.edges.value(edge).add(&visit);
            }
        });
    }

    fn targets(&mut self, block: u32, shape: usize) -> Arc<[Target]> {
        if let Some(targets) = self.targets.get(&(block, shape)) {
            return Arc::clone(targets);
        }
        let numbers = &self.numbers[block as usize];
        let calls = self.blocks[block as usize].block.shapes()[shape].calls();
        let mut targets = Vec::with_capacity(calls.len());
        for call in calls {
            let node = numbers[call.operation as usize];
            let caller = call.parent.map(|parent| numbers[calls[parent as usize].operation as usize]);
            let from = caller.filter(|_| counts(self.level, caller, node));
            let edge = from.map(|from| self.edges.position((from, node), Figures::default));
            targets.push(Target { node, caller, edge });
        }
        let targets: Arc<[Target]> = targets.into();
        self.targets.insert((block, shape), Arc::clone(&targets));
        targets
    }

    fn finish(self, filter: &Filter) -> Graph {
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

/// Whether a call counts for its node and for the edge to that node. At service level, a call counts only if its caller
/// belongs to another node.
fn counts(level: Level, caller: Option<u32>, node: u32) -> bool {
    level == Level::Operation || caller != Some(node)
}

fn node(key: Key, figures: Figures) -> GraphNode {
    let id = id(&key);
    let (service, operation, kind) = key;
    let Figures { count, errors, total_ns, self_ns } = figures;
    GraphNode { id, service, operation, kind, count, errors, total_ns, self_ns }
}
