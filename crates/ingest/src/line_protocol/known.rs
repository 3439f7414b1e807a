//! Reads lines of series that the store knows. No labels are made for them.
//!
//! With more than about 50,000 series, a [`super::Decoder`] forgets its heads after each body. The store then still finds the
//! series of a line by its text ([`FindSeries`]).
//!
//! Of two samples of a series with one time, the later sample in the body must win. The samples of known series are stored
//! before all others. Therefore, if a line has a known series and also a field that needs labels, all its fields get
//! labels. After such a line, all further series of the body get labels ([`KnownLines::end`]).

use tacho_model::{FindSeries, KNOWN_LABELS_BYTES_MAX, KnownSamples, KnownSeries, Sample, Timestamp, Value};

use super::cursor::{Cursor, Fault};
use super::{FieldValue, read_value};
use crate::budget::{Budget, Full};

/// Memory of one sample, bytes. The growing lists exist twice while they are moved.
const SAMPLE_BYTES: usize = 3 * KnownSamples::BYTES;

/// Samples of known series in the lines of one body.
pub(super) struct KnownLines<'f> {
    /// `None` when no more series of the body are known.
    finder: Option<&'f mut dyn FindSeries>,
    samples: KnownSamples,
    /// The known series of the current line, with their values.
    line: Vec<(KnownSeries, Value)>,
}

impl<'f> KnownLines<'f> {
    pub(super) fn new(finder: &'f mut dyn FindSeries) -> Self {
        Self { finder: Some(finder), samples: KnownSamples::default(), line: Vec::new() }
    }

