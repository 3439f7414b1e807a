//! `tacho token`: makes, lists, shows and revokes tokens in the file `tokens` of a data directory. A running server reads this
//! file again when it changes.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};
use tacho_api::time::{parse_duration_with_unit, parse_moment};
use tacho_server::access::token::{Limits, Record, Role};
use tacho_server::access::{file, note_command};

use super::ask;
use crate::failure::Failure;
use crate::terminal::table::{Align, Table};

/// Make, list and revoke the tokens that the server requires
///
/// From the first token on, the server requires a valid token, except for /healthz, /readyz and the files of the page. Run the
/// command on the machine and as the user of the server. A running server applies a change within a second.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho token add admin --role admin
  tacho token add prometheus --role write
  tacho token add team-a --role read --match '{team=\"a\"}' --expires 90d
  tacho token list
  tacho token revoke team-a")]
pub struct Token {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Add(Add),
    List(List),
    Show(Show),
    Revoke(Revoke),
}

#[derive(clap::Args)]
struct Data {
    /// Data directory of the server [env: TACHO_DATA] [default: ./tacho-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Make a token, and print it
///
/// Standard output gets only the token. The token is shown once, because the file of tokens has only its hash.
#[derive(clap::Args)]
struct Add {
    /// Name of the token, for the audit log and the list: at most 64 letters, digits, hyphens, underscores and dots
    name: String,
    /// Permission: write, read or admin (everything); read and write can be combined: --role read,write
    #[arg(long = "role", value_name = "ROLE", required = true, value_delimiter = ',')]
    roles: Vec<Role>,
    /// Confine the token to series: a PromQL selector; only for read and write
    #[arg(long = "match", value_name = "SELECTOR")]
    selector: Option<String>,
    /// Time after which the token is refused: a duration from now (90d), a date (UTC) or RFC 3339 [default: never]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    expires: Option<String>,
    /// Limit on the distinct series that are written with the token within 24 hours
    #[arg(long, value_name = "N")]
    series_max: Option<u64>,
    /// Limit on the samples, entries and calls that are written with the token per second
    #[arg(long, value_name = "N")]
    samples_per_second_max: Option<u64>,
    /// Limit on the samples that one query with the token reads
    #[arg(long, value_name = "N")]
    query_samples_max: Option<u64>,
    /// Limit on the agents that are connected with the token at the same time
    #[arg(long, value_name = "N")]
    sessions_max: Option<u64>,
    #[command(flatten)]
    data: Data,
}

/// List the tokens
#[derive(clap::Args)]
struct List {
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: Data,
}

/// Show one token as JSON
#[derive(clap::Args)]
struct Show {
    /// Name of the token, as `tacho token list` prints it
    name: String,
    #[command(flatten)]
    data: Data,
}

/// Revoke a token
#[derive(clap::Args)]
struct Revoke {
    /// Name of the token, as `tacho token list` prints it
    name: String,
    #[command(flatten)]
    data: Data,
}

impl Token {
    pub fn run(self) -> Result<(), Failure> {
        match self.action {
            Action::Add(add) => add.run(),
            Action::List(list) => list.run(),
            Action::Show(show) => show.run(),
            Action::Revoke(revoke) => revoke.run(),
        }
    }
}

impl Data {
    fn path(&self) -> PathBuf {
        let variable = || std::env::var_os("TACHO_DATA").filter(|value| !value.is_empty()).map(PathBuf::from);
        self.data.clone().or_else(variable).unwrap_or_else(|| "tacho-data".into())
    }

    fn records(&self) -> Result<Vec<Record>, Failure> {
        let data = self.path();
        ask::check_exists(&data).map_err(|absent| {
            absent.hint("name the data directory of the server with --data or TACHO_DATA")
        })?;
        file::list(&data).map_err(Failure::new)
    }

