//! Which series does a field of a line belong to? The series is found by the bytes of the line's head and of the
//! field's key.
//!
//! Heads and series are remembered for the next body up to a limit, because senders repeat their heads.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tacho_model::limits::LABELS_MAX;
use tacho_model::{LabelError, Labels, NAME, Spelling, SpellingKeys};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::cursor::{Cursor, Fault, Piece};
use super::places::Places;
use super::text::{shown, unescape};
use crate::budget::Budget;

const IN_MEASUREMENTS: &[char] = &[',', ' '];
const IN_NAMES: &[char] = &[',', '=', ' '];

/// For a field with this name, the series has the name of the measurement only.
const VALUE: &str = "value";

/// Position in the table's list of heads.
pub(super) type HeadIndex = u32;
/// Position in the table's list of series.
pub(super) type SeriesIndex = u32;

#[derive(Debug)]
pub(super) struct SeriesTable {
    heads: Vec<Head>,
    head_places: Places,
    series: Vec<Series>,
    series_places: Places,
    /// Shapes of heads: the keys of the fields, in the order of a line. Most heads share one shape.
    shapes: Vec<Vec<Box<[u8]>>>,
    /// The head of the previous line.
    before: HeadIndex,
    /// Number of series that the current line's new head has so far.
    learned: usize,
    seed: u64,
    bytes: usize,
    budget: Budget,
    line: LineBegan,
    scratch: Vec<u8>,
}

/// The state before the current line, so that a refused line can be undone, and the memory that the line has taken so far.
#[derive(Clone, Copy, Debug, Default)]
struct LineBegan {
    heads: usize,
    series: usize,
    bytes: usize,
    taken: usize,
    /// Bytes of the labels of the line's new series. Shared labels are counted for each series.
    labels_bytes: usize,
    /// Position of the line's head in the body.
    head_at: usize,
}

#[derive(Debug)]
struct Head {
    bytes: Box<[u8]>,
    /// The tags, once the head has a second series: all series but the first share them. Most heads have one series.
    tags: Option<Arc<Labels>>,
    /// The head that followed this head the last time. It predicts the next head.
    next: HeadIndex,
    /// The first series of the first line with this head. The other series of the line follow it. `shape` has their keys.
    first: SeriesIndex,
    shape: Option<usize>,
}

#[derive(Debug)]
struct Series {
    head: HeadIndex,
    key: Box<[u8]>,
    labels: Arc<Labels>,
}

/// Memory of a remembered head or series in addition to its bytes.
const ENTRY_BYTES: usize = 240;
/// Memory of a new head or series while a body is decoded, in addition to its bytes. Growing lists exist twice, and a
/// series has its own list of values. A line that creates a head and a series takes 350 to 900 bytes, depending on its length
/// and on the number of lines (`tests/peak.rs`).
const NEW_BYTES: usize = 320;
/// The first keys of a shape are compared one by one. Their series are not in the hash table, because most shapes have only a
/// few keys.
const KEYS_COMPARED: usize = 8;
/// Limit on the label bytes of all new series of one line. These labels are written out to be hashed, so the
/// limit bounds the time for a line. The limit is enough for 8,000 fields with tags of one kilobyte.
pub(super) const LINE_LABELS_BYTES_MAX: usize = 8 << 20;

/// A line's head, and a prediction of the series of the line's next field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    head: HeadIndex,
    next: SeriesIndex,
}

impl Default for SeriesTable {
    fn default() -> Self {
        Self {
            heads: Vec::new(),
            head_places: Places::default(),
            series: Vec::new(),
            series_places: Places::default(),
            shapes: Vec::new(),
            before: 0,
            learned: 0,
            seed: RandomState::new().hash_one(0),
            bytes: 0,
            budget: Budget::default(),
            line: LineBegan::default(),
            scratch: Vec::new(),
        }
    }
}

impl SeriesTable {
    pub(super) fn labels(&self, series: SeriesIndex) -> Option<&Arc<Labels>> {
        self.series.get(series as usize).map(|series| &series.labels)
    }

    /// The spelling by which the store finds a series later.
    pub(super) fn spelling(&self, series: SeriesIndex, keys: &SpellingKeys) -> Spelling {
        let series = self.series.get(series as usize);
        let spelling = series.and_then(|series| {
            Some(keys.head(&self.heads.get(series.head as usize)?.bytes).field(&series.key))
        });
        spelling.unwrap_or(Spelling::NONE)
    }

