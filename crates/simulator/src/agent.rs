//! An agent: it numbers its frames, keeps them until they are acknowledged, and repeats them after a reconnect.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tacho_model::{Batch, Labels, NAME, Random, TimeRange, Value};
use tacho_store::Origin;
use tacho_store::conformance::simulation::model::{Model, SENDER, batch, labels};

pub type Frame = (u64, Arc<Batch>);

pub struct Agent {
    /// Its session, which is also the value of the label [`SENDER`] of its series.
    pub session: u128,
    /// Whether it sends frames over the network to the recorder (`network.rs`). If not, it appends them to the store.
    pub over_network: bool,
    /// The records that must be in the store.
    pub model: Model,
    /// All entries and executions that this agent ever made, even deleted ones. `values` has its samples.
    pub sent: Model,
    /// The values of all samples that this agent ever made, by series and time.
    values: BTreeMap<(String, i64), Vec<Value>>,
    /// Frames without an ACK, with their numbers.
    pub frames: VecDeque<Frame>,
    pub next: u64,
    pub acked: u64,
    /// A deletion that was started and has not succeeded: name of the series (`None`: all series) and range.
    pub deleting: Option<(Option<&'static str>, TimeRange)>,
}

impl Agent {
    pub fn new(session: u128, over_network: bool) -> Self {
        let (model, sent) = (Model::default(), Model::default());
        let (frames, values) = (VecDeque::new(), BTreeMap::new());
        Self { session, over_network, model, sent, values, frames, next: 1, acked: 0, deleting: None }
    }

    /// The labels of its executions. If the agent sends over the network, the recorder makes them from HELLO.
    pub fn executions(&self) -> Arc<Labels> {
        let name = "executions";
        if !self.over_network {
            return labels(name, self.session);
        }
        let session = self.session.to_string();
        let all = [(NAME, name), ("service", "unknown"), ("host", "unknown"), (SENDER, &session)];
        Arc::new(Labels::new(all).unwrap_or_else(|_| Labels::empty()))
    }

    /// Whether this agent ever made a sample with this value at this time in the series `name`.
    pub fn has_sent(&self, name: &str, at: i64, value: Value) -> bool {
        self.values.get(&(name.to_owned(), at)).is_some_and(|values| values.contains(&value))
    }

    /// Makes a new frame with random records.
    pub fn record(&mut self, random: &mut Random, now: i64, next_trace: &mut u128) {
        let batch = batch(random, self.session, now, next_trace);
        // Over the network, an agent sends no frame without records.
        if self.over_network && batch.counts().iter().sum::<usize>() == 0 {
            return;
        }
        self.sent.apply(&batch);
        for series in &batch.samples {
            for sample in &series.samples {
                let key = (series.labels.name().to_owned(), sample.at);
                self.values.entry(key).or_default().push(sample.value);
            }
        }
        self.frames.push_back((self.next, Arc::new(batch)));
        self.next += 1;
    }

    /// The first frames without an ACK.
    pub fn group(&self, frames_max: usize) -> Option<Group> {
        let frames: Vec<_> = self.frames.iter().take(frames_max).cloned().collect();
        (!frames.is_empty()).then_some(Group { session: self.session, frames })
    }

    /// Takes an ACK: the server has all frames up to `seq`, so their records are added to the model. Returns the number of these
    /// records.
    pub fn take_ack(&mut self, seq: u64) -> u64 {
        let mut records = 0;
        while self.frames.front().is_some_and(|(number, _)| *number <= seq)
            && let Some((_, batch)) = self.frames.pop_front()
        {
            records += batch.counts().iter().sum::<usize>() as u64;
            self.model.apply(&batch);
        }
        self.acked = self.acked.max(seq);
        records
    }
}

/// Frames that the server appends together (`crates/server/src/listen/commit.rs`).
#[derive(Clone)]
pub struct Group {
    session: u128,
    frames: Vec<Frame>,
}

impl Group {
    pub fn last(&self) -> u64 {
        self.frames.last().map_or(0, |(seq, _)| *seq)
    }

    /// All frames as one batch.
    pub fn whole(&self) -> (Arc<Batch>, Origin) {
        let mut all = Batch::default();
        for (_, batch) in &self.frames {
            all.samples.extend(batch.samples.iter().cloned());
            all.entries.extend(batch.entries.iter().cloned());
            all.executions.extend(batch.executions.iter().cloned());
        }
        let first = self.frames.first().map_or(0, |(seq, _)| *seq);
        (Arc::new(all), Origin { session: self.session, first, seq: self.last() })
    }

    /// Each frame as a batch of its own.
    pub fn single(&self) -> impl Iterator<Item = (Arc<Batch>, Origin)> {
        self.frames.iter().map(|(seq, batch)| (batch.clone(), Origin::one(self.session, *seq)))
    }
}
