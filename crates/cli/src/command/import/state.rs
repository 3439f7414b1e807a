//! The state file records the progress of an import. After an interruption, the same command resumes the import.
//!
//! The same files are always cut into the same pieces (the records of one request each), and pieces are numbered. So the number
//! of the last stored piece is enough to resume. The store keeps this number, too, and stores each piece only once. With a
//! checkpoint (`checkpoint.rs`), the records before the checkpoint are not decoded again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tacho_api::refusal;
use tacho_api::replace::{replace, replace_unsynced};
use tacho_api::tally::Tally;
use tacho_ingest::wire::Secret;
use tacho_model::Timestamp;
use tacho_store::draw_id;
use xxhash_rust::xxh3::xxh3_64;

use super::source::is_stdin;
use crate::failure::Failure;

const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    version: u32,
    /// The result of [`job`], which identifies the import.
    pub job: String,
    /// The session id, 32 hexadecimal digits.
    pub session: String,
    /// The secret of the session, 32 hexadecimal digits (`docs/format/wire.md`). `None` in states of earlier versions.
    #[serde(default)]
    secret: Option<String>,
    /// The time for records without a time, ns.
    pub now: Timestamp,
    /// Number of the last stored piece; 0 if none is stored.
    pub seq: u64,
    /// File of that piece.
    pub file: PathBuf,
    /// Position in the file after the block of that piece, as `Blocks::offset` counts it.
    pub offset: u64,
    /// Tally (count and checksum) of all pieces up to that piece.
    pub samples: Tally,
    pub entries: Tally,
    /// Records of these pieces that the store refused, and the reasons.
    #[serde(default)]
    pub refused: Refused,
    /// Whether all pieces are stored.
    #[serde(default)]
    pub sent: bool,
    /// Whether the import ended, with a verification unless it was skipped.
    pub done: bool,
}

