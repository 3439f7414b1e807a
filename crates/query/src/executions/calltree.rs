//! Which call paths were executed, how often, and for how long, over all traces? Calls of one operation with the
//! same callers share a node.
//!
//! The outermost calls of a segment are placed below the call that caused the segment, even across services. Rows with the same
//! shape and the same causing node share one mapping from calls to nodes; each row then adds only its times.

use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::{Operation, OperationKind};

use super::awaited;
use super::calls::{Visit, Walker};
use super::causes::Causes;
use super::limits::Limits;
use super::parents::{Parents, Place};
use super::source::{Filter, SourceBlock, Table};
use crate::{Cancel, Error};

/// Limit on the nodes of one tree; calls beyond the limit are omitted.
const NODES_MAX: usize = 100_000;
/// Limit on the depth of one tree; deeper calls are omitted. The limit protects recursive readers of the answer from a
/// stack overflow.
const DEPTH_MAX: u32 = 512;
/// Limit on the length of a chain of segments in which each segment causes the next.
const CHAIN_MAX: usize = 128;

/// The call tree of one service, or of all services.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTree {
    pub service: Option<String>,
    /// Artificial node without an operation. Its count, errors and total time are the sums of its children; its self time is 0.
    pub root: CallTreeNode,
}

/// Calls of one operation with the same callers.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTreeNode {
    pub operation: Arc<str>,
    /// `None` for the root.
    pub kind: Option<OperationKind>,
    pub service: Arc<str>,
    /// Completed calls.
    pub count: u64,
    pub errors: u64,
    pub total_ns: u64,
    pub self_ns: u64,
    /// By descending total time.
    pub children: Vec<CallTreeNode>,
}

/// A node while the tree is built. The root has index 0.
struct Node {
    parent: usize,
    depth: u32,
    /// Index in the table of operations.
    operation: u32,
    count: u64,
    errors: u64,
    total_ns: u64,
    self_ns: u64,
    served_ns: u64,
}

/// Position of a call in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Spot {
    /// The call is not in the tree: the requested service or operation is not on the path from the first call to this call.
    Outside,
    /// The call is omitted because of a limit of the tree.
    Cut,
    Node(usize),
}

const TOP: Spot = Spot::Node(0);

struct Tree<'a> {
    blocks: &'a [SourceBlock],
    filter: &'a Filter,
    parents: Parents,
    operations: Table<(Arc<str>, Operation), ()>,
    /// For each block: the indexes of its operations in the table `operations`.
    numbers: Vec<Vec<u32>>,
    nodes: Vec<Node>,
    children: HashMap<(usize, u32), usize>,
    /// The spots of the calls of a shape, by block, shape, and the spot below which the outermost calls are placed.
    laid: HashMap<(u32, usize, Spot), Arc<[Spot]>>,
    /// The spot below which the outermost calls of a row are placed, for rows of segments with a parent.
    hung: HashMap<Place, Spot>,
}

/// The tree of the calls that were entered in the range. If the filter has an operation, the tree starts at the
/// outermost calls of that operation.
pub fn calltree(blocks: &[SourceBlock], filter: &Filter, cancel: &Cancel) -> Result<CallTree, Error> {
    let mut tree = Tree::new(blocks, filter, Parents::new(blocks, cancel)?);
    let mut causes = Causes::new(&Limits::IN_MEMORY);
    blocks.iter().for_each(|source| causes.gather(source.source(), true, |_| true));
    causes.sort();
    let mut walker = Walker::over(blocks, cancel)?;
    for source in awaited(blocks, cancel) {
        let (block, source) = source?;
        for (row, r) in (0u32..).zip(source.block.rows()) {
            let below = tree.below(Place { block, row });
            let spots = tree.lay(block, r.shape_index(), below);
            walker.walk(r, |visit| {
                if let (Spot::Node(node), true) = (spots[visit.position], filter.range.contains(visit.start))
                {
                    tree.nodes[node].add(&visit, causes.served(source.source(), r, &visit));
                }
            });
        }
    }
    Ok(CallTree { service: filter.service.clone(), root: tree.finish() })
}

impl Node {
    const fn new(parent: usize, depth: u32, operation: u32) -> Self {
        Self { parent, depth, operation, count: 0, errors: 0, total_ns: 0, self_ns: 0, served_ns: 0 }
    }

    /// `served_ns`: the part of the call's self time during which a recorded server worked.
    fn add(&mut self, visit: &Visit<'_>, served_ns: u64) {
        self.self_ns = self.self_ns.saturating_add(visit.self_ns);
        self.served_ns = self.served_ns.saturating_add(served_ns);
        if let Some(duration) = visit.duration() {
            self.count += 1;
            self.errors += u64::from(visit.call.failed);
            self.total_ns = self.total_ns.saturating_add(duration);
        }
    }
}

impl<'a> Tree<'a> {
    fn new(blocks: &'a [SourceBlock], filter: &'a Filter, parents: Parents) -> Self {
        let mut operations = Table::new();
        let number = |source: &SourceBlock| {
            let service: Arc<str> = source.service().into();
            let all = source.block.operations().iter();
            all.map(|o| operations.position((Arc::clone(&service), o.clone()), || ())).collect()
        };
        let numbers = blocks.iter().map(number).collect();
        Self {
            blocks,
            filter,
            parents,
            operations,
            numbers,
            nodes: vec![Node::new(0, 0, u32::MAX)],
            children: HashMap::new(),
            laid: HashMap::new(),
            hung: HashMap::new(),
        }
    }

