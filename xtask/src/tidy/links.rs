//! Checks the links in documents: relative links to files, and `#anchors` within a file and in other files.

use super::Finding;
use super::tree::{File, Tree};

pub fn check(tree: &Tree) -> Vec<Finding> {
    let documents = tree.files.iter().filter(|file| file.has_ending(&["md"]));
    documents.flat_map(|file| check_file(tree, file)).collect()
}

fn check_file(tree: &Tree, file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (line, text) in file.lines() {
        fenced ^= text.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        for target in targets(text) {
            if let Some(message) = dead(tree, file, &target) {
                findings.push(Finding { path: file.path.clone(), line, message });
            }
        }
    }
    findings
}

/// The target of each link `[text](target)`.
fn targets(line: &str) -> Vec<String> {
    let parts = line.split("](").skip(1);
    parts.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()).collect()
}

fn dead(tree: &Tree, file: &File, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { file.path.clone() } else { resolve(&file.path, path) };
    if !tree.root.join(&path).exists() {
        return Some(format!("dead link: {target}"));
    }
    let text = tree.files.iter().find(|f| f.path == path);
    let has = |f: &File| f.lines().any(|(_, l)| l.starts_with('#') && slug(l) == anchor);
    match text {
        Some(f) if !anchor.is_empty() && !has(f) => Some(format!("no heading for #{anchor} in {path}")),
        _ => None,
    }
}

fn resolve(from: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The anchor that code hosts generate for a heading.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_and_paths_resolve_to_link_targets() {
        assert_eq!(slug("## What is `there`, at the end?"), "what-is-there-at-the-end");
        assert_eq!(resolve("docs/format/wire.md", "../adr/0001.md"), "docs/adr/0001.md");
        assert_eq!(targets("see [a](b.md#c) and [d](e)"), ["b.md#c", "e"]);
    }
}
