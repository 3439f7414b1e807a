//! A file is replaced as a whole: whoever reads it, at whatever moment, finds the old one or the new one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tacho_store::disk::private_file;

/// The file may still be the old one after the machine has lost its power.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, OpenOptions::new(), |_| Ok(()))
}

/// As [`replace`], for a file of the data directory: only its owner may read it, and the new one is on disk when it returns.
pub fn replace_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, private_file(), File::sync_all)?;
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn put(
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
