//! The journal: acknowledged batches in order, on disk until their chunks are in the driver (`docs/format/journal.md`).
//!
//! ```text
//!   commit.rs -> encode.rs -> writer.rs -> disk          appending
//!   recover.rs <- decode.rs <- reader.rs <- disk         at a start
//! ```

mod columns;
mod decode;
mod define;
mod encode;
pub mod format;
mod front;
mod lack;
mod reader;
pub mod record_cost;
mod search;
mod series;
mod set_aside;
#[cfg(test)]
mod tests;
mod writer;

pub use define::Numbered;
pub use encode::Encoder;
pub use front::Front;
pub use lack::{Lack, is_lack};
pub use reader::{Contents, Found, list, read, read_bytes, read_front, read_numbered, refuse_newer};
pub use set_aside::{QUARANTINE, lost_in, quarantined, set_aside};
pub use writer::{Failure, Writer};
