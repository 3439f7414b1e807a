//! Findings of `tacho check`: what is wrong with which bytes, what it costs, and what to do.
//!
//! Drivers find what is wrong with the bytes of their files, the other files of this folder what is wrong with the meaning
//! of rows. The kinds are documented in `docs/guide/operating.md`.

use std::fmt;
use std::sync::Arc;

use tacho_model::{Kind, TimeRange};

use crate::driver::Scanned;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// No damage: a state that a running or killed server leaves.
    Note,
    /// Nothing that is stored is damaged, but somebody should look at it.
    Warning,
    /// Bytes differ from those that were written, or something is missing.
    Damage,
}

impl Severity {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Damage => "damage",
        }
    }
}

macro_rules! kinds {
    ($($variant:ident $name:literal $severity:ident $remedy:literal)*) => {
        /// What is wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingKind { $($variant,)* }

        impl FindingKind {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Name in JSON and in the documentation.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub const fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// What to do, in one sentence.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }
        }
    };
}

kinds! {
    ManifestDamaged "manifest-damaged" Damage
        "start the server: it writes both copies again; if both are damaged, use tacho repair"
    FileMissing "file-missing" Damage
        "put the file back from a backup, or use tacho repair"
    FileShort "file-short" Damage
        "put the whole file back from a backup, or use tacho repair"
    FileUnreadable "file-unreadable" Damage
        "put the file back from a backup, or use tacho repair"
    FileForeign "file-foreign" Damage
        "put the right file back under its name, or use tacho repair"
    FileChanged "file-changed" Damage
        "put the file back from a backup, or use tacho repair"
    HeaderDamaged "header-damaged" Damage
        "nothing is lost; tacho repair writes new files"
    IndexDamaged "index-damaged" Damage
        "nothing is lost, the file is read row by row; tacho repair writes new files"
    FrameDamaged "frame-damaged" Damage
        "nothing is lost; tacho repair writes new files"
    PlaceDamaged "place-damaged" Damage
        "restore the file from a backup, or use tacho repair to keep the rest"
    RowDamaged "row-damaged" Damage
        "restore the file from a backup, or use tacho repair to keep the rest"
    ChunkDamaged "chunk-damaged" Damage
        "restore the file from a backup, or use tacho repair to keep the rest"
    KeyWrong "key-wrong" Damage
        "restore the file from a backup, or use tacho repair to keep the rest"
    SeriesUnknown "series-unknown" Damage
        "restore the directory from a backup, or use tacho repair to keep the rest"
    SeriesWrong "series-wrong" Damage
        "restore the directory from a backup, or use tacho repair to keep the rest"
    GenerationUnknown "generation-unknown" Damage
        "files of different times were mixed: restore the directory from one backup"
    FactMissing "fact-missing" Damage
        "use tacho repair: it derives the fact from the other rows"
    FactWrong "fact-wrong" Damage
        "use tacho repair: it derives the fact from the other rows, or leaves it out"
    JournalDamaged "journal-damaged" Damage
        "let the senders send again what they still have; tacho repair keeps the other records"
    Quarantined "quarantined" Damage
        "restore the records from a backup, then remove the file from quarantine/"
    SideFileDamaged "side-file-damaged" Damage
        "correct the file or put it back from a backup; the server does not start with it"
    EndDoubtful "end-doubtful" Warning
        "compare with the senders: these bytes may have been acknowledged before a power failure"
    UnknownFile "unknown-file" Warning
        "remove it if it is not yours: Tachograph does not use it"
    Permission "permission" Warning
        "remove it when the server has started once: it permits opening without missing parts"
    Unacknowledged "unacknowledged" Note
        "nothing: the bytes were not acknowledged yet, or are the rest of an interrupted write"
    Leftover "leftover" Note
        "nothing: the next start removes it"
    Unused "unused" Note
        "nothing: the series has no chunks yet, or no longer"
}

/// Where the bytes are.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Relative to the data directory.
    pub file: Arc<str>,
    pub offset: Option<u64>,
    pub bytes: Option<u64>,
}

impl Place {
    pub fn file(name: impl Into<Arc<str>>) -> Self {
        Self { file: name.into(), offset: None, bytes: None }
    }

    pub fn range(name: &Arc<str>, offset: u64, bytes: u64) -> Self {
        Self { file: name.clone(), offset: Some(offset), bytes: Some(bytes) }
    }
}

/// Records that cannot be read because of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub kind: Kind,
    /// The first [`SERIES_NAMED_MAX`]; empty if they are unknown.
    pub series: Vec<String>,
    /// Number of series that are not listed.
    pub series_more: usize,
    /// All lost records are in it, as far as it is known.
    pub range: Option<TimeRange>,
    /// Samples, entries or completed calls, if their number is known.
    pub records: Option<u64>,
}

