//! Searches with conditions on calls, and pages: for all orders, the pages together have the traces that a filter over the spans
//! of all traces finds.

use std::sync::Arc;

use proptest::prelude::*;
use tacho_chunk::{ExecutionBlock, HTTP_STATUS, REQUEST_ID};
use tacho_model::{Attribute, AttributeValue, Labels, OperationKind, Segment, TimeRange, mix64};

use super::laws::{EVERYTHING, OPERATIONS, Seed, parts, seeds, segment, table};
use super::notation;
use super::ranked::ranked;
use super::spans::{Found, expected, found, key, rounds_of};
use crate::executions::limits::Limits;
use crate::executions::{
    AttributeTest, Conditions, Fold, Incomplete, Order, Outcome, Search, SearchResult, Searching,
    SourceBlock, Span, Statuses, over,
};

const KINDS: [OperationKind; 3] =
    [OperationKind::HttpServer, OperationKind::Method, OperationKind::HttpClient];
const STATUSES: [i64; 4] = [200, 404, 500, 503];
const EXCEPTIONS: [&str; 3] = ["java.lang.StackOverflowError", "a.B: no C", "B (7)"];

/// Conditions as data, for the search and for the filter.
#[derive(Clone, Debug)]
struct Spec {
    text: Option<String>,
    status: Option<(&'static str, i64, i64)>,
    exception: Option<&'static str>,
    /// Values of the attribute `k`; several are never met together.
    values: Vec<&'static str>,
}

impl Spec {
    fn conditions(&self) -> Conditions {
        let status = self.status.map(|(text, ..)| AttributeTest::status(Statuses::parse(text).unwrap()));
        let exception = self.exception.and_then(AttributeTest::exception);
        let values = self.values.iter().map(|value| AttributeTest::equal("k", value));
        Conditions {
            text: self.text.clone(),
            attributes: status.into_iter().chain(exception).chain(values).collect(),
        }
    }

