//! Parses a `*.qtest` file: series to load, queries to evaluate, expected answers.
//!
//! The notation is that of Prometheus' promqltest, as described in its documentation:
//!
//! ```text
//! # Series from time 0, a value every minute: first+stepxrepeats, _ for a gap, stale for a marker.
//! load 1m
//!   requests{job="a"} 0+10x100 _x3 stale 5
//!
//! eval instant at 50m rate(requests[5m])
//!   {job="a"} 0.16666666666666666
//!
//! eval range from 0 to 2m step 1m requests
//!   requests{job="a"} 0 10 20
//!
//! eval_fail instant at 0 rate(requests)
//!   expected_fail_message got instant vector
//! ```
//!
//! `eval_ordered` also checks the order. `clear` removes all series. `expect string "..."` expects a string. After `expect
//! range vector from 10s to 1m step 10s` there is one line per series, with a value or `_` (no sample) for each of these
//! times. Samples at other times are an error.

use std::sync::Arc;

use tacho_model::{Labels, NAME};
use tacho_query::promql::{STALE, SeriesData};

pub enum Command {
    Clear,
    Load(Vec<SeriesData>),
    Eval(Eval),
}

pub struct Eval {
    pub line: usize,
    pub query: String,
    pub when: When,
    pub expect: Expect,
    /// Times of the samples of a range vector: first, last, step.
    pub samples: Option<[i64; 3]>,
}

#[derive(Clone, Copy)]
pub enum When {
    Instant { at: i64 },
    Range { start: i64, end: i64, step: i64 },
}

pub enum Expect {
    /// One list of values per series; `None` where there is no value.
    Series {
        series: Vec<(Labels, Vec<Option<f64>>)>,
        ordered: bool,
    },
    Scalar(f64),
    Text(String),
    /// The query fails; the message must contain this text.
    Failure(String),
}

pub fn parse(text: &str) -> Result<Vec<Command>, String> {
    let lines: Vec<(usize, &str)> =
        text.lines().enumerate().map(|(at, line)| (at + 1, line.trim_end())).collect();
    let mut lines = lines.iter().filter(|(_, line)| !line.trim_start().starts_with('#')).copied().peekable();
    let mut commands = Vec::new();
    while let Some((line, head)) = lines.next() {
        let mut body = Vec::new();
        if !head.trim().is_empty() {
            while let Some((_, detail)) =
                lines.next_if(|(_, l)| l.starts_with([' ', '\t']) && !l.trim().is_empty())
            {
                body.push(detail.trim());
            }
        }
        let command = parse_command(line, head, &body).map_err(|error| format!("line {line}: {error}"))?;
        commands.extend(command);
    }
    Ok(commands)
}

fn parse_command(line: usize, head: &str, body: &[&str]) -> Result<Option<Command>, String> {
    let (word, rest) = head.split_once(' ').unwrap_or((head, ""));
    match word {
        "" => Ok(None),
        "clear" => Ok(Some(Command::Clear)),
        "load" => {
            let step = duration(rest)?;
            let series = body.iter().map(|line| parse_series(line, step)).collect::<Result<_, _>>()?;
            Ok(Some(Command::Load(series)))
        }
        "eval" | "eval_ordered" | "eval_fail" => {
            parse_eval(line, word, rest, body).map(|eval| Some(Command::Eval(eval)))
        }
        _ => Err(format!("unknown command {word:?}")),
    }
}

fn parse_eval(line: usize, word: &str, rest: &str, body: &[&str]) -> Result<Eval, String> {
    let mut words = rest.splitn(4, ' ');
    let (kind, at, first) = (words.next(), words.next(), words.next());
    let (when, query) = match (kind, at, first) {
        (Some("instant"), Some("at"), Some(at)) => {
            (When::Instant { at: duration(at)? }, words.next().ok_or("no query")?.to_owned())
        }
        (Some("range"), Some("from"), Some(start)) => {
            let rest: Vec<&str> = words.next().ok_or("no range")?.splitn(5, ' ').collect();
            let ["to", end, "step", step, query] = rest[..] else { return Err("bad range".into()) };
            (
                When::Range { start: duration(start)?, end: duration(end)?, step: duration(step)? },
                query.to_owned(),
            )
        }
        _ => return Err("expected \"instant at\" or \"range from\"".into()),
    };
    let samples = body.iter().find_map(|line| line.strip_prefix("expect range vector ")).map(parse_times);
    let expect = parse_expect(word, body, matches!(when, When::Instant { .. }))?;
    Ok(Eval { line, query, when, expect, samples: samples.transpose()? })
}

fn parse_times(text: &str) -> Result<[i64; 3], String> {
    match text.split(' ').collect::<Vec<_>>()[..] {
        ["from", start, "to", end, "step", step] => Ok([duration(start)?, duration(end)?, duration(step)?]),
        _ => Err(format!("expected \"from .. to .. step ..\", got {text:?}")),
    }
}

