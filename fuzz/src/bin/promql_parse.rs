//! The parser of PromQL never panics. The place of an error is in a line of the text, or directly after the end of that line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacho_query::promql::{Limits, parse_with};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let narrow = Limits {
        query_bytes_max: 64,
        nesting_max: 3,
        operators_max: 4,
        patterns_max: 1,
        ..Limits::default()
    };
    for limits in [Limits::default(), narrow] {
        let Err(error) = parse_with(&text, &limits) else { continue };
        let Some(place) = error.place else { continue };
        let line = text.split('\n').nth(place.line - 1).expect("the line exists");
        assert!((1..=line.chars().count() + 1).contains(&place.column), "{place:?} is not in {text:?}");
    }
});
