//! Writes over HTTP: Prometheus remote write 1.0 and InfluxDB line protocol.
//!
//! Step before: `admission.rs` reads the body. Step after: `crates/store/src/store.rs`. The response 204 is sent when the batch
//! is on disk. If records are refused, the error names the first few, and the valid records of the request are stored.

use std::fmt::Display;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::routing::post;
use tacho_api::refusal;
use tacho_ingest::line_protocol::{self, Precision};
use tacho_ingest::{Rejects, remote_write};
use tacho_model::{Batch, KnownSamples, Spelling};
use tacho_store::{Appended, Learned, Refused};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::app::App;
use super::body::{self, Packed};
use super::error::ApiError;
use super::params::Params;
use super::route::{Need, Route};
use super::turn::away;
use crate::access::{Access, Writer, Written};
use crate::decoding::{Decoding, Hold, batch_bytes};
use crate::received::{Received, Services};

type Answer = Result<StatusCode, ApiError>;

pub fn routes() -> Vec<Route> {
    vec![
        Route::new("/api/v1/write", Need::Write, post(remote_write)),
        Route::new("/write", Need::Write, post(lines)),
        Route::new("/api/v2/write", Need::Write, post(lines)),
    ]
}

async fn remote_write(
    State(app): State<Arc<App>>,
    access: Access,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let content_type = headers.get(header::CONTENT_TYPE).map_or("", |v| v.to_str().unwrap_or("?"));
    if content_type != "application/x-protobuf"
        && content_type != "application/x-protobuf;proto=prometheus.WriteRequest"
    {
        return Err(ApiError::unsupported(format!(
            "content-type {content_type:?} is not supported: send remote write 1.0, application/x-protobuf"
        )));
    }
    let bytes_max = app.config.body_bytes_max;
    let packed = Packed::new(&headers, body, bytes_max)?;
    let message_bytes = move |body: &[u8]| Ok(remote_write::message_bytes(body, bytes_max)?);
    let spellings = app.writer(&access).spellings();
    let samples_known = app.metrics.decoders.samples_known.with(["remote-write"]);
    let decode = move |bytes: &[u8]| {
        let decoded = match &spellings {
            Some(spellings) => remote_write::decode_known(bytes, bytes_max, &mut spellings.finder())?,
            None => remote_write::decode(bytes, bytes_max)?,
        };
        // Senders order series differently, so each series is a run (see `Runs`) of its own.
        let runs = vec![1; decoded.batch.samples.len()];
        let remote_write::Decoded { batch, known, spellings, rejects } = decoded;
        samples_known.add(known.samples().len() as u64);
        Ok(Records { batch, known, spellings, runs, rejects })
    };
    keep((&app, &access), "remote-write", decoded(&app, "remote-write", packed, message_bytes, decode).await?)
        .await
}

async fn lines(
    State(app): State<Arc<App>>,
    access: Access,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let params = Params::from_uri(&uri)?;
    let precision = match params.get("precision") {
        Some(text) => text
            .parse::<Precision>()
            .map_err(|e| ApiError::bad(format!("invalid parameter \"precision\": {e}")))?,
        None => Precision::Assumed,
    };
    let packed = Packed::new(&headers, body, app.config.body_bytes_max)?;
    let now = app.clock.now();
    let decoders = app.decoders.clone();
    let resets = app.metrics.decoders.resets.with([]);
    let samples_known = app.metrics.decoders.samples_known.with(["line"]);
    let spellings = app.writer(&access).spellings();
    let decode = move |bytes: &[u8]| {
        let decoded = decoders.with(|decoder| {
            let before = decoder.resets();
            let decoded = match &spellings {
                Some(spellings) => decoder.decode_known(bytes, precision, now, &mut spellings.finder()),
                None => decoder.decode(bytes, precision, now),
            };
            resets.add(decoder.resets() - before);
            decoded
        });
        let line_protocol::Decoded { batch, known, spellings, runs, rejects } = decoded;
        samples_known.add(known.samples().len() as u64);
        Ok(Records { batch, known, spellings, runs, rejects })
    };
    let message_bytes = |body: &[u8]| Ok(body.len());
    keep((&app, &access), "line", decoded(&app, "line", packed, message_bytes, decode).await?).await
}

