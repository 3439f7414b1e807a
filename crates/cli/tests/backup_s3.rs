//! Tests a backup repository in a bucket, with moto, a server with the API of S3. `make test-s3` installs it.

#[path = "support/filled.rs"]
mod filled;
mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use filled::directory;
use serde_json::Value;
use support::request;

/// Ends when its standard input is closed.
const SERVER: &str = "
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
";

struct Service {
    child: Child,
    at: SocketAddr,
}

impl Service {
    fn start() -> Self {
        let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test/moto");
        let mut child = Command::new("python3")
            .args(["-c", SERVER])
            .env("PYTHONPATH", &packages)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let at = line.trim().replace(' ', ":").parse();
        let at = at.unwrap_or_else(|_| panic!("moto does not start: run make test-s3, which installs it"));
        assert_eq!(request(at, "PUT", "/history", &[], b"").status, 200);
        Self { child, at }
    }

    /// Runs `tacho` with the credentials of the service.
    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(support::tacho())
            .args(args)
            .env("AWS_ENDPOINT_URL", format!("http://{}", self.at))
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "us-east-1")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn json(&self, args: &[&str]) -> Value {
        let (code, stdout, stderr) = self.run(&[args, &["--json"]].concat());
        assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }

    fn put(&self, key: &str, bytes: &[u8]) {
        assert_eq!(request(self.at, "PUT", &format!("/history/{key}"), &[], bytes).status, 200);
    }

    fn delete(&self, key: &str) {
        assert_eq!(request(self.at, "DELETE", &format!("/history/{key}"), &[], b"").status, 204);
    }

    /// The keys in the bucket.
    fn keys(&self) -> Vec<String> {
        let listed = request(self.at, "GET", "/history?list-type=2", &[], b"").text();
        let keys = listed.split("<Key>").skip(1);
        keys.map(|rest| rest.split("</Key>").next().unwrap().to_owned()).collect()
    }
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
    // A file of several parts.
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

    // The lock of another process, and the rest of a killed one.
    service.put("servers/a/locks/exclusive-other", b"");
    service.put("servers/a/incoming/rest", b"rest");
    let (code, _, stderr) = service.run(&["backup", "create", data, at]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("another backup, restore or clean-up uses the backup repository s3://"),
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
