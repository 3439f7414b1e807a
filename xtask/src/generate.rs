//! `cargo xtask generate`: writes the settings and messages of the agents into their code and their README.md files.
//!
//! `agent/settings.toml` and `agent/messages.toml` are the only definitions. Each row of [`TARGETS`] is a file, a section between
//! two marker lines of the file, and the function that returns the lines of the section.

mod messages;
mod settings;
mod table;

use crate::tidy::tree::{File, Tree};
use table::{Agent, Tables};

pub const SETTINGS: &str = "agent/settings.toml";
pub const MESSAGES: &str = "agent/messages.toml";
/// Text in the line before a section, followed by the name of the section.
const BEGIN: &str = "generated: ";
/// Text in the line after a section.
const END: &str = "generated: end";

struct Target {
    path: &'static str,
    /// Name of the section.
    section: &'static str,
    lines: fn(&Tables) -> Vec<String>,
}

const TARGETS: [Target; 12] = [
    Target {
        path: "agent/java/core/src/main/java/io/tachograph/core/config/Setting.java",
        section: "settings",
        lines: settings::java,
    },
    Target {
        path: "agent/java/core/src/main/java/io/tachograph/core/config/Settings.java",
        section: "others",
        lines: settings::java_others,
    },
    Target {
        path: "agent/java/core/src/main/java/io/tachograph/core/log/Messages.java",
        section: "messages",
        lines: messages::java,
    },
    Target {
        path: "agent/java/README.md",
        section: "settings",
        lines: |tables| settings::page(tables, Agent::Java),
    },
    Target { path: "agent/node/src/settings.js", section: "settings", lines: settings::node },
    Target { path: "agent/node/src/settings.js", section: "others", lines: settings::node_others },
    Target { path: "agent/node/src/messages.js", section: "messages", lines: messages::node },
    Target {
        path: "agent/node/README.md",
        section: "settings",
        lines: |tables| settings::page(tables, Agent::Node),
    },
    Target { path: "agent/python/tachograph/config.py", section: "settings", lines: settings::python },
    Target { path: "agent/python/tachograph/config.py", section: "others", lines: settings::python_others },
    Target { path: "agent/python/tachograph/messages.py", section: "messages", lines: messages::python },
    Target {
        path: "agent/python/README.md",
        section: "settings",
        lines: |tables| settings::page(tables, Agent::Python),
    },
];

/// A file with outdated generated sections.
pub struct Stale {
    pub path: String,
    /// The whole file with up-to-date sections.
    pub text: String,
}

pub fn run() -> Result<(), String> {
    let tree = Tree::read()?;
    let stale = stale(&tree)?;
    for file in &stale {
        let path = tree.root.join(&file.path);
        std::fs::write(&path, &file.text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("generate: {}", file.path);
    }
    println!("generate: {} files written", stale.len());
    Ok(())
}

/// The files that are not up to date.
pub fn stale(tree: &Tree) -> Result<Vec<Stale>, String> {
    let tables = Tables::parse(&find(tree, SETTINGS)?.text, &find(tree, MESSAGES)?.text)?;
    let mut paths: Vec<&str> = TARGETS.iter().map(|target| target.path).collect();
    paths.dedup();
    let mut stale = vec![];
    for path in paths {
        let before = &find(tree, path)?.text;
        let mut text = before.clone();
        for target in TARGETS.iter().filter(|target| target.path == path) {
            text = replace(&text, target.section, &(target.lines)(&tables))
                .ok_or_else(|| format!("{path}: no section `{BEGIN}{}` up to `{END}`", target.section))?;
        }
        if text != *before {
            stale.push(Stale { path: path.to_owned(), text });
        }
    }
    Ok(stale)
}

fn find<'a>(tree: &'a Tree, path: &str) -> Result<&'a File, String> {
    tree.files.iter().find(|file| file.path == path).ok_or_else(|| format!("{path} is missing"))
}

/// `text` with these lines in the section, instead of the old lines. `None` if a marker is missing.
fn replace(text: &str, section: &str, lines: &[String]) -> Option<String> {
    let begin = format!("{BEGIN}{section} ");
    let all: Vec<&str> = text.lines().collect();
    let first = all.iter().position(|line| line.contains(&begin))? + 1;
    let length = all[first..].iter().position(|line| line.contains(END))?;
    let generated = lines.iter().map(String::as_str);
    let kept = all[..first].iter().copied().chain(generated).chain(all[first + length..].iter().copied());
    Some(kept.map(|line| format!("{line}\n")).collect())
}

/// Writes `["a", "b"]` in one line if the line is short enough, otherwise one element per line with a comma after each.
fn list(indent: usize, before: &str, elements: &[String], after: &str, columns_max: usize) -> Vec<String> {
    let space = " ".repeat(indent);
    let line = format!("{space}{before}{}{after}", elements.join(", "));
    if line.chars().count() <= columns_max {
        return vec![line];
    }
    let element = |element: &String| format!("{space}    {element},");
    let mut lines = vec![format!("{space}{before}")];
    lines.extend(elements.iter().map(element));
    lines.push(format!("{space}{after}"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_between_its_markers() {
        let last = "b\n# generated: settings (y)\n# generated: end\n";
        let text = format!("a\n// generated: others (x)\nold\n// generated: end\n{last}");
        let lines = ["new".to_owned(), "newer".to_owned()];
        let expect = format!("a\n// generated: others (x)\nnew\nnewer\n// generated: end\n{last}");
        assert_eq!(replace(&text, "others", &lines), Some(expect));
        assert_eq!(replace(&text, "messages", &lines), None);
        assert_eq!(replace("generated: others (x)\n", "others", &lines), None);
    }

    #[test]
    fn long_lists_have_one_element_per_line() {
        let elements = ["'a'".to_owned(), "'b'".to_owned()];
        assert_eq!(list(2, "x([", &elements, "]);", 16), ["  x(['a', 'b']);"]);
        assert_eq!(list(2, "x([", &elements, "]);", 15), ["  x([", "      'a',", "      'b',", "  ]);"]);
    }

    #[test]
    fn a_file_with_outdated_lines_is_stale() {
        let mut tree = Tree::read().expect("the repository is readable");
        assert!(stale(&tree).expect("the tables are valid").is_empty());
        let messages = tree.files.iter_mut().find(|file| file.path == MESSAGES).expect("it is tracked");
        messages.text.push_str("another = \"one more {thing}\"\n");
        let stale: Vec<String> =
            stale(&tree).expect("the tables are valid").into_iter().map(|file| file.path).collect();
        assert_eq!(stale.len(), 3, "{stale:?}");
    }
}
