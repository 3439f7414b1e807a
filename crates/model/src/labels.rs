//! A series is its labels; its id is their hash.
//!
//! Labels are kept in the form that is hashed and stored, in one allocation: a million series are mostly labels.

use std::cmp::Ordering;
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

/// Ends a name or a value in the canonical form; no UTF-8 text contains this byte.
const END: u8 = 0xFF;

/// A set of labels: sorted by name, names unique, no empty values (an empty value means "not there").
#[derive(Clone)]
pub struct Labels {
    /// As bytes: an alignment of 16 would cost a series 8 bytes more.
    id: [u8; 16],
    /// At most [`LABELS_MAX`].
    count: u8,
    /// `name END value END` for each label in order of name.
    canonical: Box<[u8]>,
}

impl Labels {
    /// Checks the limits, drops empty values, sorts.
    pub fn new<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Result<Self, LabelError>
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        let mut list: Vec<(N, V)> = pairs.into_iter().filter(|(_, v)| !v.as_ref().is_empty()).collect();
        if !list.is_sorted_by(|(a, _), (b, _)| a.as_ref() < b.as_ref()) {
            list.sort_unstable_by(|(a, v), (b, w)| (a.as_ref(), v.as_ref()).cmp(&(b.as_ref(), w.as_ref())));
        }
        let mut bytes = 0;
        for (name, value) in &list {
            check(name.as_ref(), value.as_ref())?;
            bytes += name.as_ref().len() + value.as_ref().len() + 2;
        }
        if let Some(name) = list.windows(2).find_map(|pair| match pair {
            [(a, _), (b, _)] if a.as_ref() == b.as_ref() => Some(a.as_ref()),
            _ => None,
        }) {
            return Err(LabelError::Duplicate { name: name.to_owned() });
        }
        if list.len() > LABELS_MAX {
            let name = list.iter().find(|(n, _)| n.as_ref() == NAME);
            let name = name.map_or(String::new(), |(_, v)| v.as_ref().to_owned());
            return Err(LabelError::TooMany { count: list.len(), name });
        }
        let mut canonical = Vec::with_capacity(bytes);
        for (name, value) in &list {
            put_pair(&mut canonical, name.as_ref(), value.as_ref());
        }
        Ok(Self::of(canonical.into(), list.len()))
    }

    /// Of canonical bytes that keep the rules.
    fn of(canonical: Box<[u8]>, count: usize) -> Self {
        Self {
            id: xxh3_128(&canonical).to_be_bytes(),
            count: u8::try_from(count).unwrap_or(u8::MAX),
            canonical,
        }
    }

    pub fn empty() -> Self {
        Self::of(Box::default(), 0)
    }

    /// These labels and one more; they themselves when `value` is empty. Cheaper than [`Labels::new`].
    pub fn with(&self, name: &str, value: &str) -> Result<Self, LabelError> {
        if value.is_empty() {
            return Ok(self.clone());
        }
        check(name, value)?;
        let mut at = 0;
        let mut parts = Parts(&self.canonical);
        while let Some((other, _)) = parts.pair() {
            match other.cmp(name.as_bytes()) {
                Ordering::Less => at = self.canonical.len() - parts.0.len(),
                Ordering::Equal => return Err(LabelError::Duplicate { name: name.to_owned() }),
                Ordering::Greater => break,
            }
        }
        if self.len() == LABELS_MAX {
            let name = if name == NAME { value } else { self.name() };
            return Err(LabelError::TooMany { count: LABELS_MAX + 1, name: name.to_owned() });
        }
        let (before, after) = self.canonical.split_at(at);
        let mut canonical = Vec::with_capacity(self.canonical.len() + name.len() + value.len() + 2);
        canonical.extend_from_slice(before);
        put_pair(&mut canonical, name, value);
        canonical.extend_from_slice(after);
        Ok(Self::of(canonical.into(), self.len() + 1))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let mut parts = Parts(&self.canonical);
        while let Some((other, value)) = parts.pair() {
            match other.cmp(name.as_bytes()) {
                Ordering::Less => {}
                Ordering::Equal => return Some(text(value)),
                Ordering::Greater => return None,
            }
        }
        None
    }

    /// The series' name, the label `__name__`; empty when there is none.
    pub fn name(&self) -> &str {
        self.get(NAME).unwrap_or("")
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        Iter { parts: Parts(&self.canonical), left: self.len() }
    }

    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// `name 0xFF value 0xFF` for each label in order of name: what is hashed and what is stored.
    pub fn canonical(&self) -> &[u8] {
        &self.canonical
    }

    /// The inverse of [`Labels::canonical`].
    pub fn from_canonical(bytes: &[u8]) -> Result<Self, LabelError> {
        let mut pairs = Vec::new();
        let mut parts = Parts(bytes);
        while !parts.0.is_empty() {
            let (name, value) = parts.pair().ok_or(LabelError::Canonical)?;
            let text = |part| std::str::from_utf8(part).map_err(|_| LabelError::Canonical);
            pairs.push((text(name)?, text(value)?));
        }
        Self::new(pairs)
    }

    /// Was made with the labels: asking costs nothing.
    pub const fn id(&self) -> SeriesId {
        SeriesId(u128::from_be_bytes(self.id))
    }
}

