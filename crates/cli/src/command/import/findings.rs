//! Findings about the files of an import: how they are read, broken rows, and doubts about their interpretation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tacho_api::units;
use tacho_ingest::rows::Block;
use tacho_model::Timestamp;

use super::early::{Counted, Early};

/// Limit on the broken rows that are reported one by one. The file of `--rejects` gets all broken rows that can be read
/// (`docs/guide/import.md`).
const BROKEN_NAMED_MAX: usize = 20;
/// Limit on the reported ways of reading. Each way is reported once, with the first file that is read in this way.
const WAYS_NAMED_MAX: usize = 20;
/// Limit on the reported columns that have texts and no numbers.
const COLUMNS_NAMED_MAX: usize = 20;
/// Limit on the reported doubts about how files are read. The same limit applies to the doubts about whole files.
const DOUBTS_NAMED_MAX: usize = 5;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// For each way of reading: the first file and the number of files.
    ways: BTreeMap<String, (PathBuf, u64)>,
    /// Number of reported ways.
    said: usize,
    /// Whether nothing is reported, because the files are read a second time.
    #[serde(skip)]
    quiet: bool,
    /// Number of all doubts about how files are read.
    doubts: u64,
    pub rows: u64,
    pub broken: u64,
    /// Number of broken rows that are imported without their broken values.
    #[serde(default)]
    partly: u64,
    /// The first broken rows, with their files and reasons.
    named: Vec<String>,
    exemplars: u64,
    /// Number of downsampled values. Each summarizes many samples.
    thinned: u64,
    /// The first doubts about whole files.
    #[serde(default)]
    warnings: Vec<String>,
    /// Number of all doubts about whole files.
    #[serde(default)]
    late_doubts: u64,
    /// The times of the current file, to detect a wrong unit.
    #[serde(default)]
    early: Early,
    /// Number of texts in columns without numbers, by column.
    #[serde(default)]
    texts_skipped: BTreeMap<String, u64>,
    pub files: u64,
    /// The columns of the CSV files. If their headers differ, the columns of the last file.
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
    has_several_headers: bool,
}

impl Findings {
    /// For a second reading of the files.
    pub fn quiet() -> Self {
        Self { quiet: true, ..Self::default() }
    }

    /// Reports how a file is read, unless an earlier file was read the same way. Reports the doubts about this way of reading.
    pub fn file(&mut self, file: &Path, description: String, doubts: Vec<String>, columns: Vec<String>) {
        self.has_several_headers |= self.files > 0 && self.columns != columns;
        self.columns = columns;
        self.files += 1;
        let room = (DOUBTS_NAMED_MAX as u64).saturating_sub(self.doubts);
        self.doubts += doubts.len() as u64;
        if self.quiet {
            return;
        }
        let name = file.display();
        if !self.ways.contains_key(&description) && self.said < WAYS_NAMED_MAX {
            self.said += 1;
            eprintln!("{name}: {description}");
        }
        for doubt in doubts.iter().take(usize::try_from(room).unwrap_or(usize::MAX)) {
            eprintln!("warning: {name}: {doubt}");
        }
        self.ways.entry(description).or_insert_with(|| (file.to_owned(), 0)).1 += 1;
    }

    /// Collects the doubts about a whole file at its end.
    pub fn end(&mut self, file: &Path, lacks: Option<String>, counted: Option<Counted>) {
        let early = std::mem::take(&mut self.early);
        let early = counted.and_then(|counted| early.doubt(counted));
        for doubt in lacks.into_iter().chain(early).filter(|_| !self.quiet) {
            self.late_doubts += 1;
            if self.warnings.len() < DOUBTS_NAMED_MAX {
                self.warnings.push(format!("{}: {doubt}", file.display()));
            }
        }
    }

    /// Counts the rows of a block and collects the first broken ones. `now` is the time of records without a time.
    pub fn block(&mut self, file: &Path, block: &Block, now: Timestamp) {
        self.early.see(&block.batch, now);
        self.rows += block.rows;
        self.broken += block.broken.len() as u64 + block.lost;
        self.partly += block.partly;
        self.exemplars += block.exemplars;
        self.thinned += block.thinned;
        for (column, texts) in &block.texts_skipped {
            *self.texts_skipped.entry(column.clone()).or_default() += texts;
        }
        let room = BROKEN_NAMED_MAX.saturating_sub(self.named.len());
        let named = block.broken.iter().take(room).map(|broken| format!("{}: {broken}", file.display()));
        self.named.extend(named);
    }

