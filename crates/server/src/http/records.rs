//! `/api/v1/records`: declared record types with their fields and units.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::app::App;
use super::error::ApiError;
use super::params::Params;
use super::turn::away;
use crate::record_types::Form;

pub fn routes() -> Router<Arc<App>> {
    Router::new().route("/api/v1/records", get(records))
}

/// `name` and `service` filter the types.
async fn records(State(app): State<Arc<App>>, params: Params) -> Result<Response, ApiError> {
    away(move || listed(&app, &params).into_response()).await
}

fn listed(app: &App, params: &Params) -> Json<Value> {
    let (forms, left_out) = app.record_types.list();
    let is_wanted = |form: &&Form| {
        let fits = |parameter, value: &str| params.get(parameter).is_none_or(|wanted| wanted == value);
        fits("name", &form.record_type.name) && fits("service", &form.service)
    };
    let types: Vec<Value> = forms.iter().filter(is_wanted).map(form_json).collect();
    Json(json!({ "status": "success", "data": { "types": types, "left_out": left_out } }))
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
