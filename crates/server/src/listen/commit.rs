//! Appends decoded frames to the store in order. Waiting frames are appended and acknowledged together.
//!
//! One append of a session runs at a time. Frames that arrive in the meantime form the next append. So no frame is stored
//! before all earlier frames are stored or refused, and an ACK covers all frames up to its number.
//!
//! Step before: `connection.rs` decoded the frames. Step after: `crates/store/src/store.rs`.

use std::sync::Arc;
use std::time::Duration;

use tacho_ingest::wire::{ErrorCode, Reject, ServerFrame};
use tacho_model::{Batch, Kind};
use tacho_store::mutation::Mutation;
use tacho_store::{Appended, Error, ErrorKind, Origin, Refused};
use tokio::sync::mpsc;

use super::counts::Counts;
use super::farewell::{Farewell, Stop};
use super::outgoing::Outgoing;
use super::sessions::Superseded;
use crate::access::{Writer, Written};
use crate::decoding::FrameRoom;
use crate::shutdown::Shutdown;

/// Limit on the decoded frames of one connection that wait for an append. The same limit applies to the frames of an append.
pub(super) const FRAMES_IN_FLIGHT_MAX: usize = 32;
/// Maximum pause between two attempts to append. The client gets a WAIT frame before each pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A decoded frame that is not yet on disk.
pub(super) struct Pending {
    pub seq: u64,
    /// Empty for a repeated frame.
    pub batch: Batch,
    pub room: FrameRoom,
}

pub(super) struct Committer<'a> {
    pub writer: Writer,
    pub session: u128,
    pub counts: &'a Counts,
    pub outgoing: Outgoing,
    pub superseded: Superseded,
    pub shutdown: Shutdown,
    /// Number of the last frame that is stored or refused.
    pub acked: u64,
}

impl Committer<'_> {
    pub(super) async fn run(mut self, mut pending: mpsc::Receiver<Pending>) -> Result<(), Stop> {
        let mut frames = Vec::with_capacity(FRAMES_IN_FLIGHT_MAX);
        while pending.recv_many(&mut frames, FRAMES_IN_FLIGHT_MAX).await > 0 {
            let group = Group::new(frames.drain(..));
            let last = group.frames.iter().map(|frame| frame.seq).fold(self.acked, u64::max);
            if Mutation::FrameAcknowledgedFirst.is_on() {
                self.outgoing.send(ServerFrame::Ack(last)).await?;
            }
            self.keep(&group).await?;
            self.acked = last;
            self.outgoing.send(ServerFrame::Ack(self.acked)).await?;
        }
        Ok(())
    }

    /// Appends a group of frames as one batch. If the store refuses the batch, appends each frame alone, so that the valid frames
    /// are kept.
    async fn keep(&mut self, group: &Group) -> Result<(), Stop> {
        let error = match self.append(Arc::clone(&group.batch), group.numbers()).await? {
            Ok(refused) => return self.tell(group, refused).await,
            Err(error) => error,
        };
        if let [frame] = &*group.frames {
            return self.refuse(frame.seq, &group.batch, &error).await;
        }
        for (position, frame) in group.frames.iter().enumerate() {
            let alone = group.alone(position);
            match self.append(Arc::clone(&alone.batch), (frame.seq, frame.seq)).await? {
                Ok(refused) => self.tell(&alone, refused).await?,
                Err(error) => self.refuse(frame.seq, &alone.batch, &error).await?,
            }
        }
        Ok(())
    }

    /// Reports a refused frame. The frame is acknowledged anyway, because the store would refuse it again.
    async fn refuse(&self, seq: u64, batch: &Batch, error: &Error) -> Result<(), Stop> {
        let records: usize = batch.counts().iter().sum();
        self.counts.refused(records as u64);
        self.outgoing.send(ServerFrame::Reject(Reject { seq, record: 0, reason: error.to_string() })).await?;
        Ok(())
    }

    /// Reports series that the store refused because of a limit, each with the number of its frame. If many are refused, only
    /// the first of them are reported.
    async fn tell(&self, group: &Group, refused: Refused) -> Result<(), Stop> {
        self.counts.refused(refused.records.iter().sum::<usize>() as u64);
        for series in refused.named {
            let seq = group.seq_of(series.kind, series.position);
            let reject = Reject { seq, record: 0, reason: series.reason };
            self.outgoing.send(ServerFrame::Reject(reject)).await?;
        }
        Ok(())
    }

    /// Retries until the batch is on disk or refused. A storage failure ends the connection, and the client keeps
    /// unacknowledged frames.
    async fn append(
        &mut self,
        batch: Arc<Batch>,
        (first, seq): (u64, u64),
    ) -> Result<Result<Refused, Error>, Stop> {
        if batch.is_empty() {
            return Ok(Ok(Refused::default()));
        }
        let origin = Origin { session: self.session, first, seq };
        let origin = (!Mutation::FramesWithoutOrigin.is_on()).then_some(origin);
        loop {
            // This append is never cancelled, because a batch that may still be written must not be appended again.
            let error = match self.writer.append(Arc::clone(&batch), origin).await {
                Ok(Written::Wait { seconds, .. }) => {
                    self.wait(Duration::from_secs(seconds)).await?;
                    continue;
                }
                Ok(Written::Appended(appended)) => {
                    let refused = match appended {
                        Appended::Partly(refused) => refused,
                        Appended::Stored => Refused::default(),
                        // These records were counted when they were stored.
                        Appended::Repeated => return Ok(Ok(Refused::default())),
                    };
                    let kept = batch.counts().into_iter().zip(refused.records);
                    self.counts.received(kept.map(|(all, refused)| all.saturating_sub(refused)));
                    return Ok(Ok(refused));
                }
                Err(error) => error,
            };
            match error.kind() {
                ErrorKind::Full { retry_after } => self.wait(retry_after).await?,
                ErrorKind::Invalid | ErrorKind::Limit => return Ok(Err(error)),
                ErrorKind::Closed => return Err(Farewell::shutting_down().into()),
                _ if Mutation::StorageFailureAcknowledged.is_on() => return Ok(Err(error)),
                _ => return Err(Farewell::new(ErrorCode::Storage, error.to_string()).into()),
            }
        }
    }

    async fn wait(&mut self, retry_after: Duration) -> Result<(), Stop> {
        self.counts.waited();
        let ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
        self.outgoing.send(ServerFrame::Wait(ms)).await?;
        tokio::select! {
            biased;
            () = self.superseded.wait() => Err(Farewell::superseded().into()),
            () = self.shutdown.wait() => Err(Farewell::shutting_down().into()),
            () = tokio::time::sleep(retry_after.min(PAUSE_MAX)) => Ok(()),
        }
    }
}

