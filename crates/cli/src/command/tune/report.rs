//! Reports the result of the trials: a table, a plot, an SVG, and a section for `tacho.toml`.

use std::path::Path;

use serde_json::{Value, json};
use tacho_api::json::float;
use tacho_api::units;
use tacho_chunk::tune::{Cost, front};
use tacho_chunk::{CodecSet, Compression, Tolerance};

use super::Tune;
use super::mix::Mix;
use super::section;
use super::training::Training;
use super::trial::{Trial, Trials, name};
use crate::command::ask;
use crate::failure::Failure;
use crate::svg::{Point, Scatter, Series};
use crate::terminal::plot::{Line, plot};
use crate::terminal::table::{Align, Table};

/// A tolerance is recommended if it saves more than this share of the space.
const WORTH: f64 = 0.05;

pub struct Report<'a> {
    pub tune: &'a Tune,
    pub training: &'a Training,
    pub mix: &'a Mix,
    pub trials: &'a Trials,
    /// Index of the recommended trial. It is lossless.
    pub best: usize,
    /// The configuration file to which the section is written.
    pub file: Option<section::File>,
}

impl Report<'_> {
    pub fn give(&self) -> Result<(), Failure> {
        if let Some(path) = &self.tune.svg {
            std::fs::write(path, self.drawing()).map_err(|e| cannot_write(path, &e))?;
        }
        if let Some(file) = &self.file {
            self.put(file)?;
        }
        match self.tune.json {
            true => ask::print_json(&self.json()),
            false => self.print(),
        }
        Ok(())
    }

    fn put(&self, file: &section::File) -> Result<(), Failure> {
        let (policies, place) = file.put(&self.section(), &self.matches())?;
        let all = self.training.labels.iter().flatten().map(|labels| &**labels);
        let others = section::decided_before(&policies, place, all);
        if others > 0 {
            eprintln!(
                "warning: an earlier [[chunks]] rule applies to {} of {} series: move it later, or remove it",
                units::count(others as u64),
                units::count(self.training.series() as u64)
            );
        }
        Ok(())
    }

    fn matches(&self) -> String {
        format!("match = {}", toml_text(&self.tune.selector))
    }

    fn costs(&self) -> Vec<Cost> {
        self.trials.done.iter().map(|trial| trial.cost).collect()
    }

    /// The smallest lossy trial, if it saves more than [`WORTH`] of the space of the recommended trial.
    fn best_lossy(&self) -> Option<&Trial> {
        let best = self.trials.done[self.best].cost.bytes;
        let lossy = self.trials.done.iter().filter(|trial| !trial.candidate.semantic.is_lossless());
        lossy
            .filter(|trial| trial.cost.bytes < best * (1.0 - WORTH))
            .min_by(|a, b| a.cost.bytes.total_cmp(&b.cost.bytes))
    }

    fn print(&self) {
        let count = |n: usize| units::count(n as u64);
        println!(
            "{} of {} series, {} values in {} groups; {} queries, each at {} times",
            count(self.training.series()),
            count(self.training.series_seen),
            count(self.training.values()),
            count(self.training.groups.len()),
            count(self.mix.texts.len()),
            self.mix.plans.len() / self.mix.texts.len().max(1),
        );
        println!("\n{}", self.table());
        let best = front(&self.costs());
        if best.len() > 1 {
            let points = best.iter().map(|at| self.trials.done[*at].cost).map(|cost| (cost.bytes, cost.read));
            let line = Line {
                name: "time per query over bytes per value, of candidates that no other beats in both",
                points: points.collect(),
            };
            print!("{}", plot(&[line], |x| format!("{x:.3}"), |y| units::duration(y as u64)));
        }
        if self.trials.left > 0 {
            println!("\n{} candidates were not tried: the time of --seconds is over", self.trials.left);
        }
        println!("\nRecommended for tacho.toml:\n\n{}", self.section());
        if let Some(path) = &self.tune.write {
            println!("written to {}; a server reads the file when it starts", path.display());
        }
    }

    fn table(&self) -> Table<7> {
        let right = Align::Right;
        let mut table = Table::new([
            ("VALUES/CHUNK", right),
            ("COMPRESSION", Align::Left),
            ("CODECS", Align::Left),
            ("BYTES/VALUE", right),
            ("WRITE/VALUE", right),
            ("QUERY", right),
            ("", Align::Left),
        ]);
        let front = front(&self.costs());
        let mut order: Vec<usize> = (0..self.trials.done.len()).collect();
        order.sort_by(|a, b| self.trials.done[*a].cost.bytes.total_cmp(&self.trials.done[*b].cost.bytes));
        for at in order {
            let trial = &self.trials.done[at];
            let mark = match at {
                _ if at == self.best => "recommended".to_owned(),
                _ if !trial.candidate.semantic.is_lossless() => errors(trial),
                _ if front.contains(&at) => "no other candidate is smaller and faster".to_owned(),
                _ => String::new(),
            };
            table.row([
                units::count(trial.candidate.values as u64),
                name(&trial.candidate),
                trial.codecs.to_owned(),
                format!("{:.4}", trial.cost.bytes),
                units::duration(trial.cost.write as u64),
                units::duration(trial.cost.read as u64),
                mark,
            ]);
        }
        table
    }

    /// The section for `tacho.toml` (`config/policy.rs` in `tacho_server` parses it).
    fn section(&self) -> String {
        let best = &self.trials.done[self.best];
        // The lossy trial may need codecs that the recommended set does not have.
        let used = self.best_lossy().unwrap_or(best);
        let matches = self.matches();
        let mut out = format!(
            "# {:.3} bytes a value, {} a query of the mix, over {} values of {} series\n[[chunks]]\n{matches}\n\
             values = {}\n",
            best.cost.bytes,
            units::duration(best.cost.read as u64),
            units::count(self.training.values() as u64),
            units::count(self.training.series() as u64),
            used.candidate.values,
        );
        let compression = used.candidate.encoding.compression;
        if compression != Compression::Auto {
            out.push_str(&format!("compression = \"{}\"\n", compression.name()));
        }
        let codecs = used.candidate.encoding.codecs;
        if codecs != CodecSet::ALL {
            let names: Vec<String> = codecs.chosen().map(|name| format!("{name:?}")).collect();
            out.push_str(&format!("codecs = [{}]\n", names.join(", ")));
        }
        if let Some(lossy) = self.best_lossy() {
            let semantic = &lossy.candidate.semantic;
            out.push_str(&format!(
                "\n# {:.3} bytes a value; {}\n[[semantic]]\n{matches}\n",
                lossy.cost.bytes,
                errors(lossy)
            ));
            if semantic.time > 0 {
                out.push_str(&format!("time = \"{}\"\n", toml_duration(semantic.time)));
            }
            if let Some(tolerance) = semantic.value {
                out.push_str(&match tolerance {
                    Tolerance::Absolute(amount) => format!("value = {amount:?}\n"),
                    Tolerance::Relative(share) => format!("value = \"{}%\"\n", share * 100.0),
                });
                out.push_str(&format!("method = \"{}\"\n", semantic.method.name()));
            }
        }
        out
    }

    fn drawing(&self) -> String {
        let mut names: Vec<String> = self.trials.done.iter().map(series_name).collect();
        names.sort();
        names.dedup();
        let point = |trial: &Trial| Point {
            x: trial.cost.read / 1e3,
            y: trial.cost.bytes,
            title: format!(
                "{} values a chunk, {}: {:.4} bytes a value, {} a query, {} to write a value",
                trial.candidate.values,
                series_name(trial),
                trial.cost.bytes,
                units::duration(trial.cost.read as u64),
                units::duration(trial.cost.write as u64),
            ),
        };
        let series = names.iter().map(|name| {
            let trials = self.trials.done.iter().filter(|trial| series_name(trial) == *name);
            Series { name, points: trials.map(point).collect() }
        });
        let series = series.collect();
        let place = |at: usize| (self.trials.done[at].cost.read / 1e3, self.trials.done[at].cost.bytes);
        let best = &self.trials.done[self.best].candidate;
        let chosen = format!("{} values a chunk, {}", best.values, name(best));
        Scatter {
            title: "Bytes per value and time per query",
            x_label: "µs a query of the mix",
            y_label: "bytes a value",
            series,
            line: front(&self.costs()).into_iter().map(place).collect(),
            chosen: Some((place(self.best), &chosen)),
        }
        .render()
    }

    fn json(&self) -> Value {
        let front = front(&self.costs());
        let trial = |(at, trial): (usize, &Trial)| {
            json!({
                "values": trial.candidate.values,
                "compression": trial.candidate.encoding.compression.name(),
                "codecs": trial.codecs,
                "lossless": trial.candidate.semantic.is_lossless(),
                "bytes_per_value": trial.cost.bytes,
                "write_ns_per_value": trial.cost.write,
                "read_ns_per_query": trial.cost.read,
                "value_error_max": float::value(trial.value_error_max),
                "time_error_max_ns": trial.time_error_max,
                "on_front": front.contains(&at),
                "recommended": at == self.best,
            })
        };
        let trials: Vec<Value> = self.trials.done.iter().enumerate().map(trial).collect();
        json!({
            "series": self.training.series(),
            "series_seen": self.training.series_seen,
            "groups": self.training.groups.len(),
            "values": self.training.values(),
            "queries": self.mix.texts,
            "trials": trials,
            "not_tried": self.trials.left,
            "section": self.section(),
        })
    }
}

