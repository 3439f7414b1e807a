//! The sessions of the page. A cookie stands for a token, so that no script of the page has the token.
//!
//! A restart ends all sessions. A session has the hash of its token, so it ends with the token.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tacho_model::Timestamp;

use super::token::{self, TokenHash};

pub const SESSION_SECONDS: i64 = 12 * 3_600;
/// Limit on the sessions of one token. A further session ends the oldest session of the same token, so no client can end
/// the sessions of other tokens.
pub const OF_TOKEN_MAX: usize = 16;
pub const SESSIONS_MAX: usize = 4_096;

#[derive(Default)]
pub struct Sessions(Mutex<HashMap<TokenHash, Session>>);

#[derive(Clone, Copy)]
struct Session {
    token: TokenHash,
    begun: Timestamp,
}

impl Session {
    const fn expires(&self) -> Timestamp {
        self.begun.saturating_add(SESSION_SECONDS * 1_000_000_000)
    }
}

#[derive(Debug)]
pub enum NotBegun {
    TooMany,
    System(std::io::Error),
}

impl Sessions {
    fn all(&self) -> MutexGuard<'_, HashMap<TokenHash, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the text of the cookie.
    ///
    /// # Errors
    /// When all tokens together have too many sessions, or the system has no random numbers.
    pub fn begin(&self, token: TokenHash, now: Timestamp) -> Result<String, NotBegun> {
        let cookie = token::random().map_err(NotBegun::System)?;
        let mut all = self.all();
        all.retain(|_, session| session.expires() > now);
        let own: Vec<(Timestamp, TokenHash)> = all
            .iter()
            .filter(|(_, session)| session.token == token)
            .map(|(hash, session)| (session.begun, *hash))
            .collect();
        if own.len() >= OF_TOKEN_MAX {
            if let Some((_, oldest)) = own.iter().min_by_key(|(begun, _)| *begun) {
                all.remove(oldest);
            }
        } else if all.len() >= SESSIONS_MAX {
            return Err(NotBegun::TooMany);
        }
        all.insert(TokenHash::of(&cookie), Session { token, begun: now });
        Ok(cookie)
    }

    /// The token of a cookie, and the end of its session.
    pub fn find(&self, cookie: &str, now: Timestamp) -> Option<(TokenHash, Timestamp)> {
        let session = *self.all().get(&TokenHash::of(cookie))?;
        (session.expires() > now).then_some((session.token, session.expires()))
    }

    pub fn end(&self, cookie: &str) {
        self.all().remove(&TokenHash::of(cookie));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_only_its_own_oldest_session() {
        let sessions = Sessions::default();
        let other = sessions.begin(TokenHash::of("other"), 0).unwrap();
        let own: Vec<String> =
            (0..=OF_TOKEN_MAX as i64).map(|n| sessions.begin(TokenHash::of("own"), n).unwrap()).collect();
        let is_open = |cookie: &String| sessions.find(cookie, 100).is_some();
        assert!(is_open(&other) && !is_open(&own[0]) && own[1..].iter().all(is_open));
        sessions.end(&own[1]);
        assert!(!is_open(&own[1]));
        let end = SESSION_SECONDS * 1_000_000_000;
        assert!(sessions.find(&other, end - 1).is_some() && sessions.find(&other, end).is_none());
    }

    #[test]
    fn all_tokens_together_have_a_limit() {
        let sessions = Sessions::default();
        for n in 0..SESSIONS_MAX {
            sessions.begin(TokenHash::of(&n.to_string()), 0).unwrap();
        }
        assert!(matches!(sessions.begin(TokenHash::of("more"), 0), Err(NotBegun::TooMany)));
        assert!(
            sessions.begin(TokenHash::of("more"), SESSION_SECONDS * 1_000_000_000).is_ok(),
            "expired sessions count for the limit"
        );
    }
}
