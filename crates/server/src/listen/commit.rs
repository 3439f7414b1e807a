//! Decoded frames to disk: several at a time, in their order, acknowledged together.
//!
//! One append of a session is under way at any moment, and the frames that arrive meanwhile go with the next. So
//! a frame that the store has no room for can never be overtaken by the one behind it, which the store would take as
//! "everything up to here is known".
//!
//! Step before: `connection.rs` decoded the frames. Step after: `crates/store/src/appender.rs`.

use std::time::Duration;

use tacho_ingest::wire::{ErrorCode, Reject, ServerFrame};
use tacho_model::Batch;
use tacho_store::{Error, ErrorKind, Origin, Store};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::counts::Counts;
use super::farewell::{Farewell, Stop};
use super::outgoing::Outgoing;
use super::sessions::Superseded;
use crate::shutdown::Shutdown;

/// Frames of one connection that are decoded and not yet on disk: as many wait as are being written.
pub(super) const FRAMES_IN_FLIGHT_MAX: usize = 32;
/// The longest pause between two tries, so that a waiting client hears from the server.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A frame on its way to disk.
pub(super) struct Pending {
    pub seq: u64,
    /// Empty for a frame that was here before.
    pub batch: Batch,
    /// The room that its bytes take.
    pub _room: OwnedSemaphorePermit,
}

pub(super) struct Committer<'a> {
    pub store: &'a Store,
    pub session: u128,
    pub counts: &'a Counts,
    pub outgoing: Outgoing,
    pub superseded: Superseded,
    pub shutdown: Shutdown,
    /// Number of the last frame on disk.
    pub acked: u64,
}

impl Committer<'_> {
    /// Runs until nothing more will come and all that came is acknowledged.
    pub(super) async fn run(mut self, mut pending: mpsc::Receiver<Pending>) -> Result<(), Stop> {
        let mut group = Vec::with_capacity(FRAMES_IN_FLIGHT_MAX);
        while pending.recv_many(&mut group, FRAMES_IN_FLIGHT_MAX).await > 0 {
            self.keep(&group).await?;
            self.acked = group.iter().map(|frame| frame.seq).fold(self.acked, u64::max);
            self.outgoing.send(ServerFrame::Ack(self.acked)).await?;
            group.clear();
        }
        Ok(())
    }

    /// Appends a group as one batch; where the store refuses it, frame by frame, to keep the good ones.
    async fn keep(&mut self, group: &[Pending]) -> Result<(), Stop> {
        match self.append(group).await? {
            Ok(()) => Ok(()),
            Err(_) if group.len() > 1 => {
                for frame in group {
                    if let Err(error) = self.append(std::slice::from_ref(frame)).await? {
                        self.refuse(frame, &error).await?;
                    }
                }
                Ok(())
            }
            Err(error) => match group.first() {
                Some(frame) => self.refuse(frame, &error).await,
                None => Ok(()),
            },
        }
    }

    /// The frame is acknowledged all the same: sent again it would be refused again.
    async fn refuse(&self, frame: &Pending, error: &Error) -> Result<(), Stop> {
        let records: usize = frame.batch.counts().iter().sum();
        self.counts.refused(records as u64);
        let reason = error.to_string();
        self.outgoing.send(ServerFrame::Reject(Reject { seq: frame.seq, record: 0, reason })).await?;
        Ok(())
    }

    /// Tries until the group is on disk or refused. Storage that fails ends the connection: the client keeps what
    /// is not acknowledged.
    async fn append(&mut self, group: &[Pending]) -> Result<Result<(), Error>, Stop> {
        let Some(seq) = group.iter().filter(|frame| !frame.batch.is_empty()).map(|frame| frame.seq).max()
        else {
            return Ok(Ok(()));
        };
        let origin = Origin { session: self.session, seq };
        loop {
            let batch = merge(group);
            let counts = batch.counts();
            // Never dropped half way: a batch that still may be written must not be sent again.
            let error = match self.store.append(batch, Some(origin)).await {
                Ok(_) => {
                    self.counts.received(counts);
                    return Ok(Ok(()));
                }
                Err(error) => error,
            };
            match error.kind() {
                ErrorKind::Full { retry_after } => self.wait(retry_after).await?,
                ErrorKind::Invalid | ErrorKind::Limit => return Ok(Err(error)),
                ErrorKind::Closed => return Err(Farewell::shutting_down().into()),
                _ => return Err(Farewell::new(ErrorCode::Storage, error.to_string()).into()),
            }
        }
    }

    /// Tells the client to hold back, and pauses.
    async fn wait(&mut self, retry_after: Duration) -> Result<(), Stop> {
        self.counts.waited();
        let ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
        self.outgoing.send(ServerFrame::Wait(ms)).await?;
        tokio::select! {
            () = tokio::time::sleep(retry_after.min(PAUSE_MAX)) => Ok(()),
            () = self.superseded.wait() => Err(Farewell::superseded().into()),
            () = self.shutdown.wait() => Err(Farewell::shutting_down().into()),
        }
    }
}

/// All records of a group. The group keeps its own, for another try.
fn merge(group: &[Pending]) -> Batch {
    let mut all = Batch::default();
    for Pending { batch, .. } in group {
        all.samples.extend_from_slice(&batch.samples);
        all.entries.extend_from_slice(&batch.entries);
        all.executions.extend_from_slice(&batch.executions);
    }
    all
}