fn series_name(trial: &Trial) -> String {
    match trial.codecs {
        "all" => name(&trial.candidate),
        codecs => format!("{codecs} codecs"),
    }
}

fn errors(trial: &Trial) -> String {
    let time = units::duration(trial.time_error_max);
    format!("errors up to {:.3e} and {time}", trial.value_error_max)
}

/// A duration with its unit, which the rules of `tacho.toml` require.
fn toml_duration(ns: u64) -> String {
    match ns % 1_000_000 {
        0 => format!("{}ms", ns / 1_000_000),
        _ => format!("{}s", ask::seconds(ns.cast_signed())),
    }
}

/// A literal TOML string if possible, otherwise a basic string.
fn toml_text(text: &str) -> String {
    if !text.chars().any(|c| c == '\'' || c.is_control()) {
        return format!("'{text}'");
    }
    let mut basic = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => basic.extend(['\\', c]),
            c if c.is_control() => basic.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => basic.push(c),
        }
    }
    basic + "\""
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_api::time::parse_duration_with_unit;

    #[test]
    fn a_toml_string_holds_every_text() {
        for text in ["{a=\"b\"}", "it's", "it's e\u{301}", "'\\\"\n\u{1}\u{7f}", ""] {
            let table: toml::Table = toml::from_str(&format!("x = {}", toml_text(text))).unwrap();
            assert_eq!(table["x"].as_str(), Some(text));
        }
    }

    #[test]
    fn a_duration_in_the_section_is_read_back_exactly() {
        for ns in [500_000, 1_000_000, 1_500_000, 200_000_000, 61_000_000_001] {
            let text = toml_duration(ns);
            assert_eq!(parse_duration_with_unit(&text), Some(ns as i64), "{text}");
        }
    }
}
