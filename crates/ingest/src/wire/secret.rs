//! Whose is a session? Its ids are public, the secret that it follows from is not (`docs/format/wire.md`).

use std::fmt;

/// Sessions that follow from a secret begin with this.
const MARK: [u8; 4] = *b"tach";
/// What is hashed with a secret, so that the hash is of use for nothing else.
const PURPOSE: &[u8; 18] = b"tachograph session";

/// Drawn at random by a process, and sent in HELLO only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 16]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Must a client have the secret of this session? One that began without has drawn it by itself.
    pub fn is_needed(session: u128) -> bool {
        session.to_be_bytes().starts_with(&MARK)
    }

    /// The session that follows from it.
    pub fn session(self) -> u128 {
        let mut block = [0; 64];
        let (text, rest) = block.split_at_mut(PURPOSE.len());
        text.copy_from_slice(PURPOSE);
        rest[..16].copy_from_slice(&self.0);
        // One block holds all of it: a one bit behind it, and at the end its length in bits.
        rest[16] = 0x80;
        block[62..].copy_from_slice(&(8 * (PURPOSE.len() as u16 + 16)).to_be_bytes());
        let [a, b, c, ..] = sha256(block);
        let mark = u32::from_be_bytes(MARK);
        [mark, a, b, c].into_iter().fold(0, |session, word| session << 32 | u128::from(word))
    }
}

/// The fractional parts of the cube roots of the first 64 primes (FIPS 180-4).
#[rustfmt::skip]
const ROUNDS: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// SHA-256 of a text whose only block, with its padding, is this one.
#[expect(clippy::indexing_slicing, reason = "the indices are constants below the lengths")]
fn sha256(block: [u8; 64]) -> [u32; 8] {
    let mut words = [0u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for n in 16..64 {
        let (early, late) = (words[n - 15], words[n - 2]);
        let early = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
        let late = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
        words[n] = words[n - 16].wrapping_add(early).wrapping_add(words[n - 7]).wrapping_add(late);
    }
    let begin: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = begin;
    for (round, word) in ROUNDS.iter().zip(words) {
        let choice = (e & f) ^ (!e & g);
        let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let first = h.wrapping_add(sum).wrapping_add(choice).wrapping_add(*round).wrapping_add(word);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let second = (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(majority);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    let end = [a, b, c, d, e, f, g, h];
    std::array::from_fn(|n| begin[n].wrapping_add(end[n]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_the_standard() {
        // The example of FIPS 180-4: "abc".
        let mut block = [0; 64];
        block[..4].copy_from_slice(b"abc\x80");
        block[63] = 24;
        let expect = [
            0xba78_16bf,
            0x8f01_cfea,
            0x4141_40de,
            0x5dae_2223,
            0xb003_61a3,
            0x9617_7a9c,
            0xb410_ff61,
            0xf200_15ad,
        ];
        assert_eq!(sha256(block), expect);
    }

    #[test]
    fn the_session_of_the_format_page() {
        let secret = Secret(std::array::from_fn(|n| 0x20 + n as u8));
        assert_eq!(secret.session(), 0x7461636828168de5e0ef6fcc67509172);
        assert!(Secret::is_needed(secret.session()) && !Secret::is_needed(secret.session() ^ 1 << 96));
    }
}
