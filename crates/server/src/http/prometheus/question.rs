//! Computes one query within the memory budget of all queries.
//!
//! ```text
//!   needs at most                 is computed
//!   WORK_INLINE_MAX               on the thread of the request
//!   the limits of `light`         on a blocking thread, at the same time as others
//!   the limits of all queries     on a blocking thread, one at a time (`App::heavy`)
//! ```
//! While a heavy query is running, other queries are first computed within the limits of `light`. A query that needs more waits
//! for the heavy query, and is then parsed and computed again. A waiting query keeps its text, but no patterns, series or
//! samples. It shares its known results with the cache (`Fill`). So all queries together take at most the memory of one heavy
//! query and of the light queries.
//!
//! Step before: `mod.rs` has read the parameters of the query. Step after: `answer.rs` writes the response.

use tacho_api::export::Thinned;
use tacho_query::ErrorKind;
use tacho_query::promql::{self, Limits, Output, Plan, Reach};

use super::answer;
use super::cache::{Fill, NotKept};
use super::envelope::Answer;
use super::fetch::{self, Failed, Floats, Series};
use super::series::LIGHT_SERIES_MAX;
use super::stats::{Step, Watch};
use crate::access::Reason;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::running::Requester;
use crate::http::turn::{Running, Turn, away, turn};
use crate::read::damage::sentences;

/// Limit on the sum of samples and points, and on the visits of samples by windows, for a query that is computed on the thread
/// of the request. Work up to this limit takes some 200 us. Waking another thread would take a large part of this time.
pub(super) const WORK_INLINE_MAX: usize = 1 << 16;
/// Limit on the samples of a light query, and on the values of its intermediate results: some 100 MB with all copies.
const LIGHT_POINTS_MAX: usize = 2_000_000;
const LIGHT_LABEL_BYTES_MAX: usize = 32 << 20;

fn light(full: &Limits) -> Limits {
    Limits {
        samples_max: full.samples_max.min(LIGHT_POINTS_MAX),
        points_max: full.points_max.min(LIGHT_POINTS_MAX),
        label_bytes_max: full.label_bytes_max.min(LIGHT_LABEL_BYTES_MAX),
        ..full.clone()
    }
}

pub struct Question {
    pub requester: Requester,
    pub text: String,
    pub at: promql::Params,
    /// Whether parsing the query and finding its series takes microseconds.
    pub is_light: bool,
    /// A query with more series is evaluated on a blocking thread.
    pub series_inline_max: usize,
    pub limit: Option<usize>,
    pub wants_stats: bool,
    /// Receives the computed results, and has the known results of the other steps.
    pub fill: Option<Box<Fill>>,
    pub watch: Watch,
    #[expect(dead_code, reason = "only its drop has an effect")]
    pub running: Running,
}

/// One attempt to compute a query.
struct Attempt {
    question: Question,
    plan: Plan,
    found: Vec<Series>,
    heavy: Heavy,
    /// Released when the response is formed or when the query begins to wait, after the samples of the attempt are freed. A
    /// long response is written later, without a permit.
    turns: Vec<Turn>,
}

/// Whether a query holds the permit for heavy queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heavy {
    No,
    /// The query took the permit without waiting. It releases the permit as soon as the samples show that it is light.
    Free,
    /// The query holds the permit after waiting for it.
    Needed,
}

enum Tried {
    Answered(Answer),
    /// The query needs more than its limits allow.
    Over(Box<Attempt>, ApiError),
}

impl Question {
    /// `permit` is one of `App::queries`.
    pub async fn answer(self, app: &App, permit: Turn) -> Answer {
        let mut question = match self.try_light(app, permit).await? {
            Ok(answer) => return answer,
            Err(question) => question,
        };
        let waits = app.wait_alone()?;
        let heavy = turn(&app.heavy).await?;
        question.watch.ends(Step::Queue);
        let series_max = question.at.limits.series_max;
        let begun = question.begin(app, heavy, series_max).await?;
        let mut attempt = begun.map_err(|_| fetch::over("series", series_max))?;
        attempt.heavy = Heavy::Needed;
        let tried = attempt.run(app).await;
        drop(waits);
        match tried? {
            Tried::Answered(answer) => answer,
            Tried::Over(_, error) => Err(error),
        }
    }

    /// Computes the query, or returns the question if the query must wait for the permit for heavy queries.
    async fn try_light(self, app: &App, permit: Turn) -> Result<Result<Answer, Box<Self>>, ApiError> {
        let series_max = self.at.limits.series_max.min(LIGHT_SERIES_MAX);
        let mut attempt = match self.begin(app, permit, series_max).await? {
            Ok(attempt) => attempt,
            Err(question) => return Ok(Err(question)),
        };
        let limits = attempt.plan.limits().clone();
        match app.heavy.clone().try_acquire_owned() {
            Ok(heavy) => {
                attempt.turns.push(heavy);
                attempt.heavy = Heavy::Free;
            }
            Err(_) => attempt.plan.set_limits(light(&limits)),
        }
        match attempt.run(app).await? {
            Tried::Answered(answer) => Ok(Ok(answer)),
            Tried::Over(attempt, error) if attempt.heavy != Heavy::No => Err(error),
            // The attempt is dropped with its permit, so that light queries can run while this query waits.
            Tried::Over(attempt, _) => Ok(Err(Box::new(attempt.question))),
        }
    }

