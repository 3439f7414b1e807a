//! `tacho delete`: deletes records of series in a time range.

use serde_json::Value;
use tacho_api::export::ALLOW_DAMAGED;
use tacho_api::units;

use super::{ask, mark, unmatched};
use crate::client;
use crate::failure::Failure;

/// Delete records of series, by a PromQL selector and a range of time
///
/// Without --yes the command only counts the records of the series in the range. A deletion is durable when the command
/// ends. Records that are written into the range after the deletion are kept. Space is reclaimed in the background, or
/// immediately by `tacho merge`. With --json, "deleted" is false if the command only counted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho delete --match '{host=\"old\"}'
  tacho delete --match '{host=\"old\"}' --yes
  tacho delete --match 'debug_level' --end 2026-01-01T00:00:00Z --yes")]
pub struct Delete {
    /// Series: a PromQL selector; repeatable
    #[arg(long = "match", value_name = "SELECTOR", required = true)]
    selectors: Vec<String>,
    #[command(flatten)]
    ends: ask::Ends,
    /// Delete the records instead of counting them
    #[arg(long)]
    yes: bool,
    /// Count the readable records and skip unreadable ones
    #[arg(long)]
    allow_damaged: bool,
    /// Print the counts as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ask::Server,
}

impl Delete {
    pub fn run(self) -> Result<(), Failure> {
        mark::selectors(&self.selectors)?;
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let client = self.server.client()?;
        let selectors = self.selectors.iter().map(|selector| ("match[]", Some(selector.as_str())));
        let ends = self.ends.params();
        let ends = ends.iter().map(|(name, time)| (*name, time.as_deref()));
        let ends = ends.chain([(ALLOW_DAMAGED, self.allow_damaged.then_some("1"))]);
        let answer = if self.yes {
            let params = selectors.chain(ends).chain([("counts", Some("1"))]);
            runtime.block_on(client.post(&client::path("/api/v1/admin/tsdb/delete_series", params)))?
        } else {
            let path = client::path("/api/v1/admin/count", selectors.chain(ends));
            runtime.block_on(client.get_text(&path))?
        };
        let answer = client::json(&answer)?;
        ask::warn(&answer);
        let affected = &answer["data"];
        if self.json {
            ask::print_json(&report_json(affected, self.yes));
            return Ok(());
        }
        match (amounts(affected), self.yes) {
            (Some(what), true) => println!("deleted: {what}"),
            (Some(what), false) => {
                println!("would be deleted: {what}\nnothing was deleted; add --yes to delete");
            }
            (None, _) => {
                let accepted = ask::number(affected, "accepted");
                println!("nothing to delete: {}", nothing_found(accepted));
                let hint = || unmatched::of_server(&self.server, &self.selectors, None);
                if let Some(hint) = (accepted == 0).then(hint).flatten() {
                    eprintln!("hint: {hint}");
                }
            }
        }
        Ok(())
    }
}

/// The report for scripts: the counts, and whether these records were deleted or only counted.
fn report_json(affected: &Value, deleted: bool) -> Value {
    let mut out = affected.clone();
    out["deleted"] = deleted.into();
    out
}

fn nothing_found(accepted: u64) -> String {
    match accepted {
        0 => "no series matches".to_owned(),
        n => format!("{} series match, none has records in the range", units::count(n)),
    }
}

/// For example `1,200 samples of 3 series, 40 entries of 1 series`. `None` if all records could be counted and there are none.
fn amounts(affected: &Value) -> Option<String> {
    let part = |(kind, one): (&str, &str)| {
        let count = |name| ask::number(&affected[kind], name);
        let (records, series) = (units::count(count("records")), units::count(count("series")));
        let name = if count("records") == 1 { one } else { kind };
        (count("records") > 0).then(|| format!("{records} {name} of {series} series"))
    };
    let kinds = [("samples", "sample"), ("entries", "entry"), ("calls", "call")];
    let mut parts: Vec<String> = kinds.into_iter().filter_map(part).collect();
    let count = |name| ask::number(&affected["summaries"], name);
    if count("hours") > 0 {
        let hours = units::counted(count("hours"), "hour", "hours");
        let series = units::count(count("series"));
        parts.push(format!("the summaries of expired calls of {hours} (as a whole) of {series} series"));
    }
    match (parts.is_empty(), affected["complete"] == false) {
        (true, true) => Some("an unknown number of records".to_owned()),
        (true, false) => None,
        (false, true) => Some(format!("at least {}", parts.join(", "))),
        (false, false) => Some(parts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_distinguishes_a_deletion_from_its_preview() {
        let affected = json!({ "accepted": 1, "samples": { "series": 1, "records": 2 }, "complete": true });
        for deleted in [false, true] {
            let mut expect = affected.clone();
            expect["deleted"] = deleted.into();
            assert_eq!(report_json(&affected, deleted), expect);
        }
    }

    #[test]
    fn amounts_are_reported_by_kind() {
        let count = |records: u64| json!({ "records": records, "series": records.min(3) });
        for (records, complete, expect) in [
            ([1_200, 40, 0], true, Some("1,200 samples of 3 series, 40 entries of 3 series")),
            ([0, 0, 1], false, Some("at least 1 call of 1 series")),
            ([0, 0, 0], false, Some("an unknown number of records")),
            ([0, 0, 0], true, None),
        ] {
            let [samples, entries, calls] = records.map(count);
            let affected =
                json!({ "samples": samples, "entries": entries, "calls": calls, "complete": complete });
            assert_eq!(amounts(&affected).as_deref(), expect);
        }
        let kept = json!({ "summaries": { "series": 2, "hours": 3 }, "complete": true });
        let expect = "the summaries of expired calls of 3 hours (as a whole) of 2 series";
        assert_eq!(amounts(&kept).as_deref(), Some(expect));
    }
}
