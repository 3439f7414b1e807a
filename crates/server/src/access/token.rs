//! A token is a secret text with a name, roles, a selector and limits. The server has only the hash of the text.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tacho_api::time::parse_time;
use tacho_model::{Labels, Matcher, PatternBudget, Timestamp};
use tacho_query::promql;

/// Scanners for leaked secrets find tokens by this prefix.
const PREFIX: &str = "tacho_";
/// Random bytes of a token. Their hash needs no salt and no repetition, because nobody can try 2^256 texts.
const RANDOM_BYTES: usize = 32;
pub const TOKEN_NAME_BYTES_MAX: usize = 64;
pub const TOKEN_MATCH_BYTES_MAX: usize = 1_024;

/// The SHA-256 of a token or of a cookie. It is a secret, so its bytes are not printed. The time of a lookup by
/// hash does not reveal how much of a guessed text is right.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    pub fn of(text: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        Self(hash)
    }

    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn from_hex(text: &str) -> Option<Self> {
        let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)?.try_into().ok()).collect();
        let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        (text.len() == 64).then_some(()).and_then(|()| bytes.try_into().ok()).map(Self)
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}

/// A text that is as hard to guess as a token.
///
/// # Errors
/// When the system has no random numbers.
pub fn random() -> std::io::Result<String> {
    let mut bytes = [0; RANDOM_BYTES];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if filled < RANDOM_BYTES {
        return Err(std::io::Error::other("the system gave too few random bytes"));
    }
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a token permits. `admin` includes the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Write,
    Read,
    Admin,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| format!("{text:?} is not a role: give read, write or admin"))
    }
}

/// Limits of one token. `None` means that only the limits of the server apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Distinct series that are written within 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<u64>,
    /// Samples, entries and calls written per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_per_second: Option<u64>,
    /// Samples that one query may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_samples: Option<u64>,
    /// Agents that are connected at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u64>,
}

/// A token as in the file, without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub name: String,
    sha256: Secretive,
    pub roles: Vec<Role>,
    #[serde(rename = "match", default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    #[serde(default)]
    pub limits: Limits,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// RFC 3339.
    pub created: String,
}

/// A hash in hexadecimal digits, which `Debug` does not show.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Secretive(String);

impl fmt::Debug for Secretive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secretive")
    }
}

impl Record {
    /// Returns the token and its text, which is stored nowhere.
    ///
    /// # Errors
    /// When a value is not valid, or the system has no random numbers.
    pub fn new(
        name: &str,
        (roles, selector): (Vec<Role>, Option<String>),
        limits: Limits,
        (created, expires): (String, Option<String>),
    ) -> Result<(Self, String), String> {
        let text = format!("{PREFIX}{}", random().map_err(|error| error.to_string())?);
        let sha256 = Secretive(hex(&TokenHash::of(&text).0));
        let record = Self { name: name.to_owned(), sha256, roles, selector, limits, expires, created };
        record.check()?;
        Ok((record, text))
    }

