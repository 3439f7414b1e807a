//! Tests TLS of both listeners: commands and agents, client certificates, reloading, peers without TLS.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tacho_ingest::wire::{ClientFrame, ErrorCode, FrameDecoder, Hello, ServerFrame};

use crate::support::java::{Java, Program};
use crate::support::{self, Server, wait_for};

/// Time limit for each read from the server.
const PATIENCE: Duration = Duration::from_secs(60);

/// A certificate authority with the certificate `file`, which writes signed certificates to `directory`.
struct Authority {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    file: PathBuf,
}

struct Pair {
    cert: PathBuf,
    key: PathBuf,
}

impl Authority {
    fn new(directory: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let file = directory.join(format!("{name}.pem"));
        fs::write(&file, params.self_signed(&key).unwrap().pem()).unwrap();
        Self { directory: directory.to_owned(), issuer: Issuer::new(params, key), file }
    }

    fn sign(&self, name: &str) -> Pair {
        self.sign_until(name, (4096, 1, 1))
    }

    /// The certificate is valid until the beginning of this day (year, month, day) in UTC.
    fn sign_until(&self, name: &str, (year, month, day): (i32, u8, u8)) -> Pair {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, month, day);
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let pair = Pair {
            cert: self.directory.join(format!("{name}.cert.pem")),
            key: self.directory.join(format!("{name}.key.pem")),
        };
        // Tools that renew certificates replace each file as a whole, too.
        for (path, text) in [(&pair.key, key.serialize_pem()), (&pair.cert, signed.pem())] {
            let new = path.with_extension("new");
            fs::write(&new, text).unwrap();
            fs::set_permissions(&new, Permissions::from_mode(0o600)).unwrap();
            fs::rename(&new, path).unwrap();
        }
        pair
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn start(data: &Path, pair: &Pair, more: &[&str]) -> Server {
    let flags = [&["--tls-cert", text(&pair.cert), "--tls-key", text(&pair.key)], more].concat();
    Server::start_with(data, &flags)
}

/// Runs a query with these TLS variables.
fn ask(url: &str, variables: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(support::tacho());
    command.args(["query", "vector(1)", "--server", url]);
    for variable in ["TACHO_TLS_CA", "TACHO_TLS_CLIENT_CERT", "TACHO_TLS_CLIENT_KEY"] {
        command.env_remove(variable);
    }
    command.envs(variables.iter().copied()).output().unwrap()
}

fn https(server: &Server) -> String {
    format!("https://{}", server.http)
}

#[track_caller]
fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[track_caller]
fn fails(output: &Output, expect: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    for part in expect {
        assert!(said.contains(part), "{part:?} in {said}");
    }
}

/// The answer to HELLO; `None` if the handshake fails, or the server closes the connection.
fn greeting(mut stream: impl Read + Write) -> Option<ServerFrame> {
    let pairs = [("service", "shop"), ("host", "h1"), ("instance", "")];
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let mut bytes = Vec::new();
    ClientFrame::Hello(Hello {
        version_min: 1,
        version_max: 1,
        session: 7,
        pairs,
        secret: None,
        token: None,
    })
    .encode(&mut bytes);
    // The first write does the handshake, which may fail.
    if stream.write_all(&bytes).is_err() {
        return None;
    }
    let mut decoder = FrameDecoder::new();
    let mut buffer = [0; 1_024];
    loop {
        if let Some(frame) = decoder.pull().unwrap() {
            return Some(ServerFrame::decode(frame).unwrap().unwrap());
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => decoder.push(&buffer[..count]),
        }
    }
}

fn plain(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn encrypted(at: SocketAddr, ca: &Path) -> StreamOwned<ClientConnection, TcpStream> {
    encrypted_as(None, at, ca)
}

fn encrypted_as(
    client: Option<&Pair>,
    at: SocketAddr,
    ca: &Path,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(Pair { cert, key }) => {
            let chain = vec![CertificateDer::from_pem_file(cert).unwrap()];
            config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap()).unwrap()
        }
    };
    let name = ServerName::try_from("127.0.0.1").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), plain(at))
}

