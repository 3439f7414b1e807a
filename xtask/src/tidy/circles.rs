//! Files of a crate that use each other say why. The head comment of one of them has a paragraph of this form, which may name
//! several files, or directories:
//!
//! ```text
//! //! This file and `window.rs` use each other: a window yields rows, and a row is computed from windows.
//! ```
//!
//! Such a paragraph explains the uses between the file and the named files, in both directions. The other uses must not form
//! a circle. So a circle of more than two files needs only one paragraph, between two of its files. The paragraph says through
//! which other files the use leads back.
//!
//! A file uses the file that defines a named item: imports and re-exports are followed. A module and its own submodules may
//! use each other without a paragraph. Tests are not counted.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::tree::{File, Tree};

/// Names of a path below the crate, such as `["store", "append"]`.
type Path = Vec<String>;

/// The first words of a paragraph, and further words in it.
const FORM: (&str, &str) = ("This file and ", "use each other");

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| is_source(file)) {
        crates.entry(file.krate().unwrap_or_default()).or_default().push(file);
    }
    crates.into_values().flat_map(|files| Crate::new(&files).findings()).collect()
}

fn is_source(file: &File) -> bool {
    let names = |test: &str| file.path.split('/').any(|name| name.trim_end_matches(".rs") == test);
    file.krate().is_some_and(|krate| file.path.starts_with(&format!("{krate}/src/")))
        && file.has_ending(&["rs"])
        && !names("tests")
        && !file.path.ends_with("_tests.rs")
}

struct Module<'f> {
    file: &'f File,
    code: String,
    /// The imports and re-exports: name here, and absolute path.
    names: BTreeMap<String, Path>,
}

struct Crate<'f> {
    modules: BTreeMap<Path, Module<'f>>,
}

impl<'f> Crate<'f> {
    fn new(files: &[&'f File]) -> Self {
        let module = |file: &&'f File| {
            let module = Module { file, code: code(&file.text), names: BTreeMap::new() };
            (module_path(&file.path), module)
        };
        let mut all = Self { modules: files.iter().map(module).collect() };
        let names: Vec<(Path, BTreeMap<String, Path>)> =
            all.modules.iter().map(|(at, module)| (at.clone(), all.imports(at, &module.code))).collect();
        for (at, names) in names {
            if let Some(module) = all.modules.get_mut(&at) {
                module.names = names;
            }
        }
        all
    }

    fn findings(&self) -> Vec<Finding> {
        let explained: BTreeSet<(&Path, &Path)> =
            self.modules.keys().flat_map(|at| self.explained(at)).collect();
        let is_open = |from, to| !explained.contains(&(from, to)) && !explained.contains(&(to, from));
        let edges: BTreeMap<&Path, BTreeSet<&Path>> = self
            .modules
            .iter()
            .map(|(at, module)| {
                (at, self.uses(at, module).into_iter().filter(|to| is_open(at, *to)).collect())
            })
            .collect();
        circles(&edges).iter().map(|circle| self.finding(circle, &edges)).collect()
    }

    fn file(&self, at: &Path) -> &str {
        self.modules.get(at).map_or("", |module| &module.file.path)
    }

    /// Pairs of this module and each module that the paragraph in its head names.
    fn explained<'c>(&'c self, at: &'c Path) -> Vec<(&'c Path, &'c Path)> {
        let head = self.modules.get(at).map_or("", |module| &module.file.text);
        let named: Vec<String> = paragraphs(head).iter().flat_map(|paragraph| quoted(paragraph)).collect();
        let is_named = |other: &&Path| {
            let file = self.file(other);
            named.iter().any(|name| match name.strip_suffix('/') {
                Some(directory) => file.contains(&format!("/{directory}/")),
                None => file.ends_with(&format!("/{name}")),
            })
        };
        self.modules.keys().filter(is_named).map(|other| (at, other)).collect()
    }

    fn finding(&self, circle: &[&Path], edges: &BTreeMap<&Path, BTreeSet<&Path>>) -> Finding {
        let short = |at: &Path| short(self.file(at));
        let arrows = circle.iter().map(|at| {
            let uses = edges.get(at).into_iter().flatten().filter(|to| circle.contains(to));
            let uses: Vec<&str> = uses.map(|to| short(to)).collect();
            format!("{} -> {}", short(at), uses.join(", "))
        });
        let arrows = arrows.collect::<Vec<_>>().join("; ");
        let (begin, end) = FORM;
        let message = format!("no head comment says why (`{begin}... {end}`): {arrows}");
        let path = circle.first().map_or("", |at| self.file(at)).to_owned();
        Finding { path, line: 0, message }
    }

    /// The modules whose items a module names, without itself, the modules around it and its submodules.
    fn uses(&self, at: &Path, module: &Module<'_>) -> BTreeSet<&Path> {
        let inline = paths(&module.code).into_iter().filter_map(|path| self.absolute(at, path));
        let all = module.names.values().cloned().chain(inline);
        let targets = all.filter_map(|path| self.home(path));
        targets.filter(|to| !to.starts_with(at) && !at.starts_with(to)).collect()
    }

    /// The module of the file that defines an item.
    fn home(&self, mut path: Path) -> Option<&Path> {
        // Re-exports can lead in a circle.
        for _ in 0..16 {
            let most = (0..=path.len()).rev().find(|end| self.modules.contains_key(&path[..*end]))?;
            let (at, module) = self.modules.get_key_value(&path[..most])?;
            match path.get(most).and_then(|name| module.names.get(name)) {
                Some(origin) => path = origin.iter().chain(&path[most + 1..]).cloned().collect(),
                None => return Some(at),
            }
        }
        None
    }

    fn imports(&self, at: &Path, code: &str) -> BTreeMap<String, Path> {
        let mut found = BTreeMap::new();
        for statement in statements(code) {
            for (path, name) in leaves(statement, &[]) {
                // Names that are imported with `*` are not followed.
                if let Some(path) = self.absolute(at, path) {
                    found.insert(name, path);
                }
            }
        }
        found
    }

    /// `None` if the path leads to another crate.
    fn absolute(&self, at: &Path, path: Path) -> Option<Path> {
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([at, &path[1..]].concat()),
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                let around = at.get(..at.len().checked_sub(ups)?)?;
                Some([around, &path[ups..]].concat())
            }
            first => {
                let child = [at.as_slice(), &[first.to_owned()]].concat();
                self.modules.contains_key(&child).then(|| [at.as_slice(), &path].concat())
            }
        }
    }
}

