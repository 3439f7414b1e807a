//! `tacho query`: evaluates a PromQL query on a running server.

use serde_json::{Value, json};
use tacho_api::units;
use tacho_model::Matcher;
use tacho_query::promql::{self, Params, Plan};

use super::ask::{self, Range, Server, Span};
use super::{mark, unmatched};
use crate::failure::Failure;
use crate::terminal::plot::{Line, clock, plot};
use crate::terminal::table::{Align, Table};

/// Default number of steps of a range: a plot has this many columns of dots.
const STEPS: i64 = 144;

const WINDOW_OVER_TIME: &str = "over time each point is one value: apply a function such as rate or avg_over_time; at one moment \
    (without --range, --last, --start, --end, --step and --plot) the samples of the window are listed";

/// Evaluate a PromQL query, at one moment or over time
///
/// --range, --last, --start, --end, --step or --plot evaluate the query over time.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho query 'rate(tacho_records_received_total[1m])'
  tacho query 'sum by (kind) (rate(tacho_records_received_total[1m]))' --last 15m --plot
  tacho query 'process_resident_memory_bytes{service=\"tacho\"}' --range --json
  tacho query '{\"cpu.load\"}' --last 1d
  tacho query 'keep_outliers_mad(process_resident_memory_bytes[1d])'
  tacho query --functions outliers")]
pub struct Query {
    /// PromQL
    #[arg(required_unless_present = "functions", default_value = "", hide_default_value = true)]
    query: String,
    #[command(flatten)]
    server: Server,
    /// The moment: Unix seconds, RFC 3339, a date (UTC), or a time before now such as -2h [default: now]
    #[arg(long, value_name = "TIME", value_parser = ask::instant, allow_hyphen_values = true,
        conflicts_with_all = ["range", "plot", "step", "last", "start", "end"])]
    time: Option<i64>,
    /// Evaluate over time instead of at one moment; over the last hour by default
    #[arg(long)]
    range: bool,
    #[command(flatten)]
    span: Span,
    /// Time between two points [default: the span / 144]
    #[arg(long, value_name = "DURATION", value_parser = ask::duration, allow_hyphen_values = true)]
    step: Option<i64>,
    /// Plot in the terminal
    #[arg(long, conflicts_with = "json")]
    plot: bool,
    /// Print the server's JSON answer
    #[arg(long)]
    json: bool,
    /// Print the cost of the query: times, chunks, values, bytes
    #[arg(long)]
    stats: bool,
    /// List the supported PromQL functions; with WORD those whose name or description contains it
    #[arg(long, value_name = "WORD", num_args = 0..=1, default_missing_value = "", conflicts_with = "query")]
    functions: Option<String>,
}

impl Query {
    pub fn run(self) -> Result<(), Failure> {
        if let Some(word) = &self.functions {
            self.list_functions(word);
            return Ok(());
        }
        if self.query.trim().is_empty() {
            return Err(Failure::usage("the query is empty").hint(
                "give a PromQL expression, for example 'up'; `tacho cardinality` lists the existing names",
            ));
        }
        let over_time = self.range || self.plot || self.step.is_some() || self.span.is_given();
        let range = if over_time { Some(self.span.range()?) } else { None };
        let answer = match range {
            Some(range) => self.over_time(range),
            None => self.at_once(),
        };
        let answer = answer.map_err(|failure| {
            let is_window =
                over_time && failure.message().starts_with("invalid expression type \"range vector\"");
            let failure = mark::in_promql(&self.query, failure);
            if is_window { failure.hint(WINDOW_OVER_TIME) } else { failure }
        })?;
        if self.json {
            ask::print_json(&answer);
            return Ok(());
        }
        let data = &answer["data"];
        let result = ask::list(data, "result");
        match ask::text(data, "resultType") {
            "matrix" | "vector" if result.is_empty() => eprint!("{}", self.nothing(range)),
            "matrix" if self.plot => print!("{}", draw(result, range)),
            "matrix" if over_time => print!("{}", summary(result)),
            "matrix" => print!("{}", samples(result)),
            "vector" => print!("{}", values(result)),
            _ => println!(
                "{}",
                ask::text(&data["result"], "1").to_owned() + data["result"][1].as_str().unwrap_or("")
            ),
        }
        if self.stats {
            eprint!("{}", costs(&data["stats"]));
        }
        Ok(())
    }

