//! Tombstones are deletions with records that may still be in some rows (`docs/format/keys.md`, Tombstones).
//!
//! When its row is durable, a tombstone masks the records of the matching series in its time range, in all generations up to
//! and including `through`. Reads use the [`Mask`]s of a series. Merges drop masked records (`merge/`). The tombstone is
//! removed when no row has masked records (`sweep.rs`).

use std::sync::Arc;

use bytes::Bytes;
use tacho_model::{Labels, MatchOp, Matcher, TimeRange, Timestamp};

use crate::coding::{Cursor, Malformed, put_string, put_varint};
use crate::driver::{Delete, Row, Scan, Table};
use crate::keys::newer;
use crate::{Error, ErrorKind, Result};

pub const TOMBSTONES: &[u8] = b"tombstones";

/// Limit on pending deletions. Each read checks all of them.
const TOMBSTONES_MAX: usize = 1_000;
/// Limits on the compiled patterns of pending deletions, and on their states. Their automata stay in memory until the
/// deletions are done, and take at most about 50 MB. Each thread that uses them takes at most 0.65 MB of cache per pattern,
/// about 40 MB. Deletions that an earlier version accepted may exceed these limits. They remain in force, and count
/// towards the limits.
const PATTERNS_MAX: usize = 64;
const STATES_MAX: u64 = 200_000;

/// In this version, patterns have the syntax of the `regex` crate; later versions use the syntax of Go. Tombstones
/// without patterns are the same in both versions.
const VERSION_UNICODE: u8 = 1;
const VERSION: u8 = 2;

#[derive(Clone, Debug, PartialEq)]
pub struct Tombstone {
    /// Positive, and above the ids of the older pending deletions. It is also the key of the tombstone's row.
    pub id: u64,
    pub matchers: Vec<Matcher>,
    pub range: TimeRange,
    /// The last generation with masked records.
    pub through: u64,
}

/// Masks some records of one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mask {
    /// Id of the tombstone; 0 for a retention.
    pub id: u64,
    pub range: TimeRange,
    pub through: u64,
}

impl Mask {
    /// Whether a record of this generation and time is masked.
    pub const fn hides(&self, generation: u64, at: Timestamp) -> bool {
        generation <= self.through && self.range.contains(at)
    }

