//! Why does a start refuse a directory, and what can an operator do? One message has all reasons and all remedies, so that the
//! next start is not refused because of a reason that this start could have found.

use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Limit on the reasons in a message. Further ones are only counted.
const NAMED_MAX: usize = 10;

#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// Missing parts, and for each the file by which an operator permits the start without the part.
    missing: Vec<(String, PathBuf)>,
    /// Faults that no such file permits. Their messages name the remedies.
    faults: Vec<Error>,
}

impl Refusal {
    pub fn missing(&mut self, what: String, permission: PathBuf) {
        self.missing.push((what, permission));
    }

    pub fn fault(&mut self, error: Error) {
        self.faults.push(error);
    }

    pub const fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.faults.is_empty()
    }

    pub fn merge(&mut self, other: Self) {
        self.missing.extend(other.missing);
        self.faults.extend(other.faults);
    }

    /// # Errors
    /// If there is a reason to refuse the directory: `Corrupt`, or the fault itself if it is the only reason.
    pub fn check(&self, directory: &Path) -> Result<()> {
        let message = match (&self.missing[..], &self.faults[..]) {
            ([], []) => return Ok(()),
            ([], [fault]) => return Err(fault.clone()),
            ([], faults) => of_faults(faults),
            (missing, []) => of_missing(missing),
            (missing, faults) => format!("{}. Also: {}", of_faults(faults), of_missing(missing)),
        };
        Err(Error::corrupt(message).with("path", directory.display()))
    }
}

fn of_missing(missing: &[(String, PathBuf)]) -> String {
    let mut permissions: Vec<String> = missing.iter().map(|(_, path)| path.display().to_string()).collect();
    permissions.sort_unstable();
    permissions.dedup();
    let (parts, files) = match missing {
        [_] => ("part", "an empty file"),
        _ if permissions.len() == 1 => ("parts", "an empty file"),
        _ => ("parts", "the empty files"),
    };
    format!(
        "{}. Put the missing files back, or, if this directory is a copy that was made while a server used the original, copy \
         all of it again while no server runs. To start without the missing {parts}, make {files} {}",
        shortened(missing.iter().map(|(what, _)| what.clone()).collect(), "; "),
        permissions.join(" and ")
    )
}

fn of_faults(faults: &[Error]) -> String {
    shortened(faults.iter().map(ToString::to_string).collect(), "; ")
}

/// The first items of a list as text, and the number of the others.
pub fn shortened(mut items: Vec<String>, separator: &str) -> String {
    let more = match items.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!("{separator}and {more} more"),
    };
    items.truncate(NAMED_MAX);
    items.join(separator) + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_each_reason_and_each_remedy_once() {
        let mut refusal = Refusal::default();
        let message = |refusal: &Refusal| refusal.check(Path::new("/d")).unwrap_err().to_string();
        assert!(refusal.check(Path::new("/d")).is_ok() && refusal.is_empty());
        refusal.fault(Error::invalid("journal has another name: rename it").with("path", "/d/j"));
        assert_eq!(message(&refusal), "journal has another name: rename it (path /d/j)");
        refusal.missing("a is missing".to_owned(), "/d/a.lost".into());
        refusal.missing("b is missing".to_owned(), "/d/b.lost".into());
        refusal.missing("c is missing".to_owned(), "/d/a.lost".into());
        let text = message(&refusal);
        let expect = "journal has another name: rename it (path /d/j). Also: a is missing; b is missing; c is missing. Put the";
        assert!(text.starts_with(expect), "{text}");
        assert!(text.ends_with("make the empty files /d/a.lost and /d/b.lost (path /d)"), "{text}");
        (0..NAMED_MAX).for_each(|n| refusal.missing(format!("m{n}"), "/d/a.lost".into()));
        assert!(message(&refusal).contains("; m6; and 3 more. Put"), "{}", message(&refusal));
    }
}
