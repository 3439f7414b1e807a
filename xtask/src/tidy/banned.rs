//! Refuses code that is not permitted, open tasks, and paths of one machine.

use super::Finding;
use super::tree::{File, Tree};

struct Ban {
    /// The text is split in two, so that this file does not match itself.
    text: (&'static str, &'static str),
    why: &'static str,
    applies: fn(&File) -> bool,
}

fn is_rust(file: &File) -> bool {
    file.has_ending(&["rs"])
}

fn is_pure(file: &File) -> bool {
    const PURE: [&str; 4] = ["crates/model", "crates/chunk", "crates/ingest", "crates/query"];
    is_rust(file) && file.krate().is_some_and(|k| PURE.contains(&k)) && file.path.contains("/src/")
}

fn is_library(file: &File) -> bool {
    is_rust(file)
        && file.krate().is_some()
        && file.path.contains("/src/")
        && !file.path.contains("/src/command/")
        && !file.path.ends_with("/main.rs")
}

fn is_code(file: &File) -> bool {
    file.has_ending(&["rs", "java", "ts", "tsx", "js", "mjs"])
}

fn is_agent(file: &File) -> bool {
    file.path.starts_with("agent/java/") && file.has_ending(&["java"]) && file.path.contains("/src/main/")
}

fn is_any(_: &File) -> bool {
    true
}

const BANS: [Ban; 13] = [
    Ban { text: ("std::", "fs"), why: "a pure crate does no I/O", applies: is_pure },
    Ban { text: ("std::", "net"), why: "a pure crate does no I/O", applies: is_pure },
    Ban {
        text: ("SystemTime::", "now"),
        why: "a pure crate has no clock: take a timestamp",
        applies: is_pure,
    },
    Ban { text: ("async ", "fn"), why: "a pure crate is synchronous", applies: is_pure },
    Ban { text: ("print", "ln!"), why: "libraries do not print: return data or log", applies: is_library },
    Ban { text: ("#[ig", "nore"), why: "run the test or remove it", applies: is_rust },
    Ban { text: ("@Disab", "led"), why: "run the test or remove it", applies: is_code },
    Ban { text: ("TO", "DO"), why: "open an issue instead", applies: is_code },
    Ban { text: ("FIX", "ME"), why: "open an issue instead", applies: is_code },
    Ban {
        text: ("System.", "out."),
        why: "the agent never writes to the program's output",
        applies: is_agent,
    },
    Ban { text: ("sun.misc.", "Unsafe"), why: "warns on JDK 24 and later: use VarHandle", applies: is_agent },
    Ban { text: ("/wo", "rk/"), why: "path of a single machine", applies: is_any },
    Ban { text: ("../sha", "red"), why: "path of a single machine", applies: is_any },
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let bans: Vec<(String, &Ban)> = BANS
        .iter()
        .filter(|ban| (ban.applies)(file))
        .map(|ban| ([ban.text.0, ban.text.1].concat(), ban))
        .collect();
    let mut findings = Vec::new();
    for (line, text) in file.lines() {
        for (_, ban) in bans.iter().filter(|(banned, _)| text.contains(banned.as_str())) {
            let message = format!("{}{}: {}", ban.text.0, ban.text.1, ban.why);
            findings.push(Finding { path: file.path.clone(), line, message });
        }
    }
    findings
}
