//! The operations that the store calls.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tacho_store::Result;
use tacho_store::disk::{Disk, DiskFile, ReadFile, SyncPoint};
use tacho_store::lock::DirectoryLock;

use super::fault::{self, Outcome};
use super::file::File;
use super::names::Node;
use super::{SimulatedDisk, stopped};

impl Disk for SimulatedDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        if *state.stopped.borrow() {
            return Err(stopped());
        }
        let id = match state.names.file(path) {
            Ok(id) => id,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let id = state.next_file;
                state.next_file += 1;
                state.files.insert(id, File::default());
                state.change("create", path, |names| names.set(path, Node::File(id)))?;
                id
            }
            Err(error) => return Err(error),
        };
        let process = state.process;
        Ok(Box::new(Appender { disk: self.clone(), id, path: path.to_owned(), process }))
    }

    fn cut(&self, path: &Path, length: u64, point: SyncPoint) -> io::Result<()> {
        let mut state = self.state();
        let id = state.names.file(path)?;
        match state.begin("cut", path) {
            Outcome::Done => {}
            Outcome::Failed => return Err(fault::broken()),
            Outcome::Stopping | Outcome::Stopped => return Err(stopped()),
        }
        state.file(path)?.cut(length);
        state.write_back(id);
        state.sync(id, path, point)
    }

    fn renew(&self, path: &Path, from: u64, point: SyncPoint) -> io::Result<()> {
        let mut state = self.state();
        let id = state.names.file(path)?;
        let bytes = state.file(path)?.content().get(from as usize..).unwrap_or_default().to_vec();
        if !bytes.is_empty() {
            state.write(id, path, from, &bytes)?;
        }
        state.sync(id, path, point)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.names.file(path)?;
        state.change("remove", path, |names| names.remove(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.names.file(from)?;
        state.change("rename", to, |names| names.rename(from, to))
    }

    fn sync_directory(&self, path: &Path, point: SyncPoint) -> io::Result<()> {
        let mut state = self.state();
        if !state.names.is_directory(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.sync_directory(path, point)
    }

    fn reserve(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        if state.space() < bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let id = state.next_file;
        state.next_file += 1;
        let mut file = File::default();
        file.write(0, &vec![0; bytes as usize]);
        state.files.insert(id, file);
        state.change("reserve", path, |names| names.set(path, Node::File(id)))
    }

    fn is_reserved(&self, path: &Path, bytes: u64) -> bool {
        self.length(path).is_ok_and(|found| found == bytes)
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let id = self.state().names.file(path)?;
        Ok(Arc::new(Reader { disk: self.clone(), id }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut state = self.state();
        let file = state.file(path)?;
        let mut bytes = vec![0; file.length() as usize];
        file.read(&mut bytes, 0)?;
        Ok(bytes)
    }

    fn irregular(&self, _: &Path) -> Option<&'static str> {
        None
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.state();
        if state.names.is_directory(path) {
            return Ok(0);
        }
        Ok(state.file(path)?.length())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.state().names.list(directory)
    }

    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state();
        let mut parts: Vec<&Path> = directory.ancestors().collect();
        // Above the last existing part, all names are durable: that part was made after their syncs. The process that made the
        // last existing part may have ended before its sync.
        let missing = parts.iter().take_while(|part| !state.names.is_directory(part)).count();
        parts.truncate(missing + 1);
        for part in parts.into_iter().rev() {
            if !state.names.is_directory(part) {
                state.change("make directory", part, |names| names.set(part, Node::Directory))?;
            }
            if let Some(above) = part.parent() {
                state.sync_directory(above, SyncPoint::NewDirectory)?;
            }
        }
        Ok(())
    }

    fn lock(&self, directory: &Path) -> Result<Option<DirectoryLock>> {
        self.make_directory(directory).map_err(|e| tacho_store::Error::io("make directory", directory, e))?;
        Ok(None)
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        let state = self.state();
        Ok(state.space())
    }
}

/// A file that one process has opened for appending.
struct Appender {
    disk: SimulatedDisk,
    id: u64,
    path: PathBuf,
    process: u64,
}

impl DiskFile for Appender {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.process != self.process {
            return Err(stopped());
        }
        let at = state.files.get(&self.id).map_or(0, File::length);
        state.write(self.id, &self.path, at, bytes)
    }

    fn sync(&mut self, point: SyncPoint) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.process == self.process { state.sync(self.id, &self.path, point) } else { Err(stopped()) }
    }
}

struct Reader {
    disk: SimulatedDisk,
    id: u64,
}

impl ReadFile for Reader {
    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().files.get(&self.id).map_or(0, File::length))
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.count_read();
        let Some(file) = state.files.get(&self.id) else { return Ok(0) };
        let length = bytes.len().min(file.length().saturating_sub(offset) as usize);
        file.read(&mut bytes[..length], offset)?;
        Ok(length)
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.count_read();
        let file = state.files.get(&self.id).ok_or(io::ErrorKind::UnexpectedEof)?;
        file.read(bytes, offset)
    }

    /// Half of the reads find their bytes in memory.
    fn read_cached(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        if self.disk.state().random.one_in(2) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.read_exact_at(bytes, offset)
    }
}
