//! Measures the figures of ADR 0001: the embedded driver compared with fjall, on rows with the sizes of chunks.
//!
//! `cargo run --release -p tacho-drivers --features fjall --example embedded_compare [ROWS] [DIRECTORY]`
//!
//! Every step runs in a separate process, so that its memory is measured alone. Values have 1 to 8 KB of random bytes, like
//! compressed chunks. A `put` has 1,000 rows, as in a flush.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::TryStreamExt;
use tacho_model::Random;
use tacho_store::driver::{Driver, Row, Scan, Scanned, Table};

const SERIES: u64 = 1_000;
const PUT_ROWS: u64 = 1_000;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["step", "fill", url, rows] => fill(url, rows.parse()?).await,
        ["step", "read", url, rows] => read(url, rows.parse()?).await,
        ["step", "endless", url] => endless(url).await,
        ["step", "verify", url, rows] => verify(url, rows.parse()?).await,
        _ => compare(
            arguments.first().unwrap_or(&"100000"),
            arguments.get(1).unwrap_or(&"/tmp/embedded-compare"),
        ),
    }
}

fn compare(rows: &str, directory: &str) -> Result<(), Failure> {
    println!("{rows} rows of 1 to 8 KB in {SERIES} partitions, {PUT_ROWS} rows a put, in {directory}");
    for scheme in ["embedded", "fjall"] {
        let path = Path::new(directory).join(scheme);
        let _ = std::fs::remove_dir_all(&path);
        let url = format!("{scheme}:{}", path.display());
        println!("{scheme}");
        step(&["fill", &url, rows])?;
        println!("  space      {:>8.1} MB", megabytes(space(&path)?));
        step(&["read", &url, rows])?;
        let _ = std::fs::remove_dir_all(&path);
        for round in 1..=3 {
            let acknowledged = kill_while_writing(&url, Duration::from_secs(3 * round))?;
            step(&["verify", &url, &acknowledged.to_string()])?;
            let _ = std::fs::remove_dir_all(&path);
        }
    }
    Ok(())
}

fn itself() -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("step");
    Ok(command)
}

fn step(arguments: &[&str]) -> Result<(), Failure> {
    let status = itself()?.args(arguments).status()?;
    if status.success() { Ok(()) } else { Err(format!("step {arguments:?} failed").into()) }
}

/// Starts a process that writes, kills it, and returns the number of rows that were acknowledged.
fn kill_while_writing(url: &str, after: Duration) -> Result<u64, Failure> {
    let mut child = itself()?.args(["endless", url]).stdout(Stdio::piped()).spawn()?;
    std::thread::sleep(after);
    child.kill()?;
    let output = child.stdout.take().ok_or("no output")?;
    child.wait()?;
    let last = BufReader::new(output).lines().map_while(Result::ok).last();
    Ok(last.and_then(|line| line.parse().ok()).unwrap_or(0))
}

/// Row number `n`. Consecutive rows belong to different series, as in a flush.
fn row(n: u64) -> Row {
    let mut random = Random::new(n);
    let length = 1_000 + random.below(7_000) as usize;
    let value: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).collect();
    let series = partition_of(n % SERIES);
    let clustering = [&[1, 0][..], &(n / SERIES).to_be_bytes(), &[0; 12]].concat();
    Row { table: Table::Chunks, partition: series, clustering, value: Bytes::from(value).slice(..length) }
}

fn partition_of(number: u64) -> Vec<u8> {
    let mut random = Random::new(!number);
    [&[1][..], &random.next().to_be_bytes(), &random.next().to_be_bytes()].concat()
}

fn rows(from: u64, count: u64) -> Vec<Row> {
    (from..from + count).map(row).collect()
}