async fn decoded<R: Send + 'static>(
    app: &App,
    protocol: &'static str,
    packed: Packed,
    message_bytes: impl Fn(&[u8]) -> Result<usize, ApiError>,
    decode: impl FnOnce(&[u8]) -> Result<Records<R>, ApiError> + Send + 'static,
) -> Result<Decoded<R>, ApiError> {
    in_turn((&app.decoding, &app.services), packed, message_bytes, decode)
        .await
        .inspect_err(|error| count_wait(app, protocol, error))
}

pub(super) fn count_wait(app: &App, protocol: &'static str, error: &ApiError) {
    if error.retry_after.is_some() {
        app.metrics.sender_waits.with([protocol]).add(1);
    }
}

/// Lengths of runs of sample series, in the order of the batch. The series of a run have equal labels except for the name.
type Runs = Vec<usize>;

struct Records<R> {
    batch: Batch,
    /// Samples of series that the store knows, without labels.
    known: KnownSamples,
    /// The spelling of each sample series of the batch. Empty if the decoder did not ask the store for known series.
    spellings: Vec<Spelling>,
    runs: Runs,
    rejects: Rejects<R>,
}

struct Decoded<R> {
    batch: Batch,
    known: KnownSamples,
    /// What the store learns about the series when they are stored.
    learned: Vec<Learned>,
    rejects: Rejects<R>,
    /// Size of the body without gzip, bytes. A body in Snappy is still compressed.
    bytes: usize,
    received: Received,
    turn: Turn,
}

/// The permit of a write, and the memory reserved for its records.
type Turn = (OwnedSemaphorePermit, Hold);

/// Decompresses and decodes on a blocking thread, because this may take a tenth of a second. The permit is held until the
/// result is dropped, and at least until the decoding has ended.
async fn in_turn<R: Send + 'static>(
    (decoding, services): (&Decoding, &Arc<Services>),
    packed: Packed,
    message_bytes: impl Fn(&[u8]) -> Result<usize, ApiError>,
    decode: impl FnOnce(&[u8]) -> Result<Records<R>, ApiError> + Send + 'static,
) -> Result<Decoded<R>, ApiError> {
    let (turn, body, mut hold) = body::unpacked(decoding, packed, message_bytes).await?;
    let services = services.clone();
    let work = move || {
        let Records { batch, known, spellings, runs, rejects } = decode(&body)?;
        let bytes = body.len();
        let learned = services.learned(&batch, &spellings);
        hold.shrink(bytes + batch_bytes(&batch) + known.bytes() + learned.capacity() * size_of::<Learned>());
        let received = Received::of(&batch, runs).and(&known, &services);
        Ok(Decoded { batch, known, learned, rejects, bytes, received, turn: (turn, hold) })
    };
    tokio::task::spawn_blocking(work).await.map_err(|e| ApiError::internal(format!("decoding ended: {e}")))?
}

