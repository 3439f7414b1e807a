//! The rows of kept summaries (`docs/format/keys.md`, *Kept summaries*).

use std::ops::Bound;

use bytes::Bytes;
use tacho_chunk::CallSummary;
use tacho_model::{SeriesId, TimeRange, Timestamp};

use crate::driver::{Delete, Row, Scan, Table};
use crate::keys::{VERSION, malformed, newer, shown};
use crate::rollup::{day_of, range_of};
use crate::{Error, Result};

/// Start of the partitions of kept summaries. The id of the series follows.
const KEPT: &[u8] = b"kept";
/// The partition with the end of the summed days of each series.
pub const UNTIL: &[u8] = b"summed-until";
const MAGIC: &[u8; 4] = b"TKEP";
const VALUE_VERSION: u8 = 1;
/// Magic, version and flags.
const PREFIX_BYTES: usize = 6;
/// Flag: some calls are missing in the summary.
const LACKS_CALLS: u8 = 1;
const CHECKSUM_BYTES: usize = 4;
pub const HOUR_NS: i64 = 3_600 * 1_000_000_000;
const SIGN: u64 = 1 << 63;

/// The length of the time that a kept summary covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    Day = 0,
    Hour = 1,
}

/// Key of a kept summary in the partition of its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeptKey {
    pub level: Level,
    /// First time of the day or hour, ns.
    pub start: Timestamp,
    /// Counts the summaries of the hour from 0. A day has one.
    pub number: u16,
}

impl KeptKey {
    /// All times of the day or hour.
    pub const fn range(&self) -> TimeRange {
        match self.level {
            Level::Day => range_of(day_of(self.start)),
            Level::Hour => hour_of(self.start),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut key = prefix(self.level, self.start);
        key.extend_from_slice(&self.number.to_be_bytes());
        key
    }

    /// # Errors
    /// `Version` for a key of a newer version, `Corrupt` for a malformed key.
    pub fn decode(clustering: &[u8]) -> Result<Self> {
        let wrong = || {
            let message = format!("key of a kept summary has {} bytes and is malformed", clustering.len());
            Error::corrupt(message).with("key", shown(clustering))
        };
        let (version, rest) = clustering.split_first().ok_or_else(wrong)?;
        if *version > VERSION {
            let error = newer("key of a kept summary", (*version).into(), VERSION.into());
            return Err(error.with("key", shown(clustering)));
        }
        let level = match rest.first() {
            Some(0) => Level::Day,
            Some(1) => Level::Hour,
            _ => return Err(wrong()),
        };
        let (start, number) = rest.get(1..).and_then(<[u8]>::split_first_chunk).ok_or_else(wrong)?;
        let number = u16::from_be_bytes(number.try_into().map_err(|_| wrong())?);
        Ok(Self { level, start: (u64::from_be_bytes(*start) ^ SIGN).cast_signed(), number })
    }
}

fn prefix(level: Level, start: Timestamp) -> Vec<u8> {
    let mut key = vec![VERSION, level as u8];
    key.extend_from_slice(&(start.cast_unsigned() ^ SIGN).to_be_bytes());
    key
}

/// All times of the hour that contains this time.
pub const fn hour_of(at: Timestamp) -> TimeRange {
    let start = at.saturating_sub(at.rem_euclid(HOUR_NS));
    TimeRange::new(start, start.saturating_add(HOUR_NS - 1))
}

fn partition(series: SeriesId) -> Vec<u8> {
    [KEPT, &series.to_bytes()].concat()
}

/// The series of a partition; `None` if the partition is not one of kept summaries.
pub fn series_of(partition: &[u8]) -> Option<SeriesId> {
    let id = partition.strip_prefix(KEPT)?.try_into().ok()?;
    Some(SeriesId(u128::from_be_bytes(id)))
}

/// Scan for the summaries of the days or hours that overlap a range.
pub fn level_scan(series: SeriesId, level: Level, range: TimeRange) -> Scan {
    let (from, to) = bounds(level, range);
    Scan { from, to, ..all_scan(series) }
}

/// Scan for all summaries of a series.
pub fn all_scan(series: SeriesId) -> Scan {
    Scan::all(Table::Meta, partition(series))
}

fn bounds(level: Level, range: TimeRange) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let first = KeptKey { level, start: range.start, number: 0 }.range().start;
    let last = [prefix(level, range.end), u16::MAX.to_be_bytes().to_vec()].concat();
    (Bound::Included(prefix(level, first)), Bound::Included(last))
}

