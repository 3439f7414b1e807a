//! Opens a directory for writing after its survey: finishes removals, quarantines unreadable files, prepares segments for
//! writing.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use tacho_store::disk::{Disk, SyncPoint, exists, sync_names};
use tacho_store::mutation::Mutation;
use tacho_store::{Error, Result};

use super::end::End;
use super::format::{BATCH_HEAD_BYTES, file_path};
use super::load::{Loaded, checksum};
use super::manifest::{Known, LOST, State};
use super::quarantine::{self, Missing};
use super::scan::{Damage, Scanned};
use super::segments::{Active, Handles, Purpose, Segments};
use super::survey::{Survey, add_absent, add_missing};

impl Segments {
    /// Opens a surveyed directory for writing. `handles` are the files that the survey has opened.
    pub fn open(
        directory: &Path,
        disk: Arc<dyn Disk>,
        bytes_max: u64,
        survey: Survey,
        handles: &Handles,
    ) -> Result<Self> {
        let lost_rows = survey.unfinished(&*disk, directory)?;
        let Survey {
            manifest,
            is_complete,
            is_accepted,
            manifest_damaged,
            files,
            unread,
            quarantine: names,
            absent,
            ..
        } = survey;
        let before = manifest.clone();
        let mut segments = Self::new(directory, disk, bytes_max, manifest);
        segments.manifest_damaged = manifest_damaged;
        let numbers = files.iter().map(|(number, _)| *number).chain(unread.iter().copied());
        let aside = names.iter().filter_map(|name| quarantine::number(name));
        let next = numbers.chain(aside).max().map_or(1, |newest| newest.saturating_add(1));
        segments.manifest.next = segments.manifest.next.max(next);
        log_quarantine(directory, &names);
        // The previous process may have ended before it synced a name. A power failure could then undo the renaming of a copy of
        // the manifest, so that the other copy lists a file that is removed below. Or it could undo a removal, after the manifest
        // no longer lists the file.
        let points = [SyncPoint::SegmentQuarantineAtStart, SyncPoint::SegmentNamesAtStart];
        sync_names(&*segments.disk, (&quarantine::path(directory), directory), points)?;
        let unfinished = |number: &u32| matches!(by_number(&files, *number), Some(Loaded::Unfinished));
        let newest = (1..segments.manifest.next).rev().find(|number| !unfinished(number));
        if is_accepted {
            segments.keep_end(newest, &files)?;
        }
        absent.iter().chain(&lost_rows).try_for_each(|missing| segments.note_missing(*missing))?;
        segments.take_in_quarantine(&names);
        segments.finish_removals(&unread);
        for (number, loaded) in files {
            if lost_rows.iter().any(|lost| lost.number == number) {
                segments.set_aside(number);
            } else {
                segments.adopt(number, newest == Some(number), loaded, handles)?;
            }
        }
        add_missing(&mut segments.damage, &segments.manifest, &names);
        add_absent(&mut segments.damage, &absent);
        if segments.manifest != before || !is_complete {
            segments.unwritten = true;
            // If this fails, it is repeated before the next row is written.
            match segments.write_manifest(Purpose::Freeing) {
                Ok(()) if is_accepted => segments.remove_permission(),
                Ok(()) => {}
                Err(error) => tracing::warn!(%error, "manifest not written"),
            }
        }
        segments.refill_reserve();
        Ok(segments)
    }

    /// Removes the file with which an operator permits that segment files are missing ([`LOST`]). The permission applies
    /// only to the files that are missing now.
    fn remove_permission(&self) {
        let path = self.directory.join(LOST);
        let removed = self.disk.remove(&path);
        let removed =
            removed.and_then(|()| self.disk.sync_directory(&self.directory, SyncPoint::PermissionRemoved));
        if let Err(error) = removed {
            let path = path.display();
            tracing::warn!(%path, %error, "remove this file: while it exists, files missing later are not detected");
        }
    }

