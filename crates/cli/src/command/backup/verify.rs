//! `tacho backup verify`: reads all objects of backups.

use serde_json::{Value, json};
use tacho_api::units;
use tacho_backup::{Fault, Id, Verified, Work, verify};
use tacho_store::ErrorKind;

use super::stop::Stop;
use super::{existing, failed};
use crate::command::{ask, findings};
use crate::failure::Failure;

/// Read every file of the backups, and compare it with its checksum
///
/// A repository with objects, but without a record of a backup, counts as damaged. Exit code: 0 no damage, 1 damage or another
/// failure, 2 wrong arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho backup verify /backup/tacho
  tacho backup verify /backup/tacho 20260301T020000Z-7f3a --json")]
pub struct Verify {
    /// Repository
    repository: String,
    /// Backups to verify, as `tacho backup list` names them [default: all]
    #[arg(value_name = "ID")]
    ids: Vec<Id>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub fn run(self) -> Result<(), Failure> {
        let repository = existing(&self.repository)?;
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let stop = Stop::of_signals(&runtime)?;
        let verified = findings::with_progress("verify", |progress| {
            verify(&repository, &self.ids, &mut Work::new(progress, &|| stop.check()))
        })
        .map_err(failed)?;
        if self.json {
            print_json(&verified);
        } else {
            print(&verified);
        }
        if let Some(objects) = verified.objects_without_records() {
            let objects = units::counted(objects, "object", "objects");
            let message = format!(
                "{} has {objects}, but no record of a backup: nothing can be restored",
                repository.location()
            );
            return Err(Failure::new(message).hint(WITHOUT_RECORDS));
        }
        if verified.faults.is_empty() {
            return Ok(());
        }
        let count = units::counted(verified.faults.len() as u64, "fault", "faults");
        let hint = hint(&verified.faults);
        Err(Failure::new(format!("{count} in {}", repository.location())).hint(hint))
    }
}

const WITHOUT_RECORDS: &str = "bring back the files of backups/ from a copy of the repository; if the first backup was \
     interrupted, make one with `tacho backup create`";

fn hint(faults: &[Fault]) -> &'static str {
    let is_unreadable = |fault: &Fault| fault.reason.kind() == ErrorKind::Io && !fault.is_absent;
    let is_damaged = |fault: &Fault| fault.object.is_some() && !fault.is_absent && !is_unreadable(fault);
    if faults.iter().any(is_unreadable) {
        "some objects or records could not be read: remove the cause (permissions, disk) and verify again; \
         do not remove the files"
    } else if faults.iter().any(is_damaged) {
        "remove the damaged objects: the next backup writes each one again if the data directory still has the same file; \
         else the named backups cannot be restored, and their records can be removed"
    } else if faults.iter().any(|fault| fault.is_absent) {
        "the next backup writes a missing object again if the data directory still has the same file; else the named \
         backups cannot be restored, and their records can be removed"
    } else {
        "move the unreadable record away, or use the newer tacho that wrote it: the other backups do not need this record"
    }
}

fn named(backups: &[Id]) -> String {
    backups.iter().map(Id::as_str).collect::<Vec<_>>().join(", ")
}

fn print(verified: &Verified) {
    for Fault { reason, backups, .. } in &verified.faults {
        println!("{reason}\n  cannot be restored: {}", named(backups));
    }
    if verified.backups == 0 && verified.faults.is_empty() {
        println!("no backups");
        return;
    }
    println!(
        "{} with {}: {} read",
        units::counted(verified.backups, "backup", "backups"),
        units::counted(verified.objects, "object", "objects"),
        units::bytes(verified.bytes),
    );
    if let Some(unused @ 1..) = verified.unused {
        let unused = units::counted(unused, "object is", "objects are");
        println!("{unused} in no backup; tacho backup prune removes them");
    }
}

fn print_json(verified: &Verified) {
    let faults: Vec<Value> = verified.faults.iter().map(fault_json).collect();
    ask::print_json(&json!({
        "backups": verified.backups,
        "objects": verified.objects,
        "bytes": verified.bytes,
        "unused": verified.unused,
        "faults": faults,
    }));
}

fn fault_json(fault: &Fault) -> Value {
    json!({
        "object": fault.object,
        "reason": fault.reason.to_string(),
        "backups": fault.backups,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_hint_says_to_remove_files_that_could_not_be_read() {
        for (kind, is_absent, expected) in [
            (ErrorKind::Io, false, "could not be read"),
            (ErrorKind::Io, true, "the next backup writes a missing object again"),
            (ErrorKind::Corrupt, false, "remove the damaged objects"),
        ] {
            let reason = tacho_store::Error::new(kind, "an object");
            let object = Some("0".repeat(64).parse().unwrap());
            let hint = hint(&[Fault { object, is_absent, reason, backups: Vec::new() }]);
            assert!(hint.contains(expected), "{kind:?}: {hint}");
        }
    }
}
