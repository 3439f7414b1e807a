//! Java for tests: the JDKs, the agent, and a program that runs until it is dropped.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};

use tempfile::TempDir;

use crate::support::wait_for;

/// A program that prints `up` and then calls `step` at most two hundred times per second.
const PROGRAM: &str = "package late;
public final class Loop {
    public static void main(String[] arguments) throws Exception {
        System.out.println(\"up\");
        for (long n = 0; true; n = step(n)) {
            Thread.sleep(5);
        }
    }
    static long step(long n) {
        return n + 1;
    }
}
";

/// Environment variables that change the behaviour and the output of a JVM.
const OPTIONS_VARIABLES: [&str; 3] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];

/// The files that all tests with Java need.
pub struct Java {
    /// The directory with the compiled [`PROGRAM`], readable for all users.
    classes: Arc<TempDir>,
    pub agent: PathBuf,
}

impl Java {
    /// Returns `None` in the quick tests (`TACHO_TEST_QUICK=1`), which do not use Java.
    pub fn new() -> Option<Self> {
        if std::env::var("TACHO_TEST_QUICK").is_ok_and(|value| value == "1") {
            eprintln!("skipped: the quick tests do not use Java");
            return None;
        }
        let built =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agent/java/target/tachograph-agent.jar");
        let agent = std::env::var_os("TACHO_AGENT_JAR").map_or(built, PathBuf::from);
        assert!(agent.is_file(), "{} is missing; make it with: make build", agent.display());
        let agent = agent.canonicalize().unwrap();
        Some(Self { classes: classes(), agent })
    }

    /// Whether this user can start Java as `user`. Root can, if it may change its user id and `user` can read the JDK.
    pub fn starts_as(user: u32) -> bool {
        let mut java = Command::new(home(17).join("bin/java"));
        let output = java.arg("-version").current_dir("/").uid(user).gid(user).output();
        output.is_ok_and(|output| output.status.success())
    }

    pub fn start(&self, version: u32, options: &[&str], variables: &[(&str, &str)]) -> Program {
        self.start_as(None, version, options, variables)
    }

    /// Like [`Java::start`], as another user. Only root can do this.
    pub fn start_as(
        &self,
        user: Option<u32>,
        version: u32,
        options: &[&str],
        variables: &[(&str, &str)],
    ) -> Program {
        let program = self.spawn(user, version, options, variables);
        wait_for("the program", || (!program.output().is_empty()).then_some(()));
        program
    }

    /// Like [`Java::start_as`], but does not wait until the program prints `up`.
    pub fn spawn(
        &self,
        user: Option<u32>,
        version: u32,
        options: &[&str],
        variables: &[(&str, &str)],
    ) -> Program {
        let folder = for_all();
        let mut command = Command::new(home(version).join("bin/java"));
        command.args(options).arg("-Xmx64m").arg("-cp").arg(self.classes.path()).arg("late.Loop");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TACHO_") {
                command.env_remove(name);
            }
        }
        for name in OPTIONS_VARIABLES {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied()).current_dir(folder.path()).stdin(Stdio::null());
        command.stdout(File::create(folder.path().join("out")).unwrap());
        command.stderr(File::create(folder.path().join("err")).unwrap());
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        Program { child: command.spawn().expect("java can be started"), folder }
    }
}

/// Compiles [`PROGRAM`], once for all tests that run at the same time.
fn classes() -> Arc<TempDir> {
    // Statics are never dropped, so a strong reference would keep the directory.
    static SHARED: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let classes = Arc::new(compile());
        *shared = Arc::downgrade(&classes);
        classes
    })
}

fn compile() -> TempDir {
    let classes = for_all();
    let source = classes.path().join("Loop.java");
    fs::write(&source, PROGRAM).unwrap();
    let mut javac = Command::new(home(17).join("bin/javac"));
    let output = javac.args(["--release", "11", "-d"]).arg(classes.path()).arg(&source).output();
    let output = output.expect("javac can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    classes
}

/// A directory that other users may enter. It is not in `TMPDIR`, which other users may not be able to enter.
pub fn for_all() -> TempDir {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// A running JVM; killed when dropped.
pub struct Program {
    child: Child,
    /// The working directory of the program, with its output in `out` and `err`.
    folder: TempDir,
}

impl Program {
    pub fn number(&self) -> u32 {
        self.child.id()
    }

    pub fn pid(&self) -> String {
        self.number().to_string()
    }

    pub fn output(&self) -> String {
        fs::read_to_string(self.folder.path().join("out")).unwrap()
    }

    pub fn errors(&self) -> String {
        fs::read_to_string(self.error_file()).unwrap()
    }

    pub fn error_file(&self) -> PathBuf {
        self.folder.path().join("err")
    }

    pub fn stop(&self) {
        self.signal("-STOP");
        let status = format!("/proc/{}/status", self.pid());
        wait_for("the program to be stopped", || {
            fs::read_to_string(&status).unwrap().contains("\nState:\tT").then_some(())
        });
    }

    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.pid()]).status().expect("kill runs");
        assert!(sent.success(), "{name} could not be sent");
    }

    /// Checks that the program still runs, and that attaching added nothing to its output and left no file in its working
    /// directory or in `/tmp`.
    pub fn check(&mut self) {
        assert!(self.child.try_wait().unwrap().is_none(), "the program has ended: {}", self.errors());
        assert_eq!(self.output(), "up\n");
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, ["err", "out"]);
        let settings = format!("tachograph-{}-", self.pid());
        let mut tmp = fs::read_dir("/tmp").unwrap().map(|entry| entry.unwrap().file_name());
        assert!(!tmp.any(|name| name.to_string_lossy().starts_with(&settings)), "settings are left in /tmp");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A killed JVM does not remove its socket for attaching.
        let _ = fs::remove_file(format!("/tmp/.java_pid{}", self.number()));
    }
}

/// The home of a JDK of this version, from `TACHO_JDK<version>`, `JAVA_HOME`, or below the usual directories.
fn home(version: u32) -> PathBuf {
    let named = [format!("TACHO_JDK{version}"), "JAVA_HOME".into()];
    let named = named.iter().filter_map(std::env::var_os).map(PathBuf::from);
    let below = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten();
        let mut homes: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        homes.sort();
        homes
    };
    let sdkman = std::env::home_dir().unwrap_or_default().join(".sdkman/candidates/java");
    let folders = ["/usr/lib/jvm".into(), "/opt/java".into(), sdkman];
    let is_it = |home: &PathBuf| {
        let release = fs::read_to_string(home.join("release")).unwrap_or_default();
        let line = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""));
        let feature = line.and_then(|line| line.split(['.', '"', '-', '+']).next()?.parse().ok());
        feature == Some(version) && home.join("bin/javac").is_file()
    };
    named.chain(folders.into_iter().flat_map(below)).find(is_it).unwrap_or_else(|| {
        panic!(
            "the agent is tested on JDK {version}, which is missing: install it, or set TACHO_JDK{version} to its home"
        )
    })
}
