//! Reads the properties of a process from /proc (proc(5)).

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::Fault;

/// Limit on the bytes that are read from one file, far above the usual sizes.
const FILE_BYTES_MAX: u64 = 16 << 20;
const SIGQUIT: u32 = 3;
/// Index of the start time in the fields of /proc/PID/stat after the name. The start time is field 22; field 3 follows the name.
const STARTED_AT: usize = 22 - 3;
/// Limit on the directories that are searched for the file `release`: the directory of `libjvm.so` and its parents. In Java 8,
/// `libjvm.so` is in `jre/lib/amd64/server` of the JDK.
const HOME_DEPTH_MAX: usize = 5;

/// The state of a process when it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// The process id in the process's own namespace.
    pub own_pid: u32,
    /// Start time in clock ticks since boot. Distinguishes the process from a later one with the same id.
    pub started: u64,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
    /// Whether the process has a handler for SIGQUIT. Without a handler, the signal would end the process.
    pub handles_sigquit: bool,
    /// Whether a stop signal or a debugger has stopped the process.
    pub is_stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    /// `has_perf_data`: the JVM has a performance data file ([`super::perf_data`]).
    HotSpot {
        has_perf_data: bool,
    },
    OpenJ9,
    None,
}

impl Process {
    pub fn find(pid: u32) -> Option<Self> {
        let folder = Path::new("/proc").join(pid.to_string());
        // The start time is read first. If another process gets the id before the status is read, the start time is that of the
        // old process. A later call of `now` then returns an error.
        let started = started(&text(&folder.join("stat"))?)?;
        let found = Self::parse(&text(&folder.join("status"))?, started)?;
        // `pid` may be the id of a thread, which has a later start time than its process.
        if found.pid == pid { Some(found) } else { Self::find(found.pid) }
    }

    /// The same process in its present state.
    ///
    /// # Errors
    /// When the process has ended, its id is reused, or its user has changed.
    pub(super) fn now(&self) -> Result<Self, Fault> {
        let pid = self.pid;
        let now = Self::find(pid).ok_or(Fault::Ended { pid })?;
        let who = |process: &Self| (process.started, process.own_pid, process.uid);
        if who(&now) == who(self) { Ok(now) } else { Err(Fault::Another { pid }) }
    }

