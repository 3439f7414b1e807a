//! `cargo xtask fuzz [--seconds N] [--jobs N] [TARGET ...]`: runs the fuzz targets.
//!
//! Builds the targets in `fuzz/src/bin/` and runs each target for `--seconds` (default 10), `--jobs` targets at a time (default
//! 2). A run starts from `testdata/` and the corpus of earlier runs. A stable toolchain is enough, because the coverage flags
//! are options of LLVM (SanitizerCoverage). The address sanitizer is not used, because the code is safe Rust. libFuzzer needs a
//! C++ compiler.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io};

/// The flags that `cargo fuzz` passes, without the flags for nightly compilers.
const RUSTFLAGS: &str = "--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";
/// Default of `--seconds`.
const SECONDS: u64 = 10;
/// Default of `--jobs`.
const JOBS: usize = 2;
/// Memory limit of a run. Inputs are at most as long as the largest file of `testdata/` (about 100 kB), so only a broken decoder
/// needs more memory.
const MEMORY_MB: u64 = 3_072;
/// Time limit for one input, seconds.
const TIMEOUT: u64 = 10;
/// A run is killed this many seconds after `--seconds` have passed, because libFuzzer itself can hang when it reports an input.
const OVERTIME: u64 = 600;

struct Options {
    seconds: u64,
    jobs: usize,
    /// Empty means all targets.
    targets: Vec<String>,
}

pub fn run(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask is not in a workspace")?;
    let targets = targets(root, &options)?;
    let host = host()?;
    build(root, &host)?;
    let crashed = run_all(&targets, options.jobs, |target| {
        let result = fuzz(root, &host, target, options.seconds);
        result.inspect_err(|reason| eprintln!("fuzz {target}: {reason}")).is_ok()
    });
    if crashed.is_empty() { Ok(()) } else { Err(format!("fuzz targets failed: {}", crashed.join(", "))) }
}

/// Runs the targets, `jobs` at a time. Returns those for which `run` is false.
fn run_all(targets: &[String], jobs: usize, run: impl Fn(&str) -> bool + Sync) -> Vec<String> {
    let queue = Mutex::new(targets.iter());
    let crashed = Mutex::new(vec![]);
    let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(target) = take() {
            if !run(target) {
                crashed.lock().unwrap_or_else(PoisonError::into_inner).push(target.clone());
            }
        }
    };
    std::thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(work))));
    let mut crashed = crashed.into_inner().unwrap_or_else(PoisonError::into_inner);
    crashed.sort();
    crashed
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options { seconds: SECONDS, jobs: JOBS, targets: vec![] };
    let number = |flag: &str, value: Option<&String>| {
        let value = value.ok_or_else(|| format!("{flag} needs a number"))?;
        value.parse::<u64>().map_err(|_| format!("{flag} {value}: not a number"))
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => options.seconds = number(arg, args.next())?,
            "--jobs" => options.jobs = usize::try_from(number(arg, args.next())?.max(1)).unwrap_or(JOBS),
            flag if flag.starts_with('-') => {
                return Err(format!(
                    "unknown option {flag}; usage: cargo xtask fuzz [--seconds N] [--jobs N] [TARGET ...]"
                ));
            }
            target => options.targets.push(target.to_owned()),
        }
    }
    Ok(options)
}

/// Names of the targets to run, sorted.
fn targets(root: &Path, options: &Options) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/src/bin");
    let files = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let stem = |file: PathBuf| Some(file.file_stem()?.to_str()?.to_owned());
    let mut all: Vec<String> = files.filter_map(|file| stem(file.ok()?.path())).collect();
    all.sort();
    if let Some(unknown) = options.targets.iter().find(|target| !all.contains(target)) {
        return Err(format!("no fuzz target {unknown}; targets are {}", all.join(", ")));
    }
    all.retain(|target| options.targets.is_empty() || options.targets.contains(target));
    Ok(all)
}

