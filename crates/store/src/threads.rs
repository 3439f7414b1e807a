//! Selects the threads that do long work.

use tokio::task::{JoinError, JoinHandle};

/// The threads that a store and its driver use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// Long work has its own threads, so that other tasks do not wait for it.
    #[default]
    Many,
    /// Long work runs on the thread of the caller, and the writer of the journal is a task. If time, randomness and disk are
    /// passed in too, a run on a runtime with one thread can be repeated exactly.
    One,
}

pub enum Started<T> {
    Done(T),
    Running(JoinHandle<T>),
}

impl Threads {
    pub fn start<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Started<T> {
        match self {
            Self::Many => Started::Running(tokio::task::spawn_blocking(work)),
            Self::One => Started::Done(work()),
        }
    }
}

impl<T> Started<T> {
    /// Waits for the result.
    ///
    /// # Errors
    /// The work panicked, or the runtime has stopped.
    pub async fn join(self) -> Result<T, JoinError> {
        match self {
            Self::Done(result) => Ok(result),
            Self::Running(task) => task.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::current;

    use super::*;

    #[tokio::test]
    async fn work_stays_on_the_only_permitted_thread() {
        let here = current().id();
        for (threads, is_here) in [(Threads::One, true), (Threads::Many, false)] {
            let worker = threads.start(|| current().id()).join().await.unwrap();
            assert_eq!(worker == here, is_here, "{threads:?}");
        }
    }
}
