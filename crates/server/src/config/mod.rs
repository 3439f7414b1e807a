//! Configuration of the server: a file, the environment, flags. Flags override the environment, which overrides the file.
//!
//! Each source is read into a [`Settings`], in which all fields are optional. [`Config`] is the complete, validated result.
//! An error names the setting, what is allowed, and the place of a value from the file or the environment.
//!
//! The libraries config 0.15 and figment 0.10 are not used. Neither reports the line of a wrong value in the file, and both
//! refuse `TACHO_` variables of agents in the same environment.

mod address;
mod environment;
mod error;
mod file;
pub(crate) mod memory;
mod policy;
mod settings;
mod wording;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tacho_store::policy::Policies;
use tacho_store::{ClockBounds, Options};

pub use address::Address;
pub use error::ConfigError;
pub use settings::Settings;

use crate::{access, tls};

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub data: PathBuf,
    pub http: Address,
    pub records: Address,
    pub allowed_hosts: Vec<String>,
    /// Certificates of both listeners. `None` disables TLS.
    pub tls: Option<tls::Files>,
    pub body_bytes_max: usize,
    pub decoding_bytes_max: usize,
    pub answer_bytes_max: usize,
    pub requests_max: usize,
    pub connections_max: usize,
    pub request_time_max: Duration,
    /// Memory limit of the results of range queries that are kept. 0 disables the cache.
    pub query_cache_bytes_max: usize,
    /// Interval at which the server stores its own metrics. `None` disables this.
    pub selfwatch: Option<Duration>,
    /// Permits an exposed server ([`Config::is_exposed`]).
    pub insecure_listen: bool,
    /// Permits a start without tokens in a data directory that had tokens.
    pub without_tokens: bool,
    pub history: History,
}

impl Config {
    /// Whether other machines can use an address without TLS, or without authentication by a certificate or a token.
    pub fn is_exposed(&self, has_tokens: bool) -> bool {
        let is_reachable = !self.http.is_loopback() || !self.records.is_loopback();
        is_reachable && !self.is_safe(has_tokens)
    }

    fn check_addresses(&self) -> Result<(), ConfigError> {
        if self.http == self.records && self.http.0.port() != 0 {
            return Err(ConfigError::OneAddress { address: self.http });
        }
        let has_tokens = access::file::is_used(&self.data);
        if self.is_safe(has_tokens) || self.insecure_listen {
            return Ok(());
        }
        let remedy = self.remedy(has_tokens);
        let reachable =
            [("http", self.http), ("records", self.records)].into_iter().find(|(_, at)| !at.is_loopback());
        reachable.map_or(Ok(()), |(key, address)| Err(ConfigError::Exposed { key, address, remedy }))
    }

    fn is_safe(&self, has_tokens: bool) -> bool {
        self.tls.as_ref().is_some_and(|files| has_tokens || files.client_ca.is_some())
    }

