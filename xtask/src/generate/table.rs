//! Reads and checks the tables of `agent/settings.toml` and `agent/messages.toml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agent {
    Java,
    Node,
    Python,
}

impl Agent {
    const ALL: [Agent; 3] = [Agent::Java, Agent::Node, Agent::Python];
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Text,
    /// A text that is never logged or shown.
    Secret,
    Flag,
    Policy,
    Number,
    PowerOfTwo,
    #[serde(rename = "multiple_of_64")]
    MultipleOf64,
    Duration,
    Size,
    Share,
    List,
    Probes,
    Address,
}

impl Kind {
    /// Whether the value has two bounds.
    fn is_bounded(self) -> bool {
        matches!(self, Kind::Number | Kind::PowerOfTwo | Kind::MultipleOf64 | Kind::Duration | Kind::Size)
    }
}

pub struct Setting {
    pub name: String,
    pub kind: Kind,
    /// The default as a user writes it.
    pub default: String,
    /// The default as Markdown for the README.
    pub shown: String,
    /// Both bounds, for numbers, durations and sizes.
    pub bounds: Option<(String, String)>,
    pub meaning: String,
    pub cost: String,
}

pub struct Tables {
    rows: Vec<Row>,
    /// Texts by name. `{parameter}` is a placeholder for a value.
    pub messages: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    setting: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    #[serde(rename = "type")]
    kind: Kind,
    default: String,
    shown: Option<String>,
    least: Option<String>,
    most: Option<String>,
    meaning: String,
    #[serde(default)]
    cost: String,
    agents: Option<Vec<Agent>>,
    #[serde(default)]
    java: Change,
    #[serde(default)]
    node: Change,
    #[serde(default)]
    python: Change,
}

/// The values of a setting that differ in one agent.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    #[serde(rename = "type")]
    kind: Option<Kind>,
    default: Option<String>,
    shown: Option<String>,
    least: Option<String>,
    most: Option<String>,
    meaning: Option<String>,
    cost: Option<String>,
}

impl Row {
    fn is_of(&self, agent: Agent) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.contains(&agent))
    }

    fn of(&self, agent: Agent) -> Setting {
        let change = match agent {
            Agent::Java => &self.java,
            Agent::Node => &self.node,
            Agent::Python => &self.python,
        };
        let own = |change: &Option<String>, row: &str| change.as_deref().unwrap_or(row).to_owned();
        let default = own(&change.default, &self.default);
        let shown = change.shown.clone().or_else(|| self.shown.clone());
        let least = change.least.clone().or_else(|| self.least.clone());
        let most = change.most.clone().or_else(|| self.most.clone());
        Setting {
            name: self.name.clone(),
            kind: change.kind.unwrap_or(self.kind),
            shown: shown.unwrap_or_else(|| format!("`{default}`")),
            default,
            bounds: least.zip(most),
            meaning: own(&change.meaning, &self.meaning),
            cost: own(&change.cost, &self.cost),
        }
    }
}

impl Tables {
    /// # Errors
    /// If a table is invalid; the error names the file, and the setting or the line.
    pub fn parse(settings: &str, messages: &str) -> Result<Self, String> {
        let fault = |path: &str, error: toml::de::Error| format!("{path}: {error}");
        let file: File = toml::from_str(settings).map_err(|error| fault(super::SETTINGS, error))?;
        let messages = toml::from_str(messages).map_err(|error| fault(super::MESSAGES, error))?;
        let tables = Self { rows: file.setting, messages };
        let mut names = BTreeSet::new();
        for row in &tables.rows {
            if !names.insert(&row.name) {
                return Err(format!("{}: {} is defined twice", super::SETTINGS, row.name));
            }
            for agent in Agent::ALL {
                let setting = row.of(agent);
                if setting.kind.is_bounded() != setting.bounds.is_some() {
                    return Err(format!(
                        "{}: {} has bounds although its type has none, or lacks the bounds of its type",
                        super::SETTINGS,
                        row.name
                    ));
                }
            }
        }
        Ok(tables)
    }

    /// The settings of one agent, in the order of the table.
    pub fn settings(&self, agent: Agent) -> Vec<Setting> {
        self.rows.iter().filter(|row| row.is_of(agent)).map(|row| row.of(agent)).collect()
    }

    /// Names of the settings that only other agents have.
    pub fn others(&self, agent: Agent) -> Vec<&str> {
        self.rows.iter().filter(|row| !row.is_of(agent)).map(|row| row.name.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "[[setting]]\nname = 'buffer'\ntype = 'number'\ndefault = '1'\nleast = '0'\nmost = '2'\nmeaning = 'm'\n";

    #[test]
    fn an_agent_may_have_other_values() {
        let tables =
            Tables::parse(&format!("{ROW}agents = ['java', 'node']\nnode.default = '2'\n"), "").unwrap();
        let defaults = Agent::ALL.map(|agent| tables.settings(agent).pop().map(|setting| setting.default));
        assert_eq!(defaults, [Some("1".to_owned()), Some("2".to_owned()), None]);
        assert_eq!(Agent::ALL.map(|agent| tables.others(agent).len()), [0, 0, 1]);
    }

    #[test]
    fn errors_name_the_setting_or_the_unknown_field() {
        for (settings, expect) in [
            (format!("{ROW}{ROW}"), "buffer is defined twice"),
            (
                ROW.replace("most = '2'\n", ""),
                "buffer has bounds although its type has none, or lacks the bounds of its type",
            ),
            (
                ROW.replace("'number'", "'text'"),
                "buffer has bounds although its type has none, or lacks the bounds of its type",
            ),
            (format!("{ROW}costs = 'x'\n"), "unknown field `costs`"),
        ] {
            let said = Tables::parse(&settings, "").err().expect("it is wrong");
            assert!(said.starts_with("agent/settings.toml: ") && said.contains(expect), "{said}");
        }
    }
}
