//! The agents that are or were connected, the rules sent to each, and their responses.

use std::collections::HashMap;
use std::sync::Arc;

use tacho_ingest::wire::{Moved, PROBED_TEXT_BYTES_MAX, Ping, Probed};
use tacho_model::Timestamp;

use super::numbers::Numbers;

/// Limit on the agents in the list. Above it, the disconnected agents that were heard longest ago are removed. Connected agents
/// are never removed.
const AGENTS_MAX: usize = 4_096;
/// How long a disconnected agent stays in the list after it was last heard ([`Agent::heard`]), ns.
const REMEMBERED_NS: i64 = 3_600_000_000_000;
/// Limit on the bytes that are kept of each value of HELLO, enough to distinguish processes.
const PAIR_BYTES_MAX: usize = 512;
/// Limit on the total bytes of the reports of all agents. A report that would exceed the limit is kept without its lists.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Time after which an agent that has not responded to sent rules counts as silent, ns.
const ANSWER_TIME_MAX_NS: i64 = 10_000_000_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    pub service: String,
    pub host: String,
    pub instance: String,
    pub runtime: String,
    pub agent: String,
}

impl Identity {
    pub fn new<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Self {
        let kept = |key| get(key).map_or_else(String::new, |value| cut(value, PAIR_BYTES_MAX).to_owned());
        Self {
            service: kept("service"),
            host: kept("host"),
            instance: kept("instance"),
            runtime: kept("runtime"),
            agent: kept("agent"),
        }
    }
}

/// Whether an agent supports rules, and which rules were sent to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// The agent's HELLO did not announce support for rules.
    None,
    /// No list of rules was sent yet on this connection.
    Unsent,
    Sent {
        /// Number of the list on this connection, from 1.
        list: u64,
        /// The ids of the sent rules, in order.
        rules: Arc<[u64]>,
        at: Timestamp,
    },
}

/// Whether an agent has applied its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The agent does not support rules.
    Deaf,
    /// New rules may have to be sent, or the time for a response is not over.
    Waiting,
    /// Rules were sent, and the agent has not responded in time.
    Silent,
    /// The agent has responded to the latest rules.
    Follows,
}

impl Standing {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deaf => "none",
            Self::Waiting => "waiting",
            Self::Silent => "silent",
            Self::Follows => "follows",
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    pub at: Timestamp,
    /// Number of the list that the report is about.
    pub list: u64,
    /// Number of methods that are recorded.
    pub on: u64,
    /// Number of methods that are counted instead of recorded.
    pub aggregated: u64,
    /// Number of methods that a rule or the agent switched off.
    pub off: u64,
    /// For each rule: the id, the number of methods that it decides, and the reason why it cannot be applied (else empty).
    pub rules: Vec<(u64, u64, String)>,
    /// Operations that the agent itself switched to aggregation or off.
    pub moved: Vec<Moved>,
    /// Whether `rules` and `moved` were omitted to save memory.
    pub cut: bool,
}

impl Report {
    pub fn bytes(&self) -> usize {
        let rules: usize = self.rules.iter().map(|rule| size_of_val(rule) + rule.2.len()).sum();
        let moved = |moved: &Moved| size_of_val(moved) + moved.operation.len() + moved.reason.len();
        size_of::<Self>() + rules + self.moved.iter().map(moved).sum::<usize>()
    }

    pub fn rule(&self, id: u64) -> Option<(u64, &str)> {
        self.rules.iter().find(|rule| rule.0 == id).map(|(_, matched, fault)| (*matched, fault.as_str()))
    }
}

#[derive(Clone, Debug)]
pub struct Agent {
    /// Never shown. An older agent has no secret, so a client with its session id can send frames as this agent.
    session: u128,
    /// The public id of the agent, which does not reveal the session id. It is the same for all connections of a session until
    /// the server restarts.
    pub number: u64,
    pub identity: Identity,
    pub control: Control,
    pub since: Timestamp,
    /// Time of the last PING or PROBED, or of connecting.
    pub heard: Timestamp,
    /// The value of `heard` when the agent disconnected. `None` while the agent is connected.
    pub left: Option<Timestamp>,
    /// The last PING on this connection. Zeros before the first.
    pub totals: Ping,
    pub report: Option<Arc<Report>>,
    /// The revision of the rules when the server last checked whether the agent needs a new list.
    compared: u64,
    /// Number of lists sent on this connection. The agent gets this number instead of the revision. The revision would
    /// reveal how often the rules of all services changed.
    lists: u64,
    entry: u64,
}

impl Agent {
    pub fn takes_rules(&self) -> bool {
        self.control != Control::None
    }

    pub fn is_connected(&self) -> bool {
        self.left.is_none()
    }

