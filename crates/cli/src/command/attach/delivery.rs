//! Makes files readable by another process, which may have its own mount namespace and another user.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tacho_attach::{Process, is_same_file};
use xxhash_rust::xxh3::xxh3_64;

use super::failure;
use crate::failure::Failure;

/// Limit on the bytes of the jar's path. This path and the path of the settings must fit into an argument of 1,024 bytes.
const PATH_BYTES_MAX: usize = 800;

/// Returns the path of the agent in the mount namespace of the process. Copies the jar into the /tmp of the process if the
/// process cannot read the original, or if the path of the original is not [`plain`]. The copy remains, because the process reads
/// classes from the copy as long as it runs.
pub(super) fn jar(jar: &Path, process: &Process) -> Result<String, Failure> {
    if let Some(path) = plain(jar).filter(|_| is_seen(jar, process) && may_read(jar, process)) {
        return Ok(path.to_owned());
    }
    let failed = |error| Failure::new(format!("cannot read {}: {error}", jar.display()));
    let bytes = fs::read(jar).map_err(failed)?;
    let name = format!("tachograph-agent-{:016x}.jar", xxh3_64(&bytes));
    let copy = process.tmp().map_err(failure)?.join(&name);
    let trusted = [0, process.uid, own_uid()];
    let wrong =
        |what: String| Err(Failure::new(format!("{} exists, and {what}", copy.display())).hint("remove it"));
    match fs::symlink_metadata(&copy) {
        // The owner of a file can change it, so only files of these users are trusted.
        Ok(file) if !trusted.contains(&file.uid()) => {
            return wrong(format!("belongs to user {}", file.uid()));
        }
        // The copy of an earlier run.
        Ok(file) if file.is_file() && fs::read(&copy).is_ok_and(|there| there == bytes) => {}
        Ok(_) => return wrong("is not this agent".into()),
        Err(_) => write_copy(&copy, &bytes).map_err(|error| cannot_write(&copy, &error))?,
    }
    Ok(format!("/tmp/{name}"))
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A settings file in the /tmp of a process. Dropping this value removes the file, which the agent has read by then.
pub(super) struct SettingsFile {
    path: PathBuf,
    seen: String,
}

impl SettingsFile {
    /// The path of the file in the mount namespace of the process.
    pub(super) fn seen(&self) -> &str {
        &self.seen
    }
}

impl Drop for SettingsFile {
    fn drop(&mut self) {
        // A remaining file is harmless, because the next file has another name.
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes the settings file. `None` when there are no settings.
pub(super) fn settings(text: &str, process: &Process) -> Result<Option<SettingsFile>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let name = format!("tachograph-{}-{}.toml", process.own_pid, std::process::id());
    let path = process.tmp().map_err(failure)?.join(&name);
    let give = |file: &File| match fchown(file, Some(process.uid), Some(process.gid)) {
        // If the JVM runs as the user of this process, a failure of `fchown` is ignored: the file already belongs to this user.
        // Its group does not matter, because the mode 0600 gives the group no access.
        Err(error) if process.uid != own_uid() => Err(error),
        _ => Ok(()),
    };
    write(&path, text.as_bytes(), give).map_err(|error| cannot_write(&path, &error))?;
    Ok(Some(SettingsFile { path, seen: format!("/tmp/{name}") }))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

/// Writes a copy that all users may read, so that programs of several users can share it. The copy gets its name only when it
/// is complete.
fn write_copy(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let aside = path.with_extension(format!("{}.new", std::process::id()));
    // `set_permissions` ignores the umask.
    write(&aside, bytes, |file| file.set_permissions(Permissions::from_mode(0o644)))?;
    or_remove(&aside, fs::rename(&aside, path))
}

/// Creates a file that only the user of this process may read. `give` then permits others to read it. If a later step fails, the
/// file is removed.
fn write(path: &Path, bytes: &[u8], give: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    or_remove(path, give(&file).and_then(|()| file.write_all(bytes)))
}

fn or_remove(path: &Path, ended: io::Result<()>) -> io::Result<()> {
    if ended.is_err() {
        let _ = fs::remove_file(path);
    }
    ended
}

/// The path, if it is short enough and every JVM can parse it. For a JVM, the path of a jar ends at `=`, and the encoding of
/// non-ASCII letters depends on its locale.
fn plain(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| text.is_ascii() && !text.contains('=') && text.len() <= PATH_BYTES_MAX)
}

/// Whether the process finds the same file at this path.
fn is_seen(path: &Path, process: &Process) -> bool {
    is_same_file(path, &process.seen(path))
}

/// Whether the user of the process may read the file and enter all directories above it. Only the permissions of the owner
/// and of other users count, not those of the group.
fn may_read(path: &Path, process: &Process) -> bool {
    let is_open = |path: &Path, bit: u32| {
        let Ok(file) = fs::metadata(path) else { return false };
        let bits = if file.uid() == process.uid { file.mode() >> 6 } else { file.mode() };
        bits & bit != 0
    };
    process.uid == 0 || is_open(path, 0o4) && path.ancestors().skip(1).all(|folder| is_open(folder, 0o1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this() -> Process {
        Process::find(std::process::id()).expect("this process exists")
    }

    /// A directory that other users may enter.
    fn for_all() -> tempfile::TempDir {
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        directory
    }

    #[test]
    fn a_jar_that_the_process_cannot_name_or_read_is_copied_once() {
        let directory = for_all();
        let stranger = Process { uid: this().uid + 1, ..this() };
        for (name, mode, process, is_copied) in [
            ("agent.jar", 0o600, this(), false),
            ("agent.jar", 0o644, stranger.clone(), false),
            ("agent.jar", 0o640, stranger, true),
            ("a=b.jar", 0o644, this(), true),
            ("größe.jar", 0o644, this(), true),
        ] {
            let path = directory.path().join(name);
            // The content differs in each run, so that the copies of two runs have different names.
            fs::write(&path, format!("{name} {mode} {}", path.display())).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let seen = jar(&path, &process).unwrap();
            assert_eq!(seen != path.display().to_string(), is_copied, "{seen}");
            if is_copied {
                assert_eq!(fs::read(&seen).unwrap(), fs::read(&path).unwrap());
                assert_eq!(jar(&path, &process).unwrap(), seen, "the copy was not reused");
                fs::write(&seen, "something else").unwrap();
                let said = jar(&path, &process).unwrap_err().to_string();
                assert!(said.contains(&format!("{seen} exists, and is not this agent")), "{said}");
                fs::remove_file(&seen).unwrap();
            }
        }
    }

    #[test]
    fn a_copy_serves_the_programs_of_several_users() {
        let directory = for_all();
        let path = directory.path().join("agent.jar");
        fs::write(&path, format!("for several {}", path.display())).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let user = |above: u32| Process { uid: this().uid + above, ..this() };
        let seen = jar(&path, &user(1)).unwrap();
        assert_eq!(jar(&path, &user(2)).unwrap(), seen);
        let copy = fs::metadata(&seen).unwrap();
        assert_eq!((copy.uid(), copy.mode() & 0o777), (this().uid, 0o644));
        // Only root can change the owner of a file.
        if std::os::unix::fs::chown(&seen, Some(user(1).uid), None).is_ok() {
            assert_eq!(jar(&path, &user(1)).unwrap(), seen);
            let said = jar(&path, &user(2)).unwrap_err().to_string();
            let expect = format!("{seen} exists, and belongs to user {}\nhint: remove it", user(1).uid);
            assert!(said.contains(&expect), "{said}");
        }
        fs::remove_file(&seen).unwrap();
    }

    #[test]
    fn a_failed_write_leaves_no_file() {
        let directory = for_all();
        let taken = directory.path().join("agent.jar");
        fs::create_dir(&taken).unwrap();
        write_copy(&taken, b"agent").unwrap_err();
        let refuse = |_: &File| Err(io::Error::other("the owner cannot be changed"));
        write(&directory.path().join("settings.toml"), b"", refuse).unwrap_err();
        let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["agent.jar"]);
    }

    #[test]
    fn the_settings_file_is_removed_when_it_is_dropped() {
        assert!(settings("", &this()).unwrap().is_none());
        let file = settings("service = \"shop\"\n", &this()).unwrap().expect("the settings are not empty");
        let seen = PathBuf::from(file.seen());
        assert_eq!(fs::read_to_string(&seen).unwrap(), "service = \"shop\"\n");
        assert_eq!(fs::metadata(&seen).unwrap().mode() & 0o777, 0o600);
        drop(file);
        assert!(!seen.exists());
    }
}
