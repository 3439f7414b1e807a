//! Finds the files of a directory that the store does not read: unknown files, leftovers, and quarantined files.

use std::path::Path;

use tacho_store::Result;
use tacho_store::check::{Finding, FindingKind, Place, unusable_lock};
use tacho_store::disk::{RealDisk, irregular_or_link, names_in};

use super::super::end;
use super::super::format::{file_name, file_number};
use super::super::manifest::{BACKUP, FILE, LOST, Manifest};
use super::super::quarantine::{self, Missing};
use super::super::survey::Mismatch;

/// Known names in a directory, apart from segments.
const KNOWN: [&str; 7] = ["LOCK", FILE, BACKUP, LOST, end::FILE, "RESERVE", "quarantine"];

const FOREIGN_REMEDY: &str = "put the right file back under this name; if files were renamed by mistake, give them their \
                              original names; if the right file is lost, use tacho repair, which excludes this file unless \
                              --accept names it";

pub struct Names<'a> {
    pub directory: &'a Path,
    pub prefix: &'a str,
}

impl Names<'_> {
    pub fn file(&self, name: &str) -> Place {
        Place::file(format!("{}{name}", self.prefix))
    }

    pub fn of(&self, number: u32) -> Place {
        self.file(&file_name(number))
    }

    /// Findings that need no content of segments: from the names and types of the files, and from the manifest.
    pub fn findings(&self, manifest: &Manifest) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        for name in names_in(&RealDisk, "list segments", self.directory)? {
            let is_copy =
                name.strip_suffix(".new").is_some_and(|name| [FILE, BACKUP, end::FILE].contains(&name));
            if is_copy {
                findings.push(Finding::new(
                    FindingKind::Leftover,
                    self.file(&name),
                    "unfinished copy of a file",
                ));
            } else if name == LOST {
                let why = "the server opens this directory even if segment files are missing";
                findings.push(Finding::new(FindingKind::Permission, self.file(&name), why));
            } else if file_number(&name).is_none() && !KNOWN.contains(&name.as_str()) {
                findings.push(Finding::new(
                    FindingKind::UnknownFile,
                    self.file(&name),
                    "not a file of this store",
                ));
            }
        }
        let lock = irregular_or_link(&self.directory.join("LOCK"));
        findings.extend(lock.map(|why| self.lock(why)));
        let reserve = irregular_or_link(&self.directory.join("RESERVE"));
        findings.extend(reserve.map(|why| self.needless(&self.file("RESERVE"), why)));
        findings.extend(
            quarantine::list(&RealDisk, self.directory)?.iter().map(|name| self.quarantined(name, manifest)),
        );
        Ok(findings)
    }

    fn quarantined(&self, name: &str, manifest: &Manifest) -> Finding {
        let place = self.file(&format!("quarantine/{name}"));
        if quarantine::is_torn_end(name) {
            return Finding::new(
                FindingKind::EndDoubtful,
                place,
                "copy of the end that was cut off a segment",
            );
        }
        if let Some(Missing { number, offset, bytes }) = quarantine::missing(name) {
            let name = file_name(number);
            let why =
                format!("a start of the server found that {name} lacks {bytes} bytes from byte {offset} on");
            return Finding::new(FindingKind::Quarantined, place, why)
                .effect("every answer warns that records may be missing");
        }
        match quarantine::number(name) {
            Some(number) => {
                let why = match manifest.files.get(&number) {
                    Some(known) => {
                        format!("an unreadable segment; the manifest states {} bytes", known.bytes)
                    }
                    None => "an unreadable segment that the manifest does not list".into(),
                };
                Finding::new(FindingKind::Quarantined, place, why)
                    .effect("every answer warns that records may be missing")
            }
            None => Finding::new(FindingKind::UnknownFile, place, "not a file of this store"),
        }
    }

    fn lock(&self, why: &str) -> Finding {
        unusable_lock(self.file("LOCK"), why)
    }

    /// An object that the server does not use, under the name of one of its files.
    pub fn needless(&self, place: &Place, why: &str) -> Finding {
        let remedy = "remove it: the server does not use it, and makes the file again if it needs one";
        Finding::new(FindingKind::UnknownFile, place.clone(), why).remedy(remedy)
    }

    /// A file that is sound in itself, and not a file of this store.
    pub fn foreign(&self, number: u32, why: &str) -> Finding {
        Finding::new(FindingKind::FileForeign, self.of(number), why)
            .effect("its rows are not read; the server refuses to open the directory")
            .remedy(FOREIGN_REMEDY)
    }

    pub fn mismatch(&self, number: u32, mismatch: Mismatch) -> Finding {
        let effect = "the server refuses to open the directory";
        match mismatch {
            Mismatch::Missing => {
                Finding::new(FindingKind::FileMissing, self.of(number), "the manifest names this file")
            }
            Mismatch::Irregular(why) => Finding::new(FindingKind::FileUnreadable, self.of(number), why),
            Mismatch::Short(bytes, of) => {
                let why = format!("it has {bytes} of the {of} bytes in the manifest");
                Finding::new(FindingKind::FileShort, self.of(number), why)
            }
            Mismatch::Unnamed => Finding::new(
                FindingKind::FileForeign,
                self.of(number),
                "it has rows, and the manifest does not name it",
            ),
        }
        .effect(effect)
    }
}
