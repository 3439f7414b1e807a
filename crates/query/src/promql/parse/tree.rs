//! What is a parsed query? A syntax tree with positions. The types of operands and the names of functions are not checked yet.

use std::borrow::Cow;

use tacho_model::MatchOp;

use super::super::node::{AggregateOp, BinaryOp, LabelChoice, Matching, Modifiers};

/// Parentheses have no node.
#[derive(Debug)]
pub struct Expr<'t> {
    pub kind: Kind<'t>,
    /// Position of the expression's first byte in the text of the query, counted from 0.
    pub at: usize,
}

#[derive(Debug)]
pub enum Kind<'t> {
    Number(f64),
    Text(Cow<'t, str>),
    Instant(Selector<'t>),
    /// `x[5m]`; the range is in ns and above 0.
    Range {
        selector: Selector<'t>,
        range: i64,
    },
    /// `x[1h:1m]`; range and step are in ns and above 0.
    Subquery {
        inner: Box<Expr<'t>>,
        range: i64,
        step: Option<i64>,
        modifiers: Modifiers,
    },
    /// `-x` or `+x`.
    Sign {
        minus: bool,
        inner: Box<Expr<'t>>,
    },
    Binary(Box<Binary<'t>>),
    Aggregate(Box<Aggregate<'t>>),
    Call {
        name: &'t str,
        arguments: Vec<Expr<'t>>,
    },
}

#[derive(Debug)]
pub struct Selector<'t> {
    /// Includes the name of the metric as a matcher of `__name__`.
    pub matchers: Vec<LabelMatcher<'t>>,
    pub modifiers: Modifiers,
}

#[derive(Debug)]
pub struct LabelMatcher<'t> {
    pub label: Cow<'t, str>,
    pub op: MatchOp,
    pub value: Cow<'t, str>,
    pub at: usize,
}

#[derive(Debug)]
pub struct Binary<'t> {
    pub op: BinaryOp,
    /// Position of the first byte of the operator.
    pub op_at: usize,
    pub left: Expr<'t>,
    pub right: Expr<'t>,
    pub yields_bool: bool,
    pub matching: Matching,
}

#[derive(Debug)]
pub struct Aggregate<'t> {
    pub op: AggregateOp,
    pub parameter: Option<Expr<'t>>,
    pub inner: Expr<'t>,
    pub grouping: LabelChoice,
}
