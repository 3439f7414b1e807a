//! Sends the pieces of the feed, saves the progress, and verifies the store at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use tacho_api::units;
use tacho_ingest::json_lines;
use tacho_model::{Clock, Timestamp};
use tacho_server::clock::SystemClock;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;

use super::Import;
use super::checkpoint::Checkpoint;
use super::feed::{Feed, Outcome, Piece, Step, other_files};
use super::findings::{Findings, records};
use super::formats::Formats;
use super::ledger::Ledger;
use super::report::{Summary, whole};
use super::source::is_stdin;
use super::state::{self, Keeper, Refused};
use super::target::Target;
use super::verify;
use crate::command::ask;
use crate::failure::Failure;
use crate::signal;
use crate::terminal::progress;

/// Number of prepared pieces that can wait in the channel while another piece is sent.
const AHEAD: usize = 3;
/// The state is saved after a piece if the last save is at least this long ago.
const SAVE_EVERY: Duration = Duration::from_millis(250);
/// Minimum interval between saves, as a multiple of the time that the last save took. A save waits for the disk.
const SAVE_SHARE: u32 = 20;
/// Limit on the records that a dry run prints.
const SHOWN: usize = 3;

pub async fn import(command: &Import) -> Result<(), Failure> {
    let settings = format!("{:?} {:?}", command.format, command.reading);
    let server = ask::server_url(command.server.as_deref());
    let target = command.data.as_ref().map_or_else(|| server.clone(), |data| data.display().to_string());
    let job = state::job(&command.files, &settings, &target);
    let now = SystemClock.now();
    feed(command, now).formats.check(&command.files)?;
    let mut keeper = Keeper::open(command.state.as_deref(), &command.files, job, command.again, now)?;
    if keeper.state.done {
        println!("nothing to do: {} says that this import is complete; {}", keeper.place(), again(&keeper));
        return Ok(());
    }
    let checkpoint = begin(command, &keeper);
    let target = Target::open((command.server.as_deref(), &command.token), command.data.as_deref()).await;
    let mut target = target.inspect_err(|_| keeper.forget_if_idle())?;
    let begun = Instant::now();
    let feed = Arc::new(feed(command, keeper.state.now));
    let earlier = keeper.state.samples.count + keeper.state.entries.count;
    let bar = progress::bar(total_bytes(&command.files), "import");
    let sent = send(&feed, checkpoint, &mut target, &mut keeper, &bar).await;
    bar.finish_and_clear();
    keeper.save()?;
    let outcome = sent.inspect_err(|_| keeper.forget_if_idle())?;
    outcome.findings.print(command.rejects.as_deref());
    if outcome.stopped {
        return Err(stopped(&keeper));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let refused = keeper.state.refused.clone();
    keeper.state.sent = true;
    keeper.save()?;
    let mut verdict = match command.no_verify {
        true => None,
        false => Some(check(&mut target, &outcome.ledger, &feed, &keeper).await?),
    };
    verdict.iter_mut().for_each(|verdict| verdict.ignore_refused(refused.records));
    target.close().await?;
    let Ledger { accounts, samples, entries } = &outcome.ledger;
    let (series, refused) = (accounts.len(), &refused);
    let verdict = verdict.as_ref();
    let summary =
        Summary { samples: *samples, entries: *entries, series, earlier, seconds, refused, verdict };
    match command.json {
        true => ask::print_json(&summary.json(&outcome.findings)),
        false => summary.print(&outcome.findings),
    }
    match verdict {
        Some(verdict) if !verdict.is_good() => Err(Failure::new(
            "the records in the store differ from those sent",
        )
        .hint(
            "possible causes: the store had records of these series and times before, or some were deleted",
        )),
        verdict => {
            keeper.finish()?;
            whole(&outcome.findings, refused, keeper.is_retried())?;
            match verdict.and_then(|verdict| Some((verdict, verdict.expired.first_key_value()?))) {
                Some((verdict, (keep_ns, records))) => {
                    Err(Failure::partly(verdict.too_old(*records, *keep_ns))
                        .hint("[[retention]] in the server's tacho.toml says how long records are kept"))
                }
                None => Ok(()),
            }
        }
    }
}

/// What `--again` does after a complete import.
fn again(keeper: &Keeper) -> String {
    match keeper.state.refused.records {
        0 => "--again repeats it".to_owned(),
        records => format!(
            "{} refused; --again sends all records again: entries are then stored twice, samples once",
            units::counted(records, "record was", "records were")
        ),
    }
}

/// The checkpoint to resume from, if an earlier run has sent records. Prints how this run continues that run.
fn begin(command: &Import, keeper: &Keeper) -> Option<Checkpoint> {
    if keeper.refused_before > 0 {
        let refused = units::counted(keeper.refused_before, "record", "records");
        eprintln!("sending all samples again, because a token refused {refused} in an earlier run");
    }
    if keeper.state.seq > 0 { resume(command, keeper) } else { None }
}

/// The checkpoint to resume from. Prints the position.
fn resume(command: &Import, keeper: &Keeper) -> Option<Checkpoint> {
    let checkpoint = keeper.checkpoint();
    let checkpoint =
        checkpoint.and_then(|bytes| Checkpoint::decode(&bytes, &keeper.state, command.rejects.as_deref()));
    let sent = records(keeper.state.samples.count, keeper.state.entries.count);
    let place = match &checkpoint {
        Some(Checkpoint { start, .. }) => match command.files.get(start.file) {
            Some(file) => format!("reading from {} of {}", start.mark, file.display()),
            None => "reading nothing".to_owned(),
        },
        None => "reading the files from the beginning".to_owned(),
    };
    eprintln!("resuming after {sent}, as recorded in {}; {place}", keeper.place());
    checkpoint
}

async fn check(
    target: &mut Target,
    ledger: &Ledger,
    feed: &Feed,
    keeper: &Keeper,
) -> Result<verify::Verdict, Failure> {
    let can_read_again = !feed.files.iter().any(|file| is_stdin(file));
    let verdict = verify::verify(target, ledger, can_read_again.then_some(feed)).await;
    verdict.map_err(|failure| unverified(failure, keeper))
}

/// The failure of a verification. All records were sent before it.
fn unverified(failure: Failure, keeper: &Keeper) -> Failure {
    let is_role = failure.message().contains("does not have the role read");
    let refused = &keeper.state.refused;
    let what = match refused.records {
        0 => "the records are stored, but not verified".to_owned(),
        records => format!(
            "{} refused ({}), the others are stored, but not verified",
            units::counted(records, "record was", "records were"),
            refused.reasons.join("; ")
        ),
    };
    let failure = failure.within(&what);
    match (is_role, keeper.is_kept()) {
        (false, _) => failure,
        (true, true) => failure.hint(
            "repeat the command with a token that also has the role read, which verifies them, or with --no-verify: no record \
             is stored twice",
        ),
        (true, false) => failure.hint(
            "the verification needs a token that also has the role read; --no-verify skips it. If you repeat the command, \
             entries are stored twice, samples once",
        ),
    }
}

fn stopped(keeper: &Keeper) -> Failure {
    let sent = records(keeper.state.samples.count, keeper.state.entries.count);
    let failure = Failure::new(format!("interrupted after {sent}"));
    match keeper.is_kept() {
        true => failure
            .hint(format!("the same command resumes the import: its progress is in {}", keeper.place())),
        false => failure,
    }
}

fn feed(command: &Import, now: Timestamp) -> Feed {
    Feed {
        formats: Formats { format: command.format, reading: command.reading.clone(), now },
        rejects: command.rejects.clone(),
        ..Feed::of(command.files.clone(), command.reading.clone())
    }
}

async fn send(
    feed: &Arc<Feed>,
    checkpoint: Option<Checkpoint>,
    target: &mut Target,
    keeper: &mut Keeper,
    bar: &ProgressBar,
) -> Result<Outcome, Failure> {
    let interrupted = watch_signals(Arc::clone(&feed.stop))?;
    let (to, from) = channel(AHEAD);
    let thread = {
        let (feed, state) = (Arc::clone(feed), keeper.state.clone());
        tokio::task::spawn_blocking(move || feed.run(&to, &state, checkpoint))
    };
    let drained = drain(feed, target, keeper, bar, from).await;
    interrupted.abort();
    // The thread ends, because `drain` has closed the channel.
    let outcome = thread.await.map_err(|e| Failure::new(format!("reading ended: {e}")))?;
    drained?;
    outcome
}

async fn drain(
    feed: &Feed,
    target: &mut Target,
    keeper: &mut Keeper,
    bar: &ProgressBar,
    mut from: Receiver<Piece>,
) -> Result<(), Failure> {
    let (session, resumed, mut saved) =
        ((keeper.session(), keeper.secret()), keeper.state.clone(), Instant::now());
    let mut pause = SAVE_EVERY;
    while let Some(piece) = from.recv().await {
        bar.set_position(feed.read.load(Ordering::Relaxed));
        bar.set_message(records(piece.samples.count, piece.entries.count));
        if piece.seq <= resumed.seq {
            let same = (piece.samples, piece.entries) == (resumed.samples, resumed.entries);
            if piece.seq == resumed.seq && !same {
                return Err(other_files());
            }
            continue;
        }
        keeper.sends()?;
        let put = target.put(piece.batch, session, piece.seq, &feed.stop).await;
        let (records, reasons) = put.map_err(|failure| with_resume_hint(failure, keeper))?;
        keeper.state.refused.add(records, &reasons);
        let state = &mut keeper.state;
        (state.seq, state.file, state.offset) = (piece.seq, piece.file, piece.offset);
        (state.samples, state.entries) = (piece.samples, piece.entries);
        if let Some(checkpoint) = &piece.checkpoint {
            keeper.save_checkpoint(checkpoint)?;
            saved = Instant::now();
        }
        if saved.elapsed() >= pause {
            let begun = Instant::now();
            keeper.save()?;
            saved = Instant::now();
            pause = SAVE_EVERY.max(begun.elapsed() * SAVE_SHARE);
        }
        if feed.stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}

fn with_resume_hint(failure: Failure, keeper: &Keeper) -> Failure {
    match keeper.is_kept() {
        true => {
            let place = keeper.place();
            failure.hint(format!("the same command resumes the import: its progress is in {place}"))
        }
        false => failure,
    }
}

/// Ends the import after the current piece if the process receives SIGINT (Ctrl-C) or SIGTERM.
fn watch_signals(stop: Arc<AtomicBool>) -> Result<JoinHandle<()>, Failure> {
    let signal = signal::stop().map_err(Failure::new)?;
    Ok(tokio::spawn(async move {
        signal.await;
        stop.store(true, Ordering::Relaxed);
    }))
}

fn total_bytes(files: &[std::path::PathBuf]) -> u64 {
    files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|metadata| metadata.len()).sum()
}

pub fn dry(command: &Import) -> Result<(), Failure> {
    let feed = feed(command, SystemClock.now());
    let bar = progress::bar(total_bytes(&command.files), "reading");
    let (mut ledger, mut findings) = (Ledger::default(), Findings::default());
    let mut shown = Vec::new();
    feed.each(&mut findings, |Step { batch, .. }| {
        bar.set_position(feed.read.load(Ordering::Relaxed));
        ledger.take(&batch);
        let samples = batch.samples.iter().map(|series| {
            let mut line = String::new();
            json_lines::write_samples(&mut line, &series.labels, series.samples.get(..1).unwrap_or_default());
            line
        });
        let entries = batch.entries.iter().map(|series| {
            let mut line = String::new();
            json_lines::write_entries(&mut line, &series.labels, series.entries.get(..1).unwrap_or_default());
            line
        });
        shown.extend(samples.chain(entries).take(SHOWN.saturating_sub(shown.len())));
        true
    })?;
    bar.finish_and_clear();
    findings.print(command.rejects.as_deref());
    let said = records(ledger.samples.count, ledger.entries.count);
    if command.json {
        let refused = &Refused::default();
        let (samples, entries, series) = (ledger.samples, ledger.entries, ledger.accounts.len());
        let summary = Summary { samples, entries, series, earlier: 0, seconds: 0.0, refused, verdict: None };
        ask::print_json(&summary.json(&findings));
    } else {
        shown.iter().for_each(|line: &String| print!("{line}"));
        let series = units::count(ledger.accounts.len() as u64);
        let rows = units::counted(findings.rows, "row", "rows");
        println!("would import {said} of {series} series from {rows}");
    }
    whole(&findings, &Refused::default(), false)
}
