//! Which members does a chunk hold, and what are their times and values? Samples of version 1 are read as a group with one
//! member.

use std::ops::Range;

use tacho_model::{Kind, TimeRange, Timestamp, ValueType};

use super::STEP;
use super::encode::{DECIMALS_SHIFT, LOSSY, UNIFORM};
use super::numbers::{RAW, take_stats, take_value};
use crate::bytes::Reader;
use crate::codec::{self, Part};
use crate::header::{Header, MemberForm, MemberInfo, Stored, TimesForm};
use crate::limits::{CHUNK_RECORDS_MAX, GROUP_MEMBERS_MAX};
use crate::stats::{Stats, to_word};
use crate::times::Times;
use crate::values::ValueColumn;
use crate::{Error, Loss, Role};

/// Decodes the header of version 2. `bytes` is the length of the whole chunk.
pub(crate) fn take_header(fields: &[u8], bytes: usize) -> Result<Header, Error> {
    let mut reader = Reader::new(fields);
    let count = reader.size("records", CHUNK_RECORDS_MAX)?;
    let start = Timestamp::from_le_bytes(reader.array("start")?);
    let span = reader.varint("span")?;
    let end = start.checked_add_unsigned(span).ok_or_else(|| Error::value("span", span))?;
    let time_error_max = reader.varint("error of the times")?;
    let mut from = 0;
    let times = take_times(&mut reader, &mut from, count, span, bytes)?;
    let listed = reader.size("members", GROUP_MEMBERS_MAX)?;
    if listed == 0 || count == 0 {
        return Err(Error::value("members or records", 0u8));
    }
    let mut members = Vec::with_capacity(listed);
    let mut next = 0;
    for _ in 0..listed {
        let member = next + reader.size("gap between members", GROUP_MEMBERS_MAX)?;
        next = member + 1;
        let place = u16::try_from(member).ok().filter(|_| member < GROUP_MEMBERS_MAX);
        let place = place.ok_or_else(|| Error::limit("member", member, GROUP_MEMBERS_MAX - 1))?;
        members.push(take_member(&mut reader, place, &mut from, count, bytes)?);
    }
    reader.end("header")?;
    Ok(Header {
        kind: Kind::Sample,
        count,
        start,
        end,
        time_error_max,
        times: Some(times),
        members,
        tables: None,
        filters: None,
        summary: None,
        columns: vec![],
        bytes,
    })
}

fn take_times(
    reader: &mut Reader<'_>,
    from: &mut usize,
    count: usize,
    span: u64,
    bytes: usize,
) -> Result<TimesForm, Error> {
    let tag = reader.byte("codec of the times")?;
    if tag != STEP {
        return take_stored(reader, tag, from, bytes).map(TimesForm::Stored);
    }
    let steps = (count as u64).saturating_sub(1);
    let step = match span.checked_div(steps) {
        None if span == 0 => Some(1),
        Some(step) if step > 0 && step * steps == span => i64::try_from(step).ok(),
        _ => None,
    };
    Ok(TimesForm::Regular { step: step.ok_or_else(|| Error::value("span of regular times", span))? })
}

fn take_stored(
    reader: &mut Reader<'_>,
    tag: u8,
    from: &mut usize,
    bytes_max: usize,
) -> Result<Stored, Error> {
    let codec = codec::name(tag).ok_or_else(|| Error::value("codec", tag))?;
    let bytes = reader.size("bytes of a column", bytes_max)?;
    let checksum = Some(u32::from_le_bytes(reader.array("checksum of a column")?));
    let stored = Stored { tag, codec, from: *from, bytes, checksum };
    *from = from.saturating_add(bytes);
    Ok(stored)
}

fn take_member(
    reader: &mut Reader<'_>,
    member: u16,
    from: &mut usize,
    count: usize,
    bytes: usize,
) -> Result<MemberInfo, Error> {
    let flags = reader.byte("flags of a column")?;
    let value_type = ValueType::from_byte(flags & 3).ok_or_else(|| Error::value("value type", flags & 3))?;
    let decimals = flags >> DECIMALS_SHIFT;
    if value_type != ValueType::F64 && decimals != 0 {
        return Err(Error::value("decimals of integers", decimals));
    }
    let (form, stats) = if flags & UNIFORM == 0 {
        let tag = reader.byte("codec")?;
        let form = MemberForm::Stored(take_stored(reader, tag, from, bytes)?);
        (form, take_stats(reader, count, value_type, decimals)?)
    } else {
        let value = take_value(reader, value_type, decimals)?;
        (MemberForm::Uniform(to_word(value)), Stats::of_uniform(value, count))
    };
    let loss = (flags & LOSSY != 0).then(|| Loss::take(reader)).transpose()?;
    Ok(MemberInfo::new(member, value_type, stats, form, loss))
}

