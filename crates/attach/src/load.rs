//! Loads an agent into a running JVM. Uses version 1 of HotSpot's attach protocol, which all versions of HotSpot support.
//!
//! Sources in OpenJDK: `src/jdk.attach/linux/classes/sun/tools/attach/VirtualMachineImpl.java` is the client side,
//! `src/hotspot/os/posix/attachListener_posix.cpp` and `src/hotspot/share/services/attachListener.cpp` are the JVM side.
//!
//! ```text
//!   tacho                                    JVM
//!     creates .attach_pidN in the JVM's
//!     working directory, or in /tmp
//!     SIGQUIT ─────────────────────────────▶ finds the file, listens on /tmp/.java_pidN
//!     1␀load␀instrument␀false␀JAR=OPTIONS␀ ─▶ checks that user and group of tacho are its own, or root
//!     ◀──────────────────────── 0⏎return code: 0⏎   once agentmain has returned
//! ```
//! `␀` is a zero byte, and `⏎` a line feed.
//!
//! On SIGQUIT, a JVM without the file, or with attaching disabled, prints a thread dump to its standard output. A JVM that
//! has no handler for SIGQUIT yet is terminated. Therefore the signal is sent only to a JVM with a handler, after the file
//! was created.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, Signal};
use tacho_api::printable::printable;

use crate::{Fault, Process};

/// Timeout until the JVM listens. A JVM cannot begin to listen during a long garbage collection. SIGQUIT is sent again after
/// half of this time. A JVM that begins to listen at that moment answers the second signal with a thread dump. The timeout is
/// long so that such thread dumps are rare on busy machines.
const LISTEN_TIME_MAX: Duration = Duration::from_secs(30);
/// Timeout until a newly started JVM handles SIGQUIT, and until it can load agents.
const READY_TIME_MAX: Duration = Duration::from_secs(30);
/// Answers to a request to load an agent, if the JVM has just started: before the JVM has initialized its modules, and (JDK 21
/// and later) before JVMTI's live phase.
const NOT_READY: [&str; 2] =
    ["java.lang.NullPointerException", "Dynamic agent loading is only permitted in the live phase"];
const PAUSE: Duration = Duration::from_millis(20);
/// Timeout for loading, in which the agent transforms all classes that it watches.
const LOAD_TIME_MAX: Duration = Duration::from_secs(60);
/// Limit on the time of [`load`]. The last attempt begins before `READY_TIME_MAX` is over, and then has to connect and to load
/// the agent.
pub const TOTAL_TIME_MAX: Duration =
    READY_TIME_MAX.saturating_add(LISTEN_TIME_MAX).saturating_add(LOAD_TIME_MAX);
/// Limit on the bytes of a response.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Limit on the bytes of a response in a message.
const SAID_BYTES_MAX: usize = 400;

/// Loads the agent at `jar`, a path as the process sees it, and returns when its `agentmain` has returned.
///
/// # Errors
/// When the JVM does not listen or does not answer, or reports a failure. An agent that catches its own errors counts as loaded.
pub fn load(process: &Process, jar: &str, options: Option<&str>) -> Result<(), Fault> {
    let begun = Instant::now();
    loop {
        match try_load(process, jar, options) {
            Err(Fault::NotTaken { said, .. }) if is_not_ready(&said) && begun.elapsed() < READY_TIME_MAX => {
                std::thread::sleep(PAUSE);
            }
            ended => return ended,
        }
    }
}

fn is_not_ready(said: &str) -> bool {
    NOT_READY.iter().any(|answer| said.starts_with(answer))
}

fn try_load(process: &Process, jar: &str, options: Option<&str>) -> Result<(), Fault> {
    let mut stream = connect(process)?;
    let argument = options.map_or_else(|| jar.to_owned(), |options| format!("{jar}={options}"));
    let request = ["1", "load", "instrument", "false", &argument].map(|word| format!("{word}\0")).concat();
    let answer = ask(&mut stream, request.as_bytes(), LOAD_TIME_MAX).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Fault::NoAnswer { pid: process.pid, seconds: LOAD_TIME_MAX.as_secs() }
        }
        // The JVM closed the connection, or reset it because of unread bytes.
        _ => Fault::Refused { pid: process.pid },
    })?;
    if answer.is_empty() {
        return Err(Fault::Refused { pid: process.pid });
    }
    check_response(&answer).map_err(|said| Fault::NotTaken { pid: process.pid, said })
}

