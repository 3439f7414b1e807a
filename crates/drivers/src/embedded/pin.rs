//! Pins the files of the directory for a backup: makes hard links to them between two writes.

use std::path::Path;

use tacho_store::disk::make_directory;
use tacho_store::pin::{link, link_quarantine};
use tacho_store::{Error, PinnedFile, Result};

use super::format::{file_name, file_path};
use super::manifest;
use super::quarantine;
use super::segments::{Purpose, Segments};

impl Segments {
    /// Links the manifest, every segment whose rows are part of the store, and the quarantine. Writes the manifest first, so that
    /// it states the current length of the growing segment.
    pub fn pin(&mut self, into: &Path) -> Result<Vec<PinnedFile>> {
        make_directory(into).map_err(|e| Error::io("make directory", into, e))?;
        self.write_manifest(Purpose::Freeing)?;
        let disk = self.disk.clone();
        let read_length = |path: &Path| disk.length(path).map_err(|e| Error::io("read length", path, e));
        let mut pinned = Vec::with_capacity(self.manifest.files.len() + 2);
        for (number, _) in self.manifest.files.iter().filter(|(_, known)| known.state.is_live()) {
            let path = file_path(&self.directory, *number);
            let growing = self.active.as_ref().filter(|active| active.number == *number);
            let bytes = match growing {
                // The file may be longer, because the rest of a failed write may be after this length.
                Some(active) => active.length,
                None => read_length(&path)?,
            };
            link(&path, into, &file_name(*number))?;
            pinned.push(PinnedFile { name: file_name(*number), bytes });
        }
        for name in [manifest::FILE, manifest::BACKUP] {
            let path = self.directory.join(name);
            link(&path, into, name)?;
            pinned.push(PinnedFile { name: name.to_owned(), bytes: read_length(&path)? });
        }
        pinned.extend(link_quarantine(&self.directory, into, quarantine::DIRECTORY)?);
        Ok(pinned)
    }
}
