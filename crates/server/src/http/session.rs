//! `/api/session`: the login of the page. It exchanges a token for a cookie that no script can read.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use tacho_model::Timestamp;

use super::app::App;
use super::door::{self, Address, COOKIE};
use super::error::ApiError;
use super::route::{Need, Route};
use crate::access::token::Role;
use crate::access::{Access, NotBegun, SESSION_SECONDS};
use crate::tls::expiry::utc;

pub fn routes() -> Vec<Route> {
    let methods = get(show).post(begin).delete(end);
    vec![Route::new("/api/session", Need::Token, methods).change(Need::Nothing)]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    token: String,
}

impl Login {
    /// The cause of a failure is not returned, because it may contain a part of the token.
    fn parse(body: &[u8]) -> Option<Self> {
        // A derived `Deserialize` also accepts an array of the members' values.
        let is_object = body.trim_ascii_start().starts_with(b"{");
        is_object.then(|| serde_json::from_slice(body).ok())?
    }
}

async fn show(access: Access) -> Json<Value> {
    shown(&access, access.session_expires)
}

fn shown(access: &Access, session_expires: Option<Timestamp>) -> Json<Value> {
    let time = |at: Timestamp| utc(at.div_euclid(1_000_000_000));
    let roles: Vec<&str> =
        Role::ALL.into_iter().filter(|role| access.permits(*role)).map(Role::name).collect();
    let data = json!({
        "tokens": access.token().is_some(),
        "name": access.name(),
        "roles": roles,
        "match": access.confinement().map(|confinement| &confinement.text),
        "expires": access.token().and_then(|token| token.expires).map(time),
        "session_expires": session_expires.map(time),
    });
    Json(json!({ "status": "success", "data": data }))
}

/// Begins a session with the token in the body. A page of another origin cannot send a login, because it cannot send JSON, and
/// because `origin.rs` refuses its requests.
async fn begin(
    State(app): State<Arc<App>>,
    Address(address): Address,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    const PLACE: &str = "POST /api/session";
    if !door::has_origin(&headers) {
        let message = "a login needs the header Origin of the page: a program sends the token itself";
        app.gate.note_stranger((address, PLACE), "page", message);
        return Err(ApiError::forbidden(message));
    }
    if !door::is_json(&headers) {
        return Err(ApiError::unsupported("a login is a JSON object: send content-type application/json"));
    }
    let login = Login::parse(&body)
        .ok_or_else(|| ApiError::bad("the body is not a JSON object with the member \"token\""))?;
    let entered = app.gate.enter(Some(&login.token), (address, PLACE));
    let access = entered.map_err(|refusal| door::unauthorized(&refusal))?;
    let Some(token) = access.token() else {
        return Ok(shown(&access, None).into_response());
    };
    let now = app.clock.now();
    let cookie = app.gate.sessions.begin(token.hash, now).map_err(|reason| match reason {
        NotBegun::TooMany => ApiError::too_many("too many users are logged in: retry later"),
        NotBegun::System(error) => ApiError::internal(format!("no session: {error}")),
    })?;
    app.gate.note_login(address, &access);
    let expires = now.saturating_add(SESSION_SECONDS * 1_000_000_000);
    Ok(with_cookie(shown(&access, Some(expires)), &app, &headers, &cookie, SESSION_SECONDS))
}

/// Ends the session of the cookie. Needs no token, because a cookie ends only its own session.
async fn end(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    if let Some(cookie) = door::cookie(&headers) {
        app.gate.sessions.end(&cookie);
    }
    with_cookie(StatusCode::NO_CONTENT, &app, &headers, "", 0)
}

fn with_cookie(
    answer: impl IntoResponse,
    app: &App,
    headers: &HeaderMap,
    cookie: &str,
    seconds: i64,
) -> Response {
    // Behind a proxy with TLS, only the origin of the page shows that the browser uses TLS.
    let origin = headers.get(header::ORIGIN).map_or(&b""[..], |value| value.as_bytes());
    let is_secure = app.tls.is_some() || origin.starts_with(b"https://");
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!("{COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let mut response = answer.into_response();
    if let Ok(mut value) = HeaderValue::from_str(&text) {
        value.set_sensitive(true);
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}