    pub(super) fn series_count(&self) -> usize {
        self.series.len()
    }

    /// Estimated memory in bytes. The lists keep the capacity of refused lines.
    pub(super) const fn bytes(&self) -> usize {
        let lists = self.series.capacity() * size_of::<Series>()
            + self.heads.capacity() * size_of::<Head>()
            + self.scratch.capacity();
        let lists = lists + self.series_places.bytes() + self.head_places.bytes();
        if lists > self.bytes { lists } else { self.bytes }
    }

    pub(super) const fn begin_body(&mut self, bytes: usize) {
        self.budget = Budget::of_body(bytes);
    }

    pub(super) const fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Begins a line whose head is at this position. From now on, the line can be undone.
    pub(super) const fn begin_line(&mut self, head_at: usize) {
        let (heads, series) = (self.heads.len(), self.series.len());
        self.line = LineBegan { heads, series, bytes: self.bytes, taken: 0, labels_bytes: 0, head_at };
        self.learned = 0;
    }

    /// Begins a line, and reads its head.
    pub(super) fn head(&mut self, cursor: &mut Cursor<'_>) -> Result<Line, Fault> {
        self.begin_line(cursor.at());
        let guess = self.heads.get(self.before as usize).map_or(0, |before| before.next);
        if let Some(head) = self.heads.get(guess as usize)
            && cursor.take_head(&head.bytes)
        {
            self.before = guess;
            return Ok(Line { head: guess, next: head.first });
        }
        self.line_of(cursor.head()?)
    }

    /// The line with this head.
    pub(super) fn line_of(&mut self, piece: Piece<'_>) -> Result<Line, Fault> {
        let index = self.head_of(piece)?;
        if let Some(before) = self.heads.get_mut(self.before as usize) {
            before.next = index;
        }
        self.before = index;
        let first = self.heads.get(index as usize).map_or(0, |head| head.first);
        Ok(Line { head: index, next: first })
    }

    fn head_of(&mut self, piece: Piece<'_>) -> Result<HeadIndex, Fault> {
        let hash = self.head_hash(piece.bytes);
        let is_it = |index: u32| self.heads.get(index as usize).is_some_and(|h| *h.bytes == *piece.bytes);
        if let Some(found) = self.head_places.find(hash, is_it) {
            return Ok(found);
        }
        self.take(NEW_BYTES + 4 * piece.bytes.len(), piece.at)?;
        self.bytes += 2 * piece.bytes.len() + ENTRY_BYTES;
        let (index, first) = (index_of(self.heads.len()), index_of(self.series.len()));
        self.heads.push(Head { bytes: piece.bytes.into(), tags: None, next: 0, first, shape: None });
        self.head_places.insert(hash, index);
        Ok(index)
    }

    fn head_hash(&self, head: &[u8]) -> u64 {
        xxh3_64_with_seed(head, self.seed)
    }

