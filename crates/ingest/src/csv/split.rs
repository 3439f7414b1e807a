//! Where do rows and cells end?
//!
//! Only a quote at the beginning of a cell opens a quoted cell (RFC 4180). In other cells a quote is an ordinary character,
//! because some programs write such quotes.

use std::borrow::Cow;
use std::ops::Range;

/// Limits on the bytes of a row with quotes, and on the line feeds inside of its quotes. A row above a limit ends with its first
/// line, so that an unclosed quote costs only this line and not the rest of the file.
pub const ROW_BYTES_MAX: usize = 4 << 20;
const ROW_LINES_MAX: usize = 1_000;

/// Length of the first row with its line feed; `None` if the end of the row is missing.
///
/// In a row of several lines, each closing quote after the first line must be directly before a delimiter or the end of
/// a line. Otherwise the opening quote is an error in the file, and the row is only its first line.
fn row_length(bytes: &[u8], delimiter: u8) -> Option<usize> {
    let line = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
    let head = line.map_or(bytes, |end| bytes.get(..end).unwrap_or(bytes));
    if !head.contains(&b'"') {
        return line;
    }
    let (mut quoted, mut begins, mut lines) = (false, true, 0);
    let mut rest = bytes.iter().enumerate().take(ROW_BYTES_MAX).peekable();
    while let Some((at, byte)) = rest.next() {
        match *byte {
            b'"' if quoted && lines > 0 => {
                let ends = |next: u8| next == delimiter || matches!(next, b'\n' | b'\r' | b'"');
                if rest.peek().is_some_and(|(_, next)| !ends(**next)) {
                    return line;
                }
                quoted = false;
            }
            b'"' if begins || quoted => quoted = !quoted,
            b'\n' if !quoted => return Some(at + 1),
            b'\n' if lines == ROW_LINES_MAX => return line,
            b'\n' => lines += 1,
            _ => {}
        }
        // A doubled quote closes the cell and opens it again. The second quote is not at the beginning of a cell, but
        // the state is the same.
        begins = !quoted && (*byte == delimiter || *byte == b'"');
    }
    if bytes.len() >= ROW_BYTES_MAX { line } else { None }
}

/// Whether a quote is still open at the end of a row.
pub(super) fn is_open(row: &[u8], delimiter: u8) -> bool {
    let (mut quoted, mut begins) = (false, true);
    for byte in row {
        quoted ^= *byte == b'"' && (begins || quoted);
        begins = !quoted && (*byte == delimiter || *byte == b'"');
    }
    quoted
}

/// Length of the complete rows at the front.
pub(super) fn whole(bytes: &[u8], delimiter: u8) -> usize {
    if !bytes.contains(&b'"') {
        return crate::rows::whole_lines(bytes);
    }
    let mut at = 0;
    while let Some(length) = bytes.get(at..).and_then(|rest| row_length(rest, delimiter)) {
        at += length;
    }
    at
}

/// Rows without their line ends, and their positions, which include the line ends. The last row may lack its line end.
pub(super) fn rows(block: &[u8], delimiter: u8) -> impl Iterator<Item = (Range<usize>, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = block.get(at..).filter(|rest| !rest.is_empty())?;
        let range = at..at + row_length(rest, delimiter).unwrap_or_else(|| last_length(rest, delimiter));
        at = range.end;
        let row = block.get(range.clone())?;
        let row = row.strip_suffix(b"\n").unwrap_or(row);
        Some((range, row.strip_suffix(b"\r").unwrap_or(row)))
    })
}

/// Length of a row without an end: all remaining bytes, or its first line if a quote is still open at the end.
fn last_length(rest: &[u8], delimiter: u8) -> usize {
    let line = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
    line.filter(|_| is_open(rest, delimiter)).unwrap_or(rest.len())
}

/// The text of a cell, trimmed if the cell was not quoted. [`cells`] returns quoted cells as owned strings.
#[expect(clippy::ptr_arg, reason = "the variant shows whether the cell was quoted")]
pub(super) fn cell_text<'a>(cell: &'a Cow<'_, str>) -> &'a str {
    match cell {
        Cow::Borrowed(plain) => plain.trim(),
        Cow::Owned(quoted) => quoted,
    }
}

