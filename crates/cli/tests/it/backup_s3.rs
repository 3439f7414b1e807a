//! Tests a backup repository in a bucket of moto, a server with the API of S3. The tests install moto from PyPI if it is missing.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::support::filled::{directory, fill, in_runtime};
use crate::support::{self, request};

const PACKAGES: [&str; 3] = ["moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"];
/// The program of the server. It ends when its standard input is closed, and answers each command with `ok`. `age KEY` makes an
/// object 601 s older. After `hold`, the server prints `held` at the next copy of an object, and answers this copy after `go`.
const SERVER: &str = "
import datetime, sys, threading
import moto.server
from moto.s3.models import s3_backends

hold, go = threading.Event(), threading.Event()
application = moto.server.DomainDispatcherApplication
answer = application.__call__

def held(self, environ, start):
    body = answer(self, environ, start)
    if hold.is_set() and 'HTTP_X_AMZ_COPY_SOURCE' in environ and '/objects/' in environ['PATH_INFO']:
        hold.clear()
        print('held', flush=True)
        go.wait()
    return body

application.__call__ = held
server = moto.server.ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
for line in sys.stdin:
    command, *key = line.split()
    if command == 'hold':
        hold.set()
    elif command == 'go':
        go.set()
    else:
        [account] = s3_backends.values()
        account['aws'].buckets['history'].keys[key[0]].last_modified -= datetime.timedelta(seconds=601)
    print('ok', flush=True)
";

/// Credentials of the account that owns the objects of `tacho`. The server does not verify signatures.
const SIGNED: &[(&str, &str)] = &[("Authorization", "AWS key:signature")];

/// The directory with the packages, which are installed if it does not exist.
fn packages() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let installed = place.join("moto-5.2.5");
    if !installed.is_dir() {
        let new = tempfile::tempdir_in(place).unwrap();
        let pip =
            ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--target"];
        let output = Command::new("python3").args(pip).arg(new.path()).args(PACKAGES).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Another test may have been faster.
        let _ = fs::rename(new.path(), &installed);
    }
    installed
}

struct Service {
    child: Child,
    lines: BufReader<ChildStdout>,
    at: SocketAddr,
}

impl Service {
    fn start() -> Self {
        let mut child = Command::new("python3")
            .args(["-c", SERVER])
            .env("PYTHONPATH", packages())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let at = line(&mut lines).replace(' ', ":").parse().expect("moto prints its address");
        assert_eq!(request(at, "PUT", "/history", &[], b"").status, 200);
        Self { child, lines, at }
    }

    /// Sends a command to the server, and waits for `ok`.
    fn tell(&mut self, command: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{command}").unwrap();
        assert_eq!(line(&mut self.lines), "ok");
    }

    fn tacho(&self, args: &[&str]) -> Command {
        tacho(self.at, args)
    }

    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = self.tacho(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn json(&self, args: &[&str]) -> Value {
        let (code, stdout, stderr) = self.run(&[args, &["--json"]].concat());
        assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }

    fn put(&self, key: &str, bytes: &[u8]) {
        assert_eq!(request(self.at, "PUT", &format!("/history/{key}"), SIGNED, bytes).status, 200);
    }

    fn delete(&self, key: &str) {
        assert_eq!(request(self.at, "DELETE", &format!("/history/{key}"), SIGNED, b"").status, 204);
    }

    fn keys(&self) -> Vec<String> {
        let listed = request(self.at, "GET", "/history?list-type=2", &[], b"").text();
        let keys = listed.split("<Key>").skip(1);
        keys.map(|rest| rest.split("</Key>").next().unwrap().to_owned()).collect()
    }
}

/// A command that uses the service at an address.
fn tacho(at: SocketAddr, args: &[&str]) -> Command {
    let mut command = Command::new(support::tacho());
    command
        .args(args)
        .env("AWS_ENDPOINT_URL", format!("http://{at}"))
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "us-east-1");
    command
}