/// The range of a deletion. If it ends with the first instant of an hour, this hour is not meant.
pub fn deleted(range: TimeRange) -> TimeRange {
    let is_start = range.end == hour_of(range.end).start && range.start < range.end;
    TimeRange::new(range.start, range.end.saturating_sub(i64::from(is_start)))
}

/// Deletes the summaries of all days and hours that a deletion of a range touches.
pub fn delete_days(series: SeriesId, range: TimeRange) -> [Delete; 2] {
    let range = deleted(range);
    [Level::Day, Level::Hour].map(|level| {
        let (from, to) = bounds(level, range);
        Delete { table: Table::Meta, partition: partition(series), from, to }
    })
}

/// `lacks_calls`: some calls of the hour or day are missing in the summary.
pub fn row(series: SeriesId, key: &KeptKey, summary: &CallSummary, lacks_calls: bool) -> Row {
    let mut value = MAGIC.to_vec();
    value.extend_from_slice(&[VALUE_VERSION, if lacks_calls { LACKS_CALLS } else { 0 }]);
    value.extend_from_slice(&summary.encode_with_names());
    let checksum = crc32c::crc32c(&value);
    value.extend_from_slice(&checksum.to_le_bytes());
    Row {
        table: Table::Meta,
        partition: partition(series),
        clustering: key.encode(),
        value: Bytes::from(value),
    }
}

/// The summary of a row, and whether it lacks calls.
///
/// # Errors
/// `Version` for a row of a newer version, `Corrupt` for a damaged or malformed row.
pub fn summary(row: &Row) -> Result<(CallSummary, bool)> {
    let malformed = || malformed("kept summary", row);
    match row.value.strip_prefix(MAGIC).and_then(<[u8]>::first) {
        Some(&VALUE_VERSION) => {}
        Some(&version) if version > VALUE_VERSION => {
            let error = newer("kept summary", version.into(), VALUE_VERSION.into());
            return Err(error.with("key", shown(&row.clustering)));
        }
        _ => return Err(malformed()),
    }
    let (bytes, checksum) = row.value.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(malformed)?;
    if crc32c::crc32c(bytes).to_le_bytes() != *checksum {
        return Err(Error::corrupt("the checksum of a kept summary does not match"));
    }
    let (prefix, summary) = bytes.split_at_checked(PREFIX_BYTES).ok_or_else(malformed)?;
    let lacks_calls = prefix.last().is_some_and(|flags| flags & LACKS_CALLS > 0);
    let summary = CallSummary::decode_with_names(summary).map_err(|error| match error {
        tacho_chunk::Error::SummaryVersion { got, known } => {
            newer("kept summary", got.into(), known.into()).with("key", shown(&row.clustering))
        }
        error => malformed().caused_by(error),
    });
    Ok((summary?, lacks_calls))
}

/// The row with the end of the summed days of a series.
pub fn until_row(series: SeriesId, until: Timestamp) -> Row {
    let mut value = vec![VALUE_VERSION];
    value.extend_from_slice(&until.to_le_bytes());
    let checksum = crc32c::crc32c(&value);
    value.extend_from_slice(&checksum.to_le_bytes());
    Row {
        table: Table::Meta,
        partition: UNTIL.to_vec(),
        clustering: series.to_bytes().to_vec(),
        value: Bytes::from(value),
    }
}

pub fn until_scan() -> Scan {
    Scan::all(Table::Meta, UNTIL)
}

pub fn delete_until(series: SeriesId) -> Delete {
    Delete::row(Table::Meta, UNTIL, series.to_bytes())
}

