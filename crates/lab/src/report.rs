//! The results of one run: response times and failures of its requests.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Failed requests, by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Responses with a status of 400 or above, by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a complete response because the connection was refused, reset or closed.
    pub connection: u64,
    /// Requests without a complete response within the timeout.
    pub timeout: u64,
}

impl Failures {
    pub fn total(&self) -> u64 {
        self.statuses.values().sum::<u64>() + self.connection + self.timeout
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        self.connection += other.connection;
        self.timeout += other.timeout;
    }
}

#[derive(Clone, Debug)]
pub struct TemplateReport {
    /// For example `GET /ads?page={1..20}`.
    pub name: String,
    /// Response times of the successful requests, ns, from sending the request to the last byte received.
    pub latency_ns: Histogram<u64>,
    pub failures: Failures,
}

#[derive(Clone, Debug)]
pub struct Report {
    pub connections: usize,
    /// From the start of all connections to the end of the last connection.
    pub elapsed: Duration,
    pub templates: Vec<TemplateReport>,
    /// Bytes of the bodies of successful responses.
    pub body_bytes: u64,
}

impl Report {
    /// Response times of all successful requests, ns.
    pub fn latency_ns(&self) -> Histogram<u64> {
        let mut all = new_histogram();
        for template in &self.templates {
            // Cannot fail, because all histograms have the same bounds.
            let _ = all.add(&template.latency_ns);
        }
        all
    }

    pub fn succeeded(&self) -> u64 {
        self.templates.iter().map(|t| t.latency_ns.len()).sum()
    }

    pub fn failures(&self) -> Failures {
        let mut all = Failures::default();
        for template in &self.templates {
            all.add(&template.failures);
        }
        all
    }

    /// Successful requests per second.
    pub fn throughput(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.succeeded() as f64 / seconds } else { 0.0 }
    }
}

/// A histogram of 1 ns to 10 minutes with three significant digits. Longer times are recorded as 10 minutes.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("constant bounds are valid")
}

pub const LATENCY_NS_MAX: u64 = 600_000_000_000;
