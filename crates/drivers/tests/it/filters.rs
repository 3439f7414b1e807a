//! A read of chosen traces or request ids finds the same segments as a read of everything. A read with summaries counts the
//! same calls. Both are true after random calls, flushes, merges, deletions and restarts, and with damaged filters and
//! summaries. Both kinds of reads take only a small part of the bytes of chunks that they can skip.

use std::path::Path;

use tacho_chunk::{Chunk, ExecutionBlock};
use tacho_model::{Matcher, Random, TimeRange};
use tacho_store::Needed;

use crate::calls::{Bench, SEGMENTS, batch, damage, segment};

#[tokio::test]
async fn chosen_ids_are_found_as_in_a_read_of_everything() {
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let mut bench = Bench::new();
        bench.open().await;
        let mut next = 0;
        for _ in 0..14 {
            match random.below(8) {
                0..4 => {
                    let (service, many) = (random.below(3) as usize, random.below(4) > 0);
                    let count = if many { SEGMENTS } else { 5 };
                    // Some traces are also in the next batch, which may be of another service.
                    let segments =
                        (next..next + count).map(|n| segment(n, (n * 1_000).cast_signed())).collect();
                    bench.store().append(batch(service, segments), None).await.unwrap();
                    next += count - count / 4;
                    bench.store().flush().await.unwrap();
                }
                4 => drop(bench.store().merge_all().await.unwrap()),
                5 => {
                    let from = (random.below(next.max(1)) * 1_000).cast_signed();
                    let range = TimeRange::new(from, from + 200_000);
                    bench.store().delete(&[Matcher::equal("service", "a")], range).await.unwrap();
                }
                6 => drop(bench.store().sweep().await.unwrap()),
                _ => bench.open().await,
            }
            let number = random.below(next.max(1)) / 4 * 4;
            bench.check(number..number + 1, TimeRange::ALL).await;
            bench.check_counts(TimeRange::ALL).await;
            let cut = TimeRange::new(0, (number * 1_000).cast_signed());
            bench.check_counts(cut).await;
            bench.check_slowest(TimeRange::ALL).await;
            bench.check_slowest(cut).await;
        }
        let number = random.below(next.max(1)) / 4 * 4;
        bench.check(number..number + 9, TimeRange::ALL).await;
        bench.check(number..number + 5, TimeRange::new(0, (number * 1_000).cast_signed())).await;
    }
}

#[tokio::test]
async fn few_bytes_of_other_chunks_are_read_and_damaged_filters_hide_no_record() {
    let mut bench = Bench::new();
    bench.open().await;
    for chunk in 0..10 {
        let numbers = chunk * SEGMENTS..(chunk + 1) * SEGMENTS;
        let segments = numbers.map(|n| segment(n, n.cast_signed())).collect();
        bench.store().append(batch(0, segments), None).await.unwrap();
        bench.store().flush().await.unwrap();
    }
    let number = 4 * SEGMENTS;
    let id = segment(number, 0).trace;
    let (is_it, known) = (|trace| trace == id, [id]);
    let traces = |known| Needed::Traces { accepts: &is_it, only: false, known };
    let has_it = |block: &ExecutionBlock, row| block.row(row).trace() == id;
    bench.bytes_read();
    assert_eq!(bench.read(TimeRange::ALL, traces(None), has_it).await.len(), 1);
    let all = bench.bytes_read();
    assert_eq!(bench.read(TimeRange::ALL, traces(Some(&known)), has_it).await.len(), 1);
    let few = bench.bytes_read();
    // A false positive may add a chunk.
    assert!(few * 2 < all, "{few} of {all} bytes");

    bench.open().await;
    damage_chunks(&bench.directory.path().join("chunks"), |chunk, header| {
        // The first 512 bytes of the filter are now 0, so this part of the filter denies every id.
        chunk[header..header + 512].fill(0);
    });
    bench.check(number..number + 9, TimeRange::ALL).await;
}