/// Sends a request and reads the response, until its end or until [`ANSWER_BYTES_MAX`] bytes have arrived. `time_max` applies to
/// both together, because a JVM may send its response in many parts.
fn ask(stream: &mut UnixStream, request: &[u8], time_max: Duration) -> io::Result<String> {
    let begun = Instant::now();
    stream.set_write_timeout(Some(time_max))?;
    stream.write_all(request)?;
    let (mut answer, mut part) = (Vec::new(), [0; 4_096]);
    while answer.len() < ANSWER_BYTES_MAX {
        let left = time_max.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(ErrorKind::TimedOut)?))?;
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(part.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The first line of a response is the status of the command, the rest is its output. On success the output is
/// `return code:` and the return code of the agent.
fn check_response(answer: &str) -> Result<(), String> {
    let (code, said) = answer.split_once('\n').unwrap_or((answer, ""));
    let said = said.trim();
    let agent = said.lines().last().and_then(|line| line.strip_prefix("return code:")).map(str::trim);
    match (code.trim(), agent) {
        ("0", Some("0")) => Ok(()),
        // `src/java.instrument/share/native/libinstrument/JPLISAgent.h`
        ("0", Some("100")) => Err("the JVM cannot read the jar, or the jar is not an agent".into()),
        ("0", Some("101")) => Err("the JVM cannot add the jar to its class path".into()),
        ("0", Some("102")) => Err("the agent could not start".into()),
        (code, _) if said.is_empty() => Err(format!("code {code}")),
        _ => Err(on_one_line(said)),
    }
}

fn on_one_line(text: &str) -> String {
    // The text may be an exception of the JVM. Its stack trace is omitted.
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("at "));
    let mut line = printable(&lines.collect::<Vec<_>>().join("; "));
    if let Some((end, _)) = line.char_indices().find(|(at, _)| *at >= SAID_BYTES_MAX) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// Connects to the JVM. If the JVM does not listen yet, makes it listen first.
fn connect(process: &Process) -> Result<UnixStream, Fault> {
    let pid = process.pid;
    let path = process.tmp()?.join(format!(".java_pid{}", process.own_pid));
    let begun = Instant::now();
    let (mut trigger, mut signals) = (None, 0);
    loop {
        match open(&path, process, LISTEN_TIME_MAX.saturating_sub(begun.elapsed()))? {
            Some(stream) => return Ok(stream),
            None if begun.elapsed() > LISTEN_TIME_MAX && signals > 0 => {
                return Err(Fault::NoAnswer { pid, seconds: LISTEN_TIME_MAX.as_secs() });
            }
            None if trigger.is_none() => trigger = Some(Trigger::new(process)?),
            None => {}
        }
        let is_due = signals == 0 || signals == 1 && begun.elapsed() > LISTEN_TIME_MAX / 2;
        match process.now()?.handles_sigquit {
            true if is_due => signals += u32::from(send_sigquit(process)?),
            false if begun.elapsed() > READY_TIME_MAX => return Err(Fault::NotReady { pid }),
            _ => {}
        }
        std::thread::sleep(PAUSE);
    }
}

/// Connects to the socket. `None` when no process listens on it.
fn open(path: &Path, process: &Process, time_max: Duration) -> Result<Option<UnixStream>, Fault> {
    let failed = |source| Fault::Io { doing: "connect to", path: path.to_owned(), source };
    let is_missing = |error: &io::Error| {
        // Connection refused: the socket file was left by an earlier process with this id.
        matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
    };
    match std::fs::symlink_metadata(path) {
        Ok(file) if file.file_type().is_socket() && file.uid() == process.uid => {}
        Ok(_) => return Err(Fault::NotItsOwn { pid: process.pid, path: path.to_owned() }),
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    match connect_within(path, time_max) {
        Ok(stream) if answers(&stream, process).map_err(failed)? => Ok(Some(stream)),
        Ok(_) => Err(Fault::NotItsOwn { pid: process.pid, path: path.to_owned() }),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(Fault::NoAnswer { pid: process.pid, seconds: LISTEN_TIME_MAX.as_secs() })
        }
        Err(error) => Err(failed(error)),
    }
}

/// Connects to a socket, with a timeout. `UnixStream::connect` has none: it would block as long as the JVM's queue of connections
/// is full and the JVM accepts no connection.
fn connect_within(path: &Path, time_max: Duration) -> io::Result<UnixStream> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A timeout of zero would mean no timeout.
    sockopt::set_socket_timeout(&socket, Timeout::Send, Some(time_max.max(PAUSE)))?;
    net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Whether the process itself listens at the other end. Another process of the same user may have created the socket.
fn answers(stream: &UnixStream, process: &Process) -> io::Result<bool> {
    let peer = sockopt::socket_peercred(stream)?;
    Ok((peer.pid.as_raw_nonzero().get().cast_unsigned(), peer.uid.as_raw()) == (process.pid, process.uid))
}

/// Sends SIGQUIT if the process has a handler for it. Returns whether the signal was sent. SIGQUIT would end a process without a
/// handler, for example another process that has the id by now.
fn send_sigquit(process: &Process) -> Result<bool, Fault> {
    let pid = process.pid;
    let failed = |error: Errno| match error {
        Errno::SRCH => Fault::Ended { pid },
        error => Fault::Io { doing: "signal", path: format!("/proc/{pid}").into(), source: error.into() },
    };
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Fault::NoProcess { pid })?;
    // The pidfd is opened before the check, so that only the checked process can get the signal.
    let held = match rustix::process::pidfd_open(number, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Err(Fault::Ended { pid }),
        // Kernels before 5.3 have no pidfd, and containers may forbid it. Without a pidfd, a process that gets the id after the
        // check would get the signal.
        held => held.ok(),
    };
    if !process.now()?.handles_sigquit {
        return Ok(false);
    }
    let sent = match held {
        Some(held) => rustix::process::pidfd_send_signal(held, Signal::QUIT),
        None => rustix::process::kill_process(number, Signal::QUIT),
    };
    sent.map(|()| true).map_err(failed)
}

