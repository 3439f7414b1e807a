//! How do agents send frames? Some append them to the store as the recorder does, others send them over the network.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use tacho_model::{Batch, FindSeries, KnownSamples};
use tacho_store::{Appended, Error, ErrorKind, Learned, Origin, Store};

use crate::agent::Group;
use crate::network::{Fate, Heard, Talk};
use crate::run::{Failure, Totals};
use crate::world::{End, Open, World, until_stop};

/// Frames that an agent appends to the store.
struct Appending {
    at: usize,
    group: Group,
    wait: Duration,
}

/// The appends and the connections of one step.
#[derive(Default)]
struct Round {
    appends: Vec<Appending>,
    talks: Vec<Talk>,
}

impl World {
    /// The agents record frames, and send the frames that are not acknowledged. Some connections are cut while their frames are
    /// appended. The next connection sends the same frames.
    pub async fn send(&mut self, open: &Open, totals: &mut Totals) -> Result<(), End> {
        for agent in &mut self.agents {
            for _ in 0..self.random.below(3) {
                agent.record(&mut self.random, self.now, &mut self.next_trace);
            }
        }
        let disk = self.disk.clone();
        let Round { appends, talks } = self.round();
        let store = &open.store;
        let appends = appends.into_iter().map(|Appending { at, group, wait }| async move {
            tokio::time::sleep(wait).await;
            (at, group.last(), append(store, &group).await)
        });
        let work = join(join_all(appends), join_all(talks.into_iter().map(Talk::run)));
        let (appended, heard) = until_stop(&disk, work).await?;
        for (at, last, result) in appended {
            match result {
                Ok(()) => self.take_ack(at, last, totals),
                Err(error) => {
                    // The recorder would end the connection, so the agents connect again. Some frames of the group may be stored.
                    self.accept(&error)?;
                    self.reconnect(open, totals)?;
                }
            }
        }
        heard.into_iter().try_for_each(|heard| self.take_heard(heard, totals))?;
        // In half of the rounds, the connections stay open, and frames may still be on the way when the next step begins.
        if self.random.one_in(2) { self.disconnect(open, totals).await } else { Ok(()) }
    }

    fn round(&mut self) -> Round {
        let (mut round, random) = (Round::default(), &mut self.random);
        for (at, agent) in self.agents.iter().enumerate() {
            for _ in 0..1 + u64::from(random.one_in(6)) {
                if !agent.over_network {
                    let (frames, wait) = ([1, 4, 32][random.below(3) as usize], random.below(4));
                    let wait = Duration::from_millis(wait);
                    round.appends.extend(agent.group(frames).map(|group| Appending { at, group, wait }));
                    continue;
                }
                let fate = Fate::draw(random);
                let frames: Vec<_> = agent.frames.iter().take(fate.frames).cloned().collect();
                let stream = if frames.is_empty() { None } else { self.network.connect() };
                let session = agent.session;
                round.talks.extend(stream.map(|stream| Talk { at, session, frames, fate, stream }));
            }
        }
        round
    }

    fn take_ack(&mut self, at: usize, seq: u64, totals: &mut Totals) {
        let agent = &mut self.agents[at];
        totals.acknowledged_frames += seq.saturating_sub(agent.acked);
        totals.acknowledged_records += agent.take_ack(seq);
    }

    fn take_heard(&mut self, heard: Heard, totals: &mut Totals) -> Result<(), Failure> {
        totals.connections += 1;
        self.say(|| format!("agent {}: ACK {}, complete: {}", heard.at, heard.acked, heard.is_complete));
        if let Some(reason) = &heard.refused {
            return Err(Failure::Lost {
                records: 1,
                text: format!("the recorder refuses records: {reason}"),
            });
        }
        self.take_ack(heard.at, heard.acked, totals);
        if !heard.is_complete {
            totals.cut_connections += 1;
            // The cause may be a full disk, so the disk gets unlimited space.
            self.disk.set_capacity(u64::MAX);
        }
        self.network.leave(heard);
        Ok(())
    }

    /// Ends all connections, so that no more frames arrive. The agents then learn which frames are stored.
    pub async fn disconnect(&mut self, open: &Open, totals: &mut Totals) -> Result<(), End> {
        let disk = self.disk.clone();
        until_stop(&disk, self.network.close()).await?.map_err(Failure::Stuck)?;
        Ok(self.reconnect(open, totals)?)
    }
}

/// Appends frames as the recorder does: together, or one by one if some of them were stored before.
async fn append(store: &Store, group: &Group) -> tacho_store::Result<()> {
    let (batch, origin) = group.whole();
    match append_batch(store, batch, origin).await.and_then(whole) {
        Err(error) if error.kind() == ErrorKind::Invalid && origin.first < origin.seq => {}
        result => return result,
    }
    for (batch, origin) in group.single() {
        append_batch(store, batch, origin).await.and_then(whole)?;
    }
    Ok(())
}

/// Appends a batch. Half of the batches are appended in the form that decoders return if the store knows series: the samples of
/// known series have no labels.
async fn append_batch(store: &Store, batch: Arc<Batch>, origin: Origin) -> tacho_store::Result<Appended> {
    if origin.seq.is_multiple_of(2) {
        return store.append(batch, Some(origin)).await;
    }
    let (mut labelled, mut known, mut learned) = (Batch::clone(&batch), KnownSamples::default(), Vec::new());
    {
        let spellings = store.spellings();
        let mut finder = spellings.finder();
        labelled.samples.retain(|series| {
            let spelling = finder.keys().labels(&series.labels.canonical());
            let found = finder.find(spelling);
            match found {
                Some(found) => series.samples.iter().for_each(|sample| known.push(found, *sample)),
                None => {
                    learned.extend(u16::try_from(series.labels.canonical_bytes()).map(|labels_bytes| {
                        Learned { id: series.labels.id(), spelling, note: 0, labels_bytes }
                    }))
                }
            }
            found.is_none()
        });
    }
    let appended = store.append_known(labelled, known, Some(origin)).await?;
    store.learn(&learned);
    Ok(appended)
}

/// No limit of the store is reached, so it must not refuse a series.
fn whole(appended: Appended) -> tacho_store::Result<()> {
    match appended {
        Appended::Stored | Appended::Repeated => Ok(()),
        Appended::Partly(refused) => Err(Error::invalid(format!("series were refused: {refused:?}"))),
    }
}
