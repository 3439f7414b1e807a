//! `cargo xtask licences`: do the delivered crates and npm packages have an allowed licence?
//!
//! `deny.toml` lists the licences that are allowed for all packages, and those that are allowed for one crate. The check
//! covers the crates of the binary with all its features, of its build scripts and of its macros (`cargo metadata`), and the
//! packages of the page and of the Node.js agent that are not only for development (`package-lock.json`).
//! `scripts/test_sbom.py` checks the libraries of the Java agent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

/// The package whose dependencies are in the binary.
const BINARY: &str = "tacho-cli";
/// The features of the binary that are off by default.
const FEATURES: &str = "tacho-cli/parquet,tacho-cli/s3";
const LOCK_FILES: [&str; 2] = ["ui/package-lock.json", "agent/node/package-lock.json"];

/// A delivered package and its licence expression (SPDX).
#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    /// `None`: an npm package, whose version is in the lock file.
    version: Option<String>,
    licence: Option<String>,
}

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// Licences that are allowed for one crate.
#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: BTreeSet<String>,
}

impl Licenses {
    fn allows(&self, package: &str, licence: &str) -> bool {
        let is_excepted =
            |exception: &Exception| exception.name == package && exception.allow.contains(licence);
        self.allow.contains(licence) || self.exceptions.iter().any(is_excepted)
    }
}

pub fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask is not in a workspace")?;
    let deny: Deny =
        toml::from_str(&read(root, "deny.toml")?).map_err(|error| format!("deny.toml: {error}"))?;
    let mut packages = crates(&metadata(root)?)?;
    for file in LOCK_FILES {
        let lock = serde_json::from_str(&read(root, file)?).map_err(|error| format!("{file}: {error}"))?;
        packages.extend(npm(file, &lock)?);
    }
    let refused: Vec<String> =
        packages.iter().filter_map(|package| refusal(package, &deny.licenses)).collect();
    if !refused.is_empty() {
        return Err(format!(
            "licences that are missing, or that deny.toml does not allow:\n  {}",
            refused.join("\n  ")
        ));
    }
    println!("licences: {} packages have allowed licences", packages.len());
    Ok(())
}

fn read(root: &Path, file: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))
}

fn refusal(package: &Package, licenses: &Licenses) -> Option<String> {
    let Package { name, version, licence } = package;
    let allows = |licence: &str| licenses.allows(name, licence);
    let reason = match licence.as_deref() {
        None => "no licence is stated",
        Some(licence) if is_allowed(licence, &allows) == Some(true) => return None,
        Some(licence) => licence,
    };
    let version = version.iter().map(|version| format!(" {version}")).collect::<String>();
    Some(format!("{name}{version}: {reason}"))
}

fn metadata(root: &Path) -> Result<Value, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(&cargo);
    command.args(["metadata", "--format-version", "1", "--locked", "--features", FEATURES]).current_dir(root);
    let output = command.output().map_err(|error| format!("{cargo}: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// The crates that the binary may contain on any platform, and those that build scripts and macros use.
fn crates(metadata: &Value) -> Result<Vec<Package>, String> {
    let list = |value: &Value, name: &str| {
        let list = value.get(name).and_then(Value::as_array).cloned();
        list.ok_or_else(|| format!("cargo metadata: {name} is missing"))
    };
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let packages = list(metadata, "packages")?;
    let by_id: BTreeMap<String, &Value> =
        packages.iter().filter_map(|package| Some((text(package, "id")?, package))).collect();
    let nodes = list(metadata.get("resolve").unwrap_or(&Value::Null), "nodes")?;
    let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in &nodes {
        let is_delivered = |dependency: &&Value| {
            let kinds = list(dependency, "dep_kinds").unwrap_or_default();
            kinds.iter().any(|kind| kind.get("kind").and_then(Value::as_str) != Some("dev"))
        };
        let needed = list(node, "deps")?;
        let needed = needed.iter().filter(is_delivered).filter_map(|dependency| text(dependency, "pkg"));
        needs.insert(text(node, "id").unwrap_or_default(), needed.collect());
    }
    let is_binary = |package: &&&Value| text(package, "name").as_deref() == Some(BINARY);
    let binary = by_id.values().find(is_binary).and_then(|package| text(package, "id"));
    let mut open = vec![binary.ok_or_else(|| format!("cargo metadata: no package {BINARY}"))?];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if seen.insert(id.clone()) {
            open.extend(needs.get(&id).into_iter().flatten().cloned());
        }
    }
    let package = |id: &String| {
        let package = by_id.get(id)?;
        let (name, version) = (text(package, "name")?, Some(text(package, "version")?));
        Some(Package { name, version, licence: text(package, "license") })
    };
    Ok(seen.iter().filter_map(package).collect())
}

/// Skips packages that are only for development.
fn npm(file: &str, lock: &Value) -> Result<Vec<Package>, String> {
    let packages = lock.get("packages").and_then(Value::as_object);
    let packages = packages.ok_or_else(|| format!("{file}: packages are missing"))?;
    let is_delivered =
        |(_, package): &(&String, &Value)| package.get("dev").and_then(Value::as_bool) != Some(true);
    let package = |(path, package): (&String, &Value)| Package {
        name: format!("{file}: {}", if path.is_empty() { "the package itself" } else { path }),
        version: None,
        licence: package.get("license").and_then(Value::as_str).map(str::to_owned),
    };
    Ok(packages.iter().filter(is_delivered).map(package).collect())
}

/// Whether a licence expression (SPDX 2.3, annex D) can be satisfied with allowed licences. `/` means OR in older crates.
/// `None` if the expression is empty or malformed.
fn is_allowed(expression: &str, allows: &dyn Fn(&str) -> bool) -> Option<bool> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let result = any_of(&mut words, allows)?;
    words.peek().is_none().then_some(result)
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allows: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut result = all_of(words, allows)?;
    while words.next_if_eq(&"OR").is_some() {
        result |= all_of(words, allows)?;
    }
    Some(result)
}

