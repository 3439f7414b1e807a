//! A read with roll-ups counts the same calls as a read of everything: after random calls, flushes, merges, deletions and
//! restarts, and with damaged roll-ups.

use tacho_model::{Event, EventKind, Matcher, Operation, OperationKind, Random, Segment, TimeRange};
use tacho_store::{Options, Row};

use crate::calls::{Bench, batch, damage, labels, noise, segment};

const HOUR: i64 = 3_600_000_000_000;
const DAY: i64 = 24 * HOUR;

/// A store that merges only if a test orders it. A sweep then only writes roll-ups.
fn bench() -> Bench {
    Bench::with(Options { merge_in_background: false, merge_rows: 100_000, ..Options::default() })
}

/// Stores chunks of five calls, one chunk per hour from hour `first` on.
async fn add_chunks(bench: &Bench, service: usize, first: u64, count: u64) {
    for hour in first..first + count {
        let segments = (0..5).map(|n| segment(hour * 5 + n, hour.cast_signed() * HOUR + n.cast_signed()));
        bench.store().append(batch(service, segments.collect()), None).await.unwrap();
        bench.store().flush().await.unwrap();
    }
}

/// Enter and exit of a call of this duration.
fn events(duration: u64) -> Vec<Event> {
    vec![Event { delta: 0, kind: EventKind::Enter(0) }, Event { delta: duration, kind: EventKind::Exit }]
}

/// The number of summaries, of chunks or of roll-ups, that a read of a range used.
async fn used(bench: &Bench, range: TimeRange) -> usize {
    let (counted, used, damaged) = bench.count(range, true).await;
    assert_eq!((counted, damaged), (bench.count(range, false).await.0, 0), "{range:?}");
    used
}

#[tokio::test]
async fn counts_from_roll_ups_are_those_of_the_calls() {
    let mut rolled = 0;
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let mut bench = bench();
        // In every other run, the day of most calls has ended.
        bench.now = (seed % 2).cast_signed() * 9 * DAY;
        bench.open().await;
        for step in 0..90 {
            match random.below(16) {
                0..12 => {
                    let service = random.below(2) as usize;
                    let start = random.below(26).cast_signed() * HOUR;
                    let segments = (0..3).map(|n| segment(step * 3 + n, start + n.cast_signed() * HOUR / 9));
                    bench.store().append(batch(service, segments.collect()), None).await.unwrap();
                    bench.store().flush().await.unwrap();
                }
                12 | 13 => drop(bench.store().sweep().await.unwrap()),
                14 => {
                    let from = random.below(26).cast_signed() * HOUR;
                    let range = TimeRange::new(from, from + HOUR);
                    bench.store().delete(&[Matcher::equal("service", "a")], range).await.unwrap();
                }
                _ if random.below(8) == 0 => drop(bench.store().merge_all().await.unwrap()),
                _ => bench.open().await,
            }
            let [a, b] = [random.below(30), random.below(30)].map(|hour| hour.cast_signed() * HOUR);
            bench.check_counts(TimeRange::new(a.min(b), a.max(b))).await;
            bench.check_slowest(TimeRange::new(a.min(b), a.max(b))).await;
            // Each chunk has three calls, and so no summary.
            rolled += used(&bench, TimeRange::ALL).await;
        }
    }
    assert!(rolled > 100, "only {rolled} roll-ups were used");
}

#[tokio::test]
async fn a_roll_up_replaces_the_summaries_of_its_chunks() {
    let mut bench = bench();
    bench.open().await;
    // The clock of the store is at the start of 1970, so no day has ended.
    add_chunks(&bench, 0, 0, 40).await;
    assert_eq!(used(&bench, TimeRange::ALL).await, 0, "chunks of few calls have no summaries");
    bench.store().sweep().await.unwrap();
    // Hours 0 to 15 and 24 to 39 are rolled up. The calls of hours 16 to 23 are read.
    assert_eq!(used(&bench, TimeRange::ALL).await, 2);
    assert_eq!(used(&bench, TimeRange::new(0, DAY)).await, 1);
    assert_eq!(used(&bench, TimeRange::new(1, DAY)).await, 0, "the range cuts the first chunk");
    assert_eq!(used(&bench, TimeRange::new(DAY, 3 * DAY)).await, 1);

    bench.open().await;
    assert_eq!(used(&bench, TimeRange::ALL).await, 2);
    // A deletion hides calls of the first roll-up. The sweep removes these calls, and so the roll-up.
    bench.store().delete(&[Matcher::equal("service", "a")], TimeRange::new(HOUR, 2 * HOUR)).await.unwrap();
    assert_eq!(used(&bench, TimeRange::ALL).await, 1);
    bench.store().sweep().await.unwrap();
    assert_eq!(used(&bench, TimeRange::ALL).await, 2, "the next 16 chunks of the day are rolled up");
}

