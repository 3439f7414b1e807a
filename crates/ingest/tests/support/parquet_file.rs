//! Parquet files built by hand: few bytes with many rows, long texts, or false numbers.
//!
//! ```text
//!   PAR1  pages of each column, shared by all row groups  footer  its length  PAR1
//!   page  head in Thrift's compact protocol, body
//! ```

use bytes::Bytes;

const INT64: i64 = 2;
const BYTE_ARRAY: i64 = 6;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const DELTA_BYTE_ARRAY: i64 = 7;
const RLE_DICTIONARY: i64 = 8;
const UNCOMPRESSED: i64 = 0;
const SNAPPY: i64 = 1;

pub struct File {
    rows: usize,
    groups: usize,
    columns: Vec<Column>,
}

pub struct Column {
    name: String,
    physical: i64,
    encodings: Vec<i64>,
    codec: i64,
    rows: usize,
    pages: Vec<Page>,
}

/// A page. Its head states `values` and `unpacked`, which may be false.
pub struct Page {
    is_dictionary: bool,
    encoding: i64,
    values: usize,
    unpacked: usize,
    body: Vec<u8>,
}

impl File {
    pub fn new(rows: usize, groups: usize) -> Self {
        Self { rows, groups, columns: Vec::new() }
    }

    pub fn add(&mut self, column: Column) {
        self.columns.push(column);
    }

    /// Returns the file, and the length of its footer.
    pub fn bytes(&self) -> (Bytes, usize) {
        let mut out = b"PAR1".to_vec();
        let mut chunks = Vec::new();
        for column in &self.columns {
            let begin = out.len();
            let mut data = begin;
            for page in &column.pages {
                if !page.is_dictionary && data == begin {
                    data = out.len();
                }
                page.put(&mut out);
            }
            chunks.push(column.chunk(begin, data, out.len() - begin));
        }
        let footer = self.footer(&chunks);
        out.extend_from_slice(&footer);
        out.extend_from_slice(&(footer.len() as u32).to_le_bytes());
        out.extend_from_slice(b"PAR1");
        (out.into(), footer.len())
    }

    fn footer(&self, chunks: &[Vec<u8>]) -> Vec<u8> {
        let mut schema = vec![Struct::default().text(4, "s").number(5, self.columns.len()).end()];
        schema.extend(self.columns.iter().map(|column| {
            let of = Struct::default().number(1, column.physical as usize).number(3, 0).text(4, &column.name);
            if column.physical == BYTE_ARRAY { of.number(6, 0) } else { of }.end()
        }));
        let group = Struct::default().list(1, 12, chunks).long(2, 1).long(3, self.rows).end();
        let groups = vec![group; self.groups.max(1)];
        let rows = self.rows * self.groups.max(1);
        Struct::default().number(1, 1).list(2, 12, &schema).long(3, rows).list(4, 12, &groups).end()
    }
}

impl Column {
    fn new(name: &str, physical: i64, rows: usize, encoding: i64, pages: Vec<Page>) -> Self {
        let encodings = vec![PLAIN, RLE, encoding];
        Self { name: name.to_owned(), physical, encodings, codec: UNCOMPRESSED, rows, pages }
    }

    /// The same number in all rows.
    pub fn numbers(name: &str, rows: usize) -> Self {
        let dictionary = Page::dictionary(1, 1_700_000_000i64.to_le_bytes().to_vec());
        // Bit width 0, then one run.
        let mut body = vec![0];
        varint(&mut body, rows << 1);
        Self::new(name, INT64, rows, RLE_DICTIONARY, vec![dictionary, Page::data(RLE_DICTIONARY, rows, body)])
    }

    /// The texts in turn, each for `run` rows, until all rows have a text.
    pub fn texts(name: &str, rows: usize, texts: &[Vec<u8>], run: usize) -> Self {
        let dictionary = Page::dictionary(texts.len(), texts.iter().flat_map(|text| plain(text)).collect());
        let mut body = vec![16];
        let mut left = rows;
        for nth in 0.. {
            let run = run.min(left);
            if run == 0 {
                break;
            }
            varint(&mut body, run << 1);
            body.extend_from_slice(&((nth % texts.len()) as u16).to_le_bytes());
            left -= run;
        }
        Self::new(
            name,
            BYTE_ARRAY,
            rows,
            RLE_DICTIONARY,
            vec![dictionary, Page::data(RLE_DICTIONARY, rows, body)],
        )
    }

    /// The same text of `length` bytes in all rows; the page has it only once.
    pub fn prefixed(name: &str, rows: usize, length: usize) -> Self {
        // After the first text, each text has the whole previous text as its prefix, and an empty suffix.
        let mut body = Vec::new();
        deltas(&mut body, rows, 0, length as i64);
        deltas(&mut body, rows, length as i64, -(length as i64));
        body.resize(body.len() + length, b'p');
        Self::new(name, BYTE_ARRAY, rows, DELTA_BYTE_ARRAY, vec![Page::data(DELTA_BYTE_ARRAY, rows, body)])
    }

    /// One page per row: a short text, then `length` bytes of padding.
    pub fn padded(name: &str, rows: usize, length: usize) -> Self {
        let mut body = plain(b"x");
        body.resize(body.len() + length, 0);
        let unpacked = body.len();
        let body = snap::raw::Encoder::new().compress_vec(&body).unwrap();
        let page = || Page { unpacked, ..Page::data(PLAIN, 1, body.clone()) };
        let pages = (0..rows).map(|_| page()).collect();
        Self { codec: SNAPPY, ..Self::new(name, BYTE_ARRAY, rows, PLAIN, pages) }
    }

