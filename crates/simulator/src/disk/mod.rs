//! A simulated disk: a file system in memory with faults and power failures, all determined by a seed.
//!
//! Each file has the bytes that programs see and the bytes that would survive a power failure (`file.rs`). Each directory
//! has the names that programs see and the names that would survive (`names.rs`). `fault.rs` decides which operations fail.
//! `operations.rs` has the operations that the store calls.

mod fault;
mod file;
mod names;
mod operations;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tacho_model::Random;
use tacho_store::disk::SyncPoint;
use tokio::sync::watch;

use fault::Outcome;
pub use fault::{Faults, Harm, Slowness};
use file::{File, SECTOR_BYTES};
use names::Names;

/// The simulated disk. Clones share one state.
#[derive(Clone)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

struct State {
    files: BTreeMap<u64, File>,
    next_file: u64,
    names: Names,
    random: Random,
    faults: Faults,
    slowness: Slowness,
    /// Whether the next sync writes one of its sectors to a random place.
    misdirects: bool,
    /// The sync that is not done, as if the program did not request it.
    omitted: Option<SyncPoint>,
    /// Number of further operations before the machine stops; `None` means that it does not stop.
    operations_left: Option<u64>,
    stopped: watch::Sender<bool>,
    /// Rises with each start of the process. Files that an earlier process opened accept no writes.
    process: u64,
    /// Bytes that files may occupy.
    capacity: u64,
    /// Number of operations except reads.
    operations: u64,
    reads: u64,
    /// A hash of all operations except reads, by which two runs are compared.
    digest: u64,
    trace: bool,
}

/// Limit on the operations of one seed, including reads. The limit ends a seed with a task that never rests. The paused clock
/// does not advance then, so `SIMULATED_TIME_MAX` in `run.rs` is never reached.
pub const OPERATIONS_MAX: u64 = 50_000_000;

/// After one in this many changes of a file, the operating system writes unsynced bytes to the medium.
const WRITE_BACK: u64 = 6;

/// The failure of every change of the disk after the machine has stopped.
fn stopped() -> io::Error {
    io::Error::other("simulated: the machine has stopped")
}

