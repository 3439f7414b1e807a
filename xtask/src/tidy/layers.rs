//! Crates and modules depend only downwards: on the crates that ARCHITECTURE.md allows, and not on a module of a layer above.

use super::Finding;
use super::tree::{File, Tree};

/// The crates of this workspace that a crate may depend on. Dependencies of tests are not limited.
const CRATES: [(&str, &[&str]); 13] = [
    ("model", &[]),
    ("chunk", &["model"]),
    ("ingest", &["model"]),
    ("query", &["model", "chunk"]),
    ("store", &["model", "chunk"]),
    ("drivers", &["store"]),
    ("api", &["model", "chunk"]),
    ("lab", &["model", "ingest"]),
    ("attach", &["api"]),
    ("backup", &["store"]),
    ("server", &["api", "drivers", "ingest", "query", "store", "model", "chunk"]),
    ("simulator", &["server", "drivers", "ingest", "store", "model"]),
    ("cli", &["api", "attach", "backup", "chunk", "ingest", "lab", "model", "query", "server", "store"]),
];

/// Sources and a path that they must not name.
const MODULES: [(&str, &str, &str); 2] = [
    ("crates/cli/src/client", "crate::command", "the HTTP client knows no command"),
    ("crates/cli/src/command/", "tacho_server::http", "commands use the server's API, not its HTTP handlers"),
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().flat_map(|file| dependencies(file).into_iter().chain(imports(file))).collect()
}

fn dependencies(file: &File) -> Vec<Finding> {
    let Some(name) = file.krate().map(|path| path.trim_start_matches("crates/")) else { return vec![] };
    if file.path != format!("crates/{name}/Cargo.toml") {
        return vec![];
    }
    let finding = |message: String| Finding { path: file.path.clone(), line: 0, message };
    let Some((_, allowed)) = CRATES.iter().find(|(known, _)| *known == name) else {
        return vec![finding("the crate is missing in xtask/src/tidy/layers.rs".to_owned())];
    };
    let manifest: toml::Table = toml::from_str(&file.text).unwrap_or_default();
    let uses = manifest.get("dependencies").and_then(|table| table.as_table()).into_iter().flatten();
    let ours = uses.filter_map(|(dependency, _)| dependency.strip_prefix("tacho-"));
    let wrong = ours.filter(|dependency| !allowed.contains(dependency));
    wrong
        .map(|dependency| finding(format!("{name} must not depend on {dependency} (ARCHITECTURE.md)")))
        .collect()
}

fn imports(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, path, why) in MODULES.iter().filter(|(sources, ..)| file.path.starts_with(sources)) {
        for (line, _) in file.lines().filter(|(_, text)| text.contains(path)) {
            findings.push(Finding { path: file.path.clone(), line, message: format!("{path}: {why}") });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        let findings = check(&Tree { root: ".".into(), files: vec![file] });
        findings.into_iter().map(|finding| format!("{}: {}", finding.line, finding.message)).collect()
    }

    #[test]
    fn a_crate_depends_only_on_allowed_crates() {
        let text = "[dependencies]\ntacho-model.workspace = true\ntacho-query = { workspace = true }\ntoml = \"1\"\n\
                    [dev-dependencies]\ntacho-drivers.workspace = true\n";
        assert_eq!(
            found("crates/store/Cargo.toml", text),
            ["0: store must not depend on query (ARCHITECTURE.md)"]
        );
        assert_eq!(found("crates/cli/Cargo.toml", text), Vec::<String>::new());
        assert_eq!(
            found("crates/other/Cargo.toml", ""),
            ["0: the crate is missing in xtask/src/tidy/layers.rs"]
        );
    }

    #[test]
    fn modules_do_not_name_modules_of_a_layer_above() {
        let text = "use std::io;\nuse crate::command::ask;\n";
        assert_eq!(
            found("crates/cli/src/client/tls.rs", text),
            ["2: crate::command: the HTTP client knows no command"]
        );
        assert_eq!(found("crates/cli/src/command/trace.rs", text), Vec::<String>::new());
        assert_eq!(found("crates/cli/src/command/trace.rs", "tacho_server::http::x()").len(), 1);
    }
}
