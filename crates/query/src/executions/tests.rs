//! Traces in a small notation (`tests/notation.rs`), and the expected answers of the analyses. Each question has one helper; the
//! rest of the file is data.

mod awaited;
mod conditions;
mod counters;
mod laws;
mod limits;
mod notation;
mod ranked;
mod searches;
mod spans;
mod summaries;

use std::fmt::Write;

use tacho_model::{OperationKind, TimeRange, TraceId};

use super::*;
use awaited::{calltree, graph, operations, search, services, trace};
use notation::blocks;

/// A web shop: two requests on one thread (the second fails), a task on another thread, and a call to another service.
const SHOP: &str = "
shop h1 main trace=a1 base=1000 at=5000000000
  0 > http-server GET /ads
  10 > method list
  20 > database SELECT 1
  300 <
  5 > database SELECT 1
  200 <
  15 <
  50 <
  @0 request.id = 0123abcd-4567-89ef-0123-456789abcdef
  @0 http.status = 200
shop h1 main trace=a2 base=2000 at=6000000000
  0 > http-server POST /ads
  10 > method post
  40 > http-client POST /mail
  600 <
  7 !
  3 !
  @0 request.id = r-2
  @0 http.status = 500
shop h1 pool trace=a2 base=3000 at=6000000020 parent=2000+1
  0 > task index
  90 > method post
  10 <
  5 <
mail h2 main trace=a2 base=4000 at=6000000100 parent=2000+2
  0 > http-server POST /mail
  400 <
";

fn filter(service: &str, operation: &str) -> Filter {
    let some = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    Filter { service: some(service), operation: some(operation), range: TimeRange::ALL }
}

/// One line per operation: service, operation, count/errors, p50, min to max, total, self.
fn check_operations(traces: &str, filter: &Filter, expected: &str) {
    let mut said = String::new();
    for o in operations(&blocks(traces), filter, None) {
        let (count, errors) = (o.count, o.errors);
        assert_eq!(o.timeline.iter().map(|p| p.count).sum::<u64>(), count, "{}", o.operation);
        write!(said, "{} {} {count}/{errors} p50 {} ", o.service, o.operation, o.p50_ns).unwrap();
        writeln!(said, "{}..{} total {} self {}", o.min_ns, o.max_ns, o.total_ns, o.self_ns.unwrap())
            .unwrap();
    }
    assert_eq!(said.trim(), expected.trim());
}

/// One line per service: service, hosts, requests/errors, calls, p50 and p99.
fn check_services(traces: &str, filter: &Filter, expected: &str) {
    let mut said = String::new();
    for s in services(&blocks(traces), filter) {
        assert_eq!(s.timeline.iter().map(|p| p.requests).sum::<u64>(), s.requests, "{}", s.service);
        let (hosts, requests, errors) = (s.hosts.join(","), s.requests, s.errors);
        writeln!(
            said,
            "{} on {hosts}: {requests}/{errors} requests, {} calls, {}, {}",
            s.service, s.calls, s.p50_ns, s.p99_ns
        )
        .unwrap();
    }
    assert_eq!(said.trim(), expected.trim());
}

/// A search without conditions.
fn everything() -> Search {
    Search {
        filter: filter("", ""),
        duration_ns_min: None,
        duration_ns_max: None,
        outcome: None,
        request_id: None,
        conditions: Conditions::NONE,
        order: Order::default(),
        limit: 100,
        after: None,
    }
}

/// One line per trace: id, service, operation, duration, calls, outcome, request id, status.
fn check_search(traces: &str, change: impl FnOnce(&mut Search), expected: &str) -> SearchResult {
    let mut asked = everything();
    change(&mut asked);
    let found = search(&blocks(traces), &asked);
    let mut said = String::new();
    for t in &found.traces {
        let (id, status) = (t.trace_id.0, t.http_status.map_or(String::new(), |status| status.to_string()));
        let request = t.request_id.as_deref().unwrap_or_default();
        let outcome = t.outcome.name();
        write!(said, "{id:x} {} {} {} ns {} calls {outcome}", t.service, t.operation, t.duration_ns, t.calls)
            .unwrap();
        writeln!(said, " {request} {status}").unwrap();
    }
    let trimmed: Vec<&str> = said.lines().map(str::trim).collect();
    assert_eq!(trimmed.join("\n"), expected.trim());
    found
}

