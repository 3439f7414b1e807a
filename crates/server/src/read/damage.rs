//! Formats damages as sentences, for the warnings of answers and commands.

use tacho_store::{Damage, Damages, plural};

/// One sentence for each listed damage, and one with the number of other damages.
pub fn sentences(damages: &Damages) -> Vec<String> {
    let mut all: Vec<String> = damages.named().iter().map(sentence).collect();
    let more = if all.is_empty() { "" } else { " more" };
    match damages.more() {
        0 => {}
        1 => all.push(format!("1{more} part cannot be read")),
        count => all.push(format!("{count}{more} parts cannot be read")),
    }
    all
}

fn sentence(damage: &Damage) -> String {
    let Damage { kind, labels, reason, .. } = damage;
    let records = plural(*kind);
    let Some(labels) = labels else { return format!("{records} may be missing: {reason}") };
    format!("stored {records} of {labels} {} cannot be read: {reason}", damage.times())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use tacho_model::{Kind, Labels, NAME, TimeRange};

    #[test]
    fn series_and_range_are_named() {
        let labels = Arc::new(Labels::new([(NAME, "up"), ("job", "a")]).unwrap());
        let mut damages = Damages::default();
        for (labels, start, end) in [
            (Some(labels.clone()), 0, 1_500_000_000),
            (Some(labels.clone()), i64::MIN, 0),
            (Some(labels.clone()), 0, i64::MAX),
            (Some(labels), i64::MIN, i64::MAX),
            (None, i64::MIN, i64::MAX),
        ] {
            let reason = format!("reason {start} {end}").into();
            damages.add(Damage { kind: Kind::Sample, labels, range: TimeRange::new(start, end), reason });
        }
        let said = sentences(&damages);
        let begins = [
            "stored samples of up{job=\"a\"} between 1970-01-01T00:00:00Z and 1970-01-01T00:00:01.5Z cannot be read: ",
            "stored samples of up{job=\"a\"} up to 1970-01-01T00:00:00Z cannot be read: ",
            "stored samples of up{job=\"a\"} from 1970-01-01T00:00:00Z on cannot be read: ",
            "stored samples of up{job=\"a\"} of any time cannot be read: ",
            "samples may be missing: ",
        ];
        for (said, begin) in said.iter().zip(begins) {
            assert!(said.starts_with(&format!("{begin}reason ")), "{said}");
        }
        assert_eq!(said.len(), begins.len());
    }
}