/// Frames that are appended together. Not a group of series.
struct Group {
    batch: Arc<Batch>,
    frames: Vec<Member>,
    /// Released when the group is on disk.
    _rooms: Vec<FrameRoom>,
}

/// `ends` are the ends of the frame's records in the group's lists of samples, entries and executions.
struct Member {
    seq: u64,
    ends: [usize; 3],
}

impl Group {
    fn new(pending: impl Iterator<Item = Pending>) -> Self {
        let mut all = Batch::default();
        let mut frames = Vec::new();
        let mut rooms = Vec::new();
        for Pending { seq, batch, room } in pending {
            all.samples.extend(batch.samples);
            all.entries.extend(batch.entries);
            all.executions.extend(batch.executions);
            frames.push(Member { seq, ends: [all.samples.len(), all.entries.len(), all.executions.len()] });
            rooms.push(room);
        }
        Self { batch: Arc::new(all), frames, _rooms: rooms }
    }

    /// The first and the last number of the frames with records. Repeated frames do not count, because the store would refuse
    /// the batch for numbers that it already has.
    fn numbers(&self) -> (u64, u64) {
        let mut before = [0; 3];
        let mut numbers = (u64::MAX, 0);
        for Member { seq, ends } in &self.frames {
            if *ends != before {
                numbers = (numbers.0.min(*seq), numbers.1.max(*seq));
            }
            before = *ends;
        }
        numbers
    }

    fn alone(&self, position: usize) -> Self {
        let before = position.checked_sub(1).and_then(|before| self.frames.get(before));
        let [samples, entries, executions] = before.map_or([0; 3], |member| member.ends);
        let (seq, ends) = self.frames.get(position).map_or((0, [0; 3]), |member| (member.seq, member.ends));
        let batch = Batch {
            samples: self.batch.samples.get(samples..ends[0]).unwrap_or_default().to_vec(),
            entries: self.batch.entries.get(entries..ends[1]).unwrap_or_default().to_vec(),
            executions: self.batch.executions.get(executions..ends[2]).unwrap_or_default().to_vec(),
        };
        let ends = [batch.samples.len(), batch.entries.len(), batch.executions.len()];
        Self { batch: Arc::new(batch), frames: vec![Member { seq, ends }], _rooms: Vec::new() }
    }

    fn seq_of(&self, kind: Kind, position: usize) -> u64 {
        let found = self.frames.iter().find(|frame| position < frame.ends[kind as usize - 1]);
        found.map_or(0, |frame| frame.seq)
    }
}

#[cfg(test)]
mod tests {
    use tacho_model::{Labels, NAME, Sample, SampleSeries, Value};

    use super::*;
    use crate::decoding::Frames;

    #[tokio::test]
    async fn a_group_has_the_numbers_of_its_frames_with_records() {
        let rooms = Frames::new(1 << 30);
        let labels = Arc::new(Labels::new([(NAME, "m")]).unwrap());
        for (frames, expect) in [
            (&[(3, false), (4, false), (5, true), (6, true), (7, false)][..], (5, 6)),
            (&[(9, true), (8, true), (2, false)], (8, 9)),
        ] {
            let mut pending = Vec::new();
            for (seq, is_new) in frames {
                let samples = vec![Sample { at: 1, value: Value::F64(1.0) }];
                let series = SampleSeries { labels: labels.clone(), samples };
                let samples = if *is_new { vec![series] } else { Vec::new() };
                let room = rooms.room(100).await.unwrap();
                pending.push(Pending { seq: *seq, batch: Batch { samples, ..Batch::default() }, room });
            }
            assert_eq!(Group::new(pending.into_iter()).numbers(), expect);
        }
    }
}
