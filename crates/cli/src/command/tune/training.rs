//! The training data: a random sample of the series, kept in memory. The sample depends on a seed. It has all or none of the
//! series whose labels differ only in the name.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use tacho_api::export::ALLOW_DAMAGED;
use tacho_api::printable::printable;
use tacho_api::units;
use tacho_chunk::ValueColumn;
use tacho_chunk::tune::{TrainingGroup, group};
use tacho_ingest::json_lines::JsonLines;
use tacho_ingest::rows::Rows;
use tacho_model::{
    Batch, Kind, Labels, Matcher, NAME, Sample, SampleSeries, SeriesId, TimeRange, Timestamp, Value,
};
use tacho_server::access::View;
use tacho_server::clock::SystemClock;
use tacho_server::data_directory;
use tacho_server::read::damage::sentences;
use tacho_server::read::reader::{self, Reader, Records};
use tacho_store::ErrorKind;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Tune;
use crate::client;
use crate::command::export::{Head, head, not_whole};
use crate::command::import::{Feed, Findings};
use crate::command::{ask, mark};
use crate::failure::Failure;
use crate::terminal::progress;

pub struct Training {
    pub groups: Vec<TrainingGroup>,
    /// For each group, the labels of its columns.
    pub labels: Vec<Vec<Arc<Labels>>>,
    pub range: TimeRange,
    /// Number of series before sampling.
    pub series_seen: usize,
}

impl Training {
    pub fn values(&self) -> usize {
        self.groups.iter().map(TrainingGroup::values).sum()
    }

    pub fn series(&self) -> usize {
        self.labels.iter().map(Vec::len).sum()
    }
}

pub fn gather(tune: &Tune) -> Result<Training, Failure> {
    let mut gathered = Gathered::new(tune.values.max(1), tune.seed);
    let bar = progress::bar(0, "reading");
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
    let selectors = mark::selectors(std::slice::from_ref(&tune.selector))?;
    match (&*tune.files, &tune.data) {
        ([], None) => runtime.block_on(from_server(tune, &mut gathered))?,
        ([], Some(data)) => runtime.block_on(from_directory(tune, data, &selectors, &mut gathered))?,
        (files, _) => {
            let feed = Feed::of(files.to_vec(), tune.reading.clone());
            feed.formats.check(files)?;
            let mut findings = Findings::default();
            feed.each(&mut findings, |step| {
                let mut batch = step.batch;
                let wanted =
                    |labels: &Labels| selectors.iter().flatten().all(|matcher| matcher.matches(labels));
                batch.samples.retain(|series| wanted(&series.labels));
                gathered.add(batch);
                bar.set_message(format!("{} values", units::count(gathered.values as u64)));
                true
            })?;
            findings.print(None);
        }
    }
    bar.finish_and_clear();
    gathered.finish(range(tune))
}

fn range(tune: &Tune) -> TimeRange {
    let all = TimeRange::ALL;
    TimeRange::new(tune.start.unwrap_or(all.start), tune.end.unwrap_or(all.end))
}

async fn from_server(tune: &Tune, gathered: &mut Gathered) -> Result<(), Failure> {
    let (start, end) = (tune.start.map(ask::seconds), tune.end.map(ask::seconds));
    let params = [
        ("match[]", Some(tune.selector.as_str())),
        ("kind", Some(Kind::Sample.name())),
        ("start", start.as_deref()),
        ("end", end.as_deref()),
        ("totals", Some("1")),
        (ALLOW_DAMAGED, tune.allow_damaged.then_some("1")),
    ];
    let path = client::path("/api/v1/export", params);
    let mut stream = ask::client(tune.server.as_deref(), &tune.token)?.stream(&path).await?;
    let mut rows = JsonLines::new(jiff::tz::TimeZone::UTC);
    let (mut lines, mut is_whole) = (Vec::new(), false);
    while let Some(part) = stream.next().await? {
        lines.extend_from_slice(&part);
        let rest = lines.split_off(rows.whole(&lines));
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            match head(line) {
                Some(Head::Error(why)) => return Err(not_whole(why)),
                Some(Head::Totals(_, incomplete)) => {
                    incomplete.iter().for_each(|missing| eprintln!("warning: {}", printable(missing)));
                    is_whole = true;
                }
                Some(Head::Labels(_)) | None => {}
            }
        }
        gathered.add(rows.decode(&lines, 0).batch);
        lines = rest;
    }
    if is_whole {
        return Ok(());
    }
    Err(Failure::new("the server's response ended early").hint("the log of the server says why"))
}

