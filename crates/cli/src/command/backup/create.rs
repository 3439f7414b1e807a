//! `tacho backup create`: makes a backup of a data directory, at rest or while a server uses it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tacho_api::units;
use tacho_backup::{Created, Host, Repository, Source, SourceFile, Work, create};
use tacho_server::access::file::Found;
use tacho_server::check::refuse_incomplete;
use tacho_store::{Error, ErrorKind};
use tokio::runtime::Runtime;

use super::stop::Stop;
use super::{failed, record_json, repository};
use crate::client::Client;
use crate::command::{ask, findings};
use crate::failure::Failure;

/// Longest wait while the server has too many snapshots. A lease of a dead client ends earlier, after 60 s.
const WAIT_MAX: Duration = Duration::from_secs(120);
const SNAPSHOTS: &str = "/api/v1/admin/snapshots";
/// Pause between two requests for a snapshot.
const PAUSE: Duration = Duration::from_secs(2);

/// Make a backup of a data directory
///
/// A running server makes a snapshot of its directory, and continues to write. The backup has every record that the server
/// acknowledged before the snapshot. A directory that no server uses is locked instead. Run the command on the machine and
/// as the user of the server. The command reads back and compares all that it writes. An interrupted command makes no backup.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho backup create /var/lib/tacho /backup/tacho
  tacho backup create ./tacho-data /mnt/nas/tacho --server http://127.0.0.1:7171
  tacho backup create /var/lib/tacho /backup/tacho --json | jq .id")]
