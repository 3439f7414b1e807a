//! What may a request write? Appends a batch to the store without the series that the token does not permit.
//!
//! Step before: `crates/ingest/` decodes the batch. Step after: `crates/store/src/commit.rs`.

use std::sync::Arc;

use tacho_model::{Batch, Kind, KnownSamples, Labels, Segment, Timestamp};
use tacho_store::{
    Appended, Learned, Origin, REFUSED_NAMED_MAX, Refused, RefusedSeries, Result, Spellings, Store,
};

use super::token::Token;
use super::usage::{Full, NAMES_MAX, Usage};
use super::{Access, Reason};

#[derive(Clone)]
pub struct Writer {
    store: Arc<Store>,
    access: Access,
}

#[derive(Debug)]
pub enum Written {
    /// The answer of the store. Its refused series include those that the token does not permit.
    Appended(Appended),
    /// The token has written too much, so nothing was written. The reason names the token and its limit.
    Wait { seconds: u64, reason: String },
}

impl Writer {
    pub const fn new(store: Arc<Store>, access: Access) -> Self {
        Self { store, access }
    }

    /// The last frame number of a session that is on disk, or 0.
    pub fn session_acked(&self, session: u128) -> u64 {
        self.store.session_acked(session)
    }

    /// Seconds until the token may write; 0 means now.
    pub fn wait_seconds(&self) -> u64 {
        let Some((token, usage)) = &self.access.of else { return 0 };
        usage.wait_seconds(&token.limits, self.access.clock.now())
    }

    /// The same as [`Store::append`], within the limits of the token. The records of a repeated frame do not count.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn append(&self, batch: impl Into<Arc<Batch>>, origin: Option<Origin>) -> Result<Written> {
        self.append_known(batch, KnownSamples::default(), origin).await
    }

    /// The spellings of the known series. `None` if the labels of each series must be checked for the token.
    pub fn spellings(&self) -> Option<Spellings> {
        let checks = self.access.of.as_ref().is_some_and(|(token, _)| checks_series(token));
        (!checks).then(|| self.store.spellings())
    }

    pub fn learn(&self, learned: &[Learned]) {
        self.store.learn(learned);
    }

    /// The same as [`Store::append_known`], within the limits of the token.
    ///
    /// # Errors
    /// The error of the store.
    ///
    /// # Panics
    /// When there are known series although [`Self::spellings`] is `None`. They would evade the checks of the token.
    pub async fn append_known(
        &self,
        batch: impl Into<Arc<Batch>>,
        known: KnownSamples,
        origin: Option<Origin>,
    ) -> Result<Written> {
        let batch = batch.into();
        let Some((token, usage)) = &self.access.of else {
            return self.store.append_known(batch, known, origin).await.map(Written::Appended);
        };
        let seconds = self.wait_seconds();
        if seconds > 0 && !(batch.is_empty() && known.is_empty()) {
            let rate = token.limits.samples_per_second.unwrap_or(0);
            let reason = format!("token {:?} may write {rate} records per second", token.name);
            self.access.refuse(Reason::Rate, 1, &reason);
            return Ok(Written::Wait { seconds, reason });
        }
        assert!(known.is_empty() || !checks_series(token), "the check of series needs labels");
        let now = self.access.clock.now();
        let sorter = Sorter { token, usage, access: &self.access, now };
        let (batch, sorted) = sorter.sort(batch);
        let records: usize = batch.counts().iter().sum::<usize>() + known.samples().len();
        let appended = self.store.append_known(batch, known, origin).await?;
        if !matches!(appended, Appended::Repeated) {
            usage.take(records, &token.limits, now);
        }
        Ok(Written::Appended(sorted.with(appended)))
    }
}

/// Whether a token limits the series, by a selector or by a number.
const fn checks_series(token: &Token) -> bool {
    token.confinement.is_some() || token.limits.series.is_some()
}

struct Sorter<'a> {
    token: &'a Token,
    usage: &'a Usage,
    /// Counts and notes the refusals.
    access: &'a Access,
    now: Timestamp,
}

#[derive(Default)]
struct Sorted {
    refused: Refused,
    /// For each kind, the positions of the series that were not removed, counted in the batch as the sender sent it. `None` if no
    /// series was removed.
    kept: Option<[Vec<usize>; 3]>,
}