    fn at_once(&self) -> Result<Value, Failure> {
        let query = ("query", Some(self.query.clone()));
        let params = [query, ("time", self.time.map(ask::seconds)), ("stats", self.wants_stats())];
        self.server.get("/api/v1/query", params)
    }

    /// In ns.
    fn step_of(&self, range: Range) -> i64 {
        self.step.unwrap_or_else(|| (range.end.saturating_sub(range.start) / STEPS).max(1_000_000))
    }

    fn over_time(&self, range: Range) -> Result<Value, Failure> {
        let params = [("query", self.query.clone()), ("step", ask::seconds(self.step_of(range)))];
        let all = params.into_iter().chain(range.params()).map(|(name, value)| (name, Some(value)));
        self.server.get("/api/v1/query_range", all.chain([("stats", self.wants_stats())]))
    }

    /// The message for an empty result: the searched range or moment, and a hint.
    fn nothing(&self, range: Option<Range>) -> String {
        let query = &self.query;
        let at = self.time.unwrap_or_else(ask::now);
        let params = Params::instant(at);
        let lookback = params.lookback;
        let plan = promql::parse(query).and_then(|parsed| parsed.plan(&params));
        let selections = plan.as_ref().map_or(&[][..], Plan::selectors);
        let none = match (range, selections) {
            (Some(range), _) => format!("{query}: no values {range}"),
            (None, [one]) => {
                let read = Range { start: one.range.start, end: one.range.end };
                format!("{query}: no values at {}; it reads samples {read}", ask::at(at))
            }
            (None, _) => format!("{query}: no values at {}", ask::at(at)),
        };
        let selectors: Vec<String> = selections.iter().map(|one| selector(&one.matchers)).collect();
        let hint = unmatched::of_query(&self.server, &selectors);
        let names = "`tacho cardinality` lists the existing names";
        match (hint, range) {
            (Some(hint), _) => format!("{none}\nhint: {hint}\n"),
            (None, Some(range)) if self.step_of(range) > lookback => {
                let step = units::duration(self.step_of(range).unsigned_abs());
                let read = units::duration(lookback.unsigned_abs());
                format!(
                    "{none}\nhint: points are {step} apart, and each reads the {read} before it: a shorter --step, or a \
                     function such as avg_over_time, reads all samples\n"
                )
            }
            (None, Some(_)) => format!("{none}\nhint: {names}\n"),
            (None, None) => format!("{none}\nhint: --last 1d queries a range, {names}\n"),
        }
    }

    fn list_functions(&self, word: &str) {
        let found = functions(word);
        if self.json {
            let list = found.iter().map(|(name, doc)| json!({ "function": name, "doc": doc }));
            return ask::print_json(&list.collect());
        }
        if found.is_empty() {
            let meant =
                promql::similar(word).map_or_else(String::new, |names| format!("; did you mean {names}?"));
            return eprintln!("no function matches {word:?}{meant}");
        }
        let mut table = Table::new([("FUNCTION", Align::Left), ("WHAT IT IS", Align::Left)]);
        found.into_iter().for_each(|(name, doc)| table.row([name, doc]));
        print!("{table}");
    }

    fn wants_stats(&self) -> Option<String> {
        self.stats.then(|| "true".to_owned())
    }
}

/// Formats a series of an answer as `name{label="value"}`.
fn series(metric: &Value) -> String {
    let labels = metric.as_object().into_iter().flatten().filter(|(name, _)| *name != tacho_model::NAME);
    let labels: Vec<String> = labels.map(|(name, value)| format!("{name}={value}")).collect();
    let name = ask::text(metric, tacho_model::NAME);
    if labels.is_empty() && !name.is_empty() {
        name.to_owned()
    } else {
        format!("{name}{{{}}}", labels.join(", "))
    }
}