    /// Parses the query and finds its series. Runs on a blocking thread unless `is_light` is set, because compiling patterns
    /// and walking a large index take long. Returns the question if it selects more series than `series_max`.
    async fn begin(
        self,
        app: &App,
        permit: Turn,
        series_max: usize,
    ) -> Result<Result<Attempt, Box<Self>>, ApiError> {
        let store = app.view(self.requester.access());
        let is_light = self.is_light;
        let begin = move || {
            let plan = promql::parse(&self.text)?.plan(&self.at)?;
            let found = fetch::find(&store, plan.selectors(), series_max, &self.at.cancel)?;
            let Some(found) = found else { return Ok(Err(Box::new(self))) };
            Ok(Ok(Attempt { question: self, plan, found, heavy: Heavy::No, turns: vec![permit] }))
        };
        if is_light { begin() } else { away(begin).await? }
    }
}

impl Attempt {
    async fn run(mut self, app: &App) -> Result<Tried, ApiError> {
        let mut limits = self.plan.limits().clone();
        let (store, now) = (app.view(self.question.requester.access()), app.clock.now());
        let progress = self.question.requester.progress();
        let fetched =
            fetch::selections((&store, progress), self.plan.selectors(), &self.found, &limits, now).await;
        self.question.watch.ends(Step::Read);
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(Failed::Over(error)) => {
                self.count_limit(&limits);
                return Ok(self.over(error));
            }
            Err(Failed::Other(error)) => return Err(error),
        };
        let samples = fetched.samples();
        let series = fetched.series();
        let work = samples.saturating_add(self.plan.steps().saturating_mul(series + 1));
        if self.heavy == Heavy::Free && work <= LIGHT_POINTS_MAX {
            // Evaluation may take long, so the permit for heavy queries is released before it.
            self.turns.truncate(1);
            self.heavy = Heavy::No;
            limits = light(&limits);
            self.plan.set_limits(limits.clone());
        }
        if series <= self.question.series_inline_max && work <= WORK_INLINE_MAX {
            // Windows may visit the same samples thousands of times, so visits are also limited.
            let visits_max = limits.visits_max.min(WORK_INLINE_MAX);
            self.plan.set_limits(Limits { visits_max, ..limits.clone() });
            let floats = fetched.floats();
            let output = self.plan.evaluate(&floats.data);
            self.plan.set_limits(limits);
            if !output.as_ref().is_err_and(|error| error.kind == ErrorKind::Limit) {
                return Ok(self.tried(output, floats));
            }
            return away(move || {
                let output = self.plan.evaluate(&floats.data);
                self.tried(output, floats)
            })
            .await;
        }
        away(move || {
            let floats = fetched.floats();
            let output = self.plan.evaluate(&floats.data);
            self.tried(output, floats)
        })
        .await
    }

    /// Counts a query that fails because of the limit of its token. A light attempt does not count, because it is repeated.
    fn count_limit(&self, limits: &Limits) {
        let access = self.question.requester.access();
        if self.heavy != Heavy::No && access.query_samples_max() == Some(limits.samples_max) {
            let why = format!("a query reads more than {} samples", limits.samples_max);
            access.refuse(Reason::Query, 1, &why);
        }
    }

    fn over(mut self, error: ApiError) -> Tried {
        self.question.watch.ends(Step::Evaluate);
        Tried::Over(Box::new(self), error)
    }

    fn tried(mut self, output: Result<Output, tacho_query::Error>, floats: Floats) -> Tried {
        let Floats { data, samples, report, damages, of_calls } = floats;
        drop(data);
        let output = match output {
            Ok(output) => output,
            Err(error) if error.kind == ErrorKind::Limit => return self.over(error.into()),
            Err(error) => return Tried::Answered(Err(error.into())),
        };
        let is_whole = damages.is_empty() && report.thinned.is_none();
        let output = match (output, &self.question.fill) {
            (Output::Matrix(series), Some(fill)) => {
                // The cache does not know which calls have changed.
                let reach = Reach::of(&self.plan).filter(|_| !of_calls.is_some).ok_or(NotKept::Form);
                let reach = if is_whole { reach } else { Err(NotKept::Notes) };
                Output::Matrix(fill.complete(series, reach))
            }
            (output, _) => output,
        };
        let mut answer = match answer::Answer::new(output, self.question.limit) {
            Ok(answer) => answer,
            Err(error) => return Tried::Answered(Err(error)),
        };
        if self.heavy == Heavy::No && answer.label_bytes > answer::LIGHT_LABELS_BYTES_MAX {
            let error = ApiError::execution("an answer with long labels is written alone");
            return self.over(error);
        }
        answer.warnings = sentences(&damages);
        answer.warnings.extend(of_calls.warnings);
        answer.infos = report.thinned.map(|thinned| info(Thinned::of(thinned))).into_iter().collect();
        self.question.watch.ends(Step::Evaluate);
        answer.stats = self.question.wants_stats.then(|| self.question.watch.stats(samples, &report));
        let response = answer.into_response();
        self.turns.clear();
        Tried::Answered(Ok(response))
    }
}

/// The text of the info about downsampled samples, with Prometheus' prefix.
fn info(thinned: Thinned) -> String {
    format!("PromQL info: older samples of these series are {thinned}, not the recorded values")
}
