//! Lack files describe the unreadable parts of a quarantined journal. A lack file is small and is stored next to its
//! journal, so that later starts need not read the journal.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tacho_model::Timestamp;

use super::format::{Header, file_name};
use super::reader::{Contents, Lost};
use crate::disk::{Disk, SyncPoint};

const SUFFIX: &str = "lack";
const TITLE: &str = "tachograph lack 1";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lack {
    pub lost: Lost,
    /// Start of the journal's generation, if its header can be read.
    pub begun: Option<Timestamp>,
}

impl Contents {
    pub fn lack(&self) -> Lack {
        Lack { lost: self.lost, begun: self.header.as_ref().map(|header| header.created) }
    }
}

impl Lack {
    /// The lack of a journal of this many bytes of which no record was read.
    pub const fn of_whole(header: &Header, bytes: u64) -> Self {
        Self { lost: Lost { places: 1, bytes }, begun: Some(header.created) }
    }

    /// The reason why batches of the generation may be missing; `None` if no batch is missing.
    pub fn reason(&self, generation: u64) -> Option<Arc<str>> {
        let Lost { places, bytes } = self.lost;
        if places == 0 {
            return None;
        }
        let begun = self.begun.and_then(|begun| jiff::Timestamp::from_nanosecond(begun.into()).ok());
        let begun = begun.map_or_else(String::new, |begun| format!(", begun {begun}"));
        let (file, s) = (file_name(generation), if places == 1 { "" } else { "s" });
        let reason = format!(
            "{bytes} bytes at {places} place{s} of journal {file} (generation {generation}{begun}) cannot be read"
        );
        Some(reason.into())
    }

    /// Writes the lack file next to the path of a journal of this length. Replaces the lack file of an earlier journal
    /// with the same name.
    pub fn write(&self, disk: &dyn Disk, journal: &Path, journal_bytes: u64) -> io::Result<()> {
        let path = beside(journal);
        match disk.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = disk.open(&path)?;
        file.append(self.encode(journal_bytes).as_bytes())?;
        file.sync(SyncPoint::LackFile)
    }

    /// Reads the lack file of a journal. `None` if it is missing, damaged, or belongs to another journal.
    pub fn read(disk: &dyn Disk, journal: &Path) -> Option<Self> {
        let journal_bytes = disk.length(journal).ok()?;
        Self::decode(&String::from_utf8(disk.read(&beside(journal)).ok()?).ok()?, journal_bytes)
    }

    fn encode(&self, journal_bytes: u64) -> String {
        let Self { lost: Lost { places, bytes }, begun } = self;
        let begun = begun.map_or_else(|| "-".to_owned(), |begun| begun.to_string());
        let body =
            format!("{TITLE}\njournal {journal_bytes}\nplaces {places}\nbytes {bytes}\nbegun {begun}\n");
        format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()))
    }

    fn decode(text: &str, journal_bytes: u64) -> Option<Self> {
        let mut values = text.lines().skip(2).filter_map(|line| Some(line.split_once(' ')?.1));
        let lost = Lost { places: values.next()?.parse().ok()?, bytes: values.next()?.parse().ok()? };
        let begun = values.next()?;
        let lack = Self { lost, begun: if begun == "-" { None } else { Some(begun.parse().ok()?) } };
        // The comparison includes title, length and checksum.
        (lack.encode(journal_bytes) == text).then_some(lack)
    }
}

pub fn is_lack(path: &Path) -> bool {
    path.extension() == Some(OsStr::new(SUFFIX))
}

fn beside(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".");
    name.push(SUFFIX);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_file_round_trips_and_damage_is_noticed() {
        let lost = Lost { places: 2, bytes: 300 };
        for begun in [None, Some(-7)] {
            let lack = Lack { lost, begun };
            let text = lack.encode(5_000);
            assert_eq!(Lack::decode(&text, 5_000), Some(lack));
            assert_eq!(Lack::decode(&text, 5_001), None, "a lack file of another journal was accepted");
            for at in 0..text.len() {
                assert_eq!(Lack::decode(&text[..at], 5_000), None, "cut at {at}");
                let mut damaged = text.clone().into_bytes();
                damaged[at] ^= 1;
                assert_eq!(Lack::decode(&String::from_utf8(damaged).unwrap(), 5_000), None, "byte {at}");
            }
        }
    }

    #[test]
    fn the_file_matches_the_format() {
        let lack = Lack { lost: Lost { places: 1, bytes: 77 }, begun: Some(1_700_000_000_000_000_000) };
        let drawn = "tachograph lack 1\njournal 4096\nplaces 1\nbytes 77\nbegun 1700000000000000000\n";
        assert_eq!(lack.encode(4_096), format!("{drawn}crc32c 3ec7fa77\n"));
    }
}
