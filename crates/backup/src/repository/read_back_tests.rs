//! Tests that a backup fails, and that its repository has no record of it, if bytes that are read back differ from those that
//! were written. Tests that all objects of a backup are durable before its record exists.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tacho_store::{ErrorKind, Result};

use super::directory::Directory;
use super::{Guard, Incoming, Lock, Place, Repository};
use crate::{Created, Hash, Host, Keep, Source, Work, create, prune};

/// The files of the data directory. The last one is so long that a bucket gets it in parts.
const FILES: [(&str, usize); 3] =
    [("chunks/MANIFEST", 9), ("tokens", 30), ("chunks/00000001.segment", 9 << 20)];
/// Written in addition: the version of the layout, and the record.
const OTHERS: usize = 2;

fn back_up(repository: &Repository, data: &Path) -> Result<Created> {
    let host = Host { name: "box".into(), data: "/data".into(), tacho: "0".into() };
    let source = Source::at_rest(data).unwrap();
    create(repository, &source, &host, &mut Work::new(&mut |_, _| {}, &|| Ok(())))
}

/// A data directory with [`FILES`].
fn data_directory(place: &Path) -> PathBuf {
    let data = place.join("data");
    for folder in ["chunks", "journal"] {
        fs::create_dir_all(data.join(folder)).unwrap();
    }
    for (number, (name, length)) in FILES.into_iter().enumerate() {
        fs::write(data.join(name), vec![number as u8; length]).unwrap();
    }
    data
}

/// Makes one backup for each file that a backup writes. Each backup gets a new repository, which returns changed bytes when this
/// file is read back. `repository` gets an empty directory and the number of the file.
fn each_change_is_detected(repository: impl Fn(&Path, usize) -> Repository) {
    let place = tempfile::tempdir().unwrap();
    let data = data_directory(place.path());
    let written = FILES.len() + OTHERS;
    for number in 0..written {
        let repository = repository(&place.path().join(number.to_string()), number);
        let error = back_up(&repository, &data).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "file {number}: {error}");
        assert!(error.to_string().contains("read back bytes with the hash"), "file {number}: {error}");
        assert_eq!(repository.ids().unwrap(), [], "file {number}");
        assert_eq!(repository.place.list("incoming").unwrap(), [], "file {number}");
        // The files before this one were read back unchanged. Only they have names.
        let named = repository.objects().unwrap().len();
        assert_eq!(named, number.saturating_sub(1).min(FILES.len()), "file {number}");
        let record = back_up(&repository, &data).unwrap().record;
        assert_eq!(repository.ids().unwrap(), [record.id], "file {number}");
    }
    let repository = repository(&place.path().join("intact"), written);
    back_up(&repository, &data).unwrap();
}

/// A directory in which one of the written files changes before it is read back.
struct Altering {
    directory: Directory,
    path: PathBuf,
    altered: usize,
    finished: AtomicUsize,
    /// The settled folders, and the removed and the finished files, in order.
    log: Arc<Mutex<Vec<String>>>,
}

impl Altering {
    fn new(path: &Path, altered: usize) -> Self {
        let (finished, log) = (AtomicUsize::new(0), Arc::default());
        Self { directory: Directory::new(path.to_owned()), path: path.to_owned(), altered, finished, log }
    }
}

impl Place for Altering {
    fn location(&self) -> String {
        self.directory.location()
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>> {
        self.directory.list(folder)
    }

    fn open(&self, name: &str) -> Result<Option<(u64, Box<dyn Read + Send>)>> {
        self.directory.open(name)
    }

    fn begin(&self) -> Result<Box<dyn Incoming + '_>> {
        Ok(Box::new(Altered { place: self, file: self.directory.begin()? }))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.log.lock().unwrap().push(format!("remove {name}"));
        self.directory.remove(name)
    }

    fn settle(&self, folders: &[String]) -> Result<()> {
        self.log.lock().unwrap().extend_from_slice(folders);
        self.directory.settle(folders)
    }

    fn clean(&self) -> Result<()> {
        self.directory.clean()
    }

    fn lock(&self, lock: Lock) -> Result<Guard> {
        self.directory.lock(lock)
    }
}

struct Altered<'a> {
    place: &'a Altering,
    file: Box<dyn Incoming + 'a>,
}

