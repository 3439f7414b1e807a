//! Tests rules for probes over real sockets: the lists that each agent gets, and the handling of its responses.

#[path = "support/agent.rs"]
mod agent;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::{Agent, controlled, hello};
use tacho_ingest::wire::{
    ErrorCode, PROBE_PATTERN_BYTES_MAX, PROBE_RULES_MAX, Ping, ProbeState, Probed, RuleOutcome, ServerFrame,
};
use tacho_model::Clock;
use tacho_server::clock::SystemClock;
use tacho_server::control::{Added, Control, Standing, Wanted};
use tacho_server::listen::native::{self, Native};
use tacho_server::metrics::Metrics;
use tacho_server::shutdown::{self, Trigger};
use tacho_store::{MemoryDriver, Options, Store};
use tokio::runtime::Runtime;

struct Running {
    runtime: Runtime,
    at: SocketAddr,
    metrics: Arc<Metrics>,
    control: Arc<Control>,
    _trigger: Trigger,
    _directory: tempfile::TempDir,
}

fn start() -> Running {
    let runtime = Runtime::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::default());
    let control = Arc::new(Control::new(metrics.clone()));
    let clock = Arc::new(SystemClock);
    let (trigger, shutdown) = shutdown::channel();
    let driver = Arc::new(MemoryDriver::new());
    let open = Store::open(driver, directory.path(), Options::default(), clock.clone());
    let store = runtime.block_on(open).unwrap();
    let socket = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let at = socket.local_addr().unwrap();
    let native = Native::new(store, metrics.clone(), clock, control.clone());
    runtime.spawn(native::serve((socket, None), native, 64, shutdown));
    Running { runtime, at, metrics, control, _trigger: trigger, _directory: directory }
}

impl Running {
    fn agent(&self, session: u128, service: &str, instance: &str) -> Agent {
        Agent::connect(self.at, &controlled(session, service, instance)).expect("server greets")
    }

    fn add(&self, service: &str, state: ProbeState, pattern: &str) -> Added {
        let (service, pattern) = (service.to_owned(), pattern.to_owned());
        let wanted = Wanted { service, instance: String::new(), state, pattern, keep: false };
        self.runtime.block_on(self.control.add(wanted, SystemClock.now())).unwrap()
    }

    fn remove(&self, id: u64) {
        assert_eq!(self.runtime.block_on(self.control.remove(vec![id])).unwrap(), 1);
    }

    fn standings(&self) -> Vec<(String, Standing, bool)> {
        let now = SystemClock.now();
        let agents = self.control.agents(now).into_iter();
        agents.map(|(a, standing)| (a.identity.service.clone(), standing, a.is_connected())).collect()
    }

