//! For every request: checks its origin and credentials, limits the number of running requests and their time, counts
//! requests, and adds security headers.
//!
//! A request counts as running from the end of its body (`admission.rs`) until its response begins. The time limit covers the
//! reception of the body and the handler. A response that is being sent counts against the memory budget of `answers.rs`. If
//! the client does not read the response, `paced.rs` ends the connection.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::door::{Peer, Visit};
use super::error::ApiError;
use super::held::hold;
use super::listener::Reserve;
use super::origin::{Reach, check_host};
use super::{admission, compress};
use crate::access::Access;

/// The page may load files only from this server, and connect only to this server. The chart library places its canvas through
/// the CSSOM, which the policy does not restrict.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

pub async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("other".into(), |p| p.as_str().to_owned());
    let gzip = compress::accepted(request.headers());
    let (method, address) = (request.method().clone(), request.extensions().get::<Peer>().map(|peer| peer.0));
    let visit = Visit::new(&app, &route, &method, request.uri(), address);
    let mut response = match let_in(&app, &visit, &mut request) {
        Ok(access) => {
            let response = bounded(&app, &route, request, next, gzip).await;
            visit.note(&app.gate, access.as_ref(), &response);
            response
        }
        Err(error) => error.into_response(),
    };
    set_security_headers(&mut response);
    app.metrics.http_requests.with([&route, response.status().as_str()]).add(1);
    app.metrics.http_request_seconds.with([&route]).observe(begun.elapsed());
    response
}

/// Checks the host and the origin of a request, then its credentials. The handler finds the access in the extensions.
fn let_in(app: &App, visit: &Visit<'_>, request: &mut Request) -> Result<Option<Access>, ApiError> {
    check_host(request.version(), request.headers())?;
    app.names.check(Reach::of(visit.route), request.method(), request.headers())?;
    let access = visit.enter(&app.gate, request.headers(), request.uri())?;
    if let Some(access) = &access {
        request.extensions_mut().insert(access.clone());
    }
    Ok(access)
}

async fn bounded(app: &App, route: &str, request: Request, next: Next, gzip: bool) -> Response {
    // A busy server must also answer health checks and `/metrics`.
    let is_let_in = matches!(route, "/healthz" | "/readyz" | "/metrics");
    if !is_let_in && request.extensions().get::<Reserve>().is_some() {
        let message = format!("{} connections are open and busy", app.config.connections_max);
        return last(ApiError::unavailable(message, 1).into_response());
    }
    let limit = app.config.request_time_max;
    let answer = async {
        let (request, place) =
            if is_let_in { (request, None) } else { admission::admitted(app, route, request).await? };
        let response = next.run(request).await;
        let share = app.answers.share(&response)?;
        let response = compress::compress(response, gzip).await;
        // Clients that do not read their responses must not take the permits of other requests.
        drop(place);
        Ok(hold(response, share))
    };
    let answer = tokio::time::timeout(limit, answer).await;
    answer.unwrap_or_else(|_| Err(ApiError::timeout(limit.as_secs()))).unwrap_or_else(ApiError::into_response)
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
    for (name, value) in always {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}
