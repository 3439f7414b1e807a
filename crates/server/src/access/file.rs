//! The file `tokens` of the data directory: reads it, and changes it for the commands.
//!
//! The server never writes the file. A change locks `tokens.lock`, so that concurrent commands lose nothing, and replaces the
//! file as a whole. If the marker `tokens.used` exists, a missing file of tokens is an error.
//!
//! The first token makes both files. A full disk or a kill can interrupt this after each step:
//!
//! | last step | files | the server |
//! |---|---|---|
//! | `tokens.new` is written, whole or in part | neither | admits every client, because no token was stored |
//! | `tokens` is in place | `tokens` | tries to make the marker, uses the tokens, and repeats the attempt until it succeeds |
//! | the marker exists | both | needs tokens, also if `tokens` is lost later |
//!
//! If the command made the marker first, a failure before `tokens` is in place would leave a server that has no token but refuses
//! every request that needs one.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use tacho_api::replace::{replace_with, sync_name};
use tacho_store::disk::{self, FILE_MODE, irregular_or_link, open_no_link_with, private_file};

use super::AUDIT_FILE;
use super::audit::REMEDY as AUDIT_REMEDY;
use super::token::{Record, Token};
use crate::versioned;

const FILE: &str = "tokens";
const LOCK: &str = "tokens.lock";
const MARKER: &str = "tokens.used";
const VERSION: u32 = 2;
/// Name of the file, and the newest version that this program reads.
pub const NAME: (&str, u32) = (FILE, VERSION);
/// Limit on the tokens of one server, because its metrics have series for each token.
pub const TOKENS_MAX: usize = 1_000;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    tokens: Vec<Record>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The directory has neither tokens nor the marker.
    Unused,
    Tokens(Vec<Token>),
    /// Tokens are or were in use, but the file cannot be used. The text is the reason.
    Broken(String),
}

pub fn path(data: &Path) -> PathBuf {
    data.join(FILE)
}

/// Whether tokens are or were in use, and the inode, size and time of change of the file.
pub type Stamp = (bool, Option<(u64, u64, i64, i64)>);

/// A value that differs after a change of the file of tokens, or after tokens come into use.
pub fn stamp(data: &Path) -> Stamp {
    let found = std::fs::metadata(path(data)).ok();
    (is_used(data), found.map(|found| (found.ino(), found.size(), found.ctime(), found.ctime_nsec())))
}

/// Whether tokens are or were in use. A file that cannot be used counts as in use.
pub fn is_used(data: &Path) -> bool {
    // A dangling symbolic link is a file that cannot be used.
    [FILE, MARKER].iter().any(|name| std::fs::symlink_metadata(data.join(name)).is_ok())
}

pub fn read(data: &Path) -> Found {
    if !is_used(data) {
        return Found::Unused;
    }
    match records(data) {
        Ok(records) => tokens(&records).map_or_else(Found::Broken, Found::Tokens),
        Err(cause) => Found::Broken(cause),
    }
}

fn tokens(records: &[Record]) -> Result<Vec<Token>, String> {
    if records.is_empty() {
        return Err("the file of tokens has no token: add one with `tacho token add`".into());
    }
    let tokens = records.iter().map(Record::check).collect::<Result<Vec<_>, _>>()?;
    let hashes: HashSet<_> = tokens.iter().map(|token| token.hash).collect();
    if hashes.len() < tokens.len() {
        return Err("two tokens of the file have the same sha256".into());
    }
    let names: HashSet<_> = records.iter().map(|record| &record.name).collect();
    if names.len() < records.len() {
        return Err("two tokens of the file have the same name".into());
    }
    Ok(tokens)
}

/// The content of a file after it was read and encoded again. For the fuzz targets only.
#[cfg(fuzzing)]
pub fn read_again(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let content: Content = versioned::parse(bytes, VERSION)?;
    tokens(&content.tokens)?;
    versioned::encode(&content).map_err(|error| error.to_string())
}

/// How to continue with a file that cannot be read. `tacho token add` does not overwrite it, because it may be of a newer version
/// or repairable.
const REMEDY: &str = "restore it, or move it away and add new tokens with `tacho token add`";

fn records(data: &Path) -> Result<Vec<Record>, String> {
    let path = path(data);
    let unusable = |cause: String| format!("{}: {cause}: {REMEDY}", path.display());
    let content: Option<Content> = versioned::look(&path, VERSION).map_err(unusable)?;
    let records = content.ok_or_else(|| missing(&path))?.tokens;
    if records.len() > TOKENS_MAX {
        return Err(unusable(format!("it has {} tokens, at most {TOKENS_MAX} are allowed", records.len())));
    }
    Ok(records)
}

