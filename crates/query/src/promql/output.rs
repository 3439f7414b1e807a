//! What is the answer of a query?

use std::sync::Arc;

use tacho_model::{Labels, Timestamp};

use crate::Error;

use super::grid::Grid;
use super::is_stale;
use super::rows::{Ranges, Row, Value};
use super::window::{Visits, window_at};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub at: Timestamp,
    pub value: f64,
}

/// One series of a matrix. It has at least one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub labels: Arc<Labels>,
    pub points: Vec<Point>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    Scalar(Point),
    String {
        at: Timestamp,
        text: Arc<str>,
    },
    /// In the order that the query requests (`sort`, `topk`), otherwise in no particular order.
    Vector(Vec<(Arc<Labels>, Point)>),
    /// Sorted by labels.
    Matrix(Vec<Series>),
}

impl Output {
    /// The output of an instant query has the type of the query. The output of a range query is a matrix.
    pub(super) fn new(
        value: Value<'_>,
        grid: &Grid,
        instant: bool,
        visits: &mut Visits<'_>,
    ) -> Result<Self, Error> {
        let at = grid.start;
        match value {
            Value::Scalar(points) if instant => match points[..] {
                [value] => Ok(Self::Scalar(Point { at, value })),
                _ => Err(Error::execution("internal: instant query with more than one step")),
            },
            Value::Scalar(points) => {
                let row = Row { labels: Arc::new(Labels::empty()), points };
                Ok(Self::matrix([over(row, grid)]))
            }
            Value::Vector(rows) if instant => {
                let element = |row: Row| row.at(0).map(|value| (row.labels, Point { at, value }));
                Ok(Self::Vector(rows.into_iter().filter_map(element).collect()))
            }
            Value::Vector(rows) => Ok(Self::matrix(rows.into_iter().map(|row| over(row, grid)))),
            Value::Ranges(ranges) => Ok(Self::matrix(windowed(&ranges, at, visits)?)),
            Value::Text(text) => Ok(Self::String { at, text }),
        }
    }

    fn matrix(series: impl IntoIterator<Item = Series>) -> Self {
        let mut series: Vec<Series> = series.into_iter().filter(|series| !series.points.is_empty()).collect();
        series.sort_by(|a, b| a.labels.cmp(&b.labels));
        Self::Matrix(series)
    }
}

fn over(row: Row, grid: &Grid) -> Series {
    let points = grid.times().zip(row.points).filter(|(_, value)| !is_stale(*value));
    Series { labels: row.labels, points: points.map(|(at, value)| Point { at, value }).collect() }
}

/// The answer if the whole query is a range vector such as `x[5m]`: the samples in the window at `at`.
fn windowed(ranges: &Ranges<'_>, at: Timestamp, visits: &mut Visits<'_>) -> Result<Vec<Series>, Error> {
    let series = ranges.series.iter().map(|samples| {
        Ok(Series { labels: samples.labels.clone(), points: window_at(samples, ranges, at, visits)? })
    });
    series.collect()
}
