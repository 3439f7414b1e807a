//! Orders to the upkeep task, and the callers that wait for them.
//!
//! At most one order of a kind waits. Up to [`WAITING_MAX`] callers that arrive before it starts get the same answer. A running
//! order does not accept further callers, because it may miss records that arrived after its start.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use super::report::MergeReport;
use crate::{Error, ErrorKind, Result};

const WAITING_MAX: usize = 64;
/// Retry delay for callers above the limit. Short compared with a merge of everything, which takes minutes.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Work that a caller can order from the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Merges all flushed records, without pauses between the merges.
    MergeAll,
    /// Applies all rules, and all deletions that cover only flushed generations, without pauses.
    Sweep,
}

type Reply = oneshot::Sender<Result<MergeReport>>;

#[derive(Debug)]
pub struct Waiting {
    pub order: Order,
    replies: Vec<Reply>,
}

#[derive(Debug, Default)]
pub struct Orders {
    queue: Mutex<Queue>,
    added: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    closed: bool,
}

impl Waiting {
    pub fn answer(self, result: &Result<MergeReport>) {
        for reply in self.replies {
            let _ = reply.send(result.clone());
        }
    }
}

impl Orders {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, order: Order) -> Result<oneshot::Receiver<Result<MergeReport>>> {
        let (reply, answer) = oneshot::channel();
        let mut queue = self.queue();
        if queue.closed {
            return Ok(answer);
        }
        match queue.waiting.iter_mut().find(|waiting| waiting.order == order) {
            None => queue.waiting.push(Waiting { order, replies: vec![reply] }),
            Some(waiting) => {
                waiting.replies.retain(|reply| !reply.is_closed());
                if waiting.replies.len() >= WAITING_MAX {
                    let message = format!("{WAITING_MAX} other callers wait for the same merge or sweep");
                    return Err(Error::new(ErrorKind::Full { retry_after: RETRY_AFTER }, message));
                }
                waiting.replies.push(reply);
            }
        }
        drop(queue);
        self.added.notify_one();
        Ok(answer)
    }

    pub fn take(&self) -> Option<Waiting> {
        let mut queue = self.queue();
        if queue.waiting.is_empty() { None } else { Some(queue.waiting.remove(0)) }
    }

    /// Waits for an order. May be cancelled and called again.
    pub async fn next(&self) -> Waiting {
        loop {
            // The permit of an order that was already taken only causes one additional check.
            match self.take() {
                Some(waiting) => return waiting,
                None => self.added.notified().await,
            }
        }
    }

    /// Drops waiting and later callers without an answer.
    pub fn close(&self) {
        let mut queue = self.queue();
        queue.closed = true;
        queue.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_share_one_waiting_order_up_to_the_limit() {
        let orders = Orders::default();
        let mut first = orders.add(Order::MergeAll).unwrap();
        let running = orders.take().unwrap();
        let mut all: Vec<_> = (0..WAITING_MAX).map(|_| orders.add(Order::MergeAll).unwrap()).collect();
        assert!(matches!(orders.add(Order::MergeAll).unwrap_err().kind(), ErrorKind::Full { .. }));
        let mut sweep = orders.add(Order::Sweep).unwrap();
        drop(all.pop());
        all.push(orders.add(Order::MergeAll).expect("refused, although there is space for another caller"));
        running.answer(&Ok(MergeReport { merges: 1, ..MergeReport::default() }));
        assert_eq!(first.try_recv().unwrap().unwrap().merges, 1);
        assert!(
            all[0].try_recv().is_err(),
            "the answer of the first order went to the second, which arrived while the first ran"
        );
        orders.take().unwrap().answer(&Ok(MergeReport { merges: 2, ..MergeReport::default() }));
        assert!(all.iter_mut().all(|answer| answer.try_recv().unwrap().unwrap().merges == 2));
        assert_eq!(orders.take().unwrap().order, Order::Sweep);
        assert!(orders.take().is_none() && sweep.try_recv().is_err());
        orders.close();
        assert!(orders.add(Order::Sweep).unwrap().try_recv().is_err());
    }
}