/// Limit on series listed in a finding.
pub const SERIES_NAMED_MAX: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    pub place: Place,
    /// The key of the row in words, if there is one.
    pub key: Option<String>,
    /// What is wrong, with values.
    pub reason: String,
    pub lost: Option<Lost>,
    /// What else follows from it; empty if nothing.
    pub effect: &'static str,
}

impl Finding {
    pub fn new(kind: FindingKind, place: Place, reason: impl fmt::Display) -> Self {
        Self { kind, place, key: None, reason: reason.to_string(), lost: None, effect: "" }
    }

    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    #[must_use]
    pub fn effect(self, effect: &'static str) -> Self {
        Self { effect, ..self }
    }

    #[must_use]
    pub fn lost(self, lost: Option<Lost>) -> Self {
        Self { lost, ..self }
    }

    pub const fn severity(&self) -> Severity {
        self.kind.severity()
    }
}

/// Limit on findings kept by one run; more are counted. Some 300 bytes each.
pub const FINDINGS_MAX: usize = 100_000;

/// All findings of a run.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub kept: Vec<Finding>,
    /// By severity: note, warning, damage.
    counts: [u64; 3],
    pub lost: LostTotals,
}

/// Sums of [`Lost`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostTotals {
    /// Samples, entries, completed calls.
    pub records: [u64; 3],
    /// Places whose number of records is unknown.
    pub unknown: u64,
}

impl Findings {
    pub fn add(&mut self, finding: Finding) {
        self.counts[finding.severity() as usize] += 1;
        if let Some(lost) = &finding.lost {
            match lost.records {
                Some(records) => self.lost.records[lost.kind as usize - 1] += records,
                None => self.lost.unknown += 1,
            }
        } else if matches!(finding.kind, FindingKind::PlaceDamaged | FindingKind::JournalDamaged) {
            self.lost.unknown += 1;
        }
        if self.kept.len() < FINDINGS_MAX {
            self.kept.push(finding);
        }
    }

    pub fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.add(finding));
    }

    pub fn merge(&mut self, other: Self) {
        let omitted = other.omitted_by_severity();
        self.extend(other.kept);
        self.counts.iter_mut().zip(omitted).for_each(|(count, more)| *count += more);
    }

    fn omitted_by_severity(&self) -> [u64; 3] {
        let mut counts = self.counts;
        self.kept.iter().for_each(|finding| counts[finding.severity() as usize] -= 1);
        counts
    }

    pub const fn count(&self, severity: Severity) -> u64 {
        self.counts[severity as usize]
    }

    /// Findings that are counted but not kept.
    pub fn omitted(&self) -> u64 {
        self.counts.iter().sum::<u64>() - self.kept.len() as u64
    }

    /// By file, then by offset.
    pub fn sort(&mut self) {
        self.kept.sort_by(|a, b| (&a.place, a.kind).cmp(&(&b.place, b.kind)));
    }
}

/// A row as a driver finds it in its files.
#[derive(Clone, Debug)]
pub struct PlacedRow {
    pub place: Place,
    /// Whether a reader would get this row: it was not replaced or deleted.
    pub needed: bool,
    /// Whether an index, or the checksum of the row, proves the key.
    pub is_key_certain: bool,
    pub row: Scanned,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_documented_with_its_severity() {
        let guide = include_str!("../../../../docs/guide/operating.md");
        for kind in FindingKind::ALL {
            let row = format!("| `{}` | {} |", kind.name(), kind.severity().name());
            assert!(guide.contains(&row), "{row}");
        }
    }

    #[test]
    fn findings_above_the_limit_are_counted() {
        let finding = |kind| {
            let lost =
                Lost { kind: Kind::Entry, series: Vec::new(), series_more: 0, range: None, records: Some(2) };
            Finding::new(kind, Place::file("chunks/MANIFEST"), "why").lost(Some(lost))
        };
        let mut all = Findings::default();
        (0..FINDINGS_MAX).for_each(|_| all.add(finding(FindingKind::RowDamaged)));
        assert_eq!(all.omitted(), 0);
        all.add(finding(FindingKind::Leftover));
        assert_eq!((all.kept.len(), all.omitted()), (FINDINGS_MAX, 1));
        assert_eq!([Severity::Note, Severity::Damage].map(|s| all.count(s)), [1, FINDINGS_MAX as u64]);
        assert_eq!(all.lost.records, [0, 2 * (FINDINGS_MAX as u64 + 1), 0]);
    }
}