/// One line per span of trace `id`, indented by depth: operation, thread, offset, duration, self, outcome, attributes.
fn check_trace(traces: &str, id: u128, expected: &str) -> Trace {
    let found = trace(&blocks(traces), TraceId(id)).expect("trace exists");
    let mut said = String::new();
    for s in &found.spans {
        let indent = "  ".repeat(s.depth as usize);
        let attributes: String = s.attributes.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        let times = format!("+{} {} self {}", s.offset_ns, s.duration_ns, s.self_ns);
        writeln!(said, "{indent}{} {}: {times} {}{attributes}", s.operation, s.thread, s.outcome.name())
            .unwrap();
    }
    assert_eq!(said.trim(), expected.trim());
    found
}

/// One line per node of the tree, indented: operation, count/errors, total, self.
fn check_calltree(traces: &str, filter: &Filter, expected: &str) {
    fn write_node(said: &mut String, node: &CallTreeNode, depth: usize) {
        let indent = "  ".repeat(depth);
        let (count, errors) = (node.count, node.errors);
        writeln!(
            said,
            "{indent}{} {count}/{errors} total {} self {}",
            node.operation, node.total_ns, node.self_ns
        )
        .unwrap();
        node.children.iter().for_each(|child| write_node(said, child, depth + 1));
    }
    let mut said = String::new();
    let tree = calltree(&blocks(traces), filter);
    tree.root.children.iter().for_each(|node| write_node(&mut said, node, 0));
    assert_eq!(said.trim(), expected.trim());
    assert_eq!(tree.root.count, tree.root.children.iter().map(|node| node.count).sum::<u64>());
}

/// Nodes, then edges.
fn check_graph(traces: &str, filter: &Filter, level: Level, expected: &str) -> Graph {
    let graph = graph(&blocks(traces), filter, level);
    let mut said = String::new();
    for n in &graph.nodes {
        writeln!(said, "{}: {}/{} total {} self {}", n.id, n.count, n.errors, n.total_ns, n.self_ns).unwrap();
    }
    for e in &graph.edges {
        writeln!(said, "{} -> {}: {}/{} total {}", e.from, e.to, e.count, e.errors, e.total_ns).unwrap();
    }
    assert_eq!(said.trim(), expected.trim());
    graph
}

/// One segment in three parts. `serve` is open in all parts, `work` is open across the first cut, `late` is open until
/// the end.
const PARTS: &str = "
app h1 main trace=b base=500 at=1000
  0 > method serve
  100 > method work
app h1 main trace=b base=500 part=1 first=2 at=1500
  ~ 500 0 method serve
  ~ 400 1 method work
  0 > method tiny
  30 <
  20 <
  @1 key = late
app h1 main trace=b base=500 part=2 first=3 at=1600
  ~ 600 0 method serve
  0 > method late
  40 > method tiny
  10 <
";

/// A request whose operation is `GET` until the program knows the route, and then `GET /users/{name}`.
const LATER: &str = "
app h1 main trace=d base=600 at=1000
  0 > http-server GET
  20 > method serve
  30 <
app h1 main trace=d base=600 part=1 first=2 at=1500
  ~ 500 0 http-server GET /users/{name}
  0 <
  @0 http.status = 200
";

/// Segments whose parents are missing or form a cycle, and one segment that is its own parent.
const ODD: &str = "
app h1 t1 trace=c base=100 at=10 parent=900+7
  0 > method orphan
  5 <
app h1 t2 trace=c base=200 at=20 parent=300+0
  0 > method left
  5 <
app h1 t3 trace=c base=300 at=30 parent=200+0
  0 > method right
  5 <
app h1 t4 trace=c base=400 at=40 parent=400+0
  0 > method own
  5 <
";

