//! One test per `tests/cases/*.qtest` file; `qtest/mod.rs` describes the notation.

mod qtest;

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use qtest::{Command, Eval, Expect, When};
use tacho_model::Labels;
use tacho_query::Error;
use tacho_query::promql::{self, Output, Params, Piece, Selection, SeriesData, Type};

const MINUTE: i64 = 60_000_000_000;
/// Relative tolerance. Expected values are written with about ten digits.
const TOLERANCE: f64 = 1e-9;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    // `QTEST_CASES` may name another folder with files in this notation.
    let folder = std::env::var_os("QTEST_CASES").map_or(folder, PathBuf::from);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let trials = files.into_iter().map(|file| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        Trial::test(name, move || run_file(&file))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

fn run_file(file: &Path) -> Result<(), Failed> {
    let commands = qtest::parse(&fs::read_to_string(file)?)?;
    let mut series: Vec<SeriesData> = Vec::new();
    let mut faults = Vec::new();
    for command in commands {
        match command {
            Command::Clear => series.clear(),
            Command::Load(more) => series.extend(more),
            Command::Eval(eval) => {
                if let Err(fault) = check(&eval, &series) {
                    faults.push(format!("{}:{}: {}\n    {fault}", file.display(), eval.line, eval.query));
                }
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
}

fn ask(query: &str, params: &Params, series: &[SeriesData]) -> Result<Output, Error> {
    let plan = promql::parse(query)?.plan(params)?;
    let data: Vec<_> = plan.selectors().iter().map(|selection| select(selection, series)).collect();
    plan.evaluate(&data)
}

fn select(selection: &Selection, series: &[SeriesData]) -> Vec<SeriesData> {
    let matching =
        series.iter().filter(|s| selection.matchers.iter().all(|matcher| matcher.matches(&s.labels)));
    let cut = matching.map(|series| {
        let inside = samples(series).filter(|(at, _)| selection.range.contains(*at));
        let (at, values) = inside.unzip();
        SeriesData::new(series.labels.clone(), at, values)
    });
    cut.filter(|series| !series.is_empty()).collect()
}

fn samples(series: &SeriesData) -> impl Iterator<Item = (i64, f64)> {
    series.pieces.iter().flat_map(|piece| match piece {
        Piece::Samples { at, values } => at.iter().zip(values.iter().copied()).collect::<Vec<_>>(),
        Piece::Summary(_) => Vec::new(),
    })
}

fn check(eval: &Eval, series: &[SeriesData]) -> Result<(), String> {
    let params = match eval.when {
        When::Instant { at } => Params::instant(at),
        When::Range { start, end, step } => Params::range(start, end, step),
    };
    let answer = ask(&eval.query, &params, series);
    let output = match (answer, &eval.expect) {
        (Ok(output), Expect::Failure(_)) => return Err(format!("expected an error, got {output:?}")),
        (Err(error), Expect::Failure(expect)) if error.to_string().contains(expect) => return Ok(()),
        (Err(error), Expect::Failure(expect)) => return Err(format!("error {error:?}, expected {expect:?}")),
        (Err(error), _) => return Err(error.to_string()),
        (Ok(output), _) => output,
    };
    compare(output, eval)?;
    match eval.when {
        When::Instant { at } => check_as_range(eval, at, series),
        When::Range { .. } => Ok(()),
    }
}

/// An instant query must equal the middle step of a range query.
fn check_as_range(eval: &Eval, at: i64, series: &[SeriesData]) -> Result<(), String> {
    let query = promql::parse(&eval.query).map_err(|error| error.to_string())?;
    let depends_on_range = eval.query.contains("start()") || eval.query.contains("end()");
    if depends_on_range || !matches!(query.result(), Type::Scalar | Type::Vector) {
        return Ok(());
    }
    let params = Params::range(at - MINUTE, at + MINUTE, MINUTE);
    // A step next to the middle step may fail even if the middle step does not.
    let Ok(Output::Matrix(matrix)) = ask(&eval.query, &params, series) else { return Ok(()) };
    let middle = matrix.into_iter().filter_map(|series| {
        let point = series.points.iter().find(|point| point.at == at)?;
        Some((Labels::clone(&series.labels), vec![Some(point.value)]))
    });
    let got: Vec<_> = middle.collect();
    match &eval.expect {
        Expect::Series { series, .. } => {
            compare_series(got, series, false).map_err(|fault| format!("as range: {fault}"))
        }
        Expect::Scalar(expect) => match &got[..] {
            [(_, values)] if equal(values[0], Some(*expect)) => Ok(()),
            _ => Err(format!("as range: expected {expect}, got {got:?}")),
        },
        _ => Ok(()),
    }
}

type Found = Vec<(Labels, Vec<Option<f64>>)>;

fn compare(output: Output, eval: &Eval) -> Result<(), String> {
    match (output, &eval.expect) {
        (Output::Scalar(got), Expect::Scalar(expect)) if equal(Some(got.value), Some(*expect)) => Ok(()),
        (Output::String { text, .. }, Expect::Text(expect)) if *text == **expect => Ok(()),
        (Output::Vector(elements), Expect::Series { series, ordered }) => {
            let got =
                elements.into_iter().map(|(labels, point)| (Labels::clone(&labels), vec![Some(point.value)]));
            compare_series(got.collect(), series, *ordered)
        }
        (Output::Matrix(matrix), Expect::Series { series, ordered }) => {
            if let Some([start, end, step]) = eval.samples {
                let on_grid = |point: &promql::Point| {
                    (start..=end).contains(&point.at) && (point.at - start) % step == 0
                };
                if let Some(point) = matrix.iter().flat_map(|s| &s.points).find(|point| !on_grid(point)) {
                    return Err(format!("unexpected sample at {} ns: {}", point.at, point.value));
                }
            }
            let values = |points: &[promql::Point]| match (eval.samples, eval.when) {
                (Some(grid), _) => values_over(points, grid),
                (None, When::Range { start, end, step }) => values_over(points, [start, end, step]),
                (None, When::Instant { .. }) => points.iter().map(|point| Some(point.value)).collect(),
            };
            let got = matrix.iter().map(|series| (Labels::clone(&series.labels), values(&series.points)));
            compare_series(got.collect(), series, *ordered)
        }
        (output, _) => Err(format!("got {output:?}")),
    }
}

/// One value per step.
fn values_over(points: &[promql::Point], [start, end, step]: [i64; 3]) -> Vec<Option<f64>> {
    let at = |time| points.iter().find(|point| point.at == time).map(|point| point.value);
    (0..=(end - start) / step).map(|index| at(start + index * step)).collect()
}

fn compare_series(mut got: Found, expect: &Found, ordered: bool) -> Result<(), String> {
    let mut expect = expect.clone();
    if !ordered {
        got.sort_by(|a, b| a.0.cmp(&b.0));
        expect.sort_by(|a, b| a.0.cmp(&b.0));
    }
    let same = |a: &[Option<f64>], b: &[Option<f64>]| {
        let longer = a.len().max(b.len());
        (0..longer).all(|i| equal(a.get(i).copied().flatten(), b.get(i).copied().flatten()))
    };
    if got.len() == expect.len() && got.iter().zip(&expect).all(|(g, e)| g.0 == e.0 && same(&g.1, &e.1)) {
        return Ok(());
    }
    Err(format!("got      {got:?}\n    expected {expect:?}"))
}

fn equal(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
        }
        _ => false,
    }
}
