//! Samples of series that are written together: one column of times, one of values for each member (`docs/format/chunk.md`,
//! version 2).
//!
//! Path of one sample: before, `store` found out which series share their times; after, `Driver::put` stores the bytes.

mod encode;
mod numbers;
mod read;

pub use self::encode::{GroupColumn, encode_group, encode_group_by};
pub(crate) use self::read::{column, gather, take_header, times, values};

/// Tag of the codec `step`, which times of a constant step name without having bytes.
const STEP: u8 = 2;

#[cfg(test)]
mod tests {
    #[test]
    fn the_codec_of_regular_times_is_step() {
        assert_eq!(crate::codec::name(super::STEP), Some("step"));
    }
}
