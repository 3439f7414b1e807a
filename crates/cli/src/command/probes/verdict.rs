//! Checks the effect of a new rule, and warns if it is probably not intended.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tacho_api::printable::printable;
use tacho_api::units;

use super::super::agents::name;
use super::super::ask;
use crate::failure::Failure;

/// Largest number of agents, and of reasons, that a message names.
const NAMED_MAX: usize = 3;

/// The agents' reports before the rule was added, by session.
pub type Before = HashMap<String, Value>;

pub struct Verdict {
    pub warnings: Vec<String>,
    /// Present if an agent cannot follow the rule, or did not answer in time. If the command did not wait, a late agent is no
    /// failure.
    pub failure: Option<Failure>,
}

impl Verdict {
    /// `agents` are the connected agents in the rule's scope. They had to answer within `wait`.
    pub fn new(rule: &Value, agents: &[Value], before: &Before, wait: Duration) -> Self {
        let in_state = |state: &str| -> Vec<&Value> {
            agents.iter().filter(|agent| ask::text(agent, "state") == state).collect()
        };
        let (deaf, answered) = (in_state("none"), in_state("follows"));
        let late = [in_state("waiting"), in_state("silent")].concat();
        let takers = agents.len() - deaf.len();
        let mut warnings = Vec::new();
        if agents.is_empty() {
            warnings.push("no matching agent is connected; the rule applies to later ones".to_owned());
        }
        if !deaf.is_empty() {
            let verb = if deaf.len() == 1 { "does" } else { "do" };
            warnings.push(format!("{} {verb} not support rules: {}", agents_of(deaf.len()), names(&deaf)));
        }
        warnings.extend(unlikely_patterns(rule, &answered, before));
        let faulty: Vec<&Value> = answered.into_iter().filter(|agent| !fault(agent).is_empty()).collect();
        let failure = if !faulty.is_empty() {
            let message = format!(
                "{} of {} cannot follow the rule: {}",
                faulty.len(),
                agents_of(takers),
                reasons(&faulty)
            );
            let hint = format!("`tacho probes clear {}` removes the rule", ask::number(rule, "id"));
            Some(Failure::partly(message).hint(hint))
        } else if late.is_empty() || wait.is_zero() {
            None
        } else {
            let message = format!(
                "{} of {} did not answer within {wait:?}: {}",
                late.len(),
                agents_of(takers),
                names(&late)
            );
            Some(Failure::partly(message).hint("`tacho agents --watch` shows when they answer"))
        };
        Self { warnings, failure }
    }
}

/// Warns of a pattern that decides no method of any agent. Otherwise warns of each agent in which the pattern matches everything,
/// or in which the rule reduces the recording of all methods ([`takes_all`]).
fn unlikely_patterns(rule: &Value, answered: &[&Value], before: &Before) -> Vec<String> {
    let pattern = ask::text(rule, "pattern");
    let understood: Vec<&Value> = answered.iter().copied().filter(|agent| fault(agent).is_empty()).collect();
    if !understood.is_empty() && understood.iter().all(|agent| matched(agent) == 0) {
        return vec![format!(
            "{pattern} decides no method of {}; classes that are loaded later may have matching methods",
            names(&understood)
        )];
    }
    let whole =
        |agent: &&&Value| matched(agent) > 0 && (is_everything(pattern) || takes_all(rule, agent, before));
    let warning = |agent: &&Value| {
        let (name, methods) = (name(agent), units::count(matched(agent)));
        match is_everything(pattern) {
            true => format!("{pattern} matches everything in {name}: {methods} methods"),
            false => format!("{pattern} decides every method that {name} watches: {methods}"),
        }
    };
    understood.iter().filter(whole).map(warning).collect()
}

fn is_everything(pattern: &str) -> bool {
    matches!(pattern, "*" | "..*")
}

/// Whether the rule decides all methods that the agent watches, and some of them were recorded in more detail before. The state
/// `aggregate` records less than `on`, and `off` records less than both.
fn takes_all(rule: &Value, agent: &Value, before: &Before) -> bool {
    let taken: &[&str] = match ask::text(rule, "state") {
        "off" => &["on", "aggregated"],
        "aggregate" => &["on"],
        _ => &[],
    };
    let methods =
        |probes: &Value, names: &[&str]| names.iter().map(|name| ask::number(probes, name)).sum::<u64>();
    let were = before.get(ask::text(agent, "session")).map_or(0, |probes| methods(probes, taken));
    were > 0 && matched(agent) == methods(&agent["probes"], &["on", "aggregated", "off"])
}

/// The agent's result for the rule. The request selects only this rule.
fn outcome(agent: &Value) -> Option<&Value> {
    ask::list(&agent["probes"], "rules").first()
}

fn matched(agent: &Value) -> u64 {
    outcome(agent).map_or(0, |rule| ask::number(rule, "matched"))
}

fn fault(agent: &Value) -> &str {
    outcome(agent).map_or("", |rule| ask::text(rule, "fault"))
}

/// Each reason with the agents that report it.
fn reasons(faulty: &[&Value]) -> String {
    let mut reasons: Vec<(&str, Vec<&Value>)> = Vec::new();
    for agent in faulty {
        match reasons.iter_mut().find(|(reason, _)| *reason == fault(agent)) {
            Some((_, agents)) => agents.push(agent),
            None => reasons.push((fault(agent), vec![agent])),
        }
    }
    let told = reasons.iter().take(NAMED_MAX);
    let told: Vec<String> =
        told.map(|(reason, agents)| format!("{}: {}", names(agents), printable(reason))).collect();
    let more = match reasons.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(
            "; and {} more, which `tacho agents` shows",
            units::counted(more as u64, "reason", "reasons")
        ),
    };
    format!("{}{more}", told.join("; "))
}

