//! Many series, more than one core: the same for each of them, where there is enough to do.

use std::num::NonZero;
use std::thread;

use crate::Error;

/// Samples below which one thread is about done before another has started.
const WORK_MIN: usize = 1 << 20;

/// Threads for one query; others want to be answered, too.
const THREADS_MAX: usize = 4;

/// `each` of all items, in their order; `work` is the number of samples that will be looked at. Every thread has a
/// state of its own. The first error in the order of the items is the answer.
pub fn map<T: Sync, S, R: Send>(
    items: &[T],
    work: usize,
    state: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, &T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let in_turn = |items: &[T]| -> Result<Vec<R>, Error> {
        let mut state = state();
        items.iter().map(|item| each(&mut state, item)).collect()
    };
    if work < WORK_MIN || items.len() < 2 {
        return in_turn(items);
    }
    // Asked only here: the answer is in several files, which takes longer than many a query.
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX).min(items.len());
    if threads < 2 {
        return in_turn(items);
    }
    let parts = thread::scope(|scope| {
        let (mine, others) = items.split_at(items.len().div_ceil(threads));
        let others = others.chunks(mine.len()).map(|part| scope.spawn(|| in_turn(part)));
        // All are started before the first is waited for.
        let others: Vec<_> = others.collect();
        let mine = in_turn(mine);
        let joined = others.into_iter().map(|other| match other.join() {
            Ok(part) => part,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(mine).chain(joined).collect::<Result<Vec<_>, Error>>()
    });
    Ok(parts?.into_iter().flatten().collect())
}