fn parse_expect(word: &str, body: &[&str], instant: bool) -> Result<Expect, String> {
    let mut ordered = word == "eval_ordered";
    let mut failure = (word == "eval_fail").then(String::new);
    let mut series = Vec::new();
    for line in body {
        if let Some(message) = line.strip_prefix("expected_fail_message ") {
            failure = Some(message.trim().to_owned());
        } else if let Some(what) = line.strip_prefix("expect ") {
            let (what, detail) = what.split_once([' ', ':']).unwrap_or((what, ""));
            match what {
                "ordered" => ordered = true,
                "fail" => failure = Some(detail.trim_start_matches("msg:").trim().to_owned()),
                "string" => return Ok(Expect::Text(detail.trim_matches(['"', '\'', '`']).to_owned())),
                _ => {}
            }
        } else if let (true, Ok(scalar)) = (instant, number(line)) {
            return Ok(Expect::Scalar(scalar));
        } else if !line.starts_with("expected_fail_regexp") {
            let (labels, values) = split_labels(line)?;
            series.push((labels, parse_values(values)?));
        }
    }
    match failure {
        Some(message) => Ok(Expect::Failure(message)),
        None => Ok(Expect::Series { series, ordered }),
    }
}

fn parse_series(line: &str, step: i64) -> Result<SeriesData, String> {
    let (labels, values) = split_labels(line)?;
    let (mut at, mut kept) = (Vec::new(), Vec::new());
    for (index, value) in parse_values(values)?.into_iter().enumerate() {
        if let Some(value) = value {
            at.push(step * i64::try_from(index).map_err(|e| e.to_string())?);
            kept.push(value);
        }
    }
    Ok(SeriesData::new(Arc::new(labels), at, kept))
}

/// Reads `name{a="b"} rest`.
fn split_labels(line: &str) -> Result<(Labels, &str), String> {
    let bare = line.find([' ', '\t', '{']).unwrap_or(line.len());
    let (name, rest) = line.split_at(bare);
    let mut pairs = Vec::new();
    if !name.is_empty() {
        pairs.push((NAME.to_owned(), name.to_owned()));
    }
    let Some(mut rest) = rest.strip_prefix('{') else {
        return Ok((Labels::new(pairs).map_err(|e| e.to_string())?, rest));
    };
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Ok((Labels::new(pairs).map_err(|e| e.to_string())?, rest));
        }
        let (label, value) = rest.split_once('=').ok_or("label without a value")?;
        let (value, after) = quoted(value.trim_start()).ok_or_else(|| format!("bad label value: {value}"))?;
        pairs.push((label.trim().trim_matches('"').to_owned(), value));
        rest = after;
    }
}

/// Reads the quoted string at the start of `text`, which may contain `\\`, `\"` and `\n`. Returns the string and the rest of
/// the text.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| "\"'`".contains(*c))?;
    let (mut value, mut escaped) = (String::new(), false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            'n' if escaped => value.push('\n'),
            _ if escaped => value.push(c),
            '\\' if quote != '`' => {}
            _ if c == quote => return Some((value, &text[at + 1..])),
            _ => value.push(c),
        }
        escaped = c == '\\' && !escaped && quote != '`';
    }
    None
}

/// Reads `1 2+3x4 _ _x5 stale`.
fn parse_values(text: &str) -> Result<Vec<Option<f64>>, String> {
    let mut values = Vec::new();
    for word in text.split_whitespace() {
        let (first, repeats) = match word.rsplit_once('x') {
            Some((first, repeats)) => (first, repeats.parse::<usize>().map_err(|e| format!("{word}: {e}"))?),
            None => (word, 0),
        };
        match first {
            // `_x3` is three gaps, `1x3` is four values.
            "_" => values.extend(std::iter::repeat_n(None, repeats.max(1))),
            "stale" => values.push(Some(STALE)),
            _ => {
                let (start, step) = split_step(first)?;
                let mut value = start;
                for _ in 0..=repeats {
                    values.push(Some(value));
                    value += step;
                }
            }
        }
    }
    Ok(values)
}

/// Splits value and step: `1+2` is the value 1 with a step of 2. The sign of a number or exponent does not start a step.
fn split_step(text: &str) -> Result<(f64, f64), String> {
    if let Ok(value) = number(text) {
        return Ok((value, 0.0));
    }
    for (at, _) in text.char_indices().skip(1).filter(|(_, c)| "+-".contains(*c)) {
        if let (Ok(start), Ok(step)) = (number(&text[..at]), number(&text[at..])) {
            return Ok((start, step));
        }
    }
    Err(format!("bad value {text:?}"))
}

fn number(text: &str) -> Result<f64, String> {
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).map(|n| n as f64).map_err(|e| e.to_string());
    }
    text.parse().map_err(|_| format!("bad number {text:?}"))
}

/// Reads `1h30m`, `90s`, `90` (seconds) or `1ms`. Returns ns.
pub fn duration(text: &str) -> Result<i64, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Ok((seconds * 1e9) as i64);
    }
    let (sign, mut rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let mut total = 0;
    while !rest.is_empty() {
        let digits =
            rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(|| format!("bad duration {text:?}"))?;
        let count: i64 = rest[..digits].parse().map_err(|_| format!("bad duration {text:?}"))?;
        let after = &rest[digits..];
        let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        total += count
            * match &after[..unit] {
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                "m" => 60_000_000_000,
                "h" => 3_600_000_000_000,
                "d" => 86_400_000_000_000,
                "w" => 7 * 86_400_000_000_000,
                "y" => 365 * 86_400_000_000_000,
                unit => return Err(format!("bad unit {unit:?} in {text:?}")),
            };
        rest = &after[unit..];
    }
    Ok(sign * total)
}
