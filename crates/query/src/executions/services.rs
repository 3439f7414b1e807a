//! Which services exist, and how do they perform?

use std::collections::BTreeSet;
use std::sync::Arc;

use tacho_chunk::{Call, RowRef};
use tacho_model::OperationKind;

use super::calls::{Visit, Walker};
use super::durations::Durations;
use super::fold::{Fold, Scope};
use super::source::{Filter, Source, Table, refused};
use super::timeline::Steps;

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
    /// Requests with a status from 400 to 499. They are not errors.
    pub refused: u64,
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
    refused: u64,
    durations: Durations,
    steps: Vec<(u64, u64, Durations)>,
}

impl Requests {
    fn new(steps: Steps) -> Self {
        let steps = (0..steps.len).map(|_| (0, 0, Durations::default())).collect();
        Self { count: 0, errors: 0, refused: 0, durations: Durations::default(), steps }
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
    fn add(&mut self, source: Source<'_>, row: RowRef<'_>, visit: &Visit<'_>, step: Option<usize>) {
        let Some(duration) = visit.duration() else { return };
        self.calls += 1;
        for requests in self.requests(source, row, visit.call) {
            requests.add(visit.call.failed, duration, step);
        }
    }

    fn refuse(&mut self, source: Source<'_>, row: RowRef<'_>, call: &Call) {
        self.requests(source, row, call).for_each(|requests| requests.refused += 1);
    }

    /// The kinds of requests to which a call belongs.
    fn requests(
        &mut self,
        source: Source<'_>,
        row: RowRef<'_>,
        call: &Call,
    ) -> impl Iterator<Item = &mut Requests> {
        let is_http = source.block.operations()[call.operation as usize].kind == OperationKind::HttpServer;
        let is_uncalled = call.parent.is_none() && row.parent().is_none();
        let Self { http, uncalled, .. } = self;
        is_http.then_some(http).into_iter().chain(is_uncalled.then_some(uncalled))
    }

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
            refused: requests.refused,
            rate: requests.count as f64 / seconds,
            p50_ns,
            p95_ns,
            p99_ns,
            timeline: requests.steps.into_iter().enumerate().map(point).collect(),
        }
    }
}

/// Figures of each service with at least one completed call, sorted by name. The operation in the filter is ignored.
pub struct Services {
    filter: Filter,
    is_read: bool,
    steps: Steps,
    table: Table<Arc<str>, Gathered>,
    walker: Walker,
}

impl Services {
    pub fn new(filter: Filter) -> Self {
        let steps = Steps::new(filter.range);
        Self { filter, is_read: false, steps, table: Table::new(), walker: Walker::default() }
    }
}

impl Fold for Services {
    type Answer = Vec<ServiceStats>;

    fn pass(&mut self) -> Option<Scope> {
        (!std::mem::replace(&mut self.is_read, true)).then_some(Scope::Service)
    }

    fn add_source(&mut self, source: Source<'_>) {
        let Self { filter, steps, table, walker, .. } = self;
        if !filter.takes_service(source.service()) {
            return;
        }
        let new = || Gathered {
            hosts: BTreeSet::new(),
            calls: 0,
            http: Requests::new(*steps),
            uncalled: Requests::new(*steps),
        };
        let number = table.position(source.service().into(), new);
        let gathered = table.value(number);
        let before = gathered.calls;
        for row in source.block.rows() {
            walker.walk(row, |visit| {
                if filter.range.contains(visit.start) {
                    gathered.add(source, row, &visit, steps.index(visit.start));
                }
            });
            for position in refused(row).filter(|at| filter.range.contains(walker.start(*at))) {
                gathered.refuse(source, row, &row.shape().calls()[position]);
            }
        }
        if gathered.calls > before {
            gathered.hosts.insert(source.host().into());
        }
    }

    fn finish(self) -> Vec<ServiceStats> {
        let seconds = Steps::seconds(self.filter.range);
        let seen = self.table.rows.into_iter().filter(|(_, gathered)| gathered.calls > 0);
        let mut all: Vec<ServiceStats> =
            seen.map(|(service, gathered)| gathered.finish(service, self.steps, seconds)).collect();
        all.sort_by(|a, b| a.service.cmp(&b.service));
        all
    }
}
