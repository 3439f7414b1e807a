//! Does a chunk hold the records that its header describes?
//!
//! `tacho check` and `tacho repair` use this file. A repair keeps the intact columns of a damaged chunk.

use tacho_model::{Kind, TimeRange, Timestamp, Value};

use crate::header::MemberForm;
use crate::stats::{Stats, Sum, to_word};
use crate::values::{ValueColumn, Values};
use crate::{
    Chunk, Encoding, Error, GroupColumn, Header, MemberInfo, encode_executions, encode_group, summary,
};

/// Permitted error of an f64 sum, as a multiple of the rounding error that `is_sum` estimates. This check permits more than the
/// "ulp or two" of the format (`docs/format/chunk.md`).
const SUM_ULPS: f64 = 4.0;

/// Damaged parts of a chunk whose other parts can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The members with a damaged column, and the reasons. Empty for entries, executions and samples of version 1: for them,
    /// [`Chunk::check`] returns an error if a record is damaged.
    pub members: Vec<(u16, Error)>,
    /// Why the filters are wrong. All records can be read.
    pub filters: Option<Error>,
    /// Why the summary is wrong. All records can be read.
    pub summary: Option<Error>,
}

impl Chunk<'_> {
    /// Decodes all records and compares them with the header (number, times, statistics of each column), the filters and the
    /// summary.
    ///
    /// # Errors
    /// If no part of the chunk can be used.
    pub fn check(&self) -> Result<Checked, Error> {
        let header = self.header();
        let range = TimeRange::new(header.start, header.end);
        match header.kind {
            Kind::Sample if self.has_body_checksum() => {
                let samples = self.samples()?;
                check_times(range, samples.at.iter().copied())?;
                let info = header.members.first().ok_or(Error::value("members", 0u8))?;
                let found = check_column(info, samples.values.as_values(), header.count, true);
                found.map(|()| Checked::default())
            }
            Kind::Sample => {
                check_times(range, self.times()?.iter())?;
                Ok(Checked { members: self.damaged_columns(header), ..Checked::default() })
            }
            Kind::Entry => {
                let entries = self.entries()?;
                equal("number of entries", header.count, entries.len())?;
                check_times(range, entries.iter().map(|entry| entry.at))?;
                Ok(Checked::default())
            }
            Kind::Execution => {
                let block = self.executions()?;
                equal("number of calls", header.count, block.calls())?;
                equal("first time", header.start, block.range().start)?;
                equal("last time", header.end, block.range().end)?;
                let filters = self.filters().and_then(|filters| filters.map_or(Ok(()), |f| f.check(&block)));
                let summary = self
                    .summary()
                    .and_then(|found| found.map_or(Ok(()), |found| summary::check(&found, &block)));
                Ok(Checked { members: Vec::new(), filters: filters.err(), summary: summary.err() })
            }
        }
    }

    /// The same executions in a new chunk, with new filters and a new summary.
    ///
    /// # Errors
    /// If the executions cannot be decoded.
    pub fn with_new_front(&self) -> Result<Vec<u8>, Error> {
        self.executions().map(|block| encode_executions(&block))
    }

    fn damaged_columns(&self, header: &Header) -> Vec<(u16, Error)> {
        let check = |info: &MemberInfo| {
            let values = self.values(info.member)?.ok_or(Error::value("member", info.member))?;
            check_column(info, values.as_values(), header.count, false)
        };
        header.members.iter().filter_map(|info| Some((info.member, check(info).err()?))).collect()
    }

    /// The chunk of samples without the columns of these members. Values, times and error bounds of the other columns do not
    /// change. `None` if no column is left, or if the times or a remaining column cannot be decoded.
    pub fn without(&self, dropped: &[u16]) -> Option<Vec<u8>> {
        let header = self.header();
        let at = self.times().ok()?.to_vec();
        let kept = || header.members.iter().filter(|info| !dropped.contains(&info.member));
        let values: Vec<ValueColumn> =
            kept().map(|info| self.values(info.member).ok().flatten()).collect::<Option<_>>()?;
        let columns: Vec<GroupColumn<'_>> = kept()
            .zip(&values)
            .map(|(info, values)| GroupColumn {
                member: info.member,
                values: values.as_values(),
                loss: info.loss,
            })
            .collect();
        let is_left = !columns.is_empty() && !at.is_empty();
        is_left.then(|| encode_group(&at, header.time_error_max, &columns, &Encoding::default()))
    }
}