    pub(super) fn all() -> Vec<u32> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
    }

    /// `status` is the text of /proc/PID/status.
    fn parse(status: &str, started: u64) -> Option<Self> {
        let line = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let numbers = |key: &str| -> Option<Vec<u32>> {
            line(key)?.split_whitespace().map(|word| word.parse().ok()).collect()
        };
        // The thread group id is the process id, even if the path of the status file has the id of another thread.
        let pid = *numbers("Tgid")?.first()?;
        // The ids are in order from the outermost namespace to the namespace of the process. Kernels before 4.1 lack
        // this line.
        let own_pid = numbers("NSpid").and_then(|pids| pids.last().copied()).unwrap_or(pid);
        // The ids are in this order: real, effective, saved, file system.
        let effective = |key| numbers(key).and_then(|ids| ids.get(1).copied());
        let handled = u64::from_str_radix(line("SigCgt")?.trim(), 16).ok()?;
        let handles_sigquit = handled & (1 << (SIGQUIT - 1)) != 0;
        let is_stopped = line("State")?.trim_start().starts_with(['T', 't']);
        let (uid, gid) = (effective("Uid")?, effective("Gid")?);
        Some(Self { pid, own_pid, started, uid, gid, handles_sigquit, is_stopped })
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.pid.to_string()).join(name)
    }

    /// Converts a path in the process's mount namespace to a path in the namespace of this program.
    pub fn seen(&self, path: &Path) -> PathBuf {
        self.file("root").join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The /tmp of the process. HotSpot creates its files there and ignores environment variables such as `TMPDIR`.
    ///
    /// # Errors
    /// If /tmp is a symbolic link in another mount namespace. This program would resolve the link in its own namespace.
    pub fn tmp(&self) -> Result<PathBuf, Fault> {
        self.tmp_at(self.seen(Path::new("/tmp")), self.shares_root())
    }

    fn tmp_at(&self, seen: PathBuf, shares_root: bool) -> Result<PathBuf, Fault> {
        match fs::symlink_metadata(&seen) {
            Ok(file) if file.is_symlink() && !shares_root => Err(Fault::LinkedTmp { pid: self.pid }),
            Ok(_) if seen.is_dir() => Ok(seen),
            // The root of a process with more rights than this program is not readable.
            _ => Ok("/tmp".into()),
        }
    }

    fn shares_root(&self) -> bool {
        is_same_file(Path::new("/"), &self.seen(Path::new("/")))
    }

    pub fn working_directory(&self) -> PathBuf {
        self.file("cwd")
    }

    pub fn name(&self) -> String {
        text(&self.file("comm")).map_or_else(|| "?".into(), |text| text.trim_end().to_owned())
    }

    /// Whether this program runs as the user of the process, or as root.
    pub fn is_accessible(&self) -> bool {
        let us = rustix::process::geteuid();
        us.is_root() || us.as_raw() == self.uid
    }

    /// The kind of JVM; [`Machine::None`] when the process is not a JVM. `None` when the process is not readable or has ended.
    pub(super) fn machine(&self) -> Option<Machine> {
        let maps = text(&self.file("maps"))?;
        Some(machine(&maps))
    }

    pub(super) fn arguments(&self) -> Vec<String> {
        words(&self.file("cmdline"))
    }

    /// Whether the command line begins with `java`, with or without a directory.
    pub(super) fn is_java_command(&self) -> bool {
        self.arguments().first().is_some_and(|command| command.rsplit('/').next() == Some("java"))
    }

    /// A variable of the environment that the process started with. `None` when it is not set, or the environment is not
    /// readable.
    pub fn variable(&self, name: &str) -> Option<String> {
        let words = words(&self.file("environ"));
        words.iter().find_map(|word| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    }

    /// Whether a thread of the process has this name. Linux truncates thread names to 15 bytes.
    pub(super) fn has_thread(&self, name: &str) -> bool {
        let Ok(threads) = fs::read_dir(self.file("task")) else { return false };
        let mut names = threads.filter_map(|thread| text(&thread.ok()?.path().join("comm")));
        names.any(|thread| thread.trim_end() == name)
    }

    pub(super) fn perf_data(&self) -> Option<Vec<u8>> {
        self.perf_data_below(&self.tmp().ok()?)
    }

    fn perf_data_below(&self, tmp: &Path) -> Option<Vec<u8>> {
        let mut folders = fs::read_dir(tmp).ok()?.filter_map(|entry| {
            let entry = entry.ok()?;
            // HotSpot creates a directory. Another user could create a symbolic link to any file.
            let is_folder = entry.file_type().is_ok_and(|it| it.is_dir());
            (is_folder && entry.file_name().to_str()?.starts_with("hsperfdata_")).then(|| entry.path())
        });
        let its_own = |path: &PathBuf| {
            fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.uid() == self.uid)
        };
        let path = folders.find_map(|folder| Some(folder.join(self.own_pid.to_string())).filter(its_own))?;
        read(&path).ok()
    }

    /// The Java version from the file `release` of the JDK. Used if the JVM has no performance data file, because an option
    /// disables that file or because the JVM's user has no name.
    pub(super) fn java_version(&self) -> Option<String> {
        let maps = text(&self.file("maps"))?;
        let folders = library(&maps)?.ancestors().skip(1).take(HOME_DEPTH_MAX);
        let mut releases = folders.filter_map(|folder| text(&self.seen(&folder.join("release"))));
        releases.find_map(|release| java_version(&release))
    }

    /// The file to which the process writes its standard error. `None` for a pipe, a socket or a device, or if
    /// /proc/PID/fd is not readable.
    pub fn standard_error(&self) -> Option<PathBuf> {
        fs::read_link(self.file("fd/2")).ok().filter(|path| path.is_absolute() && !path.starts_with("/dev"))
    }

    /// Whether the process shares the network namespace of this program. True if its namespace is not readable.
    pub fn shares_network(&self) -> bool {
        let network = |process: &Path| fs::read_link(process.join("ns/net")).ok();
        let its = network(&self.file(""));
        its.is_none() || its == network(Path::new("/proc/self"))
    }
}