    /// Quarantines a copy of the end that [`Self::cut_torn`] will cut off. Called only if an operator permits missing parts. This
    /// call must precede all other changes of the directory, because only the old `END` and the old manifest show that the end
    /// was acknowledged. Later steps replace both. If the process dies after these steps, the next start must find the copy.
    fn keep_end(&self, newest: Option<u32>, files: &[(u32, Loaded)]) -> Result<()> {
        let Some(number) = newest else { return Ok(()) };
        let known = self.manifest.files.get(&number);
        match by_number(files, number) {
            Some(Loaded::Scanned(Scanned { length, doubtful: true, .. }))
                if known.is_none_or(|known| known.state == State::Growing) =>
            {
                quarantine::keep_end(&*self.disk, &self.directory, number, *length).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Adds the quarantined files to the manifest. Removes from the manifest the files that an operator has taken out of the
    /// quarantine. Deletes that hide rows of a quarantined file are kept until the file is taken out.
    fn take_in_quarantine(&mut self, names: &[String]) {
        let known = Known { state: State::SetAside, bytes: 0, crc: None };
        let there: Vec<u32> = names.iter().filter_map(|name| quarantine::number(name)).collect();
        // A number with a file in the directory is ignored: an operator has put a repaired file back, or a new file has this
        // number.
        for number in there
            .iter()
            .filter(|number| !exists(&*self.disk, &file_path(&self.directory, **number)).unwrap_or(true))
        {
            let aside = |k: &mut Known| k.state = State::SetAside;
            self.manifest.files.entry(*number).and_modify(aside).or_insert(known);
        }
        self.manifest.files.retain(|number, known| known.state != State::SetAside || there.contains(number));
    }

    /// Removes the files that the previous process no longer needed.
    fn finish_removals(&mut self, unread: &[u32]) {
        self.manifest.files.retain(|number, known| known.state != State::Removed || unread.contains(number));
        unread.iter().for_each(|number| self.unlink(*number));
    }

    /// Adds a loaded file. `is_newest` means that no file was begun after it.
    fn adopt(&mut self, number: u32, is_newest: bool, loaded: Loaded, handles: &Handles) -> Result<()> {
        let path = file_path(&self.directory, number);
        let known = self.manifest.files.get(&number).copied();
        if let Some(damage) = loaded.damage() {
            self.damage.insert(number, damage.clone());
        }
        // The previous process may have ended before a sync, or after a failed sync. Rows that are read from now on, and the
        // length in the manifest, must survive a power failure.
        let unproven = match &loaded {
            Loaded::Scanned(scanned) => Some(scanned.proven),
            Loaded::Sealed(_) => Some(match known {
                Some(known) => known.bytes,
                None => self.disk.length(&path).map_err(|e| Error::io("read segment", &path, e))?,
            }),
            Loaded::Unfinished | Loaded::Unknown => None,
        };
        if let Some(from) = unproven.filter(|_| is_newest && !Mutation::SegmentNotRenewed.is_on()) {
            let renewed = self.disk.renew(&path, from, SyncPoint::SegmentRecovered);
            renewed.map_err(|e| Error::io("sync segment", &path, e))?;
        }
        if let Some(damage) = loaded.damage().filter(|damage| damage.missing > 0) {
            let offset = self.disk.length(&path).map_err(|e| Error::io("read segment", &path, e))?;
            self.note_missing(Missing { number, offset, bytes: damage.missing })?;
        }
        match loaded {
            Loaded::Unfinished => self.remove_unfinished(number, &path)?,
            Loaded::Unknown => self.set_aside(number),
            Loaded::Sealed(damage) => self.adopt_sealed(number, known, &damage, handles)?,
            Loaded::Scanned(scanned) => match known {
                Some(known) if known.state != State::Growing && scanned.damage.missing == 0 => {}
                Some(known) if known.state != State::Growing => {
                    let (bytes, crc) = (scanned.length + scanned.torn, None);
                    self.manifest.files.insert(number, Known { state: State::Ended, bytes, crc });
                }
                _ if is_newest => self.resume(number, scanned)?,
                _ => {
                    let bytes = scanned.length + scanned.torn;
                    self.manifest.files.insert(number, Known { state: State::Ended, bytes, crc: None });
                }
            },
        }
        Ok(())
    }

    /// Updates the manifest for a sealed file. The process may have died after sealing the file and before writing the
    /// manifest.
    fn adopt_sealed(
        &mut self,
        number: u32,
        known: Option<Known>,
        damage: &Damage,
        handles: &Handles,
    ) -> Result<()> {
        if known.is_some_and(|known| known.state != State::Growing) || damage.excess > 0 {
            return Ok(());
        }
        let path = file_path(&self.directory, number);
        let failed = |e| Error::io("read segment", &path, e);
        let Some(file) = handles.get(&number) else { return Ok(()) };
        let bytes = file.length().map_err(failed)?;
        let crc = match known {
            Some(_) => Some(checksum(&**file, bytes).map_err(failed)?),
            // The manifest did not name the file, for example because a version without a manifest wrote it. The checksum stays
            // unknown, because computing the checksums of all such files could mean reading hundreds of gigabytes.
            None => None,
        };
        self.manifest.files.insert(number, Known { state: State::Sealed, bytes, crc });
        Ok(())
    }

    /// Continues writing to the newest file after its valid part. A damaged file accepts no more rows.
    fn resume(&mut self, number: u32, scanned: Scanned) -> Result<()> {
        let path = file_path(&self.directory, number);
        let Scanned { index, length, torn, doubtful, marked, crc, damage, .. } = scanned;
        self.state_end(number, length, torn)?;
        let is_cut = torn == 0 || self.cut_torn(number, length, torn, doubtful)?;
        if damage.is_some() || !is_cut {
            let known = Known { state: State::Ended, bytes: length, crc: Some(crc) };
            self.manifest.files.insert(number, known);
            return Ok(());
        }
        let file = self.disk.open(&path).map_err(|e| Error::io("open segment", &path, e))?;
        let synced = if marked { length - BATCH_HEAD_BYTES as u64 } else { length };
        // If this fails, the next append of a record begins `END`.
        if let Err(error) = self.end.begin(&*self.disk, &self.directory, End { number, bytes: synced }) {
            tracing::warn!(%error, segment = number, "synced length of segment not written to END");
        }
        let mut active = Active { number, path, file, length, synced, crc, index, cut: false };
        if !marked {
            active.mark();
        }
        self.active = Some(active);
        self.manifest.files.insert(number, Known { state: State::Growing, bytes: synced, crc: None });
        Ok(())
    }

    /// Writes the end of the valid part to the manifest. The write comes before the cut, because the process may end between
    /// the cut and the next manifest.
    fn state_end(&mut self, number: u32, length: u64, torn: u64) -> Result<()> {
        let stated = self.manifest.files.get(&number).map_or(0, |known| known.bytes);
        if torn == 0 && stated <= length {
            return Ok(());
        }
        self.manifest.files.insert(number, Known { state: State::Growing, bytes: length, crc: None });
        match self.write_manifest(Purpose::Freeing) {
            // After the cut, the file would be shorter than the manifest states. The next start would refuse it, although only a
            // damaged mark is missing.
            Err(error) if stated > length => Err(error),
            Err(error) => {
                // Without this length, a start after a crash may regard damaged rows before the cut as a torn end.
                tracing::warn!(%error, "manifest not written");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Removes a file that is too short for a row. The manifest is written first, because a manifest that names a missing file
    /// is refused. If the write fails, the file stays, and the next start removes it.
    fn remove_unfinished(&mut self, number: u32, path: &Path) -> Result<()> {
        if let Some(known) = self.manifest.files.remove(&number)
            && let Err(error) = self.write_manifest(Purpose::Freeing)
        {
            tracing::warn!(path = %path.display(), %error, "unfinished segment not removed: manifest not written");
            self.manifest.files.insert(number, known);
            return Ok(());
        }
        tracing::info!(path = %path.display(), "unfinished segment removed: it is too short for a row");
        self.disk.remove(path).map_err(|e| Error::io("remove segment", path, e))
    }

    /// Cuts off the bytes after the valid part. If they may have been acknowledged, a copy is quarantined first. If
    /// copying fails, the bytes stay in the file, the segment ends before them, and the result is `false`.
    fn cut_torn(&mut self, number: u32, length: u64, torn: u64, doubtful: bool) -> Result<bool> {
        let path = file_path(&self.directory, number);
        let mut copy = None;
        if doubtful {
            match quarantine::keep_end(&*self.disk, &self.directory, number, length) {
                Ok(to) => copy = Some(to.display().to_string()),
                Err(error) => {
                    tracing::error!(%error, "damaged end of segment stays in the file");
                    return Ok(false);
                }
            }
        }
        let shown = path.display();
        tracing::warn!(path = %shown, offset = length, bytes = torn, copy, "torn end of segment cut off, good part kept");
        if Mutation::TornSegmentNotCut.is_on() {
            return Ok(true);
        }
        let cut = self.disk.cut(&path, length, SyncPoint::SegmentTornEnd);
        cut.map_err(|e| Error::io("cut torn segment", &path, e))?;
        self.torn_bytes += torn;
        Ok(true)
    }

    /// Writes a note about the missing end of a segment, before the manifest states that the segment has ended. Later starts
    /// detect the loss only by the note.
    fn note_missing(&mut self, missing: Missing) -> Result<()> {
        if Mutation::MissingEndNotNoted.is_on() {
            return Ok(());
        }
        let note = self.for_purpose(Purpose::Freeing, |segments| {
            quarantine::note_missing(&*segments.disk, &segments.directory, missing)
        })?;
        let Missing { number, offset, bytes } = missing;
        tracing::error!(
            path = %file_path(&self.directory, number).display(), offset, bytes, note = %note.display(),
            "the end of a segment is missing: its records were acknowledged"
        );
        Ok(())
    }

    /// Moves an unreadable file to the quarantine. If the move fails, the file stays in place and is not read.
    pub(super) fn set_aside(&mut self, number: u32) {
        let known = Known { state: State::SetAside, bytes: 0, crc: None };
        self.manifest.files.insert(number, known);
        match quarantine::set_aside(&*self.disk, &self.directory, number) {
            Ok(to) => tracing::error!(
                path = %to.display(), "unreadable segment file quarantined: records are missing"
            ),
            Err(error) => tracing::error!(%error, "unreadable segment file: records are missing"),
        }
    }

    /// Deletes a file that is marked as removed in the manifest. If the removal fails, the next open retries it. Until then,
    /// deletes that hide its rows are kept.
    pub(super) fn unlink(&mut self, number: u32) {
        let path = file_path(&self.directory, number);
        let removed = match self.disk.remove(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => self.disk.sync_directory(&self.directory, SyncPoint::SegmentRemoved),
        };
        match removed {
            Ok(()) => {
                self.manifest.files.remove(&number);
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "segment that is not needed any more was not removed");
            }
        }
    }
}

fn by_number(files: &[(u32, Loaded)], number: u32) -> Option<&Loaded> {
    files.iter().find(|(found, _)| *found == number).map(|(_, loaded)| loaded)
}

/// Logs each copy of a damaged end and each note about a missing end that is in the quarantine.
fn log_quarantine(directory: &Path, names: &[String]) {
    for name in names.iter().filter(|name| quarantine::is_torn_end(name)) {
        tracing::warn!(
            path = %quarantine::path(directory).join(name).display(),
            "copy of the damaged end of a segment: the end was cut off and may have been acknowledged before a power failure"
        );
    }
    for name in names.iter().filter(|name| quarantine::missing(name).is_some()) {
        let path = quarantine::path(directory).join(name);
        tracing::error!(
            path = %path.display(),
            "the end of a segment is missing, as this note states; to end the warnings in answers, remove the note and \
             restart"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_quarantine_identify_their_segment() {
        for (name, number) in [
            ("00000003.segment", Some(3)),
            ("00000003.segment.1", Some(3)),
            ("00000003.segment.torn-77", None),
            ("123456789.segment.1", Some(123_456_789)),
            ("+0000003.segment", None),
            ("000000003.segment", None),
            ("notes", None),
        ] {
            assert_eq!(quarantine::number(name), number, "{name}");
            assert_eq!(quarantine::is_torn_end(name), name.contains("torn"), "{name}");
        }
    }
}
