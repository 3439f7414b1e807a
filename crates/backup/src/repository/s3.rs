//! A repository in a bucket of an S3-compatible service: `s3://BUCKET/PREFIX`.
//!
//! | in a directory | in a bucket |
//! |---|---|
//! | write in `incoming/`, read back, rename | upload to `incoming/`, read back, copy on the server, delete |
//! | lock by the operating system | objects in `locks/` that their process renews; without renewal one counts for ten minutes |
//!
//! Files are sent and received in parts. The environment has the credentials, as for other programs: `AWS_ACCESS_KEY_ID`,
//! `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, and `AWS_ENDPOINT_URL` for services other than Amazon's.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart};
use tacho_store::{Error, ErrorKind, Result, draw_id};
use tokio::runtime::Runtime;

use super::s3_http::Connector;
use super::{Guard, Incoming, Lock, Place};
use crate::hash::{Hash, Hasher};

const INCOMING: &str = "incoming";
const LOCKS: &str = "locks";
/// Bytes of one part of an upload. S3 requires at least 5 MiB, and at most 10,000 parts.
const PART_BYTES: usize = 8 << 20;
/// Limit on parts that are sent at the same time.
const PARTS_MAX: usize = 2;
/// Longest wait for the next bytes of an object.
const READ_TIME_MAX: Duration = Duration::from_secs(60);
/// A lock that is not renewed for this long does not count.
const LEASE: Duration = Duration::from_secs(600);
const RENEWAL: Duration = Duration::from_secs(60);

pub struct S3 {
    runtime: Arc<Runtime>,
    store: Arc<AmazonS3>,
    address: String,
    prefix: Path,
    /// Whether the lock could not be renewed in time. Nothing may be written or removed from then on.
    is_lock_lost: Arc<AtomicBool>,
}

impl S3 {
    /// # Errors
    /// `Invalid` for an address without a bucket or with an unusable prefix, and for unusable variables of the environment.
    pub fn new(address: &str) -> Result<Self> {
        let rest = address.strip_prefix("s3://").unwrap_or_default();
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(Error::invalid(format!("{address} names no bucket: give s3://BUCKET/PREFIX")));
        }
        let wrong = |e: &dyn std::fmt::Display| Error::invalid(format!("cannot use {address}: {e}"));
        let is_plain = |variable| std::env::var(variable).is_ok_and(|url| url.starts_with("http://"));
        let allow_http = is_plain("AWS_ENDPOINT_URL") || is_plain("AWS_ENDPOINT");
        let built = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_allow_http(allow_http)
            .with_http_connector(Connector::new()?)
            .build();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|e| wrong(&e))?;
        Ok(Self {
            runtime: Arc::new(runtime),
            store: Arc::new(built.map_err(|e| wrong(&e))?),
            address: address.to_owned(),
            prefix: Path::parse(prefix.trim_end_matches('/')).map_err(|e| wrong(&e))?,
            is_lock_lost: Arc::default(),
        })
    }

    fn path(&self, name: &str) -> Path {
        name.split('/')
            .filter(|part| !part.is_empty())
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn check_lock(&self) -> Result<()> {
        if self.is_lock_lost.load(Ordering::Relaxed) {
            let message = format!("the lock of {} could not be renewed in time", self.address);
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        Ok(())
    }

    /// All objects below a folder.
    fn found(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        let prefix = self.path(folder);
        let list = self.store.list((!prefix.as_ref().is_empty()).then_some(&prefix));
        self.runtime.block_on(list.try_collect()).map_err(|e| failed("list", folder, e))
    }

    fn relative(&self, found: &Path) -> Option<String> {
        let parts: Vec<String> =
            found.prefix_match(&self.prefix)?.map(|part| part.as_ref().to_owned()).collect();
        Some(parts.join("/"))
    }
}

fn failed(doing: &str, name: &str, error: object_store::Error) -> Error {
    let kind = match error {
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            ErrorKind::Invalid
        }
        object_store::Error::NotFound { .. } => ErrorKind::Corrupt,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("cannot {doing}")).with("object", name).caused_by(error)
}

