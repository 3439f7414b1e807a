//! Logs warnings about lasting conditions:
//!
//! - New series are refused. At most one line a minute has their number and the limit. A series counts each time it is sent.
//! - A rule that reduces the precision of values matches counters. Counters stay exact. Each counter is reported once for
//!   each rule.
//! - A rule downsamples counters with an aggregate other than last and max. Rates over these counters are wrong. Each counter is
//!   reported once for each rule.
//! - Definitions of record types are not kept (`record_types/loss.rs`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tacho_chunk::Aggregate;
use tacho_chunk::semantic::is_counter_name;
use tacho_model::{Clock, Kind, Matcher, NAME};
use tacho_store::{Options, Stats, Store};
use tokio::time::Instant;

use crate::record_types::RecordTypes;
use crate::shutdown::Shutdown;

/// Interval of the checks for refused series.
const LOOK: Duration = Duration::from_secs(1);
/// Minimum interval between two warnings about refused series.
const REFUSED_EVERY: Duration = Duration::from_secs(60);
/// Interval of the checks for counters that a rule matches.
const RULES_EVERY: Duration = Duration::from_secs(600);
const NAMES_MAX: usize = 5;

pub async fn run(
    (store, record_types, clock): (Arc<Store>, Arc<RecordTypes>, Arc<dyn Clock>),
    options: Options,
    mut shutdown: Shutdown,
) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut refused, mut rules) = (Refused::default(), Rules::default());
    loop {
        tokio::select! {
            () = shutdown.wait() => return,
            _ = ticks.tick() => {}
        }
        record_types.log_losses(clock.now());
        let (store, options) = (store.clone(), options.clone());
        // Walking the index may take long.
        let look = tokio::task::spawn_blocking(move || {
            if let Some(refused) = refused.look(&store, &options) {
                refused.log();
            }
            rules.look(&store, &options).into_iter().for_each(Lossy::log);
            (refused, rules)
        });
        match look.await {
            Ok(looked) => (refused, rules) = looked,
            Err(error) => return tracing::error!(%error, "warnings about refused series and counters end"),
        }
    }
}

#[derive(Default)]
struct Refused {
    /// Number of refused series that were already reported.
    told: u64,
    /// Number of refused series at the previous check. A check reports only refusals that the previous check has counted. Since
    /// then, the series that were accepted at the same time as the refusals have entered the index. So the index shows which
    /// limit is reached.
    seen: u64,
    last: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
struct NewRefused(u64, String);

impl NewRefused {
    fn log(self) {
        let Self(refused, limit) = self;
        tracing::warn!(
            refused,
            limit,
            "new series are refused; `tacho cardinality` shows the labels of the stored series"
        );
    }
}

impl Refused {
    fn look(&mut self, store: &Store, options: &Options) -> Option<NewRefused> {
        let stats = store.stats();
        let seen = std::mem::replace(&mut self.seen, stats.series_refused);
        let new = seen - self.told;
        if new == 0 || self.last.is_some_and(|last| last.elapsed() < REFUSED_EVERY) {
            return None;
        }
        (self.told, self.last) = (seen, Some(Instant::now()));
        Some(NewRefused(new, limit(store, &stats, options)))
    }
}

/// The limit in bytes counts as reached when at most about 1/`NEARLY` (2 %) of it is free, because series differ in size.
const NEARLY: usize = 50;

fn limit(store: &Store, stats: &Stats, options: &Options) -> String {
    if stats.series_total >= options.series_max {
        return format!("series_max = {}", options.series_max);
    }
    let labels = store.cardinality(1).labels;
    let full = labels.iter().filter(|label| label.values >= options.label_values_max);
    let full: Vec<String> = full.take(NAMES_MAX).map(|label| format!("{:?}", label.name)).collect();
    match &*full {
        [] if labels.len() >= options.label_names_max => {
            format!("{} names of labels", options.label_names_max)
        }
        [] if stats.index_bytes + stats.index_bytes / NEARLY >= options.index_bytes_max => {
            format!("index_bytes_max = {}", options.index_bytes_max)
        }
        [] => "below the limit again".to_owned(),
        names => format!("label_values_max = {} of label {}", options.label_values_max, names.join(", ")),
    }
}

#[derive(Default)]
struct Rules {
    /// The rule and the name of each counter that was already reported.
    told: BTreeSet<(String, String)>,
    last: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
struct Lossy {
    rule: String,
    counters: Vec<String>,
    message: &'static str,
}

impl Lossy {
    fn log(self) {
        let Self { rule, counters, message } = self;
        let names = counters.iter().take(NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        tracing::warn!(rule, counters = counters.len(), names, "{message}");
    }
}

const STAYS_EXACT: &str = "values of counters stay exact, although the rule permits a loss";
const WRONG_RATES: &str =
    "rates over counters downsampled by this rule are wrong: put a rule with keep = \"last\" before it";

impl Rules {
    /// Returns each counter once for each rule.
    fn look(&mut self, store: &Store, options: &Options) -> Vec<Lossy> {
        if self.last.is_some_and(|last| last.elapsed() < RULES_EVERY) {
            return Vec::new();
        }
        self.last = Some(Instant::now());
        let policies = &options.policies;
        let semantic = policies.semantic.iter().enumerate().filter(|(_, rule)| rule.then.value.is_some());
        let semantic =
            semantic.map(|(at, rule)| (format!("{} of [[semantic]]", at + 1), &*rule.matchers, STAYS_EXACT));
        let is_count = |how| matches!(how, Aggregate::Last | Aggregate::Max);
        let thinned =
            policies.downsampling.iter().enumerate().filter(|(_, rule)| !is_count(rule.then.to.how));
        let thinned = thinned
            .map(|(at, rule)| (format!("{} of [[downsampling]]", at + 1), &*rule.matchers, WRONG_RATES));
        semantic
            .chain(thinned)
            .filter_map(|(rule, matchers, message)| {
                let counters = self.new_counters(store, &rule, matchers);
                (!counters.is_empty()).then_some(Lossy { rule, counters, message })
            })
            .collect()
    }

