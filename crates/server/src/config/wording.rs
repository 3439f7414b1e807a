//! Rewords errors of the TOML reader, so that they name the key, the value, and what is allowed.

use tacho_api::settings::WHOLE_NUMBER;
use tacho_query::promql;

/// Messages of our own types and messages about syntax are returned unchanged.
pub fn reworded(message: &str) -> String {
    if let Some(names) = message.strip_prefix("unknown field ") {
        return unknown_key(names);
    }
    for (begin, is) in [("missing field ", "is missing"), ("duplicate field ", "is given twice")] {
        if let Some(name) = message.strip_prefix(begin) {
            return format!("key {:?} {is}", name.trim_matches('`'));
        }
    }
    if message.starts_with("data did not match any variant of untagged enum Amount") {
        return "expected a number above 0, or a percentage such as \"1%\"".to_owned();
    }
    let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    match wrong.and_then(|wrong| wrong.rsplit_once(", expected ")) {
        Some((value, expected)) => format!("{} is not allowed, expected {}", shown(value), allowed(expected)),
        None => message.to_owned(),
    }
}

/// `names` is a part of serde's message, such as `` `dta`, expected one of `data`, `http` ``.
fn unknown_key(names: &str) -> String {
    let mut names = names.split('`').skip(1).step_by(2);
    let unknown = names.next().unwrap_or_default();
    let known: Vec<&str> = names.collect();
    let similar = promql::similar_among(unknown, known.iter().copied());
    let quoted: Vec<String> = similar.iter().map(|name| format!("{name:?}")).collect();
    match promql::one_of(&quoted) {
        Some(names) => format!("unknown key {unknown:?}; did you mean {names}?"),
        None if known.is_empty() => format!("unknown key {unknown:?}"),
        None => format!("unknown key {unknown:?}, known are {}", known.join(", ")),
    }
}

/// `value` is in the words of serde: `` string "x" ``, `` integer `5` ``, `map`.
fn shown(value: &str) -> String {
    let bare = |value: &str| value.trim_matches('`').to_owned();
    match value.split_once(' ') {
        Some(("string", text)) => text.to_owned(),
        Some(("integer" | "boolean", text)) => bare(text),
        Some(("floating", rest)) => bare(rest.trim_start_matches("point ")),
        _ if value == "map" => "a table".to_owned(),
        _ if value == "sequence" => "a list".to_owned(),
        _ => value.to_owned(),
    }
}

/// `expected` is in the words of serde, often the name of a Rust type.
fn allowed(expected: &str) -> String {
    match expected {
        "usize" | "u64" => WHOLE_NUMBER.to_owned(),
        "u32" => format!("{WHOLE_NUMBER}, at most {}", u32::MAX),
        "a string" | "path string" => "a text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list, for example [\"a\", \"b\"]".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::Settings;

    #[test]
    fn errors_of_the_toml_reader_are_in_our_words() {
        for (text, expect) in [
            ("dta = 'x'", "unknown key \"dta\"; did you mean \"data\"?"),
            ("tls_crt = 'x'", "unknown key \"tls_crt\"; did you mean \"tls_cert\"?"),
            ("[[retention]]\nmatch = 'a'\nzzz = 1", "unknown key \"zzz\", known are match, keep, summaries"),
            ("[[retention]]\nkeep = '1d'", "key \"match\" is missing"),
            ("requests_max = -1", "-1 is not allowed, expected a whole number from 0 without a unit"),
            ("requests_max = 1.5", "1.5 is not allowed, expected a whole number from 0 without a unit"),
            (
                "requests_max = '16MB'",
                "\"16MB\" is not allowed, expected a whole number from 0 without a unit",
            ),
            (
                "merge_cpu_percent = 5000000000",
                "5000000000 is not allowed, expected a whole number from 0 without a unit, at most 4294967295",
            ),
            ("data = 5", "5 is not allowed, expected a text in quotes"),
            ("data = ['a']", "a list is not allowed, expected a text in quotes"),
            ("insecure_listen = 'yes'", "\"yes\" is not allowed, expected true or false"),
            ("allowed_hosts = 'a'", "\"a\" is not allowed, expected a list, for example [\"a\", \"b\"]"),
            ("retention = 5", "5 is not allowed, expected a list, for example [\"a\", \"b\"]"),
            ("retention = [5]", "5 is not allowed, expected a table"),
            (
                "[[semantic]]\nmatch = 'a'\nvalue = true",
                "expected a number above 0, or a percentage such as \"1%\"",
            ),
            ("http = 'here'", "\"here\" is not an address: give IP:PORT, for example 127.0.0.1:7070"),
        ] {
            let error = toml::from_str::<Settings>(text).unwrap_err();
            assert_eq!(reworded(error.message()), expect, "{text}: {}", error.message());
        }
    }
}