    /// Whether a record of this generation and range may be masked.
    pub const fn may_hide(&self, generation: u64, range: &TimeRange) -> bool {
        generation <= self.through && self.range.overlaps(range)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Tombstones(Vec<Arc<Tombstone>>);

impl Tombstones {
    /// The masks of a series. The list is usually empty.
    pub fn masks(&self, labels: &Labels) -> Vec<Mask> {
        let meant = self.0.iter().filter(|t| t.matches(labels));
        meant.map(|t| Mask { id: t.id, range: t.range, through: t.through }).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn all(&self) -> Vec<Arc<Tombstone>> {
        self.0.clone()
    }

    pub fn ids(&self) -> Vec<u64> {
        self.0.iter().map(|t| t.id).collect()
    }

    /// The id of the next tombstone. The id of a failed `put` is used again, so that a row of that put is overwritten.
    pub fn next_id(&self) -> u64 {
        self.last_id() + 1
    }

    pub fn last_id(&self) -> u64 {
        self.0.iter().map(|t| t.id).max().unwrap_or(0)
    }

    /// The last generation that any tombstone masks. New generations must have higher numbers.
    pub fn through(&self) -> u64 {
        self.0.iter().map(|t| t.through).max().unwrap_or(0)
    }

    /// # Errors
    /// `Limit` when a deletion with these matchers would exceed a limit. It may succeed when other deletions are done.
    pub fn check_room(&self, matchers: &[Matcher]) -> Result<()> {
        let limit = |what: String| {
            let message = format!("limit of {what} in progress is reached");
            Err(Error::new(ErrorKind::Limit, message))
        };
        if self.len() >= TOMBSTONES_MAX {
            return limit(format!("{TOMBSTONES_MAX} deletions"));
        }
        let compiled = |matcher: &&Matcher| matcher.states() > 0;
        if !matchers.iter().any(|matcher| compiled(&matcher)) {
            return Ok(());
        }
        let all = self.0.iter().flat_map(|tombstone| &tombstone.matchers).chain(matchers);
        let (patterns, states) =
            all.filter(compiled).fold((0, 0), |(n, states), matcher| (n + 1, states + matcher.states()));
        if patterns > PATTERNS_MAX {
            return limit(format!("{PATTERNS_MAX} patterns of deletions"));
        }
        if states > STATES_MAX {
            return limit(format!("{STATES_MAX} states in patterns of deletions"));
        }
        Ok(())
    }

    pub fn add(&mut self, tombstone: Tombstone) {
        self.0.push(Arc::new(tombstone));
    }

    pub fn remove(&mut self, id: u64) {
        self.0.retain(|t| t.id != id);
    }
}

impl Tombstone {
    pub fn matches(&self, labels: &Labels) -> bool {
        self.matchers.iter().all(|m| m.matches(labels))
    }

    pub fn row(&self) -> Row {
        let has_pattern = |m: &Matcher| matches!(m.op(), MatchOp::Regex | MatchOp::NotRegex);
        let mut value = vec![if self.matchers.iter().any(has_pattern) { VERSION } else { VERSION_UNICODE }];
        value.extend_from_slice(&self.through.to_be_bytes());
        value.extend_from_slice(&self.range.start.to_be_bytes());
        value.extend_from_slice(&self.range.end.to_be_bytes());
        put_varint(&mut value, self.matchers.len() as u64);
        for matcher in &self.matchers {
            value.push(op_byte(matcher.op()));
            put_string(&mut value, matcher.label().as_bytes());
            put_string(&mut value, matcher.value().as_bytes());
        }
        Row {
            table: Table::Meta,
            partition: TOMBSTONES.to_vec(),
            clustering: self.id.to_be_bytes().to_vec(),
            value: Bytes::from(value),
        }
    }

    pub fn delete(&self) -> Delete {
        Delete::row(Table::Meta, TOMBSTONES, self.id.to_be_bytes())
    }

    pub fn decode(row: &Row) -> Result<Self> {
        let id = row
            .clustering
            .as_slice()
            .try_into()
            .map_err(|_| Error::corrupt("id of tombstone is malformed"))?;
        let id = u64::from_be_bytes(id);
        let (version, fields) = match row.value.split_first() {
            Some((&version @ (VERSION_UNICODE | VERSION), fields)) => (version, fields),
            Some((&version, _)) if version > VERSION => {
                return Err(newer("tombstone", version.into(), VERSION.into()).with("id", id));
            }
            _ => return Err(Error::corrupt("tombstone is malformed").with("id", id)),
        };
        let fields = take_fields(fields)
            .map_err(|e| Error::corrupt("tombstone is malformed").with("id", id).caused_by(e))?;
        let matcher = |(op, label, value): &(MatchOp, &str, &str)| {
            let read = if version == VERSION_UNICODE { Matcher::new_as_before } else { Matcher::new };
            read(label, *op, value)
                .map_err(|e| Error::corrupt("tombstone is malformed").with("id", id).caused_by(e))
        };
        let matchers = fields.matchers.iter().map(matcher).collect::<Result<_>>()?;
        Ok(Self { id, matchers, range: fields.range, through: fields.through })
    }
}

pub fn tombstones_scan() -> Scan {
    Scan::all(Table::Meta, TOMBSTONES)
}

struct Fields<'a> {
    through: u64,
    range: TimeRange,
    matchers: Vec<(MatchOp, &'a str, &'a str)>,
}

fn take_fields(bytes: &[u8]) -> Result<Fields<'_>, Malformed> {
    let mut cursor = Cursor::new(bytes);
    let through = u64::from_be_bytes(cursor.array("through")?);
    let start = i64::from_be_bytes(cursor.array("start")?);
    let range = TimeRange::new(start, i64::from_be_bytes(cursor.array("end")?));
    // The shortest matcher has an operator and two empty strings.
    let count = cursor.count(3, "matchers")?;
    let mut matchers = Vec::with_capacity(count);
    for _ in 0..count {
        let op = OPS.get(usize::from(cursor.byte("operator")?)).ok_or(cursor.malformed("operator"))?;
        matchers.push((*op, cursor.text("label")?, cursor.text("value")?));
    }
    if cursor.is_empty() {
        Ok(Fields { through, range, matchers })
    } else {
        Err(cursor.malformed("tombstone"))
    }
}

/// The positions in this list are on disk.
const OPS: [MatchOp; 4] = [MatchOp::Equal, MatchOp::NotEqual, MatchOp::Regex, MatchOp::NotRegex];

fn op_byte(op: MatchOp) -> u8 {
    OPS.iter().zip(0..).find(|(known, _)| **known == op).map_or(0, |(_, byte)| byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tombstone(id: u64, op: MatchOp, value: &str) -> Tombstone {
        let matchers = vec![Matcher::new("job", op, value).unwrap()];
        Tombstone { id, matchers, range: TimeRange::new(-1, 5), through: 9 }
    }

    #[test]
    fn rows_round_trip_and_bad_ones_are_refused() {
        for op in OPS {
            let tombstone = tombstone(3, op, "ö|b");
            let row = tombstone.row();
            assert_eq!(Tombstone::decode(&row).unwrap(), tombstone);
            for cut in 0..row.value.len() {
                let torn = Row { value: row.value.slice(..cut), ..row.clone() };
                assert!(Tombstone::decode(&torn).is_err(), "{cut}");
            }
        }
        let mut newer = tombstone(3, MatchOp::Equal, "a").row();
        newer.value = Bytes::from([&[9], &newer.value[1..]].concat());
        let error = Tombstone::decode(&newer).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Version);
        assert!(error.to_string().ends_with("(id 3)"), "{error}");
    }

    #[test]
    fn patterns_of_the_first_version_keep_their_meaning() {
        let row = tombstone(3, MatchOp::Regex, r"\w+").row();
        let earlier = Row { value: Bytes::from([&[1], &row.value[1..]].concat()), ..row.clone() };
        let hides = |row: &Row, job: &str| {
            Tombstone::decode(row).unwrap().matches(&Labels::new([("job", job)]).unwrap())
        };
        assert_eq!([hides(&row, "a"), hides(&row, "é")], [true, false]);
        assert_eq!([hides(&earlier, "a"), hides(&earlier, "é")], [true, true]);
    }

    #[test]
    fn the_row_matches_the_format() {
        let matchers = vec![Matcher::equal("job", "a")];
        let row = Tombstone { id: 2, matchers, range: TimeRange::new(1, 9), through: 7 }.row();
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(hex(&row.clustering), "0000000000000002");
        let value = "01000000000000000700000000000000010000000000000009".to_owned() + "0100036a6f620161";
        assert_eq!(hex(&row.value), value);
    }

    #[test]
    fn pending_deletions_and_their_patterns_are_limited() {
        let full = |of: &str, all: &Tombstones, op, value: &str| {
            let room = all.check_room(&tombstone(1, op, value).matchers).map_err(|error| error.to_string());
            assert!(room.as_ref().is_err_and(|error| error.contains(of)), "{room:?}");
        };
        let fits = |all: &Tombstones, op, value: &str| {
            all.check_room(&tombstone(1, op, value).matchers).expect("refused below the limit");
        };
        let mut all = Tombstones::default();
        for id in 1..=PATTERNS_MAX as u64 {
            fits(&all, MatchOp::NotRegex, "a.*b");
            all.add(tombstone(id, MatchOp::Regex, "a.*b"));
        }
        full("limit of 64 patterns of deletions", &all, MatchOp::Regex, "b.*");
        // A matcher without a compiled pattern does not count: `a|b` is compared as two texts.
        for id in all.next_id()..=TOMBSTONES_MAX as u64 {
            fits(&all, MatchOp::Regex, "a|b");
            all.add(tombstone(id, MatchOp::Equal, "a"));
        }
        full("limit of 1000 deletions", &all, MatchOp::Equal, "a");
        all.remove(1);
        fits(&all, MatchOp::Regex, "a.*b");

        let mut costly = Tombstones::default();
        let pattern = "[^a]{900}";
        let states = tombstone(1, MatchOp::Regex, pattern).matchers[0].states();
        for id in 1..=STATES_MAX / states {
            fits(&costly, MatchOp::Regex, pattern);
            costly.add(tombstone(id, MatchOp::Regex, pattern));
        }
        assert!(costly.len() < PATTERNS_MAX);
        full("limit of 200000 states in patterns", &costly, MatchOp::Regex, pattern);
        fits(&costly, MatchOp::Regex, "b.*");
    }

    #[test]
    fn only_matched_series_have_masks() {
        let mut all = Tombstones::default();
        assert_eq!(all.next_id(), 1);
        all.add(tombstone(1, MatchOp::Equal, "a"));
        all.add(tombstone(2, MatchOp::Regex, "a|b"));
        let masks = |job: &str| all.masks(&Labels::new([("job", job)]).unwrap()).len();
        assert_eq!([masks("a"), masks("b"), masks("c")], [2, 1, 0]);
        let mask = Mask { id: 1, range: TimeRange::new(-1, 5), through: 9 };
        assert!(mask.hides(9, 5) && !mask.hides(10, 5) && !mask.hides(9, 6));
        all.remove(1);
        assert_eq!((all.len(), all.next_id()), (1, 3));
    }
}
