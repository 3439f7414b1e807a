//! A web application as an agent reports it: eight to ten calls per request, several threads, some failures, and a request id per
//! request.

use std::sync::Arc;

use tacho_model::{
    Attribute, AttributeValue, Event, EventKind, Operation, OperationKind, Segment, TraceId, mix64,
};

use super::rng::Rng;

/// A call: its operation, its median self time in ns, and its callees.
struct Node(u32, f64, &'static [Node]);

const NAMES: [(OperationKind, &str); 14] = [
    (OperationKind::HttpServer, "GET /ads"),
    (OperationKind::HttpServer, "GET /ads/{id}"),
    (OperationKind::HttpServer, "POST /ads"),
    (OperationKind::Method, "com.example.board.Server.handle(org.eclipse.jetty.server.Request)"),
    (OperationKind::Method, "com.example.board.Board.list(int)"),
    (OperationKind::Method, "com.example.board.Board.find(long)"),
    (OperationKind::Method, "com.example.board.Board.post(com.example.board.Ad)"),
    (OperationKind::Method, "com.example.board.Database.query(java.lang.String)"),
    (OperationKind::ConnectionWait, "HikariPool-1"),
    (OperationKind::Database, "SELECT id, title, body FROM ad ORDER BY id DESC LIMIT ?"),
    (OperationKind::Database, "SELECT id, title, body FROM ad WHERE id = ?"),
    (OperationKind::Database, "INSERT INTO ad (title, body) VALUES (?, ?)"),
    (OperationKind::Method, "com.example.board.Ad.<init>(long,java.lang.String,java.lang.String)"),
    (OperationKind::Method, "com.example.board.View.render(java.util.List)"),
];

static LIST: Node = Node(
    0,
    20_000.0,
    &[Node(
        3,
        3_000.0,
        &[
            Node(
                4,
                1_500.0,
                &[Node(7, 2_000.0, &[Node(8, 900.0, &[]), Node(9, 1_200_000.0, &[])]), AD_1, AD_1, AD_1],
            ),
            Node(13, 60_000.0, &[]),
        ],
    )],
);
static FIND: Node = Node(
    1,
    18_000.0,
    &[Node(
        3,
        3_000.0,
        &[
            Node(5, 1_200.0, &[Node(7, 2_000.0, &[Node(8, 900.0, &[]), Node(10, 300_000.0, &[])]), AD_1]),
            Node(13, 15_000.0, &[]),
        ],
    )],
);
static POST: Node = Node(
    2,
    25_000.0,
    &[Node(
        3,
        3_000.0,
        &[Node(
            6,
            2_500.0,
            &[AD_1, Node(7, 2_000.0, &[Node(8, 900.0, &[]), Node(11, 4_000_000.0, &[])]), AD_1, AD_1],
        )],
    )],
);
const AD_1: Node = Node(12, 200.0, &[]);

pub fn operations() -> Vec<Operation> {
    NAMES.iter().map(|(kind, name)| Operation { kind: *kind, name: (*name).into() }).collect()
}

/// `count` requests at about 500 per second on 16 threads, as the agent of one process reports them.
pub fn requests(count: usize, seed: u64) -> Vec<Segment> {
    let mut rng = Rng(seed);
    let session = (rng.next(), rng.next());
    let threads: Vec<Arc<str>> = (0..16).map(|n| format!("qtp-{n}").into()).collect();
    let [status, method, id] = ["http.status", "http.method", "request.id"].map(Arc::<str>::from);
    let [get, post] = ["GET", "POST"].map(Arc::<str>::from);
    let mut clock = 1_750_000_000_000_000_000i64;
    let mut segment = |number: usize| {
        clock += rng.around(1_400_000.0, 0.8) as i64;
        let fails = rng.below(100) == 0;
        let root = [&LIST, &FIND, &FIND, &POST][rng.below(4) as usize];
        let base = session.1.wrapping_add((number as u64 + 1) << 24);
        let mut events = vec![];
        run(root, fails, &mut rng, &mut events);
        events[0].delta = 0;
        let verb = if root.0 == 2 { &post } else { &get };
        let code = if fails { 500 } else { 200 };
        let uuid = u128::from(rng.next()) << 64 | u128::from(rng.next());
        let attribute = |key: &Arc<str>, value| Attribute { call: 0, key: key.clone(), value };
        Segment {
            trace: TraceId(u128::from(session.0) << 64 | u128::from(mix64(base))),
            base,
            part: 0,
            parent: None,
            thread: threads[rng.below(16) as usize].clone(),
            start: clock,
            carried: vec![],
            first_call: 0,
            events,
            attributes: vec![
                attribute(&method, AttributeValue::Text(verb.clone())),
                attribute(&status, AttributeValue::Integer(code)),
                attribute(&id, AttributeValue::Text(uuid_text(uuid).into())),
            ],
        }
    };
    (0..count).map(&mut segment).collect()
}

/// Adds a task on another thread to each request: a segment of the same trace, which one of the request's calls caused.
pub fn with_tasks(requests: &[Segment], seed: u64) -> Vec<Segment> {
    let mut rng = Rng(seed);
    let first = requests.first().map_or(0, |request| request.base);
    let task = |(number, request): (usize, &Segment)| {
        let mut events = vec![];
        run(&POST.2[0], false, &mut rng, &mut events);
        events[0].delta = 0;
        Segment {
            base: first.wrapping_add((requests.len() + number) as u64 * (1 << 24)),
            parent: Some(request.span(rng.below(4) as u32)),
            thread: format!("pool-1-thread-{}", rng.below(8)).into(),
            start: request.start + rng.around(90_000.0, 0.5) as i64,
            events,
            attributes: vec![],
            ..request.clone()
        }
    };
    let tasks: Vec<Segment> = requests.iter().enumerate().map(task).collect();
    requests.iter().zip(&tasks).flat_map(|(request, task)| [request.clone(), task.clone()]).collect()
}

/// Adds many calls of a small method to each request, at varying places, so that all requests have different shapes.
pub fn with_loops(requests: &[Segment], seed: u64) -> Vec<Segment> {
    let mut rng = Rng(seed);
    let mut grow = |request: &Segment| {
        let mut events = vec![];
        for event in &request.events {
            events.push(*event);
            if matches!(event.kind, EventKind::Enter(_)) {
                for _ in 0..rng.below(20) {
                    events.push(Event { delta: rng.around(300.0, 0.4), kind: EventKind::Enter(12) });
                    events.push(Event { delta: rng.around(200.0, 0.4), kind: EventKind::Exit });
                }
            }
        }
        Segment { events, ..request.clone() }
    };
    requests.iter().map(&mut grow).collect()
}

pub fn uuid_text(id: u128) -> String {
    let hex = format!("{id:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Generates a call. Its self time is distributed over the gaps before, between and after its callees.
fn run(node: &Node, fails: bool, rng: &mut Rng, events: &mut Vec<Event>) {
    let gaps = node.2.len() as f64 + 1.0;
    let gap = node.1 / gaps;
    // The caller of this function sets `delta` afterwards.
    events.push(Event { delta: 0, kind: EventKind::Enter(node.0) });
    for child in node.2 {
        let at = events.len();
        run(child, fails, rng, events);
        events[at].delta = rng.around(gap, 0.4);
    }
    let kind = if fails { EventKind::ExitFailed } else { EventKind::Exit };
    events.push(Event { delta: rng.around(gap, 0.4), kind });
}
