//! Collects the samples of known series in the lines of one body. No labels are made for them.
//!
//! If a sender has more heads than a [`super::Decoder`] can remember (about 25,000 heads with one field), the decoder forgets its
//! heads after each body. The store then still finds the series of a field by the bytes of the head and of the key.

use tacho_model::{
    FindSeries, KnownSamples, KnownSeries, Sample, SpelledHead, SpellingKeys, Timestamp, Value,
};

use super::cursor::Cursor;
use crate::known::{Known, SAMPLE_BYTES};

/// If a line has fewer values than this, the memory of `line` is negligible.
const VALUES_FEW: usize = 10_000;

pub(super) struct KnownLines<'f> {
    known: Known<'f>,
    /// The known series of the current line, with their values. The time of the line is not known yet.
    line: Vec<(KnownSeries, Value)>,
    /// Bytes of the labels of these series.
    labels_bytes: usize,
}

impl<'f> KnownLines<'f> {
    pub(super) fn new(finder: &'f mut dyn FindSeries) -> Self {
        Self { known: Known::new(finder), line: Vec::new(), labels_bytes: 0 }
    }

    pub(super) const fn keys(&self) -> &SpellingKeys {
        self.known.keys()
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.known.has_ended()
    }

    /// Releases the locks of the finder.
    pub(super) fn release(&mut self) {
        self.known.release();
    }

    #[inline]
    pub(super) fn find(&mut self, head: &SpelledHead, key: &[u8]) -> Option<KnownSeries> {
        self.known.find(head.field(key), self.labels_bytes)
    }

    #[inline]
    pub(super) fn add(&mut self, series: KnownSeries, value: Value) {
        self.labels_bytes += usize::from(series.labels_bytes);
        self.line.push((series, value));
    }

    /// Memory of the line's values, bytes. Growing lists exist twice.
    pub(super) const fn line_bytes(&self) -> usize {
        let values = self.line.len();
        let in_line = if values < VALUES_FEW { 0 } else { 3 * size_of::<(KnownSeries, Value)>() };
        values * (SAMPLE_BYTES + in_line)
    }

    /// Keeps the values of a line of this length. The cursor is at its end.
    pub(super) fn keep_line(&mut self, at: Timestamp, bytes: usize, cursor: &Cursor<'_>) {
        for (series, value) in self.line.drain(..) {
            self.known.push(series, Sample { at, value });
        }
        self.labels_bytes = 0;
        self.known.read(bytes);
        if !cursor.is_before_line() {
            // Empty lines and comments may be long.
            self.known.release();
        }
    }

    /// Discards the values of a refused line.
    pub(super) fn drop_line(&mut self) {
        self.line.clear();
        self.labels_bytes = 0;
        self.known.release();
    }

    /// The samples of all lines that were kept.
    pub(super) fn into_samples(self) -> KnownSamples {
        self.known.into_samples()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Decoded, Decoder, Precision};
    use crate::listed::List;

    fn list(all: &[(&str, &str)]) -> List {
        List::new(|keys| {
            all.iter().map(|(head, key)| keys.head(head.as_bytes()).field(key.as_bytes())).collect()
        })
    }

    fn decode(lines: &str, list: &mut List) -> Decoded {
        list.begin_body();
        let mut decoder = Decoder { asked: 100, ..Decoder::default() };
        decoder.decode_known(lines.as_bytes(), Precision::Nanoseconds, 99, list)
    }

    /// The samples of known series as `number @ time`, and the other series.
    fn read(decoded: &Decoded) -> (Vec<String>, Vec<String>) {
        let known = decoded.known.iter().flat_map(|(series, samples)| {
            samples.iter().map(move |sample| format!("{} @ {}", series.number, sample.at))
        });
        let others = decoded.batch.samples.iter().map(|series| series.labels.to_string());
        let texts = decoded.batch.entries.iter().map(|series| format!("text {}", series.labels));
        (known.collect(), others.chain(texts).collect())
    }

