//! Accepts HTTP connections, limits their number and time, and drains them at shutdown.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use super::door::Peer;
use super::held::hold;
use super::paced::Paced;
use crate::connection_limit::{ConnectionLimit, Seat};
use crate::metrics::Metrics;
use crate::metrics::registry::Gauge;
use crate::shutdown::Shutdown;
use crate::tls::{self, Opened, Tls};
use crate::watched::Watched;

/// Timeout for the head of a request, and for an idle connection.
const HEAD_TIME_MAX: Duration = Duration::from_secs(60);
/// Timeout for requests that are running at shutdown.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Number of reserved connections. They are accepted above the limit while all others are busy, and serve only health checks
/// and `/metrics`. Other requests get 503.
const RESERVE_MAX: usize = 32;

#[derive(Clone, Copy, Debug)]
pub struct Reserve;

/// Serves until `shutdown`, then waits for running requests. `write_time_max` is `time_max` of `paced.rs`.
pub async fn serve(
    (listener, tls): (TcpListener, Option<Arc<Tls>>),
    router: Router,
    (connections_max, write_time_max): (usize, Duration),
    metrics: Arc<Metrics>,
    mut shutdown: Shutdown,
) {
    let http = protocol();
    let graceful = GracefulShutdown::new();
    let limit = ConnectionLimit::new(connections_max, RESERVE_MAX);
    let ended = |reason| metrics.connections_refused.with(["http", reason]);
    loop {
        let accepted = tokio::select! {
            () = shutdown.wait() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            limit.relieve("http").await;
            continue;
        };
        let entered = tokio::select! {
            () = shutdown.wait() => break,
            entered = limit.enter() => entered,
        };
        let Some(seat) = entered else {
            ended("too-many").add(1);
            continue;
        };
        // Small responses must not be delayed.
        let _ = stream.set_nodelay(true);
        let stream = Watched::new(stream, seat.probe());
        let (slow, idle) = (ended("slow-reader"), ended("idle"));
        let paced = move |stream| Paced::new(stream, write_time_max, move || slow.add(1));
        let seat = Arc::new(seat);
        let service = seated(router.clone(), seat.clone(), Peer(peer.ip()));
        let open = Open::new(metrics.connections.with(["http"]));
        let (http, watcher) = (http.clone(), graceful.watcher());
        let (tls, handshakes, mut shutdown) = (tls.clone(), ended("handshake"), shutdown.clone());
        let connection = async move {
            match tls::open(("http", tls.as_deref()), stream, paced, &handshakes, &mut shutdown).await {
                None => Ok(()),
                Some(Opened::Plain(stream)) => {
                    tls::refuse(stream, NEEDS_TLS.as_bytes()).await;
                    Ok(())
                }
                Some(Opened::Ready(stream)) => {
                    watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await
                }
            }
        };
        tokio::spawn(async move {
            match seat.serve(connection).await {
                Some(Ok(())) => {}
                // An error of one connection concerns only that peer.
                Some(Err(error)) => tracing::debug!(listener = "http", %error, "connection ended"),
                None => {
                    idle.add(1);
                    tracing::debug!(listener = "http", "idle connection closed for a new one");
                }
            }
            drop(open);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIME_MAX, graceful.shutdown()).await.is_err() {
        tracing::warn!(seconds = DRAIN_TIME_MAX.as_secs(), "running requests were cut off");
    }
}

fn protocol() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX).max_buf_size(BUFFER_BYTES_MAX);
    http
}

/// Serves one open connection. For the fuzz targets only.
#[cfg(fuzzing)]
pub async fn serve_stream(router: Router, stream: tls::Socket, write_time_max: Duration) {
    if let Some(seat) = ConnectionLimit::new(1, 0).enter().await {
        let stream = TokioIo::new(Paced::new(stream, write_time_max, || ()));
        // An error of the connection is expected for most inputs.
        let peer = Peer(std::net::Ipv4Addr::LOCALHOST.into());
        let _ = protocol().serve_connection(stream, seated(router, Arc::new(seat), peer)).await;
    }
}

/// The answer to a request without TLS on a port with TLS.
const NEEDS_TLS: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 37\r\n\
     Connection: close\r\n\r\nthis port requires TLS: use https://\n";

/// The connection counts as busy from the head of a request to the end of its response, except while `admission.rs` waits for
/// more bytes of the body.
fn seated(
    router: Router,
    seat: Arc<Seat>,
    peer: Peer,
) -> impl HttpService<Incoming, ResBody = Body, Error = Infallible, Future: Send> {
    let router = TowerToHyperService::new(router);
    service_fn(move |mut request: Request<Incoming>| {
        let busy = seat.begin();
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(seat.clone());
        if seat.is_reserve() {
            request.extensions_mut().insert(Reserve);
        }
        let answer = router.call(request);
        async move { answer.await.map(|response| hold(response, busy)) }
    })
}

struct Open(Gauge);

impl Open {
    fn new(gauge: Gauge) -> Self {
        gauge.add(1);
        Self(gauge)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use axum::routing::get;

    use super::*;

    const CONNECTIONS_MAX: usize = 4;

    /// All requests arrive before the server accepts their connections. So a connection may be idle longest and be asked to
    /// leave, although its request waits in the socket.
    #[tokio::test]
    async fn a_request_that_has_arrived_is_answered_although_its_connection_is_asked_to_leave() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(|| async { "here" }));
        let (metrics, (trigger, shutdown)) = (Arc::new(Metrics::default()), crate::shutdown::channel());
        let idle = metrics.connections_refused.with(["http", "idle"]);
        let connect = |request: &str| {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        };
        let silent = connect("");
        let request = format!("GET / HTTP/1.1\r\nHost: {at}\r\n\r\n");
        // More connections than the server asks to leave at the same time (64, `ASKED_MAX` of `connection_limit.rs`).
        let streams: Vec<TcpStream> = (0..100).map(|_| connect(&request)).collect();
        let bounds = (CONNECTIONS_MAX, Duration::from_secs(60));
        let serving = tokio::spawn(serve((listener, None), router, bounds, metrics, shutdown));
        let answers = tokio::task::spawn_blocking(move || {
            let answer = |mut stream: TcpStream| {
                let mut bytes = [0; 15];
                let read = stream.read_exact(&mut bytes);
                // The stream stays open.
                (read.map(|()| String::from_utf8_lossy(&bytes).into_owned()), stream)
            };
            streams.into_iter().map(answer).collect::<Vec<_>>()
        });
        let answers = answers.await.unwrap();
        for (nth, (answer, _)) in answers.iter().enumerate() {
            assert_eq!(answer.as_deref().ok(), Some("HTTP/1.1 200 OK"), "request {nth}: {answer:?}");
        }
        // Of the 101 connections, at most `CONNECTIONS_MAX` + 64 are still open: 64 may be asked to leave and not have left yet.
        assert!(idle.get() >= 101 - 4 - 64, "only {} connections have left", idle.get());
        drop((silent, answers));
        trigger.stop();
        serving.await.unwrap();
    }
}