impl Default for Labels {
    fn default() -> Self {
        Self::empty()
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

fn put_pair(out: &mut Vec<u8>, name: &str, value: &str) {
    for part in [name, value] {
        out.extend_from_slice(part.as_bytes());
        out.push(END);
    }
}

/// Only names and values that were text get into [`Labels`].
fn text(part: &[u8]) -> &str {
    std::str::from_utf8(part).unwrap_or_default()
}

/// What is left of canonical bytes.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    /// The next name or value; `None` where nothing ends any more.
    fn part(&mut self) -> Option<&'a [u8]> {
        let end = find_end(self.0)?;
        let (part, rest) = (self.0.get(..end)?, self.0.get(end + 1..)?);
        self.0 = rest;
        Some(part)
    }

    fn pair(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        Some((self.part()?, self.part()?))
    }
}

/// Where the first [`END`] is, eight bytes at a time: `!word` has a zero byte exactly where one lies (Mycroft 1987).
fn find_end(bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = bytes.as_chunks::<8>();
    for (nth, word) in words.iter().enumerate() {
        let inverse = !u64::from_le_bytes(*word);
        let found = inverse.wrapping_sub(LOW) & !inverse & (LOW << 7);
        if found != 0 {
            return Some(nth * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    Some(words.len() * 8 + rest.iter().position(|byte| *byte == END)?)
}

struct Iter<'a> {
    parts: Parts<'a>,
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.parts.pair()?;
        self.left = self.left.saturating_sub(1);
        Some((text(name), text(value)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.canonical == other.canonical
    }
}

impl Eq for Labels {}

impl Hash for Labels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// By name and value, label by label: where two sets differ first, one that ends there comes first.
impl Ord for Labels {
    fn cmp(&self, other: &Self) -> Ordering {
        let differ = self.canonical.iter().zip(&other.canonical).find(|(a, b)| a != b);
        match differ {
            None => self.canonical.len().cmp(&other.canonical.len()),
            Some((&END, _)) => Ordering::Less,
            Some((_, &END)) => Ordering::Greater,
            Some((a, b)) => a.cmp(b),
        }
    }
}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
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
        let full = many(LABELS_MAX).unwrap();
        assert!(matches!(full.with("more", "v"), Err(LabelError::TooMany { count: 65, .. })));

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

    fn pairs() -> impl Strategy<Value = std::collections::BTreeMap<String, String>> {
        proptest::collection::btree_map("[a-cö]{1,3}", "[x-zö\\x00]{1,12}", 0..6)
    }

    proptest! {
        #[test]
        fn canonical_round_trip(pairs in proptest::collection::btree_map("[a-zä]{1,8}", ".{1,20}", 0..20)) {
            let labels = Labels::new(pairs).unwrap();
            prop_assert_eq!(labels.id(), SeriesId(xxh3_128(labels.canonical())));
            prop_assert_eq!(Labels::from_canonical(labels.canonical()).unwrap(), labels);
        }

        #[test]
        fn labels_are_what_a_sorted_list_of_pairs_is(a in pairs(), b in pairs()) {
            let (left, right) = (Labels::new(&a).unwrap(), Labels::new(&b).unwrap());
            prop_assert_eq!(left.len(), a.len());
            prop_assert_eq!(left.iter().len(), a.len());
            prop_assert!(left.iter().eq(a.iter().map(|(name, value)| (name.as_str(), value.as_str()))));
            for name in a.keys().chain(b.keys()).map(String::as_str).chain(["", "zz"]) {
                prop_assert_eq!(left.get(name), a.get(name).map(String::as_str));
            }
            prop_assert_eq!(left.cmp(&right), a.iter().cmp(b.iter()));
            prop_assert_eq!(left == right, a == b);
        }

        #[test]
        fn one_more_label_is_as_if_it_had_been_there(pairs in pairs(), name in "[a-c]{1,3}", value in "[x-z]{0,2}") {
            let labels = Labels::new(&pairs).unwrap();
            let mut more: Vec<(&str, &str)> = labels.iter().collect();
            more.push((&name, &value));
            prop_assert_eq!(labels.with(&name, &value), Labels::new(more));
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Labels::from_canonical(&bytes);
        }
    }
}
