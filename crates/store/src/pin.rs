//! Pins the files of a store for a backup: makes hard links to them, as they are at one moment.
//!
//! A link keeps the bytes of a file that the store removes later. The store still appends to the newest files, so each
//! pinned file has a length: bytes after it are not part of the state.
//!
//! The steps, in this order:
//!
//! ```text
//!   metadata lock     no further generation counts as flushed
//!   files of driver   between two writes of the driver
//!   journals          later than the driver, so they hold all that the driver lacks
//! ```
//! Opening the pinned files is the same as opening the store after a crash.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::Path;

use crate::disk::{Disk, RealDisk, make_directory, names_in};
use crate::driver::{Driver, PinnedFile};
use crate::generation::Generations;
use crate::guarded::Guarded;
use crate::journal::{QUARANTINE, format::file_generation};
use crate::shared::Metadata;
use crate::{Error, Result};

/// The files of a data directory that belong to a backup and to a repaired directory, next to `chunks/` and `journal/`.
pub const SIDE_FILES: [&str; 5] = ["probes.json", "record_types.json", "tacho.toml", "tokens", "tokens.used"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    pub driver: Vec<PinnedFile>,
    pub journal: Vec<PinnedFile>,
    /// The newest generation in memory, and the acknowledged bytes of its journal; zeros if there is no such generation.
    pub generation: u64,
    pub offset: u64,
}

/// The refusal of a file that is a symbolic link. This process may have more rights than the user who has made the link.
pub fn refused_link(path: &Path) -> Error {
    let message = "file is a symbolic link: replace it by a copy of its destination to back it up";
    Error::invalid(message).with("path", path.display())
}

