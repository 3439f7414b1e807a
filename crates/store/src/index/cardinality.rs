//! Statistics of labels: their values, series and memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tacho_model::NAME;

use super::pairs::PairNumber;
use super::{Index, Label, Postings, VALUE_BYTES, Valued};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cardinality {
    /// Series by kind, in the order of `Kind::ALL`.
    pub series: [usize; 3],
    /// Number of series. A series with samples and entries counts once.
    pub series_total: usize,
    pub series_max: usize,
    /// Memory of the whole index including labels, bytes.
    pub bytes: usize,
    /// The metric names with the most series, largest first.
    pub names: Vec<(String, usize)>,
    pub labels: Vec<LabelCost>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelCost {
    pub name: String,
    pub values: usize,
    pub series: usize,
    /// Memory of the label, bytes: its values, its postings, and one pair number (`pairs.rs`) in each series with the label.
    pub bytes: usize,
    /// The values with the most series, largest first.
    pub top: Vec<(String, usize)>,
}

impl Index {
    /// Computes the statistics. `top` limits the lists of names and of values. Visits every value, which takes about 20 ms
    /// per million values.
    pub fn cardinality(&self, top: usize, series_max: usize) -> Cardinality {
        let mut labels: Vec<LabelCost> =
            self.labels.iter().map(|(name, label)| label.cost(name, top)).collect();
        labels.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        Cardinality {
            series: self.counts,
            series_total: self.len(),
            series_max,
            bytes: self.bytes(),
            names: self.labels.get(NAME).map_or(Vec::new(), |label| label.top(top)),
            labels,
        }
    }
}

impl Label {
    fn cost(&self, name: &str, top: usize) -> LabelCost {
        let mut cost = LabelCost {
            name: name.to_owned(),
            values: self.values.len(),
            series: 0,
            bytes: self.carriers.as_ref().map_or(0, Postings::heap_bytes),
            top: self.top(top),
        };
        for (value, Valued { postings, .. }) in &self.values {
            cost.series += postings.len();
            cost.bytes += postings.len() * size_of::<PairNumber>();
            cost.bytes += VALUE_BYTES + value.len() + postings.heap_bytes();
        }
        cost
    }

    /// The values with the most series. Values with equally many series are ordered by value.
    fn top(&self, count: usize) -> Vec<(String, usize)> {
        let mut best = BinaryHeap::with_capacity(count.saturating_add(1).min(self.values.len() + 1));
        for (value, Valued { postings, .. }) in &self.values {
            best.push((Reverse(postings.len()), &**value));
            if best.len() > count {
                best.pop();
            }
        }
        let sorted = best.into_sorted_vec();
        sorted.into_iter().map(|(Reverse(series), value)| (value.to_owned(), series)).collect()
    }
}
