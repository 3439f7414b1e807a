//! On how many cores are series processed? More than one core is used only above a minimum of work.
//!
//! The items of a query are divided into parts. The thread of the query takes one part after another. Before each part it
//! invites the free threads (helpers) of a pool that all queries share. A helper takes some parts and is free again. So a query
//! never waits for helpers that work for other queries, and a long query shares the helpers with a query that begins later.
//! Results are joined in the order of the items, so they do not depend on the number of threads
//! (`docs/adr/0020-one-query-on-all-cores.md`).

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use rayon::{Scope, ThreadPool, ThreadPoolBuilder};

use crate::Error;

/// With fewer samples, a second thread saves too little time. This number of samples takes about 400 us to convert and 700 us to
/// digest.
const WORK_MIN: usize = 1 << 19;
/// Samples of a part. They take about 100 us, much longer than inviting a helper.
const PART_WORK: usize = 1 << 16;
/// Maximum number of parts that an invited helper takes. A helper that took only one part would wait for its next invitation
/// about as long as it works. This many parts take less than a millisecond. Then another query may invite the helper.
const HELPED_PARTS: usize = 8;

/// The helpers of all queries: one thread less than there are cores, because each query has a thread of its own. They start on
/// demand, because `available_parallelism` reads several files, which takes longer than a small query.
static HELPERS: LazyLock<Option<Helpers>> =
    LazyLock::new(|| Helpers::new(thread::available_parallelism().map_or(1, NonZero::get) - 1));

struct Helpers {
    pool: ThreadPool,
    free: AtomicUsize,
}

impl Helpers {
    /// `None` if `threads` is 0 or the threads cannot be started.
    fn new(threads: usize) -> Option<Self> {
        let builder =
            ThreadPoolBuilder::new().num_threads(threads).thread_name(|n| format!("tacho-query-{n}"));
        let pool = (threads > 0).then(|| builder.build().ok()).flatten()?;
        Some(Self { pool, free: AtomicUsize::new(threads) })
    }

    fn invite(&self) -> Option<Invited<'_>> {
        let taken = self.free.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |free| free.checked_sub(1));
        taken.ok().map(|_| Invited(&self.free))
    }
}

struct Invited<'h>(&'h AtomicUsize);

impl Drop for Invited<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// Applies `each` to all items. The results have the order of the items. `work` is the number of samples to read. Each thread has
/// its own state. Returns the first error in the order of the items.
pub fn map<'i, T: Sync, S, R: Send>(
    items: &'i [T],
    (work, threads_max): (usize, usize),
    state: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, &'i T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let several = work >= WORK_MIN && items.len() > 1 && threads_max > 1;
    let helpers = if several { HELPERS.as_ref() } else { None };
    match helpers {
        Some(helpers) => map_with(helpers, items, (work, threads_max), state, each),
        None => {
            let mut state = state();
            items.iter().map(|item| each(&mut state, item)).collect()
        }
    }
}

/// As [`map`], but consumes the items, and `each` cannot fail.
pub fn each_of<T: Send, R: Send>(items: Vec<T>, work: usize, each: impl Fn(T) -> R + Sync) -> Vec<R> {
    if work < WORK_MIN {
        return items.into_iter().map(each).collect();
    }
    let cells: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let take = |(): &mut (), cell: &Mutex<Option<T>>| {
        Ok(cell.lock().unwrap_or_else(PoisonError::into_inner).take().map(&each))
    };
    let results = map(&cells, (work, usize::MAX), || (), take);
    results.into_iter().flatten().flatten().collect()
}

fn map_with<'i, T: Sync, S, R: Send>(
    helpers: &Helpers,
    items: &'i [T],
    (work, threads_max): (usize, usize),
    state: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, &'i T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let size = items.len().div_ceil((work / PART_WORK).clamp(1, items.len()));
    let parts =
        Parts { parts: items.chunks(size).collect(), next: AtomicUsize::new(0), done: Mutex::default() };
    let run = |part: &'i [T], state: &mut S| part.iter().map(|item| each(state, item)).collect();
    let help = |parts: &Parts<'i, T, R>| {
        let mut own = state();
        for _ in 0..HELPED_PARTS {
            parts.take(|part| run(part, &mut own));
        }
    };
    helpers.pool.in_place_scope(|scope| {
        let mut mine = state();
        while parts.is_left() {
            // Helpers that were busy before may be free again.
            parts.invite(scope, helpers, threads_max, &help);
            parts.take(|part| run(part, &mut mine));
        }
    });
    parts.joined()
}

/// The number of a part, and its results.
type Numbered<R> = (usize, Result<Vec<R>, Error>);

struct Parts<'i, T, R> {
    parts: Vec<&'i [T]>,
    next: AtomicUsize,
    done: Mutex<Vec<Numbered<R>>>,
}

impl<'i, T: Sync, R: Send> Parts<'i, T, R> {
    fn is_left(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.parts.len()
    }

    fn take(&self, run: impl FnOnce(&'i [T]) -> Result<Vec<R>, Error>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(part) = self.parts.get(number) else { return };
        let result = run(part);
        if result.is_err() {
            // All parts before this one are taken already, so the first error is found.
            self.next.fetch_add(self.parts.len(), Ordering::Relaxed);
        }
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
    }

    fn invite<'s>(
        &'s self,
        scope: &Scope<'s>,
        helpers: &'s Helpers,
        threads_max: usize,
        help: &'s (impl Fn(&Self) + Sync),
    ) {
        for _ in 1..threads_max.min(self.parts.len()) {
            let Some(invited) = helpers.invite() else { return };
            scope.spawn(move |_| {
                help(self);
                drop(invited);
            });
        }
    }

    fn joined(self) -> Result<Vec<R>, Error> {
        let mut done = self.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_unstable_by_key(|(number, _)| *number);
        let parts: Result<Vec<Vec<R>>, Error> = done.into_iter().map(|(_, part)| part).collect();
        Ok(parts?.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_items_and_the_first_error_wins() {
        let helpers = Helpers::new(3).unwrap();
        for count in [1, 2, 7, 100, 1_001] {
            let items: Vec<usize> = (0..count).collect();
            let double = |(): &mut (), item: &usize| Ok(item * 2);
            let got = map_with(&helpers, &items, (100 * PART_WORK, usize::MAX), || (), double).unwrap();
            assert_eq!(got, items.iter().map(|item| item * 2).collect::<Vec<_>>());
            let fail = |(): &mut (), item: &usize| {
                if item % 10 == 3 { Err(Error::execution(item.to_string())) } else { Ok(*item) }
            };
            let error = map_with(&helpers, &items, (100 * PART_WORK, usize::MAX), || (), fail).err();
            assert_eq!(error.map(|error| error.message), (count > 3).then(|| "3".to_owned()));
            assert_eq!(helpers.free.load(Ordering::Relaxed), 3);
        }
    }

    #[test]
    fn queries_share_helpers() {
        let helpers = Helpers::new(1).unwrap();
        let items: Vec<usize> = (0..500).collect();
        let one = || {
            map_with(
                &helpers,
                &items,
                (500 * PART_WORK, 2),
                || 0,
                |sum, item| {
                    *sum += item;
                    Ok(item + 1)
                },
            )
        };
        thread::scope(|scope| {
            let queries: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            for query in queries {
                assert_eq!(query.join().unwrap().unwrap(), (1..=500).collect::<Vec<_>>());
            }
        });
    }
}
