//! The lock of a repository in a bucket: an object in `locks/` that its process writes again every minute.
//!
//! Other processes remove a lock that is older than [`LEASE`], and may then remove objects. A process that was suspended for
//! longer must not continue. So it checks the time since its last renewal, by a clock that also advances while the machine
//! sleeps. It never renews a lock that has expired or was removed.
//!
//! ```text
//!     0 s   the lock is written, and again every 60 s
//!   400 s   if no renewal succeeded, this process sends no more requests that change the repository; the last ends within 180 s
//!   600 s   other processes may remove the lock
//! ```
//!
//! This file and `s3.rs`, `s3_http.rs` use each other: a repository takes its lock in its own bucket, and no
//! request that changes the bucket may begin, or still run, after the lock has expired.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use tacho_store::{Error, ErrorKind, Result, draw_id};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::s3::S3;
use super::s3_http::ANSWER_TIME_MAX;
use super::{Guard, Lock};

pub const LOCKS: &str = "locks";
/// A lock that is not renewed for this long does not count.
const LEASE: Duration = Duration::from_secs(600);
/// Pause between two renewals, and limit on the time of each request that writes, renews or removes the lock.
const RENEWAL: Duration = Duration::from_secs(60);
/// A process uses its lock for at most this long after the last renewal.
const USE_MAX: Duration = Duration::from_secs(400);
const _: () = assert!(USE_MAX.as_secs() + ANSWER_TIME_MAX.as_secs() < LEASE.as_secs());

/// Time of a clock that cannot be set, and that also advances while the machine sleeps.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Whether this process may change the repository.
pub struct Lease {
    address: String,
    clock: Clock,
    state: Mutex<State>,
}

enum State {
    /// This process has no lock. It may write one.
    Free,
    Held {
        path: Path,
        /// When the last successful renewal began.
        renewed: Duration,
    },
    /// Another process has removed the lock.
    Lost,
}

impl Lease {
    pub fn new(address: &str, clock: Clock) -> Arc<Self> {
        Arc::new(Self { address: address.to_owned(), clock, state: Mutex::new(State::Free) })
    }

    /// Checks that the lock was renewed in time, if it is held.
    ///
    /// # Errors
    /// `Unavailable` if the lock has expired or was removed.
    pub fn check(&self) -> Result<()> {
        match &*self.state() {
            State::Free => return Ok(()),
            State::Held { renewed, .. } if (self.clock)().saturating_sub(*renewed) <= USE_MAX => {
                return Ok(());
            }
            State::Held { .. } | State::Lost => {}
        }
        let message = format!(
            "the lock of {} was not renewed in time, so another process may have changed the repository: retry",
            self.address
        );
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// The object of the lock, if this process has one.
    fn path(&self) -> Option<Path> {
        match &*self.state() {
            State::Held { path, .. } => Some(path.clone()),
            State::Free | State::Lost => None,
        }
    }

    fn renew(&self, begun: Duration) {
        if let State::Held { renewed, .. } = &mut *self.state() {
            *renewed = begun;
        }
    }

    fn set(&self, state: State) {
        *self.state() = state;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl S3 {
    /// Writes its own lock, then looks for others. Of two processes that do this at the same time, at least one sees
    /// the other's lock. Ages are differences of the service's times, so the clocks of the clients have no effect.
    pub(super) fn acquire(&self, lock: Lock) -> Result<Guard> {
        let kind = if lock == Lock::Shared { "shared" } else { "exclusive" };
        let path = self.path(&format!("{LOCKS}/{kind}-{:032x}", draw_id()));
        let own = Own { store: self.store.clone(), path: path.clone(), lease: self.lease.clone() };
        let begun = (self.lease.clock)();
        self.runtime.block_on(own.write()).map_err(|e| self.failed("write lock", "", e))?;
        self.lease.set(State::Held { path: path.clone(), renewed: begun });
        let mut held = Held { runtime: self.runtime.clone(), own: own.clone(), renewal: None };
        let locks = self.found(LOCKS)?;
        let Some(found) = locks.iter().find(|found| found.location == path) else {
            return Err(Error::new(ErrorKind::Unavailable, "own lock is not in the list of the service"));
        };
        for other in locks.iter().filter(|other| other.location != path) {
            let age = (found.last_modified - other.last_modified).to_std().unwrap_or_default();
            let is_shared = other.location.filename().is_some_and(|name| name.starts_with("shared-"));
            if age > LEASE {
                let _ = self.runtime.block_on(self.store.delete(&other.location));
            } else if lock == Lock::Exclusive || !is_shared {
                return Err(Error::new(ErrorKind::Locked, "another process holds a lock"));
            }
        }
        held.renewal = Some(self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(RENEWAL).await;
                own.renew().await;
            }
        }));
        Ok(Box::new(held))
    }

    /// Checks that the lock has not expired, and that no other process has removed it. The time alone does not prove this,
    /// because the clock of a paused virtual machine may stop.
    ///
    /// # Errors
    /// `Unavailable` if the lock has expired or was removed; the error of the request.
    pub(super) fn confirm_lock(&self) -> Result<()> {
        if let Some(path) = self.lease.path() {
            match self.runtime.block_on(self.store.head(&path)) {
                Ok(_) => {}
                Err(object_store::Error::NotFound { .. }) => self.lease.set(State::Lost),
                Err(error) => return Err(self.failed("read lock", "", error)),
            }
        }
        self.lease.check()
    }
}

#[derive(Clone)]
struct Own {
    store: Arc<dyn ObjectStore>,
    path: Path,
    lease: Arc<Lease>,
}