    /// Polls, because the task of the connection handles responses asynchronously.
    fn wait_until(&self, what: &str, ready: impl Fn() -> bool) {
        let begun = Instant::now();
        while !ready() {
            assert!(begun.elapsed() < Duration::from_secs(60), "timeout while waiting for {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Receives the next list: its revision, and state and pattern of each rule.
fn next_rules(agent: &mut Agent) -> (u64, Vec<(ProbeState, String)>) {
    let probes = agent.probes();
    (probes.revision, probes.rules.into_iter().map(|rule| (rule.state, rule.pattern)).collect())
}

#[test]
fn each_agent_gets_its_rules_after_the_greeting_and_after_changes() {
    let server = start();
    let mut shop = server.agent(1, "shop", "a");
    let mut cart = server.agent(2, "cart", "");
    let mut deaf = Agent::connect(server.at, &hello(3)).unwrap();
    assert_eq!(next_rules(&mut shop).1, [], "an empty list must be sent, too");
    assert_eq!(next_rules(&mut cart).1, []);

    let all = server.add("", ProbeState::Off, "com.shop..*");
    assert_eq!((all.rule.id, all.agents, all.deaf), (1, 2, 1));
    let own = server.add("shop", ProbeState::Aggregate, "com.shop.Board.größe");
    assert_eq!((own.rule.id, own.agents, own.deaf), (2, 1, 1));
    let first = (ProbeState::Off, "com.shop..*".to_owned());
    let second = (ProbeState::Aggregate, "com.shop.Board.größe".to_owned());
    assert_eq!(next_rules(&mut cart).1, std::slice::from_ref(&first));
    let newest = loop {
        let (revision, rules) = next_rules(&mut shop);
        if rules.len() == 2 {
            assert_eq!(rules, [first.clone(), second.clone()]);
            break revision;
        }
    };
    server.remove(1);
    let (revision, rules) = next_rules(&mut shop);
    assert!(revision > newest);
    assert_eq!(rules, std::slice::from_ref(&second));
    assert_eq!(next_rules(&mut cart).1, []);

    let mut again = server.agent(1, "shop", "a");
    assert_eq!(next_rules(&mut again).1, [second], "the list must be sent after each greeting");
    // An agent without support for rules gets none.
    deaf.ping(Ping::default());
    assert!(matches!(deaf.receive(), Some(ServerFrame::Pong(_))));
    assert_eq!(server.metrics.control.sent.with(["cart"]).get(), 3);
}

#[test]
fn an_agent_that_answered_follows_until_the_rules_change() {
    let server = start();
    let mut agent = server.agent(1, "shop", "a");
    let (revision, _) = next_rules(&mut agent);
    let standing = |standing, connected| vec![("shop".to_owned(), standing, connected)];
    assert_eq!(server.standings(), standing(Standing::Waiting, true));
    agent.probed(Probed { revision, on: 7, ..Probed::default() });
    server.wait_until("the answer", || server.standings() == standing(Standing::Follows, true));

    server.add("", ProbeState::Off, "a.*");
    let (revision, _) = next_rules(&mut agent);
    assert_eq!(server.standings(), standing(Standing::Waiting, true));
    agent.probed(Probed { revision: revision - 1, on: 7, ..Probed::default() });
    server.wait_until("the count of stale answers", || {
        server.metrics.control.answers.with(["stale"]).get() == 1
    });
    let outcome = |rule, matched, fault: &str| RuleOutcome { rule, matched, fault: fault.to_owned() };
    let rules = vec![outcome(0, 4, ""), outcome(1, 5, "no such rule")];
    agent.probed(Probed { revision, on: 3, off: 4, rules, ..Probed::default() });
    server.wait_until("the answer", || server.standings() == standing(Standing::Follows, true));
    agent.ping(Ping { executions_dropped: 9, ..Ping::default() });
    assert!(matches!(agent.receive(), Some(ServerFrame::Pong(_))));

    let [(shown, _)] = &server.control.agents(SystemClock.now())[..] else { panic!("not one agent") };
    let report = shown.report.clone().unwrap();
    assert_eq!((report.on, report.off, report.aggregated), (3, 4, 0));
    assert_eq!(
        report.rules,
        [(1, 4, String::new())],
        "the report must name rules by id, without those that were never sent"
    );
    assert_eq!(shown.totals.executions_dropped, 9);

    assert_eq!(server.metrics.control.agents.with(["shop"]).get(), 1);
    agent.bye();
    assert_eq!(agent.receive(), None);
    server.wait_until("the disconnect of the agent", || {
        server.standings() == standing(Standing::Follows, false)
    });
    assert_eq!(server.metrics.control.agents.with(["shop"]).get(), 0);
}

#[test]
fn an_answer_over_its_limits_ends_the_connection() {
    let server = start();
    let mut agent = server.agent(1, "shop", "");
    let (revision, _) = next_rules(&mut agent);
    let outcome = RuleOutcome { rule: 0, matched: 0, fault: String::new() };
    agent.probed(Probed { revision, rules: vec![outcome; PROBE_RULES_MAX + 1], ..Probed::default() });
    let Some(ServerFrame::Error { code, message }) = agent.receive() else { panic!("no error was sent") };
    assert_eq!(code, ErrorCode::Malformed as u64);
    assert!(message.contains("more rules than allowed at byte"), "{message}");
}

#[test]
fn an_agent_that_does_not_read_delays_no_other_and_gets_the_newest_list() {
    let server = start();
    let pattern = |nth: usize| format!("{nth:0>PROBE_PATTERN_BYTES_MAX$}");
    for nth in 0..PROBE_RULES_MAX - 1 {
        server.add("", ProbeState::Off, &pattern(nth));
    }
    let mut slow = server.agent(1, "slow", "");
    let mut quick = server.agent(2, "quick", "");
    assert_eq!(next_rules(&mut quick).1.len(), PROBE_RULES_MAX - 1);
    let changes = 100;
    for _ in 0..changes / 2 {
        let id = server.add("", ProbeState::On, "last.*").rule.id;
        assert_eq!(next_rules(&mut quick).1.last().unwrap().1, "last.*");
        server.remove(id);
        assert_eq!(next_rules(&mut quick).1.len(), PROBE_RULES_MAX - 1);
    }
    let newest = server.add("", ProbeState::On, "newest.*").rule;
    next_rules(&mut quick);
    // The lists have 1 MB each. Only the lists that fit into the socket buffers were sent before the newest list.
    let mut lists = 1;
    let last = loop {
        let (number, rules) = next_rules(&mut slow);
        assert_eq!(number, lists, "the lists of a connection must be numbered from 1");
        if rules.last().unwrap().1 == newest.pattern {
            break rules;
        }
        lists += 1;
    };
    assert_eq!(last.len(), PROBE_RULES_MAX);
    assert!(lists < changes / 2, "{lists} lists of {changes} were sent");
}
