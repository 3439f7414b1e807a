//! Switches probes at run time: the connected agents, their rules, and their reports about the rules.
//!
//! ```text
//!   http/probes ── rule ────▶ Control ── PROBES ──▶ listen/connection ──▶ agent
//!   http/agents ◀── agents ──  │   ▲ ◀── PROBED ──
//!                              ▼   │ at the start
//!                            probes.json
//! ```
//!
//! Before the server confirms a new rule, it writes the rule to disk if the rule must apply after a restart, and adds it to the
//! list of rules. Each change of the list wakes the connections of the agents (`listen/rule_updates.rs`). A connection then sends
//! its agent the rules for this agent, unless the agent already has the same rules.

mod agents;
#[cfg(fuzzing)]
pub mod file;
#[cfg(not(fuzzing))]
mod file;
mod numbers;
mod pattern;
mod rules;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tacho_ingest::wire::{Ping, ProbeRule, Probed, Probes};
use tacho_model::Timestamp;
use tokio::sync::watch;

pub use agents::{Agent, Control as Controlled, Identity, Report, Standing};
pub use file::{NAME as FILE, Unusable};
pub use rules::{Refused, Rule, SCOPE_BYTES_MAX, Wanted, state_name, state_of};

use crate::metrics::Metrics;
use crate::metrics::registry::{Counter, Gauge};
use agents::Agents;
use numbers::Numbers;
use rules::Rules;

pub struct Control {
    table: Mutex<Table>,
    /// Locked during a change of the rules, which may wait for the disk.
    file: tokio::sync::Mutex<Option<file::File>>,
    revision: watch::Sender<u64>,
    numbers: Numbers,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Table {
    rules: Rules,
    agents: Agents,
}

#[derive(Debug)]
pub struct Added {
    pub rule: Rule,
    /// Ids of the rules with the same scope and pattern that the new rule replaces.
    pub replaced: Vec<u64>,
    /// Number of connected agents in the rule's scope that support rules.
    pub agents: usize,
    /// Number of connected agents in the rule's scope that do not support rules.
    pub deaf: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("cannot write {file}: {source}")]
    Disk { file: String, source: std::io::Error },
    #[error("the change failed: {0}")]
    Ended(#[from] tokio::task::JoinError),
}

/// How to continue with a file of rules that cannot be used.
pub const REMEDY: &str = "correct the file, or move it away to start without rules";

/// # Errors
/// When the file of rules exists and cannot be used.
pub fn check(data: &Path) -> Result<(), Unusable> {
    file::File::of(data).check()
}

impl Control {
    /// Starts without rules and does not store any.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self::with(Rules::default(), None, metrics)
    }

    /// # Errors
    /// When the file of rules exists and cannot be used.
    pub fn open(data: &Path, metrics: Arc<Metrics>) -> Result<Self, Unusable> {
        let file = file::File::of(data);
        let rules = Rules::from_kept(file.read()?);
        Ok(Self::with(rules, Some(file), metrics))
    }

