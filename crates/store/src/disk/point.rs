//! Names of all syncs of the journal and of the embedded driver.
//!
//! `make simulate-mutations` omits the syncs one after the other (docs/simulation.md). The simulation must fail without a sync
//! that is [`Need::Found`]. Without a sync that is [`Need::Harmless`] it must not fail, and the table states why. [`Need::Rare`]
//! states the sequence of events that breaks a guarantee.
//!
//! Terms in the table: a *mark* proves that the bytes before it were synced. `END` states the length of the growing segment.
//! A *lack file* describes the unreadable parts of a quarantined journal. Formats: `docs/format/journal.md` and `segment.md`.

/// What the simulation shows about a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Without this sync, a power failure breaks a guarantee, and the simulation finds it.
    Found,
    /// Without this sync, each guarantee holds after a power failure. The text states why.
    Harmless(&'static str),
    /// The sync is needed, but its absence breaks a guarantee so rarely that the search does not reach it. The text states how.
    Rare(&'static str),
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
    JournalFailedWrite: "the cut of a failed write",
        Need::Rare(
            "a write fails after its last byte, and the process stops in an orderly way: a power failure undoes the cut, and the \
             refused frame reappears"
        );
    JournalFailedMark: "the cut of a torn mark",
        Need::Harmless("the records before the mark are synced, the next commit syncs the cut, and a start drops a torn mark");
    JournalRefusedBeforeNext: "the cut of refused records, before the next journal begins",
        Need::Rare(
            "frames 5 and 6 are refused, and frames 5 to 8 are stored as one batch in the next journal: a power failure \
             undoes the cut, and a start reads 5 and 6 twice"
        );
    JournalRefusedBeforeFlush: "the cut of refused records, before their journal is flushed",
        Need::Rare(
            "a power failure undoes the cut and the removal of the flushed journal: a start takes the number of a refused \
             frame from this journal, so the agent does not repeat the frame"
        );
    JournalNamesAtStart: "the names of recovered journals",
        Need::Rare(
            "a process ends before it syncs the name of a new journal, and the next process stores this journal in the list \
             of required journals: a power failure loses the name, and the next start is refused"
        );
    JournalQuarantineAtStart: "the names in the quarantine of the journal, at a start",
        Need::Rare(
            "a process ends after it moved a journal and before it synced the name: the sync of the former directory removes \
             the old name, and a power failure loses the new name"
        );
    JournalTornEnd: "the cut of the torn end of a recovered journal",
        Need::Harmless("`JournalRecovered` syncs the same file before the start ends");
    JournalRecovered: "the bytes of a recovered journal that no mark proves", Need::Found;
    JournalSetAsideBytes: "the bytes of a journal that a start moves to the quarantine", Need::Found;
    JournalSetAside: "the name of a journal in the quarantine", Need::Found;
    JournalSetAsideGone: "the removal of the former name of a quarantined journal",
        Need::Harmless(
            "the new name is synced before: after a power failure the journal may also have its former name, and a start \
             quarantines it again"
        );
    LackFile: "the lack file of a quarantined journal",
        Need::Harmless("a lack file has a checksum: if it is torn, a start reads the whole journal, which takes longer");
    SegmentHeader: "the header of a new segment", Need::Found;
    SegmentName: "the name of a new segment", Need::Found;
    SegmentRows: "the rows of a batch", Need::Found;
    SegmentFailedWrite: "the cut of a failed write of rows",
        Need::Harmless(
            "the next append syncs the cut. Until then a power failure may restore the rows of a failed `put`. A caller \
             must expect them, because `put` may fail after its effect"
        );
    SegmentIndex: "the index of a sealed segment", Need::Found;
    SegmentLastMark: "the last mark of the growing segment, at a stop",
        Need::Harmless(
            "`END`, which is synced next, states the bytes before the mark. The mark proves them if `END` could not be \
             written"
        );
    SegmentRecovered: "the bytes of the newest segment that no mark proves, at a start", Need::Found;
    SegmentTornEnd: "the cut of the torn end of the newest segment",
        Need::Harmless(
            "the next append syncs the cut. Until then a power failure may restore the torn end, whose rows were not \
             acknowledged or are also in the quarantine, and a start cuts it again"
        );
    SegmentRemoved: "the removal of a segment that is not needed any more", Need::Found;
    EndReplaced: "the first record of a new `END`, before its rename",
        Need::Harmless(
            "a start accepts an `END` that states fewer bytes than were on disk, or nothing: its later records are not synced \
             either"
        );
    EndAtStop: "the last records of `END`, at a stop", Need::Found;
    EndNameAtStop: "the name of `END`, at a stop",
        Need::Rare(
            "the start wrote no manifest after it renamed `END`, and the process stops in an orderly way: a power failure brings \
             the former `END` back, and a missing end of the segment is not detected"
        );
    ManifestBytes: "the bytes of a manifest, before its rename", Need::Found;
    ManifestNames: "the names of both copies of the manifest", Need::Found;
    PermissionRemoved: "the removal of `MANIFEST.lost`, which permits that files are missing",
        Need::Rare(
            "a power failure brings the permission back: the next start reports the files that are missing then, and is not \
             refused"
        );
    SegmentNamesAtStart: "the names of segments and of the manifest, at a start",
        Need::Rare(
            "a process ends between the renamings of the two copies of the manifest, and the next one removes a segment that \
             the later copy does not list: a power failure loses the later copy, and the next start is refused"
        );
    SegmentQuarantineAtStart: "the names in the quarantine of the segments, at a start",
        Need::Rare(
            "a process ends after it moved a segment and before it synced the name: the sync of the former directory removes \
             the old name, and a power failure loses the new name"
        );
    SegmentSetAside: "the name of a segment in the quarantine",
        Need::Rare(
            "damage makes the header of a segment unreadable: a power failure loses the new name of the file after its former \
             name was removed"
        );
    SegmentSetAsideGone: "the removal of the former name of a quarantined segment",
        Need::Harmless(
            "the new name is synced before: after a power failure the segment may also have its former name, and a start \
             quarantines it again"
        );
    TornCopy: "the copy of the torn end of a segment",
        Need::Rare("the torn end is cut off after it was copied: a power failure loses the bytes of the copy");
    TornCopyCompleted: "the copy of a torn end that an earlier start began",
        Need::Rare(
            "a process ends while it copies a torn end, and the next one completes the copy: a power failure loses bytes of \
             the copy"
        );
    TornCopyName: "the name of the copy of a torn end",
        Need::Rare("the torn end is cut off after it was copied: a power failure loses the name of the copy");
    MissingNote: "the note about the missing end of a segment", Need::Found;
    MissingNoteName: "the name of the note about a missing end", Need::Found;
}
