//! On how many cores are series processed? More than one core is used only above a minimum of work.

use std::num::NonZero;
use std::thread;

use crate::Error;

/// With fewer samples, a second thread saves too little time.
const WORK_MIN: usize = 1 << 20;

/// Limit on the threads of one query, so that other queries get cores too.
const THREADS_MAX: usize = 4;

/// Applies `each` to all items. The results have the order of the items. `work` is the number of samples that will be read.
/// Each thread has its own state. Returns the first error in the order of the items.
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
    // Not called before this point, because `available_parallelism` reads several files, which takes longer than many queries.
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX).min(items.len());
    if threads < 2 {
        return in_turn(items);
    }
    let parts = thread::scope(|scope| {
        let (mine, others) = items.split_at(items.len().div_ceil(threads));
        let others = others.chunks(mine.len()).map(|part| scope.spawn(|| in_turn(part)));
        // Starts all threads before it joins the first one.
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
