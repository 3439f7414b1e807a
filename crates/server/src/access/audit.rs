//! Appends lines to `audit.log`. Each line is a JSON object about one of these events:
//! - a change that needs the role admin, a change of a token, or a login;
//! - a refused request without a valid token or of another origin;
//! - a login, or a change with the cookie of the page, that is refused because the page has not sent it;
//! - a request that its valid token does not permit, as a whole or in part.
//!
//! `FAILURES_MAX` (`failures.rs`), `PLACES_MAX` (`usage.rs`) and `../seldom.rs` limit the lines about refusals per minute.
//!
//! A line never has the token or the cookie with which a request was sent. It may have these texts of a client:
//! - up to [`TEXT_CHARS_MAX`] characters: the host or origin of a refused request, and the labels of the first refused series;
//! - the selectors of a deletion, and the scope and pattern of a new rule for probes.
//!
//! When the file has reached its limit, it becomes `audit.log.1`. Older files get the next number, and the oldest is removed.
//!
//! This file and `file.rs` use each other: `file.rs` gives the log and the file of tokens to the same owner, restricts the
//! permissions of the log, and lists it among the files that a check examines.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tacho_store::disk::{irregular_or_link, open_no_link_with, private_file};

use super::file::give_to_owner;

pub const FILE: &str = "audit.log";
/// If the file has at least this size, a process that has written to it begins a new file before its next line.
const FILE_BYTES_MAX: u64 = 8 << 20;
const OLDER_MAX: usize = 4;
const TEXT_CHARS_MAX: usize = 512;
pub const REMEDY: &str = "move it away: the next line begins a new file";

pub struct Audit {
    path: Option<PathBuf>,
    state: Mutex<Option<(File, u64)>>,
}

impl Audit {
    /// Without a directory nothing is written.
    pub fn new(data: Option<&Path>) -> Self {
        Self { path: data.map(|data| data.join(FILE)), state: Mutex::default() }
    }

    /// Appends a line. If the line cannot be written, it is in the log of the server.
    pub fn note(&self, time: &str, event: &str, members: &[(&str, Value)]) {
        let mut line = Map::from_iter([("time".to_owned(), json!(time)), ("event".to_owned(), json!(event))]);
        let members = members.iter().filter(|(_, value)| !value.is_null());
        line.extend(members.map(|(name, value)| ((*name).to_owned(), shortened(value))));
        let line = printable(&Value::Object(line).to_string());
        if let (Err(error), Some(path)) = (self.append(&line), &self.path) {
            let remedy = irregular_or_link(path).map(|_| REMEDY);
            tracing::error!(path = %path.display(), %error, remedy, line, "audit log cannot be written");
        }
    }

    fn append(&self, line: &str) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Another process may have rotated the file, or a user removed it.
        let found = std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino())).ok();
        let is_same = |file: &File| file.metadata().is_ok_and(|own| found == Some((own.dev(), own.ino())));
        if state.as_ref().is_some_and(|(file, _)| !is_same(file)) {
            *state = None;
        }
        if state.as_ref().is_some_and(|(_, bytes)| *bytes >= FILE_BYTES_MAX) {
            *state = None;
            rotate(path)?;
        }
        if state.is_none() {
            let file = open_no_link_with(private_file().append(true).create(true), path)?;
            give_to_owner(path.parent().unwrap_or(path), &file)?;
            let bytes = file.metadata()?.len();
            *state = Some((file, bytes));
        }
        let Some((file, bytes)) = state.as_mut() else { return Ok(()) };
        let line = format!("{line}\n");
        file.write_all(line.as_bytes())?;
        *bytes += line.len() as u64;
        Ok(())
    }
}

/// Escapes the control characters that JSON permits in a text: U+007F to U+009F.
fn printable(json: &str) -> String {
    let escaped = |c: char| if c.is_control() { format!("\\u{:04x}", c as u32) } else { c.to_string() };
    if json.contains(char::is_control) { json.chars().map(escaped).collect() } else { json.to_owned() }
}

fn rotate(path: &Path) -> io::Result<()> {
    let numbered = |n: usize| PathBuf::from(format!("{}.{n}", path.display()));
    for n in (1..OLDER_MAX).rev() {
        if numbered(n).exists() {
            std::fs::rename(numbered(n), numbered(n + 1))?;
        }
    }
    std::fs::rename(path, numbered(1))
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.chars().nth(TEXT_CHARS_MAX).is_some() => {
            format!("{}...", text.chars().take(TEXT_CHARS_MAX).collect::<String>()).into()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plain open of a FIFO for writing would wait for a reader of the FIFO, and the request would wait, too.
    #[test]
    fn another_object_in_place_of_the_log_is_moved_away_while_the_server_runs() {
        let place = tempfile::tempdir().unwrap();
        let (data, path) = (place.path().join("data"), place.path().join("data").join(FILE));
        let fifo = || assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let link = || std::os::unix::fs::symlink("../outside", &path).unwrap();
        let folder = || std::fs::create_dir(&path).unwrap();
        let cases: [(&dyn Fn(), &str); 3] = [
            (&fifo, "it is not a regular file"),
            (&link, "it is a symbolic link"),
            (&folder, "it is not a regular file"),
        ];
        for (replace, why) in cases {
            std::fs::create_dir_all(&data).unwrap();
            replace();
            let audit = Audit::new(Some(&data));
            assert_eq!(audit.append("lost").unwrap_err().to_string(), why);
            std::fs::rename(&path, data.join("moved")).unwrap();
            audit.note("t", "kept", &[]);
            let lines = std::fs::read_to_string(&path).unwrap();
            assert!(lines.lines().count() == 1 && lines.contains("\"kept\""), "{lines}");
            std::fs::remove_dir_all(&data).unwrap();
        }
        assert!(!place.path().join("outside").exists());
    }

    #[test]
    fn lines_are_json_and_files_are_bounded() {
        let place = tempfile::tempdir().unwrap();
        let audit = Audit::new(Some(place.path()));
        audit.note("t", "refused", &[("path", json!("/a\n\u{1b}[2J\u{9b}")), ("token", Value::Null)]);
        let text = std::fs::read_to_string(place.path().join(FILE)).unwrap();
        assert!(text.lines().count() == 1 && !text.trim_end().contains(char::is_control));
        let line: Value = serde_json::from_str(text.trim_end()).unwrap();
        assert_eq!((line["path"].as_str(), line.get("token")), (Some("/a\n\u{1b}[2J\u{9b}"), None));
        let long = "x".repeat(2 * TEXT_CHARS_MAX);
        let lines = 7 * FILE_BYTES_MAX as usize / TEXT_CHARS_MAX;
        for _ in 0..lines {
            audit.note("t", "refused", &[("path", json!(long))]);
        }
        let files: Vec<u64> = std::fs::read_dir(place.path())
            .unwrap()
            .map(|file| file.unwrap().metadata().unwrap().len())
            .collect();
        assert!(files.len() == 1 + OLDER_MAX && files.iter().all(|bytes| *bytes < FILE_BYTES_MAX + 4_096));
    }
}
