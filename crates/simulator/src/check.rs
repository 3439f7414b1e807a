//! Compares the records in the store with the model.

use std::collections::BTreeMap;

use tacho_model::{Entry, Sample, TimeRange, Value};
use tacho_store::Store;
use tacho_store::conformance::simulation::model::{BRIEF, COARSE, OWN, SHARED, labels};

use crate::agent::Agent;
use crate::run::{Failure, Totals};

/// The names of the series of samples that each agent has.
pub fn names() -> impl Iterator<Item = &'static str> {
    SHARED.into_iter().chain([OWN, BRIEF, COARSE])
}

pub async fn check(store: &Store, agents: &[Agent], now: i64, totals: &mut Totals) -> Result<(), Failure> {
    totals.checks += 1;
    let failed = |error: tacho_store::Error| Failure::Reported(error.to_string());
    for agent in agents {
        let session = agent.session;
        let acked = store.session_acked(session);
        if acked != agent.acked {
            let text =
                format!("session {session}: frame {} is acknowledged, the store has {acked}", agent.acked);
            return Err(Failure::Lost { records: 0, text });
        }
        for name in names() {
            let found = store.samples(labels(name, session).id(), TimeRange::ALL).await.map_err(failed)?;
            compare_samples(&format!("{name} of session {session}"), &found, |found| {
                agent.model.expect(name, now, found)
            })?;
        }
        let found = store.entries(labels("entries", session).id(), TimeRange::ALL).await.map_err(failed)?;
        compare_entries(session, found, &agent.model.entries)?;
        let blocks = store.executions(agent.executions().id(), TimeRange::ALL).await.map_err(failed)?;
        let segments = blocks.iter().flat_map(|block| (0..block.len()).map(|at| block.segment(at)));
        let found = segments.map(|segment| (segment.trace.0, segment.start)).collect();
        let expect = agent.model.traces.clone().into_iter().collect();
        compare_lists(&format!("executions of session {session}"), found, expect)?;
    }
    Ok(())
}

fn compare_samples(
    of: &str,
    samples: &[Sample],
    expect: impl FnOnce(&BTreeMap<i64, Value>) -> BTreeMap<i64, Value>,
) -> Result<(), Failure> {
    let found: BTreeMap<i64, Value> = samples.iter().map(|sample| (sample.at, sample.value)).collect();
    if found.len() != samples.len() {
        let records = (samples.len() - found.len()) as u64;
        return Err(Failure::Doubled {
            records,
            text: format!("{of}: {records} samples have the time of another sample"),
        });
    }
    let expect = expect(&found);
    if let Some((at, value)) = expect.iter().find(|(at, _)| !found.contains_key(at)) {
        let records = expect.keys().filter(|at| !found.contains_key(at)).count() as u64;
        return Err(Failure::Lost { records, text: format!("{of}: {value:?} at {at} is missing") });
    }
    // The store has a sample that was deleted or never sent, or a value that a later value has replaced.
    match found.iter().find(|(at, value)| expect.get(at) != Some(value)) {
        Some((at, value)) => {
            let text = format!("{of}: {value:?} at {at} instead of {:?}", expect.get(at));
            Err(Failure::Invented { text })
        }
        None => Ok(()),
    }
}

/// Entries of the same time must be in their order of arrival.
fn compare_entries(session: u128, found: Vec<Entry>, expect: &[Entry]) -> Result<(), Failure> {
    let mut expect = expect.to_vec();
    expect.sort_by_key(|entry| entry.at);
    if found == expect {
        return Ok(());
    }
    let key = |entry: Entry| (entry.at, format!("{:?}", entry.body));
    let [found, expect] = [found, expect].map(|list| list.into_iter().map(key).collect());
    let of = format!("entries of session {session}");
    compare_lists(&of, found, expect)?;
    Err(Failure::Invented { text: format!("{of} are not in the order of arrival") })
}

fn compare_lists<T: Ord + std::fmt::Debug>(
    of: &str,
    mut found: Vec<T>,
    mut expect: Vec<T>,
) -> Result<(), Failure> {
    found.sort_unstable();
    expect.sort_unstable();
    let twice = found.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    if twice > 0 && expect.windows(2).all(|pair| pair[0] != pair[1]) {
        return Err(Failure::Doubled { records: twice, text: format!("{of}: {twice} exist twice") });
    }
    let missing: Vec<&T> = expect.iter().filter(|record| found.binary_search(record).is_err()).collect();
    if let Some(first) = missing.first() {
        let text = format!("{of}: {} are missing, the first is {first:?}", missing.len());
        return Err(Failure::Lost { records: missing.len() as u64, text });
    }
    match found.iter().find(|record| expect.binary_search(record).is_err()) {
        Some(strange) => {
            Err(Failure::Invented { text: format!("{of}: {strange:?} was deleted or never sent") })
        }
        None => Ok(()),
    }
}
