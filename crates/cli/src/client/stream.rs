//! An answer that is read part by part.

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};

use super::{Connection, Target};
use crate::failure::Failure;

pub struct Stream {
    pub(super) target: Target,
    pub(super) body: Incoming,
    pub(super) _connection: Connection,
}

impl Stream {
    /// Returns `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|e| {
                Failure::new(format!("{} ended its response early: {e}", self.target))
                    .hint("the log of the server says why")
            })?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
