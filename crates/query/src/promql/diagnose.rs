//! Where does this text stop being PromQL?
//!
//! The parser says no more than that a query is invalid. A beginning of the text is good if *something* can
//! follow it; the first token after the longest good beginning is the one to blame. Asked of the parser itself,
//! so that the grammar is written down once.

use crate::Error;

use super::guard::{Scanner, Token};
use super::similar::similar;

/// What the parser says when it has nothing to say.
pub const SPEECHLESS: &str = "invalid promql query";

/// Ways to go on from a good beginning, up to the end of the open brackets.
const CONTINUATIONS: [&str; 8] = ["", " x", " 5m", " (a) x", " (a) (x)", "=\"b\"", " \"b\"", " a=\"b\""];

/// Ways to go on after the brackets: those of `by` and `on` want an operand.
const AFTER: [&str; 3] = ["", " (x)", " x"];

/// Longer ones are not looked into, bytes: a beginning takes dozens of calls of the parser.
const TEXT_BYTES_MAX: usize = 4_096;

/// The parser's message, with a position if it has none of its own. `fits` says whether a text has the
/// grammar of PromQL, whatever its types and names.
pub fn explain(text: &str, message: String, fits: impl Fn(&str) -> bool) -> Error {
    if let Some(meant) = unknown_function(&message).and_then(similar) {
        return Error::bad_data(format!("{message}; did you mean {meant}?"));
    }
    if message != SPEECHLESS || text.len() > TEXT_BYTES_MAX {
        return Error::bad_data(message);
    }
    let mut scanner = Scanner::new(text);
    let mut tokens = Vec::new();
    while let Ok(Some(token)) = scanner.next() {
        tokens.push(token);
    }
    // Good beginnings come first, so the border between them and the rest is found by halving.
    let ends: Vec<usize> = tokens.iter().map(|token| token.at + token.text.len()).collect();
    let good = ends.partition_point(|end| is_beginning(&text[..*end], &fits));
    match tokens.get(good) {
        Some(token) => Error::bad_data(format!("unexpected {:?}", token.text)).at(token.at),
        None => Error::bad_data("unexpected end of the query").at(text.len()),
    }
}

/// The name in the parser's message about it.
fn unknown_function(message: &str) -> Option<&str> {
    message.strip_prefix("unknown function with name '")?.strip_suffix('\'')
}

fn is_beginning(text: &str, fits: &impl Fn(&str) -> bool) -> bool {
    let closing = closing(text);
    let mut ways =
        CONTINUATIONS.iter().flat_map(|more| AFTER.map(|after| format!("{text}{more}{closing}{after}")));
    ways.any(|way| fits(&way))
}

/// The brackets that close what `text` has opened.
fn closing(text: &str) -> String {
    let mut open = Vec::new();
    let mut scanner = Scanner::new(text);
    while let Ok(Some(Token { text, .. })) = scanner.next() {
        match text {
            "(" => open.push(')'),
            "[" => open.push(']'),
            "{" => open.push('}'),
            ")" | "]" | "}" => drop(open.pop()),
            _ => {}
        }
    }
    open.iter().rev().collect()
}
