//! Checks that the files and folders that a text names exist.
//!
//! A path is a text in back ticks (or in `{@code ...}` of Javadoc) that starts with one of [`FOLDERS`] and has no blanks. `...`
//! matches any part of a path.

use super::Finding;
use super::tree::{File, Tree};

const FOLDERS: [&str; 8] =
    ["agent/", "crates/", "docs/", "examples/", "fuzz/src/", "testdata/", "ui/src/", "xtask/"];

/// A path with this text is a placeholder: the reader chooses the name.
const PLACEHOLDER: &str = "NAME.";

pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().flat_map(|file| check_file(tree, file)).collect()
}

fn check_file(tree: &Tree, file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in file.lines() {
        for path in paths(text).filter(|path| !is_there(tree, path)) {
            let message = format!("{path} does not exist");
            findings.push(Finding { path: file.path.clone(), line, message });
        }
    }
    findings
}

/// Patterns and build output are ignored.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let ticked = line.split('`').skip(1).step_by(2);
    let coded = line.split("{@code ").skip(1).filter_map(|rest| rest.split_once('}')).map(|(code, _)| code);
    ticked.chain(coded).filter(|word| {
        FOLDERS.iter().any(|folder| word.starts_with(folder))
            && !word.contains(['*', '{', '<', ' '])
            && !word.contains(PLACEHOLDER)
            && !word.contains("/target/")
    })
}

fn is_there(tree: &Tree, path: &str) -> bool {
    match path.split_once("...") {
        Some((start, end)) => tree.files.iter().any(|f| f.path.starts_with(start) && f.path.ends_with(end)),
        None => tree.root.join(path.trim_end_matches('/')).exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_paths_are_recognised() {
        let found = |line| paths(line).collect::<Vec<_>>();
        assert_eq!(found("| `xtask/src/tidy.rs`, `c/d.rs` | `ui/src/` |"), ["xtask/src/tidy.rs", "ui/src/"]);
        assert_eq!(found(" * After: {@code xtask/src/main.rs}."), ["xtask/src/main.rs"]);
        assert_eq!(found("`crates/drivers/src/NAME.rs`"), Vec::<&str>::new());
        assert_eq!(found("`testdata/*.vec` and `agent/java/target/a.jar` crates/x"), Vec::<&str>::new());
    }
}
