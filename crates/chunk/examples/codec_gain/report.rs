//! How are gains shown? As tables in Markdown: the size of each set, the gains on the whole corpus, the corpus with each
//! requested compression, and the gains on each set.

use std::fmt::Write;

use tacho_chunk::{Choice, CodecSet};

use crate::measure::{Cost, Costs, Result};

/// Kind and name of a choice. The kind is needed because codecs of numbers and of texts share names.
pub fn title(choice: Choice) -> String {
    format!("{} {}", choice.of, choice.name)
}

pub fn tables(results: &[Result]) -> String {
    let mut out = String::new();
    sizes(&mut out, results);
    corpus(&mut out, results);
    requested(&mut out, results);
    for (effort, of) in
        [("sealed", (|costs| costs.sealed) as fn(&Costs) -> Cost), ("merged", |costs| costs.merged)]
    {
        each(&mut out, effort, results, of);
    }
    out
}

fn sizes(out: &mut String, results: &[Result]) {
    head(out, "Bytes with all codecs", &["set", "sealed", "merged"].map(String::from));
    for result in results {
        row(out, &result.name, [result.all.sealed, result.all.merged].map(|cost| cost.bytes.to_string()));
    }
}

/// Gain and time for all sets together, and the largest gain on a single set.
fn corpus(out: &mut String, results: &[Result]) {
    let columns = ["without", "sealed %", "merged %", "largest %", "on", "encode %", "decode %"];
    head(
        out,
        "The corpus without one choice: increase of bytes, and of the processor time of a merge, %",
        &columns.map(String::from),
    );
    for choice in CodecSet::choices() {
        let without: Vec<(&Result, Costs)> =
            results.iter().filter_map(|result| Some((result, of(result, choice)?))).collect();
        let total = |cost: fn(&Costs) -> f64| {
            let before: f64 = without.iter().map(|(result, _)| cost(&result.all)).sum();
            gain(without.iter().map(|(_, costs)| cost(costs)).sum(), before)
        };
        let Some((largest, on)) = largest(&without) else { continue };
        let percents =
            [total(|costs| costs.sealed.bytes as f64), total(|costs| costs.merged.bytes as f64), largest];
        let times = [total(|costs| costs.merged.encode), total(|costs| costs.merged.decode)];
        let cells =
            percents.map(percent).into_iter().chain([on]).chain(times.map(|time| format!("{time:.0}")));
        row(out, &title(choice), cells);
    }
}

/// Merges of the corpus with a requested compression, compared with the automatic choice of the encoder.
fn requested(out: &mut String, results: &[Result]) {
    let columns = ["requested", "bytes", "bytes %", "encode %", "decode %"];
    head(out, "The corpus with a requested compression, compared with auto", &columns.map(String::from));
    let Some(first) = results.first() else { return };
    for (number, (compression, _)) in first.requested.iter().enumerate() {
        let total = |cost: fn(&Costs) -> f64| {
            let sums = results
                .iter()
                .filter_map(|result| Some((cost(&result.requested.get(number)?.1), cost(&result.all))));
            sums.fold((0.0, 0.0), |(with, all), (a, b)| (with + a, all + b))
        };
        let bytes = total(|costs| costs.merged.bytes as f64);
        let times = [total(|costs| costs.merged.encode), total(|costs| costs.merged.decode)];
        let cells = [format!("{:.0}", bytes.0), percent(gain(bytes.0, bytes.1))].into_iter();
        row(out, compression.name(), cells.chain(times.map(|(with, all)| format!("{:.0}", gain(with, all)))));
    }
}

/// The largest gain on a set, sealed or merged, and the name of the set.
fn largest(without: &[(&Result, Costs)]) -> Option<(f64, String)> {
    let gains = without.iter().flat_map(|(result, costs)| {
        let sealed = gain(costs.sealed.bytes as f64, result.all.sealed.bytes as f64);
        let merged = gain(costs.merged.bytes as f64, result.all.merged.bytes as f64);
        [(sealed, format!("{}, sealed", result.name)), (merged, format!("{}, merged", result.name))]
    });
    gains.max_by(|a, b| a.0.total_cmp(&b.0))
}

fn each(out: &mut String, effort: &str, results: &[Result], cost: fn(&Costs) -> Cost) {
    let columns: Vec<String> =
        ["without".to_owned()].into_iter().chain(results.iter().map(|r| r.name.clone())).collect();
    head(out, &format!("Each set without one choice, {effort}: increase of bytes, %"), &columns);
    for choice in CodecSet::choices() {
        let cells = results.iter().filter_map(|result| {
            let without = cost(&of(result, choice)?);
            Some(percent(gain(without.bytes as f64, cost(&result.all).bytes as f64)))
        });
        let cells: Vec<String> = cells.collect();
        if !cells.is_empty() {
            row(out, &title(choice), cells);
        }
    }
}

fn of(result: &Result, choice: Choice) -> Option<Costs> {
    result.without.iter().find(|(other, _)| *other == choice).map(|(_, costs)| *costs)
}

/// By how many percent `without` exceeds `all`.
fn gain(without: f64, all: f64) -> f64 {
    if all > 0.0 { (without / all - 1.0) * 100.0 } else { 0.0 }
}

/// The value with two decimals, or an empty text if it would be rounded to zero.
fn percent(value: f64) -> String {
    if value.abs() < 0.005 { String::new() } else { format!("{value:.2}") }
}

fn head(out: &mut String, title: &str, columns: &[String]) {
    let rule = vec!["---"; columns.len()].join("|");
    let _ = write!(out, "\n{title}\n\n| {} |\n|{rule}|\n", columns.join(" | "));
}

fn row(out: &mut String, name: &str, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> = cells.into_iter().collect();
    let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
}
