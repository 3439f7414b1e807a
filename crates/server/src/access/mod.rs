//! Who sends a request, and what may they do?
//!
//! ```text
//!   file ── tokens ──▶ Gate ── Access ──▶ View    reads only what the token may read
//!   request, HELLO ──▶   │           └──▶ Writer  writes only what the token may write
//!                        └──▶ audit.log
//! ```
//! A handler gets an [`Access`] and no store. It uses the store through a [`View`] or a [`Writer`] of this access. The whole
//! store requires a [`Whole`], which only an access without a selector has.
//!
//! `docs/api.md`, *Tokens*, describes the rules, `docs/guide/security.md` their use.

mod audit;
mod bounded;
mod failures;
pub mod file;
mod minute;
mod networks;
mod refusal;
mod sessions;
mod strangers;
pub mod token;
mod usage;
mod view;
mod writer;

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use serde_json::Value;
use tacho_ingest::wire::Secret;
use tacho_model::{Clock, Labels, NAME, Timestamp};
use tokio::sync::watch;

use crate::metrics::Metrics;
use crate::shutdown::Shutdown;
use audit::Audit;
pub use audit::FILE as AUDIT_FILE;
use failures::Failures;
use file::{Found, Stamp};
pub use refusal::{Reason, Refusal};
pub use sessions::{NotBegun, SESSION_SECONDS};
use strangers::Strangers;
use token::{Confinement, Role, Token, TokenHash};
pub use usage::Counted;
use usage::Usage;
pub use view::View;
pub use writer::{Writer, Written};

/// Interval at which the file of tokens is checked for changes.
const LOOK: Duration = Duration::from_millis(500);

pub struct Gate {
    /// `None` for a server without a data directory, which never has tokens.
    data: Option<PathBuf>,
    state: RwLock<Arc<State>>,
    /// The stamp that was taken before the files were last read.
    seen: Mutex<Stamp>,
    /// Whether the last attempt to make the marker `tokens.used` failed. Then it is repeated.
    is_unmarked: AtomicBool,
    /// Increases each time the tokens have been read.
    revision: watch::Sender<u64>,
    usages: Mutex<HashMap<TokenHash, Arc<Usage>>>,
    pub(crate) sessions: sessions::Sessions,
    failures: Failures,
    strangers: Strangers,
    audit: Arc<Audit>,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
}

enum State {
    /// There are no tokens: every client may do everything.
    Open,
    Tokens(HashMap<TokenHash, (Arc<Token>, Arc<Usage>)>),
    /// The reason why the tokens cannot be used. Every request that needs a token is refused.
    Closed(String),
}

#[derive(Clone)]
pub struct Access {
    /// `None` if the server has no tokens.
    of: Option<(Arc<Token>, Arc<Usage>)>,
    /// The end of the session of the page, for a request with a cookie.
    pub session_expires: Option<Timestamp>,
    /// For the audit log. `None` if the server has no tokens.
    client: Option<Arc<Client>>,
    audit: Arc<Audit>,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
}

/// Where a request or a connection comes from, and where it goes: method and path, or "agent".
struct Client {
    address: Option<IpAddr>,
    place: String,
}

/// Proves that an access has no selector.
pub struct Whole(());

