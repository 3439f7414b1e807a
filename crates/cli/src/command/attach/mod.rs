//! `tacho attach`: loads the Java agent into a running JVM, or lists the running JVMs.

mod delivery;
mod jar;
mod settings;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tacho_api::printable::printable;
use tacho_attach::{Fault, Jvm, Process, Turn};

use super::ask;
use crate::failure::Failure;
use crate::terminal::table::{Align, Table};
use delivery::SettingsFile;
pub(super) use settings::variables as agent_variables;

/// Environment variable with the path of the agent, if `--jar` is not given.
pub(super) const JAR_VARIABLE: &str = "TACHO_AGENT_JAR";

/// Time limit for the start of the agent's thread after the JVM has reported the agent as loaded.
const START_TIME_MAX: Duration = Duration::from_secs(5);
/// Limit on the characters of a command in a table.
const COMMAND_CHARS_MAX: usize = 100;

/// Load the Java agent into a running JVM; without PID, list the JVMs of this machine
///
/// The command uses the attach protocol of HotSpot (Java 11 or later, on Linux) and needs no JDK. JVMs in containers are
/// supported. agent/java/README.md describes the settings of the agent. TACHO_* variables in the program's environment
/// override them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho attach                                          # list the running Java programs
  tacho attach 4711
  tacho attach 4711 service=shop 'include=com.shop..*'
  tacho attach 4711 --config agent.toml server=10.0.0.5:7071
  sudo tacho attach 4711 --jar /opt/tachograph-agent.jar")]
