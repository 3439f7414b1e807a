//! At which times is a query evaluated, and within which limits?

use tacho_model::Timestamp;

use super::Limits;
use crate::Cancel;

const MINUTE: i64 = 60_000_000_000;

/// Times, limits and settings of one evaluation.
#[derive(Clone, Debug)]
pub struct Params {
    pub start: Timestamp,
    pub end: Timestamp,
    /// Step in ns. `None` for an instant query, whose time is `start`.
    pub step: Option<i64>,
    /// How long a sample stays valid without a newer one, ns.
    pub lookback: i64,
    /// Step in ns of a subquery that does not give one (`[1h:]`).
    pub subquery_step: i64,
    pub limits: Limits,
    pub cancel: Cancel,
}

impl Params {
    pub fn instant(at: Timestamp) -> Self {
        Self {
            start: at,
            end: at,
            step: None,
            lookback: 5 * MINUTE,
            subquery_step: MINUTE,
            limits: Limits::default(),
            cancel: Cancel::default(),
        }
    }

    pub fn range(start: Timestamp, end: Timestamp, step: i64) -> Self {
        Self { start, end, step: Some(step), ..Self::instant(start) }
    }
}
