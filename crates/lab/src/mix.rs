//! Chooses the next request at random, with a seed, from a weighted mix of templates.

use std::fmt;

use tacho_model::Random;

/// The template of a request. `{a..b}` in path or body is replaced by a random number from a to b, inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pub weight: u32,
    pub method: String,
    pub path: String,
    /// Sent as `application/x-www-form-urlencoded` if not empty.
    pub body: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    templates: Vec<Template>,
    weight: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct MixError {
    /// Number of the line, from 1. 0 if the reason applies to the whole mix.
    pub line: usize,
    pub reason: &'static str,
    pub text: String,
}

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, reason, text } = self;
        if *line == 0 {
            return f.write_str(reason);
        }
        write!(f, "line {line} of the mix: {reason}: {text:?}")
    }
}

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

impl Mix {
    /// Parses one template per line: `WEIGHT METHOD PATH [BODY]`. `#` starts a comment.
    pub fn parse(text: &str) -> Result<Self, MixError> {
        let mut templates = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line_text = line.split('#').next().unwrap_or("").trim();
            if !line_text.is_empty() {
                let error = |reason| MixError { line: at + 1, reason, text: line_text.to_owned() };
                templates.push(template(line_text).map_err(error)?);
            }
        }
        let weight = templates.iter().map(|t| u64::from(t.weight)).sum();
        if weight == 0 {
            return Err(MixError {
                line: 0,
                reason: "no template has a weight above zero",
                text: String::new(),
            });
        }
        Ok(Self { templates, weight })
    }

    pub fn templates(&self) -> &[Template] {
        &self.templates
    }

    /// The index of a random template.
    pub fn draw(&self, rng: &mut Random) -> usize {
        let mut left = rng.below(self.weight);
        for (at, template) in self.templates.iter().enumerate() {
            match left.checked_sub(u64::from(template.weight)) {
                Some(rest) => left = rest,
                None => return at,
            }
        }
        0
    }
}

fn template(line: &str) -> Result<Template, &'static str> {
    let mut words = line.splitn(4, ' ').filter(|word| !word.is_empty());
    let weight = words
        .next()
        .and_then(|w| w.parse().ok())
        .ok_or("the weight is not a whole number from 0 to 4294967295")?;
    let method = words.next().unwrap_or("").to_ascii_uppercase();
    if !METHODS.contains(&method.as_str()) {
        return Err("the method is not one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    }
    let path = words.next().unwrap_or("").to_owned();
    if !path.starts_with('/') {
        return Err("the path does not begin with /");
    }
    let body = words.next().unwrap_or("").to_owned();
    check_ranges(&path)?;
    check_ranges(&body)?;
    Ok(Template { weight, method, path, body })
}

fn check_ranges(text: &str) -> Result<(), &'static str> {
    let wrong =
        text.split('{').skip(1).any(|rest| rest.split_once('}').and_then(|(r, _)| range(r)).is_none());
    if wrong { Err("{...} is not a range {from..to} of integers") } else { Ok(()) }
}

fn range(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.split_once("..")?;
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (from <= to).then_some((from, to))
}

/// Replaces each `{a..b}` by a random number.
pub fn fill(text: &str, rng: &mut Random) -> String {
    let mut parts = text.split('{');
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let (inside, after) = part.split_once('}').unwrap_or((part, ""));
        if let Some((from, to)) = range(inside) {
            out.push_str(&(from + rng.below((to - from).saturating_add(1))).to_string());
        }
        out.push_str(after);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_parsed_and_chosen_by_weight() {
        let mix =
            Mix::parse("# reading\n50 get /ads?page={1..20}\n\n1 POST /ads title=a{7..7}&b=c d # write\n")
                .unwrap();
        assert_eq!(mix.templates()[1].body, "title=a{7..7}&b=c d");
        let mut rng = Random::new(1);
        let first = (0..51_000).filter(|_| mix.draw(&mut rng) == 0).count();
        assert!((49_500..50_500).contains(&first), "{first}");
        assert_eq!(fill("/a{7..7}/b{1..1}", &mut rng), "/a7/b1");
    }

    #[test]
    fn a_bad_line_is_reported_with_its_number() {
        let check = |text: &str, line: usize, reason: &str| {
            let error = Mix::parse(text).unwrap_err();
            assert_eq!((error.line, error.reason.contains(reason)), (line, true), "{error}");
        };
        check("x GET /", 1, "weight");
        check("1 GET /\n1 FETCH /", 2, "method");
        check("1 GET ads", 1, "path");
        check("1 GET /{a..b}", 1, "range");
        check("1 GET /{5..1}", 1, "range");
        check("", 0, "no template");
        check("0 GET /", 0, "no template");
    }
}
