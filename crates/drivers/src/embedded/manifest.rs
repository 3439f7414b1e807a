//! The manifest: all segment files of the directory and their lengths (`docs/format/segment.md`).
//!
//! The directory holds two copies of the manifest. Both are written when a segment is created, sealed or removed.
//! Therefore missing files are detected, for example after an incomplete backup.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::path::Path;

use tacho_store::disk::{Disk, SyncPoint};
use tacho_store::{Error, ErrorKind, Result};

pub const FILE: &str = "MANIFEST";
pub const BACKUP: &str = "MANIFEST.backup";
/// Name of a file by which an operator permits opening the directory without the missing files.
pub const LOST: &str = "MANIFEST.lost";
const VERSION: u32 = 1;
const TITLE: &str = "tachograph manifest ";
const CHECKSUM: &str = "crc32c ";
/// Limit on the length of a manifest, bytes; enough for 20 million segments.
const BYTES_MAX: u64 = 1 << 30;
/// Limit on the characters of a malformed line that a message shows.
const LINE_CHARS_SHOWN: usize = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The segment accepts rows.
    Growing,
    /// The segment has ended, with index and trailer.
    Sealed,
    /// The segment has ended without an index, because it is damaged or an older version did not seal it.
    Ended,
    /// The segment is no longer needed. Its file may still exist, because a crash or an error may have prevented the removal.
    Removed,
    /// The file is not a readable segment. It was moved to `quarantine/`.
    SetAside,
}

impl State {
    const ALL: [(Self, &str); 5] = [
        (Self::Growing, "growing"),
        (Self::Sealed, "sealed"),
        (Self::Ended, "ended"),
        (Self::Removed, "removed"),
        (Self::SetAside, "quarantined"),
    ];

    /// Whether the rows of the file are part of the store.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Growing | Self::Sealed | Self::Ended)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(state, _)| *state)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub state: State,
    /// The length of the file. For a growing segment, its minimum length.
    pub bytes: u64,
    /// CRC-32C of an ended file. `None` if it was never computed.
    pub crc: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Rises with each write of the manifest.
    pub sequence: u64,
    /// Number of the next segment. Numbers are not reused.
    pub next: u32,
    pub files: BTreeMap<u32, Known>,
}

pub struct Found {
    pub manifest: Option<Manifest>,
    /// Names of damaged copies, and the reasons.
    pub damaged: Vec<(&'static str, String)>,
    /// Names of the copies in whose place another object is, and what it is. They are not in `damaged`.
    pub irregular: Vec<(&'static str, &'static str)>,
    /// Whether both copies exist and are equal.
    pub complete: bool,
}

impl Manifest {
    pub fn encode(&self) -> Vec<u8> {
        let mut text = format!("{TITLE}{VERSION}\nsequence {}\nnext {}\n", self.sequence, self.next);
        for (number, Known { state, bytes, crc }) in &self.files {
            let crc = crc.map_or_else(|| "-".to_owned(), |crc| format!("{crc:08x}"));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "segment {number} {} {bytes} {crc}", state.name());
        }
        let crc = crc32c::crc32c(text.as_bytes());
        let _ = writeln!(text, "{CHECKSUM}{crc:08x}");
        text.into_bytes()
    }

