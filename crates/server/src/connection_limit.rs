//! Admission of connections: at the limit, the connection that is idle longest makes way for a new one.
//!
//! The table does not know whether bytes have arrived that a connection has not read yet. So a connection is not evicted, but
//! asked, and its own task decides ([`Seat::serve`]): it reads the bytes that have arrived (`watched.rs`), and leaves only if
//! there are none and no request runs. The new connection is admitted without waiting for the decision. If the asked connection
//! stays, there is one connection over the limit until a later admission asks two. [`ASKED_MAX`] bounds the number of connections
//! over the limit.
//!
//! Each admitted connection has a seat. A few seats are reserved for new connections when all others are busy, so that health
//! checks get a response.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

use crate::watched::Probe;

/// Pause after a failed accept. Otherwise accept would fail in a tight loop when no file descriptors are left.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limit on the connections that are asked to leave and have not decided yet. There are at most this many connections over the
/// limit.
const ASKED_MAX: usize = 64;

/// Limit on the time that a new connection waits while [`ASKED_MAX`] others decide. A task decides when it runs, so this limit is
/// reached only if no task runs.
const DECISION_TIME_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct ConnectionLimit {
    /// Limits on the connections on ordinary seats and on reserved ones.
    seats_max: [usize; 2],
    table: Mutex<Table>,
    left: Notify,
    /// Notified when a connection has decided whether it leaves.
    decided: Notify,
}

#[derive(Debug, Default)]
struct Table {
    /// A logical clock for `idle_since`.
    ticks: u64,
    /// The taken seats by number.
    open: BTreeMap<u64, Arc<State>>,
    /// Counts of the ordinary and of the reserved seats whose connections are not asked to leave.
    kept: [usize; 2],
}

#[derive(Debug)]
struct State {
    is_reserve: bool,
    /// Number of requests in progress.
    busy: AtomicUsize,
    /// The tick at which the connection became idle. Changed only while the table is locked.
    idle_since: AtomicU64,
    /// Whether the connection is asked to leave. Changed only while the table is locked.
    is_asked: AtomicBool,
    /// The task of the connection, woken when the connection is asked.
    task: AtomicWaker,
    probe: Arc<Probe>,
}

/// The seat of one connection. Released when dropped.
#[derive(Debug)]
pub struct Seat {
    limit: Arc<ConnectionLimit>,
    number: u64,
    state: Arc<State>,
}

/// Marks a connection as busy while this value exists.
#[derive(Debug)]
pub struct Busy(Arc<Seat>);

/// A request of which the connection waits for more bytes. It does not make the connection busy, so that clients that do not
/// send the rest cannot keep all seats.
#[derive(Debug)]
pub struct Receiving(Arc<Seat>);

/// Whether a new connection gets a seat.
enum Admission {
    Admitted(Seat),
    /// [`ASKED_MAX`] connections are asked to leave and have not decided yet.
    Later,
    /// All connections are busy.
    Refused,
}

