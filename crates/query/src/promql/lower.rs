//! Text to a list of typed nodes.
//!
//! Step before: the caller with a query's text. Step after: `plan.rs`, which gives the nodes their times.

use std::panic::catch_unwind;
use std::time::{Duration, SystemTime};

use promql_parser::label::MatchOp as ParsedOp;
use promql_parser::parser::token::TokenType;
use promql_parser::parser::{
    AggregateExpr, AtModifier, BinModifier, BinaryExpr, Call, Expr, LabelModifier, Offset,
    VectorMatchCardinality, VectorSelector,
};
use tacho_model::{MatchOp, Matcher, MatcherError, NAME, PatternBudget};

use crate::{Error, ErrorKind};

use super::functions::{self, Function};
use super::node::{
    Aggregate, AggregateOp, At, Binary, BinaryOp, Cardinality, LabelChoice, Matching, Modifiers, Node,
    NodeId, Selector, Type, Yield,
};
use super::{Limits, diagnose, guard, patterns};

/// A query that is well formed and well typed, without times yet.
#[derive(Clone, Debug)]
pub struct Query {
    /// Operands before operators; the last one is the whole query.
    pub(super) nodes: Vec<Node>,
    pub(super) result: Type,
}

impl Query {
    /// What the answer to an instant query will be.
    pub fn result(&self) -> Type {
        self.result
    }
}

/// Parses with the default limits.
pub fn parse(text: &str) -> Result<Query, Error> {
    parse_with(text, &Limits::default())
}

pub fn parse_with(text: &str, limits: &Limits) -> Result<Query, Error> {
    let (tree, mark) = parse_tree(text, limits)?;
    let mut lowering =
        Lowering { nodes: Vec::new(), matchers: Matchers { mark, budget: &mut PatternBudget::default() } };
    let (_, result) = lowering.expression(&tree)?;
    Ok(Query { nodes: lowering.nodes, result })
}

/// Parses what a `match[]` parameter holds: one selector without range, `offset` or `@`.
pub fn parse_selector(text: &str) -> Result<Vec<Matcher>, Error> {
    parse_selector_within(text, &mut PatternBudget::default())
}

/// As [`parse_selector`], where the patterns of several selectors share a budget.
pub fn parse_selector_within(text: &str, budget: &mut PatternBudget) -> Result<Vec<Matcher>, Error> {
    match parse_tree(text, &Limits::default())? {
        (Expr::VectorSelector(VectorSelector { name, matchers, offset: None, at: None }), mark) => {
            Matchers { mark, budget }.lower(name.as_deref(), &matchers)
        }
        _ => Err(Error::bad_data(format!("{text:?} is not a plain series selector"))),
    }
}

/// The tree, and the mark before its patterns if it has any.
fn parse_tree(text: &str, limits: &Limits) -> Result<(Expr, Option<char>), Error> {
    guard::check(text, limits)?;
    functions::register();
    let text = &*guard::narrowed(text);
    match parse_guarded(text) {
        Ok(parsed) => Ok(parsed),
        // A query that does not parse is looked at as it was written.
        Err(message) => Err(diagnose::explain(text, message, has_grammar)),
    }
}

/// The parser is not ours: what it has not foreseen must not take the server with it. It never sees a pattern.
fn parse_guarded(text: &str) -> Result<(Expr, Option<char>), String> {
    let hidden = patterns::hidden(text);
    let (text, mark) = hidden.as_ref().map_or((text, None), |hidden| (&hidden.text, Some(hidden.mark)));
    let parsed = catch_unwind(|| promql_parser::parser::parse(text));
    match parsed.unwrap_or_else(|_| Err("the parser gave up".into())) {
        Ok(tree) => Ok((tree, mark)),
        Err(message) => Err(mark.map_or(message.clone(), |mark| message.replace(mark, ""))),
    }
}

/// Of the parser's errors, all but this one are about what the grammar does not know: types, names, numbers.
fn has_grammar(text: &str) -> bool {
    let tokens = catch_unwind(|| promql_parser::parser::lexer(text).is_ok()).unwrap_or(false);
    tokens && parse_guarded(text).map_or_else(|message| message != diagnose::SPEECHLESS, |_| true)
}

