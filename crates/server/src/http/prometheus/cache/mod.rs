//! Keeps the results of range queries. A repeated question is not computed again. If the range of a question has moved, only
//! the new steps are computed.
//!
//! ```text
//!   key       query, step, phase of the steps, lookback, selector and limit of the token
//!   extent    the results of consecutive steps, the number of the last change of the store before their samples were read
//! ```
//! A kept result is used only if no sample on which it depends has changed since its computation (`extent.rs`). So an answer has
//! the same bytes with and without the cache. `tacho_query::promql::Reach` states on which samples a result depends. Results for
//! which this is unknown are not kept. `docs/adr/0019-result-cache.md` has the reasons and the limits.
//!
//! Step before: `../mod.rs` has read the parameters of the query. Step after: `../question.rs` computes the missing steps.

mod extent;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tacho_model::{TimeRange, Timestamp};
use tacho_query::promql::{self, Output, Reach, Series};

use crate::access::{Access, View};
use crate::metrics::Metrics;
use crate::metrics::registry::{Counter, Gauge};
use extent::{Extent, Steps, Usable};

/// An extent takes at most the memory of the cache divided by this number, so that one query does not evict all others.
const EXTENT_SHARE: usize = 4;
/// Memory of an extent apart from its series and the texts of its key, bytes.
const EXTENT_BYTES: usize = 512;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    text: String,
    step: i64,
    /// The time of each step modulo the length of a step.
    phase: i64,
    lookback: i64,
    /// The selector of the token. Results of one selector are never used for another selector.
    selector: Option<String>,
    /// The limit of the token on samples. A token with a limit does not get results of other limits.
    samples_max: Option<usize>,
}

impl Key {
    /// Memory of an extent with this key, apart from its series, bytes.
    fn bytes(&self) -> usize {
        EXTENT_BYTES + self.text.len() + self.selector.as_ref().map_or(0, String::len)
    }
}

pub struct ResultCache {
    bytes_max: usize,
    kept: Mutex<Kept>,
    figures: Figures,
}

struct Figures {
    hits: Counter,
    partial: Counter,
    misses: Counter,
    bypasses: Counter,
    not_kept: [(NotKept, Counter); 3],
    evictions: Counter,
    bytes: Gauge,
}

#[derive(Default)]
struct Kept {
    extents: HashMap<Arc<Key>, Held>,
    /// Keys by the number of their last use.
    by_use: BTreeMap<u64, Arc<Key>>,
    last_use: u64,
    bytes: usize,
}

struct Held {
    extent: Arc<Extent>,
    last_use: u64,
    bytes: usize,
}

pub enum Looked {
    Hit(Hit),
    /// These steps must be computed, and then passed to [`Fill::complete`].
    Missing(TimeRange, Box<Fill>),
    Bypass,
}

pub struct Hit {
    extent: Arc<Extent>,
    steps: Steps,
}

impl Hit {
    pub fn work(&self) -> usize {
        self.extent.series.len().saturating_mul(self.steps.count() + 1)
    }

    pub fn output(&self) -> Output {
        Output::Matrix(self.extent.cut(&self.steps))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotKept {
    /// It is not known on which samples the results depend.
    Form,
    /// The answer has notes about unreadable or downsampled samples, or may get such notes later without a change of its
    /// results.
    Notes,
    Size,
}

impl NotKept {
    const ALL: [Self; 3] = [Self::Form, Self::Notes, Self::Size];

    const fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Notes => "notes",
            Self::Size => "size",
        }
    }
}

pub struct Fill {
    cache: Arc<ResultCache>,
    view: View,
    key: Key,
    asked: Steps,
    missing: Steps,
    /// The other steps, and the extent with their results. The query may wait long for its permit, so the results are copied
    /// only after the missing results are computed.
    known: Option<(Arc<Extent>, Steps)>,
    /// The number of the last change of the store before the read.
    change: u64,
    /// The edges of retention before the read: each rule masks the records before its edge.
    expired: Vec<Timestamp>,
}

