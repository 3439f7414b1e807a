//! Admission of connections: at the limit, the longest idle connection is evicted for a new one.
//!
//! A few seats are reserved for new connections when all others are busy, so that health checks get a response.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// Pause after a failed accept. Otherwise accept would fail in a tight loop when no file descriptors are left.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Room {
    seats_max: usize,
    reserve_max: usize,
    table: Mutex<Table>,
    left: Notify,
}

#[derive(Debug, Default)]
struct Table {
    /// A logical clock for `idle_since`.
    ticks: u64,
    /// The taken seats by number.
    open: BTreeMap<u64, Arc<State>>,
    reserve: usize,
}

#[derive(Debug)]
struct State {
    is_reserve: bool,
    /// Number of requests in progress.
    busy: AtomicUsize,
    /// The tick at which the connection became idle. Changed only while the table is locked.
    idle_since: Mutex<u64>,
    evicted: Notify,
}

/// The seat of one connection. Released when dropped.
#[derive(Debug)]
pub struct Seat {
    room: Arc<Room>,
    number: u64,
    state: Arc<State>,
}

/// Marks a connection as busy while this value exists.
#[derive(Debug)]
pub struct Busy(Arc<Seat>);

#[derive(Debug)]
pub struct Entered {
    pub seat: Seat,
    /// Whether another connection was evicted.
    pub evicted: bool,
}

impl Room {
    pub fn new(seats_max: usize, reserve_max: usize) -> Arc<Self> {
        Arc::new(Self { seats_max, reserve_max, table: Mutex::default(), left: Notify::new() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection. `None` when all seats are taken by busy connections.
    pub fn enter(self: &Arc<Self>) -> Option<Entered> {
        let mut table = self.table();
        let ordinary = table.open.len() - table.reserve;
        let (mut evicted, mut is_reserve) = (false, false);
        if ordinary >= self.seats_max {
            evicted = table.evict(false);
            is_reserve = !evicted;
        }
        if is_reserve && table.reserve >= self.reserve_max {
            evicted = table.evict(true);
            if !evicted {
                return None;
            }
        }
        table.ticks += 1;
        let number = table.ticks;
        let state = Arc::new(State {
            is_reserve,
            busy: AtomicUsize::new(0),
            idle_since: Mutex::new(number),
            evicted: Notify::new(),
        });
        table.open.insert(number, state.clone());
        table.reserve += usize::from(is_reserve);
        drop(table);
        Some(Entered { seat: Seat { room: self.clone(), number, state }, evicted })
    }

    /// Evicts the connection that is idle longest. Connections on reserved seats are not evicted. Returns false when none is
    /// idle.
    pub fn evict(&self) -> bool {
        self.table().evict(false)
    }

    /// Logs that accept failed, and pauses. If no file descriptors are left, closing an idle connection frees one.
    pub async fn relieve(&self, listener: &str) {
        tracing::warn!(listener, "accept failed");
        self.evict();
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }

    /// Waits until all seats are released or evicted.
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
    fn evict(&mut self, is_reserve: bool) -> bool {
        let idle = self
            .open
            .iter()
            .filter(|(_, state)| state.is_reserve == is_reserve && state.busy.load(Ordering::Relaxed) == 0);
        let since = |state: &State| *state.idle_since.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(longest) = idle.min_by_key(|(_, state)| since(state)).map(|(number, _)| *number) else {
            return false;
        };
        if let Some(state) = self.open.remove(&longest) {
            self.reserve -= usize::from(state.is_reserve);
            // If the connection does not wait for the notification yet, the notification is stored.
            state.evicted.notify_one();
        }
        true
    }
}

impl Seat {
    pub fn is_reserve(&self) -> bool {
        self.state.is_reserve
    }

    /// Begins a request. The seat is not evicted before the returned value is dropped.
    pub fn begin(self: &Arc<Self>) -> Busy {
        self.state.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }

    pub async fn evicted(&self) {
        self.state.evicted.notified().await;
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut table = self.0.room.table();
        table.ticks += 1;
        *self.0.state.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = table.ticks;
        self.0.state.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut table = self.room.table();
        if table.open.remove(&self.number).is_some() {
            table.reserve -= usize::from(self.state.is_reserve);
        }
        drop(table);
        self.room.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn enter(room: &Arc<Room>) -> Option<(Arc<Seat>, bool)> {
        room.enter().map(|Entered { seat, evicted }| (Arc::new(seat), evicted))
    }

    #[tokio::test]
    async fn the_longest_idle_connection_is_evicted_and_never_a_busy_one() {
        let room = Room::new(2, 1);
        let (first, _) = enter(&room).unwrap();
        let (second, _) = enter(&room).unwrap();
        drop(first.begin());
        let (third, evicted) = enter(&room).unwrap();
        assert!(
            evicted && second.evicted().now_or_never().is_some(),
            "the longest idle connection, the second, was not evicted"
        );
        assert!(first.evicted().now_or_never().is_none());
        let (_one, _other) = (first.begin(), third.begin());
        let (reserve, evicted) = enter(&room).unwrap();
        assert!(reserve.is_reserve() && !evicted && !third.is_reserve());
        let (newer, evicted) = enter(&room).unwrap();
        assert!(newer.is_reserve() && evicted && reserve.evicted().now_or_never().is_some());
        let _asks = newer.begin();
        assert!(enter(&room).is_none(), "a connection was evicted although all are busy");
        drop((first, second, third, reserve));
        assert!(room.emptied().now_or_never().is_none(), "a seat was released before its request ended");
    }

    #[tokio::test]
    async fn a_dropped_seat_is_released() {
        let room = Room::new(1, 0);
        let (seat, _) = enter(&room).unwrap();
        let busy = seat.begin();
        assert!(enter(&room).is_none());
        drop((seat, busy));
        assert!(room.emptied().now_or_never().is_some());
        assert!(enter(&room).is_some_and(|(seat, evicted)| !seat.is_reserve() && !evicted));
    }
}