    pub fn print(&self, rejects: Option<&Path>) {
        for broken in &self.named {
            eprintln!("broken: {broken}");
        }
        let more = self.broken.saturating_sub(self.named.len() as u64);
        if more > 0 {
            eprintln!("broken: {}", units::counted(more, "more row", "more rows"));
        }
        match rejects {
            Some(path) if self.broken > 0 => {
                eprintln!("broken rows that can be read are in {}{}", path.display(), self.header_told());
            }
            None if self.broken > 0 => eprintln!("hint: --rejects FILE keeps broken rows as they are"),
            _ => {}
        }
        self.print_texts();
        let doubts = self.doubts.saturating_sub(DOUBTS_NAMED_MAX as u64);
        if doubts > 0 {
            let more = units::counted(doubts, "more warning", "more warnings");
            eprintln!("warning: {more} about how files are read");
        }
        for warning in &self.warnings {
            eprintln!("warning: {warning}");
        }
        let more = self.late_doubts.saturating_sub(self.warnings.len() as u64);
        if more > 0 {
            eprintln!("warning: {} about whole files", units::counted(more, "more warning", "more warnings"));
        }
        if self.thinned > 0 {
            let samples = units::counted(self.thinned, "sample is", "samples are");
            eprintln!(
                "warning: {samples} averages or other aggregates according to the file; the store keeps them as recorded samples"
            );
        }
        if self.exemplars > 0 {
            let are = if self.exemplars == 1 { "exemplar is" } else { "exemplars are" };
            eprintln!("{} {are} skipped", units::count(self.exemplars));
        }
    }

    /// The end of a message: the file of broken rows has no header line, and `--columns` replaces the header line.
    fn header_told(&self) -> String {
        let names = self.columns.join(",");
        let is_plain =
            names.len() <= 300 && !self.columns.iter().any(|name| name.contains([',', '\'', '\n']));
        match (self.has_several_headers, self.columns.is_empty()) {
            (true, _) => ", without the header lines of their files".into(),
            (false, true) => String::new(),
            (false, false) if is_plain => {
                format!(", without the header line: --columns '{names}' names their columns")
            }
            (false, false) => ", without the header line of the file".into(),
        }
    }

    /// Prints one line for each column without numbers, for at most [`COLUMNS_NAMED_MAX`] columns.
    fn print_texts(&self) {
        for (column, texts) in self.texts_skipped.iter().take(COLUMNS_NAMED_MAX) {
            let (texts, is) = (units::count(*texts), if *texts == 1 { "text is" } else { "texts are" });
            eprintln!("column {column:?} holds no numbers: its {texts} {is} skipped");
        }
        let more = self.texts_skipped.len().saturating_sub(COLUMNS_NAMED_MAX);
        if more > 0 {
            eprintln!("texts of {} more columns are skipped", units::count(more as u64));
        }
        if !self.texts_skipped.is_empty() {
            eprintln!("hint: --text makes entries of texts; --value-column names the column that has them");
        }
    }

    /// For example `3 broken rows: 1 is skipped, 2 are partly imported`.
    pub fn broken_told(&self) -> String {
        let is = |count| if count == 1 { "is" } else { "are" };
        let rows = units::counted(self.broken, "broken row", "broken rows");
        let (partly, skipped) = (self.partly, self.broken.saturating_sub(self.partly));
        match (skipped, partly) {
            (skipped, 0) => format!("{rows} {} skipped", is(skipped)),
            (0, partly) => format!("{rows} {} partly imported, without the broken values", is(partly)),
            (skipped, partly) => format!(
                "{rows}: {} {} skipped, {} {} partly imported",
                units::count(skipped),
                is(skipped),
                units::count(partly),
                is(partly)
            ),
        }
    }

    pub fn texts_skipped(&self) -> u64 {
        self.texts_skipped.values().sum()
    }

    /// Number of columns with texts and without numbers.
    pub fn text_columns(&self) -> usize {
        self.texts_skipped.len()
    }

    pub fn json(&self) -> Value {
        let ways: Vec<Value> = self
            .ways
            .iter()
            .map(|(description, (first, files))| {
                json!({ "description": description, "first": first, "files": files })
            })
            .collect();
        json!({
            "files": self.files,
            "formats": ways,
            "doubts": self.doubts,
            "rows": self.rows,
            "broken": self.broken,
            "partly_imported": self.partly,
            "broken_named": self.named,
            "warnings": self.warnings,
            "exemplars_skipped": self.exemplars,
            "thinned": self.thinned,
            "texts_skipped": self.texts_skipped,
        })
    }
}

/// For example `1,234 samples and 5 entries`.
pub fn records(samples: u64, entries: u64) -> String {
    match (samples, entries) {
        (samples, 0) => units::counted(samples, "sample", "samples"),
        (0, entries) => units::counted(entries, "entry", "entries"),
        (samples, entries) => format!("{} and {}", records(samples, 0), records(0, entries)),
    }
}
