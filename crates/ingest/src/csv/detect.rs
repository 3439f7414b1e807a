//! How is this file written? Detects the [`Dialect`] from the first rows. The user sees the result before any row is
//! imported.
//!
//! The detection chooses the delimiter, time format and number format that fit the most rows of the head. So a few broken
//! rows change nothing. The order of day and month is not guessed, because a wrong guess would not be noticed: ambiguous dates
//! are an error. Only dates with AM or PM are assumed to begin with the month.

use super::dialect::{Dialect, Shape};
use super::number::{self, Numbers};
use super::{header, split};
use crate::rows::shown;
use crate::time_text::{TimeFormat, TimeReader, Unit};
use jiff::tz::TimeZone;

/// Limit on the rows of the head that are examined to detect the delimiter, times and columns.
const ROWS_MAX: usize = 500;
/// Limit on the values that are examined to detect the number format. Values of only digits and `-` are not examined.
const VALUES_MAX: usize = 2_000;

const DELIMITERS: [u8; 4] = [b';', b'\t', b'|', b','];

/// If several patterns fit equally well, the first pattern is chosen. If both patterns of a [`DAY_OR_MONTH_FIRST`] pair fit
/// equally well, the result is an error.
const PATTERNS: [&str; 16] = [
    "%d.%m.%Y %H:%M:%S%.f",
    "%d.%m.%Y %H:%M:%S,%f",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%d/%b/%Y:%H:%M:%S %z",
    DAY_OR_MONTH_FIRST[0][0],
    DAY_OR_MONTH_FIRST[0][1],
    DAY_OR_MONTH_FIRST[1][0],
    DAY_OR_MONTH_FIRST[1][1],
    DAY_OR_MONTH_FIRST[2][0],
    DAY_OR_MONTH_FIRST[2][1],
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %I:%M %p",
];
/// Pairs of formats that the same text can match.
const DAY_OR_MONTH_FIRST: [[&str; 2]; 3] = [
    ["%d/%m/%Y %H:%M:%S%.f", "%m/%d/%Y %H:%M:%S%.f"],
    ["%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"],
    ["%d/%m/%Y", "%m/%d/%Y"],
];
/// Examples of the known time formats, for an error message.
const KNOWN_TIMES: &str = "numbers since 1970, ISO 8601 (2026-01-31T23:59:59Z), 31.01.2026, 31/01/2026, 01/31/2026 or \
                           2026/01/31 alone or with 23:59 or 23:59:59.999, 31/Jan/2026:23:59:59 +0000";

pub(crate) const TIME_NAMES: [&str; 9] =
    ["time", "timestamp", "date", "datetime", "ts", "@timestamp", "_time", "zeit", "datum"];
pub(crate) const VALUE_NAMES: [&str; 3] = ["value", "_value", "wert"];
pub(crate) const SERIES_NAMES: [&str; 5] = ["__name__", "name", "metric", "measurement", "series"];

/// Settings given by the user. All other settings are detected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    pub delimiter: Option<u8>,
    pub time: Option<TimeFormat>,
    pub decimal: Option<char>,
    pub thousands: Option<char>,
    pub time_column: Option<String>,
    /// Column of the values. If given, the file is a long file, unless `wide` is set.
    pub value_column: Option<String>,
    pub wide: bool,
    pub texts: bool,
    /// Column names for a file without a header.
    pub columns: Vec<String>,
    /// Number format of other files of this kind. It is used if the head of this file is ambiguous.
    pub like: Option<Numbers>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Detected {
    pub dialect: Dialect,
    pub header: Vec<String>,
    /// Bytes before the first row of data: a byte order mark, and the header with its line feed and the blank rows before it.
    pub header_bytes: usize,
    /// Number of rows up to and including the header. 0 if the file has no header.
    pub header_rows: u64,
    /// Messages about choices that may be wrong, for example because another number format fits the head equally well.
    pub doubts: Vec<String>,
    /// Whether the head determines the decimal point without doubt.
    pub numbers_certain: bool,
}

/// End position, row number (counted from 1), and cells of a row.
type Row = (usize, u64, Vec<String>);

