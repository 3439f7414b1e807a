//! Writes the recommended section to a configuration file, whose other text is kept.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tacho_api::replace::replace;
use tacho_model::Labels;
use tacho_server::config;
use tacho_store::policy::Policies;

use crate::failure::Failure;

/// The marker lines before and after a section of this command. There is one section per selector.
const BEGIN: &str = "# begin of what tacho tune wrote";
const END: &str = "# end of what tacho tune wrote";

/// A configuration file that has valid rules, or does not exist yet.
pub struct File {
    path: PathBuf,
    text: String,
}

impl File {
    /// Reads the file and checks its rules. A missing file counts as empty.
    ///
    /// # Errors
    /// When the file cannot be read, or its rules are not valid.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => String::new(),
            Err(e) => return Err(Failure::usage(format!("cannot read {}: {e}", path.display()))),
        };
        let hint = || format!("fix {} first, or name another file with --write", path.display());
        config::rules(path, &text).map_err(|e| Failure::usage(e).hint(hint()))?;
        Ok(Self { path: path.into(), text })
    }

    /// Replaces the section of an earlier run for the same selector, or appends a section. The file is replaced atomically and
    /// durably. Returns all rules of the changed file, and the number of `[[chunks]]` rules before the new one.
    pub fn put(&self, section: &str, matches: &str) -> Result<(Policies, usize), Failure> {
        let (before, after) = around(&self.text, matches);
        let place = config::rules(&self.path, &before).map_err(Failure::new)?.chunks.len();
        let after = format!("{before}{BEGIN}\n{section}{END}\n{after}");
        let policies = config::rules(&self.path, &after).map_err(Failure::new)?;
        let cannot = |e: std::io::Error| Failure::new(format!("cannot write {}: {e}", self.path.display()));
        replace(&self.path, after.as_bytes()).map_err(cannot)?;
        Ok((policies, place))
    }
}

/// Number of these series to which an earlier rule applies. `place` is the number of `[[chunks]]` rules before the new one.
pub fn decided_before<'a>(
    policies: &Policies,
    place: usize,
    series: impl Iterator<Item = &'a Labels>,
) -> usize {
    let others = policies.chunks.get(..place).unwrap_or_default();
    series.filter(|labels| others.iter().any(|rule| rule.accepts(labels))).count()
}

/// The text before and after the section of a selector. If there is none, a new section belongs at the end. `matches` is the
/// `match` line of the section.
fn around(text: &str, matches: &str) -> (String, String) {
    let mut from = 0;
    while let Some(begin) = text[from..].find(BEGIN).map(|at| from + at) {
        let Some(end) = text[begin..].find(END).map(|at| begin + at + END.len()) else { break };
        if text[begin..end].lines().any(|line| line == matches) {
            let rest = text[end..].strip_prefix('\n').unwrap_or(&text[end..]);
            return (text[..begin].to_owned(), rest.to_owned());
        }
        from = end;
    }
    let gap = match text {
        "" => "",
        _ if text.ends_with("\n\n") => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    (format!("{text}{gap}"), String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(selector: &str, values: usize) -> String {
        format!("[[chunks]]\nmatch = '{selector}'\nvalues = {values}\n")
    }

    #[test]
    fn a_section_replaces_the_one_of_the_same_selector_and_keeps_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tacho.toml");
        let put = |selector: &str, values: usize| {
            let matches = format!("match = '{selector}'");
            File::open(&path).unwrap().put(&section(selector, values), &matches).unwrap();
            std::fs::read_to_string(&path).unwrap()
        };
        let block = |selector: &str, values: usize| format!("{BEGIN}\n{}{END}\n", section(selector, values));
        assert_eq!(put("{a=\"1\"}", 128), block("{a=\"1\"}", 128));
        let own = "data = 'x'";
        std::fs::write(&path, own).unwrap();
        assert_eq!(put("{a=\"1\"}", 128), format!("{own}\n\n{}", block("{a=\"1\"}", 128)));
        put("{a=\"2\"}", 256);
        let text = put("{a=\"1\"}", 512);
        assert_eq!(text, format!("{own}\n\n{}\n{}", block("{a=\"1\"}", 512), block("{a=\"2\"}", 256)));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_invalid_configuration_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tacho.toml");
        for (text, cause) in [("data =", "line 1"), (&*section("{", 128), "rule 1 of [[chunks]]: match")] {
            std::fs::write(&path, text).unwrap();
            let failure = File::open(&path).map(|_| ()).unwrap_err().to_string();
            assert!(failure.contains(cause) && failure.contains("tacho.toml"), "{failure}");
        }
    }

    #[test]
    fn series_with_an_earlier_rule_are_counted() {
        let text = [section("{job=\"a\"}", 128), section("{job=~\".+\"}", 256)].concat();
        let policies = config::rules(Path::new("tacho.toml"), &text).unwrap();
        let labels = ["a", "b", "a"].map(|job| Labels::new([("__name__", "m"), ("job", job)]).unwrap());
        let of = |place: usize| decided_before(&policies, place, labels.iter());
        assert_eq!((of(0), of(1), of(2)), (0, 2, 3));
    }
}