/// Whether the caller must pass this file to [`link`]: true for a regular file, and for a symbolic link to an existing file.
/// `link` refuses the latter with an error. A backup omits other files, directories and dangling links.
pub fn is_wanted(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => path.exists(),
        Ok(found) => found.is_file(),
        // A later call of [`link`] reports the cause.
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// Makes a hard link to the file `from` in the directory `into`. The caller makes this directory once for all links, because
/// [`make_directory`] syncs the directory above, and no row can be written while the links are made.
///
/// # Errors
/// `Io` if the link cannot be made for another reason than these; `Invalid` in these cases:
/// - The file is a symbolic link.
/// - The file system has no hard links, or `into` is on another file system.
/// - A permission is missing, or the system forbids hard links to files of other users (`protected_hardlinks`).
pub fn link(from: &Path, into: &Path, name: &str) -> Result<()> {
    let to = into.join(name);
    // A hard link to a symbolic link is a symbolic link, too. The new link is checked and not `from`, because another process
    // may replace `from` in between.
    let linked = std::fs::hard_link(from, &to).and_then(|()| std::fs::symlink_metadata(&to));
    let linked = linked.map(|found| found.is_symlink());
    if matches!(linked, Ok(true)) {
        let _ = std::fs::remove_file(&to);
        return Err(refused_link(from));
    }
    linked.map(drop).map_err(|error| match error.kind() {
        ErrorKind::Unsupported | ErrorKind::PermissionDenied | ErrorKind::CrossesDevices => {
            let message = "hard link to this file is not possible: the file belongs to another user, the file system has no \
                           hard links, or the link would be on another file system: change the owner, or stop the server to \
                           back up its directory";
            Error::invalid(message).with("path", from.display()).caused_by(error)
        }
        _ => Error::io("make hard link", from, error),
    })
}

/// Makes hard links to the files of the quarantine `from/name`, if it exists. The links are in `into/name`.
///
/// # Errors
/// Like [`link`], and `Io` if the directory cannot be listed.
pub fn link_quarantine(from: &Path, into: &Path, name: &str) -> Result<Vec<PinnedFile>> {
    let (from, into) = (from.join(name), into.join(name));
    let mut names = names_in(&RealDisk, "list quarantine", &from)?;
    names.retain(|file| is_wanted(&from.join(file)));
    if !names.is_empty() {
        make_directory(&into).map_err(|e| Error::io("make directory", &into, e))?;
    }
    let mut pinned = Vec::with_capacity(names.len());
    for file in names {
        let path = from.join(&file);
        link(&path, &into, &file)?;
        let bytes = RealDisk.length(&path).map_err(|e| Error::io("read length", &path, e))?;
        pinned.push(PinnedFile { name: format!("{name}/{file}"), bytes });
    }
    Ok(pinned)
}

/// Links the files of the driver into `into[0]`, and the journals in `directory` into `into[1]`.
pub async fn pin(
    driver: &dyn Driver,
    metadata: &Metadata,
    generations: &Guarded<Generations>,
    directory: &Path,
    into: [&Path; 2],
) -> Result<Pinned> {
    let _no_flush_ends = metadata.lock.lock().await;
    let of_driver = driver.pin(into[0]).await?;
    let (lengths, next): (HashMap<u64, u64>, u64) = {
        let generations = generations.read();
        let sealed = generations.sealed.iter().map(|sealed| (sealed.number, sealed.journal.length));
        let open = generations.active.iter().map(|open| (open.number, open.journal.length));
        (sealed.chain(open).collect(), generations.next)
    };
    let (from, to) = (directory.to_owned(), into[1].to_owned());
    let newest = lengths.iter().max().map_or((0, 0), |(number, length)| (*number, *length));
    let links = tokio::task::spawn_blocking({
        let lengths = lengths.clone();
        move || link_journals(&from, &to, (&lengths, next))
    })
    .await;
    let journal = links.map_err(|e| Error::corrupt("links were not made").caused_by(e))??;
    check_complete(&generations.read(), &journal, &lengths)?;
    Ok(Pinned { driver: of_driver, journal, generation: newest.0, offset: newest.1 })
}

/// Refuses links that lack the journal of a generation that is still in memory. The journal of another generation in `lengths`
/// may be missing: that generation was flushed before the metadata lock was taken, so the driver has its records. Generations
/// that `lengths` lacks are newer than the state.
fn check_complete(
    generations: &Generations,
    journal: &[PinnedFile],
    lengths: &HashMap<u64, u64>,
) -> Result<()> {
    let linked: HashSet<u64> = journal.iter().filter_map(|file| file_generation(&file.name)).collect();
    let sealed = generations.sealed.iter().map(|sealed| sealed.number);
    let in_memory = sealed.chain(generations.active.iter().map(|open| open.number));
    let absent = in_memory
        .filter(|number| lengths.get(number).is_some_and(|bytes| *bytes > 0))
        .find(|number| !linked.contains(number));
    absent.map_or(Ok(()), |number| {
        let message = "journal does not exist: its records are only in memory, and not in a backup";
        Err(Error::corrupt(message).with("generation", number))
    })
}

/// Links the journals of the generations in memory, whose lengths are given. Files from generation `next` on are newer
/// than the state. The generations of all other files were flushed, so these files may be removed at any moment. They are linked
/// if they still exist, because a damaged file may be about to be moved to the quarantine.
fn link_journals(
    from: &Path,
    into: &Path,
    (lengths, next): (&HashMap<u64, u64>, u64),
) -> Result<Vec<PinnedFile>> {
    make_directory(into).map_err(|e| Error::io("make directory", into, e))?;
    let mut pinned = Vec::new();
    for name in names_in(&RealDisk, "list journal", from)? {
        let Some(generation) = file_generation(&name).filter(|generation| *generation < next) else {
            continue;
        };
        let known = lengths.get(&generation).copied();
        let linked = match std::fs::symlink_metadata(from.join(&name)) {
            Ok(found) => link(&from.join(&name), into, &name).map(|()| known.unwrap_or(found.len())),
            Err(error) => Err(Error::io("read length", &from.join(&name), error)),
        };
        match linked {
            Ok(bytes) => pinned.push(PinnedFile { name, bytes }),
            // The flusher removes journals of flushed generations at any moment.
            Err(_) if !from.join(&name).exists() => {}
            Err(error) => return Err(error),
        }
    }
    pinned.extend(link_quarantine(from, into, QUARANTINE)?);
    Ok(pinned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbolic_link_is_refused_and_not_copied() {
        let place = tempfile::tempdir().unwrap();
        let [outside, from, into] = ["outside", "link", "links"].map(|name| place.path().join(name));
        std::fs::write(&outside, "secret").unwrap();
        std::fs::create_dir(&into).unwrap();
        std::os::unix::fs::symlink(&outside, &from).unwrap();
        let error = link(&from, &into, "x").unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Invalid);
        assert!(error.to_string().starts_with("file is a symbolic link: replace it"), "{error}");
        assert_eq!(names_in(&RealDisk, "list", &into).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_link_makes_and_syncs_no_directory() {
        let place = tempfile::tempdir().unwrap();
        let [from, into] = ["file", "links"].map(|name| place.path().join(name));
        std::fs::write(&from, "abc").unwrap();
        let error = link(&from, &into, "x").unwrap_err();
        assert_eq!((error.kind(), into.exists()), (crate::ErrorKind::Io, false), "{error}");
    }

    #[test]
    fn a_quarantine_is_pinned_without_directories_and_dangling_links() {
        let place = tempfile::tempdir().unwrap();
        let quarantine = place.path().join("quarantine");
        std::fs::create_dir_all(quarantine.join("directory")).unwrap();
        std::os::unix::fs::symlink("absent", quarantine.join("dangling")).unwrap();
        std::fs::write(quarantine.join("file"), "abc").unwrap();
        let pinned = link_quarantine(place.path(), &place.path().join("links"), "quarantine").unwrap();
        assert_eq!(pinned, [PinnedFile { name: "quarantine/file".to_owned(), bytes: 3 }]);
        std::os::unix::fs::symlink("file", quarantine.join("link")).unwrap();
        link_quarantine(place.path(), &place.path().join("more"), "quarantine").unwrap_err();
    }

    #[test]
    fn a_forbidden_link_names_the_possible_causes() {
        let place = tempfile::tempdir().unwrap();
        // The system answers in the same way (EPERM) for a file of another user.
        let [directory, into] = ["directory", "links"].map(|name| place.path().join(name));
        for path in [&directory, &into] {
            std::fs::create_dir(path).unwrap();
        }
        let error = link(&directory, &into, "x").unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Invalid);
        assert!(
            error.to_string().contains("the file belongs to another user, the file system has"),
            "{error}"
        );
    }
}
