//! The query mix: PromQL queries at random times, which depend on a seed.

use std::collections::BTreeSet;
use std::path::Path;

use tacho_api::time;
use tacho_model::{Labels, NAME};
use tacho_query::promql::{self, Params, Plan};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::training::Training;
use crate::command::mark;
use crate::failure::Failure;

/// Number of random times at which each query is evaluated.
const ASKED: u64 = 6;
/// Number of steps of a range query.
const STEPS: i64 = 144;
/// Limit on the metrics of the default mix.
const NAMES: usize = 4;

pub struct Mix {
    pub plans: Vec<Plan>,
    /// The text of each query. `plans` has [`ASKED`] plans per query.
    pub texts: Vec<String>,
}

#[derive(Debug, PartialEq)]
struct Line {
    /// Length of the range of a range query, ns. `None` for an instant query.
    span: Option<i64>,
    query: String,
}

pub fn load(file: Option<&Path>, training: &Training, seed: u64) -> Result<Mix, Failure> {
    let lines = match file {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| Failure::usage(format!("cannot read {}: {e}", path.display())))?;
            parse(&text).map_err(|reason| Failure::usage(format!("{}: {reason}", path.display())))?
        }
        None => default_lines(training),
    };
    let mut mix = Mix { plans: Vec::new(), texts: Vec::new() };
    for (nth, line) in lines.iter().enumerate() {
        let failure = |e| mark::in_promql(&line.query, Failure::usage(format!("{}: {e}", line.query)));
        let query = promql::parse(&line.query).map_err(failure)?;
        for time in 0..ASKED {
            let params = params(line, training, seed, nth as u64 * ASKED + time);
            mix.plans.push(query.plan(&params).map_err(failure)?);
        }
        mix.texts.push(line.query.clone());
    }
    if mix.plans.is_empty() {
        return Err(Failure::usage("the query mix is empty"));
    }
    let all: Vec<&Labels> = training.labels.iter().flatten().map(|labels| &**labels).collect();
    let finds = |plan: &Plan| {
        plan.selectors().iter().any(|s| all.iter().any(|labels| s.matchers.iter().all(|m| m.matches(labels))))
    };
    let found: Vec<bool> = mix.plans.iter().map(finds).collect();
    for (text, found) in mix.texts.iter().zip(found.chunks(ASKED as usize)) {
        if !found.contains(&true) {
            eprintln!(
                "warning: {text}: selects none of the sampled series; the mean time of a query includes this query"
            );
        }
    }
    if !found.contains(&true) {
        return Err(Failure::new("no query of the mix selects any of the sampled series")
            .hint("sample more series with --values, or use another --match"));
    }
    Ok(mix)
}

fn parse(text: &str) -> Result<Vec<Line>, String> {
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, l)| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|(nth, line)| {
            let Some(rest) = line.strip_prefix('[') else {
                return Ok(Line { span: None, query: line.to_owned() });
            };
            let span =
                rest.split_once(']').and_then(|(span, query)| Some((time::parse_duration(span)?, query)));
            let (span, query) =
                span.ok_or_else(|| format!("line {}: {line:?} does not begin like [6h]", nth + 1))?;
            Ok(Line { span: Some(span), query: query.trim().to_owned() })
        })
        .collect()
}

/// The default mix, for at most [`NAMES`] metrics: values and rates over a tenth of the time range, averages over the whole
/// range, and instant queries of a long and a short window.
fn default_lines(training: &Training) -> Vec<Line> {
    let names: BTreeSet<&str> = training.labels.iter().flatten().map(|labels| labels.name()).collect();
    let stride = names.len().div_ceil(NAMES).max(1);
    let length = (training.range.end - training.range.start).max(1_000_000_000);
    let window = |ns: i64| format!("{}ms", (ns / 1_000_000).max(1));
    let mut out = Vec::new();
    for name in names.into_iter().step_by(stride) {
        let select = format!("{{{NAME}={name:?}}}");
        let mut line = |span: Option<i64>, query: String| out.push(Line { span, query });
        line(Some(length / 10), select.clone());
        line(Some(length), format!("avg_over_time({select}[{}])", window(length / STEPS)));
        line(Some(length / 10), format!("rate({select}[{}])", window(length / 200)));
        line(None, format!("max_over_time({select}[{}])", window(length / 4)));
        line(None, format!("last_over_time({select}[{}])", window(length / 500)));
    }
    out
}

/// A query ends at a random time of the data. A range never begins before the data.
fn params(line: &Line, training: &Training, seed: u64, nth: u64) -> Params {
    let range = training.range;
    let share = xxh3_64_with_seed(&nth.to_le_bytes(), seed) as f64 / u64::MAX as f64;
    let span = line.span.unwrap_or(0).min(range.end - range.start);
    let free = range.end - range.start - span;
    let end = range.start + span + (share * free as f64) as i64;
    match line.span {
        Some(_) => Params::range(end - span, end, (span / STEPS).max(1_000_000)),
        None => Params::instant(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_range_or_instant_queries() {
        let line = |span, query: &str| Line { span, query: query.into() };
        let text = "# mix\nup\n\n[1h] rate(up[5m])\n";
        assert_eq!(parse(text).unwrap(), [line(None, "up"), line(Some(3_600_000_000_000), "rate(up[5m])")]);
        assert_eq!(parse("a\n[x] up").unwrap_err(), "line 2: \"[x] up\" does not begin like [6h]");
    }
}
