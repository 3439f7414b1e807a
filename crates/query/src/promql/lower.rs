//! How does a syntax tree become a list of nodes with checked types?
//!
//! Step before: `parse/`, which reads the text. Step after: `plan.rs`, which gives the nodes their times.

use tacho_model::{MatchOp, Matcher, MatcherError, NAME, PatternBudget};

use crate::{Error, ErrorKind};

use super::Limits;
use super::aggregations;
use super::functions::{self, Function};
use super::node::{Aggregate, Binary, LabelChoice, Modifiers, Node, NodeId, Selector, Type, Yield};
use super::parse::{self, Expr, ExprKind, LabelMatcher, Source};

/// A well-formed and well-typed query that has no times yet.
#[derive(Clone, Debug)]
pub struct Query {
    /// Operands are before operators. The last node is the whole query.
    pub(super) nodes: Vec<Node>,
    pub(super) result: Type,
}

impl Query {
    /// Type of the answer to an instant query.
    pub fn result(&self) -> Type {
        self.result
    }
}

/// Parses with the default limits.
pub fn parse(text: &str) -> Result<Query, Error> {
    parse_with(text, &Limits::default())
}

pub fn parse_with(text: &str, limits: &Limits) -> Result<Query, Error> {
    let tree = parse::parse(text, limits)?;
    let mut budget = PatternBudget::default();
    let source = Source { text };
    let matchers = Matchers { source, budget: &mut budget };
    let mut lowering = Lowering { source, nodes: Vec::new(), matchers };
    let (_, result) = lowering.expression(&tree)?;
    Ok(Query { nodes: lowering.nodes, result })
}

/// Parses the value of a `match[]` parameter: one selector without range, `offset` or `@`.
pub fn parse_selector(text: &str) -> Result<Vec<Matcher>, Error> {
    parse_selector_within(text, &mut PatternBudget::default())
}

/// As [`parse_selector`], but the patterns of several selectors share a budget.
pub fn parse_selector_within(text: &str, budget: &mut PatternBudget) -> Result<Vec<Matcher>, Error> {
    let tree = parse::parse(text, &Limits::default())?;
    match tree.kind {
        ExprKind::Instant(selector) if selector.modifiers == Modifiers::default() => {
            Matchers { source: Source { text }, budget }.lower(&selector.matchers, tree.at)
        }
        _ => Err(Error::bad_data(format!("{text:?} is not a plain series selector"))),
    }
}

struct Lowering<'b> {
    source: Source<'b>,
    nodes: Vec<Node>,
    matchers: Matchers<'b>,
}

