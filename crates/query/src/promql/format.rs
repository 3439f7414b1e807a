//! How are numbers written into JSON as Prometheus writes them, one at a time or millions in sequence?

use tacho_model::Timestamp;

/// The shortest decimal that parses to `value`: `0.1`, `1e+21`, `NaN`, `+Inf`, `-Inf`. Uses an exponent below 10^-6 and
/// from 10^21 on. The caller adds quotes for JSON, which has no NaN and no infinities.
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

/// The exponent has a sign and at least two digits.
fn exponential(value: f64) -> String {
    let text = format!("{value:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Powers of ten, exact in a double.
const POWERS: [f64; 10] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// A decimal whose digits form an integer below this limit has at most 15 digits, which a double preserves. Without trailing
/// zeros, it is the shortest decimal of its double.
const DIGITS_KEPT: f64 = 1e15;

/// The search for short decimals pauses after this number of consecutive values without a short decimal.
const MISSES_MAX: u32 = 8;
/// In the pause, each value that is skipped counts as a miss. The pause ends when the number of misses reaches this limit.
const MISSES_PAUSE: u32 = 256;

/// Writes a sequence of values like [`format_value`], but faster. Measured values have few decimals, and usually as many as
/// their neighbours. If `m / 10^k` has the same bits as `v`, the digits of the integer `m` are the digits of `v`, because `m`
/// and `10^k` are exact (W. D. Clinger, "How to Read Floating Point Numbers Accurately", PLDI 1990).
#[derive(Debug, Default)]
pub struct ValueWriter {
    /// Number of decimals with which the last short decimal was found.
    decimals: usize,
    misses: u32,
}

impl ValueWriter {
    pub fn write(&mut self, out: &mut Vec<u8>, value: f64) {
        match self.decimal(value) {
            Some((whole, decimals)) => write_decimal(out, value.is_sign_negative(), whole, decimals),
            None => write_shortest(out, value),
        }
    }

    /// Digits and number of decimals, for 0 and for values from 10^-6 on with at most nine decimals and fifteen digits. `None`
    /// for other values, and during a pause of the search.
    fn decimal(&mut self, value: f64) -> Option<(u64, usize)> {
        let magnitude = value.abs();
        if magnitude >= DIGITS_KEPT || value.is_nan() || (magnitude < 1e-6 && magnitude != 0.0) {
            return None;
        }
        if self.misses >= MISSES_MAX {
            self.misses += 1;
            if self.misses < MISSES_PAUSE {
                return None;
            }
            self.misses = 0;
        }
        let at = |decimals: usize| whole_at(magnitude, decimals).map(|whole| (whole, decimals));
        let found = at(self.decimals).or_else(|| (0..POWERS.len()).find_map(at));
        let Some((mut whole, mut decimals)) = found else {
            self.misses += 1;
            return None;
        };
        (self.misses, self.decimals) = (0, decimals);
        while decimals > 0 && whole % 10 == 0 {
            whole /= 10;
            decimals -= 1;
        }
        Some((whole, decimals))
    }
}

/// `magnitude` times 10^`decimals`. `None` if `magnitude` has more decimals or too many digits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "the value is below 10^15, and the exact comparison is intended"
)]
fn whole_at(magnitude: f64, decimals: usize) -> Option<u64> {
    let scaled = magnitude * POWERS[decimals];
    if scaled >= DIGITS_KEPT {
        return None;
    }
    let whole = (scaled + 0.5) as u64;
    (whole as f64 / POWERS[decimals] == magnitude).then_some(whole)
}

fn write_decimal(out: &mut Vec<u8>, negative: bool, whole: u64, decimals: usize) {
    if negative {
        out.push(b'-');
    }
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(whole).as_bytes();
    if decimals == 0 {
        out.extend_from_slice(digits);
        return;
    }
    match digits.len().checked_sub(decimals).filter(|before| *before > 0) {
        Some(before) => {
            out.extend_from_slice(&digits[..before]);
            out.push(b'.');
            out.extend_from_slice(&digits[before..]);
        }
        None => {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', decimals - digits.len()));
            out.extend_from_slice(digits);
        }
    }
}

fn write_shortest(out: &mut Vec<u8>, value: f64) {
    // The decimal form of the crate `zmij` equals that of `format_value` except for a trailing `.0`. Exponents, NaN and
    // infinities differ.
    let mut buffer = zmij::Buffer::new();
    if (1e-3..1e15).contains(&value.abs()) {
        let text = buffer.format_finite(value);
        if !text.contains('e') {
            out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
            return;
        }
    }
    out.extend_from_slice(format_value(value).as_bytes());
}

/// Writes Unix seconds without trailing zeros. The time is rounded down to milliseconds, the resolution of Prometheus.
pub fn write_milliseconds(out: &mut Vec<u8>, at: Timestamp) {
    let milliseconds = at.div_euclid(1_000_000);
    if milliseconds < 0 {
        out.push(b'-');
    }
    let magnitude = milliseconds.unsigned_abs();
    let (seconds, rest) = (magnitude / 1_000, magnitude % 1_000);
    out.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
    if rest > 0 {
        let digits = [rest / 100, rest / 10 % 10, rest % 10].map(|digit| b'0' + digit.to_le_bytes()[0]);
        let kept = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        out.push(b'.');
        out.extend_from_slice(&digits[..kept]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_in_prometheus() {
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
    fn values_of_a_sequence_are_written_like_single_values() {
        let mut values =
            vec![0.0, -0.0, 5e-324, 1e-6, 9.99e-7, 0.3, 2.675, 1e15, 1e15 - 1.0, 1e21, f64::MAX, -1.5];
        values.extend([
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1.0 / 3.0,
            123_456_789.123_456_7,
            0.1 + 0.2,
        ]);
        for exponent in -12..24 {
            values.extend(
                [1.0, 1.5, 12.345_678, 1.0 / 7.0, 99.999_99].map(|value| value * 10_f64.powi(exponent)),
            );
        }
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            values.push(f64::from_bits(bits));
            values.push(f64::from(u16::try_from(bits >> 48).unwrap()) / 100.0);
        }
        let mut writer = ValueWriter::default();
        for value in values {
            let mut out = Vec::new();
            writer.write(&mut out, value);
            let (got, expect) = (String::from_utf8(out).unwrap(), format_value(value));
            // Any shortest decimal is correct.
            let as_good = got.len() == expect.len() && got.parse::<f64>().ok() == Some(value);
            assert!(got == expect || as_good, "{value:e}: {got}, expected {expect}");
        }
    }

    #[test]
    fn times_are_written_with_at_most_three_decimals() {
        for (at, expect) in [
            (0, "0"),
            (1_500_000_000, "1.5"),
            (1_700_000_000_123_456_789, "1700000000.123"),
            (1_700_000_000_020_000_000, "1700000000.02"),
            (-1_000_000, "-0.001"),
            (-1, "-0.001"),
        ] {
            let mut out = Vec::new();
            write_milliseconds(&mut out, at);
            assert_eq!(String::from_utf8(out).unwrap(), expect);
        }
    }
}
