//! Adds a rule and reports its results in the agents.

use std::time::{Duration, Instant};

use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use tacho_api::units;

use super::super::ask;
use super::verdict::{Before, Verdict};
use super::{data, scope};
use crate::client::{self, Client};
use crate::failure::Failure;
use crate::terminal::table::{Align, Table};

/// Polling interval. An agent answers within a few milliseconds.
const LOOK_INTERVAL: Duration = Duration::from_millis(25);

#[derive(clap::Args)]
pub struct Switch {
    /// Methods, as the agent names them: com.shop..*, com.shop.Board.post, @com.shop.Hot, or * for all
    pattern: String,
    /// Only in agents of this service
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    service: Option<String>,
    /// Only in agents of this instance
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    instance: Option<String>,
    /// Keep the rule when the server restarts
    #[arg(long)]
    keep: bool,
    /// How long to wait for the responses of the agents; 0s does not wait
    #[arg(long, value_name = "DURATION", value_parser = wait, default_value = "2s")]
    wait: Duration,
    #[command(flatten)]
    server: ask::Server,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

fn wait(text: &str) -> Result<Duration, String> {
    if matches!(text, "0ms" | "0s" | "0m") {
        return Ok(Duration::ZERO);
    }
    ask::wait(text)
}

impl Switch {
    pub fn run(self, state: &str) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (added, agents, before) = runtime.map_err(Failure::new)?.block_on(self.switch(state))?;
        let rule = &added["rule"];
        if self.json {
            ask::print_json(&json!({ "rule": rule, "replaced": added["replaced"], "agents": agents }));
        } else {
            self.print(rule, &agents);
        }
        let Verdict { warnings, failure } = Verdict::new(rule, &agents, &before, self.wait);
        warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
        failure.map_or(Ok(()), Err)
    }

    /// Adds the rule. Returns the server's answer (it contains the rule), the agents in the scope of the rule, and the reports of
    /// these agents from before the rule was added.
    async fn switch(&self, state: &str) -> Result<(Value, Vec<Value>, Before), Failure> {
        let client = self.server.client()?;
        let before = self.before(&client).await?;
        let params = [
            ("state", Some(state)),
            ("pattern", Some(self.pattern.as_str())),
            ("service", self.service.as_deref()),
            ("instance", self.instance.as_deref()),
            ("keep", self.keep.then_some("1")),
        ];
        let added = data(&client.post(&client::path("/api/v1/probes", params)).await?)?;
        let agents = self.answers(&client, ask::number(&added["rule"], "id")).await?;
        Ok((added, agents, before))
    }

    async fn before(&self, client: &Client) -> Result<Before, Failure> {
        let params = [
            ("service", self.service.as_deref()),
            ("instance", self.instance.as_deref()),
            ("limit", Some("4096")),
        ];
        let answer = client.get(&client::path("/api/v1/agents", params)).await?;
        let agents = ask::list(&answer["data"], "agents").iter();
        Ok(agents.map(|agent| (ask::text(agent, "session").to_owned(), agent["probes"].clone())).collect())
    }

    /// The agents, as soon as none is `waiting` or the time is over. Silent agents are not waited for.
    async fn answers(&self, client: &Client, rule: u64) -> Result<Vec<Value>, Failure> {
        let begun = Instant::now();
        let rule = rule.to_string();
        let path = client::path("/api/v1/agents", [("rule", Some(rule.as_str())), ("limit", Some("4096"))]);
        loop {
            let answer = client.get(&path).await?;
            let agents = ask::list(&answer["data"], "agents");
            let waiting = agents.iter().any(|agent| ask::text(agent, "state") == "waiting");
            if !waiting || begun.elapsed() >= self.wait {
                return Ok(agents.to_vec());
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    fn print(&self, rule: &Value, agents: &[Value]) {
        println!(
            "rule {}: {} {} for {}, {}",
            ask::number(rule, "id"),
            ask::text(rule, "state"),
            ask::text(rule, "pattern"),
            scope(rule),
            if self.keep { "kept" } else { "until the server stops" }
        );
        let (left, right) = (Align::Left, Align::Right);
        let mut table = Table::new([
            ("SERVICE", left),
            ("HOST", left),
            ("INSTANCE", left),
            ("DECIDES", right),
            ("ON", right),
            ("AGGREGATED", right),
            ("OFF", right),
        ]);
        let answered: Vec<&Value> =
            agents.iter().filter(|agent| ask::text(agent, "state") == "follows").collect();
        for agent in &answered {
            let text = |name| ask::text(agent, name).to_owned();
            let probes = &agent["probes"];
            let count = |name| units::count(ask::number(probes, name));
            let decides = ask::list(probes, "rules").first().map_or(0, |rule| ask::number(rule, "matched"));
            table.row([
                text("service"),
                text("host"),
                text("instance"),
                units::count(decides),
                count("on"),
                count("aggregated"),
                count("off"),
            ]);
        }
        if !answered.is_empty() {
            print!("{table}");
        }
    }
}