/// Examines the head of a file. The first row that is not blank is the header, and at least one row must follow, unless
/// `given` has the names of the columns.
///
/// # Errors
/// - The first row that is not blank is not UTF-8.
/// - The header or all rows are missing, or the header would be misread.
/// - A setting cannot be detected. The error names the option that sets it.
/// - A column of `given` does not exist.
pub fn detect(head: &[u8], given: &Given) -> Result<Detected, String> {
    let (head, bom) = head.strip_prefix(b"\xef\xbb\xbf").map_or((head, 0), |rest| (rest, 3));
    let delimiter = given.delimiter.unwrap_or_else(|| delimiter(head));
    header::check_text(head, delimiter)?;
    let table = table(head, delimiter);
    let (header_end, header_rows, header, rows) = match (&*table, &*given.columns) {
        ([], _) => return Err("file has no header".into()),
        ([_], []) => return Err("file has a header and no rows".into()),
        ([(end, number, header), rows @ ..], []) => (*end, *number, header.clone(), rows),
        ([(_, _, first), ..], names) => {
            header::check_given(names, first)?;
            (0, 0, names.to_vec(), &*table)
        }
    };
    let time_column = match &given.time_column {
        Some(name) => position(&header, name)?,
        None => header.iter().position(|name| is_one_of(name, &TIME_NAMES)).unwrap_or(0),
    };
    let cells = |column: usize| rows.iter().filter_map(move |row| row.2.get(column)).map(String::as_str);
    let time = match &given.time {
        Some(time) => time.clone(),
        None => time_format(&cells(time_column).collect::<Vec<_>>())?,
    };
    let is_named = given.time_column.as_ref().is_some_and(|name| header.contains(name));
    if given.columns.is_empty() && !is_named {
        header::check_no_row(&header, time_column, &time)?;
    }
    header::check_names(&header)?;
    let shape = shape(&header, time_column, given)?;
    if matches!(shape, Shape::Wide) {
        header::check_unnamed(&header, time_column, cells)?;
    }
    let holds_values = |column: usize| match shape {
        Shape::Wide => column != time_column,
        Shape::Long { value_column, .. } => column == value_column,
    };
    let values = match given.texts {
        true => vec![],
        false => odd_values(head.get(header_end..).unwrap_or(head), delimiter, holds_values),
    };
    let Found { numbers, doubtful, mut doubts, certain } = numbers(&values, delimiter, given);
    let text_columns = match shape {
        Shape::Wide if !given.texts => {
            let is_text = |column: &usize| *column != time_column && is_text(cells(*column), numbers);
            (0..header.len()).filter(is_text).collect()
        }
        _ => vec![],
    };
    if let Shape::Long { value_column, .. } = shape
        && !given.texts
        && is_text(cells(value_column), numbers)
    {
        let name = header.get(value_column).map_or("", String::as_str);
        doubts.push(format!("column {name:?} holds no numbers: --text imports its texts as entries"));
    }
    let texts = given.texts;
    let dialect = Dialect { delimiter, time, numbers, time_column, shape, texts, text_columns, doubtful };
    let header_bytes = header_end + bom;
    Ok(Detected { dialect, header, header_bytes, header_rows, doubts, numbers_certain: certain })
}

/// The first rows of the head, at most [`ROWS_MAX`]. Blank rows and rows that are not UTF-8 are omitted.
fn table(head: &[u8], delimiter: u8) -> Vec<Row> {
    let cells =
        |row: &str| split::cells(row, char::from(delimiter)).iter().map(|c| c.trim().to_owned()).collect();
    (1..)
        .zip(split::rows(head, delimiter))
        .filter_map(|(number, (range, row))| Some((range.end, number, std::str::from_utf8(row).ok()?)))
        .filter(|(_, _, row)| !row.trim().is_empty())
        .take(ROWS_MAX)
        .map(|(end, number, row)| (end, number, cells(row)))
        .collect()
}

/// Whether a column has values and none of them is a number.
fn is_text<'a>(cells: impl Iterator<Item = &'a str>, numbers: Numbers) -> bool {
    let mut scratch = String::new();
    let mut cells = cells.filter(|cell| !cell.is_empty()).peekable();
    cells.peek().is_some() && cells.all(|cell| numbers.read(cell, &mut scratch).is_none())
}

