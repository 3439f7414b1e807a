//! Opens a data directory (`LOCK`, `journal/`, `chunks/`). Used by the server, and by commands that read or fill a data
//! directory without a server.

use std::path::Path;
use std::sync::Arc;

use tacho_drivers::embedded::Embedded;
use tacho_model::Clock;
use tacho_store::lock::DirectoryLock;
use tacho_store::{Options, Store, disk, refuse_emptied};

use crate::check::refuse_incomplete;
use crate::{snapshots, upgrade};

/// Opens a data directory. Creates it if it does not exist.
pub async fn open(
    data: &Path,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<Store>, DirectoryLock), tacho_store::Error> {
    open_with(data, Options::default(), clock).await
}

/// Opens a data directory that no server uses, for reading. Creates, changes and removes no file in it.
pub async fn open_read_only(
    data: &Path,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<Store>, Option<DirectoryLock>), tacho_store::Error> {
    refuse_incomplete(data)?;
    let lock = DirectoryLock::share(data)?;
    let driver =
        tacho_drivers::open_read_only(&format!("embedded:{}", data.join("chunks").display())).await?;
    let options = Options { read_only: true, ..Options::default() };
    let store = Store::open(driver, &data.join("journal"), options, clock).await?;
    Ok((store, lock))
}

/// The same as [`open`], with other options.
pub async fn open_with(
    data: &Path,
    options: Options,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<Store>, DirectoryLock), tacho_store::Error> {
    refuse_incomplete(data)?;
    let lock = DirectoryLock::acquire(data)?;
    upgrade::refuse_newer(data)?;
    disk::warn_if_shared(data);
    let (chunks, journal) = (data.join("chunks"), data.join("journal"));
    if !Embedded::has_rows(&chunks)? {
        refuse_emptied(&journal)?;
    }
    let driver = tacho_drivers::open(&format!("embedded:{}", chunks.display())).await?;
    let store = Store::open(driver, &journal, options, clock).await?;
    // Not earlier, so that a directory of a newer version stays unchanged.
    snapshots::remove_all(data);
    Ok((store, lock))
}
