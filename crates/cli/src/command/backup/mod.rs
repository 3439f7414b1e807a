//! `tacho backup`: makes, lists, verifies and removes backups of data directories.

mod create;
mod list;
mod prune;
pub mod stop;
mod verify;

use tacho_backup::{Record, Repository};
use tacho_store::ErrorKind;

use crate::failure::Failure;

/// Back up data directories: incremental, verified, also while a server writes
///
/// A repository is a directory, or s3://BUCKET/PREFIX. It holds any number of backups. Each backup is complete: it can be
/// restored even if all others were removed. Files that a repository already has are not copied again. `tacho restore`
/// restores a backup.
#[derive(clap::Args)]
pub struct Backup {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Create(create::Create),
    List(list::List),
    Verify(verify::Verify),
    Prune(prune::Prune),
    /// Use tacho restore
    #[command(hide = true, disable_help_flag = true)]
    Restore {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<std::ffi::OsString>,
    },
}

impl Backup {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Create(create) => create.run(),
            Command::List(list) => list.run(),
            Command::Verify(verify) => verify.run(),
            Command::Prune(prune) => prune.run(),
            Command::Restore { .. } => Err(Failure::usage("there is no tacho backup restore")
                .hint("use tacho restore: see tacho restore --help")),
        }
    }
}

/// The repository at the address that the user has given. It need not exist.
pub fn repository(address: &str) -> Result<Repository, Failure> {
    Repository::at(address).map_err(Failure::usage)
}

/// Opens a repository that must exist.
pub fn existing(address: &str) -> Result<Repository, Failure> {
    let repository = repository(address)?;
    repository.check_format().map_err(|error| match error.kind() {
        ErrorKind::Invalid => Failure::usage(error).hint("tacho backup create makes one"),
        _ => Failure::new(error),
    })?;
    Ok(repository)
}

pub fn failed(error: tacho_store::Error) -> Failure {
    match error.kind() {
        ErrorKind::Invalid => Failure::usage(error),
        ErrorKind::Locked => Failure::new(error).hint("retry when the other command has ended"),
        ErrorKind::Closed => Failure::interrupted(stop::INTERRUPTED),
        _ => Failure::new(error),
    }
}

pub fn record_json(record: &Record) -> serde_json::Value {
    serde_json::json!({
        "id": record.id,
        "time": record.time,
        "ended": record.ended,
        "host": record.host,
        "data": record.data,
        "live": record.live,
        "generation": record.generation,
        "offset": record.offset,
        "files": record.files.len(),
        "bytes": record.bytes(),
        "tacho": record.tacho,
    })
}
