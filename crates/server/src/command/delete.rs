//! `tacho delete`: forget what series have in a range of time.

use serde_json::Value;

use super::Failure;
use super::ask;
use crate::client;

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
    #[command(flatten)]
    ends: ask::Ends,
    /// Do it
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    server: ask::Server,
}

impl Delete {
    pub fn run(self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let client = self.server.client();
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
        let ends = self.ends.params();
        let ends = ends.iter().map(|(name, time)| (*name, time.as_deref()));
        let path = client::path("/api/v1/admin/tsdb/delete_series", selectors().chain(ends));
        runtime.block_on(client.post(&path))?;
        println!("deleted");
        Ok(())
    }
}
