//! What is to be said about a new rule: does it do what was meant?

use std::time::Duration;

use serde_json::Value;

use super::super::Failure;
use super::super::agents::name;
use super::super::ask;
use crate::terminal::units;

/// Agents that a message names.
const NAMED_MAX: usize = 3;

pub struct Verdict {
    pub warnings: Vec<String>,
    /// The rule holds, but not everywhere.
    pub failure: Option<Failure>,
}

impl Verdict {
    /// `agents` are those connected that the rule is for; they had this time to answer.
    pub fn new(rule: &Value, agents: &[Value], wait: Duration) -> Self {
        let in_state = |state: &str| -> Vec<&Value> {
            agents.iter().filter(|agent| ask::text(agent, "state") == state).collect()
        };
        let (deaf, answered) = (in_state("none"), in_state("follows"));
        let late = [in_state("waiting"), in_state("silent")].concat();
        let takers = agents.len() - deaf.len();
        let mut warnings = Vec::new();
        if agents.is_empty() {
            warnings.push("no agent that it is for is connected; it holds for those that come".to_owned());
        }
        if !deaf.is_empty() {
            warnings.push(format!("{} cannot be told rules: {}", agents_of(deaf.len()), names(&deaf)));
        }
        warnings.extend(too_little_or_too_much(rule, &answered));
        let faulty: Vec<&Value> = answered.into_iter().filter(|agent| !fault(agent).is_empty()).collect();
        let failure = if let Some(first) = faulty.first() {
            let message = format!(
                "{} of {} cannot follow it: {}: {}",
                faulty.len(),
                agents_of(takers),
                names(&faulty),
                fault(first)
            );
            let hint = format!("`tacho probes clear {}` takes it away", ask::number(rule, "id"));
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
            Some(Failure::partly(message).hint("`tacho agents --watch` shows when they do"))
        };
        Self { warnings, failure }
    }
}

/// A pattern that fits no method, or all of them, is seldom what was meant.
fn too_little_or_too_much(rule: &Value, answered: &[&Value]) -> Vec<String> {
    let pattern = ask::text(rule, "pattern");
    let understood: Vec<&Value> = answered.iter().copied().filter(|agent| fault(agent).is_empty()).collect();
    if !understood.is_empty() && understood.iter().all(|agent| matched(agent) == 0) {
        return vec![format!(
            "{pattern} decides no method of {}; classes that are loaded later may have some",
            names(&understood)
        )];
    }
    let whole = |agent: &&&Value| matched(agent) > 0 && decides_all(rule, agent);
    let warning = |agent: &&Value| {
        let (name, methods) = (name(agent), units::count(matched(agent)));
        match is_everything(pattern) {
            true => format!("{pattern} fits everything in {name}: {methods} methods"),
            false => format!("{pattern} decides every method that {name} watches: {methods}"),
        }
    };
    understood.iter().filter(whole).map(warning).collect()
}

fn is_everything(pattern: &str) -> bool {
    matches!(pattern, "*" | "..*")
}

/// To record just what fits is usual; to leave nothing else recorded is not.
fn decides_all(rule: &Value, agent: &Value) -> bool {
    let watched = ["on", "aggregated", "off"].map(|name| ask::number(&agent["probes"], name));
    let takes_away = ask::text(rule, "state") != "on" && matched(agent) == watched.iter().sum::<u64>();
    takes_away || is_everything(ask::text(rule, "pattern"))
}

/// The answer about the one rule that was asked for.
fn outcome(agent: &Value) -> Option<&Value> {
    ask::list(&agent["probes"], "rules").first()
}

fn matched(agent: &Value) -> u64 {
    outcome(agent).map_or(0, |rule| ask::number(rule, "matched"))
}

fn fault(agent: &Value) -> &str {
    outcome(agent).map_or("", |rule| ask::text(rule, "fault"))
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
            "service": service, "host": "h1", "instance": "", "state": state,
            "probes": { "on": on, "aggregated": 0, "off": 2, "rules": [{ "id": 7, "matched": matched, "fault": fault }] },
        })
    }

    #[test]
    fn each_case_has_its_words() {
        let check = |agents: &[Value], warnings: &[&str], failure: &str| {
            let rule = json!({ "id": 7, "state": "off", "pattern": "a..*" });
            let verdict = Verdict::new(&rule, agents, Duration::from_secs(2));
            assert_eq!(verdict.warnings, warnings);
            let said = verdict.failure.map_or_else(String::new, |failure| failure.to_string());
            assert_eq!(said.lines().next().unwrap_or_default(), failure);
        };
        let nobody = "no agent that it is for is connected; it holds for those that come";
        let nothing =
            "a..* decides no method of shop on h1, cart on h1; classes that are loaded later may have some";
        let all = "a..* decides every method that shop on h1 watches: 1,002";
        check(&[], &[nobody], "");
        check(&[agent("shop", "follows", 3, 10, ""), agent("cart", "follows", 0, 10, "")], &[], "");
        check(&[agent("shop", "follows", 0, 10, ""), agent("cart", "follows", 0, 0, "")], &[nothing], "");
        check(&[agent("shop", "follows", 1_002, 1_000, "")], &[all], "");
        check(&[agent("shop", "none", 0, 0, "")], &["1 agent cannot be told rules: shop on h1"], "");
        let late = [
            agent("shop", "follows", 1, 9, ""),
            agent("b", "waiting", 0, 0, ""),
            agent("c", "silent", 0, 0, ""),
        ];
        check(&late, &[], "error: 2 of 3 agents did not answer within 2s: b on h1, c on h1");
        let faulty = "error: 1 of 1 agent cannot follow it: shop on h1: ends with a dot";
        check(&[agent("shop", "follows", 0, 9, "ends with a dot")], &[], faulty);
        let four: Vec<Value> = ["a", "b", "c", "d"].map(|service| agent(service, "none", 0, 0, "")).to_vec();
        check(&four, &["4 agents cannot be told rules: a on h1, b on h1, c on h1 and 1 more"], "");
    }

    #[test]
    fn everything_is_named_with_its_count() {
        let check = |state: &str, pattern: &str, matched: u64, expect: &[&str]| {
            let rule = json!({ "id": 7, "state": state, "pattern": pattern });
            let verdict = Verdict::new(&rule, &[agent("shop", "follows", matched, 10, "")], Duration::ZERO);
            assert_eq!(verdict.warnings, expect);
        };
        check("on", "a..*", 12, &[]);
        check("aggregate", "a..*", 12, &["a..* decides every method that shop on h1 watches: 12"]);
        check("off", "a..*", 11, &[]);
        check("on", "*", 11, &["* fits everything in shop on h1: 11 methods"]);
        check("off", "..*", 12, &["..* fits everything in shop on h1: 12 methods"]);
    }
}
