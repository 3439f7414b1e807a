//! What may a request read? A reader of the store that is confined to the series of its access.
//!
//! Without a selector, each method returns what the method of the store returns. The matchers of a selector are added to every
//! selection. Only records of matching series are read, and damages of other series are omitted. A read of another series is an
//! `Invalid` error. A bounded view counts the records that it reads, and fails above the limit of its token.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tacho_chunk::ExecutionBlock;
use tacho_model::{Entry, Kind, Labels, Matcher, SeriesId, TimeRange, Windows};
use tacho_store::{
    Changes, ChunkInfo, Damages, Error, ErrorKind, Needed, Piece, Read, Result, SampleAnswer, Steps, Store,
    Unfound,
};

use super::token::Confinement;
use super::{Access, Reason, Whole};

/// Reads a store. Cheap to clone.
#[derive(Clone)]
pub struct View {
    store: Arc<Store>,
    confinement: Option<Arc<Confinement>>,
    budget: Option<Arc<Budget>>,
}

/// The records that one request may read.
struct Budget {
    access: Access,
    records_max: usize,
    /// The records of the current pass.
    read: AtomicUsize,
}

type Waits<'a> = &'a dyn Fn() -> bool;

type Series = (SeriesId, Arc<Labels>);

impl View {
    pub fn new(store: Arc<Store>, access: &Access) -> Self {
        Self { store, confinement: access.confinement().cloned(), budget: None }
    }

    /// A view for one request. Its reads count toward the token's limit on the records of a query. PromQL queries do not use such
    /// a view, because their evaluation checks the limit on samples.
    pub fn bounded(store: Arc<Store>, access: &Access) -> Self {
        let budget = |records_max| {
            Arc::new(Budget { access: access.clone(), records_max, read: AtomicUsize::default() })
        };
        Self { budget: access.query_samples_max().map(budget), ..Self::new(store, access) }
    }

    /// For a program that opened the store itself.
    pub const fn whole(store: Arc<Store>) -> Self {
        Self { store, confinement: None, budget: None }
    }

    /// Begins a pass over records that the request may have read before. A request may read calls in several passes, for example
    /// because they take too much memory to be kept. The limit applies to each pass, so no record counts twice.
    pub fn begin_pass(&self) {
        if let Some(budget) = self.budget.as_ref().filter(|budget| !budget.is_spent()) {
            budget.read.store(0, Ordering::Relaxed);
        }
    }

