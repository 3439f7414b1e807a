//! How many bytes does each codec save, and what does it cost? Encodes data sets with all codecs, then again without each codec
//! in turn.
//!
//! `cargo run --release -p tacho-chunk --example codec_gain -- [--without NAME,...] [--only SET,...] [--sizes] [DIR...]`
//!
//! `--without` excludes the named codecs and forms from all measurements. `--only` measures only the named data sets. With
//! `--sizes`, only the first table has rows.
//!
//! Each folder in a DIR is a data set: `*.csv` files are groups of series, `*.log` files are texts (`sets.rs`). Without a DIR,
//! only the generated sets are measured. `make bench-codecs` writes a DIR of published and generated data.

#[path = "../../tests/common/mod.rs"]
mod common;
mod measure;
mod report;
mod sets;

use std::path::PathBuf;
use std::process::ExitCode;

use tacho_chunk::{Choice, CodecSet};

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let (mut base, mut only, mut folders, mut sizes) = (CodecSet::ALL, String::new(), vec![], false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--without" => {
                let names = arguments.next().ok_or("--without needs names, such as 'number xor,text lz4'")?;
                for name in names.split(',') {
                    base = base.without(choice(name)?);
                }
            }
            "--sizes" => sizes = true,
            "--only" => only = arguments.next().ok_or("--only needs names of sets, such as mixed,logs")?,
            _ => folders.push(PathBuf::from(argument)),
        }
    }
    let mut sets = sets::generated();
    for folder in folders {
        sets.extend(sets::read(&folder)?);
    }
    sets.retain(|set| only.is_empty() || only.split(',').any(|name| name == set.name));
    let results: Vec<measure::Result> = sets
        .iter()
        .map(|set| if sizes { measure::size(set, base) } else { measure::gains(set, base) })
        .collect();
    print!("{}", report::tables(&results));
    Ok(())
}

/// The choice with the title `name` ([`report::title`]).
fn choice(name: &str) -> Result<Choice, String> {
    let known = || CodecSet::choices().map(report::title);
    let found = CodecSet::choices().find(|choice| report::title(*choice) == name.trim());
    found.ok_or_else(|| format!("{name:?} is unknown; known are {}", known().collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_has_a_unique_title() {
        for wanted in CodecSet::choices() {
            assert_eq!(choice(&report::title(wanted)), Ok(wanted));
        }
        let error = choice("number stones").unwrap_err();
        assert!(error.contains("number xor") && error.contains("form uniform"), "{error}");
    }

    #[test]
    fn a_needed_choice_has_a_gain_and_an_unneeded_one_has_none() {
        let set = sets::Set { name: "one".into(), data: vec![sets::constant()] };
        let result = measure::gains(&set, CodecSet::ALL);
        let gain = |name: &str| {
            let of = choice(name).unwrap();
            let (_, without) = result.without.iter().find(|(choice, _)| *choice == of).unwrap();
            without.merged.bytes as f64 / result.all.merged.bytes as f64
        };
        assert!(gain("form uniform") > 1.2, "{}", gain("form uniform"));
        assert!((gain("form slot id") - 1.0).abs() < 1e-9);
        assert!(report::tables(&[result]).contains("form uniform"));
    }
}
