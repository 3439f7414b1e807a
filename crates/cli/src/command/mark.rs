//! Adds details to errors in a query, selector or pattern of the user: the line with a caret below the place of the error, or the
//! quoted name.

use tacho_model::Matcher;
use tacho_query::{Place, promql};

use crate::failure::Failure;

/// # Errors
/// When a selector cannot be parsed. The place of the error is marked.
pub fn selectors(texts: &[String]) -> Result<Vec<Vec<Matcher>>, Failure> {
    let parsed = texts.iter().map(|text| {
        promql::parse_selector(text).map_err(|error| {
            let failure = Failure::usage(&error);
            if text.trim().is_empty() {
                return Failure::usage("the selector is empty").hint(
                    "for example 'up' or '{job=\"shop\"}'; `tacho cardinality` lists the existing names",
                );
            }
            in_promql(text, failure)
        })
    });
    parsed.collect()
}

/// Marks the place of an error in the query or selector `text`. If the error is about a name that must be quoted, adds the
/// quoted name as a hint.
pub fn in_promql(text: &str, failure: Failure) -> Failure {
    // Only a failure with the exit code of wrong arguments is about the text. A network error, for example, has another code.
    let is_about_text = failure.exit_code() == Failure::usage("").exit_code();
    let name = odd_name(text, failure.message()).filter(|_| is_about_text);
    let failure = in_text(text, failure);
    match name {
        Some(name) => failure.hint(format!(
            "quote a name with such characters: '{{\"{name}\"}}', with labels '{{\"{name}\", label=\"value\"}}'"
        )),
        None => failure,
    }
}

pub fn in_text(text: &str, failure: Failure) -> Failure {
    match marked(text, failure.message()) {
        Some(lines) => failure.showing(&lines),
        None => failure,
    }
}

/// The line of `text` that has the error, with a caret below the place of the error. The message ends with the place, such as
/// `(at column 5)`.
fn marked(text: &str, message: &str) -> Option<String> {
    let place = Place::of_message(message)?;
    let line = line(text, place)?.replace(char::is_control, " ");
    let before = place.column.checked_sub(1).filter(|before| *before <= line.chars().count())?;
    Some(format!("  | {line}\n  | {}^", " ".repeat(before)))
}

fn line(text: &str, place: Place) -> Option<&str> {
    text.split('\n').nth(place.line.checked_sub(1)?)
}

/// The name in the text that must be quoted, such as `cpu.load` from the name of an imported column: the whole text, or the word
/// at the place of the error.
fn odd_name<'a>(text: &'a str, message: &str) -> Option<&'a str> {
    let odd = |c: char| matches!(c, '.' | '-' | '/' | ' ' | '%');
    let is_plain = |c: char| c == '_' || c.is_alphanumeric();
    if text.contains(odd) && text.chars().all(|c| odd(c) || is_plain(c)) {
        return Some(text);
    }
    let place = Place::of_message(message)?;
    let line = line(text, place)?;
    let at = line.char_indices().nth(place.column.checked_sub(1)?)?.0;
    // A word has letters, digits, `_`, `:` and `.`.
    let ends = |c: char| !(is_plain(c) || matches!(c, ':' | '.'));
    let start = line[..at].char_indices().rfind(|(_, c)| ends(*c)).map_or(0, |(at, c)| at + c.len_utf8());
    let end = line[at..].find(ends).map_or(line.len(), |length| at + length);
    let word = &line[start..end.max(start)];
    let is_name = word.contains('.') && word.starts_with(|c: char| c == '_' || c.is_alphabetic());
    is_name.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_marks_the_place_of_an_error() {
        for (query, message, expect) in [
            ("a b", "expected x (at column 3)", Some("  | a b\n  |   ^")),
            ("é +", "expected x (at column 4)", Some("  | é +\n  |    ^")),
            ("a\n\tb c", "expected x (at line 2, column 4)", Some("  |  b c\n  |    ^")),
            ("a b", "query needs 2 steps, at most 1 are allowed", None),
            ("a b", "expected x (at column 9)", None),
            ("a b", "expected x (at line 2, column 1)", None),
            ("a b", "expected x (at column 0)", None),
        ] {
            assert_eq!(marked(query, message).as_deref(), expect, "{query:?} {message}");
        }
    }

    #[test]
    fn names_that_need_quotes_are_found() {
        for (text, expect) in [
            ("cpu.load", Some("cpu.load")),
            ("CPU load %", Some("CPU load %")),
            ("rate(cpu.load[5m])", Some("cpu.load")),
            ("1 + (é_x.cpu.load{a=\"b\"})", Some("é_x.cpu.load")),
            ("sum(\n  a.b\n)", Some("a.b")),
            ("rate(up[5m)", None),
            ("{a=\"x.y\"} b", None),
            ("up[1.5x]", None),
            ("up{", None),
        ] {
            let error = promql::parse(text).err().unwrap().to_string();
            assert_eq!(odd_name(text, &error), expect, "{text:?}: {error}");
        }
    }

    #[test]
    fn selectors_are_parsed_or_marked() {
        assert_eq!(selectors(&["up".into(), "{a=\"b\"}".into()]).unwrap().len(), 2);
        for (text, expect) in [
            (
                "a{} b",
                "error: expected an operator or the end of the query, found \"b\" (at column 5)\n  | a{} b\n  |     ^",
            ),
            (
                "cpu.load",
                "error: unexpected character '.' (at column 4)\n  | cpu.load\n  |    ^\nhint: quote a name with such \
                 characters: '{\"cpu.load\"}', with labels '{\"cpu.load\", label=\"value\"}'",
            ),
            ("sum(up)", "error: \"sum(up)\" is not a plain series selector"),
            (
                " ",
                "error: the selector is empty\nhint: for example 'up' or '{job=\"shop\"}'; `tacho cardinality` lists the \
                 existing names",
            ),
        ] {
            let failure = selectors(&["up".into(), text.into()]).unwrap_err();
            assert_eq!(failure.to_string(), expect, "{text:?}");
        }
    }
}
