//! A series is identified by its labels; its id is their hash.
//!
//! Labels are kept in their canonical form ([`Labels::canonical`]), in one allocation, because labels take most of the
//! memory of a million series. Sets that differ in only one label can share the other labels ([`Labels::sharing`]). For example,
//! the fields of a line in line protocol differ only in the name.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::NAME;
use crate::limits::{LABEL_NAME_BYTES_MAX, LABEL_VALUE_BYTES_MAX, LABELS_BYTES_MAX, LABELS_MAX};

/// 128-bit XXH3 of a series' canonical labels. All servers and commands derive the same id, without coordination.
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
    #[error("labels of {bytes} bytes, at most {LABELS_BYTES_MAX} are allowed for one series (name {name:?})")]
    TooLong { bytes: usize, name: String },
    #[error("canonical labels are malformed")]
    Canonical,
}

/// Ends a name or a value in the canonical form; UTF-8 text never contains this byte.
const END: u8 = 0xFF;

/// A set of labels, sorted by name. Names are unique. There are no empty values, because an empty value means that the
/// label is absent.
#[derive(Clone)]
pub struct Labels {
    /// The series id, as bytes, because a `u128` must be aligned to 16 bytes.
    id: [u8; 16],
    /// `name END value END` for each label, sorted by name. If there is a `base`, only the label that is not in the
    /// base.
    own: Box<[u8]>,
    /// The other labels, shared with other sets. The base itself has no base.
    base: Option<Arc<Self>>,
    /// Position of `own` in the bytes of the base.
    at: u32,
    /// Number of all labels, at most [`LABELS_MAX`].
    count: u8,
}

/// Canonical labels shorter than this, in bytes, are copied, because sharing them saves almost nothing.
pub(crate) const SHARED_BYTES_MIN: usize = 64;

