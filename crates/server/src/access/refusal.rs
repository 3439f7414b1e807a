//! Why is a request or a connection refused?

/// Why a client without a valid token is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    Missing,
    Unknown,
    Expired,
    /// After too many wrong tokens: the seconds to wait.
    TooMany(u64),
    Closed,
    /// The cookie has no session, its session has ended, or the token of the session is not valid.
    Ended,
}

impl Refusal {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::Expired => "expired",
            Self::TooMany(_) => "too-many",
            Self::Closed => "closed",
            Self::Ended => "session",
        }
    }

    pub fn message(&self) -> String {
        match self {
            Self::Missing => "this server requires a token (docs/guide/security.md)".into(),
            Self::Unknown => "the token is unknown or revoked".into(),
            Self::Expired => "the token has expired".into(),
            Self::TooMany(seconds) => {
                format!("too many wrong tokens from this address: retry in {seconds} s")
            }
            Self::Ended => "the session has ended: log in again".into(),
            Self::Closed => {
                "this server accepts no token, because its file of tokens cannot be used: see its log".into()
            }
        }
    }
}

/// Why a request of a valid token, or a part of the request, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    Role,
    Selector,
    Series,
    Rate,
    Query,
    Sessions,
}

impl Reason {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::Selector => "selector",
            Self::Series => "series",
            Self::Rate => "samples_per_second",
            Self::Query => "query_samples",
            Self::Sessions => "sessions",
        }
    }
}
