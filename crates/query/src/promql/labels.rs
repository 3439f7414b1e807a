//! Which labels does a result have?

use std::sync::Arc;

use tacho_model::limits::LABEL_VALUE_BYTES_MAX;
use tacho_model::{LabelError, Labels, NAME};

use crate::Error;

use super::label_memory::LabelRoom;
use super::node::LabelChoice;

/// `labels` without the metric name, for a result whose value is no longer a value of the metric.
pub fn without_name(labels: &Arc<Labels>, room: &LabelRoom) -> Result<Arc<Labels>, Error> {
    match labels.get(NAME) {
        None => Ok(labels.clone()),
        Some(_) => room.keep(rebuilt(labels, |name| name != NAME)),
    }
}

/// The labels that identify a group of series.
pub fn chosen(labels: &Labels, choice: &LabelChoice) -> Arc<Labels> {
    match choice {
        LabelChoice::Only(names) => rebuilt(labels, |name| names.iter().any(|n| n == name)),
        LabelChoice::Except(names) => {
            rebuilt(labels, |name| name != NAME && !names.iter().any(|n| n == name))
        }
    }
}

pub fn rebuilt(labels: &Labels, keep: impl Fn(&str) -> bool) -> Arc<Labels> {
    // Not `Labels::new`: stored labels may exceed `LABELS_BYTES_MAX` of `tacho_model`, the limit on new labels.
    let kept: Vec<(&str, &str)> = labels.iter().filter(|(name, _)| keep(name)).collect();
    Arc::new(Labels::from_sorted(kept.iter().copied()))
}

/// `labels` with some of them replaced or added; an empty value removes the label.
pub fn with(labels: &Labels, changes: &[(&str, &str)]) -> Result<Arc<Labels>, Error> {
    let kept = labels.iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    let labels = Labels::new(kept.chain(changes.iter().copied()));
    labels.map(Arc::new).map_err(refused)
}

/// Checks the length of a label's value before memory for the value is allocated.
pub fn check_value(name: &str, bytes: usize) -> Result<(), Error> {
    if bytes <= LABEL_VALUE_BYTES_MAX {
        return Ok(());
    }
    Err(refused(LabelError::ValueTooLong { name: name.to_owned(), bytes }))
}

fn refused(error: LabelError) -> Error {
    Error::execution(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_series_above_the_limit_on_bytes_keeps_its_labels() {
        let mut canonical = b"__name__\xffm\xff".to_vec();
        for number in 0..20 {
            canonical.extend_from_slice(format!("l{number:02}").as_bytes());
            canonical.push(0xff);
            canonical.extend_from_slice(&[b'v'; LABEL_VALUE_BYTES_MAX]);
            canonical.push(0xff);
        }
        let labels = Arc::new(Labels::from_canonical(&canonical).unwrap());
        let without = rebuilt(&labels, |name| name != NAME);
        assert_eq!(
            (without.len(), without.get(NAME), without.get("l19").map(str::len)),
            (20, None, Some(4_096))
        );
        assert_eq!(*rebuilt(&labels, |_| true), *labels);
        assert!(rebuilt(&labels, |_| false).is_empty());
    }
}
