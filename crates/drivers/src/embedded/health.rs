//! Known damage of the directory, for logs, metrics and the status page.

use std::collections::BTreeMap;
use std::path::Path;

use tacho_store::disk::Disk;
use tacho_store::driver::Health;

use super::format::file_name;
use super::quarantine;
use super::scan::Damage;

/// Collects the known damage and lists the quarantine. `torn_bytes` is the number of bytes of torn ends. They were cut off when
/// the directory was opened, or are ignored if it was opened read-only.
pub fn health(
    disk: &dyn Disk,
    directory: &Path,
    damage: &BTreeMap<u32, Damage>,
    manifests: &[&'static str],
    torn_bytes: u64,
) -> Health {
    let segments = damage.keys().map(|number| file_name(*number));
    let (torn_ends, set_aside) = quarantine::list(disk, directory)
        .unwrap_or_default()
        .into_iter()
        .partition(|name| quarantine::is_torn_end(name));
    let has_places = |damage: &Damage| damage.places > 0 || damage.excess > 0 || damage.missing > 0;
    let places = |damage: &Damage| damage.places + u64::from(damage.missing > 0);
    let bytes = |damage: &Damage| damage.bytes + damage.excess + damage.missing;
    Health {
        places_in: damage
            .iter()
            .filter(|(_, d)| has_places(d))
            .map(|(number, _)| file_name(*number))
            .collect(),
        damaged: manifests.iter().map(|name| (*name).to_owned()).chain(segments).collect(),
        damaged_places: damage.values().map(places).sum(),
        damaged_bytes: damage.values().map(bytes).sum(),
        set_aside,
        torn_ends,
        torn_bytes,
    }
}
