//! Which services are there, and what does a request to each of them do?
//!
//! A route is a tree of calls. Some children of a call are called exactly once. Others are called a random number of times: some
//! zero times or once, others from once up to a maximum. So traces of one route are similar, but rarely equal.

use tacho_model::{OperationKind, Random};

/// Names of the services: 3 of the first layer, 9 of the second one, 18 of the third one.
const NAMES: [&str; 30] = [
    "web",
    "mobile",
    "partners",
    "catalogue",
    "checkout",
    "accounts",
    "search",
    "orders",
    "support",
    "shipping",
    "offers",
    "reviews",
    "prices",
    "stock",
    "payments",
    "baskets",
    "sessions",
    "invoices",
    "addresses",
    "images",
    "mails",
    "taxes",
    "returns",
    "vouchers",
    "carriers",
    "profiles",
    "ratings",
    "texts",
    "audits",
    "currencies",
];
/// Index after the last service of each layer.
const LAYERS: [usize; 3] = [3, 12, NAMES.len()];
const ROUTES: usize = 6;
const NOUNS: [&str; ROUTES] = ["items", "groups", "lists", "events", "rules", "reports"];
const METHODS: [&str; 7] = ["load", "find", "map", "check", "apply", "merge", "format"];
/// Methods that every request passes before its handler.
const FRONT: [&str; 4] =
    ["TraceFilter.doFilter", "SecurityFilter.doFilter", "Dispatcher.dispatch", "Controller.handle"];
/// Number of services that each service of the first two layers calls.
const CALLEES: usize = 3;
const DEPTH_MAX: usize = 2;

#[derive(Debug)]
pub struct Service {
    pub name: &'static str,
    /// Operation number `n` of a segment is entry `n - 1`.
    pub operations: Vec<(OperationKind, String)>,
    pub(super) routes: Vec<Node>,
}

/// A call in the tree of a route.
#[derive(Debug)]
pub(super) struct Node {
    /// Number of the operation, from 1.
    pub(super) operation: u32,
    /// Mean of the time that the call itself takes, ns.
    pub(super) self_ns: u64,
    pub(super) repeat: Repeat,
    /// Service and route of a request to another service.
    pub(super) remote: Option<(usize, usize)>,
    pub(super) may_fail: bool,
    pub(super) children: Vec<Self>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Repeat {
    Once,
    /// Once with this probability in percent, or not at all.
    Sometimes(u64),
    /// At least once, at most this number of times.
    Times(u64),
}

#[derive(Debug)]
pub struct Fleet {
    pub services: Vec<Service>,
}

impl Fleet {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self { services: (0..NAMES.len()).map(|index| service(index, &mut random)).collect() }
    }

    /// A random service of the first layer.
    pub(super) const fn entry(random: &mut Random) -> usize {
        random.below(LAYERS[0] as u64) as usize
    }
}

fn service(index: usize, random: &mut Random) -> Service {
    let layer = LAYERS.iter().filter(|first| **first <= index).count();
    let callees = match (LAYERS[layer], LAYERS.get(layer + 1)) {
        (first, Some(end)) => {
            (0..CALLEES).map(|nth| first + (index * CALLEES + nth) % (end - first)).collect()
        }
        (_, None) => vec![],
    };
    let mut growing = Growing { name: NAMES[index], callees, operations: vec![], random };
    let routes = (0..ROUTES).map(|route| growing.route(route)).collect();
    Service { name: growing.name, operations: growing.operations, routes }
}

/// A service whose routes are not complete.
struct Growing<'a> {
    name: &'static str,
    callees: Vec<usize>,
    operations: Vec<(OperationKind, String)>,
    random: &'a mut Random,
}

