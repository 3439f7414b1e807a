//! A file is replaced as a whole: whoever reads it, at whatever moment, finds the old one or the new one.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file may still be the old one after the machine has lost its power.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, |_| Ok(()))
}

/// As [`replace`]; the new file is on disk when it returns.
pub fn replace_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, File::sync_all)?;
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn put(path: &Path, bytes: &[u8], settle: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    let mut file = File::create(&aside)?;
    file.write_all(bytes)?;
    settle(&file)?;
    std::fs::rename(&aside, path)
}
