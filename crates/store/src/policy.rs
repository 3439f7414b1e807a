//! Policies for the records of a series: retention, resolution, precision, and the size and encoding of chunks.
//!
//! Each kind of rule is evaluated separately, in the order of the configuration. The first rule with matchers that accept
//! the series applies. A series that no rule accepts is kept permanently and unchanged.

use std::sync::Arc;

use crate::mutation::Mutation;
use tacho_chunk::semantic::{Semantic, is_counter_name};
use tacho_chunk::{Aggregation, CodecSet, Compression, Encoding};
use tacho_model::{Labels, Matcher, Timestamp};

/// A setting for all series that the matchers accept.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule<T> {
    pub matchers: Vec<Matcher>,
    pub then: T,
}

impl<T> Rule<T> {
    pub fn accepts(&self, labels: &Labels) -> bool {
        self.matchers.iter().all(|matcher| matcher.matches(labels))
    }
}

/// How long the records of a series are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// ns
    pub keep: u64,
    /// How long the summaries of calls are kept, ns; longer than `keep`. If set, calls expire by whole days (UTC), and only
    /// after the summaries of the day are stored (`upkeep/keep.rs`). `None`: calls expire without summaries. Not used for other
    /// records.
    pub summaries: Option<u64>,
}

impl Retention {
    /// Without kept summaries.
    pub const fn of(keep: u64) -> Self {
        Self { keep, summaries: None }
    }

    /// Records before this time are older than `keep`.
    pub fn too_old_before(&self, now: Timestamp) -> Timestamp {
        let keep = if Mutation::RetentionTooShort.is_on() { self.keep / 2 } else { self.keep };
        now.saturating_sub_unsigned(keep)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies {
    pub retention: Vec<Rule<Retention>>,
    pub downsampling: Vec<Rule<Downsampling>>,
    /// Permitted loss of precision in chunks that are not expected to grow any more (`upkeep/merge/lossy.rs`). The field
    /// `aggregation` is ignored: `downsampling` has the rules of aggregation.
    pub semantic: Vec<Rule<Semantic>>,
    pub chunks: Vec<Rule<ChunkSettings>>,
}

/// Reduces old samples to one per step, with the time of the last sample of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downsampling {
    /// Minimum age of the reduced samples, ns.
    pub after: u64,
    /// Steps end at multiples of the step's length.
    pub to: Aggregation,
}

/// How merges cut records into chunks and encode them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkSettings {
    /// Approximate number of samples of a series in one merged chunk; `None` for the store's default.
    pub values: Option<usize>,
    pub codecs: CodecSet,
    pub compression: Compression,
}

impl ChunkSettings {
    /// The encoding that merges use.
    pub fn encoding(&self) -> Encoding {
        Encoding { codecs: self.codecs, compression: self.compression, ..Encoding::thorough() }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Policy {
    pub retention: Option<Retention>,
    /// Of a series of calls: the calls before this time have expired, because their summaries are kept instead. `None` for other
    /// records.
    pub summed_until: Option<Timestamp>,
    pub downsampling: Option<Downsampling>,
    pub semantic: Option<Semantic>,
    pub chunks: ChunkSettings,
}

impl Policy {
    /// Records before this time are expired.
    pub fn expired_before(&self, now: Timestamp) -> Timestamp {
        expired_before(self.retention, self.summed_until, now)
    }
}

/// The records before this time are expired. `summed_until` is [`Policy::summed_until`].
pub fn expired_before(
    retention: Option<Retention>,
    summed_until: Option<Timestamp>,
    now: Timestamp,
) -> Timestamp {
    let by_age = retention.map_or(Timestamp::MIN, |retention| retention.too_old_before(now));
    match (summed_until, retention) {
        (None, _) => by_age,
        (Some(until), Some(Retention { summaries: Some(_), .. })) => until,
        (Some(until), _) => until.max(by_age),
    }
}

/// The kept summaries of calls before this time are expired.
pub fn summaries_expired_before(retention: Option<Retention>, now: Timestamp) -> Timestamp {
    let keep = retention.map(|retention| retention.summaries.unwrap_or(retention.keep));
    keep.map_or(Timestamp::MIN, |keep| now.saturating_sub_unsigned(keep))
}

impl Policies {
    pub fn of(&self, labels: &Labels) -> Policy {
        // The values of counters stay exact: an error that is small relative to a counter's value may be large relative
        // to a rate.
        let semantic = first(&self.semantic, labels).map(|semantic| {
            if is_counter_name(labels.name()) { Semantic { value: None, ..*semantic } } else { *semantic }
        });
        Policy {
            retention: self.keep(labels),
            summed_until: None,
            downsampling: first(&self.downsampling, labels).copied(),
            semantic,
            chunks: first(&self.chunks, labels).copied().unwrap_or_default(),
        }
    }

    pub fn keep(&self, labels: &Labels) -> Option<Retention> {
        first(&self.retention, labels).copied()
    }

    /// Number of samples of each series in a chunk of a group. Uses the first rule that sets this number and accepts
    /// one of the series.
    pub fn chunk_values(&self, group: &[Arc<Labels>]) -> Option<usize> {
        let accepts = |rule: &&Rule<ChunkSettings>| group.iter().any(|labels| rule.accepts(labels));
        self.chunks.iter().filter(|rule| rule.then.values.is_some()).find(accepts)?.then.values
    }

    /// Whether any rule permits inexact values.
    pub fn moves_values(&self) -> bool {
        self.semantic.iter().any(|rule| rule.then.value.is_some())
    }

    /// The largest change of a time that any rule permits, ns.
    pub fn time_max(&self) -> u64 {
        self.semantic.iter().map(|rule| rule.then.time).max().unwrap_or(0)
    }

    /// Changes the rules that keep summaries of calls longer than the calls: the summaries then expire with the calls. Returns
    /// whether there was such a rule.
    pub fn forget_summaries(&mut self) -> bool {
        self.retention.iter_mut().filter_map(|rule| rule.then.summaries.take()).count() > 0
    }

    /// Whether any rule deletes or downsamples records above some age.
    pub fn age(&self) -> bool {
        !self.retention.is_empty() || !self.downsampling.is_empty()
    }
}

fn first<'a, T>(rules: &'a [Rule<T>], labels: &Labels) -> Option<&'a T> {
    rules.iter().find(|rule| rule.accepts(labels)).map(|rule| &rule.then)
}

