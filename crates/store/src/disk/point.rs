//! Names of all syncs of the journal and of the embedded driver.
//!
//! `make simulate-mutations` omits the syncs one after the other (docs/simulation.md). The simulation must fail without a sync that
//! is [`Need::Found`]. Without a sync that is [`Need::Harmless`] it must not fail, and the table states why.

/// What the simulation shows about a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Without this sync, a power failure breaks a guarantee, and the simulation finds it.
    Found,
    /// Without this sync, each guarantee holds after a power failure. The text states why, and what the sync is good for.
    Harmless(&'static str),
}

macro_rules! points {
    ($($name:ident: $text:literal, $need:expr;)*) => {
        /// The bytes or names that a sync makes durable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum SyncPoint { $(#[doc = $text] $name,)* }

        impl SyncPoint {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            pub const fn need(self) -> Need {
                match self { $(Self::$name => $need,)* }
            }
        }
    };
}

points! {
    NewDirectory: "the name of a new directory", Need::Found;
    JournalHeader: "the header of a new journal", Need::Found;
    JournalName: "the name of a new journal", Need::Found;
    JournalRecords: "the records of a commit", Need::Found;
    JournalFailedWrite: "the cut of a failed write", Need::Found;
    JournalFailedMark: "the cut of a torn mark", Need::Found;
    JournalRefusedBeforeNext: "the cut of refused records, before the next journal begins", Need::Found;
    JournalRefusedBeforeFlush: "the cut of refused records, before their journal is flushed", Need::Found;
    JournalNamesAtStart: "the names of recovered journals", Need::Found;
    JournalQuarantineAtStart: "the names in the quarantine of the journal, at a start", Need::Found;
    JournalTornEnd: "the cut of the torn end of a recovered journal", Need::Found;
    JournalRecovered: "the bytes of a recovered journal that no mark proves", Need::Found;
    JournalSetAside: "the name of a journal in the quarantine", Need::Found;
    JournalSetAsideGone: "the removal of the former name of a quarantined journal", Need::Found;
    LackFile: "the lack file of a quarantined journal", Need::Found;
    SegmentHeader: "the header of a new segment", Need::Found;
    SegmentName: "the name of a new segment", Need::Found;
    SegmentRows: "the rows of a batch", Need::Found;
    SegmentFailedWrite: "the cut of a failed write of rows", Need::Found;
    SegmentIndex: "the index of a sealed segment", Need::Found;
    SegmentLastMark: "the last mark of the growing segment, at a stop", Need::Found;
    SegmentRecovered: "the bytes of the newest segment that no mark proves, at a start", Need::Found;
    SegmentTornEnd: "the cut of the torn end of the newest segment", Need::Found;
    SegmentRemoved: "the removal of a segment that is not needed any more", Need::Found;
    EndReplaced: "the first record of a new `END`, before its rename", Need::Found;
    EndAtStop: "the last records of `END`, at a stop", Need::Found;
    EndNameAtStop: "the name of `END`, at a stop", Need::Found;
    ManifestBytes: "the bytes of a manifest, before its rename", Need::Found;
    ManifestNames: "the names of both copies of the manifest", Need::Found;
    SegmentQuarantineAtStart: "the names in the quarantine of the segments, at a start", Need::Found;
    SegmentSetAside: "the name of a segment in the quarantine", Need::Found;
    SegmentSetAsideGone: "the removal of the former name of a quarantined segment", Need::Found;
    TornCopy: "the copy of the torn end of a segment", Need::Found;
    TornCopyCompleted: "the copy of a torn end that an earlier start began", Need::Found;
    TornCopyName: "the name of the copy of a torn end", Need::Found;
    MissingNote: "the note about the missing end of a segment", Need::Found;
    MissingNoteName: "the name of the note about a missing end", Need::Found;
}
