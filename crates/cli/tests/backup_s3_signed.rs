//! Tests a backup repository in a bucket of S3Proxy, a server with the API of S3 that verifies signatures, over TLS. Its packages
//! are installed once from Maven.

#[path = "support/filled.rs"]
mod filled;
mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use filled::{directory, fill, in_runtime};
use tempfile::TempDir;

const VERSION: &str = "2.6.0";
const KEY: &str = "the-key";
const SECRET: &str = "the-secret";
const PASSWORD: &str = "password";
/// The name and the address of the listener are in a log line of Jetty, the HTTP server of S3Proxy.
const LOGBACK: &str = r#"<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%msg%n</pattern></encoder></appender>
  <root level="WARN"><appender-ref ref="out"/></root>
  <logger name="org.gaul.shaded.org.eclipse.jetty.server.AbstractConnector" level="INFO"/>
</configuration>
"#;

/// The directory with the packages, which are installed if it does not exist.
fn packages() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let installed = place.join(format!("s3proxy-{VERSION}"));
    if !installed.is_dir() {
        let new = tempfile::tempdir_in(place).unwrap();
        let project = format!(
            "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>
             <groupId>test</groupId><artifactId>s3proxy</artifactId><version>1</version><packaging>pom</packaging>
             <dependencies><dependency>
             <groupId>org.gaul</groupId><artifactId>s3proxy</artifactId><version>{VERSION}</version>
             </dependency></dependencies></project>"
        );
        fs::write(new.path().join("pom.xml"), project).unwrap();
        succeeds(
            Command::new("mvn")
                .args(["-B", "-q", "-ntp", "-f"])
                .arg(new.path().join("pom.xml"))
                .arg("org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy-dependencies")
                .args(["-DincludeScope=runtime", "-DoutputDirectory=lib"]),
        );
        // Another test may have been faster.
        let _ = fs::rename(new.path(), &installed);
    }
    installed
}

fn succeeds(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    output
}

struct Service {
    child: Child,
    endpoint: String,
    /// Has the certificate in `certificate.pem`, and the objects of each bucket in `buckets/`.
    place: TempDir,
}

impl Service {
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        fs::create_dir_all(file("buckets/history")).unwrap();
        fs::write(file("logback.xml"), LOGBACK).unwrap();
        let store = ["-keystore", &file("store.p12"), "-storetype", "PKCS12", "-storepass", PASSWORD];
        let key = ["-keyalg", "EC", "-alias", "s3", "-dname", "CN=s3", "-ext", "san=ip:127.0.0.1"];
        succeeds(Command::new("keytool").args(["-genkeypair"]).args(key).args(store));
        let export = ["-exportcert", "-rfc", "-alias", "s3", "-file", &file("certificate.pem")];
        succeeds(Command::new("keytool").args(export).args(store));
        let settings = [
            ("s3proxy.secure-endpoint", "https://127.0.0.1:0"),
            ("s3proxy.keystore-path", &file("store.p12")),
            ("s3proxy.keystore-password", PASSWORD),
            ("s3proxy.authorization", "aws-v4"),
            ("s3proxy.identity", KEY),
            ("s3proxy.credential", SECRET),
            ("jclouds.provider", "filesystem"),
            ("jclouds.filesystem.basedir", &file("buckets")),
        ];
        let settings: String = settings.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        fs::write(file("s3proxy.conf"), settings).unwrap();
        let mut child = Command::new("java")
            .arg(format!("-Dlogback.configurationFile={}", file("logback.xml")))
            .arg("-cp")
            .arg(packages().join("lib/*"))
            .args(["org.gaul.s3proxy.Main", "--properties", &file("s3proxy.conf")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let started = lines.find(|line| line.starts_with("Started ")).expect("S3Proxy starts");
        let address = started.rsplit('{').next().unwrap().trim_end_matches('}');
        let endpoint = format!("https://{address}");
        // The server must not wait for a reader of its log.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, endpoint, place }
    }

    /// Runs a command. `environment` replaces parts of the usual one.
    fn run(&self, args: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
        let output = Command::new(support::tacho())
            .args(args)
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .env("SSL_CERT_FILE", self.place.path().join("certificate.pem"))
            .env("AWS_ACCESS_KEY_ID", KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .env("AWS_REGION", "us-east-1")
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    fn succeeds(&self, args: &[&str]) {
        let (code, said) = self.run(args, &[]);
        assert_eq!(code, Some(0), "{args:?}: {said}");
    }

    /// The files of the objects below a folder of the repository `s3://history/a`.
    fn objects(&self, folder: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.place.path().join("buckets/history/a").join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { found.push(path) }
            }
        }
        found.sort();
        found
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_service_that_verifies_signatures_holds_a_repository() {
    let service = Service::start();
    let place = tempfile::tempdir().unwrap();
    let [data, out] = ["data", "out"].map(|name| place.path().join(name).to_str().unwrap().to_owned());
    directory(Path::new(&data));
    // A file so large that it is uploaded in several parts.
    let quarantine = Path::new(&data).join("chunks/quarantine");
    fs::create_dir_all(&quarantine).unwrap();
    let large: Vec<u8> = (0..21_000_001_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(quarantine.join("00000099.segment.torn-7"), &large).unwrap();
    let at = "s3://history/a";

    service.succeeds(&["backup", "create", &data, at]);
    in_runtime(fill(Path::new(&data), 20..24, false));
    service.succeeds(&["backup", "create", &data, at]);
    service.succeeds(&["backup", "verify", at]);
    assert_eq!(service.objects("backups").len(), 2);
    assert_eq!(service.objects("locks").len(), 0);
    assert_eq!(service.objects("incoming").len(), 0);
    service.succeeds(&["restore", at, &out]);
    let restored = Path::new(&out).join("chunks/quarantine/00000099.segment.torn-7");
    assert_eq!(fs::read(restored).unwrap(), large);
    service.succeeds(&["backup", "prune", at, "--keep-last", "1"]);
    service.succeeds(&["backup", "verify", at]);

    let object = service.objects("objects").remove(0);
    let bytes = fs::read(&object).unwrap();
    fs::write(&object, [&bytes[1..], &[!bytes[0]]].concat()).unwrap();
    let (code, said) = service.run(&["backup", "verify", at], &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("object has other bytes"), "{said}");
}

#[test]
fn the_refusals_of_a_service_are_reported_with_a_remedy() {
    let service = Service::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data").to_str().unwrap().to_owned();
    directory(Path::new(&data));
    let empty = place.path().join("empty.pem");
    fs::write(&empty, "").unwrap();
    let cases: [(&str, &[(&str, &str)], &str, &str); 4] = [
        (
            "s3://history/a",
            &[("AWS_SECRET_ACCESS_KEY", "another")],
            "SignatureDoesNotMatch",
            "correct AWS_SECRET_ACCESS_KEY",
        ),
        (
            "s3://history/a",
            &[("AWS_ACCESS_KEY_ID", "another")],
            "InvalidAccessKeyId",
            "correct AWS_ACCESS_KEY_ID",
        ),
        ("s3://absent/a", &[], "NoSuchBucket", "create the bucket, or correct its name"),
        ("s3://history/a", &[("SSL_CERT_FILE", empty.to_str().unwrap())], "", "certificate"),
    ];
    for (at, environment, code, remedy) in cases {
        let (status, said) = service.run(&["backup", "create", &data, at], environment);
        assert_eq!(status, Some(1), "{environment:?}: {said}");
        assert!(said.contains(code) && said.contains(remedy), "{environment:?}: {said}");
    }
    assert_eq!(service.objects("").len(), 0);
}
