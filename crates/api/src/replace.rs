//! Replaces a file atomically: a reader gets either the old or the new content.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces the file, without flushing it to the disk. After a power failure it may have the old content or, on some file
/// systems, be empty.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, bytes, OpenOptions::new(), |_| Ok(()))
}

/// The same as [`replace`], with options for the new file. `settle` gets the new file before the old one is replaced.
pub fn replace_with(
    path: &Path,
    bytes: &[u8],
    mut options: OpenOptions,
    settle: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    let mut file = options.write(true).create(true).truncate(true).open(&aside)?;
    file.write_all(bytes)?;
    settle(&file)?;
    std::fs::rename(&aside, path)
}
