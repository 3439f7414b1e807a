//! DICT: which strings, operations and series do the ids of a connection name?

use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::limits::LABELS_MAX;
use tacho_model::varint::{put_bytes, put_varint};
use tacho_model::{LabelError, Labels, Operation, OperationKind};

use super::descriptor::{self, Described, RecordType, RecordTypeError};
use super::frame::{FrameType, put_frame};
use super::message::malformed;
use super::{DICT_BYTES_MAX, DICT_IDS_MAX};
use crate::Error;
use crate::reader::{Flaw, Reader};

/// Tags of the kinds of definition.
const TEXT: u8 = 1;
const OPERATION: u8 = 2;
const SERIES: u8 = 3;
const RECORD_TYPE: u8 = 4;

/// Limit on new record types that [`Dictionary::take_record_types`] has not returned yet. Further types are only counted.
const NEW_TYPES_MAX: usize = 1_024;

/// Memory of a string in addition to its bytes: pointer, length, reference counts, allocator overhead.
const STRING_OVERHEAD_BYTES: usize = 64;

#[derive(Debug, Default)]
pub struct Dictionary {
    texts: Slots<Arc<str>>,
    operations: Slots<Operation>,
    /// Invalid labels, for example above a limit, are stored as refused. Each record with such labels is refused.
    series: Slots<Result<Arc<Labels>, LabelError>>,
    /// An invalid record type is stored as refused too. Each record of the type is refused.
    record_types: Slots<Result<Arc<RecordType>, RecordTypeError>>,
    new_types: Vec<Arc<RecordType>>,
    /// Number of new record types above [`NEW_TYPES_MAX`].
    omitted_types: u64,
    /// Total size of the strings of the current definitions.
    size: Size,
}

/// Number of strings, and number of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    strings: usize,
    bytes: usize,
}

impl Size {
    const fn of(text: &str) -> Self {
        Self { strings: 1, bytes: text.len() }
    }

    const fn add(self, other: Self) -> Self {
        Self { strings: self.strings + other.strings, bytes: self.bytes + other.bytes }
    }

    const fn less(self, other: Self) -> Self {
        Self { strings: self.strings - other.strings, bytes: self.bytes - other.bytes }
    }
}

impl Dictionary {
    pub fn text(&self, id: u64) -> Option<&Arc<str>> {
        self.texts.get(id)
    }

    pub fn operation(&self, id: u64) -> Option<&Operation> {
        self.operations.get(id)
    }

    pub fn series(&self, id: u64) -> Option<&Result<Arc<Labels>, LabelError>> {
        self.series.get(id)
    }

    pub(super) fn record_type(&self, id: u64) -> Option<&Result<Arc<RecordType>, RecordTypeError>> {
        self.record_types.get(id)
    }

    pub(super) fn take_record_types(&mut self) -> Vec<Arc<RecordType>> {
        std::mem::take(&mut self.new_types)
    }

    pub(super) fn take_omitted_types(&mut self) -> u64 {
        std::mem::take(&mut self.omitted_types)
    }

    /// Estimated memory of the current definitions, bytes.
    pub fn memory_bytes(&self) -> usize {
        let slots =
            self.texts.bytes() + self.operations.bytes() + self.series.bytes() + self.record_types.bytes();
        self.size.bytes + self.size.strings * STRING_OVERHEAD_BYTES + slots
    }

    /// Operation ids up to this id are stored in an array.
    pub(super) const fn operations_dense(&self) -> usize {
        self.operations.dense.len()
    }

    pub fn define(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut reader = Reader::new(body);
        while !reader.is_empty() {
            let definition = read(&mut reader).map_err(|flaw| malformed("DICT", flaw))?;
            self.take(definition)?;
        }
        Ok(())
    }

