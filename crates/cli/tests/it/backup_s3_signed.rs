//! Tests a backup repository in a bucket of S3Proxy, over TLS. S3Proxy is a server with the API of S3 that verifies signatures.
//! Its packages are installed once from Maven.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use tempfile::TempDir;

use crate::support;
use crate::support::contents::contents;
use crate::support::filled::{directory, fill, in_runtime};

const VERSION: &str = "2.6.0";
const KEY: &str = "the-key";
const SECRET: &str = "the-secret";
const PASSWORD: &str = "password";
const REPOSITORY: &str = "s3://history/a";
/// Limits the log, which otherwise has hundreds of lines for each request. Jetty, the HTTP server of S3Proxy, still logs its
/// address.
const LOGBACK: &str = r#"<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%msg%n</pattern></encoder></appender>
  <root level="WARN"><appender-ref ref="out"/></root>
  <logger name="org.gaul.shaded.org.eclipse.jetty.server.AbstractConnector" level="INFO"/>
</configuration>
"#;

/// The directory with the packages, which are installed if it does not exist.
fn packages() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let installed = place.join(format!("s3proxy-{VERSION}"));
        if !installed.is_dir() {
            install(place, &installed);
        }
        installed
    })
}

fn install(place: &Path, installed: &Path) {
    let new = tempfile::tempdir_in(place).unwrap();
    let project = format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>
         <groupId>test</groupId><artifactId>s3proxy</artifactId><version>1</version><packaging>pom</packaging>
         <dependencies><dependency>
         <groupId>org.gaul</groupId><artifactId>s3proxy</artifactId><version>{VERSION}</version>
         </dependency></dependencies></project>"
    );
    fs::write(new.path().join("pom.xml"), project).unwrap();
    let goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy-dependencies";
    succeeds(
        Command::new("mvn")
            .args(["-B", "-q", "-ntp", goal, "-DincludeScope=runtime", "-DoutputDirectory=lib", "-f"])
            .arg(new.path().join("pom.xml")),
    );
    // Another test may have been faster.
    let _ = fs::rename(new.path(), installed);
}

