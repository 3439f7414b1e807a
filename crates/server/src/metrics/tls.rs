//! Metrics of TLS on the listeners.

use super::registry::{Collect, Counter, Family, Gauge};

pub struct TlsFigures {
    /// `result` is ok or failed.
    pub reloads: Family<Counter, 1>,
    /// Unix seconds. Absent without TLS.
    pub certificate_expires: Family<Gauge, 0>,
}

impl Default for TlsFigures {
    fn default() -> Self {
        Self {
            reloads: Family::new(
                "tacho_tls_reloads_total",
                ["result"],
                "Number of reloads of certificates and keys after a change.",
            ),
            certificate_expires: Family::new(
                "tacho_tls_certificate_expires_timestamp_seconds",
                [],
                "Earliest time at which a certificate of tls_cert expires, Unix seconds.",
            ),
        }
    }
}

impl TlsFigures {
    pub fn families(&self) -> [&dyn Collect; 2] {
        [&self.reloads, &self.certificate_expires]
    }
}