impl Growing<'_> {
    fn route(&mut self, route: usize) -> Node {
        let verb = ["GET", "GET", "POST", "GET", "PUT", "GET"][route];
        let operation = self
            .operation(OperationKind::HttpServer, format!("{verb} /{}/{}/{{id}}", self.name, NOUNS[route]));
        let mut inner = self.children(0);
        // Each service calls all its callees, so that requests to the first layer reach all services.
        let calls = if self.callees.is_empty() { 0 } else { 2 };
        for nth in route..route + calls {
            let callee = self.callees[nth % self.callees.len()];
            inner.push(Node { repeat: Repeat::Sometimes(50), ..self.client(callee, route) });
        }
        for method in FRONT.iter().rev() {
            let operation = self.operation(OperationKind::Method, format!("com.shop.web.{method}(Request)"));
            let node = Node { may_fail: false, ..self.node(operation, 10_000, inner) };
            inner = vec![Node { repeat: Repeat::Once, ..node }];
        }
        Node { repeat: Repeat::Once, may_fail: false, ..self.node(operation, 80_000, inner) }
    }

    fn children(&mut self, depth: usize) -> Vec<Node> {
        (0..1 + self.random.below(2)).map(|_| self.child(depth)).collect()
    }

    fn child(&mut self, depth: usize) -> Node {
        let noun = NOUNS[self.random.below(ROUTES as u64) as usize];
        match self.random.below(100) {
            0..20 => self.statement(noun),
            20..30 if !self.callees.is_empty() => {
                let callee = self.callees[self.random.below(self.callees.len() as u64) as usize];
                let route = self.random.below(ROUTES as u64) as usize;
                self.client(callee, route)
            }
            _ => {
                let verb = METHODS[self.random.below(METHODS.len() as u64) as usize];
                let name = format!("com.shop.{}.{noun}.Service.{verb}(long)", self.name);
                let operation = self.operation(OperationKind::Method, name);
                let children = if depth < DEPTH_MAX { self.children(depth + 1) } else { vec![] };
                self.node(operation, 2_000, children)
            }
        }
    }

    fn statement(&mut self, noun: &str) -> Node {
        let table = format!("{}_{noun}", self.name);
        let text = match self.random.below(6) {
            0 => format!("INSERT INTO {table} (id, name, at) VALUES (?, ?, ?)"),
            1 => format!("UPDATE {table} SET name = ?, at = ? WHERE id = ?"),
            2 => format!("SELECT count(*) FROM {table} WHERE at > ?"),
            3 => format!("SELECT id, name, at FROM {table} WHERE name = ? ORDER BY at DESC LIMIT ?"),
            _ => format!("SELECT id, name, at FROM {table} WHERE id = ?"),
        };
        let operation = self.operation(OperationKind::Database, text);
        self.node(operation, 400_000, vec![])
    }

    fn client(&mut self, callee: usize, route: usize) -> Node {
        let name = format!("GET http://{}/{}", NAMES[callee], NOUNS[route]);
        let operation = self.operation(OperationKind::HttpClient, name);
        Node { remote: Some((callee, route)), may_fail: false, ..self.node(operation, 30_000, vec![]) }
    }

    /// The mean time of the call is random, from 0.25 to 9.25 times `scale_ns`.
    fn node(&mut self, operation: u32, scale_ns: u64, children: Vec<Node>) -> Node {
        let self_ns = scale_ns / 4 + self.random.below(scale_ns) * self.random.below(10);
        let repeat = match self.random.below(100) {
            0..60 => Repeat::Once,
            60..85 => Repeat::Sometimes(10 + self.random.below(80)),
            _ => Repeat::Times(2 + self.random.below(6)),
        };
        Node { operation, self_ns, repeat, remote: None, may_fail: true, children }
    }

    /// Adds the operation if it is new. Returns its number.
    fn operation(&mut self, kind: OperationKind, name: String) -> u32 {
        let key = (kind, name);
        let known = self.operations.iter().position(|operation| *operation == key);
        let index = known.unwrap_or_else(|| {
            self.operations.push(key);
            self.operations.len() - 1
        });
        u32::try_from(index + 1).unwrap_or(u32::MAX)
    }
}