pub struct Create {
    /// Data directory
    dir: PathBuf,
    /// Repository: a directory outside of the data directory, or s3://BUCKET/PREFIX; created if it is missing
    repository: String,
    #[command(flatten)]
    server: ask::Server,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Create {
    pub fn run(self) -> Result<(), Failure> {
        ask::check_data_directory(&self.dir).map_err(Failure::into_usage)?;
        refuse_incomplete(&self.dir).map_err(|e| ask::unreadable(&self.dir, &e))?;
        check_apart(&self.dir, &self.repository)?;
        let repository = repository(&self.repository)?;
        let runtime = Runtime::new().map_err(Failure::new)?;
        let stop = Stop::of_signals(&runtime)?;
        let created = match Source::at_rest(&self.dir) {
            Ok(source) => self.save(&repository, &source, &|| stop.check())?,
            Err(error) if error.kind() == ErrorKind::Locked => {
                let client = Arc::new(self.server.client()?);
                let ignored = Source::ignored_in(&self.dir).map_err(|e| ask::unreadable(&self.dir, &e))?;
                let snapshot = Snapshot::take(&runtime, client, (&self.dir, ignored), &stop)?;
                let saved = self.save(&repository, &snapshot.source, &|| {
                    stop.check()?;
                    snapshot.lease.check()
                });
                snapshot.lease.release(&runtime);
                saved?
            }
            Err(error) => return Err(ask::unreadable(&self.dir, &error)),
        };
        self.print(&repository, &created);
        if let Found::Broken(cause) = tacho_server::access::file::read(&self.dir) {
            eprintln!(
                "warning: the tokens in this backup cannot be used: {cause}; unless a newer tacho wrote the file, restore this \
                 backup with --allow-damaged"
            );
        }
        Ok(())
    }

    fn save(
        &self,
        repository: &Repository,
        source: &Source,
        check: &dyn Fn() -> Result<(), Error>,
    ) -> Result<Created, Failure> {
        for name in &source.ignored {
            eprintln!("warning: {name} is not a file of a data directory, and not in the backup");
        }
        let data = std::path::absolute(&self.dir).unwrap_or_else(|_| self.dir.clone());
        let host = Host {
            name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            data: data.display().to_string(),
            tacho: env!("CARGO_PKG_VERSION").to_owned(),
        };
        findings::with_progress("backup", |progress| {
            create(repository, source, &host, &mut Work::new(progress, check))
        })
        .map_err(failed)
    }

    fn print(&self, repository: &Repository, created: &Created) {
        let Created { record, objects, bytes } = created;
        if self.json {
            let mut shown = record_json(record);
            shown["new"] = json!({ "objects": objects, "bytes": bytes });
            ask::print_json(&shown);
            return;
        }
        println!(
            "backup {} in {}: {} in {}, of which {} are new",
            record.id,
            repository.location(),
            units::bytes(record.bytes()),
            units::counted(record.files.len() as u64, "file", "files"),
            units::bytes(*bytes),
        );
    }
}

/// Refuses a repository inside of the data directory, and a data directory inside of the repository.
fn check_apart(data: &Path, repository: &str) -> Result<(), Failure> {
    let place = Path::new(repository);
    let is_directory = !repository.contains("://");
    if is_directory && (ask::is_inside(place, data) || ask::is_inside(data, place)) {
        let message = format!("the repository {repository} and {} are not separate", data.display());
        return Err(Failure::usage(message).hint("name a directory outside of the data directory"));
    }
    Ok(())
}

struct Snapshot {
    source: Source,
    lease: Lease,
}

/// Renews the lease of a snapshot in the background until the snapshot is released.
struct Lease {
    client: Arc<Client>,
    path: String,
    /// The reason, if the snapshot is lost.
    lost: Arc<Mutex<Option<String>>>,
    renewal: tokio::task::JoinHandle<()>,
}

impl Snapshot {
    /// Takes a snapshot of the directory `data` of a server. `ignored` are the names in `data` that a backup ignores.
    fn take(
        runtime: &Runtime,
        client: Arc<Client>,
        (data, ignored): (&Path, Vec<String>),
        stop: &Stop,
    ) -> Result<Self, Failure> {
        let answer = request(runtime, &client, stop).map_err(|failure| {
            failure.within(&format!("a server uses {}, and makes no snapshot", data.display()))
        })?;
        let answer = &answer["data"];
        let id = ask::text(answer, "id");
        let path = format!("{SNAPSHOTS}/{id}");
        let seconds = ask::number(answer, "lease_seconds").max(3);
        let lease = Lease::keep(runtime, client, path, Duration::from_secs(seconds));
        // The answer may come from the server of another data directory, for example if no address was given.
        let directory = data.join(tacho_server::snapshots::DIRECTORY).join(id);
        let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_id || !directory.is_dir() {
            lease.release(runtime);
            let other = ask::text(answer, "directory");
            let message = format!("the server uses another data directory than {}: {other}", data.display());
            return Err(Failure::new(message).hint("name the server of this directory with --server"));
        }
        match source(&directory, answer) {
            Ok(mut source) => {
                source.ignored = ignored;
                Ok(Self { source, lease })
            }
            Err(failure) => {
                lease.release(runtime);
                Err(failure)
            }
        }
    }
}

/// Asks the server for a snapshot. Waits if the server has too many, because snapshots of killed backups end with their leases.
fn request(runtime: &Runtime, client: &Client, stop: &Stop) -> Result<Value, Failure> {
    let begun = Instant::now();
    let mut is_explained = false;
    loop {
        stop.check().map_err(failed)?;
        match runtime.block_on(client.post_or_busy(SNAPSHOTS))? {
            Ok(text) => return crate::client::json(&text),
            Err(busy) if begun.elapsed() > WAIT_MAX => return Err(busy),
            Err(busy) => {
                if !is_explained {
                    explain(&busy, &runtime.block_on(client.get(SNAPSHOTS)).unwrap_or_default());
                    is_explained = true;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Prints what the command waits for. `listed` is the server's list of snapshots.
fn explain(busy: &Failure, listed: &Value) {
    let now = jiff::Timestamp::now();
    let after =
        |seconds: u64| format!("{:.0}", now.saturating_add(Duration::from_secs(seconds)).unwrap_or(now));
    let leases = ask::list(&listed["data"], "snapshots").iter();
    let first = leases.filter_map(|snapshot| snapshot["lease_seconds"].as_u64()).min();
    let first = first.map_or(String::new(), |seconds| {
        format!("; if their backups were killed, the first snapshot ends at {}", after(seconds))
    });
    eprintln!("waiting until {} at the latest: {}{first}", after(WAIT_MAX.as_secs()), busy.message());
}

fn source(directory: &Path, answer: &Value) -> Result<Source, Failure> {
    let files = ask::list(answer, "files").iter();
    let file = |file: &Value| SourceFile {
        name: ask::text(file, "name").to_owned(),
        bytes: ask::number(file, "bytes"),
    };
    let time = ask::text(answer, "time").parse().ok();
    let time = time.and_then(|ns: i64| jiff::Timestamp::from_nanosecond(ns.into()).ok());
    let time = time.ok_or_else(|| Failure::new("the snapshot of the server has no time"))?;
    let place = (ask::number(answer, "generation"), ask::number(answer, "offset"));
    Source::snapshot(directory, files.map(file).collect(), place, time).map_err(Failure::new)
}

impl Lease {
    fn keep(runtime: &Runtime, client: Arc<Client>, path: String, lease: Duration) -> Self {
        let lost = Arc::new(Mutex::new(None));
        let (renewed, told, renew) = (client.clone(), lost.clone(), format!("{path}/renew"));
        let renewal = runtime.spawn(async move {
            loop {
                tokio::time::sleep(lease / 6).await;
                // Only a refusal ends the backup. After another failure the backup continues, because the hard links of the
                // snapshot exist even after the server has ended.
                if let Ok(Some(refusal)) = renewed.post_or_refused(&renew).await {
                    *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
                    return;
                }
            }
        });
        Self { client, path, lost, renewal }
    }

    fn check(&self) -> Result<(), Error> {
        match &*self.lost.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(why) => Err(Error::new(ErrorKind::Unavailable, format!("snapshot is lost: {why}"))),
            None => Ok(()),
        }
    }

    /// If the request does not reach the server, the server removes the snapshot anyway: when the lease ends, or at the next
    /// start.
    fn release(self, runtime: &Runtime) {
        self.renewal.abort();
        let _ = runtime.block_on(self.client.delete(&self.path));
    }
}
