//! `tacho merge`: merges all small chunks now instead of in the background.

use tacho_api::units;

use super::ask;
use crate::client;
use crate::failure::Failure;

/// Merge all small chunks now, and reclaim the space of deleted records
///
/// The server also merges in the background, at a limited rate. Use this command before you measure sizes or back up.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho merge
  tacho merge --server http://127.0.0.1:7070 --json")]
pub struct Merge {
    #[command(flatten)]
    server: ask::Server,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Merge {
    pub fn run(self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let answer = runtime.block_on(self.server.client()?.post("/api/v1/admin/merge"))?;
        let answer = client::json(&answer)?;
        let report = &answer["data"];
        if self.json {
            ask::print_json(report);
            return Ok(());
        }
        if ask::number(report, "merges") == 0 {
            println!("nothing to do: there are no small chunks, and no deleted records that take space");
            return Ok(());
        }
        println!(
            "{}: {} of {} became {} of {}",
            units::counted(ask::number(report, "merges"), "merge", "merges"),
            units::counted(ask::number(report, "chunks_in"), "chunk", "chunks"),
            units::bytes(ask::number(report, "bytes_read")),
            units::count(ask::number(report, "chunks_out")),
            units::bytes(ask::number(report, "bytes_written")),
        );
        Ok(())
    }
}
