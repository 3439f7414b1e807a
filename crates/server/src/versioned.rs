//! Reads, validates and replaces a small JSON file with a version and a checksum. Replacing is atomic and durable.
//!
//! The last member of a file is `crc32c`: 8 hexadecimal digits, the CRC-32C (RFC 3720) of the bytes before the comma in front of
//! this member. Files of older versions have no checksum, and a person who edits a file removes the member. Newer versions keep
//! the member, so that a damaged version is not taken for a newer one.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tacho_api::replace::replace_with;
use tacho_api::settings::shown;
use tacho_store::disk;

/// Limit on the size of a file that is read, far above any file that the server writes.
const FILE_BYTES_MAX: u64 = 64 << 20;
const MEMBER: &str = "\"crc32c\"";
/// What to do with a file that was edited by hand.
const EDITED: &str = " (after an edit by hand, remove the member crc32c and the comma before it)";
/// The bytes before the digits of the checksum, and those after them.
const CHECKSUM: (&str, &str) = (",\n  \"crc32c\": \"", "\"\n}\n");
/// The end of a file without a checksum.
const END: &str = "\n}\n";
/// Limit on the characters of a message about the content of a file. The message may repeat a name from the file.
const MESSAGE_CHARS_MAX: usize = 500;

/// The version is read before the other members, which may differ in a later version.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Removes the permissions of other users from the file before reading. `None` if there is no file. An error is one line
/// without the path. `newest` is the newest version that this program reads.
pub fn read<T: DeserializeOwned>(path: &Path, newest: u32) -> Result<Option<T>, String> {
    if path.is_file() {
        disk::restrict(path, disk::FILE_MODE);
    }
    look(path, newest)
}

/// The same as [`read`], without changing permissions.
pub fn look<T: DeserializeOwned>(path: &Path, newest: u32) -> Result<Option<T>, String> {
    let bytes = match disk::read_regular(path, FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return disk::irregular(path).map_or(Ok(None), |why| Err(why.to_owned()));
        }
        Err(error) => return Err(error.to_string()),
    };
    parse(&bytes, newest).map(Some)
}

/// `None` if the file cannot be read, does not match its checksum, or states no version.
pub fn version_of(path: &Path) -> Option<u32> {
    let bytes = disk::read_regular(path, FILE_BYTES_MAX).ok()?;
    let found: Version = serde_json::from_slice(&verify(&bytes).ok()?).ok()?;
    Some(found.version)
}

/// An error if the content does not match its checksum, or if the version is unknown.
pub fn parse<T: DeserializeOwned>(bytes: &[u8], newest: u32) -> Result<T, String> {
    let malformed = |error: serde_json::Error| shown(&error.to_string(), MESSAGE_CHARS_MAX);
    let content = verify(bytes)?;
    let Version { version } = serde_json::from_slice(&content).map_err(malformed)?;
    if !(1..=newest).contains(&version) {
        return Err(format!("it has version {version}, this program knows 1 to {newest}"));
    }
    serde_json::from_slice(&content).map_err(|error| {
        let is_reformatted = bytes.windows(MEMBER.len()).any(|part| part == MEMBER.as_bytes());
        malformed(error) + if is_reformatted { EDITED } else { "" }
    })
}

/// The content without the member `crc32c`.
fn verify(bytes: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let Some((content, stated)) = split(bytes) else { return Ok(Cow::Borrowed(bytes)) };
    let computed = checksum(content);
    if stated != computed.as_bytes() {
        let stated = shown(&String::from_utf8_lossy(stated), MESSAGE_CHARS_MAX);
        return Err(format!(
            "its checksum (crc32c) is {stated}, but its content has {computed}: it is damaged, or was edited{EDITED}"
        ));
    }
    Ok(Cow::Owned([content, END.as_bytes()].concat()))
}

/// The bytes that the checksum covers, and its digits. `None` if the file has no checksum.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8; 8])> {
    let (before, digits) = bytes.strip_suffix(CHECKSUM.1.as_bytes())?.split_last_chunk()?;
    Some((before.strip_suffix(CHECKSUM.0.as_bytes())?, digits))
}

fn checksum(content: &[u8]) -> String {
    format!("{:08x}", crc32c::crc32c(content))
}