impl Labels {
    /// Removes labels with an empty value, sorts the others, and checks the limits.
    pub fn new<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Result<Self, LabelError>
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        Self::within(pairs, LABELS_BYTES_MAX)
    }

    fn within<N, V>(pairs: impl IntoIterator<Item = (N, V)>, bytes_max: usize) -> Result<Self, LabelError>
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
        let name = || {
            let name = list.iter().find(|(n, _)| n.as_ref() == NAME);
            name.map_or(String::new(), |(_, v)| v.as_ref().to_owned())
        };
        if list.len() > LABELS_MAX {
            return Err(LabelError::TooMany { count: list.len(), name: name() });
        }
        if bytes > bytes_max {
            return Err(LabelError::TooLong { bytes, name: name() });
        }
        let mut canonical = Vec::with_capacity(bytes);
        for (name, value) in &list {
            put_pair(&mut canonical, name.as_ref(), value.as_ref());
        }
        Ok(Self::of(canonical.into(), list.len()))
    }

    fn of(canonical: Box<[u8]>, count: usize) -> Self {
        let id = xxh3_128(&canonical).to_be_bytes();
        Self { id, own: canonical, base: None, at: 0, count: u8::try_from(count).unwrap_or(u8::MAX) }
    }

    /// Creates a set from labels of existing sets, which need no check. The caller sorts them by name and excludes duplicates.
    /// Cheaper than [`Labels::new`].
    pub fn from_sorted<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Self {
        debug_assert!(
            pairs.clone().is_sorted_by(|(a, _), (b, _)| a < b),
            "labels must be sorted by name, without duplicates"
        );
        let bytes = pairs.clone().map(|(name, value)| name.len() + value.len() + 2).sum();
        let (mut canonical, mut count) = (Vec::with_capacity(bytes), 0);
        for (name, value) in pairs {
            put_pair(&mut canonical, name, value);
            count += 1;
        }
        Self::of(canonical.into(), count)
    }

    pub fn empty() -> Self {
        Self::of(Box::default(), 0)
    }

    /// These labels with one label added; a clone if `value` is empty. Cheaper than [`Labels::new`].
    pub fn with(&self, name: &str, value: &str) -> Result<Self, LabelError> {
        if value.is_empty() {
            return Ok(self.clone());
        }
        let at = self.place(name, value)?;
        let canonical = self.canonical();
        let (before, after) = canonical.split_at_checked(at).unwrap_or((&canonical, &[]));
        let mut out = Vec::with_capacity(canonical.len() + name.len() + value.len() + 2);
        out.extend_from_slice(before);
        put_pair(&mut out, name, value);
        out.extend_from_slice(after);
        Ok(Self::of(out.into(), self.len() + 1))
    }

    /// The same as [`Labels::with`], but all sets created from a long `base` share its labels. `scratch` is a buffer for the
    /// bytes to hash; it grows to the size of the set.
    pub fn sharing(
        base: &Arc<Self>,
        name: &str,
        value: &str,
        scratch: &mut Vec<u8>,
    ) -> Result<Self, LabelError> {
        if value.is_empty() || base.base.is_some() || base.own.len() < SHARED_BYTES_MIN {
            return base.with(name, value);
        }
        let at = base.place(name, value)?;
        let (before, after) = base.own.split_at_checked(at).unwrap_or((&base.own, &[]));
        scratch.clear();
        scratch.extend_from_slice(before);
        put_pair(scratch, name, value);
        let own = scratch.get(before.len()..).unwrap_or_default().into();
        scratch.extend_from_slice(after);
        let (id, count) = (xxh3_128(scratch).to_be_bytes(), base.count + 1);
        Ok(Self { id, own, base: Some(Arc::clone(base)), at: u32::try_from(at).unwrap_or(u32::MAX), count })
    }

    /// Position of an additional label in the canonical form; an error if the label is not allowed.
    fn place(&self, name: &str, value: &str) -> Result<usize, LabelError> {
        check(name, value)?;
        let mut at = 0;
        for (other, other_value) in self.iter() {
            match other.cmp(name) {
                Ordering::Less => at += other.len() + other_value.len() + 2,
                Ordering::Equal => return Err(LabelError::Duplicate { name: name.to_owned() }),
                Ordering::Greater => break,
            }
        }
        let series = || if name == NAME { value } else { self.name() }.to_owned();
        if self.len() >= LABELS_MAX {
            return Err(LabelError::TooMany { count: self.len() + 1, name: series() });
        }
        let bytes = self.canonical_bytes() + name.len() + value.len() + 2;
        if bytes > LABELS_BYTES_MAX {
            return Err(LabelError::TooLong { bytes, name: series() });
        }
        Ok(at)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let mut pairs = self.pairs();
        while let Some((other, value)) = pairs.pair() {
            match other.cmp(name.as_bytes()) {
                Ordering::Less => {}
                Ordering::Equal => return Some(text(value)),
                Ordering::Greater => return None,
            }
        }
        None
    }

    /// The name of the series, the label `__name__`; empty if absent.
    pub fn name(&self) -> &str {
        self.get(NAME).unwrap_or("")
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        Iter { pairs: self.pairs(), left: self.len() }
    }

    fn pairs(&self) -> Pairs<'_> {
        let [first, second, third] = self.slices();
        Pairs { parts: Parts(first), later: [second, third] }
    }

    /// The canonical form, in three pieces.
    fn slices(&self) -> [&[u8]; 3] {
        let Some(base) = &self.base else { return [&self.own, &[], &[]] };
        let (before, after) = base.own.split_at_checked(self.at as usize).unwrap_or((&base.own, &[]));
        [before, &self.own, after]
    }

    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// `name 0xFF value 0xFF` for each label, sorted by name: the form that is hashed and stored.
    pub fn canonical(&self) -> Cow<'_, [u8]> {
        match &self.base {
            None => Cow::Borrowed(&self.own),
            Some(_) => Cow::Owned(self.slices().concat()),
        }
    }

    pub fn canonical_bytes(&self) -> usize {
        self.own.len() + self.base.as_ref().map_or(0, |base| base.own.len())
    }

    pub fn own_bytes(&self) -> usize {
        self.own.len()
    }

    pub const fn base(&self) -> Option<&Arc<Self>> {
        self.base.as_ref()
    }

    /// The inverse of [`Labels::canonical`]. Also reads labels that were stored before the limit on the total bytes of
    /// all labels was introduced.
    pub fn from_canonical(bytes: &[u8]) -> Result<Self, LabelError> {
        let mut pairs = Vec::new();
        let mut parts = Parts(bytes);
        while !parts.0.is_empty() {
            let (name, value) = parts.pair().ok_or(LabelError::Canonical)?;
            let text = |part| std::str::from_utf8(part).map_err(|_| LabelError::Canonical);
            pairs.push((text(name)?, text(value)?));
        }
        Self::within(pairs, usize::MAX)
    }

    /// Free: the id is computed when the labels are created.
    pub const fn id(&self) -> SeriesId {
        SeriesId(u128::from_be_bytes(self.id))
    }
}

