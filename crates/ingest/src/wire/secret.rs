//! Which client owns a session? The ids of traces and spans reveal the id of a session. Therefore a session id is
//! derived from a secret, which only the owner has (`docs/format/wire.md`).

use std::fmt;

use sha2::{Digest, Sha256};

/// Prefix of session ids that are derived from a secret.
const MARK: [u8; 4] = *b"tach";
/// Hashed together with the secret, so that the hash differs from hashes of the secret for other purposes.
const PURPOSE: &[u8; 18] = b"tachograph session";
const OWNED: &[u8; 24] = b"tachograph owned session";

/// The secret of a session. A process draws the secret at random and sends it only in HELLO.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 16]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Whether a client must present the secret of this session. If a session has no secret, its id is random.
    pub fn is_needed(session: u128) -> bool {
        session.to_be_bytes().starts_with(&MARK)
    }

    /// The id of a session without a secret, for a client that has proved who it is by `owner`. So another owner who learns the
    /// id of the session cannot send records as this session. The result needs no secret.
    pub fn owned(session: u128, owner: &[u8]) -> u128 {
        let hash = Sha256::new()
            .chain_update(OWNED)
            .chain_update(owner)
            .chain_update(session.to_be_bytes())
            .finalize();
        let id = hash.iter().take(16).fold(0, |id, byte| id << 8 | u128::from(*byte));
        // The first bit of the mark is 0.
        id | 1 << 127
    }

    /// The session id that is derived from the secret.
    pub fn session(self) -> u128 {
        let hash = Sha256::new().chain_update(PURPOSE).chain_update(self.0).finalize();
        MARK.iter().chain(hash.iter()).take(16).fold(0, |session, byte| session << 8 | u128::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_format_page_is_correct() {
        let secret = Secret(std::array::from_fn(|n| 0x20 + n as u8));
        assert_eq!(secret.session(), 0x7461636828168de5e0ef6fcc67509172);
        assert!(Secret::is_needed(secret.session()) && !Secret::is_needed(secret.session() ^ 1 << 96));
    }

    #[test]
    fn owners_have_sessions_of_their_own() {
        let ids = [(1, b"a"), (1, b"b"), (2, b"a")].map(|(session, owner)| Secret::owned(session, owner));
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids.iter().all(|id| !Secret::is_needed(*id)));
        assert_eq!(ids[0], Secret::owned(1, b"a"));
    }
}
