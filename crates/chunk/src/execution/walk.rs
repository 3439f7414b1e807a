//! Which calls does a row (a segment of a block) hold, and how long did each call take?

use tacho_model::{EventKind, Timestamp};

use super::attributes::AttributeData;
use super::row::RowRef;
use super::shape::Call;

/// The attribute with the status of a request.
pub const HTTP_STATUS: &str = "http.status";

/// A call in one row.
pub struct Visit<'a> {
    pub call: &'a Call,
    /// Index of the call in the shape.
    pub position: usize,
    pub start: Timestamp,
    /// Self time in this row, ns: the time during which the call was the innermost open call.
    pub self_ns: u64,
    /// `None` when the call is still open at the end of the row; a later part of the segment may hold the exit.
    pub end: Option<Timestamp>,
}

impl Visit<'_> {
    /// From enter to exit, ns; `None` while the call is open.
    pub fn duration(&self) -> Option<u64> {
        self.end.map(|end| end.wrapping_sub(self.start).cast_unsigned())
    }
}

/// Walks over rows and reuses its buffers.
#[derive(Default)]
pub struct Walker {
    starts: Vec<Timestamp>,
    self_ns: Vec<u64>,
}

#[expect(clippy::indexing_slicing, reason = "a shape has only positions of its own calls")]
impl Walker {
    /// Enter time of a call of the row that was walked last.
    pub fn start(&self, position: usize) -> Timestamp {
        self.starts[position]
    }

    /// Calls `visit` for each call of `row`: first for the ended calls in order of their exits, then for the open calls. Adds
    /// `gap_ns` to the self time of the call that is innermost at the start of the row. Returns the time of the row's last event.
    pub fn walk<'a>(&mut self, row: RowRef<'a>, gap_ns: u64, mut visit: impl FnMut(Visit<'a>)) -> Timestamp {
        let shape = row.shape();
        let calls = shape.calls();
        self.starts.clear();
        self.starts.extend(row.ages().iter().map(|age| row.start().wrapping_sub_unsigned(*age)));
        self.starts.resize(calls.len(), 0);
        self.self_ns.clear();
        self.self_ns.resize(calls.len(), 0);

        let mut innermost = shape.carried().len().checked_sub(1);
        if let Some(innermost) = innermost {
            self.self_ns[innermost] = gap_ns;
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

/// Time between two parts of a segment, ns. It is self time of the innermost call that is open between the parts. Without this
/// time, the self time of a call that sleeps for minutes would be too short.
pub fn part_gap(end: Timestamp, start: Timestamp) -> u64 {
    u64::try_from(start.wrapping_sub(end)).unwrap_or(0)
}

/// Whether the status is from 400 to 499. Such a status alone does not make a call `failed`, because the client is at fault
/// (`docs/concepts.md`).
pub const fn is_refused(status: i64) -> bool {
    400 <= status && status <= 499
}

impl<'a> RowRef<'a> {
    /// Statuses of the calls, as pairs of call number and status.
    pub fn statuses(self) -> impl Iterator<Item = (u32, i64)> + use<'a> {
        self.attributes().filter(|attribute| &**attribute.key == HTTP_STATUS).filter_map(|attribute| {
            match attribute.value {
                AttributeData::Integer(status) => Some((attribute.call, *status)),
                AttributeData::Text(_) | AttributeData::Id(_) => None,
            }
        })
    }

    /// Statuses of the calls that are in the row, as pairs of the index of the call in the shape and the status.
    pub fn positioned_statuses(self) -> impl Iterator<Item = (usize, i64)> + use<'a> {
        self.statuses().filter_map(move |(call, status)| {
            let carried = self.shape().carried();
            let entered = || Some(carried.len() + call.checked_sub(self.first_call())? as usize);
            let position = carried.iter().position(|(_, number)| *number == call).or_else(entered)?;
            (position < self.shape().calls().len()).then_some((position, status))
        })
    }

    /// The refused calls ([`is_refused`]), as indexes in the shape.
    pub fn refused(self) -> impl Iterator<Item = usize> + use<'a> {
        self.positioned_statuses().filter(|(_, status)| is_refused(*status)).map(|(position, _)| position)
    }

    /// Whether calls are open at the end of the row.
    pub fn is_open(self) -> bool {
        let shape = self.shape();
        shape.completed() < shape.calls().len()
    }
}