impl Own {
    async fn write(&self) -> object_store::Result<()> {
        let put = self.store.put(&self.path, PutPayload::from_static(b"tacho backup\n"));
        match timeout(RENEWAL, put).await {
            Ok(put) => put.map(drop),
            Err(late) => Err(object_store::Error::Generic { store: "S3", source: late.into() }),
        }
    }

    /// Writes the lock again, unless it has expired or was removed. A failure is no error before the lock expires.
    async fn renew(&self) {
        let begun = (self.lease.clock)();
        match timeout(RENEWAL, self.store.head(&self.path)).await {
            Ok(Err(object_store::Error::NotFound { .. })) => return self.lease.set(State::Lost),
            Ok(Ok(_)) if self.lease.check().is_ok() => {}
            _ => return,
        }
        if self.write().await.is_ok() {
            self.lease.renew(begun);
        }
    }
}

/// A lock of the repository. Dropping this value removes the lock.
struct Held {
    runtime: Arc<Runtime>,
    own: Own,
    renewal: Option<tokio::task::JoinHandle<()>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(renewal) = self.renewal.take() {
            renewal.abort();
            // A renewal that is under way must not write the lock again after its removal.
            let _ = self.runtime.block_on(renewal);
        }
        // An expired lock is removed, too: no other process has the same name for its lock.
        self.own.lease.set(State::Free);
        let _ =
            self.runtime.block_on(async { timeout(RENEWAL, self.own.store.delete(&self.own.path)).await });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use object_store::memory::InMemory;

    use super::*;
    use crate::repository::{Place, Repository};

    /// A repository in a bucket, and the seconds of its clock.
    fn bucket() -> (S3, Arc<InMemory>, Arc<AtomicU64>) {
        let (store, now) = (Arc::new(InMemory::new()), Arc::new(AtomicU64::new(1_000)));
        let seconds = now.clone();
        let clock: Clock = Arc::new(move || Duration::from_secs(seconds.load(Ordering::SeqCst)));
        let lease = Lease::new("s3://b/p", clock);
        (S3::over(store.clone(), "s3://b/p", Path::from("p"), lease).unwrap(), store, now)
    }

    fn own(place: &S3) -> Own {
        Own { store: place.store.clone(), path: place.lease.path().unwrap(), lease: place.lease.clone() }
    }

    /// Writes a file as a backup does.
    fn put(place: &S3) -> Result<()> {
        let mut incoming = place.begin()?;
        incoming.write(b"abc")?;
        incoming.finish("objects/x", crate::Hash::of(b"abc"))
    }

    fn names(place: &S3, folder: &str) -> Vec<String> {
        place.found(folder).unwrap().into_iter().map(|found| found.location.to_string()).collect()
    }

    #[test]
    fn an_expired_lock_is_neither_used_nor_written_again() {
        let (place, store, now) = bucket();
        let guard = place.lock(Lock::Exclusive).unwrap();
        let own = own(&place);
        let written = || place.runtime.block_on(store.head(&own.path)).unwrap().last_modified;
        // Almost expired: it is used, and can be renewed.
        now.fetch_add(400, Ordering::SeqCst);
        put(&place).unwrap();
        let first = written();
        place.runtime.block_on(own.renew());
        assert!(written() > first);
        now.fetch_add(400, Ordering::SeqCst);
        put(&place).unwrap();
        // Expired, for example because the process was suspended.
        now.fetch_add(1, Ordering::SeqCst);
        let last = written();
        place.runtime.block_on(own.renew());
        assert_eq!(written(), last);
        let lost = "the lock of s3://b/p was not renewed in time, so another process may have changed the repository: retry";
        for error in [put(&place).unwrap_err(), place.remove("objects/x").unwrap_err()] {
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Unavailable, lost));
        }
        assert_eq!(names(&place, "objects"), ["p/objects/x"]);
        drop(guard);
        assert_eq!(names(&place, ""), ["p/objects/x"]);
        // The next lock of the same process counts.
        let _guard = place.lock(Lock::Exclusive).unwrap();
        put(&place).unwrap();
    }

    #[test]
    fn after_another_process_removed_the_lock_neither_the_lock_nor_a_file_is_written() {
        let (place, store, _) = bucket();
        let _guard = place.lock(Lock::Exclusive).unwrap();
        let own = own(&place);
        put(&place).unwrap();
        place.runtime.block_on(store.delete(&own.path)).unwrap();
        // The process has not noticed the removal yet, so it begins another file. This file does not get its name.
        let error = put(&place).unwrap_err().to_string();
        assert!(error.starts_with("the lock of s3://b/p was not renewed in time"), "{error}");
        place.settle(&[]).unwrap_err();
        place.runtime.block_on(own.renew());
        assert_eq!(names(&place, LOCKS), [""; 0]);
    }

    #[test]
    fn a_writer_excludes_other_writers_and_readers_in_a_bucket() {
        let (place, store, _) = bucket();
        let other =
            S3::over(store, "s3://b/p", Path::from("p"), Lease::new("s3://b/p", Arc::new(|| Duration::ZERO)));
        let other = Repository { place: Box::new(other.unwrap()) };
        let guard = place.lock(Lock::Exclusive).unwrap();
        for lock in [Lock::Exclusive, Lock::Shared] {
            assert_eq!(other.lock(lock).err().map(|error| error.kind()), Some(ErrorKind::Locked));
        }
        drop(guard);
        let _readers = [place.lock(Lock::Shared).unwrap(), other.lock(Lock::Shared).unwrap()];
        assert!(other.lock(Lock::Exclusive).is_err());
    }
}
