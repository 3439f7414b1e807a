//! Which client owns a session? The ids of traces and spans reveal the id of a session. Therefore a session id is
//! derived from a secret, which only the owner has (`docs/format/wire.md`).

use std::fmt;

use sha2::{Digest, Sha256};

/// Prefix of session ids that are derived from a secret.
const MARK: [u8; 4] = *b"tach";
/// Hashed together with the secret, so that the hash differs from hashes of the secret for other purposes.
const PURPOSE: &[u8; 18] = b"tachograph session";

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
}
