//! Limits the lengths of lines and files of Rust, Java, TypeScript and JavaScript, and of functions of Rust and Java. Refuses
//! white space at the end of a line.

use super::Finding;
use super::tree::{File, Tree};

const CODE: [&str; 6] = ["rs", "java", "ts", "tsx", "js", "mjs"];
/// Limit on the characters of a line. The formatters break code at this length or earlier (rustfmt at 110), but not comments.
const LINE_CHARS_MAX: usize = 130;
const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| file.has_ending(&CODE)).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let finding = |line, message| Finding { path: file.path.clone(), line, message };
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        let chars = line.chars().count();
        if chars > LINE_CHARS_MAX {
            findings.push(finding(number, format!("line of {chars} characters, at most {LINE_CHARS_MAX}")));
        }
        if line.ends_with([' ', '\t']) {
            findings.push(finding(number, "trailing white space".to_owned()));
        }
    }
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        findings.push(finding(0, format!("file of {lines} lines, at most {FILE_LINES_MAX}")));
    }
    for (number, name, lines) in functions(file) {
        if lines > FUNCTION_LINES_MAX {
            findings
                .push(finding(number, format!("`{name}` has {lines} lines, at most {FUNCTION_LINES_MAX}")));
        }
    }
    findings
}

/// Line, name and number of lines of each function. The code must be formatted. A function ends at the first line that is
/// indented like the function's first line and begins with `}` or ends with `;`. This can be the first line itself.
fn functions(file: &File) -> Vec<(usize, String, usize)> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(file, line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let end = lines[at..].iter().position(|l| {
            let trimmed = l.trim_start();
            l.len() - trimmed.len() == indent && (trimmed.starts_with('}') || l.trim_end().ends_with(';'))
        });
        if let Some(length) = end {
            found.push((at + 1, name, length + 1));
        }
    }
    found
}

fn function_name(file: &File, line: &str) -> Option<String> {
    let trimmed = line.trim_start();
    if file.has_ending(&["rs"]) {
        let after = trimmed.split_once("fn ")?;
        let heads = ["pub", "pub(crate)", "pub(super)", "async", "const", "unsafe", "extern"];
        if !after.0.split_whitespace().all(|word| heads.contains(&word)) {
            return None;
        }
        return Some(after.1.split(['(', '<']).next()?.to_owned());
    }
    if file.has_ending(&["java"]) {
        let modifiers = ["public ", "private ", "protected ", "static ", "final ", "synchronized "];
        let is_method = modifiers.iter().any(|m| trimmed.starts_with(m))
            && trimmed.contains('(')
            && !trimmed.contains(" class ")
            && !trimmed.contains(" record ")
            && !trimmed.contains('=');
        return is_method
            .then(|| trimmed.split('(').next().unwrap_or("").rsplit(' ').next().unwrap_or("").to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expect: &[(usize, &str, usize)]) {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        let found = functions(&file);
        let found: Vec<_> = found.iter().map(|(line, name, lines)| (*line, name.as_str(), *lines)).collect();
        assert_eq!(found, expect, "{path}");
    }

    #[test]
    fn functions_are_measured_to_their_closing_brace() {
        check(
            "a.rs",
            "impl A {\n    pub fn f(&self) {\n        if x {\n        }\n    }\n}\n",
            &[(2, "f", 4)],
        );
        check("a.rs", "fn main() {\n}\n", &[(1, "main", 2)]);
        check(
            "A.java",
            "class A {\n    private static int f(int a) {\n        return a;\n    }\n}\n",
            &[(2, "f", 3)],
        );
    }
}