    fn take(&mut self, definition: Definition<'_>) -> Result<(), Error> {
        let id = definition.id;
        if id == 0 || id > DICT_IDS_MAX {
            let what = format!("id {id}, 1 to {DICT_IDS_MAX} are allowed");
            return Err(Error::Dictionary { what });
        }
        let size = definition.size;
        let freed = match definition.content {
            Content::Text(text) => self.texts.set(id, text.into(), size),
            Content::Operation(kind, name) => {
                self.operations.set(id, Operation { kind, name: name.into() }, size)
            }
            Content::Series(pairs) => self.series.set(id, labels(&pairs), size),
            Content::RecordType(described) => {
                let record_type = described.check().map(Arc::new);
                match &record_type {
                    Ok(new) if self.new_types.len() < NEW_TYPES_MAX => self.new_types.push(Arc::clone(new)),
                    Ok(_) => self.omitted_types += 1,
                    Err(_) => {}
                }
                self.record_types.set(id, record_type, size)
            }
        };
        self.size = self.size.add(size).less(freed);
        let bytes = self.size.bytes;
        if bytes > DICT_BYTES_MAX {
            let what = format!("{bytes} bytes of strings, at most {DICT_BYTES_MAX} are allowed");
            return Err(Error::Dictionary { what });
        }
        Ok(())
    }
}

fn labels(pairs: &[(&str, &str)]) -> Result<Arc<Labels>, LabelError> {
    Labels::new(pairs.iter().copied()).map(Arc::new)
}

struct Definition<'a> {
    id: u64,
    content: Content<'a>,
    size: Size,
}

enum Content<'a> {
    Text(&'a str),
    Operation(OperationKind, &'a str),
    Series(Pairs<'a>),
    RecordType(Described<'a>),
}

fn read<'a>(reader: &mut Reader<'a>) -> Result<Definition<'a>, Flaw> {
    let unknown = reader.flaw("unknown kind of definition");
    let tag = reader.u8()?;
    let id = reader.varint()?;
    let content = match tag {
        TEXT => Content::Text(reader.string()?),
        OPERATION => {
            let flaw = reader.flaw("unknown kind of operation");
            let kind = OperationKind::from_byte(reader.u8()?).ok_or(flaw)?;
            Content::Operation(kind, reader.string()?)
        }
        SERIES => {
            let (pairs, size) = read_pairs(reader)?;
            return Ok(Definition { id, content: Content::Series(pairs), size });
        }
        RECORD_TYPE => Content::RecordType(Described::read(reader)?),
        _ => return Err(unknown),
    };
    let size = match &content {
        Content::Text(text) | Content::Operation(_, text) => Size::of(text),
        Content::Series(_) => Size::default(),
        Content::RecordType(described) => {
            described.strings().fold(Size::default(), |size, text| size.add(Size::of(text)))
        }
    };
    Ok(Definition { id, content, size })
}

/// Pairs of label name and value.
type Pairs<'a> = Vec<(&'a str, &'a str)>;

/// The labels of a series, and the size of their strings.
fn read_pairs<'a>(reader: &mut Reader<'a>) -> Result<(Pairs<'a>, Size), Flaw> {
    let count = reader.length()?;
    let mut pairs = Vec::with_capacity(count.min(LABELS_MAX + 1));
    let mut size = Size::default();
    for _ in 0..count {
        let (name, value) = (reader.string()?, reader.string()?);
        size = size.add(Size::of(name)).add(Size::of(value));
        // One label more than allowed is sufficient for the error. A label with an empty value counts as absent.
        if !value.is_empty() && pairs.len() <= LABELS_MAX {
            pairs.push((name, value));
        }
    }
    Ok((pairs, size))
}

/// Definitions by id, with the sizes of their strings. Id `i` is at position `i - 1` of an array, unless `i` is much larger than
/// the number of definitions ([`GAP_MAX`]). Such an id is in a map. Therefore memory is proportional to the number of definitions
/// and independent of the highest id.
#[derive(Debug)]
struct Slots<T> {
    dense: Vec<Option<(T, Size)>>,
    sparse: HashMap<usize, (T, Size)>,
    /// Number of definitions.
    count: usize,
}

/// Ids up to `2 * (number of definitions) + GAP_MAX` have a place in the array. Larger ids go to the map.
const GAP_MAX: usize = 64;

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { dense: Vec::new(), sparse: HashMap::new(), count: 0 }
    }
}

