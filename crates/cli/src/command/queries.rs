//! `tacho queries`: the queries that a server computes now.

use clap::builder::NonEmptyStringValueParser;

use super::ask::{self, Server};
use crate::client;
use crate::failure::Failure;
use crate::terminal::table::{Align, Table};

/// List the queries that the server is computing, or stop one
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho queries
  tacho queries --stop 17")]
pub struct Queries {
    /// Stop the query with this id, as the list shows it
    #[arg(long, value_name = "ID", conflicts_with = "json", value_parser = NonEmptyStringValueParser::new())]
    stop: Option<String>,
    #[command(flatten)]
    server: Server,
    /// Print the server's JSON answer
    #[arg(long)]
    json: bool,
}

const NONE: &str = "-";

impl Queries {
    pub fn run(self) -> Result<(), Failure> {
        if let Some(id) = &self.stop {
            return self.stop(id);
        }
        let answer = self.server.get("/api/queries", [])?;
        if self.json {
            ask::print_json(&answer);
            return Ok(());
        }
        let queries = ask::list(&answer["data"], "queries");
        if queries.is_empty() {
            eprintln!("no query is running");
            return Ok(());
        }
        let (left, right) = (Align::Left, Align::Right);
        let mut table = Table::new([
            ("ID", left),
            ("RUNS FOR", right),
            ("PROGRESS", left),
            ("TOKEN", left),
            ("REQUEST", left),
            ("PARAMETERS", left),
        ]);
        for query in queries {
            let parameters = ask::list(query, "parameters").iter();
            let parameter = |pair: &serde_json::Value| {
                format!("{}={}", pair[0].as_str().unwrap_or(""), pair[1].as_str().unwrap_or(""))
            };
            table.row([
                ask::text(query, "id").to_owned(),
                format!("{:.1} s", ask::float(query, "seconds")),
                ask::progress_text(&query["progress"]).unwrap_or_else(|| NONE.to_owned()),
                query["token"].as_str().unwrap_or(NONE).to_owned(),
                ask::text(query, "request").to_owned(),
                parameters.map(parameter).collect::<Vec<_>>().join(" "),
            ]);
        }
        print!("{table}");
        Ok(())
    }

    fn stop(&self, id: &str) -> Result<(), Failure> {
        let path = format!("/api/queries/{}", client::encoded(id));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::new)?;
        runtime.block_on(self.server.client()?.delete(&path))?;
        println!("stopped {id}");
        Ok(())
    }
}
