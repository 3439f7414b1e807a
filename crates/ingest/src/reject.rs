//! Which records of a message were refused while the others were kept?

/// Maximum number of refused records of one message that the response names. Further records are only counted, so that the
/// response stays short.
pub const REJECTS_NAMED_MAX: usize = 16;

/// The first refused records with their positions and reasons, and the number of all refused records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejects<T> {
    pub named: Vec<T>,
    pub count: u64,
}

impl<T> Default for Rejects<T> {
    fn default() -> Self {
        Self { named: Vec::new(), count: 0 }
    }
}

impl<T> Rejects<T> {
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Counts one more refused record. Calls `name` only if this record will be named.
    pub(crate) fn add(&mut self, name: impl FnOnce() -> T) {
        self.count += 1;
        if self.named.len() < REJECTS_NAMED_MAX {
            self.named.push(name());
        }
    }
}
