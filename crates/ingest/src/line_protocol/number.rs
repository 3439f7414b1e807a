//! Which value does this number have? Short integers and decimals take a fast path; the standard library parses all
//! other numbers.

use tacho_model::Value;

/// One less than the number of digits of 2^53. Every integer with this number of digits is exact in an f64.
const MANTISSA_DIGITS_MAX: usize = 15;
/// Every integer with this number of digits fits into an i64 and a u64.
const INTEGER_DIGITS_MAX: usize = 18;

/// The digits of a decimal, read as an integer, are divided by one of these powers of ten. All are exact in an f64.
const POWERS: [f64; MANTISSA_DIGITS_MAX + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// The integer or short decimal at the beginning of `rest`, and its length including `i` or `u`. `None` if the fast path
/// does not apply. The caller checks the bytes that follow.
///
/// A decimal of at most 15 digits is an integer divided by a power of ten. Both are exact, so one division rounds the
/// result correctly (Clinger, "How to read floating point numbers accurately", 1990).
#[inline(always)]
pub(super) fn short_number(rest: &[u8]) -> Option<(Value, usize)> {
    let negative = rest.first() == Some(&b'-');
    let sign = usize::from(negative);
    let (whole, digits) = leading_digits(rest.get(sign..)?, 0);
    if digits == 0 || digits > INTEGER_DIGITS_MAX {
        return None;
    }
    let end = sign + digits;
    match rest.get(end) {
        Some(b'i') => {
            let value = whole.cast_signed();
            Some((Value::I64(if negative { -value } else { value }), end + 1))
        }
        Some(b'u') => (!negative).then_some((Value::U64(whole), end + 1)),
        Some(b'.') => {
            let (mantissa, places) = leading_digits(rest.get(end + 1..)?, whole);
            let exact = digits + places <= MANTISSA_DIGITS_MAX;
            let value = mantissa.cast_signed() as f64 / POWERS.get(places).filter(|_| exact)?;
            Some((Value::F64(if negative { -value } else { value }), end + 1 + places))
        }
        _ if digits <= MANTISSA_DIGITS_MAX => {
            let value = whole.cast_signed() as f64;
            Some((Value::F64(if negative { -value } else { value }), end))
        }
        _ => None,
    }
}

/// Appends the digits at the beginning of `rest` to `number` and counts them. A number of more than 19 digits in total may
/// overflow and is then meaningless, so the callers check the count.
#[inline(always)]
fn leading_digits(rest: &[u8], number: u64) -> (u64, usize) {
    let mut number = number;
    for (nth, byte) in rest.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (number, nth);
        }
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    (number, rest.len())
}

/// The digits at the beginning of `rest` as a time, and their count. Reads eight digits at once where possible. `None` if
/// there are no digits or more than 19, or if the time does not fit into an i64.
#[inline]
pub(super) fn short_time(rest: &[u8]) -> Option<(i64, usize)> {
    let (mut number, mut digits) = (0, 0);
    if let Some((first, behind)) = rest.split_first_chunk::<8>()
        && let Some(eight) = eight_digits(*first)
    {
        (number, digits) = (eight, 8);
        if let Some(second) = behind.first_chunk::<8>()
            && let Some(eight) = eight_digits(*second)
        {
            (number, digits) = (number * 100_000_000 + eight, 16);
        }
    }
    let (number, more) = leading_digits(rest.get(digits..)?, number);
    let digits = digits + more;
    // A number of 19 digits may exceed an i64, but it never exceeds a u64.
    let number = if digits <= INTEGER_DIGITS_MAX + 1 { i64::try_from(number).ok() } else { None };
    number.filter(|_| digits > 0).map(|number| (number, digits))
}

/// Parses eight digits at once: joins neighbours to numbers of two digits, then of four, then of eight (Lemire, "Quickly
/// parsing eight digits", 2018).
#[inline]
fn eight_digits(bytes: [u8; 8]) -> Option<u64> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    let word = u64::from_le_bytes(bytes);
    // A byte is a digit if its upper four bits are 3, before and after adding 6.
    if word & HIGH != ZEROS || word.wrapping_add(0x0606_0606_0606_0606) & HIGH != ZEROS {
        return None;
    }
    let word = word - ZEROS;
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(1 + (100 << 16)) >> 16 & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(1 + (10_000 << 32)) >> 32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: Option<(Value, usize)>) {
        assert_eq!(short_number(text.as_bytes()), expect, "{text}");
    }

    #[test]
    fn only_short_numbers_take_the_fast_path() {
        check("12i,", Some((Value::I64(12), 3)));
        check("-0i", Some((Value::I64(0), 3)));
        check("-0", Some((Value::F64(-0.0), 2)));
        check("-0.0 ", Some((Value::F64(-0.0), 4)));
        check("5.", Some((Value::F64(5.0), 2)));
        check("999999999999999999u", Some((Value::U64(999_999_999_999_999_999), 19)));
        for left in
            ["", "-", ".5", "+1", "1234567890123456", "1234567890.123456", "-5u", "9223372036854775807i", "t"]
        {
            check(left, None);
        }
    }

    proptest! {
        #[test]
        fn numbers_agree_with_the_standard_library(text in "-?[0-9]{1,19}(\\.[0-9]{0,17})?[iu]?") {
            if let Some((value, bytes)) = short_number(text.as_bytes()) {
                let read = &text[..bytes];
                let expect = match value {
                    Value::F64(_) => Value::F64(read.parse().unwrap()),
                    Value::I64(_) => Value::I64(read.trim_end_matches('i').parse().unwrap()),
                    Value::U64(_) => Value::U64(read.trim_end_matches('u').parse().unwrap()),
                };
                prop_assert_eq!(value, expect, "{}", text);
            }
        }

        #[test]
        fn times_agree_with_the_standard_library(text in "[0-9]{0,21}[ \n:/a]?") {
            let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
            let read = short_time(text.as_bytes());
            if let Some((time, bytes)) = read {
                prop_assert_eq!((digits.len(), Ok(time)), (bytes, digits.parse()), "{}", text);
            }
            prop_assert!(read.is_some() || digits.len() > 18 || digits.is_empty(), "{}", text);
        }
    }
}
