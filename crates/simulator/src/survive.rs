//! Does the store keep its other records when bytes were damaged, and when more bytes are damaged while it works?
//!
//! Processes start with damaged bytes, store records, flush, merge and verify, and crash. Some of them crash while they start.
//! In the meantime, more bytes rot, and writes reach a sector of another file. Records of the damaged bytes may be missing if a
//! process has reported damage. Nothing is invented. Each file that a process has moved or copied to a quarantine survives.
//! Records that were stored after the last damage are complete.

use std::time::Duration;

use tacho_store::Store;

use crate::agent::Agent;
use crate::check::check;
use crate::damage::{end_life, end_process, is_reported, read_all};
use crate::run::{Failure, Totals};
use crate::world::{World, until_stop};

/// Limit on the processes that work with the store. There are fewer if the store refuses the damage.
const STARTS_MAX: u128 = 4;
/// Limit on the operations of the disk before a start is interrupted.
const OPERATIONS_OF_START: u64 = 60;
const STEPS_MAX: u64 = 12;
/// The session of the agent of the first process. Each process has its own agent.
const FIRST_SESSION: u128 = 1_000;

/// `is_told` is whether an earlier process has reported damage.
pub async fn run(world: &mut World, mut is_told: bool, totals: &mut Totals) -> Result<(), Failure> {
    end_process(world).await;
    for start in 0..STARTS_MAX {
        if world.random.one_in(2) {
            world.disk.stop_after(Some(world.random.below(OPERATIONS_OF_START)));
            let disk = world.disk.clone();
            // The machine stops, or the start succeeds or refuses the damage.
            drop(until_stop(&disk, world.try_open()).await);
            end_life(world).await;
        }
        totals.damaged_starts += 1;
        let (store, driver) = match world.try_open().await {
            Ok(opened) => opened,
            Err(error) => {
                world.say(|| format!("not opened: {error}"));
                return Ok(());
            }
        };
        driver.set_quiet(true);
        let mut agent = Agent::new(FIRST_SESSION + start, false);
        let is_damaged = work(world, &store, &mut agent, totals).await?;
        let (silent, reported) = read_all(world, &store).await?;
        is_told |= reported || is_reported(&store);
        if let Some(text) = silent.filter(|_| !is_told) {
            let text = format!("{text}, and no process has reported damage");
            return Err(Failure::Lost { records: 0, text });
        }
        if is_damaged {
            world.forget_quarantines();
        } else {
            world.check_quarantines()?;
        }
        world.agents.push(agent);
        drop((store, driver));
        end_life(world).await;
        // Cancels a misdirection that is still pending. Otherwise it could damage bytes for the next process, whose `work` may
        // return that no bytes were damaged.
        world.disk.misdirect(false);
    }
    Ok(())
}

/// The steps of one process. Returns whether bytes were damaged.
async fn work(
    world: &mut World,
    store: &Store,
    agent: &mut Agent,
    totals: &mut Totals,
) -> Result<bool, Failure> {
    let (mut is_damaged, rots) = (false, world.random.one_in(2));
    for _ in 0..world.random.below(STEPS_MAX) {
        let done = match world.random.below(10) {
            0 if rots => {
                is_damaged = true;
                totals.damages += u64::from(world.disk.damage().is_some());
                Ok(())
            }
            1 if rots => {
                is_damaged = true;
                totals.damages += 1;
                world.disk.misdirect(true);
                Ok(())
            }
            0..=4 => {
                append(world, store, agent).await;
                Ok(())
            }
            5 => store.flush().await,
            6 => store.merge_all().await.map(drop),
            7 => store.sweep().await.map(drop),
            8 => store.verify().await.map(drop),
            _ => {
                tokio::time::sleep(Duration::from_millis(world.random.below(200))).await;
                Ok(())
            }
        };
        if let Err(error) = done {
            world.say(|| format!("with damaged bytes: {error}"));
        }
    }
    if !is_damaged {
        check(store, std::slice::from_ref(agent), world.now, totals).await?;
    }
    Ok(is_damaged)
}

/// The agent records a frame, and appends its frames to the store.
async fn append(world: &mut World, store: &Store, agent: &mut Agent) {
    agent.record(&mut world.random, world.now, &mut world.next_trace);
    let Some(group) = agent.group(4) else { return };
    let (batch, origin) = group.whole();
    match store.append(batch, Some(origin)).await {
        Ok(_) => drop(agent.take_ack(origin.seq)),
        Err(error) => world.say(|| format!("with damaged bytes: {error}")),
    }
}
