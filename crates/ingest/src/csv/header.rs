//! Is the first row a header that names each column? Refuses headers that would otherwise be misread without an error.

use jiff::tz::TimeZone;

use super::split;
use crate::rows::{not_utf8, shown};
use crate::time_text::{TimeFormat, TimeReader};

/// Refuses a file if its first row that is not blank is not UTF-8. This row is the header, unless the user names the columns.
pub(super) fn check_text(head: &[u8], delimiter: u8) -> Result<(), String> {
    let convert = |from: &str| format!("convert the file, for example with `iconv -f {from} -t utf-8`");
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return Err(format!("file is UTF-16, as its first two bytes say: {}", convert("utf-16")));
    }
    let mut rows = (1..).zip(split::rows(head, delimiter));
    let Some((number, (_, row))) = rows.find(|(_, (_, row))| !row.trim_ascii().is_empty()) else {
        return Ok(());
    };
    if let Some(at) = row.iter().position(|byte| *byte == 0) {
        // In UTF-16, each ASCII character has one zero byte. In little endian it is the second byte.
        let from = if at % 2 == 1 { "utf-16le" } else { "utf-16be" };
        let place = format!("row {number} has a zero byte at byte {}", at + 1);
        return Err(format!("{place}, probably UTF-16: {}", convert(from)));
    }
    match std::str::from_utf8(row) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("row {number}{}: {}", not_utf8(row, error), convert("latin1"))),
    }
}

/// Refuses two columns with the same name, because they would become one series, or one label.
pub(super) fn check_names(header: &[String]) -> Result<(), String> {
    let mut seen = std::collections::HashMap::new();
    for (number, name) in (1..).zip(header).filter(|(_, name)| !name.is_empty()) {
        if let Some(first) = seen.insert(name, number) {
            return Err(format!("columns {first} and {number} are both called {name:?}: rename one of them"));
        }
    }
    Ok(())
}

/// Refuses a column without a name if it has values, because the import would refuse each of them. The first column may have row
/// numbers and needs no name. `cells` returns the cells of a column in the first rows.
pub(super) fn check_unnamed<'a, I: Iterator<Item = &'a str>>(
    header: &[String],
    time_column: usize,
    cells: impl Fn(usize) -> I,
) -> Result<(), String> {
    let unnamed =
        |(column, name): &(usize, &String)| *column > 0 && *column != time_column && name.is_empty();
    for (column, _) in header.iter().enumerate().filter(unnamed) {
        if let Some(cell) = cells(column).find(|cell| !cell.is_empty()) {
            return Err(format!(
                "column {} has no name and holds {}: name it in the header, or all columns with --columns",
                column + 1,
                shown(cell)
            ));
        }
    }
    Ok(())
}

/// Refuses a header with a time at the position where the rows have their time.
pub(super) fn check_no_row(header: &[String], time_column: usize, time: &TimeFormat) -> Result<(), String> {
    let Some(cell) = header.get(time_column) else { return Ok(()) };
    if TimeReader::new(time.clone(), TimeZone::UTC).read(cell).is_err() {
        return Ok(());
    }
    let example = match header.len() {
        0..=2 => "time,value".to_owned(),
        _ => format!("time,NAME,... (there are {})", header.len()),
    };
    Err(format!(
        "no header: the first row has {}, a time as in the rows below; put a line with the column names \
         above it, or give them with --columns {example}",
        shown(cell)
    ))
}

pub(super) fn check_given(names: &[String], first: &[String]) -> Result<(), String> {
    match names.len() == first.len() {
        true => Ok(()),
        false => Err(format!("--columns names {} columns, the first row has {}", names.len(), first.len())),
    }
}
