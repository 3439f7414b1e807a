//! `tacho restore`: restores a backup into a new directory, and checks the directory.

use std::path::{Path, PathBuf};

use serde_json::json;
use tacho_api::{time, units};
use tacho_backup::{Id, Record, Repository, Work, restore};
use tacho_model::Timestamp;
use tacho_server::check::{Report, Source};
use tacho_store::ErrorKind;
use tacho_store::check::{Depth, Severity};

use super::backup::stop::Stop;
use super::backup::{existing, failed, record_json};
use super::{ask, findings};
use crate::failure::Failure;

const NS_PER_SECOND: i64 = 1_000_000_000;

/// Restore a backup into a new data directory
///
/// The command writes the files to the directory TO.restoring, and compares each file with its checksum. It then checks the
/// directory as `tacho check` does, and renames it to TO. If the check finds damage, the command removes the directory, except
/// with --allow-damaged. Exit code: 0 restored, 1 not restored, 2 wrong arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho restore /backup/tacho /var/lib/tacho
  tacho restore /backup/tacho ./drill --at 2026-03-01T12:00:00Z
  tacho restore /backup/tacho ./drill --at 20260301T020000Z-7f3a
  tacho restore /backup/tacho ./drill --generation 41")]
pub struct Restore {
    /// Repository
    repository: String,
    /// New data directory; it must be empty or absent
    to: PathBuf,
    /// The backup: an id, the beginning of an id, or a time (the newest backup not later than this time; a time without a
    /// fraction of a second includes its whole second) [default: the newest]
    #[arg(long, value_name = "TIME|ID", allow_hyphen_values = true)]
    at: Option<String>,
    /// The newest backup whose generation (column GENERATION of tacho backup list) is at most this number; backups without a
    /// generation are not selected
    #[arg(long, value_name = "NUMBER", conflicts_with = "at")]
    generation: Option<u64>,
    /// Also restore a directory that was damaged when it was backed up
    #[arg(long)]
    allow_damaged: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Restore {
    pub fn run(self) -> Result<(), Failure> {
        check_apart(&self.to, &self.repository)?;
        let repository = existing(&self.repository)?;
        let record = chosen(&repository, self.at.as_deref(), self.generation)?;
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let stop = Stop::of_signals(&runtime)?;
        let check = || stop.check();
        let restored = findings::with_progress("restore", |progress| {
            restore(&repository, &record, &self.to, &mut Work::new(progress, &check))
        });
        let restored = restored.map_err(|error| match error.kind() {
            ErrorKind::Corrupt => failed(error).hint("tacho backup list shows other backups"),
            _ => failed(error),
        })?;
        let unreadable = |e| ask::unreadable(restored.directory(), &e);
        let mut source =
            runtime.block_on(Source::open(restored.directory(), Depth::Whole)).map_err(unreadable)?;
        let report = findings::with_progress("check", |progress| source.run(progress)).map_err(unreadable)?;
        stop.check().map_err(failed)?;
        let damage = report.findings.count(Severity::Damage);
        if damage > 0 {
            // Standard output is for the result.
            let lister = "tacho check --json of the restored directory";
            eprint!("{}", findings::text(&report.findings.kept, report.findings.omitted(), lister));
        }
        if damage > 0 && !self.allow_damaged {
            let count = units::counted(damage, "finding of damage", "findings of damage");
            let message = format!("backup {} is as it was written, but its data has {count}", record.id);
            return Err(Failure::new(message).hint(
                "the data directory was damaged before the backup: restore it with --allow-damaged, then copy its \
                 readable part with tacho repair",
            ));
        }
        drop(source);
        restored.commit().map_err(failed)?;
        self.print(&record, &report, damage);
        Ok(())
    }

    fn print(&self, record: &Record, report: &Report, damage: u64) {
        if self.json {
            let mut shown = record_json(record);
            shown["directory"] = json!(self.to);
            shown["damage"] = damage.into();
            shown["rows"] = report.amounts.rows.into();
            return ask::print_json(&shown);
        }
        println!(
            "restored backup {} of {:.0} to {}: {} in {}, {}",
            record.id,
            record.time,
            self.to.display(),
            units::bytes(record.bytes()),
            units::counted(record.files.len() as u64, "file", "files"),
            findings::counted(&report.findings),
        );
    }
}

/// Refuses a place inside of the repository or inside of a data directory, because the restored files would become part of it.
fn check_apart(to: &Path, repository: &str) -> Result<(), Failure> {
    let refused = |of: String| {
        let message = format!("{} is inside of {of}", to.display());
        Err(Failure::usage(message).hint("restore to a directory outside of it"))
    };
    if !repository.contains("://") && ask::is_inside(to, Path::new(repository)) {
        return refused(format!("the repository {repository}"));
    }
    match ask::data_directory_around(to) {
        Some(data) => refused(format!("the data directory {}", data.display())),
        None => Ok(()),
    }
}

/// The backup that `at` selects: by its id, or as the newest backup that is not later than a time. With `generation`, the newest
/// backup whose generation is at most this number. With neither, the newest backup. If the repository has backups of several
/// directories, only an id selects a backup.
fn chosen(repository: &Repository, at: Option<&str>, generation: Option<u64>) -> Result<Record, Failure> {
    let ids = repository.ids().map_err(failed)?;
    let list = format!("tacho backup list {} shows the backups", repository.location());
    if let Some(text) = at
        && let Some(id) = by_id(&ids, text)?
    {
        return repository.record(id).map_err(failed);
    }
    let until = at.map(|text| {
        last_moment(text, ask::now()).ok_or_else(|| {
            Failure::usage(format!("no backup {text:?}, and it is not a time")).hint(list.clone())
        })
    });
    let until = until.transpose()?;
    let mut records = Vec::new();
    for id in &ids {
        match repository.record(id) {
            Ok(record) => records.push(record),
            Err(error) => eprintln!("warning: a backup is ignored: {error}"),
        }
    }
    if let Some(other) = records.iter().find(|record| record.origin() != records[0].origin()) {
        let (first, other) = (records[0].origin(), other.origin());
        let message = format!(
            "the repository has backups of several directories, for example {}:{} and {}:{}",
            first.0, first.1, other.0, other.1
        );
        return Err(Failure::usage(message).hint(format!("name a backup with --at ID; {list}")));
    }
    let is_early = |record: &Record| {
        until.is_none_or(|until| record.time.as_nanosecond() <= until.into())
            // The generation of a backup without a journal is unknown, and stored as 0.
            && generation.is_none_or(|last| (1..=last).contains(&record.generation))
    };
    let newest =
        records.iter().filter(|record| is_early(record)).max_by_key(|record| (record.time, &record.id));
    if let (Some(last), Some(newest)) = (generation, newest) {
        warn_of_unnumbered(&records, newest, last);
    }
    newest.cloned().ok_or_else(|| match (at, generation) {
        (Some(at), _) => Failure::new(format!("no backup is as old as {at}")).hint(list),
        (None, Some(last)) => Failure::new(format!("no backup has a generation up to {last}")).hint(list),
        (None, None) => Failure::new(format!("no backups in {}", repository.location())),
    })
}

/// Warns if backups without a generation were made after the selected one, and before every backup with a generation above
/// `last`. Names the newest of them.
fn warn_of_unnumbered(records: &[Record], selected: &Record, last: u64) {
    let above = records.iter().filter(|record| record.generation > last).map(|record| record.time).min();
    let is_meant = |record: &&Record| {
        record.generation == 0 && record.time > selected.time && above.is_none_or(|above| record.time < above)
    };
    if let Some(Record { id, .. }) = records.iter().filter(is_meant).max_by_key(|record| record.time) {
        eprintln!(
            "warning: backup {id} is later than the restored one, and has no generation: --at {id} selects it"
        );
    }
}

/// The last nanosecond of a time. A time without a fraction includes its whole second, because `tacho backup list` prints times
/// without fractions.
fn last_moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    let moment = time::parse_moment(text, now)?;
    let is_whole = moment % NS_PER_SECOND == 0 && !text.contains(['.', ',']);
    Some(if is_whole { moment.saturating_add(NS_PER_SECOND - 1) } else { moment })
}

