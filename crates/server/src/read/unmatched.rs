//! Why does a selector match no series? Finds the name, label or value in the selector that no series has, and similar existing
//! ones.
//!
//! Reads the index only, so the time of an answer does not depend on the number of records.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tacho_model::{Kind, MatchOp, Matcher, NAME};
use tacho_query::executions::Counts;
use tacho_query::promql;

use crate::access::View;

/// Time limit of the search for a hint. A hint is optional, so no client waits longer.
pub const TIME_MAX: Duration = Duration::from_secs(1);
const VALUES_BYTES_MAX: usize = 4 << 20;
/// Limit on the listed labels that have the wanted name as a value.
const LABELS_MAX: usize = 3;

/// The number of series of each kind that a selector matches. If there are none, `unknown` is the first label or value of the
/// selector that no series has; if the selector has a name of a series of calls, the first service or host without calls. It is
/// `None` if there is no such label or value. Only values of `=` matchers are examined, not patterns.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matched {
    pub sample: usize,
    pub entry: usize,
    pub execution: usize,
    pub unknown: Option<Unknown>,
    /// The name in the selector, if it matches no series and a query computes the series with this name from calls.
    #[serde(default)]
    pub computed: Option<String>,
}

/// A label, or a value of a label, that no series has. If series with the name in the selector exist, only these are considered.
/// With label `__name__`, the value is a name of series.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    pub label: String,
    pub value: Option<String>,
    /// Similar existing values of this label, or similar labels if `value` is `None`. The most similar first.
    pub similar: Vec<String>,
    /// For a name of a series: labels that have this name as a value.
    pub labels: Vec<String>,
}

/// `None` when the search was stopped because `waits` returned false.
pub fn matched(store: &View, matchers: &[Matcher], waits: &dyn Fn() -> bool) -> Option<Matched> {
    let count = |kind| Some(store.find_while(kind, matchers, waits)?.len());
    let mut out = Matched {
        sample: count(Kind::Sample)?,
        entry: count(Kind::Entry)?,
        execution: count(Kind::Execution)?,
        unknown: None,
        computed: None,
    };
    if out.sample + out.entry + out.execution == 0 {
        let search = Search { store, waits };
        out.computed = metric_of_calls(matchers).map(|(name, _)| name.to_owned());
        out.unknown = match out.computed {
            Some(_) => search.unknown_of_calls(matchers)?,
            None => search.unknown(matchers)?,
        };
    }
    Some(out)
}

/// The metric of calls that the matchers name, and what its series count. `None` if they name no such metric.
pub fn metric_of_calls(matchers: &[Matcher]) -> Option<(&'static str, Counts)> {
    let mut names =
        matchers.iter().filter(|matcher| matcher.label() == NAME && matcher.op() == MatchOp::Equal);
    let name = names.next()?;
    Counts::METRICS.into_iter().find(|(metric, _)| name.matches_value(metric))
}

struct Search<'a> {
    store: &'a View,
    waits: &'a dyn Fn() -> bool,
}

