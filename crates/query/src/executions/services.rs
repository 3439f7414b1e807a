//! Which services exist, and how do they perform?

use std::collections::BTreeSet;
use std::sync::Arc;

use tacho_chunk::{Call, CallSummary, Cell, RowRef, bucket_value};
use tacho_model::{Labels, OperationKind, TimeRange};

use super::calls::{Visit, Walker};
use super::durations::Durations;
use super::fold::{Fold, Scope};
use super::source::{Filter, Source, Table, host, service};
use super::timeline::Steps;

/// Figures of a service over the range. A *request* is a call of kind http-server. In a service without http-server
/// calls, a request is a call without a caller.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceStats {
    pub service: Arc<str>,
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
    /// Requests, failed requests and durations per step.
    steps: Vec<(u64, u64, Durations)>,
}

impl Requests {
    fn new(steps: Steps, is_sketched: bool) -> Self {
        let durations = || Durations::sketched(is_sketched);
        let steps = (0..steps.len).map(|_| (0, 0, durations())).collect();
        Self { count: 0, errors: 0, refused: 0, durations: durations(), steps }
    }

    fn add_cell(&mut self, cell: &Cell) {
        self.count = self.count.saturating_add(cell.count);
        self.errors = self.errors.saturating_add(cell.errors);
        self.refused = self.refused.saturating_add(cell.refused);
        self.durations.add(&cell.buckets, (cell.min_ns, cell.max_ns));
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

/// Accumulated figures of one service. Both kinds of requests are counted, because only `finish` knows whether the service has
/// http-server calls.
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
        self.requests_of(is_http, is_uncalled)
    }

    fn requests_of(&mut self, is_http: bool, is_uncalled: bool) -> impl Iterator<Item = &mut Requests> {
        let Self { http, uncalled, .. } = self;
        is_http.then_some(http).into_iter().chain(is_uncalled.then_some(uncalled))
    }

    fn add_summary(&mut self, summary: &CallSummary, steps: Steps) {
        let is_http =
            |cell: &Cell| summary.operations[cell.operation as usize].kind == OperationKind::HttpServer;
        for cell in &summary.cells {
            self.calls = self.calls.saturating_add(cell.count);
            self.requests_of(is_http(cell), cell.is_uncalled).for_each(|requests| requests.add_cell(cell));
        }
        for point in &summary.points {
            let cell = &summary.cells[point.cell as usize];
            let step = steps.index_s(summary.slot_start_s(point.slot));
            for requests in self.requests_of(is_http(cell), cell.is_uncalled) {
                if let Some((count, errors, _)) = step.and_then(|step| requests.steps.get_mut(step)) {
                    *count = count.saturating_add(point.count);
                    *errors = errors.saturating_add(point.errors);
                }
            }
        }
        for slot in &summary.requests {
            let step = steps.index_s(summary.slot_start_s(slot.slot));
            let ends = slot.buckets.first().zip(slot.buckets.last());
            let Some(((first, _), (last, _))) = ends else { continue };
            for requests in self.requests_of(slot.class.is_http(), slot.class.is_uncalled()) {
                if let Some((.., durations)) = step.and_then(|step| requests.steps.get_mut(step)) {
                    durations.add(&slot.buckets, (bucket_value(*first), bucket_value(*last)));
                }
            }
        }
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
    takes_summaries: bool,
    /// The range of the counted calls: that of the filter, and the whole hours of expired calls that it cuts.
    counted: TimeRange,
}

impl Services {
    pub fn new(filter: Filter) -> Self {
        let steps = Steps::new(filter.range);
        let (table, walker, counted) = (Table::new(), Walker::default(), filter.range);
        Self { filter, is_read: false, steps, table, walker, takes_summaries: false, counted }
    }

    /// Accepts summaries of chunks. Percentiles are then within 1 %. All other figures are exact.
    #[must_use]
    pub fn from_summaries(mut self) -> Self {
        self.takes_summaries = true;
        self
    }

    fn number(&mut self, service: &str) -> u32 {
        let (steps, is_sketched) = (self.steps, self.takes_summaries);
        let requests = || Requests::new(steps, is_sketched);
        let new = || Gathered { hosts: BTreeSet::new(), calls: 0, http: requests(), uncalled: requests() };
        self.table.position(service.into(), new)
    }
}

/// The hour that contains a second.
const fn hour_ns(second: i64) -> TimeRange {
    let start = second.div_euclid(3_600).saturating_mul(3_600_000_000_000);
    TimeRange::new(start, start.saturating_add(3_600_000_000_000 - 1))
}

impl Fold for Services {
    type Answer = Vec<ServiceStats>;

    fn pass(&mut self) -> Option<Scope> {
        (!std::mem::replace(&mut self.is_read, true)).then_some(Scope::Service)
    }

    fn add_source(&mut self, source: Source<'_>) {
        if !self.filter.takes_service(source.service()) {
            return;
        }
        let number = self.number(source.service());
        let Self { filter, steps, table, walker, .. } = self;
        let gathered = table.value(number);
        let before = gathered.calls;
        for row in source.block.rows() {
            walker.walk(row, |visit| {
                if filter.range.contains(visit.start) {
                    gathered.add(source, row, &visit, steps.index(visit.start));
                }
            });
            for position in row.refused().filter(|at| filter.range.contains(walker.start(*at))) {
                gathered.refuse(source, row, &row.shape().calls()[position]);
            }
        }
        if gathered.calls > before {
            gathered.hosts.insert(source.host().into());
        }
    }

    fn takes_summaries(&self) -> bool {
        self.takes_summaries
    }

    fn add_summary(&mut self, labels: &Labels, summary: &CallSummary, is_only: bool) -> bool {
        if !self.filter.takes_service(service(labels)) {
            return true;
        }
        if !is_only && !self.steps.fits_slots(summary.slot_s) {
            return false;
        }
        if is_only {
            self.counted = summary.points.iter().fold(self.counted, |counted, point| {
                let hour = hour_ns(summary.slot_start_s(point.slot));
                TimeRange::new(counted.start.min(hour.start), counted.end.max(hour.end))
            });
        }
        let number = self.number(service(labels));
        let gathered = self.table.value(number);
        let before = gathered.calls;
        gathered.add_summary(summary, self.steps);
        if gathered.calls > before {
            gathered.hosts.insert(host(labels).into());
        }
        true
    }

    fn finish(self) -> Vec<ServiceStats> {
        let seconds = Steps::seconds(self.counted);
        let seen = self.table.rows.into_iter().filter(|(_, gathered)| gathered.calls > 0);
        let mut all: Vec<ServiceStats> =
            seen.map(|(service, gathered)| gathered.finish(service, self.steps, seconds)).collect();
        all.sort_by(|a, b| a.service.cmp(&b.service));
        all
    }
}
