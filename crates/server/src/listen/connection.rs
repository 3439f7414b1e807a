//! Serves one connection of an agent: greeting, reading, and closing.
//!
//! Step before: `native.rs` accepts the connection. Step after: `commit.rs` writes the decoded records to disk.

use std::net::IpAddr;
use std::sync::Arc;

use tacho_ingest::wire::{
    ClientFrame, Data, ErrorCode, FRAME_BODY_BYTES_MAX, HEADER_BYTES, HEARTBEAT_MS, Hello, Numbering, Ping,
    Reject, Sequence, ServerFrame, Session, Welcome, feature,
};
use tacho_model::Batch;
use tacho_store::mutation::Mutation;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::commit::{Committer, FRAMES_IN_FLIGHT_MAX, Pending};
use super::counts::Counts;
use super::farewell::{Farewell, Stop};
use super::http_request;
use super::incoming::Incoming;
use super::outgoing::{self, Message, Outgoing};
use super::rule_updates;
use super::sessions::Claim;
use super::shared::Native;
use crate::connection_limit::Seat;
use crate::control::{Identity, Presence};
use crate::shutdown::Shutdown;
use crate::tls::Socket;

/// Serves one agent until either side closes the connection. After HELLO the connection cannot be evicted.
pub(super) async fn run(
    native: &Native,
    (stream, peer): (Socket, IpAddr),
    seat: &Arc<Seat>,
    shutdown: Shutdown,
) {
    let (read, write) = tokio::io::split(stream);
    let mut incoming = Incoming::new(read, native.patience, &native.large_frames);
    let (outgoing, frames) = outgoing::channel();
    let conversation = async {
        let stop = converse(native, &mut incoming, (&outgoing, peer), seat, shutdown).await;
        let (reason, message, last) = match &stop {
            Err(Stop::Farewell(farewell)) => {
                (farewell.reason(), farewell.message.as_str(), Message::Frame(farewell.frame()))
            }
            Err(Stop::Http) => {
                ("http", "the peer sent an HTTP request", Message::Text(http_request::refusal(native.http)))
            }
            Err(Stop::Left) | Ok(()) => return stop,
        };
        native.metrics.connections_refused.with(["native", reason]).add(1);
        tracing::debug!(listener = "native", reason = message, "connection ended");
        // Fails if the peer has disconnected, which is harmless.
        let _ = outgoing.send(last).await;
        drop(outgoing);
        stop
    };
    let (stop, ()) = tokio::join!(conversation, outgoing::write(frames, write, native.patience.write));
    if let Err(Stop::Farewell(_) | Stop::Http) = stop {
        incoming.discard_rest().await;
    }
}

async fn converse(
    native: &Native,
    incoming: &mut Incoming<'_>,
    (outgoing, peer): (&Outgoing, IpAddr),
    seat: &Arc<Seat>,
    mut shutdown: Shutdown,
) -> Result<(), Stop> {
    // The branches of each `select!` are tried in order, so that a simulation repeats exactly.
    let hello = tokio::select! {
        biased;
        () = shutdown.wait() => return Err(Farewell::shutting_down().into()),
        hello = tokio::time::timeout(native.patience.greeting, greet(incoming)) => hello.map_err(|_| Stop::Left)??,
    };
    let _busy = seat.begin();
    let version = hello.version()?;
    let session = Session::new(&hello)?;
    let (access, _session) = super::greeting::enter(&native.gate, &hello, &session, peer)?;
    let session_id = access.session_id(hello.session);
    let claim = native.sessions.claim(session_id).await;
    let acked = native.store.session_acked(session_id) + u64::from(Mutation::WelcomeAheadOfDisk.is_on());
    outgoing.send(ServerFrame::Welcome(welcome(version, acked))).await?;

    let identity = Identity::new(|key| session.executions().get(key).or_else(|| hello.get(key)));
    let takes_rules = hello.get("control") == Some("1");
    let presence = native.control.enter(session_id, identity, takes_rules, native.clock.now());
    let counts = Counts::new(&native.metrics, session.executions().get("service").unwrap_or_default());
    let (pending, decoded) = mpsc::channel(FRAMES_IN_FLIGHT_MAX);
    let committing = Committer {
        writer: native.writer(&access),
        session: session_id,
        counts: &counts,
        outgoing: outgoing.clone(),
        superseded: claim.superseded(),
        shutdown: shutdown.clone(),
        acked,
    }
    .run(decoded);
    let listener = Listener {
        native,
        claim: &claim,
        presence: &presence,
        counts: &counts,
        outgoing,
        session,
        sequence: Sequence::new(acked),
        dictionary: None,
        pending,
    };
    let mut superseded = claim.superseded();
    let reading = async {
        tokio::select! {
            biased;
            () = shutdown.wait() => Err(Farewell::shutting_down().into()),
            () = superseded.wait() => Err(Farewell::superseded().into()),
            stop = rule_updates::run(&presence, outgoing, &*native.clock, &native.lists) => stop,
            () = native.gate.changed(&access) => Err(Farewell::of_token().into()),
            stop = listener.run(incoming) => stop,
        }
    };
    tokio::pin!(committing);
    tokio::select! {
        biased;
        // The frames that were read are stored and acknowledged before the server sends its last frame. If the store is full or
        // fails, the client keeps the frames that are not stored.
        stop = reading => committing.await.and(stop),
        stop = &mut committing => stop,
    }
}

