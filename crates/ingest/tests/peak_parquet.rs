//! Is the memory for reading a Parquet file limited? Tests the worst file that a search finds.
//!
//! Files are built byte by byte, so that they can have contents that no writer produces. For example, a small page states that
//! it has billions of values. This is the only test in its process.

#[path = "support/climb.rs"]
mod climb;
#[path = "support/parquet_file.rs"]
mod parquet_file;

use climb::{Shape, Taken};
use parquet_file::{Column, File, Page};
use tacho_ingest::csv::Given;
use tacho_ingest::parquet::{Bytes, Parquet, memory_bytes_max};
use tacho_ingest::time_text::TimeZone;

/// Number of shapes that the search tries in addition to the given shapes.
const TRIES: usize = 12;
/// Limit on the blocks that are read per file.
const BLOCKS_MAX: usize = 4;

/// Each shape has: form of the file, number of rows, bytes of a text, number of label columns, number of value columns, and
/// number of different texts of a column. In the forms 5 to 7 the third number is the false number. In form 9 the last
/// number sets the number of row groups.
const WORST: &[Shape] = &[
    // Labels and values of many rows. Broken rows with long texts.
    [0, 200_000, 4_000, 16, 1, 2],
    [0, 200_000, 4_096, 2, 1, 60],
    [0, 200_000, 100_000, 1, 1, 2],
    [0, 200_000, 1, 2_000, 1, 2],
    [0, 20_000, 1_000_000, 40, 1, 2],
    // Wide files: each value of a row is in another series.
    [1, 200_000, 4_000, 8, 64, 3],
    [1, 200_000, 60, 2, 64, 250],
    [1, 200_000, 0, 0, 64, 1],
    // Entries.
    [2, 200_000, 1_000_000, 0, 1, 2],
    [2, 200_000, 1_000_000, 0, 60, 2],
    [2, 200_000, 2_000_000, 0, 1, 2],
    [2, 200_000, 3, 0, 1, 2],
    // Prefix-compressed texts, then pages of one short text with padding.
    [3, 200_000, 1_000_000, 1, 1, 1],
    [3, 200_000, 50, 1, 1, 1],
    [4, 3_000, 1_000_000, 1, 1, 1],
    [4, 3_000, 100, 1, 1, 1],
    // Pages with false numbers: decompressed length, values of a dictionary, lengths of texts.
    [5, 9, 1 << 30, 1, 1, 1],
    [5, 9, 1 << 27, 60, 1, 1],
    [6, 9, 1 << 30, 1, 1, 1],
    [7, 9, 1 << 40, 1, 1, 1],
    [7, 9, 1 << 30, 1, 1, 1],
    // Many columns, and many row groups.
    [8, 9, 1, 5_000, 64, 1],
    [9, 9, 1, 1, 1, 20_000],
];

#[test]
fn no_parquet_file_takes_more_memory_than_the_stated_limit() {
    climb::climb("Parquet", WORST, TRIES, |shape| {
        let (file, footer_bytes) = file(shape);
        let given = Given { texts: shape[0] % 10 == 2, wide: shape[0] % 10 == 1, ..Given::default() };
        let body = file.len();
        let peak = climb::peak(|| read(file, &given));
        Taken { peak, bound: memory_bytes_max(footer_bytes), body }
    });
}

fn read(file: Bytes, given: &Given) {
    let base = vec![("job".to_owned(), "j".to_owned())];
    let Ok(mut parquet) = Parquet::open(file, given, TimeZone::UTC, base) else { return };
    for _ in 0..BLOCKS_MAX {
        let Some(rows) = parquet.next_rows() else { return };
        drop(rows);
    }
}

fn file(shape: &Shape) -> (Bytes, usize) {
    let [form, rows, text_bytes, labels, values, texts] = *shape;
    let form = form % 10;
    let lies = (5..=7).contains(&form);
    let rows = rows.clamp(1, 200_000);
    let length = text_bytes.min(2_000_000);
    let (labels, values, texts) = (labels.min(5_000), values.clamp(1, 64), texts.clamp(1, 300));
    // Limits the sum of all texts of a dictionary to 16 MB.
    let length = if lies { 1 } else { length.min(16_000_000 / (labels.max(values) * texts).max(1)) };
    let mut file = File::new(rows, if form == 9 { texts * 60 } else { 1 });
    file.add(Column::numbers("time", rows));
    if form != 1 {
        file.add(Column::texts("name", rows, &["n".into()], 1));
    }
    for nth in 0..labels {
        let choice: Vec<Vec<u8>> = (0..texts).map(|text| text_of(text, length)).collect();
        let column = Column::texts(&format!("label{nth}"), rows, &choice, 1 + nth * 7);
        file.add(match form {
            3 => Column::prefixed(&format!("label{nth}"), rows, length),
            4 => Column::padded(&format!("label{nth}"), rows.min(3_000), length),
            5 => column.lying(Page::claim_unpacked, text_bytes),
            6 => column.lying(Page::claim_values, text_bytes),
            7 => Column::prefixed(&format!("label{nth}"), rows, 1).lying(Page::claim_lengths, text_bytes),
            _ => column,
        });
    }
    for nth in 0..values {
        let choice: Vec<Vec<u8>> = (0..texts).map(|text| text_of(text, length)).collect();
        file.add(match form {
            2 => Column::texts(&format!("value{nth}"), rows, &choice, 1),
            _ if nth == 0 => Column::numbers("value", rows),
            _ => Column::numbers(&format!("value{nth}"), rows),
        });
    }
    file.bytes()
}

/// A text of `length` bytes, but at least 3. Two numbers `nth` below 1,000 give different texts.
fn text_of(nth: usize, length: usize) -> Vec<u8> {
    let mut text = format!("{nth:03}").into_bytes();
    text.resize(length.max(3), b'v');
    text
}
