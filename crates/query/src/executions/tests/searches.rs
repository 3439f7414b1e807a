//! Searches for traces: order, the call that matched, statuses. Counts of refused calls.

use super::*;
use crate::executions::Match;

/// A request that failed. The calls that it made succeeded; the first status in the segment is that of the client call.
const INNER: &str = "
shop h1 main trace=1 base=1000 at=1000
  0 > http-server GET /cart
  10 > http-client GET /stock
  50 <
  5 > database SELECT 1
  20 <
  5 !
  @1 http.status = 200
  @0 http.status = 500
";

/// Each trace has one root, and inner calls with other durations. The last trace is still running.
const MANY: &str = "
shop h1 main trace=1 base=1000 at=1000
  0 > http-server GET /a
  10 > database SELECT 1
  90 <
  900 <
shop h1 main trace=2 base=2000 at=2000
  0 > http-server GET /a
  10 > database SELECT 1
  200 <
  5 > database SELECT 1
  30 !
  5 <
shop h1 main trace=3 base=3000 at=3000
  0 > http-server GET /b
  500 <
stock h2 main trace=3 base=4000 at=3100 parent=3000+0
  0 > task load
  20 > database SELECT 1
  40 <
  900 <
shop h1 main trace=4 base=5000 at=4000
  0 > http-server GET /b
  7 > database SELECT 1
  3 > method parse
";

/// For each trace found: its id, then duration and outcome of the call that matched, or of the trace.
fn check(change: impl FnOnce(&mut Search), expected: &str) {
    let mut search = everything();
    change(&mut search);
    let line = |trace: &crate::executions::TraceSummary| {
        let entry = (trace.duration_ns, trace.outcome);
        let matched = |call: &Match| (call.duration_ns, call.outcome);
        let (duration, outcome) = trace.matched.as_ref().map_or(entry, matched);
        format!("{:x} {duration} {}", trace.trace_id.0, outcome.name())
    };
    let found = super::search(&blocks(MANY), &search);
    assert_eq!(found.traces.iter().map(line).collect::<Vec<_>>().join(", "), expected, "{search:?}");
}

#[test]
fn the_status_of_a_trace_is_that_of_its_first_call() {
    check_search(INNER, |_| {}, "1 shop GET /cart 90 ns 3 calls failed  500");
}

#[test]
fn each_order_compares_all_traces() {
    let first = |order| move |search: &mut Search| (search.order, search.limit) = (order, 2);
    check(first(Order::Newest), "4 10 running, 3 500 ok");
    check(first(Order::Oldest), "1 1000 ok, 2 250 ok");
    check(first(Order::Slowest), "1 1000 ok, 3 500 ok");
    check(first(Order::Fastest), "4 10 running, 2 250 ok");
}

#[test]
fn a_search_for_an_operation_compares_the_calls_of_this_operation() {
    let database = |order| {
        move |search: &mut Search| {
            search.filter = filter("", "SELECT 1");
            search.order = order;
        }
    };
    check(database(Order::Slowest), "2 200 ok, 1 90 ok, 3 40 ok, 4 3 running");
    check(database(Order::Fastest), "4 3 running, 2 30 failed, 3 40 ok, 1 90 ok");
    check(database(Order::Newest), "4 3 running, 3 40 ok, 2 30 failed, 1 90 ok");
    let failed = |search: &mut Search| {
        search.filter = filter("", "SELECT 1");
        search.outcome = Some(Outcome::Failed);
    };
    check(failed, "2 30 failed");
    let long = |search: &mut Search| {
        search.filter = filter("shop", "SELECT 1");
        search.duration_ns_min = Some(50);
    };
    check(long, "2 200 ok, 1 90 ok");
    let at = |search: &mut Search| {
        search.filter = filter("", "SELECT 1");
        search.filter.range = TimeRange::new(2_100, 2_300);
    };
    check(at, "2 30 failed");
}

#[test]
fn a_search_for_a_service_compares_the_outermost_calls_of_its_segments() {
    check(|search| search.filter = filter("stock", ""), "3 960 ok");
    let slow = |search: &mut Search| {
        search.filter = filter("shop", "");
        search.order = Order::Slowest;
    };
    check(slow, "1 1000 ok, 3 500 ok, 2 250 ok, 4 10 running");
}

#[test]
fn a_trace_whose_caller_is_not_recorded_is_found_by_its_first_segment() {
    let foreign = "
shop h1 main trace=1 base=1000 at=1000 parent=77+7
  0 > http-server GET /a
  10 <
stock h2 main trace=1 base=2000 at=1005 parent=1000+0
  0 > http-server GET /b
  90 <
";
    check_search(foreign, |search| search.order = Order::Slowest, "1 shop GET /a 10 ns 2 calls ok");
}

#[test]
fn statuses_from_400_to_499_are_counted_as_refused() {
    let traces = "
shop h1 main trace=1 base=1000 at=1000
  0 > http-server GET /a
  10 > http-client GET /b
  50 <
  5 <
  @1 http.status = 503
  @0 http.status = 404
shop h1 main trace=2 base=2000 at=2000
  0 > http-server GET /a
  10 <
  @0 http.status = 499
shop h1 main trace=3 base=3000 at=3000
  0 > http-server GET /a
  10 <
  @0 http.status = 500
shop h1 main trace=4 base=4000 at=4000
  0 > http-server GET /a
shop h1 main trace=4 base=4000 part=1 first=1 at=4010
  ~ 10 0 http-server GET /a
  0 <
  @0 http.status = 400
";
    let blocks = blocks(traces);
    let refused = |range| {
        let filter = Filter { range, ..filter("", "") };
        let of_operations = operations(&blocks, &filter, None);
        let counts = |o: &OperationStats| (o.operation.to_string(), o.refused);
        let services = services(&blocks, &filter);
        let mut operations: Vec<_> = of_operations.iter().map(counts).collect();
        operations.sort();
        (operations, services.iter().map(|s| s.refused).collect::<Vec<_>>())
    };
    let (a, b) = ("GET /a".to_owned(), "GET /b".to_owned());
    assert_eq!(refused(TimeRange::ALL), (vec![(a.clone(), 3), (b, 0)], vec![3]));
    assert_eq!(refused(TimeRange::new(2_000, 3_999)), (vec![(a, 1)], vec![1]));
}

/// The range and the limit may differ between pages, for example in a search of the last hour.
#[test]
fn a_cursor_belongs_to_the_searches_with_the_same_order_and_conditions() {
    let first = Search { limit: 1, ..everything() };
    let next = super::search(&blocks(MANY), &first).next.expect("more traces");
    type Change = fn(&mut Search);
    let same: [Change; 3] = [|_| {}, |s| s.limit = 7, |s| s.filter.range = TimeRange::new(0, 3_000)];
    let others: [Change; 9] = [
        |s| s.order = Order::Slowest,
        |s| s.filter.service = Some("shop".into()),
        |s| s.filter.operation = Some("shop".into()),
        |s| s.duration_ns_min = Some(1),
        |s| s.duration_ns_max = Some(1),
        |s| s.outcome = Some(Outcome::Ok),
        |s| s.request_id = Some("shop".into()),
        |s| s.conditions.text = Some("shop".into()),
        |s| s.conditions.attributes = vec![AttributeTest::equal("shop", "1")],
    ];
    for (change, is_same) in same.map(|c| (c, true)).into_iter().chain(others.map(|c| (c, false))) {
        let mut search = everything();
        change(&mut search);
        assert_eq!(next.is_of(&search), is_same, "{search:?}");
    }
}
