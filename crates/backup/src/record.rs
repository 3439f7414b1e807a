//! The record of one backup (`docs/format/backup.md`). A repository may be damaged or forged. So the id and the names and
//! lengths of all files are checked before they are used.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tacho_store::pin::SIDE_FILES;
use tacho_store::{Error, ErrorKind, Result};

use crate::hash::Hash;

/// Version of the records and of the layout of a repository.
pub const VERSION: u32 = 1;
/// Limit on files in a backup. This many full segment files have 27 TB.
pub const FILES_MAX: usize = 100_000;
/// Limit on the bytes of a record. `FILES_MAX` files with the longest names need less.
pub const RECORD_BYTES_MAX: u64 = 64 << 20;
/// Limit on the bytes of one file. Segment files and journals are far smaller.
pub const FILE_BYTES_MAX: u64 = 1 << 40;
/// Limit on the characters of an id, and of the last part of a file name.
const NAME_MAX: usize = 128;
/// The last line of a record begins with this word; the SHA-256 of the line before follows.
const CHECKSUM: &str = "sha256 ";

/// Directories below a data directory. A backup contains their files, and files directly in the data directory.
pub const FOLDERS: [&str; 4] = ["chunks", "chunks/quarantine", "journal", "journal/quarantine"];

/// The name of a backup: its time in UTC to the second, and four random hexadecimal digits. Ids of different
/// seconds sort by time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Id(String);

