//! The command line: one file for each command.

mod failure;
mod serve;

pub use failure::Failure;

/// Records what software does while it runs, keeps it, and answers questions about it.
#[derive(clap::Parser)]
#[command(name = "tacho", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Serve(serve::Serve),
}

pub fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Serve(serve) => serve.run(),
    }
}