    /// Returns the counters that were not returned before.
    fn new_counters(&mut self, store: &Store, rule: &str, matchers: &[Matcher]) -> Vec<String> {
        let names =
            store.label_values(Kind::Sample, NAME, &[matchers.to_vec()], &|| true).unwrap_or_default();
        let counters = names.into_iter().filter(|name| is_counter_name(name));
        counters.filter(|name| self.told.insert((rule.to_owned(), name.clone()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use tacho_chunk::Aggregation;
    use tacho_model::{Batch, Labels, ManualClock, Sample, SampleSeries, Value};
    use tacho_store::MemoryDriver;
    use tacho_store::policy::{Downsampling, Policies, Rule};
    use tacho_store::threads::Threads;

    use super::*;

    async fn append(store: &Store, pairs: impl IntoIterator<Item = [(&str, &str); 2]>) {
        let series = pairs.into_iter().map(|pairs| SampleSeries {
            labels: Arc::new(Labels::new(pairs).unwrap()),
            samples: vec![Sample { at: 1, value: Value::F64(1.0) }],
        });
        store.append(Batch { samples: series.collect(), ..Batch::default() }, None).await.unwrap();
    }

    async fn open(options: &Options) -> (Arc<Store>, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let (driver, clock) = (Arc::new(MemoryDriver::new()), Arc::new(ManualClock::new(0)));
        let store = Store::open(driver, directory.path(), options.clone(), clock).await.unwrap();
        (store, directory)
    }

    #[tokio::test(start_paused = true)]
    async fn refused_series_are_reported_once_and_at_most_every_minute() {
        let options = Options { threads: Threads::One, series_max: 4, ..Options::default() };
        let (store, _directory) = open(&options).await;
        let ids: Vec<String> = (0..12).map(|id| id.to_string()).collect();
        let some = |range: std::ops::Range<usize>| ids[range].iter().map(|id| [(NAME, "up"), ("id", id)]);
        let mut refused = Refused::default();
        append(&store, some(0..9)).await;
        let mut looks = Vec::new();
        for second in 0..180 {
            if let Some(warning) = refused.look(&store, &options) {
                looks.push((second, warning));
            }
            if second == 5 {
                append(&store, some(9..12)).await;
            }
            tokio::time::advance(LOOK).await;
        }
        let warning = |refused| NewRefused(refused, "series_max = 4".to_owned());
        assert_eq!(looks, [(1, warning(5)), (61, warning(3))]);
    }

    #[tokio::test(start_paused = true)]
    async fn each_counter_of_a_rule_is_reported_once() {
        let then = Downsampling { after: 1, to: Aggregation { step: 60, how: Aggregate::Avg } };
        let rule = Rule { matchers: vec![Matcher::equal("host", "h")], then };
        let policies = Arc::new(Policies { downsampling: vec![rule], ..Policies::default() });
        let options = Options { threads: Threads::One, policies, ..Options::default() };
        let (store, _directory) = open(&options).await;
        let (mut rules, mut looks) = (Rules::default(), Vec::new());
        append(&store, ["a_total", "a"].map(|name| [(NAME, name), ("host", "h")])).await;
        for second in 0..1_800 {
            looks.extend(
                rules.look(&store, &options).into_iter().map(|found| (second, found.rule, found.counters)),
            );
            if second == 5 {
                append(&store, ["a_sum", "a_total"].map(|name| [(NAME, name), ("host", "h")])).await;
            }
            tokio::time::advance(LOOK).await;
        }
        let found = |second, name: &str| (second, "1 of [[downsampling]]".to_owned(), vec![name.to_owned()]);
        assert_eq!(looks, [found(0, "a_total"), found(600, "a_sum")]);
    }
}
