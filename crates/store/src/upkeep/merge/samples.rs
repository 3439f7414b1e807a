//! Rows of samples: columns of values that have the same times stay together, whatever rows they come from.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use tacho_chunk::semantic::{self, Semantic};
use tacho_chunk::{Chunk, Encoding, GroupColumn, Loss, ValueColumn, Values, encode_group_by};
use tacho_model::{TimeRange, Timestamp, ValueType};

use super::picks::{Picks, Ranked, Run, pick};
use super::{Cutting, Made, Merged, Source, Treatment, Unreadable, failed, generation, span_of};
use crate::keys::CHUNK_WIDE_SPAN_MAX_NS;

/// A source whose times are decoded; its values are decoded when they are needed.
struct Opened<'a> {
    /// Its place among all sources.
    place: usize,
    chunk: Chunk<'a>,
}

/// Values of one member at the times of its class.
struct Column {
    member: u16,
    values: ValueColumn,
    loss: Option<Loss>,
    /// What may be given up once a chunk is full.
    semantic: Semantic,
    encoding: Encoding,
}

/// A column and its times, which others may have as well.
type Timed = (Arc<[Timestamp]>, Column);

/// Columns that have the same times.
struct Class {
    at: Arc<[Timestamp]>,
    time_error_max: u64,
    columns: Vec<Column>,
}

pub fn merge(
    sources: &[Source],
    members: &[Treatment],
    until: Timestamp,
    cutting: &Cutting,
) -> Result<Merged, Unreadable> {
    let (mut opened, mut ranked, mut records) = (Vec::new(), Vec::new(), 0);
    for (place, source) in sources.iter().enumerate() {
        let chunk = Chunk::open(&source.chunk).map_err(failed(place))?;
        let times = chunk.times().map_err(failed(place))?;
        records += (times.len() * chunk.header().members.len()) as u64;
        ranked.push(Ranked { rank: (source.key.generation, source.key.number), times });
        opened.push(Opened { place, chunk });
    }
    let part = TimeRange::new(Timestamp::MIN, until);
    let (classes, replaced) = classes(&opened, &ranked, part, members)?;
    let mut merged = Merged { rows: Vec::new(), records, replaced };
    let generation = generation(sources);
    for class in classes {
        merged.rows.extend(encode(&class, cutting).into_iter().map(|row| Made { generation, ..row }));
    }
    merged.rows.sort_by_key(|row| row.start);
    if let Some(after) = until.checked_add(1) {
        let part = TimeRange::new(after, Timestamp::MAX);
        for (place, source) in sources.iter().enumerate() {
            let reaches = opened[place].chunk.header().end > until;
            let rests = if reaches {
                rest(&opened[place..=place], &ranked[place..=place], part, members)?
            } else {
                vec![]
            };
            for class in rests {
                let (generation, rest_of) = (source.key.generation, Some(source.key));
                let rows = encode(&class, cutting);
                merged.rows.extend(rows.into_iter().map(|row| Made { generation, rest_of, ..row }));
            }
        }
    }
    Ok(merged)
}