#[tokio::test]
async fn summaries_replace_chunks_and_calls_replace_damaged_summaries() {
    let mut bench = Bench::new();
    bench.open().await;
    for chunk in 0..10 {
        let numbers = chunk * SEGMENTS..(chunk + 1) * SEGMENTS;
        let segments = numbers.map(|n| segment(n, n.cast_signed())).collect();
        bench.store().append(batch(0, segments), None).await.unwrap();
        bench.store().flush().await.unwrap();
    }
    // Some calls of chunk 8 start in the range and end after it, so the summary of this chunk is not used.
    let within = TimeRange::new(100, (9 * SEGMENTS + 100).cast_signed());
    let mut expected = Vec::new();
    for (range, used) in [(TimeRange::ALL, 10), (within, 7)] {
        bench.bytes_read();
        let (exact, ..) = bench.count(range, false).await;
        let all = bench.bytes_read();
        assert_eq!(bench.count(range, true).await, (exact, used, 0));
        let few = bench.bytes_read();
        assert!(few * 3 < all, "{few} of {all} bytes");
        expected.push((range, exact));
    }

    // A deletion hides calls of one chunk, so the calls of this chunk are read instead of its summary.
    bench.open().await;
    bench.store().delete(&[Matcher::equal("service", "a")], TimeRange::new(5, 9)).await.unwrap();
    let (left, used, _) = bench.count(TimeRange::ALL, true).await;
    assert_eq!((left, used), (bench.count(TimeRange::ALL, false).await.0, 9));

    bench.open().await;
    damage_chunks(&bench.directory.path().join("chunks"), |chunk, _| {
        let summary = Chunk::summary_parts(chunk).unwrap()[1].start;
        chunk[summary + 20] ^= 1;
    });
    let (found, used, damaged) = bench.count(TimeRange::ALL, true).await;
    assert_eq!((found, used, damaged), (left, 0, 9));
    assert_eq!(expected[0].1[0] - left[0], 5);
}

#[tokio::test]
async fn chunks_are_read_by_rank_until_none_is_needed() {
    let mut bench = Bench::new();
    bench.open().await;
    for chunk in 0..10 {
        // The calls of chunk `n` take up to `n * 50 + 49` ns.
        let number = |n: u64| (chunk * SEGMENTS + n) * 977 + chunk * 50 + n % 50;
        let segments = (0..SEGMENTS).map(|n| segment(number(n), n.cast_signed())).collect();
        bench.store().append(batch(0, segments), None).await.unwrap();
        bench.store().flush().await.unwrap();
    }
    bench.bytes_read();
    bench.check_slowest(TimeRange::ALL).await;
    bench.bytes_read();
    assert_eq!(bench.count(TimeRange::ALL, false).await.1, 0);
    let all = bench.bytes_read();
    assert_eq!(bench.slowest(0, TimeRange::ALL).await, (Some(9 * 50 + 49), 1));
    let few = bench.bytes_read();
    assert!(few * 2 < all, "{few} of {all} bytes");

    // The range cuts all chunks. Their ranks are still upper bounds.
    let cut = TimeRange::new(0, 40);
    assert_eq!(bench.slowest(0, cut).await, (Some(9 * 50 + 40), 1));
    // A chunk with masked calls has no rank.
    bench.store().delete(&[Matcher::equal("service", "a")], TimeRange::new(41, 49)).await.unwrap();
    bench.check_slowest(TimeRange::new(0, 49)).await;
}

/// Changes the ten chunks in the segment files of a directory. `change` gets the bytes from the start of a chunk, and the end of
/// its header.
fn damage_chunks(directory: &Path, change: impl Fn(&mut [u8], usize)) {
    let damaged = damage(directory, b"TCHK\x05\x03", |chunk| {
        let header = u32::from_le_bytes(chunk[8..12].try_into().unwrap()) as usize;
        change(chunk, 20 + header);
    });
    assert_eq!(damaged, 10);
}
