//! Which series, label names and label values are there?
//!
//! `start` and `end` are checked and do not narrow the answer: the index knows labels, not times.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use serde::Serialize;
use tacho_model::{Kind, Labels};
use tacho_query::promql;

use super::answer::LabelMap;
use super::{Answer, success};
use crate::http::App;
use crate::http::error::ApiError;
use crate::http::params::Params;

pub async fn series(State(app): State<Arc<App>>, params: Params) -> Answer {
    if params.all("match[]").next().is_none() {
        return Err(ApiError::bad("parameter \"match[]\" is missing: give at least one selector"));
    }
    let found = matching(&app, &params)?;
    answer(found.iter().map(|labels| LabelMap(labels)), &params)
}

pub async fn labels(State(app): State<Arc<App>>, params: Params) -> Answer {
    let found = matching(&app, &params)?;
    let names: BTreeSet<&str> = found.iter().flat_map(|labels| labels.iter().map(|(name, _)| name)).collect();
    answer(names.into_iter(), &params)
}

pub async fn values(State(app): State<Arc<App>>, Path(name): Path<String>, params: Params) -> Answer {
    let name = unescape(&name);
    let found = matching(&app, &params)?;
    let values: BTreeSet<&str> = found.iter().filter_map(|labels| labels.get(&name)).collect();
    answer(values.into_iter(), &params)
}

/// Labels of the series that any of the `match[]` selects, sorted; of all series when there is none.
fn matching(app: &App, params: &Params) -> Result<BTreeSet<Arc<Labels>>, ApiError> {
    params.range(app.clock.now())?;
    let mut selectors = Vec::new();
    for text in params.all("match[]") {
        selectors.push(promql::parse_selector(text)?);
    }
    if selectors.is_empty() {
        selectors.push(Vec::new());
    }
    let found = selectors.iter().flat_map(|matchers| app.store.find(Kind::Sample, matchers));
    Ok(found.map(|(_, labels)| labels).collect())
}

fn answer<T: Serialize>(list: impl ExactSizeIterator<Item = T>, params: &Params) -> Answer {
    let limit = params.count("limit")?.filter(|n| *n > 0).unwrap_or(usize::MAX);
    let truncated = list.len() > limit;
    let list: Vec<T> = list.take(limit).collect();
    Ok(success(list, truncated).into_response())
}

/// Undoes Prometheus' escaping of names in paths: `U__` in front, `_HEX_` for a character, `__` for `_`.
fn unescape(name: &str) -> String {
    let Some(escaped) = name.strip_prefix("U__") else { return name.to_owned() };
    let mut out = String::new();
    let mut rest = escaped;
    while let Some((plain, behind)) = rest.split_once('_') {
        out.push_str(plain);
        let Some((code, behind)) = behind.split_once('_') else { return name.to_owned() };
        match (code, u32::from_str_radix(code, 16).ok().and_then(char::from_u32)) {
            ("", _) => out.push('_'),
            (_, Some(character)) => out.push(character),
            (_, None) => return name.to_owned(),
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names() {
        for (escaped, name) in [
            ("job", "job"),
            ("a_b", "a_b"),
            ("U__http_2e_status", "http.status"),
            ("U__a__b", "a_b"),
            ("U__gr_f6__df_e", "größe"),
            ("U__a_zz_", "U__a_zz_"),
            ("U__a_", "U__a_"),
        ] {
            assert_eq!(unescape(escaped), name, "{escaped}");
        }
    }
}
