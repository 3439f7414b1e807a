//! A response body that holds a value until its last byte is sent, or until it is dropped.
//!
//! hyper takes a whole body at once, and drops it before the client has read its bytes. So the bytes also hold the value.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

struct Held<T> {
    body: Body,
    held: Arc<T>,
}

struct Part<T> {
    bytes: Bytes,
    #[expect(dead_code, reason = "only its drop has an effect")]
    held: Arc<T>,
}

impl<T> AsRef<[u8]> for Part<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

pub fn hold<T: Send + Sync + 'static>(response: Response, held: T) -> Response {
    response.map(|body| Body::new(Held { body, held: Arc::new(held) }))
}

impl<T: Send + Sync + 'static> HttpBody for Held<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let part = |bytes| Bytes::from_owner(Part { bytes, held: self.held.clone() });
        frame.map(|frame| frame.map(|frame| frame.map(|frame| frame.map_data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn the_value_is_held_until_the_bytes_are_dropped() {
        let value = Arc::new(());
        let mut body = hold("text".into_response(), value.clone()).into_body();
        let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(body.is_end_stream());
        drop(body);
        assert_eq!((&*bytes, Arc::strong_count(&value)), (&b"text"[..], 2));
        drop(bytes);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
