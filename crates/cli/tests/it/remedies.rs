//! Follows the remedies in the message of a refused start to the letter. After the remedies of one message, the next start
//! succeeds, and all records of the undamaged files are there.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tacho_model::ManualClock;
use tacho_server::data_directory;
use tacho_store::ErrorKind;

use crate::support::checked::{copy, files, is_segment, records};
use crate::support::filled::{directory, fill, in_runtime};

/// The directories of a test.
struct Place {
    root: tempfile::TempDir,
    /// The last sealed segment and the newest journal, relative to the data directory. The first segment has the labels.
    segment: PathBuf,
    journal: PathBuf,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let [data, journals, segments] =
            ["data", "other/journals", "other/segments"].map(|name| root.path().join(name));
        directory(&data);
        directory(&journals);
        in_runtime(fill(&segments, 0..4, false));
        let names = files(&data).into_iter().map(|path| path.strip_prefix(&data).unwrap().to_owned());
        let names: Vec<PathBuf> = names.collect();
        let segment = names.iter().filter(|name| is_segment(name)).rev().nth(1).unwrap().clone();
        let journal = names.iter().rfind(|name| is_journal(name)).unwrap().clone();
        Self { root, segment, journal }
    }

    fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    fn damaged(&self) -> PathBuf {
        self.root.path().join("damaged")
    }

    fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.damaged().join(name)
    }

    /// Moves an object out of the data directory.
    fn move_away(&self, name: impl AsRef<Path>) {
        let name = name.as_ref();
        let aside = self.root.path().join("aside").join(name);
        std::fs::create_dir_all(aside.parent().unwrap()).unwrap();
        std::fs::rename(self.at(name), aside).unwrap();
    }
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "journal")
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The message of a refused start; `None` if it succeeds.
fn start(data: &Path) -> Option<String> {
    let mut message = None;
    in_runtime(async {
        loop {
            match data_directory::open(data, Arc::new(ManualClock::new(0))).await {
                Ok(_) => return,
                // The process `mkfifo` inherits a lock of another test until it executes its program.
                Err(error) if error.kind() == ErrorKind::Locked => tokio::task::yield_now().await,
                Err(error) => return message = Some(error.to_string()),
            }
        }
    });
    message
}

/// The empty files that a message says to make.
fn permissions(message: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for begin in ["make an empty file ", "make the empty files "] {
        for (at, _) in message.match_indices(begin) {
            let rest = &message[at + begin.len()..];
            let end = [" (path ", " to start "].iter().filter_map(|end| rest.find(end)).min();
            let listed = &rest[..end.unwrap_or(rest.len())];
            found.extend(listed.split(" and ").map(PathBuf::from));
        }
    }
    found
}

/// Which records are there after the remedies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    All,
    /// All records except those of the lost files.
    Some,
    /// At least the records of the rounds that are in journals. In each round, [`directory`] writes one batch.
    Journals,
    /// At least the records of the rounds that are in segments only.
    Flushed,
}

struct Case {
    name: &'static str,
    damage: fn(&Place),
    /// Parts of the message.
    says: &'static [&'static str],
    /// The remedies in the message, besides the empty files.
    follow: fn(&Place),
    /// Number of different empty files that the test makes, because the message names them.
    permissions: usize,
    left: Left,
}

fn remove_manifests(place: &Place) {
    for name in ["chunks/MANIFEST", "chunks/MANIFEST.backup"] {
        std::fs::remove_file(place.at(name)).unwrap();
    }
}

fn replace(path: &Path, make: fn(&Path)) {
    std::fs::remove_file(path).unwrap();
    make(path);
}

const NOTHING: fn(&Place) = |_| ();

