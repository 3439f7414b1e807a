//! PROBES and PROBED: the rules for the probes of a client, and the client's report on them.
//!
//! Step before: `server/src/control/mod.rs`, which holds the rules. Step after: the agent, which interprets the
//! patterns.

use tacho_model::Timestamp;
use tacho_model::varint::{put_bytes, put_varint};

use super::{PROBE_RULES_MAX, PROBED_MOVED_MAX};
use crate::reader::{Flaw, Reader};

/// The state that a rule gives to a method. The discriminants are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ProbeState {
    Off = 0,
    On = 1,
    /// The client sends count, sum, maximum and histogram instead of records.
    Aggregate = 2,
}

impl ProbeState {
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Off),
            1 => Some(Self::On),
            2 => Some(Self::Aggregate),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRule {
    pub state: ProbeState,
    /// The client interprets the pattern.
    pub pattern: String,
}

/// The complete list of rules for one client. If several rules match a method, the last one applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probes {
    pub revision: u64,
    pub rules: Vec<ProbeRule>,
}

impl Probes {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.revision);
        put_varint(out, self.rules.len() as u64);
        for rule in &self.rules {
            out.push(rule.state as u8);
            put_bytes(out, rule.pattern.as_bytes());
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Flaw> {
        let revision = reader.varint()?;
        let mut rules = Vec::new();
        for _ in 0..count(reader, PROBE_RULES_MAX, "more rules than allowed")? {
            let unknown = reader.flaw("unknown state of a rule");
            let state = ProbeState::from_byte(reader.u8()?).ok_or(unknown)?;
            rules.push(ProbeRule { state, pattern: reader.string()?.to_owned() });
        }
        Ok(Self { revision, rules })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOutcome {
    /// Position of the rule in PROBES, counted from 0.
    pub rule: u64,
    /// Number of methods to which the rule applies.
    pub matched: u64,
    /// Why the rule cannot be applied; empty if it was applied.
    pub fault: String,
}

/// An operation that the client itself switched to aggregation or off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub operation: String,
    pub reason: String,
    pub since: Timestamp,
}

/// Response to PROBES.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Revision of the PROBES frame to which this frame responds.
    pub revision: u64,
    /// Number of methods that are recorded.
    pub on: u64,
    /// Number of methods that are counted instead of recorded.
    pub aggregated: u64,
    /// Number of methods that a rule or the client switched off.
    pub off: u64,
    pub rules: Vec<RuleOutcome>,
    pub moved: Vec<Moved>,
}

