//! The settings that are passed to the agent, and their conflicts with the environment of the program.
//!
//! `agent/java/README.md` describes the settings. The agent validates the values.

use std::collections::BTreeMap;
use std::path::Path;

use tacho_api::printable::printable;
use tacho_api::settings::toml_cause;
use tacho_attach::Process;

use crate::failure::Failure;

/// The definition of the settings of all agents. Tables in the code of the agents are generated from it.
const AGENT_SETTINGS: &str = include_str!("../../../../../agent/settings.toml");
const SERVER: &str = "server";
const FILES: [&str; 3] = ["tls_ca", "tls_client_cert", "tls_client_key"];
const TOKEN: &str = "token";
const TOKEN_FILE: &str = "token_file";

/// The values of settings as text, by key.
pub(super) type Settings = BTreeMap<String, String>;

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE, for example service=shop")?;
    check(key)?;
    if key == TOKEN {
        return Err("all users of this machine can read a token on a command line: give token_file=FILE, \
            which the program can read, or --config FILE"
            .into());
    }
    Ok((key.to_owned(), value.to_owned()))
}

fn check(key: &str) -> Result<(), String> {
    let keys = keys();
    if keys.iter().any(|known| known == key) {
        return Ok(());
    }
    Err(format!("the agent has no setting {key:?}; its settings: {}", keys.join(", ")))
}

#[derive(serde::Deserialize)]
struct AgentSettings {
    setting: Vec<AgentSetting>,
}

#[derive(serde::Deserialize)]
struct AgentSetting {
    name: String,
    /// The agents that have this setting. `None` if all agents have it.
    agents: Option<Vec<String>>,
}

fn all() -> AgentSettings {
    toml::from_str(AGENT_SETTINGS).expect("`cargo xtask tidy` has parsed agent/settings.toml")
}

/// The environment variables of all agents.
pub(in crate::command) fn variables() -> Vec<String> {
    all().setting.iter().map(|setting| variable(&setting.name)).collect()
}

/// Names of the settings that the Java agent has.
fn keys() -> Vec<String> {
    let is_java = |setting: &AgentSetting| {
        setting.agents.as_ref().is_none_or(|agents| agents.iter().any(|agent| agent == "java"))
    };
    all().setting.into_iter().filter(is_java).map(|setting| setting.name).collect()
}