impl ConnectionLimit {
    pub fn new(seats_max: usize, reserve_max: usize) -> Arc<Self> {
        Arc::new(Self {
            seats_max: [seats_max, reserve_max],
            table: Mutex::default(),
            left: Notify::new(),
            decided: Notify::new(),
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection. Waits only while `ASKED_MAX` other connections decide whether they leave. `None` when busy
    /// connections have all seats, or when no seat is free after `DECISION_TIME_MAX`.
    pub async fn enter(self: &Arc<Self>) -> Option<Seat> {
        let entered = async {
            loop {
                match self.admit() {
                    Admission::Admitted(seat) => return Some(seat),
                    Admission::Refused => return None,
                    // `notify_one` stores a permit, so a decision between `admit` and this wait is not missed.
                    Admission::Later => self.decided.notified().await,
                }
            }
        };
        tokio::time::timeout(DECISION_TIME_MAX, entered).await.ok().flatten()
    }

    fn admit(self: &Arc<Self>) -> Admission {
        let mut table = self.table();
        for (is_reserve, seats_max) in [false, true].into_iter().zip(self.seats_max) {
            let kept = usize::from(is_reserve);
            while table.kept[kept] >= seats_max && table.ask(is_reserve) {}
            if table.kept[kept] < seats_max {
                let (number, state) = table.add(is_reserve);
                return Admission::Admitted(Seat { limit: self.clone(), number, state });
            }
            if table.asked() >= ASKED_MAX {
                return Admission::Later;
            }
        }
        Admission::Refused
    }

    /// Logs that accept failed, asks an idle connection to leave, and pauses. If no file descriptors are left, that connection
    /// frees one when it leaves.
    pub async fn relieve(&self, listener: &str) {
        tracing::warn!(listener, "accept failed");
        self.table().ask(false);
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }

    /// Waits until all seats are released.
    pub async fn emptied(&self) {
        loop {
            let left = self.left.notified();
            if self.table().open.is_empty() {
                return;
            }
            left.await;
        }
    }
}

impl Table {
    fn add(&mut self, is_reserve: bool) -> (u64, Arc<State>) {
        self.ticks += 1;
        let number = self.ticks;
        let state = Arc::new(State {
            is_reserve,
            busy: AtomicUsize::new(0),
            idle_since: AtomicU64::new(number),
            is_asked: AtomicBool::new(false),
            task: AtomicWaker::new(),
            probe: Arc::default(),
        });
        self.open.insert(number, state.clone());
        self.kept[usize::from(is_reserve)] += 1;
        (number, state)
    }

    fn asked(&self) -> usize {
        self.open.len() - self.kept.iter().sum::<usize>()
    }

    /// Asks the connection that is idle longest to leave. Returns false if none is idle, or if [`ASKED_MAX`] are asked already.
    fn ask(&mut self, is_reserve: bool) -> bool {
        if self.asked() >= ASKED_MAX {
            return false;
        }
        let is_idle = |state: &&Arc<State>| {
            state.is_reserve == is_reserve
                && state.busy.load(Ordering::Relaxed) == 0
                && !state.is_asked.load(Ordering::Relaxed)
        };
        let idle = self.open.values().filter(is_idle);
        let Some(state) = idle.min_by_key(|state| state.idle_since.load(Ordering::Relaxed)) else {
            return false;
        };
        self.kept[usize::from(is_reserve)] -= 1;
        // Set before the wake, so that the woken task sees it.
        state.is_asked.store(true, Ordering::Release);
        state.task.wake();
        true
    }
}

impl Seat {
    pub fn is_reserve(&self) -> bool {
        self.state.is_reserve
    }

    /// The probe to which the socket of the connection reports.
    pub fn probe(&self) -> Arc<Probe> {
        self.state.probe.clone()
    }

    /// Begins a request. The connection does not leave while the returned value exists. Only the task of the connection may call
    /// this function.
    pub fn begin(self: &Arc<Self>) -> Busy {
        self.state.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }

    /// Begins to wait for more bytes of a running request. Only the task of the connection may call this function.
    pub fn receive(self: &Arc<Self>) -> Receiving {
        self.end();
        Receiving(self.clone())
    }

    /// The end of a running request, or of its activity.
    fn end(&self) {
        let mut table = self.limit.table();
        table.ticks += 1;
        self.state.idle_since.store(table.ticks, Ordering::Relaxed);
        self.state.busy.fetch_sub(1, Ordering::Relaxed);
    }

    /// Serves a connection until it ends. `None` if it has left for a new one.
    ///
    /// The connection reads and decides in the same poll of its task, so no request can begin in between.
    pub async fn serve<T>(&self, connection: impl Future<Output = T>) -> Option<T> {
        let mut connection = pin!(connection);
        poll_fn(|context| {
            self.state.task.register(context.waker());
            let is_asked = self.state.is_asked.load(Ordering::Acquire);
            if is_asked {
                self.state.probe.begin();
            }
            if let Poll::Ready(result) = connection.as_mut().poll(context) {
                return Poll::Ready(Some(result));
            }
            if is_asked {
                if self.state.probe.end_is_idle() && self.state.busy.load(Ordering::Relaxed) == 0 {
                    return Poll::Ready(None);
                }
                self.stay();
            }
            Poll::Pending
        })
        .await
    }

    /// Decides not to leave.
    fn stay(&self) {
        let mut table = self.limit.table();
        table.ticks += 1;
        table.kept[usize::from(self.state.is_reserve)] += 1;
        self.state.idle_since.store(table.ticks, Ordering::Relaxed);
        self.state.is_asked.store(false, Ordering::Relaxed);
        drop(table);
        self.limit.decided.notify_one();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Receiving {
    /// Some bytes have arrived, so the connection was not idle until now.
    pub fn arrived(&self) {
        let mut table = self.0.limit.table();
        table.ticks += 1;
        self.0.state.idle_since.store(table.ticks, Ordering::Relaxed);
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.0.state.busy.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut table = self.limit.table();
        if table.open.remove(&self.number).is_some() && !self.state.is_asked.load(Ordering::Relaxed) {
            table.kept[usize::from(self.state.is_reserve)] -= 1;
        }
        drop(table);
        self.limit.left.notify_waiters();
        self.limit.decided.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn enter(limit: &Arc<ConnectionLimit>) -> Option<Arc<Seat>> {
        limit.enter().now_or_never().expect("a decision").map(Arc::new)
    }

    /// Runs the task of an idle connection once. Returns whether the connection leaves.
    fn leaves(seat: &Seat) -> bool {
        let probe = seat.probe();
        let waits = poll_fn(|_| {
            probe.waits();
            Poll::<()>::Pending
        });
        seat.serve(waits).now_or_never() == Some(None)
    }

    #[tokio::test]
    async fn the_longest_idle_connection_leaves_and_never_a_busy_one() {
        let limit = ConnectionLimit::new(2, 1);
        let (first, second) = (enter(&limit).unwrap(), enter(&limit).unwrap());
        assert!(!leaves(&first) && !leaves(&second));
        drop(first.begin());
        let third = enter(&limit).unwrap();
        assert!(leaves(&second), "the longest idle connection, the second, has not left");
        assert!(!leaves(&first) && !third.is_reserve());
        drop(second);
        let (_one, _other) = (first.begin(), third.begin());
        let reserve = enter(&limit).unwrap();
        assert!(reserve.is_reserve() && !leaves(&first) && !leaves(&third));
        let newer = enter(&limit).unwrap();
        assert!(newer.is_reserve() && leaves(&reserve));
        drop(reserve);
        let _asks = newer.begin();
        assert!(enter(&limit).is_none(), "a connection was asked although all are busy");
        drop((first, third, newer));
        assert!(limit.emptied().now_or_never().is_none(), "a seat was released before its request ended");
    }

    #[tokio::test]
    async fn a_connection_that_waits_for_the_rest_of_a_request_leaves_and_stays_when_it_has_arrived() {
        let limit = ConnectionLimit::new(2, 0);
        let (first, second) = (enter(&limit).unwrap(), enter(&limit).unwrap());
        let (_one, _other) = (first.begin(), second.begin());
        let (silent, slow) = (first.receive(), second.receive());
        silent.arrived();
        slow.arrived();
        let newer = enter(&limit).unwrap();
        assert!(leaves(&first) && !leaves(&second), "the one that is silent longest");
        drop((silent, _one, first));
        drop(slow);
        let _busy = newer.begin();
        assert!(enter(&limit).is_none() && !leaves(&second), "both are busy");
    }

    #[tokio::test]
    async fn a_request_that_begins_after_the_notice_is_served() {
        let limit = ConnectionLimit::new(1, 0);
        let seat = enter(&limit).unwrap();
        let newer = enter(&limit).unwrap();
        let begun = seat.begin();
        assert!(!leaves(&seat));
        drop(begun);
        // There is one connection over the limit, so the next admission asks both.
        let newest = enter(&limit).unwrap();
        assert!(leaves(&seat) && leaves(&newer) && !leaves(&newest));
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_connections_over_the_limit_is_bounded() {
        let limit = ConnectionLimit::new(1, 1);
        let mut seats: Vec<_> = (0..=ASKED_MAX).map(|_| enter(&limit).unwrap()).collect();
        assert!(limit.enter().await.is_none(), "a connection was admitted over the bound");
        // One of them decides to stay. It is over the limit, and no seat is free.
        let begun = seats[0].begin();
        assert!(!leaves(&seats[0]));
        assert!(limit.enter().await.is_none());
        drop(begun);
        let entering = tokio::spawn({
            let limit = limit.clone();
            async move { limit.enter().await.is_some() }
        });
        tokio::task::yield_now().await;
        seats.truncate(1);
        assert!(entering.await.unwrap(), "the connection was not admitted when others had left");
    }

    #[tokio::test]
    async fn a_dropped_seat_is_released() {
        let limit = ConnectionLimit::new(1, 0);
        let seat = enter(&limit).unwrap();
        let busy = seat.begin();
        assert!(enter(&limit).is_none());
        drop((seat, busy));
        assert!(limit.emptied().now_or_never().is_some());
        assert!(enter(&limit).is_some_and(|seat| !seat.is_reserve() && !leaves(&seat)));
    }
}
