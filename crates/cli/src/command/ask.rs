//! Common parts of the commands that query a server or read a data directory: the address, the time range, checks of the
//! directory, and printing.

use std::convert::Infallible;
use std::fmt;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use indicatif::ProgressBar;
use jiff::Timestamp;
use serde_json::Value;
use tacho_api::json::float;
use tacho_api::printable::printable;
use tacho_api::{time, units};
use tacho_query::promql;
use tacho_store::ErrorKind;

use crate::client::{self, Client, Named, SERVER_VARIABLE};
use crate::failure::Failure;
use crate::terminal::progress;

/// Timeout of a request for a hint. Longer than the server's time limit for `/api/v1/matched`, 1 s.
const HINT_TIME_MAX: Duration = Duration::from_secs(2);

/// The server of a command.
#[derive(clap::Args)]
pub struct Server {
    /// The server to ask, http or https [env: TACHO_URL] [default: http://127.0.0.1:7070]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    token: Token,
}

/// The token of a command. The text of a token is never an argument, because other users can read arguments.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Token {
    /// File with the token for the server [env: TACHO_TOKEN (the token itself), TACHO_TOKEN_FILE]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

const SERVER_DEFAULT: &str = "http://127.0.0.1:7070";

/// An empty variable counts as unset.
pub fn server_of_environment() -> Option<String> {
    std::env::var(SERVER_VARIABLE).ok().filter(|url| !url.is_empty())
}

/// The address of the server: `--server`, else [`SERVER_VARIABLE`], else the default address on this machine.
pub fn server_url(flag: Option<&str>) -> String {
    flag.map(str::to_owned).or_else(server_of_environment).unwrap_or_else(|| SERVER_DEFAULT.to_owned())
}

pub fn client(flag: Option<&str>, token: &Token) -> Result<Client, Failure> {
    let named = match flag {
        Some(_) => Named::Flag,
        None if server_of_environment().is_some() => Named::Variable,
        None => Named::Default,
    };
    let token = client::token::Token::of_command(token.token_file.as_deref())?;
    let client = Client::new(&server_url(flag), named, token);
    if let Some(address) = client.as_ref().ok().and_then(Client::exposes_token_to) {
        // A command may create several clients of the same server.
        static WARNED: Once = Once::new();
        WARNED.call_once(|| eprintln!("warning: the token is sent to {address} without TLS: use https://"));
    }
    client
}

/// The time range: --end, and either --last or --start.
#[derive(clap::Args)]
pub struct Span {
    /// Length of the range that ends now (or at --end), for example 15m [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true,
        conflicts_with = "start")]
    last: Option<i64>,
    /// Start: Unix seconds, RFC 3339, a date (UTC), or a time before now such as -2h
    #[arg(long, visible_alias = "from", value_name = "TIME", value_parser = instant, allow_hyphen_values = true)]
    start: Option<i64>,
    /// End: Unix seconds, RFC 3339, a date (UTC), or a time before now such as -2h [default: now]
    #[arg(long, visible_alias = "to", value_name = "TIME", value_parser = instant, allow_hyphen_values = true)]
    end: Option<i64>,
}

/// The time range; by default all of time.
#[derive(clap::Args)]
pub struct Ends {
    /// Start: Unix seconds, RFC 3339, a date (UTC), or a time before now such as -2h [default: all]
    #[arg(long, visible_alias = "from", value_name = "TIME", value_parser = instant, allow_hyphen_values = true)]
    pub start: Option<i64>,
    /// End: Unix seconds, RFC 3339, a date (UTC), or a time before now such as -2h [default: all]
    #[arg(long, visible_alias = "to", value_name = "TIME", value_parser = instant, allow_hyphen_values = true)]
    pub end: Option<i64>,
}

