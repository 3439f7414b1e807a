//! Finds the Java programs on this machine and loads an agent into one of them.
//!
//! `process.rs` reads /proc, `perf_data.rs` reads the performance data of a JVM, `load.rs` attaches to a JVM, `load_lock.rs`
//! serializes attaching. The crate starts no Java process and needs no JDK. It supports Linux and HotSpot only.

mod fault;
mod load;
mod load_lock;
mod perf_data;
mod process;

pub use fault::Fault;
pub use load::load;
pub use load_lock::Turn;
pub use process::{Process, is_same_file};

use fault::JAVA_LEAST;
use perf_data::PerfData;
use process::Machine;

/// Name of the agent's sender thread (`Sender.java`), truncated to the length of thread names on Linux.
const AGENT_THREAD: &str = "tachograph-send";
const ATTACH_IS_DISABLED: &str = "-XX:+DisableAttachMechanism";
/// Environment variables from which a JVM or its launcher reads options.
const OPTIONS_VARIABLES: [&str; 3] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];

pub struct Jvm {
    pub process: Process,
    /// Main class or jar, and its arguments; the name of the process if they are unknown.
    pub command: String,
    /// For example `17.0.15`. `None` when unknown.
    pub version: Option<String>,
    pub has_agent: bool,
    /// Whether the JVM rejects attaching, according to its performance data, or else its options.
    is_disabled: bool,
}

impl Jvm {
    /// # Errors
    /// When the process does not exist, this user may not inspect it, it is no JVM, or it is a JVM of OpenJ9.
    pub fn find(pid: u32) -> Result<Self, Fault> {
        let process = Process::find(pid).ok_or(Fault::NoProcess { pid })?;
        let name = title(&process);
        if !process.is_accessible() {
            return Err(Fault::Foreign { pid, name, uid: process.uid });
        }
        match process.machine() {
            Some(Machine::HotSpot { has_perf_data }) => Ok(Self::of(process, has_perf_data)),
            Some(Machine::OpenJ9) => Err(Fault::OpenJ9 { pid, name }),
            Some(Machine::None) => Err(Fault::NoJvm { pid, name }),
            None => Err(Fault::Closed { pid, name }),
        }
    }

    /// All JVM processes, in the order of process ids. JVMs of OpenJ9, and inaccessible processes that look like a JVM, are
    /// errors.
    pub fn all() -> Vec<Result<Self, Fault>> {
        let mut pids = Process::all();
        pids.sort_unstable();
        let found = pids.into_iter().map(Self::find);
        let looks_like_java = |pid: u32| Process::find(pid).is_some_and(|process| process.is_java_command());
        let is_listed = |found: &Result<Self, Fault>| match found {
            Ok(_) | Err(Fault::OpenJ9 { .. }) => true,
            Err(Fault::Foreign { pid, .. } | Fault::Closed { pid, .. }) => looks_like_java(*pid),
            Err(_) => false,
        };
        found.filter(is_listed).collect()
    }

    fn of(process: Process, has_perf_data: bool) -> Self {
        let perf_data =
            has_perf_data.then(|| process.perf_data()).flatten().and_then(|bytes| PerfData::parse(&bytes));
        let PerfData { command, version, takes_agents } = perf_data.unwrap_or_default();
        let version = version.or_else(|| process.java_version());
        let arguments = process.arguments();
        let is_disabled = match takes_agents {
            Some(takes) => !takes,
            None => has_option(ATTACH_IS_DISABLED, &arguments, |name| process.variable(name)),
        };
        let command = command.filter(|text| !text.is_empty());
        let command = command.unwrap_or_else(|| program(&arguments).unwrap_or_else(|| process.name()));
        let has_agent = process.has_thread(AGENT_THREAD);
        Self { process, command, version, has_agent, is_disabled }
    }

    /// The reason why the agent cannot be loaded into this JVM, as far as it is known without an attempt.
    pub fn obstacle(&self) -> Option<Fault> {
        let pid = self.process.pid;
        let version = self.version.as_deref().unwrap_or_default();
        if self.has_agent {
            Some(Fault::HasAgent { pid })
        } else if self.process.is_stopped {
            Some(Fault::Stopped { pid })
        } else if self.is_disabled {
            Some(Fault::Disabled { pid })
        } else if feature(version).is_some_and(|feature| feature < JAVA_LEAST) {
            Some(Fault::TooOld { pid, version: version.to_owned() })
        } else {
            None
        }
    }

