//! May the results of a range query be kept, and used for other ranges that have some of the same steps?
//!
//! They may if every bit of the result at a step depends only on the time of the step and on the samples near to it, not on the
//! other steps of the query. [`Reach::of`] accepts only forms for which this is known. It refuses:
//! - `@`, which reads a fixed time at each step, and subqueries, which read at multiples of their own step;
//! - functions that return a range vector (`derivative`, `moving_avg`, ...);
//! - as a precaution, functions of a line through the samples (`deriv`, `predict_linear`, `trend_over_time`, ...): their last
//!   digit may differ between regular times and a list of the same times, although `joined.rs` chooses the form by the times
//!   alone;
//! - `label_replace`, `label_join`, `dtw_over_time`, `sax_over_time`, and functions of windows that drop the names of several
//!   metrics (`rate({__name__=~"a|b"}[5m])`): they fail if two series of the result have the same labels, even if the two
//!   series have values at different steps;
//! - queries without a selector, because computing such a query is faster than finding its kept result.
//!
//! The digest of a window does not depend on the other windows (`slide.rs`), and an aggregation adds its series in an order that
//! does not depend on the steps ([`is_ordered`]).
//!
//! Step before: `plan.rs`. Step after: the caller, which keeps results.

use tacho_model::{MatchOp, Matcher, NAME};

use super::functions::{Apply, Function};
use super::node::{Modifiers, Node, NodeId, Selector, Type};
use super::plan::Plan;

/// The result at a step depends on the samples with `step - before < at <= step + after`, all in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    pub before: i64,
    pub after: i64,
    /// The shortest window of a selector.
    pub window_min: i64,
    /// Whether summaries of chunks are read. Then the last digit of the result also depends on the chunks that hold the samples.
    pub uses_summaries: bool,
}

/// Functions of a line through the samples. The head of this file states why they are refused.
const OF_LINES: [&str; 6] = [
    "deriv",
    "predict_linear",
    "trend_intercept_over_time",
    "trend_margin_over_time",
    "trend_over_time",
    "trend_p_over_time",
];

/// Functions of the kind `Apply::Whole` whose result at a step depends on no other step.
const OF_STEPS: [&str; 13] = [
    "absent",
    "absent_over_time",
    "histogram_fraction",
    "histogram_quantile",
    "pi",
    "scalar",
    "sort",
    "sort_by_label",
    "sort_by_label_desc",
    "sort_desc",
    "time",
    "timestamp",
    "vector",
];

impl Reach {
    /// Whether the windows of a selector skip times between the steps of a query, which are `step` ns apart. Windows of
    /// another selector may cover these times.
    pub const fn has_gaps(&self, step: i64) -> bool {
        step > self.window_min
    }

    /// `None` if results must not be kept.
    pub fn of(plan: &Plan) -> Option<Self> {
        plan.params.step?;
        let mut reach: Option<Self> = None;
        for node in &plan.nodes {
            let (selector, window) = match node {
                Node::Instant { selector, .. } => (selector, plan.params.lookback),
                Node::Range { selector, range } => (selector, *range),
                other if is_of_one_step(&plan.nodes, other) => continue,
                _ => return None,
            };
            let Modifiers { at: None, offset } = selector.modifiers else { return None };
            let (before, after) = (offset.checked_add(window)?, offset.checked_neg()?);
            let of_one = Self { before, after, window_min: window, uses_summaries: false };
            reach = Some(reach.map_or(of_one, |reach| Self {
                before: before.max(reach.before),
                after: after.max(reach.after),
                window_min: window.min(reach.window_min),
                uses_summaries: false,
            }));
        }
        let uses_summaries = plan.selectors().iter().any(|selection| selection.windows.is_some());
        reach.map(|reach| Self { uses_summaries, ..reach })
    }
}

fn is_of_one_step(nodes: &[Node], node: &Node) -> bool {
    match node {
        Node::Number(_) | Node::Text(_) | Node::Negate(_) | Node::Binary(_) | Node::Aggregate(_) => true,
        Node::Call { function, arguments, keeps_name } => match function.apply() {
            Apply::Each(_) | Apply::EachWith(_) => true,
            Apply::Window(_) => {
                !OF_LINES.contains(&function.name) && (*keeps_name || reads_one_metric(nodes, arguments))
            }
            Apply::WindowNamed(_) => true,
            Apply::Whole(_) => OF_STEPS.contains(&function.name),
            Apply::Change(_) | Apply::ChangeNamed(_) => false,
        },
        Node::Instant { .. } | Node::Range { .. } | Node::Subquery { .. } => false,
    }
}

fn reads_one_metric(nodes: &[Node], arguments: &[NodeId]) -> bool {
    arguments.iter().all(|argument| match &nodes[*argument] {
        Node::Range { selector, .. } => names_metric(selector),
        _ => true,
    })
}

fn names_metric(selector: &Selector) -> bool {
    let names = |matcher: &Matcher| matcher.label() == NAME && matcher.op() == MatchOp::Equal;
    selector.matchers.iter().any(names)
}

/// Whether the rows of a node are in the order of the series. Otherwise the order may depend on the step at which each row has
/// its first value.
pub fn is_ordered(nodes: &[Node], id: NodeId) -> bool {
    order(nodes, id) != Order::Any
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The rows are in the order of the series and belong to one metric. So no two rows have the same labels after the name is
    /// dropped.
    OneMetric,
    Series,
    Any,
}

