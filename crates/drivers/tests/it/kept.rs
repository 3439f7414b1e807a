//! Calls expire, and their summaries are kept: a read with summaries counts the same calls before and after.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use tacho_model::{Event, EventKind, Matcher, Random, Segment, TimeRange};
use tacho_store::policy::{Policies, Retention, Rule};
use tacho_store::{Needed, Options, Row, Summed, SummedOf};

use crate::calls::{Bench, batch, damage, labels, segment};

const HOUR: i64 = 3_600_000_000_000;
const DAY: i64 = 24 * HOUR;
const KEEP_DAYS: i64 = 2;
const SUMMARY_DAYS: i64 = 6;

/// A store that works only if a test orders it. The calls of service c have no rule.
fn bench() -> Bench {
    let then = Retention {
        keep: (KEEP_DAYS * DAY).cast_unsigned(),
        summaries: Some((SUMMARY_DAYS * DAY).cast_unsigned()),
    };
    let matcher = Matcher::new("service", tacho_model::MatchOp::Regex, "a|b").unwrap();
    let policies =
        Policies { retention: vec![Rule { matchers: vec![matcher], then }], ..Policies::default() };
    Bench::with(Options { merge_in_background: false, policies: policies.into(), ..Options::default() })
}

/// The calls that were stored and not deleted: service, start and duration.
#[derive(Default)]
struct Calls(Vec<(usize, i64, u64)>);

impl Calls {
    async fn add(&mut self, bench: &Bench, service: usize, numbers: std::ops::Range<u64>, starts: &[i64]) {
        let segments = numbers.clone().zip(starts).map(|(number, start)| segment(number, *start));
        bench.store().append(batch(service, segments.collect()), None).await.unwrap();
        self.0.extend(numbers.zip(starts).map(|(number, start)| (service, *start, number % 977)));
    }

    /// Number and sum of the durations of the calls in a range, if those of services a and b before a time have expired.
    fn count(&self, range: TimeRange, expired_before: i64) -> [u64; 2] {
        let counted = self.0.iter().filter(|(service, start, _)| {
            range.contains(*start) && (*service == 2 || *start >= expired_before)
        });
        counted.fold([0, 0], |[count, sum], (.., duration)| [count + 1, sum + duration])
    }
}

/// The start of the oldest day that has not expired at this time.
fn expired_before(now: i64, days: i64) -> i64 {
    (now - days * DAY).div_euclid(DAY) * DAY
}

#[tokio::test]
async fn kept_summaries_count_the_expired_calls() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let (mut bench, mut calls) = (bench(), Calls::default());
        bench.now = 20 * DAY;
        bench.open().await;
        for step in 0..120 {
            match random.below(20) {
                0..14 => {
                    let oldest = expired_before(bench.now, KEEP_DAYS);
                    let hours = (bench.now - oldest).div_euclid(HOUR).cast_unsigned();
                    let from = oldest + random.below(hours).cast_signed() * HOUR;
                    let starts: Vec<i64> = (0..4).map(|n| (from + n * HOUR * 2 / 5).min(bench.now)).collect();
                    let service = random.below(3) as usize;
                    calls.add(&bench, service, step * 4..step * 4 + 4, &starts).await;
                    if random.below(3) > 0 {
                        bench.store().flush().await.unwrap();
                    }
                }
                14 => drop(bench.store().merge_all().await.unwrap()),
                15 => {
                    let from = (bench.now.div_euclid(HOUR) - random.below(100).cast_signed()) * HOUR;
                    let range = TimeRange::new(from, from + 3 * HOUR - 1);
                    bench.store().delete(&[Matcher::equal("service", "a")], range).await.unwrap();
                    // A deletion removes the kept summaries of whole hours.
                    calls.0.retain(|(service, start, _)| *service != 0 || !range.contains(*start));
                }
                _ => {
                    bench.now += random.below(30).cast_signed() * HOUR;
                    bench.open().await;
                    bench.store().sweep().await.unwrap();
                }
            }
            let (oldest, oldest_summary) =
                (expired_before(bench.now, KEEP_DAYS), expired_before(bench.now, SUMMARY_DAYS));
            let hours =
                [random.below(400), random.below(400)].map(|hour| hour.cast_signed() * HOUR + 10 * DAY);
            let range = TimeRange::new(hours[0].min(hours[1]), hours[0].max(hours[1]) - 1);
            for range in [range, TimeRange::ALL] {
                let place = format!("seed {seed} step {step} {range:?}");
                assert_eq!(bench.count(range, true).await.0, calls.count(range, oldest_summary), "{place}");
                kept += calls.count(range, oldest_summary)[0] - calls.count(range, oldest)[0];
                lost += calls.count(range, i64::MIN)[0] - calls.count(range, oldest_summary)[0];
            }
        }
    }
    assert!(
        kept > 10_000 && lost > 1_000,
        "{kept} calls from kept summaries, {lost} calls expired with them"
    );
}