impl ResultCache {
    pub fn new(bytes_max: usize, metrics: &Metrics) -> Arc<Self> {
        let of = &metrics.cache;
        let requests = |result| of.requests.with([result]);
        let figures = Figures {
            hits: requests("hit"),
            partial: requests("partial"),
            misses: requests("miss"),
            bypasses: requests("bypass"),
            not_kept: NotKept::ALL.map(|why| (why, of.not_kept.with([why.name()]))),
            evictions: of.evictions.with([]),
            bytes: of.bytes.with([]),
        };
        Arc::new(Self { bytes_max, kept: Mutex::default(), figures })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a range query that does not use the cache.
    pub fn bypass(&self) -> Looked {
        self.figures.bypasses.add(1);
        Looked::Bypass
    }

    pub fn look(self: &Arc<Self>, view: View, access: &Access, text: &str, at: &promql::Params) -> Looked {
        let Some((asked, key)) = self.key_of(access, text, at) else { return self.bypass() };
        // The state of the store is taken before the kept results are checked, and before samples are read.
        let (change, expired) = (view.changes().last(), view.expired_before());
        let extent = self.kept().get(&key);
        let usable = extent.as_deref().and_then(|extent| match key.samples_max {
            None => extent.usable(&asked, view.changes(), &expired),
            Some(_) => extent.usable_whole(&asked, view.changes(), &expired),
        });
        let (result, missing, known) = match (extent, usable) {
            (Some(extent), Some(Usable { steps, missing: None })) => {
                self.figures.hits.add(1);
                return Looked::Hit(Hit { extent, steps });
            }
            (Some(extent), Some(Usable { steps, missing: Some(missing) })) => {
                (&self.figures.partial, missing, Some((extent, steps)))
            }
            _ => (&self.figures.misses, asked, None),
        };
        result.add(1);
        let range = TimeRange::new(missing.first, missing.last);
        let cache = self.clone();
        Looked::Missing(range, Box::new(Fill { cache, view, key, asked, missing, known, change, expired }))
    }

    /// `None` if the cache is switched off, or if the evaluation refuses the query because of its text or its steps.
    fn key_of(&self, access: &Access, text: &str, at: &promql::Params) -> Option<(Steps, Key)> {
        let step = at.step.filter(|step| *step > 0 && self.bytes_max > 0)?;
        if at.end < at.start || text.len() > at.limits.query_bytes_max {
            return None;
        }
        let asked = Steps::of(at.start, at.end, step)?;
        if asked.count() > at.limits.steps_max {
            return None;
        }
        let selector = access.confinement().map(|confinement| confinement.text.clone());
        let key = Key {
            text: without_blanks(text),
            step,
            phase: at.start.rem_euclid(step),
            lookback: at.lookback,
            selector,
            samples_max: access.query_samples_max().map(|_| at.limits.samples_max),
        };
        Some((asked, key))
    }

    /// Replaces the results that were kept with this key. Results that are too large are not copied.
    fn keep(&self, key: &Key, series: &[Series], extent: impl FnOnce(Vec<Series>) -> Extent) {
        let bytes = key.bytes() + extent::bytes(series);
        let extent = (bytes <= self.bytes_max / EXTENT_SHARE).then(|| extent(series.to_vec()));
        if extent.is_none() {
            self.count_not_kept(NotKept::Size);
        }
        // Freeing many series takes milliseconds, so they are dropped after the lock is released.
        let mut removed = Vec::new();
        let mut kept = self.kept();
        removed.extend(kept.remove(key));
        if let Some(extent) = extent {
            kept.add(key.clone(), extent, bytes);
        }
        while kept.bytes > self.bytes_max
            && let Some((_, oldest)) = kept.by_use.pop_first()
        {
            removed.extend(kept.remove(&oldest));
            self.figures.evictions.add(1);
        }
        self.figures.bytes.set(i64::try_from(kept.bytes).unwrap_or(i64::MAX));
        drop(kept);
        drop(removed);
    }

    fn count_not_kept(&self, why: NotKept) {
        let counter = self.figures.not_kept.iter().find(|(other, _)| *other == why);
        counter.into_iter().for_each(|(_, counter)| counter.add(1));
    }
}

impl Kept {
    fn get(&mut self, key: &Key) -> Option<Arc<Extent>> {
        let held = self.extents.get_mut(key)?;
        let key = self.by_use.remove(&held.last_use)?;
        self.last_use += 1;
        held.last_use = self.last_use;
        self.by_use.insert(self.last_use, key);
        Some(held.extent.clone())
    }

    fn add(&mut self, key: Key, extent: Extent, bytes: usize) {
        let key = Arc::new(key);
        self.last_use += 1;
        self.by_use.insert(self.last_use, key.clone());
        self.bytes += bytes;
        self.extents.insert(key, Held { extent: Arc::new(extent), last_use: self.last_use, bytes });
    }

    /// The caller drops the results after the lock is released.
    fn remove(&mut self, key: &Key) -> Option<Held> {
        let held = self.extents.remove(key)?;
        self.by_use.remove(&held.last_use);
        self.bytes -= held.bytes;
        Some(held)
    }
}

impl Fill {
    pub fn is_partial(&self) -> bool {
        self.missing != self.asked
    }

    /// Returns the known and the computed results together. Also keeps them, unless there is a reason not to ([`NotKept`]).
    pub fn complete(&self, computed: Vec<Series>, reach: Result<Reach, NotKept>) -> Vec<Series> {
        let is_later = self.missing.first > self.asked.first;
        let all = match &self.known {
            None => computed,
            Some((extent, steps)) if is_later => extent::joined(extent.cut(steps), computed),
            Some((extent, steps)) => extent::joined(computed, extent.cut(steps)),
        };
        // A merge that downsamples samples between the windows changes no result, but the answer then has a note about them.
        let may_change = |reach: &Reach| self.view.changes().downsamples() && reach.has_gaps(self.asked.step);
        match reach {
            Ok(reach) if may_change(&reach) => self.cache.count_not_kept(NotKept::Notes),
            Ok(reach) => {
                let after = self.view.expired_before();
                let expired = self.expired.iter().zip(&after).map(|(a, b)| (*a.min(b), *a.max(b))).collect();
                let (steps, change) = (self.asked, self.change);
                self.cache.keep(&self.key, &all, |series| Extent { steps, series, change, expired, reach });
            }
            Err(why) => self.cache.count_not_kept(why),
        }
        all
    }
}

/// The text without blanks around it, and with one space for each sequence of blanks outside of literals. A text with `#`, which
/// may begin a comment, is only trimmed.
fn without_blanks(text: &str) -> String {
    let is_blank = |c: char| u8::try_from(c).is_ok_and(promql::is_blank);
    let text = text.trim_matches(is_blank);
    if text.contains('#') {
        return text.to_owned();
    }
    let (mut out, mut quote, mut is_escaped) = (String::with_capacity(text.len()), None, false);
    for c in text.chars() {
        match quote {
            Some(open) => {
                if c == open && !is_escaped {
                    quote = None;
                }
                is_escaped = c == '\\' && !is_escaped && open != '`';
            }
            None if is_blank(c) => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
                continue;
            }
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None => {}
        }
        out.push(c);
    }
    out
}
