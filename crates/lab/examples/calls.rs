//! Generates the calls of a fleet of web services, and sends them to a server or prints them as CSV (`bench/scale`).
//!
//! The last line of the output (on stderr with `--csv`) is a JSON object with the numbers of calls, traces and segments, and a
//! random sample of the traces.

use std::io::{BufWriter, Write};

use clap::Parser;
use tacho_lab::calls::{HEADER, Sender, Trace, Traces, When, rows};
use tacho_model::Random;

const HOUR_NS: f64 = 3.6e12;
/// Limit on the number of traces in the random sample.
const NAMED: usize = 32;

#[derive(Parser)]
struct Options {
    /// Least number of calls; the last trace is complete, so there may be a few more
    #[arg(long, default_value_t = 1_000_000)]
    calls: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Time of the first trace, seconds since the Unix epoch
    #[arg(long)]
    start: i64,
    /// Hours over which the traces are spread
    #[arg(long, default_value_t = 24.0)]
    hours: f64,
    /// HOST:PORT of the server's listener for records
    #[arg(long, conflicts_with = "csv", required_unless_present = "csv")]
    records: Option<String>,
    /// Print the calls as CSV
    #[arg(long)]
    csv: bool,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    let when = When {
        start: options.start.saturating_mul(1_000_000_000),
        length_ns: (options.hours * HOUR_NS) as u64,
        calls: options.calls,
    };
    let mut traces = Traces::new(options.seed, when);
    let mut summary = Summary::default();
    if let Some(target) = &options.records {
        let mut sender = Sender::connect(target, &traces)?;
        for trace in &mut traces {
            sender.send(&trace)?;
            summary.add(&trace);
        }
        sender.finish()?;
        println!("{}", summary.json());
        return Ok(());
    }
    let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    let mut text = format!("{HEADER}\n");
    while let Some(trace) = traces.next() {
        rows(&traces.fleet, &trace, &mut text);
        out.write_all(text.as_bytes())?;
        text.clear();
        summary.add(&trace);
    }
    out.flush()?;
    eprintln!("{}", summary.json());
    Ok(())
}

struct Summary {
    calls: u64,
    traces: u64,
    segments: usize,
    /// A random sample of the traces, each as a JSON object.
    named: Vec<String>,
    random: Random,
}

impl Default for Summary {
    fn default() -> Self {
        Self { calls: 0, traces: 0, segments: 0, named: vec![], random: Random::new(1) }
    }
}

impl Summary {
    fn add(&mut self, trace: &Trace) {
        self.calls += u64::from(trace.calls);
        self.traces += 1;
        self.segments += trace.segments.len();
        let at =
            if self.named.len() < NAMED { self.named.len() } else { self.random.below(self.traces) as usize };
        if at < NAMED {
            let request = u128::from_be_bytes(trace.request_id);
            let name = format!(
                "{{\"trace\":\"{}\",\"request\":\"{request:032x}\",\"calls\":{}}}",
                trace.id, trace.calls
            );
            self.named.truncate(at.max(self.named.len().min(NAMED)));
            match self.named.get_mut(at) {
                Some(place) => *place = name,
                None => self.named.push(name),
            }
        }
    }

    fn json(&self) -> String {
        let Self { calls, traces, segments, named, .. } = self;
        let named = named.join(",");
        format!("{{\"calls\":{calls},\"traces\":{traces},\"segments\":{segments},\"named\":[{named}]}}")
    }
}