pub struct Attach {
    /// Process of a running Java program
    #[arg(value_name = "PID")]
    pid: Option<u32>,
    /// Settings of the agent; they override the settings in the file of --config
    #[arg(value_name = "KEY=VALUE", value_parser = settings::pair)]
    settings: Vec<(String, String)>,
    /// File with settings of the agent
    #[arg(long, value_name = "FILE", requires = "pid")]
    config: Option<PathBuf>,
    /// The agent [default: tachograph-agent.jar next to tacho, or as built by `make build`]
    #[arg(long, env = JAR_VARIABLE, value_name = "JAR")]
    jar: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Attach {
    pub fn run(self) -> Result<(), Failure> {
        if !cfg!(target_os = "linux") {
            return Err(Failure::new("attaching works on Linux only")
                .hint("elsewhere, with a JDK: `java -jar tachograph-agent.jar PID`"));
        }
        match self.pid {
            Some(pid) => self.attach(pid),
            None => {
                self.list();
                Ok(())
            }
        }
    }

    fn attach(&self, pid: u32) -> Result<(), Failure> {
        let settings = settings::gather(self.config.as_deref(), &self.settings)?;
        // A wrong `--jar` is reported before a fault of the process. The default places are searched only if the agent can be
        // loaded.
        let given = self.jar.as_deref().map(|path| jar::find(Some(path))).transpose()?;
        let process = Process::find(pid).ok_or(Fault::NoProcess { pid }).map_err(failure)?;
        // The lock is held until the agent runs, so that a concurrent attach finds the agent loaded.
        let turn = Turn::take(&process).map_err(failure)?;
        let jvm = Jvm::find(pid).map_err(failure)?;
        if let Some(fault) = jvm.obstacle() {
            return Err(failure(fault));
        }
        let jar = given.map_or_else(|| jar::find(None), Ok)?;
        let jar = delivery::jar(&jar, &jvm.process)?;
        let file = delivery::settings(&settings::to_toml(&settings), &jvm.process)?;
        tacho_attach::load(&jvm.process, &jar, file.as_ref().map(SettingsFile::seen)).map_err(failure)?;
        await_start(&jvm)?;
        drop((file, turn));
        let mut warnings = settings::overruled(&settings, |name| jvm.process.variable(name));
        warnings.extend(settings::unreachable(&settings, &jvm.process));
        for warning in &warnings {
            eprintln!("warning: {warning}");
        }
        if self.json {
            let jvm = to_json(&jvm, Fault::HasAgent { pid }.brief());
            ask::print_json(&json!({ "jvm": jvm, "jar": jar, "warnings": warnings }));
        } else {
            let version = jvm
                .version
                .as_ref()
                .map_or_else(String::new, |version| format!(", Java {}", printable(version)));
            println!("the agent is in process {} ({}{version})", jvm.process.pid, printable(jvm.main()));
        }
        Ok(())
    }

    fn list(&self) {
        let found = Jvm::all();
        if self.json {
            let jvms: Vec<Value> = found.iter().map(listed_json).collect();
            ask::print_json(&json!({ "jvms": jvms }));
        } else if found.is_empty() {
            eprintln!("no running Java program found");
        } else {
            print!("{}", table(&found));
        }
    }
}

/// Waits for the thread of the agent. The JVM reports success even if the loaded agent fails to start.
fn await_start(jvm: &Jvm) -> Result<(), Failure> {
    let begun = Instant::now();
    while !jvm.runs_agent() {
        if begun.elapsed() > START_TIME_MAX {
            let place = jvm.process.standard_error();
            let place =
                place.map_or_else(String::new, |path| format!(", {}", printable(&path.to_string_lossy())));
            let said =
                format!("process {} has loaded the agent, but the agent does not run", jvm.process.pid);
            return Err(Failure::new(said).hint(format!("the program's standard error says why{place}")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn failure(fault: Fault) -> Failure {
    let failure = Failure::new(&fault);
    match fault.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn state(jvm: &Jvm) -> &'static str {
    jvm.obstacle().map_or("can be attached to", |fault| fault.brief())
}

fn table(found: &[Result<Jvm, Fault>]) -> Table<5> {
    let (left, right) = (Align::Left, Align::Right);
    let mut table =
        Table::new([("PID", right), ("USER", right), ("JAVA", left), ("STATE", left), ("PROGRAM", left)]);
    for one in found {
        match one {
            Ok(jvm) => table.row([
                jvm.process.pid.to_string(),
                jvm.process.uid.to_string(),
                jvm.version.clone().unwrap_or_default(),
                state(jvm).into(),
                cut(&jvm.command),
            ]),
            Err(fault) => {
                let (pid, uid, name) = who(fault);
                let uid = uid.map_or_else(String::new, |uid| uid.to_string());
                table.row([pid.to_string(), uid, String::new(), fault.brief().into(), name.to_owned()]);
            }
        }
    }
    table
}

/// Process id, user and name of a process that is listed but cannot be attached to.
fn who(fault: &Fault) -> (u32, Option<u32>, &str) {
    match fault {
        Fault::Foreign { pid, name, uid } => (*pid, Some(*uid), name),
        Fault::Closed { pid, name } | Fault::OpenJ9 { pid, name } => (*pid, None, name),
        _ => (0, None, ""),
    }
}

fn cut(command: &str) -> String {
    let command = printable(command);
    match command.char_indices().nth(COMMAND_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &command[..end]),
        None => command,
    }
}

fn to_json(jvm: &Jvm, state: &str) -> Value {
    json!({
        "pid": jvm.process.pid,
        "user": jvm.process.uid,
        "java": jvm.version,
        "state": state,
        "program": jvm.command,
    })
}

fn listed_json(found: &Result<Jvm, Fault>) -> Value {
    match found {
        Ok(jvm) => to_json(jvm, state(jvm)),
        Err(fault) => {
            let (pid, uid, name) = who(fault);
            json!({ "pid": pid, "user": uid, "java": null, "state": fault.brief(), "program": name })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_shown_as_one_short_line() {
        assert_eq!(cut("shop.Main\n--port \u{1b}[2J80"), "shop.Main\\n--port \\u{1b}[2J80");
        assert_eq!(cut(&"ö".repeat(101)), format!("{}…", "ö".repeat(100)));
    }

    #[test]
    fn inaccessible_processes_are_listed_with_the_reason() {
        let foreign = Fault::Foreign { pid: 7, name: "java".into(), uid: 1000 };
        let j9 = Fault::OpenJ9 { pid: 8, name: "java".into() };
        let expect = "PID  USER  JAVA  STATE           PROGRAM\n\
            \x20 7  1000        another user's  java\n\
            \x20 8              OpenJ9          java\n";
        assert_eq!(table(&[Err(foreign), Err(j9)]).to_string(), expect);
        let json = listed_json(&Err(Fault::Closed { pid: 9, name: "java".into() }));
        let expect = json!({ "pid": 9, "user": null, "java": null, "state": "not accessible to this user", "program": "java" });
        assert_eq!(json, expect);
    }
}
