//! `tacho backup prune`: removes old backups.

use serde_json::json;
use tacho_api::units;
use tacho_backup::{Keep, Pruned, Work, prune};
use tacho_store::ErrorKind;

use super::stop::Stop;
use super::{existing, failed};
use crate::command::{ask, findings};
use crate::failure::Failure;

/// Remove old backups, and the files that no other backup needs
///
/// A backup is kept if --keep-last or --keep-daily keeps it. Both options apply to each data directory separately. The command
/// does not run while a backup is made, verified or restored.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho backup prune /backup/tacho --keep-last 7 --keep-daily 30
  tacho backup prune /backup/tacho --keep-last 3 --dry-run")]
pub struct Prune {
    /// Repository
    repository: String,
    /// Keep the newest N backups
    #[arg(long, value_name = "N", value_parser = ask::at_least_one::<usize>)]
    keep_last: Option<usize>,
    /// Keep the newest backup of each of the last N days (UTC) that have one
    #[arg(long, value_name = "N", value_parser = ask::at_least_one::<usize>)]
    keep_daily: Option<usize>,
    /// Only print what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Prune {
    pub fn run(self) -> Result<(), Failure> {
        if self.keep_last.is_none() && self.keep_daily.is_none() {
            let message = "no rule says which backups are kept: give --keep-last N, --keep-daily N, or both";
            return Err(Failure::usage(message));
        }
        let repository = existing(&self.repository)?;
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let stop = Stop::of_signals(&runtime)?;
        let keep = Keep { last: self.keep_last.unwrap_or(0), daily: self.keep_daily.unwrap_or(0) };
        let pruned = findings::with_progress("prune", |progress| {
            prune(&repository, keep, self.dry_run, &mut Work::new(progress, &|| stop.check()))
        })
        .map_err(|error| match error.kind() {
            ErrorKind::Corrupt => failed(error).hint("tacho backup verify names all damage"),
            _ => failed(error),
        })?;
        if self.json {
            self.print_json(&pruned);
        } else {
            self.print(&pruned);
        }
        Ok(())
    }

    fn print(&self, pruned: &Pruned) {
        for id in &pruned.removed {
            println!("{} {id}", if self.dry_run { "would remove" } else { "removed" });
        }
        println!(
            "{} {}, {} kept; {} of {} {}",
            units::counted(pruned.removed.len() as u64, "backup", "backups"),
            if self.dry_run { "would be removed" } else { "removed" },
            units::count(pruned.kept.len() as u64),
            units::counted(pruned.objects, "object", "objects"),
            units::bytes(pruned.bytes),
            if self.dry_run { "would be removed; nothing was changed" } else { "removed" },
        );
    }

    fn print_json(&self, pruned: &Pruned) {
        ask::print_json(&json!({
            "kept": pruned.kept,
            "removed": pruned.removed,
            "objects": pruned.objects,
            "bytes": pruned.bytes,
            "dry_run": self.dry_run,
        }));
    }
}