/// Four calls in each of the first hours of the days from 10 to 14, which have expired at the end.
async fn five_days(bench: &mut Bench) -> Calls {
    let mut calls = Calls::default();
    bench.now = 14 * DAY + 12 * HOUR;
    bench.open().await;
    for day in 10..15 {
        for hour in 0..4 {
            let start = day * DAY + hour * HOUR;
            let number = (day * 1_000 + hour * 10).cast_unsigned();
            calls
                .add(bench, 0, number..number + 4, &[start, start + 1, start + HOUR / 2, start + HOUR - 1])
                .await;
        }
    }
    bench.store().flush().await.unwrap();
    bench.now = 17 * DAY + 12 * HOUR;
    bench.open().await;
    // Fails in the test that refuses puts.
    let _ = bench.store().sweep().await;
    calls
}

/// The rows of kept summaries of service a.
async fn rows(bench: &Bench) -> Vec<Row> {
    bench.meta([b"kept", &labels(0).id().to_bytes()[..]].concat()).await
}

fn days(from: i64, to: i64) -> TimeRange {
    TimeRange::new(from * DAY, to * DAY - 1)
}

#[tokio::test]
async fn a_day_has_one_kept_summary_for_long_ranges() {
    let mut bench = bench();
    let calls = five_days(&mut bench).await;
    // Day 10 has expired with its summaries before they were kept.
    assert_eq!(rows(&bench).await.len(), 4 * (1 + 4));
    let expect = |range| calls.count(range, 11 * DAY);
    for (range, used) in [
        (TimeRange::ALL, 4),
        (days(11, 15), 4),
        (days(12, 13), 1),
        // The last three hours of day 11, and day 12.
        (TimeRange::new(11 * DAY + HOUR, 13 * DAY - 1), 3 + 1),
        (TimeRange::new(12 * DAY + HOUR, 12 * DAY + 2 * HOUR - 1), 1),
    ] {
        let (counted, summaries, _) = bench.count(range, true).await;
        assert_eq!((counted, summaries), (expect(range), used), "{range:?}");
    }
    // An hour counts as a whole.
    let cut = TimeRange::new(12 * DAY + HOUR / 2, 12 * DAY + HOUR / 2);
    assert_eq!(bench.count(cut, true).await.0[0], 4);
    assert_eq!(bench.count(TimeRange::ALL, false).await.0, [0, 0], "the calls themselves have expired");
}

#[tokio::test]
async fn a_damaged_hour_is_told_and_a_damaged_day_is_read_by_hours() {
    for (level, is_whole) in [(0, true), (1, false)] {
        let mut bench = bench();
        let calls = five_days(&mut bench).await;
        let row = rows(&bench).await.into_iter().find(|row| row.clustering[1] == level).unwrap();
        bench.open().await;
        let mut flipped = false;
        let flip = |bytes: &mut [u8]| {
            if bytes.starts_with(&row.value) && !std::mem::replace(&mut flipped, true) {
                bytes[20] ^= 1;
            }
        };
        damage(&bench.directory.path().join("chunks"), b"TKEP", flip);
        assert!(flipped);
        let range = if level == 0 { days(11, 12) } else { TimeRange::new(11 * DAY, 11 * DAY + 2 * HOUR - 1) };
        match bench.try_count(range, true).await {
            Ok((counted, ..)) => assert_eq!((counted, is_whole), (calls.count(range, 11 * DAY), true)),
            Err(error) => assert!(!is_whole && error.to_string().contains("service=\"a\""), "{error}"),
        }
    }
}

