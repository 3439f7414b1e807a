//! `tacho repair`: copies the readable part of a damaged data directory into a new directory.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;
use tacho_api::units;
use tacho_server::check::Progress;
use tacho_server::repair::{Repaired, repair};
use tacho_store::check::{Finding, Findings};

use super::{ask, findings};
use crate::failure::Failure;

/// Copy the readable part of a damaged data directory into a new directory
///
/// The command never changes DIR, which must not be in use. It omits damaged parts: columns, chunks, rows, journal
/// records, and files such as tokens. It copies no quarantined files, no older audit logs and no unknown files. If the repair
/// is interrupted, tacho refuses to open NEW. Exit code: 0 no loss, 1 a loss or a failure, 2 wrong arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho repair ./tacho-data --into ./tacho-data.repaired
  tacho check ./tacho-data.repaired && tacho serve --data ./tacho-data.repaired")]
pub struct Repair {
    /// Data directory
    dir: PathBuf,
    /// New directory; it must be empty or absent
    #[arg(long, value_name = "NEW")]
    into: PathBuf,
    /// Also read this file, named as in the finding, although the finding says that it is of another or an unknown store, or has
    /// another journal's name. Can be given several times
    #[arg(long, value_name = "FILE")]
    accept: Vec<String>,
    /// Print one JSON object for each loss, at most 100,000, and one with the totals
    #[arg(long)]
    json: bool,
}

impl Repair {
    pub fn run(self) -> Result<(), Failure> {
        ask::check_damaged_directory(&self.dir).map_err(Failure::into_usage)?;
        let is_filled = std::fs::read_dir(&self.into).is_ok_and(|mut entries| entries.next().is_some());
        if is_filled || self.into.is_file() {
            let message = format!("{} is not an empty directory", self.into.display());
            return Err(Failure::usage(message).hint("name a new directory with --into"));
        }
        if ask::is_inside(&self.into, &self.dir) {
            let message = format!("{} is inside {}", self.into.display(), self.dir.display());
            return Err(Failure::usage(message).hint("name a directory next to it with --into"));
        }
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let accepted: BTreeSet<String> = self.accept.iter().cloned().collect();
        let run =
            |progress: Progress<'_>| runtime.block_on(repair(&self.dir, &self.into, &accepted, progress));
        let repaired = findings::with_progress("repair", run).map_err(|e| match e.kind() {
            tacho_store::ErrorKind::Locked => {
                Failure::new(format!("cannot repair {}: {e}", self.dir.display()))
                    .hint("stop the server first")
            }
            tacho_store::ErrorKind::Version => {
                Failure::new(format!("cannot repair {}: {e}", self.dir.display()))
                    .hint("use the newer tacho that wrote it")
            }
            _ => Failure::new(format!("cannot repair {}: {e}", self.dir.display())),
        })?;
        if self.json {
            print_json(&repaired)
        } else {
            print(&repaired)
        }
        let losses = repaired.findings.losses();
        if losses == 0 {
            return Ok(());
        }
        let message = format!("not everything could be saved: {}", units::counted(losses, "loss", "losses"));
        Err(Failure::new(message)
            .hint("the old directory is unchanged: keep it until the new one has what you need"))
    }
}

fn print(repaired: &Repaired) {
    let Repaired { findings, series, rows, records, lacks_tokens, .. } = repaired;
    let losses: Vec<Finding> = of_losses(findings).cloned().collect();
    print!("{}", findings::text(&losses, findings.losses() - losses.len() as u64, findings::JSON));
    let [samples, entries, calls] = *records;
    let place = match rows {
        0 => ", all from the journals and none from chunks/".to_owned(),
        rows => format!(
            " of {} in {} and the journals",
            units::counted(series.iter().sum::<usize>() as u64, "series", "series"),
            units::counted(*rows, "row", "rows"),
        ),
    };
    println!(
        "saved: {}, {}, {}{place}",
        units::counted(samples, "sample", "samples"),
        units::counted(entries, "entry", "entries"),
        units::counted(calls, "call", "calls"),
    );
    println!("  these numbers include samples that a later write with the same time replaced");
    println!("lost: {}", findings::lost(findings).unwrap_or_else(|| "no records".to_owned()));
    if *lacks_tokens {
        println!(
            "tokens: the file cannot be used and was omitted, so a server of the new directory refuses every request that \
             needs a token: copy the file from a backup into the directory, or run `tacho token add` with --data"
        );
    }
}

fn of_losses(findings: &Findings) -> impl Iterator<Item = &Finding> {
    findings.kept.iter().filter(|finding| finding.is_loss())
}

fn print_json(repaired: &Repaired) {
    let Repaired { findings, series, rows, records, bytes, lacks_tokens } = repaired;
    for finding in of_losses(findings) {
        println!("{}", findings::json(finding));
    }
    let summary = json!({
        "saved": {"records": findings::kinds(*records), "series": findings::kinds(series.map(|n| n as u64)), "rows": rows},
        "findings": findings::counts(findings),
        "bytes": bytes,
        "lacks_tokens": lacks_tokens,
    });
    println!("{}", json!({ "summary": summary }));
}