impl<T> Slots<T> {
    fn get(&self, id: u64) -> Option<&T> {
        let at = usize::try_from(id.checked_sub(1)?).ok()?;
        let slot = match self.dense.get(at) {
            Some(slot) => slot.as_ref(),
            None => self.sparse.get(&at),
        };
        slot.map(|(value, _)| value)
    }

    /// Defines `id`, which must be within the limit. Returns the size of the previous definition of `id`.
    fn set(&mut self, id: u64, value: T, size: Size) -> Size {
        let Ok(at) = usize::try_from(id.saturating_sub(1)) else { return Size::default() };
        let reach = self.dense.len().max(2 * self.count + GAP_MAX);
        let before = if at < reach {
            self.grow(at + 1);
            self.dense.get_mut(at).and_then(|slot| slot.replace((value, size)))
        } else {
            self.sparse.insert(at, (value, size))
        };
        self.count += usize::from(before.is_none());
        before.map(|(_, size)| size).unwrap_or_default()
    }

    fn grow(&mut self, len: usize) {
        let before = self.dense.len();
        if len <= before {
            return;
        }
        self.dense.resize_with(len, || None);
        if self.sparse.is_empty() {
            return;
        }
        for (at, slot) in self.dense.iter_mut().enumerate().skip(before) {
            *slot = self.sparse.remove(&at);
        }
    }

    /// Memory of the array and the map, without the strings.
    fn bytes(&self) -> usize {
        (self.dense.capacity() + 2 * self.sparse.capacity()) * size_of::<Option<(T, Size)>>()
    }
}

/// Builds a DICT frame: the inverse of [`Dictionary::define`].
#[derive(Clone, Debug, Default)]
pub struct DictFrame {
    body: Vec<u8>,
}

impl DictFrame {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn text(&mut self, id: u64, text: &str) {
        self.begin(TEXT, id);
        put_bytes(&mut self.body, text.as_bytes());
    }

    pub fn operation(&mut self, id: u64, kind: OperationKind, name: &str) {
        self.begin(OPERATION, id);
        self.body.push(kind as u8);
        put_bytes(&mut self.body, name.as_bytes());
    }

