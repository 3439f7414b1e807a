//! For every request: checks its origin and credentials, limits the number of running requests and their time, lists and stops
//! queries (`running.rs`), counts requests, and adds security headers.
//!
//! A request counts as running from the end of its body (`admission.rs`) until its response begins. The time limit covers the
//! reception of the body and the handler. A response that is being sent counts against the memory budget of `answers.rs`. If
//! the client does not read the response, `paced.rs` ends the connection.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use super::admin::{self, Late};
use super::admission::Admitted;
use super::app::App;
use super::door::{Peer, Visit};
use super::error::ApiError;
use super::held::hold;
use super::listener::Reserve;
use super::origin::{Reach, check_host};
use super::running::Query;
use super::{admission, compress, running};
use crate::access::Access;

/// The page may load files only from this server, and connect only to this server. The chart library places its canvas through
/// the CSSOM, which the policy does not restrict.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

pub async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let route = path.as_ref().map_or("other", MatchedPath::as_str);
    let gzip = compress::accepted(request.headers());
    let (method, address) = (request.method().clone(), request.extensions().get::<Peer>().map(|peer| peer.0));
    let visit = Visit::new(&app, route, &method, request.uri(), address);
    let mut response = match let_in(&app, &visit, &mut request) {
        Ok(access) => {
            let response = bounded(&app, (&visit, access.as_ref(), begun), request, next, gzip).await;
            visit.note(&app.gate, access.as_ref(), &response);
            response
        }
        Err(error) => error.into_response(),
    };
    set_security_headers(&mut response);
    app.metrics.http_requests.with([route, response.status().as_str()]).add(1);
    app.metrics.http_request_seconds.with([route]).observe(begun.elapsed());
    response
}

/// Checks the host, the transfer coding and the origin of a request, then its credentials. The handler finds the access in
/// the extensions.
fn let_in(app: &App, visit: &Visit<'_>, request: &mut Request) -> Result<Option<Access>, ApiError> {
    check_host(request.version(), request.headers())?;
    admission::check_coding(request.headers())?;
    let is_ours = app.names.check(Reach::of(visit.route), request.method(), request.headers());
    is_ours.inspect_err(|error| {
        app.gate.note_stranger((visit.address, &visit.place()), "origin", &error.message);
    })?;
    let access = visit.enter(&app.gate, request.headers(), request.uri())?;
    if let Some(access) = &access {
        request.extensions_mut().insert(access.clone());
    }
    Ok(access)
}

async fn bounded(
    app: &App,
    (visit, access, begun): (&Visit<'_>, Option<&Access>, Instant),
    request: Request,
    next: Next,
    gzip: bool,
) -> Response {
    let route = visit.route;
    // A busy server must also answer health checks, `/metrics`, and requests to list or stop queries.
    let is_let_in = matches!(route, "/healthz" | "/readyz" | "/metrics" | running::LIST | running::ONE);
    if !is_let_in && request.extensions().get::<Reserve>().is_some() {
        let message = format!("{} connections are open and busy", app.config.connections_max);
        return last(ApiError::unavailable(message, 1).into_response());
    }
    let limit = app.config.request_time_max;
    let answer = async {
        let admitted = match is_let_in {
            true => Admitted { request, body: Bytes::new(), place: None },
            false => admission::admitted(app, route, request).await?,
        };
        let Admitted { request, body, place } = admitted;
        let query = Query::of((route, visit.need, begun), &request, &body, access)?;
        drop(body);
        let response = match query {
            None => next.run(request).await,
            Some(query) => followed(app, &query, request, next).await?,
        };
        let share = app.answers.share(&response)?;
        let response = compress::compress(response, gzip).await;
        // Clients that do not read their responses must not take the permits of other requests.
        drop(place);
        // Most responses are small and have no share, so their bodies are not wrapped.
        Ok(match share {
            Some(share) => hold(response, share),
            None => response,
        })
    };
    let answer = tokio::time::timeout(limit, answer).await;
    let late = |_| Err(late(route, limit.as_secs(), || app.ready()));
    answer.unwrap_or_else(late).unwrap_or_else(ApiError::into_response)
}

/// Computes the response to a query. Lists the query if it is not computed at once, and ends it when it is stopped.
async fn followed(
    app: &App,
    query: &Arc<Query>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    request.extensions_mut().insert(query.clone());
    let mut response = std::pin::pin!(next.run(request));
    // Most queries end at the first poll. They are not listed, because an entry in the list costs 1.5 us.
    if let Some(response) = response.as_mut().now_or_never() {
        return Ok(response);
    }
    let _listed = app.listing.list(query, app.clock.now())?;
    tokio::select! {
        response = response => Ok(response),
        () = query.stopped() => Err(ApiError::stopped()),
    }
}

/// The error of a request that has reached the time limit.
fn late(route: &str, seconds: u64, ready: impl FnOnce() -> tacho_store::Result<()>) -> ApiError {
    match admin::late(route) {
        Late::Ends => ApiError::timeout(seconds),
        Late::Continues => ApiError::continues(seconds, ready().err().as_ref()),
        Late::MayContinue => ApiError::may_continue(seconds),
    }
}

fn last(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn set_security_headers(response: &mut Response) {
    let headers = response.headers_mut();
    let always = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // With this policy the page sends its `Referer` to this server. `origin.rs` needs the `Referer` if a browser sends no
        // other header.
        (header::REFERRER_POLICY, "same-origin"),
    ];
    // One growth of the map, also for the headers that are added after these.
    headers.reserve(always.len() + 4);
    for (name, value) in always {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use tacho_store::{Error, ErrorKind, Result};

    use super::*;

    #[test]
    fn a_late_answer_names_the_full_disk_and_not_a_setting_that_cannot_help() {
        let full = || -> Result<()> { Err(Error::new(ErrorKind::StorageFull, "0 bytes are free")) };
        let fine = || -> Result<()> { Ok(()) };
        let query = "request took longer than 60 s: narrow it, or raise request-seconds-max";
        let work = "the work takes longer than 60 s (request-seconds-max), and continues after this answer";
        let slow = format!("{work}; 0 bytes are free");
        let deletion = "the request takes longer than 60 s (request-seconds-max): its deletion continues if it has begun, and \
                        the audit log will have its result";
        type Ready<'a> = &'a dyn Fn() -> Result<()>;
        let cases: [(&str, Ready<'_>, &str); 5] = [
            ("/api/v1/query", &full, query),
            ("/api/v1/admin/tsdb/delete_series", &full, deletion),
            ("/api/v1/admin/merge", &fine, work),
            ("/api/v1/admin/merge", &full, &slow),
            ("/api/v1/admin/tsdb/clean_tombstones", &full, &slow),
        ];
        for (route, ready, expect) in cases {
            let error = late(route, 60, ready);
            assert_eq!((error.status.as_u16(), &*error.message), (503, expect), "{route}");
        }
    }
}
