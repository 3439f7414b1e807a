//! Arbitrary text, deep nesting and excessive sizes must return a result or an error, and never panic.

use std::sync::Arc;

use proptest::prelude::*;
use tacho_model::{Labels, NAME};
use tacho_query::promql::{self, Limits, Output, Params, SeriesData};
use tacho_query::{Error, ErrorKind};

const SECOND: i64 = 1_000_000_000;

fn series(name: &str, value: &str, samples: i64) -> SeriesData {
    let labels = Labels::new([(NAME, name), ("a", value), ("le", value)]).unwrap();
    let at = (0..samples).map(|i| i * 10 * SECOND).collect();
    SeriesData::new(Arc::new(labels), at, (0..samples).map(|i| (i % 7) as f64).collect())
}

/// Evaluates a query. Every selector gets the same three series.
fn ask(query: &str, params: &Params) -> Result<Output, Error> {
    let plan = promql::parse(query)?.plan(params)?;
    let found = || vec![series("x", "1", 60), series("x", "+Inf", 60), series("y", "2", 30)];
    let data: Vec<_> = plan.selectors().iter().map(|_| found()).collect();
    plan.evaluate(&data)
}

fn params() -> Params {
    let limits = Limits { subquery_steps_max: 1_000, points_max: 100_000, ..Limits::default() };
    Params { limits, ..Params::range(100 * SECOND, 400 * SECOND, 37 * SECOND) }
}

/// Fragments of PromQL. Random sequences of them are often nearly valid.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "x", "y", "{a=\"1\"}", "{__name__=~\".+\"}", "[5m]", "[1m:10s]", "[2m:]", "[0]", "[1e9]", "[9y]",
    " offset ", "1m", "-1m", "inf", " @ ", "start()", "end()", "1e300", "(", ")", ",", "+", "-", "*", "/",
    "%", "^", "==", "!=", "> bool ", "<", " and ", " or ", " unless ", " on(a) ", " ignoring(a) ",
    " group_left() ", " group_right(le) ", "sum", "avg", "topk(1, ", "bottomk(", "quantile(0.5, ",
    "count_values(\"a\", ", " by (a) ", " without (le) ", "rate(", "increase(", "deriv(",
    "predict_linear(", "quantile_over_time(", "max_over_time(", "histogram_quantile(", "label_replace(",
    "label_join(", "absent(", "scalar(", "vector(", "time()", "timestamp(", "sort(", "round(", "hour(",
    "\"a\"", "\"$1\"", "\"(.*)\"", "'\\xff'", "0x1f", "NaN", "1h2m", "#", "\n", "é", "\u{0}",
];

fn pieces() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(PIECES), 0..12).prop_map(|pieces| pieces.concat())
}

