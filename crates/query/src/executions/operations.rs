//! Which operations were executed, how often, how long did they take, and how often did they fail?

use std::sync::Arc;

use tacho_chunk::{CallSummary, Cell, RowRef, part_gap};
use tacho_model::{Labels, Operation, OperationKind, Timestamp};

use super::calls::{Visit, Walker};
use super::causes::Causes;
use super::durations::Durations;
use super::fold::{Fold, Scope};
use super::limits::{Incomplete, Limits};
use super::parts::{Met, Parts};
use super::source::{Filter, Source, Table, service};
use super::timeline::Steps;

/// Figures of one operation of a service over the range.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationStats {
    pub service: Arc<str>,
    pub operation: Arc<str>,
    pub kind: OperationKind,
    /// Completed calls.
    pub count: u64,
    pub errors: u64,
    /// Calls with a status from 400 to 499. They are not errors.
    pub refused: u64,
    pub p50_ns: u64,
    pub p95_ns: u64,
    pub p99_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub total_ns: u64,
    /// `None` for an HTTP client call if any figures are from summaries, because summaries lack the time of the server.
    pub self_ns: Option<u64>,
    pub timeline: Vec<OperationPoint>,
}

/// One step of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationPoint {
    pub unix_s: i64,
    pub count: u64,
    pub errors: u64,
}

/// Accumulated figures of one operation.
struct Gathered {
    durations: Durations,
    errors: u64,
    refused: u64,
    count: u64,
    total_ns: u64,
    self_ns: u64,
    /// The part of `self_ns` during which a recorded server worked.
    served_ns: u64,
    /// Calls and failed calls per step.
    steps: Vec<(u64, u64)>,
}

impl Gathered {
    fn new(steps: Steps, is_sketched: bool) -> Self {
        Self {
            durations: Durations::sketched(is_sketched),
            errors: 0,
            refused: 0,
            count: 0,
            total_ns: 0,
            self_ns: 0,
            served_ns: 0,
            steps: vec![(0, 0); steps.len],
        }
    }

    fn add(&mut self, visit: &Visit<'_>, step: Option<usize>) {
        self.self_ns = self.self_ns.saturating_add(visit.self_ns);
        let Some(duration) = visit.duration() else { return };
        let failed = u64::from(visit.call.failed);
        self.durations.record(duration);
        self.count += 1;
        self.errors += failed;
        self.total_ns = self.total_ns.saturating_add(duration);
        if let Some((calls, errors)) = step.and_then(|step| self.steps.get_mut(step)) {
            *calls += 1;
            *errors += failed;
        }
    }

    fn add_cell(&mut self, cell: &Cell) {
        self.self_ns = self.self_ns.saturating_add(cell.self_ns);
        self.total_ns = self.total_ns.saturating_add(cell.total_ns);
        self.refused = self.refused.saturating_add(cell.refused);
        self.count = self.count.saturating_add(cell.count);
        self.errors = self.errors.saturating_add(cell.errors);
        self.durations.add(&cell.buckets, (cell.min_ns, cell.max_ns));
    }

