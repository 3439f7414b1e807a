//! Replaces a file atomically: a reader gets either the old or the new content.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Replaces the file durably: on return, the new content is on the disk.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, bytes, OpenOptions::new(), |_| Ok(()))
}

/// Replaces the file without a sync. After a power failure it may have the old content or, on some file systems, be empty.
pub fn replace_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (aside, _) = write_aside(path, bytes, OpenOptions::new())?;
    std::fs::rename(&aside, path)
}

/// The same as [`replace`], with options for the new file. `prepare` gets the new file, with its content, before the old one is
/// replaced.
pub fn replace_with(
    path: &Path,
    bytes: &[u8],
    options: OpenOptions,
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let (aside, file) = write_aside(path, bytes, options)?;
    prepare(&file)?;
    file.sync_all()?;
    std::fs::rename(&aside, path)?;
    sync_name(path)
}

/// Writes a file next to `path`. Returns its path.
fn write_aside(path: &Path, bytes: &[u8], mut options: OpenOptions) -> io::Result<(PathBuf, File)> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    let mut file = options.write(true).create(true).truncate(true).open(&aside)?;
    file.write_all(bytes)?;
    Ok((aside, file))
}

/// Makes the name of a new, renamed or removed file durable.
pub fn sync_name(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(above).and_then(|above| above.sync_all()) {
        // A directory that this user may not read cannot be synced. The same is true for all directories of some file systems.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) => Ok(()),
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_directory_that_cannot_be_synced_are_no_error() {
        // procfs cannot sync a directory.
        for path in ["/proc/version", "Cargo.toml"] {
            sync_name(Path::new(path)).unwrap();
        }
        assert_eq!(sync_name(Path::new("absent/file")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
