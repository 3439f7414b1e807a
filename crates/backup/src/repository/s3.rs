//! A repository in a bucket of an S3-compatible service: `s3://BUCKET/PREFIX`.
//!
//! | in a directory | in a bucket |
//! |---|---|
//! | write in `incoming/`, read back, rename | upload to `incoming/`, read back, copy by the service, delete |
//! | lock by the operating system | objects in `locks/`, each valid for ten minutes after its process last renewed it |
//!
//! Files of 8 MiB or more are sent in parts. The environment has the credentials, as for other programs: `AWS_ACCESS_KEY_ID`,
//! `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, and `AWS_ENDPOINT_URL` for services other than Amazon's.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, WriteMultipart};
use tacho_store::{Error, ErrorKind, Result, draw_id, since_boot};
use tokio::runtime::Runtime;

use super::s3_http::Connector;
use super::s3_lock::{LOCKS, Lease};
use super::s3_refusal::Refusal;
use super::{Guard, Incoming, Lock, Place};
use crate::hash::{Hash, Hasher};

const INCOMING: &str = "incoming";
/// Bytes of one part of an upload. S3 requires at least 5 MiB, and at most 10,000 parts.
const PART_BYTES: usize = 8 << 20;
/// Limit on parts that are sent at the same time. The last part of a file may be sent in addition.
const PARTS_MAX: usize = 2;
/// Longest wait for the next bytes of an object.
const READ_TIME_MAX: Duration = Duration::from_secs(60);

pub struct S3 {
    pub(super) runtime: Arc<Runtime>,
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) address: String,
    prefix: Path,
    /// Whether this process may change the repository.
    pub(super) lease: Arc<Lease>,
}

impl S3 {
    /// Prepares access to `s3://BUCKET/PREFIX`, with the variables of the environment. Sends no request.
    ///
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
        let lease = Lease::new(address, Arc::new(since_boot));
        let built = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_allow_http(allow_http)
            .with_http_connector(Connector::new(lease.clone())?)
            // Objects are removed one by one, and not all services have a request for several.
            .with_disable_bulk_delete(true)
            .build();
        let store = Arc::new(built.map_err(|e| wrong(&e))?);
        let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|e| wrong(&e))?;
        Self::over(store, address, prefix, lease)
    }

    pub(super) fn over(
        store: Arc<dyn ObjectStore>,
        address: &str,
        prefix: Path,
        lease: Arc<Lease>,
    ) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|e| Error::invalid(format!("cannot use {address}")).caused_by(e))?;
        Ok(Self { runtime: Arc::new(runtime), store, address: address.to_owned(), prefix, lease })
    }

    pub(super) fn path(&self, name: &str) -> Path {
        name.split('/')
            .filter(|part| !part.is_empty())
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }

    pub(super) fn found(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        let prefix = self.path(folder);
        let list = self.store.list((!prefix.as_ref().is_empty()).then_some(&prefix));
        self.runtime.block_on(list.try_collect()).map_err(|e| self.failed("list", folder, e))
    }

    /// The error of a failed request. If the service refused the request, the error names the remedy.
    pub(super) fn failed(&self, doing: &str, name: &str, error: object_store::Error) -> Error {
        let is_missing = matches!(error, object_store::Error::NotFound { .. });
        let refusal = Refusal::of(&error.to_string(), &self.address, &service());
        let kind = if is_missing && refusal.is_none() { ErrorKind::Corrupt } else { ErrorKind::Unavailable };
        let failed = Error::new(kind, format!("cannot {doing}")).with("repository", &self.address);
        let failed = if name.is_empty() { failed } else { failed.with("object", name) };
        match refusal {
            Some(refusal) => failed.caused_by(refusal),
            None => failed.caused_by(error),
        }
    }

    /// Whether the error is that of a missing object, and not of a missing bucket.
    fn is_missing(&self, error: &object_store::Error) -> bool {
        matches!(error, object_store::Error::NotFound { .. })
            && Refusal::of(&error.to_string(), &self.address, "").is_none()
    }

    fn relative(&self, found: &Path) -> Option<String> {
        let parts: Vec<String> =
            found.prefix_match(&self.prefix)?.map(|part| part.as_ref().to_owned()).collect();
        Some(parts.join("/"))
    }
}

impl Place for S3 {
    fn location(&self) -> String {
        self.address.clone()
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>> {
        if folder.is_empty() {
            let prefix = (!self.prefix.as_ref().is_empty()).then_some(&self.prefix);
            let found = self.runtime.block_on(self.store.list_with_delimiter(prefix));
            let found = found.map_err(|e| self.failed("list", "", e))?;
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
            Err(error) if self.is_missing(&error) => Ok(None),
            Err(error) => Err(self.failed("read", name, error)),
        }
    }

    fn begin(&self) -> Result<Box<dyn Incoming + '_>> {
        self.lease.check()?;
        let name = format!("{INCOMING}/{:032x}", draw_id());
        Ok(Box::new(Upload { place: self, name, small: Vec::new(), parts: None, is_stored: false }))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.lease.check()?;
        match self.runtime.block_on(self.store.delete(&self.path(name))) {
            Ok(()) => Ok(()),
            Err(error) if self.is_missing(&error) => Ok(()),
            Err(error) => Err(self.failed("remove", name, error)),
        }
    }

    /// Uploads and removals are durable at once, so this only confirms the lock, on which the caller's next steps rely.
    fn settle(&self, _: &[String]) -> Result<()> {
        self.confirm_lock()
    }

    fn clean(&self) -> Result<()> {
        self.list(INCOMING)?.iter().try_for_each(|(name, _)| self.remove(name))
    }

    fn lock(&self, lock: Lock) -> Result<Guard> {
        self.acquire(lock)
    }
}

/// The address of the service, for messages.
fn service() -> String {
    let given = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT"].into_iter().find_map(|name| std::env::var(name).ok());
    given.unwrap_or_else(|| "Amazon S3".to_owned())
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
        self.place.failed("write", &self.name, error)
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
        self.place.lease.check()?;
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
            let message = format!("wrote bytes with the hash {hash}, read back bytes with the hash {found}");
            return Err(Error::corrupt(message).with("object", &self.name));
        }
        // The copy gives the file its name, so this process must still have the lock.
        self.place.confirm_lock()?;
        let (from, to) = (self.place.path(&self.name), self.place.path(name));
        let copied = self.place.runtime.block_on(self.place.store.copy(&from, &to));
        copied.map_err(|e| self.place.failed("copy", name, e))
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
