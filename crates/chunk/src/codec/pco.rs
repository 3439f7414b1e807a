//! Pcodec (Loncaric, Jeppesen, Zinberg, "Pcodec: Better Compression for Numerical Sequences", 2025): bins of similar
//! numbers, and differences. The encoder chooses the order of the differences and stores it.

use ::pco::data_types::Number;
use ::pco::errors::{PcoError, PcoResult};
use ::pco::wrapped::{FileCompressor, FileDecompressor};
use ::pco::{ChunkConfig, PagingSpec};
use tacho_model::ValueType;

use super::{Codec, Look, ordered};
use crate::{Effort, Error};

pub(super) struct Pco;

/// Minimum number of values. For fewer values, the tables take more bytes than the bins save.
const COUNT_MIN: usize = 24;
/// For integers: minimum estimate of `ans`, bits per number. Below it, most integers are tokens of `ans` without extra bits,
/// so bins can hardly be better.
const BITS_MIN: f64 = 4.5;

fn compress<T: Number>(numbers: &[T]) -> PcoResult<Vec<u8>> {
    let file = FileCompressor::default();
    let config = ChunkConfig::default().with_paging_spec(PagingSpec::Exact(vec![numbers.len()]));
    let mut chunk = file.chunk_compressor(numbers, &config)?;
    let mut out = Vec::with_capacity(8 + chunk.meta_size_hint() + chunk.page_size_hint(0));
    file.write_header(&mut out)?;
    chunk.write_meta(&mut out)?;
    chunk.write_page(0, &mut out)?;
    Ok(out)
}

/// Reads one page of `count` numbers. `count` is not read from the bytes, so hostile bytes cannot request more memory.
fn decompress<T: Number + Default>(bytes: &[u8], count: usize) -> Result<Vec<T>, Error> {
    let damaged = |error: PcoError| Error::Codec { codec: "pco", reason: error.to_string() };
    let (file, rest) = FileDecompressor::new(bytes).map_err(damaged)?;
    let (mut chunk, rest) = file.chunk_decompressor::<T, _>(rest).map_err(damaged)?;
    let mut page = chunk.page_decompressor(rest, count).map_err(damaged)?;
    let mut numbers = vec![T::default(); count];
    let progress = page.read(&mut numbers).map_err(damaged)?;
    if progress.n_processed != count || !progress.finished {
        let reason = format!("{} numbers of {count}", progress.n_processed);
        return Err(Error::Codec { codec: "pco", reason });
    }
    let left = page.into_src().len();
    if left == 0 { Ok(numbers) } else { Err(Error::Trailing { what: "pco", left }) }
}

impl Codec for Pco {
    fn tag(&self) -> u8 {
        4
    }

    fn name(&self) -> &'static str {
        "pco"
    }

    /// For integers, the bins take about as many bits as the tokens of `ans`. For floats, the codec also finds other
    /// structure, which no estimate shows.
    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        if look.numbers.words.len() < COUNT_MIN || look.encoding.effort == Effort::Fast {
            return None;
        }
        let bits = match look.numbers.kind {
            ValueType::F64 => look.bits_after(|word| Some(ordered::rank(word)))?,
            ValueType::I64 | ValueType::U64 => Some(look.plan().bits).filter(|bits| *bits > BITS_MIN)?,
        };
        Some(bits + look.bits_each(40))
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let words = look.numbers.words;
        let result = match look.numbers.kind {
            ValueType::U64 => compress(words),
            ValueType::I64 => compress(&words.iter().map(|w| w.cast_signed()).collect::<Vec<_>>()),
            ValueType::F64 => compress(&words.iter().map(|w| f64::from_bits(*w)).collect::<Vec<_>>()),
        };
        // Only the fixed settings in `compress` can cause an error. After an error, another codec encodes the column.
        result.ok()
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        Ok(match kind {
            ValueType::U64 => decompress::<u64>(bytes, count)?,
            ValueType::I64 => decompress::<i64>(bytes, count)?.into_iter().map(i64::cast_unsigned).collect(),
            ValueType::F64 => decompress::<f64>(bytes, count)?.into_iter().map(f64::to_bits).collect(),
        })
    }

    fn searches(&self) -> bool {
        true
    }

    fn slowness(&self) -> f64 {
        1.03
    }
}