struct Lowering<'b> {
    nodes: Vec<Node>,
    matchers: Matchers<'b>,
}

impl Lowering<'_> {
    fn push(&mut self, node: Node, result: Type) -> (NodeId, Type) {
        self.nodes.push(node);
        (self.nodes.len() - 1, result)
    }

    /// The only recursion over a query; `guard.rs` bounds its depth.
    fn expression(&mut self, tree: &Expr) -> Result<(NodeId, Type), Error> {
        match tree {
            Expr::Paren(paren) => self.expression(&paren.expr),
            Expr::NumberLiteral(number) => Ok(self.push(Node::Number(number.val), Type::Scalar)),
            Expr::StringLiteral(text) => Ok(self.push(Node::Text(text.val.as_str().into()), Type::String)),
            Expr::VectorSelector(selector) => {
                let node =
                    Node::Instant { selector: self.matchers.selector(selector)?, yields: Yield::Value };
                Ok(self.push(node, Type::Vector))
            }
            Expr::MatrixSelector(matrix) => {
                let node = Node::Range {
                    selector: self.matchers.selector(&matrix.vs)?,
                    range: positive(matrix.range)?,
                };
                Ok(self.push(node, Type::Range))
            }
            Expr::Subquery(subquery) => {
                let inner = self.typed(&subquery.expr, Type::Vector, "subquery")?;
                let node = Node::Subquery {
                    inner,
                    range: positive(subquery.range)?,
                    step: subquery.step.map(positive).transpose()?,
                    modifiers: lower_modifiers(subquery.at.as_ref(), subquery.offset.as_ref())?,
                };
                Ok(self.push(node, Type::Range))
            }
            Expr::Unary(unary) => self.negate(&unary.expr),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate),
            Expr::Call(call) => self.call(call),
            Expr::Extension(_) => Err(Error::bad_data("extensions of the parser are not available")),
        }
    }

    fn typed(&mut self, tree: &Expr, wanted: Type, place: &str) -> Result<NodeId, Error> {
        let (node, found) = self.expression(tree)?;
        if found == wanted {
            return Ok(node);
        }
        Err(Error::bad_data(format!("expected type {wanted} in {place}, got {found}")))
    }

    fn negate(&mut self, tree: &Expr) -> Result<(NodeId, Type), Error> {
        match self.expression(tree)? {
            (node, found @ (Type::Scalar | Type::Vector)) => Ok(self.push(Node::Negate(node), found)),
            (_, found) => {
                let message = "unary expression only allowed on expressions of type scalar or instant vector";
                Err(Error::bad_data(format!("{message}, got {found:?}")))
            }
        }
    }

    fn binary(&mut self, tree: &BinaryExpr) -> Result<(NodeId, Type), Error> {
        let (left, left_type) = self.expression(&tree.lhs)?;
        let (right, right_type) = self.expression(&tree.rhs)?;
        let op = binary_op(tree.op)?;
        let yields_bool = tree.return_bool();
        let result = match (left_type, right_type) {
            (Type::Scalar, Type::Scalar) if op.is_comparison() && !yields_bool => {
                return Err(Error::bad_data("comparisons between scalars must use BOOL modifier"));
            }
            (Type::Scalar, Type::Scalar) => Type::Scalar,
            (Type::Scalar | Type::Vector, Type::Scalar | Type::Vector) => Type::Vector,
            _ => {
                return Err(Error::bad_data(
                    "binary expression must contain only scalar and instant vector types",
                ));
            }
        };
        if op.is_set() && (left_type, right_type) != (Type::Vector, Type::Vector) {
            return Err(Error::bad_data(format!(
                "set operator \"{}\" not allowed in binary scalar expression",
                tree.op
            )));
        }
        let matching = lower_matching(tree.modifier.as_ref())?;
        let node = Node::Binary(Binary { op, left, right, yields_bool, matching });
        Ok(self.push(node, result))
    }

    fn aggregate(&mut self, tree: &AggregateExpr) -> Result<(NodeId, Type), Error> {
        let name = tree.op.to_string();
        let op = aggregate_op(&name)
            .ok_or_else(|| Error::bad_data(format!("aggregation {name} is not available yet")))?;
        let place = format!("aggregation {name}");
        let parameter = match (&tree.param, op) {
            (Some(tree), AggregateOp::CountValues) => Some(self.typed(tree, Type::String, &place)?),
            (Some(tree), _) => Some(self.typed(tree, Type::Scalar, &place)?),
            (None, _) => None,
        };
        let inner = self.typed(&tree.expr, Type::Vector, &place)?;
        let grouping = match &tree.modifier {
            None => LabelChoice::Only(Vec::new()),
            Some(modifier) => lower_choice(modifier),
        };
        if matches!(&grouping, LabelChoice::Only(names) if names.iter().any(|name| name == NAME))
            && self.selects_several_metrics(inner)
            && let Node::Call { keeps_name, .. } = &mut self.nodes[inner]
        {
            *keeps_name = true;
        }
        Ok(self.push(Node::Aggregate(Aggregate { op, inner, parameter, grouping }), Type::Vector))
    }

    /// Whether a call is about a range of a selector that gives no metric's name.
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

    fn call(&mut self, tree: &Call) -> Result<(NodeId, Type), Error> {
        let name = tree.func.name;
        let function = functions::find(name)
            .ok_or_else(|| Error::bad_data(format!("function {name} is not available yet")))?;
        function.check_count(tree.args.len())?;
        let place = format!("call to function \"{name}\"");
        let mut arguments = Vec::with_capacity(tree.args.len());
        for (index, argument) in tree.args.args.iter().enumerate() {
            arguments.push(self.typed(argument, function.parameter_type(index), &place)?);
        }
        self.yield_times(function, &arguments);
        self.count_rewrite(function, &arguments)?;
        Ok(self.push(Node::Call { function, arguments, keeps_name: false }, function.returns))
    }

    /// The pattern of `label_replace` is one of the query's, too.
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

    /// `timestamp(selector)` means the samples' own times; of anything else, the times of evaluation.
    fn yield_times(&mut self, function: &Function, arguments: &[NodeId]) {
        if function.name == "timestamp"
            && let [argument] = arguments
            && let Node::Instant { yields, .. } = &mut self.nodes[*argument]
        {
            *yields = Yield::Time;
        }
    }
}