#[tokio::test]
async fn an_ended_day_has_one_roll_up() {
    let mut bench = bench();
    bench.now = 9 * DAY;
    bench.open().await;
    add_chunks(&bench, 0, 0, 40).await;
    bench.store().sweep().await.unwrap();
    assert_eq!(used(&bench, TimeRange::ALL).await, 2);
    assert_eq!(used(&bench, TimeRange::new(0, DAY)).await, 1);
    // Of the part of a day, the roll-up of 16 chunks is used, and the calls of the others are read.
    assert_eq!(used(&bench, TimeRange::new(0, 20 * HOUR)).await, 1);
    assert_eq!(used(&bench, TimeRange::new(0, 10 * HOUR)).await, 0);
    // A few late chunks do not change the roll-up.
    add_chunks(&bench, 0, 3, 5).await;
    bench.store().sweep().await.unwrap();
    assert_eq!(used(&bench, TimeRange::ALL).await, 2);
    add_chunks(&bench, 0, 8, 11).await;
    bench.store().sweep().await.unwrap();
    bench.open().await;
    assert_eq!(used(&bench, TimeRange::ALL).await, 2);
    assert_eq!(bench.count(TimeRange::ALL, true).await.0, bench.count(TimeRange::ALL, false).await.0);
}

/// The roll-ups of service 0.
async fn rows(bench: &Bench) -> Vec<Row> {
    bench.meta([b"rollups", &labels(0).id().to_bytes()[..]].concat()).await
}

#[tokio::test]
async fn a_roll_up_that_is_rewritten_during_a_read_is_not_used() {
    let mut bench = bench();
    bench.now = 9 * DAY;
    bench.open().await;
    add_chunks(&bench, 0, 0, 20).await;
    bench.store().sweep().await.unwrap();
    let before = rows(&bench).await;
    add_chunks(&bench, 0, 4, 16).await;
    bench.store().sweep().await.unwrap();
    let after = rows(&bench).await;
    let of_day = |rows: &[Row]| rows.iter().find(|row| row.clustering[9] == 255).cloned().unwrap();
    assert_eq!(of_day(&before).clustering, of_day(&after).clustering, "the first chunk is the same");
    assert_eq!(used(&bench, TimeRange::ALL).await, 1);
    // The reader gets the head that was written first, and the summary that was written last.
    bench.show_older(vec![of_day(&before)]);
    assert!(used(&bench, TimeRange::ALL).await > 1, "smaller roll-ups are used");
}

/// Stores chunks of 300 calls of 20 durations, whose chunks have summaries.
async fn add_large_chunks(bench: &Bench, count: u64) {
    for hour in 0..count {
        let start = |n: u64| hour.cast_signed() * HOUR + n.cast_signed() * 11_000_000_000;
        let segments = (0..300).map(|n| segment(hour * 300 + n, start(n)));
        bench.store().append(batch(0, segments.collect()), None).await.unwrap();
        bench.store().flush().await.unwrap();
    }
}

#[tokio::test]
async fn roll_ups_of_chunks_with_summaries_are_used() {
    let mut bench = bench();
    bench.open().await;
    add_large_chunks(&bench, 17).await;
    assert_eq!(used(&bench, TimeRange::ALL).await, 17);
    bench.store().sweep().await.unwrap();
    assert_eq!(used(&bench, TimeRange::ALL).await, 2, "one roll-up, and the summary of the last chunk");
}

/// A place in a roll-up, from the end of its head.
type Place = fn(usize) -> usize;

const PLACES: [(&str, Place); 3] =
    [("head", |_| 12), ("checksum of the head", |head| head), ("summary", |head| head + 30)];