    pub fn standing(&self, now: Timestamp, revision: u64) -> Standing {
        match &self.control {
            Control::None => Standing::Deaf,
            Control::Unsent => Standing::Waiting,
            Control::Sent { list, at, .. } => {
                let fits = |report: &Arc<Report>| report.list == *list && report.at >= *at;
                let answered = self.report.as_ref().is_some_and(fits);
                match now.saturating_sub(*at) {
                    _ if answered && self.compared == revision => Standing::Follows,
                    _ if answered => Standing::Waiting,
                    waited if waited < ANSWER_TIME_MAX_NS => Standing::Waiting,
                    _ => Standing::Silent,
                }
            }
        }
    }

    /// Records that these rules are being sent. Returns the number of the list, or `None` if the last list sent on this
    /// connection has the same rules.
    pub(super) fn send(&mut self, revision: u64, rules: Arc<[u64]>, at: Timestamp) -> Option<u64> {
        self.compared = revision;
        if matches!(&self.control, Control::Sent { rules: sent, .. } if *sent == rules) {
            return None;
        }
        self.lists += 1;
        self.control = Control::Sent { list: self.lists, rules, at };
        Some(self.lists)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Taken,
    /// The response is not to the latest list, or a newer connection has taken over the session.
    Stale,
    Cut,
}

impl Outcome {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Stale => "stale",
            Self::Cut => "cut",
        }
    }
}

#[derive(Default)]
pub(super) struct Agents {
    by_session: HashMap<u128, Agent>,
    entries: u64,
    numbers: Numbers,
    bytes: usize,
}

impl Agents {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.by_session.values()
    }

    pub(super) fn connected(&self) -> impl Iterator<Item = &Agent> {
        self.iter().filter(|agent| agent.is_connected())
    }

    /// Adds an agent that has connected. Returns the number of this connection.
    pub(super) fn enter(
        &mut self,
        session: u128,
        identity: Identity,
        takes_rules: bool,
        now: Timestamp,
    ) -> u64 {
        self.entries += 1;
        let entry = self.entries;
        let control = if takes_rules { Control::Unsent } else { Control::None };
        // The report of an earlier connection is shown until the agent sends a new one.
        let earlier = self.by_session.remove(&session);
        let number = self.numbers.of(session);
        let report = earlier.and_then(|earlier| earlier.report);
        let (since, heard, totals) = (now, now, Ping::default());
        let (left, compared, lists) = (None, 0, 0);
        let agent = Agent {
            session,
            number,
            identity,
            control,
            since,
            heard,
            left,
            totals,
            report,
            compared,
            lists,
            entry,
        };
        self.by_session.insert(session, agent);
        entry
    }

    /// The agent of a connection, unless a newer connection has taken over its session.
    pub(super) fn get(&mut self, session: u128, entry: u64) -> Option<&mut Agent> {
        self.by_session.get_mut(&session).filter(|agent| agent.entry == entry)
    }

    /// Keeps a response only if it is about the latest rules.
    pub(super) fn answer(&mut self, session: u128, entry: u64, probed: Probed, now: Timestamp) -> Outcome {
        let held = self.bytes;
        let Some(agent) = self.get(session, entry) else { return Outcome::Stale };
        agent.heard = now;
        let sent = match &agent.control {
            Control::Sent { list, rules, .. } if *list == probed.revision => rules,
            _ => return Outcome::Stale,
        };
        let mut report = report(probed, sent, now);
        let others = held - agent.report.as_deref().map_or(0, Report::bytes);
        if others + report.bytes() > ANSWER_BYTES_MAX {
            report = Report { rules: Vec::new(), moved: Vec::new(), cut: true, ..report };
        }
        let outcome = if report.cut { Outcome::Cut } else { Outcome::Taken };
        let bytes = others + report.bytes();
        agent.report = Some(Arc::new(report));
        self.bytes = bytes;
        outcome
    }

    /// Removes disconnected agents that were last heard over an hour ago. Above the limit, also removes the disconnected agents
    /// that were heard longest ago. Returns the number of removed agents.
    pub(super) fn forget(&mut self, now: Timestamp) -> u64 {
        let before = self.by_session.len();
        let long_ago =
            |agent: &Agent| agent.left.is_some_and(|left| now.saturating_sub(left) > REMEMBERED_NS);
        let mut bytes = self.bytes;
        self.by_session.retain(|_, agent| {
            let stays = !long_ago(agent);
            bytes -= if stays { 0 } else { agent.report.as_deref().map_or(0, Report::bytes) };
            stays
        });
        while self.by_session.len() > AGENTS_MAX {
            let away =
                self.by_session.values().filter_map(|agent| Some((agent.left?, agent.entry, agent.session)));
            let Some((.., oldest)) = away.min() else { break };
            let gone = self.by_session.remove(&oldest);
            bytes -= gone.and_then(|agent| agent.report).as_deref().map_or(0, Report::bytes);
        }
        self.bytes = bytes;
        (before - self.by_session.len()) as u64
    }
}