    fn remedy(&self, has_tokens: bool) -> &'static str {
        match (self.tls.is_some(), has_tokens) {
            (true, _) => "add a token (`tacho token add`) or set tls-client-ca",
            (false, true) => "set tls-cert and tls-key",
            (false, false) => {
                "set tls-cert and tls-key, and add a token (`tacho token add`) or set tls-client-ca"
            }
        }
    }

    pub fn exposure(&self, has_tokens: bool) -> String {
        let lack = match (self.tls.is_some(), has_tokens) {
            (false, true) => "tokens and records can be read on the network, because there is no TLS",
            (false, false) => {
                "everyone in the network may read, write and delete everything, and there is no TLS"
            }
            (true, _) => "everyone in the network may read, write and delete everything",
        };
        format!("insecure_listen is set: {lack}")
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct History {
    pub series_max: usize,
    pub index_bytes_max: usize,
    pub label_values_max: usize,
    pub chunks_max: usize,
    pub merge_bytes_per_second: u64,
    pub merge_cpu_percent: u32,
    pub merge_rows: usize,
    pub disk_reserve_bytes: u64,
    pub stop_journal_bytes: u64,
    pub sweep_every: Duration,
    pub policies: Arc<Policies>,
}

impl History {
    /// The options of the store. Options without a setting have their defaults, except `clock_bounds` and `sweep_first`.
    pub fn options(&self) -> Options {
        Options {
            series_max: self.series_max,
            index_bytes_max: self.index_bytes_max,
            label_values_max: self.label_values_max,
            chunks_max: self.chunks_max,
            merge_bytes_per_second: self.merge_bytes_per_second,
            merge_cpu_percent: self.merge_cpu_percent,
            merge_rows: self.merge_rows,
            disk_reserve_bytes: self.disk_reserve_bytes,
            stop_journal_bytes: self.stop_journal_bytes,
            clock_bounds: Some(ClockBounds::default()),
            sweep_first: self.sweep_every.min(Options::default().sweep_first),
            sweep_every: self.sweep_every,
            policies: self.policies.clone(),
            ..Options::default()
        }
    }
}

/// Default disk reserve: the size of one segment file of the embedded driver. Rewriting a segment file takes up to this space
/// before the old file is deleted.
const DISK_RESERVE_BYTES: u64 = 256 << 20;
/// Default limit on an HTTP body, the same as in VictoriaMetrics (`-maxInsertRequestSize`, 32 MiB).
const BODY_BYTES_MAX: usize = 32 << 20;
const DECODING_BYTES_MAX: usize = 1 << 30;
/// Default memory budget of answers that are being sent, bytes: enough for two of the largest PromQL answers.
const ANSWER_BYTES_MAX: usize = 512 << 20;
/// Default memory limit of the cache of query results, bytes: some 100 panels with 40,000 points each.
const QUERY_CACHE_BYTES_MAX: usize = 64 << 20;
/// The default of a setting is at most the usable memory divided by the share of the setting. `BODY_SHARE` is large for two
/// reasons: 16 of the largest bodies fit into the budget for bodies, and the records of one body may take 48 times its size plus
/// 16 MiB.
const BODY_SHARE: usize = 256;
const DECODING_SHARE: usize = 4;
const ANSWER_SHARE: usize = 16;
const QUERY_CACHE_SHARE: usize = 64;
const INDEX_SHARE: usize = 4;
const CHUNK_SHARE: usize = 4;
/// Memory of a chunk in the embedded driver, bytes: 200 for its key, and another 200 while a segment file is sealed or opened.
const CHUNK_KEY_BYTES: usize = 400;
/// Limits on the interval between two sweeps. 0 s means the minimum. Adding more than the maximum to a clock could overflow.
const SWEEP_MIN: Duration = Duration::from_millis(20);
const SWEEP_MAX: Duration = Duration::from_secs(365 * 86_400);

impl Settings {
    fn policies(&mut self) -> Result<Policies, ConfigError> {
        let (retention, downsampling) = (self.retention.take(), self.downsampling.take());
        let (semantic, chunks) = (self.semantic.take(), self.chunks.take());
        policy::Sections { retention, downsampling, semantic, chunks }.policies()
    }

    fn tls(&mut self) -> Result<Option<tls::Files>, ConfigError> {
        let half = |given, missing: &str| Err(ConfigError::HalfTls { given, missing: missing.into() });
        match (self.tls_cert.take(), self.tls_key.take(), self.tls_client_ca.take()) {
            (None, None, None) => Ok(None),
            (Some(cert), Some(key), client_ca) => Ok(Some(tls::Files { cert, key, client_ca })),
            (Some(_), None, _) => half("tls-cert", "tls-key"),
            (None, Some(_), _) => half("tls-key", "tls-cert"),
            (None, None, Some(_)) => half("tls-client-ca", "tls-cert and tls-key"),
        }
    }

    fn complete(mut self) -> Result<Config, ConfigError> {
        let (policies, tls) = (Arc::new(self.policies()?), self.tls()?);
        let usual = Options::default();
        let merge_bytes = self.merge_bytes_per_second.unwrap_or(usual.merge_bytes_per_second);
        if merge_bytes == 0 {
            return Err(ConfigError::Zero { key: "merge-bytes-per-second" });
        }
        let history = History {
            series_max: at_least_one("series-max", self.series_max.unwrap_or(usual.series_max))?,
            index_bytes_max: match self.index_bytes_max {
                Some(bytes) => at_least_one("index-bytes-max", bytes)?,
                None => memory::share(INDEX_SHARE, usual.index_bytes_max),
            },
            label_values_max: at_least_one(
                "label-values-max",
                self.label_values_max.unwrap_or(usual.label_values_max),
            )?,
            chunks_max: match self.chunks_max {
                Some(chunks) => at_least_one("chunks-max", chunks)?,
                None => memory::share(CHUNK_SHARE, usual.chunks_max * CHUNK_KEY_BYTES) / CHUNK_KEY_BYTES,
            },
            merge_bytes_per_second: merge_bytes,
            merge_cpu_percent: self.merge_cpu_percent.unwrap_or(usual.merge_cpu_percent).clamp(1, 100),
            merge_rows: at_least_one("merge-rows", self.merge_rows.unwrap_or(usual.merge_rows))?,
            disk_reserve_bytes: self.disk_reserve_bytes.unwrap_or(DISK_RESERVE_BYTES),
            stop_journal_bytes: self.stop_journal_bytes.unwrap_or(usual.stop_journal_bytes),
            sweep_every: self
                .sweep_seconds
                .map_or(usual.sweep_every, Duration::from_secs)
                .clamp(SWEEP_MIN, SWEEP_MAX),
            policies,
        };
        let config = Config {
            data: self.data.unwrap_or_else(|| "tacho-data".into()),
            http: self.http.unwrap_or(Address::loopback(7070)),
            records: self.records.unwrap_or(Address::loopback(7071)),
            allowed_hosts: self.allowed_hosts.unwrap_or_default(),
            tls,
            body_bytes_max: at_least_one(
                "body-bytes-max",
                self.body_bytes_max.unwrap_or_else(|| memory::share(BODY_SHARE, BODY_BYTES_MAX)),
            )?,
            decoding_bytes_max: at_least_one(
                "decoding-bytes-max",
                self.decoding_bytes_max.unwrap_or_else(|| memory::share(DECODING_SHARE, DECODING_BYTES_MAX)),
            )?,
            answer_bytes_max: at_least_one(
                "answer-bytes-max",
                self.answer_bytes_max.unwrap_or_else(|| memory::share(ANSWER_SHARE, ANSWER_BYTES_MAX)),
            )?,
            requests_max: at_least_one("requests-max", self.requests_max.unwrap_or(64))?,
            connections_max: at_least_one("connections-max", self.connections_max.unwrap_or(1_024))?,
            request_time_max: Duration::from_secs(self.request_seconds_max.unwrap_or(60)),
            query_cache_bytes_max: query_cache_bytes(self.query_cache_bytes_max),
            selfwatch: Some(Duration::from_secs(self.selfwatch_seconds.unwrap_or(10)))
                .filter(|d| !d.is_zero()),
            insecure_listen: self.insecure_listen.unwrap_or(false),
            without_tokens: self.without_tokens.unwrap_or(false),
            history,
        };
        if config.request_time_max.is_zero() {
            return Err(ConfigError::Zero { key: "request-seconds-max" });
        }
        config.check_addresses()?;
        Ok(config)
    }
}

fn query_cache_bytes(given: Option<usize>) -> usize {
    given.unwrap_or_else(|| memory::share(QUERY_CACHE_SHARE, QUERY_CACHE_BYTES_MAX))
}

fn at_least_one(key: &'static str, n: usize) -> Result<usize, ConfigError> {
    if n == 0 { Err(ConfigError::Zero { key }) } else { Ok(n) }
}

/// Merges the file, `environment` and `flags`. Without `file`, `TACHO_CONFIG` names the file. Without both, `./tacho.toml` is
/// read if it exists.
pub fn load(
    file: Option<PathBuf>,
    environment: impl IntoIterator<Item = (String, String)>,
    flags: Settings,
) -> Result<Config, ConfigError> {
    let from_environment = environment::read(environment)?;
    let file = file.or(from_environment.file);
    let (from_file, source) = match file {
        Some(path) => file::read(&path)?,
        None => file::read_if_there(file::DEFAULT.as_ref())?,
    };
    let (by_flag, by_variable) = (flags.given(), from_environment.settings.given());
    let config = flags.over(from_environment.settings).over(from_file).complete();
    config.map_err(|error| match error.key() {
        Some(key) if by_flag.contains(&key) => error,
        Some(key) if by_variable.contains(&key) => ConfigError::At {
            place: format!("environment variable {}", environment::name(key)),
            error: Box::new(error.in_file()),
        },
        _ => source.locate(error),
    })
}

/// Parses the rules in the text of a file. `path` is for messages.
pub fn rules(path: &Path, text: &str) -> Result<Policies, ConfigError> {
    let (mut settings, source) = file::parse(path, text.to_owned())?;
    settings.policies().map_err(|error| source.locate(error))
}

#[cfg(test)]
mod tests {
    use tacho_store::policy::Retention;

    use super::*;

    /// In the message of an error, `FILE` replaces the path of the file.
    fn check(file: &str, environment: &[(&str, &str)], flags: Settings) -> Result<Config, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tacho.toml");
        std::fs::write(&path, file).unwrap();
        let environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        load(Some(path.clone()), environment, flags)
            .map_err(|e| e.to_string().replace(&path.display().to_string(), "FILE"))
    }

    #[test]
    fn later_sources_take_precedence() {
        let file = "data = 'a'\nhttp = '127.0.0.1:1'\nrecords = '127.0.0.1:2'\n";
        let flags = Settings { records: Some(Address::loopback(9)), ..Settings::default() };
        let config =
            check(file, &[("TACHO_HTTP", "localhost:3"), ("TACHO_RECORDS", "[::1]:4")], flags).unwrap();
        assert_eq!(config.data, PathBuf::from("a"));
        assert_eq!(config.http, Address::loopback(3));
        assert_eq!(config.records, Address::loopback(9));
    }

    #[test]
    fn errors_name_value_and_place() {
        let fails = |file: &str, environment: &[(&str, &str)], expect: &[&str]| {
            let error = check(file, environment, Settings::default()).unwrap_err();
            for part in expect {
                assert!(error.contains(part), "{part:?} in {error}");
            }
            assert_eq!(error.lines().count(), 1, "{error}");
        };
        fails(
            "dta = 'x'",
            &[],
            &["FILE", "unknown key \"dta\"; did you mean \"data\"?", "line 1, column 1, "],
        );
        fails("\nhttp = 'here'", &[], &["FILE", "line 2", "\"here\" is not an address", "127.0.0.1:7070"]);
        fails(
            "http = '127.0.0.1:9'",
            &[("TACHO_RECORDS", "localhost:9")],
            &["http and records are both 127.0.0.1:9"],
        );
        let any = "http = '127.0.0.1:0'\nrecords = '127.0.0.1:0'";
        assert!(check(any, &[], Settings::default()).is_ok());
        fails("requests_max = -1", &[], &["FILE", "line 1", "`requests_max = -1`", "a whole number from 0"]);
        fails(
            "\n\nbody_bytes_max = '16MB'",
            &[],
            &[
                "line 3, column 18, ",
                "\"16MB\" is not allowed, expected a whole number from 0 without a unit",
            ],
        );
        fails("", &[("TACHO_REQUESTS_MAX", "abc")], &["TACHO_REQUESTS_MAX=\"abc\"", "a whole number from 0"]);
        fails("", &[("TACHO_SERIES_MAX", "-5")], &["TACHO_SERIES_MAX=\"-5\"", "a whole number from 0"]);
        fails("requests_max = 0", &[], &["configuration file FILE: line 1: requests_max is 0, at least 1"]);
        fails("\n\nmerge_bytes_per_second = 0", &[], &["FILE: line 3: merge_bytes_per_second is 0"]);
        fails(
            "series_max = 0",
            &[("TACHO_SERIES_MAX", "0")],
            &["environment variable TACHO_SERIES_MAX: series_max is 0, at least 1 is needed"],
        );
        fails("data =", &[], &["FILE", "line 1"]);
        fails("", &[("TACHO_HTTP", "x:y")], &["TACHO_HTTP=\"x:y\"", "is not an address"]);
        fails(
            "",
            &[("TACHO_INSECURE_LISTEN", "maybe")],
            &["TACHO_INSECURE_LISTEN=\"maybe\"", "true or false"],
        );
        fails("\nhttp = '0.0.0.0:7070'", &[], &["FILE: line 2: http 0.0.0.0:7070", "insecure-listen"]);
        let flags = Settings { requests_max: Some(0), ..Settings::default() };
        assert!(check("requests_max = 0", &[], flags).unwrap_err().starts_with("requests-max is 0"));
        let rules = "[[retention]]\nmatch = 'up'\nkeep = '1d'\n\n[[retention]]\nkeep = '30'\nmatch = 'up'\n";
        fails(rules, &[], &["configuration file FILE: line 6: rule 2 of [[retention]]: keep = \"30\""]);
        let inline = "retention = [{ match = 'up', keep = '1d' },\n  { keep = '1d', match = 'up{' }]\n";
        fails(inline, &[], &["FILE: line 2: rule 2 of [[retention]]: match = \"up{\""]);
    }

    #[test]
    fn times_between_sweeps_are_bounded() {
        let every = |seconds: u64| {
            let flags = Settings { sweep_seconds: Some(seconds), ..Settings::default() };
            check("", &[], flags).unwrap().history.sweep_every
        };
        assert_eq!([0, 60, u64::MAX].map(every), [SWEEP_MIN, Duration::from_secs(60), SWEEP_MAX]);
    }

    #[test]
    fn policy_rules_are_read_and_their_errors_name_the_key() {
        let good = r#"
            [[retention]]
            match = '{__name__=~"debug_.*"}'
            keep = "30d"
            [[retention]]
            match = '{service="shop"}'
            keep = "3d"
            summaries = "1y"
            [[downsampling]]
            match = '{job="node"}'
            after = "90d"
            step = "5m"
            [[semantic]]
            match = 'room_temperature'
            time = "200ms"
            value = "0.5%"
            [[chunks]]
            match = '{job="node"}'
            values = 16384
            compression = "zstd"
            codecs = ["ans", "constant"]
        "#;
        let policies = check(good, &[], Settings::default()).unwrap().history.policies;
        let counts = [policies.retention.len(), policies.downsampling.len(), policies.semantic.len()];
        assert_eq!((counts, policies.chunks.len()), ([2, 1, 1], 1));
        let day = 86_400 * 1_000_000_000;
        assert_eq!(policies.retention[0].then, Retention::of(30 * day));
        assert_eq!(policies.retention[1].then, Retention { keep: 3 * day, summaries: Some(365 * day) });

        let fails = |section: &str, lines: &str, expect: &[&str]| {
            let error = check(&format!("[[{section}]]\n{lines}"), &[], Settings::default()).unwrap_err();
            for part in expect {
                assert!(error.contains(part), "{part:?} in {error}");
            }
        };
        fails("retention", "match = 'up{'\nkeep = '1d'", &["rule 1 of [[retention]]", "match", "up{"]);
        fails("retention", "match = 'up'\nkeep = 'long'", &["keep = \"long\"", "90d"]);
        fails("retention", "match = 'up'\nkeep = '30'", &["keep = \"30\"", "unit"]);
        fails(
            "retention",
            "match = 'up'\nkeep = '3d'\nsummaries = '72h'",
            &["\"72h\"", "longer than keep, which is 3d"],
        );
        fails("retention", "match = 'up'\nkeep = '3d'\nsummaries = '365'", &["\"365\"", "unit"]);
        fails(
            "retention",
            "match = 'up'\nkep = '1d'",
            &["line 3, column 1, `kep = '1d'`: unknown key \"kep\"; did you mean \"keep\"?"],
        );
        fails("downsampling", "match = 'up'\nafter = '1d'\nstep = '5m'\nkeep = 'mode'", &["mode", "last"]);
        fails("semantic", "match = 'a_total'\nvalue = 0.1", &["a_total", "counter"]);
        fails("semantic", "match = 'a'\nvalue = '200%'", &["value = \"200%\"", "below 100%"]);
        fails("semantic", "match = 'a'\nvalue = -1.0", &["value = \"-1\"", "above 0"]);
        fails("semantic", "match = 'a'", &["permits no loss"]);
        fails("semantic", "match = 'a'\ntime = '1s'\nmethod = 'best'", &["best", "wavelet"]);
        fails("chunks", "match = 'a'\nvalues = 5", &["values = \"5\"", "128 to 65536"]);
        fails("chunks", "match = 'a'\ncompression = 'rar'", &["rar", "zstd"]);
        fails("chunks", "match = 'a'\ncodecs = ['pco', 'magic']", &["codecs = \"magic\"", "dictionary"]);
    }

    #[test]
    fn public_addresses_need_authentication_of_clients() {
        let with = |more: &str| check(&format!("records = '0.0.0.0:7071'\n{more}"), &[], Settings::default());
        assert!(with("insecure_listen = true").is_ok());
        let tls = "tls_cert = 'a'\ntls_key = 'b'\n";
        let error = with(tls).unwrap_err();
        assert!(
            error.contains("over TLS: add a token (`tacho token add`) or set tls-client-ca; or listen"),
            "{error}"
        );
        assert!(with("").unwrap_err().contains("over TLS: set tls-cert and tls-key, and add a token"));
        let config = with(&format!("{tls}tls_client_ca = 'c'")).unwrap();
        let files = tls::Files { cert: "a".into(), key: "b".into(), client_ca: Some("c".into()) };
        assert_eq!(config.tls, Some(files));
    }

    #[test]
    fn incomplete_tls_settings_are_refused() {
        let place = "configuration file FILE: line 2:";
        for (file, expect) in [
            ("\ntls_cert = 'a'", format!("{place} tls_cert is set without tls_key")),
            ("\ntls_key = 'a'", format!("{place} tls_key is set without tls_cert")),
            ("\ntls_client_ca = 'a'", format!("{place} tls_client_ca is set without tls_cert and tls_key")),
        ] {
            assert_eq!(check(file, &[], Settings::default()).unwrap_err(), expect);
        }
        assert_eq!(
            check("", &[("TACHO_TLS_CERT", "a")], Settings::default()).unwrap_err(),
            "environment variable TACHO_TLS_CERT: tls_cert is set without tls_key"
        );
        let flags = Settings { tls_key: Some("a".into()), ..Settings::default() };
        assert_eq!(check("tls_client_ca = 'c'", &[], flags).unwrap_err(), "tls-key is set without tls-cert");
    }
}
