//! Tests that a resumed import gives the same result as an uninterrupted import.

use std::io::Write;

use clap::Parser;
use tacho_model::{Kind, SeriesId};

use super::*;
use crate::command::import::Import;
use crate::command::import::ledger::Account;
use crate::command::import::state::Keeper;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    import: Import,
}

struct Place {
    dir: tempfile::TempDir,
    files: Vec<PathBuf>,
    args: Vec<String>,
}

struct Ended {
    pieces: Vec<Piece>,
    outcome: Outcome,
    rejects: String,
}

impl Place {
    fn new(files: &[(&str, &[u8])], args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files = files.iter().map(|(name, bytes)| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        });
        let files = files.collect();
        Self { dir, files, args: args.iter().map(|arg| (*arg).to_owned()).collect() }
    }

    fn state(&self) -> State {
        let state = self.dir.path().join("state");
        Keeper::open(Some(&state), &self.files, "job".into(), false, 5).unwrap().state
    }

    fn rejects(&self) -> PathBuf {
        self.dir.path().join("rejects")
    }

    fn run(&self, state: &State, from: Option<Checkpoint>) -> Result<Ended, Failure> {
        let line = ["import".to_owned(), "x".to_owned()].into_iter().chain(self.args.iter().cloned());
        let import = Line::try_parse_from(line).unwrap().import;
        let mut feed = Feed::of(self.files.clone(), import.reading);
        feed.formats.format = import.format;
        feed.rejects = Some(self.rejects());
        feed.checkpoint_every = Duration::ZERO;
        let (to, mut pieces) = tokio::sync::mpsc::channel(10_000);
        let outcome = feed.run(&to, state, from)?;
        drop(to);
        let pieces = std::iter::from_fn(|| pieces.blocking_recv()).collect();
        let rejects = std::fs::read_to_string(self.rejects()).unwrap();
        Ok(Ended { pieces, outcome, rejects })
    }

    fn taken_up(&self, state: &State, bytes: &[u8], seq: u64) -> Option<Checkpoint> {
        let mut state = state.clone();
        state.seq = seq;
        Checkpoint::decode(bytes, &state, Some(&self.rejects()))
    }
}

fn accounts(outcome: &Outcome) -> Vec<(&(Kind, SeriesId), &Account)> {
    let mut list: Vec<_> = outcome.ledger.accounts.iter().collect();
    list.sort_by_key(|(id, _)| **id);
    list
}

/// Checks that a run makes at least `checkpoints_min` checkpoints, and that resuming from each of them gives the same result.
fn check(files: &[(&str, &[u8])], args: &[&str], checkpoints_min: usize) {
    let place = Place::new(files, args);
    let state = place.state();
    let whole = place.run(&state, None).unwrap();
    let mut checkpoints = 0;
    for (nth, piece) in whole.pieces.iter().enumerate() {
        let Some(bytes) = &piece.checkpoint else { continue };
        checkpoints += 1;
        assert!(
            place.taken_up(&state, bytes, piece.seq - 1).is_none(),
            "a checkpoint ahead of the state is used"
        );
        let from = place.taken_up(&state, bytes, piece.seq).unwrap();
        let rest = place.run(&state, Some(from)).unwrap();
        let expect = &whole.pieces[nth + 1..];
        assert_eq!(rest.pieces.len(), expect.len(), "after piece {}", piece.seq);
        for (got, expect) in rest.pieces.iter().zip(expect) {
            let of =
                |piece: &Piece| (piece.seq, piece.samples, piece.entries, piece.file.clone(), piece.offset);
            assert_eq!((of(got), &got.batch), (of(expect), &expect.batch));
        }
        assert_eq!(rest.outcome.findings, whole.outcome.findings);
        assert_eq!(rest.rejects, whole.rejects);
        let (got, expect) = (accounts(&rest.outcome), accounts(&whole.outcome));
        assert_eq!(format!("{got:?}"), format!("{expect:?}"));
    }
    assert!(checkpoints >= checkpoints_min, "{checkpoints} checkpoints of {} pieces", whole.pieces.len());
}

