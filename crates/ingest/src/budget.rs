//! How much memory may the records of one body take?
//!
//! A body of a few kilobytes can expand to records of gigabytes: each field repeats all tags of its line, and many ids can
//! refer to one long text of the dictionary. Therefore each decoder of request bodies or frames reserves memory before it
//! allocates, and refuses records that exceed the budget:
//!
//! ```text
//!   peak  <=  MEMORY_BYTES_MIN + MEMORY_PER_BYTE * bytes of the decompressed body
//! ```
//! The memory of the body itself is not included. A growing allocation counts twice while it is moved. `tests/peak.rs`
//! searches for bodies that exceed the budget. Step after: `server/src/decoding.rs` limits the sum over all bodies that
//! are decoded concurrently.

/// Budget of a body of any size, bytes. It is enough for 20,000 new series of short lines.
pub const MEMORY_BYTES_MIN: usize = 16 << 20;
/// Additional budget per byte of the body.
pub const MEMORY_PER_BYTE: usize = 48;
/// The part of [`MEMORY_PER_BYTE`] that the densest encoding of numbers needs. It is always granted without a
/// reservation.
pub const PLAIN_PER_BYTE: usize = 20;

pub const fn memory_bytes_max(body_bytes: usize) -> usize {
    MEMORY_BYTES_MIN.saturating_add(body_bytes.saturating_mul(MEMORY_PER_BYTE))
}

/// Remaining budget of a body, not counting [`PLAIN_PER_BYTE`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    max: usize,
    left: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("records exceed the memory budget of {max} bytes for one body: send them in parts")]
pub struct Full {
    pub max: usize,
}

impl Budget {
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

    /// Reserves only the part of `bytes` that exceeds `body_bytes` * [`PLAIN_PER_BYTE`]. `body_bytes` is the length of the
    /// part of the body from which these records are decoded.
    pub const fn take_beyond(&mut self, bytes: usize, body_bytes: usize) -> Result<(), Full> {
        self.take(bytes.saturating_sub(body_bytes.saturating_mul(PLAIN_PER_BYTE)))
    }

    /// Returns the memory of a refused record.
    pub const fn give(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes);
    }

    pub const fn used(&self) -> usize {
        self.max.saturating_sub(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_used_to_the_last_byte() {
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