impl Search<'_> {
    fn unknown(&self, matchers: &[Matcher]) -> Option<Option<Unknown>> {
        let equal = |matcher: &&Matcher| matcher.op() == MatchOp::Equal && !matcher.value().is_empty();
        let (named, others): (Vec<_>, Vec<_>) =
            matchers.iter().partition(|matcher| matcher.label() == NAME && equal(matcher));
        for name in &named {
            if !self.exists(std::slice::from_ref(name))? {
                let mut names = self.values(NAME, &[])?;
                names.extend(Counts::METRICS.map(|(metric, _)| metric.to_owned()));
                let labels = self.labels_with(name.value())?;
                return Some(Some(self.of_value(name, &names, labels)?));
            }
        }
        // Suggests only labels and values of the series with this name. This name with a label of other series would match no
        // series either.
        let name: Vec<Matcher> = named.into_iter().cloned().collect();
        let scope = if name.is_empty() { Vec::new() } else { vec![name.clone()] };
        let labels = self.labels(&scope)?;
        for matcher in others {
            // A matcher that accepts the empty value also accepts series without the label.
            if matcher.matches_value("") {
                continue;
            }
            if !labels.contains(matcher.label()) {
                let similar = self.similar(matcher.label(), &labels)?;
                let label = matcher.label().to_owned();
                return Some(Some(Unknown { label, value: None, similar, labels: Vec::new() }));
            }
            if equal(&matcher) {
                let with_name: Vec<Matcher> = name.iter().chain([matcher]).cloned().collect();
                if !self.exists(&with_name)? {
                    let values = self.values(matcher.label(), &scope)?;
                    return Some(Some(self.of_value(matcher, &values, Vec::new())?));
                }
            }
        }
        Some(None)
    }

    /// The value of the label `service` or `host` that no series of calls has. The other labels of computed series are not in the
    /// index.
    fn unknown_of_calls(&self, matchers: &[Matcher]) -> Option<Option<Unknown>> {
        let is_of_series = |matcher: &&Matcher| {
            let is_equal = matcher.op() == MatchOp::Equal && !matcher.value().is_empty();
            is_equal && ["service", "host"].contains(&matcher.label())
        };
        for matcher in matchers.iter().filter(is_of_series) {
            let (store, kind) = (self.store, Kind::Execution);
            if store.find_while(kind, std::slice::from_ref(matcher), self.waits)?.is_empty() {
                let label = matcher.label();
                let values = store.label_values_within(kind, label, &[], VALUES_BYTES_MAX, self.waits)?;
                return Some(Some(self.of_value(matcher, &values.into_iter().collect(), Vec::new())?));
            }
        }
        Some(None)
    }

    fn of_value(&self, matcher: &Matcher, known: &BTreeSet<String>, labels: Vec<String>) -> Option<Unknown> {
        let similar = self.similar(matcher.value(), known)?;
        let (label, value) = (matcher.label().to_owned(), Some(matcher.value().to_owned()));
        Some(Unknown { label, value, similar, labels })
    }

    fn similar(&self, word: &str, known: &BTreeSet<String>) -> Option<Vec<String>> {
        let waiting = known.iter().map(String::as_str).take_while(|_| (self.waits)());
        let similar = promql::similar_among(word, waiting).into_iter().map(str::to_owned).collect();
        (self.waits)().then_some(similar)
    }

    fn exists(&self, matchers: &[Matcher]) -> Option<bool> {
        for kind in Kind::ALL {
            if !self.store.find_while(kind, matchers, self.waits)?.is_empty() {
                return Some(true);
            }
        }
        Some(false)
    }

    fn values(&self, label: &str, scope: &[Vec<Matcher>]) -> Option<BTreeSet<String>> {
        let mut out = BTreeSet::new();
        for kind in Kind::ALL {
            out.extend(self.store.label_values_within(kind, label, scope, VALUES_BYTES_MAX, self.waits)?);
        }
        Some(out)
    }

    fn labels(&self, scope: &[Vec<Matcher>]) -> Option<BTreeSet<String>> {
        let mut out = BTreeSet::new();
        for kind in Kind::ALL {
            out.extend(self.store.label_names(kind, scope, self.waits)?);
        }
        Some(out)
    }

    fn labels_with(&self, value: &str) -> Option<Vec<String>> {
        let mut out = Vec::new();
        for label in self.labels(&[])?.into_iter().filter(|label| label != NAME) {
            if out.len() < LABELS_MAX && self.exists(&[Matcher::equal(&label, value)])? {
                out.push(label);
            }
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tacho_model::{Batch, Body, Entry, EntrySeries, Labels, ManualClock, Sample, SampleSeries, Value};
    use tacho_store::{MemoryDriver, Options, Store};

    use super::*;

    async fn store(directory: &std::path::Path) -> Arc<Store> {
        let labels = |pairs: &[(&str, &str)]| Arc::new(Labels::new(pairs.iter().copied()).unwrap());
        let samples = |pairs: &[(&str, &str)]| SampleSeries {
            labels: labels(pairs),
            samples: vec![Sample { at: 1, value: Value::F64(1.0) }],
        };
        let entry = Entry { at: 1, body: Body::Text("text".into()) };
        let batch = Batch {
            samples: vec![
                samples(&[(NAME, "cpu_usage"), ("host", "alpha"), ("service", "syslog")]),
                samples(&[(NAME, "memory_usage"), ("hostname", "beta")]),
            ],
            entries: vec![EntrySeries { labels: labels(&[(NAME, "access_log")]), entries: vec![entry] }],
            ..Batch::default()
        };
        let (driver, clock) = (Arc::new(MemoryDriver::new()), Arc::new(ManualClock::new(0)));
        let store = Store::open(driver, directory, Options::default(), clock).await.unwrap();
        store.append(batch, None).await.unwrap();
        store
    }

    #[tokio::test]
    async fn a_name_or_label_that_no_series_has_is_found_with_similar_ones() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path()).await;
        let unknown = |label: &str, value: Option<&str>, similar: &[&str], labels: &[&str]| {
            let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
            Some(Unknown {
                label: label.into(),
                value: value.map(str::to_owned),
                similar: owned(similar),
                labels: owned(labels),
            })
        };
        for (selector, counts, expect) in [
            ("cpu_usage", [1, 0, 0], None),
            ("access_log", [0, 1, 0], None),
            ("{__name__=~\".+\"}", [2, 1, 0], None),
            ("cpu_usge", [0; 3], unknown(NAME, Some("cpu_usge"), &["cpu_usage"], &[])),
            ("acces_log", [0; 3], unknown(NAME, Some("acces_log"), &["access_log"], &[])),
            ("usage", [0; 3], unknown(NAME, Some("usage"), &["cpu_usage", "memory_usage"], &[])),
            ("syslog", [0; 3], unknown(NAME, Some("syslog"), &[], &["service"])),
            ("cpu_usage{hots=\"alpha\"}", [0; 3], unknown("hots", None, &["host"], &[])),
            ("{hots=\"alpha\"}", [0; 3], unknown("hots", None, &["host"], &[])),
            ("cpu_usage{hots=~\"a.*\"}", [0; 3], unknown("hots", None, &["host"], &[])),
            // A label that only other series have.
            ("cpu_usage{hostname=\"beta\"}", [0; 3], unknown("hostname", None, &[], &[])),
            ("cpu_usage{host=\"alhpa\"}", [0; 3], unknown("host", Some("alhpa"), &["alpha"], &[])),
            ("cpu_usage{host=~\"b.*\"}", [0; 3], None),
            ("cpu_usage{zone!=\"\",host=\"alpha\"}", [0; 3], unknown("zone", None, &[], &[])),
            ("cpu_usage{zone=\"\",host=\"beta\"}", [0; 3], unknown("host", Some("beta"), &[], &[])),
            ("calls_totl", [0; 3], unknown(NAME, Some("calls_totl"), &["calls_total"], &[])),
            ("calls_total{service=\"nosuch\"}", [0; 3], unknown("service", Some("nosuch"), &[], &[])),
            ("calls_total{operation=\"nosuch\"}", [0; 3], None),
        ] {
            let found =
                matched(&View::whole(store.clone()), &promql::parse_selector(selector).unwrap(), &|| true)
                    .unwrap();
            assert_eq!([found.sample, found.entry, found.execution], counts, "{selector}");
            assert_eq!(found.unknown, expect, "{selector}");
            let computed = selector.starts_with("calls_total").then_some("calls_total");
            assert_eq!(found.computed.as_deref(), computed, "{selector}");
        }
        let matchers = promql::parse_selector("cpu_usge").unwrap();
        assert_eq!(matched(&View::whole(store), &matchers, &|| false), None);
    }
}
