//! Computes one query within the memory budget of all queries.
//!
//! ```text
//!   within WORK_INLINE_MAX        on the reading thread
//!   within `light`                on a blocking thread, at the same time as others
//!   within the limits of queries  on a blocking thread, one at a time (`App::heavy`)
//! ```
//! If another heavy query is running, a query is first computed within `light`. If it needs more, it waits for the other query
//! and is computed again. So the memory of all queries together is at most that of one heavy query, of the light ones, and of
//! the lists of series that waiting queries keep (up to 12 MB each).
//!
//! Step before: `mod.rs` has parsed it and found its series. Step after: `answer.rs` writes the response.

use tacho_api::export::Thinned;
use tacho_query::ErrorKind;
use tacho_query::promql::{Limits, Output, Plan, SeriesData};

use super::Answer;
use super::answer;
use super::fetch::{self, Failed, Fetched, Series};
use super::stats::Watch;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::turn::{Running, Turn, away, turn};
use crate::read::damage::sentences;

/// Samples and points computed on the reading thread, and samples that windows pass over, some 200 us: waking another thread
/// would take a large part of that.
const WORK_INLINE_MAX: usize = 1 << 16;
/// Samples of a light query, and values of its intermediate results: some 100 MB with all copies.
const LIGHT_POINTS_MAX: usize = 2_000_000;
/// Memory of the labels that a light query creates, bytes.
const LIGHT_LABEL_BYTES_MAX: usize = 32 << 20;

/// Limits of a query that is computed at the same time as others.
fn light(full: &Limits) -> Limits {
    Limits {
        samples_max: full.samples_max.min(LIGHT_POINTS_MAX),
        points_max: full.points_max.min(LIGHT_POINTS_MAX),
        label_bytes_max: full.label_bytes_max.min(LIGHT_LABEL_BYTES_MAX),
        ..full.clone()
    }
}

/// A query whose series were found.
pub struct Question {
    pub plan: Plan,
    pub found: Vec<Series>,
    /// With more series, it is evaluated on a blocking thread.
    pub series_inline_max: usize,
    /// Series of the answer.
    pub limit: Option<usize>,
    pub wants_stats: bool,
    pub watch: Watch,
    /// Released when the answer is written, or the query waits.
    pub turns: Vec<Turn>,
    pub heavy: Heavy,
    #[expect(dead_code, reason = "dropping it is what it does")]
    pub running: Running,
}

/// Whether a query holds the permit for heavy queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heavy {
    No,
    /// The permit was free. It is released as soon as the samples show that it is not needed.
    Free,
    /// The query waited for it.
    Needed,
}

/// The end of an attempt.
enum Tried {
    Answered(Answer),
    /// The query needs more than its limits allow.
    Over(Box<Question>, ApiError),
}

impl Question {
    pub async fn answer(mut self, app: &App, limits: &Limits) -> Answer {
        match app.heavy.clone().try_acquire_owned() {
            Ok(heavy) => {
                self.turns.push(heavy);
                self.heavy = Heavy::Free;
                self.plan.set_limits(limits.clone());
            }
            Err(_) => self.plan.set_limits(light(limits)),
        }
        let mut question = match self.attempt(app).await? {
            Tried::Answered(answer) => return answer,
            Tried::Over(question, error) if question.heavy != Heavy::No => return Err(error),
            Tried::Over(question, _) => *question,
        };
        // Light queries are computed while it waits.
        question.turns.clear();
        question.turns.push(turn(&app.heavy).await?);
        question.heavy = Heavy::Needed;
        question.plan.set_limits(limits.clone());
        match question.attempt(app).await? {
            Tried::Answered(answer) => answer,
            Tried::Over(_, error) => Err(error),
        }
    }

    /// Reads the samples and computes the answer within the limits of the plan.
    async fn attempt(mut self, app: &App) -> Result<Tried, ApiError> {
        let mut limits = self.plan.limits().clone();
        let fetched = match fetch::selections(&app.store, self.plan.selectors(), &self.found, &limits).await {
            Ok(fetched) => fetched,
            Err(Failed::Over(error)) => return Ok(Tried::Over(Box::new(self), error)),
            Err(Failed::Other(error)) => return Err(error),
        };
        self.watch.read();
        let samples = fetched.samples();
        let series: usize = fetched.data.iter().map(Vec::len).sum();
        let work = samples.saturating_add(self.plan.steps().saturating_mul(series + 1));
        if self.heavy == Heavy::Free && work <= LIGHT_POINTS_MAX {
            // It may compute for long.
            self.turns.truncate(1);
            self.heavy = Heavy::No;
            limits = light(&limits);
            self.plan.set_limits(limits.clone());
        }
        if series <= self.series_inline_max && work <= WORK_INLINE_MAX {
            // Windows may pass over the same samples thousands of times.
            let visits_max = limits.visits_max.min(WORK_INLINE_MAX);
            self.plan.set_limits(Limits { visits_max, ..limits.clone() });
            let output = self.plan.evaluate(&fetched.data);
            self.plan.set_limits(limits);
            if !output.as_ref().is_err_and(|error| error.kind == ErrorKind::Limit) {
                return Ok(self.tried(output, fetched));
            }
        }
        away(move || {
            let output = self.plan.evaluate(&fetched.data);
            self.tried(output, fetched)
        })
        .await
    }

    fn tried(mut self, output: Result<Output, tacho_query::Error>, fetched: Fetched) -> Tried {
        let samples = fetched.samples();
        let Fetched { data, report, damages } = fetched;
        drop(data);
        let output = match output {
            Ok(output) => output,
            Err(error) if error.kind == ErrorKind::Limit => return Tried::Over(Box::new(self), error.into()),
            Err(error) => return Tried::Answered(Err(error.into())),
        };
        let mut answer = match answer::Answer::new(output, self.limit) {
            Ok(answer) => answer,
            Err(error) => return Tried::Answered(Err(error)),
        };
        if self.heavy == Heavy::No && answer.label_bytes > answer::LIGHT_LABELS_BYTES_MAX {
            let error = ApiError::execution("an answer with long labels is written alone");
            return Tried::Over(Box::new(self), error);
        }
        answer.warnings = sentences(&damages);
        answer.infos = report.thinned.map(|thinned| info(Thinned::of(thinned))).into_iter().collect();
        answer.stats = self.wants_stats.then(|| self.watch.stats(samples, &report));
        let response = answer.into_response();
        self.turns.clear();
        Tried::Answered(Ok(response))
    }
}

impl Fetched {
    fn samples(&self) -> usize {
        self.data.iter().flatten().map(SeriesData::len).sum()
    }
}

/// The info text, with Prometheus' prefix.
fn info(thinned: Thinned) -> String {
    format!("PromQL info: older samples of these series are {thinned}, not the recorded values")
}