#[tokio::test]
async fn calls_stay_until_their_summaries_are_stored() {
    let mut bench = bench();
    bench.refuse(b"summed-until");
    let calls = five_days(&mut bench).await;
    for _ in 0..2 {
        assert!(bench.store().sweep().await.is_err());
        assert_eq!(rows(&bench).await, []);
        assert_eq!(bench.count(TimeRange::ALL, false).await.0, calls.count(TimeRange::ALL, i64::MIN));
        assert_eq!(bench.count(TimeRange::ALL, true).await.0, calls.count(TimeRange::ALL, i64::MIN));
        bench.open().await;
    }
    bench.refuse(b"nothing");
    bench.store().sweep().await.unwrap();
    assert_eq!(bench.count(TimeRange::ALL, true).await.0, calls.count(TimeRange::ALL, 11 * DAY));
}

#[tokio::test]
async fn days_are_not_summed_again_if_their_end_is_lost() {
    let mut bench = bench();
    let calls = five_days(&mut bench).await;
    bench.delete_meta(b"summed-until").await;
    bench.open().await;
    // The late call expires. Its day is known to be summed.
    let mut late = Calls::default();
    late.add(&bench, 0, 7..8, &[12 * DAY]).await;
    bench.store().flush().await.unwrap();
    bench.store().sweep().await.unwrap();
    assert_eq!(bench.count(days(11, 13), true).await.0, calls.count(days(11, 13), 11 * DAY));
}

#[tokio::test]
async fn a_series_stays_until_its_summaries_expire() {
    let mut bench = bench();
    five_days(&mut bench).await;
    let executions = |bench: &Bench| bench.store().stats().series[2];
    assert_eq!(executions(&bench), 1);
    bench.now = 20 * DAY + 12 * HOUR;
    bench.open().await;
    bench.store().sweep().await.unwrap();
    assert_eq!((executions(&bench), rows(&bench).await.len()), (1, 5), "only day 14 is left");
    bench.now = 21 * DAY + 12 * HOUR;
    bench.open().await;
    bench.store().sweep().await.unwrap();
    assert_eq!((executions(&bench), rows(&bench).await.len()), (0, 0));
    assert_eq!(bench.meta(b"summed-until".to_vec()).await, []);
}

/// The hours of service a in a range: the calls of each kept summary, and whether it has minutes.
async fn hours(bench: &Bench, range: TimeRange) -> Vec<(u64, bool)> {
    let found = Mutex::new(Vec::new());
    let accept = |summed: Result<Summed<'_>, String>| {
        let Summed { summary, of } = summed.unwrap();
        let is_hour = matches!(of, SummedOf::Hour { lacks_calls: false, .. });
        if is_hour {
            let calls = summary.cells.iter().map(|cell| cell.count).sum();
            found.lock().unwrap().push((calls, summary.is_by_minute()));
        }
        is_hour
    };
    let room = AtomicUsize::new(usize::MAX);
    let needed = (Needed::Unsummarized(&accept), &(|_, _| ()) as tacho_store::Steps<'_>);
    bench.store().executions_of(labels(0).id(), range, &room, needed, |_| true).await.unwrap();
    found.into_inner().unwrap()
}

/// A segment of one call that lasts some hours.
fn long(number: u64, start: i64, hours: u64) -> Segment {
    let exit = Event { delta: hours * HOUR.cast_unsigned(), kind: EventKind::Exit };
    Segment { events: vec![Event { delta: 0, kind: EventKind::Enter(0) }, exit], ..segment(number, start) }
}

/// Chunks of 600 calls in a minute have summaries with the durations of this minute. The upkeep adds these summaries. 70 chunks
/// of an hour are more than it keeps in memory.
#[tokio::test]
async fn summaries_of_chunks_and_roll_ups_are_added() {
    let mut bench = bench();
    let mut calls = Calls::default();
    bench.now = 12 * DAY;
    bench.open().await;
    for chunk in 0..75i64 {
        // The first 70 chunks are in one hour, the others in the next ones.
        let start =
            10 * DAY + chunk.min(70 + (chunk - 70).max(0) * 60) * 45_000_000_000 + (chunk - 70).max(0) * HOUR;
        let starts: Vec<i64> = (0..600).map(|n| start + n * 10_000_000).collect();
        let first = chunk.cast_unsigned() * 600;
        calls.add(&bench, 0, first..first + 600, &starts).await;
        bench.store().flush().await.unwrap();
    }
    bench.store().sweep().await.unwrap();
    let before = bench.count(TimeRange::ALL, true).await;
    assert!(before.1 < 30, "{} summaries: roll-ups are used", before.1);
    bench.now = 15 * DAY;
    bench.open().await;
    bench.store().sweep().await.unwrap();
    assert_eq!(bench.count(TimeRange::ALL, true).await.0, before.0);
    assert_eq!(before.0, calls.count(TimeRange::ALL, i64::MIN));
    let found = hours(&bench, TimeRange::new(10 * DAY, 10 * DAY + 20 * HOUR)).await;
    assert_eq!(found.iter().map(|(calls, _)| calls).sum::<u64>(), 75 * 600);
    assert!(found.len() > 3 && found.iter().all(|(_, is_by_minute)| *is_by_minute), "{found:?}");
}

