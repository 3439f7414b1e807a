//! Memory budget of responses that are being sent: a client that reads slowly keeps its response in memory.
//!
//! Step before: a handler has computed the response. Step after: `guard.rs` holds the response's share of the budget until the
//! body is sent or dropped.

use std::sync::Arc;

use axum::body::HttpBody;
use axum::response::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ApiError;

/// Memory budget of all responses above [`SMALL_BYTES`], bytes: enough for two of the largest PromQL responses.
const BYTES_MAX: usize = 512 << 20;
/// Responses up to this size are not counted, because `requests-max` limits their number.
const SMALL_BYTES: usize = 1 << 20;
/// Bytes of one permit.
const UNIT: usize = 1 << 10;

/// The bytes that a streamed response keeps in memory, stored in the extensions of the response.
#[derive(Clone, Copy, Debug)]
pub struct Keeps(pub usize);

/// The budget.
pub struct Answers(Arc<Semaphore>);

impl Default for Answers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BYTES_MAX / UNIT)))
    }
}

impl Answers {
    /// Takes the share of a response from the budget. `None` for a small response, and for a stream without [`Keeps`].
    ///
    /// # Errors
    /// When the budget is used up.
    pub fn share(&self, response: &Response) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        let exact = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        let keeps = response.extensions().get::<Keeps>().map(|keeps| keeps.0);
        let bytes = keeps.or(exact).unwrap_or(0);
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        // A response larger than the budget takes the whole budget.
        let units = u32::try_from(bytes.min(BYTES_MAX) / UNIT).unwrap_or(u32::MAX);
        let share = self.0.clone().try_acquire_many_owned(units);
        share.map(Some).map_err(|_| {
            let message =
                format!("answers that are being sent may take {BYTES_MAX} bytes together: ask for less, or retry later");
            ApiError::unavailable(message, 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::response::IntoResponse;

    #[test]
    fn large_responses_share_a_budget() {
        let answers = Answers::default();
        let stream = |bytes: usize| {
            let mut response =
                Body::from_stream(futures_util::stream::pending::<Result<&str, String>>()).into_response();
            response.extensions_mut().insert(Keeps(bytes));
            response
        };
        let share = |response: &Response| answers.share(response).map_err(|error| error.status.as_u16());
        let most = share(&stream(BYTES_MAX)).unwrap();
        assert!(most.is_some());
        assert_eq!(share(&stream(SMALL_BYTES + 1)).map(|share| share.is_some()), Err(503));
        assert_eq!(share(&vec![0; SMALL_BYTES + 1].into_response()).map(|share| share.is_some()), Err(503));
        assert_eq!(share(&vec![0; SMALL_BYTES].into_response()).map(|share| share.is_some()), Ok(false));
        drop(most);
        assert_eq!(share(&stream(9 * BYTES_MAX)).map(|share| share.is_some()), Ok(true));
    }
}