impl SimulatedDisk {
    pub fn new(seed: u64, trace: bool) -> Self {
        Self(Arc::new(Mutex::new(State {
            files: BTreeMap::new(),
            next_file: 0,
            names: Names::default(),
            random: Random::new(seed),
            faults: Faults::default(),
            slowness: Slowness::default(),
            misdirects: false,
            omitted: None,
            operations_left: None,
            stopped: watch::Sender::new(false),
            process: 0,
            capacity: u64::MAX,
            operations: 0,
            reads: 0,
            digest: 0,
            trace,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    pub fn set_slowness(&self, slowness: Slowness) {
        self.state().slowness = slowness;
    }

    pub fn omit(&self, point: Option<SyncPoint>) {
        self.state().omitted = point;
    }

    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = bytes;
    }

    pub fn used(&self) -> u64 {
        self.state().used()
    }

    /// Stops the machine during an operation, after this many other operations. The operation may take effect in part.
    pub fn stop_after(&self, operations: Option<u64>) {
        self.state().operations_left = operations;
    }

    pub fn has_stopped(&self) -> bool {
        *self.state().stopped.borrow()
    }

    /// Whether the limit on operations was reached, at which the machine stops.
    pub fn is_exhausted(&self) -> bool {
        let state = self.state();
        state.operations + state.reads > OPERATIONS_MAX
    }

    /// Waits until the machine stops.
    pub async fn stop(&self) {
        let mut stopped = self.state().stopped.subscribe();
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Ends the process. All written bytes and names stay.
    pub fn end_process(&self) {
        let mut state = self.state();
        state.note(|| "process ends".to_owned());
        state.start_again();
    }

    /// Cuts the power. Of the bytes and names that are not synced, any part may be lost.
    pub fn cut_power(&self) {
        let mut state = self.state();
        state.note(|| "power fails".to_owned());
        let State { files, names, random, .. } = &mut *state;
        names.lose_unsynced(random);
        let kept = names.files();
        files.retain(|id, _| kept.contains(id));
        files.values_mut().for_each(|file| file.lose_unsynced(random));
        if state.trace {
            for (path, bytes) in state.lengths() {
                tracing::info!("after the power failure: {} has {bytes} bytes", path.display());
            }
        }
        state.start_again();
    }

    /// Sets whether the next sync writes one of its sectors to a random place.
    pub fn misdirect(&self, misdirects: bool) {
        self.state().misdirects = misdirects;
    }

    /// Damages bytes of a random file. Returns a description; `None` if there is nothing to damage.
    pub fn damage(&self) -> Option<String> {
        let mut state = self.state();
        let State { files, names, random, .. } = &mut *state;
        let all: Vec<(PathBuf, u64)> = names
            .all()
            .into_iter()
            .filter(|(_, id)| files.get(id).is_some_and(|file| file.length() > 0))
            .collect();
        let pick = |random: &mut Random| all.get(random.below(all.len() as u64) as usize).cloned();
        let (path, id) = pick(random)?;
        let (from, other) = pick(random)?;
        let donor = files.get(&other)?.content().to_vec();
        let harm = Harm::draw(random);
        let at = files.get_mut(&id)?.harm(harm, &donor, random);
        let of = if harm == Harm::Misdirected { format!(" from {}", from.display()) } else { String::new() };
        let text = format!("{harm:?}{of} at byte {at} of {}", path.display());
        state.note(|| text.clone());
        Some(text)
    }

    /// Cuts off the end of a file, and keeps at least its first `least` bytes. If `boundary` occurs after these bytes, half of
    /// the cuts are at the start of an occurrence. Returns a description and the number of lost bytes; `None` if the file is not
    /// longer than `least`.
    pub fn cut_end(&self, path: &Path, boundary: &[u8], least: usize) -> Option<(String, usize)> {
        let mut state = self.state();
        let id = state.names.file(path).ok()?;
        let State { files, random, .. } = &mut *state;
        let file = files.get_mut(&id)?;
        let bytes = file.content();
        let whole = bytes.len();
        if whole <= least {
            return None;
        }
        let boundaries: Vec<usize> = (least..whole).filter(|at| bytes[*at..].starts_with(boundary)).collect();
        let length = if !boundaries.is_empty() && random.one_in(2) {
            boundaries[random.below(boundaries.len() as u64) as usize]
        } else {
            least + random.below((whole - least) as u64) as usize
        };
        file.cut(length as u64);
        file.sync();
        let text = format!("{} is cut to {length} of {whole} bytes", path.display());
        state.note(|| text.clone());
        Some((text, whole - length))
    }

    /// The bytes of all files in directories of this name.
    pub fn files_in(&self, directory: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state();
        let is_meant = |path: &Path| path.parent().is_some_and(|above| above.ends_with(directory));
        let files = state.names.all().into_iter().filter(|(path, _)| is_meant(path));
        files.filter_map(|(path, id)| Some((path, state.files.get(&id)?.content().to_vec()))).collect()
    }

    /// The number of operations except reads, and a hash of them.
    pub fn digest(&self) -> (u64, u64) {
        let state = self.state();
        (state.operations, state.digest)
    }
}

impl State {
    fn start_again(&mut self) {
        self.process += 1;
        self.operations_left = None;
        self.stopped.send_replace(false);
    }

    /// Bytes that may still be written.
    fn space(&self) -> u64 {
        if self.capacity == u64::MAX { u64::MAX } else { self.capacity.saturating_sub(self.used()) }
    }

    fn used(&self) -> u64 {
        self.names.files().iter().filter_map(|id| self.files.get(id)).map(File::length).sum()
    }

    fn lengths(&self) -> Vec<(PathBuf, u64)> {
        let length = |id: u64| self.files.get(&id).map_or(0, File::length);
        self.names.all().into_iter().map(|(path, id)| (path, length(id))).collect()
    }

    /// Adds a line to the trace and to the hash.
    fn note(&mut self, line: impl FnOnce() -> String) {
        let line = line();
        for byte in line.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.digest = self.digest.rotate_left(5) ^ 0xcbf2_9ce4_8422_2325;
        if self.trace {
            tracing::info!("{:6} {line}", self.operations);
        }
    }

    /// Counts an operation and decides its outcome.
    fn begin(&mut self, what: &'static str, path: &Path) -> Outcome {
        self.take_time();
        let outcome = self.outcome(what);
        self.operations += 1;
        self.check_limit();
        self.note(|| format!("{what} {}{}", path.display(), outcome.name()));
        outcome
    }

    fn take_time(&mut self) {
        if let Some(time) = self.slowness.draw(&mut self.random) {
            self.note(|| format!("the next operation takes {time:?}"));
            fault::pass(time);
        }
    }

    fn count_read(&mut self) {
        self.take_time();
        self.reads += 1;
        self.check_limit();
    }

    fn check_limit(&self) {
        if self.operations + self.reads > OPERATIONS_MAX && !*self.stopped.borrow() {
            self.stopped.send_replace(true);
        }
    }

    fn outcome(&mut self, what: &'static str) -> Outcome {
        if *self.stopped.borrow() {
            return Outcome::Stopped;
        }
        if let Some(left) = &mut self.operations_left {
            if *left == 0 {
                self.stopped.send_replace(true);
                return Outcome::Stopping;
            }
            *left -= 1;
        }
        if self.faults.fails(what, &mut self.random) { Outcome::Failed } else { Outcome::Done }
    }

    fn file(&mut self, path: &Path) -> io::Result<&mut File> {
        let id = self.names.file(path)?;
        self.files.get_mut(&id).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Changes names. The change takes effect or fails, or the machine stops before or after the change.
    fn change(
        &mut self,
        what: &'static str,
        path: &Path,
        change: impl FnOnce(&mut Names) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.begin(what, path) {
            Outcome::Done => change(&mut self.names),
            Outcome::Failed => Err(fault::broken()),
            Outcome::Stopped => Err(stopped()),
            Outcome::Stopping => {
                if self.random.one_in(2) {
                    let _ = change(&mut self.names);
                }
                Err(stopped())
            }
        }
    }

    /// Overwrites a random sector of a random file with the bytes of another sector.
    fn overwrite_random(&mut self, bytes: &[u8]) {
        let all = self.names.all();
        let Some((path, id)) = all.get(self.random.below(all.len() as u64) as usize) else { return };
        let Some(file) = self.files.get_mut(id) else { return };
        let sector = self.random.below(file.length() / SECTOR_BYTES + 1);
        file.overwrite(sector, bytes);
        self.note(|| format!("  a sector of it is written to sector {sector} of {}", path.display()));
    }

    fn sync_directory(&mut self, path: &Path, point: SyncPoint) -> io::Result<()> {
        if self.omitted == Some(point) {
            return Ok(());
        }
        self.change("sync directory", path, |names| names.sync(path))
    }

    fn sync(&mut self, id: u64, path: &Path, point: SyncPoint) -> io::Result<()> {
        if self.omitted == Some(point) {
            return Ok(());
        }
        let outcome = self.begin("sync", path);
        let Some(file) = self.files.get_mut(&id) else { return Err(io::ErrorKind::NotFound.into()) };
        match outcome {
            Outcome::Done if self.misdirects => {
                if let Some(bytes) = file.sync_except_one(&mut self.random) {
                    self.misdirects = false;
                    self.overwrite_random(&bytes);
                }
            }
            Outcome::Done => file.sync(),
            Outcome::Failed => {
                file.fail_sync(&mut self.random);
                return Err(fault::broken());
            }
            Outcome::Stopped => return Err(stopped()),
            Outcome::Stopping => {
                if self.random.one_in(2) {
                    file.sync();
                }
                return Err(stopped());
            }
        }
        Ok(())
    }

    /// Sometimes writes a part of the unsynced bytes to the medium, as the operating system may at any time.
    fn write_back(&mut self, id: u64) {
        if self.random.one_in(WRITE_BACK)
            && let Some(file) = self.files.get_mut(&id)
        {
            file.write_back(&mut self.random);
        }
    }

    /// Writes bytes to a file, as many as the outcome and the free space permit.
    fn write(&mut self, id: u64, path: &Path, at: u64, bytes: &[u8]) -> io::Result<()> {
        let outcome = self.begin("write", path);
        self.note(|| format!("  {} bytes at {at}, hash {:x}", bytes.len(), fault::hash(bytes)));
        let space = self.space();
        let Some(file) = self.files.get_mut(&id) else { return Err(io::ErrorKind::NotFound.into()) };
        let grows = (at + bytes.len() as u64).saturating_sub(file.length());
        let fits = bytes.len() as u64 - grows.saturating_sub(space).min(bytes.len() as u64);
        // Some writes fail after their last byte.
        let part = match self.random.one_in(4) {
            true => bytes.len() as u64,
            false => self.random.below(bytes.len() as u64 + 1),
        };
        match outcome {
            Outcome::Done if fits == bytes.len() as u64 => {
                file.write(at, bytes);
                self.write_back(id);
                Ok(())
            }
            Outcome::Done => {
                file.write(at, &bytes[..fits as usize]);
                Err(io::ErrorKind::StorageFull.into())
            }
            Outcome::Failed => {
                file.write(at, &bytes[..part.min(fits) as usize]);
                self.write_back(id);
                Err(fault::broken())
            }
            Outcome::Stopping => {
                file.write(at, &bytes[..part.min(fits) as usize]);
                Err(stopped())
            }
            Outcome::Stopped => Err(stopped()),
        }
    }
}
