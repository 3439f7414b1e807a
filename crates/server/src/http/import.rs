//! `POST /api/v1/import`: takes numbered frames, so that repeated frames are stored once. `tacho import` uses it.
//!
//! Path of one record: `crates/cli/src/command/import/frames.rs` encodes the record, `tacho_ingest::wire` decodes it, the store
//! keeps it. The response is sent when all records of the body are on disk.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use serde_json::{Value, json};
use tacho_ingest::budget::Budget;
use tacho_ingest::wire::{ClientFrame, Data, FrameDecoder, FrameType, Sequence, Session};
use tacho_store::{Appended, Origin};

use super::app::App;
use super::body::{self, Packed};
use super::error::ApiError;
use super::route::{Need, Route};
use super::write::count_wait;
use crate::access::{Access, Written};
use crate::decoding::batch_bytes;
use crate::received::Received;

const PROTOCOL: &str = "import";
const TYPE_AT: usize = 4;
/// The answer to a body that does not begin with HELLO, such as a file of another format.
const NO_FRAMES: &str = "the body does not begin with a HELLO frame of the native protocol (docs/format/wire.md): \
     import files of JSON lines, CSV and OpenMetrics with `tacho import FILE`; /write accepts line protocol";

/// Limit on the reasons for refusals in one answer. Further refused records are only counted.
const REASONS_MAX: usize = 256;

pub fn routes() -> Vec<Route> {
    vec![Route::new("/api/v1/import", Need::Write, post(import))]
}

async fn import(
    State(app): State<Arc<App>>,
    access: Access,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    let packed = Packed::new(&headers, body, app.config.body_bytes_max)?;
    let unpacked = body::unpacked(&app.decoding, packed, |body| Ok(body.len())).await;
    let (turn, body, mut hold) = unpacked.inspect_err(|error| count_wait(&app, PROTOCOL, error))?;
    let work = move || {
        let decoded = decode(&body);
        if let Ok(decoded) = &decoded {
            hold.shrink(decoded.memory_bytes());
        }
        (decoded, (turn, hold))
    };
    let (decoded, _turn) = tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| ApiError::internal(format!("decoding ended: {e}")))?;
    let Decoded { session, frames, mut refused, bytes } = decoded?;
    let session = access.session_id(session);
    let writer = app.writer(&access);
    app.metrics.received_bytes.with([PROTOCOL]).add(bytes as u64);
    let (mut seq, mut repeated, mut refused_records) = (0, 0u64, 0);
    let mut refuse = |records| {
        app.metrics.records_refused.with([PROTOCOL]).add(records);
        refused_records += records;
    };
    let mut sequence = Sequence::new(writer.session_acked(session));
    for data in frames {
        // A repeated frame is no error: the store detects it below.
        sequence.take(data.seq)?;
        seq = data.seq;
        let rejected = data.rejects.count;
        let received = Received::of(&data.batch, std::iter::repeat(1));
        let written = writer.append(data.batch, Some(Origin::one(session, seq))).await?;
        match written {
            // The client sends the body again later. The frames before this one are then recognized as repeated.
            Written::Wait { seconds, reason } => {
                app.metrics.sender_waits.with([PROTOCOL]).add(1);
                return Err(ApiError::too_many(reason).after(seconds));
            }
            Written::Appended(Appended::Stored) => {
                received.add_to(&app.metrics);
                refuse(rejected);
            }
            // The records of a repeated frame were counted when they were stored.
            Written::Appended(Appended::Repeated) => repeated += 1,
            Written::Appended(Appended::Partly(refused_part)) => {
                received.without(&refused_part, &app.services).add_to(&app.metrics);
                refuse(rejected + refused_part.records.iter().sum::<usize>() as u64);
                let reasons = refused_part.named.into_iter().map(|series| series.reason);
                refused.extend(reasons.take(REASONS_MAX.saturating_sub(refused.len())));
            }
        }
    }
    let data = json!({
        "seq": seq,
        "repeated": repeated,
        "refused": refused,
        "refused_records": refused_records,
    });
    Ok(Json(json!({ "status": "success", "data": data })))
}

struct Decoded {
    session: u128,
    frames: Vec<Data>,
    /// The reasons for refused records, at most [`REASONS_MAX`].
    refused: Vec<String>,
    bytes: usize,
}

impl Decoded {
    /// Memory of the frames, the reasons and the body, bytes. A frame without records takes only 21 bytes of the body, but a
    /// whole [`Data`] in memory.
    fn memory_bytes(&self) -> usize {
        let batches: usize = self.frames.iter().map(|data| batch_bytes(&data.batch)).sum();
        let reasons: usize = self.refused.iter().map(String::capacity).sum();
        batches + self.frames.capacity() * size_of::<Data>() + reasons + self.bytes
    }
}

/// Whether the body may begin with a HELLO frame. Only the byte of the type is compared: 1 for HELLO. A text rarely has this
/// control character.
fn begins_as_frames(body: &[u8]) -> bool {
    body.get(TYPE_AT) == Some(&(FrameType::Hello as u8))
}

fn decode(body: &[u8]) -> Result<Decoded, ApiError> {
    if !begins_as_frames(body) {
        return Err(ApiError::bad(NO_FRAMES));
    }
    let mut decoder = FrameDecoder::new();
    decoder.push(body);
    let mut budget = Budget::of_body(body.len());
    let mut session: Option<(u128, Session)> = None;
    let (mut frames, mut refused) = (Vec::new(), Vec::new());
    while let Some(frame) = decoder.pull()? {
        match (ClientFrame::decode(frame)?, &mut session) {
            (ClientFrame::Hello(hello), None) => {
                hello.version()?;
                session = Some((hello.session, Session::new(&hello)?));
            }
            (ClientFrame::Dict(body), Some((_, session))) => session.define(body)?,
            (ClientFrame::Data(body), Some((_, session))) => {
                let mut data = session.data_within(body, &mut budget)?;
                let reasons =
                    std::mem::take(&mut data.rejects.named).into_iter().map(|refused| refused.reason);
                refused.extend(reasons.take(REASONS_MAX.saturating_sub(refused.len())));
                frames.push(data);
            }
            _ => {
                let message = "expected one HELLO frame, then DICT and DATA frames (docs/format/wire.md)";
                return Err(ApiError::bad(message));
            }
        }
    }
    if decoder.gathered() > 0 {
        return Err(ApiError::bad(format!(
            "the body has {} bytes after the last whole frame",
            decoder.gathered()
        )));
    }
    let Some((session, _)) = session else { return Err(ApiError::bad("body holds no frame")) };
    Ok(Decoded { session, frames, refused, bytes: body.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_about_other_formats_names_the_import_command() {
        let said = |body: &[u8]| decode(body).err().map(|error| error.message).unwrap_or_default();
        let texts: [&[u8]; 6] = [
            b"",
            b"{\"metric\":{\"__name__\":\"up\"},\"values\":[1],\"timestamps\":[1]}\n",
            b"time,value\n1,2\n",
            b"cpu value=1\n",
            b"PAR1\x15\x04",
            b"# TYPE a counter\na 1\n",
        ];
        for text in texts {
            assert_eq!(said(text), NO_FRAMES, "{}", String::from_utf8_lossy(text));
        }
        // A damaged HELLO keeps its own error.
        assert!(said(&[0, 0, 0, 0, 1, 0, 0, 0, 9, 9, 9, 9]).contains("checksum mismatch"));
    }
}
