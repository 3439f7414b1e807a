//! The memory driver passes the conformance suite, with and without layers.

use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use tacho_store::conformance::{CASES, Opener};
use tacho_store::layer::faults::{Faults, Faulty};
use tacho_store::layer::metrics::Metrics;
use tacho_store::layer::retry::{Policy, Retry};
use tacho_store::{Driver, MemoryDriver};

fn main() {
    let bare: Opener = Arc::new(|_| Box::pin(async { Ok(Arc::new(MemoryDriver::new()) as Arc<dyn Driver>) }));
    let layered: Opener = Arc::new(|_| {
        Box::pin(async {
            let faults = Faults {
                seed: 7,
                error_before: 9,
                error_after: 9,
                torn: 9,
                duplicate: 9,
                ..Faults::default()
            };
            let policy =
                Policy { attempts: 50, wait_first: std::time::Duration::from_micros(1), ..Policy::default() };
            let driver = Faulty::new(MemoryDriver::new(), faults);
            Ok(Arc::new(Metrics::new(Retry::new(driver, policy))) as Arc<dyn Driver>)
        })
    });
    let trial = |name: &str, opener: &Opener| -> Vec<Trial> {
        let test = |case: &'static tacho_store::conformance::Case| {
            let opener = opener.clone();
            Trial::test(format!("{name}::{}", case.name), move || case.run(&opener).map_err(Into::into))
        };
        CASES.iter().map(test).collect()
    };
    let mut trials = trial("memory", &bare);
    trials.extend(trial("layers", &layered));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
