//! `tacho export`: exports samples and entries of a server or a data directory. The command counts the records that it
//! received and computes their checksums, and compares both with the totals of the server or of the reader of the directory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::ProgressBar;
use serde_json::Value;
use tacho_ingest::json_lines::JsonLines;
#[cfg(feature = "parquet")]
use tacho_ingest::parquet::Writer;
use tacho_ingest::rows::Rows;
use tacho_ingest::{csv, line_rows};
use tacho_model::{Batch, Entry, Kind, Matcher, NAME, Sample, TimeRange};
use tacho_store::ErrorKind;

use super::{ask, mark, unmatched};
use crate::client;
use crate::failure::Failure;
use crate::terminal::progress;
use tacho_api::export::{ALLOW_DAMAGED, Totals};
use tacho_api::printable::printable;
use tacho_api::replace::sync_name;
use tacho_api::units;
use tacho_server::access::View;
use tacho_server::clock::SystemClock;
use tacho_server::data_directory;
use tacho_server::read::damage::sentences;
use tacho_server::read::reader::{self, Reader};

/// Write samples and entries of a server or a data directory to a file
///
/// jsonl is lossless; `tacho import` and VictoriaMetrics read it. csv has one record per row: samples, or entries with
/// `--only entries`. Without --only, csv and parquet files have samples, and omitted entries are counted. line is InfluxDB
/// line protocol, which has neither NaN nor infinities; omitted records are counted. parquet is lossless; pandas, polars
/// and DuckDB read it.
#[derive(clap::Args)]
#[command(
    group(clap::ArgGroup::new("series").required(true).multiple(true).args(["selectors", "matches", "all"])),
    after_help = "Examples:
  tacho export cpu_usage --output cpu.jsonl
  tacho export '{job=\"shop\"}' up --start 2026-01-01T00:00:00Z --format csv | head
  tacho export --all --output all.jsonl
  tacho export --all --only entries --data ./tacho-data --output entries.jsonl
  tacho export '{job=\"shop\"}' --format parquet --output shop.parquet

Exit codes:
  0  the records that fit the format are written, and all counts and checksums agree with the store;
     or the reader of a pipe has closed it, as `head` does
  1  failed: the message says why
  2  arguments are wrong; no record is written
  3  partly written: with --allow-damaged, unreadable records are missing")]
pub struct Export {
    /// Series: PromQL selectors, for example cpu_usage
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// The same as SELECTOR; repeatable
    #[arg(long = "match", value_name = "SELECTOR")]
    matches: Vec<String>,
    /// All series
    #[arg(long, conflicts_with_all = ["selectors", "matches"])]
    all: bool,
    #[command(flatten)]
    ends: ask::Ends,
    /// Output format
    #[arg(long, value_enum, default_value = "jsonl", value_name = "FORMAT")]
    format: Format,
    /// Records of this kind only
    #[arg(long, value_enum, value_name = "KIND")]
    only: Option<Only>,
    /// Write to this file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    server: ask::Server,
    /// Read this data directory; no server may be using it
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    data: Option<PathBuf>,
    /// Skip unreadable records and report them
    #[arg(long)]
    allow_damaged: bool,
    /// Print counts and checksums as JSON; needs --output
    #[arg(long, requires = "output")]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Jsonl,
    Csv,
    Line,
    /// Needs a build with the feature parquet
    Parquet,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    Samples,
    Entries,
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

/// Makes the output file durable, because a user may delete the exported records next. `path` may be a symbolic link.
fn sync(path: &Path, file: &File) -> io::Result<()> {
    // A pipe or a device cannot be synced.
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    file.sync_all()?;
    sync_name(&path.canonicalize()?)
}

impl Export {
    pub fn run(mut self) -> Result<(), Failure> {
        self.selectors.append(&mut self.matches);
        let selectors = match self.all {
            // A selector without matchers accepts every series. No text can express such a selector.
            true => vec![Vec::new()],
            false => mark::selectors(&self.selectors)?,
        };
        // Without `--only`, the user may expect both kinds in a file of one kind. The file gets the samples, and the omitted
        // entries are reported.
        let silent = self.is_of_one_kind() && self.only.is_none();
        if silent {
            self.only = Some(Only::Samples);
        }
        let to_terminal = self.output.is_none() && io::stdout().is_terminal();
        if self.format == Format::Parquet {
            #[cfg(not(feature = "parquet"))]
            return Err(super::import::without_parquet("Parquet cannot be written"));
            #[cfg(feature = "parquet")]
            if to_terminal {
                return Err(Failure::usage("Parquet is not for a terminal").hint("give --output FILE"));
            }
        }
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let create = |path: &PathBuf| File::create(path).map_err(|e| cannot_write(path, &e));
        let file = self.output.as_ref().map(create).transpose()?;
        let file = self.output.clone().zip(file);
        let out: Box<dyn Write + Send> = match &file {
            Some((path, file)) => Box::new(file.try_clone().map_err(|e| cannot_write(path, &e))?),
            None => Box::new(io::stdout()),
        };
        let bar = if to_terminal { ProgressBar::hidden() } else { progress::bar(0, "export") };
        let mut sink = Sink::new(self.format, out, bar);
        #[cfg(feature = "parquet")]
        self.kind().into_iter().for_each(|kind| sink.kind = kind);
        let said = match &self.data {
            Some(data) => runtime.block_on(self.read_directory(data, &selectors, silent, &mut sink)),
            None => runtime.block_on(self.read_server(silent, &mut sink)).map(|said| {
                let is_empty = said.totals.series == 0;
                let of_server = || unmatched::of_server(&self.server, &self.selectors, self.kind());
                Said { hint: is_empty.then(of_server).flatten(), ..said }
            }),
        };
        sink.bar.finish_and_clear();
        let ended = match said {
            Ok(said) => {
                let finished = sink.end().and_then(|()| match &file {
                    Some((path, file)) => sync(path, file).map_err(|e| cannot_write(path, &e)),
                    None => Ok(()),
                });
                let finished = finished.and_then(|()| self.finish(&said, &sink));
                if let Some(hint) = said.hint {
                    eprintln!("hint: {hint}");
                }
                finished
            }
            Err(failure) => Err(failure),
        };
        if sink.is_closed() { Ok(()) } else { ended }
    }

