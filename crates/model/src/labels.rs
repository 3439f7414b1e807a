//! A series is its labels; its id is their hash.

use std::fmt;
use std::hash::{Hash, Hasher};

use xxhash_rust::xxh3::xxh3_128;

use crate::NAME;
use crate::limits::{LABEL_NAME_BYTES_MAX, LABEL_VALUE_BYTES_MAX, LABELS_MAX};

/// 128-bit XXH3 of a series' canonical labels: any number of recorders agree on it without talking.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesId(pub u128);

impl SeriesId {
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for SeriesId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for SeriesId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a set of labels was refused. Each message names the value and the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    #[error("label name is empty (value {value:?})")]
    NameEmpty { value: String },
    #[error("label {name:?} is given twice")]
    Duplicate { name: String },
    #[error("{count} labels, at most {LABELS_MAX} are allowed (name {name:?})")]
    TooMany { count: usize, name: String },
    #[error("label name of {bytes} bytes, at most {LABEL_NAME_BYTES_MAX} are allowed (begins {begins:?})")]
    NameTooLong { bytes: usize, begins: String },
    #[error("value of label {name:?} has {bytes} bytes, at most {LABEL_VALUE_BYTES_MAX} are allowed")]
    ValueTooLong { name: String, bytes: usize },
    #[error("canonical labels are malformed")]
    Canonical,
}

/// A set of labels: sorted by name, names unique, no empty values (an empty value means "not there").
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

/// Ends a name or a value in the canonical form; no UTF-8 text contains this byte.
const END: u8 = 0xFF;

impl Labels {
    /// Checks the limits, drops empty values, sorts.
    pub fn new<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Result<Self, LabelError>
    where
        N: Into<Box<str>>,
        V: Into<Box<str>>,
    {
        let mut list: Vec<(Box<str>, Box<str>)> =
            pairs.into_iter().map(|(n, v)| (n.into(), v.into())).collect();
        list.retain(|(_, value)| !value.is_empty());
        list.sort_unstable();
        for (name, value) in &list {
            check(name, value)?;
        }
        if let Some(twice) = list.windows(2).find_map(|w| match w {
            [(a, _), (b, _)] if a == b => Some(a),
            _ => None,
        }) {
            return Err(LabelError::Duplicate { name: twice.to_string() });
        }
        if list.len() > LABELS_MAX {
            let name = list.iter().find(|(n, _)| &**n == NAME).map_or(String::new(), |(_, v)| v.to_string());
            return Err(LabelError::TooMany { count: list.len(), name });
        }
        Ok(Self(list.into()))
    }

    pub fn empty() -> Self {
        Self(Box::default())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(n, _)| (**n).cmp(name)).ok()?;
        self.0.get(at).map(|(_, value)| &**value)
    }

    /// The series' name, the label `__name__`; empty when there is none.
    pub fn name(&self) -> &str {
        self.get(NAME).unwrap_or("")
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (&**n, &**v))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `name 0xFF value 0xFF` for each label in order of name: what is hashed and what is stored.
    pub fn canonical(&self) -> Vec<u8> {
        let bytes = self.0.iter().map(|(n, v)| n.len() + v.len() + 2).sum();
        let mut out = Vec::with_capacity(bytes);
        for (name, value) in &self.0 {
            out.extend_from_slice(name.as_bytes());
            out.push(END);
            out.extend_from_slice(value.as_bytes());
            out.push(END);
        }
        out
    }

    /// The inverse of [`Labels::canonical`].
    pub fn from_canonical(bytes: &[u8]) -> Result<Self, LabelError> {
        if bytes.is_empty() {
            return Ok(Self::empty());
        }
        let body = bytes.strip_suffix(&[END]).ok_or(LabelError::Canonical)?;
        let mut parts = Vec::new();
        for part in body.split(|b| *b == END) {
            parts.push(std::str::from_utf8(part).map_err(|_| LabelError::Canonical)?);
        }
        let (pairs, rest) = parts.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(LabelError::Canonical);
        }
        Self::new(pairs.iter().map(|[n, v]| (*n, *v)))
    }

    pub fn id(&self) -> SeriesId {
        SeriesId(xxh3_128(&self.canonical()))
    }
}

fn check(name: &str, value: &str) -> Result<(), LabelError> {
    if name.is_empty() {
        return Err(LabelError::NameEmpty { value: value.to_owned() });
    }
    if name.len() > LABEL_NAME_BYTES_MAX {
        let begins = name.chars().take(32).collect();
        return Err(LabelError::NameTooLong { bytes: name.len(), begins });
    }
    if value.len() > LABEL_VALUE_BYTES_MAX {
        return Err(LabelError::ValueTooLong { name: name.to_owned(), bytes: value.len() });
    }
    Ok(())
}

impl Hash for Labels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// `name{a="b", c="d"}`, as Prometheus prints it.
impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let mut open = false;
        for (name, value) in self.iter().filter(|(n, _)| *n != NAME) {
            f.write_str(if open { ", " } else { "{" })?;
            open = true;
            write!(f, "{name}={value:?}")?;
        }
        if open || self.name().is_empty() { f.write_str(if open { "}" } else { "{}" }) } else { Ok(()) }
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn limits_hold_at_the_limit_and_one_past_it() {
        let many = |n: usize| Labels::new((0..n).map(|i| (format!("l{i:03}"), "v")));
        assert_eq!(many(LABELS_MAX).unwrap().len(), LABELS_MAX);
        assert!(matches!(many(LABELS_MAX + 1), Err(LabelError::TooMany { count: 65, .. })));

        let name = |n: usize| Labels::new([("n".repeat(n), "v")]);
        assert!(name(LABEL_NAME_BYTES_MAX).is_ok());
        assert!(matches!(name(LABEL_NAME_BYTES_MAX + 1), Err(LabelError::NameTooLong { bytes: 257, .. })));

        let value = |n: usize| Labels::new([("n", "v".repeat(n))]);
        assert!(value(LABEL_VALUE_BYTES_MAX).is_ok());
        assert!(matches!(
            value(LABEL_VALUE_BYTES_MAX + 1),
            Err(LabelError::ValueTooLong { bytes: 4097, .. })
        ));
    }

    #[test]
    fn order_does_not_matter_and_empty_values_are_absent() {
        let a = Labels::new([("b", "2"), ("a", "1"), ("c", "")]).unwrap();
        let b = Labels::new([("a", "1"), ("b", "2")]).unwrap();
        assert_eq!(a, b);
        assert_eq!(a.id(), b.id());
        assert_eq!(Labels::new([("a", "1"), ("a", "2")]), Err(LabelError::Duplicate { name: "a".into() }));
    }

    #[test]
    fn displays_as_prometheus_does() {
        let labels = Labels::new([(NAME, "up"), ("job", "a\"b"), ("x", "ö漢")]).unwrap();
        assert_eq!(labels.to_string(), r#"up{job="a\"b", x="ö漢"}"#);
        assert_eq!(Labels::empty().to_string(), "{}");
    }

    proptest! {
        #[test]
        fn canonical_round_trip(pairs in proptest::collection::btree_map("[a-zä]{1,8}", ".{1,20}", 0..20)) {
            let labels = Labels::new(pairs).unwrap();
            prop_assert_eq!(Labels::from_canonical(&labels.canonical()).unwrap(), labels);
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Labels::from_canonical(&bytes);
        }
    }
}