    /// Labels in the given order, including `__name__`.
    pub fn series<'a>(&mut self, id: u64, labels: impl ExactSizeIterator<Item = (&'a str, &'a str)>) {
        self.begin(SERIES, id);
        put_varint(&mut self.body, labels.len() as u64);
        for (name, value) in labels {
            put_bytes(&mut self.body, name.as_bytes());
            put_bytes(&mut self.body, value.as_bytes());
        }
    }

    pub fn record_type(&mut self, id: u64, record_type: &RecordType) {
        self.begin(RECORD_TYPE, id);
        descriptor::put(&mut self.body, record_type);
    }

    fn begin(&mut self, tag: u8, id: u64) {
        self.body.push(tag);
        put_varint(&mut self.body, id);
    }

    pub fn body_bytes(&self) -> usize {
        self.body.len()
    }

    pub fn finish(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_frame(&mut out, FrameType::Dict, |out| out.extend_from_slice(&self.body));
        out
    }

    #[cfg(test)]
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Applies the definitions that `build` writes. Returns the number of string bytes, or the error.
    fn define(dictionary: &mut Dictionary, build: impl FnOnce(&mut DictFrame)) -> Result<usize, String> {
        let mut frame = DictFrame::new();
        build(&mut frame);
        dictionary.define(frame.body()).map_err(|error| error.to_string())?;
        Ok(dictionary.size.bytes)
    }

    #[test]
    fn redefinition_replaces_and_frees() {
        let mut dictionary = Dictionary::default();
        let bytes = define(&mut dictionary, |frame| {
            frame.text(1, "main");
            frame.text(1, "main");
            frame.text(2, "ö漢🚀");
            frame.operation(1, OperationKind::HttpServer, "GET /ads");
            frame.series(3, [("__name__", "up"), ("empty", "")].into_iter());
        });
        assert_eq!(bytes, Ok(4 + 9 + 8 + 15));
        assert_eq!(dictionary.text(2).map(|t| &**t), Some("ö漢🚀"));
        assert_eq!(dictionary.operation(1).unwrap().kind, OperationKind::HttpServer);
        assert_eq!(dictionary.series(3).unwrap().as_ref().unwrap().to_string(), "up");
        assert_eq!((dictionary.text(0), dictionary.text(3)), (None, None));
        assert_eq!(define(&mut dictionary, |frame| frame.text(2, "x")), Ok(4 + 1 + 8 + 15));
        assert_eq!(dictionary.text(2).map(|t| &**t), Some("x"));
    }

    #[test]
    fn the_limit_is_accepted_and_one_past_it_is_refused() {
        let mut dictionary = Dictionary::default();
        assert_eq!(define(&mut dictionary, |frame| frame.text(DICT_IDS_MAX, "")), Ok(0));
        assert_eq!(
            define(&mut dictionary, |frame| frame.text(DICT_IDS_MAX + 1, "")),
            Err("dictionary over its limit: id 65537, 1 to 65536 are allowed".into())
        );
        assert!(define(&mut dictionary, |frame| frame.text(0, "")).is_err());

        let megabyte = "x".repeat(1 << 20);
        for id in 1..=16 {
            assert!(define(&mut dictionary, |frame| frame.text(id, &megabyte)).is_ok());
        }
        assert_eq!(define(&mut dictionary, |frame| frame.text(16, &megabyte)), Ok(DICT_BYTES_MAX));
        assert_eq!(
            define(&mut dictionary, |frame| frame.text(17, "x")),
            Err("dictionary over its limit: 16777217 bytes of strings, at most 16777216 are allowed".into())
        );
    }

    #[test]
    fn memory_is_proportional_to_the_number_of_definitions() {
        let mut dictionary = Dictionary::default();
        let order = (1..=64).rev().map(|nth| nth * 1_000).chain(1..=2_000);
        for id in order.clone() {
            define(&mut dictionary, |frame| frame.text(id, &format!("text {id}"))).unwrap();
        }
        let all =
            order.clone().all(|id| dictionary.text(id).is_some_and(|text| **text == format!("text {id}")));
        assert!(all && dictionary.text(2_001).is_none() && dictionary.text(63_999).is_none());
        let slots = dictionary.texts.bytes();
        assert!(dictionary.texts.sparse.len() == 62 && slots < 400_000, "{slots} bytes");
        assert_eq!(dictionary.texts.count, 2_062);
        for id in order {
            define(&mut dictionary, |frame| frame.text(id, "")).unwrap();
        }
        assert_eq!((dictionary.texts.count, dictionary.size.bytes), (2_062, 0));
        let mut one = Dictionary::default();
        define(&mut one, |frame| frame.operation(DICT_IDS_MAX, OperationKind::HttpServer, "a")).unwrap();
        assert!(one.memory_bytes() < 2_000, "{} bytes", one.memory_bytes());
    }

    #[test]
    fn malformed_definitions_name_their_position() {
        let check = |body: &[u8], expect: &str| {
            let error = Dictionary::default().define(body).unwrap_err();
            assert_eq!(error.to_string(), format!("malformed DICT: {expect}"));
        };
        check(&[9, 1], "unknown kind of definition at byte 0");
        check(&[1, 1, 1, b'a', 2, 1, 7, 0], "unknown kind of operation at byte 6");
        check(&[1, 1, 2, 0xc3, 0x28], "string that is not UTF-8 at byte 2");
        check(&[3, 1, 200, 1], "length beyond the end of the input at byte 2");
    }

    #[test]
    fn labels_over_a_limit_are_stored_as_refused() {
        let mut dictionary = Dictionary::default();
        let pairs: Vec<(String, String)> = (0..=LABELS_MAX).map(|i| (format!("l{i}"), "v".into())).collect();
        let ok = define(&mut dictionary, |frame| {
            frame.series(1, pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        });
        assert!(ok.is_ok());
        assert!(matches!(dictionary.series(1), Some(Err(LabelError::TooMany { count: 65, .. }))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Dictionary::default().define(&body);
        }
    }
}