    /// Whether reads have failed because of the limit of the token.
    pub fn is_spent(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.is_spent())
    }

    /// # Errors
    /// `Limit` if the records read in this pass are above the limit of the token.
    fn check_budget(&self) -> Result<()> {
        self.budget.as_ref().map_or(Ok(()), |budget| budget.check())
    }

    fn count(&self, records: usize) -> Result<()> {
        self.budget.as_ref().map_or(Ok(()), |budget| {
            budget.takes(records);
            budget.check()
        })
    }

    pub fn store(&self, _: &Whole) -> &Arc<Store> {
        &self.store
    }

    pub fn admits(&self, labels: &Labels) -> bool {
        self.confinement.as_ref().is_none_or(|confinement| confinement.admits(labels))
    }

    /// Whether the store has the series and the access admits it. Always true without a confinement.
    pub fn admits_id(&self, id: SeriesId) -> bool {
        self.confinement.as_ref().is_none_or(|confinement| {
            self.store.labels_of(id).is_some_and(|labels| confinement.admits(&labels))
        })
    }

    /// `None` if the store does not have the series, or the access does not admit it.
    pub fn labels_of(&self, id: SeriesId) -> Option<Arc<Labels>> {
        self.store.labels_of(id).filter(|labels| self.admits(labels))
    }

    fn within(&self, matchers: &[Matcher]) -> Vec<Matcher> {
        let own = self.confinement.iter().flat_map(|confinement| &confinement.matchers);
        matchers.iter().chain(own).cloned().collect()
    }

    /// Empty `selectors` mean all series.
    fn all_within(&self, selectors: &[Vec<Matcher>]) -> Vec<Vec<Matcher>> {
        match selectors {
            [] => vec![self.within(&[])],
            selectors => selectors.iter().map(|matchers| self.within(matchers)).collect(),
        }
    }

    pub fn find(&self, kind: Kind, matchers: &[Matcher]) -> Vec<Series> {
        self.find_while(kind, matchers, &|| true).unwrap_or_default()
    }

    pub fn find_while(&self, kind: Kind, matchers: &[Matcher], waits: Waits<'_>) -> Option<Vec<Series>> {
        self.find_within(kind, matchers, usize::MAX, waits).ok()
    }

    pub fn find_within(
        &self,
        kind: Kind,
        matchers: &[Matcher],
        series_max: usize,
        waits: Waits<'_>,
    ) -> std::result::Result<Vec<Series>, Unfound> {
        match &self.confinement {
            None => self.store.find_within(kind, matchers, series_max, waits),
            Some(_) => self.store.find_within(kind, &self.within(matchers), series_max, waits),
        }
    }

    pub fn label_names(
        &self,
        kind: Kind,
        selectors: &[Vec<Matcher>],
        waits: Waits<'_>,
    ) -> Option<Vec<String>> {
        match &self.confinement {
            None => self.store.label_names(kind, selectors, waits),
            Some(_) => self.store.label_names(kind, &self.all_within(selectors), waits),
        }
    }

    pub fn label_values_within(
        &self,
        kind: Kind,
        name: &str,
        selectors: &[Vec<Matcher>],
        bytes_max: usize,
        waits: Waits<'_>,
    ) -> Option<Vec<String>> {
        match &self.confinement {
            None => self.store.label_values_within(kind, name, selectors, bytes_max, waits),
            Some(_) => {
                self.store.label_values_within(kind, name, &self.all_within(selectors), bytes_max, waits)
            }
        }
    }

    /// Number of series by kind. An upper bound for a confined access, because it counts all series of the store.
    pub fn series_count(&self) -> [usize; 3] {
        self.store.series_count()
    }

    /// The changes of all series of the store. A change has times but no labels.
    pub fn changes(&self) -> &Changes {
        self.store.changes()
    }

    pub fn expired_before(&self) -> Vec<i64> {
        self.store.expired_before()
    }

    /// Like [`Store::deleted_hours`], for a series of this access.
    pub async fn deleted_hours(&self, id: SeriesId, range: TimeRange) -> Result<u64> {
        if self.admits_id(id) { self.store.deleted_hours(id, range).await } else { Err(outside(id)) }
    }

    pub fn summed_until(&self, series: &[SeriesId], from: i64) -> Option<i64> {
        self.store.summed_until(series, from)
    }

    pub fn lacks(&self, kind: Kind) -> Damages {
        self.shown(self.store.lacks(kind))
    }

    fn shown(&self, mut damages: Damages) -> Damages {
        if let Some(confinement) = &self.confinement {
            damages.retain(|labels| confinement.admits(labels));
        }
        damages
    }

    /// The report of a confined access does not depend on other series.
    pub async fn read_samples(
        &self,
        series: &[SeriesId],
        range: TimeRange,
        windows: Option<&Windows>,
        room: &AtomicUsize,
    ) -> Result<SampleAnswer> {
        self.check(series)?;
        let answer = self.store.read_samples(series, range, windows, room).await?;
        self.count(samples(&answer))?;
        Ok(self.shown_answer(answer))
    }

    /// Reads short series together, each in one range that contains the ranges of all. Only samples in the own range of a series
    /// count toward the limit of the token.
    pub async fn read_short_samples(
        &self,
        wanted: &[(SeriesId, TimeRange)],
        samples_max: usize,
    ) -> Result<Option<SampleAnswer>> {
        let series: Vec<SeriesId> = wanted.iter().map(|(id, _)| *id).collect();
        self.check(&series)?;
        let start = wanted.iter().map(|(_, range)| range.start).min().unwrap_or(0);
        let end = wanted.iter().map(|(_, range)| range.end).max().unwrap_or(0);
        let read = self.store.read_short_samples(&series, TimeRange::new(start, end), samples_max).await?;
        let Some(answer) = read else { return Ok(None) };
        if self.budget.is_some() {
            let within = |((_, range), pieces): (&(SeriesId, TimeRange), &Vec<Piece>)| {
                pieces.iter().flat_map(Piece::samples).filter(|sample| range.contains(sample.at)).count()
            };
            self.count(wanted.iter().zip(&answer.series).map(within).sum())?;
        }
        Ok(Some(self.shown_answer(answer)))
    }

    fn check(&self, series: &[SeriesId]) -> Result<()> {
        series.iter().find(|id| !self.admits_id(**id)).map_or(Ok(()), |other| Err(outside(*other)))
    }

    fn shown_answer(&self, mut answer: SampleAnswer) -> SampleAnswer {
        answer.damages = self.shown(answer.damages);
        if self.confinement.is_some() {
            answer.report = answer.report.of_requested_series();
        }
        answer
    }

    pub async fn read_entries(&self, id: SeriesId, range: TimeRange) -> Result<Read<Vec<Entry>>> {
        if !self.admits_id(id) {
            return Err(outside(id));
        }
        let read = self.store.read_entries(id, range).await?;
        self.count(read.records.len())?;
        Ok(read)
    }

    pub async fn executions_within(
        &self,
        id: SeriesId,
        range: TimeRange,
        room: &AtomicUsize,
        keep: impl Fn(&ExecutionBlock) -> bool,
    ) -> Result<Read<Vec<Arc<ExecutionBlock>>>> {
        if !self.admits_id(id) {
            return Err(outside(id));
        }
        let keep = |block: &ExecutionBlock| self.takes(block) && keep(block);
        let read = self.store.executions_within(id, range, room, keep).await?;
        self.check_budget()?;
        Ok(read)
    }

    pub async fn executions_of(
        &self,
        id: SeriesId,
        range: TimeRange,
        room: &AtomicUsize,
        needed: (Needed<'_>, Steps<'_>),
        keep: impl Fn(&ExecutionBlock) -> bool,
    ) -> Result<Read<Vec<Arc<ExecutionBlock>>>> {
        if !self.admits_id(id) {
            return Err(outside(id));
        }
        let keep = |block: &ExecutionBlock| self.takes(block) && keep(block);
        let read = self.store.executions_of(id, range, room, needed, keep).await?;
        self.check_budget()?;
        Ok(read)
    }

    /// Counts the calls of a block. Returns whether the token may read them.
    fn takes(&self, block: &ExecutionBlock) -> bool {
        self.budget.as_ref().is_none_or(|budget| budget.takes(block.calls()))
    }

    pub async fn read_chunks(&self, kind: Kind, id: SeriesId) -> Result<Read<Vec<ChunkInfo>>> {
        if !self.admits_id(id) {
            return Err(outside(id));
        }
        self.store.read_chunks(kind, id).await
    }
}

