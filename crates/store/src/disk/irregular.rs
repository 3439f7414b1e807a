//! Detects objects that have the name of a file but are not readable files: a FIFO, a directory, a device, or a link that does
//! not lead to a regular file.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::error::LINK_LOOP;

pub const NOT_REGULAR: &str = "it is not a regular file";
const LINK: &str = "it is a symbolic link";
const DANGLING: &str = "it is a link to a file that is missing";

/// The reason why the object with this name is neither a regular file nor a link to one. `None` if it is one of these two, if
/// there is no such object, or if the system cannot tell. Opens nothing, because to open a FIFO may wait, and to open a device
/// may change it.
pub fn irregular(path: &Path) -> Option<&'static str> {
    let found = std::fs::symlink_metadata(path).ok()?;
    if !found.is_symlink() {
        return (!found.is_file()).then_some(NOT_REGULAR);
    }
    match std::fs::metadata(path) {
        Ok(found) => (!found.is_file()).then_some(NOT_REGULAR),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(DANGLING),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Some(LINK_LOOP),
        Err(_) => None,
    }
}

/// Like [`irregular`], for a file that must not be a symbolic link.
pub fn irregular_or_link(path: &Path) -> Option<&'static str> {
    let found = std::fs::symlink_metadata(path).ok()?;
    if found.is_symlink() { Some(LINK) } else { irregular(path) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_and_links_to_them_are_regular() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        for (name, destination) in
            [("link", "file"), ("dangling", "absent"), ("loop", "loop"), ("device", "/dev/zero")]
        {
            symlink(destination, at(name)).unwrap();
        }
        for (name, expect, of_link) in [
            ("absent", None, None),
            ("file", None, None),
            ("link", None, Some(LINK)),
            ("directory", Some(NOT_REGULAR), Some(NOT_REGULAR)),
            ("fifo", Some(NOT_REGULAR), Some(NOT_REGULAR)),
            ("device", Some(NOT_REGULAR), Some(LINK)),
            ("dangling", Some(DANGLING), Some(LINK)),
            ("loop", Some(LINK_LOOP), Some(LINK)),
        ] {
            assert_eq!((irregular(&at(name)), irregular_or_link(&at(name))), (expect, of_link), "{name}");
        }
    }
}