#[cfg(test)]
mod tests {
    use tacho_chunk::Tolerance;
    use tacho_model::{MatchOp, NAME};

    use super::*;

    fn rule<T>(name: &str, then: T) -> Rule<T> {
        Rule { matchers: vec![Matcher::new(NAME, MatchOp::Regex, name).unwrap()], then }
    }

    fn labels(name: &str) -> Labels {
        Labels::new([(NAME, name)]).unwrap()
    }

    #[test]
    fn the_first_matching_rule_of_each_kind_applies() {
        let chunks =
            ChunkSettings { values: Some(100), compression: Compression::Zstd, ..ChunkSettings::default() };
        let policies = Policies {
            retention: vec![rule("debug.*", Retention::of(1)), rule(".*", Retention::of(2))],
            chunks: vec![rule("debug.x", chunks)],
            ..Policies::default()
        };
        let of = |name: &str| policies.of(&labels(name));
        assert_eq!((of("debug.x").retention, of("debug.x").chunks), (Some(Retention::of(1)), chunks));
        assert_eq!((of("up").retention, of("up").chunks), (Some(Retention::of(2)), ChunkSettings::default()));
        assert_eq!(Policies::default().of(&labels("up")), Policy::default());
        assert_eq!(of("up").expired_before(10), 8);
        assert_eq!(Policy::default().expired_before(10), i64::MIN);
    }

    /// Rule, end of the summed days, and what has expired at time 100.
    #[test]
    fn calls_expire_when_their_summaries_are_kept() {
        let summed = Retention { keep: 10, summaries: Some(50) };
        for (retention, summed_until, calls, summaries) in [
            (None, None, i64::MIN, i64::MIN),
            (None, Some(70), 70, i64::MIN),
            (Some(Retention::of(10)), None, 90, 90),
            (Some(Retention::of(10)), Some(70), 90, 90),
            (Some(Retention::of(40)), Some(70), 70, 60),
            (Some(summed), None, 90, 50),
            (Some(summed), Some(i64::MIN), i64::MIN, 50),
            (Some(summed), Some(70), 70, 50),
        ] {
            let policy = Policy { retention, summed_until, ..Policy::default() };
            let expired = (policy.expired_before(100), summaries_expired_before(retention, 100));
            assert_eq!(expired, (calls, summaries), "{retention:?} {summed_until:?}");
        }
    }

    #[test]
    fn the_first_matching_rule_sets_the_chunk_size_of_a_group() {
        let settings = |values| ChunkSettings { values, ..ChunkSettings::default() };
        let chunks =
            vec![rule("a", settings(None)), rule("a|b", settings(Some(1))), rule(".*", settings(Some(2)))];
        let policies = Policies { chunks, ..Policies::default() };
        let values = |names: &[&str]| {
            let group: Vec<Arc<Labels>> = names.iter().map(|name| Arc::new(labels(name))).collect();
            policies.chunk_values(&group)
        };
        assert_eq!(values(&["c", "b"]), Some(1));
        assert_eq!(values(&["a"]), Some(1));
        assert_eq!(values(&["c"]), Some(2));
        assert_eq!(Policies::default().chunk_values(&[Arc::new(labels("a"))]), None);
    }

    #[test]
    fn counters_keep_their_values() {
        let semantic = Semantic { time: 5, value: Some(Tolerance::Relative(0.1)), ..Semantic::default() };
        let policies = Policies { semantic: vec![rule(".*", semantic)], ..Policies::default() };
        assert_eq!(policies.of(&labels("heap")).semantic, Some(semantic));
        let counter = policies.of(&labels("requests_total")).semantic.unwrap();
        assert_eq!((counter.time, counter.value), (5, None));
    }
}