    fn record(&self, name: &str) -> Result<Record, Failure> {
        let found = self.records()?.into_iter().find(|record| record.name == name);
        found.ok_or_else(|| unknown(name, &self.path()))
    }
}

fn unknown(name: &str, data: &Path) -> Failure {
    Failure::new(format!("there is no token {name:?} in {}", data.display()))
        .hint("`tacho token list` lists the tokens; --data names another data directory")
}

impl Add {
    fn run(self) -> Result<(), Failure> {
        let now = Timestamp::now();
        let expires = self.expires.as_deref().map(|text| expiry(text, now)).transpose()?;
        let limits = Limits {
            series: self.series_max,
            samples_per_second: self.samples_per_second_max,
            query_samples: self.query_samples_max,
            sessions: self.sessions_max,
        };
        let times = (seconds(now), expires);
        let (record, text) =
            Record::new(&self.name, (self.roles, self.selector), limits, times).map_err(Failure::usage)?;
        let data = self.data.path();
        let is_empty = !["chunks", "journal"].iter().any(|name| data.join(name).exists());
        let count = file::change(&data, |all| {
            if all.iter().any(|other| other.name == record.name) {
                return Err(format!(
                    "there is a token {:?} already: revoke it, or choose another name",
                    record.name
                ));
            }
            all.push(record);
            Ok(all.len())
        })
        .map_err(Failure::new)?;
        note_command(&data, "token added", &self.name, nanoseconds(now)?);
        println!("{text}");
        eprintln!("token {:?} added to {}; it is shown only once", self.name, file::path(&data).display());
        if count == 1 {
            eprintln!(
                "from now on a server with this directory requires a token, except for /healthz, /readyz and the files of \
                 the page"
            );
        }
        if is_empty {
            let data = data.display();
            eprintln!(
                "warning: no server has used {data} so far: --data must name the directory of the server"
            );
        }
        Ok(())
    }
}

/// Parses a duration from now, or a time. Refuses a time in the past, because the server would never accept the token.
fn expiry(text: &str, now: Timestamp) -> Result<String, Failure> {
    let wrong =
        || Failure::usage(format!("--expires {text:?} is not a time after now, such as 90d or 2027-01-31"));
    let now_ns = nanoseconds(now)?;
    let at = match parse_duration_with_unit(text) {
        Some(duration) => now_ns.checked_add(duration),
        None => parse_moment(text, now_ns),
    };
    let at = at.filter(|at| *at > now_ns).ok_or_else(wrong)?;
    Ok(seconds(Timestamp::from_nanosecond(at.into()).map_err(Failure::new)?))
}

fn nanoseconds(at: Timestamp) -> Result<i64, Failure> {
    i64::try_from(at.as_nanosecond()).map_err(Failure::new)
}

fn seconds(at: Timestamp) -> String {
    format!("{at:.0}")
}

impl List {
    fn run(self) -> Result<(), Failure> {
        let records = self.data.records()?;
        if let file::Found::Broken(cause) = file::read(&self.data.path()) {
            eprintln!("warning: the server refuses every request that needs a token: {cause}");
        }
        let now = nanoseconds(Timestamp::now())?;
        if self.json {
            ask::print_json(&records.iter().map(shown).collect::<Value>());
            return Ok(());
        }
        if records.is_empty() {
            println!("there are no tokens in {}", self.data.path().display());
            return Ok(());
        }
        let mut table =
            Table::new(["NAME", "ROLES", "SERIES", "EXPIRES", "LIMITS"].map(|name| (name, Align::Left)));
        for record in &records {
            let roles: Vec<&str> = record.roles.iter().map(|role| role.name()).collect();
            let expires = match &record.expires {
                None => "never".to_owned(),
                Some(at) if record.is_expired(now) => format!("{at} (expired)"),
                Some(at) => at.clone(),
            };
            table.row([
                record.name.clone(),
                roles.join(","),
                record.selector.clone().unwrap_or_else(|| "all".into()),
                expires,
                limits(&record.limits),
            ]);
        }
        print!("{table}");
        Ok(())
    }
}

fn limits(limits: &Limits) -> String {
    let all = [
        ("series", limits.series),
        ("samples/s", limits.samples_per_second),
        ("samples/query", limits.query_samples),
        ("sessions", limits.sessions),
    ];
    let set: Vec<String> = all.iter().filter_map(|(name, max)| Some(format!("{} {name}", (*max)?))).collect();
    if set.is_empty() { "none".into() } else { set.join(", ") }
}

/// A record without its hash.
fn shown(record: &Record) -> Value {
    json!({
        "name": record.name,
        "roles": record.roles,
        "match": record.selector,
        "limits": record.limits,
        "expires": record.expires,
        "created": record.created,
    })
}

impl Show {
    fn run(self) -> Result<(), Failure> {
        ask::print_json(&shown(&self.data.record(&self.name)?));
        Ok(())
    }
}

impl Revoke {
    fn run(self) -> Result<(), Failure> {
        let data = self.data.path();
        if let Err(failure) = self.data.record(&self.name) {
            // An earlier command may have revoked the token, and ended before the change was durable.
            let _ = file::sync(&data);
            return Err(failure);
        }
        let left = file::change(&data, |all| {
            let before = all.len();
            all.retain(|record| record.name != self.name);
            if all.len() == before {
                Err(format!("there is no token {:?}", self.name))
            } else {
                Ok(all.len())
            }
        })
        .map_err(Failure::new)?;
        note_command(&data, "token revoked", &self.name, nanoseconds(Timestamp::now())?);
        println!("token {:?} revoked", self.name);
        if left == 0 {
            eprintln!(
                "warning: no token is left, so the server refuses every request that needs a token; `tacho token add` makes one"
            );
        }
        Ok(())
    }
}
