//! A short simulation in each run of the tests.

use std::time::Duration;

use tacho_simulator::{Plan, Totals, one, run};

/// Far above the time that the seeds take, so that a slow machine runs all of them.
const TIME: Duration = Duration::from_secs(3_600);

/// These seeds take about 45 seconds of CPU time without optimization. `make simulate` runs more seeds.
const SEEDS: u64 = 5;

#[test]
fn acknowledged_frames_exist_exactly_once_after_crashes() {
    let (totals, failure) =
        run(Plan { first: 0, seeds: SEEDS, time: TIME, trace: false, omitted: None }, |_| {});
    assert_eq!(failure, None, "replay it: cargo xtask simulate --seeds 1 --first SEED --trace");
    assert!(
        totals.crashes() > 5 * SEEDS && totals.power_failures > 0 && totals.ended_processes > 0,
        "{totals}"
    );
    assert!(totals.acknowledged_records > 1_000 && totals.merges > 50, "{totals}");
}

#[test]
fn two_runs_of_a_seed_perform_the_same_disk_operations() {
    let [first, second] = [(); 2].map(|()| one(3, false, None, &mut Totals::default()));
    assert_eq!(first, second);
}