    /// Whether a file of the format has either samples or entries, never both.
    const fn is_of_one_kind(&self) -> bool {
        matches!(self.format, Format::Csv | Format::Parquet)
    }

    fn kind(&self) -> Option<Kind> {
        self.only.map(|only| match only {
            Only::Samples => Kind::Sample,
            Only::Entries => Kind::Entry,
        })
    }

    /// Compares the reported totals with the received records, and reports the result.
    fn finish(&self, said: &Said, sink: &Sink) -> Result<(), Failure> {
        let Said { totals: said, passed_over, incomplete, .. } = said;
        let Totals { samples, entries, .. } = *said;
        if (samples, entries) != (sink.totals.samples, sink.totals.entries) {
            let Totals { samples: got, entries: also, .. } = &sink.totals;
            return Err(Failure::new(format!(
                "the export is not whole: the store read {} records with checksum {:016x}, {} with {:016x} arrived",
                samples.count + entries.count,
                samples.sum.wrapping_add(entries.sum),
                got.count + also.count,
                got.sum.wrapping_add(also.sum)
            )));
        }
        let omitted = samples.count + entries.count - sink.written.samples.count - sink.written.entries.count;
        let Totals { samples, entries, .. } = sink.written;
        let written = Totals { samples, entries, ..*said };
        if self.json {
            let mut report = serde_json::json!(written);
            report["omitted"] = omitted.into();
            if let Some(passed_over) = passed_over {
                report["entries_omitted"] = serde_json::json!(passed_over);
            }
            if !incomplete.is_empty() {
                report["incomplete"] = serde_json::json!(incomplete);
            }
            ask::print_json(&report);
        } else {
            tell(&written, omitted, *passed_over);
            // Only files of one kind need this hint, because the other formats mark texts as entries.
            if self.only == Some(Only::Entries) && self.is_of_one_kind() && written.entries.count > 0 {
                eprintln!("hint: `tacho import --text` reads the file back");
            }
        }
        for missing in incomplete {
            eprintln!("warning: {}", printable(missing));
        }
        match incomplete.len() {
            0 => Ok(()),
            _ => Err(Failure::partly("the export is not complete: some records cannot be read")),
        }
    }