impl Gate {
    /// A gate without tokens, for a server without a data directory.
    pub fn open(metrics: Arc<Metrics>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self::new(None, metrics, clock))
    }

    pub fn of(data: &Path, metrics: Arc<Metrics>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let gate = Self::new(Some(data.to_owned()), metrics, clock);
        gate.read();
        Arc::new(gate)
    }

    fn new(data: Option<PathBuf>, metrics: Arc<Metrics>, clock: Arc<dyn Clock>) -> Self {
        Self {
            state: RwLock::new(Arc::new(State::Open)),
            seen: Mutex::default(),
            is_unmarked: AtomicBool::new(false),
            revision: watch::channel(1).0,
            usages: Mutex::default(),
            sessions: sessions::Sessions::default(),
            failures: Failures::default(),
            strangers: Strangers::default(),
            audit: Arc::new(Audit::new(data.as_deref())),
            data,
            metrics,
            clock,
        }
    }

    fn state(&self) -> Arc<State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn read(&self) {
        let Some(data) = &self.data else { return };
        // The stamp is taken before the file is read, so that a change during the reading is noticed.
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = file::stamp(data);
        file::restrict(data);
        let was_used = !matches!(*self.state(), State::Open);
        let state = match file::read(data) {
            // File and marker are gone. A running server that had tokens never admits every client.
            Found::Unused if was_used => State::Closed("the file of tokens was removed".into()),
            Found::Unused => State::Open,
            Found::Broken(cause) => State::Closed(cause),
            Found::Tokens(tokens) => {
                self.mark(data);
                State::Tokens(self.with_usages(tokens))
            }
        };
        let state = Arc::new(state);
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state.clone();
        self.revision.send_modify(|revision| *revision += 1);
        // Logged last, so that the change is in force when the line appears.
        match &*state {
            State::Open => {}
            State::Tokens(tokens) => {
                if let Err(error) = file::sync(data) {
                    tracing::error!(
                        %error,
                        "cannot sync the data directory: after a power failure, a revoked token may be valid again"
                    );
                }
                tracing::info!(tokens = tokens.len(), "tokens read: requests need a token")
            }
            State::Closed(cause) => {
                tracing::error!(%cause, "tokens cannot be used: requests that need a token are refused")
            }
        }
    }

    /// Makes the marker `tokens.used`. Of successive failures, only the first is logged.
    fn mark(&self, data: &Path) {
        let failed = file::mark(data).err();
        let was_unmarked = self.is_unmarked.swap(failed.is_some(), Ordering::Relaxed);
        if let Some(error) = failed.filter(|_| !was_unmarked) {
            tracing::error!(
                error,
                "cannot write tokens.used in the data directory, and repeats it: until it exists, keep the file of tokens, \
                 because a start without both files would admit every client"
            );
        }
    }

    /// Whether the marker is missing, although the server uses tokens or the last attempt to make the marker failed.
    fn lacks_marker(&self, data: &Path) -> bool {
        let had_tokens =
            matches!(*self.state(), State::Tokens(_)) || self.is_unmarked.load(Ordering::Relaxed);
        had_tokens && matches!(file::is_marked(data), Ok(false))
    }

    fn with_usages(&self, tokens: Vec<Token>) -> HashMap<TokenHash, (Arc<Token>, Arc<Usage>)> {
        let mut usages = self.usages.lock().unwrap_or_else(PoisonError::into_inner);
        usages.retain(|hash, _| tokens.iter().any(|token| token.hash == *hash));
        let mut with_usage = |token: Token| {
            let usage = usages.entry(token.hash).or_default().clone();
            (token.hash, (Arc::new(token), usage))
        };
        tokens.into_iter().map(&mut with_usage).collect()
    }

    /// For `/readyz`. Every client may ask, so only the log has path and cause.
    ///
    /// # Errors
    /// When the tokens cannot be used.
    pub fn ready(&self) -> Result<(), String> {
        match &*self.state() {
            State::Closed(_) => Err(Refusal::Closed.message()),
            State::Open | State::Tokens(_) => Ok(()),
        }
    }

    /// `none`, `used` or `broken`, for `/api/status`.
    pub fn standing(&self) -> &'static str {
        match &*self.state() {
            State::Open => "none",
            State::Tokens(_) => "used",
            State::Closed(_) => "broken",
        }
    }

    pub fn needs_tokens(&self) -> bool {
        !matches!(*self.state(), State::Open)
    }

    /// The access of a client with the text of its token. `client`: its address, and the place of the request for the audit log.
    /// Counts the wrong tokens of an address. At most `FAILURES_MAX` of them per minute get a line in the audit log.
    ///
    /// # Errors
    /// When the server needs a token and the client has no valid one. When the tokens of the server cannot be used.
    pub fn enter(&self, text: Option<&str>, client: (Option<IpAddr>, &str)) -> Result<Access, Refusal> {
        let state = self.state();
        let tokens = match &*state {
            State::Open => return Ok(self.access(None, None, client)),
            State::Tokens(tokens) => tokens,
            State::Closed(_) => return Err(self.refused(Refusal::Closed, client)),
        };
        let now = self.clock.now();
        let refusal = match text {
            None => Refusal::Missing,
            Some(text) => match tokens.get(&TokenHash::of(text)) {
                Some((token, usage)) if !token.is_expired(now) => {
                    return Ok(self.access(Some((token.clone(), usage.clone())), None, client));
                }
                Some(_) => Refusal::Expired,
                None => Refusal::Unknown,
            },
        };
        Err(self.refused(refusal, client))
    }

    /// The access of a client with the cookie of a session.
    ///
    /// # Errors
    /// When the server needs a token, and the session does not exist, has ended, or has an invalid token. When the server's
    /// tokens cannot be used.
    pub fn enter_by_session(&self, cookie: &str, client: (Option<IpAddr>, &str)) -> Result<Access, Refusal> {
        let state = self.state();
        let tokens = match &*state {
            State::Open => return Ok(self.access(None, None, client)),
            State::Tokens(tokens) => tokens,
            State::Closed(_) => return Err(self.refused(Refusal::Closed, client)),
        };
        let now = self.clock.now();
        let found = self.sessions.find(cookie, now);
        let valid = found.and_then(|(hash, end)| Some((tokens.get(&hash)?, end)));
        match valid.filter(|((token, _), _)| !token.is_expired(now)) {
            Some(((token, usage), end)) => {
                Ok(self.access(Some((token.clone(), usage.clone())), Some(end), client))
            }
            // Not counted as a wrong token, because the page sends the cookie of an ended session until the user logs in again.
            None => Err(self.refused(Refusal::Ended, client)),
        }
    }

    fn refused(&self, refusal: Refusal, (address, place): (Option<IpAddr>, &str)) -> Refusal {
        let is_guess = matches!(refusal, Refusal::Unknown | Refusal::Expired);
        let refusal = match is_guess.then(|| self.failures.note(address, self.clock.now())) {
            Some(Err(seconds)) => Refusal::TooMany(seconds),
            Some(Ok(())) => {
                let members = [("place", place.into()), ("reason", refusal.name().into())];
                self.note("refused", address, None, &members);
                refusal
            }
            None => {
                self.note_stranger((address, place), refusal.name(), refusal.name());
                refusal
            }
        };
        self.metrics.access.unauthenticated.with([refusal.name()]).add(1);
        refusal
    }

    fn access(
        &self,
        of: Option<(Arc<Token>, Arc<Usage>)>,
        session_expires: Option<Timestamp>,
        (address, place): (Option<IpAddr>, &str),
    ) -> Access {
        let client = of.is_some().then(|| Arc::new(Client { address, place: place.to_owned() }));
        let (audit, metrics, clock) = (self.audit.clone(), self.metrics.clone(), self.clock.clone());
        Access { of, session_expires, client, audit, metrics, clock }
    }

    pub fn note(
        &self,
        event: &str,
        address: Option<IpAddr>,
        access: Option<&Access>,
        members: &[(&str, Value)],
    ) {
        let of = (address, access.and_then(Access::name));
        self.audit.note(&time_text(self.clock.now()), event, &with_client(of, members));
    }

    /// Notes a login: at most `LOGINS_MAX` lines a minute for each token, so that a token cannot displace older lines. A line
    /// after a pause has the number of all logins since the line before.
    pub fn note_login(&self, address: Option<IpAddr>, access: &Access) {
        let Some((_, usage)) = &access.of else { return };
        if let Some(logins) = usage.count_login(self.clock.now()) {
            let logins = (logins > 1).then_some(logins);
            self.note("login", address, Some(access), &[("logins", logins.into())]);
        }
    }

    /// Notes that a request was refused before its token was accepted: at most one line a minute for each network and `kind`. The
    /// line has the number of refusals since the line before.
    pub fn note_stranger(&self, (address, place): (Option<IpAddr>, &str), kind: &'static str, reason: &str) {
        if let Some(refusals) = self.strangers.count(address, kind, self.clock.now()) {
            let members = [("place", place.into()), ("reason", reason.into()), ("refusals", refusals.into())];
            self.note("refused", address, None, &members);
        }
    }

    /// Resolves when the token of this access is no longer valid, or has changed. Without a token, resolves when the server
    /// gets a file of tokens.
    pub async fn changed(&self, access: &Access) {
        let Some((token, _)) = &access.of else { return self.closed_or_used().await };
        let mut revisions = self.revision.subscribe();
        loop {
            let now = self.clock.now();
            let is_same = match &*self.state() {
                State::Tokens(tokens) => tokens.get(&token.hash).is_some_and(|(found, _)| found == token),
                State::Open | State::Closed(_) => false,
            };
            if !is_same || token.is_expired(now) {
                return;
            }
            let left =
                token.expires.map_or(u64::MAX, |at| u64::try_from(at.saturating_sub(now)).unwrap_or(0));
            // The clock may be set during the pause, so it is read at least once a minute.
            let pause = Duration::from_nanos(left).min(Duration::from_secs(60));
            tokio::select! {
                changed = revisions.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Resolves when a server without tokens gets a file of tokens, usable or not.
    async fn closed_or_used(&self) {
        let mut revisions = self.revision.subscribe();
        while !self.needs_tokens() {
            if revisions.changed().await.is_err() {
                return;
            }
        }
    }

    /// Reads the file again when it changes, and makes a missing marker, until `shutdown`.
    pub async fn watch(self: Arc<Self>, mut shutdown: Shutdown) {
        let Some(data) = self.data.clone() else { return };
        loop {
            if file::stamp(&data) != *self.seen.lock().unwrap_or_else(PoisonError::into_inner) {
                let gate = self.clone();
                let _ = tokio::task::spawn_blocking(move || gate.read()).await;
            } else if self.lacks_marker(&data) {
                let (gate, data) = (self.clone(), data.clone());
                let _ = tokio::task::spawn_blocking(move || gate.mark(&data)).await;
            }
            tokio::select! {
                () = shutdown.wait() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}

/// Notes in the audit log that a command has changed a token.
pub fn note_command(data: &Path, event: &str, token: &str, now: Timestamp) {
    let user = rustix::process::getuid().as_raw();
    Audit::new(Some(data)).note(&time_text(now), event, &[("token", token.into()), ("user", user.into())]);
}

/// The JSON members of a line of the audit log about a client, with its address and the name of its token.
fn with_client<'m>(
    (address, token): (Option<IpAddr>, Option<&str>),
    members: &[(&'m str, Value)],
) -> Vec<(&'m str, Value)> {
    let address = address.map_or(Value::Null, |address| address.to_canonical().to_string().into());
    let first = [("address", address), ("token", token.map_or(Value::Null, Value::from))];
    first.into_iter().chain(members.iter().cloned()).collect()
}

/// RFC 3339 in UTC, to the millisecond.
fn time_text(at: Timestamp) -> String {
    jiff::Timestamp::from_nanosecond(at.into()).map_or_else(|_| at.to_string(), |at| format!("{at:.3}"))
}

impl Access {
    /// The session under which the store and the server know the session of a client. A session without a secret belongs to the
    /// token that sends it: the ids of traces reveal its id to others.
    pub fn session_id(&self, session: u128) -> u128 {
        match &self.of {
            Some((token, _)) if !Secret::is_needed(session) => Secret::owned(session, token.hash.bytes()),
            _ => session,
        }
    }

    pub fn name(&self) -> Option<&str> {
        self.of.as_ref().map(|(token, _)| &*token.name)
    }

    pub fn token(&self) -> Option<&Token> {
        self.of.as_ref().map(|(token, _)| &**token)
    }

    pub fn permits(&self, role: Role) -> bool {
        self.token().is_none_or(|token| token.permits(role))
    }

    /// The series that this access is confined to. `None` for all.
    pub fn confinement(&self) -> Option<&Arc<Confinement>> {
        self.token()?.confinement.as_ref()
    }

    pub fn whole(&self) -> Option<Whole> {
        self.confinement().is_none().then_some(Whole(()))
    }

    /// Whether the calls of the process with this identity are in a series of this access.
    pub fn admits(&self, service: &str, host: &str, instance: &str) -> bool {
        self.confinement().is_none_or(|confinement| {
            let pairs = [(NAME, "executions"), ("service", service), ("host", host), ("instance", instance)];
            let labels = Labels::new(pairs.into_iter().filter(|(_, value)| !value.is_empty()));
            labels.is_ok_and(|labels| confinement.admits(&labels))
        })
    }

    pub fn query_samples_max(&self) -> Option<usize> {
        self.token()?.limits.query_samples.map(|max| usize::try_from(max).unwrap_or(usize::MAX))
    }

    /// Counts a session of an agent until the result is dropped.
    ///
    /// # Errors
    /// The limit, if it is reached.
    pub fn session(&self) -> Result<Option<Counted>, u64> {
        let Some((token, usage)) = &self.of else { return Ok(None) };
        match usage.session(&token.limits) {
            Some(counted) => Ok(Some(counted)),
            None => {
                let max = token.limits.sessions.unwrap_or(0);
                self.refuse(Reason::Sessions, 1, &format!("token {:?} may have {max} sessions", token.name));
                Err(max)
            }
        }
    }

    /// Counts refusals of a valid token, or of parts of its request, and notes them in the audit log: at most one line a minute
    /// for each token, reason and place, with the number of refusals since the line before.
    pub fn refuse(&self, reason: Reason, refusals: u64, message: &str) {
        self.metrics.access.refused.with([self.name().unwrap_or_default(), reason.name()]).add(refusals);
        let (Some((token, usage)), Some(client)) = (&self.of, &self.client) else { return };
        let now = self.clock.now();
        if let Some(refusals) = usage.count_refusals((reason, &client.place), refusals, now) {
            let members = [
                ("place", client.place.as_str().into()),
                ("reason", message.into()),
                ("refusals", refusals.into()),
            ];
            let of = (client.address, Some(&*token.name));
            self.audit.note(&time_text(now), "refused", &with_client(of, &members));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::token::{Limits, Record};
    use super::*;
    use crate::clock::SystemClock;

    fn gate(data: &Path) -> Arc<Gate> {
        Gate::of(data, Arc::new(Metrics::default()), Arc::new(SystemClock))
    }

    /// Adds a token like a command that is killed before it makes the marker.
    fn add_without_marker(data: &Path) {
        let times = ("2026-11-28T00:00:00Z".to_owned(), None);
        let made = Record::new("a", (vec![Role::Read], None), Limits::default(), times).unwrap();
        file::change(data, |all| {
            all.push(made.0);
            Ok(())
        })
        .unwrap();
        remove_marker(data);
    }

    fn remove_marker(data: &Path) {
        std::fs::remove_file(data.join("tokens.used")).unwrap();
    }

    #[test]
    fn a_start_makes_a_missing_marker_and_so_never_opens_after_the_loss_of_the_tokens() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path();
        assert_eq!(gate(data).standing(), "none");
        add_without_marker(data);
        assert_eq!(gate(data).standing(), "used");
        assert!(file::is_marked(data).unwrap());
        std::fs::remove_file(file::path(data)).unwrap();
        assert_eq!(gate(data).standing(), "broken");
    }

    #[tokio::test]
    async fn a_running_server_makes_the_marker_until_it_exists() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path();
        let gate = gate(data);
        let (trigger, shutdown) = crate::shutdown::channel();
        let watching = tokio::spawn(gate.clone().watch(shutdown));
        add_without_marker(data);
        for _ in 0..2 {
            // Only a server that hangs exceeds the limit.
            let made = async {
                while !file::is_marked(data).unwrap() || gate.standing() != "used" {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(300), made).await.unwrap();
            remove_marker(data);
        }
        trigger.stop();
        watching.await.unwrap();
    }
}
