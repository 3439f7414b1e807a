//! Which label sets of a sequence differ only in the name?
//!
//! Files store each label set as a difference from the previous one, so a few bytes can represent a long set.
//! Sets that differ only in the name share their other labels in memory too. Without sharing, a small file
//! could take much memory at startup.

use std::sync::Arc;

use foldhash::HashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::labels::{SHARED_BYTES_MIN, parts_of};
use crate::{LabelError, Labels, NAME};

/// Creates labels from canonical bytes.
#[derive(Debug, Default)]
pub struct Families {
    /// Key: the hash of a set's labels without the name. Value: these labels, as soon as a second set has them.
    seen: HashMap<u128, Option<Arc<Labels>>>,
    others: Vec<u8>,
    scratch: Vec<u8>,
}

impl Families {
    /// Reads labels as [`Labels::from_canonical`] does. Among long sets that differ only in the name, the
    /// first has its own copy of the labels; later sets share one copy.
    pub fn read(&mut self, canonical: &[u8]) -> Result<Labels, LabelError> {
        let Some((before, name, after)) = parts_of(canonical, NAME) else {
            return Labels::from_canonical(canonical);
        };
        if before.len() + after.len() < SHARED_BYTES_MIN {
            return Labels::from_canonical(canonical);
        }
        self.others.clear();
        self.others.extend_from_slice(before);
        self.others.extend_from_slice(after);
        let base = match self.seen.entry(xxh3_128(&self.others)) {
            std::collections::hash_map::Entry::Vacant(new) => {
                let labels = Labels::from_canonical(canonical)?;
                new.insert(None);
                return Ok(labels);
            }
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
        };
        let base = match base {
            Some(base) => base,
            none => none.insert(Arc::new(Labels::from_canonical(&self.others)?)),
        };
        match Labels::sharing(base, NAME, name, &mut self.scratch) {
            // Earlier versions, without the limit `LABELS_BYTES_MAX`, stored longer sets.
            Err(LabelError::TooLong { .. }) => Labels::from_canonical(canonical),
            labels => labels,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::LABELS_BYTES_MAX;

    #[test]
    fn sets_that_differ_in_the_name_share_the_other_labels() {
        let long = "v".repeat(500);
        let set = |name: &str, zone: &str| {
            Labels::new([(NAME, name), ("a", long.as_str()), ("zone", zone)]).unwrap()
        };
        let sets = [set("one", "x"), set("two", "x"), set("three", "x"), set("one", "y"), set("two", "y")];
        let mut families = Families::default();
        let read: Vec<Labels> = sets.iter().map(|set| families.read(&set.canonical()).unwrap()).collect();
        assert_eq!(read, sets);
        assert!(
            read.iter()
                .zip(&sets)
                .all(|(read, set)| read.id() == set.id() && read.canonical() == set.canonical())
        );
        let own: Vec<bool> = read.iter().map(|labels| labels.own_bytes() < 100).collect();
        assert_eq!(own, [false, true, true, false, true]);
        let bases: Vec<_> = read.iter().filter_map(Labels::base).map(Arc::as_ptr).collect();
        assert!(bases[0] == bases[1] && bases[1] != bases[2]);
    }

    #[test]
    fn labels_stored_before_the_limit_stay_readable() {
        let value = "v".repeat(4_096);
        let names: Vec<String> = (0..20).map(|n| format!("l{n:02}")).collect();
        let canonical: Vec<u8> = names
            .iter()
            .flat_map(|name| [name.as_bytes(), b"\xff", value.as_bytes(), b"\xff"].concat())
            .collect();
        assert!(canonical.len() > LABELS_BYTES_MAX);
        let canonical = [&b"__name__\xffcpu\xff"[..], &canonical].concat();
        let mut families = Families::default();
        for _ in 0..3 {
            let labels = families.read(&canonical).unwrap();
            assert_eq!((labels.len(), labels.name()), (21, "cpu"));
        }
        let pairs = names.iter().map(|name| (name.as_str(), value.as_str()));
        assert!(matches!(Labels::new(pairs), Err(LabelError::TooLong { bytes: 82_020, .. })));
    }

    proptest! {
        #[test]
        fn shared_and_unshared_labels_are_equal(
            sets in proptest::collection::vec(
                proptest::collection::btree_map("[A-Z_a-c]{1,2}|__name__", "[ab]{60,70}", 0..4),
                1..12,
            ),
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let (mut families, mut before): (Families, Vec<Labels>) = Default::default();
            for pairs in sets {
                let mut renamed = pairs.clone();
                renamed.insert(NAME.to_owned(), "other".to_owned());
                for pairs in [&pairs, &pairs, &renamed] {
                    let whole = Labels::new(pairs).unwrap();
                    let labels = families.read(&whole.canonical()).unwrap();
                    prop_assert_eq!(labels.id(), whole.id());
                    prop_assert_eq!(&labels, &whole);
                    prop_assert!(labels.iter().eq(pairs.iter().map(|(n, v)| (n.as_str(), v.as_str()))));
                    prop_assert!(pairs.iter().all(|(name, value)| labels.get(name) == Some(value)));
                    prop_assert_eq!(labels.to_string(), whole.to_string());
                    for other in &before {
                        let as_whole = Labels::from_canonical(&other.canonical()).unwrap();
                        prop_assert_eq!(labels.cmp(other), whole.cmp(&as_whole));
                        prop_assert_eq!(labels == *other, whole == as_whole);
                    }
                    before.push(labels);
                }
            }
            prop_assert_eq!(families.read(&bytes), Labels::from_canonical(&bytes));
        }
    }
}
