//! When does a certificate expire, and when does the log report it?

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// A certificate that expires within this number of days is reported.
pub const WARNED_DAYS: i64 = 30;
const DAY_SECONDS: i64 = 86_400;

/// Tags of DER (ITU-T X.690) that are read here.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// `notAfter` of a certificate (RFC 5280, 4.1), Unix seconds.
///
/// ```text
/// Certificate: SEQUENCE { TBSCertificate: SEQUENCE { [0] version, optional; serial; algorithm; issuer;
///                                                    Validity: SEQUENCE { notBefore; notAfter } ... } ... }
/// ```
pub fn not_after(der: &[u8]) -> Option<i64> {
    let (certificate, _) = sequence(der)?;
    let (mut rest, _) = sequence(certificate)?;
    if *rest.first()? == VERSION {
        rest = item(rest)?.2;
    }
    for _serial_algorithm_issuer in 0..3 {
        rest = item(rest)?.2;
    }
    let (validity, _) = sequence(rest)?;
    let (_, _, behind) = item(validity)?;
    let (tag, text, _) = item(behind)?;
    time(tag, text)
}

/// Tag and content of the first value, and the bytes after this value.
fn item(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    // A byte up to 0x7f is the length. A larger byte is 0x80 plus the number of bytes of the length.
    let (length, rest) = match usize::from(first) {
        short @ ..=0x7f => (short, rest),
        count @ 0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(count - 0x80)?;
            (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

fn sequence(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    item(bytes).filter(|(tag, ..)| *tag == SEQUENCE).map(|(_, content, rest)| (content, rest))
}

/// `YYMMDDHHMMSSZ` (1950 to 2049) or `YYYYMMDDHHMMSSZ` (RFC 5280, 4.1.2.5).
fn time(tag: u8, text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    let (year, rest) = match tag {
        UTC_TIME => digits.split_at_checked(2)?,
        GENERALIZED_TIME => digits.split_at_checked(4)?,
        _ => return None,
    };
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<i16>().ok();
    let year = match (tag, number(year)?) {
        (UTC_TIME, year @ 50..) => 1900 + year,
        (UTC_TIME, year) => 2000 + year,
        (_, year) => year,
    };
    let mut pairs = rest.chunks_exact(2).map(|pair| number(pair)?.try_into().ok());
    let mut next = || -> Option<i8> { pairs.next()? };
    let (month, day, hour, minute, second) = (next()?, next()?, next()?, next()?, next()?);
    let at = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    // 99991231235959Z means that the certificate never expires. `Timestamp` cannot represent such a late time.
    let never = Timestamp::MAX.as_second();
    Some(at.to_zoned(TimeZone::UTC).map_or(never, |at| at.timestamp().as_second()))
}

/// Formats Unix seconds as UTC.
pub fn utc(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |at| at.to_string())
}

/// Reports a certificate that expires soon or has expired, once a day. If such a certificate is replaced by another one that also
/// expires soon, the next check reports the new one.
#[derive(Default)]
pub struct Notice(Option<(i64, i64)>);

#[derive(Debug, PartialEq, Eq)]
pub enum Due {
    Expires { days: i64 },
    Expired,
}

impl Notice {
    pub fn due(&mut self, expires: i64, now: i64) -> Option<Due> {
        let days = expires.saturating_sub(now).div_euclid(DAY_SECONDS);
        if days >= WARNED_DAYS {
            self.0 = None;
            return None;
        }
        if self.0.replace((expires, days)) == Some((expires, days)) {
            return None;
        }
        Some(if days < 0 { Due::Expired } else { Due::Expires { days } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    #[test]
    fn the_end_of_validity_is_read_from_the_certificate() {
        for (year, month, day, expect) in [
            (1970, 1, 1, "1970-01-01T00:00:00Z"),
            (1999, 12, 31, "1999-12-31T00:00:00Z"),
            (2049, 12, 31, "2049-12-31T00:00:00Z"),
            (2050, 1, 1, "2050-01-01T00:00:00Z"),
            (4096, 1, 1, "4096-01-01T00:00:00Z"),
        ] {
            let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
            params.not_after = date_time_ymd(year, month, day);
            let der = params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec();
            assert_eq!(not_after(&der).map(utc).as_deref(), Some(expect));
            for cut in 0..der.len() {
                assert!(not_after(&der[..cut]).is_none(), "{cut} bytes");
            }
        }
        assert_eq!(time(GENERALIZED_TIME, b"99991231235959Z"), Some(Timestamp::MAX.as_second()));
        for (tag, text) in [
            (UTC_TIME, &b"991332000000Z"[..]),
            (UTC_TIME, b"9912310000Z"),
            (UTC_TIME, b"991231000000"),
            (UTC_TIME, b"Z"),
            (UTC_TIME, b"\xff91231000000Z"),
            (4, b"991231000000Z"),
        ] {
            assert_eq!(time(tag, text), None, "{text:?}");
        }
    }

    #[test]
    fn a_certificate_that_expires_soon_is_reported_once_a_day() {
        let mut notice = Notice::default();
        let expires = 100 * DAY_SECONDS;
        for (now, expect) in [
            (70 * DAY_SECONDS, None),
            (70 * DAY_SECONDS + 1, Some(Due::Expires { days: 29 })),
            (70 * DAY_SECONDS + 6, None),
            (99 * DAY_SECONDS + 5, Some(Due::Expires { days: 0 })),
            (100 * DAY_SECONDS + 1, Some(Due::Expired)),
            (100 * DAY_SECONDS + 6, None),
            (101 * DAY_SECONDS + 2, Some(Due::Expired)),
        ] {
            assert_eq!(notice.due(expires, now), expect, "{now}");
        }
        assert_eq!(
            notice.due(expires + 1, 101 * DAY_SECONDS + 2),
            Some(Due::Expired),
            "a new certificate was not reported"
        );
        assert_eq!(notice.due(i64::MAX, i64::MIN), None);
    }
}
