//! Limits for records that are not in the driver yet: on their memory, and on the number of chunks
//! that they need.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An amount and its limit: bytes of memory for waiting batches and memtables, or a number of chunks.
#[derive(Debug)]
pub struct Budget {
    used: AtomicUsize,
    max: usize,
}

impl Budget {
    pub const fn new(max: usize) -> Self {
        Self { used: AtomicUsize::new(0), max }
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub const fn max(&self) -> usize {
        self.max
    }

    pub fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes an amount for a batch, even above the limit.
    pub fn hold(self: &Arc<Self>, amount: usize) -> Reservation {
        self.add(amount);
        Reservation { budget: self.clone(), bytes: amount }
    }

    /// Reserves an amount for a batch. Returns `None` when the limit would be exceeded.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(Reservation { budget: self.clone(), bytes })
    }
}

/// The amount reserved for a batch, released on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reserved_and_released() {
        let budget = Arc::new(Budget::new(100));
        let first = budget.reserve(60).unwrap();
        assert!(budget.reserve(41).is_none());
        let second = budget.reserve(40).unwrap();
        drop(first);
        assert_eq!(budget.used(), 40);
        drop(second);
        budget.add(100);
        assert!(budget.reserve(1).is_none());
    }
}
