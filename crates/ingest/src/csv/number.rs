//! Which number does this cell hold?

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub decimal: char,
    /// The character between groups of three digits.
    pub thousands: Option<char>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { decimal: '.', thousands: None }
    }
}

impl Numbers {
    pub(super) fn read(self, cell: &str, scratch: &mut String) -> Option<f64> {
        // Without this check, a number out of range would become an infinity.
        let digits = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
        let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'e' | b'E');
        if self.decimal == '.'
            && cell.bytes().all(|byte| plain(byte) || byte == b'.')
            && self.thousands != Some('.')
        {
            return digits(cell);
        }
        if cell.bytes().all(plain) {
            return digits(cell);
        }
        if let Some(number) = named(cell) {
            return Some(number);
        }
        let (whole, fraction) = match cell.split_once(self.decimal) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (cell, None),
        };
        scratch.clear();
        match self.thousands {
            Some(separator) if whole.contains(separator) => ungroup(whole, separator, scratch)?,
            _ => scratch.push_str(whole),
        }
        // Neither part may have another point or comma.
        let all_plain = |text: &str| text.bytes().all(plain);
        if !all_plain(scratch) || !fraction.is_none_or(all_plain) {
            return None;
        }
        if let Some(fraction) = fraction {
            scratch.push('.');
            scratch.push_str(fraction);
        }
        digits(scratch)
    }
}

fn named(cell: &str) -> Option<f64> {
    match cell {
        "NaN" | "nan" | "NAN" => Some(f64::NAN),
        "Inf" | "inf" | "+Inf" | "Infinity" | "∞" => Some(f64::INFINITY),
        "-Inf" | "-inf" | "-Infinity" | "-∞" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Removes the separators. `None` if a group is wrong. The first group has one to three digits and does not start with `0`.
/// Each other group has three digits.
fn ungroup(whole: &str, separator: char, out: &mut String) -> Option<()> {
    for (nth, group) in whole.split(separator).enumerate() {
        let digits = if nth == 0 { group.strip_prefix(['-', '+']).unwrap_or(group) } else { group };
        let fits = if nth == 0 {
            (1..=3).contains(&digits.len()) && !digits.starts_with('0')
        } else {
            digits.len() == 3
        };
        if !fits || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        out.push_str(group);
    }
    Some(())
}

pub(super) fn fitting<'a>(numbers: Numbers, cells: impl Iterator<Item = &'a str>) -> usize {
    let mut scratch = String::new();
    cells.filter(|cell| numbers.read(cell, &mut scratch).is_some()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_separators_are_accepted_only_every_three_digits() {
        let english = Numbers { decimal: '.', thousands: Some(',') };
        let german = Numbers { decimal: ',', thousands: Some('.') };
        let comma = Numbers { decimal: ',', thousands: None };
        let swiss = Numbers { decimal: '.', thousands: Some('\'') };
        let plain = Numbers::default();
        for (numbers, cell, expect) in [
            (english, "2,555,904", Some(2_555_904.0)),
            (english, "-4,096", Some(-4_096.0)),
            (english, "3.49", Some(3.49)),
            (english, "1,234.5", Some(1_234.5)),
            (english, "12,5", None),
            (english, "1,2345", None),
            (english, "1234,567", None),
            (english, ",123", None),
            (english, "0,123", None),
            (english, "-1", Some(-1.0)),
            (german, "1.234,5", Some(1_234.5)),
            (german, "12,5", Some(12.5)),
            (german, "12.5", None),
            (german, "1.234", Some(1_234.0)),
            (comma, "1,5e3", Some(1_500.0)),
            (comma, "1.5", None),
            (comma, "1,2,3", None),
            (swiss, "1'234.5", Some(1_234.5)),
            (plain, "1e-3", Some(1e-3)),
            (plain, "1,5", None),
            (plain, "infinity", None),
            (plain, "0x10", None),
            (plain, "1e400", None),
            (comma, "1,5e400", None),
            (plain, "-Inf", Some(f64::NEG_INFINITY)),
            (plain, "", None),
        ] {
            assert_eq!(numbers.read(cell, &mut String::new()), expect, "{numbers:?} {cell:?}");
        }
        assert!(plain.read("NaN", &mut String::new()).unwrap().is_nan());
    }
}
