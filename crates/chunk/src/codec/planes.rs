//! The lowest bytes of all numbers, then their second bytes, and so on. The codec only decodes existing chunks, in which it
//! occurs inside of compressed columns; new chunks use `zstd`.

use tacho_model::ValueType;

use super::Codec;
use crate::Error;

pub(super) struct Planes;

impl Codec for Planes {
    fn tag(&self) -> u8 {
        19
    }

    fn name(&self) -> &'static str {
        "planes"
    }

    fn decode(&self, bytes: &[u8], count: usize, _: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        let wanted = count.saturating_mul(8);
        if bytes.len() < wanted {
            return Err(Error::Short { what: "planes", wanted, left: bytes.len() });
        }
        if bytes.len() > wanted {
            return Err(Error::Trailing { what: "planes", left: bytes.len() - wanted });
        }
        let mut words = vec![0; count];
        for (shift, plane) in (0..64).step_by(8).zip(bytes.chunks_exact(count.max(1))) {
            for (word, byte) in words.iter_mut().zip(plane) {
                *word |= u64::from(*byte) << shift;
            }
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_planes_become_numbers() {
        let bytes: Vec<u8> = (1..=16).collect();
        let read = |bytes: &[u8]| Planes.decode(bytes, 2, ValueType::U64, 0);
        assert_eq!(read(&bytes), Ok(vec![0x0f0d_0b09_0705_0301, 0x100e_0c0a_0806_0402]));
        assert!(matches!(read(&bytes[1..]), Err(Error::Short { wanted: 16, left: 15, .. })));
        let long = [&bytes[..], &[0]].concat();
        assert!(matches!(read(&long), Err(Error::Trailing { left: 1, .. })));
    }
}
