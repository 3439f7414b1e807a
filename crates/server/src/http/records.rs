//! `/api/v1/records`: declared record types with their fields and units.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tacho_model::{Kind, Matcher, NAME};

use super::app::App;
use super::error::ApiError;
use super::params::Params;
use super::route::{Need, Route};
use super::turn::away;
use crate::access::Access;
use crate::record_types::Form;

pub fn routes() -> Vec<Route> {
    vec![Route::new("/api/v1/records", Need::Read, get(records))]
}

/// `name` and `service` filter the types.
async fn records(State(app): State<Arc<App>>, access: Access, params: Params) -> Result<Response, ApiError> {
    away(move || listed(&app, &access, &params).into_response()).await
}

fn listed(app: &App, access: &Access, params: &Params) -> Json<Value> {
    let (forms, refused) = app.record_types.list();
    // A confined token sees only the types of records that it may read.
    let store = app.view(access);
    let is_shown = |form: &Form| {
        access.confinement().is_none() || {
            let name = Matcher::equal(NAME, &form.record_type.name);
            !store.find(Kind::Entry, &[name, Matcher::equal("service", &form.service)]).is_empty()
        }
    };
    let refused = if access.confinement().is_none() { refused } else { 0 };
    let is_wanted = |form: &&Form| {
        let fits = |parameter, value: &str| params.get(parameter).is_none_or(|wanted| wanted == value);
        fits("name", &form.record_type.name) && fits("service", &form.service) && is_shown(form)
    };
    let types: Vec<Value> = forms.iter().filter(is_wanted).map(form_json).collect();
    Json(json!({ "status": "success", "data": { "types": types, "refused": refused } }))
}

fn form_json(form: &Form) -> Value {
    let fields = form.record_type.fields.iter();
    let fields: Vec<Value> = fields
        .map(|field| json!({ "name": field.name, "type": field.field_type.name(), "unit": field.unit }))
        .collect();
    json!({
        "name": form.record_type.name,
        "service": &*form.service,
        "since": form.since.to_string(),
        "seen": form.seen.to_string(),
        "fields": fields,
    })
}
