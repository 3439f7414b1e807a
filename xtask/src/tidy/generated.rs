//! Refuses generated lines that `cargo xtask generate` would write differently.

use super::Finding;
use super::tree::Tree;
use crate::generate;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let stale = match generate::stale(tree) {
        Ok(stale) => stale,
        Err(message) => return vec![Finding { path: generate::SETTINGS.to_owned(), line: 0, message }],
    };
    let message = "generated lines are stale, run `cargo xtask generate`";
    let finding = |file: generate::Stale| Finding { path: file.path, line: 0, message: message.to_owned() };
    stale.into_iter().map(finding).collect()
}