#[test]
fn operations_are_counted_and_timed() {
    let expected = "
shop POST /ads 1/1 p50 660 660..660 total 660 self 13
shop post 2/1 p50 10 10..647 total 657 self 57
shop GET /ads 1/0 p50 600 600..600 total 600 self 60
shop POST /mail 1/0 p50 600 600..600 total 600 self 200
shop list 1/0 p50 540 540..540 total 540 self 40
shop SELECT 1 2/0 p50 200 200..300 total 500 self 500
mail POST /mail 1/0 p50 400 400..400 total 400 self 400
shop index 1/0 p50 105 105..105 total 105 self 95
";
    check_operations(SHOP, &filter("", ""), expected);
    check_operations(
        SHOP,
        &filter("", "POST /mail"),
        "
shop POST /mail 1/0 p50 600 600..600 total 600 self 200
mail POST /mail 1/0 p50 400 400..400 total 400 self 400
",
    );
    check_operations(SHOP, &filter("mail", ""), "mail POST /mail 1/0 p50 400 400..400 total 400 self 400");
    check_operations(SHOP, &filter("unknown", ""), "");
    check_operations("", &filter("", ""), "");
}

#[test]
fn a_call_belongs_to_the_range_that_contains_its_enter_event() {
    let asked = |start, end| Filter { range: TimeRange::new(start, end), ..filter("", "") };
    check_operations(
        SHOP,
        &asked(5_000_000_030, 5_000_000_030),
        "shop SELECT 1 1/0 p50 300 300..300 total 300 self 300",
    );
    check_operations(PARTS, &asked(1_100, 1_100), "app work 1/0 p50 450 450..450 total 450 self 420");
    check_operations(SHOP, &asked(7_000_000_000, i64::MAX), "");
}

#[test]
fn operations_can_be_limited_to_one_kind() {
    let databases = operations(&blocks(SHOP), &filter("", ""), Some(OperationKind::Database));
    assert_eq!(databases.iter().map(|o| &*o.operation).collect::<Vec<_>>(), ["SELECT 1"]);
}

#[test]
fn the_requests_of_each_service_are_counted() {
    check_services(
        SHOP,
        &filter("", ""),
        "
mail on h2: 1/0 requests, 1 calls, 400, 400
shop on h1: 2/1 requests, 9 calls, 600, 660
",
    );
    let uncalled = "
batch h9 t trace=1 base=1
  0 > method run
  50 > method step
  20 !
  30 <
batch h8 t trace=2 base=90
  0 > method run
  7 !
";
    check_services(uncalled, &filter("batch", ""), "batch on h8,h9: 2/1 requests, 3 calls, 7, 100");
    let range = TimeRange::new(5_000_000_000, 6_999_999_999);
    let shop = services(&blocks(SHOP), &Filter { range, ..filter("shop", "") }).remove(0);
    let points: Vec<_> = shop.timeline.iter().map(|p| (p.unix_s, p.requests, p.errors, p.p95_ns)).collect();
    assert_eq!(points, [(5, 1, 0, 600), (6, 1, 1, 660)]);
    assert!((shop.rate - 1.0).abs() < 1e-6, "{}", shop.rate);
}

#[test]
fn each_condition_of_a_search_selects_traces() {
    let first = "a1 shop GET /ads 600 ns 4 calls ok 0123abcd-4567-89ef-0123-456789abcdef 200";
    let second = "a2 shop POST /ads 660 ns 6 calls failed r-2 500";
    let both = format!("{second}\n{first}");
    let all = check_search(SHOP, |_| {}, &both);
    assert_eq!((all.truncated, all.scanned), (false, 4));
    let limited = check_search(SHOP, |s| s.limit = 1, second);
    assert!(limited.truncated);
    check_search(SHOP, |s| s.filter.service = Some("mail".into()), second);
    check_search(SHOP, |s| s.filter.operation = Some("list".into()), first);
    check_search(SHOP, |s| s.filter = filter("mail", "post"), "");
    check_search(SHOP, |s| s.filter.range.end = 5_500_000_000, first);
    check_search(SHOP, |s| s.order = Order::Oldest, &format!("{first}\n{second}"));
    check_search(SHOP, |s| s.duration_ns_min = Some(601), second);
    check_search(SHOP, |s| s.duration_ns_max = Some(600), first);
    check_search(SHOP, |s| s.outcome = Some(Outcome::Ok), first);
    check_search(SHOP, |s| s.request_id = Some("r-2".into()), second);
    check_search(SHOP, |s| s.request_id = Some("0123abcd-4567-89ef-0123-456789abcdef".into()), first);
    check_search(SHOP, |s| s.request_id = Some("r-3".into()), "");
    check_search(PARTS, |_| {}, "b app serve 650 ns 5 calls running");
    check_search(PARTS, |s| s.outcome = Some(Outcome::Running), "b app serve 650 ns 5 calls running");
}

