//! Errors of the store and its drivers: kind, place, and whether a retry may help.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Kind of failure. Callers use it to choose the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request breaks a rule, or the driver or the machine cannot do it. The same request will be refused again.
    Invalid,
    /// A limit is reached, for example on the samples of one answer or on pending deletions.
    Limit,
    /// A limit on memory or on waiting requests is reached. The sender should wait this long and send again.
    Full { retry_after: Duration },
    /// The disk or the back end has no space left. The store accepts records again when there is space.
    StorageFull,
    /// The back end failed, or a system call was interrupted or timed out; a retry may succeed.
    Unavailable,
    /// Stored bytes differ from the bytes that were written, or stored files are missing.
    Corrupt,
    /// A newer version wrote the data.
    Version,
    /// Another process has locked the directory.
    Locked,
    /// The store or the driver is closed, or a task of it has ended.
    Closed,
    /// A system call failed for another reason, for example permissions or a missing path.
    Io,
}

impl ErrorKind {
    /// Whether the same request may succeed later.
    pub const fn retryable(self) -> bool {
        matches!(self, Self::Full { .. } | Self::StorageFull | Self::Unavailable)
    }
}

pub(crate) const LINK_LOOP: &str =
    "symbolic link leads back to itself: replace it by the file or directory, for example from a backup";

/// Kind, message, context (key and value pairs) and source. Cheap to clone, because one failed sync fails many appends.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    message: Box<str>,
    context: Vec<(&'static str, Box<str>)>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    is_of_reader: bool,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<Box<str>>) -> Self {
        Self { kind, message: message.into(), context: Vec::new(), source: None, is_of_reader: false }
    }

    pub fn invalid(message: impl Into<Box<str>>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub fn corrupt(message: impl Into<Box<str>>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// A failed system call. `doing` is the verb phrase for `cannot {doing}`.
    pub fn io(doing: &str, path: &Path, error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                ErrorKind::StorageFull
            }
            io::ErrorKind::TimedOut | io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => {
                ErrorKind::Unavailable
            }
            _ => ErrorKind::Io,
        };
        // The text of the operating system is "Too many levels of symbolic links", although one link is enough.
        let error = match error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
            true => io::Error::other(LINK_LOOP),
            false => error,
        };
        Self::new(kind, format!("cannot {doing}")).with("path", path.display()).caused_by(error)
    }

    /// Adds context to the message, such as `(series 00ff.., start 12)`.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.context.push((key, value.to_string().into()));
        self
    }

    #[must_use]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// An error of the kind `Locked` because of processes that only read the directory.
    pub(crate) fn of_reader(message: impl Into<Box<str>>) -> Self {
        Self { is_of_reader: true, ..Self::new(ErrorKind::Locked, message) }
    }

    /// Whether [`crate::lock::DirectoryLock::acquire`] failed because of processes that only read the directory, such as a
    /// backup.
    pub const fn is_of_reader(&self) -> bool {
        self.is_of_reader
    }

    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub const fn retryable(&self) -> bool {
        self.kind.retryable()
    }

    /// The kind of the failed system call, if the error was caused by one.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.source.as_deref()?.downcast_ref::<io::Error>().map(io::Error::kind)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for (at, (key, value)) in self.context.iter().enumerate() {
            write!(f, "{}{key} {value}", if at == 0 { " (" } else { ", " })?;
        }
        if !self.context.is_empty() {
            f.write_str(")")?;
        }
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind)
    }
}

/// The message already includes the source. `source` therefore returns none, so that a chain printer does not print it
/// twice.
impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_operation_place_and_cause() {
        let cause = io::Error::from(io::ErrorKind::StorageFull);
        let error = Error::io("write journal", Path::new("/d/1"), cause).with("offset", 7);
        assert_eq!(error.to_string(), "cannot write journal (path /d/1, offset 7): no storage space");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert!(error.retryable());
        assert!(!Error::corrupt("x").retryable());
    }

    #[test]
    fn a_link_that_leads_back_to_itself_is_explained() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("link");
        std::os::unix::fs::symlink("link", &path).unwrap();
        let error = Error::io("read", &path, std::fs::metadata(&path).unwrap_err()).to_string();
        assert_eq!(error, format!("cannot read (path {}): {LINK_LOOP}", path.display()));
    }
}
