//! `probes.json` in the data directory: the rules that apply after a restart. The file is replaced as a whole, durably
//! (`docs/format/probes.md`).

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tacho_ingest::wire::PROBE_RULES_MAX;

use super::Rule;
use crate::versioned;

const VERSION: u32 = 2;
/// Name of the file, and the newest version that this program reads.
pub const NAME: (&str, u32) = ("probes.json", VERSION);

#[derive(Clone, Debug)]
pub(super) struct File(PathBuf);

#[derive(Debug, thiserror::Error)]
#[error("cannot use the rules for probes in {}: {cause}", .path.display())]
pub struct Unusable {
    pub path: PathBuf,
    pub cause: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    rules: Vec<Rule>,
}

impl File {
    pub(super) fn of(data: &Path) -> Self {
        Self(data.join(NAME.0))
    }

    /// The rules in their order. Empty if there is no file.
    pub(super) fn read(&self) -> Result<Vec<Rule>, Unusable> {
        self.rules(versioned::read(&self.0, VERSION))
    }

    fn rules(&self, content: Result<Option<Content>, String>) -> Result<Vec<Rule>, Unusable> {
        let rules = content.and_then(|content| content.map_or(Ok(Vec::new()), check));
        rules.map_err(|cause| Unusable { path: self.0.clone(), cause })
    }

    /// Like [`Self::read`], but does not change the permissions of the file.
    pub(super) fn check(&self) -> Result<(), Unusable> {
        self.rules(versioned::look(&self.0, VERSION)).map(drop)
    }

    pub(super) fn write(&self, rules: &[Rule]) -> io::Result<()> {
        versioned::write(&self.0, &Content { version: VERSION, rules: rules.to_vec() })
    }
}

fn check(Content { rules, .. }: Content) -> Result<Vec<Rule>, String> {
    if rules.len() > PROBE_RULES_MAX {
        return Err(format!("{} rules, at most {PROBE_RULES_MAX} are allowed", rules.len()));
    }
    let mut ids = BTreeSet::new();
    for rule in &rules {
        if rule.id == 0 || rule.id == u64::MAX {
            return Err(format!("the id {} is out of range", rule.id));
        }
        if !ids.insert(rule.id) {
            return Err(format!("the id {} is not unique", rule.id));
        }
        rule.check().map_err(|refused| format!("rule {}: {refused}", rule.id))?;
    }
    Ok(rules)
}

/// The content of a file after it was read and encoded again. For the fuzz targets only.
#[cfg(fuzzing)]
pub fn read_again(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let rules = versioned::parse(bytes, VERSION).and_then(check)?;
    versioned::encode(&Content { version: VERSION, rules }).map_err(|error| error.to_string())
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_ingest::wire::ProbeState;

    fn parse(bytes: &[u8]) -> Result<Vec<Rule>, String> {
        versioned::parse(bytes, VERSION).and_then(check)
    }

    fn rule(id: u64, pattern: &str) -> Rule {
        let (service, pattern) = ("größe".to_owned(), pattern.to_owned());
        let since = 1_763_758_800_000_000_001;
        Rule {
            id,
            service,
            instance: String::new(),
            state: ProbeState::Aggregate,
            pattern,
            since,
            kept: true,
        }
    }

    #[test]
    fn the_golden_file_matches_the_format() {
        let [first, golden] = [
            include_str!("../../../../testdata/probes/version-1.json"),
            include_str!("../../../../testdata/probes/version-2.json"),
        ];
        let described = include_str!("../../../../docs/format/probes.md");
        assert!(
            described.contains(&format!("```json\n{golden}```")),
            "the example in the documentation is not the golden file"
        );
        let rules = vec![Rule { service: "shop".into(), ..rule(3, "com.größe..*") }];
        for file in [first, golden] {
            assert_eq!(parse(file.as_bytes()), Ok(rules.clone()));
        }
        let directory = tempfile::tempdir().unwrap();
        File::of(directory.path()).write(&rules).unwrap();
        assert_eq!(std::fs::read_to_string(directory.path().join("probes.json")).unwrap(), golden);
    }

    #[test]
    fn rules_round_trip() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::of(directory.path());
        assert_eq!(file.read().unwrap(), []);
        for rules in [vec![rule(3, "com.shop..*"), rule(7, "@a.B")], vec![]] {
            file.write(&rules).unwrap();
            assert_eq!(file.read().unwrap(), rules);
        }
        let left: Vec<_> =
            std::fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["probes.json"]);
    }

    #[test]
    fn an_error_names_the_damaged_file_and_the_cause() {
        let one = r#"{"id":1,"state":"on","pattern":"a.*","since":1}"#;
        let content = |rules: &str| format!(r#"{{"version":1,"rules":[{rules}]}}"#);
        let many = vec![one; PROBE_RULES_MAX + 1].join(",");
        let long = format!(r#"{{"id":1,"state":"on","pattern":"{}","since":1}}"#, "a".repeat(1_025));
        for (text, cause) in [
            (String::new(), "EOF while parsing a value at line 1 column 0"),
            (content(one).split_at(40).0.to_owned(), "EOF while parsing"),
            (r#"{"version":3,"probes":[]}"#.to_owned(), "it has version 3, this program knows 1 to 2"),
            (content(&one.replace("on", "maybe")), "state \"maybe\" is not on, off or aggregate at line 1"),
            (content(&one.replace("\"since\"", "\"sinse\"")), "unknown field `sinse`"),
            (content(&format!("{one},{one}")), "the id 1 is not unique"),
            (content(&many), "1001 rules, at most 1000 are allowed"),
            (content(&long), "rule 1: pattern has 1025 bytes, at most 1024 are allowed"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("probes.json");
            std::fs::write(&path, &text).unwrap();
            let error = File::of(directory.path()).read().unwrap_err().to_string();
            assert!(error.contains(cause) && error.contains(&path.display().to_string()), "{error}");
        }
        assert_eq!(parse(content(one).as_bytes()).map(|rules| rules.len()), Ok(1));
    }
}
