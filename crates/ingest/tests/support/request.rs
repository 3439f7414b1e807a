//! A request as the agent of the demo reports it: ten calls, an incoming trace context and request id, a status.

use tacho_ingest::wire::{AttributeForm, DataFrame, SegmentRecord, TraceForm};
use tacho_model::{Event, EventKind, SpanId, TraceId};

pub const CALLS: usize = 10;
/// The events in order: the operation id of an enter, or 0 for an exit, and the ns since the previous event. A servlet
/// validates, waits for a connection, queries the database, and renders.
const EVENTS: [(u32, u64); 2 * CALLS] = [
    (1, 0),
    (2, 18_400),
    (3, 2_150),
    (0, 740),
    (4, 380),
    (5, 910),
    (6, 1_240),
    (0, 3_870),
    (7, 650),
    (0, 412_300),
    (0, 1_120),
    (8, 840),
    (9, 310),
    (0, 560),
    (0, 470),
    (0, 1_310),
    (0, 900),
    (10, 2_640),
    (0, 95_200),
    (0, 11_900),
];

pub fn events() -> Vec<Event> {
    let list = EVENTS.iter().map(|(operation, delta)| Event {
        delta: *delta,
        kind: if *operation == 0 { EventKind::Exit } else { EventKind::Enter(*operation) },
    });
    list.collect()
}

/// Appends the segment of one request. `nth` is the number of the segment in the session.
pub fn put(frame: &mut DataFrame, nth: u64, events: &[Event]) {
    let attributes = [
        (0, 2, AttributeForm::Integer(200)),
        (
            0,
            3,
            AttributeForm::Uuid((0x0123_4567_89ab_cdef_0123_4567_0000_0000 + u128::from(nth)).to_be_bytes()),
        ),
    ];
    frame.segment(&SegmentRecord {
        number: nth,
        trace: TraceForm::Full(TraceId(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_0000 + u128::from(nth))),
        parent: Some(SpanId(0x00f0_67aa_0ba9_02b7)),
        thread: 1,
        start: 1_700_000_000_000_000_000 + i64::try_from(nth).unwrap() * 700_000,
        continued: None,
        events,
        attributes: &attributes,
    });
}
