//! Which data is measured? Sets that the tests of this crate generate, and folders of files.

use std::fs;
use std::path::{Path, PathBuf};

use tacho_chunk::ValueColumn;
use tacho_model::Segment;

use crate::common::rng::Rng;
use crate::common::{columns, logs, web};

/// Number of values per series in a chunk, as in the store's merges.
const CHUNK: usize = 8_192;

/// A data set. Each set is a row of the first table, and a column of the last two tables.
pub struct Set {
    pub name: String,
    pub data: Vec<Data>,
}

/// Records of one kind, which are encoded into one or several chunks.
pub enum Data {
    /// Series with the same strictly ascending times, in ns.
    Samples {
        at: Vec<i64>,
        columns: Vec<ValueColumn>,
    },
    Texts(Vec<String>),
    Calls(Vec<Segment>),
}

/// The sets that need no file.
pub fn generated() -> Vec<Set> {
    let named = |name: &str, data| Set { name: name.into(), data };
    let walk = columns::walk(&mut Rng(2), CHUNK);
    vec![
        named("mixed", columns::all(CHUNK).into_iter().map(|column| regular(vec![column.values])).collect()),
        named("jitter", [0.05e6, 3e6, 20e6].map(|ns| jittered(ns, &walk)).into()),
        named("short", {
            let columns = columns::all(24).into_iter().map(|column| regular(vec![column.values]));
            columns.chain([jittered(3e6, &walk[..24])]).collect()
        }),
        named(
            "states",
            [(5, 8_192), (40, 2_000), (900, CHUNK), (5, 60)].map(|(of, count)| states(of, count)).into(),
        ),
        named("logs", logs::ALL.iter().map(|log| Data::Texts(log.lines(1, CHUNK))).collect()),
        named("calls", {
            let requests = web::requests(6_000, 7);
            let tasks = web::with_tasks(&web::requests(3_000, 8), 9);
            let loops = web::with_loops(&web::requests(1_000, 10), 11);
            [requests, tasks, loops].map(Data::Calls).into()
        }),
    ]
}

/// Texts, each the name of one of `of` states. The first states are the most frequent.
fn states(of: u64, count: usize) -> Data {
    let mut rng = Rng(9);
    let mut state = || (rng.unit() * rng.unit() * of as f64) as u64;
    let name = |state| {
        format!(
            "{} of {}",
            ["running", "starting", "stopped", "failed"][state as usize % 4],
            web::uuid_text(u128::from(state) << 70)
        )
    };
    Data::Texts((0..count).map(|_| name(state())).collect())
}

/// Columns with a sample every ten seconds.
fn regular(columns: Vec<ValueColumn>) -> Data {
    let count = columns.first().map_or(0, |column| column.as_values().len());
    Data::Samples { at: (0..count as i64).map(|n| n * 10_000_000_000).collect(), columns }
}

/// A walk of whole numbers. Its times are late by random amounts around `ns`.
fn jittered(ns: f64, walk: &[f64]) -> Data {
    let mut rng = Rng(4);
    let at = (0..walk.len() as i64).map(|n| n * 10_000_000_000 + rng.around(ns, 0.8) as i64).collect();
    Data::Samples { at, columns: vec![ValueColumn::F64(columns::whole(walk))] }
}

/// Reads a folder: one set for each folder in it, ordered by name.
pub fn read(folder: &Path) -> Result<Vec<Set>, String> {
    let mut sets = vec![];
    for path in listed(folder)?.into_iter().filter(|path| path.is_dir()) {
        let mut data = vec![];
        for file in listed(&path)? {
            let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            match file.extension().and_then(|ending| ending.to_str()) {
                Some("csv") => {
                    data.push(samples(&text).map_err(|error| format!("{}: {error}", file.display()))?);
                }
                Some("log") => data.extend(texts(&text)),
                _ => return Err(format!("{}: neither .csv nor .log", file.display())),
            }
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        sets.push(Set { name, data });
    }
    Ok(sets)
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut paths =
        entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect::<Result<Vec<_>, String>>()?;
    paths.sort();
    Ok(paths)
}

/// A group from a CSV file. The heading has `time` and one type (`f64`, `i64`, `u64`) per column. Each row has a time in
/// ns and the values.
fn samples(text: &str) -> Result<Data, String> {
    let mut rows = text.lines();
    let types: Vec<&str> = rows.next().unwrap_or_default().split(',').skip(1).collect();
    let (mut at, mut cells) = (vec![], vec![vec![]; types.len()]);
    for (number, row) in (2..).zip(rows) {
        let mut parts = row.split(',');
        let time = parts.next().and_then(|time| time.parse::<i64>().ok());
        at.push(
            time.filter(|time| at.last() < Some(time))
                .ok_or(format!("row {number} does not begin with a later time: {row:?}"))?,
        );
        for cells in &mut cells {
            cells.push(parts.next().ok_or(format!("row {number} is short: {row:?}"))?);
        }
    }
    let column = |(kind, cells): (&&str, &Vec<&str>)| {
        let wrong = || format!("a value is not of type {kind:?}");
        match *kind {
            "f64" => all(cells).map(ValueColumn::F64).ok_or_else(wrong),
            "i64" => all(cells).map(ValueColumn::I64).ok_or_else(wrong),
            "u64" => all(cells).map(ValueColumn::U64).ok_or_else(wrong),
            other => Err(format!("unknown type {other:?}")),
        }
    };
    let columns = types.iter().zip(&cells).map(column).collect::<Result<_, String>>()?;
    Ok(Data::Samples { at, columns })
}

fn all<T: std::str::FromStr>(cells: &[&str]) -> Option<Vec<T>> {
    cells.iter().map(|cell| cell.parse().ok()).collect()
}

/// The lines of a log, split into parts of the size of a chunk.
fn texts(text: &str) -> Vec<Data> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.chunks(CHUNK).map(|lines| Data::Texts(lines.to_vec())).collect()
}

/// A series that never changes.
#[cfg(test)]
pub fn constant() -> Data {
    regular(vec![ValueColumn::F64(vec![1.5; 100])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_csv_file_is_a_group() {
        let Ok(Data::Samples { at, columns }) = samples("time,f64,i64,u64\n5,1.5,-2,3\n7,nan,4,5\n") else {
            panic!("the file was not read as a group");
        };
        assert_eq!(at, [5, 7]);
        assert!(matches!(&columns[0], ValueColumn::F64(values) if values[0] == 1.5 && values[1].is_nan()));
        assert_eq!(columns[1], ValueColumn::I64(vec![-2, 4]));
        assert_eq!(columns[2], ValueColumn::U64(vec![3, 5]));
        let fails = |text: &str| samples(text).err().unwrap_or_default();
        assert_eq!(fails("time,f64\n5,1\n5,2\n"), "row 3 does not begin with a later time: \"5,2\"");
        assert_eq!(fails("time,f64,f64\n5,1\n"), "row 2 is short: \"5,1\"");
        assert_eq!(fails("time,u64\n5,-1\n"), "a value is not of type \"u64\"");
        assert_eq!(fails("time,bool\n"), "unknown type \"bool\"");
    }
}
