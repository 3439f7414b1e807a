use proptest::prelude::*;

use super::*;

const NOW: Timestamp = 5;

fn decode(exposition: Exposition, text: &str) -> Block {
    OpenMetrics::new(exposition, NOW).decode(text.as_bytes(), 0)
}

fn check(exposition: Exposition, text: &str, expect: &[&str]) {
    let block = decode(exposition, text);
    assert_eq!(block.broken, vec![], "{text}");
    let samples = block.batch.samples.iter();
    let samples =
        samples.flat_map(|s| s.samples.iter().map(|x| format!("{} {} {:?}", s.labels, x.at, x.value)));
    assert_eq!(samples.collect::<Vec<_>>(), expect, "{text}");
}

fn fails(text: &str, expect: &str) {
    let block = decode(Exposition::OpenMetrics, &format!("{text}\ngood 1\n"));
    assert_eq!(block.broken.iter().map(ToString::to_string).collect::<Vec<_>>(), [expect], "{text}");
    assert!(block.batch.samples.iter().any(|s| s.labels.name() == "good"), "the next row must be kept");
}

#[test]
fn samples_with_and_without_times_are_read() {
    let text = "# HELP r Requests.\n# TYPE r counter\n# UNIT r x\n\
        r_total{code=\"2\\n\\\"}\",b=\"\\\\\",} 1027 1700000000.5 # {trace_id=\"a\"} 1.0 1700000000\n\
        r_total{code=\"2\\n\\\"}\",b=\"\\\\\",} 1028 1700000001\nr_created 1.5e9\nup NaN\n# EOF\n";
    let series = "r_total{b=\"\\\\\", code=\"2\\n\\\"}\"}";
    check(
        Exposition::OpenMetrics,
        text,
        &[
            &format!("{series} 1700000000500000000 F64(1027.0)"),
            &format!("{series} 1700000001000000000 F64(1028.0)"),
            "r_created 5 F64(1500000000.0)",
            "up 5 F64(NaN)",
        ],
    );
    assert_eq!(decode(Exposition::OpenMetrics, text).exemplars, 1);
    check(
        Exposition::Prometheus,
        "# TYPE r counter\nr {a = \"b\"} +Inf 1700000000123\n",
        &["r{a=\"b\"} 1700000000123000000 F64(inf)"],
    );
    check(
        Exposition::OpenMetrics,
        "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_count 1\nh_sum 0.5\n",
        &["h_bucket{le=\"1\"} 5 F64(1.0)", "h_count 5 F64(1.0)", "h_sum 5 F64(0.5)"],
    );
}

#[test]
fn errors_name_row_and_value() {
    fails("# TYPE r counter\nr 1", "row 2: r is a counter: its samples end in \"_total\"");
    fails("# TYPE r histogram\nr_bucket 1", "row 2: r_bucket has no label \"le\"");
    fails("# TYPE r summary\nr 1", "row 2: r has no label \"quantile\"");
    fails("# TYPE r blob", "row 1: unknown type \"blob\" of r");
    fails("# TYPE r gauge\n# TYPE r info", "row 2: r has another type already");
    fails("r 1\n# TYPE r counter\nr 2", "row 3: r is a counter: its samples end in \"_total\"");
    fails("up", "row 1: series \"up\" has no value");
    fails("up one", "row 1: \"one\" is not a number");
    fails("up infinity", "row 1: \"infinity\" is not a number");
    fails("up 1 soon", "row 1: \"soon\" is not a time in seconds in the years 1677 to 2262");
    fails("up 1 2 3", "row 1: unexpected \"3\" after the time");
    fails("up{a=\"b} 1", "row 1: labels without a closing brace");
    fails("up{a=b} 1", "row 1: value of label \"a\" is not in quotes");
    fails("up{a=\"b\" c=\"d\"} 1", "row 1: unexpected \"c=\\\"d\\\"\" between labels");
    fails("9up 1", "row 1: \"9up\" is not a metric's name");
    let block = decode(Exposition::OpenMetrics, "# EOF\nup 1\n");
    assert_eq!(block.broken[0].to_string(), "row 2: row after # EOF");
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read(text in "([a-z{}\"=,\\\\ #0-9\n]|\\PC){0,120}") {
        let block = decode(Exposition::OpenMetrics, &text);
        prop_assert_eq!(block.rows as usize, text.split_inclusive('\n').count());
        prop_assert!(block.broken.len() as u64 <= block.rows);
    }
}
