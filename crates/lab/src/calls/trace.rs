//! Which segments does a trace have? A request makes the calls in the tree of its route (`fleet.rs`).

use tacho_ingest::wire::Secret;
use tacho_model::{Event, EventKind, Random, SpanId, TraceId, mix64};

use super::fleet::{Fleet, Node, Repeat};

pub const TRACE_CALLS_MAX: u32 = 200;
/// Least number of calls of a request to another service: the call of the client, the request itself, and the four methods
/// before its handler.
const REQUEST_CALLS: u32 = 6;
/// Number of processes of a service.
pub const INSTANCES: usize = 2;
pub const THREADS: u64 = 16;
const SEGMENT_BITS: u32 = 24;
/// Percentage of the traces whose id and parent come from a tracer outside of the fleet.
const OUTSIDE_PERCENT: u64 = 30;
/// Percentage of the requests without a parent that are answered with 401, 404 or 429.
const REFUSED_PERCENT: u64 = 3;
/// Of the calls that may fail, one in this number throws an exception.
const FAILS_ONE_IN: u64 = 4_000;
/// One request in this number is answered with 503.
const OVERLOADED_ONE_IN: u64 = 2_000;
/// A call takes time in several pieces (`pass`). One piece in this number takes `SLOW_FACTOR` times as long.
const SLOW_ONE_IN: u64 = 1_000;
const SLOW_FACTOR: f64 = 30.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKey {
    Status,
    RequestId,
    Exception,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeText {
    Integer(i64),
    Uuid([u8; 16]),
    /// Index of an exception in [`EXCEPTIONS`].
    Exception(usize),
}

pub const EXCEPTIONS: [&str; 3] = [
    "java.sql.SQLTimeoutException: no connection within 30000 ms",
    "java.lang.IllegalStateException: the item is not in stock",
    "java.lang.NullPointerException",
];

/// The calls of one thread for one trace.
#[derive(Clone, Debug)]
pub struct Segment {
    pub service: usize,
    pub instance: usize,
    /// Number of the segment in the session of its process.
    pub number: u64,
    /// Call `k` has the span id `mix64(base + k)`.
    pub base: u64,
    pub parent: Option<SpanId>,
    pub thread: u64,
    /// ns since the Unix epoch.
    pub start: i64,
    /// The numbers of operations start at 1.
    pub events: Vec<Event>,
    /// Number of the call, key, value.
    pub attributes: Vec<(u32, AttributeKey, AttributeText)>,
    calls: u32,
    now: i64,
    last: i64,
}

impl Segment {
    fn event(&mut self, kind: EventKind) {
        self.events.push(Event { delta: self.now.abs_diff(self.last), kind });
        self.last = self.now;
    }

    const fn span(&self, call: u32) -> SpanId {
        SpanId(mix64(self.base.wrapping_add(call as u64)))
    }
}

#[derive(Clone, Debug)]
pub struct Trace {
    pub id: TraceId,
    /// Whether the id is derived from session and number of the first segment. If not, the id comes from outside of the fleet.
    pub is_own: bool,
    pub request_id: [u8; 16],
    /// The first segment is that of the request that starts the trace.
    pub segments: Vec<Segment>,
    pub calls: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct When {
    /// ns since the Unix epoch.
    pub start: i64,
    pub length_ns: u64,
    /// Least number of calls in this time. The last trace is complete, so there may be a few more.
    pub calls: u64,
}

#[derive(Clone, Debug)]
pub struct Process {
    pub secret: Secret,
    pub session: u128,
    segments: u64,
}

/// All traces, in the order of their start except for random delays of up to 20 ms.
pub struct Traces {
    pub fleet: Fleet,
    /// [`INSTANCES`] processes of each service.
    pub processes: Vec<Process>,
    random: Random,
    when: When,
    calls: u64,
}

impl Traces {
    pub fn new(seed: u64, when: When) -> Self {
        let mut random = Random::new(mix64(seed ^ 0x6361_6c6c_7300));
        let fleet = Fleet::new(seed);
        let process = |random: &mut Random| {
            let secret = Secret(uuid(random));
            Process { secret, session: secret.session(), segments: 0 }
        };
        let processes = (0..fleet.services.len() * INSTANCES).map(|_| process(&mut random)).collect();
        Self { fleet, processes, random, when, calls: 0 }
    }

    /// Start of the next trace. Calls are spread evenly over the whole time, and each trace has a random delay.
    fn start(&mut self) -> i64 {
        let passed =
            u128::from(self.when.length_ns) * u128::from(self.calls) / u128::from(self.when.calls.max(1));
        let jitter = self.random.below(20_000_000);
        self.when
            .start
            .saturating_add_unsigned(u64::try_from(passed).unwrap_or(u64::MAX))
            .saturating_add_unsigned(jitter)
    }
}

impl Iterator for Traces {
    type Item = Trace;

    fn next(&mut self) -> Option<Trace> {
        if self.calls >= self.when.calls {
            return None;
        }
        let start = self.start();
        let Self { fleet, processes, random, .. } = self;
        let outside = random.below(100) < OUTSIDE_PERCENT;
        let parent = outside.then(|| SpanId(random.next() | 1));
        let request_id = uuid(random);
        let (service, route) = (Fleet::entry(random), random.below(6) as usize);
        let mut playing = Playing { fleet, processes, random, segments: vec![], left: TRACE_CALLS_MAX };
        playing.serve((service, route), start, parent);
        let (mut segments, calls) = (playing.segments, TRACE_CALLS_MAX - playing.left);
        let root = segments.first_mut()?;
        root.attributes.push((0, AttributeKey::RequestId, AttributeText::Uuid(request_id)));
        let high = self.processes[root.service * INSTANCES + root.instance].session >> 64;
        let own = high << 64 | u128::from(mix64(root.base));
        let id = if outside { u128::from_be_bytes(uuid(&mut self.random)) | 1 } else { own };
        self.calls += u64::from(calls);
        Some(Trace { id: TraceId(id), is_own: !outside, request_id, segments, calls })
    }
}

fn uuid(random: &mut Random) -> [u8; 16] {
    (u128::from(random.next()) << 64 | u128::from(random.next())).to_be_bytes()
}

/// A trace in progress.
struct Playing<'a> {
    fleet: &'a Fleet,
    processes: &'a mut [Process],
    random: &'a mut Random,
    segments: Vec<Segment>,
    /// Calls that the trace may still make.
    left: u32,
}

impl Playing<'_> {
    /// Returns time and status of the response.
    fn serve(&mut self, (service, route): (usize, usize), start: i64, parent: Option<SpanId>) -> (i64, i64) {
        let fleet = self.fleet;
        let node = &fleet.services[service].routes[route];
        let at = self.open(service, start, parent);
        self.enter(at, node.operation);
        self.pass(at, node.self_ns / 2);
        let status = if self.random.one_in(OVERLOADED_ONE_IN) {
            // The calls before the handler fail.
            self.front(at, &node.children, true);
            503
        } else if parent.is_none() && self.random.below(100) < REFUSED_PERCENT {
            self.front(at, &node.children, false);
            [401, 404, 404, 429][self.random.below(4) as usize]
        } else if self.all(at, &node.children) {
            500
        } else {
            200
        };
        self.pass(at, node.self_ns / 2);
        self.exit(at, status >= 500);
        let segment = &mut self.segments[at];
        segment.attributes.push((0, AttributeKey::Status, AttributeText::Integer(status)));
        (segment.now, status)
    }

    fn open(&mut self, service: usize, start: i64, parent: Option<SpanId>) -> usize {
        let instance = self.random.below(INSTANCES as u64) as usize;
        let process = &mut self.processes[service * INSTANCES + instance];
        process.segments += 1;
        let number = process.segments;
        let base = (process.session as u64).wrapping_add(number << SEGMENT_BITS);
        let thread = self.random.below(THREADS);
        let (events, attributes) = (vec![], vec![]);
        let segment = Segment {
            service,
            instance,
            number,
            base,
            parent,
            thread,
            start,
            events,
            attributes,
            calls: 0,
            now: start,
            last: start,
        };
        self.segments.push(segment);
        self.segments.len() - 1
    }

    /// The calls of a request that does not reach its handler.
    fn front(&mut self, at: usize, nodes: &[Node], fails: bool) {
        for node in nodes.iter().filter(|node| !node.may_fail && node.remote.is_none()) {
            self.enter(at, node.operation);
            self.pass(at, node.self_ns);
            self.front(at, &node.children, fails);
            self.exit(at, fails);
        }
    }

    /// Makes the calls in order, up to a failure that the caller does not handle. Returns whether there was such a failure.
    fn all(&mut self, at: usize, nodes: &[Node]) -> bool {
        nodes.iter().any(|node| {
            let times = match node.repeat {
                Repeat::Once => 1,
                Repeat::Sometimes(percent) => u64::from(self.random.below(100) < percent),
                Repeat::Times(max) => 1 + self.random.below(max),
            };
            (0..times).any(|_| self.call(at, node))
        })
    }

    /// Returns whether the call failed and its caller does not handle the failure.
    fn call(&mut self, at: usize, node: &Node) -> bool {
        let needed = if node.remote.is_some() { REQUEST_CALLS } else { 1 };
        if self.left < needed {
            return false;
        }
        let call = self.enter(at, node.operation);
        self.pass(at, node.self_ns / 2);
        let failed = match node.remote {
            Some(remote) => self.request(at, call, remote),
            None => self.all(at, &node.children) || (node.may_fail && self.throw(at, call)),
        };
        self.pass(at, node.self_ns / 2);
        self.exit(at, failed);
        // The caller handles half of the failures of other services.
        failed && !(node.remote.is_some() && self.random.one_in(2))
    }

    fn request(&mut self, at: usize, call: u32, remote: (usize, usize)) -> bool {
        let parent = self.segments[at].span(call);
        self.pass(at, 200_000);
        let (end, status) = self.serve(remote, self.segments[at].now, Some(parent));
        self.segments[at].now = end;
        self.pass(at, 200_000);
        self.segments[at].attributes.push((call, AttributeKey::Status, AttributeText::Integer(status)));
        status >= 500
    }

    fn throw(&mut self, at: usize, call: u32) -> bool {
        let thrown = self.random.one_in(FAILS_ONE_IN);
        if thrown {
            let exception = AttributeText::Exception(self.random.below(EXCEPTIONS.len() as u64) as usize);
            self.segments[at].attributes.push((call, AttributeKey::Exception, exception));
        }
        thrown
    }

    /// Returns the number of the call.
    fn enter(&mut self, at: usize, operation: u32) -> u32 {
        self.left -= 1;
        let segment = &mut self.segments[at];
        segment.event(EventKind::Enter(operation));
        segment.calls += 1;
        segment.calls - 1
    }

    fn exit(&mut self, at: usize, failed: bool) {
        self.segments[at].event(if failed { EventKind::ExitFailed } else { EventKind::Exit });
    }

    /// Lets time pass: exponentially distributed, rarely much longer.
    fn pass(&mut self, at: usize, mean_ns: u64) {
        let uniform = (self.random.next() >> 11) as f64 / (1u64 << 53) as f64;
        let factor = if self.random.one_in(SLOW_ONE_IN) { SLOW_FACTOR } else { 1.0 };
        let ns = -(1.0 - uniform).ln() * factor * mean_ns as f64;
        self.segments[at].now = self.segments[at].now.saturating_add(ns as i64 + 20);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    const WHEN: When = When { start: 1_000, length_ns: 60_000_000_000, calls: 200_000 };

    #[test]
    fn traces_have_5_to_200_calls_and_most_have_several_segments() {
        let traces: Vec<Trace> = Traces::new(1, WHEN).collect();
        let calls: Vec<u32> = traces.iter().map(|trace| trace.calls).collect();
        assert!(calls.iter().all(|calls| (5..=200).contains(calls)), "{calls:?}");
        assert!(calls.iter().any(|calls| *calls < 10) && calls.iter().any(|calls| *calls > 150));
        let services: HashSet<usize> = traces.iter().flat_map(|t| &t.segments).map(|s| s.service).collect();
        assert_eq!(services.len(), 30);
        assert!(traces.iter().filter(|trace| trace.segments.len() > 1).count() * 2 > traces.len());
        assert!(traces.iter().any(|trace| trace.is_own) && traces.iter().any(|trace| !trace.is_own));
        let ids: HashSet<TraceId> = traces.iter().map(|trace| trace.id).collect();
        assert_eq!(ids.len(), traces.len());
    }

    #[test]
    fn segments_are_valid_and_their_parents_are_calls_of_the_trace() {
        let fleet = Fleet::new(2);
        for trace in Traces::new(2, WHEN).take(2_000) {
            let mut spans = HashMap::new();
            for segment in &trace.segments {
                let mut open = 0;
                for event in &segment.events {
                    match event.kind {
                        EventKind::Enter(operation) => {
                            assert!(
                                (1..=fleet.services[segment.service].operations.len())
                                    .contains(&(operation as usize))
                            );
                            open += 1;
                        }
                        _ => open -= 1,
                    }
                    assert!(open >= 0);
                }
                assert_eq!(open, 0);
                spans.extend((0..segment.calls).map(|call| (segment.span(call), segment.service)));
            }
            assert_eq!(spans.len(), trace.calls as usize);
            assert_eq!(trace.is_own, trace.segments[0].parent.is_none());
            for segment in &trace.segments[1..] {
                assert!(segment.parent.is_some_and(|parent| spans.contains_key(&parent)));
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_traces_again_and_another_seed_gives_others() {
        let text = |seed| format!("{:?}", Traces::new(seed, WHEN).take(50).collect::<Vec<_>>());
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }

    #[test]
    fn some_calls_fail_and_some_requests_are_refused() {
        let mut statuses = HashSet::new();
        let mut exceptions = 0;
        for trace in Traces::new(3, WHEN) {
            for (_, _, value) in trace.segments.iter().flat_map(|segment| &segment.attributes) {
                match value {
                    AttributeText::Integer(status) => {
                        statuses.insert(*status);
                    }
                    AttributeText::Exception(_) => exceptions += 1,
                    AttributeText::Uuid(_) => {}
                }
            }
        }
        assert_eq!(statuses, HashSet::from([200, 401, 404, 429, 500, 503]));
        assert!(exceptions > 10);
    }
}
