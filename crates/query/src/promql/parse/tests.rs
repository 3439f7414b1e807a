//! Which queries are parsed, and which are refused? The cases are in `tests/syntax/*.txt`.

use proptest::prelude::*;

use super::super::parse as parse_query;
use super::*;

const VALID: &str = include_str!("../../../tests/syntax/valid.txt");
const INVALID: &str = include_str!("../../../tests/syntax/invalid.txt");

/// The query and the expectation of each block.
fn cases(file: &str) -> impl Iterator<Item = (String, &str)> {
    let lines: Vec<&str> = file.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")).collect();
    assert!(lines.len().is_multiple_of(2), "each query must have one line of expectation");
    let pairs: Vec<_> = lines.chunks(2).map(|pair| (pair[0].replace('⏎', "\n"), pair[1])).collect();
    pairs.into_iter().map(|(query, expect)| {
        let indented = expect.strip_prefix("    ").unwrap_or_else(|| panic!("no expectation for {query}"));
        (query, indented)
    })
}

fn printed(text: &str) -> Result<String, Error> {
    parse(text, &Limits::default()).map(|expression| expression.to_string())
}

#[test]
fn valid_queries_parse_to_the_expected_tree() {
    let mut faults = Vec::new();
    for (query, expect) in cases(VALID) {
        for query in [&*query, expect] {
            match printed(query) {
                Ok(found) if found == expect => {}
                found => faults.push(format!("{query}\n  expected {expect}\n  found    {found:?}")),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn invalid_queries_are_refused_with_their_place() {
    let mut faults = Vec::new();
    for (query, expect) in cases(INVALID) {
        match parse_query(&query) {
            Err(error) if error.to_string() == expect => {}
            found => {
                let found = found.map_or_else(|error| error.to_string(), |query| format!("{query:?}"));
                faults.push(format!("{query}\n  expected {expect}\n  found    {found}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn limits_accept_their_value_and_refuse_one_more() {
    let limits = Limits { query_bytes_max: 400, nesting_max: 5, operators_max: 7, ..Limits::default() };
    let limits = Limits { patterns_max: 3, ..limits };
    let pattern = "a=~\"b\",";
    for (what, part, most) in [
        ("bytes of text", "x", 400),
        ("levels of brackets", "(", 5),
        ("operators", "-", 7),
        ("operators", "x ^ ", 7),
        ("operators", "x or ", 7),
        ("operators", "[1:]", 7),
        ("patterns", pattern, 3),
    ] {
        let query = |count: usize| match part {
            "x" => part.repeat(count),
            "(" => format!("{}x{}", part.repeat(count), ")".repeat(count)),
            "[1:]" => format!("x{}", part.repeat(count)),
            _ if part == pattern => format!("{{{}}}", part.repeat(count)),
            _ => format!("{}x", part.repeat(count)),
        };
        parse(&query(most), &limits).unwrap_or_else(|error| panic!("{most} {what}: {error}"));
        let message = parse(&query(most + 1), &limits).expect_err(what).message;
        assert_eq!(message, format!("query needs {} {what}, at most {most} are allowed", most + 1));
    }
}

/// Fragments of PromQL. Random sequences of them are often nearly valid.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "x", "y", "sum", "by", "and", "offset", "start", "inf", "{", "}", "a", "=", "!=", "=~", "!~", "\"a\"", "'b'", "`c`",
    ",", "(", ")", "[", "]", ":", "5m", "1h30m", "0x1f", "1.5e3", "1_0", "-", "+", "*", "/", "%", "^", "==", "<", ">=",
    " and ", " or ", " unless ", " atan2 ", " bool ", " on(a) ", " ignoring(b, c) ", " group_left(d) ", " group_right ",
    " by (a) ", " without (b) ", "sum(", "topk(2, ", "rate(", "time()", "[5m]", "[1h:]", "[1h:1m]", " offset ", " -3m ",
    " @ ", "end()", "1.5", "{\"n.m\"}", "{a=\"b\"}", "# c\n", "\n", "é", "\\", "\"\\x41\"", "\"\\",
];

/// Well-formed text of all kinds of expressions. The types of the operands may be wrong.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(vec![
        "x",
        "0x1f",
        "1.5",
        "5m",
        "nan",
        "-inf",
        "\"a\\n\\\"\"",
        "`\\`",
        "{a=\"b\", \"c.d\"!~'e'}",
        "and{f=~'g'}",
        "x[5m]",
        "y offset -1h30m",
        "z @ -1.25",
        "x @ end() offset 7",
        "u[90s] @ start()",
        "{\"n.m\"}",
        "sum",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(5, 40, 3, |inner| {
        let operator = proptest::sample::select(vec![
            "+",
            "-",
            "*",
            "/",
            "%",
            "^",
            "==",
            "!= bool",
            "<",
            "and",
            "or on()",
            "unless on(a, b)",
            "atan2",
            "> bool ignoring(a) group_left()",
            "* on(\"c.d\") group_right(e)",
        ]);
        let around = proptest::sample::select(vec![
            "(%)",
            "-%",
            "+(%)",
            "sum(%)",
            "topk by (a) (3, %)",
            "count(%) without (a, b)",
            "f(%)",
            "g(1, %, \"s\")",
            "(%)[1h:]",
            "(%)[1d:5m] offset 1ms @ 2",
        ]);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(left, op, right)| format!("{left} {op} {right}")),
            (around, inner).prop_map(|(around, inner)| around.replace('%', &inner)),
        ]
    })
}

/// Whether `text` is valid. Checks that the print of a valid query parses to the same tree, and that the place of an error is
/// within the text.
fn check(text: &str) -> Result<bool, TestCaseError> {
    match printed(text) {
        Ok(once) => {
            prop_assert_eq!(printed(&once).map_err(|error| format!("{once}: {error}")), Ok(once.clone()));
            Ok(true)
        }
        Err(Error { place: Some(place), .. }) => {
            let line = text.split('\n').nth(place.line - 1);
            let columns = line.map_or(0, |line| line.chars().count() + 1);
            prop_assert!((1..=columns).contains(&place.column), "{place:?} is not in {text:?}");
            Ok(false)
        }
        Err(error) => Err(TestCaseError::fail(format!("{error} has no place"))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_printed_query_parses_to_the_same_tree(text in expressions()) {
        prop_assert!(check(&text)?, "{text}: {:?}", printed(&text));
    }

    #[test]
    fn random_sequences_of_pieces_do_not_panic(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..12)) {
        check(&pieces.concat())?;
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in ".{0,40}") {
        check(&text)?;
    }
}
