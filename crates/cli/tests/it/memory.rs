//! Tests requests that could need gigabytes of memory. Compressed bodies of less than 200 kB have large records. Queries have
//! large intermediate results, clients do not read large answers, imports have many frames, and lists of rules are long. The
//! server has at most 4 GB of address space. It refuses too large requests, and continues to run.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::net::sockopt::set_socket_recv_buffer_size;

use crate::support::{self, Response, Server, tacho};

/// Limit on the address space of the server, kB.
const ADDRESS_SPACE_KB: &str = "4000000";
/// Limit on the resident memory of a server, in a debug build, after bodies with large records. An idle server takes about 40 MB.
const RESIDENT_BYTES_MAX: u64 = 150 << 20;

fn start(data: &Path, flags: &[&str]) -> Server {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KB}; exec \"$0\" \"$@\""), tacho()]);
    command.args(["serve", "--http", "127.0.0.1:0", "--records", "127.0.0.1:0", "--selfwatch-seconds", "0"]);
    // On a busy machine the largest body may take minutes.
    command.args(["--request-seconds-max", "3600"]);
    command.arg("--data").arg(data).args(flags);
    Server::from_command(command, data)
        .unwrap_or_else(|(status, log)| panic!("server ended with {status}: {log}"))
}

fn resident_bytes(server: &Server) -> u64 {
    memory(server, "VmRSS:")
}

/// A memory figure of the server in `/proc/PID/status`, bytes.
fn memory(server: &Server, name: &str) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the server still runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn post_gzip(server: &Server, body: &str) -> Response {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    assert!(packed.len() < 200_000, "{} bytes packed", packed.len());
    server.post("/write?precision=ns", &[("Content-Encoding", "gzip")], &packed)
}

fn line(name: &str, tags: usize, tag_bytes: usize, fields: usize) -> String {
    let mut out = name.to_owned();
    for tag in 0..tags {
        let _ = write!(out, ",t{tag}={}", "v".repeat(tag_bytes));
    }
    for field in 0..fields {
        let _ = write!(out, "{}f{field}=1", if field == 0 { ' ' } else { ',' });
    }
    out + " 1700000000000000000\n"
}

fn count(server: &Server, selector: &str) -> usize {
    let answer = server.get(&format!("/api/v1/series?match[]={selector}")).json();
    answer["data"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_line_whose_fields_repeat_long_tags_does_not_crash_the_server() {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &[]);
    // 63 tags of 4,000 bytes and 30,000 fields would give labels of 7.6 GB.
    let body = format!("good,host=a value=1\n{}good,host=b value=1\n", line("wide", 63, 4_000, 30_000));
    let answer = post_gzip(&server, &body);
    assert_eq!(answer.status, 400);
    let said = answer.text();
    assert!(
        said.contains("1 refused, the others are kept: line 2, column") && said.contains("at most 65536"),
        "{said}"
    );
    assert_eq!((count(&server, "good"), count(&server, "{__name__=~%22wide.*%22}")), (2, 0));
    // Each of these series is within the limits of one series, but the labels of all of them would take 1.8 GB.
    let body = format!("{}good,host=c value=1\n", line("long", 60, 1_000, 30_000));
    let said = post_gzip(&server, &body).text();
    assert!(said.contains("labels of the new series of this line exceed 8388608 bytes"), "{said}");
    assert_eq!(count(&server, "good"), 3);
    let resident = resident_bytes(&server);
    assert!(resident < RESIDENT_BYTES_MAX, "{resident} bytes resident");
    assert!(server.stop().success());
}

#[test]
fn labels_shared_by_fields_are_in_memory_once_even_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &[]);
    // 33 lines of 120 fields. Each field is a series with labels of 61 kB, 240 MB in total.
    let body: String = (0..33).map(|n| line(&format!("m{n}"), 60, 1_000, 120)).collect();
    assert_eq!(post_gzip(&server, &body).status, 204);
    let check = |server: &Server, when: &str| {
        assert_eq!(count(server, "{__name__=~%22m.*%22}&limit=1"), 1);
        // A response repeats the labels for each series, so it would exceed the limit of 128 MiB.
        for path in ["/api/v1/series?match[]=", "/api/v1/query?time=1700000000&query="] {
            let answer = server.get(&format!("{path}{{__name__=~%22m.*%22}}"));
            assert_eq!(answer.status, 422, "{when}: {path}");
            assert!(answer.text().contains("at most 134217728 are allowed"), "{when}: {}", answer.text());
        }
        let metrics = server.get("/metrics").text();
        assert!(metrics.contains("tacho_series{kind=\"sample\"} 3960\n"), "{when}: {metrics}");
        let resident = resident_bytes(server);
        assert!(resident < RESIDENT_BYTES_MAX, "{when}: {resident} bytes resident");
    };
    check(&server, "before");
    // The first restart reads the series from the journal, the second one from the table of series.
    server.kill();
    let server = start(data.path(), &[]);
    check(&server, "after a crash");
    assert!(server.stop().success());
    let server = start(data.path(), &[]);
    check(&server, "after a stop");
    assert!(server.stop().success());
}

