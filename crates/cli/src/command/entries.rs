//! `tacho entries`: prints entries of a running server as texts or tables.

use serde_json::Value;
use tacho_api::json::shown;
use tacho_api::printable::{printable, printable_lines};
use tacho_api::units;
use tacho_model::Kind;

use super::ask::{self, Range, Server, Span};
use super::{mark, unmatched};
use crate::failure::Failure;
use crate::terminal::plot::{Line, clock, plot};

/// Limit on the characters of a text in a line. `--json` shows the whole text.
const TEXT_CHARS_MAX: usize = 500;

/// Find entries: logs, events, and rows of tables, such as the output of lsof or strace
///
/// Selects series by labels and entries by their text. Entries that are JSON objects can be selected by their
/// members and shown as a table.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho entries '{service=\"shop\"}' --contains timeout --last 6h
  tacho entries 'access_log' --pattern 'status=5\\d\\d' --plot
  tacho entries 'lsof' --field command=java --columns pid,fd,name --limit 20")]
pub struct Entries {
    /// Series: a PromQL selector
    selector: String,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    span: Span,
    /// Entries that contain this text; repeatable
    #[arg(long, value_name = "TEXT")]
    contains: Vec<String>,
    /// Entries that match this regular expression anywhere
    #[arg(long, value_name = "REGEX")]
    pattern: Option<String>,
    /// Entries that are JSON objects with this top-level member; repeatable
    #[arg(long = "field", value_name = "NAME=VALUE")]
    fields: Vec<String>,
    /// Oldest first instead of newest first
    #[arg(long)]
    oldest: bool,
    /// Entries to show
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Show these members of entries that are JSON objects as a table; other texts are omitted and counted
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    columns: Vec<String>,
    /// Plot the number of entries over time
    #[arg(long, conflicts_with = "json")]
    plot: bool,
    /// Print the server's JSON answer
    #[arg(long)]
    json: bool,
}

impl Entries {
    pub fn run(self) -> Result<(), Failure> {
        mark::selectors(std::slice::from_ref(&self.selector))?;
        let range = self.span.range()?;
        // `mark::selectors` has accepted the selector, so a place in an error message of the server is a place in the pattern.
        let pattern = self.pattern.as_deref().unwrap_or_default();
        let answer = self.ask(range).map_err(|failure| mark::in_text(pattern, failure))?;
        if self.json {
            ask::print_json(&answer);
            return Ok(());
        }
        let data = &answer["data"];
        if self.plot {
            print!("{}", draw(&data["histogram"]));
        }
        let series: Vec<String> = ask::list(data, "series").iter().map(series).collect();
        let entries = ask::list(data, "entries");
        match &*self.columns {
            [] => entries.iter().for_each(|entry| println!("{}", line(entry, &series))),
            columns => print!("{}", table(entries, columns)),
        }
        let (matched, seen) = (ask::number(data, "matched"), ask::number(data, "seen"));
        if matched as usize > entries.len() {
            eprintln!("{} of {} that match", units::count(entries.len() as u64), units::count(matched));
        } else if matched == 0 {
            eprintln!("{}", self.nothing(range, seen));
        }
        if !self.columns.is_empty() {
            if let Some(omitted) = omitted_texts(entries) {
                eprintln!("{omitted}");
            }
            for name in unknown_columns(entries, &self.columns) {
                eprintln!("no entry shown has a top-level member {name:?}");
            }
        }
        Ok(())
    }

    /// The message for an empty result: the searched range, and hints.
    fn nothing(&self, range: Range, seen: u64) -> String {
        let last = if self.span.is_given() { "" } else { "in the last hour, " };
        let dotted = |field: &String| field.split('=').next().is_some_and(|name| name.contains('.'));
        let hint = match seen {
            0 => {
                let selectors = std::slice::from_ref(&self.selector);
                unmatched::of_server(&self.server, selectors, Some(Kind::Entry)).unwrap_or_else(|| {
                    let further = "--last 7d looks further back";
                    let names = "`tacho cardinality` lists the existing names";
                    if self.span.is_given() { names.to_owned() } else { further.to_owned() }
                })
            }
            _ if self.fields.iter().any(dotted) => {
                "--field matches top-level members only; --contains and --pattern search the whole text"
                    .into()
            }
            _ => String::new(),
        };
        let hint = if hint.is_empty() { hint } else { format!("\nhint: {hint}") };
        match seen {
            0 => format!("{}: no entries {last}{range}{hint}", self.selector),
            _ => format!("none of {} entries match {last}{range}{hint}", units::count(seen)),
        }
    }

