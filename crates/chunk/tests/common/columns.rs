//! Columns of values like those of real series, generated from a seed.

use tacho_chunk::ValueColumn;

use super::rng::Rng;

pub struct Column {
    pub name: &'static str,
    pub values: ValueColumn,
    /// Maximum bytes per value in a sealed chunk with one column, including times and header.
    pub bytes_max: f64,
}

/// A random walk between 0 and 100 with steps from normal(0, 1). Load generators use it for percentages.
pub fn walk(rng: &mut Rng, count: usize) -> Vec<f64> {
    let mut level = rng.unit() * 100.0;
    let mut step = || {
        level = (level + rng.normal()).clamp(0.0, 100.0);
        level
    };
    (0..count).map(|_| step()).collect()
}

pub fn whole(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.floor()).collect()
}

pub fn decimals(values: &[f64], places: i32) -> Vec<f64> {
    let power = 10f64.powi(places);
    values.iter().map(|value| (value * power).round() / power).collect()
}

pub fn all(count: usize) -> Vec<Column> {
    let mut rng = Rng(2);
    let walk = walk(&mut rng, count);
    let gauge: Vec<f64> = (0..count).map(|n| (n as f64 / 50.0).sin() * 40.0 + rng.normal()).collect();
    let mut sum = 0.0;
    let mut add = |value: &f64| {
        sum += (value.abs() * 100.0).round();
        sum
    };
    let counter: Vec<f64> = gauge.iter().map(&mut add).collect();
    let big = counter.iter().map(|value| (1 << 60) + 1 + *value as u64).collect();
    let mut level = 84i64;
    let mut seldom = || {
        level += if rng.below(50) == 0 { rng.below(7) as i64 - 3 } else { 0 };
        level
    };
    let threads: Vec<i64> = (0..count).map(|_| seldom()).collect();
    let states = (0..count).map(|_| i64::from(rng.below(50) == 0)).collect();
    let bytes = (0..count).map(|_| (200_000 + rng.below(1_000)) as f64 * 4_096.0).collect();
    let mut holes = decimals(&walk, 1);
    holes.iter_mut().step_by(100).for_each(|value| *value = f64::NAN);
    let single = gauge.iter().map(|value| f64::from(*value as f32)).collect();
    let noise = (0..count).map(|_| rng.next()).collect();
    let f64s = |name, values, bytes_max| Column { name, values: ValueColumn::F64(values), bytes_max };
    let i64s = |name, values, bytes_max| Column { name, values: ValueColumn::I64(values), bytes_max };
    let u64s = |name, values, bytes_max| Column { name, values: ValueColumn::U64(values), bytes_max };
    vec![
        f64s("constant", vec![1.5; count], 0.02),
        u64s("counter in steps", (0..count as u64).map(|n| n * 17).collect(), 0.02),
        f64s("counter that wraps", (0..count).map(|n| (n * 4 % 977) as f64).collect(), 0.02),
        f64s("walk, whole", whole(&walk), 0.285),
        u64s("walk, whole, u64", walk.iter().map(|value| *value as u64).collect(), 0.285),
        f64s("walk, one decimal", decimals(&walk, 1), 0.69),
        f64s("walk, one decimal, holes", holes, 0.7),
        f64s("sine with noise, two decimals", decimals(&gauge, 2), 1.19),
        f64s("sine with noise, single precision", single, 3.02),
        f64s("sine with noise, full precision", gauge, 6.5),
        f64s("counter, f64", counter, 1.19),
        u64s("counter above 2^60", big, 1.19),
        i64s("level that rarely changes", threads, 0.032),
        i64s("state, mostly 0", states, 0.028),
        f64s("pages of 4 KiB", bytes, 1.29),
        u64s("random words", noise, 8.05),
    ]
}
