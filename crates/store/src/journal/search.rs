//! Finds intact records after a damaged place of a journal file.
//!
//! A sender chooses the bytes of values, so a record may be full of bytes that look like records. The bytes of
//! failed checksum attempts are therefore limited, and the content of a record that was cut short is not trusted.

use std::ops::Range;

use super::decode::synced;
use super::format::{
    MARK_BYTES, MARK_MAGIC, RECORD_HEAD_BYTES, RECORD_MAGIC, claimed_bytes, find, record_checksum, take_mark,
    take_record,
};

/// Limit on the bytes of failed checksum attempts per file; they take about one second. Above the limit, only marks are
/// searched.
const TRIED_BYTES_MAX: u64 = 4 << 30;

pub struct Sound {
    pub at: usize,
    pub next: usize,
    /// Synced bytes of the file, as stated by the record or mark.
    pub synced: u64,
}

pub struct Search<'a> {
    bytes: &'a [u8],
    tried: u64,
    tried_max: u64,
    given_up: bool,
}

impl<'a> Search<'a> {
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self::within(TRIED_BYTES_MAX, bytes)
    }

    const fn within(tried_max: u64, bytes: &'a [u8]) -> Self {
        Self { bytes, tried: 0, tried_max, given_up: false }
    }

    /// Whether the limit was reached and a possible record was therefore not tried.
    pub const fn has_given_up(&self) -> bool {
        self.given_up
    }

    /// The next intact record or mark that starts at or after `from`.
    pub fn next(&mut self, from: usize) -> Option<Sound> {
        let mut at = from;
        loop {
            at += self.bytes.get(at..)?.iter().position(|byte| *byte == RECORD_MAGIC[0])?;
            if let Some(synced) = self.bytes.get(at..).and_then(take_mark) {
                return Some(Sound { at, next: at + MARK_BYTES, synced });
            }
            if let Some(payload) = self.record(at) {
                let (next, synced) = (at + RECORD_HEAD_BYTES + payload.len(), synced(payload).unwrap_or(0));
                return Some(Sound { at, next, synced });
            }
            at += 1;
        }
    }

    /// The next mark at or after `from` that states its own position.
    pub fn next_placed_mark(&self, from: usize) -> Option<usize> {
        let mut marks = std::iter::successors(find(self.bytes, &MARK_MAGIC, from), |at| {
            find(self.bytes, &MARK_MAGIC, at + 1)
        });
        marks.find(|at| self.bytes.get(*at..).and_then(take_mark) == Some(*at as u64))
    }

    /// Whether the record at `at` has fewer bytes than its head states. A crash leaves such a record; all bytes up to the
    /// end of the file are its content.
    pub fn is_cut_short(&self, at: usize) -> bool {
        let length = self.bytes.get(at..).and_then(claimed_bytes);
        length.is_some_and(|length| at + RECORD_HEAD_BYTES + length > self.bytes.len())
    }

    /// The payload of the record at `at`, if the record is intact except for one bit of its length.
    pub fn with_another_length(&mut self, at: usize) -> Option<Range<usize>> {
        let rest = self.bytes.get(at..)?;
        let claimed = u32::try_from(claimed_bytes(rest)?).ok()?;
        let (head, content) = rest.split_first_chunk::<RECORD_HEAD_BYTES>()?;
        let stored = u32::from_le_bytes(*head.last_chunk()?);
        for bit in 0..u32::BITS {
            let length = claimed ^ (1 << bit);
            let Some(payload) = content.get(..length as usize).filter(|payload| self.may_try(payload.len()))
            else {
                continue;
            };
            if record_checksum(length.to_le_bytes(), payload) == stored {
                let from = at + RECORD_HEAD_BYTES;
                return Some(from..from + payload.len());
            }
            self.tried += payload.len() as u64;
        }
        None
    }

    fn record(&mut self, at: usize) -> Option<&'a [u8]> {
        let rest = self.bytes.get(at..)?;
        let length = claimed_bytes(rest).filter(|length| RECORD_HEAD_BYTES + length <= rest.len())?;
        if !self.may_try(length) {
            return None;
        }
        let payload = take_record(rest);
        if payload.is_none() {
            self.tried += length as u64;
        }
        payload
    }

    const fn may_try(&mut self, bytes: usize) -> bool {
        let may = self.tried.saturating_add(bytes as u64) <= self.tried_max;
        self.given_up |= !may;
        may
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{mark, put_record};
    use super::*;

    /// Bytes in which something that looks like a long record starts every eight bytes.
    fn worst(bytes: usize) -> Vec<u8> {
        let heads = (0..bytes / 8).flat_map(|n| {
            let length = ((bytes - 8 * n) / 2) as u32;
            [RECORD_MAGIC, length.to_le_bytes()].concat()
        });
        heads.collect()
    }

    #[test]
    fn bytes_that_look_like_records_are_searched_in_bounded_time() {
        let (content, mut last) = (worst(100_000), Vec::new());
        put_record(&mut last, b"\0\0sound");
        for (tried_max, finds) in [(0, false), (1_000_000, false), (u64::MAX, true)] {
            let mut bytes = [&content[..], &last].concat();
            let end = bytes.len();
            bytes.extend(mark(end as u64));
            let mut search = Search::within(tried_max, &bytes);
            let found = search.next(0).map(|sound| sound.at);
            assert_eq!(found, Some(if finds { content.len() } else { end }), "{tried_max}");
            assert!(search.tried <= tried_max);
            assert_eq!(search.has_given_up(), !finds);
        }
    }
}