/// The values that can show the number format: those with other characters than digits and `-`.
fn odd_values(rows: &[u8], delimiter: u8, holds_values: impl Fn(usize) -> bool) -> Vec<String> {
    let plain = |cell: &str| cell.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let rows = split::rows(rows, delimiter).filter_map(|(_, row)| std::str::from_utf8(row).ok());
    rows.flat_map(|row| split::cells(row, char::from(delimiter)).into_iter().enumerate())
        .filter(|(column, cell)| holds_values(*column) && !plain(cell.trim()))
        .map(|(_, cell)| cell.trim().to_owned())
        .take(VALUES_MAX)
        .collect()
}

pub(crate) fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Finds a column by its name, otherwise by its number, counted from 1.
pub(crate) fn position(header: &[String], name: &str) -> Result<usize, String> {
    let by_number = || name.parse::<usize>().ok()?.checked_sub(1).filter(|column| *column < header.len());
    header.iter().position(|column| column == name).or_else(by_number).ok_or_else(|| {
        let known: Vec<&str> = header.iter().map(String::as_str).collect();
        format!("no column {name:?}, there are {}", shown(&known.join(", ")))
    })
}

/// The delimiter with which the most rows have as many cells as the header. The header must have at least two cells. If it
/// has only one cell with each delimiter, the result is the comma.
fn delimiter(head: &[u8]) -> u8 {
    let even = |delimiter: &u8| {
        let mut counts = split::rows(head, *delimiter)
            .filter_map(|(_, row)| std::str::from_utf8(row).ok())
            .filter(|row| !row.trim().is_empty())
            .take(ROWS_MAX)
            .map(|row| split::cells(row, char::from(*delimiter)).len());
        let header = counts.next().unwrap_or(0);
        if header < 2 { 0 } else { 1 + counts.filter(|count| *count == header).count() }
    };
    let counts = DELIMITERS.map(|delimiter| (even(&delimiter), delimiter));
    // Of equal counts, `max_by_key` returns the last. Because of `rev`, this is the first delimiter of the list.
    counts
        .into_iter()
        .rev()
        .filter(|(count, _)| *count > 0)
        .max_by_key(|(count, _)| *count)
        .map_or(b',', |(_, d)| d)
}

pub(crate) fn time_format(cells: &[&str]) -> Result<TimeFormat, String> {
    let numbers: Vec<f64> = cells.iter().filter_map(|cell| cell.parse().ok()).collect();
    let unit = numbers.first().map_or(Unit::Seconds, |number| Unit::guess(*number));
    let candidates = [TimeFormat::Iso, TimeFormat::Epoch(unit)];
    let candidates: Vec<TimeFormat> =
        candidates.into_iter().chain(PATTERNS.map(|pattern| TimeFormat::Pattern(pattern.into()))).collect();
    let fits = |format: &TimeFormat| {
        let mut reader = TimeReader::new(format.clone(), TimeZone::UTC);
        cells.iter().filter(|cell| reader.read(cell).is_ok()).count()
    };
    // `best` is the first of several formats that fit equally well. The search ends at a format that fits all rows.
    let mut best: Option<(usize, &TimeFormat)> = None;
    for format in &candidates {
        let count = fits(format);
        best = best.filter(|(before, _)| *before >= count).or(Some((count, format)));
        if count == cells.len() {
            break;
        }
    }
    let first = || shown(cells.first().unwrap_or(&""));
    let Some((count, best)) = best.filter(|(count, _)| *count * 2 > cells.len()) else {
        return Err(format!(
            "unknown time format in {}: known are {KNOWN_TIMES}; --time-format sets another format, \
             --time-column selects the column of times",
            first()
        ));
    };
    let of_pattern = |pattern: &str| TimeFormat::Pattern(pattern.into());
    let pair = DAY_OR_MONTH_FIRST.iter().find(|pair| pair.iter().any(|one| of_pattern(one) == *best));
    if let Some([day, month]) = pair.filter(|pair| pair.map(|one| fits(&of_pattern(one))) == [count, count]) {
        return Err(format!(
            "ambiguous day and month in {}: give --time-format '{day}' or '{month}'",
            first()
        ));
    }
    Ok(best.clone())
}

