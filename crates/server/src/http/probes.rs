//! `/api/v1/probes`: the rules that switch probes on and off at run time.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use tacho_ingest::wire::PROBE_RULES_MAX;

use super::agents::{shown_id, shows};
use super::app::App;
use super::body::Packed;
use super::door::Done;
use super::error::ApiError;
use super::params::Params;
use super::route::{Need, Route};
use super::turn::away;
use crate::access::{Access, Whole};
use crate::control::{Added, ChangeError, Controlled, Refused, Rule, Wanted, state_name, state_of};
use crate::decoding::Hold;

/// Limit on the bytes of a rule as JSON: it has three texts of at most 1,024 bytes, and escapes make them longer.
const RULE_BYTES_MAX: usize = 64 << 10;

pub fn routes() -> Vec<Route> {
    vec![Route::new("/api/v1/probes", Need::Read, get(list).post(add).delete(remove)).change(Need::Admin)]
}

#[derive(Clone, Copy, Default)]
struct Tally {
    told: u64,
    answered: u64,
    /// Number of methods that the rule decides, over all connected agents that have reported a result.
    matched: u64,
    faults: u64,
}

async fn list(State(app): State<Arc<App>>, access: Access, params: Params) -> Result<Response, ApiError> {
    params.only(&[], &[])?;
    // Formatting takes long: there may be a thousand rules with results of thousands of agents.
    away(move || rules(&app, &access).into_response()).await
}

fn rules(app: &App, access: &Access) -> Json<Value> {
    let mut tallies: HashMap<u64, Tally> = HashMap::new();
    let mut agents = app.control.agents(app.clock.now());
    agents.retain(|(agent, _)| shows(access, agent));
    // A confined access sees the rules with one of its agents in their scope, and the rules whose scope is all agents.
    let is_shown = |rule: &Rule| {
        access.confinement().is_none()
            || rule.service.is_empty() && rule.instance.is_empty()
            || agents.iter().any(|(agent, _)| rule.fits(&agent.identity))
    };
    for (agent, _) in agents.iter().filter(|(agent, _)| agent.is_connected()) {
        if let Controlled::Sent { rules, .. } = &agent.control {
            rules.iter().for_each(|id| tallies.entry(*id).or_default().told += 1);
        }
        for (id, matched, fault) in agent.report.iter().flat_map(|report| &report.rules) {
            let tally = tallies.entry(*id).or_default();
            tally.answered += 1;
            tally.matched = tally.matched.saturating_add(*matched);
            tally.faults += u64::from(!fault.is_empty());
        }
    }
    let rules = app.control.rules().into_iter().filter(is_shown).map(|rule| {
        let Tally { told, answered, matched, faults } = tallies.get(&rule.id).copied().unwrap_or_default();
        let mut shown = rule_json(&rule);
        shown["id"] = shown_id(app, access, rule.id).into();
        shown["agents"] = json!({ "told": told, "answered": answered, "matched": matched, "faults": faults });
        shown
    });
    let rules: Vec<Value> = rules.collect();
    Json(json!({ "status": "success", "data": { "rules": rules, "rules_max": PROBE_RULES_MAX } }))
}

/// Takes `state`, `pattern`, `service`, `instance` and `keep` as parameters, form or JSON object.
async fn add(State(app): State<Arc<App>>, _: Whole, request: Request) -> Result<Response, ApiError> {
    let wanted = Wish::read(request, app.decoding.body()).await?.check()?;
    let Added { rule, replaced, agents, deaf } = app.control.add(wanted, app.clock.now()).await?;
    tracing::info!(
        rule = rule.id,
        state = state_name(rule.state),
        pattern = rule.pattern,
        service = rule.service,
        instance = rule.instance,
        kept = rule.kept,
        agents,
        "rule for probes added"
    );
    let shown = rule_json(&rule);
    let mut answer = Json(json!({
        "status": "success",
        "data": { "rule": &shown, "replaced": replaced, "agents": agents, "deaf": deaf },
    }))
    .into_response();
    answer.extensions_mut().insert(Done(json!({ "rule": shown })));
    Ok(answer)
}