async fn from_directory(
    tune: &Tune,
    data: &Path,
    selectors: &[Vec<Matcher>],
    gathered: &mut Gathered,
) -> Result<(), Failure> {
    let cannot = |e: tacho_store::Error| ask::unreadable(data, &e);
    ask::check_data_directory(data)?;
    let (store, _lock) = data_directory::open_read_only(data, Arc::new(SystemClock)).await.map_err(cannot)?;
    let store = View::whole(store);
    let found = reader::find(&store, selectors, Some(Kind::Sample));
    let reader = Reader::new(store, found, Some(Kind::Sample), range(tune));
    let mut reader = reader.over_damage(tune.allow_damaged);
    let broken = |e: tacho_store::Error| match e.kind() {
        ErrorKind::Corrupt => not_whole(e),
        _ => cannot(e),
    };
    while let Some(slice) = reader.next().await.map_err(broken)? {
        if let Records::Samples(samples) = slice.records {
            let series = SampleSeries { labels: slice.labels, samples };
            gathered.add(Batch { samples: vec![series], ..Batch::default() });
        }
    }
    for missing in sentences(&reader.damages()) {
        eprintln!("warning: {}", printable(&missing));
    }
    Ok(())
}

/// Series with equal labels except for the name.
type Together = HashMap<SeriesId, (Arc<Labels>, Vec<Sample>)>;

/// The series kept so far. Series of a [`Together`] are kept or removed together, because they often have the same times and then
/// share a group.
struct Gathered {
    values_max: usize,
    seed: u64,
    values: usize,
    seen: HashMap<SeriesId, u64>,
    /// The kept series by rank, which is a hash of the seed and the labels without the name. Series with the highest rank are
    /// removed first.
    kept: BTreeMap<u64, Together>,
    /// Series with this rank or a higher one are not kept.
    limit: u64,
}

impl Gathered {
    fn new(values_max: usize, seed: u64) -> Self {
        Self { values_max, seed, values: 0, seen: HashMap::new(), kept: BTreeMap::new(), limit: u64::MAX }
    }

    fn rank(&self, labels: &Labels) -> u64 {
        let mut key = Vec::new();
        for (name, value) in labels.iter().filter(|(name, _)| *name != NAME) {
            key.extend_from_slice(name.as_bytes());
            key.push(0xff);
            key.extend_from_slice(value.as_bytes());
            key.push(0xff);
        }
        xxh3_64_with_seed(&key, self.seed)
    }

    fn add(&mut self, batch: Batch) {
        for series in batch.samples {
            let id = series.labels.id();
            let rank = match self.seen.get(&id) {
                Some(rank) => *rank,
                None => {
                    let rank = self.rank(&series.labels);
                    self.seen.insert(id, rank);
                    rank
                }
            };
            if rank >= self.limit {
                continue;
            }
            self.values += series.samples.len();
            let kept = self.kept.entry(rank).or_default();
            let (_, samples) = kept.entry(id).or_insert_with(|| (series.labels, Vec::new()));
            samples.extend(series.samples);
        }
        while self.values > self.values_max && self.kept.len() > 1 {
            let Some((rank, gone)) = self.kept.pop_last() else { break };
            self.values -= gone.values().map(|(_, samples)| samples.len()).sum::<usize>();
            self.limit = rank;
        }
    }