/// Replaces the positions of the sent rules with their ids, and truncates texts.
fn report(probed: Probed, sent: &[u64], now: Timestamp) -> Report {
    let Probed { revision: list, on, aggregated, off, rules, moved } = probed;
    let text = |text: String| cut(&text, PROBED_TEXT_BYTES_MAX).to_owned();
    let rules = rules.into_iter().filter_map(|outcome| {
        let id = usize::try_from(outcome.rule).ok().and_then(|at| sent.get(at))?;
        Some((*id, outcome.matched, text(outcome.fault)))
    });
    let moved = moved.into_iter().map(|moved| Moved {
        operation: text(moved.operation),
        reason: text(moved.reason),
        since: moved.since,
    });
    let (rules, moved) = (rules.collect(), moved.collect());
    Report { at: now, list, on, aggregated, off, rules, moved, cut: false }
}

/// The longest prefix of the text with at most this many bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_ingest::wire::RuleOutcome;

    const HOUR: i64 = REMEMBERED_NS;

    fn identity(service: &str) -> Identity {
        Identity { service: service.into(), ..Identity::default() }
    }

    fn probed(revision: u64, faults: usize, bytes: usize) -> Probed {
        let outcome = |rule| RuleOutcome { rule, matched: 3, fault: "ä".repeat(bytes / 2) };
        Probed { revision, on: 5, rules: (0..faults as u64).map(outcome).collect(), ..Probed::default() }
    }

    #[test]
    fn a_response_counts_only_for_the_latest_rules() {
        let mut agents = Agents::default();
        let entry = agents.enter(7, identity("shop"), true, 0);
        assert_eq!(
            agents.answer(7, entry, probed(1, 0, 0), 1),
            Outcome::Stale,
            "an answer counted although no rules were sent"
        );
        let standing = |agents: &Agents, now| {
            let agent = &agents.by_session[&7];
            agent.standing(now, agent.compared)
        };
        assert_eq!(agents.get(7, entry).unwrap().send(41, [11, 12].into(), 5), Some(1));
        assert_eq!(
            agents.get(7, entry).unwrap().send(42, [11, 12].into(), 6),
            None,
            "the same list was sent again"
        );
        assert_eq!(standing(&agents, 6), Standing::Waiting);
        assert_eq!(standing(&agents, 5 + ANSWER_TIME_MAX_NS), Standing::Silent);
        assert_eq!(agents.answer(7, entry, probed(1, 3, 2_000), 7), Outcome::Taken);
        assert_eq!(standing(&agents, HOUR), Standing::Follows);
        assert_eq!(
            agents.by_session[&7].standing(HOUR, 43),
            Standing::Waiting,
            "an answer to earlier rules must not count"
        );
        let report = agents.by_session[&7].report.clone().unwrap();
        let fault = "ä".repeat(PROBED_TEXT_BYTES_MAX / 2);
        assert_eq!(
            report.rules,
            [(11, 3, fault.clone()), (12, 3, fault)],
            "the third rule was never sent, so it must be ignored"
        );
        assert_eq!(agents.get(7, entry).unwrap().send(43, [].into(), 8), Some(2));
        assert_eq!(agents.answer(7, entry, probed(1, 0, 0), 9), Outcome::Stale);
        assert_eq!(standing(&agents, 9), Standing::Waiting);
        let again = agents.enter(7, identity("shop"), false, 20);
        assert_eq!(standing(&agents, 20), Standing::Deaf);
        assert!(agents.get(7, entry).is_none() && agents.get(7, again).is_some());
    }

    #[test]
    fn the_bytes_of_all_reports_are_limited() {
        let mut agents = Agents::default();
        let rules: Arc<[u64]> = (1..=1_000).collect();
        let mut outcomes = Vec::new();
        for session in 0..200 {
            let entry = agents.enter(session, identity("shop"), true, 0);
            agents.get(session, entry).unwrap().send(1, Arc::clone(&rules), 0);
            outcomes.push(agents.answer(session, entry, probed(1, 1_000, 512), 1));
        }
        assert!(agents.bytes <= ANSWER_BYTES_MAX + 200 * size_of::<Report>(), "{}", agents.bytes);
        assert_eq!((outcomes[0], outcomes[199]), (Outcome::Taken, Outcome::Cut));
        let last = agents.by_session[&199].report.clone().unwrap();
        assert_eq!((last.on, last.rules.len(), last.cut), (5, 0, true));
        agents.by_session.values_mut().for_each(|agent| agent.left = Some(1));
        assert_eq!(agents.forget(HOUR + 1), 0);
        assert_eq!((agents.forget(HOUR + 2), agents.bytes), (200, 0));
    }

    #[test]
    fn the_longest_disconnected_agents_are_forgotten_past_the_limit() {
        let mut agents = Agents::default();
        let held = agents.enter(0, identity("shop"), false, 0);
        for session in 1..=AGENTS_MAX as u128 {
            let entry = agents.enter(session, identity("shop"), false, 1);
            agents.get(session, entry).unwrap().left = Some(2);
        }
        assert_eq!(agents.forget(3), 1);
        assert!(agents.get(0, held).is_some() && !agents.by_session.contains_key(&1));
        assert_eq!(agents.iter().count(), AGENTS_MAX);
    }
}
