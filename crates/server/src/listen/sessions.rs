//! The sessions, and the totals of dropped records that they reported. A session has one connection at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tacho_ingest::wire::Ping;
use tokio::sync::watch;

/// Limit on the sessions whose reported totals are kept. Above it, disconnected sessions are removed. If a removed session
/// reconnects, the dropped records that it reported before are counted a second time.
const SESSIONS_MAX: usize = 4_096;

#[derive(Default)]
pub(super) struct Sessions(Mutex<Table>);

#[derive(Default)]
struct Table {
    sessions: HashMap<u128, Session>,
    /// Number of claims so far. Orders sessions by their last claim.
    claims: u64,
}

#[derive(Default)]
struct Session {
    /// Notifies the connection that a newer connection of the session exists. Has a receiver while the connection exists.
    connection: Option<Arc<watch::Sender<bool>>>,
    reported: Ping,
    claim: u64,
}

impl Sessions {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the session. Stops an older connection and waits for its end. Then no append of the older connection is
    /// running.
    pub(super) async fn claim(&self, id: u128) -> Claim<'_> {
        loop {
            let older = match self.try_claim(id) {
                Ok(claim) => return claim,
                Err(older) => older,
            };
            older.send_replace(true);
            older.closed().await;
        }
    }

    fn try_claim(&self, id: u128) -> Result<Claim<'_>, Arc<watch::Sender<bool>>> {
        let mut table = self.table();
        table.claims += 1;
        let claim = table.claims;
        let session = table.sessions.entry(id).or_default();
        if let Some(older) = session.connection.as_ref().filter(|older| older.receiver_count() > 0) {
            return Err(Arc::clone(older));
        }
        let (sender, superseded) = watch::channel(false);
        session.connection = Some(Arc::new(sender));
        session.claim = claim;
        table.forget();
        Ok(Claim { sessions: self, id, superseded })
    }
}

impl Table {
    /// Above the limit, removes the disconnected session with the oldest claim.
    fn forget(&mut self) {
        if self.sessions.len() <= SESSIONS_MAX {
            return;
        }
        let away = |session: &Session| session.connection.as_ref().is_none_or(|c| c.receiver_count() == 0);
        let oldest = self.sessions.iter().filter(|(_, session)| away(session)).min_by_key(|(_, s)| s.claim);
        if let Some(id) = oldest.map(|(id, _)| *id) {
            self.sessions.remove(&id);
        }
    }
}

/// The exclusive claim of a connection on its session. The next connection is admitted when the claim and every [`Superseded`]
/// of it are dropped.
pub(super) struct Claim<'a> {
    sessions: &'a Sessions,
    id: u128,
    superseded: watch::Receiver<bool>,
}

impl Claim<'_> {
    pub(super) fn superseded(&self) -> Superseded {
        Superseded(self.superseded.clone())
    }

    /// The difference between `totals` and the totals reported before, over all connections of the session. `bytes_buffered` is
    /// not a total and stays unchanged.
    pub(super) fn report(&self, totals: Ping) -> Ping {
        let mut table = self.sessions.table();
        let before = &mut table.sessions.entry(self.id).or_default().reported;
        let added = Ping {
            executions_dropped: totals.executions_dropped.saturating_sub(before.executions_dropped),
            samples_dropped: totals.samples_dropped.saturating_sub(before.samples_dropped),
            entries_dropped: totals.entries_dropped.saturating_sub(before.entries_dropped),
            bytes_buffered: totals.bytes_buffered,
        };
        before.executions_dropped += added.executions_dropped;
        before.samples_dropped += added.samples_dropped;
        before.entries_dropped += added.entries_dropped;
        added
    }
}

pub(super) struct Superseded(watch::Receiver<bool>);

impl Superseded {
    pub(super) async fn wait(&mut self) {
        // The sender stays in the table as long as there are receivers, so this does not fail.
        let _ = self.0.wait_for(|newer| *newer).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_newer_connection_waits_for_the_older_to_end() {
        let sessions = Sessions::default();
        let older = sessions.claim(7).await;
        let mut told = older.superseded();
        let newer = async {
            let claim = sessions.claim(7).await;
            claim.report(Ping { executions_dropped: 5, ..Ping::default() })
        };
        let ending = async {
            told.wait().await;
            older.report(Ping { executions_dropped: 3, ..Ping::default() });
            drop((older, told));
        };
        let (added, ()) = tokio::join!(newer, ending);
        assert_eq!(added.executions_dropped, 2, "totals continue over reconnects");
    }

    #[tokio::test]
    async fn disconnected_sessions_are_forgotten_past_the_limit() {
        let sessions = Sessions::default();
        let held = sessions.claim(0).await;
        for id in 1..=SESSIONS_MAX as u128 {
            drop(sessions.claim(id).await);
        }
        let table = sessions.table();
        assert_eq!(table.sessions.len(), SESSIONS_MAX);
        assert!(table.sessions.contains_key(&0) && !table.sessions.contains_key(&1));
        drop(table);
        drop(held);
    }
}