    /// `is_summed`: a part of the figures is from summaries.
    fn finish(
        mut self,
        service: Arc<str>,
        operation: Operation,
        steps: Steps,
        is_summed: bool,
    ) -> OperationStats {
        let lacks_served = is_summed && operation.kind == OperationKind::HttpClient;
        let self_ns = self.self_ns.saturating_sub(self.served_ns);
        let [p50_ns, p95_ns, p99_ns] = self.durations.percentiles();
        let point = |(index, (count, errors))| OperationPoint { unix_s: steps.unix_s(index), count, errors };
        OperationStats {
            service,
            operation: operation.name,
            kind: operation.kind,
            count: self.count,
            errors: self.errors,
            refused: self.refused,
            p50_ns,
            p95_ns,
            p99_ns,
            min_ns: self.durations.min(),
            max_ns: self.durations.max(),
            total_ns: self.total_ns,
            self_ns: (!lacks_served).then_some(self_ns),
            timeline: self.steps.into_iter().enumerate().map(point).collect(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Start,
    /// Counts all calls. If it reads all blocks and may find HTTP client calls, it also does the work of the first `Gather`.
    Count,
    /// Collects the segments that served a request.
    Gather,
    /// Finds the HTTP client calls that sent these requests.
    Discount,
    End,
}

/// Figures of each operation with at least one completed call, by descending total time.
pub struct Operations {
    filter: Filter,
    kind: Option<OperationKind>,
    pass: Pass,
    steps: Steps,
    table: Table<(Arc<str>, Operation), Gathered>,
    walker: Walker,
    /// For the end of a part: the time of its last event. For the start of the next part: the index of the operation of its
    /// innermost carried call (`None` if that call is not counted), and the time of its first event.
    parts: Parts<Timestamp, (Option<u32>, Timestamp)>,
    causes: Causes,
    /// Whether one of the operations is an HTTP client call.
    has_clients: bool,
    /// Whether summaries are accepted, and whether one was added.
    takes_summaries: bool,
    is_summed: bool,
}

impl Operations {
    /// If `kind` is set, only operations of that kind.
    pub fn new(filter: Filter, kind: Option<OperationKind>) -> Self {
        Self::within(filter, kind, &Limits::default())
    }

    pub(super) fn within(filter: Filter, kind: Option<OperationKind>, limits: &Limits) -> Self {
        Self {
            steps: Steps::new(filter.range),
            filter,
            kind,
            pass: Pass::Start,
            table: Table::new(),
            walker: Walker::default(),
            parts: Parts::new(limits.waiting),
            causes: Causes::new(limits),
            has_clients: false,
            takes_summaries: false,
            is_summed: false,
        }
    }

    /// Accepts summaries of chunks. Percentiles are then within 1 %, and self times of HTTP client calls may be missing. All
    /// other figures are exact.
    #[must_use]
    pub fn from_summaries(mut self) -> Self {
        self.takes_summaries = true;
        self
    }

    /// Whether the first pass reads all blocks and may find HTTP client calls.
    fn gathers_while_counting(&self) -> bool {
        !self.is_summed
            && self.filter.service.is_none()
            && self.kind.is_none_or(|kind| kind == OperationKind::HttpClient)
    }

    /// Indexes of operations of a service; `None` for operations that are not requested.
    fn numbers(&mut self, service: &str, operations: &[Operation]) -> Vec<Option<u32>> {
        let service: Arc<str> = service.into();
        let (steps, is_sketched, mut numbers) = (self.steps, self.takes_summaries, vec![]);
        for operation in operations {
            let wanted = self.filter.takes_operation(&operation.name)
                && self.kind.is_none_or(|kind| kind == operation.kind);
            self.has_clients |= wanted && operation.kind == OperationKind::HttpClient;
            let key = || (Arc::clone(&service), operation.clone());
            numbers.push(wanted.then(|| self.table.position(key(), || Gathered::new(steps, is_sketched))));
        }
        numbers
    }

    fn count(&mut self, row: RowRef<'_>, numbers: &[Option<u32>]) {
        let Self { filter, steps, table, walker, parts, .. } = self;
        let last = walker.walk(row, |visit| {
            let Some(number) = numbers[visit.call.operation as usize] else { return };
            if filter.range.contains(visit.start) {
                table.value(number).add(&visit, steps.index(visit.start));
            }
        });
        for position in row.refused() {
            let number = numbers[row.shape().calls()[position].operation as usize];
            if let Some(number) = number.filter(|_| filter.range.contains(walker.start(position))) {
                table.value(number).refused += 1;
            }
        }
        let mut wait = |(end, (number, start)): (Timestamp, (Option<u32>, Timestamp))| {
            let Some(number) = number else { return };
            let figures = table.value(number);
            figures.self_ns = figures.self_ns.saturating_add(part_gap(end, start));
        };
        if let Some(innermost) = row.shape().carried().len().checked_sub(1) {
            let number = numbers[row.shape().calls()[innermost].operation as usize];
            let number = number.filter(|_| filter.range.contains(walker.start(innermost)));
            parts.start(row, (number, row.start())).into_iter().for_each(&mut wait);
        }
        if row.is_open()
            && let Met::Pair(end, start) = parts.end(row, last)
        {
            wait((end, start));
        }
    }

    fn discount(&mut self, source: Source<'_>, numbers: &[Option<u32>]) {
        let Self { filter, table, walker, causes, .. } = self;
        for row in source.block.rows().filter(|row| causes.rounds.takes(row.trace())) {
            walker.walk(row, |visit| {
                let Some(number) = numbers[visit.call.operation as usize] else { return };
                let served = causes.served(source, row, &visit);
                if served > 0 && filter.range.contains(visit.start) {
                    let figures = table.value(number);
                    figures.served_ns = figures.served_ns.saturating_add(served);
                }
            });
        }
    }
}

impl Fold for Operations {
    type Answer = Vec<OperationStats>;

    fn pass(&mut self) -> Option<Scope> {
        self.pass = match self.pass {
            Pass::Start => Pass::Count,
            Pass::Count if !self.has_clients || self.is_summed => Pass::End,
            Pass::Count if !self.gathers_while_counting() => Pass::Gather,
            Pass::Count | Pass::Gather => {
                self.causes.sort();
                Pass::Discount
            }
            Pass::Discount if self.causes.next_round() => Pass::Gather,
            Pass::Discount | Pass::End => Pass::End,
        };
        if self.pass == Pass::Discount && self.causes.is_empty() {
            return self.pass();
        }
        match self.pass {
            Pass::Gather => Some(Scope::All),
            Pass::End => None,
            Pass::Start | Pass::Count | Pass::Discount => Some(Scope::Service),
        }
    }

    fn add_source(&mut self, source: Source<'_>) {
        if self.pass == Pass::Gather {
            return self.causes.gather(source, true, |_| true);
        }
        if !self.filter.takes_service(source.service()) {
            return;
        }
        if self.pass == Pass::Count && self.gathers_while_counting() {
            self.causes.gather(source, true, |_| true);
        }
        let numbers = self.numbers(source.service(), source.block.operations());
        if self.pass == Pass::Discount {
            return self.discount(source, &numbers);
        }
        source.block.rows().for_each(|row| self.count(row, &numbers));
    }

    fn takes_summaries(&self) -> bool {
        self.takes_summaries && self.pass == Pass::Count
    }

    fn add_summary(&mut self, labels: &Labels, summary: &CallSummary, is_only: bool) -> bool {
        if !self.filter.takes_service(service(labels)) {
            return true;
        }
        if !is_only && !self.steps.fits_slots(summary.slot_s) {
            return false;
        }
        self.is_summed = true;
        let numbers = self.numbers(service(labels), &summary.operations);
        let Self { steps, table, parts, .. } = self;
        for cell in &summary.cells {
            if let Some(number) = numbers[cell.operation as usize] {
                table.value(number).add_cell(cell);
            }
        }
        for point in &summary.points {
            let cell = &summary.cells[point.cell as usize];
            let Some(number) = numbers[cell.operation as usize] else { continue };
            let step = steps.index_s(summary.slot_start_s(point.slot));
            if let Some((calls, errors)) = step.and_then(|step| table.value(number).steps.get_mut(step)) {
                *calls = calls.saturating_add(point.count);
                *errors = errors.saturating_add(point.errors);
            }
        }
        for part in &summary.loose {
            if let Some((number, gap_ns)) = parts.add_loose(part, |operation| numbers[operation as usize]) {
                let figures = table.value(number);
                figures.self_ns = figures.self_ns.saturating_add(gap_ns);
            }
        }
        true
    }

    fn incomplete(&self) -> Vec<Incomplete> {
        let causes = self.causes.incomplete().filter(|_| self.has_clients && !self.is_summed);
        self.parts.incomplete().into_iter().chain(causes).collect()
    }

    fn finish(self) -> Vec<OperationStats> {
        let (steps, is_summed) = (self.steps, self.is_summed);
        let finish = |((service, operation), gathered): ((Arc<str>, Operation), Gathered)| {
            gathered.finish(service, operation, steps, is_summed)
        };
        let counted = self.table.rows.into_iter().filter(|(_, gathered)| gathered.count > 0);
        let mut all: Vec<OperationStats> = counted.map(finish).collect();
        all.sort_by(|a, b| {
            let names = (&a.service, &a.operation).cmp(&(&b.service, &b.operation));
            b.total_ns.cmp(&a.total_ns).then(names).then(a.kind.cmp(&b.kind))
        });
        all
    }
}
