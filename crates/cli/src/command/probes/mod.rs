//! `tacho probes`: rules that switch probes on and off while programs run.

mod switch;
mod verdict;

use serde_json::Value;
use tacho_api::units;

use super::agents::age;
use super::ask;
use crate::client;
use crate::failure::Failure;
use crate::terminal::table::{Align, Table};

/// Switch probes of running programs on and off
///
/// A rule applies to the methods that match its pattern, in all agents or those of one service or instance; the last
/// matching rule decides.
/// Rules take effect immediately and override the settings of the agents. A new rule replaces the rule with the same
/// pattern and scope. Without --keep a rule applies until it is removed or the server stops.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  tacho probes
  tacho probes off 'com.shop..*'
  tacho probes on com.shop.Board.post --service shop --keep
  tacho probes aggregate '@com.shop.Hot' --wait 5s
  tacho probes clear --all"
)]
pub struct Probes {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    list: List,
}

#[derive(clap::Subcommand)]
enum What {
    List(List),
    On(On),
    Off(Off),
    Aggregate(Aggregate),
    Clear(Clear),
}

/// List the rules and their results in the connected agents
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho probes list
  tacho probes list --json")]
struct List {
    #[command(flatten)]
    server: ask::Server,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Record each call of matching methods
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho probes on 'com.shop..*'
  tacho probes on com.shop.Board.post --service shop --instance 8080 --keep")]
struct On {
    #[command(flatten)]
    switch: switch::Switch,
}

/// Do not record matching methods
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho probes off 'com.shop..*'
  tacho probes off '*' --service shop")]
struct Off {
    #[command(flatten)]
    switch: switch::Switch,
}

/// Record count, sum, maximum and histogram of the times of matching methods instead of each call
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho probes aggregate 'com.shop.Price.*'
  tacho probes aggregate '@com.shop.Hot' --wait 0s")]
struct Aggregate {
    #[command(flatten)]
    switch: switch::Switch,
}

/// Remove rules; earlier rules and the settings of the agents decide again
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho probes clear 3 4
  tacho probes clear --all")]
struct Clear {
    /// Ids of rules, as listed by `tacho probes`
    #[arg(value_name = "ID", conflicts_with = "all")]
    ids: Vec<u64>,
    /// Remove all rules
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    server: ask::Server,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Probes {
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            None => self.list.run(),
            Some(What::List(list)) => list.run(),
            Some(What::On(On { switch })) => switch.run("on"),
            Some(What::Off(Off { switch })) => switch.run("off"),
            Some(What::Aggregate(Aggregate { switch })) => switch.run("aggregate"),
            Some(What::Clear(clear)) => clear.run(),
        }
    }
}

impl List {
    fn run(self) -> Result<(), Failure> {
        let data = self.server.get("/api/v1/probes", [])?["data"].take();
        if self.json {
            ask::print_json(&data);
            return Ok(());
        }
        let rules = ask::list(&data, "rules");
        if rules.is_empty() {
            eprintln!("no rules: agents follow their own settings");
            return Ok(());
        }
        let (left, right) = (Align::Left, Align::Right);
        let mut table = Table::new([
            ("ID", right),
            ("STATE", left),
            ("PATTERN", left),
            ("FOR", left),
            ("KEPT", left),
            ("AGE", right),
            ("AGENTS", right),
            ("METHODS", right),
            ("FAULTS", right),
        ]);
        let now = ask::now();
        for rule in rules {
            let text = |name| ask::text(rule, name).to_owned();
            let count = |name| units::count(ask::number(&rule["agents"], name));
            table.row([
                ask::number(rule, "id").to_string(),
                text("state"),
                text("pattern"),
                scope(rule),
                if rule["kept"] == true { "yes".into() } else { String::new() },
                age(&rule["since"], now),
                count("told"),
                count("matched"),
                count("faults"),
            ]);
        }
        print!("{table}");
        Ok(())
    }
}

impl Clear {
    fn run(self) -> Result<(), Failure> {
        if self.ids.is_empty() && !self.all {
            return Err(Failure::usage("no rule is named")
                .hint("give ids as `tacho probes` lists them, or --all to remove all rules"));
        }
        let ids: Vec<String> = self.ids.iter().map(u64::to_string).collect();
        let mut params: Vec<(&str, Option<&str>)> = ids.iter().map(|id| ("id", Some(id.as_str()))).collect();
        params.extend(self.all.then_some(("all", Some("1"))));
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let answer =
            runtime.block_on(self.server.client()?.delete(&client::path("/api/v1/probes", params)))?;
        let data = data(&answer)?;
        if self.json {
            ask::print_json(&data);
            return Ok(());
        }
        match ask::number(&data, "removed") {
            1 => println!("removed 1 rule"),
            n => println!("removed {} rules", units::count(n)),
        }
        Ok(())
    }
}

fn scope(rule: &Value) -> String {
    match (ask::text(rule, "service"), ask::text(rule, "instance")) {
        ("", "") => "all agents".into(),
        (service, "") => service.to_owned(),
        ("", instance) => format!("instance {instance}"),
        (service, instance) => format!("{service}, instance {instance}"),
    }
}

fn data(answer: &str) -> Result<Value, Failure> {
    Ok(client::json(answer)?["data"].take())
}
