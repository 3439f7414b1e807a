//! Merges rows of samples. Columns of values with the same times stay together, regardless of their source rows.
//!
//! A rule changes a value or a time once (`lossy.rs`). Each column records which of its values are exact. Each class, the
//! columns with the same times, records which of these times are exact. Only exact values and times are changed, so that
//! errors never add up.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use tacho_chunk::semantic::{self, Movement, Semantic};
use tacho_chunk::{Chunk, Loss, Times, Tolerance, ValueColumn, Values};
use tacho_model::{TimeRange, Timestamp, ValueType};

use super::columns::{Class, Column, Moving, Shifted, holds, within};
use super::lossy::encode;
use super::picks::{Picks, Ranked, Run, pick};
use super::rows::{Cutting, Made, Merged, Source, Treatment, Unreadable, failed};
use crate::group::resent::{Moved, Timed, recognise};

/// A source. Its decoded times are in a [`Ranked`]; its values are decoded when they are needed.
struct Opened<'a> {
    place: usize,
    chunk: Chunk<'a>,
    generation: u64,
    moved: Option<Moved>,
    /// Whether no merge has read its samples before.
    is_fresh: bool,
}

/// A column and its times. Several columns may share the times.
type TimedColumn = (Arc<[Timestamp]>, Column);

pub fn merge(
    sources: &[Source],
    members: &[Treatment],
    lives: &[Movement],
    until: Timestamp,
    cutting: &Cutting,
) -> Result<Merged, Unreadable> {
    let (mut opened, mut ranked, mut records) = (Vec::new(), Vec::new(), 0);
    for (place, source) in sources.iter().enumerate() {
        let chunk = Chunk::open(&source.chunk).map_err(failed(place))?;
        let times = chunk.times().map_err(failed(place))?;
        let header = chunk.header();
        records += (times.len() * header.members.len()) as u64;
        ranked.push(Ranked { rank: (source.key.generation, source.key.number), times });
        let range = TimeRange::new(header.start, header.end);
        let moved = Moved::new(range, header.time_error_max, source.overhang);
        let generation = source.key.generation;
        opened.push(Opened { place, chunk, generation, moved, is_fresh: source.is_fresh() });
    }
    let shapes = shapes(&opened, &ranked, members);
    let part = TimeRange::new(Timestamp::MIN, until);
    let mut all = Gathered::default();
    all.gather(&opened, &shapes, part, &Rules { members, lives })?;
    let (moved, replaced) = (all.movements, all.replaced);
    let mut merged = Merged { rows: Vec::new(), records, replaced, moved };
    for class in all.classes {
        let generation = class.generation;
        merged.rows.extend(encode(&class, cutting).into_iter().map(|row| Made { generation, ..row }));
    }
    merged.rows.sort_by_key(|row| row.start);
    if let Some(after) = until.checked_add(1) {
        let part = TimeRange::new(after, Timestamp::MAX);
        for (place, source) in sources.iter().enumerate() {
            for class in rest(&opened, place, &shapes, part, members)? {
                let (generation, rest_of) = (source.key.generation, Some(source.key));
                let rows = encode(&class, cutting);
                merged.rows.extend(rows.into_iter().map(|row| Made { generation, rest_of, ..row }));
            }
        }
    }
    Ok(merged)
}

/// The samples of one source after the end of the merge. A resent sample counts with the time to which its original was
/// moved. The time that was sent may be on the other side of the end.
fn rest(
    opened: &[Opened<'_>],
    place: usize,
    shapes: &[Shape],
    part: TimeRange,
    members: &[Treatment],
) -> Result<Vec<Class>, Unreadable> {
    let alone = |shape: &Shape| {
        let reaches = shape.ranked.get(place).and_then(|ranked| ranked.times.last());
        let reaches = reaches.is_some_and(|last| part.contains(last));
        (reaches && shape.chosen.contains(&place)).then(|| Shape { chosen: vec![place], ..shape.clone() })
    };
    let shapes: Vec<Shape> = shapes.iter().filter_map(alone).collect();
    if shapes.is_empty() {
        return Ok(Vec::new());
    }
    // Old samples of this rest are dropped or downsampled by a later merge, together with the samples that they
    // overlap. Otherwise an older value could reappear. No time is moved, because samples between the times of the rest
    // are unknown here.
    let later =
        |m: &Treatment| Treatment { thin: None, expired_before: Timestamp::MIN, semantic: None, ..m.clone() };
    let whole: Vec<Treatment> = members.iter().map(later).collect();
    let mut all = Gathered::default();
    all.gather(opened, &shapes, part, &Rules { members: &whole, lives: &[] })?;
    Ok(all.classes)
}

/// The rules for the members of the group, and the known changes and descents of their values.
struct Rules<'a> {
    members: &'a [Treatment],
    lives: &'a [Movement],
}

