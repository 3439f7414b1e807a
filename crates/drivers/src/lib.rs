//! The back ends, one file or folder each; the memory driver is in `tacho_store`. [`open`] selects one by its URL.
//!
//! A new driver needs a module here, a line in [`SCHEMES`] and in [`open`], a feature in `Cargo.toml`, and a test file
//! that runs `tacho_store::conformance`.

#![deny(clippy::unwrap_used, clippy::indexing_slicing)]
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss
    )
)]

pub mod embedded;
#[cfg(feature = "fjall")]
pub mod fjall;

use std::path::Path;
use std::sync::Arc;

use tacho_store::{Driver, Error, MemoryDriver, Result};

/// The forms of the URLs of the back ends in this build, for an error message.
pub const SCHEMES: &[&str] = &[
    "memory:",
    "embedded:DIRECTORY",
    #[cfg(feature = "fjall")]
    "fjall:DIRECTORY",
];

/// Opens a back end by its URL, such as `memory:` or `embedded:/var/lib/tacho/chunks`.
///
/// # Errors
/// `Invalid` for an unknown scheme, or a URL that needs a directory and names none; otherwise the error of the driver.
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

/// Like [`open`], but read-only: no file is created, changed or removed. Only the embedded driver supports it.
///
/// # Errors
/// Like [`open`]; `Invalid` for another back end.
pub async fn open_read_only(url: &str) -> Result<Arc<dyn Driver>> {
    match url.split_once(':') {
        Some(("embedded", rest)) => {
            Ok(Arc::new(embedded::Embedded::open_read_only(directory(url, rest)?).await?))
        }
        _ => Err(Error::invalid(format!("{url:?} cannot be opened read-only"))),
    }
}

fn directory<'a>(url: &str, rest: &'a str) -> Result<&'a Path> {
    // `embedded:/path` and `embedded:///path` have the same meaning.
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() {
        Err(Error::invalid(format!("{url:?} names no directory")))
    } else {
        Ok(Path::new(path))
    }
}
