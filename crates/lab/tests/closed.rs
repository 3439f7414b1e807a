//! Tests the closed loop with a small server, which counts requests.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tacho_lab::{Error, Mix, Progress, Report, Settings, Stop, run};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[derive(Default)]
struct Seen {
    ids: HashSet<String>,
    connections: usize,
    requests: usize,
}

/// Responds by path: `/ok`, `/missing` (404), `/hangup` (closes without a response), `/slow` (never responds).
async fn serve(seen: Arc<Mutex<Seen>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            seen.lock().unwrap().connections += 1;
            tokio::spawn(converse(stream, Arc::clone(&seen)));
        }
    });
    address
}

async fn converse(stream: TcpStream, seen: Arc<Mutex<Seen>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut path = String::new();
        let mut line = String::new();
        while stream.read_line(&mut line).await.is_ok_and(|n| n > 2) {
            if path.is_empty() {
                path = line.split(' ').nth(1).unwrap_or("").to_owned();
            }
            if let Some(id) = line.strip_prefix("x-request-id: ") {
                seen.lock().unwrap().ids.insert(id.trim().to_owned());
            }
            line.clear();
        }
        if path.is_empty() {
            return;
        }
        seen.lock().unwrap().requests += 1;
        let answer: &[u8] = match path.as_str() {
            "/missing" => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            "/hangup" => return,
            "/slow" => std::future::pending().await,
            _ => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        };
        if stream.get_mut().write_all(answer).await.is_err() {
            return;
        }
    }
}

fn settings(target: String, mix: &str, stop: Stop) -> Settings {
    let mix = Mix::parse(mix).unwrap();
    Settings { target, connections: 4, stop, timeout: Duration::from_secs(60), mix, run: 7 }
}

async fn load(mix: &str, stop: Stop) -> (Report, Seen) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let target = serve(Arc::clone(&seen)).await;
    let report = run(settings(target, mix, stop), Arc::default()).await.unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (report, seen)
}

#[tokio::test]
async fn the_given_number_of_requests_is_sent_on_reused_connections() {
    let (report, seen) = load("1 GET /ok", Stop::Requests(1_000)).await;
    assert_eq!((report.succeeded(), report.failures().total(), seen.requests), (1_000, 0, 1_000));
    assert_eq!(seen.ids.len(), 1_000, "every request must have a unique id");
    assert_eq!(
        seen.connections, 5,
        "each worker has one connection, and one more checks that the server is reachable"
    );
    assert_eq!(report.body_bytes, 5_000);
    assert!(report.latency_ns().value_at_quantile(0.5) > 0);
}

#[tokio::test]
async fn failures_are_counted_by_cause() {
    let (report, _) = load("1 GET /ok\n1 GET /missing\n1 GET /hangup", Stop::Requests(300)).await;
    let failures = report.failures();
    assert_eq!(report.succeeded() + failures.total(), 300);
    assert!(failures.statuses[&404] > 0 && failures.connection > 0, "{failures:?}");
    assert_eq!(report.templates[1].latency_ns.len(), 0, "response times of errors were recorded");
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let target = serve(Arc::default()).await;
    let timeout = Duration::from_secs(1);
    let settings = Settings { timeout, ..settings(target, "1 GET /slow", Stop::Requests(4)) };
    let report = run(settings, Arc::default()).await.unwrap();
    assert_eq!(report.failures().timeout, 4);
}

#[tokio::test]
async fn a_run_ends_after_its_duration_or_when_the_caller_stops_it() {
    let (report, _) = load("1 GET /ok", Stop::After(Duration::from_millis(200))).await;
    assert!(report.succeeded() > 0 && report.elapsed >= Duration::from_millis(200));

    let target = serve(Arc::default()).await;
    let progress = Arc::new(Progress::default());
    let running = tokio::spawn(run(
        settings(target, "1 GET /ok", Stop::After(Duration::from_secs(600))),
        progress.clone(),
    ));
    while progress.succeeded() == 0 && !running.is_finished() {
        tokio::task::yield_now().await;
    }
    progress.stop();
    let report = running.await.unwrap().unwrap();
    assert_eq!(report.succeeded(), progress.succeeded());
}

#[tokio::test]
async fn an_unreachable_server_is_an_error_that_names_the_address() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let error = run(settings(free.clone(), "1 GET /", Stop::Requests(1)), Arc::default()).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }) && error.to_string().contains(&free), "{error}");
}
