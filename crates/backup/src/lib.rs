//! Which bytes of a data directory are in a backup repository, and how do they come back?
//!
//! ```text
//!   source.rs   the files of a data directory at one moment: at rest, or a snapshot of a server
//!       |
//!   create.rs   new files become objects, named by their SHA-256; the record is written last      -> repository/
//!       |
//!   record.rs   one backup: time, and the object of each file (docs/format/backup.md)
//!       |
//!   restore.rs  objects become files again, in a new directory
//! ```
//! `verify.rs` reads the objects of backups. `prune.rs` chooses the backups to keep and removes the others. Files are read
//! and written in parts, so memory does not depend on their size.

mod create;
mod hash;
mod prune;
mod record;
pub mod repository;
mod restore;
mod source;
mod verify;

pub use create::{Created, Host, create};
pub use hash::Hash;
pub use prune::{Keep, Pruned, choose, prune};
pub use record::{FILES_MAX, Id, RECORD_BYTES_MAX, Record, SavedFile, VERSION};
pub use repository::{Repository, Work};
pub use restore::{Restored, restore};
pub use source::{Source, SourceFile};
pub use verify::{Fault, Verified, verify};

/// Bytes of the parts in which files are read, hashed and written.
pub const PART_BYTES: usize = 1 << 20;