impl Place for S3 {
    fn location(&self) -> String {
        self.address.clone()
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>> {
        if folder.is_empty() {
            let prefix = (!self.prefix.as_ref().is_empty()).then_some(&self.prefix);
            let found = self.runtime.block_on(self.store.list_with_delimiter(prefix));
            let found = found.map_err(|e| failed("list", &self.address, e))?;
            let folders = found.common_prefixes.iter().filter_map(|path| Some((self.relative(path)?, 0)));
            let files = found.objects.iter().filter_map(|o| Some((self.relative(&o.location)?, o.size)));
            // Locks are not content: a place with only a lock counts as empty.
            return Ok(folders.chain(files).filter(|(name, _)| name != LOCKS).collect());
        }
        let found = self.found(folder)?.into_iter();
        Ok(found.filter_map(|object| Some((self.relative(&object.location)?, object.size))).collect())
    }

    fn open(&self, name: &str) -> Result<Option<(u64, Box<dyn Read + Send>)>> {
        match self.runtime.block_on(self.store.get(&self.path(name))) {
            Ok(found) => {
                let (length, runtime) = (found.meta.size, self.runtime.clone());
                let body = Body { runtime, stream: found.into_stream(), rest: Bytes::new() };
                Ok(Some((length, Box::new(body))))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed("read", name, error)),
        }
    }

    fn begin(&self) -> Result<Box<dyn Incoming + '_>> {
        self.check_lock()?;
        let name = format!("{INCOMING}/{:032x}", draw_id());
        Ok(Box::new(Upload { place: self, name, small: Vec::new(), parts: None, is_stored: false }))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.check_lock()?;
        match self.runtime.block_on(self.store.delete(&self.path(name))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("remove", name, error)),
        }
    }

    fn settle(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn clean(&self) -> Result<()> {
        self.list(INCOMING)?.iter().try_for_each(|(name, _)| self.remove(name))
    }

    /// Writes its own lock, then looks for others. Of two processes that do this at the same time, at least one sees
    /// the other's lock. Times are those of the service, so clocks of clients do not matter.
    fn lock(&self, lock: Lock) -> Result<Guard> {
        let kind = if lock == Lock::Shared { "shared" } else { "exclusive" };
        let path = self.path(&format!("{LOCKS}/{kind}-{:032x}", draw_id()));
        let put = |path: Path, store: Arc<AmazonS3>| async move {
            store.put(&path, PutPayload::from_static(b"tacho backup\n")).await
        };
        self.runtime
            .block_on(put(path.clone(), self.store.clone()))
            .map_err(|e| failed("write lock", &self.address, e))?;
        let (runtime, store) = (self.runtime.clone(), self.store.clone());
        let mut guard = LockObject { runtime, store, path: path.clone(), renewal: None };
        let locks = self.found(LOCKS)?;
        let Some(own) = locks.iter().find(|found| found.location == path) else {
            return Err(Error::new(ErrorKind::Unavailable, "own lock is not in the list of the service"));
        };
        for other in locks.iter().filter(|other| other.location != path) {
            let age = (own.last_modified - other.last_modified).to_std().unwrap_or_default();
            let is_shared = other.location.filename().is_some_and(|name| name.starts_with("shared-"));
            if age > LEASE {
                let _ = self.runtime.block_on(self.store.delete(&other.location));
            } else if lock == Lock::Exclusive || !is_shared {
                return Err(Error::new(ErrorKind::Locked, "another process holds a lock"));
            }
        }
        let (store, lost) = (self.store.clone(), self.is_lock_lost.clone());
        guard.renewal = Some(self.runtime.spawn(async move {
            let mut renewed = tokio::time::Instant::now();
            loop {
                tokio::time::sleep(RENEWAL).await;
                if put(path.clone(), store.clone()).await.is_ok() {
                    renewed = tokio::time::Instant::now();
                } else if renewed.elapsed() + 2 * RENEWAL > LEASE {
                    return lost.store(true, Ordering::Relaxed);
                }
            }
        }));
        Ok(Box::new(guard))
    }
}

/// A lock. Dropping it removes it.
struct LockObject {
    runtime: Arc<Runtime>,
    store: Arc<AmazonS3>,
    path: Path,
    renewal: Option<tokio::task::JoinHandle<()>>,
}

