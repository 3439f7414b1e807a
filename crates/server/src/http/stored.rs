//! What lies in the driver: chunks, bytes and records by kind.

use std::sync::atomic::{AtomicU64, Ordering};

use tacho_model::Kind;
use tacho_store::{Result, Store};
use tokio::sync::Mutex;

use crate::inspect::Amount;

/// The amounts, read from the chunks' headers once and again only after chunks were written.
#[derive(Default)]
pub struct Stored {
    /// Number of chunks written when `amounts` was read, plus 1; 0 for never.
    as_of: AtomicU64,
    amounts: Mutex<[Amount; 3]>,
}

impl Stored {
    pub async fn read(&self, store: &Store) -> Result<[Amount; 3]> {
        let now = store.stats().chunks_written + 1;
        let mut amounts = self.amounts.lock().await;
        if self.as_of.load(Ordering::Relaxed) != now {
            *amounts = count(store).await?;
            self.as_of.store(now, Ordering::Relaxed);
        }
        Ok(*amounts)
    }
}

async fn count(store: &Store) -> Result<[Amount; 3]> {
    let mut amounts = [Amount::default(); 3];
    for (kind, amount) in Kind::ALL.into_iter().zip(&mut amounts) {
        for (id, _) in store.find(kind, &[]) {
            for chunk in store.chunks(kind, id).await? {
                amount.add(&chunk);
            }
        }
    }
    Ok(amounts)
}
