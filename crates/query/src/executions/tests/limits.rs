//! Tests the limits on the rows and traces that an analysis holds while it joins parts and segments. At a limit, an answer is
//! complete. Past the limit, the answer reports what it lacks.

use std::fmt::Write;

use tacho_model::TimeRange;

use super::notation::blocks;
use crate::executions::limits::Limits;
use crate::executions::{
    Conditions, Filter, Fold, Graphing, Incomplete, Level, Operations, Order, Search, Searching, SourceBlock,
};

const ALL: Filter = Filter { service: None, operation: None, range: TimeRange::ALL };

/// The answer, and what it lacks.
fn asked<F: Fold>(blocks: &[SourceBlock], mut fold: F) -> (F::Answer, Vec<Incomplete>) {
    while fold.pass().is_some() {
        blocks.iter().for_each(|source| fold.add(&source.labels, &source.block));
    }
    let incomplete = fold.incomplete();
    (fold.finish(), incomplete)
}

/// Two segments with one call of 50 ns each. Both are cut into two parts directly before the exit of the call.
const CUT: &str = "
shop h1 a trace=a1 base=1000 at=100
  0 > method wait
shop h1 b trace=a2 base=2000 at=100
  0 > method wait
shop h1 a trace=a1 base=1000 at=150 part=1 first=1
  ~ 50 0 method wait
  0 <
shop h1 b trace=a2 base=2000 at=150 part=1 first=1
  ~ 50 0 method wait
  0 <
";

#[test]
fn parts_beyond_the_limit_are_reported_and_not_joined() {
    let blocks = blocks(CUT);
    for (waiting, expected, self_ns) in
        [(2, vec![], 100), (1, vec![Incomplete::Parts { omitted: 1, limit: 1 }], 50)]
    {
        let limits = Limits { waiting, ..Limits::default() };
        let (operations, incomplete) = asked(&blocks, Operations::within(ALL, None, &limits));
        assert_eq!(
            (operations[0].self_ns.unwrap(), operations[0].total_ns, incomplete),
            (self_ns, 100, expected.clone())
        );
        let (graph, incomplete) = asked(&blocks, Graphing::within(ALL, Level::Operation, &limits));
        assert_eq!((graph.nodes[0].self_ns, incomplete), (self_ns, expected.clone()));
        let search = Search { filter: Filter { operation: Some("wait".into()), ..ALL }, ..any(9) };
        let (found, incomplete) = asked(&blocks, Searching::within(search, limits));
        assert_eq!((found.traces.len(), incomplete), (2, expected));
    }
}

/// One trace, in which the service `shop` makes three requests to the service `mail`.
fn requests() -> Vec<SourceBlock> {
    let mut text = "shop h1 a trace=a1 base=1000 at=100\n  0 > http-server GET /\n".to_owned();
    for _ in 0..3 {
        text += "  0 > http-client GET /mail\n  20 <\n";
    }
    text += "  0 <\n";
    for nth in 0..3 {
        writeln!(text, "mail h2 b trace=a1 base={}000 at=101 parent=1000+{}", nth + 2, nth + 1).unwrap();
        text += "  0 > http-server GET /mail\n  10 <\n";
    }
    blocks(&text)
}

#[test]
fn segments_beyond_the_limit_are_not_joined_with_their_callers_and_are_reported() {
    let blocks = requests();
    for (causes_of_round, expected, edges, self_ns) in
        [(3, vec![], 3, 30), (2, vec![Incomplete::Causes { omitted: 1, limit: 2 }], 2, 40)]
    {
        let limits = Limits { causes: 1, causes_of_round, ..Limits::default() };
        let (graph, incomplete) = asked(&blocks, Graphing::within(ALL, Level::Service, &limits));
        assert_eq!((graph.edges[0].count, incomplete), (edges, expected.clone()));
        let (operations, incomplete) = asked(&blocks, Operations::within(ALL, None, &limits));
        let client = operations.iter().find(|o| &*o.service == "shop" && o.count == 3).unwrap();
        assert_eq!((client.self_ns.unwrap(), incomplete), (self_ns, expected));
    }
}

const fn any(limit: usize) -> Search {
    Search {
        filter: ALL,
        duration_ns_min: None,
        duration_ns_max: None,
        outcome: None,
        request_id: None,
        conditions: Conditions::NONE,
        order: Order::Slowest,
        limit,
        after: None,
    }
}

/// Each trace has two segments without a parent. The first segment is the entry; the second segment takes longer.
fn doubled(count: usize) -> Vec<SourceBlock> {
    let mut text = String::new();
    for nth in 1..=count {
        for (start, base, length) in [(100, 2 * nth, count - nth + 1), (200, 2 * nth + 1, 1_000 + nth)] {
            writeln!(text, "shop h1 a trace={nth:x} base={base}000 at={start}").unwrap();
            writeln!(text, "  0 > method a\n  {length} <\n  @0 request.id = r-1").unwrap();
        }
    }
    blocks(&text)
}

#[test]
fn a_search_that_cannot_compare_all_traces_says_so() {
    let blocks = doubled(70);
    for (candidates, expected, slowest) in
        [(70, vec![], 70), (66, vec![Incomplete::Candidates { limit: 66 }], 66)]
    {
        let limits = Limits { candidates, ..Limits::default() };
        let (found, incomplete) = asked(&blocks, Searching::within(any(1), limits));
        assert_eq!((found.traces[0].duration_ns, incomplete), (slowest, expected));
    }
}

#[test]
fn traces_beyond_the_limit_of_one_request_id_are_reported() {
    let blocks = doubled(3);
    for (requested, expected) in [(3, vec![]), (2, vec![Incomplete::Requests { omitted: 2, limit: 2 }])] {
        let limits = Limits { requested, ..Limits::default() };
        let search = Search { request_id: Some("r-1".into()), ..any(9) };
        let (found, incomplete) = asked(&blocks, Searching::within(search, limits));
        assert_eq!((found.traces.len(), incomplete), (requested, expected));
    }
}

#[test]
fn the_message_of_a_limit_has_its_number_and_a_remedy() {
    for (incomplete, begin) in [
        (
            Incomplete::Parts { omitted: 1, limit: 2 },
            "1 parts of long calls were not joined, because more than 2 parts wait",
        ),
        (
            Incomplete::Causes { omitted: 3, limit: 4 },
            "the callers of 3 segments were not searched, because a few traces together have more than 4",
        ),
        (Incomplete::Candidates { limit: 5 }, "only 5 traces could be compared"),
        (
            Incomplete::Requests { omitted: 6, limit: 7 },
            "more than 7 traces have this request id: 6 further segments",
        ),
    ] {
        let said = incomplete.to_string();
        assert!(said.starts_with(begin) && said.ends_with("; narrow start and end"), "{said}");
    }
}