fn succeeds(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A running S3Proxy with the bucket `history`; killed when dropped.
struct Service {
    child: Child,
    endpoint: String,
    /// Has the certificate in `certificate.pem`, and each object as a file in `buckets/`.
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
        succeeds(Command::new("keytool").arg("-genkeypair").args(key).args(store));
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
        let child = Command::new("java")
            .args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .arg(format!("-Dlogback.configurationFile={}", file("logback.xml")))
            .arg("-cp")
            .arg(packages().join("lib/*"))
            .args(["org.gaul.s3proxy.Main", "--properties", &file("s3proxy.conf")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut service = Self { child, endpoint: String::new(), place };
        service.wait_for_address();
        service
    }

    /// Waits for the line `Started ServerConnector@..{SSL, (ssl, http/1.1)}{127.0.0.1:PORT}`.
    fn wait_for_address(&mut self) {
        let mut lines = BufReader::new(self.child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut log = Vec::new();
        let address = lines.find_map(|line| {
            log.push(line.clone());
            let (_, address) = line.strip_prefix("Started ")?.strip_suffix('}')?.rsplit_once('{')?;
            Some(address.to_owned())
        });
        let address = address.unwrap_or_else(|| panic!("S3Proxy does not start: {log:#?}"));
        self.endpoint = format!("https://{address}");
        // S3Proxy must not wait for a reader of its log.
        std::thread::spawn(move || lines.for_each(drop));
    }

    /// Runs a command with the credentials and the certificate of the service. `environment` replaces some of them.
    fn run(&self, args: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String, String) {
        let output = Command::new(support::tacho())
            .args(args)
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .env("SSL_CERT_FILE", self.place.path().join("certificate.pem"))
            .env_remove("SSL_CERT_DIR")
            .env("AWS_ACCESS_KEY_ID", KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .env("AWS_REGION", "us-east-1")
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn json(&self, args: &[&str]) -> Value {
        let (code, stdout, stderr) = self.run(&[args, &["--json"]].concat(), &[]);
        assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }

    /// The files in which S3Proxy stores the bucket's objects below a folder of the repository.
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
fn a_service_that_verifies_signatures_holds_a_repository_with_an_incremental_backup() {
    let service = Service::start();
    let place = tempfile::tempdir().unwrap();
    let [data, out] = ["data", "out"].map(|name| place.path().join(name));
    directory(&data);
    // A file so large that it is uploaded in several parts.
    let torn = "chunks/quarantine/00000099.segment.torn-7";
    fs::create_dir_all(data.join("chunks/quarantine")).unwrap();
    let large: Vec<u8> = (0..21_000_001_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(data.join(torn), &large).unwrap();
    let (data_text, out_text) = (data.to_str().unwrap(), out.to_str().unwrap());

    let at_first = contents(&data);
    let first = service.json(&["backup", "create", data_text, REPOSITORY]);
    in_runtime(fill(&data, 20..24, false));
    let second = service.json(&["backup", "create", data_text, REPOSITORY]);
    let new = second["new"]["bytes"].as_u64().unwrap();
    assert!(new > 0 && new < large.len() as u64, "the second backup is not incremental: {second}");
    assert_eq!(service.json(&["backup", "verify", REPOSITORY])["backups"], 2);
    let counts = ["backups", "locks", "incoming"].map(|folder| service.objects(folder).len());
    assert_eq!(counts, [2, 0, 0]);
    for (backup, expect) in [(&first, &at_first), (&second, &contents(&data))] {
        let id = backup["id"].as_str().unwrap();
        service.json(&["restore", REPOSITORY, out_text, "--at", id]);
        assert!(contents(&out) == *expect, "the restore of {id} differs from the data directory");
        assert!(fs::read(out.join(torn)).unwrap() == large, "the restore of {id} has other bytes in {torn}");
        fs::remove_dir_all(&out).unwrap();
    }
    let pruned = service.json(&["backup", "prune", REPOSITORY, "--keep-last", "1"]);
    assert_eq!(pruned["removed"].as_array().unwrap().len(), 1, "{pruned}");
    assert_eq!(service.json(&["backup", "verify", REPOSITORY])["backups"], 1);

    let object = service.objects("objects").remove(0);
    let bytes = fs::read(&object).unwrap();
    fs::write(&object, [&bytes[1..], &[!bytes[0]]].concat()).unwrap();
    let (code, stdout, stderr) = service.run(&["backup", "verify", REPOSITORY], &[]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("object has other bytes"), "{stdout}{stderr}");
}

#[test]
fn wrong_credentials_a_missing_bucket_and_an_untrusted_certificate_are_refused_with_the_cause() {
    let service = Service::start();
    let place = tempfile::tempdir().unwrap();
    let [data, other] =
        ["data", "other.pem"].map(|name| place.path().join(name).to_str().unwrap().to_owned());
    directory(Path::new(&data));
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = certificate.self_signed(&KeyPair::generate().unwrap()).unwrap();
    fs::write(&other, certificate.pem()).unwrap();
    let refused = |answer: &str| format!("{} answered {answer}", service.endpoint);
    let cases: [(&str, (&str, &str), [&str; 2]); 4] = [
        (
            REPOSITORY,
            ("AWS_SECRET_ACCESS_KEY", "another"),
            [&refused("403 Forbidden, SignatureDoesNotMatch"), "correct AWS_SECRET_ACCESS_KEY"],
        ),
        (
            REPOSITORY,
            ("AWS_ACCESS_KEY_ID", "another"),
            [&refused("403 Forbidden, InvalidAccessKeyId"), "correct AWS_ACCESS_KEY_ID"],
        ),
        (
            "s3://absent/a",
            ("AWS_REGION", "us-east-1"),
            [&refused("404 Not Found, NoSuchBucket"), "create the bucket, or correct its name"],
        ),
        (
            REPOSITORY,
            ("SSL_CERT_FILE", &other),
            [&service.endpoint, "invalid peer certificate: UnknownIssuer"],
        ),
    ];
    for (address, variable, parts) in cases {
        let (code, stdout, stderr) = service.run(&["backup", "create", &data, address], &[variable]);
        assert_eq!(code, Some(1), "{variable:?}: {stdout}{stderr}");
        for part in parts {
            assert!(stderr.contains(part), "{variable:?}: {part:?} is missing: {stderr}");
        }
    }
    assert_eq!(service.objects(""), Vec::<PathBuf>::new());
}
