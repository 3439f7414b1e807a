//! Logs warnings about lasting conditions, at most once a minute:
//!
//! - New series are refused. The line has their number and the limit.
//! - A rule that reduces the precision of values matches counters. Counters stay exact.
//! - A rule downsamples counters with an aggregate that does not keep counters. Rates over these counters are wrong.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tacho_chunk::Aggregate;
use tacho_chunk::semantic::is_counter_name;
use tacho_model::{Kind, Matcher, NAME};
use tacho_store::{Options, Stats, Store};
use tokio::time::Instant;

use crate::shutdown::Shutdown;

/// Interval of the cheap checks.
const LOOK: Duration = Duration::from_secs(1);
/// Minimum interval between two warnings about refused series.
const REFUSED_EVERY: Duration = Duration::from_secs(60);
/// Interval at which the rules are checked for matching counters.
const RULES_EVERY: Duration = Duration::from_secs(600);
/// Limit on the names in one log line.
const NAMES_MAX: usize = 5;

/// Runs the checks until `shutdown`. `options` are the options of the store.
pub async fn run(store: Arc<Store>, options: Options, mut shutdown: Shutdown) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut refused, mut rules) = (Refused::default(), Rules::default());
    loop {
        tokio::select! {
            () = shutdown.wait() => return,
            _ = ticks.tick() => {}
        }
        let (store, options) = (store.clone(), options.clone());
        // Walking the index may take long.
        let look = tokio::task::spawn_blocking(move || {
            refused.look(&store, &options);
            rules.look(&store, &options);
            (refused, rules)
        });
        match look.await {
            Ok(looked) => (refused, rules) = looked,
            Err(error) => return tracing::error!(%error, "reports of refused series end"),
        }
    }
}

/// State of the warning about refused series.
#[derive(Default)]
struct Refused {
    told: u64,
    /// Number of refused series at the previous check. The warning is logged one check later: by then the index includes the
    /// series that were accepted at the same time, so the reached limit can be determined.
    seen: u64,
    last: Option<Instant>,
}

impl Refused {
    fn look(&mut self, store: &Store, options: &Options) {
        let stats = store.stats();
        let seen = std::mem::replace(&mut self.seen, stats.series_refused);
        let new = seen - self.told;
        if new == 0 || self.last.is_some_and(|last| last.elapsed() < REFUSED_EVERY) {
            return;
        }
        (self.told, self.last) = (seen, Some(Instant::now()));
        let limit = limit(store, &stats, options);
        tracing::warn!(
            refused = new,
            limit,
            "new series are refused, `tacho cardinality` shows their labels"
        );
    }
}

/// A limit in bytes counts as reached when less than 1/`NEARLY` (2 %) of it is free, because series differ in size.
const NEARLY: usize = 50;

/// Describes the limits that are reached now.
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

/// The counters that were already logged, by rule.
#[derive(Default)]
struct Rules {
    told: BTreeSet<(String, String)>,
    last: Option<Instant>,
}

impl Rules {
    fn look(&mut self, store: &Store, options: &Options) {
        if self.last.is_some_and(|last| last.elapsed() < RULES_EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        let policies = &options.policies;
        for (at, rule) in policies.semantic.iter().enumerate().filter(|(_, rule)| rule.then.value.is_some()) {
            let rule_name = format!("{} of [[semantic]]", at + 1);
            self.tell(
                store,
                rule_name,
                &rule.matchers,
                "values of counters stay exact, although the rule permits a loss",
            );
        }
        let is_count = |how| matches!(how, Aggregate::Last | Aggregate::Max);
        let thinned = policies.downsampling.iter().enumerate();
        for (at, rule) in thinned.filter(|(_, rule)| !is_count(rule.then.to.how)) {
            let rule_name = format!("{} of [[downsampling]]", at + 1);
            let message = "rates over counters downsampled by this rule are wrong: put a rule with keep = \"last\" before it";
            self.tell(store, rule_name, &rule.matchers, message);
        }
    }

    /// Logs the counters that a rule matches, each counter once.
    fn tell(&mut self, store: &Store, rule: String, matchers: &[Matcher], message: &str) {
        let names =
            store.label_values(Kind::Sample, NAME, &[matchers.to_vec()], &|| true).unwrap_or_default();
        let new = names.into_iter().filter(|name| is_counter_name(name));
        let new: Vec<String> = new.filter(|name| self.told.insert((rule.clone(), name.clone()))).collect();
        if !new.is_empty() {
            let counters = new.len();
            let names = new.into_iter().take(NAMES_MAX).collect::<Vec<_>>().join(", ");
            tracing::warn!(rule, counters, names, "{message}");
        }
    }
}
