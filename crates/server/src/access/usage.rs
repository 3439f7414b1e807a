//! What has a token used of its limits? The numbers are kept while the server runs and the token is in the file.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tacho_model::{Labels, SeriesId, Timestamp};

use super::Reason;
use super::bounded::Bounded;
use super::minute::Minute;
use super::token::Limits;
use crate::seldom::Seldom;

/// The limit on series applies to a day.
const SERIES_KEPT_NS: i64 = 86_400_000_000_000;
/// Limit on the pairs of reason and place of one token that get their own lines in the audit log. Further places share the lines
/// of a reason. Without the limit, the lines about one token could displace the lines about other tokens.
const PLACES_MAX: usize = 64;
/// Limit on the lines about logins with one token per minute.
const LOGINS_MAX: u32 = 10;
/// Limit on the names of labels that a token with a selector or a limit on series may write a day. All tokens together may write
/// `label_names_max` names (`crates/store/src/options.rs`), so one token must not take most of them.
pub const NAMES_MAX: usize = 1_000;
const NS: i64 = 1_000_000_000;

/// The limit on the series of a token that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    Series(u64),
    Names,
}

#[derive(Debug, Default)]
pub struct Usage(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    /// The series that were admitted since `since`, up to the limit on series. Empty without this limit.
    series: HashSet<SeriesId>,
    since: Timestamp,
    /// Records that may still be written now. A body over the limit is accepted as a whole, because it would otherwise be
    /// refused permanently. The number is then negative, and the next body waits.
    records_left: i64,
    refilled: Timestamp,
    sessions: u64,
    /// The names of labels of the admitted series, since `since`.
    names: HashSet<Box<str>>,
    /// The logins of the current minute.
    login_minute: Minute,
    /// Logins since the last line about logins.
    logins: u64,
    /// Refusals by reason and place.
    refusals: Bounded<(Reason, Option<Box<str>>), Seldom>,
}

impl Usage {
    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a series may be written. The names of its labels and an admitted series count toward the limits.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn admit_series(&self, labels: &Labels, limits: &Limits, now: Timestamp) -> Result<(), Full> {
        let mut used = self.used();
        if now.saturating_sub(used.since) >= SERIES_KEPT_NS || now < used.since {
            used.series.clear();
            used.names.clear();
            used.since = now;
        }
        for (name, _) in labels.iter() {
            if !used.names.contains(name) {
                if used.names.len() >= NAMES_MAX {
                    return Err(Full::Names);
                }
                used.names.insert(name.into());
            }
        }
        let Some(max) = limits.series else { return Ok(()) };
        let id = labels.id();
        if used.series.contains(&id) {
            return Ok(());
        }
        if used.series.len() as u64 >= max {
            return Err(Full::Series(max));
        }
        used.series.insert(id);
        Ok(())
    }

    /// Counts a login. If a line in the audit log is due, returns the number of logins since the line before.
    pub fn count_login(&self, now: Timestamp) -> Option<u64> {
        let mut used = self.used();
        used.logins = used.logins.saturating_add(1);
        if used.login_minute.count(now) > LOGINS_MAX {
            return None;
        }
        Some(std::mem::take(&mut used.logins))
    }

    /// The time until records may be written, in seconds. 0 means now.
    pub fn wait_seconds(&self, limits: &Limits, now: Timestamp) -> u64 {
        let Some(rate) = limits.samples_per_second else { return 0 };
        let mut used = self.used();
        used.refill(rate, now);
        if used.records_left > 0 {
            return 0;
        }
        used.records_left.unsigned_abs() / rate.max(1) + 1
    }

    pub fn take(&self, records: usize, limits: &Limits, now: Timestamp) {
        let Some(rate) = limits.samples_per_second else { return };
        let mut used = self.used();
        used.refill(rate, now);
        used.records_left = used.records_left.saturating_sub(i64::try_from(records).unwrap_or(i64::MAX));
    }

    /// The same as [`Seldom::count`], for refusals with a reason and a place.
    pub fn count_refusals(
        &self,
        (reason, place): (Reason, &str),
        refusals: u64,
        now: Timestamp,
    ) -> Option<u64> {
        let (mut used, key) = (self.used(), (reason, Some(place.into())));
        let limit = (PLACES_MAX, (reason, None));
        used.refusals.of(key, limit, |seldom| !seldom.is_recent(now)).count(refusals, now)
    }

    /// Counts a session until the result is dropped. `None` if the limit is reached.
    pub fn session(self: &Arc<Self>, limits: &Limits) -> Option<Counted> {
        let mut used = self.used();
        if limits.sessions.is_some_and(|max| used.sessions >= max) {
            return None;
        }
        used.sessions += 1;
        Some(Counted(Arc::clone(self)))
    }
}

impl Used {
    /// Adds the records that the rate permits since the last call, up to the records of one second.
    fn refill(&mut self, rate: u64, now: Timestamp) {
        let most = i64::try_from(rate).unwrap_or(i64::MAX);
        let passed = now.saturating_sub(self.refilled);
        // At the first call, after a long pause, and after the clock was set back, the token may write the records of one second.
        if !(0..3_600 * NS).contains(&passed) {
            (self.records_left, self.refilled) = (most, now);
            return;
        }
        let added = i64::try_from(i128::from(passed) * i128::from(most) / i128::from(NS)).unwrap_or(i64::MAX);
        if added > 0 {
            self.records_left = self.records_left.saturating_add(added).min(most);
            // A whole number of records was added. The rest of `passed` is too short for another record, and counts at the next
            // call.
            let used = i128::from(added) * i128::from(NS) / i128::from(most);
            self.refilled = self.refilled.saturating_add(i64::try_from(used).unwrap_or(passed));
        }
    }
}