fn line(lines: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line.trim().to_owned()
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_bucket_holds_a_repository() {
    let service = Service::start();
    let place = tempfile::tempdir().unwrap();
    let [data, out] = ["data", "out"].map(|name| place.path().join(name));
    directory(&data);
    // A file so large that it is uploaded in several parts.
    let quarantine = data.join("chunks/quarantine");
    fs::create_dir_all(&quarantine).unwrap();
    let large: Vec<u8> = (0..21_000_001_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(quarantine.join("00000099.segment.torn-7"), &large).unwrap();
    let (data, out_text) = (data.to_str().unwrap(), out.to_str().unwrap());
    let at = "s3://history/servers/a";

    let first = service.json(&["backup", "create", data, at]);
    assert_eq!(service.json(&["backup", "create", data, at])["new"]["objects"], 0);
    assert_eq!(service.json(&["backup", "verify", at])["backups"], 2);
    assert!(service.keys().iter().all(|key| !key.contains("/incoming/") && !key.contains("/locks/")));
    service.json(&["restore", at, out_text, "--at", first["id"].as_str().unwrap()]);
    assert_eq!(fs::read(out.join("chunks/quarantine/00000099.segment.torn-7")).unwrap(), large);
    fs::remove_dir_all(&out).unwrap();

    // A changed object, and then a missing one.
    let objects = service.keys().into_iter().filter(|key| key.contains("/objects/"));
    let object = objects.min().unwrap();
    service.put(&object, b"changed");
    let (code, stdout, stderr) = service.run(&["backup", "verify", at]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("object has 7 bytes instead of"), "{stdout}");
    assert_eq!(service.run(&["restore", at, out_text]).0, Some(1));
    assert!(!out.exists());
    service.delete(&object);
    service.json(&["backup", "create", data, at]);
    service.json(&["backup", "verify", at]);

    let pruned = service.json(&["backup", "prune", at, "--keep-last", "1"]);
    assert_eq!(pruned["removed"].as_array().unwrap().len(), 2);
    service.json(&["restore", at, out_text]);

    // The lock of another process, and the unfinished file of a killed one.
    service.put("servers/a/locks/exclusive-other", b"");
    service.put("servers/a/incoming/rest", b"rest");
    let (code, _, stderr) = service.run(&["backup", "create", data, at]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("another backup, restore, verify or prune uses the backup repository s3://"),
        "{stderr}"
    );
    service.delete("servers/a/locks/exclusive-other");
    service.json(&["backup", "create", data, at]);
    assert!(!service.keys().contains(&"servers/a/incoming/rest".to_owned()));

    let (code, _, stderr) = service.run(&["backup", "create", data, "s3://absent/a"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("NoSuchBucket") || stderr.contains("not found"), "{stderr}");
    let (code, _, stderr) = service.run(&["backup", "list", "s3://history/servers/b"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("is not a backup repository"), "{stderr}");
    assert_eq!(service.run(&["backup", "list", "s3://"]).0, Some(2));
}

#[test]
fn a_backup_whose_lock_another_process_removed_fails_and_leaves_no_damage() {
    let mut service = Service::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    directory(&data);
    let data_text = data.to_str().unwrap();
    let at = "s3://history/a";
    service.json(&["backup", "create", data_text, at]);
    in_runtime(fill(&data, 20..24, false));

    // A second backup waits for the answer to the copy of its first object. Its lock becomes 601 s older, as if the backup had
    // not renewed it.
    service.tell("hold");
    let slow = service.tacho(&["backup", "create", data_text, at]).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(line(&mut service.lines), "held");
    let locks: Vec<String> = service.keys().into_iter().filter(|key| key.contains("/locks/")).collect();
    let [lock] = &locks[..] else { panic!("{locks:?}") };
    service.tell(&format!("age {lock}"));
    let pruned = service.json(&["backup", "prune", at, "--keep-last", "1"]);
    assert_eq!(pruned["objects"], 1, "{pruned}");
    service.tell("go");
    let slow = slow.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&slow.stderr);
    assert_eq!(slow.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the lock of s3://history/a was not renewed in time"), "{stderr}");

    assert_eq!(service.json(&["backup", "verify", at])["backups"], 1);
    assert!(service.keys().iter().all(|key| !key.contains("/locks/")));
    service.json(&["backup", "create", data_text, at]);
    assert_eq!(service.json(&["backup", "verify", at])["backups"], 2);
}

/// Answers every request with the same status, header and body, until the test ends.
fn refusing(status: &'static str, header: &'static str, body: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A client that has gone needs no answer.
            let _ = stream.and_then(|stream| refuse(stream, (status, header, &body)));
        }
    });
    at
}

fn refuse(stream: TcpStream, (status, header, body): (&str, &str, &str)) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    stream.by_ref().take(length).read_to_end(&mut Vec::new())?;
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{header}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.get_mut().write_all(format!("{head}{body}").as_bytes())
}

#[test]
fn a_refusal_of_the_service_has_its_words_and_a_remedy() {
    let place = tempfile::tempdir().unwrap();
    let [data, out] = ["data", "out"].map(|name| place.path().join(name).to_str().unwrap().to_owned());
    directory(Path::new(&data));
    let region = "x-amz-bucket-region: eu-central-1\r\n";
    let malformed = "The authorization header is malformed; the region 'us-east-1' is wrong";
    let cases = [
        ("403 Forbidden", "", "AccessDenied", "Access Denied", "permit the key in AWS_ACCESS_KEY_ID"),
        ("403 Forbidden", "", "InvalidAccessKeyId", "no such key", "correct AWS_ACCESS_KEY_ID"),
        ("403 Forbidden", "", "SignatureDoesNotMatch", "other signature", "correct AWS_SECRET_ACCESS_KEY"),
        ("403 Forbidden", "", "RequestTimeTooSkewed", "too large", "correct the clock of this machine"),
        ("404 Not Found", "", "NoSuchBucket", "no such bucket", "create the bucket, or correct its name"),
        ("301 Moved Permanently", region, "PermanentRedirect", "use it", "set AWS_REGION to eu-central-1"),
        ("400 Bad Request", "", "AuthorizationHeaderMalformed", malformed, "set AWS_REGION to the region"),
    ];
    for (status, header, code, said, remedy) in cases {
        let at = refusing(
            status,
            header,
            format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>{said}</Message></Error>"),
        );
        let address = "s3://history/a";
        for args in [
            &["backup", "create", &data, address][..],
            &["backup", "list", address],
            &["backup", "verify", address],
            &["restore", address, &out],
        ] {
            let output = tacho(at, args).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
            let answered = format!("http://{at} answered {status}, {code} ({said}): ");
            for part in [address, &answered, remedy] {
                assert!(stderr.contains(part), "{args:?}: {part:?} is missing: {stderr}");
            }
        }
    }
}
