//! Which traces does a request for `/api/traces` search?

use tacho_query::executions::{AttributeTest, Conditions, Cursor, Filter, Order, Outcome, Search, Statuses};

use crate::http::error::ApiError;
use crate::http::params::Params;

const TRACES_DEFAULT: usize = 100;
const TRACES_MAX: usize = 10_000;
/// Limit on the parameters `attribute` of a search.
const ATTRIBUTES_MAX: usize = 8;
/// Limit on the parameter `text`, because it is searched in each name.
const TEXT_BYTES_MAX: usize = 1_024;

pub const ATTRIBUTE: &str = "attribute";

/// The other parameters that [`of`] reads.
pub const CONDITIONS: [&str; 10] = [
    "min_duration",
    "max_duration",
    "outcome",
    "request_id",
    "text",
    "status",
    "exception",
    "order",
    "limit",
    "after",
];

pub fn of(params: &Params, filter: Filter) -> Result<Search, ApiError> {
    let mut search = Search {
        filter,
        duration_ns_min: params.duration("min_duration")?.map(i64::unsigned_abs),
        duration_ns_max: params.duration("max_duration")?.map(i64::unsigned_abs),
        outcome: params.parse("outcome", "ok, failed or running", outcome)?,
        request_id: params.get("request_id").map(str::to_owned),
        conditions: conditions(params)?,
        order: params.parse("order", "newest, oldest, slowest or fastest", order)?.unwrap_or_default(),
        limit: params.count("limit", 1..=TRACES_MAX)?.unwrap_or(TRACES_DEFAULT),
        after: None,
    };
    if let (Some(min), Some(max)) = (search.duration_ns_min, search.duration_ns_max)
        && min > max
    {
        return Err(ApiError::bad("invalid parameter \"max_duration\": it is less than \"min_duration\""));
    }
    search.after = after(params, &search)?;
    Ok(search)
}

fn conditions(params: &Params) -> Result<Conditions, ApiError> {
    const STATUS: &str = "a status from 100 to 999, for example 503, or a class from 1xx to 5xx";
    let pairs: Vec<AttributeTest> = params.all(ATTRIBUTE).map(attribute).collect::<Result<_, _>>()?;
    if pairs.len() > ATTRIBUTES_MAX {
        let count = pairs.len();
        let message = format!("{count} parameters \"attribute\" are over {ATTRIBUTES_MAX}: omit some");
        return Err(ApiError::bad(message));
    }
    let status = params.parse("status", STATUS, Statuses::parse)?.map(AttributeTest::status);
    const CLASS: &str = "a class, for example IllegalStateException: the parameter \"attribute\" finds a class with its message";
    let exception = params.parse("exception", CLASS, AttributeTest::exception)?;
    let attributes = pairs.into_iter().chain(status).chain(exception).collect();
    let text = params.get("text").map(str::to_owned);
    if let Some(bytes) = text.as_ref().map(String::len).filter(|bytes| *bytes > TEXT_BYTES_MAX) {
        let message =
            format!("the parameter \"text\" has {bytes} bytes, at most {TEXT_BYTES_MAX} are allowed");
        return Err(ApiError::bad(message));
    }
    Ok(Conditions { text, attributes })
}

fn attribute(pair: &str) -> Result<AttributeTest, ApiError> {
    let is_not = || ApiError::bad(format!("invalid parameter \"attribute\": {pair:?} is not KEY=VALUE"));
    let (key, value) = pair.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(is_not)?;
    Ok(AttributeTest::equal(key, value))
}

fn after(params: &Params, search: &Search) -> Result<Option<Cursor>, ApiError> {
    let cursor = params.parse("after", "a value of \"next\" of an earlier answer", Cursor::parse)?;
    match cursor.filter(|cursor| !cursor.is_of(search)) {
        Some(other) => Err(ApiError::bad(format!(
            "invalid parameter \"after\": \"{other}\" is for another search: repeat all other parameters of the page before"
        ))),
        None => Ok(cursor),
    }
}

fn outcome(text: &str) -> Option<Outcome> {
    [Outcome::Ok, Outcome::Failed, Outcome::Running].into_iter().find(|outcome| outcome.name() == text)
}

fn order(text: &str) -> Option<Order> {
    Order::ALL.into_iter().find(|order| order.name() == text)
}
