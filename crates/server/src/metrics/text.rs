//! Formats metrics in Prometheus' text exposition format 0.0.4.

use std::fmt::Write;

use tacho_model::Value;

use super::registry::Collect;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub fn render<'a>(families: impl IntoIterator<Item = &'a dyn Collect>) -> String {
    let mut out = String::new();
    for family in families {
        let mut lines = String::new();
        family.points(&mut |point| {
            let _ = write!(lines, "{}{}", family.name(), point.suffix);
            for (i, (name, value)) in point.labels.iter().enumerate() {
                let open = if i == 0 { '{' } else { ',' };
                let _ = write!(lines, "{open}{name}=\"{}\"", escape(value));
            }
            let close = if point.labels.is_empty() { "" } else { "}" };
            let _ = writeln!(lines, "{close} {}", number(point.value));
        });
        if !lines.is_empty() {
            let _ = writeln!(out, "# HELP {} {}", family.name(), family.help());
            let _ = writeln!(out, "# TYPE {} {}", family.name(), family.metric_type());
            out.push_str(&lines);
        }
    }
    out
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: Value) -> String {
    match value {
        Value::F64(v) => tacho_query::promql::format_value(v),
        Value::I64(v) => v.to_string(),
        Value::U64(v) => v.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::registry::{Counter, Family, Histogram};

    #[test]
    fn the_text_matches_the_exposition_format() {
        let counter: Family<Counter, 1> = Family::new("a_total", ["service"], "Things.");
        counter.with(["x\"\\\ny"]).add(1 << 60);
        let histogram: Family<Histogram, 0> = Family::new("b_seconds", [], "Time.");
        histogram.with([]).observe(Duration::from_millis(3));
        histogram.with([]).observe(Duration::from_secs(60));
        let text = render([&counter as &dyn Collect, &histogram]);
        let start = "# HELP a_total Things.\n# TYPE a_total counter\n\
                     a_total{service=\"x\\\"\\\\\\ny\"} 1152921504606846976\n";
        assert!(text.starts_with(start), "{text}");
        for line in [
            "b_seconds_bucket{le=\"0.0025\"} 0\n",
            "b_seconds_bucket{le=\"0.005\"} 1\n",
            "b_seconds_bucket{le=\"10\"} 1\n",
            "b_seconds_bucket{le=\"+Inf\"} 2\n",
            "b_seconds_sum 60.003\n",
            "b_seconds_count 2\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
