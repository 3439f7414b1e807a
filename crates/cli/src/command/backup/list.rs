//! `tacho backup list`: the backups of a repository.

use std::collections::HashSet;

use serde_json::{Value, json};
use tacho_api::units;
use tacho_backup::{Id, Record};

use super::{existing, failed, record_json};
use crate::command::ask;
use crate::failure::Failure;
use crate::terminal::table::{Align, Table};

/// List the backups of a repository, oldest first
///
/// NEW is the size of the files that no earlier backup of the list has. GENERATION is the number of the newest journal.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho backup list /backup/tacho
  tacho backup list /backup/tacho --json | jq -r '.backups[-1].id'")]
pub struct List {
    /// Repository
    repository: String,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(self) -> Result<(), Failure> {
        let repository = existing(&self.repository)?;
        let (mut records, mut unreadable) = (Vec::new(), Vec::new());
        for id in repository.ids().map_err(failed)? {
            match repository.record(&id) {
                Ok(record) => records.push(record),
                Err(error) => unreadable.push((id, error)),
            }
        }
        records.sort_by_key(|record| (record.time, record.id.clone()));
        let mut known = HashSet::new();
        let with_new = |record: Record| {
            let new = record.files.iter().filter(|file| known.insert(file.sha256));
            (new.map(|file| file.bytes).sum(), record)
        };
        let backups: Vec<(u64, Record)> = records.into_iter().map(with_new).collect();
        if self.json {
            print_json(&backups, &unreadable);
        } else {
            print(&backups, !unreadable.is_empty());
        }
        match unreadable.first() {
            None => Ok(()),
            Some((id, error)) => {
                let count = units::counted(unreadable.len() as u64, "backup", "backups");
                Err(Failure::new(format!("{count} cannot be read, for example {id}: {error}")))
            }
        }
    }
}

/// `has_more`: the repository has backups that cannot be read; an error message reports them.
fn print(backups: &[(u64, Record)], has_more: bool) {
    if backups.is_empty() {
        println!("{}", if has_more { "no readable backups" } else { "no backups" });
        return;
    }
    let mut table = Table::new([
        ("ID", Align::Left),
        ("TIME", Align::Left),
        ("DATA", Align::Left),
        ("GENERATION", Align::Right),
        ("SIZE", Align::Right),
        ("NEW", Align::Right),
        ("FILES", Align::Right),
    ]);
    for (new, record) in backups {
        table.row([
            record.id.to_string(),
            format!("{:.0}", record.time),
            format!("{}:{}", record.host, record.data),
            // A backup without a journal has the generation 0.
            if record.generation == 0 { "-".to_owned() } else { record.generation.to_string() },
            units::bytes(record.bytes()),
            units::bytes(*new),
            units::count(record.files.len() as u64),
        ]);
    }
    print!("{table}");
}

fn print_json(backups: &[(u64, Record)], unreadable: &[(Id, tacho_store::Error)]) {
    let backups: Vec<Value> = backups
        .iter()
        .map(|(new, record)| {
            let mut shown = record_json(record);
            shown["new_bytes"] = (*new).into();
            shown
        })
        .collect();
    let unreadable: Vec<Value> =
        unreadable.iter().map(|(id, error)| json!({ "id": id, "reason": error.to_string() })).collect();
    ask::print_json(&json!({ "backups": backups, "unreadable": unreadable }));
}
