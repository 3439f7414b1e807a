//! `cargo xtask sbom [--features F]`: which crates does the binary contain? Prints the answer as a CycloneDX document.
//!
//! `cargo tree` names the crates of the binary with their licences, and `Cargo.lock` has their checksums. Crates that only build
//! scripts, macros or tests use are omitted. `make sbom` also writes the documents of the agents and the page
//! (docs/guide/security.md).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};

/// The package with the binary, and the name of the binary.
const PACKAGE: &str = "tacho-cli";
const BINARY: &str = "tacho";
/// Separates the parts of a line of `cargo tree`.
const SEPARATOR: char = '\t';

#[derive(Debug, PartialEq, Eq)]
struct Crate {
    name: String,
    version: String,
    /// Member of this workspace.
    is_ours: bool,
    /// SPDX expression.
    licence: String,
    repository: String,
    needs: BTreeSet<String>,
}

/// Name and version, separated by a blank.
type Id = String;

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    /// SHA-256 of the archive of the crate.
    checksum: Option<String>,
}

pub fn run(args: &[String]) -> Result<(), String> {
    let features = match args {
        [] => None,
        [flag, features] if flag == "--features" => Some(features.as_str()),
        _ => return Err("usage: cargo xtask sbom [--features F]".to_owned()),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask is not in a workspace")?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).map_err(|e| format!("Cargo.lock: {e}"))?;
    let lock: Lock = toml::from_str(&lock).map_err(|error| format!("Cargo.lock: {error}"))?;
    let document = document(&crates(&tree(root, features)?)?, &lock)?;
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    println!("{text}");
    Ok(())
}

fn tree(root: &Path, features: Option<&str>) -> Result<String, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(&cargo);
    command.args(["tree", "--locked", "--package", PACKAGE, "--edges", "normal,no-proc-macro"]);
    command.args(["--prefix", "depth", "--charset", "ascii"]);
    command.args(["--format", &format!("{{p}}{SEPARATOR}{{l}}{SEPARATOR}{{r}}{SEPARATOR}")]);
    if let Some(features) = features {
        command.args(["--features", features]);
    }
    let output = command.current_dir(root).output().map_err(|error| format!("{cargo}: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("cargo tree: {error}"))
}

/// The crates in the lines of `cargo tree`. The crates that a crate needs follow its first line, one level deeper.
fn crates(tree: &str) -> Result<BTreeMap<Id, Crate>, String> {
    let mut crates: BTreeMap<Id, Crate> = BTreeMap::new();
    let mut path: Vec<Id> = Vec::new();
    for line in tree.lines() {
        let (depth, found) = read_line(line).ok_or_else(|| format!("cargo tree: unknown line {line:?}"))?;
        let id = format!("{} {}", found.name, found.version);
        path.truncate(depth);
        if let Some(above) = path.last().and_then(|above| crates.get_mut(above)) {
            above.needs.insert(id.clone());
        }
        path.push(id.clone());
        crates.entry(id).or_insert(found);
    }
    Ok(crates)
}

/// Depth and crate of a line. The line has the depth with the crate (`2clap_builder v4.6.7`), the licence, the repository, and
/// ` (*)` if `cargo tree` has already listed the crates that this crate needs.
fn read_line(line: &str) -> Option<(usize, Crate)> {
    let mut parts = line.split(SEPARATOR);
    let (package, licence, repository) = (parts.next()?, parts.next()?, parts.next()?);
    let name = package.trim_start_matches(|c: char| c.is_ascii_digit());
    let depth = package.get(..package.len() - name.len())?.parse().ok()?;
    let (name, version) = name.split_once(" v")?;
    let (version, is_ours) = match version.split_once(" (") {
        Some((version, source)) => (version, source.starts_with('/')),
        None => (version, false),
    };
    let found = Crate {
        name: name.to_owned(),
        version: version.to_owned(),
        is_ours,
        // Older crates separate alternatives by a slash, which is not SPDX.
        licence: licence.replace('/', " OR "),
        repository: repository.to_owned(),
        needs: BTreeSet::new(),
    };
    Some((depth, found))
}

/// The document (<https://cyclonedx.org/docs/1.6/json/>). It has no time and no random number: equal crates give an equal
/// document.
fn document(crates: &BTreeMap<Id, Crate>, lock: &Lock) -> Result<Value, String> {
    let is_root = |found: &Crate| found.name == PACKAGE;
    let root = crates.values().find(|found| is_root(found)).ok_or("cargo tree: no package tacho-cli")?;
    let mut components = Vec::new();
    for found in crates.values().filter(|found| !is_root(found)) {
        components.push(component(found, lock)?);
    }
    let dependency = |(id, found): (&Id, &Crate)| json!({"ref": id, "dependsOn": found.needs});
    let dependencies: Vec<Value> = crates.iter().map(dependency).collect();
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": format!("{} {}", root.name, root.version),
                "name": BINARY,
                "version": root.version,
                "licenses": [{"expression": root.licence}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(found: &Crate, lock: &Lock) -> Result<Value, String> {
    let Crate { name, version, is_ours, licence, repository, .. } = found;
    if licence.is_empty() {
        return Err(format!("{name} {version}: no licence is stated"));
    }
    let mut component = json!({
        "type": "library",
        "bom-ref": format!("{name} {version}"),
        "name": name,
        "version": version,
        "scope": "required",
        "licenses": [{"expression": licence}],
    });
    // Our crates are not in a registry.
    if !is_ours {
        let locked = lock.package.iter().find(|locked| locked.name == *name && locked.version == *version);
        let checksum = locked.and_then(|locked| locked.checksum.as_deref());
        let checksum = checksum.ok_or_else(|| format!("Cargo.lock: no checksum of {name} {version}"))?;
        component["purl"] = json!(format!("pkg:cargo/{name}@{}", version.replace('+', "%2B")));
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        if !repository.is_empty() {
            component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
        }
    }
    Ok(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0tacho-cli v0.1.0 (/home/me/tachograph/crates/cli)\tApache-2.0\t\t
1clap v4.6.7\tMIT OR Apache-2.0\thttps://github.com/clap-rs/clap\t
2utf8parse v0.2.2+a\tApache-2.0/MIT\t\t
1tacho-store v0.1.0 (/home/me/tachograph/crates/store)\tApache-2.0\t\t
2clap v4.6.7\tMIT OR Apache-2.0\thttps://github.com/clap-rs/clap\t (*)
";

    fn lock() -> Lock {
        toml::from_str(
            r#"[[package]]
            name = "clap"
            version = "4.6.7"
            checksum = "aa"
            [[package]]
            name = "utf8parse"
            version = "0.2.2+a"
            checksum = "bb""#,
        )
        .unwrap()
    }

    #[test]
    fn a_document_has_each_crate_with_licence_checksum_and_needs() {
        let document = document(&crates(TREE).unwrap(), &lock()).unwrap();
        assert_eq!(document["metadata"]["component"]["name"], "tacho");
        let [clap, ours, utf8] = &document["components"].as_array().unwrap()[..] else {
            panic!("{document:#}");
        };
        assert_eq!(clap["purl"], "pkg:cargo/clap@4.6.7");
        assert_eq!(clap["hashes"], json!([{"alg": "SHA-256", "content": "aa"}]));
        assert_eq!(clap["licenses"], json!([{"expression": "MIT OR Apache-2.0"}]));
        assert_eq!(clap["externalReferences"][0]["url"], "https://github.com/clap-rs/clap");
        assert_eq!((&ours["name"], &ours["purl"]), (&json!("tacho-store"), &Value::Null));
        assert_eq!(utf8["licenses"], json!([{"expression": "Apache-2.0 OR MIT"}]));
        assert_eq!(utf8["purl"], "pkg:cargo/utf8parse@0.2.2%2Ba");
        let needs = json!([
            {"ref": "clap 4.6.7", "dependsOn": ["utf8parse 0.2.2+a"]},
            {"ref": "tacho-cli 0.1.0", "dependsOn": ["clap 4.6.7", "tacho-store 0.1.0"]},
            {"ref": "tacho-store 0.1.0", "dependsOn": ["clap 4.6.7"]},
            {"ref": "utf8parse 0.2.2+a", "dependsOn": []},
        ]);
        assert_eq!(document["dependencies"], needs);
    }

    #[test]
    fn a_crate_without_licence_or_checksum_is_an_error() {
        let error = |tree: &str| document(&crates(tree).unwrap(), &lock()).unwrap_err();
        assert_eq!(error(&TREE.replace("Apache-2.0/MIT", "")), "utf8parse 0.2.2+a: no licence is stated");
        assert_eq!(error(&TREE.replace("0.2.2+a", "7.0.0")), "Cargo.lock: no checksum of utf8parse 7.0.0");
        assert_eq!(error("0a v1.0.0\t\t\t"), "cargo tree: no package tacho-cli");
        assert_eq!(crates("clap v4").unwrap_err(), "cargo tree: unknown line \"clap v4\"");
    }
}
