//! What are the parts of one line of an exposition?

use std::borrow::Cow;

use crate::rows::shown;

/// The parts of a sample's line, as written.
#[derive(Debug, PartialEq)]
pub(super) struct Line<'a> {
    /// Name and labels. Lines with the same text here belong to the same series.
    pub(super) series: &'a str,
    pub(super) value: &'a str,
    pub(super) time: Option<&'a str>,
    pub(super) exemplar: bool,
}

type Pairs<'a> = Vec<(&'a str, Cow<'a, str>)>;

impl<'a> Line<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let end = series_end(text)?;
        let (series, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        let (rest, exemplar) = match rest.split_once(" # ") {
            Some((rest, _)) => (rest, true),
            None => (rest, false),
        };
        let mut parts = rest.split_ascii_whitespace();
        let value = parts.next().ok_or_else(|| format!("series {} has no value", shown(series)))?;
        let time = parts.next();
        if let Some(more) = parts.next() {
            return Err(format!("unexpected {} after the time", shown(more)));
        }
        Ok(Self { series, value, time, exemplar })
    }

    pub(super) fn labels(&self) -> Result<(&'a str, Pairs<'a>), String> {
        let (name, inside) = match self.series.split_once('{') {
            Some((name, inside)) => (name.trim_end(), inside.trim_end().strip_suffix('}').unwrap_or(inside)),
            None => (self.series, ""),
        };
        let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
        if !name.starts_with(begins) || !name.chars().all(|c| begins(c) || c.is_ascii_digit()) {
            return Err(format!("{} is not a metric's name", shown(name)));
        }
        Ok((name, pairs(inside)?))
    }
}

/// The end of the series: after the closing brace (braces in quotes are ignored), or at the first blank if there is no
/// brace.
fn series_end(text: &str) -> Result<usize, String> {
    let first = text.find(['{', ' ', '\t']).unwrap_or(text.len());
    let behind = text.get(first..).unwrap_or("");
    let open = first + (behind.len() - behind.trim_start().len());
    if !text.get(open..).unwrap_or("").starts_with('{') {
        return Ok(first);
    }
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'}' if !quoted => return Ok(at + 1),
            _ => {}
        }
    }
    Err("labels without a closing brace".into())
}

/// Reads `name="value",...` with an optional comma at the end.
fn pairs(mut inside: &str) -> Result<Pairs<'_>, String> {
    let mut out = Vec::new();
    loop {
        inside = inside.trim_start();
        if inside.is_empty() {
            return Ok(out);
        }
        let (name, rest) =
            inside.split_once('=').ok_or_else(|| format!("label {} has no value", shown(inside)))?;
        let bad = || format!("value of label {} is not in quotes", shown(name.trim()));
        let rest = rest.trim_start().strip_prefix('"').ok_or_else(bad)?;
        let (value, rest) = value(rest).ok_or_else(bad)?;
        out.push((name.trim(), value));
        let rest = rest.trim_start();
        inside = match rest.strip_prefix(',') {
            Some(rest) => rest,
            None if rest.is_empty() => rest,
            None => return Err(format!("unexpected {} between labels", shown(rest))),
        };
    }
}

/// Reads a value after its opening quote. Returns it and the rest after its closing quote. Escapes are `\\`, `\"` and
/// `\n`.
fn value(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(['"', '\\'])?;
    if text.get(end..)?.starts_with('"') {
        return Some((Cow::Borrowed(text.get(..end)?), text.get(end + 1..)?));
    }
    let mut out = String::new();
    let mut rest = text.chars();
    loop {
        match rest.next()? {
            '"' => return Some((Cow::Owned(out), rest.as_str())),
            '\\' => match rest.next()? {
                'n' => out.push('\n'),
                escaped @ ('"' | '\\') => out.push(escaped),
                other => out.extend(['\\', other]),
            },
            char => out.push(char),
        }
    }
}
