//! Which calls does a row hold, and how long did each take? One pass over the times of the row, for any call depth.

use std::collections::{HashMap, HashSet};

use tacho_chunk::{Call, RowRef};
use tacho_model::{EventKind, Timestamp, TraceId};

use super::awaited;
use super::source::SourceBlock;
use crate::{Cancel, Error};

/// A call as it is recorded in one row.
pub(super) struct Visit<'a> {
    pub(super) call: &'a Call,
    /// Index of the call in the shape.
    pub(super) position: usize,
    pub(super) start: Timestamp,
    /// Self time in this row, ns. If the walker was created by [`Walker::over`], the call that is innermost at the start of the
    /// row also has the time since the last event of the previous part.
    pub(super) self_ns: u64,
    /// `None` when the call is still open at the end of the row; a later part may hold its exit.
    pub(super) end: Option<Timestamp>,
}

impl Visit<'_> {
    /// From enter to exit, ns; `None` while the call is open.
    pub(super) fn duration(&self) -> Option<u64> {
        self.end.map(|end| end.wrapping_sub(self.start).cast_unsigned())
    }
}

/// Walks over rows and reuses its buffers.
#[derive(Default)]
pub(super) struct Walker {
    starts: Vec<Timestamp>,
    self_ns: Vec<u64>,
    ends: PartEnds,
}

/// Time of the last event of each part that is followed by another part. The time between two parts is self time of the
/// innermost call that is open at the cut. Without it, the self time of a call that sleeps for minutes, without an event, would
/// be too short.
#[derive(Default)]
struct PartEnds(HashMap<(TraceId, u64, u32), Timestamp>);

impl PartEnds {
    fn new(blocks: &[SourceBlock], cancel: &Cancel) -> Result<Self, Error> {
        let before = |row: RowRef<'_>| Some((row.trace(), row.base(), row.part().checked_sub(1)?));
        let mut asked = HashSet::new();
        for source in awaited(blocks, cancel) {
            asked.extend(source?.1.block.rows().filter_map(before));
        }
        let end = |row: RowRef<'_>| {
            let key = (row.trace(), row.base(), row.part());
            let last = || row.deltas().iter().fold(row.start(), |at, delta| at.wrapping_add_unsigned(*delta));
            asked.contains(&key).then(|| (key, last()))
        };
        let mut ends = HashMap::new();
        for source in awaited(blocks, cancel).filter(|_| !asked.is_empty()) {
            ends.extend(source?.1.block.rows().filter_map(end));
        }
        Ok(Self(ends))
    }

    /// From the last event of the previous part to the first event of `row`, ns; 0 when the previous part is missing.
    fn gap(&self, row: RowRef<'_>) -> u64 {
        let before = row.part().checked_sub(1).and_then(|part| self.0.get(&(row.trace(), row.base(), part)));
        before.map_or(0, |end| u64::try_from(row.start().wrapping_sub(*end)).unwrap_or(0))
    }
}

impl Walker {
    /// Creates a walker for the rows of these blocks. It first finds the ends of all parts that are followed by another part.
    pub(super) fn over(blocks: &[SourceBlock], cancel: &Cancel) -> Result<Self, Error> {
        Ok(Self { ends: PartEnds::new(blocks, cancel)?, ..Self::default() })
    }

    /// Enter time of a call of the row that was walked last.
    pub(super) fn start(&self, position: usize) -> Timestamp {
        self.starts[position]
    }

    /// Calls `visit` for each call of `row`: first for the ended calls in order of their exits, then for the open
    /// calls. Returns the time of the row's last event.
    pub(super) fn walk<'a>(&mut self, row: RowRef<'a>, mut visit: impl FnMut(Visit<'a>)) -> Timestamp {
        let shape = row.shape();
        let calls = shape.calls();
        self.starts.clear();
        self.starts.extend(row.ages().iter().map(|age| row.start().wrapping_sub_unsigned(*age)));
        self.starts.resize(calls.len(), 0);
        self.self_ns.clear();
        self.self_ns.resize(calls.len(), 0);

        let mut innermost = shape.carried().len().checked_sub(1);
        if let Some(innermost) = innermost {
            self.self_ns[innermost] = self.ends.gap(row);
        }
        let mut now = row.start();
        let events = shape.events().iter().zip(shape.event_calls()).zip(row.deltas());
        for ((kind, position), delta) in events {
            let position = *position as usize;
            now = now.wrapping_add_unsigned(*delta);
            if let Some(innermost) = innermost {
                self.self_ns[innermost] += delta;
            }
            if matches!(kind, EventKind::Enter(_)) {
                self.starts[position] = now;
                innermost = Some(position);
                continue;
            }
            let call = &calls[position];
            innermost = call.parent.map(|parent| parent as usize);
            let (start, self_ns) = (self.starts[position], self.self_ns[position]);
            visit(Visit { call, position, start, self_ns, end: Some(now) });
        }
        for (position, call) in calls.iter().enumerate().filter(|(_, call)| call.exit.is_none()) {
            let (start, self_ns) = (self.starts[position], self.self_ns[position]);
            visit(Visit { call, position, start, self_ns, end: None });
        }
        now
    }
}