/// The host's target triple. It is passed as `--target`, so that build scripts and macros are not instrumented.
fn host() -> Result<String, String> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(&rustc).arg("-vV").output().map_err(|error| format!("{rustc}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| format!("{rustc} -vV prints no host"))
}

fn build(root: &Path, host: &str) -> Result<(), String> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    if Command::new(&compiler).arg("--version").output().is_err() {
        return Err(format!(
            "fuzzing needs a C++ compiler for libFuzzer; {compiler} not found (install g++)"
        ));
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(&cargo);
    command.args(["build", "--quiet", "--release", "--target", host]);
    command.arg("--manifest-path").arg(root.join("fuzz/Cargo.toml"));
    command.arg("--target-dir").arg(root.join("fuzz/target"));
    command.env("RUSTFLAGS", RUSTFLAGS).env_remove("CARGO_ENCODED_RUSTFLAGS");
    let status = command.status().map_err(|error| format!("{cargo}: {error}"))?;
    if status.success() { Ok(()) } else { Err("cannot build the fuzz targets".to_owned()) }
}

/// Runs one target. libFuzzer exits with an error if an input panics, takes too long, or takes too much memory.
fn fuzz(root: &Path, host: &str, target: &str, seconds: u64) -> Result<(), String> {
    let corpus = root.join("fuzz/corpus").join(target);
    let artifacts = root.join("fuzz/artifacts");
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let binary = root.join("fuzz/target").join(host).join("release").join(target);
    let log = artifacts.join(format!("{target}.log"));
    let failed = |error: io::Error| format!("{}: {error}", binary.display());
    let mut child = Command::new(&binary)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={MEMORY_MB}"))
        .arg(format!("-timeout={TIMEOUT}"))
        .arg(format!("-artifact_prefix={}/{target}-", artifacts.display()))
        .args([corpus, root.join("testdata")])
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?)
        .spawn()
        .map_err(failed)?;
    let ended = wait(&mut child, Duration::from_secs(seconds + OVERTIME)).map_err(failed)?;
    let said = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
    report(target, ended, &said)
}

/// Waits for the end of the process. After `time_max` kills the process and returns `None`.
fn wait(child: &mut Child, time_max: Duration) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    while begun.elapsed() < time_max {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Prints one line on success. On failure returns the end of libFuzzer's output, which names the input file. `ended` is `None`
/// for a run that was killed.
fn report(target: &str, ended: Option<ExitStatus>, said: &str) -> Result<(), String> {
    if ended.is_some_and(|status| status.success()) {
        let done = said.lines().rev().find(|line| line.starts_with("Done ")).unwrap_or("Done");
        println!("fuzz {target}: {done}");
        return Ok(());
    }
    let how = ended.map_or_else(
        || format!("killed {OVERTIME} s after --seconds had passed, because it did not end"),
        |status| status.to_string(),
    );
    let lines: Vec<&str> = said.lines().collect();
    let last = lines.len().saturating_sub(40);
    Err(format!("{how}\n{}", lines.get(last..).unwrap_or_default().join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_does_not_end_is_killed() {
        let start = |program: &str, args: &[&str]| Command::new(program).args(args).spawn().unwrap();
        assert_eq!(wait(&mut start("false", &[]), Duration::MAX).unwrap().unwrap().code(), Some(1));
        assert!(wait(&mut start("sleep", &["3600"]), Duration::ZERO).unwrap().is_none());
        let ended = report("a", None, "first\nlast\n").unwrap_err();
        assert!(ended.ends_with("because it did not end\nfirst\nlast"), "{ended}");
    }

    #[test]
    fn every_target_runs_once_and_failed_targets_are_named() {
        let targets = ["a", "b", "c", "d"].map(str::to_owned);
        for jobs in [1, 2, 9] {
            let ran = Mutex::new(vec![]);
            let crashed = run_all(&targets, jobs, |target| {
                ran.lock().unwrap().push(target.to_owned());
                !["b", "d"].contains(&target)
            });
            assert_eq!(crashed, ["b", "d"]);
            let mut ran = ran.into_inner().unwrap();
            ran.sort();
            assert_eq!(ran, targets);
        }
    }
}
