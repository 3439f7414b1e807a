//! Memory budget of responses that are being sent. A response keeps its share until it is sent or dropped.
//!
//! A client that does not read keeps its response in memory until `paced.rs` ends the connection. A response does not count
//! toward `requests_max` while it is sent, so such clients block no other requests.

use std::sync::Arc;

use axum::body::HttpBody;
use axum::response::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ApiError;
use crate::metrics::Metrics;
use crate::metrics::registry::{Counter, Gauge};

/// Responses that keep at most this much memory are not counted, because `connections_max` limits their number. A body
/// that is not a stream counts twice its bytes.
const SMALL_BYTES: usize = 64 << 10;
const UNIT: usize = 1 << 10;

/// The bytes that a response keeps in memory, stored in the extensions of the response.
#[derive(Clone, Copy, Debug)]
pub struct Keeps(pub usize);

pub struct Answers {
    room: Arc<Semaphore>,
    bytes_max: usize,
    held: Gauge,
    refused: Counter,
}

pub struct Share {
    permits: OwnedSemaphorePermit,
    held: Gauge,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.held.add(-bytes_of(&self.permits));
    }
}

fn bytes_of(permits: &OwnedSemaphorePermit) -> i64 {
    i64::try_from(permits.num_permits().saturating_mul(UNIT)).unwrap_or(i64::MAX)
}

impl Answers {
    pub fn new(bytes_max: usize, metrics: &Metrics) -> Self {
        let units = bytes_max.div_ceil(UNIT).min(Semaphore::MAX_PERMITS).min(u32::MAX as usize);
        Self {
            room: Arc::new(Semaphore::new(units)),
            bytes_max: units * UNIT,
            held: metrics.answers.bytes.with([]),
            refused: metrics.answers.refused.with([]),
        }
    }

    /// Takes the share of a response from the budget. `None` for a small response, and for a stream without [`Keeps`].
    ///
    /// # Errors
    /// When the budget is used up.
    pub fn share(&self, response: &Response) -> Result<Option<Share>, ApiError> {
        let exact = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        let keeps = response.extensions().get::<Keeps>().map(|keeps| keeps.0);
        // The buffer of a body doubles while the body is written, so it may have twice the bytes of the body.
        self.share_of(keeps.or(exact.map(|bytes| bytes.saturating_mul(2))).unwrap_or(0))
    }

    /// Takes the share of a response or a list of this many bytes in memory. `None` if it is small.
    ///
    /// # Errors
    /// When the budget is used up.
    pub fn share_of(&self, bytes: usize) -> Result<Option<Share>, ApiError> {
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        // A response larger than the budget takes the whole budget.
        let units = u32::try_from(bytes.min(self.bytes_max) / UNIT).unwrap_or(u32::MAX);
        let Ok(permits) = self.room.clone().try_acquire_many_owned(units) else {
            self.refused.add(1);
            return Err(ApiError::unavailable(
                format!(
                    "answers that are being sent may take {} bytes together: ask for less, retry later, or raise \
                     answer-bytes-max",
                    self.bytes_max
                ),
                1,
            ));
        };
        self.held.add(bytes_of(&permits));
        Ok(Some(Share { permits, held: self.held.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::response::IntoResponse;

    const BYTES_MAX: usize = 1 << 20;

    #[test]
    fn large_responses_share_a_budget() {
        let metrics = Metrics::default();
        let answers = Answers::new(BYTES_MAX, &metrics);
        let stream = |bytes: usize| {
            let mut response =
                Body::from_stream(futures_util::stream::pending::<Result<&str, String>>()).into_response();
            response.extensions_mut().insert(Keeps(bytes));
            response
        };
        let whole = |bytes: usize| vec![0; bytes].into_response();
        let share = |response: &Response| answers.share(response).map_err(|error| error.status.as_u16());
        let is_counted = |response| share(&response).map(|share| share.is_some());
        let held = || metrics.answers.bytes.with([]).get();
        let most = share(&stream(BYTES_MAX)).unwrap();
        assert!(most.is_some());
        assert_eq!(held(), BYTES_MAX as i64);
        assert_eq!(is_counted(stream(SMALL_BYTES + 1)), Err(503));
        assert_eq!(is_counted(whole(SMALL_BYTES)), Err(503));
        assert_eq!(metrics.answers.refused.with([]).get(), 2);
        assert_eq!(is_counted(whole(SMALL_BYTES / 2)), Ok(false));
        drop(most);
        assert_eq!(held(), 0);
        assert_eq!(is_counted(stream(9 * BYTES_MAX)), Ok(true));
    }
}