    fn finish(self, range: TimeRange) -> Result<Training, Failure> {
        let mut series: Vec<(Arc<Labels>, Vec<Sample>)> =
            self.kept.into_values().flat_map(HashMap::into_values).collect();
        series.sort_by(|a, b| a.0.cmp(&b.0));
        let (labels, columns): (Vec<_>, Vec<_>) =
            series.into_iter().map(|(labels, samples)| (labels, columns(samples, range))).unzip();
        let grouped = group(columns);
        let labels =
            grouped.iter().map(|(_, places)| places.iter().map(|at| labels[*at].clone()).collect()).collect();
        let groups: Vec<TrainingGroup> = grouped.into_iter().map(|(group, _)| group).collect();
        let ends = groups.iter().filter_map(|group| Some((*group.at.first()?, *group.at.last()?)));
        let range = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let Some((start, end)) = range else {
            return Err(Failure::new("there are no samples to try settings on")
                .hint("widen --match, --start and --end, or name files"));
        };
        let range = TimeRange::new(start, end);
        Ok(Training { groups, labels, range, series_seen: self.seen.len() })
    }
}

/// The times and values of the samples in the range, in order of time. Of samples with equal times, only the last one is kept.
/// Samples of another value type than the earliest sample are omitted.
fn columns(mut samples: Vec<Sample>, range: TimeRange) -> (Vec<Timestamp>, ValueColumn) {
    samples.retain(|sample| range.contains(sample.at));
    samples.sort_by_key(|sample| sample.at);
    samples.reverse();
    samples.dedup_by_key(|sample| sample.at);
    samples.reverse();
    let of = samples.first().map(|sample| sample.value.value_type());
    samples.retain(|sample| Some(sample.value.value_type()) == of);
    let at = samples.iter().map(|sample| sample.at).collect();
    let column = match samples.first().map(|sample| sample.value) {
        Some(Value::I64(_)) => ValueColumn::I64(samples.iter().filter_map(|s| as_i64(s.value)).collect()),
        Some(Value::U64(_)) => ValueColumn::U64(samples.iter().filter_map(|s| as_u64(s.value)).collect()),
        Some(Value::F64(_)) | None => ValueColumn::F64(samples.iter().map(|s| s.value.as_f64()).collect()),
    };
    (at, column)
}

fn as_i64(value: Value) -> Option<i64> {
    if let Value::I64(value) = value { Some(value) } else { None }
}

fn as_u64(value: Value) -> Option<u64> {
    if let Value::U64(value) = value { Some(value) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(host: &str, name: &str, n: i64) -> Batch {
        let labels = Arc::new(Labels::new([(NAME, name), ("host", host)]).unwrap());
        let samples = (0..n).map(|at| Sample { at, value: Value::F64(1.0) }).collect();
        Batch { samples: vec![SampleSeries { labels, samples }], ..Batch::default() }
    }

    #[test]
    fn the_same_seed_keeps_the_same_hosts_each_with_all_series() {
        let sample = |seed| {
            let mut gathered = Gathered::new(100, seed);
            for host in 0..20 {
                gathered.add(batch(&host.to_string(), "a", 10));
                gathered.add(batch(&host.to_string(), "b", 10));
            }
            let training = gathered.finish(TimeRange::ALL).unwrap();
            assert!(training.values() <= 100 && training.values() >= 60, "{}", training.values());
            assert_eq!(training.series_seen, 40);
            let mut hosts: Vec<String> =
                training.labels.iter().flatten().map(|l| l.get("host").unwrap().to_owned()).collect();
            hosts.sort();
            assert!(hosts.chunks(2).all(|pair| pair[0] == pair[1]), "{hosts:?}");
            hosts
        };
        assert_eq!(sample(1), sample(1));
        assert!((2..10).any(|seed| sample(seed) != sample(1)));
    }

    #[test]
    fn of_samples_with_the_same_time_the_last_is_kept() {
        let sample = |at, value| Sample { at, value: Value::I64(value) };
        let (at, values) = columns(vec![sample(2, 1), sample(1, 2), sample(2, 3)], TimeRange::ALL);
        assert_eq!(at, [1, 2]);
        assert!(matches!(values, ValueColumn::I64(values) if values == [2, 3]));
    }
}
