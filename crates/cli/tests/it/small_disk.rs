//! Tests a real server on a file system of 40 MiB that becomes full. New records are refused early, deletion and expiry free
//! space, and no acknowledged record is lost. A token that does not fit on the disk changes nothing.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use tacho_model::mix64;

use crate::support::{self, Server, wait_for};

const DISK_BYTES: u64 = 40 << 20;
const DISK_FILES: u64 = 1_000;
const RESERVE_BYTES: u64 = 8 << 20;
const DAY_S: u64 = 86_400;

/// A tmpfs in its own mount namespace. The tmpfs and the namespace end with the process `holder`.
struct SmallDisk {
    holder: Child,
    path: PathBuf,
}

impl SmallDisk {
    /// # Panics
    /// If the file system can be mounted neither directly nor in a user namespace.
    fn mount(path: &Path) -> Self {
        let mut failures = Vec::new();
        // Users other than root become root in a user namespace.
        for flags in [&["--mount"][..], &["--user", "--map-root-user", "--mount"]] {
            let options = format!("size={DISK_BYTES},nr_inodes={DISK_FILES}");
            let script = format!("mount -t tmpfs -o {options} tmpfs \"$0\" && echo mounted && exec cat");
            let mut holder = Command::new("unshare")
                .args(flags)
                .args(["sh", "-c", &script])
                .arg(path)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("unshare (util-linux) is installed");
            let mut line = String::new();
            BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
            if line == "mounted\n" {
                return Self { holder, path: path.to_owned() };
            }
            let output = holder.wait_with_output().unwrap();
            failures.push(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        panic!("no small file system can be mounted, as root or in a user namespace: {failures:?}");
    }

    /// A command that runs a program in the namespace in which the file system is mounted.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let pid = self.holder.id().to_string();
        command.args(["--target", &pid, "--mount"]);
        let own = std::fs::read_link("/proc/self/ns/user").unwrap();
        if std::fs::read_link(format!("/proc/{pid}/ns/user")).unwrap() != own {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg("--").arg(program);
        command
    }

    fn start(&self, config: &Path) -> Server {
        let data = self.path.join("data");
        let mut command = self.command(support::tacho());
        command.args([
            "serve",
            "--http",
            "127.0.0.1:0",
            "--records",
            "127.0.0.1:0",
            "--selfwatch-seconds",
            "0",
        ]);
        command.args(["--disk-reserve-bytes", &RESERVE_BYTES.to_string(), "--config"]).arg(config);
        command.arg("--data").arg(&data);
        Server::from_command(command, &data).unwrap_or_else(|(status, log)| panic!("{status}: {log}"))
    }

    /// Runs a script in the file system. Its errors are ignored, because a script that fills the disk ends with one.
    fn script(&self, script: &str) {
        let script = format!("cd \"$0\" && {script}");
        self.command("sh").args(["-c", &script]).arg(&self.path).output().unwrap();
    }

    fn has(&self, file: &str) -> bool {
        self.command("test").arg("-e").arg(self.path.join("data").join(file)).status().unwrap().success()
    }

    /// Exit code, stdout and stderr of `tacho token add`.
    fn add_token(&self, name: &str) -> (Option<i32>, String, String) {
        let mut command = self.command(support::tacho());
        command.args(["token", "add", name, "--role", "admin", "--data"]).arg(self.path.join("data"));
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn free_bytes(&self) -> u64 {
        let output = self.command("df").args(["--output=avail", "-B1"]).arg(&self.path).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().last().and_then(|line| line.trim().parse().ok()).unwrap_or_else(|| panic!("{text:?}"))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// 100 entries of 2 kB, one per second. Their random hexadecimal digits cannot be compressed to less than half.
fn lines(part: &str, number: u64, start_s: u64) -> Vec<u8> {
    let mut out = String::new();
    for n in 0..100 {
        let word = |k: u64| {
            format!("{:016x}{:016x}", mix64(number << 32 | n << 16 | k), mix64(k ^ (number << 40 | n << 20)))
        };
        let text: String = (0..62).map(word).collect();
        out.push_str(&format!("{part},batch={number} value=\"{text}\" {}\n", start_s + n));
    }
    out.into_bytes()
}

/// Writes batches of `part` until one is refused. Returns the numbers of the acknowledged batches.
fn fill(server: &Server, part: &str, from: u64, start_s: u64) -> std::ops::Range<u64> {
    for number in from..from + 10_000 {
        let answer = server.post("/write?precision=s", &[], &lines(part, number, start_s));
        if answer.status != 204 {
            assert_eq!(answer.status, 503, "{}", answer.text());
            assert!(answer.text().contains("are reserved so that deletion works"), "{}", answer.text());
            assert!(answer.header("retry-after").is_some());
            return from..number;
        }
    }
    panic!("the disk does not become full");
}

fn is_ready(server: &Server) -> bool {
    let ready = server.get("/readyz");
    let status = server.get("/api/status").json();
    // Space may become free between the requests, so the status is checked only if `/readyz` does not change.
    if server.get("/readyz").status == ready.status {
        assert_eq!(status["disk_full"], ready.status != 200, "{status}");
    }
    if ready.status != 200 {
        assert_eq!(ready.status, 503);
        assert!(ready.text().contains("bytes are free on the disk"), "{}", ready.text());
    }
    ready.status == 200
}

fn check(server: &Server, expect: &BTreeMap<&str, u64>) {
    for (part, batches) in expect {
        let counted = server.get(&format!("/api/v1/admin/count?match[]={part}"));
        assert_eq!(counted.status, 200, "{}", counted.text());
        assert_eq!(counted.json()["data"]["entries"]["records"], batches * 100, "{part}");
    }
}

/// The small file system, with the directory that it is in and an empty configuration file.
fn small_disk() -> (tempfile::TempDir, SmallDisk, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let mount = dir.path().join("small");
    std::fs::create_dir(&mount).unwrap();
    let disk = SmallDisk::mount(&mount);
    let config = dir.path().join("tacho.toml");
    std::fs::write(&config, "").unwrap();
    (dir, disk, config)
}

#[test]
fn a_full_disk_loses_nothing_acknowledged_and_is_freed_again() {
    let (_dir, disk, config) = small_disk();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (today, aged) = (now - 1_000, now - 3 * DAY_S);

    let server = disk.start(&config);
    assert!(is_ready(&server));
    let old = fill(&server, "old", 0, today);
    assert!(old.end > 20, "{old:?}");
    assert!(!is_ready(&server));
    let free = disk.free_bytes();
    assert!(free >= RESERVE_BYTES / 2, "the last batch was accepted too late: only {free} bytes are free");
    check(&server, &BTreeMap::from([("old", old.end)]));
    server.kill();

    let server = disk.start(&config);
    check(&server, &BTreeMap::from([("old", old.end)]));
    assert_eq!(server.post("/write?precision=s", &[], &lines("old", 9_999, today)).status, 503);
    let delete = "/api/v1/admin/tsdb/delete_series?match[]=old";
    assert_eq!(server.post(delete, &[], b"").status, 204);
    assert_eq!(server.post("/api/v1/admin/tsdb/clean_tombstones", &[], b"").status, 204);
    wait_for("space after a deletion", || is_ready(&server).then_some(()));
    let kept = server.post("/write?precision=s", &[], &lines("kept", 0, today));
    assert_eq!(kept.status, 204, "{}", kept.text());
    let aged = fill(&server, "aged", 0, aged);
    assert!(aged.end > 20, "{aged:?}");
    server.kill();
    let server = disk.start(&config);
    check(&server, &BTreeMap::from([("old", 0), ("kept", 1), ("aged", aged.end)]));
    assert!(!is_ready(&server));
    server.kill();

    // Expired records are deleted even if the disk is full.
    std::fs::write(&config, "[[retention]]\nmatch = 'aged'\nkeep = '1d'\n").unwrap();
    let server = disk.start(&config);
    assert!(!is_ready(&server));
    assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    assert_eq!(server.post("/api/v1/admin/tsdb/clean_tombstones", &[], b"").status, 204);
    wait_for("space after expiry", || is_ready(&server).then_some(()));
    let more = server.post("/write?precision=s", &[], &lines("kept", 1, today));
    assert_eq!(more.status, 204, "{}", more.text());
    let expect = BTreeMap::from([("old", 0), ("kept", 2), ("aged", 0)]);
    check(&server, &expect);
    server.kill();
    check(&disk.start(&config), &expect);
}

#[test]
fn a_token_that_cannot_be_stored_on_a_full_disk_locks_no_server() {
    let (_dir, disk, config) = small_disk();
    let server = disk.start(&config);
    assert_eq!(server.post("/write?precision=s", &[], &lines("old", 0, DAY_S)).status, 204);
    disk.script("cat /dev/zero > hog");
    assert_eq!(disk.free_bytes(), 0);
    let (code, out, said) = disk.add_token("first");
    assert_eq!((code, &*out), (Some(1), ""), "{said}");
    assert!(said.contains("tokens: No space left on device"), "{said}");
    assert!(!disk.has("tokens") && !disk.has("tokens.used"));
    // The documented way out of a full disk works.
    assert_eq!(server.post("/api/v1/admin/tsdb/delete_series?match[]=old", &[], b"").status, 204);
    disk.script("rm hog");
    server.kill();
    let server = disk.start(&config);
    assert_eq!(server.get("/api/status").json()["access"]["tokens"], "none", "{}", server.log());
    let (code, token, said) = disk.add_token("first");
    assert_eq!(code, Some(0), "{said}");
    wait_for("the server to need a token", || {
        (server.get("/api/v1/query?query=1").status == 401).then_some(())
    });
    let header = [("Authorization", &*format!("Bearer {}", token.trim()))];
    assert_eq!(server.request("GET", "/api/v1/query?query=1", &header, b"").status, 200);
}

#[test]
fn a_token_whose_marker_does_not_fit_on_the_disk_is_used_and_the_marker_is_made_later() {
    let (_dir, disk, config) = small_disk();
    let server = disk.start(&config);
    // Two files fit: `tokens.lock` and `tokens`.
    disk.script(&format!("seq -f hog.%g 1 {DISK_FILES} | xargs touch; rm hog.1 hog.2"));
    let (code, token, said) = disk.add_token("first");
    assert_eq!(code, Some(0), "{said}");
    assert!(disk.has("tokens") && !disk.has("tokens.used"));
    wait_for("the server to need a token", || {
        (server.get("/api/v1/query?query=1").status == 401).then_some(())
    });
    let header = [("Authorization", &*format!("Bearer {}", token.trim()))];
    assert_eq!(server.request("GET", "/api/v1/query?query=1", &header, b"").status, 200);
    wait_for("the failure in the log", || server.log().contains("cannot write tokens.used").then_some(()));
    assert!(!disk.has("tokens.used"));
    disk.script("rm hog.*");
    wait_for("tokens.used", || disk.has("tokens.used").then_some(()));
    assert_eq!(server.log().matches("cannot write tokens.used").count(), 1);
}
