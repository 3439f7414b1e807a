//! Which operations were executed, how often, how long did they take, and how often did they fail?

use std::sync::Arc;

use tacho_model::{Operation, OperationKind};

use super::calls::{Visit, Walker};
use super::durations::Durations;
use super::source::{Filter, SourceBlock, Table};
use super::timeline::Steps;
use crate::{Cancel, Error};

/// Figures of one operation of a service over the range.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationStats {
    pub service: Arc<str>,
    pub operation: Arc<str>,
    pub kind: OperationKind,
    /// Completed calls.
    pub count: u64,
    pub errors: u64,
    pub p50_ns: u64,
    pub p95_ns: u64,
    pub p99_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub total_ns: u64,
    pub self_ns: u64,
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
    count: u64,
    total_ns: u64,
    self_ns: u64,
    /// Calls and failed calls per step.
    steps: Vec<(u64, u64)>,
}

impl Gathered {
    fn new(steps: Steps) -> Self {
        let steps = vec![(0, 0); steps.len];
        Self { durations: Durations::default(), errors: 0, count: 0, total_ns: 0, self_ns: 0, steps }
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

    fn finish(mut self, service: Arc<str>, operation: Operation, steps: Steps) -> OperationStats {
        let [p50_ns, p95_ns, p99_ns] = self.durations.percentiles();
        let point = |(index, (count, errors))| OperationPoint { unix_s: steps.unix_s(index), count, errors };
        OperationStats {
            service,
            operation: operation.name,
            kind: operation.kind,
            count: self.count,
            errors: self.errors,
            p50_ns,
            p95_ns,
            p99_ns,
            min_ns: self.durations.min(),
            max_ns: self.durations.max(),
            total_ns: self.total_ns,
            self_ns: self.self_ns,
            timeline: self.steps.into_iter().enumerate().map(point).collect(),
        }
    }
}

/// Figures of each operation with at least one completed call, by descending total time. If `kind` is set, only
/// operations of that kind.
pub fn operations(
    blocks: &[SourceBlock],
    filter: &Filter,
    kind: Option<OperationKind>,
    cancel: &Cancel,
) -> Result<Vec<OperationStats>, Error> {
    let steps = Steps::new(filter.range);
    let mut table: Table<(Arc<str>, Operation), Gathered> = Table::new();
    let mut walker = Walker::over(blocks, cancel)?;
    for source in filter.blocks(blocks, cancel) {
        let source = source?;
        let service: Arc<str> = source.service().into();
        let wanted =
            |o: &Operation| filter.takes_operation(&o.name) && kind.is_none_or(|kind| kind == o.kind);
        let numbers: Vec<Option<u32>> = source
            .block
            .operations()
            .iter()
            .map(|o| {
                wanted(o).then(|| table.position((Arc::clone(&service), o.clone()), || Gathered::new(steps)))
            })
            .collect();
        for row in source.block.rows() {
            walker.walk(row, |visit| {
                let Some(number) = numbers[visit.call.operation as usize] else { return };
                if filter.range.contains(visit.start) {
                    table.value(number).add(&visit, steps.index(visit.start));
                }
            });
        }
    }
    let finish = |((service, operation), gathered): ((Arc<str>, Operation), Gathered)| {
        gathered.finish(service, operation, steps)
    };
    let mut all: Vec<OperationStats> =
        table.rows.into_iter().filter(|(_, gathered)| gathered.count > 0).map(finish).collect();
    all.sort_by(|a, b| {
        b.total_ns.cmp(&a.total_ns).then_with(|| (&a.service, &a.operation).cmp(&(&b.service, &b.operation)))
    });
    Ok(all)
}
