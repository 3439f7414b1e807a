//! The single writer of the journal: a thread, or a task (`threads.rs`). It takes waiting batches in groups (group commit). For
//! each group, it syncs once, adds the batches to the memtable, and then answers the senders. It also decides when a generation
//! is full or old enough to be sealed.
//!
//! Path of one record. Before: `arrival.rs` checked it. Here: `journal/encode.rs` and `journal/writer.rs` make it
//! durable. After: `generation.rs` makes it readable.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use tacho_model::{Clock, Kind, Labels, SeriesId, TimeRange};
use tokio::sync::{Notify, oneshot};

use crate::arrival::{Appended, Arrival, Origin};
use crate::budget::{Budget, Reservation};
use crate::changes::{self, Change, Changes};
use crate::disk::SyncPoint;
use crate::generation::{Generation, Generations, JournalFile};
use crate::guarded::Guarded;
use crate::in_flight::Ticket;
use crate::index::Index;
use crate::journal::format::{Header, Older};
use crate::journal::{Encoder, Failure, Writer};
use crate::mutation::Mutation;
use crate::options::Options;
use crate::sessions::{Sessions, Standing};
use crate::shared::FlushSignals;
use crate::stats::Counters;
use crate::turns::Turns;
use crate::{Error, Result};

pub enum Command {
    Append(Append),
    Seal(oneshot::Sender<Sealed>),
}

pub struct Sealed {
    /// The last generation that waits for its flush; 0 if there is none.
    pub through: u64,
    /// An error if the remains of a refused batch may still be in a journal. A recovery could then read the batch.
    pub clean: Result<()>,
}

pub struct Append {
    pub arrival: Arrival,
    pub reservation: Reservation,
    pub chunks: Reservation,
    /// Keeps the known series of the arrival in the index.
    pub ticket: Option<Arc<Ticket>>,
    pub reply: oneshot::Sender<Result<Appended>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    Size,
    Age,
    /// Requested by a flush, a deletion or a shutdown.
    Close,
    /// The journal file of the generation cannot be written.
    Failure,
}

/// A group with this many bytes takes no further batch. This limit bounds the wait of the first batch.
const GROUP_BYTES_MAX: usize = 8 << 20;
/// A group with this many series takes no further batch. Its last batch may have up to a million series.
const GROUP_SERIES_MAX: usize = 16_384;
/// A batch with more series than this, of all kinds together, is large ([`is_large`]).
const SMALL_SERIES_MAX: usize = 4_096;
/// A generation with this many samples of one series is sealed. This bounds the memory for encoding the generation and does not
/// shorten chunks, which have fewer samples.
const SERIES_VALUES_MAX: usize = 1 << 18;
/// A generation with many series is sealed not at [`Options::seal_bytes`], but when it takes this many bytes of memory per series
/// of samples (function [`seal_bytes`]). Each sealed series costs a definition in the next journal and a column of a chunk, so it
/// should have many samples. A series of a counter with 20 samples takes about 90 bytes.
const SEAL_BYTES_PER_SERIES: usize = 96;
/// Longest wait for a command while no generation is open.
const IDLE: Duration = Duration::from_secs(3_600);

#[derive(Default)]
struct Group {
    records: Vec<u8>,
    batches: Vec<Append>,
    /// Repetitions of batches in this group. They are answered when the group is on disk.
    echoes: Vec<Append>,
    origins: HashMap<u128, Vec<Origin>>,
}

pub struct StoreParts {
    pub options: Arc<Options>,
    pub directory: PathBuf,
    /// Identity of the store, written to every journal header.
    pub id: u128,
    pub clock: Arc<dyn Clock>,
    pub generations: Arc<Guarded<Generations>>,
    pub index: Arc<Guarded<Index>>,
    pub sessions: Arc<Guarded<Sessions>>,
    pub budget: Arc<Budget>,
    /// Number of chunks that the records in memory need because of their times.
    pub chunks: Arc<Budget>,
    pub counters: Arc<Counters>,
    pub signals: Arc<FlushSignals>,
    pub changes: Arc<Changes>,
}

/// State of the writer: the open journal file and the definitions in it.
pub struct Committer {
    store: StoreParts,
    receiver: Receiver<Command>,
    writer: Option<Writer>,
    encoder: Encoder,
    /// A file whose last write failed, and the length to which the file must be cut.
    broken: Option<(PathBuf, u64)>,
}

impl Committer {
    pub fn new(store: StoreParts, receiver: Receiver<Command>) -> Self {
        Self { store, receiver, writer: None, encoder: Encoder::default(), broken: None }
    }