impl Budget {
    /// Counts records. Returns whether all records of the pass are within the limit. Notes one refusal, when the limit is passed.
    fn takes(&self, records: usize) -> bool {
        let before = self.read.fetch_add(records, Ordering::Relaxed);
        let after = before.saturating_add(records);
        if before <= self.records_max && after > self.records_max {
            self.access.refuse(Reason::Query, 1, &self.message());
        }
        after <= self.records_max
    }

    fn is_spent(&self) -> bool {
        self.read.load(Ordering::Relaxed) > self.records_max
    }

    fn check(&self) -> Result<()> {
        if self.is_spent() { Err(Error::new(ErrorKind::Limit, self.message())) } else { Ok(()) }
    }

    fn message(&self) -> String {
        let (name, max) = (self.access.name().unwrap_or_default(), self.records_max);
        format!("token {name:?} may read {max} records in a request: narrow the range or the selection")
    }
}

fn samples(answer: &SampleAnswer) -> usize {
    answer.series.iter().flatten().map(Piece::len).sum()
}

/// No selection finds a series outside of the access. So this is an error of the caller, or the series was removed from the
/// store after it was found.
fn outside(id: SeriesId) -> Error {
    Error::new(ErrorKind::Invalid, format!("series {id} is not among those of the token"))
}
