//! Who called whom, how often, for how long, over all traces? Calls with the same callers are one node.
//!
//! Segments that were caused by a call of another segment hang below that call, also when it belongs to another service.
//! Each shape's calls are laid on nodes once; rows of that shape then only add their times.

use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::{Operation, OperationKind};

use super::awaited;
use super::calls::{Visit, Walker};
use super::parents::{Parents, Place};
use super::source::{Filter, SourceBlock, Table};
use crate::{Cancel, Error};

/// Nodes of one tree, at most; calls that would need more are left out.
const NODES_MAX: usize = 100_000;
/// Levels of one tree, at most; deeper calls are left out. Keeps the answer's readers from running out of stack.
const DEPTH_MAX: u32 = 512;
/// How far a chain of segments that caused each other is followed.
const CHAIN_MAX: usize = 128;

/// The tree of a service, or of all.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTree {
    pub service: Option<String>,
    /// Artificial: the sum of its children, with an empty operation.
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
    /// The largest total time first.
    pub children: Vec<CallTreeNode>,
}

/// A node while the tree grows. The root is number 0.
struct Node {
    parent: usize,
    depth: u32,
    /// Number in the table of operations.
    operation: u32,
    count: u64,
    errors: u64,
    total_ns: u64,
    self_ns: u64,
}

/// Where a call stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Spot {
    /// Above the operation that is asked for, or of a service that is not.
    Outside,
    /// In the tree, but beyond its limits.
    Cut,
    Node(usize),
}

const TOP: Spot = Spot::Node(0);

struct Tree<'a> {
    blocks: &'a [SourceBlock],
    filter: &'a Filter,
    parents: Parents,
    operations: Table<(Arc<str>, Operation), ()>,
    /// Numbers of each block's operations in the table.
    numbers: Vec<Vec<u32>>,
    nodes: Vec<Node>,
    children: HashMap<(usize, u32), usize>,
    /// For a block, a shape, and the spot it hangs below: the spot of each call.
    laid: HashMap<(u32, usize, Spot), Arc<[Spot]>>,
    /// Spots below which rows hang that have a parent.
    hung: HashMap<Place, Spot>,
}

/// The tree of calls entered in the range. With an operation, it begins at the outermost calls of that operation.
pub fn calltree(blocks: &[SourceBlock], filter: &Filter, cancel: &Cancel) -> Result<CallTree, Error> {
    let mut tree = Tree::new(blocks, filter, Parents::new(blocks, cancel)?);
    let mut walker = Walker::over(blocks, cancel)?;
    for source in awaited(blocks, cancel) {
        let (block, source) = source?;
        for (row, r) in (0u32..).zip(source.block.rows()) {
            let below = tree.below(Place { block, row });
            let spots = tree.lay(block, r.shape_index(), below);
            walker.walk(r, |visit| {
                if let (Spot::Node(node), true) = (spots[visit.position], filter.range.contains(visit.start))
                {
                    tree.nodes[node].add(&visit);
                }
            });
        }
    }
    Ok(CallTree { service: filter.service.clone(), root: tree.finish() })
}

impl Node {
    const fn new(parent: usize, depth: u32, operation: u32) -> Self {
        Self { parent, depth, operation, count: 0, errors: 0, total_ns: 0, self_ns: 0 }
    }

    fn add(&mut self, visit: &Visit<'_>) {
        self.self_ns = self.self_ns.saturating_add(visit.self_ns);
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

    /// The spot that a row hangs below: that of the call that caused it. Chains of segments are followed upwards first, then
    /// laid from the top; a chain that is too long, or goes in a circle, is taken to begin where following ended.
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
        // The spot of the row above; at first that of the row where following ended.
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

    /// Spot of a row, when that of the row that caused it is known, and which call did it.
    fn hang(&mut self, place: Place, cause: Option<((Place, Spot), usize)>) -> Spot {
        let taken = self.filter.takes_service(&self.blocks[place.block as usize]);
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

    /// Lays the calls of a shape on nodes, once for each spot that it hangs below.
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
                // Callers of the operation that is asked for are outside, and so is all of a service that is not.
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

    /// Folds nodes into their parents, the last first: a parent always has a lower number.
    fn finish(self) -> CallTreeNode {
        let operations = self.operations.rows;
        let mut children: Vec<Vec<CallTreeNode>> = self.nodes.iter().map(|_| vec![]).collect();
        for (at, node) in self.nodes.iter().enumerate().skip(1).rev() {
            let ((service, operation), ()) = &operations[node.operation as usize];
            let mut below = std::mem::take(&mut children[at]);
            below.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.operation.cmp(&b.operation)));
            // Nodes that only open calls have touched, or none in the range, say nothing.
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
                self_ns: node.self_ns,
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
