//! Numbers as Prometheus writes them into JSON.

use tacho_model::Timestamp;

/// The shortest decimal that reads back as `value`: `0.1`, `1e+21`, `NaN`, `+Inf`, `-Inf`. With an exponent
/// below 10^-6 and from 10^21 on. JSON has none of the last three, so Prometheus quotes all values.
pub fn format_value(value: f64) -> String {
    let magnitude = value.abs();
    if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf".into() } else { "-Inf".into() }
    } else if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        value.to_string()
    } else {
        exponential(value)
    }
}

/// Sign and at least two digits in the exponent.
fn exponential(value: f64) -> String {
    let text = format!("{value:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Unix seconds with as many decimals as are needed: `1435781451.781`. A number in JSON.
pub fn format_seconds(at: Timestamp) -> String {
    const SECOND: u64 = 1_000_000_000;
    let sign = if at < 0 { "-" } else { "" };
    let (whole, nanos) = (at.unsigned_abs() / SECOND, at.unsigned_abs() % SECOND);
    if nanos == 0 {
        return format!("{sign}{whole}");
    }
    format!("{sign}{whole}.{}", format!("{nanos:09}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let check = |value: f64, expect: &str| assert_eq!(format_value(value), expect);
        check(0.1, "0.1");
        check(-0.0, "-0");
        check(1e20, "100000000000000000000");
        check(1e21, "1e+21");
        check(-1.5e300, "-1.5e+300");
        check(1e-6, "0.000001");
        check(1e-7, "1e-07");
        check(f64::NAN, "NaN");
        check(f64::INFINITY, "+Inf");
        check(f64::NEG_INFINITY, "-Inf");
    }

    #[test]
    fn times() {
        let check = |at: i64, expect: &str| assert_eq!(format_seconds(at), expect);
        check(1_435_781_451_781_000_000, "1435781451.781");
        check(60_000_000_000, "60");
        check(-1_500_000_000, "-1.5");
        check(1, "0.000000001");
        check(i64::MIN, "-9223372036.854775808");
    }
}
