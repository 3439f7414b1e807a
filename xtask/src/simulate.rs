//! `cargo xtask simulate [--seeds N] [--seconds S] [--first SEED] [--trace] [--omit SYNC]`: builds and starts the simulator
//! (`crates/simulator`). `cargo xtask simulate-mutations` checks that the simulator finds deliberate faults of the store.

use std::path::Path;
use std::process::Command;

pub fn run(args: &[String]) -> Result<(), String> {
    start(&[], args)
}

pub fn mutations(args: &[String]) -> Result<(), String> {
    let args: Vec<String> = std::iter::once("--mutations".to_owned()).chain(args.iter().cloned()).collect();
    start(&["--features", "mutations"], &args)
}

fn start(features: &[&str], args: &[String]) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask is not in a workspace")?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args([
        "run",
        "--quiet",
        "--locked",
        "--profile",
        "simulate",
        "-p",
        "tacho-simulator",
    ]);
    let status = cargo.args(features).arg("--").args(args).status();
    let status = status.map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("the simulator failed, or cannot be built".to_owned()) }
}