#[test]
fn the_index_stays_within_its_memory_limit() {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &["--index-bytes-max", "2000000"]);
    assert_eq!(post_gzip(&server, "known value=1\n").status, 204);
    // The labels of each series take 6 kB, so about 300 series take 2 MB. No two series have a tag value in common.
    let labels = line("", 6, 1_000, 1);
    let series = |n| format!("s{}", labels.replace("vvvvvvvv", &format!("{n:08}")));
    let body: String = (0..1_000).map(series).collect();
    let answer = post_gzip(&server, &format!("{body}known value=2\n"));
    assert_eq!(answer.status, 400);
    let said = answer.text();
    assert!(
        said.contains("limit of 2000000 bytes for the index of series and their labels is reached"),
        "{said}"
    );
    assert!(said.len() < 20_000, "{} bytes of answer", said.len());
    let metrics = server.get("/metrics").text();
    let figure = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {metrics}")).parse::<f64>().unwrap()
    };
    let (bytes, series) = (figure("tacho_index_bytes"), figure("tacho_series{kind=\"sample\"}"));
    assert!(
        (1_900_000.0..=2_000_000.0).contains(&bytes) && figure("tacho_index_bytes_max") == 2_000_000.0,
        "{bytes}"
    );
    assert!(
        (200.0..400.0).contains(&series) && figure("tacho_series_refused_total") == 1_001.0 - series,
        "{series}"
    );
    support::wait_for("the notice in the log", || {
        server.log().contains("index_bytes_max = 2000000").then_some(())
    });
    assert!(server.stop().success());
    // With a lower limit the server starts with all existing series, logs a warning, and refuses new series.
    let server = start(data.path(), &["--index-bytes-max", "1000000"]);
    support::wait_for("the notice in the log", || {
        server.log().contains("raise index_bytes_max").then_some(())
    });
    assert_eq!(post_gzip(&server, "known value=3\n").status, 204);
    assert_eq!(post_gzip(&server, "new value=3\n").status, 400);
}

#[test]
fn concurrent_bodies_with_long_names_of_series_do_not_crash_the_server() {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &[]);
    // Each body is a line with 12,000 new series that have names of 4 kB. Their labels exceed the limit of a line.
    let bodies: Vec<String> =
        (0..12).map(|n| line(&format!("b{n}{}", "m".repeat(4_000)), 0, 0, 12_000)).collect();
    let answers: Vec<Response> = std::thread::scope(|scope| {
        let posts: Vec<_> = bodies.iter().map(|body| scope.spawn(|| post_gzip(&server, body))).collect();
        posts.into_iter().map(|post| post.join().unwrap()).collect()
    });
    for answer in &answers {
        let told = answer.status == 503 && answer.header("retry-after") == Some("1");
        assert!(answer.status == 400 || told, "{}: {}", answer.status, answer.text());
    }
    assert_eq!(server.post("/write", &[], b"good value=1\n").status, 204);
    assert!(server.stop().success());
}

/// Number of concurrent requests, slightly below the default of `--requests-max`.
const AT_ONCE: usize = 60;

/// Sends `count` requests at once. Returns for each request the status of its response, and the open connection with the unread
/// rest of the response.
fn unread(server: &Server, path: &str, count: usize) -> Vec<(u16, TcpStream)> {
    let ask = |_| {
        let mut stream = TcpStream::connect(server.http).expect("server accepts");
        // Without this limit, the kernel may take tens of megabytes into the buffer of a client that does not read.
        set_socket_recv_buffer_size(&stream, 1 << 18).expect("a limit on the buffer");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.http).unwrap();
        stream
    };
    let asking: Vec<TcpStream> = (0..count).map(ask).collect();
    let status = |mut stream: TcpStream| {
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap_or_else(|error| panic!("{path}: {error}: {}", server.log()));
        (String::from_utf8_lossy(&head[9..]).parse().expect("a status line"), stream)
    };
    asking.into_iter().map(status).collect()
}