/// A text of rows with broken rows at regular distances.
fn rows(n: usize, good: impl Fn(usize) -> String, broken: &str) -> Vec<u8> {
    let row = |nth: usize| if nth % 50_001 == 50_000 { broken.to_owned() } else { good(nth) };
    (0..n).map(row).collect::<String>().into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn csv(n: usize) -> Vec<u8> {
    let rows = rows(n, |at| format!("{at};{at},5;{}\n", at % 7), "soon;1;2\n");
    [b"time;a;b\n".as_slice(), &rows].concat()
}

#[test]
fn row_files_resume_at_any_checkpoint() {
    let csv = csv(250_000);
    check(&[("a.csv", &csv)], &[], 3);
    check(&[("a.csv.gz", &gzip(&csv))], &[], 3);
    let jsonl =
        |at: usize| format!("{{\"__name__\":\"n\",\"l\":\"{}\",\"time\":{at},\"value\":{at}}}\n", at % 3);
    check(&[("a.jsonl", &rows(60_000, jsonl, "{\n"))], &[], 2);
    let line = |at: usize| format!("m,l={} v={at},t=\"two\nlines\" {at}\n", at % 5);
    check(&[("a.lp", &rows(60_000, line, "m v=x 1\n"))], &["--precision", "s"], 2);
    // In OpenMetrics, types precede their samples, so a file is always read from its beginning. Files that were read completely
    // are skipped.
    let om = format!("# TYPE r counter\n{}# EOF\n", "r_total 1 1\n".repeat(200_000));
    check(&[("a.om", om.as_bytes()), ("b.csv", b"time,x\n1,1\n"), ("c.om", om.as_bytes())], &[], 1);
    // The numbers of the second file are ambiguous. The number format detected in the first file applies.
    let unclear = rows(300_000, |at| format!("{at};1,234\n"), "\n");
    let unclear = [b"time;a\n".as_slice(), &unclear].concat();
    check(&[("a.csv", b"time;a\n1;1,5\n2;2,25\n"), ("b.csv", &unclear)], &[], 3);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_files_resume_at_any_checkpoint() {
    use tacho_ingest::parquet::Writer;
    use tacho_model::{Labels, NAME, Sample, Value};
    let mut writer = Writer::new(Vec::new(), ["nth".to_owned()], Kind::Sample).unwrap();
    for nth in 0..5 {
        let nth_label = nth.to_string();
        let labels = Arc::new(Labels::new([(NAME, "n"), ("nth", &nth_label)]).unwrap());
        let value = |at: i64| if at % 2 == 0 { Value::F64(at as f64) } else { Value::I64(at) };
        let samples: Vec<Sample> = (0..70_000).map(|at| Sample { at, value: value(at) }).collect();
        writer.samples(&labels, &samples).unwrap();
    }
    check(&[("a.parquet", &writer.finish().unwrap()), ("b.csv", b"time,x\n1,1\n")], &[], 5);
}

#[test]
fn changes_in_the_head_or_right_before_the_checkpoint_prevent_resuming() {
    let csv = csv(120_000);
    for (changed, expect) in [(0, false), (csv.len() / 2, true), (1_048_000, false)] {
        let place = Place::new(&[("a.csv", &csv)], &[]);
        let state = place.state();
        let whole = place.run(&state, None).unwrap();
        let first = whole.pieces.iter().find(|piece| piece.checkpoint.is_some()).unwrap();
        let from = || place.taken_up(&state, first.checkpoint.as_ref().unwrap(), first.seq).unwrap();
        let mut other = csv.clone();
        other[changed] ^= 1;
        std::fs::write(&place.files[0], &other).unwrap();
        assert_eq!(place.run(&state, Some(from())).is_ok(), expect, "byte {changed}");
        std::fs::write(&place.files[0], &csv[..1000]).unwrap();
        assert!(place.run(&state, Some(from())).is_err(), "a truncated file is resumed");
    }
}

#[test]
fn a_checkpoint_that_does_not_match_is_ignored() {
    let place = Place::new(&[("a.csv", &csv(100_000))], &[]);
    let state = place.state();
    let whole = place.run(&state, None).unwrap();
    let first = whole.pieces.iter().find(|piece| piece.checkpoint.is_some()).unwrap();
    let (bytes, seq) = (first.checkpoint.clone().unwrap(), first.seq);
    assert!(place.taken_up(&state, &bytes, seq).is_some());
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    assert!(place.taken_up(&state, &damaged, seq).is_none());
    assert!(place.taken_up(&state, &bytes[..bytes.len() / 2], seq).is_none());
    let mut other = state.clone();
    other.job = "other".into();
    assert!(place.taken_up(&other, &bytes, seq).is_none());
    std::fs::write(place.rejects(), "").unwrap();
    assert!(
        place.taken_up(&state, &bytes, seq).is_none(),
        "a checkpoint is used although the file of broken rows is too short"
    );
}
