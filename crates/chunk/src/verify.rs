//! Does each chunk read back as what was written? Debug builds look; release builds trust the tests.

use tacho_model::{Entry, Timestamp, ValueType};

use crate::{Chunk, ExecutionBlock, samples};

/// Records beyond which the second look would slow a debug build down too much.
const RECORDS_MAX: usize = 16_384;

pub(crate) fn samples(bytes: &[u8], at: &[Timestamp], words: &[u64], kind: ValueType) {
    debug_assert!(
        at.len() > RECORDS_MAX
            || Chunk::open(bytes)
                .and_then(|chunk| chunk.samples())
                .is_ok_and(|columns| samples::same(&columns, at, words, kind)),
        "samples do not read back as they were written"
    );
}

pub(crate) fn entries(bytes: &[u8], entries: &[Entry]) {
    debug_assert!(
        entries.len() > RECORDS_MAX
            || Chunk::open(bytes).and_then(|chunk| chunk.entries()).is_ok_and(|read| read == entries),
        "entries do not read back as they were written"
    );
}

pub(crate) fn executions(bytes: &[u8], block: &ExecutionBlock) {
    debug_assert!(
        block.len() > RECORDS_MAX
            || Chunk::open(bytes).and_then(|chunk| chunk.executions()).is_ok_and(|read| read == *block),
        "executions do not read back as they were written"
    );
}