/// The last parts of the path, which tell a `mod.rs` from another one.
fn short(path: &str) -> &str {
    let parts = if path.ends_with("/mod.rs") { 2 } else { 1 };
    path.rmatch_indices('/').nth(parts - 1).map_or(path, |(at, _)| &path[at + 1..])
}

fn module_path(file: &str) -> Path {
    let below = file.split_once("/src/").map_or(file, |(_, below)| below).trim_end_matches(".rs");
    let mut path: Path = below.split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|name| name == "mod") || ["lib", "main"].contains(&below) {
        path.pop();
    }
    path
}

/// The paragraphs of the head comment that have the form.
fn paragraphs(text: &str) -> Vec<String> {
    let lines = text.lines().take_while(|line| line.starts_with("//!"));
    let lines: Vec<&str> = lines.map(|line| line.trim_start_matches("//!").trim()).collect();
    let paragraphs = lines.split(|line| line.is_empty()).map(|lines| lines.join(" "));
    paragraphs.filter(|text| text.starts_with(FORM.0) && text.contains(FORM.1)).collect()
}

/// The names in the first sentence, in backquotes.
fn quoted(paragraph: &str) -> Vec<String> {
    let sentence = paragraph.split_once(FORM.1).map_or("", |(sentence, _)| sentence);
    sentence.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The text without comments, strings and inline modules of tests, which are at the end of a file.
fn code(text: &str) -> String {
    let tests =
        text.find("#[cfg(test)]\nmod ").filter(|at| !text[*at..].lines().nth(1).unwrap_or("").ends_with(';'));
    let text = &text[..tests.unwrap_or(text.len())];
    let mut out = String::new();
    for line in text.lines() {
        let line = line.split_once("//").map_or(line, |(before, _)| before);
        // Every second part is inside of quotes. Strings over several lines do not matter: they contain no paths.
        out.extend(line.split('"').step_by(2));
        out.push('\n');
    }
    out
}

/// The trees of all `use` statements.
fn statements(code: &str) -> impl Iterator<Item = &str> {
    let starts = code
        .match_indices("use ")
        .filter(|(at, _)| code[..*at].chars().next_back().is_none_or(|before| before.is_whitespace()));
    starts.filter_map(|(at, _)| code[at + 4..].split_once(';').map(|(tree, _)| tree))
}

/// The paths of a tree of imports, each with its name in this file.
fn leaves(tree: &str, around: &[String]) -> Vec<(Path, String)> {
    let tree = tree.trim();
    let split = |text: &str| -> Path {
        let path = text.split("::").map(|name| name.trim().to_owned());
        around.iter().cloned().chain(path.filter(|name| !name.is_empty())).collect()
    };
    if let Some((prefix, group)) = tree.split_once('{') {
        let around = split(prefix);
        let (mut depth, mut from, mut found) = (0, 0, Vec::new());
        let group = group.trim_end().strip_suffix('}').unwrap_or(group).to_owned() + ",";
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    found.extend(leaves(&group[from..at], &around));
                    from = at + 1;
                }
                _ => {}
            }
        }
        return found;
    }
    let (path, alias) =
        tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let mut path = split(path);
    if path.last().is_some_and(|name| name == "self") {
        path.pop();
    }
    let name = alias.map(str::to_owned).or_else(|| path.last().cloned());
    name.map(|name| (path, name)).into_iter().collect()
}