impl Sorter<'_> {
    fn sort(&self, batch: Arc<Batch>) -> (Arc<Batch>, Sorted) {
        if !checks_series(self.token) {
            return (batch, Sorted::default());
        }
        let mut sorted = Sorted::default();
        let mut kept: [Vec<usize>; 3] = Default::default();
        // The number of refused series, and the message for the first one.
        let mut refusals = [Reason::Selector, Reason::Series].map(|reason| (reason, 0, String::new()));
        let mut look =
            |kind: Kind, position: usize, labels: &Arc<Labels>, records: usize| match self.refuses(labels) {
                None => kept[kind as usize - 1].push(position),
                Some((reason, message)) => {
                    if let Some((_, count, first)) = refusals.iter_mut().find(|(of, ..)| *of == reason) {
                        if *count == 0 {
                            first.clone_from(&message);
                        }
                        *count += 1;
                    }
                    sorted.add(kind, position, (labels, records), message);
                }
            };
        for (at, series) in batch.samples.iter().enumerate() {
            look(Kind::Sample, at, &series.labels, series.samples.len());
        }
        for (at, series) in batch.entries.iter().enumerate() {
            look(Kind::Entry, at, &series.labels, series.entries.len());
        }
        for (at, series) in batch.executions.iter().enumerate() {
            let calls = series.segments.iter().map(Segment::calls_completed).sum();
            look(Kind::Execution, at, &series.labels, calls);
        }
        if sorted.refused.series == 0 {
            return (batch, Sorted::default());
        }
        for (reason, count, first) in refusals.iter().filter(|(_, count, _)| *count > 0) {
            self.access.refuse(*reason, *count, first);
        }
        let batch = Arc::unwrap_or_clone(batch);
        let [samples, entries, executions] = &kept;
        let batch = Batch {
            samples: at(batch.samples, samples),
            entries: at(batch.entries, entries),
            executions: at(batch.executions, executions),
        };
        sorted.kept = Some(kept);
        (Arc::new(batch), sorted)
    }

    fn refuses(&self, labels: &Labels) -> Option<(Reason, String)> {
        let name = &self.token.name;
        if let Some(confinement) = self.token.confinement.as_ref().filter(|own| !own.admits(labels)) {
            let message = format!("series {labels}: token {name:?} is confined to {}", confinement.text);
            return Some((Reason::Selector, message));
        }
        let message = match self.usage.admit_series(labels, &self.token.limits, self.now) {
            Ok(()) => return None,
            Err(Full::Series(max)) => format!("token {name:?} may write {max} series a day"),
            Err(Full::Names) => format!("token {name:?} may write {NAMES_MAX} names of labels a day"),
        };
        Some((Reason::Series, format!("series {labels}: {message}")))
    }
}

/// The elements at these positions, which are in ascending order.
fn at<T>(all: Vec<T>, positions: &[usize]) -> Vec<T> {
    let mut wanted = positions.iter().peekable();
    let keep = |(position, element)| wanted.next_if(|next| **next == position).map(|_| element);
    all.into_iter().enumerate().filter_map(keep).collect()
}

impl Sorted {
    fn add(&mut self, kind: Kind, position: usize, (labels, records): (&Arc<Labels>, usize), reason: String) {
        self.refused.series += 1;
        self.refused.records[kind as usize - 1] += records;
        self.refused.of_series.push((kind, Arc::clone(labels), records));
        if self.refused.named.len() < REFUSED_NAMED_MAX {
            self.refused.named.push(RefusedSeries { kind, position, reason });
        }
    }

    /// Adds the removed series to the answer of the store.
    fn with(mut self, appended: Appended) -> Appended {
        let Some(kept) = self.kept else { return appended };
        if let Appended::Partly(more) = appended {
            self.refused.series += more.series;
            self.refused.records.iter_mut().zip(more.records).for_each(|(sum, more)| *sum += more);
            self.refused.of_series.extend(more.of_series);
            let room = REFUSED_NAMED_MAX.saturating_sub(self.refused.named.len());
            let moved = more.named.into_iter().take(room).map(|series| {
                let position = kept[series.kind as usize - 1].get(series.position);
                RefusedSeries { position: position.copied().unwrap_or(series.position), ..series }
            });
            self.refused.named.extend(moved);
        }
        Appended::Partly(self.refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_keep_their_order() {
        assert_eq!(at(vec!['a', 'b', 'c', 'd'], &[0, 2, 3]), ['a', 'c', 'd']);
        assert_eq!(at(vec!['a'], &[]), []);
    }

    #[test]
    fn positions_of_refused_series_are_those_in_the_batch_of_the_sender() {
        let kept = Some([vec![1, 3], vec![], vec![]]);
        let mut sorted = Sorted { kept, ..Sorted::default() };
        let labels = |name| Arc::new(Labels::new([("__name__", name)]).unwrap());
        sorted.add(Kind::Sample, 0, (&labels("a"), 5), "first".into());
        let named = vec![RefusedSeries { kind: Kind::Sample, position: 1, reason: "store".into() }];
        let of_series = vec![(Kind::Sample, labels("b"), 2)];
        let appended = Appended::Partly(Refused {
            series: 1,
            records: [2, 0, 0],
            of_series,
            named,
            ..Refused::default()
        });
        let appended = sorted.with(appended);
        let Appended::Partly(refused) = appended else { panic!("{appended:?}") };
        let positions: Vec<usize> = refused.named.iter().map(|series| series.position).collect();
        assert_eq!((refused.series, refused.records, positions), (2, [7, 0, 0], vec![0, 3]));
        let of_series = [(Kind::Sample, labels("a"), 5), (Kind::Sample, labels("b"), 2)];
        assert_eq!(refused.of_series, of_series);
    }
}
