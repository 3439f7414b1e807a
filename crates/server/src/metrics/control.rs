//! Metrics of probe rules and of the agents that follow them.

use super::registry::{Collect, Counter, Family, Gauge};

pub struct ControlFigures {
    pub agents: Family<Gauge, 1>,
    /// Disconnected agents that were removed: after an hour, or at the limit on agents.
    pub agents_forgotten: Family<Counter, 0>,
    pub rules: Family<Gauge, 1>,
    pub sent: Family<Counter, 1>,
    /// `outcome` is taken, stale (a response to an older list or to no list, or from a superseded connection) or cut (the server
    /// keeps the response without the results of the rules, because of a memory limit).
    pub answers: Family<Counter, 1>,
}

impl Default for ControlFigures {
    fn default() -> Self {
        Self {
            agents: Family::new("tacho_agents", ["service"], "Agents that are connected."),
            agents_forgotten: Family::new(
                "tacho_agents_forgotten_total",
                [],
                "Disconnected agents that were removed from the list.",
            ),
            rules: Family::new("tacho_probe_rules", ["kept"], "Probe rules in force."),
            sent: Family::new(
                "tacho_probe_lists_sent_total",
                ["service"],
                "Lists of probe rules sent to agents.",
            ),
            answers: Family::new(
                "tacho_probe_answers_total",
                ["outcome"],
                "Answers of agents to lists of probe rules.",
            ),
        }
    }
}

impl ControlFigures {
    pub fn families(&self) -> [&dyn Collect; 5] {
        [&self.agents, &self.agents_forgotten, &self.rules, &self.sent, &self.answers]
    }
}