#[test]
fn answers_that_are_not_read_share_a_memory_budget() {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &[]);
    // Each response has almost the maximum of five million points, and takes 80 MB.
    let lines: String = (0..454).map(|n| format!("x,n={n} value={n} 1000000000\n")).collect();
    assert_eq!(server.post("/write?precision=ns", &[], lines.as_bytes()).status, 204);
    let path = "/api/v1/query_range?query=x&start=1&end=11000&step=1&lookback_delta=11001";
    let mut answers = unread(&server, path, AT_ONCE);
    let count = |wanted: u16| answers.iter().filter(|(status, _)| *status == wanted).count();
    assert!(
        count(200) > 0 && count(200) + count(503) == AT_ONCE,
        "{} of 200, {} of 503",
        count(200),
        count(503)
    );
    // On a busy machine, other limits may have refused so many of the queries that the budget has room.
    let refused = support::wait_for("the budget to be used up", || {
        let (status, mut stream) = unread(&server, path, 1).remove(0);
        if status == 200 {
            answers.push((status, stream));
            return None;
        }
        let mut rest = String::new();
        stream.read_to_string(&mut rest).expect("an answer");
        rest.contains("answers that are being sent may take ").then_some((status, rest))
    });
    assert!(refused.0 == 503 && refused.1.contains("\r\nretry-after: 1\r\n"), "{refused:?}");
    assert_eq!(server.get("/api/v1/query?query=x&time=1").status, 200, "a small response was refused");
    drop(answers);
    support::wait_for("memory for an answer", || {
        (server.get(&path.replace("11000&", "6000&")).status == 200).then_some(())
    });
    assert!(server.stop().success());
}

#[test]
fn long_entries_that_are_not_read_do_not_fill_the_memory() {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &[]);
    // JSON needs six bytes for each of these characters.
    let text = "\u{1}".repeat((1 << 20) - 10);
    for part in 0..8 {
        let line =
            |n: u64| format!("log,n={} value=\"{text}\" {}\n", n % 4, (part * 12 + n + 1) * 1_000_000_000);
        let body: String = (0..12).map(line).collect();
        assert_eq!(post_gzip(&server, &body).status, 204);
    }
    assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    for (path, expect, at_once) in [
        ("/api/v1/export?match[]=log", 200, AT_ONCE),
        ("/api/v1/entries?match[]=log&start=0&end=100&limit=60", 422, 16),
        ("/api/v1/entries?match[]=log&start=0&end=100&limit=8", 200, 16),
    ] {
        let answers = unread(&server, path, at_once);
        let count = |wanted: u16| answers.iter().filter(|(status, _)| *status == wanted).count();
        assert!(count(expect) > 0 && count(expect) + count(503) == at_once, "{path}: {}", count(expect));
        drop(answers);
        support::wait_for("the connections to be closed", || (count_open(&server) <= 2).then_some(()));
    }
    assert!(server.stop().success());
}

fn count_open(server: &Server) -> u64 {
    let metrics = server.get("/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("tacho_connections{listener=\"http\"} "));
    line.expect("the metric exists").parse().unwrap()
}

#[test]
fn the_values_of_a_label_are_limited_in_one_answer() {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &[]);
    // The values have 36 MB in total.
    let value = |n: usize| format!("{}{n:06}", "v".repeat(3_990));
    for part in 0..9 {
        let line = |n: usize| format!("m,l={} value=1 1\n", value(part * 1_000 + n));
        assert_eq!(post_gzip(&server, &(0..1_000).map(line).collect::<String>()).status, 204);
    }
    let answer = server.get("/api/v1/label/l/values");
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert!(answer.text().contains("have more than 33554432 bytes"), "{}", answer.text());
    let some = server.get("/api/v1/label/l/values?limit=3").json();
    assert_eq!((&some["data"][2], some["warnings"][0].is_string()), (&value(2).into(), true));
    assert_eq!(server.get("/api/v1/series?match[]=m&limit=9000").status, 200);
}