/// Selects the columns of times and values that the samples of the wanted members in `range` need. Returns the ranges of these
/// columns in the whole body. The caller then reads a shorter body with only these columns. Therefore, `header` is changed: the
/// selected columns get their positions in the shorter body, and all other columns a position outside of it.
pub(crate) fn gather(
    header: &mut Header,
    range: TimeRange,
    is_wanted: impl Fn(u16) -> bool,
) -> Vec<Range<usize>> {
    let overlaps = TimeRange::new(header.start, header.end).overlaps(&range);
    let (mut parts, mut gathered) = (vec![], 0usize);
    let mut place = |stored: &mut Stored, wanted: bool| {
        if wanted {
            parts.push(stored.from..stored.from.saturating_add(stored.bytes));
            stored.from = gathered;
            gathered = gathered.saturating_add(stored.bytes);
        } else {
            stored.from = usize::MAX;
        }
    };
    let any = overlaps && header.members.iter().any(|info| is_wanted(info.member));
    if let Some(TimesForm::Stored(stored)) = &mut header.times {
        place(stored, any);
    }
    for info in &mut header.members {
        if let MemberForm::Stored(stored) = &mut info.form {
            place(stored, any && is_wanted(info.member));
        }
    }
    parts
}

pub(crate) fn times(header: &Header, body: &[u8]) -> Result<Times, Error> {
    let stored = match &header.times {
        None => return Err(Error::value("column of times", 0u8)),
        Some(TimesForm::Regular { step }) => {
            return Ok(Times::Regular { start: header.start, step: *step, count: header.count });
        }
        Some(TimesForm::Stored(stored)) => stored,
    };
    let disordered = || place(1, Error::Disordered);
    if stored.checksum.is_none() {
        let words = column(1, stored, body, &Part::whole(header.count), ValueType::I64)?;
        let at: Vec<Timestamp> = words.into_iter().map(u64::cast_signed).collect();
        return Times::new(&at).ok_or_else(disordered);
    }
    let words = column(1, stored, body, &Part::whole(header.count), ValueType::U64)?;
    let span = header.end.abs_diff(header.start);
    let whole = words.first() == Some(&0) && words.last() == Some(&span);
    if !whole || !words.is_sorted_by(|a, b| a < b) {
        return Err(disordered());
    }
    Ok(Times::Explicit(words.into_iter().map(|offset| header.start.wrapping_add_unsigned(offset)).collect()))
}

/// Decodes the values of one member at the indexes `part`.
pub(crate) fn values(
    header: &Header,
    info: &MemberInfo,
    body: &[u8],
    part: Range<usize>,
) -> Result<ValueColumn, Error> {
    let words = match &info.form {
        MemberForm::Uniform(word) => vec![*word; part.len()],
        MemberForm::Stored(stored) => {
            let number = header.members.partition_point(|other| other.member < info.member) + 2;
            column(number, stored, body, &Part { count: header.count, places: part }, info.value_type)?
        }
    };
    Ok(ValueColumn::from_words(words, info.value_type))
}

/// Decodes a part of the column with this number. Number 1 is the column of times.
pub(crate) fn column(
    number: usize,
    stored: &Stored,
    body: &[u8],
    part: &Part,
    kind: ValueType,
) -> Result<Vec<u64>, Error> {
    let Some(bytes) = body.get(stored.from..).and_then(|rest| rest.get(..stored.bytes)) else {
        return Err(Error::Short { what: "body", wanted: stored.bytes, left: body.len() });
    };
    if let Some(expected) = stored.checksum {
        let got = crc32c::crc32c(bytes);
        if got != expected {
            return Err(place(number, Error::ColumnChecksum { expected, got }));
        }
    }
    codec::decode_part(stored.tag, bytes, part, kind, 0).map_err(|source| place(number, source))
}

fn place(number: usize, source: Error) -> Error {
    let role = if number == 1 { Role::At } else { Role::Value };
    Error::Column { number, role: role.name(), source: Box::new(source) }
}

/// [`RAW`] is the largest number that fits into the bits of the decimals.
const _: () = assert!(RAW == u8::MAX >> DECIMALS_SHIFT);