/// Parameters: `id` (repeatable), or `all=1`.
async fn remove(State(app): State<Arc<App>>, _: Whole, params: Params) -> Result<Response, ApiError> {
    params.only(&["all"], &["id"])?;
    let read = |text: &str| {
        text.parse()
            .map_err(|_| ApiError::bad(format!("invalid parameter \"id\": {text:?} is not the id of a rule")))
    };
    let ids: Vec<u64> = params.all("id").map(read).collect::<Result<_, _>>()?;
    let removed = match (ids.is_empty(), params.get("all")) {
        (false, None) => app.control.remove(ids.clone()).await?,
        (true, Some("1")) => app.control.clear().await?,
        _ => return Err(ApiError::bad("give either \"id\", once or more, or \"all=1\"")),
    };
    tracing::info!(removed, "rules for probes removed");
    let mut answer = Json(json!({ "status": "success", "data": { "removed": removed } })).into_response();
    answer.extensions_mut().insert(Done(json!({ "removed": removed, "ids": ids })));
    Ok(answer)
}

/// A rule as requested, before validation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    #[serde(default, deserialize_with = "text")]
    state: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pattern: Option<String>,
    #[serde(default, deserialize_with = "text")]
    service: Option<String>,
    #[serde(default, deserialize_with = "text")]
    instance: Option<String>,
    #[serde(default)]
    keep: bool,
}

/// A member that is present must be a text, because `null` for a service would select all services.
fn text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    String::deserialize(from).map(Some)
}

impl Wish {
    async fn read(request: Request, hold: Hold) -> Result<Self, ApiError> {
        let content_type = request.headers().get(header::CONTENT_TYPE);
        if content_type.is_some_and(|v| v.as_bytes().to_ascii_lowercase().starts_with(b"application/json")) {
            // A JSON body has all members of the rule, so no parameters are allowed.
            Params::from_uri(request.uri())?.only(&[], &[])?;
            let headers = request.headers().clone();
            let body = Bytes::from_request(request, &()).await;
            let body = body.map_err(|e| ApiError::bad(e.body_text()))?;
            return Self::from_json(&headers, body, hold);
        }
        let params = <Params as FromRequest<()>>::from_request(request, &()).await?;
        params.only(&["state", "pattern", "service", "instance", "keep"], &[])?;
        let text = |name| params.get(name).map(ToOwned::to_owned);
        let keep = params.parse("keep", "0, 1, true or false", |text| match text {
            "1" | "true" => Some(true),
            "0" | "false" => Some(false),
            _ => None,
        })?;
        Ok(Self {
            state: text("state"),
            pattern: text("pattern"),
            service: text("service"),
            instance: text("instance"),
            keep: keep.unwrap_or(false),
        })
    }

    fn from_json(headers: &axum::http::HeaderMap, body: Bytes, hold: Hold) -> Result<Self, ApiError> {
        let bytes = Packed::new(headers, body, RULE_BYTES_MAX)?.unpack(hold)?;
        serde_json::from_slice(&bytes).map_err(|e| ApiError::bad(format!("the body is not a rule: {e}")))
    }

    fn check(self) -> Result<Wanted, ApiError> {
        let Self { state, pattern, service, instance, keep } = self;
        let given =
            [("state", &state), ("pattern", &pattern), ("service", &service), ("instance", &instance)];
        if let Some((name, _)) = given.iter().find(|(_, text)| text.as_deref() == Some("")) {
            return Err(ApiError::empty(name));
        }
        let state = state.ok_or_else(|| ApiError::missing("state"))?;
        let state = state_of(&state).ok_or_else(|| {
            ApiError::bad(format!("invalid parameter \"state\": {state:?} is not on, off or aggregate"))
        })?;
        let pattern = pattern.ok_or_else(|| ApiError::missing("pattern"))?;
        let (service, instance) = (service.unwrap_or_default(), instance.unwrap_or_default());
        Ok(Wanted { service, instance, state, pattern, keep })
    }
}

fn rule_json(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "service": rule.service,
        "instance": rule.instance,
        "state": state_name(rule.state),
        "pattern": rule.pattern,
        "since": rule.since.to_string(),
        "kept": rule.kept,
    })
}

impl From<ChangeError> for ApiError {
    fn from(error: ChangeError) -> Self {
        let message = error.to_string();
        match error {
            ChangeError::Refused(Refused::TooMany) => Self::execution(message),
            ChangeError::Refused(Refused::Unknown(_)) => Self::not_found(message),
            ChangeError::Refused(_) => Self::bad(message),
            ChangeError::Disk { .. } => Self::unavailable(message, 10),
            ChangeError::Ended(_) => Self::internal(message),
        }
    }
}