    fn meets(&self, span: &Span) -> bool {
        let value = |key: &str| span.attributes.get(key);
        let is_http = matches!(span.kind, OperationKind::HttpServer | OperationKind::HttpClient);
        let has_status = |(_, first, last): (&str, i64, i64)| {
            is_http
                && matches!(value(HTTP_STATUS), Some(AttributeValue::Integer(n)) if (first..=last).contains(n))
        };
        let has_exception = |class: &str| {
            value("exception").map(AttributeValue::to_string).is_some_and(|text| {
                ["", ":", " "].iter().any(|end| {
                    let whole = format!("{class}{end}");
                    let rest = if end.is_empty() { text == class } else { text.starts_with(&whole) };
                    rest || text
                        .split_once(&format!(".{whole}"))
                        .is_some_and(|(_, rest)| !end.is_empty() || rest.is_empty())
                })
            })
        };
        self.text.as_ref().is_none_or(|text| span.operation.to_lowercase().contains(&text.to_lowercase()))
            && self.status.is_none_or(has_status)
            && self.exception.is_none_or(has_exception)
            && self.values.iter().all(|wanted| value("k").is_some_and(|v| v.to_string() == *wanted))
    }
}

fn specs() -> impl Strategy<Value = Spec> {
    let text = prop::option::weighted(0.3, prop::sample::select(vec!["O1", "o", "2", "x"]));
    let statuses = vec![("503", 503, 503), ("5xx", 500, 599), ("4xx", 400, 499), ("200", 200, 200)];
    let status = prop::option::weighted(0.5, prop::sample::select(statuses));
    let exception =
        prop::option::weighted(0.2, prop::sample::select(vec!["B", "java.lang.StackOverflowError", "Error"]));
    let values = prop::collection::vec(prop::sample::select(vec!["1", "a", "01"]), 0..2);
    (text, status, exception, values).prop_map(|(text, status, exception, values)| Spec {
        text: text.map(str::to_owned),
        status,
        exception,
        values,
    })
}

/// For each segment: call, key and value of its attributes, and the part that has the attribute.
type Notes = Vec<Vec<(u8, u8, u8, u8)>>;

fn notes() -> impl Strategy<Value = Notes> {
    let note = (0u8..12, 0u8..4, 0u8..4, any::<u8>());
    prop::collection::vec(prop::collection::vec(note, 0..6), 12)
}

/// Gives attributes to parts. A call has at most one attribute with a key, in any part that enters or carries the call.
fn annotate(parts: &mut [Segment], notes: &[(u8, u8, u8, u8)]) {
    let mut known = vec![];
    for (call, key, value, part) in notes {
        let (call, value) = (u32::from(*call), usize::from(*value));
        let text = |text: &str| AttributeValue::Text(text.into());
        let (name, value) = match key {
            0 => (HTTP_STATUS, AttributeValue::Integer(STATUSES[value])),
            1 => ("exception", text(EXCEPTIONS[value % EXCEPTIONS.len()])),
            2 => (REQUEST_ID, text(["r", "s", "t", "u"][value])),
            _ => ("k", [AttributeValue::Integer(1), text("1"), text("a"), text("01")][value].clone()),
        };
        let has = |part: &&mut Segment| {
            let entered =
                part.events.iter().filter(|e| matches!(e.kind, tacho_model::EventKind::Enter(_))).count()
                    as u32;
            (part.first_call..part.first_call + entered).contains(&call)
                || part.carried.iter().any(|carried| carried.call == call)
        };
        let mut places: Vec<&mut Segment> = parts.iter_mut().filter(has).collect();
        if places.is_empty() || known.contains(&(call, *key)) {
            continue;
        }
        known.push((call, *key));
        let at = usize::from(*part) % places.len();
        places[at].attributes.push(Attribute { call, key: name.into(), value });
    }
}

/// Blocks of at most `rows_max` rows in random order. The bits of `choices` select the blocks with a summary.
fn blocks(
    seeds: &[Seed],
    notes: &Notes,
    cuts: &[usize],
    (choices, rows_max, renamed): (u64, usize, u32),
) -> Vec<(SourceBlock, bool)> {
    let mut rows: Vec<(usize, Segment)> = vec![];
    for ((number, seed), notes) in (0u64..).zip(seeds).zip(notes) {
        let mut parts = parts(&segment(number, seed), cuts, renamed);
        annotate(&mut parts, notes);
        rows.extend(parts.into_iter().map(|part| (seed.1, part)));
    }
    rows.sort_by_cached_key(|(_, part)| mix64(choices ^ part.base ^ u64::from(part.part) << 8));
    rows.sort_by_key(|(service, _)| *service);
    let block = |(n, rows): (u32, &[(usize, Segment)])| {
        let mut block = ExecutionBlock::new();
        rows.iter().for_each(|(_, part)| block.push(part, &table(KINDS)));
        let labels = Labels::new([("service", format!("s{}", rows[0].0).as_str())]).unwrap();
        (SourceBlock { labels: Arc::new(labels), block: Arc::new(block) }, choices >> (n % 64) & 1 == 1)
    };
    let same = rows.chunk_by(|(a, _), (b, _)| a == b).flat_map(|rows| rows.chunks(rows_max));
    (0u32..).zip(same).map(block).collect()
}

/// The traces of all pages.
fn pages(mut search: Search, ask: impl Fn(&Search) -> SearchResult) -> Vec<Found> {
    let mut all = vec![];
    loop {
        let page = ask(&search);
        assert!(page.traces.len() <= search.limit);
        assert_eq!(page.next.is_some(), page.truncated && !page.traces.is_empty());
        assert!(!page.truncated || page.traces.len() == search.limit, "{page:?}");
        all.extend(found(page.traces));
        match page.next {
            Some(next) => search.after = Some(next),
            None => return all,
        }
    }
}

fn searches() -> impl Strategy<Value = Search> {
    let service = prop::option::weighted(0.3, (0usize..3).prop_map(|n| format!("s{n}")));
    let operation = prop::option::weighted(0.2, (0..OPERATIONS).prop_map(|n| format!("o{n}")));
    let outcome = prop::sample::select(vec![
        None,
        None,
        Some(Outcome::Ok),
        Some(Outcome::Failed),
        Some(Outcome::Running),
    ]);
    let request = prop::option::weighted(0.1, prop::sample::select(vec!["r", "s"]));
    let range = prop::sample::select(vec![TimeRange::ALL, TimeRange::ALL, TimeRange::new(300, 2_000)]);
    let durations = (prop::option::weighted(0.2, 0u64..3_000), prop::option::weighted(0.2, 0u64..6_000));
    (service, operation, outcome, request, range, durations, 0..Order::ALL.len(), 1usize..4).prop_map(
        |(service, operation, outcome, request, range, (duration_ns_min, duration_ns_max), order, limit)| {
            Search {
                filter: super::Filter { service, operation, range },
                duration_ns_min,
                duration_ns_max,
                outcome,
                request_id: request.map(str::to_owned),
                order: Order::ALL[order],
                limit,
                ..EVERYTHING
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn the_pages_of_a_search_with_conditions_have_the_traces_that_a_filter_of_all_spans_finds(
        seeds in seeds(),
        notes in notes(),
        cuts in prop::collection::vec(1usize..12, 0..4),
        layout in (any::<u64>(), 1usize..6, 0u32..2),
        spec in specs(),
        search in searches(),
    ) {
        // More traces than in `seeds`, for more pages. No segment is its own cause.
        let widen = |(number, (trace, service, cause, events)): (u128, Seed)| {
            let cause = cause.filter(|(cause, _)| u128::from(*cause) != number);
            (trace + 3 * (number % 4), service, cause, events)
        };
        let seeds: Vec<Seed> = (0..).zip(seeds).map(widen).collect();
        let blocks = blocks(&seeds, &notes, &cuts, layout);
        let search = Search { conditions: spec.conditions(), ..search };
        let plain: Vec<SourceBlock> = blocks.iter().map(|(block, _)| block.clone()).collect();
        let meets = |span: &Span| spec.meets(span);
        let meets: Option<&dyn Fn(&Span) -> bool> = if search.conditions.is_empty() { None } else { Some(&meets) };
        let keys = |found: Vec<Found>| found.iter().map(|found| key(search.order, found)).collect::<Vec<_>>();
        let expected = keys(expected(&search, &seeds, &plain, meets));
        let ranked = pages(search.clone(), |search| ranked(&blocks, search).0);
        prop_assert_eq!(keys(ranked), expected.clone(), "by rank: {:?}", &search);
        let rounds = |search: &Search| over(&plain, Searching::within(search.clone(), rounds_of(2)));
        prop_assert_eq!(keys(pages(search.clone(), rounds)), expected, "block by block: {:?}", &search);
    }
}

/// Two requests with a failed statement. The first request is in two parts: the status is in the later part, and the exception of
/// its statement in the first part.
const SHOP: &str = "
shop h1 main trace=1 base=1000 at=1000
  0 > http-server GET
  10 > database SELECT 1
  90 !
  @0 tenant = 7
  @1 exception = a.SqlError: gone
shop h1 main trace=1 base=1000 part=1 first=2 at=1200
  ~ 200 0 http-server GET /cart
  0 !
  @0 http.status = 503
shop h1 main trace=2 base=2000 at=2000
  0 > http-server GET /cart
  10 > database SELECT 1
  30 !
  20 !
  @0 http.status = 500
  @0 tenant = 7
  @1 exception = b.SqlError
  @1 tenant = 8
";

/// Checks id and call of each trace that a search finds.
fn check(conditions: Conditions, change: impl FnOnce(&mut Search), expect: &str) {
    let mut search = Search { conditions, order: Order::Slowest, ..EVERYTHING };
    change(&mut search);
    let found = over(&notation::blocks(SHOP), Searching::new(search.clone()));
    let call = |trace: &crate::executions::TraceSummary| {
        let call = trace.matched.as_ref().expect("a call");
        format!("{:x} {} {} {}", trace.trace_id.0, call.operation, call.duration_ns, call.outcome.name())
    };
    assert_eq!(found.traces.iter().map(call).collect::<Vec<_>>().join(", "), expect, "{search:?}");
}

fn all(attributes: &[AttributeTest]) -> Conditions {
    Conditions { text: None, attributes: attributes.to_vec() }
}

#[test]
fn one_call_must_meet_all_conditions() {
    let exception = |class: &str| AttributeTest::exception(class).unwrap();
    let status = |text: &str| AttributeTest::status(Statuses::parse(text).unwrap());
    let tenant = |value: &str| AttributeTest::equal("tenant", value);
    let both = "1 GET /cart 200 failed, 2 GET /cart 60 failed";
    check(all(&[status("5xx")]), |_| {}, both);
    check(all(&[status("503")]), |_| {}, "1 GET /cart 200 failed");
    check(all(&[status("404")]), |_| {}, "");
    check(all(&[status("503"), tenant("7")]), |_| {}, "1 GET /cart 200 failed");
    check(all(&[status("5xx"), tenant("8")]), |_| {}, "");
    check(all(&[tenant("8")]), |_| {}, "2 SELECT 1 30 failed");
    check(all(&[tenant("7")]), |search| search.filter.operation = Some("GET".into()), "");
    check(all(&[exception("SqlError")]), |_| {}, "1 SELECT 1 90 failed, 2 SELECT 1 30 failed");
    check(all(&[exception("b.SqlError")]), |_| {}, "2 SELECT 1 30 failed");
    check(all(&[status("5xx")]), |search| search.duration_ns_max = Some(100), "2 GET /cart 60 failed");
    check(all(&[status("5xx")]), |search| search.outcome = Some(Outcome::Ok), "");
    check(all(&[status("5xx")]), |search| search.filter.service = Some("other".into()), "");
    let text = |text: &str| Conditions { text: Some(text.into()), attributes: vec![] };
    check(text("cart"), |_| {}, both);
    check(
        text("select"),
        |search| search.filter.service = Some("shop".into()),
        "1 SELECT 1 90 failed, 2 SELECT 1 30 failed",
    );
    check(Conditions { attributes: vec![status("5xx")], ..text("select") }, |_| {}, "");
}

#[test]
fn limits_on_calls_in_several_parts_and_on_earlier_pages_are_reported() {
    let blocks = notation::blocks(SHOP);
    let ask = |search: &Search, limits: Limits| {
        let mut fold = Searching::within(search.clone(), limits);
        while fold.pass().is_some() {
            blocks.iter().for_each(|source| fold.add(&source.labels, &source.block));
        }
        (fold.incomplete(), fold.finish())
    };
    let search = Search { conditions: all(&[AttributeTest::equal("tenant", "7")]), limit: 1, ..EVERYTHING };
    let at = |spanning| ask(&search, Limits { spanning, ..Limits::default() });
    assert_eq!(at(1).0, []);
    assert_eq!(at(0).0, [Incomplete::Spanning { omitted: 1, limit: 0 }]);
    let after = at(1).1.next;
    assert!(after.is_some());
    let at = |pages| ask(&Search { after, ..search.clone() }, Limits { pages, ..Limits::default() });
    let (incomplete, page) = at(1);
    assert_eq!((incomplete, page.traces.len(), page.next), (vec![], 1, None));
    assert_eq!(at(0).0, [Incomplete::Pages { omitted: 1, limit: 0 }]);
}

/// A request in two parts. The status is in the first part, the exception in the second.
const SPLIT: [&str; 2] = [
    "
shop h1 main trace=1 base=1000 at=1000
  0 > http-server GET /a
  10 > database SELECT 1
  90 <
  @0 http.status = 503
",
    "
shop h1 main trace=1 base=1000 part=1 first=2 at=1200
  ~ 200 0 http-server GET /a
  0 !
  @0 exception = a.SqlError: gone
",
];

#[test]
fn a_call_whose_attributes_are_in_two_chunks_is_found() {
    let chunks = SPLIT.map(|part| (notation::blocks(part).remove(0), true));
    let status = |text: &str| AttributeTest::status(Statuses::parse(text).unwrap());
    let exception = || AttributeTest::exception("SqlError").unwrap();
    for order in Order::ALL {
        for attributes in
            [vec![status("503"), exception()], vec![exception(), status("5xx")], vec![status("503")]]
        {
            let search = Search { conditions: all(&attributes), order, ..EVERYTHING };
            assert_eq!(ranked(&chunks, &search).0.traces.len(), 1, "{search:?}");
        }
        let other = Search { conditions: all(&[status("404"), exception()]), order, ..EVERYTHING };
        assert_eq!(ranked(&chunks, &other).0.traces.len(), 0);
    }
}

/// Two requests with each of two statuses. Requests with status 503 are shorter than others of the same process.
const STATUSES_OF_PROCESSES: [(u64, u64); 4] = [(10, 900), (30, 400), (20, 300), (40, 700)];

#[test]
fn chunks_are_ordered_by_the_durations_of_the_calls_with_the_status() {
    let source = |(n, (failed, ok)): (u64, &(u64, u64))| {
        let (one, other) = (2 * n + 1, 2 * n + 2);
        let text = format!(
            "
shop h{n} main trace={one} base={one}000 at={one}000
  0 > http-server GET /a
  {failed} !
  @0 http.status = 503
shop h{n} main trace={other} base={other}000 at={other}000
  0 > http-server GET /a
  {ok} <
  @0 http.status = 200
"
        );
        (notation::blocks(&text).remove(0), true)
    };
    let chunks: Vec<_> = (0..).zip(&STATUSES_OF_PROCESSES).map(source).collect();
    let check = |status: &str, order, skipped: usize, expect: &[u64]| {
        let conditions = all(&[AttributeTest::status(Statuses::parse(status).unwrap())]);
        let search = Search { conditions, order, limit: 2, ..EVERYTHING };
        let (found, without) = ranked(&chunks, &search);
        let durations: Vec<u64> = found.traces.iter().map(|trace| trace.duration_ns).collect();
        assert_eq!((durations.as_slice(), without), (expect, skipped), "{status} {order:?}");
    };
    check("503", Order::Slowest, 2, &[40, 30]);
    check("503", Order::Fastest, 2, &[10, 20]);
    check("200", Order::Slowest, 2, &[900, 700]);
    check("5xx", Order::Slowest, 2, &[40, 30]);
    check("404", Order::Slowest, 4, &[]);
}

/// Requests of three processes.
const PROCESSES: &str = "
shop h1 main trace=1 base=1000 at=1000
  0 > http-server GET /cart
  90 !
  @0 http.status = 503
shop h2 main trace=2 base=2000 at=2000
  0 > http-server GET /cart
  30 !
  @0 http.status = 500
shop h3 main trace=3 base=3000 at=3000
  0 > method run
  90 <
";

#[test]
fn chunks_without_a_call_that_meets_the_conditions_are_skipped() {
    let blocks: Vec<_> = notation::blocks(PROCESSES).into_iter().map(|block| (block, true)).collect();
    let status = |text: &str| all(&[AttributeTest::status(Statuses::parse(text).unwrap())]);
    let text = |text: &str| Conditions { text: Some(text.into()), attributes: vec![] };
    for (conditions, skipped, traces) in [
        (status("503"), 2, 1),
        (status("5xx"), 1, 2),
        (status("404"), 3, 0),
        (status("200"), 3, 0),
        (text("CART"), 1, 2),
        (text("run"), 2, 1),
        (text("cart/"), 3, 0),
        (Conditions { attributes: status("5xx").attributes, ..text("run") }, 3, 0),
    ] {
        let search = Search { conditions, ..EVERYTHING };
        let (found, without) = ranked(&blocks, &search);
        assert_eq!((without, found.traces.len(), found.scanned), (skipped, traces, 3), "{search:?}");
    }
}
