//! Amounts as text, most of them with three significant digits and a unit.

/// Formats a duration: `412 ns`, `3.07 µs`, `12.3 ms`, `1.20 s`, `3 min 5 s`.
pub fn duration(ns: u64) -> String {
    const MINUTE_NS: u64 = 60_000_000_000;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => scaled(ns, 1e3, "µs"),
        1_000_000..1_000_000_000 => scaled(ns, 1e6, "ms"),
        1_000_000_000..MINUTE_NS => scaled(ns, 1e9, "s"),
        _ => format!("{} min {} s", ns / MINUTE_NS, ns % MINUTE_NS / 1_000_000_000),
    }
}

/// Formats a number of whole days as `30 d`, and of whole hours as `12 h`. Formats other durations with [`duration`].
pub fn days(ns: u64) -> String {
    const HOUR_NS: u64 = 3_600_000_000_000;
    match ns {
        ns if ns > 0 && ns.is_multiple_of(24 * HOUR_NS) => format!("{} d", ns / HOUR_NS / 24),
        ns if ns > 0 && ns.is_multiple_of(HOUR_NS) => format!("{} h", ns / HOUR_NS),
        ns => duration(ns),
    }
}

/// Formats an amount of bytes: `812 B`, `1.21 KiB`, `34.0 MiB`, `2.05 GiB`.
pub fn bytes(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    match bytes {
        0..KIB => format!("{bytes} B"),
        KIB..MIB => scaled(bytes, KIB as f64, "KiB"),
        MIB..GIB => scaled(bytes, MIB as f64, "MiB"),
        _ => scaled(bytes, GIB as f64, "GiB"),
    }
}

/// Formats a number with thousands separators: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a number with its noun: `1 sample`, `1,234 samples`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Formats a share from 0 to 1 as `42.0 %`. `-` if the share is not finite, because the total is 0.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { "-".to_owned() }
}

fn scaled(value: u64, unit: f64, name: &str) -> String {
    let value = value as f64 / unit;
    let decimals = match value {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_formatted() {
        let cases = [
            (duration(0), "0 ns"),
            (duration(999), "999 ns"),
            (duration(3_070), "3.07 µs"),
            (duration(12_345_678), "12.3 ms"),
            (duration(1_200_000_000), "1.20 s"),
            (duration(185_000_000_000), "3 min 5 s"),
            (bytes(812), "812 B"),
            (bytes(1_240), "1.21 KiB"),
            (bytes(35_651_584), "34.0 MiB"),
            (days(30 * 86_400_000_000_000), "30 d"),
            (days(36 * 3_600_000_000_000), "36 h"),
            (days(90_000_000_000), "1 min 30 s"),
            (counted(1, "row", "rows"), "1 row"),
            (counted(0, "row", "rows"), "0 rows"),
            (counted(1_234, "row", "rows"), "1,234 rows"),
            (count(7), "7"),
            (count(1_234_567), "1,234,567"),
            (percent(0.42), "42.0 %"),
            (percent(f64::NAN), "-"),
        ];
        for (got, expect) in cases {
            assert_eq!(got, expect);
        }
    }
}
