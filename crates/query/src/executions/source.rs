//! Which data does an analysis read, and which calls does it select?

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use tacho_chunk::ExecutionBlock;
use tacho_model::{Labels, SeriesId, TimeRange};

/// Name of a service or host for senders that did not send one.
const UNKNOWN: &str = "unknown";

/// The labels of a series. `None` if the series does not exist, or if the question must not read it.
pub type LabelsOf = Arc<dyn Fn(SeriesId) -> Option<Arc<Labels>> + Send + Sync>;

/// Segments of one series: of one process, or of several processes with the same labels.
#[derive(Clone, Debug)]
pub struct SourceBlock {
    pub labels: Arc<Labels>,
    pub block: Arc<ExecutionBlock>,
}

impl SourceBlock {
    pub(super) fn source(&self) -> Source<'_> {
        Source { labels: &self.labels, block: &self.block }
    }

    pub(super) fn service(&self) -> &str {
        self.source().service()
    }

    pub(super) fn host(&self) -> &str {
        self.source().host()
    }
}

/// The labels and the block of a [`SourceBlock`], borrowed for one pass.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub(super) labels: &'a Labels,
    pub(super) block: &'a ExecutionBlock,
}

impl<'a> Source<'a> {
    pub(super) fn service(self) -> &'a str {
        service(self.labels)
    }

    pub(super) fn host(self) -> &'a str {
        host(self.labels)
    }
}

pub(super) fn service(labels: &Labels) -> &str {
    labels.get("service").unwrap_or(UNKNOWN)
}

pub(super) fn host(labels: &Labels) -> &str {
    labels.get("host").unwrap_or(UNKNOWN)
}

/// Selects the calls to analyse.
#[derive(Clone, Debug)]
pub struct Filter {
    /// `None`: all services.
    pub service: Option<String>,
    /// Name of an operation; `None`: all operations.
    pub operation: Option<String>,
    /// Calls whose enter event is in this range.
    pub range: TimeRange,
}

impl Filter {
    pub(super) fn takes_service(&self, name: &str) -> bool {
        self.service.as_deref().is_none_or(|service| service == name)
    }

    pub(super) fn takes_operation(&self, name: &str) -> bool {
        self.operation.as_deref().is_none_or(|operation| operation == name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Ok,
    /// The call ended with an exception, or, for a request, with a status of 500 or above or an incomplete answer
    /// (`docs/concepts.md`).
    Failed,
    /// No exit of the call is known.
    Running,
}

impl Outcome {
    /// Name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Running => "running",
        }
    }

    pub(super) const fn of_exit(failed: bool) -> Self {
        if failed { Self::Failed } else { Self::Ok }
    }
}

/// Keys with values. Each key has an index, in order of first appearance.
pub(super) struct Table<K, V> {
    positions: HashMap<K, u32>,
    pub(super) rows: Vec<(K, V)>,
}

impl<K: Clone + Eq + Hash, V> Table<K, V> {
    pub(super) fn new() -> Self {
        Self { positions: HashMap::new(), rows: vec![] }
    }

    /// Index of `key`. Inserts `key` with a new value if absent.
    pub(super) fn position(&mut self, key: K, value: impl FnOnce() -> V) -> u32 {
        *self.positions.entry(key).or_insert_with_key(|key| {
            self.rows.push((key.clone(), value()));
            self.rows.len() as u32 - 1
        })
    }

    pub(super) fn value(&mut self, position: u32) -> &mut V {
        &mut self.rows[position as usize].1
    }
}