/// A response of the server, with its head.
fn fetch(at: SocketAddr, ca: &Path, path: &str) -> String {
    let mut stream = encrypted(at, ca);
    let head = format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut response = Vec::new();
    // The server may close the connection without a closing alert.
    let _ = stream.read_to_end(&mut response);
    String::from_utf8(response).unwrap()
}

#[test]
fn commands_and_agents_are_served_with_tls() {
    let place = tempfile::tempdir().unwrap();
    let authority = Authority::new(place.path(), "ca");
    let server = start(&place.path().join("data"), &authority.sign("server"), &[]);
    succeeds(&ask(&https(&server), &[("TACHO_TLS_CA", &authority.file)]));
    let answer = greeting(encrypted(server.records, &authority.file));
    assert!(matches!(answer, Some(ServerFrame::Welcome(_))), "{answer:?}");
}

#[test]
fn peers_without_tls_get_an_error_in_their_protocol() {
    let place = tempfile::tempdir().unwrap();
    let authority = Authority::new(place.path(), "ca");
    let server = start(&place.path().join("data"), &authority.sign("server"), &[]);
    let answer = server.get("/healthz");
    assert_eq!((answer.status, answer.text().as_str()), (400, "this port requires TLS: use https://\n"));
    fails(&ask(&server.url(), &[]), &["this port requires TLS"]);
    match greeting(plain(server.records)) {
        Some(ServerFrame::Error { code, message }) => {
            assert_eq!(code, ErrorCode::Tls as u64);
            assert!(message.contains("TLS"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    // An HTTP client uses the port of the agents, first without TLS and then with TLS.
    let expect = format!(
        "this port takes records of agents in the native protocol; HTTPS is served on port {}\n",
        server.http.port()
    );
    let plain = support::request(server.records, "GET", "/metrics", &[], b"");
    assert_eq!((plain.status, plain.text()), (400, expect.clone()));
    let encrypted = fetch(server.records, &authority.file, "/metrics");
    assert!(encrypted.starts_with("HTTP/1.1 400 ") && encrypted.ends_with(&expect), "{encrypted}");
    // A client with TLS uses a port without TLS.
    let unencrypted = Server::start(&place.path().join("other"));
    fails(&ask(&https(&unencrypted), &[("TACHO_TLS_CA", &authority.file)]), &["the port does not use TLS"]);
}

#[test]
fn clients_trust_only_the_given_authority() {
    let place = tempfile::tempdir().unwrap();
    let [ours, other] = ["ca", "other"].map(|name| Authority::new(place.path(), name));
    let server = start(&place.path().join("data"), &ours.sign("server"), &[]);
    let hint = format!("hint: no authority in TACHO_TLS_CA={} has signed", text(&other.file));
    fails(&ask(&https(&server), &[("TACHO_TLS_CA", &other.file)]), &["no TLS connection", &hint]);
    let port = server.http.port();
    succeeds(&ask(&format!("https://localhost:{port}"), &[("TACHO_TLS_CA", &ours.file)]));
    // The certificate is valid for 127.0.0.1 and localhost.
    fails(
        &ask(&format!("https://[::ffff:127.0.0.1]:{port}"), &[("TACHO_TLS_CA", &ours.file)]),
        &["not valid for name"],
    );
    let system = ("TACHO_TLS_CA", Path::new("system"));
    let name_it = "hint: set TACHO_TLS_CA to the file of the authority that signed the server's certificate";
    fails(&ask(&https(&server), &[system]), &["no TLS connection", name_it]);
    succeeds(&ask(&https(&server), &[system, ("SSL_CERT_FILE", &ours.file)]));
}

#[test]
fn client_certificates_of_the_authority_are_required() {
    let place = tempfile::tempdir().unwrap();
    let [ours, other] = ["ca", "other"].map(|name| Authority::new(place.path(), name));
    let server =
        start(&place.path().join("data"), &ours.sign("server"), &["--tls-client-ca", text(&ours.file)]);
    let asks = |pair: &Pair| {
        let variables = [
            ("TACHO_TLS_CA", &*ours.file),
            ("TACHO_TLS_CLIENT_CERT", &pair.cert),
            ("TACHO_TLS_CLIENT_KEY", &pair.key),
        ];
        ask(&https(&server), &variables)
    };
    succeeds(&asks(&ours.sign("client")));
    let foreign = other.sign("foreign");
    let hint = format!(
        "hint: the server refuses the certificate in TACHO_TLS_CLIENT_CERT={}: ",
        text(&foreign.cert)
    );
    fails(&asks(&foreign), &[&hint]);
    let unset = "of an authority that it trusts: set TACHO_TLS_CLIENT_CERT and TACHO_TLS_CLIENT_KEY";
    fails(&ask(&https(&server), &[("TACHO_TLS_CA", &ours.file)]), &[unset]);
    assert_eq!(greeting(encrypted(server.records, &ours.file)), None);
    let key = ours.sign("client").key;
    fails(
        &ask(&https(&server), &[("TACHO_TLS_CA", &ours.file), ("TACHO_TLS_CLIENT_KEY", &key)]),
        &["TACHO_TLS_CLIENT_KEY is set without TACHO_TLS_CLIENT_CERT"],
    );
}

#[test]
fn changed_certificates_are_used_on_both_ports_without_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| Authority::new(place.path(), name));
    let pair = old.sign("server");
    let server = start(&place.path().join("data"), &pair, &[]);
    let answers = |authority: &Authority| {
        let greeted = greeting(encrypted(server.records, &authority.file));
        let of_http = ask(&https(&server), &[("TACHO_TLS_CA", &authority.file)]).status.success();
        (of_http, matches!(greeted, Some(ServerFrame::Welcome(_))))
    };
    let until = |told: &str| wait_for(told, || server.log().contains(told).then_some(()));
    let failed = |count: u64| {
        let line = format!("tacho_tls_reloads_total{{result=\"failed\"}} {count}\n");
        fetch(server.http, &new.file, "/metrics").contains(&line)
    };
    assert_eq!([answers(&old), answers(&new)], [(true, true), (false, false)]);
    new.sign("server");
    until("new TLS certificates are in use");
    assert_eq!([answers(&old), answers(&new)], [(false, false), (true, true)]);
    assert!(failed(0), "the count begins at 0");
    fs::write(&pair.cert, "-----BEGIN CERTIFICATE-----\n").unwrap();
    until("the earlier certificates stay in use");
    assert_eq!(answers(&new), (true, true));
    assert!(failed(1));
}

#[test]
fn a_changed_authority_of_client_certificates_is_used_on_both_ports_without_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let [ours, old, new] = ["ca", "old", "new"].map(|name| Authority::new(place.path(), name));
    let trusted = place.path().join("clients.pem");
    let trust = |authority: &Authority| {
        let next = trusted.with_extension("new");
        fs::copy(&authority.file, &next).unwrap();
        fs::rename(next, &trusted).unwrap();
    };
    trust(&old);
    let server =
        start(&place.path().join("data"), &ours.sign("server"), &["--tls-client-ca", text(&trusted)]);
    let clients = [old.sign("of-old"), new.sign("of-new")];
    let accepted = || {
        clients.each_ref().map(|pair| {
            let variables = [
                ("TACHO_TLS_CA", &*ours.file),
                ("TACHO_TLS_CLIENT_CERT", &pair.cert),
                ("TACHO_TLS_CLIENT_KEY", &pair.key),
            ];
            let greeted = greeting(encrypted_as(Some(pair), server.records, &ours.file));
            let of_http = ask(&https(&server), &variables).status.success();
            (of_http, matches!(greeted, Some(ServerFrame::Welcome(_))))
        })
    };
    assert_eq!(accepted(), [(true, true), (false, false)]);
    trust(&new);
    let told = "new TLS certificates are in use";
    wait_for(told, || server.log().contains(told).then_some(()));
    assert_eq!(accepted(), [(false, false), (true, true)]);
    assert_eq!(greeting(encrypted(server.records, &ours.file)), None);
}

#[test]
fn failed_handshakes_are_logged_with_peer_and_reason() {
    let place = tempfile::tempdir().unwrap();
    let [ours, other] = ["ca", "other"].map(|name| Authority::new(place.path(), name));
    let pair = ours.sign("server");
    let with_clients = ["--tls-client-ca", text(&ours.file)];
    let foreign = other.sign("foreign");
    type Attempt<'a> = &'a dyn Fn(&Server);
    let cases: [(&[&str], Attempt<'_>, &str, &str); 5] = [
        (&[], &|server| drop(server.get("/healthz")), "http", "reason=\"the peer does not use TLS\""),
        (&[], &|server| drop(greeting(plain(server.records))), "native", "the peer does not use TLS"),
        (
            &[],
            &|server| drop(ask(&https(server), &[("TACHO_TLS_CA", &other.file)])),
            "http",
            "the peer refuses the server's certificate or version: alert UnknownCA",
        ),
        (
            &with_clients,
            &|server| drop(ask(&https(server), &[("TACHO_TLS_CA", &ours.file)])),
            "http",
            "the peer has no client certificate, tls-client-ca requires one",
        ),
        (
            &with_clients,
            &|server| {
                let variables = [
                    ("TACHO_TLS_CA", &*ours.file),
                    ("TACHO_TLS_CLIENT_CERT", &foreign.cert),
                    ("TACHO_TLS_CLIENT_KEY", &foreign.key),
                ];
                drop(ask(&https(server), &variables));
            },
            "http",
            "the client certificate is refused: UnknownIssuer",
        ),
    ];
    for (flags, attempt, listener, expect) in cases {
        let server = start(&place.path().join("data"), &pair, flags);
        // A connection that sends nothing, such as a check of the port, is not logged.
        drop(TcpStream::connect(server.http).unwrap());
        attempt(&server);
        attempt(&server);
        let line = wait_for(expect, || {
            let log = server.log();
            log.lines().find(|line| line.contains("TLS handshake failed")).map(str::to_owned)
        });
        for part in [expect, "WARN", "peer=\"127.0.0.1:", "refused=1", &format!("listener=\"{listener}\"")] {
            assert!(line.contains(part), "{part:?} in {line}");
        }
        assert_eq!(server.log().matches("TLS handshake failed").count(), 1, "{}", server.log());
    }
}

#[test]
fn a_certificate_that_expires_soon_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let authority = Authority::new(place.path(), "ca");
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    for (days, level, expect) in [
        (-3, "ERROR", "the TLS certificate has expired, clients refuse it: renew it"),
        (3, "WARN", "days=2"),
        (400, "", ""),
    ] {
        let day = today + jiff::Span::new().days(days);
        let number = |n: i8| u8::try_from(n).unwrap();
        let until = (i32::from(day.year()), number(day.month()), number(day.day()));
        let pair = authority.sign_until("server", until);
        let server = start(&place.path().join("data"), &pair, &[]);
        let series = "tacho_tls_certificate_expires_timestamp_seconds ";
        if days < 0 {
            let line = wait_for(expect, || {
                server.log().lines().find(|line| line.contains(expect)).map(str::to_owned)
            });
            assert!(line.contains(level), "{line}");
            fails(&ask(&https(&server), &[("TACHO_TLS_CA", &authority.file)]), &["certificate expired"]);
            continue;
        }
        let midnight = day.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
        wait_for(series, || {
            let metrics = fetch(server.http, &authority.file, "/metrics");
            metrics.contains(&format!("{series}{}\n", midnight.as_second())).then_some(())
        });
        let status = fetch(server.http, &authority.file, "/api/status");
        assert!(status.contains(&format!("\"tls_certificate_expires\":\"{midnight}\"")), "{status}");
        let line =
            server.log().lines().find(|line| line.contains("certificate expires soon")).map(str::to_owned);
        assert_eq!(line.is_some(), !level.is_empty(), "{line:?}");
        let line = line.unwrap_or_default();
        assert!(line.contains(level) && line.contains(expect), "{line}");
    }
    let plain = Server::start(&place.path().join("plain"));
    assert!(plain.get("/api/status").json()["tls_certificate_expires"].is_null());
    assert!(!plain.get("/metrics").text().contains("tacho_tls_certificate_expires_timestamp_seconds "));
}

/// `openssl req -x509` makes such certificates by default.
#[test]
fn a_server_with_the_certificate_of_an_authority_warns() {
    let place = tempfile::tempdir().unwrap();
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pair = Pair { cert: place.path().join("own.cert.pem"), key: place.path().join("own.key.pem") };
    fs::write(&pair.cert, params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(&pair.key, key.serialize_pem()).unwrap();
    fs::set_permissions(&pair.key, Permissions::from_mode(0o600)).unwrap();
    let warning = "tls-cert is the certificate of an authority (CA:TRUE)";
    let server = start(&place.path().join("own"), &pair, &[]);
    server.wait_for_log(warning);
    fails(
        &ask(&https(&server), &[("TACHO_TLS_CA", &pair.cert)]),
        &["create a server certificate with CA:FALSE"],
    );
    let server = start(&place.path().join("signed"), &Authority::new(place.path(), "ca").sign("server"), &[]);
    assert!(!server.log().contains(warning), "{}", server.log());
}

#[test]
fn silent_connections_give_way_to_others() {
    let place = tempfile::tempdir().unwrap();
    let authority = Authority::new(place.path(), "ca");
    let server = start(&place.path().join("data"), &authority.sign("server"), &["--connections-max", "4"]);
    let silent: Vec<_> = [server.http, server.records]
        .into_iter()
        .cycle()
        .take(40)
        .map(|at| TcpStream::connect(at).unwrap())
        .collect();
    succeeds(&ask(&https(&server), &[("TACHO_TLS_CA", &authority.file)]));
    let answer = greeting(encrypted(server.records, &authority.file));
    assert!(matches!(answer, Some(ServerFrame::Welcome(_))), "{answer:?}");
    drop(silent);
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let place = tempfile::tempdir().unwrap();
    let authority = Authority::new(place.path(), "ca");
    let (good, second) = (authority.sign("server"), authority.sign("second"));
    let write = |name: &str, text: &str, mode: u32| {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    };
    let empty = write("empty", "", 0o600);
    let open = write("open", &fs::read_to_string(&good.key).unwrap(), 0o644);
    let missing = place.path().join("missing");
    let encrypted = |name: &str, head: &str, title: &str| {
        let text =
            format!("-----BEGIN {title}-----\n{head}MIIEvgIBADANBgkqhkiG9w0BAQ==\n-----END {title}-----\n");
        write(name, &text, 0o600)
    };
    let pkcs8 = encrypted("pkcs8", "", "ENCRYPTED PRIVATE KEY");
    let older = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00112233445566778899AABBCCDDEEFF\n\n";
    let older = encrypted("older", older, "EC PRIVATE KEY");
    for (key, mark) in [(&pkcs8, "BEGIN ENCRYPTED PRIVATE KEY"), (&older, "Proc-Type: 4,ENCRYPTED")] {
        let remedy = format!(
            "{} holds a private key that is encrypted with a password ({mark}), which is not supported; \
             decrypt it: openssl pkey -in {0} -out decrypted.key",
            text(key)
        );
        let flags = ["--tls-cert", text(&good.cert), "--tls-key", text(key)];
        let Err((status, log)) = Server::try_start(&place.path().join("data"), &flags) else {
            panic!("{mark}")
        };
        assert_eq!(status.code(), Some(2), "{log}");
        assert!(log.contains(&remedy), "{remedy:?} in {log}");
        let variables = [("TACHO_TLS_CLIENT_CERT", &*good.cert), ("TACHO_TLS_CLIENT_KEY", key)];
        fails(
            &ask("https://127.0.0.1:1", &variables),
            &["TACHO_TLS_CLIENT_KEY=", &remedy[text(key).len()..]],
        );
    }
    for (cert, key, client_ca, expect) in [
        (&missing, &good.key, None, "cannot read tls-cert"),
        (&empty, &good.key, None, "holds no CERTIFICATE"),
        (&good.cert, &empty, None, "holds no PRIVATE KEY"),
        (&good.cert, &good.cert, None, "holds no PRIVATE KEY"),
        (&good.cert, &second.key, None, "cannot be used"),
        (&good.cert, &open, None, "chmod 600"),
        (&good.cert, &good.key, Some(&empty), "tls-client-ca"),
    ] {
        let mut flags = vec!["--tls-cert", text(cert), "--tls-key", text(key)];
        flags.extend(client_ca.into_iter().flat_map(|path| ["--tls-client-ca", text(path)]));
        let Err((status, log)) = Server::try_start(&place.path().join("data"), &flags) else {
            panic!("{expect}")
        };
        assert_eq!(status.code(), Some(2), "{log}");
        assert!(log.contains(expect), "{expect:?} in {log}");
    }
}

fn record(java: &Java, version: u32, server: &Server, variables: &[(&str, &str)]) -> Program {
    let agent = format!("-javaagent:{}", text(&java.agent));
    let to = server.records.to_string();
    let common =
        [("TACHO_SERVER", to.as_str()), ("TACHO_INCLUDE", "late..*"), ("TACHO_EXCLUDE", "late.Loop.main")];
    java.start(version, &[&agent], &[&common, variables].concat())
}

#[test]
fn a_java_program_records_with_a_client_certificate() {
    let Some(java) = Java::new() else { return };
    let place = tempfile::tempdir().unwrap();
    let [ours, other] = ["ca", "other"].map(|name| Authority::new(place.path(), name));
    let (client, foreign) = (ours.sign("client"), other.sign("foreign"));
    let flags = ["--tls-client-ca", text(&ours.file), "--selfwatch-seconds", "0"];
    let server = start(&place.path().join("data"), &ours.sign("server"), &flags);
    let operations = |service: &str| {
        let mut command = Command::new(support::tacho());
        command.args(["operations", "--service", service, "--server", &https(&server)]);
        command.env("TACHO_TLS_CA", &ours.file);
        command.env("TACHO_TLS_CLIENT_CERT", &client.cert).env("TACHO_TLS_CLIENT_KEY", &client.key);
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for version in [17, 25] {
        let service = format!("java{version}");
        let with = |ca: &Path, pair: &Pair| {
            let variables = [
                ("TACHO_SERVICE", &*service),
                ("TACHO_TLS_CA", text(ca)),
                ("TACHO_TLS_CLIENT_CERT", text(&pair.cert)),
                ("TACHO_TLS_CLIENT_KEY", text(&pair.key)),
            ];
            record(&java, version, &server, &variables)
        };
        for (ca, pair, expect) in [
            (&other.file, &client, "no authority of tls_ca has signed the server's certificate"),
            (&ours.file, &foreign, "the server refuses the certificate in tls_client_cert"),
        ] {
            let program = with(ca, pair);
            wait_for(expect, || program.errors().contains(expect).then_some(()));
        }
        let bare = [("TACHO_SERVICE", &*service), ("TACHO_TLS_CA", text(&ours.file))];
        let program = record(&java, version, &server, &bare);
        let expect = "the server requires a client certificate: set tls_client_cert and tls_client_key";
        wait_for(expect, || program.errors().contains(expect).then_some(()));
        assert_eq!(operations(&service), "");
        let _program = with(&ours.file, &client);
        wait_for("calls", || operations(&service).contains("late.Loop.step").then_some(()));
    }
}

#[test]
fn the_java_agent_names_the_setting_that_does_not_fit_the_server() {
    let Some(java) = Java::new() else { return };
    let place = tempfile::tempdir().unwrap();
    let authority = Authority::new(place.path(), "ca");
    let secured = start(&place.path().join("data"), &authority.sign("server"), &[]);
    let plain = Server::start(&place.path().join("other"));
    for (server, variables, expect) in [
        (&secured, &[][..], "the server requires TLS: set tls_ca (error 11)"),
        (
            &plain,
            &[("TACHO_TLS_CA", text(&authority.file))],
            "the server does not use TLS, but tls_ca is set",
        ),
    ] {
        let program = record(&java, 17, server, variables);
        wait_for(expect, || program.errors().contains(expect).then_some(()));
    }
}