    /// Compresses all pages with Snappy, then calls `claim` with the number `much` for each of them.
    pub fn lying(mut self, claim: fn(&mut Page, usize), much: usize) -> Self {
        self.codec = SNAPPY;
        for page in &mut self.pages {
            page.body = snap::raw::Encoder::new().compress_vec(&page.body).unwrap();
            claim(page, much);
        }
        self
    }

    fn chunk(&self, begin: usize, data: usize, bytes: usize) -> Vec<u8> {
        let encodings: Vec<Vec<u8>> = self.encodings.iter().map(|encoding| zigzag(*encoding)).collect();
        let mut name = Vec::new();
        varint(&mut name, self.name.len());
        name.extend_from_slice(self.name.as_bytes());
        let metadata = Struct::default()
            .number(1, self.physical as usize)
            .list(2, 5, &encodings)
            .list(3, 8, &[name])
            .number(4, self.codec as usize)
            .long(5, self.rows)
            .long(6, bytes)
            .long(7, bytes)
            .long(9, data);
        let metadata = if data > begin { metadata.long(11, begin) } else { metadata };
        Struct::default().long(2, begin).nested(3, &metadata.end()).end()
    }
}

impl Page {
    fn dictionary(values: usize, body: Vec<u8>) -> Self {
        Self { is_dictionary: true, encoding: PLAIN, values, unpacked: body.len(), body }
    }

    fn data(encoding: i64, values: usize, body: Vec<u8>) -> Self {
        Self { is_dictionary: false, encoding, values, unpacked: body.len(), body }
    }

    pub fn claim_unpacked(&mut self, bytes: usize) {
        self.unpacked = bytes.min(i32::MAX as usize);
    }

    pub fn claim_values(&mut self, values: usize) {
        self.values = values.min(i32::MAX as usize);
    }

    /// Replaces the body by a list of text lengths, all 0. The list states `lengths` numbers, at most 2^40. The head of the
    /// page states `lengths` values, at most the maximum of the field.
    pub fn claim_lengths(&mut self, lengths: usize) {
        let mut body = Vec::new();
        deltas(&mut body, lengths.min(1 << 40), 0, 0);
        self.unpacked = body.len();
        self.claim_values(lengths);
        self.body = snap::raw::Encoder::new().compress_vec(&body).unwrap();
    }

    fn put(&self, out: &mut Vec<u8>) {
        let head = Struct::default().number(1, if self.is_dictionary { 2 } else { 0 });
        let head = head.number(2, self.unpacked).number(3, self.body.len());
        let of = Struct::default().number(1, self.values).number(2, self.encoding as usize);
        let head = match self.is_dictionary {
            true => head.nested(7, &of.end()),
            false => head.nested(5, &of.number(3, RLE as usize).number(4, RLE as usize).end()),
        };
        out.extend_from_slice(&head.end());
        out.extend_from_slice(&self.body);
    }
}

/// A structure of Thrift's compact protocol.
#[derive(Default)]
struct Struct {
    out: Vec<u8>,
    last: u8,
}

impl Struct {
    fn field(&mut self, field: u8, of: u8) {
        self.out.push((field - self.last) << 4 | of);
        self.last = field;
    }

    fn number(mut self, field: u8, number: usize) -> Self {
        self.field(field, 5);
        self.out.extend(zigzag(number as i64));
        self
    }

    fn long(mut self, field: u8, number: usize) -> Self {
        self.field(field, 6);
        self.out.extend(zigzag(number as i64));
        self
    }

    fn text(mut self, field: u8, text: &str) -> Self {
        self.field(field, 8);
        varint(&mut self.out, text.len());
        self.out.extend_from_slice(text.as_bytes());
        self
    }

    fn nested(mut self, field: u8, structure: &[u8]) -> Self {
        self.field(field, 12);
        self.out.extend_from_slice(structure);
        self
    }

    fn list(mut self, field: u8, of: u8, items: &[Vec<u8>]) -> Self {
        self.field(field, 9);
        self.out.push(0xf0 | of);
        varint(&mut self.out, items.len());
        items.iter().for_each(|item| self.out.extend_from_slice(item));
        self
    }

    fn end(mut self) -> Vec<u8> {
        self.out.push(0);
        self.out
    }
}

fn varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn zigzag(number: i64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(&mut out, (number << 1 ^ number >> 63) as usize);
    out
}

/// The length of the text, then the text.
fn plain(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text].concat()
}

/// Writes a list of `count` numbers in few bytes: `first`, then `first + step` repeated. The list states the whole `count`, but
/// has at most 2^28 numbers after the first.
fn deltas(out: &mut Vec<u8>, count: usize, first: i64, step: i64) {
    let (block, miniblocks) = if step == 0 { (1 << 16, 1) } else { (128, 4) };
    varint(out, block);
    varint(out, miniblocks);
    varint(out, count);
    out.extend(zigzag(first));
    let mut left = count.saturating_sub(1).min(1 << 28);
    let mut is_first = step != 0;
    while left > 0 {
        if is_first {
            // Each difference is stored as its excess over the smallest difference, in 32 bits.
            let least = step.min(0);
            out.extend(zigzag(least));
            out.extend_from_slice(&[32; 4]);
            for nth in 0..block {
                let delta = if nth == 0 { step } else { 0 };
                out.extend_from_slice(&((delta - least) as u32).to_le_bytes());
            }
        } else {
            out.resize(out.len() + 1 + miniblocks, 0);
        }
        is_first = false;
        left = left.saturating_sub(block);
    }
}