impl Ends {
    pub fn params(&self) -> [(&'static str, Option<String>); 2] {
        [("start", self.start.map(seconds)), ("end", self.end.map(seconds))]
    }
}

/// A time range with both ends, ns.
#[derive(Clone, Copy)]
pub struct Range {
    pub start: i64,
    pub end: i64,
}

/// Default length of a [`Span`].
pub const LAST_NS: i64 = 3_600_000_000_000;

impl Span {
    pub const fn is_given(&self) -> bool {
        self.last.is_some() || self.start.is_some() || self.end.is_some()
    }

    /// # Errors
    /// If the range ends before it begins.
    pub fn range(&self) -> Result<Range, Failure> {
        let end = self.end.unwrap_or_else(now);
        let start = self.start.unwrap_or_else(|| end.saturating_sub(self.last.unwrap_or(LAST_NS)));
        if start > end {
            return Err(Failure::usage(format!("--start {} is after the end, {}", at(start), at(end))));
        }
        Ok(Range { start, end })
    }
}

/// Unix time by this machine's clock, ns.
pub fn now() -> i64 {
    i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

impl Range {
    pub fn params(self) -> [(&'static str, String); 2] {
        [("start", seconds(self.start)), ("end", seconds(self.end))]
    }

    /// The options of a command for exactly this range.
    pub fn options(self) -> String {
        format!("--start {} --end {}", seconds(self.start), seconds(self.end))
    }
}

/// For example `from 2026-01-31T12:00:00.000Z to 2026-01-31T13:00:00.000Z`.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from {} to {}", at(self.start), at(self.end))
    }
}

impl Server {
    pub fn client(&self) -> Result<Client, Failure> {
        client(self.server.as_deref(), &self.token)
    }

    /// Requests `path`, and prints the warnings of the response.
    pub fn get<'a>(
        &self,
        path: &str,
        params: impl IntoIterator<Item = (&'a str, Option<String>)>,
    ) -> Result<Value, Failure> {
        let text = self.get_text(path, params)?;
        let answer = client::json(&text)?;
        warn(&answer);
        Ok(answer)
    }

    /// Like [`Self::get`], for a hint: prints no warnings, and returns `None` if the request fails or exceeds [`HINT_TIME_MAX`].
    pub fn get_for_hint<'a>(
        &self,
        path: &str,
        params: impl IntoIterator<Item = (&'a str, Option<String>)>,
    ) -> Option<Value> {
        let params: Vec<(&str, Option<String>)> = params.into_iter().collect();
        let path = client::path(path, params.iter().map(|(name, value)| (*name, value.as_deref())));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let client = self.client().ok()?;
        let answer = runtime.block_on(async { tokio::time::timeout(HINT_TIME_MAX, client.get(&path)).await });
        answer.ok()?.ok()
    }

    pub fn get_text<'a>(
        &self,
        path: &str,
        params: impl IntoIterator<Item = (&'a str, Option<String>)>,
    ) -> Result<String, Failure> {
        let params: Vec<(&str, Option<String>)> = params.into_iter().collect();
        let path = client::path(path, params.iter().map(|(name, value)| (*name, value.as_deref())));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::new)?;
        runtime.block_on(followed(self.client()?, self.client()?, &path))
    }
}

/// The time after which the progress of a request is shown, and between two looks at it.
const LOOK: Duration = Duration::from_secs(1);
/// Length of the bar, in percent.
const BAR_LENGTH: u64 = 100;

/// Sends the request with `client`. If it takes long and stderr is a terminal, shows the progress, which `watching` asks for.
async fn followed(mut client: Client, watching: Client, path: &str) -> Result<String, Failure> {
    if !io::stderr().is_terminal() {
        return client.get_text(path).await;
    }
    let id = format!("cli-{}-{}", std::process::id(), now());
    client.set_query(id.clone());
    tokio::select! {
        answer = client.get_text(path) => answer,
        never = watch(&watching, &id) => match never {},
    }
}

/// Shows the progress of the query with this id, until this is dropped.
async fn watch(watching: &Client, id: &str) -> Infallible {
    let mut shown = Shown(None);
    loop {
        tokio::time::sleep(LOOK).await;
        // A server that does not answer reports no progress, for example because it is older.
        let Ok(running) = watching.get("/api/queries").await else { continue };
        let own = list(&running["data"], "queries").iter().find(|query| text(query, "id") == id);
        if let Some(query) = own {
            shown.show(&query["progress"]);
        }
    }
}

