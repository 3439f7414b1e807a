//! The list of running queries, and their progress.
//!
//! A request that reads records is listed while its response is computed, unless it is computed at once (`guard.rs`). The client
//! may choose the id, so that it can ask for the progress of its own query. A stopped query is dropped, which cancels its work.
//! `queries.rs` has the requests about the list.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, Uri};
use serde_json::{Value, json};
use tacho_model::Timestamp;
use tokio::sync::Notify;

use super::error::ApiError;
use super::params::is_form;
use super::route::Need;
use crate::access::Access;
use crate::access::token::Role;

/// The id that the client chooses for its query.
const ID: HeaderName = HeaderName::from_static("x-tacho-query");
/// Limit on the length of a chosen id.
const ID_BYTES_MAX: usize = 64;
/// Limit on the shown parameters, of the address and of the form. Longer ones are cut.
const SHOWN_BYTES_MAX: usize = 1_024;

/// Requests about running queries are not listed.
pub const LIST: &str = "/api/queries";
pub const ONE: &str = "/api/queries/{id}";

/// Parts of a series, for [`Progress`].
const PARTS: u64 = 1_000;

/// How far a query about calls is. It may read the series several times, in several passes.
#[derive(Debug, Default)]
pub struct Progress {
    passes: AtomicU64,
    /// Of the current pass, in parts of a series.
    total: AtomicU64,
    done: AtomicU64,
    /// Calls read in all passes.
    calls: AtomicU64,
}

impl Progress {
    /// Begins a pass over this number of series.
    pub fn begin(&self, series: usize) {
        self.passes.fetch_add(1, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        self.total.store(PARTS.saturating_mul(series as u64), Ordering::Relaxed);
    }

    pub const fn series(&self) -> OfSeries<'_> {
        OfSeries { progress: self, done: AtomicU64::new(0) }
    }

    pub fn read(&self, calls: usize) {
        self.calls.fetch_add(calls as u64, Ordering::Relaxed);
    }

    /// `None` before the first pass.
    fn to_json(&self) -> Value {
        let [passes, total, done, calls] =
            [&self.passes, &self.total, &self.done, &self.calls].map(|number| number.load(Ordering::Relaxed));
        match passes {
            0 => Value::Null,
            _ => {
                json!({ "pass": passes, "done": done.min(total) as f64 / total.max(1) as f64, "calls": calls })
            }
        }
    }
}

/// The progress of one series in a pass.
pub struct OfSeries<'a> {
    progress: &'a Progress,
    done: AtomicU64,
}

impl OfSeries<'_> {
    /// Reports that this number of all chunks of the series is done. The number does not fall.
    pub fn reached(&self, done: usize, all: usize) {
        let parts = PARTS.saturating_mul(done as u64) / (all as u64).max(1);
        let before = self.done.fetch_max(parts, Ordering::Relaxed);
        self.progress.done.fetch_add(parts.saturating_sub(before), Ordering::Relaxed);
    }

    pub fn finish(self) {
        self.reached(1, 1);
    }
}

/// The parameters of a request, in the address and in a form.
struct Parameters {
    uri: Uri,
    /// The first bytes of a form. The whole body would take a part of the memory budget of all bodies.
    form: Box<[u8]>,
}

impl Parameters {
    fn of<B>(request: &axum::http::Request<B>, body: &[u8]) -> Self {
        let form = if is_form(request.method(), request.headers()) { body } else { &[] };
        let form = form.get(..=SHOWN_BYTES_MAX).unwrap_or(form).into();
        Self { uri: request.uri().clone(), form }
    }

    /// Names and values. The name `...` shows that some are missing.
    fn shown(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for part in [self.uri.query().unwrap_or_default().as_bytes(), &self.form] {
            let shown = part.get(..SHOWN_BYTES_MAX).unwrap_or(part);
            all.extend(form_urlencoded::parse(shown).into_owned());
            if shown.len() < part.len() {
                all.push(("...".into(), String::new()));
            }
        }
        all
    }
}

/// A running query.
pub struct Query {
    method: Method,
    parameters: Parameters,
    access: Access,
    /// The id that the client has chosen.
    chosen: Option<Id>,
    begun: Instant,
    /// Set when the query is listed.
    started: OnceLock<Timestamp>,
    pub progress: Progress,
    stop: Notify,
}

