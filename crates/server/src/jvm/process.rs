//! What does /proc say of a process? (proc(5))

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of one file that are looked at: far more than any of them has.
const FILE_BYTES_MAX: u64 = 16 << 20;
const SIGQUIT: u32 = 3;

/// A process, as it was when it was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Its number in its own namespace: what it takes itself for.
    pub own_pid: u32,
    /// The effective ones.
    pub uid: u32,
    pub gid: u32,
    /// Whether SIGQUIT runs a handler of its own. Where not, the signal would end it.
    pub handles_sigquit: bool,
    /// By SIGSTOP, or a debugger.
    pub is_stopped: bool,
}

/// What a process runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    /// `tells`: it keeps a file for [`super::perf_data`].
    HotSpot {
        tells: bool,
    },
    OpenJ9,
    None,
}

impl Process {
    pub fn find(pid: u32) -> Option<Self> {
        Self::parse(&text(&Path::new("/proc").join(pid.to_string()).join("status"))?)
    }

    /// Numbers of all processes.
    pub(super) fn all() -> Vec<u32> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
    }

    /// From /proc/PID/status.
    fn parse(status: &str) -> Option<Self> {
        let line = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let numbers = |key: &str| -> Option<Vec<u32>> {
            line(key)?.split_whitespace().map(|word| word.parse().ok()).collect()
        };
        // The process, also where the number is that of one of its threads.
        let pid = *numbers("Tgid")?.first()?;
        // From the outermost namespace to its own. Kernels before 4.1 do not say it.
        let own_pid = numbers("NSpid").and_then(|pids| pids.last().copied()).unwrap_or(pid);
        // Real, effective, saved, and that for files.
        let effective = |key| numbers(key).and_then(|ids| ids.get(1).copied());
        let handled = u64::from_str_radix(line("SigCgt")?.trim(), 16).ok()?;
        let handles_sigquit = handled & (1 << (SIGQUIT - 1)) != 0;
        let is_stopped = line("State")?.trim_start().starts_with(['T', 't']);
        let (uid, gid) = (effective("Uid")?, effective("Gid")?);
        Some(Self { pid, own_pid, uid, gid, handles_sigquit, is_stopped })
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.pid.to_string()).join(name)
    }

    /// As it is in its own view of the file system.
    pub fn seen(&self, path: &Path) -> PathBuf {
        self.file("root").join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Its /tmp, where HotSpot keeps its files, whatever the variables of its environment say.
    pub fn tmp(&self) -> PathBuf {
        let seen = self.seen(Path::new("/tmp"));
        // A process with more rights than ours does not show its root.
        if seen.is_dir() { seen } else { "/tmp".into() }
    }

    pub fn working_directory(&self) -> PathBuf {
        self.file("cwd")
    }

    pub fn name(&self) -> String {
        text(&self.file("comm")).map_or_else(|| "?".into(), |text| text.trim_end().to_owned())
    }

    /// Whether this user may do as it pleases with it.
    pub fn is_open_to_us(&self) -> bool {
        let us = rustix::process::geteuid();
        us.is_root() || us.as_raw() == self.uid
    }

    /// `None` where it does not show itself, or has ended.
    pub(super) fn machine(&self) -> Option<Machine> {
        let maps = text(&self.file("maps"))?;
        Some(machine(&maps))
    }

    /// The command line.
    pub(super) fn arguments(&self) -> Vec<String> {
        words(&self.file("cmdline"))
    }

    /// Whether its command is called `java`.
    pub(super) fn is_java_command(&self) -> bool {
        self.arguments().first().is_some_and(|command| command.rsplit('/').next() == Some("java"))
    }

    /// A variable of the environment in which it was started; none where it does not show it.
    pub fn variable(&self, name: &str) -> Option<String> {
        let words = words(&self.file("environ"));
        words.iter().find_map(|word| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    }

    /// Whether one of its threads has this name, of which Linux keeps 15 bytes.
    pub(super) fn has_thread(&self, name: &str) -> bool {
        let Ok(threads) = fs::read_dir(self.file("task")) else { return false };
        let mut names = threads.filter_map(|thread| text(&thread.ok()?.path().join("comm")));
        names.any(|thread| thread.trim_end() == name)
    }

    /// The file in which a JVM tells of itself.
    pub(super) fn perf_data(&self) -> Option<Vec<u8>> {
        let mut folders = fs::read_dir(self.tmp()).ok()?.filter_map(|entry| {
            let entry = entry.ok()?;
            entry.file_name().to_str()?.starts_with("hsperfdata_").then(|| entry.path())
        });
        let its_own = |path: &PathBuf| {
            fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.uid() == self.uid)
        };
        let path = folders.find_map(|folder| Some(folder.join(self.own_pid.to_string())).filter(its_own))?;
        read(&path).ok()
    }

    /// Where its standard error goes, if that is a file.
    pub fn standard_error(&self) -> Option<PathBuf> {
        fs::read_link(self.file("fd/2")).ok().filter(|path| path.is_absolute() && !path.starts_with("/dev"))
    }

    /// Whether it has this machine's network.
    pub fn shares_network(&self) -> bool {
        let network = |process: &Path| fs::read_link(process.join("ns/net")).ok();
        let its = network(&self.file(""));
        its.is_none() || its == network(Path::new("/proc/self"))
    }
}