/// Valid queries. They reach the evaluator.
fn well_formed() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(vec![
        "x",
        "y{a!=\"3\"}",
        "{a=~\".+\"} offset -30s",
        "x @ 200",
        "vector(time())",
        "x > 2",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 24, 2, |inner| {
        let name = proptest::sample::select(vec![
            "sum(%)",
            "avg by (a) (%)",
            "topk(2, %)",
            "quantile(0.3, %)",
            "count_values(\"v\", %)",
            "abs(%)",
            "-(%)",
            "(%) * 2",
            "rate((%)[1m:7s])",
            "avg_over_time((%)[90s:20s] offset 10s)",
            "deriv((%)[3m:30s] @ end())",
            "clamp(%, 1, 4)",
            "histogram_quantile(0.9, %)",
            "label_replace(%, \"b\", \"$1\", \"a\", \"(.*)\")",
            "scalar(%) + %",
            "timestamp(%)",
            "(%) > bool 1",
            "absent(%)",
            "last_over_time((%)[2m:])",
            "sort_desc(%)",
            "stddev without (a) (%)",
        ]);
        let op = proptest::sample::select(vec![
            "+",
            "/ on(a)",
            "== on(a) group_left",
            "and",
            "or ignoring(le)",
            "unless on(a)",
            "^ ignoring(a) group_right(le)",
        ]);
        prop_oneof![
            (name, inner.clone()).prop_map(|(name, inner)| name.replace('%', &inner)),
            (inner.clone(), op, inner).prop_map(|(left, op, right)| format!("({left}) {op} ({right})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_text_does_not_panic(text in ".{0,60}") {
        let _ = ask(&text, &params());
        let _ = promql::parse_selector(&text);
    }

    #[test]
    fn random_sequences_of_pieces_do_not_panic(text in pieces()) {
        let _ = ask(&text, &params());
    }

    /// The range query has one step.
    #[test]
    fn instant_and_range_agree(text in well_formed()) {
        let at = 250 * SECOND;
        // `end()` is the same time in both queries.
        let range = Params { limits: params().limits, ..Params::range(at, at, SECOND) };
        let instant = Params { limits: params().limits, ..Params::instant(at) };
        match (ask(&text, &instant), ask(&text, &range)) {
            (Ok(Output::Vector(elements)), Ok(Output::Matrix(matrix))) => {
                let mut elements = elements;
                elements.sort_by(|a, b| a.0.cmp(&b.0));
                prop_assert_eq!(elements.len(), matrix.len());
                for ((labels, point), series) in elements.iter().zip(&matrix) {
                    prop_assert_eq!(labels, &series.labels);
                    prop_assert_eq!(point.value.to_bits(), series.points[0].value.to_bits());
                }
            }
            (Err(a), Err(b)) => prop_assert_eq!(a, b),
            (a, b) => prop_assert!(false, "{:?} but {:?}", a, b),
        }
    }
}

fn refused(query: &str, params: &Params, kind: ErrorKind, message: &str) {
    let error = ask(query, params).expect_err(query);
    assert!(error.kind == kind && error.to_string().contains(message), "{query:.80}: {error:?}");
}

#[test]
fn the_deepest_allowed_query_fits_the_stack() {
    let Limits { nesting_max, operators_max, .. } = Limits::default();
    let sums = format!("{}x{}", "x+".repeat(operators_max), "");
    let signs = format!("{}x", "-".repeat(operators_max));
    let powers = format!("{}2", "2^".repeat(operators_max));
    let calls = format!("{}x{}", "abs(".repeat(nesting_max), ")".repeat(nesting_max));
    let subqueries =
        format!("{}x{}", "sum(rate(".repeat(nesting_max / 2 - 1), "[5m:1m]))".repeat(nesting_max / 2 - 1));
    // The maximum depth of brackets and the maximum number of operators, spread over the levels.
    let both = {
        let (each, rest) = (operators_max / nesting_max, operators_max % nesting_max);
        let level = format!("abs(scalar({}", "2^".repeat(each * 2));
        format!("{}{}x{}", level.repeat(nesting_max / 2), "-".repeat(rest), "))".repeat(nesting_max / 2))
    };
    for query in [sums, signs, powers, calls] {
        ask(&query, &params()).unwrap_or_else(|error| panic!("{query}: {error}"));
    }
    let _ = ask(&subqueries, &params());
    let _ = ask(&both, &params());
    refused(
        &format!("{}x{}", "(".repeat(10_000), ")".repeat(10_000)),
        &params(),
        ErrorKind::Limit,
        "levels of brackets",
    );
    refused(&"-".repeat(20_000), &params(), ErrorKind::Limit, "operators");
}

#[test]
fn errors_of_limits_state_value_and_limit() {
    let limits = |limits| Params { limits, ..params() };
    let days = Params::range(0, 11_000 * SECOND, SECOND);
    refused("x", &days, ErrorKind::Limit, "query needs 11001 steps, at most 11000 are allowed");
    refused("rate(x[1y:1ms])", &params(), ErrorKind::Limit, "subquery steps, at most 1000");
    let few = limits(Limits { series_max: 2, ..Limits::default() });
    refused("x", &few, ErrorKind::Limit, "query needs 3 series, at most 2 are allowed");
    let few = limits(Limits { samples_max: 149, ..Limits::default() });
    refused("x", &few, ErrorKind::Limit, "query needs 150 samples, at most 149 are allowed");
    let few = limits(Limits { points_max: 26, ..Limits::default() });
    refused("x", &few, ErrorKind::Limit, "query needs 27 intermediate points, at most 26 are allowed");
    let few = limits(Limits { visits_max: 10, ..Limits::default() });
    refused("sum_over_time(x[5m])", &few, ErrorKind::Limit, "samples read by windows, at most 10");
    refused("x{a=~\"(a{1000}){1000}\"}", &params(), ErrorKind::BadData, "invalid repeat count");
}

/// Patterns of `label_replace` and of matchers share a budget.
#[test]
fn patterns_of_label_replace_are_counted() {
    let nested = |levels: usize, pattern: &str| {
        let matcher = "x{a=~\"1|.+\"}".to_owned();
        (0..levels).fold(matcher, |inner, level| {
            format!("label_replace({inner}, \"l\", \"$1\", \"a\", \"({pattern}){level}\")")
        })
    };
    ask(&nested(60, ".*"), &params()).unwrap();
    let sum = ["label_replace(x, \"l\", \"$1\", \"a\", \"(.*)\")"; 65].join(" + ");
    refused(&sum, &params(), ErrorKind::Limit, "the request has more than 64 patterns");
    refused(
        &nested(40, "a{990}b{990}c{990}d{990}e{990}f{990}"),
        &params(),
        ErrorKind::Limit,
        "need more than 200000 states",
    );
}

#[test]
fn extreme_times_do_not_overflow() {
    for at in [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX - 1, i64::MAX] {
        for query in [
            "x",
            "rate(x[5m])",
            "x offset -290y",
            "avg_over_time(x[290y:30y] offset 290y)",
            "time()",
            "hour()",
            "x @ -9e9",
        ] {
            let _ = ask(query, &Params::instant(at));
            let _ = ask(query, &Params::range(at, i64::MAX, i64::MAX));
        }
    }
}

#[test]
fn unsupported_parts_are_named() {
    let bad = |query, message| refused(query, &params(), ErrorKind::BadData, message);
    bad(
        "double_exponential_smoothing(x[5m], 0.5, 0.5)",
        "function double_exponential_smoothing is not available yet",
    );
    bad("histogram_count(x)", "function histogram_count is not available yet");
    bad("info(x)", "function info is not available yet");
    bad("limit_ratio(0.1, x)", "aggregation limit_ratio is not available yet");
    bad("x + fill(0) y", "modifier fill is not available yet");
    bad("nonsense(x)", "unknown function with name \"nonsense\"");
    bad("outlier(x)", "unknown function with name \"outlier\"; did you mean keep_outliers");
    bad("rates(x[5m])", "unknown function with name \"rates\"; did you mean rate?");
    bad("{a=\"1\" or b=\"2\"}", "\"or\" between label matchers is not available yet");
}

#[test]
fn match_parameters_accept_only_plain_selectors() {
    let matchers = promql::parse_selector("up{job=~\"a.*\", x!=\"1\"}").unwrap();
    assert_eq!(format!("{matchers:?}"), r#"[__name__="up", job=~"a.*", x!="1"]"#);
    for bad in ["up[5m]", "up offset 5m", "sum(up)", "{}", "{a=~\".*\"}", "1", ""] {
        assert_eq!(promql::parse_selector(bad).expect_err(bad).kind, ErrorKind::BadData);
    }
}

#[test]
fn errors_have_a_position() {
    let at = |query: &str, message: &str| {
        let error = promql::parse(query).expect_err(query);
        assert_eq!(error.to_string(), message, "{query}");
    };
    at("a b", "expected an operator or the end of the query, found \"b\" (at column 3)");
    at("sum by (a) rate(x[5m])", "expected \"(\" and the operand of sum, found \"rate\" (at column 12)");
    at("1 +", "expected an expression, found the end of the query (at column 4)");
    at("rate(x[5m]) / / y", "expected an expression, found \"/\" (at column 15)");
    at("sum by (1) (x)", "expected a label or \")\", found \"1\" (at column 9)");
    at(
        "x{a=\"1\" b=\"2\"}",
        "expected \",\" or \"}\" to close the \"{\" at column 2, found \"b\" (at column 9)",
    );
    at(
        "x[5m",
        "expected \":\" or \"]\" to close the \"[\" at column 2, found the end of the query (at column 5)",
    );
    at("x offset", "expected a duration after offset, found the end of the query (at column 9)");
    at("(x", "expected \")\" to close the \"(\" at column 1, found the end of the query (at column 3)");
    at("", "the query is empty (at column 1)");
    at("sum(\n  é(x)\n)", "unexpected character 'é' (at line 2, column 3)");
}

/// If a result would have far more series or points than the input of the query, the query is refused before memory is allocated.
#[test]
fn operations_that_multiply_series_are_limited() {
    let params = Params::range(100 * SECOND, 1_600 * SECOND, SECOND);
    let refused = |query: &str, data: Vec<SeriesData>| {
        let limits = Limits { points_max: 1_000_000, ..Limits::default() };
        let plan = promql::parse(query).unwrap().plan(&Params { limits, ..params.clone() }).unwrap();
        let data: Vec<_> = plan.selectors().iter().map(|_| data.clone()).collect();
        let error = plan.evaluate(&data).expect_err(query);
        assert!(error.to_string().contains("intermediate points, at most 1000000"), "{query}: {error}");
    };
    // `count_values` makes a series of each distinct value.
    let labels = Arc::new(Labels::new([(NAME, "x")]).unwrap());
    let at: Vec<i64> = (0..2_000).map(|i| i * SECOND).collect();
    let values = (0..2_000).map(f64::from).collect();
    refused("count_values(\"v\", x + x / 7)", vec![SeriesData::new(labels, at, values)]);
    // Two series on the right side conflict only if both have a value at the same step. These never do, so each left series
    // matches all of them.
    let short = |i: i64| {
        let labels = Arc::new(Labels::new([("i", i.to_string())]).unwrap());
        SeriesData::new(labels, vec![i * SECOND, (i + 1) * SECOND], vec![1.0, promql::STALE])
    };
    refused("{i=~\".+\"} * on () group_left {i=~\".+\"}", (100..1_000).map(short).collect());
}

/// A limit of exactly the bytes of the labels that a query creates is enough. A limit of one byte less is not enough.
#[test]
fn labels_created_by_a_query_are_limited() {
    let labels = |i: usize| Labels::new([(NAME, "x".to_owned()), ("i", format!("{i:04}"))]).unwrap();
    let data: Vec<SeriesData> =
        (0..100).map(|i| SeriesData::new(Arc::new(labels(i)), vec![0], vec![i as f64])).collect();
    let asked = |query: &str, label_bytes_max: usize| {
        let limits = Limits { label_bytes_max, ..Limits::default() };
        let plan = promql::parse(query).unwrap().plan(&Params { limits, ..Params::instant(0) }).unwrap();
        let data: Vec<_> = plan.selectors().iter().map(|_| data.clone()).collect();
        plan.evaluate(&data)
    };
    // Each label set takes 192 bytes plus its texts, and two bytes per pair of name and value.
    let name = NAME.len() + 1 + 2;
    let own = 192 + 1 + 4 + 2;
    let text = 192 + name + 1 + 4 + 2 + 1 + 1_000 + 2;
    let replace = format!(r#"label_replace(x, "d", "{}", "", "")"#, "v".repeat(1_000));
    let join = format!(r#"label_join(x, "d", "{}", "n", "n")"#, "v".repeat(1_000));
    for (query, bytes) in [
        ("-x", 100 * own),
        ("x + 1", 100 * own),
        (&replace, 100 * text),
        (&join, 100 * text),
        // The labels of an operand are released together with the operand.
        (&format!("-{replace}"), 100 * (text + text - name)),
        (&format!("-(-(-{replace}))"), 100 * (text + text - name)),
        ("sum by (i) (x)", 100 * own),
        ("count_values without (i) (\"v\", x)", 100 * (192 + 3) + 10 + 2 * 90),
        // The labels of the groups, and those of one result per pair.
        ("x * on (i) group_left () x", 100 * 2 * own),
        ("x * on () group_left () sum(x)", 2 * 192 + 100 * own),
        ("last_over_time(x[1m])", 0),
        ("changes(x[1m])", 100 * own),
        (
            "histogram_quantile(0.5, label_replace(x{i=\"0001\"}, \"le\", \"1\", \"\", \"\"))",
            100 * (3 * own + 2 * name + 5),
        ),
    ] {
        let message = |error: Error| {
            assert_eq!(error.kind, ErrorKind::Limit, "{query:.80}: {error}");
            error.to_string()
        };
        let needs = asked(query, 0).map_err(message).err();
        assert_eq!(needs.is_some(), bytes > 0, "{query:.80}");
        if bytes > 0 {
            assert_eq!(asked(query, bytes).err().map(|e| e.to_string()), None, "{query:.80}: {bytes}");
            let refused = asked(query, bytes - 1).map_err(message).expect_err(query);
            let expect = format!(
                "query needs {bytes} bytes for labels of intermediate results, at most {}",
                bytes - 1
            );
            assert!(refused.contains(&expect), "{query:.80}: {refused}");
        }
    }
}

/// The queries repeat a long text thousands of times in one value.
#[test]
fn long_values_are_refused_before_they_are_written() {
    let labels = Labels::new([("a".to_owned(), "v".repeat(4_000))]).unwrap();
    let data = vec![SeriesData::new(Arc::new(labels), vec![0], vec![1.0])];
    for query in [
        format!(r#"label_replace({{a!=""}}, "d", "{}", "a", "(.*)")"#, "$1".repeat(10_000)),
        format!(r#"label_join({{a!=""}}, "d", "{}"{})"#, "-".repeat(9_000), ", \"a\"".repeat(4_000)),
    ] {
        let plan = promql::parse(&query).unwrap().plan(&Params::instant(0)).unwrap();
        let error = plan
            .evaluate(std::slice::from_ref(&data))
            .expect_err("a value that is too long was accepted")
            .to_string();
        assert!(error.contains("value of label \"d\" has ") && error.contains("at most 4096"), "{error}");
    }
}

/// Rows for many series and many steps are refused before they are allocated; they would take 40 GB here.
#[test]
fn rows_of_subqueries_are_counted_before_allocation() {
    let labels = |i: usize| Arc::new(Labels::new([(NAME, "x".to_owned()), ("i", i.to_string())]).unwrap());
    let data: Vec<SeriesData> = (0..5_000).map(|i| SeriesData::new(labels(i), vec![0], vec![1.0])).collect();
    for function in ["dtw_over_time(x[5m], x[5m])", "sax_over_time(x[5m], \"ab\", 4, 3)", "rate(x[5m])"] {
        let query = format!("max_over_time({function}[1000000s:1s])");
        let plan = promql::parse(&query).unwrap().plan(&Params::instant(2_000_000 * SECOND)).unwrap();
        let data: Vec<_> = plan.selectors().iter().map(|_| data.clone()).collect();
        let error = plan.evaluate(&data).expect_err(&query);
        let expect = "query needs 5000000000 intermediate points, at most 50000000 are allowed";
        assert!(error.kind == ErrorKind::Limit && error.to_string() == expect, "{query}: {error}");
    }
}
