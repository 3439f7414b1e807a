//! `/api/v1/agents`: the agents, the rules sent to each, and their responses.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};

use super::app::App;
use super::error::ApiError;
use super::params::Params;
use super::route::{Need, Route};
use super::turn::away;
use crate::access::Access;
use crate::control::{Agent, Identity, Report, Rule, Standing};

const AGENTS_DEFAULT: usize = 1_000;
const AGENTS_MAX: usize = 4_096;
/// Limit on the bytes in memory of the lists in one response. If the lists of an agent exceed the remaining
/// bytes, the response omits these lists.
const LISTS_BYTES_MAX: usize = 8 << 20;

pub fn routes() -> Vec<Route> {
    vec![Route::new("/api/v1/agents", Need::Read, get(agents))]
}

/// `service` and `instance` filter the agents. `rule` selects the connected agents in the scope of a rule. Their lists then
/// have only the result for this rule.
async fn agents(State(app): State<Arc<App>>, access: Access, params: Params) -> Result<Response, ApiError> {
    // Formatting lists of several megabytes would block other requests.
    away(move || listed(&app, &access, &params).map(IntoResponse::into_response)).await?
}

fn listed(app: &App, access: &Access, params: &Params) -> Result<Json<Value>, ApiError> {
    params.only(&["service", "instance", "rule", "limit"], &[])?;
    let limit = params.count("limit", 1..=AGENTS_MAX)?.unwrap_or(AGENTS_DEFAULT);
    let rule = match params.parse("rule", "the id of a rule", |text| text.parse().ok())? {
        Some(id) => Some(
            rule_of(app, access, id)
                .ok_or_else(|| ApiError::not_found(format!("no rule has the id {id}")))?,
        ),
        None => None,
    };
    let is_wanted = |agent: &Agent| {
        let fits = |name, value: &str| params.get(name).is_none_or(|wanted| wanted == value);
        let is_meant = rule.as_ref().is_none_or(|rule| agent.is_connected() && rule.fits(&agent.identity));
        is_meant && fits("service", &agent.identity.service) && fits("instance", &agent.identity.instance)
    };
    let mut agents = app.control.agents(app.clock.now());
    agents.retain(|(agent, _)| shows(access, agent) && is_wanted(agent));
    let total = agents.len();
    let connected = agents.iter().filter(|(agent, _)| agent.is_connected()).count();
    agents.truncate(limit);
    let mut room = LISTS_BYTES_MAX;
    let rule = rule.map(|rule| rule.id);
    let id_of = |id| shown_id(app, access, id);
    let agents = agents
        .iter()
        .map(|(agent, standing)| agent_json(agent, *standing, (rule, &id_of), &mut room))
        .collect::<Vec<Value>>();
    Ok(Json(json!({
        "status": "success",
        "data": { "agents": agents, "total": total, "connected": connected },
    })))
}

pub(super) fn shows(access: &Access, agent: &Agent) -> bool {
    let Identity { service, host, instance, .. } = &agent.identity;
    access.admits(service, host, instance)
}

/// The id of a rule in answers. Ids are consecutive, so they reveal how many rules were added. A confined access may see only
/// some of the rules, so it gets another number instead.
pub(super) fn shown_id(app: &App, access: &Access, id: u64) -> u64 {
    if access.confinement().is_none() { id } else { app.control.number_of(id) }
}

/// A rule by its shown id, if the access may see the rule. A confined access sees the rules whose scope is all agents, and
/// rules with a visible agent in their scope.
fn rule_of(app: &App, access: &Access, shown: u64) -> Option<Rule> {
    let rule = app.control.rules().into_iter().find(|rule| shown_id(app, access, rule.id) == shown)?;
    let agents = || app.control.agents(app.clock.now());
    let is_shown = access.confinement().is_none()
        || rule.service.is_empty() && rule.instance.is_empty()
        || agents().iter().any(|(agent, _)| shows(access, agent) && rule.fits(&agent.identity));
    is_shown.then_some(rule)
}

/// The id of the rule that was asked for, and the function from ids of rules to shown ids.
type Ids<'a> = (Option<u64>, &'a dyn Fn(u64) -> u64);

fn agent_json(agent: &Agent, standing: Standing, ids: Ids<'_>, room: &mut usize) -> Value {
    let Agent { number, identity, since, heard, left, totals, report, .. } = agent;
    json!({
        // Not the session id. An older agent has no secret, so a client with its session id can send frames as this agent.
        "session": number.to_string(),
        "service": identity.service,
        "host": identity.host,
        "instance": identity.instance,
        "runtime": identity.runtime,
        "agent": identity.agent,
        "since": since.to_string(),
        "heard": heard.to_string(),
        "left": left.map(|left| left.to_string()),
        "state": if agent.is_connected() { standing.name() } else { "left" },
        "dropped": {
            "executions": totals.executions_dropped,
            "samples": totals.samples_dropped,
            "entries": totals.entries_dropped,
        },
        "bytes_buffered": totals.bytes_buffered,
        "probes": report.as_ref().map(|report| report_json(report, ids, room)),
    })
}

/// `room`: bytes left for lists in this response.
fn report_json(report: &Report, (rule, shown): Ids<'_>, room: &mut usize) -> Value {
    let outcome = |id: u64, (matched, fault): (u64, &str)| json!({ "id": shown(id), "matched": matched, "fault": fault });
    let mut answer = json!({
        "at": report.at.to_string(),
        "on": report.on,
        "aggregated": report.aggregated,
        "off": report.off,
        "rules": [],
        "moved": [],
        "cut": report.cut,
    });
    if let Some(id) = rule {
        answer["rules"] = report.rule(id).map(|said| outcome(id, said)).into_iter().collect();
    } else if let Some(left) = room.checked_sub(report.bytes()) {
        *room = left;
        answer["rules"] =
            report.rules.iter().map(|(id, matched, fault)| outcome(*id, (*matched, fault))).collect();
        let moved = report.moved.iter().map(|moved| {
            json!({ "operation": moved.operation, "reason": moved.reason, "since": moved.since.to_string() })
        });
        answer["moved"] = moved.collect();
    } else {
        answer["cut"] = true.into();
    }
    answer
}
