//! The findings of `tacho check`. A finding has a kind, a place, the lost records and a remedy.
//!
//! Drivers report damaged bytes in their files. The other files of this folder report rows and journals that contradict the
//! rest of the store. `docs/guide/operating.md` documents the kinds.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use tacho_model::{Kind, TimeRange};

use crate::driver::Scanned;
use crate::kinds::of_kind_mut;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// No damage: a state that a running or killed server leaves.
    Note,
    /// Nothing proves that stored data is damaged, but an operator should look at the cause.
    Warning,
    /// Bytes differ from the bytes that were written, or data is missing.
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

/// The kind of data that a copy of all sound rows lacks because of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Nothing,
    /// No data is lost: the data follows from other rows or files, or the server determines the
    /// data again.
    Derivable,
    /// Data other than records, such as a deletion.
    Fact,
    /// Records. Their number is unknown if the finding does not state it.
    Records,
}

macro_rules! kinds {
    ($($variant:ident $name:literal $severity:ident $loss:ident $remedy:literal)*) => {
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

            /// Default loss of this kind. A finding may set another loss.
            pub const fn loss(self) -> Loss {
                match self { $(Self::$variant => Loss::$loss,)* }
            }

            /// Default advice for the operator, in one sentence. A finding may have other advice.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }
        }
    };
}

kinds! {
    ManifestDamaged "manifest-damaged" Damage Nothing
        "start the server: it writes both copies again"
    FileMissing "file-missing" Damage Records
        "put the file back from a backup, or use tacho repair"
    FileShort "file-short" Damage Records
        "put the whole file back from a backup, or use tacho repair"
    FileUnreadable "file-unreadable" Damage Records
        "put the file back from a backup, or use tacho repair"
    FileForeign "file-foreign" Damage Records
        "put the right file back under its name, or use tacho repair"
    FileChanged "file-changed" Damage Nothing
        "use tacho repair: it reads the rows of the file; a copy fits only if it was made after the last change of the file"
    HeaderDamaged "header-damaged" Damage Nothing
        "nothing is lost; tacho repair writes new files"
    IndexDamaged "index-damaged" Damage Nothing
        "nothing is lost, the file is read row by row; tacho repair writes new files"
    FrameDamaged "frame-damaged" Damage Nothing
        "nothing is lost; tacho repair writes new files"
    PlaceDamaged "place-damaged" Damage Records
        "restore the file from a backup, or use tacho repair to keep the rest"
    RowDamaged "row-damaged" Damage Nothing
        "restore the file from a backup, or use tacho repair to keep the rest"
    ChunkDamaged "chunk-damaged" Damage Records
        "restore the file from a backup, or use tacho repair to keep the rest"
    FiltersWrong "filters-wrong" Damage Nothing
        "nothing is lost, but searches by an id may miss the chunk: tacho repair writes its filters again"
    SummaryWrong "summary-wrong" Damage Nothing
        "nothing is lost, answers are computed from the calls: tacho repair writes the summary again"
    KeyWrong "key-wrong" Damage Records
        "restore the file from a backup, or use tacho repair to keep the rest"
    SeriesUnknown "series-unknown" Damage Records
        "restore the directory from a backup, or use tacho repair to keep the rest"
    SeriesWrong "series-wrong" Damage Derivable
        "restore the directory from a backup, or use tacho repair to keep the rest"
    GenerationUnknown "generation-unknown" Damage Records
        "files of different times were mixed: restore the directory from one backup"
    FactMissing "fact-missing" Damage Derivable
        "use tacho repair: it derives the fact from the other rows"
    FactWrong "fact-wrong" Damage Fact
        "use tacho repair: it derives the fact from the other rows, or omits the fact"
    JournalDamaged "journal-damaged" Damage Records
        "let the senders send again what they still have; tacho repair keeps the other records"
    Quarantined "quarantined" Damage Records
        "restore the records from a backup, then remove the file from quarantine/"
    SideFileDamaged "side-file-damaged" Damage Fact
        "correct the file or put it back from a backup"
    SequenceUnknown "sequence-unknown" Warning Nothing
        "nothing is lost, unless files of different times were mixed: then restore the directory from one backup"
    EndDoubtful "end-doubtful" Warning Nothing
        "compare with the senders: these bytes may have been acknowledged before a power failure"
    UnknownFile "unknown-file" Warning Nothing
        "remove it if you do not need it: Tachograph does not use it"
    WritableByOthers "writable-by-others" Warning Nothing
        "check its content, then chmod 600 it"
    Permission "permission" Warning Nothing
        "remove the file when the server has run with it for a minute: it permits opening although parts are missing"
    Unacknowledged "unacknowledged" Note Nothing
        "nothing: the bytes were not acknowledged yet, or were left by an interrupted write"
    Leftover "leftover" Note Nothing
        "nothing: the next start removes it"
    Unused "unused" Note Nothing
        "nothing: the series has no chunks yet, or no longer"
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Path relative to the data directory.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub kind: Kind,
    /// The first series, at most [`SERIES_NAMED_MAX`]; empty if the series are unknown.
    pub series: Vec<String>,
    /// Number of series that are not listed.
    pub series_more: usize,
    /// A range that contains all lost records; `None` if unknown.
    pub range: Option<TimeRange>,
    /// Number of lost samples, entries or completed calls, if it is known.
    pub records: Option<u64>,
}

