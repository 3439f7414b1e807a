//! Tests the analyses with a caller that waits, and with a caller that has cancelled.

use tacho_model::{OperationKind, TimeRange, TraceId};

use super::notation::blocks;
use crate::executions::{self, CallTree, Filter, Graph, Level, OperationStats, Search, SearchResult};
use crate::executions::{ServiceStats, SourceBlock, Trace};
use crate::{Cancel, Error};

fn waited<T>(ask: impl FnOnce(&Cancel) -> Result<T, Error>) -> T {
    ask(&Cancel::default()).expect("not cancelled")
}

pub fn operations(
    blocks: &[SourceBlock],
    filter: &Filter,
    kind: Option<OperationKind>,
) -> Vec<OperationStats> {
    waited(|cancel| executions::operations(blocks, filter, kind, cancel))
}

pub fn services(blocks: &[SourceBlock], filter: &Filter) -> Vec<ServiceStats> {
    waited(|cancel| executions::services(blocks, filter, cancel))
}

pub fn search(blocks: &[SourceBlock], asked: &Search) -> SearchResult {
    waited(|cancel| executions::search(blocks, asked, cancel))
}

pub fn trace(blocks: &[SourceBlock], id: TraceId) -> Option<Trace> {
    waited(|cancel| executions::trace(blocks, id, cancel))
}

pub fn calltree(blocks: &[SourceBlock], filter: &Filter) -> CallTree {
    waited(|cancel| executions::calltree(blocks, filter, cancel))
}

pub fn graph(blocks: &[SourceBlock], filter: &Filter, level: Level) -> Graph {
    waited(|cancel| executions::graph(blocks, filter, level, cancel))
}

/// Two blocks. The first block causes the second, so that every pass over the blocks runs.
const TWO: &str = "
shop h1 main trace=a1 base=1000 at=5000000000
  0 > http-server GET /ads
  10 <
mail h2 main trace=a1 base=3000 at=5000000005 parent=1000+0
  0 > http-server POST /mail
  4 <
";

#[test]
fn every_analysis_ends_when_cancelled() {
    let blocks = blocks(TWO);
    assert_eq!(blocks.len(), 2);
    let filter = Filter { service: None, operation: None, range: TimeRange::ALL };
    let asked = Search {
        filter: filter.clone(),
        duration_ns_min: None,
        duration_ns_max: None,
        outcome: None,
        request_id: None,
        limit: 10,
    };
    let left = Cancel::default();
    left.cancel();
    for error in [
        executions::operations(&blocks, &filter, None, &left).err(),
        executions::services(&blocks, &filter, &left).err(),
        executions::search(&blocks, &asked, &left).err(),
        executions::trace(&blocks, TraceId(0xa1), &left).err(),
        executions::calltree(&blocks, &filter, &left).err(),
        executions::graph(&blocks, &filter, Level::Operation, &left).err(),
    ] {
        assert_eq!(error.map(|e| e.message).as_deref(), Some("query cancelled: the caller no longer waits"));
    }
}
