//! Which labels do canonical bytes hold? Answers without copies, for callers that do not keep [`Labels`].

use xxhash_rust::xxh3::xxh3_128;

use crate::labels::{Parts, check};
use crate::limits::LABELS_MAX;
use crate::{Labels, SeriesId};

impl Labels {
    /// Returns the id of canonical bytes and stores their labels in `pairs`. `None` if the bytes are malformed or not exactly in
    /// canonical form. [`Labels::from_canonical`] distinguishes these two cases.
    pub fn split_canonical<'a>(bytes: &'a [u8], pairs: &mut Vec<(&'a str, &'a str)>) -> Option<SeriesId> {
        let (mut parts, mut before) = (Parts(bytes), "");
        pairs.clear();
        while !parts.0.is_empty() {
            let (name, value) = parts.pair()?;
            let (name, value) = (std::str::from_utf8(name).ok()?, std::str::from_utf8(value).ok()?);
            if name <= before || value.is_empty() || check(name, value).is_err() {
                return None;
            }
            pairs.push((name, value));
            before = name;
        }
        (pairs.len() <= LABELS_MAX).then(|| SeriesId(xxh3_128(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pairs_and_id_are_those_of_the_labels(
            pairs in proptest::collection::vec(("[a-c]{0,2}", "[ab]{0,2}"), 0..5),
            cut in 0usize..40,
        ) {
            let bytes: Vec<u8> = pairs
                .iter()
                .flat_map(|(name, value)| [name.as_bytes(), b"\xff", value.as_bytes(), b"\xff"].concat())
                .collect();
            let bytes = &bytes[..bytes.len().saturating_sub(cut / 10)];
            let mut split = Vec::new();
            let id = Labels::split_canonical(bytes, &mut split);
            match Labels::from_canonical(bytes) {
                Ok(labels) if *labels.canonical() == *bytes => {
                    prop_assert_eq!(id, Some(labels.id()));
                    prop_assert!(labels.iter().eq(split));
                }
                _ => prop_assert_eq!(id, None),
            }
        }
    }
}