/// Detects the kind of JVM in /proc/PID/maps.
fn machine(maps: &str) -> Machine {
    let has = |file: &str| maps.contains(file);
    match () {
        () if has("/libj9vm") => Machine::OpenJ9,
        () if has("/libjvm.so") => Machine::HotSpot { has_perf_data: has("/hsperfdata_") },
        () => Machine::None,
    }
}

/// Finds the path of the JVM's library in /proc/PID/maps.
fn library(maps: &str) -> Option<&Path> {
    let line = maps.lines().find(|line| line.ends_with("/libjvm.so"))?;
    Some(Path::new(&line[line.find('/')?..]))
}

/// Parses the file `release` of a JDK, which has a line like `JAVA_VERSION="17.0.15"`.
fn java_version(release: &str) -> Option<String> {
    let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    Some(version.trim().trim_matches('"').to_owned()).filter(|version| !version.is_empty())
}

/// Parses the start time in /proc/PID/stat. The name before it may contain any characters, even blanks and brackets.
fn started(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(STARTED_AT)?.parse().ok()
}

/// Whether both paths refer to the same file.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b)) else { return false };
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Reads a file without following a symbolic link and without blocking on a pipe, because other users may control the
/// directory.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&read(path).ok()?).into_owned())
}

/// Reads a file of texts that are separated by 0 bytes.
fn words(path: &Path) -> Vec<String> {
    let text = text(path).unwrap_or_default();
    text.split_terminator('\0').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tjava\nState:\tS (sleeping)\nTgid:\t4711\nPid:\t4712\n\
        Uid:\t0\t1000\t0\t0\nGid:\t0\t1001\t0\t0\nNSpid:\t4712\t812\t7\n\
        SigIgn:\t0000000000000000\nSigCgt:\t2000000181005ccf\n";

    #[test]
    fn user_and_ids_are_read_from_the_status() {
        let parse = |status: &str| Process::parse(status, 9);
        let (handles_sigquit, is_stopped) = (true, false);
        let expect =
            Process { pid: 4711, own_pid: 7, started: 9, uid: 1000, gid: 1001, handles_sigquit, is_stopped };
        assert_eq!(parse(STATUS), Some(expect.clone()));
        let old = STATUS.replace("NSpid", "Other");
        assert_eq!(parse(&old), Some(Process { own_pid: 4711, ..expect.clone() }));
        let deaf = STATUS.replace("5ccf", "5ccb");
        assert_eq!(parse(&deaf), Some(Process { handles_sigquit: false, ..expect.clone() }));
        let stopped = STATUS.replace("S (sleeping)", "T (stopped)");
        assert_eq!(parse(&stopped), Some(Process { is_stopped: true, ..expect }));
        for broken in ["", "Tgid:\t\n", &STATUS.replace("Uid", "Who"), &STATUS.replace("5ccf", "wxyz")] {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn the_start_time_is_parsed_after_any_process_name() {
        let fields =
            "S 1 1 1 0 -1 4194304 98 0 0 0 0 0 0 0 20 0 1 0 8372113 3182592 187 18446744073709551615";
        for name in ["java", "a b", "x) S 1 1 (y", ""] {
            assert_eq!(started(&format!("4711 ({name}) {fields}\n")), Some(8_372_113), "{name}");
        }
        for broken in ["", "4711 (java", "4711 (java) S 1 1 1", &fields.replace("8372113", "-1")] {
            assert_eq!(started(broken), None, "{broken}");
        }
    }

    #[test]
    fn another_process_with_the_same_id_is_not_accepted() {
        let this = Process::find(std::process::id()).expect("this process exists");
        assert_eq!(this.now().unwrap().started, this.started);
        for other in [
            Process { started: this.started - 1, ..this.clone() },
            Process { uid: this.uid + 1, ..this.clone() },
            Process { own_pid: this.own_pid + 1, ..this },
        ] {
            assert!(matches!(other.now(), Err(Fault::Another { .. })), "{other:?}");
        }
        let gone = Process { pid: u32::MAX, ..Process::find(std::process::id()).unwrap() };
        assert!(matches!(gone.now(), Err(Fault::Ended { .. })));
    }

    #[test]
    fn a_link_in_place_of_tmp_is_followed_only_if_the_root_is_shared() {
        let this = Process::find(std::process::id()).expect("this process exists");
        let directory = tempfile::tempdir().unwrap();
        let (folder, link) = (directory.path().join("tmp"), directory.path().join("link"));
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        for (seen, shares_root, expect) in [
            (&folder, true, Some(folder.as_path())),
            (&folder, false, Some(&folder)),
            (&link, true, Some(&link)),
            (&link, false, None),
            (&directory.path().join("gone"), false, Some(Path::new("/tmp"))),
        ] {
            let found = this.tmp_at(seen.clone(), shares_root);
            let is_linked = matches!(found, Err(Fault::LinkedTmp { .. }));
            assert_eq!((found.ok().as_deref(), is_linked), (expect, expect.is_none()), "{}", seen.display());
        }
    }

    #[test]
    fn a_file_is_read_from_a_directory_but_not_through_a_link() {
        let this = Process::find(std::process::id()).expect("this process exists");
        let [tmp, elsewhere] = [0; 2].map(|_| tempfile::tempdir().unwrap());
        let file = this.own_pid.to_string();
        let told = |tmp: &Path| this.perf_data_below(tmp);
        fs::write(elsewhere.path().join(&file), "elsewhere").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), tmp.path().join("hsperfdata_a")).unwrap();
        assert_eq!(told(tmp.path()), None, "a file in a linked directory was read");
        let folder = tmp.path().join("hsperfdata_b");
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join(&file), folder.join(&file)).unwrap();
        assert_eq!(told(tmp.path()), None, "a linked file was read");
        read(&folder.join(&file)).unwrap_err();
        fs::remove_file(folder.join(&file)).unwrap();
        fs::write(folder.join(&file), "its own").unwrap();
        assert_eq!(told(tmp.path()), Some(b"its own".to_vec()));
    }

    #[test]
    fn the_properties_of_this_process_are_read() {
        let this = Process::find(std::process::id()).expect("this process exists");
        assert_eq!(this.pid, std::process::id());
        assert!(this.is_accessible() && this.shares_network());
        assert_eq!(this.machine(), Some(Machine::None));
        assert_eq!(this.variable("PATH"), std::env::var("PATH").ok());
        assert_eq!(this.arguments(), std::env::args().collect::<Vec<_>>());
        assert!(this.has_thread(&this.name()) && !this.has_thread("no such thread"));
        assert!(Process::all().contains(&this.pid));
        assert_eq!(Process::find(u32::MAX), None);
        assert!(this.shares_root());
        assert_eq!(this.tmp().unwrap(), this.seen(Path::new("/tmp")));
    }

    #[test]
    fn a_jvm_is_recognised_by_its_library() {
        let line = |file: &str| format!("7f00-7f01 r-xp 00000000 fe:00 12 {file}\n");
        for (files, expect) in [
            (&["/usr/lib/libc.so.6"][..], Machine::None),
            (&["/opt/jdk/lib/server/libjvm.so"], Machine::HotSpot { has_perf_data: false }),
            (
                &["/opt/jdk/lib/server/libjvm.so", "/tmp/hsperfdata_a/7"],
                Machine::HotSpot { has_perf_data: true },
            ),
            (&["/opt/j9/lib/j9vm/libjvm.so", "/opt/j9/lib/default/libj9vm29.so"], Machine::OpenJ9),
        ] {
            let maps: String = files.iter().map(|file| line(file)).collect();
            assert_eq!(machine(&maps), expect, "{maps}");
        }
    }
    #[test]
    fn the_version_is_read_from_the_release_file() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("a jdk");
        fs::create_dir_all(home.join("lib/server")).unwrap();
        let library_path = home.join("lib/server/libjvm.so");
        let maps = format!(
            "7f00-7f01 r-xp 00000000 fe:00 12    {}\n7f02-7f03 rw-p 0 0:0 0\n",
            library_path.display()
        );
        assert_eq!(library(&maps), Some(library_path.as_path()));
        assert_eq!(library("7f00-7f01 r-xp 00000000 fe:00 12 /usr/lib/libc.so.6\n"), None);
        for (release, expect) in [
            ("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\nOS_NAME=\"Linux\"\n", Some("17.0.15")),
            ("JAVA_VERSION=25-ea", Some("25-ea")),
            ("JAVA_VERSION=\"\"\n", None),
            ("JAVA_RUNTIME_VERSION=\"17\"\n", None),
        ] {
            assert_eq!(java_version(release).as_deref(), expect, "{release}");
        }
    }
}