    fn path(&self, path: &str, more: &[(&str, Option<&str>)]) -> String {
        let ends = self.ends.params();
        let ends = ends.iter().map(|(name, value)| (*name, value.as_deref()));
        let selectors = self.selectors.iter().map(|selector| ("match[]", Some(selector.as_str())));
        let all = [("all", self.all.then_some("1"))];
        client::path(path, selectors.chain(all).chain(ends).chain(more.iter().copied()))
    }

    async fn read_server(&self, silent: bool, sink: &mut Sink) -> Result<Said, Failure> {
        let kind = self.kind().map(Kind::name);
        let allow = (ALLOW_DAMAGED, self.allow_damaged.then_some("1"));
        let path = self.path("/api/v1/export", &[("kind", kind), ("totals", Some("1")), allow]);
        let mut stream = self.server.client()?.stream(&path).await?;
        let mut lines = Vec::new();
        let mut totals = None;
        while let Some(part) = stream.next().await? {
            lines.extend_from_slice(&part);
            let whole = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            for line in lines[..whole].split_inclusive(|byte| *byte == b'\n') {
                match head(line) {
                    Some(Head::Labels(names)) => sink.begin(names)?,
                    Some(Head::Totals(said, incomplete)) => totals = Some((said, incomplete)),
                    Some(Head::Error(why)) => return Err(not_whole(why)),
                    None => sink.lines(line)?,
                }
            }
            lines.drain(..whole);
        }
        let early =
            || Failure::new("the server's response ended early").hint("the log of the server says why");
        let (totals, incomplete) = totals.ok_or_else(early)?;
        if !silent {
            return Ok(Said { totals, passed_over: None, incomplete, hint: None });
        }
        let only = [("kind", Some(Kind::Entry.name())), (ALLOW_DAMAGED, Some("1"))];
        let path = self.path("/api/v1/admin/count", &only);
        let answer = self.server.client()?.get_text(&path).await?;
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let records = ask::number(&answer["data"]["entries"], "records");
        let passed_over = PassedOver { records, complete: answer["data"]["complete"] != false };
        Ok(Said { totals, passed_over: Some(passed_over), incomplete, hint: None })
    }

