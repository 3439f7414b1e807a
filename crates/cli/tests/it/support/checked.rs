//! `tacho check` and `tacho repair`, and functions that read and copy data directories.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tacho_drivers::embedded::Embedded;
use tacho_model::{Kind, ManualClock, TimeRange};
use tacho_store::{ErrorKind, Options, Result, Store};

use crate::support::filled::in_runtime;
use crate::support::run;

/// The exit code, the findings and the summary of `tacho check`.
pub fn check(data: &Path, flags: &[&str]) -> (i32, Vec<Value>, Value) {
    let (code, stdout, stderr) = run(&[&["check", data.to_str().unwrap(), "--json"], flags].concat());
    let mut lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.pop().map_or(Value::Null, |mut last| last["summary"].take());
    assert!(summary.is_object(), "{stdout}{stderr}");
    (code.unwrap(), lines, summary)
}

pub fn of(findings: &[Value], severity: &str) -> Vec<String> {
    let shown = |finding: &Value| format!("{} {} {}", finding["kind"], finding["file"], finding["reason"]);
    findings.iter().filter(|finding| finding["severity"] == severity).map(shown).collect()
}

pub fn files(data: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for below in ["", "chunks", "journal"] {
        let entries = std::fs::read_dir(data.join(below)).unwrap().map(|entry| entry.unwrap().path());
        all.extend(entries.filter(|path| path.is_file()));
    }
    all.sort();
    all
}

pub fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "segment")
}

pub fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    for path in files(from) {
        let to = to.join(path.strip_prefix(from).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(&path, &to).unwrap();
    }
}

/// Repeats `open` until the directory is not locked. A process that another thread starts inherits the lock of an earlier
/// opening, and holds the lock until it executes its program.
pub async fn unlocked<T, F: Future<Output = Result<T>>>(mut open: impl FnMut() -> F) -> T {
    loop {
        match open().await {
            Err(error) if error.kind() == ErrorKind::Locked => tokio::task::yield_now().await,
            opened => return opened.unwrap(),
        }
    }
}

/// All records of a directory, as text.
pub fn records(data: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    in_runtime(async {
        let driver: Arc<Embedded> =
            Arc::new(unlocked(|| async { Embedded::open_read_only(&data.join("chunks")).await }).await);
        let open = || async {
            let options = Options { read_only: true, ..Options::default() };
            let clock = Arc::new(ManualClock::new(0));
            Store::open(driver.clone(), &data.join("journal"), options, clock).await
        };
        let store = unlocked(open).await;
        for (id, labels) in store.find(Kind::Sample, &[]) {
            let samples = store.samples(id, TimeRange::ALL).await.unwrap();
            all.extend(samples.iter().map(|s| format!("sample {labels} {} {:?}", s.at, s.value)));
        }
        for (id, labels) in store.find(Kind::Entry, &[]) {
            let entries = store.entries(id, TimeRange::ALL).await.unwrap();
            all.extend(entries.iter().map(|e| format!("entry {labels} {} {:?}", e.at, e.body)));
        }
        for (id, labels) in store.find(Kind::Execution, &[]) {
            for block in store.executions(id, TimeRange::ALL).await.unwrap() {
                let rows = block.rows().map(|row| row.to_segment());
                all.extend(rows.map(|s| format!("call {labels} {} {:?} {:?}", s.start, s.trace, s.events)));
            }
        }
    });
    all
}

/// Removes `into`, and runs `tacho repair`. Returns the exit code, the losses and the summary.
pub fn repair(data: &Path, into: &Path) -> (i32, Vec<Value>, Value) {
    let _ = std::fs::remove_dir_all(into);
    let (data, into) = (data.to_str().unwrap(), into.to_str().unwrap());
    let (code, stdout, stderr) = run(&["repair", data, "--into", into, "--json"]);
    let mut lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.pop().map_or(Value::Null, |mut last| last["summary"].take());
    assert!(summary.is_object(), "{stdout}{stderr}");
    (code.unwrap(), lines, summary)
}