    /// Consumes the next line if all its series are known. Otherwise the cursor is unchanged. `time` reads the time of the line.
    pub(super) fn take_line(
        &mut self,
        cursor: &mut Cursor<'_>,
        budget: &mut Budget,
        time: impl FnOnce(&mut Cursor<'_>) -> Result<Timestamp, Fault>,
    ) -> Result<bool, Full> {
        let begin = *cursor;
        self.line.clear();
        if self.fields(cursor)
            && let Ok(at) = time(cursor)
        {
            budget.take_beyond(SAMPLE_BYTES * self.line.len(), cursor.at() - begin.at())?;
            self.line
                .iter()
                .for_each(|(series, value)| self.samples.push(*series, Sample { at, value: *value }));
            return Ok(true);
        }
        *cursor = begin;
        if !self.line.is_empty() {
            self.end();
        }
        Ok(false)
    }

    /// Reads the fields of a line. Returns whether all of them are numbers of known series, and the labels of the known series
    /// of the body have at most [`KNOWN_LABELS_BYTES_MAX`] bytes.
    fn fields(&mut self, cursor: &mut Cursor<'_>) -> bool {
        let Some(finder) = &mut self.finder else { return false };
        let Ok(head) = cursor.head() else { return false };
        let head = finder.keys().head(head.bytes);
        let (mut all_known, mut labels_bytes) = (true, self.samples.labels_bytes());
        loop {
            let Ok(key) = cursor.key() else { return false };
            let value = match cursor.short_number() {
                Some(number) => Some(number),
                None => match read_value(cursor) {
                    Ok(FieldValue::Number(number)) => Some(number),
                    Ok(FieldValue::Text(_)) => None,
                    Err(_) => return false,
                },
            };
            match value.and_then(|value| Some((finder.find(head.field(key.bytes))?, value))) {
                Some(known) => {
                    labels_bytes += usize::from(known.0.labels_bytes);
                    self.line.push(known);
                }
                None => all_known = false,
            }
            if !cursor.take(b',') {
                return all_known && labels_bytes <= KNOWN_LABELS_BYTES_MAX;
            }
        }
    }

    /// After this call, no series are known.
    fn end(&mut self) {
        if let Some(finder) = self.finder.take() {
            finder.release();
        }
    }

    pub(super) fn into_samples(mut self) -> KnownSamples {
        self.end();
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Decoded, Decoder, Precision};
    use super::*;
    use crate::listed::List;

    fn list(all: &[(&str, &str)]) -> List {
        List::new(|keys| {
            all.iter().map(|(head, key)| keys.head(head.as_bytes()).field(key.as_bytes())).collect()
        })
    }

    fn decode(lines: &str, list: &mut List) -> Decoded {
        let mut decoder = Decoder { asked: 100, ..Decoder::default() };
        decoder.decode_known(lines.as_bytes(), Precision::Nanoseconds, 99, list)
    }

    /// The samples of known series as `number @ time`, and the other series.
    fn read(decoded: &Decoded) -> (Vec<String>, Vec<String>) {
        let known = decoded.known.iter().flat_map(|(number, samples)| {
            samples.iter().map(move |sample| format!("{number} @ {}", sample.at))
        });
        let others = decoded.batch.samples.iter().map(|series| series.labels.to_string());
        (known.collect(), others.collect())
    }

    fn check(list: &mut List, lines: &str, known: &[&str], others: &[&str]) {
        let decoded = decode(lines, list);
        let strings = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(read(&decoded), (strings(known), strings(others)), "{lines}");
        assert!([0, decoded.batch.samples.len()].contains(&decoded.spellings.len()), "{lines}");
    }

    #[test]
    fn lines_of_known_series_need_no_labels() {
        let mut list = list(&[("m,a=1", "v"), ("m,a=1", "w"), ("m,a=2", "v"), (r"m\ n,a=\,", "v")]);
        check(
            &mut list,
            "m,a=1 v=1,w=2i 5\nm,a=3 v=1 6\nm,a=2  v=t\r\nm\\ n,a=\\, v=12345678901234567890 7\nm,a=1 v=1 soon\n# no line\n",
            &["0 @ 5", "1 @ 5", "2 @ 99", "3 @ 7"],
            &["m_v{a=\"3\"}"],
        );
        let decoded = decode("m,a=3 v=1 6\nm,a=3 v=2,x=1 7\n", &mut list);
        let spelling = |head: &str, key: &str| list.keys.head(head.as_bytes()).field(key.as_bytes());
        assert_eq!(decoded.spellings, [spelling("m,a=3", "v"), spelling("m,a=3", "x")]);
    }

    #[test]
    fn after_a_known_series_with_labels_no_series_of_the_body_is_known() {
        let mut list = list(&[("m", "v"), ("n", "v")]);
        let line = |second: &str| format!("n v=1 1\n{second}\nn v=1 2\n");
        check(&mut list, &line("m x=1 1"), &["1 @ 1", "1 @ 2"], &["m_x"]);
        check(&mut list, &line("m v=1,x=1 1"), &["1 @ 1"], &["m_v", "m_x", "n_v"]);
        check(&mut list, &line("m x=1,v=1 1"), &["1 @ 1"], &["m_x", "m_v", "n_v"]);
        check(&mut list, &line("m v=1,x=\"text\" 1"), &["1 @ 1"], &["m_v", "n_v"]);
        check(&mut list, &line("m x=\"text\" 1"), &["1 @ 1", "1 @ 2"], &[]);
    }

    #[test]
    fn a_body_during_which_one_of_its_series_becomes_known_needs_all_labels() {
        let mut list = list(&[("n", "v")]);
        list.late = Some((2, list.keys.head(b"m").field(b"v")));
        check(&mut list, "n v=1 1\nm v=1 1\nm v=2 1\n", &[], &["n_v", "m_v"]);
        // A series that only other bodies have does not matter.
        list.late = Some((2, list.keys.head(b"other").field(b"v")));
        check(&mut list, "n v=1 1\nx v=1 1\nx v=2 1\n", &["0 @ 1"], &["x_v"]);
    }

    #[test]
    fn labels_of_known_series_are_limited() {
        let mut list = list(&[("m", "v")]);
        let mut lines = KnownLines::new(&mut list);
        let series = KnownSeries { number: 0, note: 0, labels_bytes: u16::MAX };
        for number in 0..u32::try_from(KNOWN_LABELS_BYTES_MAX / usize::from(u16::MAX)).unwrap() {
            lines
                .samples
                .push(KnownSeries { number: number + 1, ..series }, Sample { at: 0, value: Value::U64(0) });
        }
        let mut budget = Budget::of_body(100);
        for (bytes, fits) in [(KNOWN_LABELS_BYTES_MAX - 9, true), (KNOWN_LABELS_BYTES_MAX, false)] {
            while lines.samples.labels_bytes() + 9 < bytes {
                let number = u32::try_from(lines.samples.labels_bytes()).unwrap();
                let one = KnownSeries { number, labels_bytes: 9, ..series };
                lines.samples.push(one, Sample { at: 0, value: Value::U64(0) });
            }
            let mut cursor = Cursor::new(b"m v=1 1");
            let taken = lines.take_line(&mut cursor, &mut budget, |_| Ok(1));
            assert_eq!(taken, Ok(fits), "{}", lines.samples.labels_bytes());
        }
    }
}