    async fn read_directory(
        &self,
        data: &Path,
        selectors: &[Vec<Matcher>],
        silent: bool,
        sink: &mut Sink,
    ) -> Result<Said, Failure> {
        let cannot = |e: tacho_store::Error| ask::unreadable(data, &e);
        let broken = |e: tacho_store::Error| match e.kind() {
            ErrorKind::Corrupt => not_whole(e),
            _ => cannot(e),
        };
        ask::check_data_directory(data)?;
        let (store, _lock) =
            data_directory::open_read_only(data, Arc::new(SystemClock)).await.map_err(cannot)?;
        let store = View::whole(store);
        let found = reader::find(&store, selectors, self.kind());
        sink.begin(reader::label_names(&found))?;
        let all = TimeRange::ALL;
        let range = TimeRange::new(self.ends.start.unwrap_or(all.start), self.ends.end.unwrap_or(all.end));
        let reader = Reader::new(store.clone(), found, self.kind(), range);
        let mut reader = reader.over_damage(self.allow_damaged);
        while let Some(slice) = reader.next().await.map_err(broken)? {
            sink.lines(slice.lines().as_bytes())?;
        }
        let (totals, incomplete) = (reader.totals, sentences(&reader.damages()));
        let hint = match totals.series {
            0 => unmatched::of_store(&store, selectors, self.kind()),
            _ => None,
        };
        if !silent {
            return Ok(Said { totals, passed_over: None, incomplete, hint });
        }
        let entries = reader::find(&store, selectors, Some(Kind::Entry));
        let mut reader = Reader::new(store, entries, Some(Kind::Entry), range).over_damage(true);
        while reader.next().await.map_err(cannot)?.is_some() {}
        let (records, complete) = (reader.totals.entries.count, reader.damages().is_empty());
        Ok(Said { totals, passed_over: Some(PassedOver { records, complete }), incomplete, hint })
    }
}

fn tell(written: &Totals, omitted: u64, passed_over: Option<PassedOver>) {
    let Totals { series, samples, entries, lossy, bounds } = *written;
    let sum = samples.sum.wrapping_add(entries.sum);
    let count = units::count;
    eprintln!(
        "exported {} and {} of {} series, checksum {sum:016x}",
        units::counted(samples.count, "sample", "samples"),
        units::counted(entries.count, "entry", "entries"),
        count(series)
    );
    if lossy > 0 {
        let time = units::duration(bounds.time_ns);
        let are = if lossy == 1 { "is" } else { "are" };
        let (lossy, value) = (count(lossy), bounds.value);
        let thinned =
            bounds.thinned.map_or_else(String::new, |thinned| format!("; old values are {thinned}"));
        eprintln!(
            "warning: {lossy} series {are} not exact: values within {value:.3e}, times within {time}{thinned}"
        );
    }
    if omitted > 0 {
        let records = units::counted(omitted, "record does", "records do");
        eprintln!(
            "warning: {records} not fit the format and {} omitted",
            if omitted == 1 { "is" } else { "are" }
        );
    }
    if let Some(PassedOver { records, complete }) = passed_over.filter(|found| found.records > 0) {
        let least = if complete { "" } else { "at least " };
        let entries = units::counted(records, "entry is", "entries are");
        eprintln!(
            "warning: {least}{entries} omitted: a file of this format has samples or entries\n\
             hint: --only entries writes them (`tacho import --text` reads them back), --format jsonl writes both; --only \
             samples omits this warning"
        );
    }
}

/// What the server, or the reader of the data directory, reported.
struct Said {
    totals: Totals,
    /// Omitted entries that the user did not exclude.
    passed_over: Option<PassedOver>,
    /// One sentence for each part that cannot be read.
    incomplete: Vec<String>,
    /// The reason why no series was selected, if it is known.
    hint: Option<String>,
}

/// Entries omitted from a file of samples.
#[derive(Clone, Copy, serde::Serialize)]
struct PassedOver {
    records: u64,
    /// Whether the number is exact.
    complete: bool,
}

/// A line of the response that is not a record.
pub enum Head {
    Labels(BTreeSet<String>),
    Totals(Totals, Vec<String>),
    /// The reason why the export ends early.
    Error(String),
}

pub fn head(line: &[u8]) -> Option<Head> {
    if line.starts_with(b"{\"metric\"") {
        return None;
    }
    let mut value: Value = serde_json::from_slice(line).ok()?;
    if let Some(why) = value.get("error") {
        return Some(Head::Error(why.as_str().unwrap_or_default().to_owned()));
    }
    let incomplete = ask::list(&value, "incomplete").iter().filter_map(Value::as_str);
    let incomplete: Vec<String> = incomplete.map(str::to_owned).collect();
    if let Some(totals) = value.get_mut("totals") {
        return Some(match serde_json::from_value(totals.take()) {
            Ok(totals) => Head::Totals(totals, incomplete),
            Err(error) => {
                Head::Error(format!("the totals at the end of the response cannot be parsed: {error}"))
            }
        });
    }
    serde_json::from_value(value.get_mut("label_names")?.take()).ok().map(Head::Labels)
}

type Output = BufWriter<Pipe>;

/// The file or standard output. `is_closed` is set when the reader of a pipe, such as `head`, has closed the pipe. The errors of
/// the encoders do not show this cause.
struct Pipe {
    out: Box<dyn Write + Send>,
    is_closed: Arc<AtomicBool>,
}

impl Pipe {
    fn noted<T>(&self, written: io::Result<T>) -> io::Result<T> {
        if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.is_closed.store(true, Ordering::Relaxed);
        }
        written
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.noted(flushed)
    }
}

/// The file, with the encoder that a Parquet file needs.
enum Out {
    Text(Output),
    #[cfg(feature = "parquet")]
    Table(Box<Writer<Output>>),
    Done,
}

/// The destination of the lines, and the totals of their records.
struct Sink {
    format: Format,
    /// The kind of the rows of a Parquet file.
    #[cfg(feature = "parquet")]
    kind: Kind,
    out: Out,
    bar: ProgressBar,
    rows: JsonLines,
    /// Names of the labels, which are columns of a CSV or Parquet file; without the name of the metric.
    names: Vec<String>,
    totals: Totals,
    /// Totals of the records that fit the format.
    written: Totals,
    /// See [`Pipe`].
    is_closed: Arc<AtomicBool>,
}

pub fn not_whole(why: impl std::fmt::Display) -> Failure {
    Failure::new(format!("not all records can be read: {why}"))
        .hint("--allow-damaged skips unreadable records and reports them")
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("cannot write the export: {error}"))
}