impl Query {
    /// `None` for a request that reads no records. `body` is the whole body.
    ///
    /// # Errors
    /// When the client has chosen a malformed id.
    pub fn of(
        (route, need, begun): (&str, Need, Instant),
        request: &Request,
        body: &[u8],
        access: Option<&Access>,
    ) -> Result<Option<Arc<Self>>, ApiError> {
        let is_reading = matches!(need, Need::Read | Need::ReadWhole) && !matches!(route, LIST | ONE);
        let Some(access) = access.filter(|_| is_reading) else { return Ok(None) };
        Ok(Some(Arc::new(Self {
            method: request.method().clone(),
            parameters: Parameters::of(request, body),
            access: access.clone(),
            chosen: Id::of(request.headers())?,
            begun,
            started: OnceLock::new(),
            progress: Progress::default(),
            stop: Notify::new(),
        })))
    }

    pub fn stop(&self) {
        self.stop.notify_one();
    }

    /// Returns when the query is stopped.
    pub async fn stopped(&self) {
        self.stop.notified().await;
    }

    pub fn to_json(&self, id: &Id) -> Value {
        json!({
            "id": id.text(),
            "request": format!("{} {}", self.method, self.parameters.uri.path()),
            "parameters": self.parameters.shown(),
            "token": self.access.name(),
            "started": self.started.get().map(Timestamp::to_string),
            "seconds": self.begun.elapsed().as_secs_f64(),
            "progress": self.progress.to_json(),
        })
    }

    /// The name of the token that has sent the request.
    pub fn token(&self) -> Option<&str> {
        self.access.name()
    }

    /// Whether the asker may see and stop the query: its own, or any with a token of the role `admin`.
    fn is_open_to(&self, asker: &Access) -> bool {
        self.access.name() == asker.name() || asker.permits(Role::Admin)
    }
}

#[derive(Default)]
pub struct Listing {
    running: Mutex<BTreeMap<Id, Arc<Query>>>,
    last: AtomicU64,
    numbers: RandomState,
}

/// Chosen by the client, or a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id {
    Given(Box<str>),
    Own(u64),
}

impl Id {
    /// # Errors
    /// When the chosen id is malformed. Numbers are reserved for the server.
    fn of(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let Some(value) = headers.get(ID) else { return Ok(None) };
        let text = String::from_utf8_lossy(value.as_bytes());
        let is_of_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if text.len() <= ID_BYTES_MAX
            && text.bytes().all(is_of_id)
            && text.bytes().any(|b| !b.is_ascii_digit())
        {
            return Ok(Some(Self::Given((&*text).into())));
        }
        let form = "give up to 64 letters, digits and hyphens, not only digits";
        Err(ApiError::bad(format!("header X-Tacho-Query: {text:?} is not an id: {form}")))
    }

    pub fn parse(text: &str) -> Self {
        let number = text.parse().map(Self::Own).ok().filter(|id| id.text() == text);
        number.unwrap_or_else(|| Self::Given(text.into()))
    }

    fn text(&self) -> String {
        match self {
            Self::Given(text) => text.to_string(),
            Self::Own(number) => number.to_string(),
        }
    }
}

/// A listed query. It is removed from the list when this is dropped.
pub struct Listed {
    listing: Arc<Listing>,
    id: Id,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.listing.lock().remove(&self.id);
    }
}

impl Listing {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Id, Arc<Query>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no running query has. Consecutive numbers would show a token how many queries other tokens send.
    fn free_number(&self) -> u64 {
        let nth = self.last.fetch_add(1, Ordering::Relaxed);
        u64::from(self.numbers.hash_one(nth) as u32) << 20 | nth & 0xf_ffff
    }

    /// # Errors
    /// When another running query has the id that the client has chosen.
    pub fn list(self: &Arc<Self>, query: &Arc<Query>, now: Timestamp) -> Result<Listed, ApiError> {
        let age = i64::try_from(query.begun.elapsed().as_nanos()).unwrap_or(i64::MAX);
        query.started.get_or_init(|| now.saturating_sub(age));
        let id = query.chosen.clone().unwrap_or_else(|| Id::Own(self.free_number()));
        let mut running = self.lock();
        if running.contains_key(&id) {
            let id = id.text();
            let message = format!("header X-Tacho-Query: a query with the id {id:?} is running");
            return Err(ApiError::bad(message));
        }
        running.insert(id.clone(), query.clone());
        drop(running);
        Ok(Listed { listing: self.clone(), id })
    }

