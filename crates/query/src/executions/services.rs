//! Which services exist, and how do they perform?

use std::collections::BTreeSet;
use std::sync::Arc;

use tacho_model::OperationKind;

use super::calls::{Visit, Walker};
use super::durations::Durations;
use super::source::{Filter, SourceBlock, Table};
use super::timeline::Steps;
use crate::{Cancel, Error};

/// Figures of a service over the range. A *request* is a call of kind http-server. In a service without http-server
/// calls, a request is a call without a caller.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceStats {
    pub service: Arc<str>,
    /// Sorted.
    pub hosts: Vec<Arc<str>>,
    /// Completed requests.
    pub requests: u64,
    /// Completed calls of all kinds.
    pub calls: u64,
    /// Failed requests.
    pub errors: u64,
    /// Requests per second, over the whole range.
    pub rate: f64,
    pub p50_ns: u64,
    pub p95_ns: u64,
    pub p99_ns: u64,
    pub timeline: Vec<ServicePoint>,
}

/// One step of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServicePoint {
    pub unix_s: i64,
    pub requests: u64,
    pub errors: u64,
    pub p95_ns: u64,
}

/// Requests of one kind: http-server calls, or calls without a caller.
struct Requests {
    count: u64,
    errors: u64,
    durations: Durations,
    steps: Vec<(u64, u64, Durations)>,
}

impl Requests {
    fn new(steps: Steps) -> Self {
        let steps = (0..steps.len).map(|_| (0, 0, Durations::default())).collect();
        Self { count: 0, errors: 0, durations: Durations::default(), steps }
    }

    fn add(&mut self, failed: bool, duration: u64, step: Option<usize>) {
        self.count += 1;
        self.errors += u64::from(failed);
        self.durations.record(duration);
        if let Some((count, errors, durations)) = step.and_then(|step| self.steps.get_mut(step)) {
            *count += 1;
            *errors += u64::from(failed);
            durations.record(duration);
        }
    }
}

/// Accumulated figures of one service. Both kinds of requests are counted, because only all calls together
/// show whether the service has http-server calls.
struct Gathered {
    hosts: BTreeSet<Arc<str>>,
    calls: u64,
    http: Requests,
    uncalled: Requests,
}

impl Gathered {
    fn finish(self, service: Arc<str>, steps: Steps, seconds: f64) -> ServiceStats {
        let mut requests = if self.http.count > 0 { self.http } else { self.uncalled };
        let [p50_ns, p95_ns, p99_ns] = requests.durations.percentiles();
        let point = |(index, (requests, errors, mut durations)): (usize, (u64, u64, Durations))| {
            ServicePoint { unix_s: steps.unix_s(index), requests, errors, p95_ns: durations.quantile(0.95) }
        };
        ServiceStats {
            service,
            hosts: self.hosts.into_iter().collect(),
            requests: requests.count,
            calls: self.calls,
            errors: requests.errors,
            rate: requests.count as f64 / seconds,
            p50_ns,
            p95_ns,
            p99_ns,
            timeline: requests.steps.into_iter().enumerate().map(point).collect(),
        }
    }
}

/// Figures of each service with at least one completed call, sorted by name. The operation in the filter is ignored.
pub fn services(
    blocks: &[SourceBlock],
    filter: &Filter,
    cancel: &Cancel,
) -> Result<Vec<ServiceStats>, Error> {
    let steps = Steps::new(filter.range);
    let new = || Gathered {
        hosts: BTreeSet::new(),
        calls: 0,
        http: Requests::new(steps),
        uncalled: Requests::new(steps),
    };
    let mut table: Table<Arc<str>, Gathered> = Table::new();
    let mut walker = Walker::default();
    for source in filter.blocks(blocks, cancel) {
        let source = source?;
        let number = table.position(source.service().into(), new);
        let gathered = table.value(number);
        let before = gathered.calls;
        for row in source.block.rows() {
            let add = |visit: Visit<'_>| {
                let Some(duration) = visit.duration().filter(|_| filter.range.contains(visit.start)) else {
                    return;
                };
                gathered.calls += 1;
                let kind = source.block.operations()[visit.call.operation as usize].kind;
                let (failed, step) = (visit.call.failed, steps.index(visit.start));
                if kind == OperationKind::HttpServer {
                    gathered.http.add(failed, duration, step);
                }
                if visit.call.parent.is_none() && row.parent().is_none() {
                    gathered.uncalled.add(failed, duration, step);
                }
            };
            walker.walk(row, add);
        }
        if gathered.calls > before {
            gathered.hosts.insert(source.host().into());
        }
    }
    let seconds = Steps::seconds(filter.range);
    let seen = table.rows.into_iter().filter(|(_, gathered)| gathered.calls > 0);
    let mut all: Vec<ServiceStats> =
        seen.map(|(service, gathered)| gathered.finish(service, steps, seconds)).collect();
    all.sort_by(|a, b| a.service.cmp(&b.service));
    Ok(all)
}