impl Id {
    pub fn new(time: Timestamp, chance: u16) -> Self {
        Self(format!("{}-{chance:04x}", time.strftime("%Y%m%dT%H%M%SZ")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_ok = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if text.is_empty() || text.len() > NAME_MAX || !text.bytes().all(is_ok) {
            return Err(format!("{text:?} is not the id of a backup: give letters, digits and -"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Id {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub version: u32,
    pub id: Id,
    /// All samples, entries and executions that were acknowledged before this time are in the backup.
    pub time: Timestamp,
    /// When the backup was complete.
    pub ended: Timestamp,
    /// Version of the program that made the backup.
    pub tacho: String,
    /// The machine and the data directory.
    pub host: String,
    pub data: String,
    /// Whether a server used the directory during the backup.
    pub live: bool,
    /// The newest generation with a journal, and the bytes of that journal; zeros if there is no journal.
    pub generation: u64,
    pub offset: u64,
    pub files: Vec<SavedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedFile {
    /// Path relative to the data directory.
    pub name: String,
    pub bytes: u64,
    /// SHA-256 of the bytes, which is the name of the object.
    pub sha256: Hash,
    /// Time of modification, device and inode of the file when it was read. The next backup does not read a segment
    /// file again if these and `bytes` are equal, and the object exists.
    pub mtime_ns: i64,
    pub device: u64,
    pub inode: u64,
}

/// Only the version of a record. It is read first, because the other members may differ in a later version.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Record {
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// The directory that was backed up. Backups of different directories may be in one repository.
    pub fn origin(&self) -> (&str, &str) {
        (&self.host, &self.data)
    }

    pub fn encode(&self) -> Result<Vec<u8>> {
        let failed = |e| Error::invalid("record cannot be written as JSON").caused_by(e);
        let mut bytes = serde_json::to_vec(self).map_err(failed)?;
        let hash = Hash::of(&bytes);
        bytes.extend_from_slice(format!("\n{CHECKSUM}{hash}\n").as_bytes());
        Ok(bytes)
    }

    /// Decodes a record and compares it with its checksum and id.
    ///
    /// # Errors
    /// `Version` for another version; `Corrupt` for any other bytes that are not the record with this id.
    pub fn decode(bytes: &[u8], id: &Id) -> Result<Self> {
        let damaged = |why: String| Error::corrupt(why).with("backup", id);
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("record is not a text".into()))?;
        let lines: Vec<&str> = text.splitn(4, '\n').collect();
        let [json, checksum, ""] = lines[..] else {
            return Err(damaged("record is not a line of JSON and a checksum".into()));
        };
        if checksum != format!("{CHECKSUM}{}", Hash::of(json.as_bytes())) {
            return Err(damaged("record does not match its checksum".into()));
        }
        let Version { version } =
            serde_json::from_str(json).map_err(|e| damaged(format!("record has no version: {e}")))?;
        if version != VERSION {
            return Err(newer(version).with("backup", id));
        }
        let record: Self =
            serde_json::from_str(json).map_err(|e| damaged(format!("record cannot be read: {e}")))?;
        record.check(id).map_err(damaged)?;
        Ok(record)
    }

    fn check(&self, id: &Id) -> Result<(), String> {
        if self.id != *id {
            return Err(format!("record has the id {}", self.id));
        }
        if self.files.len() > FILES_MAX {
            return Err(format!("record names {} files, at most {FILES_MAX} are allowed", self.files.len()));
        }
        let mut names = HashSet::new();
        for file in &self.files {
            if !is_data_file(&file.name) {
                return Err(format!("record names the file {:?}, which no data directory has", file.name));
            }
            if !names.insert(&file.name) {
                return Err(format!("record names the file {:?} twice", file.name));
            }
            if file.bytes > FILE_BYTES_MAX {
                return Err(format!(
                    "record states {} bytes for the file {:?}, at most {FILE_BYTES_MAX} are allowed",
                    file.bytes, file.name
                ));
            }
        }
        Ok(())
    }
}

/// The error for a record or repository of another version.
pub fn newer(version: u32) -> Error {
    let message = format!(
        "backup repository has version {version}, this program reads version {VERSION}: use the newer tacho that wrote it"
    );
    Error::new(ErrorKind::Version, message)
}

/// Whether a backup may contain a file of this name. The name is relative to the data directory. Only known
/// directories and plain ASCII characters are accepted, so no name leads out of the data directory.
pub fn is_data_file(name: &str) -> bool {
    let is_plain = |name: &str| {
        let is_ok = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !name.starts_with('.') && !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(is_ok)
    };
    match name.rsplit_once('/') {
        None => SIDE_FILES.contains(&name),
        Some((folder, name)) => {
            FOLDERS.contains(&folder) && is_plain(name) && !matches!(name, "LOCK" | "RESERVE" | "quarantine")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let file = |name: &str| SavedFile {
            name: name.to_owned(),
            bytes: 3,
            sha256: Hash::of(b"abc"),
            mtime_ns: 7,
            device: 1,
            inode: 2,
        };
        Record {
            version: VERSION,
            id: "20260301T100000Z-00ff".parse().unwrap(),
            time: Timestamp::UNIX_EPOCH,
            ended: Timestamp::UNIX_EPOCH,
            tacho: "0.1.0".into(),
            host: "a".into(),
            data: "/d".into(),
            live: true,
            generation: 4,
            offset: 9,
            files: vec![file("chunks/MANIFEST"), file("tokens")],
        }
    }

    fn refusal(change: impl FnOnce(&mut Record)) -> String {
        let (mut changed, id) = (record(), record().id);
        change(&mut changed);
        Record::decode(&changed.encode().unwrap(), &id).unwrap_err().to_string()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = record();
        assert_eq!(Record::decode(&record.encode().unwrap(), &record.id).unwrap(), record);
        assert_eq!(record.bytes(), 6);
        assert_eq!(Id::new(Timestamp::UNIX_EPOCH, 15).as_str(), "19700101T000000Z-000f");
    }

    #[test]
    fn the_golden_record_is_read_and_written_again_with_the_same_bytes() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/backup/v1.record");
        let golden = std::fs::read(path).unwrap();
        let record = Record::decode(&golden, &"20260301T020000Z-7f3a".parse().unwrap()).unwrap();
        assert_eq!((record.generation, record.offset, record.bytes()), (7, 688, 268_435_460));
        assert_eq!(record.encode().unwrap(), golden);
    }

    #[test]
    fn every_changed_byte_of_a_record_is_detected() {
        let record = record();
        let bytes = record.encode().unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Record::decode(&changed, &record.id).is_err(), "byte {at}");
            assert!(Record::decode(&bytes[..at], &record.id).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn records_of_other_versions_and_with_absurd_content_are_refused() {
        let first = |name: &str| refusal(|record| record.files[0].name = name.to_owned());
        for name in [
            "../x",
            "chunks/../../x",
            "/etc/passwd",
            "chunks//x",
            "chunks/.x",
            "chunks/..",
            "chunks/a\0b",
            "chunks/a/b",
            "chunks\\x",
            "x",
            "",
            "LOCK",
            "chunks/LOCK",
            "chunks/quarantine",
            "INCOMPLETE",
            "audit.log",
            "tokens.lock",
            "snapshots/x",
        ] {
            let expect = format!("record names the file {name:?}, which no data directory has");
            assert!(first(name).starts_with(&expect), "{}", first(name));
        }
        assert!(first("tokens").starts_with("record names the file \"tokens\" twice"));
        let huge = refusal(|record| record.files[0].bytes = u64::MAX);
        assert!(huge.starts_with("record states 18446744073709551615 bytes"), "{huge}");
        let other = refusal(|record| record.id = "other".parse().unwrap());
        assert!(other.starts_with("record has the id other"), "{other}");
        let newer = refusal(|record| record.version = 2);
        assert!(
            newer.starts_with("backup repository has version 2, this program reads version 1"),
            "{newer}"
        );
        let many = refusal(|record| {
            let file = record.files[0].clone();
            let name = |at| format!("chunks/{at}");
            record.files = (0..=FILES_MAX).map(|at| SavedFile { name: name(at), ..file.clone() }).collect();
        });
        assert!(many.starts_with("record names 100001 files, at most 100000 are allowed"), "{many}");
    }
}