    /// A query that the asker may see and stop.
    pub fn find(&self, id: &Id, asker: &Access) -> Option<Arc<Query>> {
        self.lock().get(id).filter(|query| query.is_open_to(asker)).cloned()
    }

    /// The queries that the asker may see and stop, the oldest first.
    pub fn open_to(&self, asker: &Access) -> Vec<(Id, Arc<Query>)> {
        let running = self.lock();
        let open = running.iter().filter(|(_, query)| query.is_open_to(asker));
        let mut open: Vec<(Id, Arc<Query>)> = open.map(|(id, query)| (id.clone(), query.clone())).collect();
        drop(running);
        open.sort_by_key(|(_, query)| query.begun);
        open
    }
}

/// The token and the progress of a request, for its handler. For routes with the need [`Need::Read`] or
/// [`Need::ReadWhole`].
pub struct Requester(Arc<Query>);

impl Requester {
    pub fn access(&self) -> &Access {
        &self.0.access
    }

    pub fn progress(&self) -> &Progress {
        &self.0.progress
    }
}

impl<S: Sync> FromRequestParts<S> for Requester {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.extensions.get::<Arc<Query>>().cloned();
        query
            .map(Self)
            .ok_or_else(|| ApiError::internal("the handler takes a requester, but its request is not listed"))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn progress_is_the_share_of_all_series_of_a_pass() {
        let progress = Progress::default();
        assert_eq!(progress.to_json(), Value::Null);
        progress.begin(4);
        progress.series().finish();
        let second = progress.series();
        progress.read(7);
        for (done, all, expect) in [(0, 0, 0.25), (1, 2, 0.375), (1, 4, 0.375), (9, 9, 0.5)] {
            second.reached(done, all);
            assert_eq!(
                progress.to_json(),
                json!({ "pass": 1, "done": expect, "calls": 7 }),
                "{done} of {all}"
            );
        }
        // A failed read of a series is not done.
        progress.series().reached(0, 2);
        assert_eq!(progress.to_json(), json!({ "pass": 1, "done": 0.5, "calls": 7 }));
        progress.begin(0);
        assert_eq!(progress.to_json(), json!({ "pass": 2, "done": 0.0, "calls": 7 }));
    }

    #[test]
    fn parameters_are_those_of_the_address_and_of_a_form_and_are_cut() {
        let json = "application/json";
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        let long = "a".repeat(SHOWN_BYTES_MAX - 2);
        for (method, address, content_type, body, expect) in [
            ("GET", "/q?a=1%20+2&b", "", "c=3", json!([["a", "1  2"], ["b", ""]])),
            ("POST", "/q?a=1", form, "b=%C3%A4", json!([["a", "1"], ["b", "\u{e4}"]])),
            ("POST", "/q?a=1", json, "{}", json!([["a", "1"]])),
            ("POST", "/q", form, &format!("b={long}"), json!([["b", long]])),
            ("POST", "/q", form, &format!("b={long}c"), json!([["b", long], ["...", ""]])),
        ] {
            let request = axum::http::Request::builder()
                .method(method)
                .uri(address)
                .header("content-type", content_type);
            let request = request.body(axum::body::Body::empty()).unwrap();
            assert_eq!(
                json!(Parameters::of(&request, body.as_bytes()).shown()),
                expect,
                "{address} {body:.20}"
            );
        }
    }

    #[test]
    fn a_chosen_id_is_not_a_number() {
        let long = "a".repeat(ID_BYTES_MAX);
        let longer = format!("{long}a");
        for (text, is_accepted) in [
            ("page-1", true),
            ("A", true),
            ("-", true),
            (&long, true),
            (&longer, false),
            ("17", false),
            ("", false),
            ("a b", false),
            ("a/b", false),
            ("\u{e4}", false),
        ] {
            let headers = HeaderMap::from_iter([(ID, HeaderValue::from_bytes(text.as_bytes()).unwrap())]);
            assert_eq!(Id::of(&headers).is_ok(), is_accepted, "{text:?}");
        }
        assert_eq!(Id::of(&HeaderMap::new()).unwrap(), None);
    }
}