#[tokio::test]
async fn damaged_roll_ups_are_ignored_and_written_again() {
    for (what, place) in PLACES {
        let mut bench = bench();
        bench.open().await;
        add_chunks(&bench, 0, 0, 20).await;
        bench.store().sweep().await.unwrap();
        assert_eq!(used(&bench, TimeRange::ALL).await, 1);
        bench.open().await;
        let flip = |row: &mut [u8]| {
            let head = 9 + u32::from_le_bytes(row[5..9].try_into().unwrap()) as usize;
            row[place(head)] ^= 1;
        };
        // The driver has no copy in memory.
        assert!(damage(&bench.directory.path().join("chunks"), b"TRUP", flip) > 0);
        assert_eq!(used(&bench, TimeRange::ALL).await, 0, "{what}");
        // A restart finds the days with work.
        bench.open().await;
        bench.store().sweep().await.unwrap();
        assert_eq!(used(&bench, TimeRange::ALL).await, 1, "{what}");
    }
}

/// Of a long row, the driver reads the head only, and does not check the rest.
#[tokio::test]
async fn a_long_roll_up_with_a_damaged_summary_is_ignored() {
    let mut bench = bench();
    bench.now = 9 * DAY;
    bench.open().await;
    for chunk in 0..40 {
        let segments = (0..40).map(|n| {
            let number = chunk * 40 + n;
            Segment {
                events: events(1 << (number % 40)),
                ..segment(number, (number * 7 % 1_400).cast_signed() * 61_000_000_000)
            }
        });
        let mut batch = batch(0, segments.collect());
        // Names that no codec makes much shorter.
        let name = |n: u64| (0..4).map(|part| format!("{:016x}", noise(n * 4 + part))).collect::<String>();
        let operation = |n| Operation { kind: OperationKind::Method, name: name(n).into() };
        batch.executions[0].operations = (0..40).map(|n| operation(chunk * 40 + n)).collect();
        for (number, segment) in (0..).zip(&mut batch.executions[0].segments) {
            segment.events[0].kind = EventKind::Enter(number);
        }
        bench.store().append(batch, None).await.unwrap();
        bench.store().flush().await.unwrap();
    }
    bench.store().sweep().await.unwrap();
    assert_eq!(used(&bench, TimeRange::ALL).await, 1);
    let longest = rows(&bench).await.iter().map(|row| row.value.len()).max().unwrap();
    assert!(longest > 17_000, "{longest} bytes: the row is read whole");
    bench.open().await;
    let mut flipped = 0;
    let flip = |row: &mut [u8]| {
        let head = 9 + u32::from_le_bytes(row[5..9].try_into().unwrap()) as usize;
        row[head + 4 + 500] ^= 1;
        flipped += 1;
    };
    damage(&bench.directory.path().join("chunks"), b"TRUP", flip);
    assert!(flipped > 1);
    assert_eq!(used(&bench, TimeRange::ALL).await, 0, "no damaged roll-up is used");
    bench.open().await;
    assert_eq!(used(&bench, TimeRange::ALL).await, 0);
}

/// 400 chunks: one of 24 roll-ups of 16 chunks has the slowest call, and one of its chunks.
#[tokio::test]
async fn a_search_reads_the_parts_of_the_best_roll_ups_only() {
    let mut bench = bench();
    bench.now = 9 * DAY;
    bench.open().await;
    for chunk in 0..400u64 {
        let start = chunk.cast_signed() * DAY / 400;
        let slow = Segment { events: events(1 << 40), ..segment(123_456, start + 1) };
        let segments = (0..5).map(|n| segment(chunk * 5 + n, start + n.cast_signed()));
        let segments = segments.chain((chunk == 250).then_some(slow)).collect();
        bench.store().append(batch(0, segments), None).await.unwrap();
        bench.store().flush().await.unwrap();
    }
    let day = TimeRange::new(0, DAY - 1);
    // Chunks of few calls have no summary, so their calls are read.
    assert_eq!(bench.slowest_ranked(0, day).await, (Some(1 << 40), 400, 0));
    bench.store().sweep().await.unwrap();
    let (found, blocks, ranked) = bench.slowest_ranked(0, day).await;
    assert_eq!(found, Some(1 << 40));
    assert!(blocks <= 16 && ranked <= 1 + 2 + 25, "{blocks} blocks, {ranked} roll-ups");
    // The other half of the day does not have the slow call.
    let (found, blocks, _) = bench.slowest_ranked(0, TimeRange::new(0, DAY / 2)).await;
    assert_eq!(found, Some(976));
    assert!(blocks < 60, "{blocks} blocks");
    bench.check_slowest(day).await;
}