async fn fill(url: &str, count: u64) -> Result<(), Failure> {
    let driver = tacho_drivers::open(url).await?;
    let (mut waits, mut bytes) = (Vec::new(), 0);
    for from in (0..count).step_by(PUT_ROWS as usize) {
        let put = rows(from, PUT_ROWS.min(count - from));
        bytes += put.iter().map(|r| r.value.len() as u64).sum::<u64>();
        let begin = Instant::now();
        driver.put(put).await?;
        waits.push(begin.elapsed());
    }
    let total: Duration = waits.iter().sum();
    waits.sort_unstable();
    let ms = |at: usize| waits[at.min(waits.len() - 1)].as_secs_f64() * 1e3;
    let rate = megabytes(bytes) / total.as_secs_f64();
    println!("  values     {:>8.1} MB", megabytes(bytes));
    println!("  write      {:>8.1} MB/s   {:.2} s", rate, total.as_secs_f64());
    println!(
        "  put        {:>8.1} ms p50   {:.1} ms p99   {:.1} ms max",
        ms(waits.len() / 2),
        ms(waits.len() * 99 / 100),
        ms(usize::MAX)
    );
    println!("  memory     {:>8.1} MB peak while writing", memory("VmHWM")?);
    Ok(())
}

async fn read(url: &str, count: u64) -> Result<(), Failure> {
    let begin = Instant::now();
    let driver = tacho_drivers::open(url).await?;
    println!("  open       {:>8.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    println!("  memory     {:>8.1} MB after opening", memory("VmRSS")?);
    let (begin, mut bytes, mut found) = (Instant::now(), 0, 0);
    for series in 0..SERIES {
        let mut stream = driver.scan(Scan::all(Table::Chunks, partition_of(series))).await?;
        while let Some(row) = stream.try_next().await? {
            bytes += row?.value.len() as u64;
            found += 1;
        }
    }
    let took = begin.elapsed().as_secs_f64();
    println!("  scan all   {:>8.1} MB/s   {found} of {count} rows in {took:.2} s", megabytes(bytes) / took);
    short_scans(&*driver, count).await
}

/// Reads ten rows from a random position, as a chart of one series does.
async fn short_scans(driver: &dyn Driver, count: u64) -> Result<(), Failure> {
    let mut random = Random::new(1);
    let mut waits = Vec::new();
    for _ in 0..5_000 {
        let first = row(random.below(count));
        let from = std::ops::Bound::Included(first.clustering);
        let scan = Scan { from, limit: Some(10), ..Scan::all(Table::Chunks, first.partition) };
        let begin = Instant::now();
        let found: Vec<Scanned> = driver.scan(scan).await?.try_collect().await?;
        waits.push(begin.elapsed());
        assert!(!found.is_empty(), "a written row was not found");
    }
    waits.sort_unstable();
    let us = |at: usize| waits[at].as_secs_f64() * 1e6;
    println!("  scan ten   {:>8.1} us p50   {:.1} us p99", us(waits.len() / 2), us(waits.len() * 99 / 100));
    Ok(())
}

/// Writes until it is killed. Prints the number of acknowledged rows after every `put`.
async fn endless(url: &str) -> Result<(), Failure> {
    let driver = tacho_drivers::open(url).await?;
    let mut from = 0;
    loop {
        driver.put(rows(from, PUT_ROWS)).await?;
        from += PUT_ROWS;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{from}")?;
        out.flush()?;
    }
}

async fn verify(url: &str, acknowledged: u64) -> Result<(), Failure> {
    let begin = Instant::now();
    let driver = tacho_drivers::open(url).await?;
    let took = begin.elapsed().as_secs_f64() * 1e3;
    let mut found = 0;
    for series in 0..SERIES {
        let stream = driver.scan(Scan::all(Table::Chunks, partition_of(series))).await?;
        let rows: Vec<Scanned> = stream.try_collect().await?;
        let rows = rows.into_iter().collect::<Result<Vec<Row>, _>>()?;
        for (at, found) in rows.iter().enumerate() {
            assert_eq!(*found, row(at as u64 * SERIES + series), "the row must equal the written one");
        }
        found += rows.len() as u64;
    }
    let lost = acknowledged.saturating_sub(found);
    println!("  killed     {took:>8.1} ms to open   {acknowledged} rows acknowledged, {lost} lost");
    Ok(())
}

fn space(path: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() { space(&entry.path())? } else { about.len() };
    }
    Ok(bytes)
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// A value of `/proc/self/status`, MB.
fn memory(field: &str) -> Result<f64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(field)).ok_or("no such field")?;
    let kilobytes: f64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kilobytes / 1e3)
}
