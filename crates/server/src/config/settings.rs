//! The list of all settings, and the precedence of their sources.

use std::path::PathBuf;

use tacho_api::settings::WHOLE_NUMBER;

use super::address::{Address, AddressError};
use super::policy;

macro_rules! settings {
    ($($key:ident: $type:ty,)*; in the file only: $($rules:ident: $rule:ty,)*) => {
        /// The settings of one source.
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Settings {
            $(pub $key: Option<$type>,)*
            $(pub $rules: Option<Vec<$rule>>,)*
        }

        impl Settings {
            /// Keys of the settings that have a variable and a flag.
            pub const KEYS: &[&str] = &[$(stringify!($key),)*];

            /// Fields of `self` that are `None` are taken from `under`.
            pub(super) fn over(self, under: Self) -> Self {
                Self {
                    $($key: self.$key.or(under.$key),)*
                    $($rules: self.$rules.or(under.$rules),)*
                }
            }

            pub(super) fn given(&self) -> Vec<&'static str> {
                let keys = [$((stringify!($key), self.$key.is_some()),)*];
                keys.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key).collect()
            }

            /// Parses the text of an environment variable as the value of `key`. Ignores unknown keys.
            pub(super) fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
                match key {
                    $(stringify!($key) => self.$key = Some(Variable::read(text)?),)*
                    _ => {}
                }
                Ok(())
            }
        }
    };
}

// These names are the keys of `tacho.toml`. A flag has the same name with hyphens. An environment variable has it in capitals,
// with the prefix `TACHO_`. `crates/cli/src/command/serve/flags.rs` describes each setting.
settings! {
    data: PathBuf,
    http: Address,
    records: Address,
    insecure_listen: bool,
    without_tokens: bool,
    allowed_hosts: Vec<String>,
    tls_cert: PathBuf,
    tls_key: PathBuf,
    tls_client_ca: PathBuf,
    body_bytes_max: usize,
    decoding_bytes_max: usize,
    answer_bytes_max: usize,
    requests_max: usize,
    connections_max: usize,
    request_seconds_max: u64,
    query_cache_bytes_max: usize,
    selfwatch_seconds: u64,
    series_max: usize,
    index_bytes_max: usize,
    label_values_max: usize,
    chunks_max: usize,
    merge_bytes_per_second: u64,
    merge_cpu_percent: u32,
    merge_rows: usize,
    disk_reserve_bytes: u64,
    stop_journal_bytes: u64,
    sweep_seconds: u64,
    ; in the file only:
    retention: policy::Retention,
    downsampling: policy::Thinning,
    semantic: policy::GivenUp,
    chunks: policy::Chunks,
}

/// Parses the text of an environment variable. The error describes the expected form.
trait Variable: Sized {
    fn read(text: &str) -> Result<Self, String>;
}

impl Variable for PathBuf {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.into())
    }
}

impl Variable for Address {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: AddressError| error.to_string())
    }
}

impl Variable for bool {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err("give true or false".into()),
        }
    }
}

impl Variable for Vec<String> {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.split(',').map(|name| name.trim().to_owned()).collect())
    }
}

macro_rules! whole_numbers {
    ($($type:ty)*) => {$(
        impl Variable for $type {
            fn read(text: &str) -> Result<Self, String> {
                text.parse().map_err(|_| format!("not {WHOLE_NUMBER}, or too large"))
            }
        }
    )*};
}

whole_numbers! { usize u64 u32 }