    fn key_hash(&self, head: HeadIndex, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed ^ u64::from(head).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn take(&mut self, bytes: usize, at: usize) -> Result<(), Fault> {
        self.budget.take(bytes).map_err(|full| Fault::new(at, full.to_string()))?;
        self.line.taken += bytes;
        Ok(())
    }

    /// Consumes a field's key and the following `=`.
    #[inline]
    pub(super) fn field(&mut self, line: &mut Line, cursor: &mut Cursor<'_>) -> Result<SeriesIndex, Fault> {
        let guess = line.next;
        if self.guessed_key(line).is_some_and(|key| cursor.take_key(key)) {
            line.next += 1;
            return Ok(guess);
        }
        self.next_field(line, cursor.key()?)
    }

    /// The series of a field with this key.
    pub(super) fn next_field(&mut self, line: &mut Line, key: Piece<'_>) -> Result<SeriesIndex, Fault> {
        let index = self.field_of(line.head, key)?;
        line.next = index + 1;
        Ok(index)
    }

    #[inline]
    fn guessed_key(&self, line: &Line) -> Option<&[u8]> {
        let head = self.heads.get(line.head as usize)?;
        let at = line.next.checked_sub(head.first)?;
        self.shapes.get(head.shape?)?.get(at as usize).map(|key| &**key)
    }

    fn field_of(&mut self, head: HeadIndex, key: Piece<'_>) -> Result<SeriesIndex, Fault> {
        if let Some(found) = self.compared(head, key.bytes) {
            return Ok(found);
        }
        let hash = self.key_hash(head, key.bytes);
        let is_it = |index: u32| {
            let series = self.series.get(index as usize);
            series.is_some_and(|series| series.head == head && *series.key == *key.bytes)
        };
        let is_new = self.heads.get(head as usize).is_some_and(|head| head.shape.is_none());
        let all_compared = is_new && self.learned <= KEYS_COMPARED;
        match (!all_compared).then(|| self.series_places.find(hash, is_it)).flatten() {
            Some(found) => Ok(found),
            None => self.add(head, key, hash),
        }
    }

    /// Finds a key among the first keys of a head's first line.
    fn compared(&self, index: HeadIndex, key: &[u8]) -> Option<SeriesIndex> {
        let head = self.heads.get(index as usize)?;
        let count = match head.shape {
            Some(shape) => self.shapes.get(shape)?.len(),
            None => self.learned,
        };
        let series = self.series.get(head.first as usize..)?;
        let at = series.iter().take(count.min(KEYS_COMPARED)).position(|series| *series.key == *key)?;
        Some(head.first + index_of(at))
    }

    fn add(&mut self, index: HeadIndex, key: Piece<'_>, hash: u64) -> Result<SeriesIndex, Fault> {
        let Some(head) = self.heads.get_mut(index as usize) else {
            return Err(Fault::new(key.at, "field without a measurement"));
        };
        let series = index_of(self.series.len());
        // The first series of a head has its own copy of the tags; the other series share the copy in `head.tags`.
        let shares = series != head.first;
        let read = read_head(Piece { bytes: &head.bytes, at: self.line.head_at })?;
        let tags_bytes = read.tags.iter().map(|(name, value)| name.len() + value.len() + 2).sum::<usize>();
        let name_bytes = NAME.len() + read.measurement.len() + key.bytes.len() + 3;
        self.line.labels_bytes += tags_bytes + name_bytes;
        if self.line.labels_bytes > LINE_LABELS_BYTES_MAX {
            let reason = format!(
                "labels of the new series of this line exceed {LINE_LABELS_BYTES_MAX} bytes: use fewer \
                 fields or shorter tags"
            );
            return Err(Fault::new(key.at, reason));
        }
        let own_bytes = name_bytes + if shares { 0 } else { tags_bytes };
        let taken = NEW_BYTES + own_bytes + 4 * key.bytes.len();
        self.budget.take(taken).map_err(|full| Fault::new(key.at, full.to_string()))?;
        self.line.taken += taken;
        let name = read.name(&name(key, IN_NAMES)?);
        let labels = if shares {
            read.shared(&mut head.tags)
                .and_then(|tags| Labels::sharing(&tags, NAME, &name, &mut self.scratch))
        } else {
            read.owned(&name)
        };
        let labels = labels.map_err(|error| Fault::new(key.at, error.to_string()))?;
        self.bytes += labels.own_bytes() + 3 * key.bytes.len() + ENTRY_BYTES;
        // Keys are learned only in the first line of a head, because its series are adjacent in `self.series`.
        let is_learned = head.shape.is_none() && series == head.first + index_of(self.learned);
        self.learned += usize::from(is_learned);
        self.series.push(Series { head: index, key: key.bytes.into(), labels: Arc::new(labels) });
        if !is_learned || self.learned > KEYS_COMPARED {
            self.series_places.insert(hash, series);
        }
        Ok(series)
    }

    /// Discards the heads and series of a refused line, and returns their memory to the budget.
    #[cold]
    pub(super) fn drop_line(&mut self) {
        self.learned = 0;
        let LineBegan { heads, series, bytes, taken, head_at, .. } = self.line;
        while self.series.len() > series
            && let Some(last) = self.series.pop()
        {
            let hash = self.key_hash(last.head, &last.key);
            self.series_places.remove(hash, index_of(self.series.len()));
        }
        while self.heads.len() > heads
            && let Some(last) = self.heads.pop()
        {
            let hash = self.head_hash(&last.bytes);
            self.head_places.remove(hash, index_of(self.heads.len()));
        }
        self.bytes = bytes;
        self.budget.give(taken);
        self.line = LineBegan { heads, series, bytes, taken: 0, labels_bytes: 0, head_at };
    }

    /// Ends a line that is kept. The field keys of a new head become its shape.
    pub(super) fn end_line(&mut self, line: Line) {
        if self.learned == 0 {
            return;
        }
        let Some(head) = self.heads.get_mut(line.head as usize) else { return };
        let series = self.series.iter().skip(head.first as usize).take(self.learned);
        let keys = series.map(|series| &*series.key);
        let is_it = |known: &Vec<Box<[u8]>>| known.iter().map(|key| &**key).eq(keys.clone());
        let shape = self.shapes.iter().rev().take(SHAPES_COMPARED).position(is_it);
        head.shape = Some(match shape {
            Some(from_end) => self.shapes.len() - 1 - from_end,
            None => {
                self.shapes.push(keys.map(Into::into).collect());
                self.shapes.len() - 1
            }
        });
        self.learned = 0;
    }
}

/// A new shape is compared with this number of latest shapes, because a sender may write several measurements in
/// rotation.
const SHAPES_COMPARED: usize = 32;

fn index_of(length: usize) -> u32 {
    // Cannot overflow: even a body of 4 GiB, far above the limit, has fewer heads and fields than 2^32.
    u32::try_from(length).unwrap_or(u32::MAX)
}

struct ReadHead<'a> {
    measurement: Cow<'a, str>,
    tags: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl ReadHead<'_> {
    fn name(&self, field: &str) -> Cow<'_, str> {
        if field == VALUE {
            return (&*self.measurement).into();
        }
        [&*self.measurement, "_", field].concat().into()
    }

    fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tags.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The tags as labels, kept for further series of the head. An error if, for example, two tags have the same name.
    fn shared(&self, kept: &mut Option<Arc<Labels>>) -> Result<Arc<Labels>, LabelError> {
        if let Some(kept) = kept {
            return Ok(kept.clone());
        }
        let tags = Arc::new(Labels::new(self.tags())?);
        *kept = Some(tags.clone());
        Ok(tags)
    }

    /// The labels of a series that has its own copy of the tags.
    fn owned(&self, name: &str) -> Result<Labels, LabelError> {
        let all = Labels::new(std::iter::once((NAME, name)).chain(self.tags()));
        // If the tags are invalid even without the name, returns the error of the tags. A number of labels or bytes in this error
        // does not include the name.
        all.or_else(|_| Labels::new(self.tags())?.with(NAME, name))
    }
}

