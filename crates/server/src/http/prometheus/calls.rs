//! The series of calls: `calls_total`, `call_errors_total` and `call_duration_seconds` exist only in queries. They are computed
//! from the calls and their summaries, so nothing is stored twice.
//!
//! A selector gets these series if it has one of their names. Their labels are `service`, `host`, `operation`, `kind`, and `le`
//! for buckets. `tacho_query::executions::Counters` counts the calls.
//!
//! This file and `fetch.rs`, `series.rs` use each other: a selector of samples may also select series of calls,
//! which are read and listed like other series.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tacho_chunk::{DURATION_BOUNDS_NS, ValueColumn};
use tacho_model::limits::LABEL_VALUE_BYTES_MAX;
use tacho_model::{Labels, MatchOp, Matcher, NAME, TimeRange, Timestamp};
use tacho_query::executions::{CounterKey, Counters, Counts};
use tacho_query::promql::Selection;
use tacho_store::{Damages, Piece};

use super::fetch::Pieces;
use crate::access::View;
use crate::http::executions::fetch;
use crate::http::running::Progress;
use crate::read::unmatched::metric_of_calls;

#[derive(Default)]
pub struct CallSeries {
    pub series: Vec<Pieces>,
    pub damages: Damages,
    pub warnings: Vec<String>,
}

/// The metric of calls that a selection names, and what the series of this metric count. `None` if it names no such metric.
pub fn counted(selection: &Selection) -> Option<(&'static str, Counts)> {
    metric_of_calls(&selection.matchers)
}

/// `room` is the number of samples that the query may still read. `Ok(None)` when the series have more samples.
pub async fn read(
    (store, progress): (&View, &Progress),
    Selection { matchers, range, .. }: &Selection,
    (name, counts): (&'static str, Counts),
    now: Timestamp,
    room: &AtomicUsize,
) -> Result<Option<CallSeries>, tacho_store::Error> {
    // Samples after `now` are not known yet.
    let range = TimeRange::new(range.start, range.end.min(now));
    let takes = |key: &CounterKey| {
        let is_short = key.operation.name.len() <= LABEL_VALUE_BYTES_MAX;
        let mut others = matchers.iter().filter(|matcher| matcher.label() != "le");
        is_short && others.all(|matcher| matcher.matches_value(value(matcher.label(), name, key)))
    };
    let counters = Counters::new(counts, range, room.load(Ordering::Relaxed), takes);
    let count = counters.len();
    if count == 0 {
        return Ok(Some(CallSeries::default()));
    }
    let service =
        matchers.iter().find(|matcher| matcher.label() == "service" && matcher.op() == MatchOp::Equal);
    let service = service.map(Matcher::value).filter(|service| !service.is_empty());
    let selected = (service, counters.range());
    let (read, notes) = fetch::folded((store, progress), selected, 0, counters).await?;
    if read.records.is_over {
        return Ok(None);
    }
    let mut found =
        CallSeries { damages: read.damages, warnings: notes.sentences().collect(), series: vec![] };
    for counter in &read.records.counters {
        for (index, values) in counter.values.iter().enumerate() {
            let bound = (counts == Counts::Buckets).then(|| bound(index));
            let labels = labels(name, &counter.key, bound.as_deref());
            if matchers.iter().all(|matcher| matcher.matches(&labels)) {
                let piece = |(times, values)| Piece::Samples { times, values: ValueColumn::F64(values) };
                found.series.push((Arc::new(labels), read.records.pieces(values).map(piece).collect()));
            }
        }
    }
    let samples = found.series.len().saturating_mul(count);
    let left = |left: usize| left.checked_sub(samples);
    let fits = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok();
    Ok(fits.then_some(found))
}

/// The value of `le`, in seconds.
fn bound(index: usize) -> String {
    DURATION_BOUNDS_NS.get(index).map_or_else(|| "+Inf".to_owned(), |bound| (*bound as f64 / 1e9).to_string())
}

/// The value of a label of a counter. Empty for `le` and for unknown labels.
fn value<'a>(label: &str, name: &'a str, key: &'a CounterKey) -> &'a str {
    match label {
        NAME => name,
        "host" => &key.host,
        "kind" => key.operation.kind.name(),
        "operation" => &key.operation.name,
        "service" => &key.service,
        _ => "",
    }
}

fn labels(name: &str, key: &CounterKey, bound: Option<&str>) -> Labels {
    let own = [NAME, "host", "kind", "le", "operation", "service"].map(|label| match (label, bound) {
        ("le", bound) => (label, bound.unwrap_or_default()),
        _ => (label, value(label, name, key)),
    });
    Labels::from_sorted(own.into_iter().filter(|(_, value)| !value.is_empty()))
}

pub fn names() -> impl Iterator<Item = &'static str> {
    Counts::METRICS.into_iter().map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use tacho_model::{Operation, OperationKind};

    use super::*;

    #[test]
    fn a_selector_gets_the_metric_of_its_name() {
        let by = |name| metric_of_calls(&[Matcher::equal("service", "a"), Matcher::equal(NAME, name)]);
        assert_eq!(by("calls_total"), Some(("calls_total", Counts::Calls)));
        assert_eq!(by("up"), None);
        assert_eq!(metric_of_calls(&[Matcher::new(NAME, MatchOp::Regex, "calls_.*").unwrap()]), None);
    }

    #[test]
    fn labels_are_sorted_and_bounds_are_seconds() {
        let operation = Operation { kind: OperationKind::HttpServer, name: "GET /a".into() };
        let key = CounterKey { service: "s".into(), host: "h".into(), operation };
        let bounds: Vec<String> = (0..Counts::Buckets.len()).map(bound).collect();
        assert_eq!([&*bounds[0], &*bounds[12], &*bounds[17]], ["0.0001", "1", "+Inf"]);
        let labels = labels("m", &key, Some("1"));
        let expect = [
            (NAME, "m"),
            ("host", "h"),
            ("kind", "http-server"),
            ("le", "1"),
            ("operation", "GET /a"),
            ("service", "s"),
        ];
        assert_eq!(labels, Labels::new(expect).unwrap());
    }
}
