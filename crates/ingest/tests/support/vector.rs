//! Reads `testdata/wire/*.vec` (format: `testdata/README.md`).

use std::path::Path;
use std::str::FromStr;

pub struct Case {
    pub name: String,
    /// Keys in the order of the file. A key may be repeated.
    pub keys: Vec<(String, String)>,
}

pub fn read(file: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/wire").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("case ") {
            cases.push(Case { name: name.to_owned(), keys: Vec::new() });
        } else {
            let (key, value) =
                line.split_once(" =").unwrap_or_else(|| panic!("{file}: line without \" =\": {line}"));
            let value = value.strip_prefix(' ').unwrap_or(value);
            let case = cases.last_mut().unwrap();
            case.keys.push((key.to_owned(), value.to_owned()));
        }
    }
    assert!(!cases.is_empty(), "{file} has no case");
    cases
}

impl Case {
    pub fn text(&self, key: &str) -> &str {
        let found = self.keys.iter().find(|(k, _)| k == key);
        found
            .map(|(_, value)| value.as_str())
            .unwrap_or_else(|| panic!("case {} has no key {key}", self.name))
    }

    pub fn number<T: FromStr>(&self, key: &str) -> T {
        number(self.text(key))
    }

    pub fn bytes(&self, key: &str) -> Vec<u8> {
        unhex(self.text(key))
    }

    pub fn all(&self, key: &str) -> Vec<&str> {
        self.keys.iter().filter(|(k, _)| k == key).map(|(_, value)| value.as_str()).collect()
    }

    /// Compares all values of a key.
    pub fn expect(&self, key: &str, got: &[&str]) {
        assert_eq!(self.all(key), got, "{}: {key}", self.name);
    }
}

pub fn number<T: FromStr>(text: &str) -> T {
    text.parse().ok().unwrap_or_else(|| panic!("not a number: {text}"))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "odd number of hexadecimal digits: {text}");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
