//! Damages synced bytes, or cuts off the end of the growing segment. Records may be lost, but each loss must be reported, and no
//! record may be invented.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tacho_model::{Kind, TimeRange, Value};
use tacho_store::conformance::simulation::model::labels;
use tacho_store::disk::Disk;
use tacho_store::driver::{Driver, Health};
use tacho_store::{Error, Store};

use crate::agent::Agent;
use crate::check::names;
use crate::run::{Failure, Totals};
use crate::world::{CHUNKS, End, World};

/// Limit on damaged places of one seed.
const PLACES_MAX: u64 = 4;

/// Limit on the processes that are started until one leaves rows in the growing segment.
const WRITERS_MAX: usize = 20;

const MARK_BYTES: usize = 16;
/// The beginning of a mark of a segment: a batch without rows.
const MARK: &[u8] = b"\xf5bat\0\0\0\0\0\0\0\0";

/// Harms the files after the power was cut, opens the store, and reads everything. Half of the seeds damage some places. The
/// other seeds cut off the end of the growing segment. Returns whether damage is reported.
pub async fn run(world: &mut World, totals: &mut Totals) -> Result<bool, Failure> {
    if world.random.one_in(2) {
        return cut_end(world, totals).await;
    }
    world.forget_quarantines();
    let places = 1 + world.random.below(PLACES_MAX);
    let damages: Vec<String> = (0..places).filter_map(|_| world.disk.damage()).collect();
    totals.damages += damages.len() as u64;
    let is_reported = is_loss_reported(world, &damages.join("; ")).await?;
    totals.reported += u64::from(is_reported);
    Ok(is_reported)
}

/// Cuts off acknowledged rows that a process has written after its start. The manifest does not state these rows, so only the
/// file `END` of the driver shows that they are missing. Each of the next two starts must report the missing end.
async fn cut_end(world: &mut World, totals: &mut Totals) -> Result<bool, Failure> {
    for _ in 0..WRITERS_MAX {
        write_rows(world, totals).await.map_err(|end| match end {
            End::Broken(failure) => failure,
            End::Crash => Failure::Stuck("the machine stopped without a fault".to_owned()),
        })?;
        let Some((path, stated)) = growing(world) else { continue };
        let Some((text, bytes)) = world.disk.cut_end(&path, MARK, stated) else { continue };
        totals.damages += 1;
        // `END` does not state the last mark, so no start can report that it is missing.
        let missing = bytes.saturating_sub(MARK_BYTES) as u64;
        for start in ["first", "second"] {
            let driver = world.open_driver().await.map_err(|error| Failure::Refused(error.to_string()))?;
            let health = driver.health();
            let is_named = health.places_in.iter().any(|name| path.ends_with(name));
            if missing > 0 && (!is_named || health.damaged_bytes < missing) {
                let text = format!("the {start} start does not report {missing} missing bytes after {text}");
                return Err(Failure::Lost { records: 0, text });
            }
            world.check_quarantines()?;
            drop(driver);
            end_life(world).await;
        }
        let is_reported = is_loss_reported(world, &text).await?;
        totals.reported += u64::from(is_reported);
        return Ok(is_reported);
    }
    Err(Failure::Stuck("no process leaves rows in a growing segment".to_owned()))
}

/// A process starts, stores frames, moves their records into the driver, and ends.
async fn write_rows(world: &mut World, totals: &mut Totals) -> Result<(), End> {
    let open = world.open(totals).await?;
    world.reconnect(&open, totals)?;
    open.driver.set_quiet(true);
    world.send(&open, totals).await?;
    world.disconnect(&open, totals).await?;
    open.store
        .flush()
        .await
        .map_err(|e| Failure::Stuck(format!("flush fails on a disk without faults: {e}")))?;
    drop(open);
    world.network.end().await;
    end_life(world).await;
    Ok(())
}

/// The growing segment, and its length in the manifest.
fn growing(world: &World) -> Option<(PathBuf, usize)> {
    let manifest = world.disk.read(&Path::new(CHUNKS).join("MANIFEST")).ok()?;
    let growing = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        ["segment", number, "growing", bytes, _] => Some((number.parse().ok()?, bytes.parse().ok()?)),
        _ => None,
    };
    let (number, stated): (u32, usize) = String::from_utf8(manifest).ok()?.lines().find_map(growing)?;
    Some((Path::new(CHUNKS).join(format!("{number:08}.segment")), stated))
}

/// Waits until the tasks of a dropped store have ended. Then ends the process.
pub async fn end_process(world: &World) {
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.disk.end_process();
}

/// Waits as [`end_process`] does. Then the process ends, or the power fails.
pub async fn end_life(world: &mut World) {
    tokio::time::sleep(Duration::from_millis(100)).await;
    if world.random.one_in(3) { world.disk.end_process() } else { world.disk.cut_power() }
}