#[tokio::test]
async fn long_segments_do_not_take_the_minutes_of_others() {
    let mut bench = bench();
    bench.now = 12 * DAY;
    bench.open().await;
    let start = 10 * DAY + 22 * HOUR;
    let short = (0..300).map(|n| segment(n, start + n.cast_signed() * 1_000_000_000));
    // One ends in the next hour, one on the next day, and one five hours later.
    let segments = short.chain([long(300, start, 1), long(301, start, 2), long(302, start, 5)]);
    bench.store().append(batch(0, segments.collect()), None).await.unwrap();
    bench.store().flush().await.unwrap();
    bench.now = 15 * DAY;
    bench.open().await;
    bench.store().sweep().await.unwrap();
    let hour = TimeRange::new(start, start + HOUR - 1);
    let mut found = hours(&bench, hour).await;
    found.sort_unstable();
    assert_eq!(found, [(1, false), (302, true)]);
    assert_eq!(bench.count(days(10, 13), true).await.0[0], 303);
}

#[tokio::test]
async fn a_deletion_removes_the_hours_that_it_touches() {
    let mut bench = bench();
    let calls = five_days(&mut bench).await;
    // The hour that begins with the end of the deletion stays.
    let half = TimeRange::new(12 * DAY + HOUR / 2, 12 * DAY + 2 * HOUR);
    assert_eq!(bench.store().deleted_hours(labels(0).id(), half).await.unwrap(), 2);
    bench.store().delete(&[Matcher::equal("service", "a")], half).await.unwrap();
    for _ in 0..2 {
        let rest = TimeRange::new(12 * DAY + 2 * HOUR, 15 * DAY - 1);
        let touched = TimeRange::new(12 * DAY, 12 * DAY + 2 * HOUR - 1);
        assert_eq!(bench.count(touched, true).await.0, [0, 0]);
        assert_eq!(bench.count(rest, true).await.0, calls.count(rest, 11 * DAY));
        assert_eq!(bench.count(days(11, 15), true).await.0[0], 4 * 16 - 2 * 4);
        bench.open().await;
        bench.store().sweep().await.unwrap();
    }
}

#[tokio::test]
async fn a_clock_that_was_ahead_does_not_hide_later_calls() {
    let mut bench = bench();
    five_days(&mut bench).await;
    bench.now = 900 * DAY;
    bench.open().await;
    bench.store().confirm_clock().await.unwrap();
    bench.store().sweep().await.unwrap();
    bench.now = 17 * DAY + 12 * HOUR;
    bench.open().await;
    bench.store().confirm_clock().await.unwrap();
    let mut later = Calls::default();
    later.add(&bench, 0, 7..9, &[16 * DAY, 17 * DAY]).await;
    assert_eq!(bench.count(TimeRange::ALL, true).await.0, later.count(TimeRange::ALL, 0));
}

/// Calls of an earlier day that are still in memory expire with their summaries, too.
#[tokio::test]
async fn calls_in_memory_are_summed_up() {
    let mut bench = bench();
    bench.now = 12 * DAY;
    bench.open().await;
    let mut calls = Calls::default();
    calls.add(&bench, 0, 0..1, &[10 * DAY]).await;
    bench.store().flush().await.unwrap();
    calls.add(&bench, 0, 1..2, &[9 * DAY]).await;
    bench.set_now(14 * DAY);
    bench.store().sweep().await.unwrap();
    assert_eq!(bench.count(TimeRange::ALL, true).await.0, calls.count(TimeRange::ALL, 0));
    assert_eq!(rows(&bench).await.len(), 4);
}