impl State {
    /// Whether the import is repeated from the beginning: all pieces were sent, and a token refused a part of them, which another
    /// token may permit. Samples can be sent twice, entries cannot: the store would keep both copies.
    fn is_retried(&self) -> bool {
        let is_of_token = self.refused.reasons.iter().any(|why| refusal::is_of_token(why));
        (self.sent || self.done) && is_of_token && self.entries.count == 0
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    pub records: u64,
    /// Distinct reasons, without the series.
    pub reasons: Vec<String>,
    /// For each reason, the first series that was refused.
    #[serde(default)]
    pub series: Vec<String>,
}

/// Limit on [`Refused::reasons`].
const REASONS_MAX: usize = 10;

impl Refused {
    pub fn add(&mut self, records: u64, reasons: &[String]) {
        self.records += records;
        let is_same = |known: &str, why| refusal::limit(known) == refusal::limit(why);
        for reason in reasons {
            let (series, why) = refusal::parts(reason);
            if self.reasons.len() < REASONS_MAX && !self.reasons.iter().any(|known| is_same(known, why)) {
                self.reasons.push(why.to_owned());
                self.series.push(refusal::cut(series));
            }
        }
    }
}

/// The state and its file. An import of standard input, which cannot be read again, has a file only with `--state`.
pub struct Keeper {
    path: Option<PathBuf>,
    /// Whether this run began with a new state and has sent nothing yet.
    idle: bool,
    /// Whether the file existed before this run. An idle run does not replace it.
    earlier: bool,
    /// Number of records that an earlier run could not store because of its token, if this run sends all records again for that
    /// reason.
    pub refused_before: u64,
    pub state: State,
}

/// The checksum that identifies an import. It covers the settings, the target, and the path, length and modification time of
/// each file, but not the content of the files.
pub fn job(files: &[PathBuf], settings: &str, target: &str) -> String {
    let mut text = format!("{settings}\n{target}\n");
    for file in files {
        let metadata = std::fs::metadata(file).ok();
        let modified = metadata.as_ref().and_then(|m| m.modified().ok());
        text.push_str(&format!("{file:?} {:?} {modified:?}\n", metadata.map(|m| m.len())));
    }
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

impl Keeper {
    /// Loads the saved state of this import, or creates a new state. A new state replaces that of an earlier import only when the
    /// first piece is sent.
    pub fn open(
        path: Option<&Path>,
        files: &[PathBuf],
        job: String,
        again: bool,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let beside = || {
            let first = files.first().filter(|_| !files.iter().any(|file| is_stdin(file)))?;
            let mut name = first.file_name()?.to_owned();
            name.push(".tacho-import");
            Some(first.with_file_name(name))
        };
        let path = path.map(Path::to_owned).or_else(beside);
        let kept = match &path {
            Some(path) if !again => read(path)?,
            _ => None,
        };
        let kept = kept.filter(|kept| kept.job == job);
        let retried = kept.as_ref().filter(|kept| kept.is_retried());
        let refused_before = retried.map_or(0, |retried| retried.refused.records);
        // With the earlier time, samples without a time replace those that were stored.
        let now = retried.map_or(now, |retried| retried.now);
        let kept = kept.filter(|kept| !kept.is_retried());
        let secret = draw_id();
        let fresh = || State {
            version: VERSION,
            job: job.clone(),
            session: format!("{:032x}", Secret(secret.to_be_bytes()).session()),
            secret: Some(format!("{secret:032x}")),
            now,
            seq: 0,
            file: PathBuf::new(),
            offset: 0,
            samples: Tally::default(),
            entries: Tally::default(),
            refused: Refused::default(),
            sent: false,
            done: false,
        };
        let idle = kept.is_none();
        let earlier = path.as_ref().is_some_and(|path| path.exists());
        let keeper = Self { path, idle, earlier, refused_before, state: kept.unwrap_or_else(fresh) };
        keeper.save()?;
        Ok(keeper)
    }

    /// Ends the idle time of this run, and replaces an earlier state. Must be called before sending, because a piece may be
    /// stored even if no response arrives.
    pub fn sends(&mut self) -> Result<(), Failure> {
        let replaces = self.idle && self.earlier;
        self.idle = false;
        if replaces { self.save() } else { Ok(()) }
    }

    pub fn forget_if_idle(&self) {
        if let Some(path) = self.path.as_ref().filter(|_| self.idle && !self.earlier) {
            // A file that cannot be deleted is harmless.
            let _ = std::fs::remove_file(path);
        }
    }

    pub fn session(&self) -> u128 {
        u128::from_str_radix(&self.state.session, 16).unwrap_or(0)
    }

    pub fn secret(&self) -> Option<Secret> {
        let secret = u128::from_str_radix(self.state.secret.as_ref()?, 16).ok()?;
        Some(Secret(secret.to_be_bytes()))
    }

    /// No effect while an earlier state is kept.
    pub fn save(&self) -> Result<(), Failure> {
        let Some(path) = self.path.as_ref().filter(|_| !(self.idle && self.earlier)) else { return Ok(()) };
        let text = serde_json::to_string_pretty(&self.state).map_err(Failure::new)?;
        replace(path, text.as_bytes()).map_err(|e| cannot_write(path, &e))
    }

    /// Saves the state first, so that the checkpoint is never ahead of the state.
    pub fn save_checkpoint(&self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(path) = self.checkpoint_path() else { return Ok(()) };
        self.save()?;
        // A damaged or lost checkpoint only costs time, so it is not synced.
        replace_unsynced(&path, bytes).map_err(|e| cannot_write(&path, &e))
    }

    pub fn checkpoint(&self) -> Option<Vec<u8>> {
        std::fs::read(self.checkpoint_path()?).ok()
    }

    pub fn finish(&mut self) -> Result<(), Failure> {
        self.idle = false;
        self.state.done = true;
        self.save()?;
        // A complete import needs no checkpoint. A file that cannot be deleted is harmless.
        let _ = self.checkpoint_path().map(std::fs::remove_file);
        Ok(())
    }

    fn checkpoint_path(&self) -> Option<PathBuf> {
        let mut path = self.path.clone()?.into_os_string();
        path.push(".checkpoint");
        Some(path.into())
    }

    /// The path of the state file, for messages.
    pub fn place(&self) -> String {
        self.path.as_ref().map_or_else(String::new, |path| path.display().to_string())
    }

    pub fn is_kept(&self) -> bool {
        self.path.is_some()
    }

    /// Whether the same command sends all records again, after this import has ended.
    pub fn is_retried(&self) -> bool {
        self.is_kept() && self.state.is_retried()
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write the state file {}: {error}", path.display()))
        .hint("choose another with --state FILE")
}

fn read(path: &Path) -> Result<Option<State>, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Failure::new(format!("cannot read the state file {}: {e}", path.display()))),
    };
    let damaged = |cause: String| {
        Failure::new(format!("state file {} cannot be used: {cause}", path.display()))
            .hint("--again starts from the beginning: entries that are already stored are stored twice, samples once")
    };
    let state: State = serde_json::from_str(&text).map_err(|e| damaged(e.to_string()))?;
    match state.version {
        VERSION => Ok(Some(state)),
        other => Err(damaged(format!("it has version {other}, this program knows {VERSION}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_kept_once() {
        let mut refused = Refused::default();
        let values = |new: &str| {
            format!(
                "series a{{id={new:?}}}: label \"id\" already has 4 values, at most 4 are allowed (new: {new:?})"
            )
        };
        refused.add(7, &[values("x"), values("y}: z")]);
        let full = |series: &str| format!("series {series}: limit of 3 series is reached");
        refused.add(3, &[full("b"), full("c"), full("d{a=\": limit of 3\"}")]);
        let chunks = |stored: u32| format!("series e: limit of 9 chunks (chunks_max): {stored} are stored");
        refused.add(2, &[chunks(5)]);
        refused.add(2, &[chunks(6)]);
        let chunks = "limit of 9 chunks (chunks_max): 5 are stored";
        let why = [
            "label \"id\" already has 4 values, at most 4 are allowed",
            "limit of 3 series is reached",
            chunks,
        ];
        assert_eq!((refused.records, &*refused.reasons), (14, &why.map(str::to_owned)[..]));
        assert_eq!(refused.series, ["a{id=\"x\"}", "b", "e"]);
    }

    #[test]
    fn an_earlier_state_is_kept_until_the_first_piece_is_sent() {
        let dir = tempfile::tempdir().unwrap();
        let files = vec![dir.path().join("a.csv")];
        let place = dir.path().join("a.csv.tacho-import");
        let open = |job: &str, again: bool| Keeper::open(None, &files, job.into(), again, 5).unwrap();
        open("a", false).forget_if_idle();
        assert!(!place.exists(), "a run that sent nothing leaves no file");
        let mut first = open("a", false);
        first.state.seq = 3;
        first.sends().unwrap();
        first.save().unwrap();
        for (job, again) in [("a", true), ("b", false)] {
            let idle = open(job, again);
            idle.save().unwrap();
            idle.forget_if_idle();
            assert_eq!(open("a", false).state, first.state, "{job} {again}");
        }
        let mut next = open("a", true);
        next.sends().unwrap();
        assert_eq!(
            open("a", false).state,
            next.state,
            "the new session is saved before the first piece is sent"
        );
        next.forget_if_idle();
        let mut empty = open("a", true);
        empty.finish().unwrap();
        assert!(open("a", false).state.done, "an import without records is complete, too");
    }

    #[test]
    fn samples_that_a_token_refused_are_sent_again_with_the_same_times_when_all_pieces_were_sent() {
        let dir = tempfile::tempdir().unwrap();
        let files = vec![dir.path().join("a.csv")];
        let open = |now| Keeper::open(None, &files, "a".into(), false, now).unwrap();
        let mut first = open(5);
        first.sends().unwrap();
        let mut case = |reason: &str, entries: u64, sent: bool| {
            first.state.refused = Refused::default();
            first.state.refused.add(2, &[reason.to_owned()]);
            (first.state.entries.count, first.state.sent) = (entries, sent);
            first.save().unwrap();
            let next = open(6);
            assert_eq!(next.state.now, 5);
            (next.refused_before, next.session() == first.session())
        };
        let of_token = "series b: token \"t\" is confined to {team=\"a\"}";
        assert_eq!(case(of_token, 0, true), (2, false));
        assert_eq!(case(of_token, 0, false), (0, true), "the import was interrupted, and continues");
        assert_eq!(case(of_token, 1, true), (0, true), "entries would be stored twice");
        assert_eq!(case("series b: limit of 1 series is reached", 0, true), (0, true));
    }

    #[test]
    fn the_same_job_resumes_and_another_starts_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.csv");
        std::fs::write(&file, "x").unwrap();
        let files = vec![file.clone()];
        let open = |job: &str, again: bool| Keeper::open(None, &files, job.into(), again, 5).unwrap();
        let mut first = open("a", false);
        first.state.seq = 3;
        first.sends().unwrap();
        first.save().unwrap();
        assert_eq!(open("a", false).state, first.state);
        assert_eq!(open("b", false).state.seq, 0);
        assert_ne!(open("b", true).session(), open("c", false).session());
        assert!(dir.path().join("a.csv.tacho-import").exists());

        std::fs::write(dir.path().join("a.csv.tacho-import"), "{}").unwrap();
        let error = Keeper::open(None, &files, "a".into(), false, 5).err().unwrap();
        assert!(error.to_string().contains("cannot be used: missing field"), "{error}");

        let before = job(&files, "s", "t");
        assert_eq!(job(&files, "s", "t"), before);
        std::fs::write(&file, "xy").unwrap();
        assert_ne!(job(&files, "s", "t"), before);
    }
}