/// A progress bar that is removed when this is dropped.
struct Shown(Option<ProgressBar>);

impl Shown {
    fn show(&mut self, progress: &Value) {
        let bar = self.0.get_or_insert_with(|| progress::bar(BAR_LENGTH, "computing"));
        // The cast is saturating.
        bar.set_position((BAR_LENGTH as f64 * float(progress, "done")) as u64);
        bar.set_message(progress_text(progress).unwrap_or_default());
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// For example `43 % of pass 2, 12,345,678 calls read`. `None` before the first pass.
pub fn progress_text(progress: &Value) -> Option<String> {
    let pass = match number(progress, "pass") {
        0 => return None,
        1 => String::new(),
        pass => format!(" of pass {pass}"),
    };
    let percent = 100.0 * float(progress, "done");
    Some(format!("{percent:.0} %{pass}, {} calls read", units::count(number(progress, "calls"))))
}

/// # Errors
/// If there is no data directory at this path, or the path cannot be inspected.
pub fn check_data_directory(data: &Path) -> Result<(), Failure> {
    let data_display = data.display();
    match std::fs::metadata(data.join("chunks")) {
        Ok(chunks) if chunks.is_dir() => Ok(()),
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Err(Failure::new(format!("cannot read {data_display}: {error}"))
                .hint("only the user that runs the server can read its data directory"))
        }
        Ok(_) => Err(Failure::usage(format!(
            "{data_display} is not a data directory: {} is not a directory",
            data.join("chunks").display()
        ))),
        Err(_) => {
            check_exists(data)?;
            Err(Failure::usage(format!("{data_display} is not a data directory: it has no chunks/")))
        }
    }
}

/// # Errors
/// If nothing exists at this path.
pub fn check_exists(data: &Path) -> Result<(), Failure> {
    match std::fs::symlink_metadata(data) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::usage(format!("{} does not exist", data.display())))
        }
        _ => Ok(()),
    }
}