/// Opens the store and reads everything. Returns whether damage is reported. A loss that is not reported is a failure.
async fn is_loss_reported(world: &mut World, damages: &str) -> Result<bool, Failure> {
    let store = match world.try_open().await {
        Ok((store, driver)) => {
            driver.set_quiet(true);
            store
        }
        Err(error) => {
            world.say(|| format!("not opened: {error}"));
            return Ok(true);
        }
    };
    let (silent, reported) = read_all(world, &store).await?;
    let reported = reported || is_reported(&store);
    match silent.filter(|_| !reported) {
        Some(text) => {
            let text = format!("{text}, and nothing is reported after {damages}");
            Err(Failure::Lost { records: 0, text })
        }
        None => Ok(reported),
    }
}

/// Reads everything. Returns the first difference from the model, and whether a read reports damage.
pub async fn read_all(world: &World, store: &Store) -> Result<(Option<String>, bool), Failure> {
    let (mut silent, mut reported) = (None, false);
    for agent in &world.agents {
        for name in names() {
            let seen = samples(store, agent, name, world.now).await?;
            note(seen, name, agent, &mut silent, &mut reported);
        }
        note(entries(store, agent).await?, "entries", agent, &mut silent, &mut reported);
        note(executions(store, agent).await?, "executions", agent, &mut silent, &mut reported);
    }
    Ok((silent, reported))
}

/// Result of reading one series.
struct Seen {
    /// How the records differ from the model; `None` if they are equal.
    differs: Option<String>,
    /// Whether the read itself reports damage.
    reported: bool,
}

fn note(seen: Seen, name: &str, agent: &Agent, silent: &mut Option<String>, reported: &mut bool) {
    *reported |= seen.reported;
    if let Some(differs) = seen.differs {
        silent.get_or_insert(format!("{name} of session {}: {differs}", agent.session));
    }
}

/// Whether the store reports damage at its start.
pub fn is_reported(store: &Store) -> bool {
    let stats = store.stats();
    let counted = [stats.recovered_damaged, stats.journals_quarantined, stats.recovered_torn_bytes];
    store.driver_health() != Health::default()
        || counted != [0; 3]
        || Kind::ALL.iter().any(|kind| !store.lacks(*kind).is_empty())
}

fn unread(_: Error) -> Seen {
    Seen { differs: None, reported: true }
}

async fn samples(store: &Store, agent: &Agent, name: &'static str, now: i64) -> Result<Seen, Failure> {
    let room = AtomicUsize::new(usize::MAX);
    let id = labels(name, agent.session).id();
    let answer = match store.read_samples(&[id], TimeRange::ALL, None, &room).await {
        Ok(answer) => answer,
        Err(error) => return Ok(unread(error)),
    };
    let reported = !answer.damages.is_empty();
    let found: BTreeMap<i64, Value> = answer.samples().into_iter().map(|s| (s.at, s.value)).collect();
    if let Some((at, value)) = found.iter().find(|(at, value)| !agent.has_sent(name, **at, **value)) {
        let text = format!("{name} of session {}: {value:?} at {at} was never sent", agent.session);
        return Err(Failure::Invented { text });
    }
    let expect = agent.model.expect(name, now, &found);
    let differs = (found != expect)
        .then(|| format!("{} samples, which do not equal the {} expected ones", found.len(), expect.len()));
    Ok(Seen { differs, reported })
}

async fn entries(store: &Store, agent: &Agent) -> Result<Seen, Failure> {
    let id = labels("entries", agent.session).id();
    let read = match store.read_entries(id, TimeRange::ALL).await {
        Ok(read) => read,
        Err(error) => return Ok(unread(error)),
    };
    if let Some(strange) = read.records.iter().find(|entry| !agent.sent.entries.contains(entry)) {
        let text = format!("session {}: entry {strange:?} was never sent", agent.session);
        return Err(Failure::Invented { text });
    }
    let (found, expect) = (read.records.len(), agent.model.entries.len());
    let differs = (found != expect).then(|| format!("{found} entries instead of {expect}"));
    Ok(Seen { differs, reported: !read.damages.is_empty() })
}

async fn executions(store: &Store, agent: &Agent) -> Result<Seen, Failure> {
    let (id, room) = (agent.executions().id(), AtomicUsize::new(usize::MAX));
    let read = match store.executions_within(id, TimeRange::ALL, &room, |_| true).await {
        Ok(read) => read,
        Err(error) => return Ok(unread(error)),
    };
    let segments = read.records.iter().flat_map(|block| (0..block.len()).map(|at| block.segment(at)));
    let mut found: Vec<(u128, i64)> = segments.map(|segment| (segment.trace.0, segment.start)).collect();
    found.sort_unstable();
    if let Some((trace, _)) = found.iter().find(|(trace, start)| agent.sent.traces.get(trace) != Some(start))
    {
        let text = format!("session {}: trace {trace} was never sent", agent.session);
        return Err(Failure::Invented { text });
    }
    let expect: Vec<(u128, i64)> = agent.model.traces.clone().into_iter().collect();
    let differs = (found != expect).then(|| {
        format!("{} executions, which do not equal the {} expected ones", found.len(), expect.len())
    });
    Ok(Seen { differs, reported: !read.damages.is_empty() })
}
