//! Reasons why an agent cannot be loaded into a process, with hints.

use std::path::PathBuf;

use tacho_api::printable::printable;

/// The oldest Java version that the agent supports.
pub(crate) const JAVA_LEAST: u32 = 11;

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("there is no process {pid}")]
    NoProcess { pid: u32 },
    #[error("process {pid} ({}) belongs to user {uid}", printable(.name))]
    Foreign { pid: u32, name: String, uid: u32 },
    #[error("this user may not inspect process {pid} ({})", printable(.name))]
    Closed { pid: u32, name: String },
    #[error("process {pid} ({}) is not a Java program", printable(.name))]
    NoJvm { pid: u32, name: String },
    #[error("process {pid} ({}) runs on Eclipse OpenJ9, which has another attach protocol", printable(.name))]
    OpenJ9 { pid: u32, name: String },
    #[error("process {pid} has the agent already")]
    HasAgent { pid: u32 },
    #[error("process {pid} accepts no agents: it was started with -XX:+DisableAttachMechanism")]
    Disabled { pid: u32 },
    #[error("process {pid} runs on Java {}, the agent needs {JAVA_LEAST} or later", printable(.version))]
    TooOld { pid: u32, version: String },
    #[error("process {pid} is stopped (SIGSTOP)")]
    Stopped { pid: u32 },
    #[error("process {pid} has ended")]
    Ended { pid: u32 },
    #[error("another `tacho attach` to process {pid} is still running")]
    Busy { pid: u32 },
    #[error("process {pid} changed its user, or it has ended and another process has its id")]
    Another { pid: u32 },
    #[error(
        "in the mount namespace of process {pid}, /tmp is a symbolic link; tacho does not follow this link"
    )]
    LinkedTmp { pid: u32 },
    #[error("process {pid} does not handle SIGQUIT: it is starting or ending")]
    NotReady { pid: u32 },
    #[error("process {pid} did not answer within {seconds} s")]
    NoAnswer { pid: u32, seconds: u64 },
    #[error("process {pid} closed the connection without an answer")]
    Refused { pid: u32 },
    #[error("{} is not a socket of process {pid}", .path.display())]
    NotItsOwn { pid: u32, path: PathBuf },
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
    /// The message of the JVM, on one line.
    #[error("process {pid} rejects the agent: {said}")]
    NotTaken { pid: u32, said: String },
}

impl Fault {
    /// The reason without the process, for a table.
    pub fn brief(&self) -> &'static str {
        match self {
            Self::Foreign { .. } => "another user's",
            Self::Closed { .. } => "not accessible to this user",
            Self::OpenJ9 { .. } => "OpenJ9",
            Self::HasAgent { .. } => "has the agent",
            Self::Disabled { .. } => "attaching is disabled",
            Self::TooOld { .. } => "Java is too old",
            Self::Stopped { .. } => "stopped",
            Self::NoProcess { .. } | Self::Ended { .. } | Self::Another { .. } => "has ended",
            Self::NoJvm { .. } => "no JVM",
            Self::Busy { .. } => "is being attached to",
            Self::NotReady { .. } | Self::NoAnswer { .. } | Self::Refused { .. } => "does not answer",
            Self::NotTaken { .. } => "rejects the agent",
            Self::LinkedTmp { .. } | Self::NotItsOwn { .. } | Self::Io { .. } => "cannot be attached to",
        }
    }

    pub fn hint(&self) -> Option<String> {
        let with_javaagent = "start the program with -javaagent:tachograph-agent.jar instead";
        let hint = match self {
            Self::NoProcess { .. } | Self::NoJvm { .. } | Self::Another { .. } => {
                "`tacho attach` lists the Java programs".into()
            }
            Self::Foreign { uid, .. } => {
                format!("run it as that user (`sudo -u '#{uid}' tacho attach ...`) or as root")
            }
            // In a container, root may lack this capability.
            Self::Closed { .. } if rustix::process::geteuid().is_root() => {
                "root needs the capability CAP_SYS_PTRACE".into()
            }
            Self::Closed { .. } => "run `tacho attach` as root".into(),
            Self::OpenJ9 { pid, .. } => {
                format!("use the `java` of a JDK with OpenJ9: `java -jar tachograph-agent.jar {pid}`")
            }
            Self::HasAgent { .. } => "`tacho probes` changes what the agent records".into(),
            Self::Disabled { .. } => with_javaagent.into(),
            Self::LinkedTmp { .. } => "run tacho in the container of the process".into(),
            Self::Stopped { pid } => format!("`kill -CONT {pid}` resumes it"),
            Self::NotReady { .. } | Self::Busy { .. } => "try again in a moment".into(),
            Self::NoAnswer { .. } => "the machine may be overloaded: try again later".into(),
            Self::Refused { .. } => {
                "the JVM accepts only its own user and group, or root: in a container, run tacho there as the JVM's user"
                    .into()
            }
            Self::NotTaken { said, .. } if said.contains("EnableDynamicAgentLoading") => {
                with_javaagent.into()
            }
            Self::NotTaken { said, .. } if said.contains("java.instrument") => {
                "the JVM lacks the module java.instrument: build the JVM with `jlink --add-modules java.instrument,...`"
                    .into()
            }
            Self::TooOld { .. }
            | Self::Ended { .. }
            | Self::NotItsOwn { .. }
            | Self::Io { .. }
            | Self::NotTaken { .. } => return None,
        };
        Some(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_names_are_shown_on_one_line() {
        let (pid, uid, name) = (7, 0, "a\n\u{1b}[2Jb".to_owned());
        for fault in [
            Fault::Foreign { pid, name: name.clone(), uid },
            Fault::Closed { pid, name: name.clone() },
            Fault::NoJvm { pid, name: name.clone() },
            Fault::OpenJ9 { pid, name: name.clone() },
            Fault::TooOld { pid, version: name },
        ] {
            let said = fault.to_string();
            assert!(said.contains("a\\n\\u{1b}[2Jb") && !said.contains(char::is_control), "{said}");
        }
    }
}
