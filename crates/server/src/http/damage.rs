//! Unreadable records: whether the client accepts an answer that omits them, and how responses report them.

use serde_json::{Value, json};
use tacho_api::export::ALLOW_DAMAGED;
use tacho_store::{Damages, ErrorKind};

use super::error::ApiError;
use super::params::Params;
use crate::read::damage::sentences;

/// Whether the client accepts an answer that omits unreadable records (`allow_damaged=1`).
///
/// # Errors
/// When the parameter is neither 0 nor 1.
pub fn is_allowed(params: &Params) -> Result<bool, ApiError> {
    match params.get(ALLOW_DAMAGED) {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => {
            Err(ApiError::bad(format!("invalid parameter {ALLOW_DAMAGED:?}: {other:?} is not 0 or 1")))
        }
    }
}

/// Adds the hint to an error that is caused by damage. Other errors are unchanged.
pub fn hinted(error: tacho_store::Error, hint: &str) -> ApiError {
    if error.kind() == ErrorKind::Corrupt {
        return ApiError::damaged(format!("{error}; {hint}"));
    }
    error.into()
}

/// Adds a member `warnings` to a response if there is any damage.
pub fn warn(answer: Value, damages: &Damages) -> Value {
    told(answer, sentences(damages))
}

/// Adds a member `warnings` to a response if there are any.
pub fn told(mut answer: Value, warnings: Vec<String>) -> Value {
    if !warnings.is_empty() {
        answer["warnings"] = json!(warnings);
    }
    answer
}

/// Marks the totals of an export as incomplete if records could not be read.
pub fn incomplete(mut last: Value, damages: &Damages) -> Value {
    if !damages.is_empty() {
        last["incomplete"] = json!(sentences(damages));
    }
    last
}
