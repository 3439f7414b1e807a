//! Finds environment variables `TACHO_*` that neither `tacho` nor an agent uses. They are probably misspelt.

use std::ffi::OsString;

use tacho_query::promql;
use tacho_server::config::Settings;

use crate::client::{SERVER_VARIABLE, tls, token};
use crate::command::attach;
use crate::failure::Failure;

const PREFIX: &str = "TACHO_";
/// Variables of `tacho` that are no settings of the server. Some of them are also settings of agents.
const OTHERS: [&str; 8] = [
    "TACHO_CONFIG",
    SERVER_VARIABLE,
    attach::JAR_VARIABLE,
    tls::CA,
    tls::CERT,
    tls::KEY,
    token::VARIABLE,
    token::FILE_VARIABLE,
];
/// Prefixes of variables that other programs set: Kubernetes for a service with the name tacho, and the tests of Tachograph.
const OF_OTHERS: [&str; 6] =
    ["TACHO_PORT", "TACHO_SERVICE_", "TACHO_TEST_", "TACHO_JDK", "TACHO_BIN", "TACHO_BOARD"];

/// The variables whose names begin with `TACHO_`. Only these must be UTF-8.
pub fn of_tacho(
    all: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, Failure> {
    let ours = all.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    ours.filter(|(name, _)| name.starts_with(PREFIX))
        .map(|(name, value)| match value.into_string() {
            Ok(value) => Ok((name, value)),
            Err(value) => {
                Err(Failure::usage(format!("environment variable {name}={}: is not UTF-8", value.display())))
            }
        })
        .collect()
}

pub fn warn() {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for (variable, similar) in unknown(names) {
        eprintln!("warning: environment variable {variable} is unknown and ignored{}", meant(similar));
    }
}

/// The end of a warning, such as `; did you mean TACHO_URL?`.
pub fn meant(similar: Option<String>) -> String {
    similar.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

/// The unknown variables among `names`, each with the most similar known variable, if any is similar.
pub fn unknown(names: impl IntoIterator<Item = String>) -> Vec<(String, Option<String>)> {
    let settings = Settings::KEYS.iter().map(|key| format!("{PREFIX}{}", key.to_ascii_uppercase()));
    let others = OTHERS.iter().map(|name| (*name).to_owned());
    let known: Vec<String> = settings.chain(attach::agent_variables()).chain(others).collect();
    let is_unknown = |name: &String| {
        name.starts_with(PREFIX)
            && !known.contains(name)
            && !OF_OTHERS.iter().any(|prefix| name.starts_with(prefix))
    };
    let mut unknown: Vec<String> = names.into_iter().filter(is_unknown).collect();
    unknown.sort_unstable();
    // The prefix is removed, because it would make all names similar.
    let key = |name: &str| name.strip_prefix(PREFIX).unwrap_or(name).to_owned();
    let keys: Vec<String> = known.iter().map(|name| key(name)).collect();
    let similar = |name: &str| {
        let similar = promql::similar_among(&key(name), keys.iter().map(String::as_str));
        similar.first().map(|key| format!("{PREFIX}{key}"))
    };
    unknown.into_iter().map(|name| (name.clone(), similar(&name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn only_variables_of_tachograph_must_be_utf_8() {
        let broken = || OsString::from_vec(vec![b'a', 0xff]);
        let others = [(broken(), "1".into()), ("LANG".into(), broken()), ("TACHO_DATA".into(), "d".into())];
        assert_eq!(of_tacho(others).ok(), Some(vec![("TACHO_DATA".to_owned(), "d".to_owned())]));
        let failure = of_tacho([("TACHO_DATA".into(), broken())]).err().unwrap();
        assert!(failure.message().contains("TACHO_DATA=a"), "{}", failure.message());
    }

    #[test]
    fn unknown_variables_are_named_with_the_nearest_one() {
        for (name, expect) in [
            ("TACHO_HTTPS", Some(Some("TACHO_HTTP"))),
            ("TACHO_HTPT", Some(Some("TACHO_HTTP"))),
            ("TACHO_DATTA", Some(Some("TACHO_DATA"))),
            ("TACHO_data", Some(Some("TACHO_DATA"))),
            ("TACHO_SWEEP", Some(Some("TACHO_SWEEP_SECONDS"))),
            ("TACHO_ULR", Some(Some("TACHO_URL"))),
            ("TACHO_TLS_C", Some(Some("TACHO_TLS_CA"))),
            ("TACHO_QUITE_ANOTHER", Some(None)),
            ("TACHO_X9", Some(None)),
            ("TACHO_DATA", None),
            ("TACHO_CONFIG", None),
            ("TACHO_URL", None),
            ("TACHO_AGENT_JAR", None),
            ("TACHO_SERVICE", None),
            ("TACHO_CHILDREN", None),
            ("TACHO_TEST_QUICK", None),
            ("TACHO_JDK17", None),
            ("TACHOS", None),
            ("HOME", None),
        ] {
            let found = unknown([name.to_owned()]);
            let found = found.first().map(|(_, similar)| similar.as_deref());
            assert_eq!(found, expect, "{name}");
        }
    }
}