fn all_of(words: &mut Words<'_>, allows: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut result = one(words, allows)?;
    while words.next_if_eq(&"AND").is_some() {
        result &= one(words, allows)?;
    }
    Some(result)
}

fn one(words: &mut Words<'_>, allows: &dyn Fn(&str) -> bool) -> Option<bool> {
    if words.next_if_eq(&"(").is_some() {
        let result = any_of(words, allows)?;
        return words.next_if_eq(&")").map(|_| result);
    }
    let mut licence = words.next()?.to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        licence = format!("{licence} WITH {}", words.next()?);
    }
    Some(allows(&licence))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn licenses() -> Licenses {
        let licences = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Licenses {
            allow: licences(&["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]),
            exceptions: vec![Exception { name: "excepted".to_owned(), allow: licences(&["CC0-1.0"]) }],
        }
    }

    #[test]
    fn an_expression_is_allowed_if_allowed_licences_satisfy_it() {
        for (expression, expect) in [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("MIT OR GPL-3.0", Some(true)),
            ("GPL-3.0/MIT", Some(true)),
            ("MIT AND GPL-3.0", Some(false)),
            ("GPL-3.0 OR MIT AND Apache-2.0", Some(true)),
            ("(GPL-3.0 OR MIT) AND Apache-2.0", Some(true)),
            ("(GPL-3.0 OR MIT) AND LGPL-2.1", Some(false)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("MIT WITH LLVM-exception", Some(false)),
            ("", None),
            ("(MIT", None),
            ("MIT MIT", None),
        ] {
            let allows = |licence: &str| licenses().allows("a", licence);
            assert_eq!(is_allowed(expression, &allows), expect, "{expression}");
        }
    }

    #[test]
    fn a_package_without_a_readable_licence_is_refused() {
        let refused = |licence: Option<&str>| {
            let (name, version) = ("a".to_owned(), Some("1".to_owned()));
            refusal(&Package { name, version, licence: licence.map(str::to_owned) }, &licenses())
        };
        assert_eq!(refused(Some("MIT")), None);
        assert_eq!(refused(Some("GPL-3.0")).as_deref(), Some("a 1: GPL-3.0"));
        assert_eq!(refused(Some("(MIT")).as_deref(), Some("a 1: (MIT"));
        assert_eq!(refused(None).as_deref(), Some("a 1: no licence is stated"));
    }

    #[test]
    fn an_exception_allows_a_licence_for_one_crate() {
        let refused = |name: &str| {
            let licence = Some("CC0-1.0".to_owned());
            refusal(&Package { name: name.to_owned(), version: None, licence }, &licenses())
        };
        assert_eq!(refused("excepted"), None);
        assert_eq!(refused("another").as_deref(), Some("another: CC0-1.0"));
    }

    #[test]
    fn dependencies_of_development_are_not_delivered() {
        let lock = r#"{"packages": {"": {"license": "MIT"}, "node_modules/a": {"license": "ISC"},
            "node_modules/b": {"dev": true, "license": "AGPL-3.0"}, "node_modules/c": {}}}"#;
        let found = npm("lock", &serde_json::from_str(lock).unwrap()).unwrap();
        let found: Vec<_> = found.iter().map(|p| (p.name.as_str(), p.licence.as_deref())).collect();
        let itself = ("lock: the package itself", Some("MIT"));
        assert_eq!(found, [itself, ("lock: node_modules/a", Some("ISC")), ("lock: node_modules/c", None)]);
    }

    #[test]
    fn crates_of_tests_are_not_delivered() {
        let metadata = r#"{"packages": [
            {"id": "1", "name": "tacho-cli", "version": "1.0.0", "license": "Apache-2.0"},
            {"id": "2", "name": "used", "version": "2.0.0", "license": "MIT"},
            {"id": "3", "name": "of-test", "version": "3.0.0", "license": null}],
            "resolve": {"nodes": [
                {"id": "1", "deps": [{"pkg": "2", "dep_kinds": [{"kind": null}]}, {"pkg": "3", "dep_kinds": [{"kind": "dev"}]}]},
                {"id": "2", "deps": []}, {"id": "3", "deps": []}]}}"#;
        let found = crates(&serde_json::from_str(metadata).unwrap()).unwrap();
        let versions: Vec<_> =
            found.iter().map(|package| (package.name.as_str(), package.version.as_deref())).collect();
        assert_eq!(versions, [("tacho-cli", Some("1.0.0")), ("used", Some("2.0.0"))]);
    }
}
