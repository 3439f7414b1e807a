//! What is missing in an answer because it cannot be read, in words: the `warnings` of every answer.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tacho_model::{Kind, TimeRange, Timestamp};
use tacho_store::{Damage, Damages, ErrorKind};

use super::error::ApiError;
use super::params::Params;

/// What goes on over damage, where all records are asked for.
pub const ALLOW: &str = "allow_damaged";

/// Whether an answer over damage is wanted where all records are asked for.
///
/// # Errors
/// For a value that is neither 0 nor 1.
pub fn is_allowed(params: &Params) -> Result<bool, ApiError> {
    match params.get(ALLOW) {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => Err(ApiError::bad(format!("invalid parameter {ALLOW:?}: {other:?} is not 0 or 1"))),
    }
}

/// An error that damage led to, with what can be done about it; others as they are.
pub fn hinted(error: tacho_store::Error, hint: &str) -> ApiError {
    if error.kind() == ErrorKind::Corrupt {
        return ApiError::damaged(format!("{error}; {hint}"));
    }
    error.into()
}

/// One sentence a part, bounded as they are, and one for the rest.
pub fn sentences(damages: &Damages) -> Vec<String> {
    let mut all: Vec<String> = damages.named().iter().map(sentence).collect();
    match damages.more() {
        0 => {}
        1 => all.push("1 more part cannot be read".to_owned()),
        more => all.push(format!("{more} more parts cannot be read")),
    }
    all
}

fn sentence(Damage { kind, labels, range, reason }: &Damage) -> String {
    let records = match kind {
        Kind::Sample => "samples",
        Kind::Entry => "entries",
        Kind::Execution => "calls",
    };
    let Some(labels) = labels else { return format!("{records} may be missing: {reason}") };
    let mut out = format!("stored {records} of {labels} ");
    let TimeRange { start, end } = *range;
    let _ = match (start == Timestamp::MIN, end == Timestamp::MAX) {
        (true, true) => write!(out, "of any time"),
        (true, false) => write!(out, "up to {}", time(end)),
        (false, true) => write!(out, "from {} on", time(start)),
        (false, false) => write!(out, "between {} and {}", time(start), time(end)),
    };
    let _ = write!(out, " cannot be read: {reason}");
    out
}

fn time(at: Timestamp) -> String {
    jiff::Timestamp::from_nanosecond(at.into()).map_or_else(|_| format!("{at} ns"), |at| at.to_string())
}

/// Adds `warnings` to an answer, where there are any.
pub fn warn(mut answer: Value, damages: &Damages) -> Value {
    if !damages.is_empty() {
        answer["warnings"] = json!(sentences(damages));
    }
    answer
}

/// Marks the totals of an export over which something could not be read.
pub fn incomplete(mut last: Value, damages: &Damages) -> Value {
    if !damages.is_empty() {
        last["incomplete"] = json!(sentences(damages));
    }
    last
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use tacho_model::{Labels, NAME};

    #[test]
    fn series_and_range_are_named() {
        let labels = Arc::new(Labels::new([(NAME, "up"), ("job", "a")]).unwrap());
        let mut damages = Damages::default();
        for (labels, start, end) in [
            (Some(labels.clone()), 0, 1_500_000_000),
            (Some(labels.clone()), i64::MIN, 0),
            (Some(labels.clone()), 0, i64::MAX),
            (Some(labels), i64::MIN, i64::MAX),
            (None, i64::MIN, i64::MAX),
        ] {
            let reason = format!("reason {start} {end}").into();
            damages.add(Damage { kind: Kind::Sample, labels, range: TimeRange::new(start, end), reason });
        }
        let said = sentences(&damages);
        let begins = [
            "stored samples of up{job=\"a\"} between 1970-01-01T00:00:00Z and 1970-01-01T00:00:01.5Z cannot be read: ",
            "stored samples of up{job=\"a\"} up to 1970-01-01T00:00:00Z cannot be read: ",
            "stored samples of up{job=\"a\"} from 1970-01-01T00:00:00Z on cannot be read: ",
            "stored samples of up{job=\"a\"} of any time cannot be read: ",
            "samples may be missing: ",
        ];
        for (said, begin) in said.iter().zip(begins) {
            assert!(said.starts_with(&format!("{begin}reason ")), "{said}");
        }
        assert_eq!(said.len(), begins.len());
    }
}
