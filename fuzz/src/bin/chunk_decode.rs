//! The decoder of chunks of versions 1, 3 and 4 never panics. Decoded records are valid. Entries and executions can be encoded
//! again, to a chunk that opens.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacho_chunk::{Chunk, Encoding, encode_entries, encode_executions};
use tacho_model::Kind;

/// Limit on records that are encoded again. More records would only slow down the search.
const RECORDS_MAX: usize = 4_096;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    read(&bytes);
    // The fuzzer cannot guess two correct checksums. With repaired checksums it reaches the code after the check.
    repair(&mut bytes);
    read(&bytes);
});

fn read(bytes: &[u8]) {
    let Ok(chunk) = Chunk::open(bytes) else { return };
    let written = match chunk.header().kind {
        Kind::Sample => {
            let Ok(samples) = chunk.samples() else { return };
            assert_eq!(samples.at.len(), samples.values.len());
            // Samples are not encoded again: the encoder writes them in another version, which `chunk_group` tests.
            None
        }
        Kind::Entry => {
            let Ok(entries) = chunk.entries() else { return };
            (1..RECORDS_MAX).contains(&entries.len()).then(|| encode_entries(&entries, &Encoding::default()))
        }
        Kind::Execution => {
            let traces = chunk.execution_traces();
            let with_request = chunk.segments_with("request.id", &|_| true);
            let Ok(block) = chunk.executions() else { return };
            let has_it = block.rows().map(|row| row.attributes().any(|a| &**a.key == "request.id"));
            let mut has_it: Vec<bool> = has_it.collect();
            let selected = chunk.selected_executions(&has_it).expect("the whole chunk was decoded");
            let kept = (0..block.len()).filter(|row| has_it[*row]).map(|row| block.segment(row));
            assert!(selected.rows().map(|row| row.to_segment()).eq(kept));
            if !has_it.contains(&true) {
                has_it.clear();
            }
            assert!(with_request.is_ok_and(|found| found == has_it || !found.contains(&true) && has_it.is_empty()));
            assert!(traces.is_ok_and(|traces| traces.into_iter().eq(block.rows().map(|row| row.trace()))));
            for row in block.rows().take(RECORDS_MAX) {
                assert_eq!(row.to_segment().check(block.operations().len()), Ok(()));
            }
            let _ = (chunk.filters(), chunk.summary(), chunk.check());
            (1..RECORDS_MAX).contains(&block.len()).then(|| encode_executions(&block))
        }
    };
    if let Some(written) = written {
        assert!(Chunk::open(&written).is_ok_and(|chunk| chunk.filters().is_ok() && chunk.summary().is_ok()));
        let front = Chunk::front_bytes(&written).and_then(|bytes| written.get(..bytes));
        assert!(front.is_some_and(|front| Chunk::open_front(front, written.len()).is_ok()));
    }
}

/// Makes the prefix valid: magic bytes, version, kind, reserved bytes, header length and both checksums (`docs/format/chunk.md`).
fn repair(bytes: &mut [u8]) {
    let Some((prefix, rest)) = bytes.split_first_chunk_mut::<20>() else { return };
    // Versions 3 and 4 have filters, and only chunks of executions use these versions.
    let has_filters = matches!(prefix[4], 3 | 4);
    prefix[..4].copy_from_slice(b"TCHK");
    prefix[4] = if has_filters { prefix[4] } else { 1 };
    prefix[5] = if has_filters { 3 } else { prefix[5] % 3 + 1 };
    prefix[6..8].fill(0);
    let header = u32::from_le_bytes([prefix[8], prefix[9], 0, 0]) as usize % (rest.len() + 1);
    prefix[8..12].copy_from_slice(&(header as u32).to_le_bytes());
    let (header, body) = rest.split_at_mut(header);
    if has_filters && let Some(end) = header.last_chunk_mut::<4>() {
        // The header ends with the checksum of the filters (version 3) or of the summary (version 4). If they are empty, the
        // checksum 0 is correct.
        end.fill(0);
    }
    prefix[12..16].copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&prefix[..16]), header);
    prefix[16..].copy_from_slice(&checksum.to_le_bytes());
}
