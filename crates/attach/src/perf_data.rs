//! Parses the performance data of a JVM, the file `/tmp/hsperfdata_USER/PID`.
//!
//! The format is version 2 of `src/hotspot/share/runtime/perfMemory.hpp` in OpenJDK. The names of the entries are defined in
//! `services/runtimeService.cpp` and `runtime/statSampler.cpp` there.
//!
//! ```text
//!  0  ca fe c0 c0   u8 byte order (1 little endian)   u8 major (2)   u8 minor   u8 accessible
//!  8  i32 used   i32 overflow   i64 changed   i32 offset of the first entry   i32 entries
//! each entry (offsets from its start):
//!  0  i32 length   i32 offset of the name   i32 length of the vector (0: a number)
//! 12  u8 type   u8 flags   u8 unit   u8 variability   i32 offset of the data
//! ```

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const LITTLE_ENDIAN: u8 = 1;
const MAJOR: u8 = 2;
/// Limit on the entries that are read. A JVM has about 200.
const ENTRIES_MAX: usize = 10_000;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PerfData {
    /// Main class or jar, and its arguments.
    pub command: Option<String>,
    pub version: Option<String>,
    /// Whether the JVM supports attaching agents.
    pub takes_agents: Option<bool>,
}

impl PerfData {
    /// `None` for another format. The JVM may change the file at the same time, so a damaged entry is skipped, and a damaged
    /// length ends the parsing.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if !bytes.starts_with(&MAGIC) || *bytes.get(5)? != MAJOR {
            return None;
        }
        let file = Fields { bytes, is_little: *bytes.get(4)? == LITTLE_ENDIAN };
        let (first, count) = (file.int(24)?, file.int(28)?);
        let mut told = Self::default();
        let mut at = first;
        for _ in 0..count.min(ENTRIES_MAX) {
            let Some(length) = file.int(at).filter(|length| *length > 0) else { break };
            told.take(&file, at);
            let Some(next) = at.checked_add(length) else { break };
            at = next;
        }
        Some(told)
    }

    fn take(&mut self, file: &Fields<'_>, entry: usize) {
        let text = |field: usize| file.text(entry.checked_add(file.int(entry + field)?)?);
        let data = || text(16);
        match text(4).as_deref() {
            Some("sun.rt.javaCommand") => self.command = data(),
            Some("java.property.java.version") => self.version = data(),
            // One character per capability, '1' if supported. The first capability is attaching.
            Some("sun.rt.jvmCapabilities") => {
                self.takes_agents = data().filter(|it| !it.is_empty()).map(|it| it.starts_with('1'));
            }
            _ => {}
        }
    }
}

struct Fields<'a> {
    bytes: &'a [u8],
    is_little: bool,
}

impl Fields<'_> {
    /// Reads a non-negative i32.
    fn int(&self, at: usize) -> Option<usize> {
        let bytes = self.bytes.get(at..)?.first_chunk()?;
        let value = if self.is_little { i32::from_le_bytes(*bytes) } else { i32::from_be_bytes(*bytes) };
        usize::try_from(value).ok()
    }

    /// Reads the text up to the first 0 byte.
    fn text(&self, at: usize) -> Option<String> {
        let text = self.bytes.get(at..)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a file with these entries, in little or big endian.
    fn file(entries: &[(&str, &str)], is_little: bool) -> Vec<u8> {
        let int = |value: usize| {
            let value = i32::try_from(value).unwrap();
            if is_little { value.to_le_bytes() } else { value.to_be_bytes() }
        };
        let mut out = MAGIC.to_vec();
        out.extend([u8::from(is_little), MAJOR, 0, 1]);
        out.extend([0; 16]);
        out.extend(int(32));
        out.extend(int(entries.len()));
        for (name, data) in entries {
            let (name_at, data_at) = (20, 20 + name.len() + 1);
            let length = data_at + data.len() + 1;
            out.extend([int(length), int(name_at), int(data.len() + 1)].concat());
            out.extend([b'B', 0, 5, 1]);
            out.extend(int(data_at));
            out.extend([name.as_bytes(), &[0], data.as_bytes(), &[0]].concat());
        }
        out
    }

    const TOLD: [(&str, &str); 4] = [
        ("sun.rt._sync_Inflations", "?"),
        ("sun.rt.jvmCapabilities", "1100000000000000"),
        ("java.property.java.version", "17.0.15"),
        ("sun.rt.javaCommand", "shop.Größe --port 80"),
    ];

    #[test]
    fn entries_are_parsed_in_both_byte_orders() {
        let expect = PerfData {
            command: Some("shop.Größe --port 80".into()),
            version: Some("17.0.15".into()),
            takes_agents: Some(true),
        };
        for is_little in [true, false] {
            assert_eq!(PerfData::parse(&file(&TOLD, is_little)).as_ref(), Some(&expect));
        }
        let refused = PerfData::parse(&file(&[("sun.rt.jvmCapabilities", "0100")], true));
        assert_eq!(refused, Some(PerfData { takes_agents: Some(false), ..PerfData::default() }));
    }

    #[test]
    fn damaged_files_are_parsed_without_a_panic() {
        let whole = file(&TOLD, true);
        assert_eq!(PerfData::parse(&[]), None);
        assert_eq!(PerfData::parse(b"#!/bin/sh and so on, longer than a head"), None);
        let mut newer = whole.clone();
        newer[5] = 3;
        assert_eq!(PerfData::parse(&newer), None);
        for end in 0..whole.len() {
            let told = PerfData::parse(&whole[..end]);
            assert_eq!(told.is_some(), end >= 32, "{end}");
        }
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0x80, 0xff] {
                let mut broken = whole.clone();
                broken[at] = value;
                PerfData::parse(&broken);
            }
        }
        let endless = [&whole[..28], &i32::MAX.to_le_bytes(), &whole[32..]].concat();
        assert_eq!(PerfData::parse(&endless), PerfData::parse(&whole));
    }
}