fn missing(path: &Path) -> String {
    let path = path.display();
    format!("{path}: the file is missing, although tokens were in use: restore it, or add a token")
}

/// The [`Record`]s of the file, for a command. Empty if there is no file.
///
/// # Errors
/// The file and the reason why it cannot be used, in most cases with the remedy.
pub fn list(data: &Path) -> Result<Vec<Record>, String> {
    // A missing file has no tokens, even with a marker. A dangling link is an error.
    match std::fs::symlink_metadata(path(data)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("{}: {error}", path(data).display())),
        Ok(_) => records(data),
    }
}

/// Applies `edit` to the records of the file. Concurrent changes wait for each other. On success, the new file is on disk.
///
/// # Errors
/// The error of `edit`, the reason why a file cannot be read or written, or that there would be too many tokens.
pub fn change<T>(data: &Path, edit: impl FnOnce(&mut Vec<Record>) -> Result<T, String>) -> Result<T, String> {
    change_in_steps(data, edit, &|| ())
}

/// The same as [`change`]. Calls `each_step` after each step that makes, fills or renames a file.
fn change_in_steps<T>(
    data: &Path,
    edit: impl FnOnce(&mut Vec<Record>) -> Result<T, String>,
    each_step: &dyn Fn(),
) -> Result<T, String> {
    disk::make_directory(data).map_err(|error| format!("{}: {error}", data.display()))?;
    let in_file = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    let lock = data.join(LOCK);
    let locked = open_no_link_with(private_file().read(true).write(true).create(true).truncate(false), &lock);
    let locked = locked.and_then(|file| file.lock().map(|()| file)).map_err(|error| {
        let remedy = irregular_or_link(&lock).map_or("", |_| ": remove it, the command creates it again");
        in_file(&lock, error) + remedy
    })?;
    each_step();
    // All checks come before the change. After it, a failure would lose the text of a stored token.
    give_to_owner(data, &locked).map_err(|error| in_file(&lock, error))?;
    is_marked(data)?;
    let path = path(data);
    let mut tokens = list(data)?;
    let done = edit(&mut tokens)?;
    if tokens.len() > TOKENS_MAX {
        return Err(format!("there are {TOKENS_MAX} tokens already: revoke unused ones"));
    }
    write(data, &Content { version: VERSION, tokens }, each_step).map_err(|error| in_file(&path, error))?;
    each_step();
    // The token is stored already. So the command does not fail if the marker cannot be written, for example because the disk is
    // full. The server makes the marker later.
    let _ = mark(data);
    each_step();
    drop(locked);
    Ok(done)
}

fn write(data: &Path, content: &Content, each_step: &dyn Fn()) -> io::Result<()> {
    let bytes = versioned::encode(content)?;
    let prepare = |file: &File| {
        each_step();
        give_to_owner(data, file)
    };
    replace_with(&path(data), &bytes, own_file(), prepare)
}

