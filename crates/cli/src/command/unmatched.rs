//! Hints for an empty answer: the name or label that no series has, or the command for records of another kind.

use std::time::Instant;

use tacho_model::{Kind, Matcher, NAME};
use tacho_query::promql;
use tacho_server::access::View;
use tacho_server::read::unmatched::{self, Matched, TIME_MAX, Unknown};

use super::ask::Server;

/// The first hint about one of the selectors, if the server answers. `asked` is the kind of the records that the command reads;
/// `None` means any kind.
pub fn of_server(server: &Server, selectors: &[String], asked: Option<Kind>) -> Option<String> {
    first(&found(server, selectors)?, asked, |name| {
        format!("{name:?} is computed from calls and not stored: `tacho query` computes it")
    })
}

/// Like [`of_server`], for the selectors of a query.
pub fn of_query(server: &Server, selectors: &[String]) -> Option<String> {
    first(&found(server, selectors)?, Some(Kind::Sample), |name| {
        format!(
            "{name:?} is computed from calls, with a sample at each full minute: no call in this time matches, or a window is \
             shorter than two minutes"
        )
    })
}

fn found(server: &Server, selectors: &[String]) -> Option<Vec<Matched>> {
    let params = selectors.iter().map(|selector| ("match[]", Some(selector.clone())));
    let answer = server.get_for_hint("/api/v1/matched", params)?;
    serde_json::from_value(answer["data"].clone()).ok()
}

/// Like [`of_server`], for the store of a data directory.
pub fn of_store(store: &View, selectors: &[Vec<Matcher>], asked: Option<Kind>) -> Option<String> {
    let begun = Instant::now();
    let waits = || begun.elapsed() < TIME_MAX;
    let found = selectors.iter().map_while(|matchers| unmatched::matched(store, matchers, &waits));
    first(&found.collect::<Vec<_>>(), asked, |name| {
        format!("{name:?} is computed from calls and not stored: `tacho query` of a server computes it")
    })
}

/// A hint about a computed series is the last choice: calls may match its selector, while nothing matches another one.
fn first(found: &[Matched], asked: Option<Kind>, of_computed: impl Fn(&str) -> String) -> Option<String> {
    let computed = || found.iter().find_map(|matched| matched.computed.as_deref());
    found.iter().find_map(|matched| hint(matched, asked)).or_else(|| computed().map(of_computed))
}

fn hint(matched: &Matched, asked: Option<Kind>) -> Option<String> {
    if let Some(unknown) = &matched.unknown {
        return Some(of_unknown(unknown));
    }
    let kinds = [
        (Kind::Sample, matched.sample, "samples", "`tacho query` reads them"),
        (Kind::Entry, matched.entry, "entries", "`tacho entries` reads them"),
        (Kind::Execution, matched.execution, "calls", "`tacho traces` and `tacho operations` read them"),
    ];
    let is_asked = |kind| asked.is_none_or(|asked| asked == kind);
    if kinds.iter().any(|(kind, series, ..)| is_asked(*kind) && *series > 0) {
        return None;
    }
    let (_, _, records, command) = kinds.iter().find(|(_, series, ..)| *series > 0)?;
    Some(format!("the selector matches {records}: {command}"))
}

fn of_unknown(unknown: &Unknown) -> String {
    let Unknown { label, value, similar, labels } = unknown;
    let quoted: Vec<String> = similar.iter().map(|name| format!("{name:?}")).collect();
    let meant = promql::one_of(&quoted).map_or_else(String::new, |names| format!("; did you mean {names}?"));
    match value {
        Some(name) if label == NAME => {
            let rest = match labels.first() {
                Some(label) if meant.is_empty() => {
                    format!("; it is a value of the label {label:?}: give '{{{label}={name:?}}}'")
                }
                _ if meant.is_empty() => "; `tacho cardinality` lists the existing names".to_owned(),
                _ => meant,
            };
            format!("no series named {name:?}{rest}")
        }
        Some(value) => format!("no such series has {label}={value:?}{meant}"),
        None => format!("no such series has a label {label:?}{meant}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_what_is_unknown_or_of_another_kind() {
        let unknown = |label: &str, value: Option<&str>, similar: &[&str], labels: &[&str]| {
            let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
            let (label, value) = (label.to_owned(), value.map(str::to_owned));
            let unknown = Unknown { label, value, similar: owned(similar), labels: owned(labels) };
            Matched { unknown: Some(unknown), ..Matched::default() }
        };
        let of = |sample, entry, execution| Matched { sample, entry, execution, ..Matched::default() };
        let (samples, entries) = (Some(Kind::Sample), Some(Kind::Entry));
        for (matched, asked, expect) in [
            (
                unknown(NAME, Some("cpu_usge"), &["cpu_usage"], &[]),
                samples,
                Some("no series named \"cpu_usge\"; did you mean \"cpu_usage\"?"),
            ),
            (
                unknown(NAME, Some("a"), &["b", "c", "d"], &["service"]),
                entries,
                Some("no series named \"a\"; did you mean \"b\", \"c\" or \"d\"?"),
            ),
            (
                unknown(NAME, Some("syslog"), &[], &["service"]),
                entries,
                Some(
                    "no series named \"syslog\"; it is a value of the label \"service\": give '{service=\"syslog\"}'",
                ),
            ),
            (
                unknown(NAME, Some("a"), &[], &[]),
                None,
                Some("no series named \"a\"; `tacho cardinality` lists the existing names"),
            ),
            (
                unknown("hots", None, &["host"], &[]),
                None,
                Some("no such series has a label \"hots\"; did you mean \"host\"?"),
            ),
            (unknown("host", Some("x"), &[], &[]), None, Some("no such series has host=\"x\"")),
            (of(0, 2, 1), samples, Some("the selector matches entries: `tacho entries` reads them")),
            (
                of(0, 0, 1),
                entries,
                Some("the selector matches calls: `tacho traces` and `tacho operations` read them"),
            ),
            (of(1, 0, 1), entries, Some("the selector matches samples: `tacho query` reads them")),
            (of(1, 1, 0), entries, None),
            (of(1, 0, 0), None, None),
            (of(0, 0, 0), samples, None),
        ] {
            assert_eq!(hint(&matched, asked).as_deref(), expect, "{matched:?}");
        }
    }
}
