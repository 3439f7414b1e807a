//! `tacho tune`: recommends settings by trials on the user's own data and queries.
//!
//! `training.rs` samples the series, `mix.rs` provides the queries, and `trial.rs` measures candidate settings one after the
//! other. `tacho_chunk::tune` encodes the samples and chooses the best settings. `report.rs` prints the results and the
//! recommendation. `section.rs` writes the recommendation to the configuration file.

mod mix;
mod report;
mod section;
mod training;
mod trial;

use std::path::PathBuf;

use tacho_api::units;
use tacho_chunk::tune::{Weights, recommend, recommend_over, smallest};
use tacho_chunk::{Method, Tolerance};

use super::ask;
use super::import::Reading;
use crate::failure::Failure;
use trial::{Limits, Trials};

/// Try chunk sizes, codecs, compression and tolerances on your own data and queries, and recommend settings
///
/// The data come from files (as for import), a data directory or a running server. Bytes, the cost of writing and the
/// cost of answering the query mix are measured on this machine; with --svg the trade-off is drawn. The recommendation
/// is a section for tacho.toml. It is lossless unless a tolerance is given.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho tune metrics.csv.gz --time-zone Europe/Berlin
  tacho tune --server http://127.0.0.1:7070 --match '{job=\"shop\"}' --svg trade-off.svg
  tacho tune --data ./tacho-data --match '{__name__=~\"heap.*\"}' --tolerance 0.001 --write tacho.toml
  tacho tune metrics.csv --queries mix.promql --favour speed

A query mix has one PromQL query per line. A query after [6h] is a range query over six hours, other queries are
instant queries; the times are drawn at random. Lines that begin with # are ignored.")]
pub struct Tune {
    /// Files of training data
    #[arg(value_name = "FILE", conflicts_with_all = ["server", "data"])]
    files: Vec<PathBuf>,
    /// Take the data from this server [default without FILE and --data: TACHO_URL, else http://127.0.0.1:7070]
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    server: Option<String>,
    #[command(flatten)]
    token: ask::Token,
    /// Take the data from this data directory; no server may be using it
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Skip unreadable records
    #[arg(long)]
    allow_damaged: bool,
    /// Series to sample: a PromQL selector; also the selector of the recommended section
    #[arg(long = "match", value_name = "SELECTOR", default_value = "{__name__!=\"\"}")]
    selector: String,
    /// Start of the data: Unix seconds, RFC 3339, a date (UTC), or a time before now such as -2h [default: all]
    #[arg(long, visible_alias = "from", value_name = "TIME", value_parser = ask::instant, allow_hyphen_values = true)]
    start: Option<i64>,
    /// End of the data: Unix seconds, RFC 3339, a date (UTC), or a time before now such as -2h [default: all]
    #[arg(long, visible_alias = "to", value_name = "TIME", value_parser = ask::instant, allow_hyphen_values = true)]
    end: Option<i64>,
    /// File with the query mix for measuring reads [default: a mix of graphs and aggregations]
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// Largest error of a value: 0.01 for one percent, or 5abs for 5 in its own unit
    #[arg(long, value_name = "SHARE", value_parser = tolerance)]
    tolerance: Option<Tolerance>,
    /// How values are simplified within the tolerance: linear, wavelet or rounding
    #[arg(long, value_name = "METHOD", default_value = "linear", value_parser = method)]
    method: Method,
    /// Largest error of a time, for example 200ms
    #[arg(long, value_name = "DURATION", value_parser = ask::duration)]
    time_tolerance: Option<i64>,
    /// What to favour
    #[arg(long, value_enum, default_value = "balanced", value_name = "WHAT")]
    favour: Favour,
    /// Limit on the number of values in the training data
    #[arg(long, value_name = "N", default_value_t = 500_000)]
    values: usize,
    /// Time limit for all trials, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,
    /// Seed of the choice of series and of the times of queries
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write a plot of the trade-off to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Put the recommended section into this configuration file
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

/// Minimum number of values. With fewer values, a recommendation is not reliable.
const VALUES_MIN: usize = 1_000;

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Favour {
    /// Prefers the least space. Of settings that need at most 1 % more, takes the default, or else the fastest to query
    Space,
    /// Prefers settings with half the space if queries take at most 1.5 times as long
    Balanced,
    /// Prefers settings with which queries take a quarter less time, even at twice the space
    Speed,
}

impl Favour {
    /// The weights of the costs; `None` if only space counts.
    const fn weights(self) -> Option<Weights> {
        match self {
            Self::Space => None,
            Self::Balanced => Some(Weights::BALANCED),
            Self::Speed => Some(Weights::SPEED),
        }
    }
}

impl Tune {
    pub fn run(self) -> Result<(), Failure> {
        let file = self.write.as_deref().map(section::File::open).transpose()?;
        let training = training::gather(&self)?;
        if training.values() < VALUES_MIN {
            return Err(Failure::new(format!(
                "{} values are too few to choose settings: at least {} are needed",
                training.values(),
                units::count(VALUES_MIN as u64)
            ))
            .hint("widen --match, --start and --end, or name more files"));
        }
        let mix = mix::load(self.queries.as_deref(), &training, self.seed)?;
        let limits = Limits::new(self.seconds, self.tolerance, self.method, self.time_tolerance);
        let trials = Trials::run(&training, &mix, &limits)?;
        let lossless: Vec<usize> =
            (0..trials.done.len()).filter(|at| trials.done[*at].candidate.semantic.is_lossless()).collect();
        let costs: Vec<_> = lossless.iter().map(|at| trials.done[*at].cost).collect();
        let usual = lossless.iter().position(|at| trials.is_default(*at));
        let weights = self.favour.weights();
        let best = match (weights, usual) {
            (None, usual) => smallest(&costs, usual),
            (Some(weights), Some(usual)) => recommend_over(&costs, weights, usual),
            (Some(weights), None) => recommend(&costs, weights),
        };
        let best = best.map(|at| trials.plainest(lossless[at]));
        let best = best.ok_or_else(|| Failure::new("no trial finished").hint("raise --seconds"))?;
        report::Report { tune: &self, training: &training, mix: &mix, trials: &trials, best, file }.give()
    }
}

fn tolerance(text: &str) -> Result<Tolerance, String> {
    let (number, absolute) = match text.strip_suffix("abs") {
        Some(number) => (number, true),
        None => (text, false),
    };
    let amount: f64 = number.parse().map_err(|_| "give a share such as 0.01, or an amount such as 5abs")?;
    match (amount.is_finite() && amount > 0.0, absolute) {
        (false, _) => Err("a tolerance is above 0".into()),
        (true, true) => Ok(Tolerance::Absolute(amount)),
        (true, false) if amount < 1.0 => Ok(Tolerance::Relative(amount)),
        (true, false) => Err("a share is below 1; give an amount as 5abs".into()),
    }
}

fn method(text: &str) -> Result<Method, String> {
    Method::from_name(text).ok_or_else(|| "give linear, wavelet or rounding".into())
}
