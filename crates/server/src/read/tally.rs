//! Counts records by series, and computes their checksums. Short series of samples are read together.

use std::collections::VecDeque;

use tacho_api::tally::Tally;
use tacho_model::{Kind, SeriesId, TimeRange};
use tacho_store::{Piece, Result};

use super::reader::{Reader, SLICE_RECORDS, Selected, Together};
use crate::access::View;

/// Number and checksum of the records of each series in its range, in the order of `wanted`. A series that does not exist, or
/// that `store` does not admit, counts as a series without records.
///
/// # Errors
/// `Corrupt` when records cannot be read.
pub async fn tallies(store: &View, wanted: Vec<(Selected, TimeRange)>) -> Result<Vec<Tally>> {
    if wanted.iter().any(|(series, _)| series.kind == Kind::Sample) {
        store.lacks(Kind::Sample).check()?;
    }
    let mut tallies = Vec::with_capacity(wanted.len());
    let (mut rest, mut together) = (VecDeque::from(wanted), Together::default());
    loop {
        let is_sample =
            |(series, _): &&(Selected, TimeRange)| series.kind == Kind::Sample && is_readable(store, series);
        let short = rest.iter().take(together.series()).take_while(is_sample).count();
        if short > 1 {
            let part = rest.iter().take(short).map(|(series, range)| (series.id, *range));
            match short_tallies(store, part.collect()).await? {
                Some(of_part) => {
                    let records = of_part.iter().fold(0, |sum: u64, tally| sum.saturating_add(tally.count));
                    together.read(short, usize::try_from(records).unwrap_or(usize::MAX));
                    tallies.extend(of_part);
                    rest.drain(..short);
                    continue;
                }
                None => together.failed(),
            }
        }
        let Some((series, range)) = rest.pop_front() else { return Ok(tallies) };
        let tally = tally(store, series, range).await?;
        together.read(1, usize::try_from(tally.count).unwrap_or(usize::MAX));
        tallies.push(tally);
    }
}

fn is_readable(store: &View, series: &Selected) -> bool {
    store.admits(&series.labels) && store.admits_id(series.id)
}

/// `None` if these series are not short.
async fn short_tallies(store: &View, part: Vec<(SeriesId, TimeRange)>) -> Result<Option<Vec<Tally>>> {
    let Some(answer) = store.read_short_samples(&part, SLICE_RECORDS).await? else { return Ok(None) };
    answer.damages.check()?;
    let of_one = |((id, range), pieces): ((SeriesId, TimeRange), Vec<Piece>)| {
        let mut tally = Tally::default();
        let samples = pieces.iter().flat_map(Piece::samples).filter(|sample| range.contains(sample.at));
        samples.for_each(|sample| tally.sample(id, &sample));
        tally
    };
    Ok(Some(part.into_iter().zip(answer.series).map(of_one).collect()))
}

async fn tally(store: &View, series: Selected, range: TimeRange) -> Result<Tally> {
    let kind = series.kind;
    if !is_readable(store, &series) {
        return Ok(Tally::default());
    }
    let mut reader = Reader::new(store.clone(), vec![series], Some(kind), range);
    while reader.next().await?.is_some() {}
    Ok(if kind == Kind::Entry { reader.totals.entries } else { reader.totals.samples })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tacho_model::{
        Batch, Body, Entry, EntrySeries, Labels, ManualClock, NAME, Sample, SampleSeries, Value,
    };
    use tacho_store::{MemoryDriver, Options, Store};

    use super::*;

    fn selected(kind: Kind, nth: usize) -> Selected {
        let labels = Labels::new([(NAME, "a"), ("nth", &format!("{nth:04}"))]).unwrap();
        Selected { kind, id: labels.id(), labels: Arc::new(labels) }
    }

    #[tokio::test]
    async fn tallies_do_not_depend_on_the_series_that_are_read_together() {
        let place = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(0));
        let open = Store::open(Arc::new(MemoryDriver::new()), place.path(), Options::default(), clock);
        let store = open.await.unwrap();
        let sample = |at| Sample { at, value: Value::I64(at) };
        // One series is longer than a slice.
        let count = |nth| if nth == 40 { SLICE_RECORDS as i64 + 1 } else { 1 + nth as i64 % 5 };
        let series = |nth| SampleSeries {
            labels: selected(Kind::Sample, nth).labels,
            samples: (0..count(nth)).map(sample).collect(),
        };
        let entry = Entry { at: 3, body: Body::Text("text".into()) };
        let entries = vec![EntrySeries { labels: selected(Kind::Entry, 70).labels, entries: vec![entry] }];
        let batch = Batch { samples: (0..100).map(series).collect(), entries, ..Batch::default() };
        store.append(batch, None).await.unwrap();
        store.flush().await.unwrap();
        let view = View::whole(store);
        let range = |nth: usize| TimeRange::new(nth as i64 % 3, 3 + nth as i64 % 2);
        // The series from 100 on do not exist.
        let mut wanted: Vec<(Selected, TimeRange)> =
            (0..110).map(|nth| (selected(Kind::Sample, nth), range(nth))).collect();
        wanted.insert(70, (selected(Kind::Entry, 70), TimeRange::ALL));
        wanted.push((selected(Kind::Sample, 40), TimeRange::ALL));
        let mut expect = Vec::new();
        for (series, range) in &wanted {
            expect.push(tally(&view, series.clone(), *range).await.unwrap());
        }
        assert_eq!([0, 1, 70].map(|at| expect[at].count), [1, 1, 1]);
        assert_eq!(expect.last().unwrap().count, SLICE_RECORDS as u64 + 1);
        assert_eq!(tallies(&view, wanted).await.unwrap(), expect);
    }
}
