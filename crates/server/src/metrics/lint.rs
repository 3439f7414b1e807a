//! Checks that names, types and help texts follow the rules of `promtool check metrics`.
//!
//! Rules: `prometheus/testutil/promlint` of github.com/prometheus/client_golang. In addition, a help text is
//! a sentence.

use std::collections::{BTreeMap, BTreeSet};

use super::Metrics;

/// Names may only have base units in their usual form: `seconds`, not `milliseconds` or `second`.
const NOT_BASE_UNITS: [&str; 43] = [
    "milliseconds",
    "microseconds",
    "nanoseconds",
    "minutes",
    "hours",
    "days",
    "weeks",
    "kelvins",
    "fahrenheit",
    "millimeters",
    "centimeters",
    "kilometers",
    "inches",
    "yards",
    "miles",
    "bits",
    "kilobits",
    "megabits",
    "kilobytes",
    "megabytes",
    "gigabytes",
    "terabytes",
    "petabytes",
    "kibibytes",
    "mebibytes",
    "gibibytes",
    "tebibytes",
    "milligrams",
    "kilograms",
    "pounds",
    "ounces",
    "millivolts",
    "kilovolts",
    "milliamperes",
    "kilojoules",
    "calories",
    "percent",
    "percentage",
    "second",
    "byte",
    "ratios",
    "meter",
    "gram",
];
const ABBREVIATIONS: [&str; 16] =
    ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d", "kib", "mib"];
const TYPES: [&str; 5] = ["counter", "gauge", "histogram", "summary", "untyped"];

/// Returns the faults of one metric.
fn lint(name: &str, metric_type: &str, help: &str) -> Vec<String> {
    let parts: Vec<&str> = name.split('_').collect();
    let has = |list: &[&str]| parts.iter().find(|part| list.contains(part)).map(|part| (*part).to_owned());
    let is_total = name.ends_with("_total");
    let rules = [
        (help.trim().is_empty()).then(|| "no help text".to_owned()),
        (!help.ends_with('.')).then(|| "help text is not a sentence".to_owned()),
        (metric_type == "counter" && !is_total).then(|| "counter without _total".into()),
        (metric_type != "counter" && is_total).then(|| format!("{metric_type} with _total")),
        has(&NOT_BASE_UNITS).map(|unit| format!("{unit} is not a base unit")),
        has(&ABBREVIATIONS).map(|unit| format!("{unit} is an abbreviation")),
        has(&TYPES).map(|name| format!("{name} is a type")),
        name.contains(|c: char| c == ':' || c.is_ascii_uppercase())
            .then(|| "colon or upper case letter".into()),
        (metric_type != "histogram" && ["_bucket", "_count", "_sum"].iter().any(|end| name.ends_with(end)))
            .then(|| "suffix of histograms".into()),
    ];
    rules.into_iter().flatten().map(|fault| format!("{name}: {fault}")).collect()
}

/// Checks a text in the exposition format 0.0.4. Returns its faults and the names of its metrics.
fn lint_text(text: &str) -> (Vec<String>, BTreeSet<String>) {
    let (mut faults, mut helps, mut types) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        let (list, rest): (&mut BTreeMap<&str, &str>, _) = match line {
            line if line.starts_with("# HELP ") => (&mut helps, &line[7..]),
            line if line.starts_with("# TYPE ") => (&mut types, &line[7..]),
            line => {
                let end = line.find(['{', ' ']).unwrap_or(line.len());
                let base =
                    ["_bucket", "_count", "_sum"].iter().find_map(|end_of| line[..end].strip_suffix(end_of));
                let histogram = base.filter(|base| types.get(base) == Some(&"histogram"));
                let name = histogram.unwrap_or(&line[..end]);
                if !helps.contains_key(name) || !types.contains_key(name) {
                    faults.push(format!("{name}: no HELP or TYPE before its first sample"));
                }
                continue;
            }
        };
        let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if list.insert(name, rest).is_some() {
            faults.push(format!("{name}: twice"));
        }
    }
    for (name, metric_type) in &types {
        faults.extend(lint(name, metric_type, helps.get(name).copied().unwrap_or_default()));
    }
    (faults, types.into_keys().map(str::to_owned).collect())
}

#[test]
fn metric_names_pass_the_rules_of_promtool() {
    let metrics = Metrics::default();
    let families = metrics.families();
    let mut faults: Vec<String> = Vec::new();
    let mut names = BTreeSet::new();
    for family in &families {
        faults.extend(lint(family.name(), family.metric_type(), family.help()));
        if !names.insert(family.name()) {
            faults.push(format!("{}: twice", family.name()));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[tokio::test]
async fn the_text_of_all_metrics_has_no_faults() {
    let metrics = Metrics::default();
    let directory = tempfile::tempdir().unwrap();
    let clock = std::sync::Arc::new(tacho_model::ManualClock::new(0));
    let driver = std::sync::Arc::new(tacho_store::MemoryDriver::new());
    let options = tacho_store::Options::default();
    let store = tacho_store::Store::open(driver, directory.path(), options, clock).await.unwrap();
    metrics.read_store(&store);
    metrics.http_request_seconds.with(["/metrics"]).observe(std::time::Duration::from_millis(1));
    metrics.http_requests.with(["/metrics", "200"]).add(1);
    let (faults, names) = lint_text(&metrics.text());
    assert_eq!(faults, Vec::<String>::new());
    for name in
        ["tacho_http_request_seconds", "tacho_merge_busy_seconds_total", "tacho_series", "process_open_fds"]
    {
        assert!(names.contains(name), "{name} in {names:?}");
    }
}

#[test]
fn faults_are_found() {
    for (name, metric_type, fault) in [
        ("a_milliseconds_total", "counter", "a_milliseconds_total: milliseconds is not a base unit"),
        ("a_ms_total", "counter", "a_ms_total: ms is an abbreviation"),
        ("a_seconds", "counter", "a_seconds: counter without _total"),
        ("a_total", "gauge", "a_total: gauge with _total"),
        ("a_count", "gauge", "a_count: suffix of histograms"),
        ("a_gauge", "gauge", "a_gauge: gauge is a type"),
        ("aB", "gauge", "aB: colon or upper case letter"),
    ] {
        assert_eq!(lint(name, metric_type, "Help."), [fault]);
    }
    assert_eq!(lint("a", "gauge", ""), ["a: no help text", "a: help text is not a sentence"]);
    assert_eq!(lint_text("# TYPE a gauge\na 1\n").0.len(), 3);
}
