//! Does each chunk decode to the encoded records? Only debug builds check this.
//!
//! This file and the encoders (`entries.rs`, `execution/encode.rs`, `group/encode.rs`) use each other: each encoder ends with its
//! check, and the check decodes the bytes with `chunk.rs`.

use tacho_model::{Entry, Timestamp};

use crate::{Chunk, ExecutionBlock, GroupColumn};

/// A chunk with more samples, entries or segments is not checked, because the check would slow down debug builds too much.
const RECORDS_MAX: usize = 16_384;

pub(crate) fn group(bytes: &[u8], at: &[Timestamp], columns: &[GroupColumn<'_>]) {
    let same = |chunk: &Chunk<'_>, column: &GroupColumn<'_>| {
        let loss = chunk.header().member(column.member).map(|info| info.loss);
        let values = chunk.values(column.member).ok().flatten();
        loss == Some(column.loss) && values.as_ref() == Some(&column.values.to_column())
    };
    let reads = |chunk: Chunk<'_>| {
        chunk.times().is_ok_and(|times| times.iter().eq(at.iter().copied()))
            && columns.iter().all(|column| same(&chunk, column))
    };
    debug_assert!(
        at.len().saturating_mul(columns.len()) > RECORDS_MAX || Chunk::open(bytes).is_ok_and(reads),
        "samples are not decoded as encoded"
    );
}

pub(crate) fn entries(bytes: &[u8], entries: &[Entry]) {
    debug_assert!(
        entries.len() > RECORDS_MAX
            || Chunk::open(bytes).and_then(|chunk| chunk.entries()).is_ok_and(|read| read == entries),
        "entries are not decoded as encoded"
    );
}

pub(crate) fn executions(bytes: &[u8], block: &ExecutionBlock) {
    debug_assert!(
        block.len() > RECORDS_MAX
            || Chunk::open(bytes).is_ok_and(|chunk| {
                chunk.executions().is_ok_and(|read| read == *block) && chunk.summary().is_ok()
            }),
        "executions are not decoded as encoded"
    );
}
