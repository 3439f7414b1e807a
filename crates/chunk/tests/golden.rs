//! Chunks of older versions stay readable. The decoded files of `testdata/chunk/` equal the descriptions made when the files were
//! written. The files are never regenerated: encoders may write other bytes, but readers must read these bytes.

mod common;

use std::path::Path;

use common::describe;
use tacho_chunk::{Chunk, CodecSet};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn golden_files_are_read_as_written() {
    let mut files: Vec<_> = std::fs::read_dir(root().join("testdata/chunk"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "chunk"))
        .collect();
    files.sort();
    assert!(files.len() >= 12, "only {} golden files were found", files.len());
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let said = std::fs::read_to_string(path.with_extension("txt")).unwrap();
        let chunk = Chunk::open(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(describe::chunk(&chunk), said, "{}", path.display());
        for info in &chunk.header().members {
            let end = chunk.header().count - 1;
            let part = chunk.values_in(info.member, end / 2..end).unwrap();
            let whole = chunk.values(info.member).unwrap();
            assert_eq!(part, whole.map(|values| values.part(end / 2..end)), "{}", path.display());
        }
    }
}

#[test]
fn every_codec_of_numbers_that_encoders_choose_has_a_golden_file() {
    let said: Vec<String> = std::fs::read_dir(root().join("testdata/chunk"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    for name in CodecSet::names() {
        let column = format!(": {name}, ");
        assert!(
            said.iter().any(|said| said.contains(&column)),
            "testdata/chunk/codec-{name}.chunk is missing"
        );
    }
}

/// The bytes of an example in the format document. A code block of the section *Examples* has them as hex digits before a `|`.
fn example(number: usize) -> Vec<u8> {
    let page = std::fs::read_to_string(root().join("docs/format/chunk.md")).unwrap();
    let block = page.split("## Examples").nth(1).unwrap().split("```").nth(2 * number + 1).unwrap();
    let hex = block.lines().filter_map(|line| line.split_once('|')).map(|(hex, _)| hex);
    hex.flat_map(str::split_whitespace).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_examples_of_the_format_page_are_chunks() {
    let group = "3 sample, 1000000000 to 4000000000\n\
                 member 0, 3 numbers: min 7u max 7u first 7u last 7u sum 21\n\
                 member 2, 3 numbers: min 1.5 (3ff8000000000000) max 2.5 (4004000000000000) \
                 first 1.5 (3ff8000000000000) last 2.25 (4002000000000000) sum 6.25 (4019000000000000)\n\
                 column at: varint, 11 bytes\n\
                 column value: constant, 0 bytes\n\
                 column value: decimal, 8 bytes\n\
                 1000000000 7u, 1.5 (3ff8000000000000)\n\
                 2000000000 7u, 2.5 (4004000000000000)\n\
                 4000000000 7u, 2.25 (4002000000000000)\n";
    let old = "3 sample, 1000000000 to 3000000000\n\
               3 numbers: min 7u max 7u first 7u last 7u sum 21\n\
               column at: step, 10 bytes\n\
               column value: constant, 1 bytes\n\
               1000000000 7u\n2000000000 7u\n3000000000 7u\n";
    for (number, said) in [group, old].into_iter().enumerate() {
        let bytes = example(number);
        assert_eq!(describe::chunk(&Chunk::open(&bytes).unwrap()), said);
    }
}