    /// Whether the agent runs now. `has_agent` has the state at the time when this JVM was found.
    pub fn runs_agent(&self) -> bool {
        self.process.has_thread(AGENT_THREAD)
    }

    /// The first word of the command, without the directory.
    pub fn main(&self) -> &str {
        main(&self.command)
    }
}

fn main(command: &str) -> &str {
    let word = command.split(' ').next().unwrap_or_default();
    word.rsplit('/').next().unwrap_or(word)
}

/// The main class or jar of a `java` command, or else the name of the process.
fn title(process: &Process) -> String {
    let program = process.is_java_command().then(|| program(&process.arguments())).flatten();
    program.map_or_else(|| process.name(), |program| main(&program).to_owned())
}

/// The feature number of a version: 17 for `17.0.15`, 8 for `1.8.0_392`, 25 for `25-ea`.
fn feature(version: &str) -> Option<u32> {
    let version = version.strip_prefix("1.").unwrap_or(version);
    let digits = version.find(|c: char| !c.is_ascii_digit()).map_or(version, |end| &version[..end]);
    digits.parse().ok()
}

/// Whether the JVM has this option: on its command line before the main class or jar, or in an environment variable.
fn has_option(option: &str, arguments: &[String], variable: impl Fn(&str) -> Option<String>) -> bool {
    let end = program_at(arguments).unwrap_or(arguments.len());
    let in_variable = |name: &&str| {
        variable(name).is_some_and(|options| options.split_whitespace().any(|word| word == option))
    };
    arguments[..end].iter().any(|word| word == option) || OPTIONS_VARIABLES.iter().any(in_variable)
}

/// The part of a command line that names the program: the main class or jar, and its arguments.
fn program(arguments: &[String]) -> Option<String> {
    Some(arguments.get(program_at(arguments)?..)?.join(" "))
}

/// Position of the main class or jar on a command line. If nothing follows `-jar`, the end of the command line.
fn program_at(arguments: &[String]) -> Option<usize> {
    const WITH_VALUE: [&str; 13] = [
        "-cp",
        "-classpath",
        "--class-path",
        "-p",
        "--module-path",
        "--upgrade-module-path",
        "--add-modules",
        "--add-opens",
        "--add-exports",
        "--add-reads",
        "--limit-modules",
        "--patch-module",
        "--enable-native-access",
    ];
    let mut at = 1;
    while let Some(argument) = arguments.get(at) {
        match argument.as_str() {
            "-jar" | "-m" | "--module" => return Some(at + 1),
            option if WITH_VALUE.contains(&option) => at += 2,
            option if option.starts_with('-') || option.starts_with('@') => at += 1,
            _ => return Some(at),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_to_feature_numbers() {
        for (version, expect) in [
            ("17.0.15", Some(17)),
            ("25", Some(25)),
            ("25-ea", Some(25)),
            ("1.8.0_392", Some(8)),
            ("", None),
            ("unknown", None),
        ] {
            assert_eq!(feature(version), expect, "{version}");
        }
    }

    #[test]
    fn the_main_class_is_found_after_the_options() {
        for (line, expect) in [
            ("java -Xmx1g -jar /opt/shop.jar --port 80", Some("/opt/shop.jar --port 80")),
            ("java -cp a.jar:b.jar -Dx=y shop.Main", Some("shop.Main")),
            ("java @options --add-opens java.base/java.lang=ALL-UNNAMED shop.Main a", Some("shop.Main a")),
            ("/usr/bin/java -p mods -m shop/shop.Main", Some("shop/shop.Main")),
            ("java -version", None),
            ("java -jar", Some("")),
            ("java", None),
        ] {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(program(&arguments).as_deref(), expect, "{line}");
        }
    }

    #[test]
    fn options_end_where_the_program_begins() {
        for (line, variable, expect) in [
            ("java -XX:+DisableAttachMechanism -jar shop.jar", "", true),
            ("java -jar shop.jar -XX:+DisableAttachMechanism", "", false),
            ("java -cp . shop.Main -XX:+DisableAttachMechanism", "", false),
            ("java -XX:+DisableAttachMechanism", "", true),
            ("java -jar", "", false),
            ("java -jar shop.jar", "-Xrs\t-XX:+DisableAttachMechanism", true),
            ("java -jar shop.jar", "-Da=-XX:+DisableAttachMechanism", false),
        ] {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let look_up = |name: &str| (name == "JDK_JAVA_OPTIONS").then(|| variable.to_owned());
            assert_eq!(has_option(ATTACH_IS_DISABLED, &arguments, look_up), expect, "{line}, {variable}");
        }
    }
}
