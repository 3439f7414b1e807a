//! Which column is the time, which columns are values, and which are labels?

use parquet::file::metadata::FileMetaData;
use tacho_model::NAME;

use super::cell::Kind;
use super::own;
use crate::csv::{self, Given};

/// The columns of a file and their roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub columns: Vec<Column>,
    pub time: usize,
    /// Pairs of column and label. The column with the names of the series has the label [`NAME`].
    pub labels: Vec<(usize, String)>,
    pub shape: Shape,
    /// Whether values are texts or bytes, so that they become entries instead of samples.
    pub texts: bool,
    /// Whether the file is read in the layout of [`super::Writer`].
    pub is_own: bool,
    /// Names of the ignored columns.
    pub ignored: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// `None` for unsupported column types.
    pub kind: Option<Kind>,
}

/// The columns of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each column has series of its own. They have the name of the column unless a name is given.
    Wide(Vec<usize>),
    /// One value per row: the first value that is not null in these columns.
    Long(Vec<usize>),
}

impl Shape {
    pub fn columns(&self) -> &[usize] {
        match self {
            Self::Wide(columns) | Self::Long(columns) => columns,
        }
    }
}

impl Plan {
    /// Determines the roles of the columns from the footer and the given options.
    ///
    /// # Errors
    /// If two columns have the same name, no column holds values, or an option is missing or does not suit the file. The error
    /// names the reason.
    pub fn of(file: &FileMetaData, given: &Given) -> Result<Self, String> {
        let columns: Vec<Column> = file
            .schema_descr()
            .columns()
            .iter()
            .map(|column| Column { name: column.path().parts().join("."), kind: Kind::of(column) })
            .collect();
        check_names(&columns)?;
        if own::is_own(file) && own::fits(given) {
            let plan = own::plan(columns)?;
            if given.texts && !plan.texts {
                return Err("file holds samples, not texts: omit --text".into());
            }
            return Ok(plan);
        }
        let mut names = Names { columns, given, ignored: Vec::new() };
        let time = names.time()?;
        let shape = match names.value(time)? {
            Some(value) => Shape::Long(vec![value]),
            None => Shape::Wide(names.values(time)),
        };
        if shape.columns().is_empty() {
            let hint = "give --text if texts are the values";
            return Err(format!("no column holds numbers, columns are {}: {hint}", names.list()));
        }
        let labels = names.labels(time, &shape);
        let Names { columns, ignored, .. } = names;
        let texts = given.texts;
        Ok(Self { columns, time, labels, shape, texts, is_own: false, ignored })
    }

    pub fn column(&self, at: usize) -> &str {
        self.columns.get(at).map_or("?", |column| column.name.as_str())
    }

    pub fn kind(&self, at: usize) -> Option<Kind> {
        self.columns.get(at).and_then(|column| column.kind)
    }
}

/// Refuses two columns with the same name, because they would become one series, or one label.
fn check_names(columns: &[Column]) -> Result<(), String> {
    let mut seen = std::collections::HashMap::new();
    for (number, column) in (1..).zip(columns) {
        if let Some(first) = seen.insert(&column.name, number) {
            let name = &column.name;
            return Err(format!("columns {first} and {number} are both called {name:?}: rename one of them"));
        }
    }
    Ok(())
}

struct Names<'a> {
    columns: Vec<Column>,
    given: &'a Given,
    ignored: Vec<String>,
}

impl Names<'_> {
    fn kind(&self, at: usize) -> Option<Kind> {
        self.columns.get(at).and_then(|column| column.kind)
    }

    fn list(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        crate::rows::shown(&names.join(", "))
    }

    fn position(&self, name: &str) -> Result<usize, String> {
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        csv::position(&names, name)
    }

    fn find(&self, fits: impl Fn(&Column, Kind) -> bool) -> Option<usize> {
        self.columns.iter().position(|column| column.kind.is_some_and(|kind| fits(column, kind)))
    }

    /// Finds the column of times: by option, by name, then by type. The last choice is the first column, if it holds whole
    /// numbers.
    fn time(&self) -> Result<usize, String> {
        if let Some(name) = &self.given.time_column {
            let at = self.position(name)?;
            return match self.kind(at) {
                Some(kind) if kind.may_be_time() => Ok(at),
                _ => Err(format!("column {name:?} does not hold times")),
            };
        }
        let named = |column: &Column, kind: Kind| {
            kind.may_be_time() && csv::is_one_of(&column.name, &csv::TIME_NAMES)
        };
        let first = || self.kind(0).filter(|kind| matches!(kind, Kind::Signed | Kind::Unsigned)).map(|_| 0);
        self.find(named).or_else(|| self.find(|_, kind| kind.is_time())).or_else(first).ok_or_else(|| {
            format!("no column holds times, columns are {}: select one with --time-column", self.list())
        })
    }

    /// The column of values if the file is long; `None` if it is wide.
    fn value(&self, time: usize) -> Result<Option<usize>, String> {
        let holds_values = |kind: Option<Kind>| kind.is_some_and(|kind| self.given.texts || kind.is_number());
        if self.given.wide {
            return Ok(None);
        }
        if let Some(name) = &self.given.value_column {
            let at = self.position(name)?;
            if !holds_values(self.kind(at)) {
                return Err(format!("column {name:?} does not hold numbers: give --text for texts"));
            }
            return Ok(Some(at));
        }
        // A file with only a time and a value is a wide file of one series.
        let others = self.columns.iter().filter(|column| !is_index(&column.name)).count();
        let named = self.columns.iter().position(|column| csv::is_one_of(&column.name, &csv::VALUE_NAMES));
        let Some(at) = named.filter(|at| *at != time && others > 2) else { return Ok(None) };
        if !holds_values(self.kind(at)) {
            let name = &self.columns.get(at).map_or("", |column| column.name.as_str());
            return Err(format!("column {name:?} does not hold numbers: give --text for texts, or --wide"));
        }
        Ok(Some(at))
    }

    fn values(&self, time: usize) -> Vec<usize> {
        let texts = self.given.texts;
        let fits = |at: &usize| {
            *at != time
                && self.columns.get(*at).is_some_and(|column| {
                    !is_index(&column.name) && column.kind.is_some_and(|kind| texts || kind.is_number())
                })
        };
        (0..self.columns.len()).filter(fits).collect()
    }

    /// The remaining columns, without the row numbers that pandas writes. For a wide file, only columns of texts, bytes and
    /// UUIDs. Adds the names of unsuitable columns to `ignored`.
    fn labels(&mut self, time: usize, shape: &Shape) -> Vec<(usize, String)> {
        let mut out = Vec::new();
        let mut named = false;
        for (at, column) in self.columns.iter().enumerate() {
            if at == time || shape.columns().contains(&at) || is_index(&column.name) {
                continue;
            }
            let fits = |kind: Kind| match shape {
                Shape::Wide(_) => matches!(kind, Kind::Text | Kind::Bytes | Kind::Uuid),
                Shape::Long(_) => true,
            };
            if !column.kind.is_some_and(fits) {
                self.ignored.push(column.name.clone());
                continue;
            }
            let is_name =
                matches!(shape, Shape::Long(_)) && !named && csv::is_one_of(&column.name, &csv::SERIES_NAMES);
            named |= is_name;
            out.push((at, if is_name { NAME.to_owned() } else { column.name.clone() }));
        }
        out
    }
}

/// Whether this is the name that pandas gives to an unnamed index of a data frame.
fn is_index(name: &str) -> bool {
    name.starts_with("__index_level_")
}