/// Members that are in the same sources and have the same treatment. The same samples are picked for them.
#[derive(Clone)]
struct Shape {
    /// Indices of the sources with these members.
    chosen: Vec<usize>,
    /// Index of the first member of the group with this treatment.
    treatment: usize,
    members: Vec<u16>,
    /// For each source, the times of its samples for these members. Resent samples have the times to which their
    /// originals were moved.
    ranked: Arc<[Ranked]>,
}

fn shapes(opened: &[Opened<'_>], ranked: &[Ranked], members: &[Treatment]) -> Vec<Shape> {
    let plain: Arc<[Ranked]> = ranked.into();
    let mut shapes: Vec<Shape> = Vec::new();
    let here = opened.iter().flat_map(|o| &o.chunk.header().members).map(|info| info.member);
    for member in here.collect::<BTreeSet<u16>>() {
        let treatment = members.get(usize::from(member));
        let treatment = members.iter().position(|m| Some(m) == treatment).unwrap_or(0);
        let holds = |(_, o): &(usize, &Opened<'_>)| o.chunk.header().member(member).is_some();
        let chosen: Vec<usize> = opened.iter().enumerate().filter(holds).map(|(n, _)| n).collect();
        match shapes.iter_mut().find(|shape| shape.chosen == chosen && shape.treatment == treatment) {
            Some(shape) => shape.members.push(member),
            None => {
                shapes.push(Shape { chosen, treatment, members: vec![member], ranked: plain.clone() });
            }
        }
    }
    let untreated = Treatment::default();
    for shape in &mut shapes {
        let treatment = members.get(shape.treatment).unwrap_or(&untreated);
        if let Some(settled) = settled(opened, ranked, &shape.chosen, treatment) {
            shape.ranked = settled.into();
        }
    }
    shapes
}

/// The columns of all members, grouped by equal times.
#[derive(Default)]
struct Gathered {
    classes: Vec<Class>,
    /// Samples replaced by later samples.
    replaced: u64,
    movements: Vec<(u16, Movement)>,
}

impl Gathered {
    fn gather(
        &mut self,
        opened: &[Opened<'_>],
        shapes: &[Shape],
        part: TimeRange,
        rules: &Rules<'_>,
    ) -> Result<(), Unreadable> {
        let untreated = Treatment::default();
        let generation = opened.iter().map(|source| source.generation).max().unwrap_or(0);
        for Shape { chosen, treatment, members: of, ranked } in shapes {
            let treatment = rules.members.get(*treatment).unwrap_or(&untreated);
            let picks = pick(ranked, chosen, part, treatment);
            self.replaced += picks.replaced * of.len() as u64;
            let shifted = |source: &usize| {
                let (row, times) = (opened.get(*source)?.moved?, ranked.get(*source)?.times.clone());
                Some(Shifted { row, times })
            };
            let mut moved: Vec<Shifted> = chosen.iter().filter_map(shifted).collect();
            moved.sort_by_key(|moved| moved.row.range.start);
            let is_apart = |source: usize, at| {
                let amid = |moved: &Shifted| moved.row.parts(&moved.times, at);
                opened.get(source).is_some_and(|source| source.moved.is_none())
                    && moved.iter().any(amid)
                    && !moved.iter().any(|moved| moved.has(at))
            };
            let (main, apart) = if moved.is_empty() { (picks, None) } else { picks.split(is_apart) };
            let main = (main, Moving { moved: moved.into(), stays: false }, generation);
            // Samples that arrived before the moved ones must not get a later generation than the rest of the moved row.
            // Otherwise they could be mistaken for resent copies of samples of that rest.
            let newest = |picks: &Picks| {
                let sources = picks.runs.iter().filter_map(|run| opened.get(run.source));
                sources.map(|source| source.generation).max()
            };
            let apart = apart.map(|picks| {
                let generation = newest(&picks).unwrap_or(generation);
                (picks, Moving { stays: true, ..Moving::default() }, generation)
            });
            for member in of {
                for (picks, moving, generation) in [Some(&main), apart.as_ref()].into_iter().flatten() {
                    let columns = columns(opened, ranked, picks, *member, treatment, rules)?;
                    // If columns of one member interleave and their times were moved separately, samples could not be
                    // assigned to their originals.
                    let stays = moving.stays || interlace(columns.iter().map(|(at, ..)| &**at));
                    let moving = Moving { stays, ..moving.clone() };
                    for (at, column, movement) in columns {
                        self.movements.extend(movement.map(|movement| (*member, movement)));
                        for (at, column) in thinned(at, column, treatment) {
                            self.add(at, &moving, *generation, column);
                        }
                    }
                }
            }
        }
        for class in &mut self.classes {
            class.columns.sort_by_key(|column| column.member);
        }
        Ok(())
    }

    fn add(&mut self, at: Arc<[Timestamp]>, times: &Moving, generation: u64, column: Column) {
        if at.is_empty() {
            return;
        }
        let same = |class: &&mut Class| {
            class.generation == generation
                && class.times == *times
                && (Arc::ptr_eq(&class.at, &at) || class.at == at)
        };
        match self.classes.iter_mut().find(same) {
            Some(class) => class.columns.push(column),
            None => self.classes.push(Class { at, times: times.clone(), generation, columns: vec![column] }),
        }
    }
}

/// Whether the time ranges of some of these ascending columns overlap.
fn interlace<'a>(columns: impl Iterator<Item = &'a [Timestamp]>) -> bool {
    let mut ranges: Vec<_> = columns.filter_map(|at| Some((*at.first()?, *at.last()?))).collect();
    ranges.sort_unstable();
    !ranges.is_sorted_by(|a, b| a.1 < b.0)
}

/// The times of the sources. Resent copies of moved samples have the moved times. `None` if no source has moved times.
fn settled(
    opened: &[Opened<'_>],
    ranked: &[Ranked],
    chosen: &[usize],
    treatment: &Treatment,
) -> Option<Vec<Ranked>> {
    let chosen = || chosen.iter().filter_map(|n| Some((*n, opened.get(*n)?, ranked.get(*n)?)));
    if chosen().all(|(_, source, _)| source.moved.is_none()) {
        return None;
    }
    // A sample that was dropped and arrives again is new, not resent.
    let times = |(_, source, Ranked { rank, times }): (_, &Opened<'_>, &Ranked)| {
        let is_left = |at: &Timestamp| !treatment.drops(rank.0, *at);
        if source.moved.is_none() || times.iter().all(|at| is_left(&at)) {
            return times.clone();
        }
        Times::new(&times.iter().filter(is_left).collect::<Vec<_>>()).unwrap_or_else(|| times.clone())
    };
    let left: Vec<Times> = chosen().map(times).collect();
    let timed = chosen().zip(&left).map(|((_, source, ranked), times)| Timed {
        place: ranked.rank,
        times,
        moved: source.moved,
    });
    let known = recognise(&timed.collect::<Vec<_>>());
    let mut settled = ranked.to_vec();
    for ((n, ..), times) in chosen().zip(known) {
        if let (Some(times), Some(settled)) = (times, settled.get_mut(n)) {
            settled.times = times;
        }
    }
    Some(settled)
}

/// Runs with values that can share a column: values of one type, and one loss for all of them.
struct Sort {
    value_type: ValueType,
    loss: Option<Loss>,
    runs: Vec<Run>,
}

fn sorts(opened: &[Opened<'_>], picks: &Picks, member: u16, semantic: Semantic) -> Vec<Sort> {
    let mut sorts: Vec<Sort> = Vec::new();
    // Values may share a column only if one loss can cover all of them, because exact values may be
    // changed later.
    let may_join = |loss: Loss| match (semantic.value, loss.bound) {
        _ if loss.method.is_none() => true,
        (Some(Tolerance::Absolute(_)), Tolerance::Relative(_)) => false,
        (Some(Tolerance::Relative(_)), Tolerance::Absolute(_)) => false,
        _ => true,
    };
    for run in &picks.runs {
        let source = opened.get(run.source);
        let Some(info) = source.and_then(|source| source.chunk.header().member(member)) else { continue };
        let joined = |sort: &Sort| match (sort.loss, info.loss) {
            _ if sort.value_type != info.value_type => None,
            (Some(a), Some(b)) => a.cover(b).map(Some),
            (Some(loss), None) | (None, Some(loss)) => may_join(loss).then_some(Some(loss)),
            (None, None) => Some(None),
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
    sorts
}

/// A column of a member, its times, and, if they are counted, the changes and descents in its new samples.
type Counted = (Arc<[Timestamp]>, Column, Option<Movement>);

/// The columns of one member. There is usually one column with all times of the picks.
fn columns(
    opened: &[Opened<'_>],
    ranked: &[Ranked],
    picks: &Picks,
    member: u16,
    treatment: &Treatment,
    rules: &Rules<'_>,
) -> Result<Vec<Counted>, Unreadable> {
    let mut decoded: Vec<Option<ValueColumn>> = Vec::new();
    for (number, source) in opened.iter().enumerate() {
        let needed = picks.runs.iter().any(|run| run.source == number);
        let read = || source.chunk.values(member).map_err(failed(source.place));
        decoded.push(if needed { read()? } else { None });
    }
    let semantic = treatment.semantic.unwrap_or_default();
    let sorts = sorts(opened, picks, member, semantic);
    let whole = sorts.len() == 1;
    let life = rules.lives.get(usize::from(member)).copied().unwrap_or_default();
    let column = |sort: Sort| {
        let times = |run: &Run| {
            let ranked = ranked.get(run.source);
            ranked.map_or_else(Vec::new, |ranked| ranked.times.part(run.places.clone()).to_vec())
        };
        let at = if whole { picks.at.clone() } else { sort.runs.iter().flat_map(times).collect() };
        let values = gather(&decoded, &sort);
        let untouched = |source: usize| {
            let info = opened.get(source).and_then(|source| source.chunk.header().member(member));
            let loss = info.and_then(|info| info.loss);
            loss.is_none_or(|loss| loss.method.is_none())
        };
        let exact = places(&sort.runs, untouched);
        let counted = |source: usize| {
            life == Movement::default() || opened.get(source).is_some_and(|source| source.is_fresh)
        };
        let new = semantic.value.map(|_| {
            let counted = places(&sort.runs, counted);
            Movement::among(values.as_values(), |place| holds(&counted, &(place..place + 1)))
        });
        let is_gauge = new.is_some_and(|new| life.and(new).is_gauge());
        let value = semantic.value.filter(|_| is_gauge);
        let semantic = Semantic { value, ..semantic };
        let encoding = treatment.chunks.encoding();
        (at, Column { member, values, loss: sort.loss, exact, semantic, encoding }, new)
    };
    Ok(sorts.into_iter().map(column).collect())
}

/// Where a column has the values of the sources that `holds` accepts, as index ranges.
fn places(runs: &[Run], holds: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let (mut places, mut from): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
    for run in runs {
        let here = from..from + run.places.len();
        from = here.end;
        if holds(run.source) {
            match places.last_mut().filter(|last| last.end == here.start) {
                Some(last) => last.end = here.end,
                None => places.push(here),
            }
        }
    }
    places
}

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

/// The column. If a rule requires downsampling, two columns replace it: its downsampled old part, and its young part.
fn thinned(at: Arc<[Timestamp]>, column: Column, treatment: &Treatment) -> Vec<TimedColumn> {
    let done = |to| column.loss.and_then(|loss| loss.aggregation) == Some(to);
    let Some((through, to)) = treatment.thin.filter(|(_, to)| !done(*to)) else { return vec![(at, column)] };
    let old = at.partition_point(|at| *at <= through);
    let (old_at, young_at) = at.split_at(old);
    let thin = semantic::aggregate(old_at, column.values.copy_of(0..old).as_values(), to);
    let Ok((thin_at, thin_values, thin_loss)) = thin else { return vec![(at, column)] };
    let loss = column.loss.map_or(thin_loss, |before| Loss { aggregation: Some(to), ..before });
    let exact = exact_steps(old_at, &thin_at, &column.exact);
    let thin = Column { values: thin_values, loss: Some(loss), exact, ..column };
    let exact = within(&column.exact, &(old..at.len()));
    let young = Column { values: column.values.part(old..at.len()), exact, ..column };
    vec![(thin_at.into(), thin), (young_at.into(), young)]
}

/// Indices of the steps that contain only exact values. Each step ends at one of the times in `thin`; `exact` lists the
/// exact indices.
fn exact_steps(at: &[Timestamp], thin: &[Timestamp], exact: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut from = 0;
    let mut is_exact = |end: &Timestamp| {
        let step = from..at.partition_point(|at| at <= end);
        from = step.end;
        holds(exact, &step)
    };
    let steps: Vec<bool> = thin.iter().map(&mut is_exact).collect();
    let mut places = Vec::new();
    for run in steps.chunk_by(|a, b| a == b) {
        let start = places.last().map_or(0, |(run, _): &(Range<usize>, bool)| run.end);
        places.push((start..start + run.len(), run.first().is_some_and(|exact| *exact)));
    }
    places.into_iter().filter(|(_, exact)| *exact).map(|(run, _)| run).collect()
}