/// The file by which the JVM distinguishes SIGQUIT for attaching from other SIGQUITs. Dropping this value removes the file.
struct Trigger {
    /// Open, so that the file can be removed even after the process has ended.
    directory: OwnedFd,
    name: String,
}

impl Trigger {
    /// Creates the file in the working directory of the process, or in its /tmp if the working directory is not writable.
    fn new(process: &Process) -> Result<Self, Fault> {
        let own = Self::in_directory(&process.working_directory(), process);
        own.or_else(|_| {
            let tmp = process.tmp()?;
            Self::in_directory(&tmp, process).map_err(|error| Fault::Io {
                doing: "create a file in",
                path: tmp,
                source: error,
            })
        })
    }

    fn in_directory(path: &Path, process: &Process) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        let name = format!(".attach_pid{}", process.own_pid);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::openat(&directory, name.as_str(), flags, Mode::RUSR | Mode::WUSR) {
            // The JVM's user becomes the owner. This fails without root, which is harmless if the owner is right already.
            Ok(file) => {
                let _ = std::os::unix::fs::fchown(file, Some(process.uid), Some(process.gid));
            }
            // Another process attaches at the same time, or was killed while it attached. The JVM ignores files of users other
            // than its own and root.
            Err(Errno::EXIST) => {
                let there = rustix::fs::statat(&directory, name.as_str(), AtFlags::SYMLINK_NOFOLLOW)?;
                if there.st_uid != process.uid && there.st_uid != 0 {
                    return Err(Errno::EXIST.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Self { directory, name })
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        // A concurrent attach may have removed the file.
        let _ = rustix::fs::unlinkat(&self.directory, self.name.as_str(), AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_say_whether_the_agent_was_loaded() {
        let stack = "java.lang.module.FindException: Module java.instrument not found\n\tat java.base/java.lang.module\n";
        let disabled =
            "Dynamic agent loading is not enabled. Use -XX:+EnableDynamicAgentLoading to launch target VM.";
        let long = "x".repeat(1_000);
        let cut = format!("{}…", "x".repeat(SAID_BYTES_MAX));
        for (answer, expect) in [
            ("0\nreturn code: 0\n".to_owned(), None),
            ("0\nreturn code: 0".to_owned(), None),
            (
                "0\nreturn code: 100\n".to_owned(),
                Some("the JVM cannot read the jar, or the jar is not an agent"),
            ),
            ("0\nreturn code: 102\n".to_owned(), Some("the agent could not start")),
            ("0\nreturn code: 7\n".to_owned(), Some("return code: 7")),
            (
                "0\ninstrument was not loaded.\nsome reason\n".to_owned(),
                Some("instrument was not loaded.; some reason"),
            ),
            (format!("-1\n{disabled}\n"), Some(disabled)),
            (
                format!("-1\n{stack}"),
                Some("java.lang.module.FindException: Module java.instrument not found"),
            ),
            ("-1\n\u{1b}[2Jno\n".to_owned(), Some("\\u{1b}[2Jno")),
            ("101\n".to_owned(), Some("code 101")),
            ("101".to_owned(), Some("code 101")),
            ("-1\nreturn code: 0\n".to_owned(), Some("return code: 0")),
            (format!("-1\n{long}"), Some(cut.as_str())),
        ] {
            assert_eq!(check_response(&answer).err().as_deref(), expect, "{answer:?}");
        }
    }

    #[test]
    fn only_a_starting_jvm_is_asked_again() {
        for (answer, expect) in [
            ("-1\njava.lang.NullPointerException\n\tat java.base/java.lang.Module\n", true),
            ("-1\nDynamic agent loading is only permitted in the live phase\n", true),
            ("-1\nDynamic agent loading is not enabled. Use -XX:+EnableDynamicAgentLoading\n", false),
            ("0\nreturn code: 102\n", false),
        ] {
            assert_eq!(is_not_ready(&check_response(answer).unwrap_err()), expect, "{answer:?}");
        }
    }

    #[test]
    fn a_response_that_arrives_slowly_is_not_awaited_longer_than_the_limit() {
        let (mut tacho, mut jvm) = UnixStream::pair().unwrap();
        let jvm = std::thread::spawn(move || {
            let mut bytes = 0;
            while jvm.write_all(b"0").is_ok() && bytes < ANSWER_BYTES_MAX {
                bytes += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            bytes
        });
        let answer = ask(&mut tacho, b"1", Duration::from_millis(200));
        drop(tacho);
        assert!(matches!(answer.map_err(|e| e.kind()), Err(ErrorKind::TimedOut | ErrorKind::WouldBlock)));
        assert!(jvm.join().unwrap() < ANSWER_BYTES_MAX, "the response was read to its end");
    }

    #[test]
    fn a_jvm_that_accepts_no_connection_is_not_awaited_longer_than_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        net::listen(&listener, 0).unwrap();
        let connect = || connect_within(&path, Duration::from_millis(50));
        let waiting = connect().unwrap();
        assert_eq!(connect().unwrap_err().kind(), ErrorKind::WouldBlock);
        drop((waiting, listener));
    }

    /// A shell that exits at the end of its input. If it `handles` SIGQUIT, it exits with 7 on that signal.
    fn shell(handles: bool) -> (std::process::Child, Process) {
        let script = if handles { "trap 'exit 7' QUIT; echo up; read line" } else { "echo up; read line" };
        // When tests run in the background of a script, SIGQUIT is ignored, and a shell cannot change that.
        let mut command = std::process::Command::new("env");
        command.args(["--default-signal=QUIT", "sh", "-c", script]);
        let piped = std::process::Stdio::piped;
        let mut child = command.stdin(piped()).stdout(piped()).spawn().unwrap();
        let mut up = [0; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
        let process = Process::find(child.id()).expect("the shell runs");
        (child, process)
    }

    #[test]
    fn a_signal_is_sent_only_to_the_process_that_was_found() {
        let (mut child, process) = shell(true);
        let earlier = Process { started: process.started - 1, ..process.clone() };
        let of_another = Process { uid: process.uid + 1, ..process.clone() };
        for meant in [earlier, of_another] {
            assert!(matches!(send_sigquit(&meant), Err(Fault::Another { .. })), "{meant:?}");
        }
        drop(child.stdin.take());
        assert_ne!(child.wait().unwrap().code(), Some(7), "a process that was not meant got the signal");
        assert!(matches!(send_sigquit(&process), Err(Fault::Ended { .. })));

        let (mut deaf, process) = shell(false);
        assert!(!send_sigquit(&process).unwrap(), "the signal was sent, although it ends the process");
        drop(deaf.stdin.take());
        assert!(deaf.wait().unwrap().code().is_some(), "a signal has ended the process");

        let (mut child, process) = shell(true);
        assert!(send_sigquit(&process).unwrap());
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }

    #[test]
    fn the_trigger_file_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let this = Process::find(std::process::id()).expect("this process exists");
        let file = directory.path().join(format!(".attach_pid{}", this.own_pid));
        for is_there in [false, true] {
            if is_there {
                std::fs::write(&file, "").unwrap();
            }
            let trigger = Trigger::in_directory(directory.path(), &this).unwrap();
            assert!(file.exists());
            drop(trigger);
            assert!(!file.exists());
        }
        Trigger::in_directory(&directory.path().join("gone"), &this)
            .err()
            .expect("a missing directory is an error");
    }

    #[test]
    fn only_a_socket_of_the_process_itself_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let this = Process::find(std::process::id()).expect("this process exists");
        let path = directory.path().join("socket");
        assert!(open(&path, &this, LISTEN_TIME_MAX).unwrap().is_none());
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(open(&path, &this, LISTEN_TIME_MAX).unwrap().is_some());
        for other in
            [Process { uid: this.uid + 1, ..this.clone() }, Process { pid: this.pid + 1, ..this.clone() }]
        {
            assert!(
                matches!(open(&path, &other, LISTEN_TIME_MAX), Err(Fault::NotItsOwn { .. })),
                "{other:?}"
            );
        }
        // A child process that another test starts at this moment also holds the listener, until its program begins.
        let socket = std::os::unix::net::UnixStream::from(std::os::fd::OwnedFd::from(listener));
        socket.shutdown(std::net::Shutdown::Both).unwrap();
        drop(socket);
        assert!(
            open(&path, &this, LISTEN_TIME_MAX).unwrap().is_none(),
            "a socket without a listener was used"
        );
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(matches!(open(&path, &this, LISTEN_TIME_MAX), Err(Fault::NotItsOwn { .. })));
    }
}