/// From /proc/PID/maps.
fn machine(maps: &str) -> Machine {
    let has = |file: &str| maps.contains(file);
    match () {
        () if has("/libj9vm") => Machine::OpenJ9,
        () if has("/libjvm.so") => Machine::HotSpot { tells: has("/hsperfdata_") },
        () => Machine::None,
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&read(path).ok()?).into_owned())
}

/// Words with a 0 behind each.
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
    fn a_status_says_who_it_is() {
        let (handles_sigquit, is_stopped) = (true, false);
        let expect = Process { pid: 4711, own_pid: 7, uid: 1000, gid: 1001, handles_sigquit, is_stopped };
        assert_eq!(Process::parse(STATUS), Some(expect.clone()));
        let old = STATUS.replace("NSpid", "Other");
        assert_eq!(Process::parse(&old), Some(Process { own_pid: 4711, ..expect.clone() }));
        let deaf = STATUS.replace("5ccf", "5ccb");
        assert_eq!(Process::parse(&deaf), Some(Process { handles_sigquit: false, ..expect.clone() }));
        let stopped = STATUS.replace("S (sleeping)", "T (stopped)");
        assert_eq!(Process::parse(&stopped), Some(Process { is_stopped: true, ..expect }));
        for broken in ["", "Tgid:\t\n", &STATUS.replace("Uid", "Who"), &STATUS.replace("5ccf", "wxyz")] {
            assert_eq!(Process::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn this_process_shows_itself() {
        let this = Process::find(std::process::id()).expect("it is there");
        assert_eq!(this.pid, std::process::id());
        assert!(this.is_open_to_us() && this.shares_network());
        assert_eq!(this.machine(), Some(Machine::None));
        assert_eq!(this.variable("PATH"), std::env::var("PATH").ok());
        assert_eq!(this.arguments(), std::env::args().collect::<Vec<_>>());
        assert!(this.has_thread(&this.name()) && !this.has_thread("no such thread"));
        assert!(Process::all().contains(&this.pid));
        assert_eq!(Process::find(u32::MAX), None);
    }

    #[test]
    fn a_jvm_is_known_by_its_library() {
        let line = |file: &str| format!("7f00-7f01 r-xp 00000000 fe:00 12 {file}\n");
        for (files, expect) in [
            (&["/usr/lib/libc.so.6"][..], Machine::None),
            (&["/opt/jdk/lib/server/libjvm.so"], Machine::HotSpot { tells: false }),
            (&["/opt/jdk/lib/server/libjvm.so", "/tmp/hsperfdata_a/7"], Machine::HotSpot { tells: true }),
            (&["/opt/j9/lib/j9vm/libjvm.so", "/opt/j9/lib/default/libj9vm29.so"], Machine::OpenJ9),
        ] {
            let maps: String = files.iter().map(|file| line(file)).collect();
            assert_eq!(machine(&maps), expect, "{maps}");
        }
    }
}
