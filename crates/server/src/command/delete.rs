//! `tacho delete`: forget what series have in a range of time.

use serde_json::Value;

use super::Failure;
use super::ask;
use crate::client::{self, Client};

/// Delete records of series, by a PromQL selector and a range of time
///
/// Without --yes it only says how many series the selectors accept. A deletion is durable when the command ends and holds for
/// what was written before it; what is written into the range later stays. The space is given back in the background,
/// or at once with `tacho merge`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho delete --match '{host=\"old\"}'
  tacho delete --match '{host=\"old\"}' --yes
  tacho delete --match 'debug_level' --end 2026-01-01T00:00:00Z --yes")]
pub struct Delete {
    /// Which series: a PromQL selector; may be given again
    #[arg(long = "match", value_name = "SELECTOR", required = true)]
    selectors: Vec<String>,
    /// Begin: Unix seconds or RFC 3339 [default: all]
    #[arg(long, value_name = "TIME", value_parser = ask::instant)]
    start: Option<i64>,
    /// End: Unix seconds or RFC 3339 [default: all]
    #[arg(long, value_name = "TIME", value_parser = ask::instant)]
    end: Option<i64>,
    /// Do it
    #[arg(long)]
    yes: bool,
    /// The server to ask
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7070")]
    server: String,
}

impl Delete {
    pub fn run(self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let client = Client::new(&self.server);
        let selectors = || self.selectors.iter().map(|selector| ("match[]", Some(selector.as_str())));
        if !self.yes {
            let answer: Value = runtime.block_on(client.get(&client::path("/api/v1/series", selectors())))?;
            println!(
                "{} series with samples are accepted, entries and calls apart:",
                ask::list(&answer, "data").len()
            );
            println!("nothing was deleted; say --yes to delete what they have in the range");
            return Ok(());
        }
        let (start, end) = (self.start.map(ask::seconds), self.end.map(ask::seconds));
        let range = [("start", start.as_deref()), ("end", end.as_deref())];
        let path = client::path("/api/v1/admin/tsdb/delete_series", selectors().chain(range));
        runtime.block_on(client.post(&path))?;
        println!("deleted");
        Ok(())
    }
}
