//! What are the calls and events of a segment without their times? A shape, which is computed once for all segments with the same
//! calls and events.

use std::hash::{Hash, Hasher};

use tacho_model::limits::{SEGMENT_CARRIED_MAX, SEGMENT_EVENTS_MAX};
use tacho_model::{EventKind, OperationIndex, SegmentError};

/// Events and carried calls of a segment. They identify a shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Outline {
    /// Operation and number of each call that is already open at the start, outermost call first.
    pub(super) carried: Vec<(OperationIndex, u32)>,
    pub(super) events: Vec<EventKind>,
}

/// A call tree without times, with derived facts: the exit of each enter, and the caller of each call.
#[derive(Clone, Debug)]
pub struct Shape {
    outline: Outline,
    calls: Vec<Call>,
    event_calls: Vec<u32>,
    completed: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub operation: OperationIndex,
    /// Index of the caller in the shape; `None` for an outermost call.
    pub parent: Option<u32>,
    /// Number of callers above the call within the shape.
    pub depth: u32,
    /// Index of the enter event; `None` for a carried call.
    pub enter: Option<u32>,
    /// Index of the exit event; `None` if the call is still open at the end.
    pub exit: Option<u32>,
    /// Whether the call failed (see [`EventKind::ExitFailed`]).
    pub failed: bool,
}

impl Shape {
    /// Pairs exits with enters or carried calls. Fails if there are no events, too many events or carried calls, or an exit
    /// without an open call. Does not check operations.
    pub(super) fn new(outline: Outline) -> Result<Self, SegmentError> {
        if outline.events.is_empty() {
            return Err(SegmentError::NoEvents);
        }
        if outline.events.len() > SEGMENT_EVENTS_MAX {
            return Err(SegmentError::TooManyEvents(outline.events.len()));
        }
        if outline.carried.len() > SEGMENT_CARRIED_MAX {
            return Err(SegmentError::TooManyCarried(outline.carried.len()));
        }
        let mut shape = Self {
            event_calls: Vec::with_capacity(outline.events.len()),
            calls: vec![],
            completed: 0,
            outline,
        };
        shape.pair()?;
        Ok(shape)
    }

    fn pair(&mut self) -> Result<(), SegmentError> {
        let mut open: Vec<u32> = vec![];
        for (operation, _) in &self.outline.carried {
            open.push(enter(&mut self.calls, &open, *operation, None));
        }
        for (at, kind) in (0u32..).zip(&self.outline.events) {
            if let EventKind::Enter(operation) = kind {
                let call = enter(&mut self.calls, &open, *operation, Some(at));
                open.push(call);
                self.event_calls.push(call);
                continue;
            }
            let left = open.pop().and_then(|call| Some((call, self.calls.get_mut(index(call))?)));
            let (call, left) = left.ok_or(SegmentError::ExitWithoutEnter { event: index(at) })?;
            left.exit = Some(at);
            left.failed = *kind == EventKind::ExitFailed;
            self.event_calls.push(call);
            self.completed += 1;
        }
        Ok(())
    }

    pub(super) const fn outline(&self) -> &Outline {
        &self.outline
    }

    /// Operation and number of each call that is already open at the start, outermost call first.
    pub fn carried(&self) -> &[(OperationIndex, u32)] {
        &self.outline.carried
    }

    pub fn events(&self) -> &[EventKind] {
        &self.outline.events
    }

    /// First the carried calls, then the other calls in the order of their enters. A caller precedes its callees.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The index in [`Self::calls`] of the call that each event enters or exits.
    pub fn event_calls(&self) -> &[u32] {
        &self.event_calls
    }

    /// Estimated memory, bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.outline.carried.len() * size_of::<(OperationIndex, u32)>()
            + self.outline.events.len() * (size_of::<EventKind>() + size_of::<u32>())
            + self.calls.len() * size_of::<Call>()
    }

    /// Number of calls that exit in this shape.
    pub const fn completed(&self) -> usize {
        self.completed
    }
}

/// Appends a call that is made while `open` calls are open, and returns its index. Indexes are u32 to keep shapes small.
#[expect(clippy::cast_possible_truncation, reason = "at most SEGMENT_CARRIED_MAX + SEGMENT_EVENTS_MAX calls")]
fn enter(calls: &mut Vec<Call>, open: &[u32], operation: OperationIndex, at: Option<u32>) -> u32 {
    let call = calls.len() as u32;
    let (parent, depth) = (open.last().copied(), open.len() as u32);
    calls.push(Call { operation, parent, depth, enter: at, exit: None, failed: false });
    call
}

const fn index(position: u32) -> usize {
    position as usize
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.outline == other.outline
    }
}

impl Eq for Shape {}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.outline.hash(state);
    }
}