impl Default for Labels {
    fn default() -> Self {
        Self::empty()
    }
}

pub(crate) fn check(name: &str, value: &str) -> Result<(), LabelError> {
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

/// The text of a name or value. [`Labels`] holds only valid UTF-8.
fn text(part: &[u8]) -> &str {
    std::str::from_utf8(part).unwrap_or_default()
}

/// The canonical bytes before a label, the value of the label, and the bytes after it; `None` if the label is absent.
pub(crate) fn parts_of<'a>(canonical: &'a [u8], label: &str) -> Option<(&'a [u8], &'a str, &'a [u8])> {
    let mut parts = Parts(canonical);
    loop {
        let before = canonical.get(..canonical.len() - parts.0.len())?;
        let (name, value) = parts.pair()?;
        if name == label.as_bytes() {
            return Some((before, std::str::from_utf8(value).ok()?, parts.0));
        }
    }
}

/// The unread part of canonical bytes.
pub(crate) struct Parts<'a>(pub(crate) &'a [u8]);

impl<'a> Parts<'a> {
    /// The next name or value; `None` if no [`END`] follows.
    fn part(&mut self) -> Option<&'a [u8]> {
        let end = find_end(self.0)?;
        let (part, rest) = (self.0.get(..end)?, self.0.get(end + 1..)?);
        self.0 = rest;
        Some(part)
    }

    pub(crate) fn pair(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        Some((self.part()?, self.part()?))
    }
}

/// Position of the first [`END`], searched eight bytes at a time: `!word` has a zero byte exactly where `word` has [`END`]
/// (Mycroft 1987).
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

struct Pairs<'a> {
    parts: Parts<'a>,
    later: [&'a [u8]; 2],
}

impl<'a> Pairs<'a> {
    #[inline]
    fn pair(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        while self.parts.0.is_empty() {
            let [next, last] = self.later;
            if next.is_empty() && last.is_empty() {
                return None;
            }
            *self = Self { parts: Parts(next), later: [last, &[]] };
        }
        self.parts.pair()
    }
}

struct Iter<'a> {
    pairs: Pairs<'a>,
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.pairs.pair()?;
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
        let same_base = match (&self.base, &other.base) {
            (None, None) => true,
            (Some(one), Some(another)) => Arc::ptr_eq(one, another),
            _ => false,
        };
        self.id == other.id && if same_base { self.own == other.own } else { self.iter().eq(other.iter()) }
    }
}

impl Eq for Labels {}

impl Hash for Labels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// Compares by name and value, label by label; a set that is a prefix of another set comes first.
impl Ord for Labels {
    fn cmp(&self, other: &Self) -> Ordering {
        let is_alike = match (&self.base, &other.base) {
            (None, None) => true,
            // Each `own` is one label, so no `own` is a prefix of another.
            (Some(one), Some(another)) => Arc::ptr_eq(one, another) && self.at == other.at,
            _ => false,
        };
        if is_alike {
            return compare_canonical(&self.own, &other.own);
        }
        let (mut one, mut another) = (self.pairs(), other.pairs());
        loop {
            match (one.pair(), another.pair()) {
                (None, None) => return Ordering::Equal,
                (one, another) if one == another => {}
                // `None` is less than any label.
                (one, another) => return one.cmp(&another),
            }
        }
    }
}

