//! The analyses, called without cancellation for the other tests, and a test of cancellation.

use tacho_model::{OperationKind, TimeRange, TraceId};

use super::notation::blocks;
use crate::executions::{self, CallTree, Filter, Graph, Graphing, Level, OperationStats, Operations, Search};
use crate::executions::{SearchResult, Searching, ServiceStats, Services, SourceBlock, Trace, over};
use crate::{Cancel, Error};

fn waited<T>(ask: impl FnOnce(&Cancel) -> Result<T, Error>) -> T {
    ask(&Cancel::default()).expect("not cancelled")
}

pub fn operations(
    blocks: &[SourceBlock],
    filter: &Filter,
    kind: Option<OperationKind>,
) -> Vec<OperationStats> {
    over(blocks, Operations::new(filter.clone(), kind))
}

pub fn services(blocks: &[SourceBlock], filter: &Filter) -> Vec<ServiceStats> {
    over(blocks, Services::new(filter.clone()))
}

pub fn search(blocks: &[SourceBlock], asked: &Search) -> SearchResult {
    over(blocks, Searching::new(asked.clone()))
}

pub fn trace(blocks: &[SourceBlock], id: TraceId) -> Option<Trace> {
    waited(|cancel| executions::trace(blocks, id, cancel))
}

pub fn calltree(blocks: &[SourceBlock], filter: &Filter) -> CallTree {
    waited(|cancel| executions::calltree(blocks, filter, cancel))
}

pub fn graph(blocks: &[SourceBlock], filter: &Filter, level: Level) -> Graph {
    over(blocks, Graphing::new(filter.clone(), level))
}

/// Two blocks. A call of the first block causes the segment of the second block, so that every pass over the blocks runs.
const TWO: &str = "
shop h1 main trace=a1 base=1000 at=5000000000
  0 > http-server GET /ads
  10 <
mail h2 main trace=a1 base=3000 at=5000000005 parent=1000+0
  0 > http-server POST /mail
  4 <
";

#[test]
fn every_analysis_in_memory_ends_when_cancelled() {
    let blocks = blocks(TWO);
    assert_eq!(blocks.len(), 2);
    let filter = Filter { service: None, operation: None, range: TimeRange::ALL };
    let left = Cancel::default();
    left.cancel();
    for error in [
        executions::trace(&blocks, TraceId(0xa1), &left).err(),
        executions::calltree(&blocks, &filter, &left).err(),
    ] {
        assert_eq!(error.map(|e| e.message).as_deref(), Some("query cancelled: the caller no longer waits"));
    }
}