/// The backup with this id, or the only backup whose id begins with the text.
fn by_id<'a>(ids: &'a [Id], text: &str) -> Result<Option<&'a Id>, Failure> {
    let whole = ids.iter().find(|id| id.as_str() == text);
    if whole.is_some() {
        return Ok(whole);
    }
    // A text that is shorter than date and hour may be a date or Unix seconds.
    const BEGINNING_MIN: usize = "20260301T02".len();
    let fits = |id: &&Id| text.len() >= BEGINNING_MIN && id.as_str().starts_with(text);
    let mut fitting = ids.iter().filter(fits);
    match (fitting.next(), fitting.next()) {
        (Some(_), Some(_)) => Err(Failure::usage(format!("the ids of several backups begin with {text:?}"))),
        (only, _) => Ok(only),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_fraction_means_its_whole_second() {
        let (second, now) = (1_772_366_400_000_000_000, 1_772_400_000_123_456_789);
        let end = second + 999_999_999;
        for (text, last) in [
            ("2026-03-01T12:00:00Z", end),
            ("2026-03-01 12:00", end),
            ("1772366400", end),
            ("2026-03-01T12:00:00.000Z", second),
            ("2026-03-01T12:00:00.157Z", second + 157_000_000),
            ("2026-03-01T12:00:00,157Z", second + 157_000_000),
            ("1772366400.5", second + 500_000_000),
            ("-1h", now - 3_600 * NS_PER_SECOND),
        ] {
            assert_eq!(last_moment(text, now), Some(last), "{text}");
        }
    }
}
