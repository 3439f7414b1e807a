//! How many definitions of record types were not kept, and of which services? The log gets at most one line a minute.

use std::collections::BTreeMap;
use std::sync::Arc;

use tacho_model::Timestamp;

use crate::seldom::Seldom;

/// Limit on the services that a line names.
const SERVICES_MAX: usize = 5;

#[derive(Debug, Default)]
pub(super) struct Losses {
    total: u64,
    unlogged: Seldom,
    /// The first services of the losses that no line has reported.
    services: BTreeMap<Arc<str>, u64>,
}

impl Losses {
    pub(super) fn add(&mut self, service: &Arc<str>, count: u64) {
        if count == 0 {
            return;
        }
        self.total += count;
        self.unlogged.add(count);
        if let Some(of_service) = self.services.get_mut(service) {
            *of_service += count;
        } else if self.services.len() < SERVICES_MAX {
            self.services.insert(Arc::clone(service), count);
        }
    }

    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// The number of unreported losses and the services, if a line is due.
    pub(super) fn take_unlogged(&mut self, now: Timestamp) -> Option<(u64, String)> {
        let lost = self.unlogged.take(now)?;
        let named = std::mem::take(&mut self.services);
        let named: Vec<String> =
            named.iter().map(|(service, count)| format!("{service:?} {count}")).collect();
        Some((lost, named.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seldom::PAUSE_NS;

    #[test]
    fn losses_are_reported_once_at_most_each_minute_with_their_services() {
        let mut losses = Losses::default();
        let line = |lost: u64, services: &str| Some((lost, services.to_owned()));
        assert_eq!(losses.take_unlogged(0), None);
        losses.add(&"shop".into(), 0);
        assert_eq!(losses.take_unlogged(0), None);
        losses.add(&"shop".into(), 2);
        losses.add(&"board".into(), 1);
        losses.add(&"shop".into(), 1);
        assert_eq!(losses.take_unlogged(0), line(4, "\"board\" 1, \"shop\" 3"));
        assert_eq!(losses.take_unlogged(PAUSE_NS), None);
        losses.add(&"shop".into(), 1);
        assert_eq!(losses.take_unlogged(PAUSE_NS - 1), None);
        assert_eq!(losses.take_unlogged(PAUSE_NS), line(1, "\"shop\" 1"));
        for n in 0..7 {
            losses.add(&format!("s{n}").into(), 1);
        }
        // A clock that was set back does not prevent the line.
        assert_eq!(losses.take_unlogged(5), line(7, "\"s0\" 1, \"s1\" 1, \"s2\" 1, \"s3\" 1, \"s4\" 1"));
        assert_eq!(losses.total(), 12);
    }
}