/// Limit on the series listed in a finding. A chunk has fewer.
pub const SERIES_NAMED_MAX: usize = 1_000;
/// Limit on the series listed in all findings together, some 10 MB. Further findings list at most [`SERIES_SHOWN_MAX`].
pub const SERIES_KEPT_MAX: usize = 100_000;
/// Limit on the series of a finding that are shown as text.
pub const SERIES_SHOWN_MAX: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    pub place: Place,
    /// The key of the row as text, if the finding is about a row.
    pub key: Option<String>,
    /// Description of the damage, with values.
    pub reason: String,
    pub loss: Loss,
    /// The lost records, if `loss` is [`Loss::Records`] and they are known.
    pub lost: Option<Lost>,
    /// A further consequence; may be empty.
    pub effect: &'static str,
    pub remedy: Cow<'static, str>,
}

impl Finding {
    pub fn new(kind: FindingKind, place: Place, reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        Self {
            kind,
            place,
            key: None,
            reason,
            loss: kind.loss(),
            lost: None,
            effect: "",
            remedy: kind.remedy().into(),
        }
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
    pub fn remedy(self, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }

    #[must_use]
    pub fn lost(self, lost: Lost) -> Self {
        Self { loss: Loss::Records, lost: Some(lost), ..self }
    }

    #[must_use]
    pub fn loss(self, loss: Loss) -> Self {
        Self { loss, ..self }
    }

    /// Whether a copy of all sound rows lacks stored data because of this finding.
    pub const fn is_loss(&self) -> bool {
        matches!(self.loss, Loss::Fact | Loss::Records)
    }

    pub const fn severity(&self) -> Severity {
        self.kind.severity()
    }
}

/// The finding about a lock file that cannot be opened.
pub fn unusable_lock(place: Place, why: &str) -> Finding {
    Finding::new(FindingKind::FileUnreadable, place, why)
        .loss(Loss::Nothing)
        .effect("the server does not start")
        .remedy("remove it while no server uses the directory: the next start creates it again")
}

/// Limit on the findings that one run keeps, about 300 bytes each. Further findings are only counted.
pub const FINDINGS_MAX: usize = 100_000;

#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub kept: Vec<Finding>,
    /// Number of findings by severity: note, warning, damage.
    counts: [u64; 3],
    losses: u64,
    pub lost: LostTotals,
    /// Number of series listed in `kept`.
    series_kept: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostTotals {
    /// Number of lost samples, entries and completed calls.
    pub records: [u64; 3],
    /// Number of findings that do not state the number of lost records.
    pub unknown: u64,
}

impl LostTotals {
    fn add(&mut self, lost: Option<&Lost>) {
        match lost.and_then(|lost| Some((lost.kind, lost.records?))) {
            Some((kind, records)) => *of_kind_mut(&mut self.records, kind) += records,
            None => self.unknown += 1,
        }
    }
}

impl Findings {
    pub fn add(&mut self, finding: Finding) {
        let [notes, warnings, damages] = &mut self.counts;
        let count = match finding.severity() {
            Severity::Note => notes,
            Severity::Warning => warnings,
            Severity::Damage => damages,
        };
        *count += 1;
        self.losses += u64::from(finding.is_loss());
        if finding.loss == Loss::Records {
            self.lost.add(finding.lost.as_ref());
        }
        self.keep(finding);
    }

    fn keep(&mut self, mut finding: Finding) {
        if self.kept.len() >= FINDINGS_MAX {
            return;
        }
        if let Some(lost) = &mut finding.lost {
            if self.series_kept + lost.series.len() > SERIES_KEPT_MAX {
                lost.series_more += lost.series.len().saturating_sub(SERIES_SHOWN_MAX);
                lost.series.truncate(SERIES_SHOWN_MAX);
            }
            self.series_kept += lost.series.len();
        }
        self.kept.push(finding);
    }