/// The cells of a row, without their quotes.
pub(super) fn cells(row: &str, delimiter: char) -> Vec<Cow<'_, str>> {
    if !row.contains('"') {
        return row.split(delimiter).map(Cow::Borrowed).collect();
    }
    let mut out = Vec::new();
    let mut rest = row;
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            Some(inside) => quoted(inside, delimiter),
            None => match rest.split_once(delimiter) {
                Some((cell, after)) => (Cow::Borrowed(cell), Some(after)),
                None => (Cow::Borrowed(rest), None),
            },
        };
        out.push(cell);
        match after {
            Some(after) => rest = after,
            None => return out,
        }
    }
}

/// The text of a quoted cell after its opening quote, and the rest of the row after the next delimiter.
fn quoted(inside: &str, delimiter: char) -> (Cow<'_, str>, Option<&str>) {
    let mut cell = String::new();
    let mut rest = inside;
    while let Some((part, after)) = rest.split_once('"') {
        cell.push_str(part);
        match after.strip_prefix('"') {
            Some(after) => {
                cell.push('"');
                rest = after;
            }
            None => {
                let (tail, after) = match after.split_once(delimiter) {
                    Some((tail, after)) => (tail, Some(after)),
                    None => (after, None),
                };
                cell.push_str(tail);
                return (Cow::Owned(cell), after);
            }
        }
    }
    cell.push_str(rest);
    (Cow::Owned(cell), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(block: &str, expect: &[&[&str]]) {
        let got: Vec<Vec<String>> = rows(block.as_bytes(), b',')
            .map(|(_, row)| {
                cells(std::str::from_utf8(row).unwrap(), ',').into_iter().map(Cow::into_owned).collect()
            })
            .collect();
        assert_eq!(got, expect, "{block:?}");
    }

    #[test]
    fn quotes_hold_delimiters_and_line_feeds() {
        check("a,b\nc,d", &[&["a", "b"], &["c", "d"]]);
        check("a,\"b,\"\"c\"\"\nd\"\r\ne,f\r\n", &[&["a", "b,\"c\"\nd"], &["e", "f"]]);
        check("a\"b,c\"\nd,e\n", &[&["a\"b", "c\""], &["d", "e"]]);
        check("\"\",x\n\"a\"\"\",y\n", &[&["", "x"], &["a\"", "y"]]);
        check(",\n", &[&["", ""]]);
    }

    #[test]
    fn a_row_without_its_end_is_incomplete() {
        for (bytes, expect) in
            [("a,b\nc", 4), ("a,\"b\n", 0), ("a,\"b\nc\"\nd", 8), ("", 0), ("a\"\nb", 3), ("\"a\"\"\n", 0)]
        {
            assert_eq!(whole(bytes.as_bytes(), b','), expect, "{bytes:?}");
        }
    }

    #[test]
    fn an_unclosed_quote_costs_one_line() {
        // An unclosed quote at the end of a file, above the limit of bytes, above the limit of lines, and before a
        // later quote that opens a cell.
        let ends =
            [String::new(), "x".repeat(ROW_BYTES_MAX), "z\n".repeat(ROW_LINES_MAX), "3,\"z\"\n".into()];
        for end in ends {
            let block = format!("1,\"x\n2,y\n{end}").into_bytes();
            let first: Vec<&[u8]> = rows(&block, b',').take(2).map(|(_, row)| row).collect();
            assert_eq!(first, [b"1,\"x", &b"2,y"[..]]);
            assert!(is_open(first[0], b',') && !is_open(first[1], b','));
        }
        let long = format!("1,\"{}\"\n2,y", "z\n".repeat(ROW_LINES_MAX));
        assert_eq!(
            rows(long.as_bytes(), b',').count(),
            2,
            "a row with as many lines as allowed must be one row"
        );
    }
}