/// # Errors
/// `Version` for a row of a newer version, `Corrupt` for a damaged or malformed row.
pub fn decode_until(row: &Row) -> Result<(SeriesId, Timestamp)> {
    let malformed = || malformed("end of summed days", row);
    let series = row.clustering.as_slice().try_into().map_err(|_| malformed())?;
    let (bytes, checksum) = row.value.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(malformed)?;
    let (version, until) = bytes.split_first().ok_or_else(malformed)?;
    if *version > VALUE_VERSION {
        return Err(newer("end of summed days", (*version).into(), VALUE_VERSION.into()));
    }
    let is_sound = *version == VALUE_VERSION && crc32c::crc32c(bytes).to_le_bytes() == *checksum;
    let until = until.try_into().ok().filter(|_| is_sound).ok_or_else(malformed)?;
    Ok((SeriesId(u128::from_be_bytes(series)), i64::from_le_bytes(until)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ErrorKind;
    use crate::rollup::block_of_one_call;

    const SERIES: SeriesId = SeriesId(7);

    fn of_one_call() -> CallSummary {
        CallSummary::by_minute(&block_of_one_call()).unwrap()
    }

    fn sample() -> Row {
        row(SERIES, &KeptKey { level: Level::Hour, start: -HOUR_NS, number: 3 }, &of_one_call(), true)
    }

    #[test]
    fn rows_have_the_documented_bytes() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let row = sample();
        assert_eq!(hex(&row.partition), "6b65707400000000000000000000000000000007");
        assert_eq!(hex(&row.clustering), "01017ffffcb9cf4760000003");
        assert!(hex(&row.value).starts_with("544b45500101"));
        assert_eq!(series_of(&row.partition), Some(SERIES));
        assert_eq!(summary(&row).unwrap(), (of_one_call(), true));
        let until = until_row(SERIES, 5);
        assert_eq!(hex(&until.value), format!("010500000000000000{}", hex(&until.value[9..])));
        assert_eq!(decode_until(&until).unwrap(), (SERIES, 5));
    }

    #[test]
    fn damaged_and_cut_rows_are_refused() {
        for (row, decode) in [
            (sample(), (|row| summary(row).map(drop)) as fn(&Row) -> Result<()>),
            (until_row(SERIES, 5), |row| decode_until(row).map(drop)),
        ] {
            for at in 0..row.value.len() {
                let cut = Row { value: row.value.slice(..at), ..row.clone() };
                assert!(decode(&cut).is_err(), "{at} bytes");
                let mut bytes = row.value.to_vec();
                bytes[at] ^= 1;
                assert!(decode(&Row { value: bytes.into(), ..row.clone() }).is_err(), "byte {at}");
            }
        }
        let mut newer = sample().value.to_vec();
        newer[4] = 2;
        let error = summary(&Row { value: newer.into(), ..sample() }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
    }

    #[test]
    fn scans_select_whole_days_and_hours() {
        let contains = |level, range: TimeRange, start| {
            let scan = level_scan(SERIES, level, range);
            use std::ops::RangeBounds;
            (scan.from, scan.to).contains(&KeptKey { level, start, number: 9 }.encode())
        };
        let day = |n: i64| range_of(n).start;
        for (range, expect) in [
            (TimeRange::new(day(1), day(2) - 1), [false, true, false]),
            (TimeRange::new(day(1) + 5, day(2)), [false, true, true]),
            (TimeRange::new(day(1) - 1, day(1) - 1), [true, false, false]),
            (TimeRange::ALL, [true, true, true]),
        ] {
            assert_eq!([0, 1, 2].map(|n| contains(Level::Day, range, day(n))), expect, "{range:?}");
        }
        let half = TimeRange::new(HOUR_NS / 2, HOUR_NS);
        assert_eq!(
            [-1, 0, 1, 2].map(|n| contains(Level::Hour, half, n * HOUR_NS)),
            [false, true, true, false]
        );
    }

    proptest! {
        #[test]
        fn keys_are_ordered_by_level_and_time(a in any::<(bool, i64, u16)>(), b in any::<(bool, i64, u16)>()) {
            let key = |(is_hour, start, number): (bool, i64, u16)| {
                KeptKey { level: if is_hour { Level::Hour } else { Level::Day }, start, number }
            };
            prop_assert_eq!(KeptKey::decode(&key(a).encode()).unwrap(), key(a));
            prop_assert_eq!(key(a).encode().cmp(&key(b).encode()), a.cmp(&b));
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let row = Row { value: bytes.clone().into(), clustering: bytes.clone(), ..sample() };
            let _ = (KeptKey::decode(&bytes), summary(&row), decode_until(&row));
        }
    }
}