const CASES: [Case; 14] = [
    Case {
        name: "segment missing",
        damage: |place| std::fs::remove_file(place.at(&place.segment)).unwrap(),
        says: &["segment files do not match the manifest", " is missing"],
        follow: NOTHING,
        permissions: 1,
        left: Left::Some,
    },
    Case {
        name: "segment and journal missing",
        damage: |place| {
            std::fs::remove_file(place.at(&place.segment)).unwrap();
            std::fs::remove_file(place.at(&place.journal)).unwrap();
        },
        says: &["segment files do not match the manifest", "chunks/ does not show that it was flushed"],
        follow: NOTHING,
        permissions: 2,
        left: Left::Some,
    },
    Case {
        name: "no manifest, no journal",
        damage: |place| {
            remove_manifests(place);
            std::fs::remove_file(place.at(&place.journal)).unwrap();
        },
        says: &[
            "neither MANIFEST nor MANIFEST.backup can be read",
            "chunks/ does not show that it was flushed",
        ],
        follow: NOTHING,
        permissions: 2,
        left: Left::Flushed,
    },
    Case {
        name: "no manifest, and a segment missing",
        damage: |place| {
            remove_manifests(place);
            std::fs::remove_file(place.at(&place.segment)).unwrap();
        },
        says: &["neither MANIFEST nor MANIFEST.backup can be read"],
        follow: NOTHING,
        permissions: 1,
        left: Left::Some,
    },
    Case {
        name: "directory in place of a manifest",
        damage: |place| replace(&place.at("chunks/MANIFEST"), |path| std::fs::create_dir(path).unwrap()),
        says: &["move it away, the next start writes both copies again"],
        follow: |place| place.move_away("chunks/MANIFEST"),
        permissions: 0,
        left: Left::All,
    },
    Case {
        name: "FIFOs in place of both manifests and of a journal",
        damage: |place| {
            ["chunks/MANIFEST", "chunks/MANIFEST.backup"]
                .iter()
                .for_each(|name| replace(&place.at(name), fifo));
            replace(&place.at(&place.journal), fifo);
        },
        says: &[
            "MANIFEST)",
            "MANIFEST.backup)",
            "neither MANIFEST nor",
            "it is not a regular file: move it away",
        ],
        follow: |place| {
            place.move_away("chunks/MANIFEST");
            place.move_away("chunks/MANIFEST.backup");
            place.move_away(&place.journal);
        },
        permissions: 2,
        left: Left::Flushed,
    },
    Case {
        name: "FIFO in place of a segment",
        damage: |place| replace(&place.at(&place.segment), fifo),
        says: &["it is not a regular file"],
        follow: NOTHING,
        permissions: 1,
        left: Left::Some,
    },
    Case {
        name: "link of a segment to itself",
        damage: |place| {
            place.move_away(&place.segment);
            symlink(place.at(&place.segment), place.at(&place.segment)).unwrap();
        },
        says: &["symbolic link leads back to itself: replace it by the file"],
        follow: |place| {
            std::fs::remove_file(place.at(&place.segment)).unwrap();
            std::fs::copy(place.root.path().join("aside").join(&place.segment), place.at(&place.segment))
                .unwrap();
        },
        // The message also names an empty file. The test does not make it, because the segment is put back instead.
        permissions: 0,
        left: Left::All,
    },
    Case {
        name: "journal without a readable record",
        damage: |place| std::fs::write(place.at(&place.journal), vec![b'#'; 9_000]).unwrap(),
        says: &["and no record can be read: move the file away to continue without it"],
        follow: |place| place.move_away(&place.journal),
        permissions: 1,
        left: Left::Flushed,
    },
    Case {
        name: "journal under another name",
        damage: |place| {
            let other = place.at("journal/00000000000000000099.journal");
            std::fs::rename(place.at(&place.journal), other).unwrap();
        },
        says: &["has the name of another generation: rename it"],
        follow: |place| {
            let other = place.at("journal/00000000000000000099.journal");
            std::fs::rename(other, place.at(&place.journal)).unwrap();
        },
        permissions: 0,
        left: Left::All,
    },
    Case {
        name: "journal of another store in place of the own one",
        damage: |place| {
            let theirs =
                files(&place.root.path().join("other/journals")).into_iter().rfind(|path| is_journal(path));
            std::fs::copy(theirs.unwrap(), place.at(&place.journal)).unwrap();
        },
        says: &["journal belongs to another store", "move it back to the directory of its store"],
        follow: |place| place.move_away(&place.journal),
        permissions: 1,
        left: Left::Flushed,
    },
    Case {
        name: "segment of another store in place of the own one",
        damage: |place| {
            let theirs =
                files(&place.root.path().join("other/segments")).into_iter().find(|path| is_segment(path));
            std::fs::copy(theirs.unwrap(), place.at(&place.segment)).unwrap();
        },
        says: &["segment files are not those of this store", "move the wrong one out of this directory"],
        follow: |place| place.move_away(&place.segment),
        permissions: 1,
        left: Left::Some,
    },
    Case {
        name: "no chunks",
        damage: |place| std::fs::remove_dir_all(place.at("chunks")).unwrap(),
        says: &["journals exist, but the data flushed before them is missing"],
        follow: NOTHING,
        permissions: 1,
        left: Left::Journals,
    },
    Case {
        name: "link in place of a lock",
        damage: |place| replace(&place.at("journal/LOCK"), |path| symlink("../LOCK", path).unwrap()),
        says: &["remove it while no server uses the directory, the next start creates it again"],
        follow: |place| std::fs::remove_file(place.at("journal/LOCK")).unwrap(),
        permissions: 0,
        left: Left::All,
    },
];

#[test]
fn after_the_remedies_of_one_message_the_server_starts_and_keeps_all_other_records() {
    let place = Place::new();
    let whole = records(&place.data());
    let of_round = |record: &String, rounds: std::ops::Range<usize>| {
        rounds.into_iter().any(|round| record.contains(&format!(" of round {round} took ")))
    };
    for Case { name, damage, says, follow, permissions: count, left } in CASES {
        copy(&place.data(), &place.damaged());
        let _ = std::fs::remove_dir_all(place.root.path().join("aside"));
        damage(&place);
        let message = start(&place.damaged()).unwrap_or_else(|| panic!("{name}: the server starts"));
        says.iter().for_each(|part| assert!(message.contains(part), "{name}: {part}: {message}"));
        let wanted: BTreeSet<PathBuf> = permissions(&message).into_iter().collect();
        follow(&place);
        if count > 0 || left != Left::All {
            assert_eq!(wanted.len(), count, "{name}: {message}");
            wanted.iter().for_each(|path| std::fs::write(path, "").unwrap());
        }
        assert_eq!(start(&place.damaged()), None, "{name}, after: {message}");
        let found = records(&place.damaged());
        assert!(!found.is_empty() && found.is_subset(&whole), "{name}: {} records", found.len());
        let has = |rounds: std::ops::Range<usize>| {
            found.iter().filter(|record| of_round(record, rounds.clone())).count()
        };
        match left {
            Left::All => assert!(found == whole, "{name}: {} of {} records", found.len(), whole.len()),
            Left::Some => assert!(found.len() < whole.len(), "{name}: nothing was lost"),
            Left::Flushed => assert_eq!(has(0..9), 900, "{name}"),
            Left::Journals => assert_eq!(has(9..11), 200, "{name}"),
        }
        assert_eq!(start(&place.damaged()), None, "{name}, second start");
    }
}
