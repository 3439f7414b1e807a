//! The checks that `make test` runs: `cargo xtask tidy`, `cargo xtask licences` and `cargo xtask fuzz [--seconds N]`.
//! `cargo xtask generate` writes the settings and messages of the agents into their code. `cargo xtask simulate` runs the store
//! on a simulated disk, and `cargo xtask simulate-mutations` checks that the simulator finds deliberate faults.
//! `cargo xtask sbom` lists the crates of the binary.

mod fuzz;
mod generate;
mod licences;
mod sbom;
mod simulate;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy | cargo xtask licences | cargo xtask sbom [--features F] | cargo xtask generate \
    | cargo xtask fuzz [--seconds N] [--jobs N] [TARGET ...] | cargo xtask simulate [--seeds N] [--seconds S] [--first SEED] \
    [--trace] [--omit SYNC] | cargo xtask simulate-mutations [FAULT ...]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.split_first() {
        Some((command, [])) if command == "tidy" => tidy::run(),
        Some((command, [])) if command == "licences" => licences::run(),
        Some((command, rest)) if command == "sbom" => sbom::run(rest),
        Some((command, [])) if command == "generate" => generate::run(),
        Some((command, rest)) if command == "fuzz" => fuzz::run(rest),
        Some((command, rest)) if command == "simulate" => simulate::run(rest),
        Some((command, rest)) if command == "simulate-mutations" => simulate::mutations(rest),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
