//! A directory that is locked and read, and not changed yet. The caller may still refuse it.
//!
//! A start of the server reads the rows first and compares them with the journals. All reasons to refuse the directory are in
//! one message. If there is none, the start calls [`Surveyed::open`], which cuts off torn ends, removes files and writes the
//! manifest.

use std::path::Path;
use std::sync::Arc;

use tacho_store::disk::{Disk, RealDisk};
use tacho_store::threads::Threads;
use tacho_store::{Error, ErrorKind, Refusal, Result};

use super::survey::Survey;
use super::{Embedded, Inner, SEGMENT_BYTES, blocking};

pub struct Surveyed {
    driver: Embedded,
    survey: Survey,
    disk: Arc<dyn Disk>,
    segment_bytes: u64,
}

impl Surveyed {
    /// Locks and reads a directory. Creates an absent directory.
    ///
    /// # Errors
    /// `Locked`, `Version` and `Io` as [`Embedded::open`].
    pub async fn read(path: &Path) -> Result<Self> {
        Self::read_on(path, Arc::new(RealDisk), SEGMENT_BYTES, Threads::Many).await
    }

    /// Like [`Self::read`], with the options of [`Embedded::open_on`].
    ///
    /// # Errors
    /// Like [`Embedded::open`].
    pub async fn read_on(
        path: &Path,
        disk: Arc<dyn Disk>,
        segment_bytes: u64,
        threads: Threads,
    ) -> Result<Self> {
        let (path, of_survey) = (path.to_owned(), disk.clone());
        let (inner, survey) = blocking(threads, move || Inner::survey(&path, &*of_survey)).await?;
        let driver = Embedded(Arc::new(Inner { threads, ..inner }));
        Ok(Self { driver, survey, disk, segment_bytes })
    }

    /// The rows of the directory. This driver only reads.
    pub const fn driver(&self) -> &Embedded {
        &self.driver
    }

    /// The reasons why [`Self::open`] refuses the directory. [`Self::driver`] then has the rows that are left.
    pub const fn refusal(&self) -> &Refusal {
        &self.survey.refusal
    }

    /// Opens the directory for writing.
    ///
    /// # Errors
    /// Like [`Embedded::open`]. `Closed` while a scan of [`Self::driver`] is open.
    pub async fn open(self) -> Result<Embedded> {
        let Self { driver, survey, disk, segment_bytes } = self;
        let path = driver.0.path.clone();
        survey.refusal.check(&path)?;
        let inner = Arc::into_inner(driver.0).ok_or_else(|| {
            Error::new(ErrorKind::Closed, "a scan of the directory is open").with("path", path.display())
        })?;
        let opened = blocking(inner.threads, move || inner.open(survey, disk, segment_bytes)).await?;
        Ok(Embedded(Arc::new(opened)))
    }
}
