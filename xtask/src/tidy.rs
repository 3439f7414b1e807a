//! Checks the rules of STYLE.md that a machine can check.
//!
//! Each rule is one file in `tidy/` with a function `check(&Tree) -> Vec<Finding>`, and one line in [`RULES`].

mod banned;
mod circles;
mod constants;
mod generated;
mod layers;
mod links;
mod paths;
mod profile;
mod sizes;
pub mod tree;
mod words;

use tree::Tree;

pub struct Finding {
    pub path: String,
    /// From 1; 0 means the whole file.
    pub line: usize,
    pub message: String,
}

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: [(&str, Rule); 10] = [
    ("sizes", sizes::check),
    ("banned", banned::check),
    ("links", links::check),
    ("paths", paths::check),
    ("constants", constants::check),
    ("words", words::check),
    ("generated", generated::check),
    ("profile", profile::check),
    ("layers", layers::check),
    ("circles", circles::check),
];

/// Fails if there is any finding.
pub fn run() -> Result<(), String> {
    let tree = Tree::read()?;
    let mut count = 0;
    for (rule, check) in RULES {
        for finding in check(&tree) {
            eprintln!("{}:{}: {rule}: {}", finding.path, finding.line, finding.message);
            count += 1;
        }
    }
    if count > 0 {
        return Err(format!("tidy: {count} findings; {} files were checked", tree.files.len()));
    }
    println!("tidy: {} files, no findings", tree.files.len());
    Ok(())
}
