//! Formats the findings of `tacho check`, `tacho repair` and `tacho restore`: as text grouped by file, or as one JSON object for
//! each finding.

use std::fmt::Write;

use serde_json::{Value, json};
use tacho_api::printable::printable;
use tacho_api::units;
use tacho_model::{Kind, TimeRange};
use tacho_server::check::Progress;
use tacho_store::check::{Finding, Findings, Lost, SERIES_SHOWN_MAX, Severity, time};

use crate::terminal::progress;

/// Limit on the findings shown for one file in the text. `--json` of `tacho check` and `tacho repair` prints all findings that
/// were kept.
const PER_FILE_MAX: usize = 20;

/// The option of `tacho check` and `tacho repair` that prints all kept findings: a `lister` for [`text`].
pub const JSON: &str = "--json";

/// The findings as text, grouped by file. `omitted` is the number of findings that were counted but not kept. `lister` is the
/// option or command that lists all findings of a file.
pub fn text(kept: &[Finding], omitted: u64, lister: &str) -> String {
    let mut out = String::new();
    for of_file in kept.chunk_by(|a, b| a.place.file == b.place.file) {
        let Some(first) = of_file.first() else { continue };
        let _ = writeln!(out, "{}", printable(&first.place.file));
        for finding in of_file.iter().take(PER_FILE_MAX) {
            put(&mut out, finding);
        }
        if let Some(more) = of_file.len().checked_sub(PER_FILE_MAX).filter(|more| *more > 0) {
            let _ = writeln!(out, "  and {more} more: {lister} lists all");
        }
    }
    if omitted > 0 {
        let _ = writeln!(out, "and {omitted} more findings, which are counted but not listed");
    }
    out
}

fn put(out: &mut String, finding: &Finding) {
    let place = match (finding.place.offset, finding.place.bytes) {
        (Some(offset), Some(bytes)) => format!(" at byte {offset}, {bytes} bytes"),
        (Some(offset), None) => format!(" at byte {offset}"),
        (None, _) => String::new(),
    };
    let severity = finding.severity().name();
    let _ = writeln!(out, "  {severity}: {}{place}: {}", finding.kind.name(), printable(&finding.reason));
    if let Some(key) = &finding.key {
        let _ = writeln!(out, "    row: {}", printable(key));
    }
    if let Some(lost) = &finding.lost {
        let _ = writeln!(out, "    cost: {}", printable(&cost(lost)));
    }
    if !finding.effect.is_empty() {
        let _ = writeln!(out, "    effect: {}", finding.effect);
    }
    if finding.severity() != Severity::Note {
        let _ = writeln!(out, "    remedy: {}", finding.remedy);
    }
}

fn cost(lost: &Lost) -> String {
    let names = match lost.kind {
        Kind::Sample => ("sample", "samples"),
        Kind::Entry => ("entry", "entries"),
        Kind::Execution => ("call", "calls"),
    };
    let mut text = match lost.records {
        Some(records) => units::counted(records, names.0, names.1),
        None => format!("an unknown number of {}", names.1),
    };
    if let Some(TimeRange { start, end }) = lost.range {
        let _ = write!(text, " from {} to {}", time(start), time(end));
    }
    if lost.series.is_empty() {
        text.push_str(" of unknown series");
    } else {
        let shown = lost.series.get(..SERIES_SHOWN_MAX).unwrap_or(&lost.series);
        let _ = write!(text, " of {}", shown.join(", "));
        let more = lost.series.len() - shown.len() + lost.series_more;
        if more > 0 {
            let _ = write!(text, " and {more} more series");
        }
    }
    text
}

pub fn json(finding: &Finding) -> Value {
    let lost = finding.lost.as_ref().map(|lost| {
        json!({
            "kind": lost.kind.name(),
            "series": lost.series,
            "series_more": lost.series_more,
            "start": lost.range.map(|range| time(range.start)),
            "end": lost.range.map(|range| time(range.end)),
            "records": lost.records,
        })
    });
    json!({
        "severity": finding.severity().name(),
        "kind": finding.kind.name(),
        "file": &*finding.place.file,
        "offset": finding.place.offset,
        "bytes": finding.place.bytes,
        "row": finding.key,
        "reason": finding.reason,
        "lost": lost,
        "effect": finding.effect,
        "remedy": finding.remedy,
    })
}

/// `what` is the label of the progress bar.
pub fn with_progress<T>(what: &str, run: impl FnOnce(Progress<'_>) -> T) -> T {
    let bar = progress::bar(0, what);
    let result = run(&mut |read, total| {
        bar.set_length(total);
        bar.set_position(read);
        bar.set_message(format!("{} of {}", units::bytes(read), units::bytes(total)));
    });
    bar.finish_and_clear();
    result
}

pub fn kinds([samples, entries, calls]: [u64; 3]) -> Value {
    json!({"samples": samples, "entries": entries, "calls": calls})
}

/// Numbers of findings and of lost records, for the summary in JSON.
pub fn counts(findings: &Findings) -> Value {
    let [samples, entries, calls] = findings.lost.records;
    json!({
        "damage": findings.count(Severity::Damage),
        "warnings": findings.count(Severity::Warning),
        "notes": findings.count(Severity::Note),
        "omitted": findings.omitted(),
        "lost": {"samples": samples, "entries": entries, "calls": calls, "unknown": findings.lost.unknown},
    })
}

/// Numbers of findings as text.
pub fn counted(findings: &Findings) -> String {
    let count = |severity| findings.count(severity);
    if count(Severity::Damage) + count(Severity::Warning) + count(Severity::Note) == 0 {
        return "no findings".to_owned();
    }
    format!(
        "{} of damage, {}, {}",
        units::counted(count(Severity::Damage), "finding", "findings"),
        units::counted(count(Severity::Warning), "warning", "warnings"),
        units::counted(count(Severity::Note), "note", "notes"),
    )
}

/// Numbers of lost records as text. `None` if no record is lost.
pub fn lost(findings: &Findings) -> Option<String> {
    let [samples, entries, calls] = findings.lost.records;
    let unknown = findings.lost.unknown;
    if [samples, entries, calls, unknown] == [0; 4] {
        return None;
    }
    let mut text = format!(
        "{}, {}, {}",
        units::counted(samples, "sample", "samples"),
        units::counted(entries, "entry", "entries"),
        units::counted(calls, "call", "calls")
    );
    if unknown > 0 {
        let _ = write!(
            text,
            ", and the records of {} of unknown content",
            units::counted(unknown, "place", "places")
        );
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_store::check::{FindingKind, Place};

    #[test]
    fn a_file_with_many_findings_names_the_command_that_lists_all() {
        let one = Finding::new(FindingKind::RowDamaged, Place::file("chunks/MANIFEST"), "why");
        let lister = "tacho check --json of the restored directory";
        let more = |count: usize| text(&vec![one.clone(); count], 0, lister).contains(" more: ");
        assert_eq!([PER_FILE_MAX, PER_FILE_MAX + 1].map(more), [false, true]);
        let said = text(&vec![one; PER_FILE_MAX + 3], 7, lister);
        assert!(
            said.contains("  and 3 more: tacho check --json of the restored directory lists all\n"),
            "{said}"
        );
        assert!(said.ends_with("and 7 more findings, which are counted but not listed\n"), "{said}");
    }
}