    /// Runs on its own thread until the store is dropped.
    pub fn run(mut self) {
        loop {
            match self.receiver.recv_timeout(self.time_left()) {
                Ok(command) => self.execute(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.seal_if_due();
        }
    }

    /// Runs as a task until the store is dropped. `sent` is notified after each command.
    pub async fn run_as_task(mut self, sent: Arc<Notify>) {
        loop {
            let _ = tokio::time::timeout(self.time_left(), sent.notified()).await;
            loop {
                match self.receiver.try_recv() {
                    Ok(command) => self.execute(command),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
                self.seal_if_due();
            }
            self.seal_if_due();
        }
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Append(first) => self.gather_and_commit(first),
            Command::Seal(reply) => self.seal_and_reply(reply),
        }
    }

    fn seal_if_due(&mut self) {
        if let Some(reason) = self.due() {
            self.seal(reason);
        }
    }

    /// Commits a batch and all batches that wait after it, up to the next command to seal. Then performs this command.
    fn gather_and_commit(&mut self, first: Append) {
        let (mut waiting, mut seal) = (Turns::default(), None);
        waiting.push(is_large(&first.arrival), first);
        loop {
            while seal.is_none() {
                match self.receiver.try_recv() {
                    Ok(Command::Append(append)) => waiting.push(is_large(&append.arrival), append),
                    Ok(Command::Seal(reply)) => seal = Some(reply),
                    Err(_) => break,
                }
            }
            let (mut group, mut series) = (Group::default(), 0);
            waiting.begin();
            while group.records.len() < GROUP_BYTES_MAX
                && series < GROUP_SERIES_MAX
                && let Some(append) = waiting.next()
            {
                series += append.arrival.series_count();
                self.admit(append, &mut group);
            }
            self.commit(group);
            if waiting.is_empty() {
                break;
            }
            self.seal_if_due();
        }
        if let Some(reply) = seal {
            self.seal_and_reply(reply);
        }
    }

    /// Encodes a batch into the group, or keeps it as a repetition of a batch of the group, or answers it immediately.
    fn admit(&mut self, append: Append, group: &mut Group) {
        if let Some(origin) = append.arrival.origin {
            let standing = self.store.sessions.read().standing(origin);
            if let Some(answered) = repeated(&self.store.counters, standing, origin) {
                return answer(append, answered);
            }
            let mut taken = group.origins.get(&origin.session).into_iter().flatten();
            match taken.find(|taken| taken.overlaps(&origin)) {
                None => {}
                Some(taken) if taken.contains(&origin) => return group.echoes.push(append),
                Some(_) => return answer(append, Err(torn(origin))),
            }
        }
        if let Err(error) = self.open_journal() {
            self.store.counters.journal_failures.add(1);
            return answer(append, Err(error));
        }
        let synced = self.writer.as_ref().map_or(0, Writer::length);
        let index = self.store.index.read();
        let encoded = self.encoder.encode_known(&append.arrival, &index, synced, &mut group.records);
        drop(index);
        if let Err(error) = encoded {
            return answer(append, Err(error));
        }
        if let Some(origin) = append.arrival.origin {
            group.origins.entry(origin.session).or_default().push(origin);
        }
        group.batches.push(append);
    }

    /// Begins a generation when none is active.
    fn open_journal(&mut self) -> Result<()> {
        if self.writer.is_some() {
            return Ok(());
        }
        if !Mutation::BrokenJournalNotCut.is_on() {
            // Without this cut, a recovery could read a refused batch.
            self.cut_broken()?;
        }
        let store = &self.store;
        let header = {
            let generations = store.generations.read();
            let sealed = generations.sealed.iter();
            let older = sealed.map(|g| Older { generation: g.number, length: g.journal.length }).collect();
            Header { generation: generations.next, store: store.id, created: store.clock.now(), older }
        };
        let generation = header.generation;
        let writer = Writer::create(&*store.options.disk, &store.directory, &header)?;
        let (path, length) = (writer.path().to_owned(), writer.length());
        let journal = JournalFile { path, length, cut: false, damaged: None };
        let mut generations = store.generations.write();
        generations.active = Some(Generation::new(generation, journal));
        generations.next += 1;
        drop(generations);
        self.encoder = Encoder::default();
        self.writer = Some(writer);
        store.signals.started.notify_one();
        Ok(())
    }

    fn cut_broken(&mut self) -> Result<()> {
        if let Some((path, length)) = &self.broken {
            match self.store.options.disk.cut(path, *length, SyncPoint::JournalRefusedBeforeNext) {
                // The flusher has already cut, flushed and removed the file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                cut => {
                    let failed = |e| Error::io("cut journal after a failed write", path, e);
                    cut.map_err(|e| failed(e).with("length", length))?;
                }
            }
            self.broken = None;
        }
        Ok(())
    }

    fn commit(&mut self, mut group: Group) {
        let Some(writer) = self.writer.as_mut().filter(|_| !group.batches.is_empty()) else { return };
        self.encoder.end_group(writer.length(), &mut group.records);
        self.store.counters.journal_syncs.add(1);
        match writer.commit(&*self.store.options.disk, &group.records) {
            Ok(()) => {
                let length = writer.length();
                self.encoder.committed();
                self.apply(group, length);
            }
            Err(failure) => self.fail(group, failure),
        }
    }

    /// Adds the batches, which are now durable, to the memtable. Then answers their senders.
    fn apply(&self, group: Group, length: u64) {
        let store = &self.store;
        let mut answers = Vec::with_capacity(group.batches.len());
        for append in group.batches {
            let counts = append.arrival.counts();
            store.counters.records.add(counts);
            store.counters.batches.add(1);
            let origin = append.arrival.origin;
            let times: Vec<TimeRange> = changes::times(&append.arrival).collect();
            let mut generations = store.generations.write();
            if let Some(active) = &mut generations.active {
                let (before, window_changes) = (active.bytes, active.window_changes);
                let numbers = number_series(&store.index, &append.arrival);
                active.apply(&append.arrival, &numbers, &times);
                active.journal.length = length;
                store.budget.add(active.bytes.saturating_sub(before));
                store.chunks.add(active.window_changes - window_changes);
                // This report must precede `sessions.take`. After `take`, another thread may acknowledge a repetition of this
                // frame.
                times.into_iter().for_each(|times| store.changes.report(Change::Samples, times));
                if let Some(origin) = origin {
                    let mut sessions = store.sessions.write();
                    let forgotten = sessions.take(origin, active.number);
                    store.counters.session_gaps_forgotten.add(forgotten as u64);
                    // A late frame must not lower the frame number in the row of its session.
                    active.sessions.insert(origin.session, sessions.acked(origin.session));
                }
            }
            drop(generations);
            drop((append.reservation, append.chunks, append.ticket));
            answers.push(append.reply);
        }
        for reply in answers {
            let _ = reply.send(Ok(Appended::Stored));
        }
        for echo in group.echoes {
            store.counters.batches_repeated.add(1);
            answer(echo, Ok(Appended::Repeated));
        }
    }

    /// Discards all batches of the group and sends the error to every sender.
    fn fail(&mut self, group: Group, failure: Failure) {
        self.store.counters.journal_failures.add(1);
        let (Failure::Undone(error) | Failure::Broken(error)) = &failure;
        tracing::error!(%error, batches = group.batches.len(), "journal write failed, batches refused");
        let error = error.clone();
        match failure {
            // Definitions in the discarded records must be written again.
            Failure::Undone(_) => self.encoder.rollback(),
            Failure::Broken(_) => {
                self.broken = self.writer.as_ref().map(|w| (w.path().to_owned(), w.length()));
                if let Some(active) = &mut self.store.generations.write().active {
                    active.journal.cut = true;
                }
                self.seal(Seal::Failure);
            }
        }
        for append in group.batches.into_iter().chain(group.echoes) {
            answer(append, Err(error.clone()));
        }
    }

    fn time_left(&self) -> Duration {
        match &self.store.generations.read().active {
            Some(active) => self.store.options.seal_age.saturating_sub(active.since.elapsed()),
            None => IDLE,
        }
    }

    /// `None` if the active generation stays active.
    fn due(&self) -> Option<Seal> {
        let generations = self.store.generations.read();
        let (active, options) = (generations.active.as_ref()?, &self.store.options);
        let journal = self.writer.as_ref().map_or(0, Writer::length);
        let full = active.bytes >= seal_bytes(options, active.samples.len())
            || active.samples.values_max() >= SERIES_VALUES_MAX;
        if full || journal >= options.journal_bytes {
            Some(Seal::Size)
        } else if active.since.elapsed() >= options.seal_age {
            Some(Seal::Age)
        } else {
            None
        }
    }

    fn seal(&mut self, reason: Seal) {
        self.writer = None;
        let mut generations = self.store.generations.write();
        let Some(active) = generations.active.take() else { return };
        let counters = &self.store.counters;
        match reason {
            Seal::Size => &counters.seals_by_size,
            Seal::Age => &counters.seals_by_age,
            Seal::Close => &counters.seals_by_close,
            Seal::Failure => &counters.seals_by_failure,
        }
        .add(1);
        tracing::debug!(generation = active.number, bytes = active.bytes, ?reason, "generation sealed");
        let number = active.number;
        generations.sealed.push_back(Arc::new(active));
        drop(generations);
        self.store.signals.sealed.send_replace(number);
    }

    fn seal_and_reply(&mut self, reply: oneshot::Sender<Sealed>) {
        self.seal(Seal::Close);
        let clean = self.cut_broken();
        let through = self.store.generations.read().sealed_through();
        let _ = reply.send(Sealed { through, clean });
    }
}

/// Memory at which a generation with this number of series of samples is sealed, bytes. It is at least
/// [`Options::seal_bytes`]. Many series raise it to at most three eighths of the memory budget, so that one generation can grow
/// while another is flushed.
fn seal_bytes(options: &Options, series: usize) -> usize {
    let of_series = series.saturating_mul(SEAL_BYTES_PER_SERIES).min(options.open_bytes_max / 8 * 3);
    options.seal_bytes.max(of_series)
}

/// Whether the work for a batch takes some milliseconds. The frames of an agent are never large, so they stay in order.
fn is_large(arrival: &Arrival) -> bool {
    arrival.origin.is_none() && arrival.series_count() > SMALL_SERIES_MAX
}

/// The answer to a batch with frames that were stored before; `None` for a new batch.
pub fn repeated(counters: &Counters, standing: Standing, origin: Origin) -> Option<Result<Appended>> {
    match standing {
        Standing::New => None,
        Standing::Repeated => {
            counters.batches_repeated.add(1);
            Some(Ok(Appended::Repeated))
        }
        Standing::Torn => Some(Err(torn(origin))),
    }
}

fn torn(Origin { first, seq, .. }: Origin) -> Error {
    Error::invalid(format!("frames {first} to {seq} were partly stored before: send them one by one"))
}

/// Adds unknown series to the index. Returns the index numbers of the series of samples with labels, in the order of the batch.
pub fn number_series(index: &Guarded<Index>, arrival: &Arrival) -> Vec<u32> {
    let known = |index: &Index| -> Option<Vec<u32>> {
        let others_known = arrival.entries().all(|(id, _)| index.has(Kind::Entry, id))
            && arrival.executions().all(|(id, _)| index.has(Kind::Execution, id));
        let mut before = None;
        let samples = arrival.samples().map(|(id, _)| {
            before = index.number_after(before, id).filter(|number| index.is_of(Kind::Sample, *number));
            before
        });
        samples.collect::<Option<Vec<u32>>>().filter(|_| others_known)
    };
    if let Some(numbers) = known(&index.read()) {
        return numbers;
    }
    let mut index = index.write();
    let add = |(kind, id, labels): (Kind, SeriesId, &Arc<Labels>)| (kind, index.add(kind, id, labels));
    let numbers = arrival.series().map(add);
    numbers.filter(|(kind, _)| *kind == Kind::Sample).map(|(_, number)| number).collect()
}

fn answer(append: Append, result: Result<Appended>) {
    drop(append.reservation);
    // The caller may have stopped waiting. That does not change the result for its batch.
    let _ = append.reply.send(result);
}

/// The error of a call to a closed store, or of a call that needs an ended thread or task of the store.
pub fn closed() -> Error {
    Error::new(crate::ErrorKind::Closed, "store is closed")
}

#[cfg(test)]
mod tests {
    use tacho_model::{Batch, EntrySeries, ExecutionSeries, SampleSeries};

