//! Here is a batch, keep it; here is a range, give me records: journal, open chunks, drivers' waist.

pub mod conformance;
pub mod driver;
mod error;
pub mod layer;
pub mod memory;
pub mod random;

pub use driver::{Driver, Row, Table};
pub use error::{Error, ErrorKind, Result};
pub use memory::MemoryDriver;
