//! `tacho`: parses the command line, runs the command, and reports the result.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use command::Cli;

// This module comes first, because the other modules use its macros.
#[macro_use]
mod terminal;

mod client;
mod command;
mod failure;
mod signal;
mod svg;

/// jemalloc, because the allocator of the C library does not return the memory of a peak (docs/adr/0009-allocator.md).
#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let ended = match Cli::try_parse() {
        Ok(cli) => command::run(cli),
        // clap prints help and version.
        Err(said) if !said.use_stderr() => said.exit(),
        Err(said) if said.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => said.exit(),
        Err(mistake) => {
            let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
            Err(command::mistake(&mistake, words))
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // If stderr cannot be written, the exit code still reports the failure.
            let _ = writeln!(std::io::stderr(), "{failure}");
            failure.exit_code()
        }
    }
}