    /// Spot of the call that caused the row's segment. The outermost calls of the row are placed below it. Follows the chain
    /// of causes upwards, then assigns spots from the top down. If the chain is too long or has a cycle, the last segment
    /// reached is the start of the chain.
    fn below(&mut self, place: Place) -> Spot {
        if place.row(self.blocks).parent().is_none() {
            return self.hang(place, None);
        }
        let mut chain = vec![];
        let mut next = Some(place);
        let mut known = None;
        while let Some(place) = next.filter(|_| chain.len() < CHAIN_MAX) {
            known = self.hung.get(&place).copied();
            if known.is_some() {
                break;
            }
            if chain.iter().any(|(seen, _)| *seen == place) {
                break;
            }
            let row = place.row(self.blocks);
            let cause = row.parent().and_then(|parent| self.parents.find(self.blocks, row.trace(), parent));
            chain.push((place, cause.map(|(_, position)| position)));
            next = cause.map(|(place, _)| place);
        }
        // The causing row, and the spot below which its outermost calls are placed. `None` for the topmost segment, unless
        // `hung` has the spot of its cause.
        let mut above: Option<(Place, Spot)> = next.zip(known);
        let mut spot = known.unwrap_or(Spot::Outside);
        for (place, position) in chain.into_iter().rev() {
            spot = self.hang(place, above.zip(position));
            if place.row(self.blocks).parent().is_some() {
                self.hung.insert(place, spot);
            }
            above = Some((place, spot));
        }
        spot
    }

    /// Like [`Tree::below`], if the cause of the row was already searched. `cause` holds the causing row, the spot below
    /// which its outermost calls are placed, and the index of the causing call in that row. `None` if no cause was found.
    fn hang(&mut self, place: Place, cause: Option<((Place, Spot), usize)>) -> Spot {
        let taken = self.filter.takes_service(self.blocks[place.block as usize].service());
        let first = if taken { TOP } else { Spot::Outside };
        let Some(((above, below), position)) = cause else { return first };
        if below == Spot::Outside {
            return first;
        }
        let shape = above.row(self.blocks).shape_index();
        match self.lay(above.block, shape, below)[position] {
            Spot::Outside => TOP,
            spot => spot,
        }
    }

    /// Maps the calls of a shape to spots. The outermost calls of the shape are placed below the spot `below`. Each mapping is
    /// computed once.
    fn lay(&mut self, block: u32, shape: usize, below: Spot) -> Arc<[Spot]> {
        if let Some(spots) = self.laid.get(&(block, shape, below)) {
            return Arc::clone(spots);
        }
        let source = &self.blocks[block as usize].block;
        let calls = source.shapes()[shape].calls();
        let mut spots: Vec<Spot> = Vec::with_capacity(calls.len());
        for call in calls {
            let operation = call.operation as usize;
            let caller = call.parent.map_or(below, |parent| spots[parent as usize]);
            let wanted = self.filter.takes_operation(&source.operations()[operation].name);
            let number = self.numbers[block as usize][operation];
            spots.push(match caller {
                TOP if !wanted => Spot::Outside,
                Spot::Outside if below != Spot::Outside && wanted => self.child(0, number),
                Spot::Node(parent) => self.child(parent, number),
                spot => spot,
            });
        }
        let spots: Arc<[Spot]> = spots.into();
        self.laid.insert((block, shape, below), Arc::clone(&spots));
        spots
    }

    fn child(&mut self, parent: usize, operation: u32) -> Spot {
        if let Some(node) = self.children.get(&(parent, operation)) {
            return Spot::Node(*node);
        }
        let depth = self.nodes[parent].depth + 1;
        if self.nodes.len() >= NODES_MAX || depth > DEPTH_MAX {
            return Spot::Cut;
        }
        let node = self.nodes.len();
        self.nodes.push(Node::new(parent, depth, operation));
        self.children.insert((parent, operation), node);
        Spot::Node(node)
    }

    /// Adds each node to its parent, from the last node to the first, because a parent has a lower index than its
    /// children.
    fn finish(self) -> CallTreeNode {
        let operations = self.operations.rows;
        let mut children: Vec<Vec<CallTreeNode>> = self.nodes.iter().map(|_| vec![]).collect();
        for (at, node) in self.nodes.iter().enumerate().skip(1).rev() {
            let ((service, operation), ()) = &operations[node.operation as usize];
            let mut below = std::mem::take(&mut children[at]);
            below.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.operation.cmp(&b.operation)));
            if node.count == 0 && node.self_ns == 0 && below.is_empty() {
                continue;
            }
            children[node.parent].push(CallTreeNode {
                operation: Arc::clone(&operation.name),
                kind: Some(operation.kind),
                service: Arc::clone(service),
                count: node.count,
                errors: node.errors,
                total_ns: node.total_ns,
                self_ns: node.self_ns.saturating_sub(node.served_ns),
                children: below,
            });
        }
        let mut top = std::mem::take(&mut children[0]);
        top.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.operation.cmp(&b.operation)));
        let sum = |figure: fn(&CallTreeNode) -> u64| top.iter().map(figure).fold(0, u64::saturating_add);
        CallTreeNode {
            operation: "".into(),
            kind: None,
            service: self.filter.service.as_deref().unwrap_or_default().into(),
            count: sum(|node| node.count),
            errors: sum(|node| node.errors),
            total_ns: sum(|node| node.total_ns),
            self_ns: 0,
            children: top,
        }
    }
}