    pub fn check(&self) -> Result<Token, String> {
        let Self { name, sha256, roles, selector, limits, expires, .. } = self;
        let wrong = |cause: String| format!("token {name:?}: {cause}");
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > TOKEN_NAME_BYTES_MAX || !name.bytes().all(is_plain) {
            return Err(format!(
                "{name:?} is not a name of 1 to {TOKEN_NAME_BYTES_MAX} letters, digits, hyphens, underscores and dots"
            ));
        }
        if roles.is_empty() {
            return Err(wrong("it has no role".into()));
        }
        let hash =
            TokenHash::from_hex(&sha256.0).ok_or_else(|| wrong("its sha256 is not 64 digits".into()))?;
        let confinement = selector.as_deref().map(Confinement::new).transpose().map_err(wrong)?;
        if confinement.is_some() && roles.contains(&Role::Admin) {
            return Err(wrong("a token with the role admin cannot be confined by a selector".into()));
        }
        let expires = match expires {
            None => None,
            Some(text) => {
                Some(parse_time(text).ok_or_else(|| wrong(format!("expires = {text:?} is not a time")))?)
            }
        };
        let mut sorted = roles.clone();
        sorted.sort_unstable();
        sorted.dedup();
        Ok(Token {
            name: name.as_str().into(),
            hash,
            roles: sorted.into(),
            confinement: confinement.map(Arc::new),
            limits: *limits,
            expires,
        })
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.check().is_ok_and(|token| token.is_expired(now))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub name: Arc<str>,
    pub hash: TokenHash,
    /// Sorted, each once.
    pub roles: Arc<[Role]>,
    pub confinement: Option<Arc<Confinement>>,
    pub limits: Limits,
    pub expires: Option<Timestamp>,
}

impl Token {
    pub fn permits(&self, role: Role) -> bool {
        self.roles.contains(&role) || self.roles.contains(&Role::Admin)
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

#[derive(Clone)]
pub struct Confinement {
    pub text: String,
    pub matchers: Vec<Matcher>,
}

impl PartialEq for Confinement {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Confinement {}

impl fmt::Debug for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Confinement {
    /// Parses a selector. As in every query, at least one matcher must refuse the empty value, so that no selector matches
    /// everything by mistake.
    ///
    /// # Errors
    /// The reason why the text is not a selector.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > TOKEN_MATCH_BYTES_MAX {
            return Err(format!(
                "the selector has {} bytes, at most {TOKEN_MATCH_BYTES_MAX} are allowed",
                text.len()
            ));
        }
        let parsed = promql::parse_selector_within(text, &mut PatternBudget::default());
        let matchers = parsed.map_err(|error| format!("match = {text:?}: {error}"))?;
        Ok(Self { text: text.to_owned(), matchers })
    }

    pub fn admits(&self, labels: &Labels) -> bool {
        self.matchers.iter().all(|matcher| matcher.matches(labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(roles: &[Role], selector: Option<&str>) -> Result<(Record, String), String> {
        let times = ("2026-11-28T00:00:00Z".to_owned(), None);
        Record::new("a", (roles.to_vec(), selector.map(str::to_owned)), Limits::default(), times)
    }

    #[test]
    fn a_token_is_recognised_by_its_hash_and_never_shown() {
        let (record, text) = record(&[Role::Read], Some("{team=\"a\"}")).unwrap();
        let token = record.check().unwrap();
        assert!(token.hash == TokenHash::of(&text) && text.len() == 70 && text.starts_with(PREFIX));
        for shown in [format!("{record:?}"), format!("{token:?}"), serde_json::to_string(&record).unwrap()] {
            assert!(!shown.contains(&text[6..]), "{shown}");
        }
        assert!(!format!("{record:?}").contains(&hex(&token.hash.0)));
        assert!(TokenHash::from_hex("zz").is_none() && TokenHash::from_hex(&"z".repeat(64)).is_none());
    }

    #[test]
    fn roles_and_selectors_are_checked() {
        for (roles, selector, expect) in [
            (&[][..], None, "no role"),
            (&[Role::Admin], Some("{a=\"b\"}"), "cannot be confined"),
            (&[Role::Read], Some("{a!=\"b\"}"), "match ="),
            (&[Role::Read], Some("{a=~\".*\"}"), "match ="),
            (&[Role::Read], Some("rate(a[5m])"), "match ="),
            (&[Role::Read], Some("{a="), "match ="),
        ] {
            let error = record(roles, selector).unwrap_err();
            assert!(error.contains(expect), "{error}");
        }
        let token = record(&[Role::Admin], None).unwrap().0.check().unwrap();
        assert!(Role::ALL.iter().all(|role| token.permits(*role)));
        let token = record(&[Role::Write], None).unwrap().0.check().unwrap();
        assert!(token.permits(Role::Write) && !token.permits(Role::Read) && !token.permits(Role::Admin));
    }
}
