//! Texts about unreadable records: the `warnings` of every response.

use serde_json::{Value, json};
use tacho_api::export::ALLOW_DAMAGED;
use tacho_store::{Damages, ErrorKind};

use super::error::ApiError;
use super::params::Params;
use crate::read::damage::sentences;

/// Whether a query for all records continues over damage.
///
/// # Errors
/// For a value that is neither 0 nor 1.
pub fn is_allowed(params: &Params) -> Result<bool, ApiError> {
    match params.get(ALLOW_DAMAGED) {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => {
            Err(ApiError::bad(format!("invalid parameter {ALLOW_DAMAGED:?}: {other:?} is not 0 or 1")))
        }
    }
}

/// Adds the hint to an error caused by damage; other errors are unchanged.
pub fn hinted(error: tacho_store::Error, hint: &str) -> ApiError {
    if error.kind() == ErrorKind::Corrupt {
        return ApiError::damaged(format!("{error}; {hint}"));
    }
    error.into()
}

/// Adds `warnings` to a response, if there are any.
pub fn warn(mut answer: Value, damages: &Damages) -> Value {
    if !damages.is_empty() {
        answer["warnings"] = json!(sentences(damages));
    }
    answer
}

/// Marks the totals of an export in which something could not be read.
pub fn incomplete(mut last: Value, damages: &Damages) -> Value {
    if !damages.is_empty() {
        last["incomplete"] = json!(sentences(damages));
    }
    last
}
