//! Metrics of tokens.

use super::registry::{Collect, Counter, Family};

pub struct AccessFigures {
    /// `reason` is role, selector (a series or an agent outside of the selector, or a request about all series), or the name of
    /// a limit: series, samples_per_second, query_samples or sessions.
    pub refused: Family<Counter, 2>,
    /// `reason` is missing, unknown, expired, too-many (wrong tokens from this address), closed (the file of tokens cannot be
    /// used) or session (the cookie has no valid session).
    pub unauthenticated: Family<Counter, 1>,
}

impl Default for AccessFigures {
    fn default() -> Self {
        Self {
            refused: Family::new(
                "tacho_token_refused_total",
                ["token", "reason"],
                "Requests, series and sessions refused because of the role, the selector or a limit of a token.",
            ),
            unauthenticated: Family::new(
                "tacho_unauthenticated_total",
                ["reason"],
                "Requests and agents refused because they had no valid token.",
            ),
        }
    }
}

impl AccessFigures {
    pub fn families(&self) -> [&dyn Collect; 2] {
        [&self.refused, &self.unauthenticated]
    }
}
