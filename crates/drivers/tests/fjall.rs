//! The fjall driver passes the conformance suite.

use libtest_mimic::{Arguments, Trial};
use std::sync::Arc;
use tacho_store::conformance::{CASES, Opener};

fn main() {
    let opener: Opener = Arc::new(|directory| {
        Box::pin(async move { tacho_drivers::open(&format!("fjall:{}", directory.display())).await })
    });
    let trial = |case: &'static tacho_store::conformance::Case| {
        let opener = opener.clone();
        Trial::test(case.name, move || case.run(&opener).map_err(Into::into))
    };
    libtest_mimic::run(&Arguments::from_args(), CASES.iter().map(trial).collect()).exit();
}