fn welcome(version: u8, acked: u64) -> Welcome {
    Welcome {
        version,
        acked,
        frame_body_bytes_max: u64::from(FRAME_BODY_BYTES_MAX),
        heartbeat_ms: HEARTBEAT_MS,
        features: feature::RECORDS,
    }
}

async fn greet(incoming: &mut Incoming<'_>) -> Result<Hello, Stop> {
    incoming.wait().await?;
    let frame = incoming.frame()?.map(ClientFrame::decode).transpose()?;
    match frame {
        Some(ClientFrame::Hello(hello)) if hello.proves_session() => Ok(hello),
        Some(ClientFrame::Hello(_)) => {
            Err(Farewell::new(ErrorCode::Session, "the secret does not belong to this session").into())
        }
        _ => Err(Farewell::new(ErrorCode::Malformed, "the first frame is not HELLO").into()),
    }
}

struct Listener<'a> {
    native: &'a Native,
    claim: &'a Claim<'a>,
    presence: &'a Presence<'a>,
    counts: &'a Counts,
    outgoing: &'a Outgoing,
    session: Session,
    sequence: Sequence,
    dictionary: Option<OwnedSemaphorePermit>,
    pending: mpsc::Sender<Pending>,
}

impl Listener<'_> {
    async fn run(mut self, incoming: &mut Incoming<'_>) -> Result<(), Stop> {
        loop {
            incoming.wait().await?;
            let Some(frame) = incoming.frame()? else { continue };
            self.counts.frame(HEADER_BYTES + frame.body.len());
            match ClientFrame::decode(frame)? {
                ClientFrame::Dict(body) => self.define(body).await?,
                ClientFrame::Data(body) => self.take(body).await?,
                ClientFrame::Ping(ping) => self.answer(ping).await?,
                ClientFrame::Bye => return Ok(()),
                ClientFrame::Probed(probed) => self.presence.answered(probed, self.native.clock.now()),
                ClientFrame::Hello(_) => {
                    return Err(Farewell::new(ErrorCode::Malformed, "a second HELLO").into());
                }
            }
        }
    }

    /// Adds definitions. On return, their record types are on disk, unless a limit is reached or the file cannot be written.
    async fn define(&mut self, body: &[u8]) -> Result<(), Stop> {
        self.session.define(body)?;
        let types = (self.session.take_record_types(), self.session.take_omitted_types());
        let held = self.dictionary.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = u32::try_from(self.session.dictionary_bytes().saturating_sub(held)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.native.dictionary_bytes).try_acquire_many_owned(more).map_err(|_| {
            Farewell::new(ErrorCode::Dictionary, "the memory for dictionaries of all connections is used up")
        })?;
        match &mut self.dictionary {
            Some(held) => held.merge(room),
            none => *none = Some(room),
        }
        let service = self.session.executions().get("service").unwrap_or_default();
        self.native.record_types.defined(service, types, self.native.clock.now()).await;
        Ok(())
    }

    /// Counts the refused records of a DATA frame, reports the first of them, and queues the valid records for the disk.
    async fn take(&mut self, body: &[u8]) -> Result<(), Stop> {
        let seq = Session::seq(body)?;
        // Waiting fails only if the semaphore is closed, which does not happen while this connection exists.
        let mut room = self.native.in_flight.room(body.len()).await.ok_or(Stop::Left)?;
        let batch = match self.sequence.take(seq)? {
            Numbering::Fresh => self.decode(body).await?,
            Numbering::Repeated => Batch::default(),
        };
        room.keep(body.len(), &batch);
        self.pending.send(Pending { seq, batch, room }).await.map_err(|_| Stop::Left)
    }

    async fn decode(&mut self, body: &[u8]) -> Result<Batch, Stop> {
        let Data { seq, batch, rejects } = self.session.data(body)?;
        self.counts.refused(rejects.count);
        for refused in rejects.named {
            let reject = Reject { seq, record: refused.record, reason: refused.reason };
            self.outgoing.send(ServerFrame::Reject(reject)).await?;
        }
        Ok(batch)
    }

    async fn answer(&self, ping: Ping) -> Result<(), Stop> {
        let now = self.native.clock.now();
        self.presence.heard(ping, now);
        self.counts.dropped(self.claim.report(ping));
        self.outgoing.send(ServerFrame::Pong(now)).await?;
        Ok(())
    }
}
