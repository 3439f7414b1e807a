//! The ordered list of rules.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tacho_ingest::wire::{PROBE_PATTERN_BYTES_MAX, PROBE_RULES_MAX, ProbeState};
use tacho_model::Timestamp;

use super::Identity;
use super::pattern::{self, Mistake};

/// Limit on the bytes of a rule's service, and of its instance.
pub const SCOPE_BYTES_MAX: usize = 512;

/// The last rule that matches a method decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub id: u64,
    /// Empty for all services.
    #[serde(default)]
    pub service: String,
    /// Empty for all instances.
    #[serde(default)]
    pub instance: String,
    #[serde(with = "state_text")]
    pub state: ProbeState,
    pub pattern: String,
    /// Time at which the rule was added, ns.
    pub since: Timestamp,
    /// Whether the rule still applies after a restart of the server.
    #[serde(skip, default = "is_kept")]
    pub kept: bool,
}

const fn is_kept() -> bool {
    true
}

#[derive(Clone, Debug)]
pub struct Wanted {
    pub service: String,
    pub instance: String,
    pub state: ProbeState,
    pub pattern: String,
    pub keep: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("pattern is empty")]
    Empty,
    #[error("{what} has {bytes} bytes, at most {max} are allowed")]
    TooLong { what: &'static str, bytes: usize, max: usize },
    #[error("{what} {text:?} has a control character")]
    Unprintable { what: &'static str, text: String },
    #[error(transparent)]
    NoPattern(#[from] Mistake),
    #[error("there are {PROBE_RULES_MAX} rules, the limit: remove some first")]
    TooMany,
    #[error("no rule has the id {0}")]
    Unknown(u64),
}

impl Rule {
    pub fn fits(&self, agent: &Identity) -> bool {
        (self.service.is_empty() || self.service == agent.service)
            && (self.instance.is_empty() || self.instance == agent.instance)
    }

    /// Whether both rules decide the same methods of the same agents.
    fn covers(&self, other: &Self) -> bool {
        self.service == other.service && self.instance == other.instance && self.pattern == other.pattern
    }

    /// Checks lengths and control characters, but not the pattern's syntax.
    pub fn check(&self) -> Result<(), Refused> {
        if self.pattern.is_empty() {
            return Err(Refused::Empty);
        }
        for (what, text, max) in [
            ("pattern", &self.pattern, PROBE_PATTERN_BYTES_MAX),
            ("service", &self.service, SCOPE_BYTES_MAX),
            ("instance", &self.instance, SCOPE_BYTES_MAX),
        ] {
            if text.len() > max {
                return Err(Refused::TooLong { what, bytes: text.len(), max });
            }
            if text.chars().any(char::is_control) {
                return Err(Refused::Unprintable { what, text: text.clone() });
            }
        }
        Ok(())
    }
}

/// All rules, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    list: Vec<Rule>,
    /// The highest id that was assigned since the start or that a rule from the file has.
    last_id: u64,
}

impl Rules {
    pub(super) fn from_kept(list: Vec<Rule>) -> Self {
        let last_id = list.iter().map(|rule| rule.id).max().unwrap_or(0);
        Self { list, last_id }
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Rule> {
        self.list.iter()
    }

    pub(super) fn kept(&self) -> Vec<Rule> {
        self.list.iter().filter(|rule| rule.kept).cloned().collect()
    }

    /// Whether both lists have the same content on disk.
    pub(super) fn keeps_as(&self, other: &Self) -> bool {
        let kept =
            |rules: &Self| rules.list.iter().filter(|rule| rule.kept).map(|rule| rule.id).collect::<Vec<_>>();
        kept(self) == kept(other)
    }

    /// Adds a rule, and removes earlier rules with the same pattern and scope, which have no effect any more. A temporary rule
    /// does not remove a kept rule, because the kept rule applies again after a restart.
    pub(super) fn add(&mut self, wanted: Wanted, now: Timestamp) -> Result<(Rule, Vec<u64>), Refused> {
        let Wanted { service, instance, state, pattern, keep } = wanted;
        let id = self.last_id + 1;
        let rule = Rule { id, service, instance, state, pattern, since: now, kept: keep };
        rule.check()?;
        // The syntax of a pattern is checked only here, not when rules are read from the file. So a server starts even if an
        // earlier version accepted patterns that this version refuses.
        pattern::check(&rule.pattern)?;
        let is_replaced = |old: &Rule| rule.covers(old) && (keep || !old.kept);
        let replaced: Vec<u64> = self.list.iter().filter(|old| is_replaced(old)).map(|old| old.id).collect();
        if self.list.len() - replaced.len() >= PROBE_RULES_MAX {
            return Err(Refused::TooMany);
        }
        self.list.retain(|old| !is_replaced(old));
        self.list.push(rule.clone());
        self.last_id = id;
        Ok((rule, replaced))
    }

    pub(super) fn remove(&mut self, ids: &[u64]) -> Result<usize, Refused> {
        let there: BTreeSet<u64> = self.list.iter().map(|rule| rule.id).collect();
        if let Some(unknown) = ids.iter().find(|id| !there.contains(id)) {
            return Err(Refused::Unknown(*unknown));
        }
        let before = self.list.len();
        let ids: BTreeSet<&u64> = ids.iter().collect();
        self.list.retain(|rule| !ids.contains(&rule.id));
        Ok(before - self.list.len())
    }

    pub(super) fn clear(&mut self) -> usize {
        std::mem::take(&mut self.list).len()
    }
}

pub const fn state_name(state: ProbeState) -> &'static str {
    match state {
        ProbeState::Off => "off",
        ProbeState::On => "on",
        ProbeState::Aggregate => "aggregate",
    }
}

/// The inverse of [`state_name`].
pub fn state_of(name: &str) -> Option<ProbeState> {
    [ProbeState::Off, ProbeState::On, ProbeState::Aggregate]
        .into_iter()
        .find(|state| state_name(*state) == name)
}

mod state_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use tacho_ingest::wire::ProbeState;

    pub(super) fn serialize<S: Serializer>(state: &ProbeState, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(super::state_name(*state))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ProbeState, D::Error> {
        let name = String::deserialize(from)?;
        super::state_of(&name)
            .ok_or_else(|| D::Error::custom(format!("state {name:?} is not on, off or aggregate")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(service: &str, pattern: &str, keep: bool) -> Wanted {
        let (service, pattern) = (service.to_owned(), pattern.to_owned());
        Wanted { service, instance: String::new(), state: ProbeState::On, pattern, keep }
    }

    #[test]
    fn a_rule_replaces_one_of_the_same_scope_and_pattern() {
        let mut rules = Rules::default();
        let mut add = |service, pattern, keep| rules.add(wanted(service, pattern, keep), 7).unwrap().1;
        assert_eq!(add("", "a.*", false), Vec::<u64>::new());
        assert_eq!(add("shop", "a.*", false), Vec::<u64>::new(), "a rule of another scope was replaced");
        assert_eq!(add("", "a.*", true), [1]);
        assert_eq!(add("", "a.*", false), Vec::<u64>::new(), "a rule that is not kept replaced a kept one");
        assert_eq!(add("", "a.*", false), [4]);
        assert_eq!(add("", "a.*", true), [3, 5]);
        assert_eq!(rules.iter().map(|rule| rule.id).collect::<Vec<_>>(), [2, 6]);
        assert_eq!(rules.kept().len(), 1);
    }

    #[test]
    fn more_than_1000_rules_are_refused() {
        let mut rules = Rules::default();
        for nth in 0..PROBE_RULES_MAX {
            rules.add(wanted("", &format!("a{nth}.*"), false), 0).unwrap();
        }
        assert_eq!(rules.add(wanted("", "b.*", false), 0), Err(Refused::TooMany));
        rules.add(wanted("", "a7.*", false), 0).expect("a rule that replaces another is accepted");
        assert_eq!(rules.remove(&[9_999]), Err(Refused::Unknown(9_999)));
        assert_eq!(rules.remove(&[1, 1, 2]), Ok(2));
        assert_eq!(rules.clear(), PROBE_RULES_MAX - 2);
    }

    #[test]
    fn text_lengths_are_limited() {
        let check = |service: usize, pattern: &str| {
            Rules::default().add(wanted(&"s".repeat(service), pattern, false), 0).map(|_| ())
        };
        let long = "p".repeat(PROBE_PATTERN_BYTES_MAX);
        assert_eq!(check(SCOPE_BYTES_MAX, &long), Ok(()));
        let refused = |what, bytes, max| Err(Refused::TooLong { what, bytes, max });
        assert_eq!(check(0, &format!("{long}p")), refused("pattern", 1_025, 1_024));
        assert_eq!(check(513, "a"), refused("service", 513, 512));
        assert_eq!(check(0, ""), Err(Refused::Empty));
        let error = check(0, "a\nb").unwrap_err().to_string();
        assert_eq!(error, "pattern \"a\\nb\" has a control character");
        assert!(matches!(check(0, "a b"), Err(Refused::NoPattern(_))));
    }

    #[test]
    fn a_rule_matches_by_service_and_instance() {
        let agent = |service: &str, instance: &str| Identity {
            service: service.into(),
            instance: instance.into(),
            ..Identity::default()
        };
        let fits = |service: &str, instance: &str| {
            let rule = Rules::default()
                .add(Wanted { instance: instance.into(), ..wanted(service, "..*", false) }, 0);
            rule.map(|(rule, _)| rule.fits(&agent("shop", "8080"))).unwrap()
        };
        assert_eq!([fits("", ""), fits("shop", ""), fits("", "8080"), fits("shop", "8080")], [true; 4]);
        assert_eq!([fits("Shop", ""), fits("shop", "8081"), fits("cart", "8080")], [false; 3]);
    }
}