#[test]
fn a_trace_is_one_tree_of_spans() {
    let shop = check_trace(
        SHOP,
        0xa2,
        "
POST /ads main: +0 660 self 13 failed http.status=500 request.id=r-2
  post main: +10 647 self 47 failed
    index pool: +20 105 self 95 ok
      post pool: +110 10 self 10 ok
    POST /mail main: +50 600 self 200 ok
      POST /mail main: +100 400 self 400 ok
",
    );
    assert_eq!((shop.start, shop.duration_ns, shop.spans_cut), (6_000_000_000, 660, 0));
    assert_eq!(trace(&blocks(SHOP), TraceId(5)), None);
}

#[test]
fn parts_of_a_segment_are_joined() {
    check_trace(
        PARTS,
        0xb,
        "
serve main: +0 650 self 150 running
  work main: +100 450 self 420 ok key=late
    tiny main: +500 30 self 30 ok
  late main: +600 50 self 40 running
    tiny main: +640 10 self 10 ok
",
    );
}

/// A segment in two parts. The first call ends in the first part, so the later part carries another call.
const PARTED: &str = "
app h1 main trace=e base=700 at=1000
  0 > method first
  40 <
  0 > method second
app h1 main trace=e base=700 part=1 first=2 at=1050
  ~ 10 1 method second
  5 <
";

#[test]
fn a_later_part_does_not_rename_a_call_that_ended_before() {
    check_search(PARTED, |_| {}, "e app first 40 ns 2 calls ok");
}

/// Segments in the order of their arrival: a later part of the entry, another segment without a parent, the first part
/// of the entry.
const TURNED: &str = "
a h1 main trace=d base=600 part=1 first=2 at=1500
  ~ 500 0 http-server GET /users/{name}
  0 <
b h1 main trace=d base=800 at=1100
  0 > method other
  5 <
c h1 main trace=d base=600 at=1000
  0 > http-server GET
  20 > method serve
  30 <
";

#[test]
fn a_later_part_renames_its_call_even_if_it_arrives_first() {
    check_search(TURNED, |_| {}, "d c GET /users/{name} 500 ns 3 calls ok");
}

#[test]
fn the_last_part_determines_the_operation_of_a_call() {
    check_trace(
        LATER,
        0xd,
        "
GET /users/{name} main: +0 500 self 470 ok http.status=200
  serve main: +20 30 self 30 ok
",
    );
    check_search(LATER, |_| {}, "d app GET /users/{name} 500 ns 2 calls ok  200");
    check_operations(
        LATER,
        &filter("", ""),
        "
app GET /users/{name} 1/0 p50 500 500..500 total 500 self 450
app serve 1/0 p50 30 30..30 total 30 self 30
",
    );
}

#[test]
fn no_span_is_lost_if_parents_are_missing_or_cyclic() {
    let odd = check_trace(
        ODD,
        0xc,
        "
orphan t1: +0 5 self 5 ok
left t2: +10 5 self 5 ok
  right t3: +20 5 self 5 ok
own t4: +30 5 self 5 ok
",
    );
    assert!(odd.spans.iter().all(|span| span.parent.is_some()));
    check_calltree(
        ODD,
        &filter("", ""),
        "
orphan 1/0 total 5 self 5
own 1/0 total 5 self 5
right 1/0 total 5 self 5
  left 1/0 total 5 self 5
",
    );
}