/// Options that neither follow symbolic links nor wait for the reader of a FIFO. Otherwise the owner of the data directory could
/// make a link to any file, which a command of root would then open.
fn own_file() -> OpenOptions {
    let mut options = private_file();
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

/// Gives a file to the owner of the data directory, so that the server can read it if root has run the command.
///
/// # Errors
/// When a file of another user is not a regular file, or has a second name (a hard link). When the owner cannot be read or
/// changed.
pub(super) fn give_to_owner(data: &Path, file: &File) -> io::Result<()> {
    let (owner, own) = (std::fs::metadata(data)?, file.metadata()?);
    if owner.uid() == own.uid() {
        return Ok(());
    }
    if !own.is_file() || own.nlink() > 1 {
        return Err(io::Error::other("it is not a regular file with a single name"));
    }
    std::os::unix::fs::fchown(file, Some(owner.uid()), Some(owner.gid()))
}

/// Whether the marker `tokens.used` exists.
///
/// # Errors
/// The path of the marker and the remedy, if another object is in its place. The path and the reason, if it cannot be looked up.
pub fn is_marked(data: &Path) -> Result<bool, String> {
    let path = data.join(MARKER);
    if let Some(why) = irregular_or_link(&path) {
        return Err(format!("{}: {why}: {MARKER_REMEDY}", path.display()));
    }
    match std::fs::symlink_metadata(&path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Makes the last change of the file of tokens durable. The command that made the change may have ended before this.
pub fn sync(data: &Path) -> io::Result<()> {
    sync_name(&path(data))
}

/// Creates the marker `tokens.used`.
///
/// # Errors
/// The path of the marker and the reason why it cannot be written, with the remedy if another object is in its place.
pub fn mark(data: &Path) -> Result<(), String> {
    if is_marked(data)? {
        return Ok(());
    }
    let path = data.join(MARKER);
    let write = || {
        // After a power failure, the marker must not exist without the file of tokens that a command has just renamed.
        sync(data)?;
        let file = open_no_link_with(private_file().write(true).create(true).truncate(false), &path)?;
        give_to_owner(data, &file)?;
        file.sync_all()?;
        sync_name(&path)
    };
    write().map_err(|error: io::Error| format!("{}: {error}", path.display()))
}

/// Does not advise to remove the marker: without it and without the file of tokens, a server admits every client.
const MARKER_REMEDY: &str = "replace it by an empty file";

/// For each of the marker, the lock and the audit log that is not a regular file: its name, the reason and the remedy. The
/// content of these files is not checked.
pub fn irregular_files(data: &Path) -> Vec<(&'static str, &'static str, &'static str)> {
    let remove = "remove it: the next change of a token creates it again";
    [(MARKER, MARKER_REMEDY), (LOCK, remove), (AUDIT_FILE, AUDIT_REMEDY)]
        .into_iter()
        .filter_map(|(name, remedy)| Some((name, irregular_or_link(&data.join(name))?, remedy)))
        .collect()
}

/// Removes the marker `tokens.used`, if the file of tokens is gone.
pub fn forget(data: &Path) -> io::Result<()> {
    if std::fs::symlink_metadata(path(data)).is_ok() {
        return Ok(());
    }
    let path = data.join(MARKER);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => sync_name(&path),
    }
}

/// The mode of the file of tokens, if other users may write to it.
pub fn mode_for_others(data: &Path) -> Option<u32> {
    let mode = std::fs::metadata(path(data)).ok()?.mode() & 0o7777;
    (mode & 0o022 != 0).then_some(mode)
}

/// Removes the permissions of other users from the files of tokens and from the audit log. Logs a warning if other users could
/// write to the file of tokens.
pub fn restrict(data: &Path) {
    if let Some(mode) = mode_for_others(data) {
        let (path, mode) = (path(data), format!("{mode:o}"));
        tracing::warn!(
            path = %path.display(),
            mode,
            "other users could write to the file of tokens: check the tokens with `tacho token list`"
        );
    }
    for path in [FILE, LOCK, MARKER, AUDIT_FILE].map(|name| data.join(name)) {
        if std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            disk::restrict(&path, FILE_MODE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::process::Command;

    use super::super::token::{Limits, Role, TokenHash};
    use super::*;

    fn add(data: &Path, name: &str) -> Result<(), String> {
        add_in_steps(data, name, &|| ())
    }

    fn add_in_steps(data: &Path, name: &str, each_step: &dyn Fn()) -> Result<(), String> {
        let times = ("2026-11-28T00:00:00Z".to_owned(), None);
        let made = Record::new(name, (vec![Role::Read], None), Limits::default(), times)?;
        let edit = |all: &mut Vec<Record>| {
            all.push(made.0);
            Ok(())
        };
        change_in_steps(data, edit, each_step)
    }

    type Files = BTreeMap<String, Vec<u8>>;

    fn files(data: &Path) -> Files {
        let entries = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap());
        entries
            .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
            .collect()
    }

    /// The files that a kill during the first change can leave: those after each step, and also those while
    /// a new file is written.
    fn interrupted(data: &Path) -> Vec<Files> {
        let steps = RefCell::new(Vec::new());
        add_in_steps(data, "a", &|| steps.borrow_mut().push(files(data))).unwrap();
        let mut states: Vec<Files> = steps.into_inner();
        let cut = |files: &Files, halves: usize| {
            let mut files = files.clone();
            let bytes = files.get_mut("tokens.new")?;
            bytes.truncate(bytes.len() * halves / 2);
            Some(files)
        };
        let cuts: Vec<Files> =
            states.iter().flat_map(|files| [0, 1].map(|halves| cut(files, halves))).flatten().collect();
        assert_eq!(cuts.len(), 2, "one step writes a new file");
        states.extend(cuts);
        states
    }

    fn is_broken(data: &Path) -> bool {
        matches!(read(data), Found::Broken(_))
    }

    #[test]
    fn only_a_directory_without_file_and_marker_is_without_tokens() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path();
        assert_eq!(read(data), Found::Unused);
        add(data, "a").unwrap();
        assert!(matches!(read(data), Found::Tokens(tokens) if &*tokens[0].name == "a"));
        assert_eq!(std::fs::metadata(path(data)).unwrap().mode() & 0o777, 0o600);
        let good = std::fs::read(path(data)).unwrap();
        for bytes in
            [&b""[..], b"{}", b"{\"version\":3,\"tokens\":[]}", b"{\"version\":1,\"tokens\":[]}", &good[..99]]
        {
            std::fs::write(path(data), bytes).unwrap();
            assert!(is_broken(data), "{}", String::from_utf8_lossy(bytes));
        }
        std::fs::remove_file(path(data)).unwrap();
        assert!(is_broken(data), "the marker `tokens.used` was ignored");
        forget(data).unwrap();
        assert_eq!(read(data), Found::Unused);
        std::os::unix::fs::symlink("nowhere", path(data)).unwrap();
        assert!(is_broken(data), "a dangling link was accepted");
        std::fs::remove_file(path(data)).unwrap();
        std::fs::create_dir(path(data)).unwrap();
        assert!(is_broken(data) && add(data, "b").is_err(), "a directory was accepted");
    }

    #[test]
    fn an_interrupted_first_token_never_leaves_the_marker_without_a_token() {
        let place = tempfile::tempdir().unwrap();
        let mut seen = HashSet::new();
        for (n, files) in interrupted(&place.path().join("whole")).into_iter().enumerate() {
            let data = place.path().join(n.to_string());
            std::fs::create_dir(&data).unwrap();
            files.iter().for_each(|(name, bytes)| std::fs::write(data.join(name), bytes).unwrap());
            let is_stored = files.contains_key(FILE);
            match read(&data) {
                Found::Unused => assert!(!is_stored, "{files:?}"),
                Found::Tokens(tokens) => assert!(is_stored && tokens.len() == 1, "{files:?}"),
                Found::Broken(cause) => panic!("{cause}: {files:?}"),
            }
            seen.insert((is_stored, files.contains_key(MARKER)));
            // The next command works after each step.
            add(&data, "b").unwrap();
            assert_eq!(list(&data).unwrap().len(), 1 + usize::from(is_stored), "{files:?}");
            assert!(is_marked(&data).unwrap(), "{files:?}");
        }
        assert_eq!(seen, HashSet::from([(false, false), (true, false), (true, true)]));
    }

    #[test]
    fn a_token_that_cannot_be_written_leaves_no_marker() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path();
        // A directory in this place fails the write after all checks, as a full disk does.
        std::fs::create_dir(data.join("tokens.new")).unwrap();
        add(data, "a").unwrap_err();
        assert_eq!(read(data), Found::Unused);
        std::fs::remove_dir(data.join("tokens.new")).unwrap();
        add(data, "a").unwrap();
        assert!(matches!(read(data), Found::Tokens(_)) && is_marked(data).unwrap());
        // A later failure leaves the marker and the earlier token.
        std::fs::create_dir(data.join("tokens.new")).unwrap();
        add(data, "b").unwrap_err();
        assert!(matches!(read(data), Found::Tokens(tokens) if tokens.len() == 1) && is_marked(data).unwrap());
    }

    #[test]
    fn a_marker_that_is_no_file_is_refused_before_a_token_is_stored() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path();
        std::fs::create_dir(data.join(MARKER)).unwrap();
        assert!(add(data, "a").unwrap_err().contains("it is not a regular file"));
        assert!(!path(data).exists());
        assert!(mark(data).is_err());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_with_a_remedy_that_works() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path();
        let moved = data.join("moved");
        let remedy = "restore it, or move it away and add new tokens with `tacho token add`";
        let damage = |bytes: &'static str| move |path: &Path| std::fs::write(path, bytes).unwrap();
        let link = |path: &Path| std::os::unix::fs::symlink("nowhere", path).unwrap();
        let fifo = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        let folder = |path: &Path| std::fs::create_dir(path).unwrap();
        let device = |path: &Path| std::os::unix::fs::symlink("/dev/zero", path).unwrap();
        type Case<'a> = (&'a dyn Fn(&Path), &'a str);
        let cases: [Case<'_>; 6] = [
            (&damage(""), "EOF while parsing a value at line 1 column 0"),
            (&damage("{\n  x"), "key must be a string at line 2 column 3"),
            (&link, "it is a link to a file that is missing"),
            (&fifo, "it is not a regular file"),
            (&folder, "it is not a regular file"),
            (&device, "it is not a regular file"),
        ];
        for (damage, cause) in cases {
            damage(&path(data));
            let expect = format!("{}: {cause}: {remedy}", path(data).display());
            assert_eq!(add(data, "a").unwrap_err(), expect);
            assert_eq!(list(data).unwrap_err(), expect);
            assert_eq!(read(data), Found::Broken(expect));
            std::fs::rename(path(data), &moved).unwrap();
            add(data, "a").unwrap();
            assert!(matches!(read(data), Found::Tokens(_)), "{cause}");
            std::fs::remove_file(path(data)).unwrap();
            let _ = if moved.is_dir() { std::fs::remove_dir(&moved) } else { std::fs::remove_file(&moved) };
        }
    }

    /// Another object in place of the marker counts as the marker. The command and the server never wait for the reader of a
    /// FIFO.
    #[test]
    fn another_object_in_place_of_a_small_file_is_named_with_a_remedy_that_works() {
        let fifo = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        let link = |path: &Path| std::os::unix::fs::symlink("nowhere", path).unwrap();
        let folder = |path: &Path| std::fs::create_dir(path).unwrap();
        type Replace<'a> = &'a dyn Fn(&Path);
        let cases: [(Replace<'_>, &str); 3] = [
            (&fifo, "it is not a regular file"),
            (&folder, "it is not a regular file"),
            (&link, "it is a symbolic link"),
        ];
        for (replace, why) in cases {
            for (name, remedy) in [(MARKER, MARKER_REMEDY), (LOCK, "remove it, the command creates it again")]
            {
                let place = tempfile::tempdir().unwrap();
                let (data, path) = (place.path(), place.path().join(name));
                replace(&path);
                assert_eq!(add(data, "a").unwrap_err(), format!("{}: {why}: {remedy}", path.display()));
                assert_eq!(is_broken(data), name == MARKER);
                std::fs::rename(&path, data.join("moved")).unwrap();
                if name == MARKER {
                    std::fs::write(&path, "").unwrap();
                }
                add(data, "a").unwrap();
                assert!(matches!(read(data), Found::Tokens(_)) && irregular_files(data).is_empty());
            }
        }
    }

    #[test]
    fn the_golden_files_match_the_format() {
        let [first, golden] = [
            include_str!("../../../../testdata/tokens/version-1.json"),
            include_str!("../../../../testdata/tokens/version-2.json"),
        ];
        let described = include_str!("../../../../docs/format/tokens.md");
        assert!(
            described.contains(&format!("```json\n{golden}```")),
            "the example in the documentation is not the golden file"
        );
        check_golden(first);
        check_golden(golden);
        let place = tempfile::tempdir().unwrap();
        std::fs::write(path(place.path()), golden).unwrap();
        change(place.path(), |_| Ok(())).unwrap();
        assert_eq!(std::fs::read_to_string(path(place.path())).unwrap(), golden);
    }

    #[test]
    fn a_changed_letter_in_a_written_file_is_found() {
        let place = tempfile::tempdir().unwrap();
        add(place.path(), "a").unwrap();
        let written = std::fs::read_to_string(path(place.path())).unwrap();
        std::fs::write(path(place.path()), written.replace("\"a\"", "\"b\"")).unwrap();
        let Found::Broken(cause) = read(place.path()) else { panic!("{:?}", read(place.path())) };
        assert!(cause.contains("its checksum (crc32c) is "), "{cause}");
    }

    fn check_golden(golden: &str) {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(path(place.path()), golden).unwrap();
        let Found::Tokens(tokens) = read(place.path()) else { panic!("{:?}", read(place.path())) };
        let text = "tacho_000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
        assert!(tokens[0].permits(Role::Admin) && tokens[0].hash == TokenHash::of(text));
        let limits = Limits {
            series: Some(50_000),
            samples_per_second: Some(20_000),
            query_samples: Some(1_000_000),
            sessions: Some(8),
        };
        assert_eq!((tokens[1].limits, &*tokens[1].name), (limits, "team-a"));
        assert_eq!(tokens[1].confinement.as_ref().unwrap().text, "{team=\"größe\"}");
        assert!(tokens[1].is_expired(1_801_353_600_000_000_000) && !tokens[1].is_expired(0));
    }

    #[test]
    fn symbolic_links_in_the_data_directory_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        for name in [LOCK, MARKER, "tokens.new"] {
            let (data, other) = (place.path().join(name), place.path().join("other"));
            std::fs::create_dir(&data).unwrap();
            std::fs::write(&other, "kept").unwrap();
            std::os::unix::fs::symlink(&other, data.join(name)).unwrap();
            assert!(add(&data, "a").is_err(), "{name}");
            assert_eq!(std::fs::read(&other).unwrap(), b"kept", "{name}");
        }
    }

    #[test]
    fn concurrent_changes_lose_nothing() {
        let place = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for n in 0..24 {
                let data = place.path();
                scope.spawn(move || add(data, &format!("t{n}")).unwrap());
            }
        });
        assert_eq!(list(place.path()).unwrap().len(), 24);
    }
}
