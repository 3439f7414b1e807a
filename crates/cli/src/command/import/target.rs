//! The target of an import: a server, or a data directory opened by this process.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tacho_api::tally::Held;
use tacho_ingest::wire::Secret;
use tacho_model::{Batch, Kind, Labels, TimeRange};
use tacho_server::access::View;
use tacho_server::clock::SystemClock;
use tacho_server::data_directory;
use tacho_server::read::reader::Selected;
use tacho_server::read::tally;
use tacho_store::lock::DirectoryLock;
use tacho_store::{Appended, ErrorKind, Origin, Store};

use crate::client::{Connection, Refusal};
use crate::command::ask;
use crate::command::import::frames;
use crate::failure::Failure;

/// Limit on the wait for a server or a store that is out of capacity.
const PATIENCE: Duration = Duration::from_secs(600);
/// A wait is reported after this time.
const TOLD_AFTER: Duration = Duration::from_secs(3);
/// Interval at which a waiting import checks whether it was interrupted.
const STOP_EVERY: Duration = Duration::from_millis(100);
/// Limit on the series of one checksum request.
const QUESTIONS: usize = 500;

pub enum Target {
    Server(Connection),
    Directory { store: Arc<Store>, _lock: DirectoryLock },
}

impl Target {
    /// Opens the data directory `data`. Without `data`, connects to a server; `server` and `token` are those of the
    /// command line.
    pub async fn open(
        (server, token): (Option<&str>, &ask::Token),
        data: Option<&Path>,
    ) -> Result<Self, Failure> {
        let Some(data) = data else { return Ok(Self::Server(ask::client(server, token)?.connect().await?)) };
        let (store, lock) = data_directory::open(data, Arc::new(SystemClock)).await.map_err(|e| {
            let failure = Failure::new(format!("cannot open the data directory {}: {e}", data.display()));
            match e.kind() {
                ErrorKind::Locked if e.is_of_reader() => failure.hint(ask::OF_READER),
                ErrorKind::Locked => {
                    failure.hint("a server uses the directory: send to this server with --server")
                }
                ErrorKind::Corrupt => failure.hint(ask::damage_hint(data)),
                _ => failure,
            }
        })?;
        Ok(Self::Directory { store, _lock: lock })
    }

    /// Stores a piece. Returns the number of refused records, and their reasons.
    pub async fn put(
        &mut self,
        batch: Batch,
        (session, secret): (u128, Option<Secret>),
        seq: u64,
        stop: &AtomicBool,
    ) -> Result<(u64, Vec<String>), Failure> {
        let mut queue = Queue { begun: Instant::now(), is_told: false, stop };
        match self {
            Self::Server(connection) => {
                let body = hyper::body::Bytes::from(frames::body(&batch, (session, secret), seq));
                loop {
                    match connection.post("/api/v1/import", body.clone()).await {
                        Ok(answer) => return Ok(refused(&answer)),
                        Err(Refusal::Later(wait, why)) => queue.wait(wait, &why).await?,
                        Err(Refusal::Failed(failure)) => return Err(failure),
                    }
                }
            }
            Self::Directory { store, .. } => {
                let batch = Arc::new(batch);
                loop {
                    match store.append(Arc::clone(&batch), Some(Origin::one(session, seq))).await {
                        Ok(Appended::Partly(refused)) => {
                            let records: usize = refused.records.iter().sum();
                            let reasons = refused.named.into_iter().map(|series| series.reason).collect();
                            return Ok((records as u64, reasons));
                        }
                        Ok(Appended::Stored | Appended::Repeated) => return Ok((0, vec![])),
                        Err(error) => match error.kind() {
                            ErrorKind::Full { retry_after } => {
                                queue.wait(retry_after, &error.to_string()).await?;
                            }
                            _ => return Err(Failure::new(error)),
                        },
                    }
                }
            }
        }
    }

    /// The tally (count and checksum) of the stored records of each series in its range.
    pub async fn tallies(&mut self, questions: &[Question]) -> Result<Vec<Held>, Failure> {
        let mut out = Vec::with_capacity(questions.len());
        match self {
            Self::Server(connection) => {
                for part in questions.chunks(QUESTIONS) {
                    let body: Vec<Value> = part.iter().map(Question::json).collect();
                    let body = Value::from(body).to_string();
                    let answer = connection.post("/api/v1/checksum", body.into()).await;
                    let answer = answer.map_err(|refusal| match refusal {
                        Refusal::Failed(failure) => failure,
                        Refusal::Later(_, why) => full(&why),
                    })?;
                    let unreadable =
                        |e| Failure::new(format!("the response with checksums cannot be parsed: {e}"));
                    let mut answer: Value = serde_json::from_str(&answer).map_err(unreadable)?;
                    let held: Vec<Held> =
                        serde_json::from_value(answer["data"].take()).map_err(unreadable)?;
                    out.extend(held);
                }
            }
            Self::Directory { store, .. } => {
                let wanted = |Question { kind, labels, range }: &Question| {
                    let series = Selected { kind: *kind, id: labels.id(), labels: Arc::clone(labels) };
                    (series, *range)
                };
                let wanted = questions.iter().map(wanted).collect();
                let tallies = tally::tallies(&View::whole(store.clone()), wanted).await;
                // A directory is opened without the retention rules of a server, so there is no retention.
                let held = |tally| Held { tally, retention: None };
                out.extend(tallies.map_err(Failure::new)?.into_iter().map(held));
            }
        }
        Ok(out)
    }

    /// In a data directory, writes all records to chunks.
    pub async fn close(self) -> Result<(), Failure> {
        match self {
            Self::Server(_) => Ok(()),
            Self::Directory { store, .. } => store.close().await.map_err(Failure::new),
        }
    }
}

/// A request for the tally of a series in a time range.
pub struct Question {
    pub kind: Kind,
    pub labels: Arc<Labels>,
    pub range: TimeRange,
}

impl Question {
    fn json(&self) -> Value {
        let metric: serde_json::Map<String, Value> =
            self.labels.iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let (start, end) = (self.range.start.to_string(), self.range.end.to_string());
        json!({ "metric": metric, "kind": self.kind.name(), "start": start, "end": end })
    }
}

fn refused(answer: &str) -> (u64, Vec<String>) {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let list = answer["data"]["refused"].as_array().cloned().unwrap_or_default();
    let reasons: Vec<String> = list.iter().filter_map(|reason| reason.as_str().map(str::to_owned)).collect();
    (answer["data"]["refused_records"].as_u64().unwrap_or(reasons.len() as u64), reasons)
}

fn full(why: &str) -> Failure {
    Failure::new(format!("the store is out of capacity: {why}"))
}

/// Waits for capacity, for at most [`PATIENCE`], or until the import is interrupted.
struct Queue<'a> {
    begun: Instant,
    is_told: bool,
    stop: &'a AtomicBool,
}

impl Queue<'_> {
    /// `why` is the reason given by the store.
    async fn wait(&mut self, time: Duration, why: &str) -> Result<(), Failure> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Failure::new(format!("interrupted during the wait for capacity: {why}")));
            }
            if !self.is_told && self.begun.elapsed() > TOLD_AFTER {
                self.is_told = true;
                eprintln!("waiting for capacity, up to {} s: {why}", PATIENCE.as_secs());
            }
            tokio::time::sleep(STOP_EVERY.min(time)).await;
        }
        if self.begun.elapsed() < PATIENCE { Ok(()) } else { Err(full(why)) }
    }
}
