//! `tacho serve`: runs the server.

mod flags;

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use tacho_server::config;
use tacho_server::control;
use tacho_server::serve::{self, Listening, ServeError};
use tacho_store::ErrorKind;
use tracing_subscriber::EnvFilter;

use crate::command::{ask, variables};
use crate::failure::Failure;
use crate::signal;
use flags::Flags;

/// Run the server: receive and store records, answer queries, serve the page
///
/// Settings come from tacho.toml (--config, or ./tacho.toml if it exists), then from TACHO_* environment variables
/// (TACHO_DATA, TACHO_HTTP, ...), then from flags; later sources override earlier ones. All settings are optional.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  tacho serve --data /var/lib/tacho\n  tacho serve --http 127.0.0.1:8080 --records 127.0.0.1:8081"
)]
pub struct Serve {
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
}

impl Serve {
    pub fn run(self) -> Result<(), Failure> {
        init_log();
        let environment = variables::of_tacho(std::env::vars_os())?;
        let names = environment.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let config = config::load(self.config, environment, self.flags.into()).map_err(Failure::usage)?;
        for (variable, similar) in variables::unknown(names) {
            let meant = variables::meant(similar);
            tracing::warn!(variable, "this environment variable is unknown and ignored{meant}");
        }
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let up = |at: Listening| println!("listening http={} records={}", at.http, at.records);
        runtime.block_on(serve::run(config, signal::stop, up)).map_err(failure)
    }
}

/// Logs go to stderr, with fields as `key=value`; `RUST_LOG` sets the level.
fn init_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        // If stderr is closed, a report of a failed write of the log would panic.
        .log_internal_errors(false)
        .init();
}

fn failure(error: ServeError) -> Failure {
    let hint = match &error {
        ServeError::Listen { key, source, .. } => match source.kind() {
            io::ErrorKind::AddrInUse => {
                Some(format!("another program has this port; stop it, or choose another with --{key}"))
            }
            io::ErrorKind::PermissionDenied => Some("ports below 1024 need root; choose a higher one".into()),
            io::ErrorKind::AddrNotAvailable => Some("this machine does not have that address".into()),
            _ => None,
        },
        ServeError::Open { data, source } => match source.kind() {
            ErrorKind::Locked if source.is_of_reader() => Some(ask::OF_READER.into()),
            ErrorKind::Locked => Some("stop the other server: a data directory has at most one".into()),
            ErrorKind::Version => Some(
                "use the newer tacho that wrote it, or restore a backup that was made before the upgrade"
                    .into(),
            ),
            ErrorKind::Corrupt => Some(ask::damage_hint(data)),
            ErrorKind::Io if is_unusable(source) => {
                Some("choose a directory that this user may write, and name it with --data".into())
            }
            ErrorKind::Io => Some(ask::damage_hint(data)),
            ErrorKind::StorageFull => Some("free space on the disk".into()),
            _ => None,
        },
        ServeError::Rules(_) => Some(control::REMEDY.into()),
        ServeError::Tls(_) => return Failure::usage(error),
        ServeError::Tokens { .. } | ServeError::Signal(_) | ServeError::Close(_) => None,
    };
    match hint {
        Some(hint) => Failure::new(error).hint(hint),
        None => Failure::new(error),
    }
}

/// Whether an error is about the data directory as a whole, not about damage in it.
fn is_unusable(error: &tacho_store::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    let of_directory = [AlreadyExists, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem];
    error.io_kind().is_some_and(|kind| of_directory.contains(&kind))
}