/// Lowers matchers.
struct Matchers<'b> {
    /// What patterns begin with.
    mark: Option<char>,
    budget: &'b mut PatternBudget,
}

impl Matchers<'_> {
    fn selector(&mut self, selector: &VectorSelector) -> Result<Selector, Error> {
        Ok(Selector {
            matchers: self.lower(selector.name.as_deref(), &selector.matchers)?,
            modifiers: lower_modifiers(selector.at.as_ref(), selector.offset.as_ref())?,
        })
    }

    fn lower(
        &mut self,
        name: Option<&str>,
        parsed: &promql_parser::label::Matchers,
    ) -> Result<Vec<Matcher>, Error> {
        if !parsed.or_matchers.is_empty() {
            return Err(Error::bad_data("\"or\" between label matchers is not available yet"));
        }
        let mut matchers: Vec<Matcher> = name.map(|name| Matcher::equal(NAME, name)).into_iter().collect();
        for matcher in &parsed.matchers {
            let pattern = self.mark.and_then(|mark| matcher.value.strip_prefix(mark));
            let (op, value) = match (&matcher.op, pattern) {
                (ParsedOp::Equal, None) => (MatchOp::Equal, &*matcher.value),
                (ParsedOp::NotEqual, None) => (MatchOp::NotEqual, &*matcher.value),
                (ParsedOp::Equal, Some(pattern)) => (MatchOp::Regex, pattern),
                (ParsedOp::NotEqual, Some(pattern)) => (MatchOp::NotRegex, pattern),
                (ParsedOp::Re(_) | ParsedOp::NotRe(_), _) => {
                    return Err(Error::bad_data("a pattern is not a quoted text"));
                }
            };
            matchers.push(Matcher::new_within(&matcher.name, op, value, self.budget).map_err(unusable)?);
        }
        // The parser lets `{a=~".*", b!=""}` and the like through by its own rules; ours is Prometheus': one
        // matcher at least must exclude series that lack its label.
        if matchers.iter().all(|matcher| matcher.matches_value("")) {
            return Err(Error::bad_data("vector selector must contain at least one non-empty matcher"));
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

fn lower_modifiers(at: Option<&AtModifier>, offset: Option<&Offset>) -> Result<Modifiers, Error> {
    let at = match at {
        None => None,
        Some(AtModifier::Start) => Some(At::Start),
        Some(AtModifier::End) => Some(At::End),
        Some(AtModifier::At(time)) => Some(At::Time(match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => nanoseconds(after)?,
            Err(before) => -nanoseconds(before.duration())?,
        })),
    };
    let offset = match offset {
        None => 0,
        Some(Offset::Pos(past)) => nanoseconds(*past)?,
        Some(Offset::Neg(ahead)) => -nanoseconds(*ahead)?,
    };
    Ok(Modifiers { at, offset })
}

fn nanoseconds(duration: Duration) -> Result<i64, Error> {
    let bad = || {
        Error::bad_data(format!(
            "a time of {} s does not fit into 64 bits of nanoseconds",
            duration.as_secs()
        ))
    };
    i64::try_from(duration.as_nanos()).map_err(|_| bad())
}

fn positive(duration: Duration) -> Result<i64, Error> {
    match nanoseconds(duration)? {
        0 => Err(Error::bad_data("duration must be greater than 0")),
        ns => Ok(ns),
    }
}

fn lower_choice(modifier: &LabelModifier) -> LabelChoice {
    match modifier {
        LabelModifier::Include(labels) => LabelChoice::Only(labels.labels.clone()),
        LabelModifier::Exclude(labels) => LabelChoice::Except(labels.labels.clone()),
    }
}

fn lower_matching(modifier: Option<&BinModifier>) -> Result<Matching, Error> {
    let default = Matching {
        on: LabelChoice::Except(Vec::new()),
        cardinality: Cardinality::OneToOne,
        include: Vec::new(),
    };
    let Some(modifier) = modifier else { return Ok(default) };
    if modifier.fill_values.lhs.is_some() || modifier.fill_values.rhs.is_some() {
        return Err(Error::bad_data("modifier fill is not available yet"));
    }
    let (cardinality, include) = match &modifier.card {
        // For set operators; they do not look at it.
        VectorMatchCardinality::OneToOne | VectorMatchCardinality::ManyToMany => {
            (Cardinality::OneToOne, Vec::new())
        }
        VectorMatchCardinality::ManyToOne(labels) => (Cardinality::ManyToOne, labels.labels.clone()),
        VectorMatchCardinality::OneToMany(labels) => (Cardinality::OneToMany, labels.labels.clone()),
    };
    let on = modifier.matching.as_ref().map_or(default.on, lower_choice);
    Ok(Matching { on, cardinality, include })
}

fn binary_op(token: TokenType) -> Result<BinaryOp, Error> {
    Ok(match token.to_string().as_str() {
        "+" => BinaryOp::Add,
        "-" => BinaryOp::Subtract,
        "*" => BinaryOp::Multiply,
        "/" => BinaryOp::Divide,
        "%" => BinaryOp::Modulo,
        "^" => BinaryOp::Power,
        "atan2" => BinaryOp::Atan2,
        "==" => BinaryOp::Equal,
        "!=" => BinaryOp::NotEqual,
        ">" => BinaryOp::Greater,
        "<" => BinaryOp::Less,
        ">=" => BinaryOp::GreaterEqual,
        "<=" => BinaryOp::LessEqual,
        "and" => BinaryOp::And,
        "or" => BinaryOp::Or,
        "unless" => BinaryOp::Unless,
        other => return Err(Error::bad_data(format!("operator {other} is not available yet"))),
    })
}

fn aggregate_op(name: &str) -> Option<AggregateOp> {
    Some(match name {
        "sum" => AggregateOp::Sum,
        "avg" => AggregateOp::Avg,
        "min" => AggregateOp::Min,
        "max" => AggregateOp::Max,
        "count" => AggregateOp::Count,
        "group" => AggregateOp::Group,
        "stddev" => AggregateOp::Stddev,
        "stdvar" => AggregateOp::Stdvar,
        "topk" => AggregateOp::Topk,
        "bottomk" => AggregateOp::Bottomk,
        "limitk" => AggregateOp::Limitk,
        "quantile" => AggregateOp::Quantile,
        "count_values" => AggregateOp::CountValues,
        _ => return None,
    })
}