impl Lowering<'_> {
    fn push(&mut self, node: Node, result: Type) -> (NodeId, Type) {
        self.nodes.push(node);
        (self.nodes.len() - 1, result)
    }

    /// Recursive. The parser limits the depth of the tree.
    fn expression(&mut self, tree: &Expr<'_>) -> Result<(NodeId, Type), Error> {
        match &tree.kind {
            ExprKind::Number(number) => Ok(self.push(Node::Number(*number), Type::Scalar)),
            ExprKind::Text(text) => Ok(self.push(Node::Text((**text).into()), Type::String)),
            ExprKind::Instant(selector) => {
                let selector = self.matchers.selector(selector, tree.at)?;
                Ok(self.push(Node::Instant { selector, yields: Yield::Value }, Type::Vector))
            }
            ExprKind::Range { selector, range } => {
                let selector = self.matchers.selector(selector, tree.at)?;
                Ok(self.push(Node::Range { selector, range: *range }, Type::Range))
            }
            ExprKind::Subquery { inner, range, step, modifiers } => {
                let inner = self.typed(inner, Type::Vector, "subquery")?;
                let (range, step, modifiers) = (*range, *step, *modifiers);
                Ok(self.push(Node::Subquery { inner, range, step, modifiers }, Type::Range))
            }
            ExprKind::Sign { minus, inner } => self.sign(*minus, inner),
            ExprKind::Binary(binary) => self.binary(binary),
            ExprKind::Aggregate(aggregate) => self.aggregate(aggregate),
            ExprKind::Call { name, arguments } => self.call(name, arguments, tree.at),
        }
    }

    fn typed(&mut self, tree: &Expr<'_>, wanted: Type, place: &str) -> Result<NodeId, Error> {
        let (node, found) = self.expression(tree)?;
        if found == wanted {
            return Ok(node);
        }
        Err(self.source.error(tree.at, format!("expected type {wanted} in {place}, got {found}")))
    }

    fn sign(&mut self, minus: bool, inner: &Expr<'_>) -> Result<(NodeId, Type), Error> {
        let (node, found) = self.expression(inner)?;
        if !matches!(found, Type::Scalar | Type::Vector) {
            let message = "unary expression only allowed on expressions of type scalar or instant vector";
            return Err(self.source.error(inner.at, format!("{message}, got {found}")));
        }
        match &mut self.nodes[node] {
            _ if !minus => Ok((node, found)),
            Node::Number(number) => {
                *number = -*number;
                Ok((node, found))
            }
            _ => Ok(self.push(Node::Negate(node), found)),
        }
    }

    fn binary(&mut self, tree: &parse::Binary<'_>) -> Result<(NodeId, Type), Error> {
        let (left, left_type) = self.expression(&tree.left)?;
        let (right, right_type) = self.expression(&tree.right)?;
        let (op, yields_bool) = (tree.op, tree.yields_bool);
        for (side, found) in [(&tree.left, left_type), (&tree.right, right_type)] {
            if !matches!(found, Type::Scalar | Type::Vector) {
                let message = "binary expression must contain only scalar and instant vector types";
                return Err(self.source.error(side.at, format!("{message}, got {found}")));
            }
        }
        let wrong = |message: String| Err(self.source.error(tree.op_at, message));
        let result = match (left_type, right_type) {
            (Type::Vector, Type::Vector) => Type::Vector,
            _ if op.is_set() => {
                let name = parse::operator_name(op);
                return wrong(format!("set operator {name:?} not allowed in binary scalar expression"));
            }
            _ if has_labels(&tree.matching.on) => {
                return wrong("vector matching only allowed between instant vectors".into());
            }
            (Type::Scalar, Type::Scalar) if op.is_comparison() && !yields_bool => {
                return wrong("comparisons between scalars must use BOOL modifier".into());
            }
            (Type::Scalar, Type::Scalar) => Type::Scalar,
            _ => Type::Vector,
        };
        let matching = tree.matching.clone();
        Ok(self.push(Node::Binary(Binary { op, left, right, yields_bool, matching }), result))
    }

    fn aggregate(&mut self, tree: &parse::Aggregate<'_>) -> Result<(NodeId, Type), Error> {
        let place = format!("aggregation {}", aggregations::name(tree.op));
        let parameter = match (&tree.parameter, tree.op.parameter()) {
            (Some(tree), Some((_, wanted))) => Some(self.typed(tree, wanted, &place)?),
            _ => None,
        };
        let inner = self.typed(&tree.inner, Type::Vector, &place)?;
        let grouping = tree.grouping.clone();
        if matches!(&grouping, LabelChoice::Only(names) if names.iter().any(|name| name == NAME))
            && self.selects_several_metrics(inner)
            && let Node::Call { keeps_name, .. } = &mut self.nodes[inner]
        {
            *keeps_name = true;
        }
        let aggregate = Aggregate { op: tree.op, inner, parameter, grouping };
        Ok(self.push(Node::Aggregate(aggregate), Type::Vector))
    }

    /// Whether the call, or a call among its arguments, reads a range selector without `__name__="..."`, such as
    /// `rate({a="b"}[5m])`.
    fn selects_several_metrics(&self, call: NodeId) -> bool {
        match &self.nodes[call] {
            Node::Call { arguments, .. } => {
                arguments.iter().any(|argument| self.selects_several_metrics(*argument))
            }
            Node::Range { selector, .. } => {
                let names = |matcher: &Matcher| matcher.label() == NAME && matcher.op() == MatchOp::Equal;
                !selector.matchers.iter().any(names)
            }
            _ => false,
        }
    }

    fn call(&mut self, name: &str, trees: &[Expr<'_>], at: usize) -> Result<(NodeId, Type), Error> {
        let function = functions::lookup(name).map_err(|message| self.source.error(at, message))?;
        function.check_count(trees.len()).map_err(|error| error.at(self.source.place(at)))?;
        let place = format!("call to function \"{name}\"");
        let mut arguments = Vec::with_capacity(trees.len());
        for (index, tree) in trees.iter().enumerate() {
            arguments.push(self.typed(tree, function.parameter_type(index), &place)?);
        }
        self.yield_times(function, &arguments);
        let last_at = trees.last().map_or(at, |tree| tree.at);
        self.count_rewrite(function, &arguments).map_err(|error| error.at(self.source.place(last_at)))?;
        Ok(self.push(Node::Call { function, arguments, keeps_name: false }, function.returns))
    }

    /// Counts the pattern of `label_replace` against the budget of the patterns in selectors.
    fn count_rewrite(&mut self, function: &Function, arguments: &[NodeId]) -> Result<(), Error> {
        if function.name == "label_replace"
            && let Some(&pattern) = arguments.last()
            && let Node::Text(pattern) = &self.nodes[pattern]
        {
            self.matchers.budget.take_rewrite(pattern).map_err(|cause| {
                let message = format!("pattern in label_replace() cannot be used: {pattern:.100}: {cause}");
                Error { kind: ErrorKind::Limit, ..Error::bad_data(message) }
            })?;
        }
        Ok(())
    }

    /// `timestamp(selector)` returns the times of the samples. For any other argument it returns the evaluation times.
    fn yield_times(&mut self, function: &Function, arguments: &[NodeId]) {
        if function.name == "timestamp"
            && let [argument] = arguments
            && let Node::Instant { yields, .. } = &mut self.nodes[*argument]
        {
            *yields = Yield::Time;
        }
    }
}

fn has_labels(on: &LabelChoice) -> bool {
    match on {
        LabelChoice::Only(labels) | LabelChoice::Except(labels) => !labels.is_empty(),
    }
}

struct Matchers<'b> {
    source: Source<'b>,
    budget: &'b mut PatternBudget,
}

impl Matchers<'_> {
    fn selector(&mut self, selector: &parse::Selector<'_>, at: usize) -> Result<Selector, Error> {
        Ok(Selector { matchers: self.lower(&selector.matchers, at)?, modifiers: selector.modifiers })
    }

    fn lower(&mut self, parsed: &[LabelMatcher<'_>], at: usize) -> Result<Vec<Matcher>, Error> {
        let mut matchers = Vec::with_capacity(parsed.len());
        for LabelMatcher { label, op, value, at } in parsed {
            let matcher = Matcher::new_within(label, *op, value, self.budget);
            matchers.push(matcher.map_err(|error| unusable(error).at(self.source.place(*at)))?);
        }
        if matchers.iter().all(|matcher| matcher.matches_value("")) {
            let message = "vector selector must contain at least one non-empty matcher";
            return Err(self.source.error(at, message));
        }
        Ok(matchers)
    }
}

fn unusable(error: MatcherError) -> Error {
    let mut refused = Error::bad_data(error.to_string());
    if error.is_over_budget {
        refused.kind = ErrorKind::Limit;
    }
    refused
}