impl Sink {
    fn new(format: Format, out: Box<dyn Write + Send>, bar: ProgressBar) -> Self {
        let is_closed = Arc::new(AtomicBool::new(false));
        let out = BufWriter::new(Pipe { out, is_closed: Arc::clone(&is_closed) });
        Self {
            format,
            #[cfg(feature = "parquet")]
            kind: Kind::Sample,
            out: Out::Text(out),
            bar,
            rows: JsonLines::new(jiff::tz::TimeZone::UTC),
            names: Vec::new(),
            totals: Totals::default(),
            written: Totals::default(),
            is_closed,
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.out {
            Out::Text(out) => out.write_all(bytes).map_err(failed),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, names: BTreeSet<String>) -> Result<(), Failure> {
        self.names = names.into_iter().filter(|name| name != NAME).collect();
        #[cfg(feature = "parquet")]
        if self.format == Format::Parquet
            && let Out::Text(out) = std::mem::replace(&mut self.out, Out::Done)
        {
            let writer = Writer::new(out, self.names.iter().cloned(), self.kind).map_err(failed)?;
            self.out = Out::Table(Box::new(writer));
        }
        let mut header = String::new();
        if self.format == Format::Csv {
            csv::write_header(&mut header, &self.names);
        }
        self.write(header.as_bytes())
    }

    /// Writes the records that are still in memory.
    fn end(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.out, Out::Done) {
            Out::Text(mut out) => out.flush().map_err(failed),
            #[cfg(feature = "parquet")]
            Out::Table(writer) => writer.finish().map_err(failed)?.flush().map_err(failed),
            Out::Done => Ok(()),
        }
    }

    /// Parses the lines, adds their records to the totals, and writes them in the format.
    fn lines(&mut self, lines: &[u8]) -> Result<(), Failure> {
        let block = self.rows.decode(lines, 0);
        if let Some(broken) = block.broken.first() {
            return Err(Failure::new(format!("a line of the export cannot be read back: {broken}")));
        }
        let batch = block.batch;
        for series in &batch.samples {
            let id = series.labels.id();
            series.samples.iter().for_each(|sample| self.totals.samples.sample(id, sample));
        }
        for series in &batch.entries {
            let id = series.labels.id();
            series.entries.iter().for_each(|entry| self.totals.entries.entry(id, entry));
        }
        self.bar.set_message(format!(
            "{} records",
            units::count(self.totals.samples.count + self.totals.entries.count)
        ));
        if let Format::Csv | Format::Line = self.format {
            let text = self.other(&batch);
            return self.write(text.as_bytes());
        }
        self.written = self.totals;
        if self.format == Format::Parquet { self.table(&batch) } else { self.write(lines) }
    }

    #[cfg(feature = "parquet")]
    fn table(&mut self, batch: &Batch) -> Result<(), Failure> {
        let Out::Table(writer) = &mut self.out else { return Err(failed("its columns are unknown")) };
        for series in &batch.samples {
            writer.samples(&series.labels, &series.samples).map_err(failed)?;
        }
        for series in &batch.entries {
            writer.entries(&series.labels, &series.entries).map_err(failed)?;
        }
        Ok(())
    }

    #[cfg(not(feature = "parquet"))]
    #[expect(
        clippy::unused_self,
        clippy::needless_pass_by_ref_mut,
        reason = "signature of the other `table`"
    )]
    fn table(&mut self, _: &Batch) -> Result<(), Failure> {
        Err(super::import::without_parquet("Parquet cannot be written"))
    }

    fn other(&mut self, batch: &Batch) -> String {
        let mut text = String::new();
        let Self { names, written: Totals { samples, entries, .. }, format, .. } = self;
        let is_line = *format == Format::Line;
        for series in &batch.samples {
            let (id, labels) = (series.labels.id(), &series.labels);
            let written = |sample: &Sample| samples.sample(id, sample);
            if is_line {
                line_rows::write_samples(&mut text, labels, &series.samples, written);
            } else {
                csv::write_samples(&mut text, names, labels, &series.samples);
                series.samples.iter().for_each(written);
            }
        }
        for series in &batch.entries {
            let (id, labels) = (series.labels.id(), &series.labels);
            let written = |entry: &Entry| entries.entry(id, entry);
            if is_line {
                line_rows::write_entries(&mut text, labels, &series.entries, written);
            } else {
                csv::write_entries(&mut text, names, labels, &series.entries, written);
            }
        }
        text
    }
}