fn read_head(piece: Piece<'_>) -> Result<ReadHead<'_>, Fault> {
    let (measurement, mut rest) = cut(piece, b',');
    if measurement.bytes.is_empty() {
        return Err(Fault::new(piece.at, "measurement has no name"));
    }
    let measurement = name(measurement, IN_MEASUREMENTS)?;
    let mut tags = Vec::new();
    while let Some(piece) = rest {
        // One tag more than allowed is sufficient for the error.
        if tags.len() > LABELS_MAX {
            return Err(Fault::new(piece.at, format!("more than {LABELS_MAX} tags")));
        }
        let (tag, after) = cut(piece, b',');
        tags.push(read_tag(tag)?);
        rest = after;
    }
    Ok(ReadHead { measurement, tags })
}

fn read_tag(tag: Piece<'_>) -> Result<(Cow<'_, str>, Cow<'_, str>), Fault> {
    let (key, value) = cut(tag, b'=');
    if key.bytes.is_empty() {
        return Err(Fault::new(tag.at, "tag has no name"));
    }
    match value {
        Some(value) if !value.bytes.is_empty() => Ok((name(key, IN_NAMES)?, name(value, IN_NAMES)?)),
        _ => Err(Fault::new(tag.at, format!("tag {} has no value", shown(key.bytes)))),
    }
}

fn name<'a>(piece: Piece<'a>, escapable: &[char]) -> Result<Cow<'a, str>, Fault> {
    let text =
        std::str::from_utf8(piece.bytes).map_err(|_| Fault::new(piece.at, "name that is not UTF-8"))?;
    Ok(unescape(text, escapable))
}

/// The parts before and after the first unescaped separator.
fn cut(piece: Piece<'_>, separator: u8) -> (Piece<'_>, Option<Piece<'_>>) {
    let mut escaped = false;
    let found = piece.bytes.iter().position(|byte| {
        let ends = !escaped && *byte == separator;
        escaped = !escaped && *byte == b'\\';
        ends
    });
    let parts = found.and_then(|at| Some((at, piece.bytes.get(..at)?, piece.bytes.get(at + 1..)?)));
    match parts {
        None => (piece, None),
        Some((at, before, behind)) => {
            (Piece { bytes: before, at: piece.at }, Some(Piece { bytes: behind, at: piece.at + at + 1 }))
        }
    }
}
