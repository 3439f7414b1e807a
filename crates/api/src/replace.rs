//! Replaces a file atomically and durably: a reader gets either the old or the new content, even after a power failure.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Replaces the file. On return, the new content is on the disk.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, bytes, OpenOptions::new(), |_| Ok(()))
}

/// The same as [`replace`], with options for the new file. `prepare` gets the new file before it replaces the old one.
pub fn replace_with(
    path: &Path,
    bytes: &[u8],
    mut options: OpenOptions,
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    let mut file = options.write(true).create(true).truncate(true).open(&aside)?;
    file.write_all(bytes)?;
    prepare(&file)?;
    file.sync_all()?;
    std::fs::rename(&aside, path)?;
    sync_name(path)
}

/// Makes the name of a new, renamed or removed file durable.
pub fn sync_name(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    match File::open(above.unwrap_or(Path::new(".")))?.sync_all() {
        // Some file systems cannot sync a directory.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}