/// Compares names and values of canonical bytes by their first difference. A name or value that ends there is less.
fn compare_canonical(one: &[u8], another: &[u8]) -> Ordering {
    let (words, _) = one.as_chunks::<8>();
    let (others, _) = another.as_chunks::<8>();
    let same = words.iter().zip(others).take_while(|(word, other)| word == other).count() * 8;
    let (one, another) = (one.get(same..).unwrap_or_default(), another.get(same..).unwrap_or_default());
    match one.iter().zip(another).find(|(byte, other)| byte != other) {
        None => one.len().cmp(&another.len()),
        Some((&END, _)) => Ordering::Less,
        Some((_, &END)) => Ordering::Greater,
        Some((byte, other)) => byte.cmp(other),
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
    fn the_limit_is_accepted_and_one_past_it_is_refused() {
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
    fn order_is_irrelevant_and_empty_values_are_absent() {
        let a = Labels::new([("b", "2"), ("a", "1"), ("c", "")]).unwrap();
        let b = Labels::new([("a", "1"), ("b", "2")]).unwrap();
        assert_eq!(a, b);
        assert_eq!(a.id(), b.id());
        assert_eq!(Labels::new([("a", "1"), ("a", "2")]), Err(LabelError::Duplicate { name: "a".into() }));
    }

    #[test]
    fn labels_are_displayed_as_in_prometheus() {
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
            prop_assert_eq!(labels.id(), SeriesId(xxh3_128(&labels.canonical())));
            prop_assert_eq!(Labels::from_canonical(&labels.canonical()).unwrap(), labels);
        }

        #[test]
        fn labels_equal_a_sorted_list_of_pairs(a in pairs(), b in pairs()) {
            let (left, right) = (Labels::new(&a).unwrap(), Labels::new(&b).unwrap());
            prop_assert_eq!(left.len(), a.len());
            prop_assert_eq!(left.iter().len(), a.len());
            prop_assert!(left.iter().eq(a.iter().map(|(name, value)| (name.as_str(), value.as_str()))));
            for name in a.keys().chain(b.keys()).map(String::as_str).chain(["", "zz"]) {
                prop_assert_eq!(left.get(name), a.get(name).map(String::as_str));
            }
            prop_assert_eq!(left.cmp(&right), a.iter().cmp(b.iter()));
            prop_assert_eq!(left == right, a == b);
            let taken = Labels::from_sorted(left.iter().collect::<Vec<_>>().into_iter());
            prop_assert_eq!((taken.id(), &taken), (left.id(), &left));
        }

        #[test]
        fn a_set_with_an_added_label_equals_a_new_set(pairs in pairs(), name in "[a-c]{1,3}", value in "[x-z]{0,2}") {
            let labels = Labels::new(&pairs).unwrap();
            let mut more: Vec<(&str, &str)> = labels.iter().collect();
            more.push((&name, &value));
            prop_assert_eq!(labels.with(&name, &value), Labels::new(more));
        }

        #[test]
        fn the_order_does_not_depend_on_sharing(
            a in ("[ac]{2,3}", "[x-z\\x00]{1,3}"),
            b in ("[ac]{2,3}", "[x-z\\x00]{1,3}"),
            long in "[x-z]{64,70}",
        ) {
            let base = Arc::new(Labels::new([("b", &*long), ("m", "v")]).unwrap());
            let shared = |(name, value): &(String, String)| {
                Labels::sharing(&base, name, value, &mut Vec::new()).unwrap()
            };
            let copied = |(name, value): &(String, String)| base.with(name, value).unwrap();
            let expect = copied(&a).iter().cmp(copied(&b).iter());
            prop_assert!(shared(&a).base().is_some());
            prop_assert_eq!(shared(&a).cmp(&shared(&b)), expect);
            prop_assert_eq!(shared(&a).cmp(&copied(&b)), expect);
            prop_assert_eq!(copied(&a).cmp(&copied(&b)), expect);
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Labels::from_canonical(&bytes);
        }
    }
}