fn values(result: &[Value]) -> Table<2> {
    let mut table = Table::new([("SERIES", Align::Left), ("VALUE", Align::Right)]);
    for element in result {
        table.row([series(&element["metric"]), element["value"][1].as_str().unwrap_or("").to_owned()]);
    }
    table
}

/// Unix seconds and values.
fn points(element: &Value) -> Vec<(f64, f64)> {
    let point = |p: &Value| Some((p[0].as_f64()?, p[1].as_str()?.parse().ok()?));
    ask::list(element, "values").iter().filter_map(point).collect()
}

/// The samples of a range vector, which is the answer to an instant query such as `up[5m]`.
fn samples(result: &[Value]) -> Table<3> {
    let mut table = Table::new([("SERIES", Align::Left), ("TIME", Align::Left), ("VALUE", Align::Right)]);
    for element in result {
        for (at, value) in points(element) {
            let at = jiff::Timestamp::from_millisecond((at * 1e3).round() as i64).unwrap_or_default();
            table.row([series(&element["metric"]), format!("{at:.3}"), promql::format_value(value)]);
        }
    }
    table
}

fn selector(matchers: &[Matcher]) -> String {
    let matchers: Vec<String> = matchers.iter().map(ToString::to_string).collect();
    format!("{{{}}}", matchers.join(","))
}

/// The functions and aggregations whose signature or description has `word`. Returns their signatures and descriptions.
fn functions(word: &str) -> Vec<(String, String)> {
    let says = |text: &str| text.to_lowercase().contains(&word.to_lowercase());
    let aggregation = |(name, doc): &(&str, &str)| (format!("{name} by (label, ...) (v)"), (*doc).to_owned());
    let functions =
        promql::functions().iter().map(|function| (function.signature(), function.doc.to_owned()));
    let all = functions.chain(promql::aggregations().iter().map(aggregation));
    all.filter(|(name, doc)| says(name) || says(doc)).collect()
}

/// The `stats` of a response: a line for the times, a line for the data read, and a line for the errors of lossy data, if any.
fn costs(stats: &Value) -> String {
    let seconds = |name: &str| stats["timings"][name].as_f64().unwrap_or(0.0);
    let [total, queue, read, evaluation] =
        ["execTotalTime", "execQueueTime", "queryPreparationTime", "innerEvalTime"]
            .map(|name| units::duration((seconds(name) * 1e9) as u64));
    let chunk = |what: &str| ask::number(&stats["chunks"], what);
    let mut text = format!("{total}: queue {queue}, read {read}, evaluate {evaluation}\n");
    text.push_str(&match chunk("seen") {
        0 => "no chunks seen: all records read are in memory, not in chunks yet\n".to_owned(),
        seen => format!(
            "{} seen: {} skipped, {} summarised, {} decoded; {} values decoded, {} read\n",
            units::counted(seen, "chunk", "chunks"),
            units::count(chunk("skipped")),
            units::count(chunk("summarised")),
            units::count(chunk("decoded")),
            units::count(ask::number(stats, "valuesDecoded")),
            units::bytes(ask::number(stats, "bytesRead")),
        ),
    });
    let (time, value) = (ask::number(stats, "timeErrorMax"), ask::float(stats, "valueErrorMax"));
    if time > 0 || value > 0.0 {
        text.push_str(&format!("times may be {} off, values {}\n", units::duration(time), short(value)));
    }
    text
}

fn summary(result: &[Value]) -> Table<6> {
    let right = Align::Right;
    let mut table = Table::new([
        ("SERIES", Align::Left),
        ("POINTS", right),
        ("MIN", right),
        ("MEAN", right),
        ("MAX", right),
        ("LAST", right),
    ]);
    for element in result {
        let values: Vec<f64> = points(element).into_iter().map(|(_, value)| value).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let last = values.last().copied().unwrap_or(f64::NAN);
        let [min, mean, max, last] = [min, mean, max, last].map(short);
        table.row([series(&element["metric"]), values.len().to_string(), min, mean, max, last]);
    }
    table
}

