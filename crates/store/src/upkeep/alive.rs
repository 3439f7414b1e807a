//! Decides which rows of a partition are alive and which are dead. Dead rows wait for their deletion.
//!
//! The decision depends only on the rows (`docs/format/keys.md`, Replacement), so it is the same after a crash.

use crate::group::row::Replacement;
use crate::keys::ChunkKey;
use crate::mutation::Mutation;

/// Returns for each row whether it is alive. Each row is given with its replacement and its own merge number.
///
/// The result for a row is correct only if the list has all rows of the partition, of all span classes, that start at or
/// before the end of the row. Every merge that replaces this row then has a row in the list.
pub fn alive(rows: &[(ChunkKey, Option<Replacement>, u64)]) -> Vec<bool> {
    let mut alive = vec![true; rows.len()];
    let is_single = rows.iter().all(|(_, replacement, _)| replacement.is_none());
    if is_single || Mutation::MergesCountedTwice.is_on() {
        return alive;
    }
    let mut by_start: Vec<_> = rows.iter().zip(&mut alive).collect();
    by_start.sort_by_key(|((key, ..), _)| key.start);
    for replacement in rows.iter().filter_map(|(_, replacement, _)| *replacement) {
        let starts = replacement.starts;
        let first = by_start.partition_point(|((key, ..), _)| key.start < starts.start);
        let (_, from) = by_start.split_at_mut(first);
        let meant = from.iter_mut().take_while(|((key, ..), _)| key.start <= starts.end);
        for ((key, _, merge), is_alive) in meant {
            if replacement.replaces(key, *merge) {
                **is_alive = false;
            }
        }
    }
    alive
}

#[cfg(test)]
mod tests {
    use tacho_model::TimeRange;

    use super::*;
    use crate::keys::Span;

    #[test]
    fn merged_rows_replace_their_sources_of_any_span() {
        let key = |span, start, generation| ChunkKey { span, start, generation, number: 0 };
        let merged =
            |merge, from, to, through| Some(Replacement { merge, starts: TimeRange::new(from, to), through });
        let rows = [
            (key(Span::Short, 0, 1), None),
            (key(Span::Short, 5, 2), None),
            (key(Span::Short, 5, 3), None),
            (key(Span::Short, 9, 1), None),
            (key(Span::Wide, 0, 2), merged(1, 0, 8, 2)),
            (key(Span::Wide, 7, 2), merged(1, 0, 8, 2)),
            (key(Span::Short, 20, 4), merged(2, 20, 20, 4)),
            (key(Span::Short, 20, 4), merged(1, 18, 20, 4)),
        ];
        let rows =
            rows.map(|(key, own): (ChunkKey, Option<Replacement>)| (key, own, own.map_or(0, |r| r.merge)));
        assert_eq!(alive(&rows), [false, false, true, true, true, true, true, false]);
        assert_eq!(alive(&rows[..4]), [true; 4]);
    }
}
