//! How many bytes does a column take?

use tacho_model::ValueType;

use crate::codec::{self, Numbers};

/// Encoded size; 0 if all numbers are equal.
pub(super) fn column_bytes(words: &[u64], kind: ValueType) -> usize {
    match words.split_first() {
        Some((first, rest)) if rest.iter().any(|word| word != first) => {
            codec::encode(Numbers { words, kind }, 0, &crate::Encoding::thorough()).bytes.len()
        }
        _ => 0,
    }
}