impl Drop for LockObject {
    fn drop(&mut self) {
        if let Some(renewal) = self.renewal.take() {
            renewal.abort();
            // A renewal that is under way must not write the lock again after its removal.
            let _ = self.runtime.block_on(renewal);
        }
        let _ = self.runtime.block_on(self.store.delete(&self.path));
    }
}

/// Reads an object as it arrives.
struct Body {
    runtime: Arc<Runtime>,
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    rest: Bytes,
}

impl Read for Body {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            let next = async { tokio::time::timeout(READ_TIME_MAX, self.stream.next()).await };
            match self.runtime.block_on(next) {
                Ok(Some(bytes)) => self.rest = bytes.map_err(io::Error::other)?,
                Ok(None) => return Ok(0),
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        let length = part.len().min(self.rest.len());
        self.rest.copy_to_slice(&mut part[..length]);
        Ok(length)
    }
}

/// An object in `incoming/`.
struct Upload<'a> {
    place: &'a S3,
    name: String,
    /// The bytes, while they are fewer than a part. Small files are sent by one request.
    small: Vec<u8>,
    parts: Option<WriteMultipart>,
    is_stored: bool,
}

impl Upload<'_> {
    fn failed(&self, error: object_store::Error) -> Error {
        failed("write", &self.name, error)
    }

    fn store(&mut self) -> object_store::Result<()> {
        let (runtime, store) = (&self.place.runtime, &self.place.store);
        match self.parts.take() {
            Some(parts) => runtime.block_on(parts.finish()).map(drop),
            None => {
                let bytes = std::mem::take(&mut self.small);
                runtime.block_on(store.put(&self.place.path(&self.name), bytes.into())).map(drop)
            }
        }
    }

    fn read_back(&self) -> Result<Hash> {
        let Some((_, mut content)) = self.place.open(&self.name)? else {
            return Err(Error::corrupt("written object is missing").with("object", &self.name));
        };
        let (mut hasher, mut part) = (Hasher::default(), vec![0; crate::PART_BYTES]);
        loop {
            let read = content.read(&mut part);
            match read.map_err(|e| Error::io("read back", self.name.as_ref(), e))? {
                0 => return Ok(hasher.finish()),
                read => hasher.update(&part[..read]),
            }
        }
    }
}

impl Incoming for Upload<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.place.check_lock()?;
        let runtime = &self.place.runtime;
        let Some(parts) = &mut self.parts else {
            self.small.extend_from_slice(bytes);
            if self.small.len() >= PART_BYTES {
                let path = self.place.path(&self.name);
                let begun = runtime.block_on(self.place.store.put_multipart(&path));
                let begun = begun.map_err(|e| self.failed(e))?;
                let mut parts = WriteMultipart::new_with_chunk_size(begun, PART_BYTES);
                let _inside = runtime.enter();
                parts.write(&std::mem::take(&mut self.small));
                self.parts = Some(parts);
            }
            return Ok(());
        };
        let ready = runtime.block_on(parts.wait_for_capacity(PARTS_MAX));
        let _inside = runtime.enter();
        if ready.is_ok() {
            parts.write(bytes);
        }
        ready.map_err(|e| self.failed(e))
    }

    fn finish(mut self: Box<Self>, name: &str, hash: Hash) -> Result<()> {
        self.store().map_err(|e| self.failed(e))?;
        self.is_stored = true;
        let found = self.read_back()?;
        if found != hash {
            let message = format!("wrote bytes with the hash {hash} and read back {found}");
            return Err(Error::corrupt(message).with("object", &self.name));
        }
        self.place.check_lock()?;
        let (from, to) = (self.place.path(&self.name), self.place.path(name));
        let copied = self.place.runtime.block_on(self.place.store.copy(&from, &to));
        copied.map_err(|e| failed("copy", name, e))
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        // If the abort fails, the service keeps the parts until a rule of the bucket removes them.
        if let Some(parts) = self.parts.take() {
            let _ = self.place.runtime.block_on(parts.abort());
        }
        // If the removal fails, the next backup or prune removes the object.
        if self.is_stored {
            let _ = self.place.remove(&self.name);
        }
    }
}