/// Reads the settings of the file. Settings of the command line override them.
pub(super) fn gather(file: Option<&Path>, given: &[(String, String)]) -> Result<Settings, Failure> {
    let mut settings = match file {
        Some(path) => {
            let failed =
                |cause: &dyn std::fmt::Display| Failure::usage(format!("{}: {cause}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
            parse(&text).map_err(|cause| failed(&cause))?
        }
        None => Settings::new(),
    };
    settings.extend(given.iter().cloned());
    Ok(settings)
}

fn parse(text: &str) -> Result<Settings, String> {
    // The agent ignores a byte order mark, too.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let table: toml::Table = toml::from_str(text).map_err(|error| cause(text, &error))?;
    let pair = |(key, value): (String, toml::Value)| {
        check(&key)?;
        // `plain` would convert a list to a text that names no file. An empty list would become an empty text, which counts as
        // unset: the agent would not use TLS.
        if (FILES.contains(&key.as_str()) || key == TOKEN_FILE) && !value.is_str() {
            return Err(format!("{key}: expected a string, the path of a file"));
        }
        if key == TOKEN && !value.is_str() {
            return Err(format!("{key}: expected a string"));
        }
        let value = plain(&value)
            .ok_or_else(|| format!("{key}: expected a string, number, boolean or list of these"))?;
        Ok((key, value))
    };
    table.into_iter().map(pair).collect()
}

/// The place and the reason of an error. The line is not shown if it may contain a token.
fn cause(text: &str, error: &toml::de::Error) -> String {
    let span = error.span();
    let end = span.as_ref().map_or(0, |span| span.end);
    let line = text.get(..end).map_or(0, |before| before.matches('\n').count());
    let mut near = text.lines().skip(line.saturating_sub(1)).take(2);
    let is_secret = near.any(|line| line.to_ascii_lowercase().contains(TOKEN));
    if !is_secret {
        return toml_cause(text, error.message(), span);
    }
    format!("line {}: {}", line + 1, toml_cause(text, error.message(), None))
}

/// Converts a value to the form that the agent reads. Items of lists are separated by commas.
fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Array(parts) => Some(parts.iter().map(plain).collect::<Option<Vec<_>>>()?.join(",")),
        toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

/// The settings file for the agent. Empty if there are no settings.
pub(super) fn to_toml(settings: &Settings) -> String {
    settings.iter().map(|(key, value)| format!("{key} = {}\n", quoted(value))).collect()
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn variable(key: &str) -> String {
    format!("TACHO_{}", key.to_ascii_uppercase())
}

/// One line for each setting that the environment of the program overrides. `look_up` reads a variable of this environment.
pub(super) fn overruled(settings: &Settings, look_up: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let line = |(key, value): (&String, &String)| {
        let name = variable(key);
        let wins = look_up(&name).filter(|wins| wins != value)?;
        if key == TOKEN {
            return Some(format!("{name} in the program's environment overrides {key}"));
        }
        let (wins, value) = (printable(&wins), printable(value));
        Some(format!("{name}={wins} in the program's environment overrides {key}={value}"))
    };
    settings.iter().filter_map(line).collect()
}

/// The warning for a process in its own network namespace, if no setting names the server. The default address, 127.0.0.1:7071,
/// is not this machine there.
pub(super) fn unreachable(settings: &Settings, process: &Process) -> Option<String> {
    let is_told = settings.contains_key(SERVER) || process.variable(&variable(SERVER)).is_some();
    let line = "the program has its own network namespace, where 127.0.0.1:7071 is not this machine: give server=HOST:PORT";
    (!is_told && !process.shares_network()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_agent() {
        let keys = keys();
        assert_eq!(keys[..3], ["enabled", "server", "tls_ca"]);
        assert!(keys.contains(&"request_id_headers".to_owned()), "{keys:?}");
        assert!(!keys.contains(&"strands_max".to_owned()), "only the Python agent has it: {keys:?}");
        // The agent has a constant for each key.
        let agent = include_str!(
            "../../../../../agent/java/core/src/main/java/io/tachograph/core/config/Setting.java"
        );
        assert_eq!(agent.matches("(Type.").count(), keys.len());
        let missing = |key: &&String| !agent.contains(&format!("    {}(Type.", key.to_uppercase()));
        assert_eq!(keys.iter().filter(missing).collect::<Vec<_>>(), Vec::<&String>::new());
    }

    /// `SettingsTest.java` tests the parser of the agent with the same files.
    #[test]
    fn a_settings_file_is_read_as_by_the_agent() {
        let file = include_str!("../../../../../testdata/settings/agent.toml");
        let expect = include_str!("../../../../../testdata/settings/agent.txt");
        let settings = parse(file).unwrap();
        let lines: String = settings.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
        assert_eq!(lines, expect);
    }

    #[test]
    fn settings_of_the_command_line_win_over_the_file() {
        let file = "\u{feff}service = \"shop\" # of this one\ninclude = ['a..*',\n  \"b..*\"]\n\
            buffer = 1_024\nsamplers = false\n";
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.toml");
        std::fs::write(&path, file).unwrap();
        let given = [("service", "board"), ("log", "C:\\a \"b\"\t\n")];
        let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let expect = "buffer = \"1024\"\ninclude = \"a..*,b..*\"\n\
            log = \"C:\\\\a \\\"b\\\"\\u0009\\u000A\"\nsamplers = \"false\"\n\
                      service = \"board\"\n";
        assert_eq!(to_toml(&gather(Some(&path), &given).unwrap()), expect);
        assert_eq!(to_toml(&gather(None, &[]).unwrap()), "");
        let said = gather(Some(&directory.path().join("none")), &[]).unwrap_err().to_string();
        assert!(said.contains("none: No such file"), "{said}");
    }

    #[test]
    fn mistakes_name_the_setting() {
        assert_eq!(pair("include=a=b"), Ok(("include".into(), "a=b".into())));
        for (text, expect) in [
            ("service", "give KEY=VALUE, for example service=shop"),
            ("=shop", "the agent has no setting \"\"; its settings: enabled, "),
            (
                "token=abc",
                "all users of this machine can read a token on a command line: give token_file=FILE, ",
            ),
            ("Service=shop", "the agent has no setting \"Service\"; its settings: enabled, server, tls_ca, "),
        ] {
            let said = pair(text).unwrap_err();
            assert!(said.starts_with(expect), "{said}");
        }
        for (text, expect) in [
            ("servise = 'shop'", "the agent has no setting \"servise\"; its settings: "),
            ("[agent]\nservice = 'shop'", "the agent has no setting \"agent\"; its settings: "),
            ("service = 1979-05-27", "service: expected a string, number, boolean or list of these"),
            ("service = shop", "line 1, column 11, `service = shop`: "),
            ("tls_ca = []", "tls_ca: expected a string, the path of a file"),
            ("token_file = []", "token_file: expected a string, the path of a file"),
            ("token = ['abc']", "token: expected a string"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.starts_with(expect), "{said}");
        }
    }

    #[test]
    fn no_message_contains_a_token() {
        for text in [
            "token = abc",
            "token = 'abc",
            "token = 'abc' abc",
            "token = ['abc'",
            "a = 1\ntoken = \"abc\nb = 2",
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.starts_with("line ") && !said.contains("abc"), "{said}");
        }
        let settings = Settings::from([("token".to_owned(), "abc".to_owned())]);
        let expect = "TACHO_TOKEN in the program's environment overrides token";
        assert_eq!(overruled(&settings, |name| (name == "TACHO_TOKEN").then(|| "def".to_owned())), [expect]);
    }

    #[test]
    fn settings_overridden_by_the_environment_are_named() {
        let environment = |name: &str| {
            [("TACHO_SERVICE", "e\u{1b}v"), ("TACHO_LOG", "x"), ("SERVER", "env")]
                .iter()
                .find_map(|(key, value)| (*key == name).then(|| (*value).to_owned()))
        };
        let settings = ["log", "server", "service"].map(|key| (key.to_owned(), "x".to_owned()));
        let expect = "TACHO_SERVICE=e\\u{1b}v in the program's environment overrides service=x";
        assert_eq!(overruled(&Settings::from(settings), environment), [expect]);
        let this = Process::find(std::process::id()).expect("this process exists");
        assert_eq!(
            unreachable(&Settings::new(), &this),
            None,
            "this process is in the network namespace of the test"
        );
    }
}
