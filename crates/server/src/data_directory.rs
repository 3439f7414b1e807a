//! Opens a data directory (`LOCK`, `journal/`, `chunks/`).

use std::path::Path;
use std::sync::Arc;

use tacho_drivers::embedded::{Embedded, Surveyed};
use tacho_model::Clock;
use tacho_store::lock::DirectoryLock;
use tacho_store::{Options, Store, disk, emptied, incomplete};

use crate::check::refuse_incomplete;
use crate::{snapshots, upgrade};

/// Creates the directory if it does not exist.
pub async fn open(
    data: &Path,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<Store>, DirectoryLock), tacho_store::Error> {
    open_with(data, Options::default(), clock).await
}

/// Opens a data directory for reading, unless a server uses it. Creates, changes and removes no file in it.
pub async fn open_read_only(
    data: &Path,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<Store>, Option<DirectoryLock>), tacho_store::Error> {
    refuse_incomplete(data)?;
    let lock = DirectoryLock::share(data)?;
    upgrade::refuse_newer_side_files(data)?;
    let driver =
        tacho_drivers::open_read_only(&format!("embedded:{}", data.join("chunks").display())).await?;
    let options = Options { read_only: true, ..Options::default() };
    let store = Store::open(driver, &data.join("journal"), options, clock).await?;
    Ok((store, lock))
}

pub async fn open_with(
    data: &Path,
    options: Options,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<Store>, DirectoryLock), tacho_store::Error> {
    Locked::acquire(data)?.open(options, clock).await
}

/// A data directory that this process may open. Only its lock file has changed.
pub struct Locked<'d> {
    data: &'d Path,
    lock: DirectoryLock,
}

impl<'d> Locked<'d> {
    /// Creates the directory if it does not exist.
    pub fn acquire(data: &'d Path) -> Result<Self, tacho_store::Error> {
        refuse_incomplete(data)?;
        let lock = DirectoryLock::acquire(data)?;
        upgrade::refuse_newer(data)?;
        disk::warn_if_shared(data);
        Ok(Self { data, lock })
    }

    pub async fn open(
        self,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<(Arc<Store>, DirectoryLock), tacho_store::Error> {
        let Self { data, lock } = self;
        let (chunks, journal) = (data.join("chunks"), data.join("journal"));
        if !Embedded::has_rows(&chunks)? {
            emptied(&journal)?.check(data)?;
        }
        let surveyed = Surveyed::read(&chunks).await?;
        // A start that is refused here has changed nothing but the lock file. One message has all reasons.
        let mut refusal = surveyed.refusal().clone();
        refusal.merge(incomplete(surveyed.driver(), &journal).await?);
        refusal.check(data)?;
        let driver = Arc::new(surveyed.open().await?);
        let store = Store::open(driver, &journal, options, clock).await?;
        // Snapshots are not removed earlier, so that a directory of a newer version stays unchanged.
        snapshots::remove_all(data);
        Ok((store, lock))
    }
}