/// A session. It counts toward the limit of its token until this value is dropped.
#[derive(Debug)]
pub struct Counted(Arc<Usage>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.used().sessions -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seldom::PAUSE_NS;

    #[test]
    fn a_body_over_the_rate_is_accepted_and_the_next_one_waits() {
        let limits = Limits { samples_per_second: Some(10), ..Limits::default() };
        let usage = Usage::default();
        let start = 1_000_000 * NS;
        assert_eq!(usage.wait_seconds(&limits, start), 0);
        usage.take(35, &limits, start);
        assert_eq!(usage.wait_seconds(&limits, start), 3);
        assert_eq!(usage.wait_seconds(&limits, start + 2 * NS), 1);
        assert_eq!(usage.wait_seconds(&limits, start + 3 * NS), 0);
        usage.take(5, &limits, start + 100 * NS);
        assert_eq!(usage.wait_seconds(&limits, start + 100 * NS), 0);
        usage.take(5, &limits, start + 100 * NS);
        assert_eq!(
            usage.wait_seconds(&limits, start + 100 * NS),
            1,
            "the records of more than one second were saved"
        );
    }

    #[test]
    fn frequent_calls_permit_the_whole_rate() {
        let limits = Limits { samples_per_second: Some(10), ..Limits::default() };
        let usage = Usage::default();
        let start = 1_000_000 * NS;
        usage.wait_seconds(&limits, start);
        usage.take(35, &limits, start);
        let waits = (1..).map_while(|n| {
            let now = start + n * NS * 3 / 20;
            (usage.wait_seconds(&limits, now) > 0).then_some(now)
        });
        assert_eq!(waits.last(), Some(start + 17 * NS * 3 / 20), "25 records take 2.5 s, 17 calls");
    }

    #[test]
    fn reasons_and_places_of_one_token_are_distinguished_up_to_a_limit() {
        let usage = Usage::default();
        let count = |reason, place: &str, now| usage.count_refusals((reason, place), 1, now);
        assert_eq!(count(Reason::Role, "GET /a", NS), Some(1));
        assert_eq!(count(Reason::Role, "GET /a", 2 * NS), None);
        assert_eq!(count(Reason::Role, "GET /b", 2 * NS), Some(1));
        assert_eq!(count(Reason::Selector, "GET /a", 2 * NS), Some(1));
        assert_eq!(count(Reason::Role, "GET /a", NS + PAUSE_NS), Some(2));
        let later = NS + 2 * PAUSE_NS;
        let place = |n: usize| count(Reason::Role, &format!("GET /{n}"), later);
        assert_eq!((0..PLACES_MAX).filter_map(place).count(), PLACES_MAX, "a place has no line");
        assert_eq!((place(PLACES_MAX), place(PLACES_MAX + 1)), (Some(1), None), "places above the limit");
        assert_eq!(count(Reason::Selector, "GET /0", later), Some(1), "another reason has no line");
    }

    #[test]
    fn lines_about_logins_are_bounded_and_count_all_logins() {
        let usage = Usage::default();
        let lines = |now: Timestamp| -> Vec<u64> { (0..50).filter_map(|_| usage.count_login(now)).collect() };
        assert_eq!(lines(NS), [1; 10]);
        assert!(lines(2 * NS).is_empty());
        assert_eq!(lines(NS + PAUSE_NS)[..2], [91, 1]);
        assert_eq!(lines(-NS).len(), 10, "the clock was set back");
    }

    #[test]
    fn series_and_sessions_are_counted_up_to_their_limits() {
        let limits = Limits { series: Some(2), sessions: Some(1), ..Limits::default() };
        let usage = Arc::new(Usage::default());
        let labels = |id: u128| Labels::new([("id", id.to_string())]).unwrap();
        let admits = |id, now| usage.admit_series(&labels(id), &limits, now).is_ok();
        assert!(admits(1, NS) && admits(2, NS) && !admits(3, NS) && admits(1, NS));
        assert!(admits(3, NS + SERIES_KEPT_NS) && admits(1, NS + SERIES_KEPT_NS));
        let named = |n: usize| Labels::new([(format!("l{n}").as_str(), "v")]).unwrap();
        let unlimited = Limits::default();
        let now = NS + 3 * SERIES_KEPT_NS;
        assert!((0..NAMES_MAX).all(|n| usage.admit_series(&named(n), &unlimited, now).is_ok()));
        assert_eq!(usage.admit_series(&named(NAMES_MAX), &unlimited, now), Err(Full::Names));
        assert_eq!(usage.admit_series(&named(7), &unlimited, now), Ok(()));
        let first = usage.session(&limits);
        assert!(first.is_some() && usage.session(&limits).is_none());
        drop(first);
        assert!(usage.session(&limits).is_some());
    }
}