    /// # Errors
    /// `Version` for a newer version; `Corrupt` for any other bytes that [`Self::write`] did not write.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = |why: &str| Error::corrupt(why);
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("not a text"))?;
        let at = text.trim_end().rfind('\n').ok_or_else(|| damaged("no checksum"))? + 1;
        let (body, last) = text.split_at(at);
        let expect = format!("{CHECKSUM}{:08x}\n", crc32c::crc32c(body.as_bytes()));
        if last != expect {
            return Err(damaged("checksum mismatch"));
        }
        let mut lines = body.lines();
        let title = lines.next().and_then(|line| line.strip_prefix(TITLE));
        match title.and_then(|version| version.parse::<u32>().ok()) {
            Some(VERSION) => {}
            Some(version) => {
                let message = format!("manifest has version {version}, this program reads up to {VERSION}");
                return Err(Error::new(ErrorKind::Version, message));
            }
            None => return Err(damaged("not a manifest")),
        }
        let mut manifest = Self::default();
        for (number, line) in (2..).zip(lines) {
            let malformed = || {
                let shown: String = line.chars().take(LINE_CHARS_SHOWN).collect();
                let more = if shown.len() < line.len() { ".." } else { "" };
                damaged(&format!("malformed line {number}: {shown:?}{more}"))
            };
            manifest.line(line).ok_or_else(malformed)?;
        }
        // The comparison detects missing lines, repeated lines, and lines in a form that `encode` does not write.
        match manifest.encode().iter().zip(bytes).position(|(a, b)| a != b) {
            None => Ok(manifest),
            Some(at) => {
                let line = 1 + body.bytes().take(at).filter(|byte| *byte == b'\n').count();
                Err(damaged(&format!("line {line} is not as this program writes it")))
            }
        }
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["sequence", sequence] => self.sequence = sequence.parse().ok()?,
            ["next", next] => self.next = next.parse().ok()?,
            ["segment", number, state, bytes, crc] => {
                let crc = if crc == "-" { None } else { Some(u32::from_str_radix(crc, 16).ok()?) };
                let known = Known { state: State::from_name(state)?, bytes: bytes.parse().ok()?, crc };
                self.files.insert(number.parse().ok()?, known);
            }
            _ => return None,
        }
        Some(())
    }

    /// Reads both copies and returns the later one.
    ///
    /// # Errors
    /// `Version` when a newer version wrote a copy; `Io` when a copy cannot be read.
    pub fn read(disk: &dyn Disk, directory: &Path) -> Result<Found> {
        let mut found = Found { manifest: None, damaged: Vec::new(), irregular: Vec::new(), complete: false };
        let mut copies = Vec::new();
        for name in [FILE, BACKUP] {
            let path = directory.join(name);
            if let Some(why) = disk.irregular(&path) {
                found.irregular.push((name, why));
                continue;
            }
            let bytes = match disk.length(&path) {
                Ok(length) if length > BYTES_MAX => {
                    found.damaged.push((name, format!("it has {length} bytes")));
                    continue;
                }
                Ok(_) => disk.read(&path).map_err(|e| Error::io("read manifest", &path, e))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io("read manifest", &path, error)),
            };
            match Self::decode(&bytes) {
                Ok(copy) => copies.push(copy),
                Err(error) if error.kind() == ErrorKind::Version => {
                    return Err(error.with("path", path.display()));
                }
                Err(error) => found.damaged.push((name, error.to_string())),
            }
        }
        found.complete = matches!(&copies[..], [a, b] if a == b);
        found.manifest = copies.into_iter().max_by_key(|copy| copy.sequence);
        Ok(found)
    }

    /// Replaces both copies. The backup is written first, so that it is never older than the other copy. On return both
    /// copies are durable.
    pub fn write(&mut self, disk: &dyn Disk, directory: &Path) -> Result<()> {
        self.sequence += 1;
        let bytes = self.encode();
        for name in [BACKUP, FILE] {
            let path = directory.join(name);
            let new = directory.join(format!("{name}.new"));
            let replace = || {
                match disk.remove(&new) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
                let mut file = disk.open(&new)?;
                file.append(&bytes)?;
                file.sync(SyncPoint::ManifestBytes)?;
                disk.rename(&new, &path)
            };
            replace().map_err(|e| {
                let _ = disk.remove(&new);
                Error::io("write manifest", &path, e)
            })?;
        }
        let synced = disk.sync_directory(directory, SyncPoint::ManifestNames);
        synced.map_err(|e| Error::io("sync directory", directory, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Manifest {
        let known = |state, bytes, crc| Known { state, bytes, crc };
        let files = BTreeMap::from([
            (1, known(State::SetAside, 70_000, None)),
            (2, known(State::Removed, 268_435_999, Some(7))),
            (3, known(State::Sealed, 268_436_123, Some(0x1a2b_3c4d))),
            (4, known(State::Ended, 1_000, None)),
            (5, known(State::Growing, 24, None)),
        ]);
        Manifest { sequence: 12, next: 6, files }
    }

    #[test]
    fn a_manifest_round_trips() {
        for manifest in [example(), Manifest::default()] {
            assert_eq!(Manifest::decode(&manifest.encode()).unwrap(), manifest);
        }
    }

    #[test]
    fn every_damage_is_detected() {
        let bytes = example().encode();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(Manifest::decode(&damaged).unwrap_err().kind(), ErrorKind::Corrupt, "byte {at}");
            }
            Manifest::decode(&bytes[..at]).unwrap_err();
        }
    }

    #[test]
    fn only_the_written_form_is_accepted() {
        let text = String::from_utf8(example().encode()).unwrap();
        let (body, _) = text.split_at(text.trim_end().rfind('\n').unwrap() + 1);
        let long = "x".repeat(1_000_000);
        for (from, to, expect) in [
            ("sequence 12\n", "sequence 12\nsequence 12\n", "line 3 is not"),
            ("sequence 12\n", "sequence +12\n", "line 2 is not"),
            ("next 6\n", "", "line 3 is not"),
            ("1a2b3c4d", "1A2b3c4d", "line 6 is not"),
            ("00000007", "7", "line 5 is not"),
            ("segment 5 growing 24 -\n", "segment 5 growing 24 -\nsegment 5 ended 24 -\n", "line 8 is not"),
            ("segment 1 quarantined 70000 -\n", "segment 6 growing 24 -\n", "line 4 is not"),
            ("next 6", "next six", "malformed line 3: \"next six\""),
            ("next 6", &long, "malformed line 3: \"xxxx"),
        ] {
            let body = body.replacen(from, to, 1);
            let bytes = format!("{body}{CHECKSUM}{:08x}\n", crc32c::crc32c(body.as_bytes()));
            let error = Manifest::decode(bytes.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            let error = error.to_string();
            assert!(error.starts_with(expect) && error.len() < 200, "{error:.300}");
        }
    }

    #[test]
    fn a_newer_manifest_is_refused() {
        let text = String::from_utf8(example().encode()).unwrap().replace("manifest 1", "manifest 2");
        let body = &text[..text.trim_end().rfind('\n').unwrap() + 1];
        let newer = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
        let error = Manifest::decode(newer.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
        assert!(
            error.to_string().starts_with("manifest has version 2, this program reads up to 1"),
            "{error}"
        );
    }
}
