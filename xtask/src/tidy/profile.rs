//! The release profile must keep its settings: `lto` and `codegen-units` as decided in docs/adr/0015, `strip` as explained in
//! `Cargo.toml`. A profile that is changed by accident would only be noticed by the size of the binary, which no test builds.

use super::Finding;
use super::tree::Tree;

const FILE: &str = "Cargo.toml";
const WANTED: &str = "strip = \"debuginfo\"\nlto = \"fat\"\ncodegen-units = 1\n";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let text = tree.files.iter().find(|file| file.path == FILE).map_or("", |file| &file.text);
    let parse = |text: &str| toml::from_str::<toml::Table>(text).unwrap_or_default();
    let manifest = parse(text);
    let profile = manifest.get("profile").and_then(|profiles| profiles.get("release"));
    let wanted = parse(WANTED);
    let wrong =
        wanted.iter().filter(|(name, value)| profile.and_then(|profile| profile.get(name)) != Some(*value));
    let message = |name: &str| {
        format!("[profile.release] must have this {name}: {WANTED:?} (docs/adr/0015, Cargo.toml)")
    };
    wrong.map(|(name, _)| Finding { path: FILE.to_owned(), line: 0, message: message(name) }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::File;
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let file = File { path: FILE.to_owned(), text: text.to_owned() };
        let findings = check(&Tree { root: ".".into(), files: vec![file] });
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn each_missing_or_other_setting_is_a_finding() {
        let good = "[profile.release]\nstrip = \"debuginfo\"\nlto = \"fat\"\ncodegen-units = 1\n";
        assert_eq!(found(good), Vec::<String>::new());
        for (from, to, named) in [
            ("strip = \"debuginfo\"\n", "", "strip"),
            ("\"fat\"", "\"thin\"", "lto"),
            ("\"fat\"", "true", "lto"),
            ("units = 1", "units = 16", "codegen-units"),
        ] {
            let messages = found(&good.replace(from, to));
            assert_eq!(messages.len(), 1, "{to}");
            assert!(messages[0].contains(&format!("must have this {named}:")), "{messages:?}");
        }
        assert_eq!(found("[profile.dev]\nlto = \"fat\"\n").len(), 3);
    }
}
