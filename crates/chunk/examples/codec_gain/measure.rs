//! For each choice of the encoder: how many bytes and how much processor time does a data set take without this choice?

use std::hint::black_box;
use std::time::Instant;

use tacho_chunk::{
    Choice, Chunk, CodecSet, Compression, Effort, Encoding, GroupColumn, encode_entries,
    encode_executions_with, encode_group,
};

use crate::common::{self, logs, web};
use crate::sets::{Data, Set};

/// Number of values per series in a chunk, as in the store's merges.
const VALUES: usize = 8_192;
/// Number of series per chunk, as in the store's merges.
const MEMBERS: usize = 64;
/// Number of runs. Only the fastest run counts, because other programs may slow down a run.
const RUNS: usize = 3;

/// The cost of a data set, encoded with a set of permitted choices.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    pub bytes: usize,
    /// Processor time of encoding and of decoding, seconds.
    pub encode: f64,
    pub decode: f64,
}

/// The cost at seal and in merges.
#[derive(Clone, Copy, Default)]
pub struct Costs {
    pub sealed: Cost,
    pub merged: Cost,
}

pub struct Result {
    pub name: String,
    pub all: Costs,
    pub without: Vec<(Choice, Costs)>,
    /// Costs with each requested compression. The permitted choices are those of `all`.
    pub requested: Vec<(Compression, Costs)>,
}

/// Encodes a set with the choices of `base` only.
pub fn size(set: &Set, base: CodecSet) -> Result {
    let all = costs(set, Encoding { codecs: base, ..Encoding::default() });
    Result { name: set.name.clone(), all, without: vec![], requested: vec![] }
}

/// Encodes a set with the choices of `base`, again without each of them, and again with each requested compression.
pub fn gains(set: &Set, base: CodecSet) -> Result {
    let choices = CodecSet::choices().filter(|choice| base.without(*choice) != base);
    let with = |codecs, compression| costs(set, Encoding { codecs, compression, ..Encoding::default() });
    let without = choices.map(|choice| (choice, with(base.without(choice), Compression::Auto))).collect();
    let requested = Compression::ALL.map(|compression| (compression, with(base, compression))).to_vec();
    eprintln!("{}: measured", set.name);
    Result { name: set.name.clone(), all: with(base, Compression::Auto), without, requested }
}

fn costs(set: &Set, encoding: Encoding) -> Costs {
    let cost = |effort| {
        let encoding = Encoding { effort, ..encoding };
        let (encode, chunks) = fastest(|| chunks(set, &encoding));
        let (decode, ()) = fastest(|| chunks.iter().for_each(|bytes| read(bytes)));
        Cost { bytes: chunks.iter().map(Vec::len).sum(), encode, decode }
    };
    Costs { sealed: cost(Effort::Fast), merged: cost(Effort::Thorough) }
}

fn chunks(set: &Set, encoding: &Encoding) -> Vec<Vec<u8>> {
    set.data.iter().flat_map(|data| encode(data, encoding)).collect()
}

fn encode(data: &Data, encoding: &Encoding) -> Vec<Vec<u8>> {
    match data {
        Data::Texts(lines) => vec![encode_entries(&logs::entries(lines), encoding)],
        Data::Calls(segments) => {
            vec![encode_executions_with(&common::block(segments, &web::operations()), encoding)]
        }
        Data::Samples { at, columns } => {
            let mut out = vec![];
            for from in (0..at.len()).step_by(VALUES) {
                let part = from..at.len().min(from + VALUES);
                for columns in columns.chunks(MEMBERS) {
                    let parts: Vec<_> = columns.iter().map(|column| column.copy_of(part.clone())).collect();
                    let column = |(member, values)| GroupColumn { member, values, loss: None };
                    let group: Vec<_> =
                        (0..).zip(parts.iter().map(|part| part.as_values())).map(column).collect();
                    out.push(encode_group(&at[part.clone()], 0, &group, encoding));
                }
            }
            out
        }
    }
}

fn read(bytes: &[u8]) {
    let chunk = Chunk::open(bytes).expect("a newly encoded chunk is valid");
    if chunk.header().members.is_empty() {
        black_box(chunk.entries().map(|entries| entries.len()).ok());
        black_box(chunk.executions().map(|block| block.len()).ok());
        return;
    }
    black_box(chunk.times().expect("times"));
    for info in &chunk.header().members {
        black_box(chunk.values(info.member).expect("values"));
    }
}

/// The shortest processor time of several runs, and the result of the last run.
fn fastest<T>(mut run: impl FnMut() -> T) -> (f64, T) {
    let mut timed = || {
        let before = processor_seconds();
        let result = run();
        (processor_seconds() - before, result)
    };
    let first = timed();
    (1..RUNS).fold(first, |(least, _), _| {
        let (seconds, result) = timed();
        (least.min(seconds), result)
    })
}

/// Processor time of this thread if the system states it (Linux). Otherwise the wall time since the first call, which is
/// only an approximation.
fn processor_seconds() -> f64 {
    thread_local! { static BEGUN: Instant = Instant::now(); }
    let stated = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = stated.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| BEGUN.with(|begun| begun.elapsed().as_secs_f64()), |ns| ns / 1e9)
}