/// Like [`check_data_directory`], but also accepts a data directory without a directory `chunks/`, if it has journals.
pub fn check_damaged_directory(data: &Path) -> Result<(), Failure> {
    let is_journal = |entry: io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.path().extension().is_some_and(|extension| extension == "journal"))
    };
    let chunks = std::fs::symlink_metadata(data.join("chunks"));
    // If the directory cannot be read, `check_data_directory` reports the cause.
    let has_chunks = match chunks {
        Ok(found) => found.is_dir() || data.join("chunks").is_dir(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    let has_journals = || std::fs::read_dir(data.join("journal")).is_ok_and(|mut all| all.any(is_journal));
    if !has_chunks && has_journals() { Ok(()) } else { check_data_directory(data) }
}

/// Whether a path is the directory itself or is below it. The last parts of the path need not exist.
pub fn is_inside(path: &Path, directory: &Path) -> bool {
    let (Ok(path), Ok(directory)) = (std::path::absolute(path), directory.canonicalize()) else {
        return false;
    };
    let existing = path.ancestors().find_map(|above| above.canonicalize().ok());
    existing.is_some_and(|existing| existing.starts_with(directory))
}

/// The data directory that a path is below, if there is one. The last parts of the path need not exist.
pub fn data_directory_around(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let existing = path.parent()?.ancestors().find_map(|above| above.canonicalize().ok())?;
    // Another program may also have a directory named `chunks`, so the files in it decide.
    let is_data = |directory: &&Path| {
        ["LOCK", "MANIFEST"].iter().any(|name| directory.join("chunks").join(name).is_file())
    };
    existing.ancestors().find(is_data).map(Path::to_owned)
}

/// The hint if this process cannot open a data directory for writing, because another process has opened it for reading.
pub const OF_READER: &str = "a command reads the directory, for example `tacho backup create` while no server runs: wait \
     until it has ended, or stop it";

pub fn unreadable(data: &Path, error: &tacho_store::Error) -> Failure {
    let failure = Failure::new(format!("cannot read {}: {error}", data.display()));
    match error.kind() {
        ErrorKind::Locked => failure.hint("a server is using it: ask that server with --server"),
        ErrorKind::Version => failure.hint("use the newer tacho that wrote it"),
        ErrorKind::Corrupt => failure.hint(damage_hint(data)),
        _ => failure,
    }
}

pub fn damage_hint(data: &Path) -> String {
    let data = data.display();
    format!(
        "`tacho check {data}` names all that is damaged or missing; restore a backup with `tacho restore`, or copy the \
         readable records with `tacho repair {data} --into NEW`"
    )
}

const SERVICES_NAMED_MAX: usize = 20;

/// Called after an empty response. Fails if no call of `service` is recorded in the range, and names the recorded services.
pub fn check_service(server: &Server, service: Option<&str>, range: Range) -> Result<(), Failure> {
    let Some(service) = service else { return Ok(()) };
    let in_range = || range.params().map(|(name, value)| (name, Some(value)));
    let own = in_range().into_iter().chain([("service", Some(service.to_owned()))]);
    if !list(&server.get("/api/services", own)?, "services").is_empty() {
        return Ok(());
    }
    let answer = server.get("/api/services", in_range())?;
    let known: Vec<&str> = list(&answer, "services").iter().map(|one| text(one, "service")).collect();
    let none =
        "no service at all is recorded in this range: is an agent running? --last 7d looks further back";
    Err(unknown_service(service, &range.to_string(), &known, none))
}

/// The failure for an unknown service. `place` is the end of the message, such as `from ... to ...`. `none` is the hint if
/// `known` is empty.
pub fn unknown_service(service: &str, place: &str, known: &[&str], none: &str) -> Failure {
    let failure = Failure::new(format!("no service {service:?} {place}"));
    match known.len() {
        0 => failure.hint(none),
        count => {
            let named = known.iter().take(SERVICES_NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
            let more = count.saturating_sub(SERVICES_NAMED_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            failure.hint(format!("known services: {named}{more}"))
        }
    }
}

/// Called after an empty response. Fails if no call of `operation` is recorded in the range. If `service` is given, only calls of
/// this service count. The hint names similar operations.
pub fn check_operation(
    server: &Server,
    operation: Option<&str>,
    service: Option<&str>,
    range: Range,
) -> Result<(), Failure> {
    let Some(operation) = operation else { return Ok(()) };
    let params = range.params().map(|(name, value)| (name, Some(value)));
    let params = params.into_iter().chain([("service", service.map(str::to_owned))]);
    let answer = server.get("/api/operations", params)?;
    let known: Vec<&str> = list(&answer, "operations").iter().map(|one| text(one, "operation")).collect();
    if known.contains(&operation) {
        return Ok(());
    }
    let failure = Failure::new(format!("no operation {operation:?} {range}"));
    let similar = promql::similar_among(operation, known.into_iter());
    Err(failure.hint(match similar.is_empty() {
        false => format!("--operation needs the whole name; similar: {}", similar.join(", ")),
        true => "--operation needs the whole name, as `tacho operations` lists it".into(),
    }))
}

/// Converts ns to decimal seconds, exactly.
pub fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Formats a time of a response (a string of ns) as UTC with milliseconds.
pub fn utc(ns: &Value) -> String {
    at(ns.as_str().and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// Formats a time in ns as UTC with milliseconds.
pub fn at(ns: i64) -> String {
    format!("{:.3}", Timestamp::from_nanosecond(ns.into()).unwrap_or_default())
}

pub fn warn(answer: &Value) {
    for warning in list(answer, "warnings") {
        eprintln!("warning: {}", printable(warning.as_str().unwrap_or("")));
    }
    for info in list(answer, "infos").iter().filter_map(Value::as_str) {
        eprintln!("info: {}", printable(info.strip_prefix("PromQL info: ").unwrap_or(info)));
    }
}

pub fn print_json(value: &Value) {
    println!("{value:#}");
}

/// Empty if absent.
pub fn list<'a>(answer: &'a Value, name: &str) -> &'a [Value] {
    answer[name].as_array().map_or(&[], Vec::as_slice)
}

/// Empty if absent.
pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}

/// 0 if absent.
pub fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(0)
}

/// 0 if absent. May be NaN or infinite.
pub fn float(value: &Value, name: &str) -> f64 {
    value.get(name).and_then(float::read).unwrap_or(0.0)
}

/// Parses a duration with a unit, such as `5m`. Returns ns.
///
/// # Errors
/// When the text is not a duration with a unit, or the duration is not between 0 and 292 years.
pub fn duration(text: &str) -> Result<i64, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(format!("it has no unit: write {text}ms, {text}s or {text}m"));
    }
    time::parse_duration_with_unit(text).ok_or_else(|| {
        if time::is_too_long(text) {
            return "give a duration below 292y".into();
        }
        match time::is_duration_form(text.trim_start_matches('-')) {
            true => "give a duration above 0, for example 5m".into(),
            false => "give for example 100ms, 5m or 1h30m".into(),
        }
    })
}

