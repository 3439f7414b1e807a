//! Describes a chunk as text, for comparison with golden files.

use std::fmt::Write;

use tacho_chunk::{CallSummary, Chunk, Loss, MemberInfo, RowRef, Tolerance, ValueColumn};
use tacho_model::{Body, Entry, EventKind, Kind, Operation, Sample, Value};

/// Header and records, with one line per fact.
pub fn chunk(chunk: &Chunk<'_>) -> String {
    let header = chunk.header();
    let mut out = format!("{} {}, {} to {}\n", header.count, header.kind.name(), header.start, header.end);
    if header.time_error_max > 0 {
        writeln!(out, "times off by at most {} ns", header.time_error_max).unwrap();
    }
    for info in &header.members {
        member(&mut out, info, header.members.len() > 1);
    }
    for column in header.columns() {
        writeln!(out, "column {}: {}, {} bytes", column.role.name(), column.codec, column.bytes).unwrap();
    }
    if let Some(filters) = header.filters {
        writeln!(out, "filters: {} and {} bytes", filters.trace_bytes, filters.request_bytes).unwrap();
    }
    if header.kind == Kind::Execution
        && let Some(found) = chunk.summary().unwrap()
    {
        summary(&mut out, &found);
    }
    match header.kind {
        Kind::Sample if header.members.len() > 1 => group(&mut out, chunk),
        Kind::Sample => chunk.samples().unwrap().iter().for_each(|s| sample(&mut out, s)),
        Kind::Entry => chunk.entries().unwrap().iter().for_each(|e| entry(&mut out, e)),
        Kind::Execution => {
            let block = chunk.executions().unwrap();
            block.callers().iter().for_each(|caller| writeln!(out, "{caller:?}").unwrap());
            block.rows().for_each(|row| segment(&mut out, row, block.operations()));
        }
    }
    out
}

fn summary(out: &mut String, summary: &CallSummary) {
    writeln!(out, "summary: slots of {} s", summary.slot_s).unwrap();
    for cell in &summary.cells {
        let name = &summary.operations[cell.operation as usize].name;
        let callers = if cell.is_uncalled { "without" } else { "with" };
        writeln!(out, "{name} {callers} callers: {cell:?}").unwrap();
    }
    summary.points.iter().for_each(|point| writeln!(out, "{point:?}").unwrap());
    summary.durations.iter().flatten().for_each(|durations| writeln!(out, "{durations:?}").unwrap());
    summary.requests.iter().for_each(|requests| writeln!(out, "{requests:?}").unwrap());
    summary.loose.iter().for_each(|part| writeln!(out, "{part:?}").unwrap());
    summary.links.iter().flatten().for_each(|link| writeln!(out, "{link:?}").unwrap());
    summary.statuses.iter().flatten().for_each(|of_status| writeln!(out, "{of_status:?}").unwrap());
}

fn member(out: &mut String, info: &MemberInfo, several: bool) {
    let stats = &info.stats;
    let [min, max, first, last] = [stats.min, stats.max, stats.first, stats.last].map(value);
    let sum = match stats.sum {
        tacho_chunk::Sum::F64(sum) => value(Value::F64(sum)),
        tacho_chunk::Sum::Integer(sum) => sum.to_string(),
    };
    let who = if several { format!("member {}, ", info.member) } else { String::new() };
    let count = stats.count;
    writeln!(out, "{who}{count} numbers: min {min} max {max} first {first} last {last} sum {sum}").unwrap();
    if let Some(loss) = info.loss {
        writeln!(out, "{}", self::loss(&loss)).unwrap();
    }
}

fn loss(loss: &Loss) -> String {
    let method = loss.method.map_or("nothing", |method| method.name());
    let bound = match loss.bound {
        Tolerance::Absolute(bound) => format!("{bound:?}"),
        Tolerance::Relative(share) => format!("{share:?} of the value"),
    };
    let aggregation = loss.aggregation.map(|a| format!(", {} of {} ns", a.how.name(), a.step));
    format!("given up by {method}: {:?} of {bound}{}", loss.achieved, aggregation.unwrap_or_default())
}

/// One line per time, with the values of all members.
fn group(out: &mut String, chunk: &Chunk<'_>) {
    let read = |info: &MemberInfo| chunk.values(info.member).unwrap().unwrap();
    let columns: Vec<ValueColumn> = chunk.header().members.iter().map(read).collect();
    for (place, at) in chunk.times().unwrap().iter().enumerate() {
        let values: Vec<String> = columns.iter().map(|column| value(column.get(place).unwrap())).collect();
        writeln!(out, "{at} {}", values.join(", ")).unwrap();
    }
}

/// Floats with their bits, so that different NaN are distinguishable.
fn value(value: Value) -> String {
    match value {
        Value::F64(v) => format!("{v:?} ({:016x})", v.to_bits()),
        Value::I64(v) => format!("{v}i"),
        Value::U64(v) => format!("{v}u"),
    }
}

fn sample(out: &mut String, sample: Sample) {
    writeln!(out, "{} {}", sample.at, value(sample.value)).unwrap();
}

fn entry(out: &mut String, entry: &Entry) {
    match &entry.body {
        Body::Text(text) => writeln!(out, "{} text {text:?}", entry.at),
        Body::Bytes(bytes) => writeln!(out, "{} bytes {bytes:02x?}", entry.at),
    }
    .unwrap();
}

fn segment(out: &mut String, row: RowRef<'_>, operations: &[Operation]) {
    let name = |operation: u32| {
        let operation = &operations[operation as usize];
        format!("{} {:?}", operation.kind.name(), operation.name)
    };
    let parent = row.parent().map_or("none".to_owned(), |parent| parent.to_string());
    writeln!(out, "segment {} part {} base {:016x} parent {parent}", row.trace(), row.part(), row.base())
        .unwrap();
    if let Some(caller) = row.caller_index() {
        writeln!(out, "  caller {caller}").unwrap();
    }
    writeln!(out, "  at {} on {:?}, first call {}", row.start(), row.thread(), row.first_call()).unwrap();
    for ((operation, call), age) in row.shape().carried().iter().zip(row.ages()) {
        writeln!(out, "  carried {call} entered {age} ns before: {}", name(*operation)).unwrap();
    }
    for (kind, delta) in row.shape().events().iter().zip(row.deltas()) {
        match kind {
            EventKind::Enter(operation) => writeln!(out, "  +{delta} enter {}", name(*operation)),
            EventKind::Exit => writeln!(out, "  +{delta} exit"),
            EventKind::ExitFailed => writeln!(out, "  +{delta} failed"),
        }
        .unwrap();
    }
    for attribute in row.attributes() {
        writeln!(out, "  call {}: {:?} = {:?}", attribute.call, attribute.key, attribute.value.to_value())
            .unwrap();
    }
}
