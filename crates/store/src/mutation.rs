//! Deliberate faults of store, drivers and recorder. The simulator must find each of them (`make simulate-mutations`).
//!
//! A sync that is omitted is not in this list: each sync has a name in `disk/point.rs`, and the simulated disk omits it.
//!
//! Only builds with the feature `mutations` can switch a fault on. In other builds [`Mutation::is_on`] is the constant
//! `false`, and the compiler removes the fault.

macro_rules! mutations {
    ($($name:ident: $text:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutation { $(#[doc = $text] $name,)* }

        impl Mutation {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

mutations! {
    FailedSyncAcknowledged: "a frame is acknowledged although its sync failed",
    FailedWriteNotCut: "the remains of a failed write stay in the journal",
    RecoveredJournalNotRenewed: "bytes of a recovered journal are not made durable",
    JournalsInWrongOrder: "recovered generations are listed from the newest to the oldest",
    GenerationReused: "the number of the newest generation is used again after a start",
    SessionsNotRecovered: "frame numbers are not restored from the journal",
    SessionsNotFlushed: "frame numbers are not put into the driver",
    JournalRemovedFirst: "a journal is removed before its records are in the driver",
    FlushedBeforeChunks: "a generation is marked as flushed before its chunks are in the driver",
    EndStatedFirst: "the end of a segment is stated before its bytes are synced",
    EndNotStated: "the end of the growing segment is not stated",
    MissingEndNotNoted: "a missing end of a segment is reported by the first start only",
    SegmentNotRenewed: "rows of the newest segment are not made durable at a start",
    FailedAppendNotCut: "the remains of a failed append stay in the segment",
    TornSegmentNotCut: "the torn end of a segment stays in the file",
    SegmentNotRetired: "a segment is removed although the manifest names it",
    DeletesForgotten: "deletes are not copied when a segment is rewritten",
    MergeDeletesFirst: "a merge deletes its inputs before its output is durable",
    MergesCountedTwice: "rows that a merge replaced are read, too",
    SequenceReused: "the last sequence number of merges is forgotten at a start",
    TombstoneRemovedEarly: "a deletion is removed before its records are removed",
    TombstoneTooWide: "a deletion covers generations that begin after it",
    RetentionTooShort: "retention deletes records before their time",
    FailedMarkNotCut: "a torn mark stays in the journal",
    BrokenJournalNotCut: "the next journal begins while the broken one still has refused batches",
    StopKeepsRefused: "a stop keeps a journal that still has refused batches",
    FailedSegmentMarkNotCut: "a torn mark stays in the segment",
    FailedSealNotCut: "the remains of a failed seal (a part of the index) stay in the segment",
    ManifestNotRewritten: "a manifest whose write failed is not written again before the next row",
    RetriedRowsRenamed: "rows that a flush puts again after a failure get other keys",
    TombstoneNotStored: "a deletion is in force, but is never put into the driver",
    FrameAcknowledgedFirst: "the recorder acknowledges a frame before it is in the store",
    StorageFailureAcknowledged: "the recorder acknowledges a frame that the disk refused",
    FramesWithoutOrigin: "the recorder appends frames without their numbers",
    WelcomeAheadOfDisk: "WELCOME names a frame that is not on disk",
}

#[cfg(feature = "mutations")]
mod switch {
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// 1 + position of the fault that is switched on; 0 for none.
    static ON: AtomicUsize = AtomicUsize::new(0);

    impl super::Mutation {
        pub fn is_on(self) -> bool {
            ON.load(Ordering::Relaxed) == self as usize + 1
        }

        /// Switches one fault on, or all of them off.
        pub fn set(mutation: Option<Self>) {
            ON.store(mutation.map_or(0, |mutation| mutation as usize + 1), Ordering::Relaxed);
        }
    }
}

#[cfg(not(feature = "mutations"))]
impl Mutation {
    #[inline(always)]
    pub const fn is_on(self) -> bool {
        false
    }
}