impl Incoming for Altered<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write(bytes)
    }

    fn finish(self: Box<Self>, name: &str, hash: Hash) -> Result<()> {
        if self.place.finished.fetch_add(1, Ordering::SeqCst) == self.place.altered {
            for (incoming, _) in self.place.directory.list("incoming")? {
                let path = self.place.path.join(incoming);
                let mut bytes = fs::read(&path).unwrap();
                bytes[0] ^= 1;
                fs::write(path, bytes).unwrap();
            }
        }
        self.place.log.lock().unwrap().push(name.to_owned());
        self.file.finish(name, hash)
    }
}

#[test]
fn a_backup_to_a_directory_in_which_a_written_file_changes_fails_and_leaves_no_record() {
    each_change_is_detected(|path, altered| Repository { place: Box::new(Altering::new(path, altered)) });
}

/// An interrupted backup may have written objects and a record, and not synced their folders.
#[test]
fn the_names_of_existing_files_are_durable_before_a_record_needs_them_and_before_others_are_removed() {
    let place = tempfile::tempdir().unwrap();
    let data = data_directory(place.path());
    let altering = Altering::new(&place.path().join("repository"), usize::MAX);
    let log = altering.log.clone();
    let repository = Repository { place: Box::new(altering) };
    let first = back_up(&repository, &data).unwrap().record;
    log.lock().unwrap().clear();
    let record = back_up(&repository, &data).unwrap().record;
    let folders: BTreeSet<String> =
        record.files.iter().map(|file| format!("objects/{}", &file.sha256.to_string()[..2])).collect();
    assert!(!folders.is_empty());
    let expected: Vec<String> = folders.into_iter().chain([format!("backups/{}", record.id)]).collect();
    assert_eq!(*log.lock().unwrap(), expected);
    log.lock().unwrap().clear();
    let keep = Keep { last: 1, daily: 0 };
    prune(&repository, keep, false, &mut Work::new(&mut |_, _| {}, &|| Ok(()))).unwrap();
    let expected = ["backups", &format!("remove backups/{}", first.id), "backups"];
    assert_eq!(log.lock().unwrap()[..3], expected);
}

#[cfg(feature = "s3")]
mod bucket {
    use std::fmt;
    use std::sync::Arc;
    use std::time::Duration;

    use async_trait::async_trait;
    use futures_util::stream::{BoxStream, StreamExt};
    use object_store::memory::InMemory;
    use object_store::path::Path;
    use object_store::{
        CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
        ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    };

    use super::super::s3::S3;
    use super::super::s3_lock::Lease;
    use super::*;

    /// A bucket that returns other bytes at one of the reads of unfinished files.
    #[derive(Debug)]
    struct Altering {
        store: InMemory,
        altered: usize,
        read: AtomicUsize,
    }

    impl fmt::Display for Altering {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.store.fmt(f)
        }
    }

    #[async_trait]
    impl ObjectStore for Altering {
        async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
            self.store.put_opts(at, payload, options).await
        }

        async fn put_multipart_opts(
            &self,
            at: &Path,
            options: PutMultipartOptions,
        ) -> Result<Box<dyn MultipartUpload>> {
            self.store.put_multipart_opts(at, options).await
        }

        async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
            let found = self.store.get_opts(at, options).await?;
            let is_unfinished = at.as_ref().contains("/incoming/");
            if is_unfinished && self.read.fetch_add(1, Ordering::SeqCst) == self.altered {
                let (meta, range) = (found.meta.clone(), found.range.clone());
                let (attributes, extensions) = (found.attributes.clone(), found.extensions.clone());
                let mut bytes = found.bytes().await?.to_vec();
                bytes[0] ^= 1;
                let bytes = futures_util::stream::once(async { Ok(bytes.into()) });
                let payload = GetResultPayload::Stream(bytes.boxed());
                return Ok(GetResult { payload, meta, range, attributes, extensions });
            }
            Ok(found)
        }

        fn delete_stream(&self, names: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
            self.store.delete_stream(names)
        }

        fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
            self.store.list(prefix)
        }

        async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
            self.store.list_with_delimiter(prefix).await
        }

        async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
            self.store.copy_opts(from, to, options).await
        }
    }

    #[test]
    fn a_backup_to_a_bucket_that_returns_other_bytes_fails_and_leaves_no_record() {
        each_change_is_detected(|_, altered| {
            let store = Altering { store: InMemory::new(), altered, read: AtomicUsize::new(0) };
            let lease = Lease::new("s3://b/p", Arc::new(|| Duration::ZERO));
            let place = S3::over(Arc::new(store), "s3://b/p", Path::from("p"), lease).unwrap();
            Repository { place: Box::new(place) }
        });
    }
}