    fn with(rules: Rules, file: Option<file::File>, metrics: Arc<Metrics>) -> Self {
        let control = Self {
            table: Mutex::new(Table { rules, agents: Agents::default() }),
            file: tokio::sync::Mutex::new(file),
            revision: watch::channel(1).0,
            numbers: Numbers::default(),
            metrics,
        };
        control.count_rules(&control.table().rules);
        control
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a rule after all others, so that it takes precedence. Completes even if the caller is dropped.
    pub async fn add(self: &Arc<Self>, wanted: Wanted, now: Timestamp) -> Result<Added, ChangeError> {
        let (rule, replaced) = self.change(move |rules| rules.add(wanted, now)).await?;
        let table = self.table();
        let fits = |agent: &&Agent| rule.fits(&agent.identity);
        let (takes, deaf): (Vec<&Agent>, Vec<&Agent>) =
            table.agents.connected().filter(fits).partition(|agent| agent.takes_rules());
        let (agents, deaf) = (takes.len(), deaf.len());
        drop(table);
        Ok(Added { rule, replaced, agents, deaf })
    }

    /// If one of the rules does not exist, removes none.
    pub async fn remove(self: &Arc<Self>, ids: Vec<u64>) -> Result<usize, ChangeError> {
        self.change(move |rules| rules.remove(&ids)).await
    }

    pub async fn clear(self: &Arc<Self>) -> Result<usize, ChangeError> {
        self.change(|rules| Ok(rules.clear())).await
    }

    async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        edit: impl FnOnce(&mut Rules) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, ChangeError> {
        let control = Arc::clone(self);
        let work = tokio::spawn(async move {
            let file = control.file.lock().await;
            let before = control.table().rules.clone();
            let mut after = before.clone();
            let done = edit(&mut after)?;
            if let Some(file) = file.as_ref().filter(|_| !after.keeps_as(&before)) {
                let (file, kept) = (file.clone(), after.kept());
                let name = file.to_string();
                let written = tokio::task::spawn_blocking(move || file.write(&kept)).await?;
                written.map_err(|source| ChangeError::Disk { file: name, source })?;
            }
            control.count_rules(&after);
            // The list and its revision change under one lock, because `Presence::due` reads both under this lock.
            let mut table = control.table();
            table.rules = after;
            control.revision.send_modify(|revision| *revision += 1);
            drop(table);
            Ok(done)
        });
        work.await?
    }

    fn count_rules(&self, rules: &Rules) {
        let kept = rules.iter().filter(|rule| rule.kept).count();
        for (name, count) in [("true", kept), ("false", rules.iter().len() - kept)] {
            self.metrics.control.rules.with([name]).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    pub fn rules(&self) -> Vec<Rule> {
        self.table().rules.iter().cloned().collect()
    }

    /// Replaces the id of a rule in answers to clients that must not learn how many rules exist.
    pub fn number_of(&self, id: u64) -> u64 {
        self.numbers.of(id)
    }

    /// Connected and recently disconnected agents, ordered by identity (service, host, instance, ...), then by the time of
    /// connecting.
    pub fn agents(&self, now: Timestamp) -> Vec<(Agent, Standing)> {
        let mut table = self.table();
        self.metrics.control.agents_forgotten.with([]).add(table.agents.forget(now));
        let revision = *self.revision.borrow();
        let with_standing = |agent: &Agent| (agent.clone(), agent.standing(now, revision));
        let mut agents: Vec<(Agent, Standing)> = table.agents.iter().map(with_standing).collect();
        drop(table);
        agents.sort_by(|(a, _), (b, _)| a.identity.cmp(&b.identity).then(a.since.cmp(&b.since)));
        agents
    }

    pub fn enter(
        &self,
        session: u128,
        identity: Identity,
        takes_rules: bool,
        now: Timestamp,
    ) -> Presence<'_> {
        let connected = self.metrics.control.agents.with([&identity.service]);
        connected.add(1);
        let sent = self.metrics.control.sent.with([&identity.service]);
        let mut table = self.table();
        let entry = table.agents.enter(session, identity, takes_rules, now);
        self.metrics.control.agents_forgotten.with([]).add(table.agents.forget(now));
        drop(table);
        Presence { control: self, session, entry, takes_rules, connected, sent }
    }
}

/// A connected agent. Dropping this value marks the agent as disconnected.
pub struct Presence<'a> {
    control: &'a Control,
    session: u128,
    /// Distinguishes this connection from earlier connections of the session.
    entry: u64,
    takes_rules: bool,
    connected: Gauge,
    sent: Counter,
}

impl Presence<'_> {
    /// Wakes at changes of the rules. `None` for an agent that does not support rules.
    pub fn changes(&self) -> Option<watch::Receiver<u64>> {
        self.takes_rules.then(|| self.control.revision.subscribe())
    }

    pub fn list_bytes(&self) -> usize {
        let mut table = self.control.table();
        let Table { rules, agents } = &mut *table;
        let Some(agent) = agents.get(self.session, self.entry) else { return 0 };
        let fitting = rules.iter().filter(|rule| rule.fits(&agent.identity));
        fitting.map(|rule| size_of::<ProbeRule>() + rule.pattern.len()).sum()
    }

    /// The list of rules for this agent, if it was not sent yet. Marks the list as sent.
    pub fn due(&self, now: Timestamp) -> Option<Probes> {
        let mut table = self.control.table();
        let Table { rules, agents } = &mut *table;
        let agent = agents.get(self.session, self.entry)?;
        let list: Vec<&Rule> = rules.iter().filter(|rule| rule.fits(&agent.identity)).collect();
        let revision = *self.control.revision.borrow();
        let number = agent.send(revision, list.iter().map(|rule| rule.id).collect(), now)?;
        self.sent.add(1);
        let rules = list.iter().map(|rule| ProbeRule { state: rule.state, pattern: rule.pattern.clone() });
        Some(Probes { revision: number, rules: rules.collect() })
    }

    pub fn heard(&self, ping: Ping, now: Timestamp) {
        if let Some(agent) = self.control.table().agents.get(self.session, self.entry) {
            agent.heard = now;
            agent.totals = ping;
        }
    }

    pub fn answered(&self, probed: Probed, now: Timestamp) {
        let outcome = self.control.table().agents.answer(self.session, self.entry, probed, now);
        self.control.metrics.control.answers.with([outcome.name()]).add(1);
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.connected.add(-1);
        if let Some(agent) = self.control.table().agents.get(self.session, self.entry) {
            agent.left = Some(agent.heard);
        }
    }
}
