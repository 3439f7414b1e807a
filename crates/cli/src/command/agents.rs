//! `tacho agents`: connected agents and the status of their rules.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use serde_json::Value;
use tacho_api::printable::printable;
use tacho_api::units;

use super::ask;
use crate::client;
use crate::failure::Failure;
use crate::terminal::table::{Align, Table};

const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Moves the cursor to the upper left corner, and clears the screen.
const CLEAR_SCREEN: &str = "\x1b[H\x1b[2J";

/// List connected agents, the effect of the rules on each, and the operations that agents themselves aggregated or switched off
///
/// Disconnected agents are listed for one more hour.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho agents
  tacho agents --service shop --watch
  tacho agents --json")]
pub struct Agents {
    /// Only agents of this service
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    service: Option<String>,
    /// Refresh every second, until Ctrl-C
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    server: ask::Server,
    /// Print as JSON; with --watch one line per refresh
    #[arg(long)]
    json: bool,
}

impl Agents {
    pub fn run(self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(Failure::new)?.block_on(self.show())
    }

    async fn show(&self) -> Result<(), Failure> {
        let client = self.server.client()?;
        let params = [("service", self.service.as_deref()), ("limit", Some("4096"))];
        let path = client::path("/api/v1/agents", params);
        let mut outage = Outage::default();
        loop {
            let answer = match client.get(&path).await {
                Ok(mut answer) => {
                    outage.ends();
                    answer["data"].take()
                }
                Err(failure) if self.watch => {
                    outage.report_outage(failure)?;
                    tokio::time::sleep(WATCH_INTERVAL).await;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            if let (Some(service), false) = (&self.service, self.watch)
                && ask::list(&answer, "agents").is_empty()
            {
                let all = client.get("/api/v1/agents?limit=4096").await?;
                let known: BTreeSet<&str> = ask::list(&all["data"], "agents")
                    .iter()
                    .map(|agent| ask::text(agent, "service"))
                    .collect();
                let known: Vec<&str> = known.into_iter().collect();
                let none = "no agent at all was connected within the last hour";
                return Err(ask::unknown_service(
                    service,
                    "with an agent within the last hour",
                    &known,
                    none,
                ));
            }
            let text = match (self.json, self.watch) {
                (true, true) => format!("{answer}\n"),
                (true, false) => format!("{answer:#}\n"),
                (false, _) => self.text(&answer),
            };
            if !self.watch {
                print!("{text}");
                return Ok(());
            }
            let clear = if io::stdout().is_terminal() && !self.json { CLEAR_SCREEN } else { "" };
            match write!(io::stdout(), "{clear}{text}").and_then(|()| io::stdout().flush()) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(Failure::new(format!("cannot write to stdout: {error}"))),
            }
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
    }

    fn text(&self, answer: &Value) -> String {
        let agents = ask::list(answer, "agents");
        if agents.is_empty() {
            let of = self.service.as_ref().map_or_else(String::new, |service| format!(" of {service}"));
            eprintln!("no agent{of} is connected, and none was within the last hour");
            return String::new();
        }
        let now = ask::now();
        let mut text = table(agents, now);
        let listed = agents.len() as u64;
        if ask::number(answer, "total") > listed {
            text.push_str(&format!("{listed} of {}\n", ask::number(answer, "total")));
        }
        let faults = faults(agents);
        if !faults.is_empty() {
            text.push_str(&format!("\nrules that agents cannot follow:\n{faults}"));
        }
        if let Some(moved) = moved(agents, now) {
            text.push_str(&format!("\naggregated or switched off by the agents themselves:\n{moved}"));
        }
        text
    }
}

/// The state of an outage of the server during `--watch`.
#[derive(Default)]
struct Outage {
    has_answered: bool,
    said: Option<String>,
}

impl Outage {
    /// Reports a failed request on stderr, unless the request before it failed with the same message.
    ///
    /// # Errors
    /// When no request has succeeded yet.
    fn report_outage(&mut self, failure: Failure) -> Result<(), Failure> {
        if !self.has_answered {
            return Err(failure);
        }
        if self.said.as_deref() != Some(failure.message()) {
            eprintln!("warning: {}; retrying", printable(failure.message()));
            self.said = Some(failure.message().to_owned());
        }
        Ok(())
    }

    fn ends(&mut self) {
        self.has_answered = true;
        if self.said.take().is_some() {
            eprintln!("connected again");
        }
    }
}

fn table(agents: &[Value], now: i64) -> String {
    let (left, right) = (Align::Left, Align::Right);
    let mut table = Table::new([
        ("SERVICE", left),
        ("HOST", left),
        ("INSTANCE", left),
        ("RUNTIME", left),
        ("STATE", left),
        ("CONNECTED", right),
        ("ON", right),
        ("AGGREGATED", right),
        ("OFF", right),
        ("DROPPED", right),
    ]);
    for agent in agents {
        let text = |name| ask::text(agent, name).to_owned();
        let probes = &agent["probes"];
        let count =
            |name| if probes.is_null() { String::new() } else { units::count(ask::number(probes, name)) };
        let dropped = ["executions", "samples", "entries"].map(|kind| ask::number(&agent["dropped"], kind));
        table.row([
            text("service"),
            text("host"),
            text("instance"),
            text("runtime"),
            state(agent, now),
            age(&agent["since"], now),
            count("on"),
            count("aggregated"),
            count("off"),
            units::count(dropped.iter().sum()),
        ]);
    }
    table.to_string()
}

fn state(agent: &Value, now: i64) -> String {
    match ask::text(agent, "state") {
        "none" => "no support for rules".into(),
        "silent" => "does not answer".into(),
        "left" => format!("left {} ago", age(&agent["left"], now)),
        other => other.to_owned(),
    }
}

fn faults(agents: &[Value]) -> String {
    let mut text = String::new();
    for agent in agents {
        let rules = ask::list(&agent["probes"], "rules").iter();
        for rule in rules.filter(|rule| !ask::text(rule, "fault").is_empty()) {
            let (id, fault) = (ask::number(rule, "id"), printable(ask::text(rule, "fault")));
            text.push_str(&format!("rule {id}, {}: {fault}\n", name(agent)));
        }
    }
    text
}

fn moved(agents: &[Value], now: i64) -> Option<String> {
    let left = Align::Left;
    let head = [("AGENT", left), ("OPERATION", left), ("WHY", left), ("SINCE", Align::Right)];
    let mut table = Table::new(head);
    let mut any = false;
    for agent in agents {
        for moved in ask::list(&agent["probes"], "moved") {
            any = true;
            let text = |name| ask::text(moved, name).to_owned();
            table.row([name(agent), text("operation"), text("reason"), age(&moved["since"], now)]);
        }
    }
    any.then(|| table.to_string())
}

/// The name of an agent, such as `shop on h1 (8080)`.
pub fn name(agent: &Value) -> String {
    let text = |name| printable(ask::text(agent, name));
    match &*text("instance") {
        "" => format!("{} on {}", text("service"), text("host")),
        instance => format!("{} on {} ({instance})", text("service"), text("host")),
    }
}

/// Formats the time since `ns`. A time in the future counts as now, because clocks may differ.
pub fn age(ns: &Value, now: i64) -> String {
    let then = ns.as_str().and_then(|text| text.parse().ok()).unwrap_or(now);
    let ns = u64::try_from(now.saturating_sub(then)).unwrap_or(0);
    let (minute, hour, day) = (60, 3_600, 86_400);
    match ns / 1_000_000_000 {
        s if s < minute => format!("{s}s"),
        s if s < hour => format!("{}m{}s", s / minute, s % minute),
        s if s < day => format!("{}h{}m", s / hour, s % hour / minute),
        s => format!("{}d{}h", s / day, s % day / hour),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ages_have_at_most_two_units() {
        for (seconds, expect) in
            [(-5, "0s"), (0, "0s"), (59, "59s"), (61, "1m1s"), (7_320, "2h2m"), (90_000, "1d1h")]
        {
            assert_eq!(age(&json!((1_000_000_000_i64 * -seconds).to_string()), 0), expect);
        }
    }

    #[test]
    fn names_of_agents_have_one_line() {
        let agent =
            |service: &str, instance: &str| json!({ "service": service, "host": "h1", "instance": instance });
        assert_eq!(name(&agent("shop", "")), "shop on h1");
        assert_eq!(name(&agent("\u{1b}]0;shop\u{7}", "a\nb")), "\\u{1b}]0;shop\\u{7} on h1 (a\\nb)");
    }

    #[test]
    fn faults_of_rules_and_moved_operations_are_listed() {
        let agent = json!({
            "service": "shop", "host": "h1", "instance": "8080", "state": "silent", "since": "0",
            "probes": {
                "on": 1_200, "aggregated": 1, "off": 0,
                "rules": [
                    { "id": 7, "matched": 0, "fault": "a pattern ends\nwith a dot" },
                    { "id": 8, "matched": 3, "fault": "" },
                ],
                "moved": [{ "operation": "a.B.c()", "reason": "rate 1.2 M/s over 1 M/s", "since": "0" }],
            },
        });
        let agents = [agent];
        assert_eq!(faults(&agents), "rule 7, shop on h1 (8080): a pattern ends\\nwith a dot\n");
        assert!(moved(&agents, 0).unwrap().contains("shop on h1 (8080)  a.B.c()    rate 1.2 M/s over 1 M/s"));
        let shown = table(&agents, 0);
        assert!(shown.contains("does not answer") && shown.contains("1,200"), "{shown}");
        assert_eq!(moved(&[json!({ "probes": null })], 0), None);
    }
}
