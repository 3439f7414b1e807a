//! Which labels does a result have?

use std::sync::Arc;

use tacho_model::{LabelError, Labels, NAME};

use crate::Error;

use super::node::LabelChoice;

/// `labels` as a result carries them once the value is no longer that of the metric.
pub fn without_name(labels: &Arc<Labels>) -> Arc<Labels> {
    match labels.get(NAME) {
        None => labels.clone(),
        Some(_) => rebuilt(labels, |name| name != NAME),
    }
}

/// What identifies a group of series.
pub fn chosen(labels: &Labels, choice: &LabelChoice) -> Arc<Labels> {
    match choice {
        LabelChoice::Only(names) => rebuilt(labels, |name| names.iter().any(|n| n == name)),
        LabelChoice::Except(names) => {
            rebuilt(labels, |name| name != NAME && !names.iter().any(|n| n == name))
        }
    }
}

/// All labels whose name passes.
pub fn rebuilt(labels: &Labels, keep: impl Fn(&str) -> bool) -> Arc<Labels> {
    // Fewer of labels that were within the limits: this cannot fail.
    Arc::new(Labels::new(labels.iter().filter(|(name, _)| keep(name))).unwrap_or_else(|_| Labels::empty()))
}

/// `labels` with some set anew; an empty value removes the label.
pub fn with(labels: &Labels, changes: &[(&str, &str)]) -> Result<Arc<Labels>, Error> {
    let kept = labels.iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    let labels = Labels::new(kept.chain(changes.iter().copied()));
    labels.map(Arc::new).map_err(|error: LabelError| Error::execution(error.to_string()))
}