/// Replaces the file. On success, the new content is on disk. After a crash during the call, the file has the whole old or the
/// whole new content. Only the owner may read the file. `content` must be an object with the member `version`.
pub fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    replace_with(path, &encode(content)?, disk::private_file(), |_| Ok(()))
}

pub fn encode(content: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(content)?;
    bytes.truncate(bytes.len() - END.trim_end().len());
    let checksum = checksum(&bytes);
    for part in [CHECKSUM.0, &checksum, CHECKSUM.1] {
        bytes.extend_from_slice(part.as_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn an_oversized_file_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        assert_eq!(read::<Value>(&path, 1), Ok(None));
        std::fs::File::create(&path).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        let expect = "it has 67108865 bytes, at most 67108864 are read";
        assert_eq!(read::<Value>(&path, 1), Err(expect.to_owned()));
    }

    /// An open of a FIFO waits for a writer, and `/dev/zero` has no end.
    #[test]
    fn only_regular_files_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let (pipe, device) = (directory.path().join("pipe"), directory.path().join("device"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
        let dangling = directory.path().join("dangling");
        std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
        assert_eq!(read::<Value>(&dangling, 1), Err("it is a link to a file that is missing".to_owned()));
        for path in [pipe, device, directory.path().to_owned()] {
            assert_eq!(read::<Value>(&path, 1), Err("it is not a regular file".to_owned()), "{path:?}");
            assert_eq!(version_of(&path), None);
        }
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Named {
        version: u32,
        name: String,
    }

    #[test]
    fn a_changed_bit_is_an_error_and_an_edited_file_without_the_checksum_is_read() {
        let content = Named { version: 2, name: "größe".to_owned() };
        let whole = encode(&content).unwrap();
        assert_eq!(parse(&whole, 2), Ok(content));
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(parse::<Named>(&changed, 2).is_err(), "bit {bit}: {}", String::from_utf8_lossy(&changed));
        }

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        for (version, expect) in [("2", Some(2)), ("3", None)] {
            let text = String::from_utf8(whole.clone()).unwrap();
            std::fs::write(&path, text.replace("\"version\": 2", &format!("\"version\": {version}")))
                .unwrap();
            assert_eq!(version_of(&path), expect, "a damaged version is not a newer one");
        }

        let edited = String::from_utf8(whole).unwrap().replace("größe", "Größe");
        let error = parse::<Named>(edited.as_bytes(), 2).unwrap_err();
        assert!(error.contains("or was edited (after an edit by hand, remove the member crc32c"), "{error}");
        let error = parse::<Named>(edited.trim_end().as_bytes(), 2).unwrap_err();
        assert!(error.starts_with("unknown field `crc32c`") && error.ends_with(EDITED), "{error}");
        let (content, _) = split(edited.as_bytes()).unwrap();
        let without = [content, END.as_bytes()].concat();
        assert_eq!(parse::<Named>(&without, 2).unwrap().name, "Größe");
    }

    #[test]
    fn only_known_versions_are_read() {
        for version in [0, 3] {
            let error = parse::<Named>(format!(r#"{{"version":{version},"name":""}}"#).as_bytes(), 2);
            assert_eq!(error, Err(format!("it has version {version}, this program knows 1 to 2")));
        }
        for version in [1, 2] {
            let content = parse::<Named>(format!(r#"{{"version":{version},"name":""}}"#).as_bytes(), 2);
            assert_eq!(content.map(|content| content.version), Ok(version));
        }
    }

    /// Found by the fuzz target `side_file`.
    #[test]
    fn a_message_is_one_short_line_without_control_characters() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Content {
            #[serde(rename = "version")]
            _version: u32,
        }
        let error = |name: &str| {
            let file = format!("{{\"version\": 1, \"{name}\": 2}}");
            parse::<Content>(file.as_bytes(), 1).unwrap_err()
        };
        let found = error("r\u{7f}les");
        assert!(found.starts_with("unknown field `r\\u{7f}les`, expected `version` at line 1 "), "{found}");
        let long = error(&"x".repeat(1_000_000));
        assert!(long.ends_with("xx..") && long.len() == MESSAGE_CHARS_MAX + 2, "{} bytes", long.len());
    }
}
