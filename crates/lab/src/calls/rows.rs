//! One line of CSV for each call, with columns like those of OpenTelemetry spans. The peers in `bench/scale` load these lines.

use std::fmt::Write;

use tacho_model::{EventKind, mix64};

use super::fleet::Fleet;
use super::trace::{AttributeKey, AttributeText, EXCEPTIONS, Segment, Trace};

/// Trace ids and request ids have the form of a UUID, span ids are decimal numbers; a missing parent is 0. `status`,
/// `request_id` and `exception` are empty if the call has none.
pub const HEADER: &str = "trace_id,span_id,parent_span_id,service,host,operation,kind,start_ns,duration_ns,self_ns,failed,\
                          status,request_id,exception";

pub fn rows(fleet: &Fleet, trace: &Trace, out: &mut String) {
    for segment in &trace.segments {
        segment_rows(fleet, trace, segment, out);
    }
}

/// A call that has not ended.
struct Open {
    call: u32,
    operation: u32,
    enter: u64,
    parent: u64,
    inner_ns: u64,
}

fn segment_rows(fleet: &Fleet, trace: &Trace, segment: &Segment, out: &mut String) {
    let (mut open, mut now, mut calls): (Vec<Open>, u64, u32) = (vec![], 0, 0);
    for event in &segment.events {
        now += event.delta;
        if let EventKind::Enter(operation) = event.kind {
            let outer = open.last().map(|outer| span(segment, outer.call));
            let parent = outer.or(segment.parent.map(|parent| parent.0)).unwrap_or(0);
            open.push(Open { call: calls, operation, enter: now, parent, inner_ns: 0 });
            calls += 1;
            continue;
        }
        let Some(call) = open.pop() else { continue };
        let duration = now - call.enter;
        if let Some(outer) = open.last_mut() {
            outer.inner_ns += duration;
        }
        row(fleet, (trace, segment), &call, (duration, event.kind == EventKind::ExitFailed), out);
    }
}

const fn span(segment: &Segment, call: u32) -> u64 {
    mix64(segment.base.wrapping_add(call as u64))
}

fn row(
    fleet: &Fleet,
    (trace, segment): (&Trace, &Segment),
    call: &Open,
    (duration, failed): (u64, bool),
    out: &mut String,
) {
    let service = &fleet.services[segment.service];
    let (kind, operation) = &service.operations[call.operation as usize - 1];
    let (mut status, mut request, mut exception) = (String::new(), String::new(), "");
    for (_, key, value) in segment.attributes.iter().filter(|(number, ..)| *number == call.call) {
        match (key, value) {
            (AttributeKey::Status, AttributeText::Integer(value)) => status = value.to_string(),
            (_, AttributeText::Uuid(bytes)) => request = uuid_text(*bytes),
            (_, AttributeText::Exception(index)) => exception = EXCEPTIONS[*index],
            _ => {}
        }
    }
    let start = segment.start.saturating_add_unsigned(call.enter);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{},{},{},{},{},\"{operation}\",{},{start},{duration},{},{},{status},{request},{exception}",
        uuid_text(trace.id.0.to_be_bytes()),
        span(segment, call.call),
        call.parent,
        service.name,
        host(segment.instance),
        kind.name(),
        duration - call.inner_ns,
        u8::from(failed),
    );
}

/// Name of the host of an instance.
pub(super) fn host(instance: usize) -> String {
    format!("node-{}", instance + 1)
}

/// A UUID as agents write it: lower case, with hyphens.
pub(super) fn uuid_text(bytes: [u8; 16]) -> String {
    let text = format!("{:032x}", u128::from_be_bytes(bytes));
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}

#[cfg(test)]
mod tests {
    use super::super::trace::{Traces, When};
    use super::*;

    #[test]
    fn each_call_has_a_row_with_all_columns() {
        let when = When { start: 0, length_ns: 1_000_000_000, calls: 100_000 };
        let mut traces = Traces::new(5, when);
        let mut text = String::new();
        let mut calls = 0;
        while let Some(trace) = traces.next() {
            rows(&traces.fleet, &trace, &mut text);
            calls += trace.calls;
        }
        assert_eq!(text.lines().count(), calls as usize);
        let columns = HEADER.split(',').count();
        for line in text.lines() {
            // The quoted operation may contain commas, which separate no columns.
            let (before, rest) = line.split_once('"').unwrap();
            let (_, after) = rest.split_once('"').unwrap();
            assert_eq!(before.matches(',').count() + after.matches(',').count() + 1, columns, "{line}");
        }
        assert!(text.contains(",503,") && text.contains(",java."));
    }
}
