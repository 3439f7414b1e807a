//! `tacho`: reads the command line, runs the command, and tells how it ended.

use std::process::ExitCode;

use clap::Parser;
use tacho_server::command::{self, Cli};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match command::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            failure.exit_code()
        }
    }
}
