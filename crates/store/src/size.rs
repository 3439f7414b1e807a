//! Conversions of lengths between files and memory.

/// A length or an offset of a file, as a length or a position in memory. On a target where `usize` has fewer than 64 bits,
/// a larger number becomes `usize::MAX`, which is longer than any slice.
pub fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The length of bytes, for a field of 32 bits. The caller has refused longer bytes.
#[expect(clippy::cast_possible_truncation, reason = "asserted")]
pub const fn length_of(bytes: &[u8]) -> u32 {
    debug_assert!(bytes.len() <= u32::MAX as usize);
    bytes.len() as u32
}
