//! Reports the outcome of an import.

use serde_json::{Value, json};
use tacho_api::refusal;
use tacho_api::tally::Tally;
use tacho_api::units;

use super::findings::{Findings, records};
use super::state::Refused;
use super::verify::Verdict;
use crate::failure::Failure;

/// Fails if the store or the token refused records, if rows are broken, or if texts in columns without numbers were skipped.
/// `is_retried`: the same command sends all records again.
pub fn whole(findings: &Findings, refused: &Refused, is_retried: bool) -> Result<(), Failure> {
    if refused.records > 0 {
        let is_of_token = refused.reasons.iter().all(|why| refusal::is_of_token(why));
        let by = if is_of_token && !refused.reasons.is_empty() { "token" } else { "store" };
        let message = format!("the {by} refused {}", units::counted(refused.records, "record", "records"));
        return Err(Failure::partly(message).hint(remedy(&refused.reasons, is_retried)));
    }
    match (findings.broken, findings.texts_skipped()) {
        (0, 0) => Ok(()),
        (0, texts) => {
            let columns = findings.text_columns();
            let columns = if columns == 1 { "a column".into() } else { format!("{columns} columns") };
            let are = if texts == 1 { "text is" } else { "texts are" };
            Err(Failure::partly(format!(
                "{} {are} skipped, of {columns} without numbers",
                units::count(texts)
            )))
        }
        (_, _) => Err(Failure::partly(findings.broken_told())),
    }
}

/// How to import the records that a limit or a token refused. `is_retried`: the same command sends all records again.
fn remedy(reasons: &[String], is_retried: bool) -> String {
    let (tokens, limits): (Vec<_>, Vec<_>) = reasons.iter().partition(|why| refusal::is_of_token(why));
    let (chunks, others): (Vec<_>, Vec<_>) =
        limits.into_iter().partition(|why| why.contains(refusal::CHUNKS));
    let of_tokens = "use a token that permits these series by its selector (--match) and its --series-max: `tacho token list` \
        shows both";
    let of_chunks = "records of a series that are more than two days apart, or not in order of time, take a chunk each: \
        sort the file by time, join stored chunks with `tacho merge`, or raise chunks_max of the server (400 bytes of \
        memory for each chunk)";
    let of_series = "`tacho cardinality` shows which labels have many values; raise the limit of the server (series_max, \
        index_bytes_max, label_values_max)";
    let is_of_series = !others.is_empty() || (chunks.is_empty() && tokens.is_empty());
    let remedies =
        [(!tokens.is_empty(), of_tokens), (!chunks.is_empty(), of_chunks), (is_of_series, of_series)];
    let remedies: Vec<&str> =
        remedies.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text).collect();
    let command = if is_retried { "the same command" } else { "the same command with --again" };
    format!("{}; then {command} sends them", remedies.join("; "))
}

pub struct Summary<'a> {
    pub samples: Tally,
    pub entries: Tally,
    pub series: usize,
    /// Number of records that an earlier run sent.
    pub earlier: u64,
    pub seconds: f64,
    pub refused: &'a Refused,
    /// `None` when verification was skipped.
    pub verdict: Option<&'a Verdict>,
}

impl Summary<'_> {
    pub fn print(&self, findings: &Findings) {
        let all = self.samples.count + self.entries.count;
        let fresh = all.saturating_sub(self.earlier);
        let rate = match fresh {
            0 => String::new(),
            fresh => format!(", {} a second", units::count((fresh as f64 / self.seconds.max(1e-3)) as u64)),
        };
        println!(
            "{} {} of {} series from {} in {:.1} s{rate}",
            if self.refused.records > 0 { "sent" } else { "imported" },
            records(self.samples.count, self.entries.count),
            units::count(self.series as u64),
            units::counted(findings.rows, "row", "rows"),
            self.seconds,
        );
        if self.earlier > 0 {
            println!(
                "{} stored by an earlier run",
                units::counted(self.earlier, "of them was", "of them were")
            );
        }
        if self.refused.records > 0 {
            let kept = all.saturating_sub(self.refused.records);
            let (kept, refused) =
                (units::counted(kept, "record", "records"), units::count(self.refused.records));
            println!("{kept} kept, {refused} refused:");
        }
        for (nth, reason) in self.refused.reasons.iter().enumerate() {
            // A reason of another form, or in a state written by an older version, has no series.
            let series = self.refused.series.get(nth).filter(|series| !series.is_empty());
            println!(
                "  {reason}{}",
                series.map_or_else(String::new, |series| format!(": for example {series}"))
            );
        }
        if let Some(verdict) = self.verdict {
            print!("{verdict}");
        }
    }

    pub fn json(&self, findings: &Findings) -> Value {
        let mut out = findings.json();
        out["samples"] = json!(self.samples);
        out["entries"] = json!(self.entries);
        out["series"] = self.series.into();
        out["earlier"] = self.earlier.into();
        out["seconds"] = self.seconds.into();
        out["refused"] = json!(self.refused.reasons);
        out["refused_series"] = json!(self.refused.series);
        out["refused_records"] = self.refused.records.into();
        out["verified"] = self.verdict.map_or(Value::Null, Verdict::json);
        out
    }
}