#[test]
fn the_call_tree_crosses_threads_and_services() {
    let post = "
POST /ads 1/1 total 660 self 13
  post 1/1 total 647 self 47
    POST /mail 1/0 total 600 self 200
      POST /mail 1/0 total 400 self 400
    index 1/0 total 105 self 95
      post 1/0 total 10 self 10
";
    let get = "
GET /ads 1/0 total 600 self 60
  list 1/0 total 540 self 40
    SELECT 1 2/0 total 500 self 500
";
    check_calltree(SHOP, &filter("", ""), &format!("{}{}", post.trim_end(), get));
    check_calltree(SHOP, &filter("shop", ""), &format!("{}{}", post.trim_end(), get));
    check_calltree(SHOP, &filter("mail", ""), "POST /mail 1/0 total 400 self 400");
    let from_post = "
post 1/1 total 647 self 47
  POST /mail 1/0 total 600 self 200
    POST /mail 1/0 total 400 self 400
  index 1/0 total 105 self 95
    post 1/0 total 10 self 10
";
    check_calltree(SHOP, &filter("", "post"), from_post);
    check_calltree(
        PARTS,
        &filter("", ""),
        "
serve 0/0 total 0 self 150
  work 1/0 total 450 self 420
    tiny 1/0 total 30 self 30
  late 0/0 total 0 self 40
    tiny 1/0 total 10 self 10
",
    );
}

#[test]
fn the_graph_has_operation_and_service_levels() {
    let all = "
mail http-server POST /mail: 1/0 total 400 self 400
shop database SELECT 1: 2/0 total 500 self 500
shop http-client POST /mail: 1/0 total 600 self 200
shop http-server GET /ads: 1/0 total 600 self 60
shop http-server POST /ads: 1/1 total 660 self 13
shop method list: 1/0 total 540 self 40
shop method post: 2/1 total 657 self 57
shop task index: 1/0 total 105 self 95
shop http-client POST /mail -> mail http-server POST /mail: 1/0 total 400
shop http-server GET /ads -> shop method list: 1/0 total 540
shop http-server POST /ads -> shop method post: 1/1 total 647
shop method list -> shop database SELECT 1: 2/0 total 500
shop method post -> shop http-client POST /mail: 1/0 total 600
shop method post -> shop task index: 1/0 total 105
shop task index -> shop method post: 1/0 total 10
";
    check_graph(SHOP, &filter("", ""), Level::Operation, all);
    let services = "
mail: 1/0 total 400 self 400
shop: 2/1 total 1260 self 465
shop database: 2/0 total 500 self 500
shop -> mail: 1/0 total 400
shop -> shop database: 2/0 total 500
";
    check_graph(SHOP, &filter("", ""), Level::Service, services);
    let list = "
shop database SELECT 1: 2/0 total 500 self 500
shop http-server GET /ads: 1/0 total 600 self 60
shop method list: 1/0 total 540 self 40
shop http-server GET /ads -> shop method list: 1/0 total 540
shop method list -> shop database SELECT 1: 2/0 total 500
";
    check_graph(SHOP, &filter("", "list"), Level::Operation, list);
}

#[test]
fn names_in_dot_are_quoted() {
    let names = r#"
a"b\c h t trace=1 base=1
  0 > database SELECT "x\y" -> {größe};
  2000000 !
"#;
    let graph = check_graph(
        names,
        &filter("", ""),
        Level::Operation,
        "a\"b\\c database SELECT \"x\\y\" -> {größe};: 1/1 total 2000000 self 2000000",
    );
    let expected = r#"digraph tachograph {
  rankdir=LR;
  node [shape=box];
  "a\"b\\c database SELECT \"x\\y\" -> {größe};" [label="SELECT \"x\\y\" -> {größe};\n1 x 2.000 ms, 1 failed", color=red];
}
"#;
    assert_eq!(graph.to_dot(), expected);
}

#[test]
fn deep_recursion_is_complete_in_traces_and_cut_in_call_trees() {
    let depth = 20_000;
    let enters = "  1 > method f\n".repeat(depth);
    let text = format!("app h t trace=1 base=1\n{enters}{}", "  1 <\n".repeat(depth));
    let blocks = blocks(&text);
    let found = trace(&blocks, TraceId(1)).unwrap();
    assert_eq!((found.spans.len(), found.spans[depth - 1].depth as usize), (depth, depth - 1));
    assert_eq!(operations(&blocks, &filter("", ""), None)[0].count, depth as u64);
    let mut node = &calltree(&blocks, &filter("", "")).root;
    let mut levels = 0;
    while let Some(child) = node.children.first() {
        (node, levels) = (child, levels + 1);
    }
    assert_eq!(levels, 512, "deeper calls must be omitted");
}