    fn ask(&self, range: Range) -> Result<Value, Failure> {
        let order = if self.oldest { "oldest" } else { "newest" };
        let params = [
            ("match[]", Some(self.selector.clone())),
            ("pattern", self.pattern.clone()),
            ("order", Some(order.to_owned())),
            ("limit", Some(self.limit.to_string())),
            ("parts", Some(if self.plot { "144" } else { "1" }.to_owned())),
        ];
        let many = |name: &'static str, list: &[String]| -> Vec<(&'static str, Option<String>)> {
            list.iter().map(|text| (name, Some(text.clone()))).collect()
        };
        let range = range.params().map(|(name, value)| (name, Some(value)));
        let all = params.into_iter().chain(range);
        let all = all.chain(many("contains", &self.contains)).chain(many("field", &self.fields));
        self.server.get("/api/v1/entries", all)
    }
}

/// Formats labels in the notation of PromQL.
fn series(labels: &Value) -> String {
    let pairs = labels.as_object().into_iter().flatten();
    let pairs: Vec<(&str, &str)> = pairs.map(|(n, v)| (n.as_str(), v.as_str().unwrap_or(""))).collect();
    tacho_model::Labels::new(pairs).map_or_else(|_| labels.to_string(), |labels| labels.to_string())
}

fn line(entry: &Value, series: &[String]) -> String {
    let series = series.get(ask::number(entry, "series") as usize).map_or("", String::as_str);
    let text = match entry["text"].as_str() {
        Some(text) => text.trim_end().to_owned(),
        None => format!("bytes {}", ask::text(entry, "hex")),
    };
    let text = match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    };
    format!("{}  {}  {}", ask::utc(&entry["time"]), printable(series), printable_lines(&text))
}

fn omitted_texts(entries: &[Value]) -> Option<String> {
    let is_object = |entry: &&Value| {
        serde_json::from_str::<Value>(ask::text(entry, "text")).is_ok_and(|value| value.is_object())
    };
    let texts = entries.len() - entries.iter().filter(is_object).count();
    let (count, are) = (units::count(texts as u64), if texts == 1 { "is" } else { "are" });
    (texts > 0).then(|| {
        format!(
            "{count} of {} entries {are} omitted: --columns shows only entries that are JSON objects; without it, texts are \
             shown, too",
            units::count(entries.len() as u64)
        )
    })
}

fn unknown_columns<'a>(entries: &[Value], columns: &'a [String]) -> Vec<&'a str> {
    let objects: Vec<Value> =
        entries.iter().filter_map(|entry| serde_json::from_str(ask::text(entry, "text")).ok()).collect();
    let unknown =
        columns.iter().filter(|name| objects.iter().all(|object| object.get(name.as_str()).is_none()));
    if objects.is_empty() { Vec::new() } else { unknown.map(String::as_str).collect() }
}

/// Formats members of JSON objects as columns under their names. Entries that are not objects are omitted.
fn table(entries: &[Value], columns: &[String]) -> String {
    let head = std::iter::once("TIME".to_owned()).chain(columns.iter().map(|name| name.to_uppercase()));
    let mut rows: Vec<Vec<String>> = vec![head.collect()];
    for entry in entries {
        let Ok(Value::Object(members)) = serde_json::from_str(ask::text(entry, "text")) else { continue };
        let cells = columns.iter().map(|name| printable(&members.get(name).map_or_else(String::new, shown)));
        rows.push(std::iter::once(ask::utc(&entry["time"])).chain(cells).collect());
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=columns.len()).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width)).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

fn draw(histogram: &Value) -> String {
    let end = |name| ask::text(histogram, name).parse::<f64>().unwrap_or(0.0) / 1e9;
    let (start, end) = (end("start"), end("end"));
    let counts = ask::list(histogram, "counts");
    let step = (end - start) / counts.len().max(1) as f64;
    let points = counts.iter().enumerate();
    let points = points.map(|(at, n)| (start + (at as f64 + 0.5) * step, n.as_f64().unwrap_or(0.0)));
    let name = format!("entries per {}", units::duration((step * 1e9) as u64));
    let whole_or_half = |y: f64| if y.fract() == 0.0 { format!("{y:.0}") } else { format!("{y:.1}") };
    plot(&[Line { name: &name, points: points.collect() }], clock(end - start), whole_or_half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_become_rows() {
        let entry = |text: &str| json!({ "time": "1000000000", "series": 0, "text": text });
        let entries = [
            entry(r#"{"pid":7,"name":"/tmp/a"}"#),
            entry("not an object"),
            entry("{\"pid\":12345,\"fd\":\"3\\u001br\"}"),
        ];
        let columns = ["pid", "fd"].map(str::to_owned);
        let time = "1970-01-01T00:00:01.000Z";
        assert_eq!(
            table(&entries, &columns),
            format!("TIME                      PID    FD\n{time}  7\n{time}  12345  3\\u{{1b}}r\n")
        );
        let series = [series(&json!({ "__name__": "log", "host": "a" }))];
        assert_eq!(line(&entry("x\n"), &series), format!("{time}  log{{host=\"a\"}}  x"));
        let coloured = line(&entry("\u{1b}[31mx\n\tat y\n"), &series);
        assert_eq!(coloured, format!("{time}  log{{host=\"a\"}}  \\u{{1b}}[31mx\n\tat y"));
    }
}