/// The paths in the code that begin with `crate`, `super` or `self`.
fn paths(code: &str) -> Vec<Path> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    let words = code.split(|c: char| !is_part(c));
    // A word that ends with `::` begins a group of imports, which `leaves` reads.
    let starts = |word: &&str| {
        !word.ends_with(':') && ["crate::", "super::", "self::"].iter().any(|start| word.starts_with(start))
    };
    words.filter(starts).map(|word| word.split("::").map(str::to_owned).collect()).collect()
}

/// The strongly connected components with more than one member.
fn circles<'p>(edges: &BTreeMap<&'p Path, BTreeSet<&'p Path>>) -> Vec<Vec<&'p Path>> {
    let reach: BTreeMap<&Path, BTreeSet<&Path>> = edges.keys().map(|at| (*at, reached(at, edges))).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (at, reached) in &reach {
        let back = |to: &&Path| reach.get(to).is_some_and(|back| back.contains(at));
        if reached.contains(at) && !seen.contains(at) {
            let circle: Vec<&Path> = reached.iter().copied().filter(back).collect();
            seen.extend(circle.iter().copied());
            found.push(circle);
        }
    }
    found
}

fn reached<'p>(from: &'p Path, edges: &BTreeMap<&'p Path, BTreeSet<&'p Path>>) -> BTreeSet<&'p Path> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        for to in edges.get(at).into_iter().flatten() {
            if reached.insert(*to) {
                open.push(to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a crate with these files. Returns the messages after the last `: `, in which arrows stand for uses.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| File {
            path: format!("crates/x/src/{path}"),
            text: (*text).to_owned(),
        };
        let findings = check(&Tree { root: ".".into(), files: files.iter().map(file).collect() });
        findings.into_iter().map(|finding| finding.message.rsplit("): ").next().unwrap().to_owned()).collect()
    }

    #[test]
    fn circles_are_found_with_every_form_of_import() {
        let lib = ("lib.rs", "mod a;\nmod b;\npub use a::One;");
        for text in [
            "use crate::a::One;",
            "use super::{a::{Other, One}, c};",
            "use crate::One;",
            "use super::One as Two;",
            "fn f() { crate::a::one() }",
            "use crate::{\n    a::{self, One},\n};",
        ] {
            let files = [lib, ("a.rs", "use crate::b;"), ("b/mod.rs", text)];
            assert_eq!(found(&files), ["a.rs -> b/mod.rs; b/mod.rs -> a.rs"], "{text}");
        }
    }

    #[test]
    fn circles_of_three_files_are_found() {
        let files =
            [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::a::A;")];
        assert_eq!(found(&files), ["a.rs -> b.rs; b.rs -> c.rs; c.rs -> a.rs"]);
    }

    #[test]
    fn comments_strings_tests_and_submodules_are_no_circle() {
        for text in [
            "// use crate::a;",
            "const A: &str = \"use crate::a;\";",
            "#[cfg(test)]\nmod tests {\n    use crate::a;\n}",
            "use std::a;",
        ] {
            assert_eq!(found(&[("a.rs", "use crate::b;"), ("b.rs", text)]), Vec::<String>::new(), "{text}");
        }
        let files = [
            ("a/mod.rs", "mod b;\nuse self::b::B;"),
            ("a/b.rs", "use super::A;"),
            ("a/tests.rs", "use super::b;"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn a_paragraph_explains_the_uses_of_the_named_files() {
        let explained = |head: &str| {
            let a = format!("{head}use crate::b;");
            found(&[("a.rs", &a), ("b.rs", "use crate::c;"), ("c.rs", "use crate::a;")]).is_empty()
        };
        assert!(explained(
            "//! What?\n//!\n//! This file and `b.rs` use\n//! each other, through `c.rs`: parts.\n"
        ));
        assert!(explained("//! This file and `c.rs` use each other, through `b.rs`: parts.\n"));
        assert!(!explained("//! This file and `d.rs` use each other, through `b.rs`: parts.\n"));
        assert!(!explained("//! What? This file and `b.rs` use each other.\n"));
        assert!(!explained("//! This file and `b.rs`.\n"));
        let both = |head: &str, b: &str| {
            let a = format!("{head}use crate::b;\nuse crate::c;");
            found(&[("a.rs", &a), (b, "use crate::a;"), ("c.rs", "use crate::a;")])
        };
        let head = "//! This file, `c.rs`.\n//!\n//! This file and `b.rs` use each other.\n";
        assert_eq!(both(head, "b.rs"), ["a.rs -> c.rs; c.rs -> a.rs"]);
        assert_eq!(
            both("//! This file and `b/`, `c.rs` use each other.\n", "b/mod.rs"),
            Vec::<String>::new()
        );
    }
}
