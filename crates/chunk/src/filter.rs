//! Can a chunk have a given trace id or request id? A chunk of executions has a split-block Bloom filter for each of the two
//! kinds of id (Putze, Sanders, Singler, JEA 14, 2009; the form of Apache Parquet). The filters come before the columns and have
//! their own checksum, so a reader can use them without the columns.
//!
//! A filter has blocks of 256 bits. An id sets eight bits of one block, one in each word of 32 bits. A filter accepts every id
//! that it was made with, and about 1 % of all other ids.

use tacho_model::TraceId;
use xxhash_rust::xxh3::xxh3_64;

use crate::bytes::{Reader, put_varint};
use crate::{AttributeData, Error, ExecutionBlock};

/// Key of the attribute with the id of a request.
pub const REQUEST_ID: &str = "request.id";

const BLOCK_BYTES: usize = 32;
const WORD_BYTES: usize = 4;
/// With ten bits per id, a filter accepts about 1 % of the ids that it does not have.
const BITS_PER_ID: usize = 10;
/// One odd factor for each word of a block.
const SALTS: [u32; BLOCK_BYTES / WORD_BYTES] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// Sizes and checksum of the filters, as stored in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterInfo {
    /// Bytes of the filter of trace ids.
    pub trace_bytes: usize,
    /// Bytes of the filter of request ids; 0 if no segment has a request id.
    pub request_bytes: usize,
    /// CRC-32C of both filters.
    pub(crate) checksum: u32,
}

impl FilterInfo {
    pub(crate) const fn bytes(&self) -> usize {
        self.trace_bytes.saturating_add(self.request_bytes)
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.trace_bytes as u64);
        put_varint(out, self.request_bytes as u64);
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }

    pub(crate) fn take(reader: &mut Reader<'_>, bytes_max: usize) -> Result<Self, Error> {
        let mut size = |what| match reader.size(what, bytes_max)? {
            bytes if bytes.is_multiple_of(BLOCK_BYTES) => Ok(bytes),
            bytes => Err(Error::value(what, bytes as u64)),
        };
        let (trace_bytes, request_bytes) =
            (size("bytes of the filter of trace ids")?, size("bytes of the filter of request ids")?);
        let checksum = u32::from_le_bytes(reader.array("checksum of the filters")?);
        Ok(Self { trace_bytes, request_bytes, checksum })
    }
}

/// The filters of a chunk. Their checksum is correct.
#[derive(Clone, Copy, Debug)]
pub struct Filters<'a> {
    traces: &'a [u8],
    requests: &'a [u8],
}

impl<'a> Filters<'a> {
    /// `bytes` contains both filters.
    pub(crate) fn open(info: &FilterInfo, bytes: &'a [u8]) -> Result<Self, Error> {
        let got = crc32c::crc32c(bytes);
        if got != info.checksum {
            return Err(Error::FilterChecksum { expected: info.checksum, got });
        }
        let (traces, requests) = bytes.split_at_checked(info.trace_bytes).unwrap_or((bytes, &[]));
        Ok(Self { traces, requests })
    }

    /// Whether the chunk can have a segment of this trace. `false` is certain.
    pub fn may_have_trace(&self, trace: TraceId) -> bool {
        has(self.traces, trace_hash(trace))
    }

    /// Whether a segment of the chunk can have this request id. `false` is certain.
    pub fn may_have_request(&self, id: &AttributeData) -> bool {
        has(self.requests, request_hash(id))
    }

    /// Checks that the filters accept all ids of the block.
    pub(crate) fn check(&self, block: &ExecutionBlock) -> Result<(), Error> {
        if let Some(row) = block.rows().find(|row| !self.may_have_trace(row.trace())) {
            return Err(Error::FilterLacks { what: "trace", id: row.trace().to_string() });
        }
        match request_ids(block).find(|id| !self.may_have_request(id)) {
            Some(id) => Err(Error::FilterLacks { what: "request", id: id.to_string() }),
            None => Ok(()),
        }
    }
}

/// The filters of a block: their description, and their bytes.
pub(crate) fn build(block: &ExecutionBlock) -> (FilterInfo, Vec<u8>) {
    let mut bytes = filter(block.rows().map(|row| trace_hash(row.trace())).collect());
    let trace_bytes = bytes.len();
    bytes.extend(filter(request_ids(block).map(request_hash).collect()));
    let (request_bytes, checksum) = (bytes.len() - trace_bytes, crc32c::crc32c(&bytes));
    (FilterInfo { trace_bytes, request_bytes, checksum }, bytes)
}