fn draw(result: &[Value], range: Option<Range>) -> String {
    let names: Vec<String> = result.iter().map(|element| series(&element["metric"])).collect();
    let lines: Vec<Line<'_>> =
        names.iter().zip(result).map(|(name, element)| Line { name, points: points(element) }).collect();
    let span_ns = range.map_or(0, |range| range.end.saturating_sub(range.start));
    plot(&lines, clock(span_ns as f64 / 1e9), short)
}

/// Formats a value. Whole numbers below ten million have all digits. Other values from 0.001 to ten million have five significant
/// digits, or more if more are before the decimal point. All other finite values have an exponent. The limits apply to the
/// absolute value.
fn short(value: f64) -> String {
    if !value.is_finite() || (value.fract() == 0.0 && value.abs() < 1e7) {
        return promql::format_value(value);
    }
    if !(1e-3..1e7).contains(&value.abs()) {
        return format!("{value:.4e}");
    }
    let decimals = (4.0 - value.abs().log10().floor()).clamp(0.0, 8.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn functions_are_found_by_name_or_description() {
        let listed = functions("outlier");
        let signature = "keep_outliers_mad(v range-vector, [score scalar])";
        assert!(listed.iter().any(|(name, _)| name == signature), "{listed:?}");
        let counts = ["bottomk", "nixda"].map(|word| functions(word).len());
        assert_eq!(counts, [1, 0]);
        assert!(functions("").len() > 100);
    }

    #[test]
    fn costs_list_times_data_read_and_errors() {
        let mut stats = json!({
            "timings": {"execTotalTime": 0.0125, "execQueueTime": 0.0, "queryPreparationTime": 0.01, "innerEvalTime": 0.0025},
            "chunks": {"seen": 9, "skipped": 1, "summarised": 5, "decoded": 3},
            "valuesDecoded": 24_576, "bytesRead": 9_000, "timeErrorMax": 0, "valueErrorMax": 0.5,
        });
        let times = "12.5 ms: queue 0 ns, read 10.0 ms, evaluate 2.50 ms\n";
        let off = "times may be 0 ns off, values 0.50000\n";
        for (seen, expect) in [
            (9, "9 chunks seen: 1 skipped, 5 summarised, 3 decoded; 24,576 values decoded, 8.79 KiB read\n"),
            (1, "1 chunk seen: 1 skipped, 5 summarised, 3 decoded; 24,576 values decoded, 8.79 KiB read\n"),
            (0, "no chunks seen: all records read are in memory, not in chunks yet\n"),
        ] {
            stats["chunks"]["seen"] = json!(seen);
            assert_eq!(costs(&stats), [times, expect, off].concat());
        }
    }

    #[test]
    fn range_vectors_are_printed_with_the_time_of_each_sample() {
        let result = json!([{"metric": {"__name__": "x"}, "values": [[1_700_000_000.5, "1.25"]]}]);
        let table = samples(result.as_array().unwrap()).to_string();
        assert_eq!(table.lines().nth(1).unwrap(), "x       2023-11-14T22:13:20.500Z   1.25", "{table}");
    }

    #[test]
    fn series_and_numbers_are_printed_in_a_short_form() {
        assert_eq!(series(&json!({"__name__": "up", "job": "a"})), r#"up{job="a"}"#);
        assert_eq!(series(&json!({"__name__": "up"})), "up");
        assert_eq!(series(&json!({})), "{}");
        for (value, text) in [
            (3.0, "3"),
            (0.123_456_7, "0.12346"),
            (12_345.678, "12346"),
            (1.5e9, "1.5000e9"),
            (2.5e9 + 0.5, "2.5000e9"),
            (1e-5, "1.0000e-5"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
