//! Encodes a batch as the body of `POST /api/v1/import`, in frames of the native protocol.
//!
//! HELLO has the session, DICT the series, DATA a number and the records (`docs/format/wire.md`). A repeated body is stored once,
//! because session and number identify its records. Values of all types are kept bit for bit.

use std::sync::Arc;

use tacho_ingest::wire::{ClientFrame, DataFrame, DictFrame, Hello, Secret, VERSION};
use tacho_model::{Batch, EntrySeries, Labels, SampleSeries};

/// Size limit of a piece. A value and its time count as 20 bytes. With this limit, frames are smaller than 4 MiB.
const PIECE_BYTES_MAX: usize = 2 << 20;
const SAMPLE_BYTES: usize = 20;
/// Added to the bytes of the labels of each series, and to the bytes of each entry's body.
const RECORD_BYTES: usize = 32;

/// Cuts a batch into pieces. Each piece fits into one DATA frame. Equal batches give equal pieces.
pub fn pieces(batch: Batch) -> Vec<Batch> {
    let mut out = Pieces::default();
    for series in batch.samples {
        let labels = labels_bytes(&series.labels);
        let mut rest = series.samples.as_slice();
        while !rest.is_empty() {
            out.make_room(labels + SAMPLE_BYTES);
            let room = (PIECE_BYTES_MAX - out.bytes - labels) / SAMPLE_BYTES;
            let (now, later) = rest.split_at(room.min(rest.len()));
            out.bytes += labels + now.len() * SAMPLE_BYTES;
            let labels = Arc::clone(&series.labels);
            out.piece.samples.push(SampleSeries { labels, samples: now.to_vec() });
            rest = later;
        }
    }
    for series in batch.entries {
        let labels = labels_bytes(&series.labels);
        for entry in series.entries {
            let bytes = RECORD_BYTES + entry.body.as_bytes().len();
            out.make_room(labels + bytes);
            out.bytes += bytes;
            match out.piece.entries.last_mut() {
                Some(last) if Arc::ptr_eq(&last.labels, &series.labels) => last.entries.push(entry),
                _ => {
                    out.bytes += labels;
                    let labels = Arc::clone(&series.labels);
                    out.piece.entries.push(EntrySeries { labels, entries: vec![entry] });
                }
            }
        }
    }
    out.make_room(PIECE_BYTES_MAX);
    out.done
}

#[derive(Default)]
struct Pieces {
    done: Vec<Batch>,
    piece: Batch,
    bytes: usize,
}

impl Pieces {
    /// Ends the current piece if `bytes` more do not fit.
    fn make_room(&mut self, bytes: usize) {
        if self.bytes + bytes > PIECE_BYTES_MAX && !self.piece.is_empty() {
            self.done.push(std::mem::take(&mut self.piece));
            self.bytes = 0;
        }
    }
}

fn labels_bytes(labels: &Labels) -> usize {
    RECORD_BYTES + labels.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>()
}

pub fn body(piece: &Batch, (session, secret): (u128, Option<Secret>), seq: u64) -> Vec<u8> {
    let hello =
        Hello { version_min: VERSION, version_max: VERSION, session, pairs: vec![], secret, token: None };
    let mut out = Vec::new();
    ClientFrame::Hello(hello).encode(&mut out);
    let base = piece.samples.iter().find_map(|series| Some(series.samples.first()?.at)).unwrap_or(0);
    let mut dictionary = DictFrame::new();
    let mut data = DataFrame::new(seq, base);
    let mut ids = 1..;
    for (series, id) in piece.samples.iter().zip(&mut ids) {
        dictionary.series(id, series.labels.iter());
        data.samples(id, &series.samples);
    }
    for (series, id) in piece.entries.iter().zip(&mut ids) {
        dictionary.series(id, series.labels.iter());
        series.entries.iter().for_each(|entry| data.entry(id, entry));
    }
    out.extend(dictionary.finish());
    out.extend(data.finish());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_ingest::wire::{DICT_IDS_MAX, FRAME_BODY_BYTES_MAX};
    use tacho_model::{Body, Entry, Sample, Value};

    fn labels(name: &str) -> Arc<Labels> {
        Arc::new(Labels::new([(tacho_model::NAME, name)]).unwrap())
    }

    #[test]
    fn no_record_is_lost_and_every_frame_fits() {
        let samples = |n: i64| (0..n).map(|at| Sample { at, value: Value::I64(i64::MIN) }).collect();
        let many = (0..80_000).map(|n| SampleSeries { labels: labels(&n.to_string()), samples: samples(1) });
        let long = SampleSeries { labels: labels("long"), samples: samples(300_000) };
        let body = |n: usize| Entry { at: 0, body: Body::Bytes(vec![7; n].into()) };
        let large = EntrySeries { labels: labels("log"), entries: (0..6).map(|_| body(1 << 20)).collect() };
        let batch = Batch { samples: many.chain([long]).collect(), entries: vec![large], ..Batch::default() };
        let counts = batch.counts();
        let pieces = pieces(batch);
        let mut got = [0; 3];
        for piece in &pieces {
            got.iter_mut().zip(piece.counts()).for_each(|(sum, n)| *sum += n);
            assert!(super::body(piece, (1, None), 1).len() < FRAME_BODY_BYTES_MAX as usize);
            assert!(((piece.samples.len() + piece.entries.len()) as u64) < DICT_IDS_MAX);
        }
        assert_eq!(got, counts);
    }
}