async fn keep<R: Display>(
    (app, access): (&App, &Access),
    protocol: &'static str,
    decoded: Decoded<R>,
) -> Answer {
    let Decoded { batch, known, learned, rejects, bytes, received, turn } = decoded;
    let metrics = &app.metrics;
    metrics.received_bytes.with([protocol]).add(bytes as u64);
    metrics.records_refused.with([protocol]).add(rejects.count);
    let writer = app.writer(access);
    let (appended, turn) = append(&writer, batch, known, turn).await?;
    let refused = match appended {
        Ok(Written::Wait { seconds, reason }) => {
            metrics.sender_waits.with([protocol]).add(1);
            return Err(ApiError::too_many(reason).after(seconds));
        }
        Ok(Written::Appended(Appended::Partly(refused))) => refused,
        Ok(Written::Appended(Appended::Stored | Appended::Repeated)) => Refused::default(),
        Err(error) => {
            if error.retryable() {
                metrics.sender_waits.with([protocol]).add(1);
            }
            return Err(error.into());
        }
    };
    metrics.records_refused.with([protocol]).add(refused.records.iter().sum::<usize>() as u64);
    received.without(&refused, &app.services).add_to(metrics);
    if !learned.is_empty() {
        // A body may have a million new series. The turn is held until they are learned, even if the client disconnects.
        let work = move || {
            writer.learn(&learned);
            drop(turn);
        };
        away(work).await?;
    }
    if rejects.is_empty() && refused.series == 0 {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(refusal_error(&rejects, &refused))
}

/// The checks of a batch with more series than this take some milliseconds. They run on a blocking thread, so that they do not
/// delay other requests.
const SERIES_SMALL_MAX: usize = 4_096;

/// Appends a batch and returns the turn. The turn of a batch with many series is held until the batch is stored, even if the
/// client disconnects. For a smaller batch, a disconnect releases the turn, even if the journal has not written the batch yet.
/// The batch then counts only toward the memory limit of the store.
async fn append(
    writer: &Writer,
    batch: Batch,
    known: KnownSamples,
    turn: Turn,
) -> Result<(tacho_store::Result<Written>, Turn), ApiError> {
    if batch.samples.len() + batch.entries.len() + known.runs() <= SERIES_SMALL_MAX {
        return Ok((writer.append_known(batch, known, None).await, turn));
    }
    let (writer, runtime) = (writer.clone(), Handle::current());
    away(move || (runtime.block_on(writer.append_known(batch, known, None)), turn)).await
}

/// Combines the records that were refused while decoding, and the series that the store refused at its limits.
fn refusal_error<R: Display>(rejects: &Rejects<R>, refused: &Refused) -> ApiError {
    let series = refusal::summaries(refused.named.iter().map(|series| series.reason.as_str()));
    let named: Vec<String> = rejects.named.iter().map(ToString::to_string).chain(series).collect();
    let count = rejects.count + refused.series as u64;
    let more = count.saturating_sub((rejects.named.len() + refused.named.len()) as u64);
    let tail = if more > 0 { format!("; and {more} more") } else { String::new() };
    ApiError::bad(format!("{count} refused, the others are kept: {}{tail}", named.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use tacho_model::Kind;
    use tacho_store::RefusedSeries;

    #[test]
    fn refused_lines_and_refused_series_are_reported_together() {
        let rejects = Rejects { named: vec!["line 2, column 1: bad"], count: 3 };
        let named = RefusedSeries { kind: Kind::Sample, position: 0, reason: "series a: no room".to_owned() };
        let refused = Refused { series: 2, records: [7, 0, 0], named: vec![named], ..Refused::default() };
        let error = refusal_error(&rejects, &refused);
        assert_eq!(error.status, StatusCode::BAD_REQUEST);
        let expect = "5 refused, the others are kept: line 2, column 1: bad; series a: no room; and 3 more";
        assert_eq!(error.message, expect);
    }

    #[tokio::test]
    async fn a_permit_is_held_until_the_decoding_ends_after_the_client_disconnects() {
        let decoding = Arc::new(Decoding::new(0, 0));
        let others: Vec<_> = (0..15).map(|_| decoding.turn()).collect();
        let _others = futures_util::future::join_all(others).await;
        let packed = Packed::new(&HeaderMap::new(), Bytes::from("a value=1"), 100).unwrap();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (proceed, may_proceed) = channel::<()>();
        let decode = move |_: &[u8]| {
            begun.send(()).unwrap();
            may_proceed.recv().unwrap();
            Ok(Records::<String> {
                batch: Batch::default(),
                known: KnownSamples::default(),
                spellings: Vec::new(),
                runs: Runs::new(),
                rejects: Rejects::default(),
            })
        };
        let taken = decoding.clone();
        let request = tokio::spawn(async move {
            let services = Arc::default();
            in_turn((&taken, &services), packed, |body| Ok(body.len()), decode).await.map(|d| d.bytes)
        });
        has_begun.await.unwrap();
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        let next = decoding.turn();
        tokio::pin!(next);
        assert!(futures_util::poll!(&mut next).is_pending());
        proceed.send(()).unwrap();
        assert!(next.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_reserved_for_the_decompressed_size_of_a_body() {
        // This budget suffices for the records of one message of 1 MiB.
        let decoding = Decoding::new(0, 1 << 20);
        let body = snap::raw::Encoder::new().compress_vec(&vec![0; 700_000]).unwrap();
        let taken = async || {
            let packed = Packed::new(&HeaderMap::new(), Bytes::from(body.clone()), 1 << 20)?;
            body::unpacked(&decoding, packed, |body| Ok(remote_write::message_bytes(body, 1 << 20)?)).await
        };
        let first = taken().await.unwrap();
        assert_eq!(taken().await.map(drop).unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
        drop(first);
        assert!(taken().await.is_ok());
    }
}