    pub fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.add(finding));
    }

    pub fn merge(&mut self, other: Self) {
        let Self { kept, counts, losses, lost, series_kept: _ } = other;
        self.counts.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
        self.losses += losses;
        self.lost.records.iter_mut().zip(lost.records).for_each(|(sum, more)| *sum += more);
        self.lost.unknown += lost.unknown;
        kept.into_iter().for_each(|finding| self.keep(finding));
    }

    pub const fn count(&self, severity: Severity) -> u64 {
        let [notes, warnings, damages] = self.counts;
        match severity {
            Severity::Note => notes,
            Severity::Warning => warnings,
            Severity::Damage => damages,
        }
    }

    /// Number of findings that are a loss, including findings that are not kept.
    pub const fn losses(&self) -> u64 {
        self.losses
    }

    /// Number of findings that are counted but not kept.
    pub fn omitted(&self) -> u64 {
        self.counts.iter().sum::<u64>() - self.kept.len() as u64
    }

    pub fn sort(&mut self) {
        self.kept.sort_by(|a, b| (&a.place, a.kind).cmp(&(&b.place, b.kind)));
    }
}

/// A row as a driver finds it in its files, sound or damaged.
#[derive(Clone, Debug)]
pub struct PlacedRow {
    pub place: Place,
    /// Whether readers get this row. They do not get a replaced or deleted row. If the key is not certain, the row may belong to
    /// another key, and `false` then says nothing about it.
    pub needed: bool,
    /// Whether the key matches the checksum of an index or of the row.
    pub is_key_certain: bool,
    /// A sound row that is not needed may come without its key and value.
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

    fn row_damaged(records: Option<u64>) -> Finding {
        let lost = Lost { kind: Kind::Entry, series: Vec::new(), series_more: 0, range: None, records };
        Finding::new(FindingKind::RowDamaged, Place::file("chunks/MANIFEST"), "why").lost(lost)
    }

    #[test]
    fn findings_above_the_limit_are_counted() {
        let mut all = Findings::default();
        (0..FINDINGS_MAX).for_each(|_| all.add(row_damaged(Some(2))));
        assert_eq!(all.omitted(), 0);
        all.add(Finding { kind: FindingKind::Leftover, ..row_damaged(Some(2)) });
        assert_eq!((all.kept.len(), all.omitted()), (FINDINGS_MAX, 1));
        assert_eq!([Severity::Note, Severity::Damage].map(|s| all.count(s)), [1, FINDINGS_MAX as u64]);
        assert_eq!(all.lost.records, [0, 2 * (FINDINGS_MAX as u64 + 1), 0]);
    }

    #[test]
    fn merged_findings_above_the_limit_are_counted_with_their_losses() {
        let note = || Finding::new(FindingKind::Leftover, Place::file("chunks/MANIFEST"), "why");
        let (mut part, mut all) = (Findings::default(), Findings::default());
        (0..FINDINGS_MAX).for_each(|_| part.add(note()));
        part.add(row_damaged(Some(2)));
        part.add(row_damaged(None));
        all.add(row_damaged(Some(3)));
        all.merge(part);
        assert_eq!((all.kept.len(), all.omitted(), all.losses()), (FINDINGS_MAX, 3, 3));
        assert_eq!([Severity::Note, Severity::Damage].map(|s| all.count(s)), [FINDINGS_MAX as u64, 3]);
        assert_eq!(all.lost, LostTotals { records: [0, 5, 0], unknown: 1 });
    }

    #[test]
    fn findings_list_all_series_up_to_a_limit_for_all_of_them() {
        let finding = || {
            let mut finding = row_damaged(Some(1));
            let series = (0..SERIES_NAMED_MAX).map(|n| format!("m{n}")).collect();
            finding.lost = finding.lost.map(|lost| Lost { series, ..lost });
            finding
        };
        let (mut part, mut all) = (Findings::default(), Findings::default());
        let whole = SERIES_KEPT_MAX / SERIES_NAMED_MAX;
        (0..whole).for_each(|_| all.add(finding()));
        all.add(finding());
        part.add(finding());
        all.merge(part);
        let listed: Vec<(usize, usize)> = all
            .kept
            .iter()
            .filter_map(|finding| finding.lost.as_ref())
            .map(|lost| (lost.series.len(), lost.series_more))
            .collect();
        assert_eq!(listed[..whole], vec![(SERIES_NAMED_MAX, 0); whole]);
        assert_eq!(listed[whole..], [(SERIES_SHOWN_MAX, SERIES_NAMED_MAX - SERIES_SHOWN_MAX); 2]);
    }

    #[test]
    fn a_loss_without_a_number_of_records_counts_as_unknown() {
        use FindingKind::{FileForeign, FileMissing, FileShort, FileUnreadable, KeyWrong};
        let mut all = Findings::default();
        for kind in [FileMissing, FileShort, FileUnreadable, FileForeign, KeyWrong] {
            all.add(Finding::new(kind, Place::file("chunks/00000001.segment"), "why"));
        }
        assert_eq!((all.losses(), all.lost.unknown), (5, 5));
        all.add(Finding::new(FindingKind::HeaderDamaged, Place::file("chunks/00000001.segment"), "why"));
        assert_eq!((all.losses(), all.lost.unknown), (5, 5));
    }
}
