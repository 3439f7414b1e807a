//! Which nodes does a query consist of?
//!
//! This file and `functions.rs` use each other. A call names its function; a function states its types and gets the
//! nodes of its arguments.

use std::fmt;
use std::sync::Arc;

use tacho_model::{Matcher, Timestamp};

use super::functions::Function;

/// Index of a node in the query's list. An operand has a smaller index than the node that uses the operand.
pub type NodeId = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Scalar,
    Vector,
    Range,
    String,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scalar => "scalar",
            Self::Vector => "instant vector",
            Self::Range => "range vector",
            Self::String => "string",
        })
    }
}

/// The `@` and `offset` of a selector or subquery.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Modifiers {
    pub at: Option<At>,
    /// Offset in ns: positive into the past, negative into the future.
    pub offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// Start of the whole query, even inside a subquery.
    Start,
    End,
    Time(Timestamp),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Selector {
    pub matchers: Vec<Matcher>,
    pub modifiers: Modifiers,
}

/// The part of a sample that an instant selector returns: its value, or its time for `timestamp(x)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    Value,
    Time,
}

#[derive(Clone, Debug)]
pub enum Node {
    Number(f64),
    Text(Arc<str>),
    Instant {
        selector: Selector,
        yields: Yield,
    },
    /// `range` in ns.
    Range {
        selector: Selector,
        range: i64,
    },
    /// `range` and `step` in ns. The default step is `Params::subquery_step`.
    Subquery {
        inner: NodeId,
        range: i64,
        step: Option<i64>,
        modifiers: Modifiers,
    },
    Negate(NodeId),
    Binary(Binary),
    Aggregate(Aggregate),
    Call {
        function: &'static Function,
        arguments: Vec<NodeId>,
        /// Whether a function that normally drops the names of metrics keeps them, because an aggregation groups its result by
        /// name. Only `Apply::Window` uses this.
        keeps_name: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Binary {
    pub op: BinaryOp,
    pub left: NodeId,
    pub right: NodeId,
    /// Whether a comparison returns 0 or 1 (`bool`). Otherwise it is a filter.
    pub yields_bool: bool,
    pub matching: Matching,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Atan2,
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    And,
    Or,
    Unless,
}

impl BinaryOp {
    pub fn is_comparison(self) -> bool {
        use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        matches!(self, Equal | NotEqual | Greater | Less | GreaterEqual | LessEqual)
    }

    pub fn is_set(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Unless)
    }
}

/// How the series on the two sides of a binary operation are matched.
#[derive(Clone, Debug, PartialEq)]
pub struct Matching {
    pub on: LabelChoice,
    pub cardinality: Cardinality,
    /// Labels copied from the "one" side (`group_left(a, b)`).
    pub include: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    OneToOne,
    /// `group_left`: the left side may have many series per group.
    ManyToOne,
    /// `group_right`: the right side may have many series per group.
    OneToMany,
}

/// The labels that identify a group.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelChoice {
    /// `by`, `on`: only these labels.
    Only(Vec<String>),
    /// `without`, `ignoring`: all labels except these and the name.
    Except(Vec<String>),
}

#[derive(Clone, Debug)]
pub struct Aggregate {
    pub op: AggregateOp,
    pub inner: NodeId,
    /// The `k` of `topk`, the quantile of `quantile`, the label of `count_values`.
    pub parameter: Option<NodeId>,
    pub grouping: LabelChoice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateOp {
    Sum,
    Avg,
    Min,
    Max,
    Count,
    Group,
    Stddev,
    Stdvar,
    Topk,
    Bottomk,
    Limitk,
    Quantile,
    CountValues,
}

impl AggregateOp {
    /// Name and type of the argument before the vector.
    pub fn parameter(self) -> Option<(&'static str, Type)> {
        match self {
            Self::Topk | Self::Bottomk | Self::Limitk => Some(("k", Type::Scalar)),
            Self::Quantile => Some(("q", Type::Scalar)),
            Self::CountValues => Some(("label", Type::String)),
            _ => None,
        }
    }
}