/// What one source holds after the end of the merge.
fn rest(
    opened: &[Opened<'_>],
    ranked: &[Ranked],
    part: TimeRange,
    members: &[Treatment],
) -> Result<Vec<Class>, Unreadable> {
    // What is old in a rest goes or is thinned out together with what overlaps it: an older value must not come to light.
    let later = |m: &Treatment| Treatment { thin: None, expired_before: Timestamp::MIN, ..m.clone() };
    let whole: Vec<Treatment> = members.iter().map(later).collect();
    classes(opened, ranked, part, &whole).map(|(classes, _)| classes)
}

/// Members that lie in the same sources and are treated alike: they have the same picks.
struct Shape {
    /// Places of the sources.
    chosen: Vec<usize>,
    /// Place of the first treatment that is the same.
    treatment: usize,
    members: Vec<u16>,
}

fn shapes(opened: &[Opened<'_>], members: &[Treatment]) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = Vec::new();
    let here = opened.iter().flat_map(|o| &o.chunk.header().members).map(|info| info.member);
    for member in here.collect::<BTreeSet<u16>>() {
        let treatment = members.get(usize::from(member));
        let treatment = members.iter().position(|m| Some(m) == treatment).unwrap_or(0);
        let holds = |(_, o): &(usize, &Opened<'_>)| o.chunk.header().member(member).is_some();
        let chosen: Vec<usize> = opened.iter().enumerate().filter(holds).map(|(n, _)| n).collect();
        match shapes.iter_mut().find(|shape| shape.chosen == chosen && shape.treatment == treatment) {
            Some(shape) => shape.members.push(member),
            None => shapes.push(Shape { chosen, treatment, members: vec![member] }),
        }
    }
    shapes
}

/// The columns of all members, those with the same times together. Also says how many samples were replaced.
fn classes(
    opened: &[Opened<'_>],
    ranked: &[Ranked],
    part: TimeRange,
    members: &[Treatment],
) -> Result<(Vec<Class>, u64), Unreadable> {
    let (mut classes, mut replaced): (Vec<Class>, u64) = (Vec::new(), 0);
    let untreated = Treatment::default();
    for Shape { chosen, treatment, members: of } in shapes(opened, members) {
        let treatment = members.get(treatment).unwrap_or(&untreated);
        let picks = pick(ranked, &chosen, part, treatment);
        replaced += picks.replaced * of.len() as u64;
        let time_error_max =
            picks.runs.iter().map(|run| opened[run.source].chunk.header().time_error_max).max().unwrap_or(0);
        for member in of {
            for (at, column) in columns(opened, ranked, &picks, member)? {
                let semantic = treatment.semantic.unwrap_or_default();
                let column = Column { semantic, encoding: treatment.chunks.encoding(), ..column };
                for (at, column) in thinned(at, column, treatment) {
                    add(&mut classes, at, time_error_max, column);
                }
            }
        }
    }
    for class in &mut classes {
        class.columns.sort_by_key(|column| column.member);
    }
    Ok((classes, replaced))
}

fn add(classes: &mut Vec<Class>, at: Arc<[Timestamp]>, time_error_max: u64, column: Column) {
    if at.is_empty() {
        return;
    }
    let same = |class: &&mut Class| {
        class.time_error_max == time_error_max && (Arc::ptr_eq(&class.at, &at) || class.at == at)
    };
    match classes.iter_mut().find(same) {
        Some(class) => class.columns.push(column),
        None => classes.push(Class { at, time_error_max, columns: vec![column] }),
    }
}

/// Runs whose values can stand in one column: of one type, and what was given up can be said of all of them.
struct Sort {
    value_type: ValueType,
    loss: Option<Loss>,
    runs: Vec<Run>,
}

/// The columns of one member: nearly always one, with all the times of the picks.
fn columns(
    opened: &[Opened<'_>],
    ranked: &[Ranked],
    picks: &Picks,
    member: u16,
) -> Result<Vec<Timed>, Unreadable> {
    let mut decoded: Vec<Option<ValueColumn>> = Vec::new();
    for (number, source) in opened.iter().enumerate() {
        let needed = picks.runs.iter().any(|run| run.source == number);
        let read = || source.chunk.values(member).map_err(failed(source.place));
        decoded.push(if needed { read()? } else { None });
    }
    let mut sorts: Vec<Sort> = Vec::new();
    for run in &picks.runs {
        let Some(info) = opened[run.source].chunk.header().member(member) else { continue };
        let joined = |sort: &Sort| match (sort.loss, info.loss) {
            _ if sort.value_type != info.value_type => None,
            (Some(a), Some(b)) => a.cover(b).map(Some),
            (a, b) => Some(a.or(b)),
        };
        match sorts.iter_mut().find_map(|sort| joined(sort).map(|loss| (sort, loss))) {
            Some((sort, loss)) => {
                sort.loss = loss;
                sort.runs.push(run.clone());
            }
            None => {
                let (value_type, loss) = (info.value_type, info.loss);
                sorts.push(Sort { value_type, loss, runs: vec![run.clone()] });
            }
        }
    }
    let whole = sorts.len() == 1;
    let column = |sort: Sort| {
        let times = |run: &Run| ranked[run.source].times.part(run.places.clone()).to_vec();
        let at = if whole { picks.at.clone() } else { sort.runs.iter().flat_map(times).collect() };
        (
            at,
            Column {
                member,
                values: gather(&decoded, &sort),
                loss: sort.loss,
                semantic: Semantic::default(),
                encoding: Encoding::thorough(),
            },
        )
    };
    Ok(sorts.into_iter().map(column).collect())
}

/// The values of runs one after the other.
fn gather(decoded: &[Option<ValueColumn>], sort: &Sort) -> ValueColumn {
    fn all<'a, T: Copy + 'a>(runs: &[Run], of: impl Fn(usize) -> Option<&'a [T]>) -> Vec<T> {
        let mut values = Vec::with_capacity(runs.iter().map(|run| run.places.len()).sum());
        for run in runs {
            values.extend_from_slice(
                of(run.source).and_then(|v| v.get(run.places.clone())).unwrap_or_default(),
            );
        }
        values
    }
    let column = |source: usize| decoded.get(source).and_then(Option::as_ref).map(ValueColumn::as_values);
    match sort.value_type {
        ValueType::F64 => ValueColumn::F64(all(&sort.runs, |source| match column(source) {
            Some(Values::F64(v)) => Some(v),
            _ => None,
        })),
        ValueType::I64 => ValueColumn::I64(all(&sort.runs, |source| match column(source) {
            Some(Values::I64(v)) => Some(v),
            _ => None,
        })),
        ValueType::U64 => ValueColumn::U64(all(&sort.runs, |source| match column(source) {
            Some(Values::U64(v)) => Some(v),
            _ => None,
        })),
    }
}

/// A column, and where a rule says so, its old part with one value a step.
fn thinned(at: Arc<[Timestamp]>, column: Column, treatment: &Treatment) -> Vec<Timed> {
    let done = |to| column.loss.and_then(|loss| loss.aggregation) == Some(to);
    let Some((through, to)) = treatment.thin.filter(|(_, to)| !done(*to)) else { return vec![(at, column)] };
    let old = at.partition_point(|at| *at <= through);
    let thin = semantic::aggregate(&at[..old], column.values.clone().part(0..old).as_values(), to);
    let Ok((thin_at, thin_values, thin_loss)) = thin else { return vec![(at, column)] };
    let loss = column.loss.map_or(thin_loss, |before| Loss { aggregation: Some(to), ..before });
    let thin = Column { values: thin_values, loss: Some(loss), ..column };
    let young = Column { values: column.values.part(old..at.len()), ..column };
    vec![(thin_at.into(), thin), (at[old..].into(), young)]
}

/// The chunks of a class: even parts of about as many records as are wanted.
fn encode(class: &Class, cutting: &Cutting) -> Vec<Made> {
    let mut rows = Vec::new();
    for cut in cuts(&class.at, cutting.records) {
        let at = class.at.get(cut.clone()).unwrap_or_default();
        let Some(end) = at.last() else { continue };
        // What is given up is given up once, when the chunk is not expected to be merged again.
        let last = cut.len() >= cutting.records / 3 * 2 || *end < cutting.settled_before;
        let all: Vec<&Column> = class.columns.iter().collect();
        let (movable, fixed): (Vec<&Column>, Vec<&Column>) =
            all.iter().partition(|column| last && column.semantic.time > 0);
        match compacted(at, &movable).filter(|_| class.time_error_max == 0) {
            // The times of the others stay: they have a row of their own.
            Some((moved, error)) => {
                rows.push(row(&moved, error, &movable, cut.clone(), last));
                if !fixed.is_empty() {
                    rows.push(row(at, 0, &fixed, cut, last));
                }
            }
            None => rows.push(row(at, class.time_error_max, &all, cut, last)),
        }
    }
    rows
}

/// A part of some columns, `at` its times.
fn row(at: &[Timestamp], time_error_max: u64, columns: &[&Column], cut: Range<usize>, last: bool) -> Made {
    let part = |column: &&Column| {
        let values = column.values.clone().part(cut.clone());
        let (values, loss) = if last { simplified(values, column) } else { (values, column.loss) };
        (column.member, values, loss)
    };
    let parts: Vec<_> = columns.iter().map(part).collect();
    let made: Vec<GroupColumn<'_>> = parts
        .iter()
        .map(|(member, values, loss)| GroupColumn {
            member: *member,
            values: values.as_values(),
            loss: *loss,
        })
        .collect();
    let of = |n: usize| columns[n].encoding;
    // Times are everybody's: what the rules of some say does not hold for them.
    let agreed = columns.iter().all(|column| column.encoding == of(0));
    let times = if agreed { of(0) } else { Encoding::thorough() };
    let chunk = encode_group_by(at, time_error_max, &made, &times, of);
    let (start, end) = (at[0], at[at.len() - 1]);
    Made {
        span: span_of(start, end),
        start,
        generation: 0,
        rest_of: None,
        records: (at.len() * columns.len()) as u64,
        chunk: chunk.into(),
    }
}

/// Times moved as far as all columns allow; first and last stay where they are, so that chunks do not come to overlap.
/// `None` where they stay as they are.
fn compacted(at: &[Timestamp], columns: &[&Column]) -> Option<(Vec<Timestamp>, u64)> {
    let bound = columns.iter().map(|column| column.semantic.time).min()?;
    let (mut moved, error) = semantic::compact_times(at, bound);
    *moved.last_mut()? = *at.last()?;
    (error > 0 && moved.is_sorted_by(|a, b| a < b)).then_some((moved, error))
}

/// Values moved as far as their rule allows, unless they were before.
fn simplified(values: ValueColumn, column: &Column) -> (ValueColumn, Option<Loss>) {
    let untouched = column.loss.is_none_or(|loss| loss.method.is_none());
    let Some(tolerance) = column.semantic.value.filter(|_| untouched) else { return (values, column.loss) };
    match semantic::simplify(values.as_values(), column.semantic.method, tolerance) {
        Ok((values, loss)) => {
            let aggregation = column.loss.and_then(|loss| loss.aggregation);
            (values, Some(Loss { aggregation, ..loss }))
        }
        Err(_) => (values, column.loss),
    }
}

/// Where to cut: no part is longer than a wide chunk may be, and those of one stretch are of one size.
fn cuts(at: &[Timestamp], records: usize) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let mut from = 0;
    while from < at.len() {
        let reach = at[from].saturating_add_unsigned(CHUNK_WIDE_SPAN_MAX_NS);
        let stretch = at[from..].partition_point(|at| *at <= reach);
        let parts = ((stretch + records / 2) / records.max(1)).max(1);
        cuts.extend((0..parts).map(|n| from + stretch * n / parts..from + stretch * (n + 1) / parts));
        from += stretch;
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_even_and_not_too_long() {
        let lengths =
            |at: &[i64], records| cuts(at, records).into_iter().map(|c| c.len()).collect::<Vec<_>>();
        let at: Vec<i64> = (0..100).collect();
        assert_eq!(lengths(&at, 100), [100]);
        assert_eq!(lengths(&at, 70), [100]);
        assert_eq!(lengths(&at, 66), [50, 50]);
        assert_eq!(lengths(&at, 30), [33, 33, 34]);
        assert_eq!(lengths(&at, 1_000), [100]);
        assert_eq!(lengths(&[], 10), [] as [usize; 0]);
        let wide = CHUNK_WIDE_SPAN_MAX_NS.cast_signed();
        assert_eq!(lengths(&[0, wide, wide + 1, i64::MAX], 10), [2, 1, 1]);
        assert_eq!(lengths(&[i64::MIN, i64::MAX], 10), [1, 1]);
    }
}