#[test]
fn queries_that_need_much_memory_are_computed_one_after_the_other() {
    /// Enough for one query, which takes about 120 MB in addition to an idle server, but not for all queries at once.
    const PEAK_BYTES_MAX: u64 = 400 << 20;
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &[]);
    let lines: String = (0..10).map(|n| format!("m,n={n} value={n} 1000000000000000\n")).collect();
    assert_eq!(server.post("/write?precision=ns", &[], lines.as_bytes()).status, 204);
    let path = "/api/v1/query?query=moving_avg(m[490000s:1s],5s)&time=1490000&lookback_delta=2000000&limit=1";
    let ask = || server.get(path).status;
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        assert_eq!(
            server.get("/api/v1/query?query=m&time=1000000").json()["data"]["result"][9]["value"][1],
            "9"
        );
        asking.into_iter().for_each(|answer| assert_eq!(answer.join().unwrap(), 200));
    });
    let peak = memory(&server, "VmHWM:");
    assert!(peak < PEAK_BYTES_MAX, "{peak} bytes");
    assert!(server.stop().success());
}

/// Each frame has about 50 bytes and 16 refused records. The reasons of these 16 refusals take a kilobyte of memory.
#[test]
fn concurrent_imports_of_many_frames_stay_within_the_memory_budget() {
    use tacho_ingest::wire::{ClientFrame, Hello};
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &[]);
    let body = |session: u128| {
        let mut body = Vec::new();
        let pairs = vec![("service".to_owned(), "bulk".to_owned())];
        ClientFrame::Hello(Hello {
            version_min: 1,
            version_max: 1,
            session,
            pairs,
            secret: None,
            token: None,
        })
        .encode(&mut body);
        for seq in 1..40_000u64 {
            let mut frame = Vec::new();
            tacho_model::varint::put_varint(&mut frame, seq);
            frame.extend_from_slice(&0i64.to_le_bytes());
            frame.extend_from_slice(&[77, 0].repeat(16));
            ClientFrame::Data(&frame).encode(&mut body);
        }
        body
    };
    let bytes = body(1).len() as f64;
    let imports: Vec<TcpStream> = (1..=14)
        .map(|session| {
            let body = body(session);
            let mut stream = TcpStream::connect(server.http).unwrap();
            let head = format!("POST /api/v1/import HTTP/1.1\r\nHost: {}\r\n", server.http);
            write!(stream, "{head}Content-Length: {}\r\n\r\n", body.len()).unwrap();
            stream.write_all(&body).unwrap();
            stream
        })
        .collect();
    let figure = |name: &str| {
        let metrics = server.get("/metrics").text();
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        value.unwrap_or(0.0)
    };
    support::wait_for("all imports to be decoded or refused", || {
        let decoded = figure("tacho_received_bytes_total{protocol=\"import\"}") / bytes;
        (decoded + figure("tacho_sender_waits_total{protocol=\"import\"}") > 13.5).then_some(())
    });
    let resident = memory(&server, "VmHWM:");
    assert!(resident < 400 << 20, "{resident} bytes resident");
    drop(imports);
    assert!(server.stop().success());
}

#[test]
fn long_lists_of_rules_do_not_stay_in_the_memory_of_idle_connections() {
    use tacho_ingest::wire::{ClientFrame, Hello};
    const AGENTS: u128 = 900;
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &[]);
    let pattern = |rule: usize| format!("com.a{rule}.{}..*", "b".repeat(900));
    for rule in 0..1_000 {
        let path = format!("/api/v1/probes?state=off&pattern={}", pattern(rule));
        assert_eq!(server.post(&path, &[], b"").status, 200);
    }
    let before = memory(&server, "VmHWM:");
    let agents: Vec<TcpStream> = (1..=AGENTS)
        .map(|agent| {
            let mut stream = TcpStream::connect(server.records).unwrap();
            let pairs = [("service", "shop".to_owned()), ("control", "1".to_owned())];
            let pairs = pairs.map(|(key, value)| (key.to_owned(), value)).to_vec();
            // `docs/format/wire.md` requires that one of the first eight bytes of a session id is not 0.
            let session = agent << 64 | 1;
            let mut hello = Vec::new();
            ClientFrame::Hello(Hello {
                version_min: 1,
                version_max: 1,
                session,
                pairs,
                secret: None,
                token: None,
            })
            .encode(&mut hello);
            stream.write_all(&hello).unwrap();
            stream
        })
        .collect();
    for mut agent in &agents {
        // WELCOME is shorter, so the server has begun to send the list of rules.
        agent.read_exact(&mut [0; 1_000]).unwrap();
    }
    let grown = memory(&server, "VmHWM:") - before;
    assert!(grown < 400 << 20, "{grown} bytes for {AGENTS} lists");
    assert!(server.stop().success());
}
