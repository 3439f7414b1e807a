//! Refuses a data directory that a newer version wrote, before the start changes anything in it.
//!
//! The driver reads the versions of all its files before it writes. This module reads the versions of the other files before the
//! driver is opened. Otherwise the driver would already have finished interrupted work in `chunks/` when a journal is refused.

use std::path::Path;

use tacho_store::{Error, ErrorKind, Result, refuse_newer_journals};

use crate::{access, control, record_types, versioned};

/// # Errors
/// `Version` if a file or a journal has a newer version than this program reads. `Io` if a journal cannot be read. Another
/// unreadable file is no error here: the code that needs the file reports it.
pub fn refuse_newer(data: &Path) -> Result<()> {
    refuse_newer_journals(&data.join("journal"))?;
    refuse_newer_side_files(data)
}

/// The same for the files next to `chunks/` and `journal/`. A server may use the directory at the same time.
///
/// # Errors
/// `Version` if a file has a newer version than this program reads.
pub fn refuse_newer_side_files(data: &Path) -> Result<()> {
    for (name, known) in [control::FILE, record_types::FILE, access::file::NAME] {
        let path = data.join(name);
        if let Some(version) = versioned::version_of(&path).filter(|version| *version > known) {
            let message = format!("{name} has version {version}, this program reads up to {known}");
            return Err(Error::new(ErrorKind::Version, message).with("path", path.display()));
        }
    }
    Ok(())
}