impl Probed {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        for number in [self.revision, self.on, self.aggregated, self.off, self.rules.len() as u64] {
            put_varint(out, number);
        }
        for rule in &self.rules {
            put_varint(out, rule.rule);
            put_varint(out, rule.matched);
            put_bytes(out, rule.fault.as_bytes());
        }
        put_varint(out, self.moved.len() as u64);
        for moved in &self.moved {
            put_bytes(out, moved.operation.as_bytes());
            put_bytes(out, moved.reason.as_bytes());
            out.extend_from_slice(&moved.since.to_le_bytes());
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Flaw> {
        let mut probed = Self {
            revision: reader.varint()?,
            on: reader.varint()?,
            aggregated: reader.varint()?,
            off: reader.varint()?,
            ..Self::default()
        };
        for _ in 0..count(reader, PROBE_RULES_MAX, "more rules than allowed")? {
            probed.rules.push(RuleOutcome {
                rule: reader.varint()?,
                matched: reader.varint()?,
                fault: reader.string()?.to_owned(),
            });
        }
        for _ in 0..count(reader, PROBED_MOVED_MAX, "more operations than allowed")? {
            probed.moved.push(Moved {
                operation: reader.string()?.to_owned(),
                reason: reader.string()?.to_owned(),
                since: reader.i64()?,
            });
        }
        Ok(probed)
    }
}

/// Reads a count. It must be within its limit and within the remaining bytes.
fn count(reader: &mut Reader<'_>, max: usize, past: &'static str) -> Result<usize, Flaw> {
    let flaw = reader.flaw(past);
    let count = reader.length()?;
    if count <= max { Ok(count) } else { Err(flaw) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{ClientFrame, Frame, FrameDecoder, ServerFrame};

    fn probed(body: &[u8]) -> Result<Probed, String> {
        Probed::read(&mut Reader::new(body)).map_err(|flaw| flaw.to_string())
    }

    #[test]
    fn hostile_bodies_are_refused_with_the_position_of_the_fault() {
        let end = "end of input in a varint at byte";
        let cases: [(&[u8], String); 8] = [
            (&[], format!("{end} 0")),
            (&[1, 2, 3], format!("{end} 3")),
            (&[1, 2, 3, 4, 200, 1], "length beyond the end of the input at byte 4".into()),
            (&[1, 2, 3, 4, 1, 0, 0, 5, b'a'], "length beyond the end of the input at byte 7".into()),
            (&[1, 2, 3, 4, 1, 0, 0, 1, 0xff, 0], "string that is not UTF-8 at byte 7".into()),
            (&[1, 2, 3, 4, 0], format!("{end} 5")),
            (&[1, 2, 3, 4, 0, 1, 0, 0, 9], "end of input in a fixed-width field at byte 8".into()),
            (&[0x80; 11], "varint of more than 64 bits at byte 0".into()),
        ];
        for (body, expect) in cases {
            assert_eq!(probed(body), Err(expect), "{body:02x?}");
        }
        let frame = Frame { type_byte: 6, body: &[1] };
        let error = ClientFrame::decode(frame).unwrap_err().to_string();
        assert_eq!(error, "malformed PROBED: end of input in a varint at byte 1");
        let frame = Frame { type_byte: 71, body: &[1, 1, 3, 0] };
        let error = ServerFrame::decode(frame).unwrap_err().to_string();
        assert_eq!(error, "malformed frame of the server: unknown state of a rule at byte 2");
    }

    #[test]
    fn rules_and_operations_of_probed_are_limited() {
        let rule = RuleOutcome { rule: 1, matched: 2, fault: String::new() };
        let moved = Moved { operation: "a.b".into(), reason: "rate".into(), since: 7 };
        let cases = [
            (PROBE_RULES_MAX, PROBED_MOVED_MAX, None),
            (PROBE_RULES_MAX + 1, 0, Some("more rules than allowed at byte 4")),
            (0, PROBED_MOVED_MAX + 1, Some("more operations than allowed at byte 5")),
        ];
        for (rules, operations, expect) in cases {
            let full = Probed {
                rules: vec![rule.clone(); rules],
                moved: vec![moved.clone(); operations],
                ..Probed::default()
            };
            let mut body = Vec::new();
            full.put(&mut body);
            assert_eq!(probed(&body), expect.map_or(Ok(full), |text| Err(text.to_owned())));
        }
        let check = |rules: usize| {
            let rule = ProbeRule { state: ProbeState::On, pattern: "com.shop..*".into() };
            let probes = Probes { revision: 1, rules: vec![rule; rules] };
            let mut body = Vec::new();
            probes.put(&mut body);
            Probes::read(&mut Reader::new(&body)).map(|got| assert_eq!(got, probes)).map_err(|flaw| flaw.what)
        };
        assert_eq!(check(PROBE_RULES_MAX), Ok(()));
        assert_eq!(check(PROBE_RULES_MAX + 1), Err("more rules than allowed"));
    }

    #[test]
    fn bytes_of_a_later_version_are_ignored() {
        assert_eq!(probed(&[1, 2, 3, 4, 0, 0, 9, 9]).map(|probed| probed.off), Ok(4));
        let mut out = Vec::new();
        ServerFrame::Probes(Probes { revision: 3, rules: Vec::new() }).encode(&mut out);
        let mut decoder = FrameDecoder::new();
        decoder.push(&out);
        let frame = decoder.pull().unwrap().unwrap();
        let body = [frame.body, &[1, 2, 3]].concat();
        let later = ServerFrame::decode(Frame { type_byte: frame.type_byte, body: &body });
        assert_eq!(later, ServerFrame::decode(frame));
    }
}
