//! Settings from `TACHO_*` variables.
//!
//! Other variables of that prefix belong to agents in the same environment and are left alone.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use tacho_api::settings::WHOLE_NUMBER;

use super::{ConfigError, Settings};

/// Settings from the environment.
#[derive(Default)]
pub struct Environment {
    /// `TACHO_CONFIG`: the configuration file.
    pub file: Option<PathBuf>,
    pub settings: Settings,
}

pub fn read(variables: impl IntoIterator<Item = (String, String)>) -> Result<Environment, ConfigError> {
    let mut out = Environment::default();
    let settings = &mut out.settings;
    for (name, value) in variables {
        match name.as_str() {
            "TACHO_CONFIG" => out.file = Some(value.into()),
            "TACHO_DATA" => settings.data = Some(value.into()),
            "TACHO_HTTP" => settings.http = Some(parse("TACHO_HTTP", value)?),
            "TACHO_RECORDS" => settings.records = Some(parse("TACHO_RECORDS", value)?),
            "TACHO_INSECURE_LISTEN" => {
                settings.insecure_listen = Some(yes_or_no("TACHO_INSECURE_LISTEN", value)?)
            }
            "TACHO_ALLOWED_HOSTS" => {
                settings.allowed_hosts = Some(value.split(',').map(|name| name.trim().to_owned()).collect());
            }
            "TACHO_BODY_BYTES_MAX" => settings.body_bytes_max = Some(number("TACHO_BODY_BYTES_MAX", value)?),
            "TACHO_DECODING_BYTES_MAX" => {
                settings.decoding_bytes_max = Some(number("TACHO_DECODING_BYTES_MAX", value)?);
            }
            "TACHO_REQUESTS_MAX" => settings.requests_max = Some(number("TACHO_REQUESTS_MAX", value)?),
            "TACHO_CONNECTIONS_MAX" => {
                settings.connections_max = Some(number("TACHO_CONNECTIONS_MAX", value)?)
            }
            "TACHO_REQUEST_SECONDS_MAX" => {
                settings.request_seconds_max = Some(number("TACHO_REQUEST_SECONDS_MAX", value)?);
            }
            "TACHO_SELFWATCH_SECONDS" => {
                settings.selfwatch_seconds = Some(number("TACHO_SELFWATCH_SECONDS", value)?);
            }
            "TACHO_SERIES_MAX" => settings.series_max = Some(number("TACHO_SERIES_MAX", value)?),
            "TACHO_INDEX_BYTES_MAX" => {
                settings.index_bytes_max = Some(number("TACHO_INDEX_BYTES_MAX", value)?);
            }
            "TACHO_LABEL_VALUES_MAX" => {
                settings.label_values_max = Some(number("TACHO_LABEL_VALUES_MAX", value)?);
            }
            "TACHO_MERGE_CPU_PERCENT" => {
                settings.merge_cpu_percent = Some(number("TACHO_MERGE_CPU_PERCENT", value)?);
            }
            "TACHO_DISK_RESERVE_BYTES" => {
                settings.disk_reserve_bytes = Some(number("TACHO_DISK_RESERVE_BYTES", value)?);
            }
            "TACHO_MERGE_ROWS" => settings.merge_rows = Some(number("TACHO_MERGE_ROWS", value)?),
            "TACHO_SWEEP_SECONDS" => settings.sweep_seconds = Some(number("TACHO_SWEEP_SECONDS", value)?),
            "TACHO_MERGE_BYTES_PER_SECOND" => {
                settings.merge_bytes_per_second = Some(number("TACHO_MERGE_BYTES_PER_SECOND", value)?);
            }
            _ => {}
        }
    }
    Ok(out)
}

fn parse<T: FromStr<Err: Display>>(name: &'static str, value: String) -> Result<T, ConfigError> {
    value.parse().map_err(|e: T::Err| ConfigError::Environment { name, cause: e.to_string(), value })
}

fn number<T: FromStr>(name: &'static str, value: String) -> Result<T, ConfigError> {
    let cause = || format!("not {WHOLE_NUMBER}, or too large");
    value.parse().map_err(|_| ConfigError::Environment { name, cause: cause(), value })
}

fn yes_or_no(name: &'static str, value: String) -> Result<bool, ConfigError> {
    match value.as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(ConfigError::Environment { name, value, cause: "give true or false".into() }),
    }
}
