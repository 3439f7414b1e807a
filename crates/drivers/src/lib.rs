//! One file or folder per back end; [`open`] is the only registry.
//!
//! One more driver is a module here, a line in [`open`], a feature in `Cargo.toml`, and a test file that runs
//! `tacho_store::conformance`.

pub mod embedded;
#[cfg(feature = "fjall")]
pub mod fjall;

use std::path::Path;
use std::sync::Arc;

use tacho_store::{Driver, Error, MemoryDriver, Result};

/// Names of the back ends in this build, for messages and help.
pub const SCHEMES: &[&str] = &[
    "memory:",
    "embedded:DIRECTORY",
    #[cfg(feature = "fjall")]
    "fjall:DIRECTORY",
];

/// Opens a back end by its URL: `memory:`, `embedded:/var/lib/tacho/chunks`.
///
/// # Errors
/// `Invalid` for an unknown scheme; else the driver's own.
pub async fn open(url: &str) -> Result<Arc<dyn Driver>> {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    match scheme {
        "memory" => Ok(Arc::new(MemoryDriver::new())),
        "embedded" => Ok(Arc::new(embedded::Embedded::open(directory(url, rest)?).await?)),
        #[cfg(feature = "fjall")]
        "fjall" => Ok(Arc::new(fjall::Fjall::open(directory(url, rest)?).await?)),
        _ => Err(Error::invalid(format!("no driver for {url:?}, known are {}", SCHEMES.join(", ")))),
    }
}

/// As [`open`], read-only: no file is made, changed or removed. Not every back end supports it.
///
/// # Errors
/// As [`open`]; `Invalid` for one that does not support it.
pub async fn open_read_only(url: &str) -> Result<Arc<dyn Driver>> {
    match url.split_once(':') {
        Some(("embedded", rest)) => {
            Ok(Arc::new(embedded::Embedded::open_read_only(directory(url, rest)?).await?))
        }
        _ => Err(Error::invalid(format!("{url:?} cannot be opened read-only"))),
    }
}

fn directory<'a>(url: &str, rest: &'a str) -> Result<&'a Path> {
    // `embedded:/path` and `embedded:///path` mean the same.
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() {
        Err(Error::invalid(format!("{url:?} names no directory")))
    } else {
        Ok(Path::new(path))
    }
}