    fn check(list: &mut List, lines: &str, known: &[&str], others: &[&str]) {
        let decoded = decode(lines, list);
        let strings = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(read(&decoded), (strings(known), strings(others)), "{lines}");
        assert_eq!(decoded.batch.samples.len(), decoded.spellings.len(), "{lines}");
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
    fn known_series_need_no_labels_next_to_texts_and_to_unknown_series() {
        let mut list = list(&[("m", "v"), ("n", "v")]);
        let line = |second: &str| format!("n v=1 1\n{second}\nn v=1 2\n");
        for (second, known, others) in [
            ("m x=1 1", &["1 @ 1", "1 @ 2"][..], &["m_x"][..]),
            ("m v=1,x=1 1", &["0 @ 1", "1 @ 1", "1 @ 2"], &["m_x"]),
            ("m x=1,v=1,v=2,y=3 1", &["0 @ 1", "0 @ 1", "1 @ 1", "1 @ 2"], &["m_x", "m_y"]),
            ("m v=1,x=\"text\" 1", &["0 @ 1", "1 @ 1", "1 @ 2"], &["text m_x"]),
            ("m v=1,v=\"text\" 1", &["0 @ 1", "1 @ 1", "1 @ 2"], &["text m_v"]),
            ("m x=\"a\nb\",y=1 1", &["1 @ 1", "1 @ 2"], &["m_y", "text m_x"]),
            // A refused line leaves nothing.
            ("m v=1,x=1,y=soon 1", &["1 @ 1", "1 @ 2"], &[]),
            ("m v=1,x=\"text\" soon", &["1 @ 1", "1 @ 2"], &[]),
            ("m v=1,x=1 1 1\nm x=1 1", &["1 @ 1", "1 @ 2"], &["m_x"]),
        ] {
            check(&mut list, &line(second), known, others);
        }
    }

    #[test]
    fn a_series_that_becomes_known_within_a_body_keeps_its_labels() {
        let mut list = list(&[("n", "v")]);
        list.late = Some((2, list.keys.head(b"m").field(b"v")));
        check(&mut list, "n v=1 1\nm v=1 1\nm v=2 1\nn v=1 2\n", &["0 @ 1"], &["m_v", "n_v"]);
        check(&mut list, "n v=1 1\nm v=1 1\nm v=2 1\nn v=1 2\n", &["0 @ 1", "0 @ 2", "1 @ 1", "1 @ 1"], &[]);
    }

    #[test]
    fn faults_are_those_of_a_decoder_that_makes_labels() {
        for lines in [
            "m,a v=1 1",
            "m,a v=soon 1",
            "m v 1",
            "m v=soon",
            "m  ",
            "m v=1,=2 1",
            "m v=1 soon",
            "m v=\"open",
            "m v=1,x=\"open\nm v=1",
            ",a=1 v=1",
            "m,a=1,a=2 v=1\nm v=2",
            "m v=1 9223372036854775808\nm v=1",
        ] {
            let mut list = list(&[("m", "v")]);
            let plain = Decoder::default().decode(lines.as_bytes(), Precision::Nanoseconds, 99);
            assert_eq!(decode(lines, &mut list).rejects, plain.rejects, "{lines}");
        }
    }

    #[test]
    fn locks_are_released_before_texts_comments_and_refused_lines() {
        for (lines, expect) in [
            ("m v=1\nm v=2\n", 2),
            ("m v=1\n# comment\nm v=2\n", 3),
            ("m v=1\n\nm v=2\n", 3),
            ("m v=1\nm v=2,x=\"text\"\nm v=3\n", 3),
            ("m v=1\nm v=2 soon\nm v=3", 3),
        ] {
            let mut list = list(&[("m", "v")]);
            decode(lines, &mut list);
            // Two of these releases follow the last line and the end of the body.
            assert_eq!(list.released, expect, "{lines}");
        }
    }
}