/// Checks that the range begins at the first time and ends at the last time.
fn check_times(range: TimeRange, at: impl Iterator<Item = Timestamp>) -> Result<(), Error> {
    let wider = |range: Option<TimeRange>, at: Timestamp| {
        let range = range.unwrap_or(TimeRange::new(at, at));
        Some(TimeRange::new(range.start.min(at), range.end.max(at)))
    };
    let found = at.fold(None, wider).unwrap_or(range);
    equal("first time", range.start, found.start)?;
    equal("last time", range.end, found.end)
}

fn equal<T: PartialEq + ToString>(what: &'static str, stated: T, found: T) -> Result<(), Error> {
    if stated == found {
        return Ok(());
    }
    Err(Error::Stated { what, stated: stated.to_string(), found: found.to_string() })
}

/// Compares the statistics of a column with its values. `is_plain` means that the sum was computed without compensation.
fn check_column(info: &MemberInfo, values: Values<'_>, count: usize, is_plain: bool) -> Result<(), Error> {
    equal("number of values", count, values.len())?;
    if let Some(loss) = info.loss
        && loss.achieved > loss.bound.amount()
    {
        return Err(Error::Stated {
            what: "error of the values",
            stated: format!("at most {}", loss.bound.amount()),
            found: loss.achieved.to_string(),
        });
    }
    if let MemberForm::Uniform(_) = info.form {
        // The statistics were computed from the one value when the header was read.
        return Ok(());
    }
    let found = Stats::of(values);
    equal("number of values that are not NaN", info.stats.count, found.count)?;
    for (what, stated, found) in [
        ("minimum", info.stats.min, found.min),
        ("maximum", info.stats.max, found.max),
        ("first value", info.stats.first, found.first),
        ("last value", info.stats.last, found.last),
    ] {
        let is_same = to_word(stated) == to_word(found) || (is_nan(stated) && is_nan(found));
        if !is_same {
            return Err(Error::Stated { what, stated: text(stated), found: text(found) });
        }
    }
    if is_sum(info.stats.sum, found.sum, values, is_plain) {
        return Ok(());
    }
    let sum = |sum: Sum| match sum {
        Sum::F64(sum) => sum.to_string(),
        Sum::Integer(sum) => sum.to_string(),
    };
    Err(Error::Stated { what: "sum", stated: sum(info.stats.sum), found: sum(found.sum) })
}

fn text(value: Value) -> String {
    match value {
        Value::F64(v) => v.to_string(),
        Value::I64(v) => v.to_string(),
        Value::U64(v) => v.to_string(),
    }
}

fn is_nan(value: Value) -> bool {
    matches!(value, Value::F64(v) if v.is_nan())
}

