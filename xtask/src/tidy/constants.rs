//! Checks that Rust, Java and the format documents agree on the constants of the formats.
//!
//! A table in `docs/format/` is authoritative if it has rows such as
//! ```text
//! | `NAME` | 4,194,304 | ...
//! ```
//! Rust must define `NAME` with this value. If Java has a constant of this name, it must have the same value.

use super::Finding;
use super::tree::{File, Tree};

struct Constant {
    path: String,
    line: usize,
    name: String,
    value: Option<u128>,
}

pub fn check(tree: &Tree) -> Vec<Finding> {
    let documents = tree.files.iter().filter(|f| f.path.starts_with("docs/format/"));
    let documented: Vec<Constant> = documents.flat_map(rows).collect();
    let code: Vec<Constant> =
        tree.files.iter().filter(|f| f.has_ending(&["rs", "java"])).flat_map(defined).collect();
    let mut findings = Vec::new();
    for row in &documented {
        let same_name: Vec<&Constant> = code.iter().filter(|c| c.name == row.name).collect();
        if !same_name.iter().any(|c| c.path.ends_with(".rs")) {
            let message = format!("`{}` is documented but no Rust constant has this name", row.name);
            findings.push(Finding { path: row.path.clone(), line: row.line, message });
        }
        for constant in same_name.iter().filter(|c| c.value.is_some() && c.value != row.value) {
            let message = format!(
                "{} = {:?}, but {}:{} has {:?}",
                row.name, constant.value, row.path, row.line, row.value
            );
            findings.push(Finding { path: constant.path.clone(), line: constant.line, message });
        }
    }
    findings
}

fn rows(file: &File) -> Vec<Constant> {
    let row = |(line, text): (usize, &str)| {
        let mut cells = text.strip_prefix("| `")?.splitn(2, "` | ");
        let name = cells.next().filter(|n| is_constant_name(n))?.to_owned();
        let value = number(cells.next()?.split(" |").next()?.trim_matches('`'));
        value.map(|v| Constant { path: file.path.clone(), line, name, value: Some(v) })
    };
    file.lines().filter_map(row).collect()
}

fn defined(file: &File) -> Vec<Constant> {
    let keyword = if file.has_ending(&["rs"]) { "const " } else { "static final " };
    let constant = |(line, text): (usize, &str)| {
        let (left, right) = text.split_once(keyword)?.1.split_once('=')?;
        let name = match left.split_once(':') {
            Some((name, _)) => name.trim(),
            None => left.trim().rsplit(' ').next()?,
        };
        let value = number(right.split(';').next()?.trim());
        is_constant_name(name).then(|| Constant {
            path: file.path.clone(),
            line,
            name: name.to_owned(),
            value,
        })
    };
    file.lines().filter_map(constant).collect()
}

fn is_constant_name(name: &str) -> bool {
    name.len() > 2 && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// Reads `4,194,304`, `4_194_304`, `0x10`, `1 << 20`, `2 * 1024`. Constants with other expressions (`None`) are not compared.
fn number(text: &str) -> Option<u128> {
    if let Some((left, right)) = text.split_once("<<") {
        return number(left.trim())?.checked_shl(u32::try_from(number(right.trim())?).ok()?);
    }
    if text.contains('*') {
        return text
            .split('*')
            .map(|part| number(part.trim()))
            .try_fold(1u128, |product, n| product.checked_mul(n?));
    }
    let plain: String = text.chars().filter(|c| !matches!(c, ',' | '_')).collect();
    let plain = plain.trim_end_matches(['L', 'l']);
    match plain.strip_prefix("0x") {
        Some(hex) => u128::from_str_radix(hex, 16).ok(),
        None => plain.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_in_every_notation() {
        let cases =
            [("4,194,304", Some(4_194_304)), ("4_194_304", Some(4_194_304)), ("4 << 20", Some(4_194_304))];
        let more = [
            ("0x82F63B78", Some(0x82F6_3B78)),
            ("4 * 1024L", Some(4096)),
            ("other()", None),
            ("1 << 200", None),
        ];
        for (text, expect) in cases.into_iter().chain(more) {
            assert_eq!(number(text), expect, "{text}");
        }
    }

    #[test]
    fn a_java_or_rust_constant_that_differs_is_found() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let rust = file("crates/a/src/lib.rs", "pub const FRAME_MAX: usize = 1 << 4;");
        let java = file("agent/A.java", "    static final int FRAME_MAX = 17;");
        let doc = file("docs/format/a.md", "| `FRAME_MAX` | 16 | why |");
        let tree = Tree { root: ".".into(), files: vec![rust, java, doc] };
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("agent/A.java", 1));
    }
}