fn shape(header: &[String], time_column: usize, given: &Given) -> Result<Shape, String> {
    let named = |names: &[&str]| {
        header.iter().enumerate().position(|(column, name)| column != time_column && is_one_of(name, names))
    };
    let value_column = match &given.value_column {
        _ if given.wide => None,
        Some(name) => Some(position(header, name)?),
        // A file with only a time and a value is a wide file of one series.
        None => named(&VALUE_NAMES).filter(|_| header.len() > 2),
    };
    Ok(match value_column {
        Some(value_column) => {
            let name_column = named(&SERIES_NAMES).filter(|column| *column != value_column);
            Shape::Long { value_column, name_column }
        }
        None => Shape::Wide,
    })
}

struct Found {
    numbers: Numbers,
    doubtful: Option<Numbers>,
    doubts: Vec<String>,
    certain: bool,
}

/// The number format with which the most values are numbers. Of formats with equal counts, `given.like` comes first, then the
/// formats with its decimal point, then the formats with the other decimal point. Otherwise the order of `all` decides, which
/// begins with the decimal point `.` and no thousands separator.
fn numbers(values: &[String], delimiter: u8, given: &Given) -> Found {
    let separators = [None, Some(','), Some('.'), Some('\''), Some(' '), Some('\u{a0}'), Some('\u{202f}')];
    let all = ['.', ','].into_iter().flat_map(|decimal| {
        let separators = separators.into_iter().filter(move |separator| *separator != Some(decimal));
        separators.map(move |thousands| Numbers { decimal, thousands })
    });
    let allowed = |numbers: &Numbers| {
        given.decimal.is_none_or(|decimal| decimal == numbers.decimal)
            && given.thousands.is_none_or(|thousands| Some(thousands) == numbers.thousands)
    };
    let mut ranked: Vec<(usize, Numbers)> = given
        .like
        .into_iter()
        .chain(all)
        .filter(allowed)
        .map(|n| (number::fitting(n, values.iter().map(String::as_str)), n))
        .collect();
    let unlike = |numbers: &Numbers| given.like.is_some_and(|like| like.decimal != numbers.decimal);
    ranked.sort_by_key(|(count, numbers)| (std::cmp::Reverse(*count), unlike(numbers)));
    let said = Numbers { decimal: given.decimal.unwrap_or('.'), thousands: given.thousands };
    let (count, numbers) = ranked.first().copied().unwrap_or((0, said));
    let value = |numbers: Numbers, cell: &str| numbers.read(cell, &mut String::new()).map(f64::to_bits);
    let equals: Vec<Numbers> =
        ranked.iter().filter(|(other, n)| *other == count && *n != numbers).map(|(_, n)| *n).collect();
    let same_decimal = |other: &Numbers| other.decimal == numbers.decimal;
    let certain = count > 0 && equals.iter().all(same_decimal);
    if given.like == Some(numbers) {
        return Found { numbers, doubtful: None, doubts: vec![], certain };
    }
    // If the chosen format has the decimal point of other files, a format with another decimal point causes no doubt.
    let decided = given.like.as_ref().is_some_and(same_decimal);
    let equals: Vec<Numbers> = equals.into_iter().filter(|other| !decided || same_decimal(other)).collect();
    // A comma in a value may be the decimal point, but probably is not if commas also delimit the cells.
    let with_comma = values.iter().filter(|cell| delimiter != b',' && cell.contains(','));
    let two_readings = |other: &Numbers| {
        with_comma.clone().any(|cell| match (value(numbers, cell), value(*other, cell)) {
            (Some(one), Some(another)) => one != another,
            _ => false,
        })
    };
    let doubtful = equals.iter().copied().find(two_readings);
    let differs = |other: &Numbers| values.iter().find(|cell| value(numbers, cell) != value(*other, cell));
    let doubt = equals.iter().find_map(differs).filter(|_| doubtful.is_none());
    let doubts = doubt.map(|cell| {
        let read = numbers.read(cell, &mut String::new()).unwrap_or(f64::NAN);
        format!("{} is read as {read}; another number format fits as well", shown(cell))
    });
    Found { numbers, doubtful, doubts: doubts.into_iter().collect(), certain }
}
