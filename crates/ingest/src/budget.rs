//! How much memory may the records of one body take?
//!
//! A body of a few kilobytes can stand for records of gigabytes: a field has all tags of its line, a number of a dictionary
//! a long text. So each decoder states what it takes before it takes it, and refuses what goes beyond:
//!
//! ```text
//!   peak  <=  MEMORY_BYTES_MIN + MEMORY_PER_BYTE * bytes of the unpacked body
//! ```
//! beside the body itself, allocations that grow counted twice while they move. `tests/peak.rs` looks for bodies that break
//! it. The step after is `server/src/decoding.rs`, which bounds the sum over all bodies that are decoded at the same time.

/// What the records of any body may take, bytes: 30,000 new series of a small one.
pub const MEMORY_BYTES_MIN: usize = 16 << 20;
/// What a byte of a body may take beyond it.
pub const MEMORY_PER_BYTE: usize = 48;
/// Of that, what numbers take that stand in a body as short as they can: no room is asked for.
pub const PLAIN_PER_BYTE: usize = 20;

/// The most memory that decoding takes for a body of this many bytes when it is unpacked.
pub const fn memory_bytes_max(body_bytes: usize) -> usize {
    MEMORY_BYTES_MIN.saturating_add(body_bytes.saturating_mul(MEMORY_PER_BYTE))
}

/// What a body may still take beyond [`PLAIN_PER_BYTE`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    max: usize,
    left: usize,
}

/// The records of a body take too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its records take more than {max} bytes of memory beside those before it: send them in parts")]
pub struct Full {
    pub max: usize,
}

impl Budget {
    /// Of a body of this many bytes when it is unpacked.
    pub const fn of_body(bytes: usize) -> Self {
        let max = MEMORY_BYTES_MIN.saturating_add(bytes.saturating_mul(MEMORY_PER_BYTE - PLAIN_PER_BYTE));
        Self { max, left: max }
    }

    pub const fn take(&mut self, bytes: usize) -> Result<(), Full> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Full { max: self.max }),
        }
    }

    /// Takes what is beyond the share of so many bytes of the body.
    pub const fn take_beyond(&mut self, bytes: usize, body_bytes: usize) -> Result<(), Full> {
        self.take(bytes.saturating_sub(body_bytes.saturating_mul(PLAIN_PER_BYTE)))
    }

    /// Takes back what a refused record had.
    pub const fn give(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes);
    }

    /// What was taken.
    pub const fn used(&self) -> usize {
        self.max.saturating_sub(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_to_the_last_byte() {
        let mut budget = Budget::of_body(10);
        assert_eq!(budget.take(MEMORY_BYTES_MIN + 280), Ok(()));
        assert_eq!(budget.take_beyond(20, 1), Ok(()));
        assert_eq!(budget.take(1), Err(Full { max: 16_777_496 }));
        budget.give(1);
        assert_eq!(budget.take_beyond(21, 1), Ok(()));
        assert_eq!(budget.used(), MEMORY_BYTES_MIN + 280);
        assert_eq!(memory_bytes_max(10), MEMORY_BYTES_MIN + 480);
    }
}
