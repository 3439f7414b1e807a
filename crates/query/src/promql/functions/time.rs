//! What is the time of an evaluation or of a sample, and what is its date in the UTC calendar?

use crate::Error;
use crate::promql::functions::call::Call;
use crate::promql::grid::seconds;
use crate::promql::labels::without_name;
use crate::promql::node::{Node, Yield};
use crate::promql::rows::{Twins, Value, settle};

const DAY_SECONDS: i64 = 86_400;

pub fn time<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    Ok(Value::Scalar(call.grid.times().map(seconds).collect()))
}

pub fn timestamp<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    let (grid, room) = (call.grid, call.canvas.labels);
    let has_times = matches!(call.nodes[..], [Node::Instant { yields: Yield::Time, .. }]);
    let [rows] = call.take()?;
    let mut rows = rows.into_rows()?;
    for row in &mut rows {
        row.labels = without_name(&row.labels, room)?;
        if !has_times {
            row.filter_map(|step, _| Some(seconds(grid.time(step))));
        }
    }
    Ok(Value::Vector(settle(rows, Twins::Join)?))
}

pub fn year(at: f64) -> f64 {
    Date::of(at).map_or(f64::NAN, |date| date.year)
}

pub fn month(at: f64) -> f64 {
    Date::of(at).map_or(f64::NAN, |date| date.month.into())
}

pub fn day_of_month(at: f64) -> f64 {
    Date::of(at).map_or(f64::NAN, |date| date.day.into())
}

pub fn day_of_week(at: f64) -> f64 {
    // 1970-01-01 was a Thursday.
    Date::of(at).map_or(f64::NAN, |date| small((date.days + 4).rem_euclid(7)))
}

pub fn day_of_year(at: f64) -> f64 {
    Date::of(at).map_or(f64::NAN, |date| {
        let before: u8 = (1..date.month).map(|month| date.days_of(month) - 28).sum();
        28.0 * f64::from(date.month - 1) + f64::from(before) + f64::from(date.day)
    })
}

pub fn days_in_month(at: f64) -> f64 {
    Date::of(at).map_or(f64::NAN, |date| date.days_of(date.month).into())
}

pub fn hour(at: f64) -> f64 {
    whole(at).map_or(f64::NAN, |at| small(at.rem_euclid(DAY_SECONDS) / 3_600))
}

pub fn minute(at: f64) -> f64 {
    whole(at).map_or(f64::NAN, |at| small(at.rem_euclid(3_600) / 60))
}

/// Whole seconds, rounded towards 0; `None` for a value outside the calendar's range.
#[expect(clippy::cast_possible_truncation, reason = "checked against the years of the calendar")]
fn whole(at: f64) -> Option<i64> {
    // About three million years in both directions.
    if at.abs() < 1e14 { Some(at as i64) } else { None }
}

#[expect(clippy::cast_precision_loss, reason = "callers pass numbers below 100")]
fn small(number: i64) -> f64 {
    number as f64
}

/// A day of the Gregorian calendar, extended into the past.
struct Date {
    /// Days since 1970-01-01.
    days: i64,
    year: f64,
    leap: bool,
    /// Counts from 1.
    month: u8,
    /// Counts from 1.
    day: u8,
}

impl Date {
    /// Counts years from March, so that the leap day is the last day of a year: H. Hinnant, "chrono-Compatible
    /// Low-Level Date Algorithms" (2013), civil_from_days.
    #[expect(clippy::cast_precision_loss, reason = "years are below 2^53")]
    fn of(at: f64) -> Option<Self> {
        const ERA_DAYS: i64 = 146_097;
        let days = whole(at)?.div_euclid(DAY_SECONDS);
        // Days since 0000-03-01.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted.div_euclid(ERA_DAYS), shifted.rem_euclid(ERA_DAYS));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        Some(Self { days, year: year as f64, leap, month, day })
    }

    fn days_of(&self, month: u8) -> u8 {
        match month {
            2 if self.leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(at: f64, expect: [f64; 8]) {
        let all = [year, month, day_of_month, day_of_week, day_of_year, days_in_month, hour, minute];
        assert_eq!(all.map(|function| function(at)), expect, "{at}");
    }

    #[test]
    fn dates_follow_the_gregorian_calendar() {
        check(0.0, [1970.0, 1.0, 1.0, 4.0, 1.0, 31.0, 0.0, 0.0]);
        check(951_782_400.0, [2000.0, 2.0, 29.0, 2.0, 60.0, 29.0, 0.0, 0.0]);
        check(1_230_768_000.0 - 1.0, [2008.0, 12.0, 31.0, 3.0, 366.0, 31.0, 23.0, 59.0]);
        check(4_107_542_400.0, [2100.0, 3.0, 1.0, 1.0, 60.0, 31.0, 0.0, 0.0]);
        check(-1.0, [1969.0, 12.0, 31.0, 3.0, 365.0, 31.0, 23.0, 59.0]);
        assert!(year(f64::NAN).is_nan() && hour(f64::INFINITY).is_nan());
    }
}
