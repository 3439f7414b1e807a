//! Self-monitoring: stores the server's metrics as series with `service="tacho"`.
//!
//! Some metrics have a label `service`, which names the sender of records. The label is renamed to `exported_service`.
//! Prometheus renames conflicting labels in the same way.

use std::sync::Arc;
use std::time::Duration;

use tacho_model::{Batch, Clock, Labels, NAME, Sample, SampleSeries, Timestamp};
use tacho_store::Store;

use crate::metrics::Metrics;
use crate::shutdown::Shutdown;

const SERVICE: &str = "service";

pub async fn run(
    store: Arc<Store>,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    interval: Duration,
    mut shutdown: Shutdown,
) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.wait() => return,
            _ = ticks.tick() => {}
        }
        metrics.read_store(&store);
        // A failure is only logged, because the next interval stores newer values.
        if let Err(error) = store.append(batch(&metrics, clock.now()), None).await {
            tracing::debug!(%error, "own metrics not stored");
        }
    }
}

fn batch(metrics: &Metrics, at: Timestamp) -> Batch {
    let mut batch = Batch::default();
    for family in metrics.families() {
        family.points(&mut |point| {
            let name = format!("{}{}", family.name(), point.suffix);
            let own = point.labels.iter().map(|(label, value)| match *label {
                SERVICE => ("exported_service", *value),
                other => (other, *value),
            });
            // The server's own labels are within the limits, but agents choose the names of services. A series whose service
            // has a too long name is not stored.
            if let Ok(labels) = Labels::new(own.chain([(NAME, name.as_str()), (SERVICE, "tacho")])) {
                let samples = vec![Sample { at, value: point.value }];
                batch.samples.push(SampleSeries { labels: Arc::new(labels), samples });
            }
        });
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_model::Value;

    #[test]
    fn metrics_become_series_of_the_server() {
        let metrics = Metrics::default();
        metrics.records_received.with(["shop", "execution"]).add(7);
        let batch = batch(&metrics, 5);
        let expect =
            "tacho_records_received_total{exported_service=\"shop\", kind=\"execution\", service=\"tacho\"}";
        let series = batch.samples.iter().find(|s| s.labels.to_string() == expect).unwrap();
        assert_eq!(series.samples, [Sample { at: 5, value: Value::U64(7) }]);
    }
}
