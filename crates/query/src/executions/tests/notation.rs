//! Traces as text. NS, AGE and DELTA are in ns:
//!
//! ```text
//! SERVICE HOST THREAD trace=HEX base=N [part=N] [first=N] [at=NS] [parent=BASE+CALL]
//!   ~ AGE CALL KIND NAME        a carried call
//!   DELTA > KIND NAME           enter
//!   DELTA <                     exit
//!   DELTA !                     exit of a call that failed
//!   @CALL KEY = VALUE           attribute; a number becomes an integer
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use tacho_chunk::ExecutionBlock;
use tacho_model::{
    Attribute, AttributeValue, Carried, Event, EventKind, Labels, Operation, OperationKind, Segment, SpanId,
    TraceId, mix64,
};

use crate::executions::SourceBlock;

/// Blocks of the segments in `text`: one for each service and host.
pub fn blocks(text: &str) -> Vec<SourceBlock> {
    let mut blocks: BTreeMap<(String, String), ExecutionBlock> = BTreeMap::new();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    while let Some(head) = lines.next() {
        let mut words = head.split_whitespace();
        let [service, host, thread] = [(); 3].map(|()| words.next().expect("service, host, thread"));
        let mut operations = vec![];
        let mut segment = head_of(thread, words);
        while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
            add(&mut segment, &mut operations, line.trim());
        }
        assert_eq!(segment.check(operations.len()), Ok(()), "{head}");
        blocks.entry((service.into(), host.into())).or_default().push(&segment, &operations);
    }
    let labels = |(service, host)| Labels::new([("service".to_owned(), service), ("host".to_owned(), host)]);
    let source =
        |(names, block)| SourceBlock { labels: Arc::new(labels(names).unwrap()), block: Arc::new(block) };
    blocks.into_iter().map(source).collect()
}

fn head_of<'a>(thread: &str, words: impl Iterator<Item = &'a str>) -> Segment {
    let mut segment = Segment {
        trace: TraceId(0),
        base: 0,
        part: 0,
        parent: None,
        thread: thread.into(),
        start: 0,
        carried: vec![],
        first_call: 0,
        events: vec![],
        attributes: vec![],
    };
    for word in words {
        let (key, value) = word.split_once('=').expect("key=value");
        let number = || value.parse().unwrap();
        match key {
            "trace" => segment.trace = TraceId(u128::from_str_radix(value, 16).unwrap()),
            "base" => segment.base = value.parse().unwrap(),
            "part" => segment.part = number(),
            "first" => segment.first_call = number(),
            "at" => segment.start = value.parse().unwrap(),
            "parent" => {
                let (base, call) = value.split_once('+').unwrap();
                let span = base.parse::<u64>().unwrap() + call.parse::<u64>().unwrap();
                segment.parent = Some(SpanId(mix64(span)));
            }
            other => panic!("unknown key {other}"),
        }
    }
    segment
}

fn add(segment: &mut Segment, operations: &mut Vec<Operation>, line: &str) {
    if let Some(attribute) = line.strip_prefix('@') {
        let (call, rest) = attribute.split_once(' ').unwrap();
        let (key, value) = rest.split_once(" = ").unwrap();
        let text = || AttributeValue::Text(value.into());
        let value = value.parse().map_or_else(|_| text(), AttributeValue::Integer);
        return segment.attributes.push(Attribute { call: call.parse().unwrap(), key: key.into(), value });
    }
    let mut operation = |kind: &str, name: &str| {
        let kinds = (1..=6).filter_map(OperationKind::from_byte);
        let kind = kinds.into_iter().find(|k| k.name() == kind).expect("a kind of operation");
        operations.push(Operation { kind, name: name.into() });
        operations.len() as u32 - 1
    };
    let words: Vec<&str> = line.splitn(5, ' ').collect();
    if let ["~", age, call, kind, name] = words[..] {
        let (age, call) = (age.parse().unwrap(), call.parse().unwrap());
        return segment.carried.push(Carried { operation: operation(kind, name), call, age });
    }
    let words: Vec<&str> = line.splitn(4, ' ').collect();
    let kind = match words[1..] {
        [">", kind, name] => EventKind::Enter(operation(kind, name)),
        ["<"] => EventKind::Exit,
        ["!"] => EventKind::ExitFailed,
        _ => panic!("unknown line {line}"),
    };
    segment.events.push(Event { delta: words[0].parse().unwrap(), kind });
}