fn order(nodes: &[Node], id: NodeId) -> Order {
    let of_selector =
        |selector: &Selector| if names_metric(selector) { Order::OneMetric } else { Order::Series };
    let without_names = |inner: NodeId| match order(nodes, inner) {
        Order::OneMetric => Order::OneMetric,
        Order::Series | Order::Any => Order::Any,
    };
    match &nodes[id] {
        Node::Instant { selector, .. } | Node::Range { selector, .. } => of_selector(selector),
        Node::Negate(inner) => without_names(*inner),
        Node::Binary(binary) if is_scalar(nodes, binary.left) => without_names(binary.right),
        Node::Binary(binary) if is_scalar(nodes, binary.right) => without_names(binary.left),
        Node::Call { function, arguments, keeps_name } => {
            let is_range = |id: &&NodeId| matches!(nodes[**id], Node::Range { .. });
            match (function.apply(), arguments.iter().find(is_range), arguments.first()) {
                (Apply::Window(_), Some(range), _) if !keeps_name => without_names(*range),
                (Apply::Window(_) | Apply::WindowNamed(_), Some(range), _) => order(nodes, *range),
                (Apply::Each(_) | Apply::EachWith(_), _, Some(inner)) => without_names(*inner),
                _ => Order::Any,
            }
        }
        _ => Order::Any,
    }
}

fn is_scalar(nodes: &[Node], id: NodeId) -> bool {
    let returns_scalar = |function: &Function| function.returns == Type::Scalar;
    match &nodes[id] {
        Node::Number(_) => true,
        Node::Call { function, .. } => returns_scalar(function),
        Node::Negate(inner) => is_scalar(nodes, *inner),
        Node::Binary(binary) => is_scalar(nodes, binary.left) && is_scalar(nodes, binary.right),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promql::{Params, parse};

    const MINUTE: i64 = 60_000_000_000;

    fn reach(text: &str) -> Option<Reach> {
        let params = Params::range(0, 60 * MINUTE, MINUTE);
        Reach::of(&parse(text).unwrap().plan(&params).unwrap())
    }

    #[test]
    fn the_reach_covers_all_selectors() {
        let exact = |before, after, window_min| Reach { before, after, window_min, uses_summaries: false };
        let summed =
            |before, after, window_min| Reach { uses_summaries: true, ..exact(before, after, window_min) };
        for (text, minutes) in [
            ("up", exact(5, 0, 5)),
            ("up offset 1h", exact(65, -60, 5)),
            ("up offset -1h", exact(-55, 60, 5)),
            ("rate(a_total[10m])", exact(10, 0, 10)),
            ("rate(a_total[10m] offset -2m) / b", exact(8, 2, 5)),
            ("sum by (x) (avg_over_time(a[30m])) > 3", summed(30, 0, 30)),
            ("max(max_over_time({__name__=~'a|b', h='1'}[1m])) by (__name__)", summed(1, 0, 1)),
            ("histogram_quantile(0.9, sum by (le) (rate(h_bucket[5m])))", exact(5, 0, 5)),
            ("topk(3, a) or absent(b) + time()", exact(5, 0, 5)),
        ] {
            let Reach { before, after, window_min, uses_summaries } = minutes;
            let (before, after, window_min) = (before * MINUTE, after * MINUTE, window_min * MINUTE);
            let expect = Reach { before, after, window_min, uses_summaries };
            assert_eq!(reach(text), Some(expect), "{text}");
        }
    }

    #[test]
    fn a_selector_with_a_short_window_has_gaps() {
        for (text, window) in
            [("a", 5), ("a offset 1h", 5), ("rate(a[5m]) / avg_over_time(b[1h])", 5), ("a + rate(b[1m])", 1)]
        {
            let reach = reach(text).unwrap();
            assert!(!reach.has_gaps(window * MINUTE) && reach.has_gaps(window * MINUTE + 1), "{text}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "up @ end()",
            "up @ start()",
            "up @ 60",
            "rate(a_total[5m] @ end())",
            "max_over_time(a[1h:1m])",
            "max_over_time(derivative(a[1h]))",
            "deriv(a[1h])",
            "predict_linear(a[1h], 60)",
            "rate({__name__=~'a|b'}[5m])",
            "label_replace(a, 'b', '$1', 'c', '(.*)')",
            "label_join(a, 'b', '-', 'c', 'd')",
            "dtw_over_time(a[1h], b[1h])",
            "time()",
            "1 + 1",
        ] {
            assert_eq!(reach(text), None, "{text}");
        }
        let instant = parse("up").unwrap().plan(&Params::instant(0)).unwrap();
        assert_eq!(Reach::of(&instant), None);
    }

    #[test]
    fn rows_are_ordered_unless_they_may_be_merged_or_reordered() {
        let ordered = |text: &str| {
            let nodes = parse(text).unwrap().nodes;
            is_ordered(&nodes, nodes.len() - 1)
        };
        for text in ["a", "{a='b'}", "rate(a[5m])", "abs(-a)", "2 * (a > 3)", "last_over_time({a='b'}[1m])"] {
            assert!(ordered(text), "{text}");
        }
        for text in
            ["abs({a='b'})", "a + b", "sum by (x) (a)", "sort(a)", "rate({a='b'}[5m])", "rate(a[5m:1m])"]
        {
            assert!(!ordered(text), "{text}");
        }
    }
}
