//! Parsing, planning and evaluation of PromQL never panic. Each query gets its series once as a whole and once in pieces.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tacho_chunk::Times;
use tacho_model::Labels;
use tacho_query::Error;
use tacho_query::promql::{
    Limits, Output, Params, Piece, STALE, Selection, SeriesData, aggregations, functions, parse,
    parse_selector,
};

const SECOND: i64 = 1_000_000_000;

fuzz_target!(|bytes: &[u8]| {
    let Some(([kind, step], text)) = bytes.split_first_chunk::<2>() else { return };
    // The query is either the rest of the input as text, or one PromQL token per byte of the rest. With tokens, many inputs are
    // almost valid.
    let text = if kind & 2 == 0 {
        text.iter().map(|byte| piece(*byte)).collect()
    } else {
        String::from_utf8_lossy(text).into_owned()
    };
    let _ = parse_selector(&text);
    // Small limits, so that one input takes little time. An input above a limit is an ordinary error.
    let limits =
        Limits { points_max: 20_000, subquery_steps_max: 500, visits_max: 200_000, ..Limits::default() };
    let params = match kind % 2 {
        0 => Params::instant(i64::from(*step) * SECOND),
        _ => Params::range(0, 600 * SECOND, (i64::from(*step) + 5) * SECOND),
    };
    let params = Params { limits, ..params };
    let ask = |series: fn(&str, usize) -> SeriesData| -> Result<Output, Error> {
        let plan = parse(&text)?.plan(&params)?;
        let data = |_: &Selection| vec![series("1", 60), series("+Inf", 60), series("2", 30)];
        plan.evaluate(&plan.selectors().iter().map(data).collect::<Vec<_>>())
    };
    let _ = (ask(whole), ask(cut));
});

/// Tokens other than names of functions and aggregations.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "x", "x", "x", "{__name__=~\".+\"}", "{a=\"1\"}", "[5m]", "[5m]", "[1m]", "[1h]", "[3m:30s]", "[2m:]", "[9y]", "(",
    "(", "(", ")", ")", ")", ")", ",", ",", ",", "1", "2", "0", "0.5", "3.5", "-1", "1e300", "NaN", "Inf", "0x1f",
    "\"a\"", "\"abc\"", "\"$1\"", "\"(.*)\"", "'\\xff'", " offset 1m", " offset -30s", " @ 100", " @ end()", "+", "-",
    "/", "^", " == ", " > bool ", " and ", " or ", " unless ", " on(a) ", " ignoring(le) ", " group_left() ",
    " by (a) ", " by (__name__) ", " without (le) ", "time()", "é", "#", "\n", "\u{0}",
];

fn piece(byte: u8) -> String {
    let functions =
        functions().iter().map(|function| function.name).chain(aggregations().iter().map(|(name, _)| *name));
    match PIECES.get(usize::from(byte)) {
        Some(piece) => (*piece).to_owned(),
        // A function name is useful only if a parenthesis follows.
        None => {
            functions.cycle().nth(usize::from(byte) - PIECES.len()).map(|name| format!("{name}(")).unwrap()
        }
    }
}

fn labels(value: &str) -> Arc<Labels> {
    Arc::new(Labels::new([("__name__", "x"), ("a", value), ("le", value)]).unwrap())
}

/// A gauge with a gap, NaN, a staleness marker and an infinity.
fn samples(count: usize) -> (Vec<i64>, Vec<f64>) {
    let at = (0..count).map(|i| (i as i64 + i64::from(i > 20)) * 10 * SECOND).collect();
    let value = |i: usize| match i {
        7 => f64::NAN,
        11 => STALE,
        13 => f64::INFINITY,
        _ => (i * 37 % 11) as f64,
    };
    (at, (0..count).map(value).collect())
}

fn whole(value: &str, count: usize) -> SeriesData {
    let (at, values) = samples(count);
    SeriesData::new(labels(value), at, values)
}

/// Pieces of at most nine samples. All pieces except the one with the gap have regular times.
fn cut(value: &str, count: usize) -> SeriesData {
    let (at, values) = samples(count);
    let pieces = at
        .chunks(9)
        .zip(values.chunks(9))
        .map(|(at, values)| Piece::Samples { at: Times::new(at).unwrap(), values: values.to_vec() });
    SeriesData { labels: labels(value), pieces: pieces.collect() }
}
