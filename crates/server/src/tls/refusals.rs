//! Log lines about connections without a successful handshake. The first refusal is logged immediately. Later refusals are
//! logged in at most one line a minute, which has their number and the latest refusal.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustls::Error;
use tokio::time::Instant;

const EVERY: Duration = Duration::from_secs(60);

/// A connection without a successful handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub listener: &'static str,
    /// `None` if the peer has disconnected.
    pub peer: Option<SocketAddr>,
    pub reason: String,
}

#[derive(Default)]
pub struct Refusals {
    last_line: Option<Instant>,
    untold: u64,
    latest: Option<Refusal>,
}

impl Refusals {
    pub fn add(&mut self, refusal: Refusal) {
        self.untold += 1;
        self.latest = Some(refusal);
    }

    /// If a line is due, the number of refusals since the last line, and the latest refusal.
    pub fn due(&mut self, now: Instant) -> Option<(u64, Refusal)> {
        if self.last_line.is_some_and(|last| now.duration_since(last) < EVERY) {
            return None;
        }
        let latest = self.latest.take()?;
        self.last_line = Some(now);
        Some((std::mem::take(&mut self.untold), latest))
    }
}

/// Why a handshake failed, from the point of view of the server's administrator.
pub fn reason(error: &io::Error) -> String {
    let of_tls = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    match of_tls {
        Some(Error::NoCertificatesPresented) => {
            "the peer has no client certificate, tls-client-ca requires one".into()
        }
        Some(Error::InvalidCertificate(cause)) => format!("the client certificate is refused: {cause:?}"),
        Some(Error::AlertReceived(alert)) => {
            format!("the peer refuses the server's certificate or version: alert {alert:?}")
        }
        Some(other) => other.to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the peer closed the connection during the handshake".into()
        }
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_minute_counts_the_refusals_since_the_last_line() {
        let begun = Instant::now();
        let refusal = |nth: u32| Refusal { listener: "http", peer: None, reason: nth.to_string() };
        let mut refusals = Refusals::default();
        assert_eq!(refusals.due(begun), None);
        refusals.add(refusal(1));
        assert_eq!(refusals.due(begun), Some((1, refusal(1))));
        for nth in 2..5 {
            refusals.add(refusal(nth));
            assert_eq!(refusals.due(begun + EVERY - Duration::from_nanos(1)), None);
        }
        assert_eq!(refusals.due(begun + EVERY), Some((3, refusal(4))));
        assert_eq!(refusals.due(begun + 3 * EVERY), None, "a line was due without a new refusal");
        refusals.add(refusal(5));
        assert_eq!(refusals.due(begun + 3 * EVERY), Some((1, refusal(5))));
    }
}