fn agents_of(count: usize) -> String {
    if count == 1 { "1 agent".into() } else { format!("{} agents", units::count(count as u64)) }
}

fn names(agents: &[&Value]) -> String {
    let named: Vec<String> = agents.iter().take(NAMED_MAX).map(|agent| name(agent)).collect();
    let more = match agents.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn agent(service: &str, state: &str, matched: u64, on: u64, fault: &str) -> Value {
        json!({
            "session": service, "service": service, "host": "h1", "instance": "", "state": state,
            "probes": { "on": on, "aggregated": 0, "off": 2, "rules": [{ "id": 7, "matched": matched, "fault": fault }] },
        })
    }

    /// The report of `shop` before the rule: numbers of recorded and aggregated methods.
    fn before(on: u64, aggregated: u64) -> Before {
        let probes = json!({ "on": on, "aggregated": aggregated, "off": 0 });
        Before::from([("shop".to_owned(), probes)])
    }

    #[test]
    fn each_result_of_the_agents_has_its_message() {
        let check = |agents: &[Value], warnings: &[&str], failure: &str| {
            let rule = json!({ "id": 7, "state": "off", "pattern": "a..*" });
            let verdict = Verdict::new(&rule, agents, &before(3, 0), Duration::from_secs(2));
            assert_eq!(verdict.warnings, warnings);
            let said = verdict.failure.map_or_else(String::new, |failure| failure.to_string());
            assert_eq!(said.lines().next().unwrap_or_default(), failure);
        };
        let nobody = "no matching agent is connected; the rule applies to later ones";
        let nothing = "a..* decides no method of shop on h1, cart on h1; classes that are loaded later may have matching methods";
        let all = "a..* decides every method that shop on h1 watches: 1,002";
        check(&[], &[nobody], "");
        check(&[agent("shop", "follows", 3, 10, ""), agent("cart", "follows", 0, 10, "")], &[], "");
        check(&[agent("shop", "follows", 0, 10, ""), agent("cart", "follows", 0, 0, "")], &[nothing], "");
        check(&[agent("shop", "follows", 1_002, 1_000, "")], &[all], "");
        check(&[agent("shop", "none", 0, 0, "")], &["1 agent does not support rules: shop on h1"], "");
        let late = [
            agent("shop", "follows", 1, 9, ""),
            agent("b", "waiting", 0, 0, ""),
            agent("c", "silent", 0, 0, ""),
        ];
        check(&late, &[], "error: 2 of 3 agents did not answer within 2s: b on h1, c on h1");
        let faulty = "error: 1 of 1 agent cannot follow the rule: shop on h1: ends with a dot";
        check(&[agent("shop", "follows", 0, 9, "ends with a dot")], &[], faulty);
        let faulty = |service, fault| agent(service, "follows", 0, 9, fault);
        let by_reason = [
            faulty("shop", "a dot"),
            faulty("cart", "no annotations"),
            agent("mail", "follows", 3, 9, ""),
            faulty("till", "a dot"),
        ];
        let said = "error: 3 of 4 agents cannot follow the rule: shop on h1, till on h1: a dot; cart on h1: no annotations";
        check(&by_reason, &[], said);
        let many = [faulty("a", "1"), faulty("b", "2\n\u{1b}[2J"), faulty("c", "3"), faulty("d", "4")];
        let said = "error: 4 of 4 agents cannot follow the rule: a on h1: 1; b on h1: 2\\n\\u{1b}[2J; c on h1: 3; and 1 reason \
            more, which `tacho agents` shows";
        check(&many, &[], said);
        let four: Vec<Value> = ["a", "b", "c", "d"].map(|service| agent(service, "none", 0, 0, "")).to_vec();
        check(&four, &["4 agents do not support rules: a on h1, b on h1, c on h1 and 1 more"], "");
    }

    #[test]
    fn a_rule_that_matches_everything_or_reduces_all_recording_causes_a_warning() {
        let check = |state: &str, pattern: &str, matched: u64, before: &Before, expect: &[&str]| {
            let rule = json!({ "id": 7, "state": state, "pattern": pattern });
            let agents = [agent("shop", "follows", matched, 10, "")];
            assert_eq!(Verdict::new(&rule, &agents, before, Duration::ZERO).warnings, expect, "{before:?}");
        };
        let (all, some) = (before(10, 0), before(0, 2));
        let every = ["a..* decides every method that shop on h1 watches: 12"];
        check("on", "a..*", 12, &all, &[]);
        check("aggregate", "a..*", 12, &all, &every);
        check("aggregate", "a..*", 12, &some, &[]);
        check("off", "a..*", 12, &some, &every);
        check("off", "a..*", 12, &before(0, 0), &[]);
        check("off", "a..*", 12, &Before::new(), &[]);
        check("off", "a..*", 11, &all, &[]);
        check("on", "*", 11, &all, &["* matches everything in shop on h1: 11 methods"]);
        check("off", "..*", 12, &Before::new(), &["..* matches everything in shop on h1: 12 methods"]);
    }
}
