//! Writes the golden file of a new codec of numbers, and its contents as text, to `testdata/chunk/`.
//! `cargo run -p tacho-chunk --example golden_chunk -- NAME`. An existing file is never replaced.

#[path = "../tests/common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use common::{columns, describe};
use tacho_chunk::{Chunk, CodecSet, Encoding, GroupColumn, encode_group};

const COUNT: usize = 200;

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    match names.iter().try_for_each(|name| write(name)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn write(name: &str) -> Result<(), String> {
    let codecs = CodecSet::only([name]).ok_or(format!("no codec is called {name:?}"))?;
    let bytes = encoded(name, &Encoding { codecs, ..Encoding::default() })
        .ok_or(format!("{name} encodes no column of tests/common/columns.rs: add one that suits it"))?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../testdata/chunk/codec-{name}.chunk"));
    if file.exists() {
        return Err(format!("{} exists: golden files are never written again", file.display()));
    }
    let said = describe::chunk(&Chunk::open(&bytes).map_err(|error| error.to_string())?);
    fs::write(&file, &bytes)
        .and_then(|()| fs::write(file.with_extension("txt"), said))
        .map_err(|error| error.to_string())
}

/// A chunk with the first column in `tests/common/columns.rs` that the encoder encodes with this codec.
fn encoded(name: &str, encoding: &Encoding) -> Option<Vec<u8>> {
    let at: Vec<i64> = (0..COUNT as i64).map(|n| n * 1_000_000_000).collect();
    columns::all(COUNT).iter().find_map(|column| {
        let group = [GroupColumn { member: 0, values: column.values.as_values(), loss: None }];
        let bytes = encode_group(&at, 0, &group, encoding);
        let last = Chunk::open(&bytes).ok()?.header().columns().last()?.codec == name;
        last.then_some(bytes)
    })
}