/// Parses a whole number above 0.
pub fn at_least_one<N: std::str::FromStr + Default + PartialEq>(text: &str) -> Result<N, String> {
    let number: Option<N> = text.parse().ok();
    number.filter(|number| *number != N::default()).ok_or_else(|| "give a whole number from 1".into())
}

/// Like [`duration`], for the time that this process waits.
pub fn wait(text: &str) -> Result<Duration, String> {
    duration(text).map(|ns| Duration::from_nanos(ns.unsigned_abs()))
}

/// Parses a moment: Unix seconds, RFC 3339, a date, or a time relative to now.
pub fn instant(text: &str) -> Result<i64, String> {
    time::parse_moment(text, now()).ok_or_else(|| {
        if time::is_out_of_range(text) {
            return format!("out of range: times are from {}", time::RANGE);
        }
        let is_span = time::parse_duration_with_unit(text).is_some();
        match is_span {
            true => format!("write -{text} or '{text} ago' for a time before now"),
            false => "give Unix seconds, RFC 3339 as 2026-01-31T12:00:00Z, a date as 2026-01-31 (UTC), or a time before \
                      now as -2h"
                .into(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        let no_unit = |text: &str| Err(format!("it has no unit: write {text}ms, {text}s or {text}m"));
        for text in ["100", "15", "0", "1.5"] {
            assert_eq!(duration(text), no_unit(text));
        }
        assert_eq!((duration("100ms"), duration("1h30m")), (Ok(100_000_000), Ok(5_400_000_000_000)));
        for (text, ms) in
            [("500ms", 500), ("30s", 30_000), ("2m", 120_000), ("1.5s", 1_500), ("1h", 3_600_000)]
        {
            assert_eq!(wait(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "m", "s", "-5s", "-1s", "5q", "3 days", "1e400s", "1e3"] {
            assert!(duration(text).is_err_and(|error| error.starts_with("give ")), "{text}");
        }
        for text in ["300y", "9999999999999999y", "293y1d"] {
            assert_eq!(duration(text), Err("give a duration below 292y".into()), "{text}");
        }
        for text in ["0s", "0m0s", "0.0ms", "-15m", "-1h30m", "-0s", "-300y"] {
            assert_eq!(duration(text), Err("give a duration above 0, for example 5m".into()), "{text}");
        }
    }

    #[test]
    fn times_are_formatted_as_exact_seconds_and_as_utc() {
        assert_eq!(seconds(1_700_000_000_123_456_789), "1700000000.123456789");
        assert_eq!(seconds(-1_500_000_000), "-1.500000000");
        assert_eq!(utc(&"1700000000123456789".into()), "2023-11-14T22:13:20.123Z");
    }
}
