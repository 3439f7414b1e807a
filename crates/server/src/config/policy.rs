//! Rules for stored data: `[[retention]]`, `[[downsampling]]`, `[[semantic]]` and `[[chunks]]` of `tacho.toml`.
//!
//! Each rule has a `match`, a PromQL selector. An error names section, position, key and value.

use serde::Deserialize;
use tacho_api::time::parse_duration_with_unit;
use tacho_chunk::semantic::{Semantic, is_counter_name};
use tacho_chunk::{Aggregate, Aggregation, CodecSet, Compression, Method, Tolerance};
use tacho_model::{MatchOp, Matcher, NAME};
use tacho_query::promql;
use tacho_store::policy::{self, ChunkSettings, Downsampling, Policies, Rule};

use super::error::ConfigError;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sections {
    pub retention: Option<Vec<Retention>>,
    pub downsampling: Option<Vec<Thinning>>,
    pub semantic: Option<Vec<GivenUp>>,
    pub chunks: Option<Vec<Chunks>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    r#match: String,
    keep: String,
    summaries: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thinning {
    r#match: String,
    after: String,
    step: String,
    /// Name of the aggregate. Default: `avg`.
    keep: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenUp {
    r#match: String,
    time: Option<String>,
    value: Option<Amount>,
    method: Option<String>,
}

/// A tolerance: `0.01` in the unit of the value, or `"1%"` of the value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Amount {
    Number(f64),
    Text(String),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chunks {
    r#match: String,
    values: Option<usize>,
    codecs: Option<Vec<String>>,
    compression: Option<String>,
}

/// Allowed number of samples of a series in a merged chunk. In smaller chunks the overhead dominates. From larger chunks, a
/// read decodes far more samples than it needs.
const CHUNK_VALUES: std::ops::RangeInclusive<usize> = 128..=65_536;

/// Position of a rule. `number` counts the rules of the section from 1.
#[derive(Clone, Copy)]
struct Place {
    section: &'static str,
    number: usize,
}

impl Place {
    fn wrong(self, key: &'static str, value: &str, cause: impl ToString) -> ConfigError {
        let Self { section, number } = self;
        ConfigError::Rule { section, number, key, value: value.to_owned(), cause: cause.to_string() }
    }

    fn matchers(self, text: &str) -> Result<Vec<Matcher>, ConfigError> {
        promql::parse_selector(text).map_err(|e| self.wrong("match", text, e))
    }

    /// Parses a duration. Unlike in requests, the unit is required, because the rules delete or change data.
    fn duration(self, key: &'static str, text: &str) -> Result<i64, ConfigError> {
        parse_duration_with_unit(text).ok_or_else(|| {
            self.wrong(key, text, "not a duration above zero with its unit, for example 90d, 5m or 200ms")
        })
    }
}

impl Sections {
    pub fn policies(self) -> Result<Policies, ConfigError> {
        Ok(Policies {
            retention: rules("retention", self.retention, retention)?,
            downsampling: rules("downsampling", self.downsampling, downsampling)?,
            semantic: rules("semantic", self.semantic, semantic)?,
            chunks: rules("chunks", self.chunks, chunks)?,
        })
    }
}

fn rules<R, T>(
    section: &'static str,
    rules: Option<Vec<R>>,
    read: impl Fn(Place, R) -> Result<Rule<T>, ConfigError>,
) -> Result<Vec<Rule<T>>, ConfigError> {
    let rules = rules.unwrap_or_default().into_iter().enumerate();
    rules.map(|(at, rule)| read(Place { section, number: at + 1 }, rule)).collect()
}

fn retention(place: Place, rule: Retention) -> Result<Rule<policy::Retention>, ConfigError> {
    let keep = place.duration("keep", &rule.keep)?.unsigned_abs();
    let summaries = rule.summaries.as_deref().map(|text| {
        let summaries = place.duration("summaries", text)?.unsigned_abs();
        if summaries <= keep {
            let cause = format!("it must be longer than keep, which is {}", rule.keep);
            return Err(place.wrong("summaries", text, cause));
        }
        Ok(summaries)
    });
    let then = policy::Retention { keep, summaries: summaries.transpose()? };
    Ok(Rule { matchers: place.matchers(&rule.r#match)?, then })
}

fn downsampling(place: Place, rule: Thinning) -> Result<Rule<Downsampling>, ConfigError> {
    let after = place.duration("after", &rule.after)?.unsigned_abs();
    let step = place.duration("step", &rule.step)?;
    let keep = rule.keep.as_deref().unwrap_or(Aggregate::Avg.name());
    let how = Aggregate::from_name(keep)
        .ok_or_else(|| place.wrong("keep", keep, "avg, min, max, sum, last, first and count are known"))?;
    let then = Downsampling { after, to: Aggregation { step, how } };
    Ok(Rule { matchers: place.matchers(&rule.r#match)?, then })
}

fn semantic(place: Place, rule: GivenUp) -> Result<Rule<Semantic>, ConfigError> {
    let matchers = place.matchers(&rule.r#match)?;
    let time = rule.time.as_deref().map(|text| place.duration("time", text)).transpose()?;
    let value = rule.value.map(|amount| tolerance(place, amount)).transpose()?;
    let method = rule.method.as_deref().unwrap_or(Method::Linear.name());
    let method = Method::from_name(method)
        .ok_or_else(|| place.wrong("method", method, "linear, wavelet and rounding are known"))?;
    if time.is_none() && value.is_none() {
        return Err(place.wrong("match", &rule.r#match, "the rule permits no loss: set time, value or both"));
    }
    let counter = matchers.iter().find(|m| {
        m.label() == NAME && m.op() == MatchOp::Equal && value.is_some() && is_counter_name(m.value())
    });
    if let Some(counter) = counter {
        let cause =
            "a counter cannot have a tolerance: an error of its value is an error of every rate over it";
        return Err(place.wrong("match", counter.value(), cause));
    }
    let time = time.unwrap_or(0).unsigned_abs();
    Ok(Rule { matchers, then: Semantic { time, value, method, ..Semantic::default() } })
}

fn tolerance(place: Place, amount: Amount) -> Result<Tolerance, ConfigError> {
    let wanted = "expected a number above 0, or a percentage such as \"1%\", below 100%";
    let (text, tolerance) = match amount {
        Amount::Number(number) => (number.to_string(), Some(Tolerance::Absolute(number))),
        Amount::Text(text) => {
            let share = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
            let share = share.filter(|percent| *percent < 100.0);
            (text, share.map(|percent| Tolerance::Relative(percent / 100.0)))
        }
    };
    let good = |tolerance: &Tolerance| tolerance.amount() > 0.0 && tolerance.amount().is_finite();
    tolerance.filter(good).ok_or_else(|| place.wrong("value", &text, wanted))
}

fn chunks(place: Place, rule: Chunks) -> Result<Rule<ChunkSettings>, ConfigError> {
    let default = ChunkSettings::default();
    if let Some(values) = rule.values.filter(|values| !CHUNK_VALUES.contains(values)) {
        let (least, most) = CHUNK_VALUES.into_inner();
        return Err(place.wrong("values", &values.to_string(), format!("{least} to {most} are allowed")));
    }
    let compression = match rule.compression.as_deref() {
        None => default.compression,
        Some(name) => Compression::from_name(name)
            .ok_or_else(|| place.wrong("compression", name, "auto, none, lz4, zstd and gzip are known"))?,
    };
    let codecs = match &rule.codecs {
        None => default.codecs,
        Some(names) => codecs(place, names)?,
    };
    let then = ChunkSettings { values: rule.values, codecs, compression };
    Ok(Rule { matchers: place.matchers(&rule.r#match)?, then })
}

fn codecs(place: Place, names: &[String]) -> Result<CodecSet, ConfigError> {
    if let Some(name) = names.iter().find(|name| CodecSet::only([name.as_str()]).is_none()) {
        let known: Vec<&str> = CodecSet::names().collect();
        return Err(place.wrong("codecs", name, format!("known are {}", known.join(", "))));
    }
    Ok(CodecSet::only(names.iter().map(String::as_str)).unwrap_or_default())
}