    use super::*;

    #[test]
    fn series_of_all_kinds_make_a_batch_large() {
        let labels = || Arc::new(Labels::empty());
        let entries = vec![EntrySeries { labels: labels(), entries: Vec::new() }; SMALL_SERIES_MAX - 1];
        let executions =
            vec![ExecutionSeries { labels: labels(), operations: Vec::new(), segments: Vec::new() }];
        let small = Batch { entries, executions, ..Batch::default() };
        let samples = vec![SampleSeries { labels: labels(), samples: Vec::new() }];
        let large = Batch { samples, ..small.clone() };
        let is_large = |batch: &Batch, origin| is_large(&Arrival::new(Arc::new(batch.clone()), origin));
        assert!(!is_large(&small, None) && is_large(&large, None));
        assert!(!is_large(&large, Some(Origin::one(1, 1))), "a frame of an agent must not count as large");
    }

    #[test]
    fn generations_grow_with_their_series_within_the_memory_budget() {
        let options = Options { seal_bytes: 64, open_bytes_max: 1_600, ..Options::default() };
        for (series, expect) in [(0, 64), (1, 96), (6, 576), (7, 600), (usize::MAX, 600)] {
            assert_eq!(seal_bytes(&options, series), expect, "{series} series");
        }
        let options = Options { seal_bytes: 900, ..options };
        assert_eq!(seal_bytes(&options, 4), 900);
    }
}