/// Whether the stated sum can be the sum of the values.
#[expect(clippy::cast_precision_loss, reason = "a count is below 2^53")]
fn is_sum(stated: Sum, found: Sum, values: Values<'_>, is_plain: bool) -> bool {
    let (stated, found) = match (stated, found) {
        (Sum::F64(stated), Sum::F64(found)) => (stated, found),
        (stated, found) => return stated == found,
    };
    let Values::F64(numbers) = values else { return false };
    // The order of the additions determines whether a sum overflows, so sums that are not finite are accepted.
    if stated.to_bits() == found.to_bits() || !(stated.is_finite() && found.is_finite()) {
        return true;
    }
    let magnitude: f64 = numbers.iter().filter(|v| !v.is_nan()).map(|v| v.abs()).sum();
    let each = if is_plain { numbers.len() as f64 } else { numbers.len() as f64 * f64::EPSILON };
    let error = f64::EPSILON * (SUM_ULPS * stated.abs() + SUM_ULPS * each * magnitude);
    (stated - found).abs() <= error.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;

    fn group(columns: &[(u16, Values<'_>)]) -> Vec<u8> {
        let at: Vec<i64> = (0..100).map(|n| n * n + 7).collect();
        let columns: Vec<GroupColumn<'_>> = columns
            .iter()
            .map(|(member, values)| GroupColumn { member: *member, values: *values, loss: None })
            .collect();
        encode_group(&at, 0, &columns, &Encoding::default())
    }

    fn columns() -> (Vec<f64>, Vec<i64>, Vec<u64>) {
        let at = || 0..100i64;
        (
            at().map(|n| (n * 7919 % 101) as f64 / 3.0).collect(),
            at().map(|n| n * 31 % 17 - 5).collect(),
            at().map(|n| (n * n % 89).unsigned_abs()).collect(),
        )
    }

    #[test]
    fn a_changed_bit_is_found_and_the_other_columns_are_kept() {
        let (f, i, u) = columns();
        let bytes = group(&[(0, Values::F64(&f)), (3, Values::I64(&i)), (9, Values::U64(&u))]);
        assert_eq!(Chunk::open(&bytes).unwrap().check(), Ok(Checked::default()));
        let mut parts = 0;
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let Ok(chunk) = Chunk::open(&damaged) else { continue };
            let Ok(found) = chunk.check() else { continue };
            let [(member, _)] = found.members[..] else { panic!("bit {bit}: {found:?}") };
            let kept = chunk.without(&[member]).expect("two sound columns must be left");
            let (kept, whole) = (Chunk::open(&kept).unwrap(), Chunk::open(&bytes).unwrap());
            assert_eq!(kept.check(), Ok(Checked::default()));
            for other in [0, 3, 9].into_iter().filter(|other| *other != member) {
                assert_eq!(kept.values(other), whole.values(other), "bit {bit}");
            }
            assert_eq!((kept.values(member), kept.times()), (Ok(None), whole.times()));
            parts += 1;
        }
        assert!(parts > 100, "only {parts} bits damaged one column of values");
        assert_eq!(Chunk::open(&bytes).unwrap().without(&[0, 3, 9]), None);
    }

    #[test]
    fn statistics_of_other_values_are_found() {
        let (f, _, _) = columns();
        let other: Vec<f64> = f.iter().map(|v| v + 1.0).collect();
        let bytes = group(&[(0, Values::F64(&f))]);
        let chunk = Chunk::open(&bytes).unwrap();
        let info = chunk.header().member(0).unwrap();
        assert_eq!(check_column(info, Values::F64(&f), 100, false), Ok(()));
        let error = check_column(info, Values::F64(&other), 100, false).unwrap_err();
        assert_eq!(error.to_string(), "minimum is 1, the header states 0");
        let error = check_column(info, Values::F64(&f[..99]), 100, false).unwrap_err();
        assert_eq!(error.to_string(), "number of values is 99, the header states 100");
        // Only the sum differs.
        let mut swapped = f.clone();
        swapped[50] = swapped[51];
        let error = check_column(info, Values::F64(&swapped), 100, false).unwrap_err();
        assert!(error.to_string().starts_with("sum is "), "{error}");
    }

    #[test]
    fn a_sum_may_differ_by_the_order_of_its_additions() {
        let values = [0.1; 1_000];
        let (plain, exact): (f64, f64) = (values.iter().sum(), 100.0);
        assert_ne!(plain.to_bits(), exact.to_bits());
        let is = |stated, is_plain| is_sum(Sum::F64(stated), Sum::F64(exact), Values::F64(&values), is_plain);
        assert_eq!([is(plain, true), is(plain, false), is(exact, false)], [true, false, true]);
        assert_eq!([is(100.1, true), is(f64::INFINITY, false)], [false, true]);
        assert!(!is_sum(Sum::Integer(3), Sum::Integer(4), Values::I64(&[4]), false));
    }
}