fn request_ids(block: &ExecutionBlock) -> impl Iterator<Item = &AttributeData> {
    let attributes = block.rows().flat_map(|row| row.attributes());
    attributes.filter(|attribute| &**attribute.key == REQUEST_ID).map(|attribute| attribute.value)
}

fn trace_hash(trace: TraceId) -> u64 {
    xxh3_64(&trace.0.to_be_bytes())
}

/// An integer and its decimal text are the same request id.
fn request_hash(id: &AttributeData) -> u64 {
    match id {
        AttributeData::Text(text) => xxh3_64(text.as_bytes()),
        AttributeData::Integer(number) => xxh3_64(number.to_string().as_bytes()),
        AttributeData::Id([high, low]) => {
            xxh3_64(&(u128::from(*high) << 64 | u128::from(*low)).to_be_bytes())
        }
    }
}

/// A filter of these hashes. Without hashes it has no bytes.
fn filter(mut hashes: Vec<u64>) -> Vec<u8> {
    hashes.sort_unstable();
    hashes.dedup();
    let blocks = hashes.len().saturating_mul(BITS_PER_ID).div_ceil(BLOCK_BYTES * 8);
    let mut filter = vec![0; blocks * BLOCK_BYTES];
    for hash in hashes {
        let block = filter.get_mut(block_of(blocks, hash)..).unwrap_or_default();
        for (word, bit) in block.chunks_exact_mut(WORD_BYTES).zip(bits(hash)) {
            word.iter_mut().zip(bit.to_le_bytes()).for_each(|(byte, bit)| *byte |= bit);
        }
    }
    filter
}

fn has(filter: &[u8], hash: u64) -> bool {
    let blocks = filter.len() / BLOCK_BYTES;
    let block = filter.get(block_of(blocks, hash)..).unwrap_or_default();
    let is_set =
        |(word, bit): (&[u8], u32)| word.iter().zip(bit.to_le_bytes()).all(|(byte, bit)| byte & bit == bit);
    blocks > 0 && block.chunks_exact(WORD_BYTES).zip(bits(hash)).all(is_set)
}

/// Offset, in bytes, of the block that the upper half of a hash selects.
fn block_of(blocks: usize, hash: u64) -> usize {
    let block = ((hash >> 32) * blocks as u64) >> 32;
    usize::try_from(block).unwrap_or(usize::MAX).saturating_mul(BLOCK_BYTES)
}

/// The bit that the lower half of a hash selects in each word of a block.
fn bits(hash: u64) -> [u32; SALTS.len()] {
    let [a, b, c, d, ..] = hash.to_le_bytes();
    let low = u32::from_le_bytes([a, b, c, d]);
    SALTS.map(|salt| 1 << (low.wrapping_mul(salt) >> 27))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(ids: std::ops::Range<u32>) -> Vec<u64> {
        ids.map(|id| trace_hash(TraceId(id.into()))).collect()
    }

    #[test]
    fn a_filter_accepts_its_ids_and_few_others() {
        for count in [1, 25, 26, 1_000, 8_192] {
            let filter = filter(hashes(0..count));
            assert!(hashes(0..count).into_iter().all(|hash| has(&filter, hash)));
            let wrong = hashes(count..count + 10_000).into_iter().filter(|hash| has(&filter, *hash)).count();
            assert!(wrong < 250, "a filter of {count} ids accepts {wrong} of 10,000 other ids");
        }
    }

    #[test]
    fn the_filter_equals_the_format_page() {
        let bytes = filter(vec![trace_hash(TraceId(1))]);
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let page = include_str!("../../../docs/format/chunk.md");
        let line = format!("{:016x} | {}", trace_hash(TraceId(1)), hex.join(" "));
        assert!(page.contains(&line), "{line}");
    }

    #[test]
    fn repeated_ids_take_no_more_space_and_a_filter_without_ids_is_empty() {
        assert_eq!(filter(vec![7; 1_000]).len(), BLOCK_BYTES);
        assert!(filter(vec![]).is_empty() && !has(&[], 7));
        assert_eq!(filter(hashes(0..25)).len(), BLOCK_BYTES);
        assert_eq!(filter(hashes(0..26)).len(), 2 * BLOCK_BYTES);
    }

    #[test]
    fn a_number_and_its_text_are_the_same_request_id() {
        let text = AttributeData::Text("-17".into());
        assert_eq!(request_hash(&text), request_hash(&AttributeData::Integer(-17)));
    }
}
