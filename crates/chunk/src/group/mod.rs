//! How are samples of series with the same times stored? As one column of times, and one column of values per member
//! (`docs/format/chunk.md`, version 2).
//!
//! Path of one sample. Before: `store` determines which series share their times. After: `Driver::put` stores the bytes.

mod encode;
mod numbers;
mod read;

pub use self::encode::{GroupColumn, encode_group, encode_group_by};
pub(crate) use self::read::{column, gather, take_header, times, values};

/// Tag of the codec `step`. A column of times with this codec has no bytes, because its start, end and number of times are
/// in the header.
const STEP: u8 = 2;

#[cfg(test)]
mod tests {
    #[test]
    fn the_codec_of_regular_times_is_step() {
        assert_eq!(crate::codec::name(super::STEP), Some("step"));
    }
}
